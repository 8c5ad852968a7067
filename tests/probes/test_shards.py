"""Spreading a run over parts, and telling beforehand what it takes."""

import os
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from placed import hashes

from plumbline.builders.core.errors import UserError
from plumbline.probes.__main__ import main
from plumbline.probes.commands.cost import plan
from plumbline.probes.core import run_probe
from plumbline.probes.core.run_probe import Execution, Task, probe
from plumbline.probes.models.load import pin
from plumbline.probes.politicians import associations

TOP = Path(__file__).parents[2]
TINY = Path("data/outputs/associations/tiny")
FINE = """
import sys
from plumbline.probes.politicians import associations
from plumbline.probes.core import run_probe as outputs
from plumbline.probes.__main__ import main

associations.SHARD = 20
sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture
def fine(place, monkeypatch, change):
    """A place with a model in float32 and one language, and shards of few names."""
    monkeypatch.setattr(associations, "SHARD", 20)
    change(lambda tree: tree["models"]["tiny"].update(dtype="float32", languages=["fr"]))
    pin("tiny")
    return place


@pytest.mark.slow
def test_probe_in_parts(fine):
    whole = hashes(probe("associations", "tiny"))
    TINY.rename("elsewhere")
    jobs = [
        subprocess.Popen(
            [sys.executable, "-c", FINE, "associations", "tiny", "--part", f"{i}/3"],
            env=os.environ | {"PYTHONPATH": str(TOP), "PLUMBLINE_CORES": "1"},
            stderr=subprocess.PIPE,
        )
        for i in (1, 2)
    ]
    for job in jobs:  # both at once
        _, said = job.communicate()
        assert job.returncode == 0, said.decode()
    assert not TINY.exists()
    partial = TINY.with_name(".tiny.partial")
    left = {p: p.stat().st_ino for p in partial.glob("*/*.parquet")}
    assert 0 < len(left) < len(whole) - 1
    assert probe("associations", "tiny", Execution(part=(3, 3))) == partial
    assert not TINY.exists()  # no part finishes: others may still be at work
    assert hashes(probe("associations", "tiny")) == whole
    for path, number in left.items():  # nothing was computed twice
        assert (TINY / path.relative_to(partial)).stat().st_ino == number


def test_probe_parts_of_another_run(fine, change):
    probe("associations", "tiny", Execution(part=(1, 3)))
    partial = TINY.with_name(".tiny.partial")
    before = hashes(partial)
    change(lambda tree: tree["probes"]["associations"].update(version="9.9.9"))
    with pytest.raises(UserError, match="holds parts of a run with other params"):
        probe("associations", "tiny", Execution(part=(2, 3)))
    assert hashes(partial) == before


def test_run_models_failure(place):
    command = [sys.executable, "-m", "plumbline.probes", "clusters", "nobody", "noone"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    said = done.stderr
    assert "no model 'nobody'" in said
    assert "no model 'noone'" in said
    assert "clusters failed for nobody, noone: see above" in said


def test_processes(place, monkeypatch):
    monkeypatch.setenv("PLUMBLINE_CORES", "2")
    asked = Task("associations", "world-null")
    assert run_probe.processes(asked, 8) == 1
    monkeypatch.setattr(asked.module, "TRAINS", True, raising=False)
    assert run_probe.processes(asked, 8) == 2
    asked.name = "tiny"
    assert run_probe.processes(asked, 8) == 1


@pytest.mark.slow
def test_a_plan_counts_what_a_run_then_writes(fine):
    planned = plan("associations", "tiny", seconds=60)
    folder = probe("associations", "tiny")
    prompts = pl.read_parquet(folder / "fr/*.parquet").select("prompt", "pos").unique()["prompt"]
    assert planned.prompts == len(prompts)
    written = sum(p.stat().st_size for p in folder.glob("*/*.parquet"))
    assert planned.gigabytes * 1e9 == pytest.approx(written, rel=1)
    assert 0 < planned.hours < 0.1


def test_a_plan_for_a_model_that_has_none_of_the_words_says_so(place, change):
    change(lambda tree: tree["models"]["tiny"].update(languages=["hi"]))
    pin("tiny")
    with pytest.raises(UserError, match=r"models.tiny: none of the \d+ words of hi "):
        plan("associations", "tiny", seconds=1)


def test_a_plan_of_one_model_has_the_probes_that_it_is_assigned_to(place, capsys, change):
    pin("tiny")
    change(lambda tree: tree.update(assignments={"associations": ["tiny"], "perplexity": []}))
    assert main(["plan", "tiny", "--seconds", "0.1"]) == 0
    shown = capsys.readouterr().out
    assert "associations" in shown
    assert "perplexity" not in shown
    change(lambda tree: tree.update(assignments={"associations": []}))
    assert main(["plan", "tiny"]) == 1
    assert "tiny: no probe is assigned to it" in capsys.readouterr().err
