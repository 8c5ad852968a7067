"""The benchmarks of trainings and of a GPU: they run, and say so where a goal is missed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture
def script(monkeypatch):
    """Return what imports a benchmark as a module, and sets what is on its command line."""
    monkeypatch.syspath_prepend(str(FOLDER))
    for name in ("PLUMBLINE_CORES", "PLUMBLINE_DEVICE"):
        monkeypatch.setenv(name, "")  # a benchmark sets them

    def load(name, *words):
        monkeypatch.setattr(sys, "argv", [name, *words])
        return __import__(name)

    return load


def test_training_missed_goal_is_an_error(script, monkeypatch, capsys):
    module = script("training", "--smoke", "positions")
    module.main()
    assert capsys.readouterr().out.count("0.8 or more") == 6
    monkeypatch.setattr(module.distributed, "passes", lambda some, *_: [list(range(len(some)))])
    with pytest.raises(SystemExit, match="positions"):
        module.main()


@pytest.mark.parametrize("share", [0.15, 0.0])
def test_gpu_operations_are_those_counted_by_hand(script, tmp_path, share):
    module, texts = script("gpu"), ["an ber cor"] * 3
    shape = "roberta-base" if share else "roberta-base-classifier"
    module.made(shape, tmp_path, texts, smoke=True)
    engine = (module.Masked if share else module.Classifier)(tmp_path, "m", "r", dtype="float32")
    width, inner, words, classes = 32, 64, 8000, 3  # of module.TINY
    lengths, wanted = [5, 9, 9], 0.0
    for n in lengths:
        products = 4 * 2 * n * width**2 + 2 * 2 * n * width * inner  # q, k, v, out; up and down
        wanted += 2 * (products + 2 * 2 * n * n * width)  # two layers; scores and their sums
        head = width**2 + width * (words if share else classes)
        wanted += 2 * head * (share * n or 1)
    assert module.forward(engine, lengths, share) == pytest.approx(wanted, rel=1e-12)


def run(name):
    done = subprocess.run(
        [sys.executable, str(FOLDER / name), "--smoke"],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    lines = [line for line in done.stdout.splitlines() if line.startswith("| ")]
    rows = [[part.strip() for part in line.split("|")[1:]] for line in lines]
    return {row[0]: row for row in rows}, {row[1]: row for row in rows}


@pytest.mark.slow
def test_training_smoke(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    works, told = run("training.py")
    every = "positions tokens steps exchanges classifiers speed parts"
    assert set(every.split()) < set(works)
    assert float(told["times faster than transformers' Trainer"][2]) > 1
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_gpu_smoke_on_a_cpu(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    works, _ = run("gpu.py")
    for name in ("fill", "pll", "classify", "pretrain", "pretrain-256", "finetune"):
        texts, tokens, rate = (float(part.replace(",", "")) for part in works[name][1:4])
        assert 0 < texts < tokens
        assert 0 < rate < 1  # 10^12 a second
    assert not list(tmp_path.iterdir())
