"""Runs of simulations: interrupted and resumed, in several processes, and their command."""

import shutil

import polars as pl
import pytest

from calibration import __main__ as command
from calibration import calibrate
from calibration.politicians import pmi

SMALL = {"men": 30, "women": 30, "words": 20, "length": 5, "shared": 0.0}


@pytest.fixture
def small(tmp_path, monkeypatch):
    """Simulate small tables of pmi, four of each truth."""
    text = "analysis:\n  pmi: {version: 0.1.0, smoothing: 0.5, min_count: 2, n_bootstrap: 20}\n"
    (tmp_path / "params.yaml").write_text(text, encoding="utf-8")
    (tmp_path / "calibration").mkdir()
    text = "calibration: {version: 0.1.0, replicates: 4}\n"
    (tmp_path / "calibration/params.yaml").write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(pmi, "PARAMS", {"n_bootstrap": 20})
    shape = next(iter(pmi.SHAPES.values())).model_copy(update=SMALL)
    monkeypatch.setattr(pmi, "SHAPES", {"small": shape})
    monkeypatch.setattr(calibrate, "each", in_process)


def in_process(work, todo, *_):
    for number, arguments in enumerate(todo):
        yield number, work(*arguments)


def table():
    return pl.read_parquet("data/tables/calibration/pmi/calibration.parquet")


@pytest.mark.slow
@pytest.mark.usefixtures("small")
def test_calibrate_resumes_an_interrupted_run(monkeypatch):
    calibrate.calibrate("pmi", workers=1)
    whole = table()
    assert set(whole["replicates"]) == {4}
    shutil.rmtree("data")
    made = []

    def interrupted(*arguments):
        for number, result in in_process(*arguments):
            if len(made) == 2:
                raise KeyboardInterrupt
            made.append(number)
            yield number, result

    with monkeypatch.context() as patch:
        patch.setattr(calibrate, "each", interrupted)
        with pytest.raises(KeyboardInterrupt):
            calibrate.calibrate("pmi", workers=1)
    assert not calibrate.FOLDER.exists()
    assert len(list(calibrate.CHUNKS.rglob("*.parquet"))) == 2
    calibrate.calibrate("pmi", workers=1)
    assert table().equals(whole)


@pytest.mark.parametrize("words", [["nothing"], ["pmi", "--replicates", "1"]])
@pytest.mark.usefixtures("small")
def test_command_rejects_bad_input(words, capsys):
    assert command.main(words) == 1
    assert words[-1] in capsys.readouterr().err
    assert not calibrate.FOLDER.exists()


@pytest.mark.usefixtures("small")
def test_intervals_are_simulated_at_95():
    assert calibrate.analysis_of("pmi")[2].confidence == 0.95
