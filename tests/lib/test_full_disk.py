"""A full disk: no file that any step writes is left in part, and one sentence says what to do.

A limit on the size of files stands for it: the system refuses the same calls, with other words.
"""

import hashlib
import json
import os
import re
import resource
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch
from cloned import clone
from safetensors.torch import save_file

from plumbline.builders.core import parquet, private
from plumbline.builders.core.errors import unwritten
from plumbline.builders.core.snapshot import write_bytes, write_gzip, writing
from plumbline.probes.training import rows, train

TOLD = r"could not be written \(.*\); free some space and run the same command again"
NUMBERS = np.random.default_rng(1).random(50_000)
FRAME = pl.DataFrame({"a": NUMBERS})


@contextmanager
def full(most: int):
    """Let no file of this process grow above so many bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def checkpoint(folder):
    model = torch.nn.Linear(100, 100)
    course = train.Course([], [], None)
    train._keep(folder / "a.pt", model, torch.optim.AdamW(model.parameters()), course)


def lines(folder):
    with writing(folder / "a.csv") as part:
        FRAME.lazy().sink_csv(part)


WRITES = {
    "file": lambda folder: write_bytes(folder / "a", NUMBERS.tobytes()),
    "gzip": lambda folder: write_gzip(folder / "a", NUMBERS.tobytes()),
    "table": lambda folder: parquet.write_table(
        FRAME, FRAME.to_arrow().schema, parquet.fresh(folder / "a") / "a.parquet"
    ),
    "table of Polars": lambda folder: FRAME.write_parquet(parquet.fresh(folder / "a") / "a"),
    "csv": lines,
    "checkpoint": checkpoint,
    "tokens": lambda folder: rows.stored(iter([[1] * 5000] * 3), parquet.fresh(folder / "a")),
    "weights": lambda folder: save_file(
        {"a": torch.rand(50_000)}, parquet.fresh(folder / "a") / "a.safetensors"
    ),
}


@pytest.mark.parametrize("most", [0, 5000])
@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_each_kind_of_file_is_told_and_gets_no_name(tmp_path, write, most):
    with full(most), pytest.raises(Exception, match=r"\w") as caught:
        write(tmp_path)
    assert re.search(TOLD, unwritten(caught.value) or str(caught.value))
    left = [path.name for path in tmp_path.iterdir()]
    assert {name for name in left if not name.endswith(".partial")} == set()
    write(tmp_path)


def test_a_salt_that_cannot_be_written_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with full(0), pytest.raises(Exception, match="File too large"):
        private.salt()
    assert list((tmp_path / private.FOLDER).iterdir()) == []


STEPS = {  # each needs those before
    "builders words": "data/datasets/words",
    "validation words": "data/validation/words.json",
    "builders cards words": "data/cards/words",
    "builders politicians": "data/datasets/politicians",
    "validation politicians": "data/validation/politicians.json",
    "probes associations world-small": "data/outputs/associations/world-small",
    "probes pmi world-small": "data/tables/pmi/world-small",
}


# one process for all steps, or most of the time goes into starting thirty of them
STEPPING = """
import contextlib, io, json, resource, runpy, sys
for line in sys.stdin:
    (module, *rest), most = json.loads(line)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))
    sys.argv, said, code = [module, *rest], io.StringIO(), 0
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(said):
        try:
            runpy.run_module(f"plumbline.{module}", run_name="__main__", alter_sys=True)
        except SystemExit as end:
            code = end.code or 0
    print(json.dumps([code, said.getvalue()]), flush=True)
"""


@contextmanager
def stepping(top: Path):
    """Give a function that runs a step, and returns its exit status and what it says on stderr."""
    process = subprocess.Popen(
        [sys.executable, "-B", "-c", STEPPING],
        cwd=top,
        env=os.environ | {"PYTHONPATH": str(top)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )

    def step(words: str, most: int = resource.RLIM_INFINITY) -> tuple[int, str]:
        process.stdin.write(json.dumps([words.split(), most]) + "\n")
        process.stdin.flush()
        return tuple(json.loads(process.stdout.readline()))

    with process:
        yield step


def held(top: Path) -> dict[str, str]:
    """Return the hash of every file under data, hidden ones too."""
    paths = (path for path in (top / "data").rglob("*") if path.is_file())
    return {str(p): hashlib.sha256(p.read_bytes()).hexdigest() for p in paths}


@pytest.mark.slow
def test_each_step_stops_on_a_full_disk_and_goes_on_after(tmp_path):
    top = clone(tmp_path / "clone")
    with stepping(top) as step:
        for words, made in STEPS.items():
            before, path, ends = held(top), top / made, []
            for share in (0, 0.5):  # of its largest file
                most = 0
                if share:
                    files = (
                        [path] if path.is_file() else [p for p in path.rglob("*") if p.is_file()]
                    )
                    most = int(share * max(file.stat().st_size for file in files))
                    shutil.rmtree(path) if path.is_dir() else path.unlink()
                code, said = step(words, most)
                assert code == 1, (words, most, said)
                assert re.fullmatch(rf"error: .*{TOLD}.*\n", said), (words, most, said)
                left = held(top).items() - before.items()
                hidden = {pair for pair in left if re.search(r"/\.world-small\.partial/", pair[0])}
                assert "associations" in words or not hidden, "shards are kept, and go on"
                code, said = step(words)
                assert code == 0, (words, said)
                ends.append(held(top))
                assert left - hidden <= ends[-1].items(), "what has a name is whole"
            assert ends[0] == ends[1] != before, words
