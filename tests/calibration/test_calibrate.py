"""The harness: killed and resumed, with more replicates, on other code; and its commands."""

import re
import shutil
from pathlib import Path

import polars as pl
import pytest
import yaml
from documented import TOP

from calibration import __main__ as command
from calibration import calibrate
from calibration.politicians import pmi
from plumbline.builders.core.errors import UserError
from plumbline.probes.report import error_rates

SMALL = {"men": 30, "women": 30, "words": 20, "length": 5, "shared": 0.0}
CHUNK = 2


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project with the params of the calibration, in which tables are small."""
    lines = ["calibration:", "  version: 0.1.0", f"  chunk: {CHUNK}", "  shapes:", "    pmi:"]
    lines += ["      small: {" + ", ".join(f"{k}: {v}" for k, v in SMALL.items()) + "}"]
    analysis = "analysis:\n  pmi: {version: 0.1.0, smoothing: 0.5, min_count: 2, n_bootstrap: 20}\n"
    (tmp_path / "params.yaml").write_text("\n".join(lines) + "\n" + analysis, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(pmi, "PARAMS", {"n_bootstrap": 20})
    return tmp_path


@pytest.fixture
def here(monkeypatch):
    """Chunks in this process, each told; some may fail."""
    asked = []

    def run(todo, settings, _workers):
        for chunk in todo:
            asked.append(chunk.file())
            if len(asked) == run.dies:
                raise KeyboardInterrupt
            yield chunk, calibrate.made(chunk, settings)

    run.dies = 0
    run.asked = asked
    monkeypatch.setattr(calibrate, "_here", run)
    return run


def changed(project, old, new):
    """Change the params."""
    params = project / "params.yaml"
    params.write_text(params.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")


def table():
    return pl.read_parquet("data/tables/calibration/pmi/calibration.parquet")


@pytest.mark.usefixtures("project")
@pytest.mark.slow
def test_a_killed_run_goes_on_and_ends_with_the_same_bytes(here):
    calibrate.calibrate("pmi", 4)
    path = calibrate.FOLDER / "pmi/calibration.parquet"
    whole, number = path.read_bytes(), len(here.asked)
    assert number == 2 * len(pmi.TRUTHS)
    shutil.rmtree("data")
    here.asked.clear()
    here.dies = 4
    with pytest.raises(KeyboardInterrupt):
        calibrate.calibrate("pmi", 4)
    assert not calibrate.FOLDER.exists()
    here.dies = 0
    here.asked.clear()
    calibrate.calibrate("pmi", 4)
    assert len(here.asked) == number - 3  # the three that were done are not done again
    assert path.read_bytes() == whole


@pytest.mark.usefixtures("project")
@pytest.mark.slow
def test_more_replicates_add_to_those_there_are(here):
    calibrate.calibrate("pmi", 2)
    few = table()
    here.asked.clear()
    calibrate.calibrate("pmi", 4)
    assert len(here.asked) == len(pmi.TRUTHS)
    assert set(few["replicates"]) == {2}
    assert set(table()["replicates"]) == {4}
    before = calibrate.FOLDER.joinpath("pmi/calibration.parquet").read_bytes()
    with pytest.raises(UserError, match=r"4 replicates, more than 2; give --out"):
        calibrate.calibrate("pmi", 2)
    assert calibrate.FOLDER.joinpath("pmi/calibration.parquet").read_bytes() == before
    calibrate.calibrate("pmi", 2, folder=Path("elsewhere"))
    assert pl.read_parquet("elsewhere/pmi/calibration.parquet").equals(few)


@pytest.mark.usefixtures("here")
def test_a_table_of_other_shapes_is_not_written_over(project):
    calibrate.calibrate("pmi", 2)
    changed(project, "small:", "mine:")
    with pytest.raises(UserError, match=r"'small', which this table would lack; give --out"):
        calibrate.calibrate("pmi", 2)
    assert set(table()["shape"]) == {"small"}


@pytest.mark.usefixtures("project")
@pytest.mark.slow
def test_a_table_is_older_where_its_first_replicates_come_out_otherwise(here, monkeypatch):
    assert calibrate.older("pmi") == ["not simulated yet"]
    calibrate.calibrate("pmi", 2)
    assert calibrate.older("pmi") == []
    with monkeypatch.context() as rewritten:
        rewritten.setattr(calibrate, "_sha256", lambda _path: "of files that were rewritten")
        assert calibrate.older("pmi") == []
        here.asked.clear()
        calibrate.calibrate("pmi", 2)
        assert here.asked == []
    calibrate.calibrate("pmi", 2)  # the table tells the files as they are, but not the params
    monkeypatch.setattr(pmi, "PARAMS", {"n_bootstrap": 20, "min_count": 9})
    assert calibrate.older("pmi") == [f"small: {truth}" for truth in sorted(pmi.TRUTHS)]
    calibrate.calibrate("pmi", 2)
    assert len(here.asked) == len(pmi.TRUTHS)
    assert calibrate.older("pmi") == []


@pytest.mark.slow
def test_every_shape_is_looked_at_with_every_truth(project, here, monkeypatch):
    other = ", ".join(f"{k}: {v}" for k, v in (SMALL | {"words": 15}).items())
    changed(project, "small:", f"other: {{{other}}}\n      small:")
    calibrate.calibrate("pmi", 2)
    monkeypatch.setattr(calibrate, "_sha256", lambda _path: "of files that say something else")
    draw = pmi.draw
    for shape, words in (("other", 15), ("small", 20)):
        for name, truth in pmi.TRUTHS.items():

            def drawn(folder, own, given, rng, *, words=words, truth=truth):
                if given.words == words and own == truth:
                    given = given.model_copy(update={"men": 300, "women": 300})
                return draw(folder, own, given, rng)

            monkeypatch.setattr(pmi, "draw", drawn)
            assert calibrate.older("pmi") == [f"{shape}: {name}"]
    here.asked.clear()
    calibrate.calibrate("pmi", 2)
    assert len(here.asked) == 2 * len(pmi.TRUTHS)


@pytest.mark.slow
def test_only_what_is_named_is_simulated_anew(project, here, monkeypatch):
    other = ", ".join(f"{k}: {v}" for k, v in (SMALL | {"words": 15}).items())
    changed(project, "small:", f"other: {{{other}}}\n      small:")
    calibrate.calibrate("pmi", 4, folder=Path("whole"))
    calibrate.calibrate("pmi", 2)
    here.asked.clear()
    planted = next(name for name, truth in pmi.TRUTHS.items() if truth.kind == "planted")
    calibrate.calibrate("pmi", 4, only=["small", planted])
    whole = pl.read_parquet("whole/pmi/calibration.parquet")
    named = (pl.col("shape") == "small") & (pl.col("truth") == planted)
    assert table().filter(named).equals(whole.filter(named))
    assert set(table().filter(~named)["replicates"]) == {2}
    assert {line["replicates"] for line in error_rates.lines(table())} == {2}  # of each at least
    calibrate.calibrate("pmi", 4, only=["other"])
    calibrate.calibrate("pmi", 4, only=[*pmi.TRUTHS])
    path = Path("pmi/calibration.parquet")
    assert (calibrate.FOLDER / path).read_bytes() == ("whole" / path).read_bytes()
    with pytest.raises(UserError, match="4 replicates, more than 2"):
        calibrate.calibrate("pmi", 2, only=["other"])
    monkeypatch.setattr(pmi, "PARAMS", {"n_bootstrap": 20, "min_count": 9})
    monkeypatch.setattr(calibrate, "_sha256", lambda _path: "of files that say something else")
    with pytest.raises(UserError, match=r"(rows of 'other', .* come out otherwise today\W+){2}"):
        calibrate.calibrate("pmi", 4, only=["small"])
    monkeypatch.delitem(pmi.TRUTHS, planted)
    with pytest.raises(UserError, match="which there is no more"):
        calibrate.calibrate("pmi", 4, only=["small"])


def test_what_is_simulated_hangs_on_what_it_imports_and_on_nothing_else():
    names = {path.name for path in calibrate.code_of("values")}
    assert {"values.py", "ratings.py", "answers.py", "t_tests.py", "tally.py"} <= names
    assert not {"page.py", "recovery.py", "pmi.py", "two_way.py", "rates.py"} & names


@pytest.mark.usefixtures("here")
@pytest.mark.slow
@pytest.mark.parametrize(  # of the shape, and of the analysis
    ("old", "new"), [("women: 30", "women: 12"), ("min_count: 2", "min_count: 6")]
)
def test_what_was_simulated_with_other_settings_is_not_used(project, old, new):
    calibrate.calibrate("pmi", 2)
    before = table()
    changed(project, old, new)
    calibrate.calibrate("pmi", 2)
    assert not table().equals(before)


@pytest.mark.slow
@pytest.mark.usefixtures("project")
def test_two_processes_and_a_cluster_write_what_one_does(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(TOP))
    calibrate.calibrate("pmi", 3, workers=1)
    one = table()
    for runner in ("local", "ray"):
        shutil.rmtree("data")
        calibrate.calibrate("pmi", 3, runner, workers=2)
        assert table().equals(one)


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["nothing"], "calibrate nothing: nothing simulates it; one of pmi"),
        (["pmi", "--replicates", "1"], "--replicates 1: two at least"),
        (["pmi", "clusters", "--only", "small"], "--only 'small': with one analysis"),
        (["pmi", "--check", "--only", "small"], "and without --check"),
        (["pmi", "--only", "smal"], "calibrate pmi: no shape or truth 'smal'; one of 'small', "),
        (["pmi", "--only", min(pmi.TRUTHS)], "no table whose other rows could stay"),
    ],
)
def test_bad_input_is_one_sentence_and_writes_nothing(words, told, capsys):
    assert command.main([*words]) == 1
    assert told in capsys.readouterr().err
    assert not calibrate.FOLDER.exists()


def test_intervals_are_simulated_with_the_confidence_that_is_told_of_them(project):
    changed(project, "min_count: 2", "min_count: 2, confidence: 0.8")
    _, params = calibrate.simulating("pmi")
    assert (params.confidence, params.min_count) == (0.95, 2)


@pytest.mark.usefixtures("here")
@pytest.mark.slow
def test_one_command_makes_a_table_of_shapes_with_numbers_of_their_own(project):
    other = ", ".join(f"{k}: {v}" for k, v in (SMALL | {"words": 15}).items())
    changed(project, "small:", f"other: {{{other}}}\n      small:")
    numbers = "replicates: 4\n  replicates_of: {pmi: {other: 2}}"
    changed(project, "chunk: 2", f"chunk: 2\n  {numbers}")
    for _ in range(2):  # and is not refused by the table that it made
        calibrate.calibrate("pmi")
        numbers = dict(table().select("shape", "replicates").unique().rows())
        assert numbers == {"small": 4, "other": 2}


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("chunk: 2", "chunk: 2\n  replicates_of: {pmy: 10}", "pmy"),
        ("chunk: 2", "chunk: 2\n  replicates_of: {pmi: 0}", "greater than or equal to 2"),
        ("chunk: 2", "chunk: 2\n  replicates_of: {pmi: {small: 1}}", "greater than or equal to 2"),
        ("chunk: 2", "chunk: 2\n  replicates_of: {pmi: {smal: 9}}", "'smal'; one of"),
        ("women: 30", "wimmin: 30", r"calibration.shapes.pmi: wimmin: Extra inputs"),
    ],
)
def test_keys_and_numbers_that_cannot_be_are_named(project, old, new, told):
    changed(project, old, new)
    with pytest.raises(UserError, match=told):
        calibrate.calibrate("pmi")
    assert not calibrate.FOLDER.exists()


@pytest.mark.parametrize("analysis", calibrate.those())
def test_shapes_as_the_page_prints_them_can_be_written_into_the_params(analysis):
    page = (TOP / "docs/methods/calibration.md").read_text(encoding="utf-8")
    rows = re.search(rf"^### {analysis}\n\n.*\n\|---.*\n((?:\|.*\n)+)", page, re.MULTILINE)[1]
    given = {}
    for row in rows.splitlines():
        name, settings = row.strip("| ").split(" | ")
        pairs = re.findall(r"`(\w+)` (.*?)(?=, `|$)", settings)
        given[name] = yaml.safe_load("\n".join(f"{key}: {value}" for key, value in pairs))
    settings = calibrate.Settings(version="0.1.0", shapes={analysis: given})
    module = calibrate.simulated(analysis)
    assert calibrate._shapes(module, analysis, settings) == module.SHAPES
