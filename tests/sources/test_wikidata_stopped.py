"""Fetches that are killed, or refused, and continued."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from samples import DAY, POLITE, SAMPLES, TOP, wikidata_params

from plumbline.builders.core.errors import UserError
from plumbline.builders.datasets.politicians import fetch as wikidata
from sources.misbehaving import beyond, half, misbehaving, status
from sources.test_wikidata import built

SCRIPT = """
import sys
from pathlib import Path
from plumbline.builders.datasets.politicians import fetch as wikidata
from samples import POLITE, wikidata_params
wikidata.fetch(wikidata_params(sys.argv[1]), POLITE, Path(sys.argv[2]))
"""


def process(endpoint: str, into: Path) -> subprocess.Popen:
    path = os.pathsep.join(map(str, [TOP, TOP / "tests"]))
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT, endpoint, into],
        env=os.environ | {"PYTHONPATH": path},
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.slow
def test_fetch_wikidata_killed_repeatedly(endpoint, tmp_path):
    seed = random.randrange(10**6)
    print("seed", seed)
    dice = random.Random(seed)
    script = beyond(ids=30, days=5000, behaviour=half)
    with misbehaving(endpoint, script, delay_s=0.01) as server:
        wikidata.fetch(wikidata_params(server.endpoint), POLITE, tmp_path / "whole" / DAY)
        requests = len(server.asked)
        for _ in range(3):
            stop = len(server.asked) + dice.randrange(requests // 3)
            with process(server.endpoint, tmp_path / "killed" / DAY) as running:
                while len(server.asked) < stop and running.poll() is None:
                    time.sleep(0.001)
                time.sleep(dice.uniform(0, 0.03))
                running.send_signal(signal.SIGKILL)
        asked = len(server.asked)
        wikidata.fetch(wikidata_params(server.endpoint), POLITE, tmp_path / "killed" / DAY)
        assert len(server.asked) - asked < requests
    whole = {p.relative_to(tmp_path / "whole"): p for p in (tmp_path / "whole").rglob("*")}
    killed = {p.relative_to(tmp_path / "killed"): p for p in (tmp_path / "killed").rglob("*")}
    assert set(whole) == set(killed)  # so no .writing-* is left
    for name, path in whole.items():
        assert path.is_dir() or path.read_bytes() == killed[name].read_bytes(), name


def test_fetch_wikidata_continues_from_halves(endpoint, tmp_path):
    slow = beyond(ids=20, days=10**5, behaviour=half)
    phase = "stops after the first quarter of the labels"
    into = tmp_path / DAY

    def script(number, body):
        if phase == "quick":
            return None
        return status(403) if (into / "labels" / "00000aa.json.gz").exists() else slow(number, body)

    with misbehaving(endpoint, script) as server:
        with pytest.raises(UserError):
            wikidata.fetch(wikidata_params(server.endpoint), POLITE, into)
        phase = "quick"
        wikidata.fetch(wikidata_params(server.endpoint), POLITE, into)
    assert (into / "labels" / "00000.json.gz").exists()
    assert built(into) == built(SAMPLES / "wikidata" / DAY)
