"""The benchmarks of trainings and of a GPU: they run, and say so where a goal is missed."""

import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch

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


def test_a_goal_that_is_missed_is_an_error(script, monkeypatch, capsys):
    module = script("training", "--smoke", "positions")
    module.main()
    assert capsys.readouterr().out.count("0.8 or more") == 6
    monkeypatch.setattr(module.distributed, "passes", lambda some, *_: [list(range(len(some)))])
    with pytest.raises(SystemExit, match=r"goal missed: positions, left, sigma 0\.8"):
        module.main()


def test_another_work_is_told(script):
    for name in ("training", "gpu"):
        with pytest.raises(SystemExit, match="no work ghost; there are"):
            script(name, "--smoke", "ghost").main()


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_one_sentence_says_what_can_be_done(script):
    with pytest.raises(SystemExit, match="torch finds none; --smoke tries"):
        script("gpu").main()


@pytest.mark.parametrize(
    ("what", "off"), [("fill", 2e-3), ("losses of pretraining", 3e-2), ("fill", float("nan"))]
)
def test_a_device_that_answers_otherwise_is_an_error(script, monkeypatch, tmp_path, what, off):
    module = script("gpu")
    monkeypatch.setattr(module, "made", lambda *_, **__: None)
    close = {"fill": 5e-4, "losses of pretraining": 1e-2}
    apart = {"cpu": dict.fromkeys(close, 0.0), "cuda": close}
    monkeypatch.setattr(
        module,
        "answers",
        lambda _, device, __: {k: np.array([v]) for k, v in apart[device].items()},
    )
    module.agree(tmp_path, "cuda", smoke=True)
    apart["cuda"] = close | {what: off}
    with pytest.raises(ValueError, match=f"otherwise than a CPU: {what}$"):
        module.agree(tmp_path, "cuda", smoke=True)


def test_what_fails_or_takes_too_long_is_an_error_and_all_else_is_measured(
    script, monkeypatch, capsys
):
    module = script("gpu", "--smoke", "agree", "fill", "pll", "classify", "finetune")
    monkeypatch.setattr(module, "EACH", 0.2)
    monkeypatch.setitem(module.PEAKS, "CPU", 1e-6)  # 10^6 a second
    monkeypatch.setattr(module, "agree", lambda *_, **__: next(iter(())))
    monkeypatch.setattr(module, "fill", lambda *_: module.Done(10, 100, 3e5, 1.0))
    monkeypatch.setattr(module, "pll", lambda *_: time.sleep(9))
    monkeypatch.setattr(module, "classify", lambda *_: 1 / 0)
    monkeypatch.setattr(module, "finetune", lambda *_: module.Done(7, 70, 9e5, 1.0))
    begun = time.perf_counter()
    wrong = "agree: StopIteration; fill: goal missed; pll: more than .*; classify: division by zero"
    with pytest.raises(SystemExit, match=f"error: {wrong}$"):
        module.main()
    assert time.perf_counter() - begun < 5
    told = capsys.readouterr().out
    assert told.count("| work |") == 1
    assert "| fill | 10 | 100 | 3e-07 | 0.30 | 0.4 |" in told
    assert "| finetune | 7 | 70 | 9e-07 | 0.90 |" in told
    monkeypatch.setattr(module, "LIMIT", -1.0)
    with pytest.raises(SystemExit, match=r"fill: more than the 0 s .* finetune: more than the 0 s"):
        module.main()


@pytest.mark.parametrize("share", [0.15, 0.0])
def test_operations_of_a_training_are_those_counted_by_hand(script, tmp_path, share):
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
def test_trainings_are_measured(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    works, told = run("training.py")
    every = "positions tokens steps exchanges classifiers speed parts"
    assert set(every.split()) < set(works)
    assert float(told["times faster than transformers' Trainer"][2]) > 1
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_what_is_measured_on_a_gpu_runs_on_a_cpu_with_tiny_models(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    works, _ = run("gpu.py")
    for name in ("fill", "pll", "classify", "pretrain", "pretrain-256", "finetune"):
        texts, tokens, rate = (float(part.replace(",", "")) for part in works[name][1:4])
        assert 0 < texts < tokens
        assert 0 < rate < 1  # 10^12 a second
    assert not list(tmp_path.iterdir())
