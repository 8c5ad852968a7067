"""Batches on a device with little memory: they shrink, and nothing is lost."""

import pytest
import torch

from plumbline.builders.core.errors import UserError
from plumbline.probes.models import batching
from plumbline.probes.models.batching import Batches, cores, device


def small(room):
    """Return batches for a device that is not the CPU, and a launch that it has room for."""
    runner = Batches("tiny", torch.device("meta"))
    tried = []

    def launch(rows):
        tried.append(len(rows))
        if len(rows) > room:
            raise torch.OutOfMemoryError("no room")
        return [row * row for row in rows]

    return runner, launch, tried


@pytest.mark.parametrize("room", [1, 3, 50, 10_000])
def test_run_shrinks_batches_until_they_fit(room):
    runner, launch, tried = small(room)
    lengths = [5 + i % 3 for i in range(3000)]
    found = {}
    for rows, done in runner.run(lengths, lengths, launch):
        assert not set(rows) & set(found)
        found.update(zip(rows, done, strict=True))
    assert found == {i: i * i for i in range(3000)}
    if room < 1000:
        assert tried[0] > room  # it began too large,
        # and learnt by halving
        assert sum(size > room for size in tried) <= 12
    assert all(size <= batching.TOKENS_GPU // 5 + 1 for size in tried)


def test_run_row_that_does_not_fit():
    runner, launch, _ = small(0)
    with pytest.raises(UserError, match=r"tiny.*meta"):
        list(runner.run([4, 4], [4, 4], launch))


def test_device_and_cores_from_the_environment(monkeypatch):
    monkeypatch.setenv("PLUMBLINE_DEVICE", "meta")
    assert device() == torch.device("meta")
    monkeypatch.setenv("PLUMBLINE_CORES", "3")
    assert cores() == 3
    monkeypatch.setenv("PLUMBLINE_CORES", "many")
    with pytest.raises(UserError, match="many"):
        cores()
    monkeypatch.delenv("PLUMBLINE_CORES")
    assert cores() >= 1
