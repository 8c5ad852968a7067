"""Fetches that are stopped: killed, continued, repeated, out of space."""

import gzip
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
from plumbline.builders.core.snapshot import MANIFEST, Snapshot
from plumbline.builders.datasets.politicians import fetch as wikidata
from plumbline.builders.readers.sparql_json import bindings
from sources.misbehaving import beyond, half, misbehaving, status
from sources.test_wikidata import built, contents

SCRIPT = """
import json, sys
from datetime import date
from pathlib import Path
from plumbline.builders.datasets.politicians import fetch as wikidata
from samples import POLITE, wikidata_params
if sys.argv[3:]:
    import resource
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[3]),) * 2)
wikidata.fetch(wikidata_params(sys.argv[1]), POLITE, Path(sys.argv[2]))
"""


def process(endpoint: str, into: Path, *limit: int) -> subprocess.Popen:
    path = os.pathsep.join(map(str, [TOP, TOP / "tests"]))
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT, endpoint, into, *map(str, limit)],
        env=os.environ | {"PYTHONPATH": path},
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.slow
def test_a_fetch_killed_again_and_again_ends_with_the_same_bytes(endpoint, tmp_path):
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


def test_a_fetch_stopped_among_halves_continues_on_a_faster_server(endpoint, tmp_path):
    slow = beyond(ids=20, days=10**5, behaviour=half)
    phase = "stops after the first quarter of the labels"
    into = tmp_path / DAY

    def script(number, body):
        if phase == "quick":
            return None
        return status(403) if (into / "labels" / "00000aa.json.gz").exists() else slow(number, body)

    with misbehaving(endpoint, script) as server:
        with pytest.raises(UserError, match="403"):
            wikidata.fetch(wikidata_params(server.endpoint), POLITE, into)
        phase = "quick"
        wikidata.fetch(wikidata_params(server.endpoint), POLITE, into)
    assert (into / "labels" / "00000.json.gz").exists()
    assert built(into) == built(SAMPLES / "wikidata" / DAY)


def test_a_finished_fetch_is_not_asked_for_again_nor_with_other_parameters(endpoint, tmp_path):
    with misbehaving(endpoint) as server:
        wikidata.fetch(wikidata_params(server.endpoint), POLITE, tmp_path / DAY)
        before, asked = contents(tmp_path / DAY), len(server.asked)
        wikidata.fetch(wikidata_params(server.endpoint), POLITE, tmp_path / DAY)
        with pytest.raises(UserError, match=r"begun with other parameters.*--date"):
            wikidata.fetch(wikidata_params(server.endpoint, batch_size=7), POLITE, tmp_path / DAY)
    assert len(server.asked) == asked
    assert contents(tmp_path / DAY) == before


def test_fetching_again_replaces_an_edited_file_in_place_of_believing_it(endpoint, tmp_path):
    into = tmp_path / DAY
    wikidata.fetch(wikidata_params(endpoint), POLITE, into)
    before = contents(into)
    for name in ("facts/00001.json.gz", "request.json"):
        (into / name).write_bytes(gzip.compress(b'{"results": {"bindings": []}}'))
    with pytest.raises(UserError, match="never edited, fetch it again"):
        Snapshot.open(into)
    wikidata.fetch(wikidata_params(endpoint), POLITE, into)
    assert contents(into) == before


def partly_the_same(into: Path, whole: Path) -> None:
    saved = contents(into)
    assert any(name.startswith("facts/") for name in saved)
    assert MANIFEST not in saved
    assert not [name for name in saved if ".writing-" in name]
    expected = contents(whole)
    for name, body in saved.items():
        if name.startswith("ids/"):  # of use only until ids.txt.gz is there
            bindings(body)
        else:
            assert body == expected[name]


def test_a_file_that_cannot_be_written_is_not_there_in_part(endpoint, tmp_path):
    whole, into = tmp_path / "whole" / DAY, tmp_path / "full" / DAY
    wikidata.fetch(wikidata_params(endpoint), POLITE, whole)
    sizes = sorted(path.stat().st_size for path in whole.rglob("*.gz"))
    with process(endpoint, into, sizes[-1] - 1) as running:
        said = running.stderr.read()
    assert "free some space and run the same command again" in said.splitlines()[-1]
    partly_the_same(into, whole)
    wikidata.fetch(wikidata_params(endpoint), POLITE, into)
    assert contents(into) == contents(whole)


def test_a_full_disk_says_what_to_do_and_loses_nothing(endpoint, tmp_path):
    disk, whole = tmp_path / "disk", tmp_path / "whole" / DAY
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=48k", "tmpfs", disk]
    if os.geteuid() != 0 or subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("needs the right to mount a small file system")
    try:
        wikidata.fetch(wikidata_params(endpoint), POLITE, whole)
        with pytest.raises(UserError, match=r"No space left on device.*; free some space"):
            wikidata.fetch(wikidata_params(endpoint), POLITE, disk / DAY)
        partly_the_same(disk / DAY, whole)
        subprocess.run(["mount", "-o", "remount,size=10m", disk], check=True)
        wikidata.fetch(wikidata_params(endpoint), POLITE, disk / DAY)
        assert contents(disk / DAY) == contents(whole)
    finally:
        subprocess.run(["umount", disk], check=True)
