"""Secrets that only a worker knows, in what it prints, logs and raises: none comes out."""

import os
import shutil
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

from plumbline.builders.core.masking import masked_work

SOCKETS = shutil.ignore_patterns("sockets", "*.sock")
SECRET = "wJalrXUtnFEMI7MDENGbPxRfiCY"


def leak(turned):
    """Do what a library that fails does: say all it knows."""
    os.environ["NODE_TOKEN"] = turned[::-1]
    print("signed with", os.environ["NODE_TOKEN"], flush=True)
    print("signed with", os.environ["NODE_TOKEN"], file=sys.stderr, flush=True)
    try:
        raise ValueError(f"refused: {os.environ['NODE_TOKEN']}")  # noqa: TRY301
    except ValueError as error:
        raise KeyError(f"https://me:{os.environ['NODE_TOKEN']}@example.org") from error


@masked_work()
def leaking(turned):
    leak(turned)


def test_a_process_of_a_pool_neither_prints_nor_raises_a_secret(capfd):
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        done = pool.submit(leaking, SECRET[::-1])
        error = done.exception(timeout=60)
    shown = "".join([*capfd.readouterr(), str(error), str(error.__cause__)])
    assert shown.count("signed with [secret]") == 2
    assert "https://[secret]@example.org" in shown
    assert SECRET[:8] not in shown


@pytest.mark.slow
def test_a_task_on_a_cluster_neither_logs_nor_raises_a_secret(tmp_path, monkeypatch, capfd):
    pytest.importorskip("ray")
    from plumbline.probes.core import ray_runner

    def kept(folder, remove=shutil.rmtree, **named):
        shutil.copytree(folder, tmp_path / "ray", ignore=SOCKETS, dirs_exist_ok=True)
        remove(folder, **named)

    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))  # where a worker finds this module
    monkeypatch.setattr(ray_runner.shutil, "rmtree", kept)
    with pytest.raises(Exception, match="refused") as caught:
        list(ray_runner.each(leak, [(SECRET[::-1],)], 1))
    logs = [path.read_bytes() for path in (tmp_path / "ray").rglob("*") if path.is_file()]
    assert any(b"signed with [secret]" in body for body in logs)
    shown = "".join([*capfd.readouterr(), str(caught.value)])
    assert SECRET[:8] not in shown
    assert not any(SECRET[:8].encode() in body for body in logs)
