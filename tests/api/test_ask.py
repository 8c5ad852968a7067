"""Functions such as ``plumbline.politicians(model)`` return the numbers of the pipeline."""

import json
from pathlib import Path

import polars as pl
import pyarrow.parquet as pq
import pytest
from conftest import TOP
from polars.testing import assert_frame_equal
from validated import validated

import plumbline
from plumbline.builders.core.errors import UserError
from plumbline.probes.report.view import number, p_value
from plumbline.studies import language_notes
from plumbline.workspace import VALIDATED

from .conftest import WORLDS, copied

PLANTED = json.loads((WORLDS / "world-planted/manifest.json").read_text("utf-8"))
TABLES = TOP / "data/tables"


@pytest.fixture(scope="module")
def answered(tmp_path_factory, own_home):
    """Return the folder of a user's model, and its result in the study politicians."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PLUMBLINE_HOME", str(own_home))
        patch.chdir(tmp_path_factory.mktemp("work"))
        folder = copied("world-planted", tmp_path_factory.mktemp("models") / "my.bert")
        result = plumbline.politicians(folder, language="en", dtype="float64")  # as worlds are run
        assert list(Path.cwd().iterdir()) == []  # no other files are left
        return folder, result


@pytest.mark.slow
def test_ask_numbers_are_those_of_the_pipeline(answered):
    _, result = answered
    path = TABLES / "pmi/world-planted/pmi.parquet"
    if not path.is_file():
        pytest.skip("nothing was run here yet: make repro")
    theirs = pl.read_parquet(path).filter(language="en")
    ours = result.table
    for name in ("word", "value", "low", "high", "p", "p_bh", "detectable"):
        assert ours[name].to_list() == theirs[name].to_list(), name


@pytest.mark.slow
def test_summary(answered):
    _, result = answered
    assert result.model == "my-bert"
    tested = result.headline.drop_nulls("p_bh")
    first = result.found.row(0, named=True)
    words = result.table.filter(unit="lemma").unique(["pos", "word"])
    assert len(result.headline) == len(words)  # each word once, for any gender
    assert first["p_bh"] == result.table["p_bh"].min()
    said = f"my-bert: {len(result.found)} of {len(tested)} words go with a gender (false discovery"
    assert result.summary.startswith(said)
    ends = f"{number(first['value'])} [{number(first['low'])}, {number(first['high'])}] nats"
    assert f"; the clearest is {first['what']}: {ends}" in result.summary
    assert result.summary.endswith(f"adjusted p {p_value(first['p_bh'])}.")
    assert str(result) == result.summary


@pytest.mark.slow
def test_result_labels_and_provenance(answered):
    folder, result = answered
    assert set(result.table["gender"]) <= {"male", "female", "non-binary", "unknown", "other"}
    assert set(result.table["reading"]) == {"plug-in", "smoothed"}
    known = result.provenance
    assert known["model"]["id"] == folder.as_posix()
    assert len(known["model"]["revision"]) == 40
    assert any(path.endswith("datasets/politicians") for path in known["inputs"])
    assert set(known["libraries"]) >= {"plumbline", "torch", "transformers"}
    assert len(result.to_pandas()) == len(result.table)


@pytest.mark.slow
def test_result_export(answered, tmp_path):
    _, result = answered
    files = {path.name: path for path in result.export(tmp_path / "paper", width=8)}
    assert set(files) >= {"pmi.csv", "pmi.parquet", "headline.tex", "headline.svg", "headline.pdf"}
    read = pl.read_csv(files["headline.csv"])
    assert_frame_equal(read, result.headline, check_dtypes=False)
    assert pl.read_parquet(files["pmi.parquet"]).schema["gender"] == pl.String
    rows = files["headline.tex"].read_text("utf-8").splitlines()
    assert rows[1] == r"\begin{tabular}{lrr}"
    assert sum(row.endswith(r" \\") for row in rows) == 31  # thirty rows and the head
    before = {name: path.read_bytes() for name, path in files.items()}
    result.export(tmp_path / "paper", width=8)
    assert {name: path.read_bytes() for name, path in files.items()} == before


def fewest(table):
    """Return the number of lists that contain the rarest word."""
    lists = table.filter(reading="smoothed").group_by("pos", "unit", "word", "form")
    return lists.agg(pl.col("count").sum())["count"].min()


@pytest.mark.slow
def test_ask_reuses_responses_until_weights_change(answered):
    folder, result = answered
    how = {"language": "en", "dtype": "float64"}
    again = plumbline.politicians(folder, **how, settings={"analysis.pmi.min_count": 30})
    assert again.folder != result.folder  # whose tables are those that were found there
    responses = "data/outputs/associations/my-bert/en/00000.parquet"
    made, there = ((r.folder / responses).stat().st_mtime_ns for r in (result, again))
    assert there == made  # other settings of the analysis do not rerun the model
    assert fewest(again.table) >= 30 > fewest(result.table)
    weights = folder / "model.safetensors"
    kept = weights.read_bytes()
    try:
        weights.write_bytes((WORLDS / "world-null/model.safetensors").read_bytes())
        other = plumbline.politicians(folder, language="en")
    finally:
        weights.write_bytes(kept)
    assert other.provenance["model"]["revision"] != result.provenance["model"]["revision"]
    assert len(other.found) == 0
    assert "none of" in other.summary
    assert "would have been found with power .8" in other.summary


@pytest.mark.slow
def test_ask_loaded_model_equals_its_folder(answered):
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    folder, result = answered
    model = AutoModelForMaskedLM.from_pretrained(folder)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    how = {"language": "en", "dtype": "float64"}
    ours = plumbline.politicians(model, tokenizer=tokenizer, name="mine", **how)
    assert ours.model == "mine"
    wanted = result.table.with_columns(model=pl.lit("mine"))
    assert_frame_equal(ours.table, wanted)
    with pytest.raises(UserError, match="tokenizer"):
        plumbline.politicians(model)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("study", "planted", "null"), [("politicians", 40, 2), ("values", 2, 1), ("leaning", 2, 0)]
)
def test_controls_find_planted_and_nothing_else(study, planted, null):
    known = plumbline.ask(study, plumbline.studies.STUDIES[study].controls[0]).controls
    positive, negative = known.values()
    assert len(positive.found) >= planted
    assert len(negative.found) <= null


@pytest.mark.slow
def test_ask_untrained_head_is_void(tmp_path):
    import torch
    from transformers import AutoModel, AutoModelForMaskedLM, AutoTokenizer

    torch.manual_seed(22)  # a random head in which only adjectives look trained
    encoder, trap = tmp_path / "encoder", tmp_path / "trap"
    AutoModel.from_pretrained(WORLDS / "world-planted").save_pretrained(encoder)
    AutoModelForMaskedLM.from_pretrained(encoder).save_pretrained(trap)  # with a random head
    AutoTokenizer.from_pretrained(WORLDS / "world-planted").save_pretrained(trap)
    result = plumbline.politicians(trap, language="en")
    assert result.void
    assert len(result.found) == 0
    assert "none of" not in result.summary


@pytest.mark.slow
def test_leaning(tmp_path):
    result = plumbline.leaning("world-leaning")
    assert result.headline["what"].to_list() == ["social, axes-en", "economic, axes-en"]
    assert result.headline["value"].is_between(0, 100).all()


@pytest.mark.slow
def test_ask_datasets_replace_the_sample(answered, tmp_path, own_home, monkeypatch):
    folder, _ = answered
    (built,) = own_home.glob("datasets-*/data/datasets/politicians")
    few = pl.read_parquet(built / "en.parquet")
    mine = tmp_path / "politicians"
    mine.mkdir()
    for path in built.iterdir():
        (mine / path.name).write_bytes(path.read_bytes())
    few.head(150).write_parquet(mine / "en.parquet")
    with pytest.raises(UserError, match="politicians"):  # it is validated like any other dataset
        plumbline.politicians(folder, language="en", datasets={"politicians": mine})
    (mine / "en.parquet").write_bytes((built / "en.parquet").read_bytes())
    monkeypatch.chdir(tmp_path)  # named relative to this folder, and used in another
    own = {"politicians": "politicians"}
    result = plumbline.politicians(folder, language="en", datasets=own)
    assert len(result.found) > 40
    known = result.headline["n"].unique().to_list()
    # who is left out is so in every language: a person who lacks in one alone was lost
    files = [path for path in built.glob("*.parquet") if path.name != "rejects.parquet"]
    frames = {path.name: pl.read_parquet(path) for path in files}
    everywhere = set.intersection(*(set(frame["qid"]) for frame in frames.values()))
    out = sorted(everywhere)[::20]
    for name, frame in frames.items():
        left = frame.filter(~pl.col("qid").is_in(out))
        pq.write_table(left.to_arrow().cast(pq.read_schema(built / name)), mine / name)
    fewer = plumbline.politicians(folder, language="en", datasets=own)
    assert max(fewer.headline["n"]) < min(known)  # the current dataset


@pytest.mark.parametrize(
    ("options", "offender"),
    [
        ({"datasets": {"politician": "x"}}, "politician"),
        ({"datasets": {"words": "./nowhere"}}, "nowhere"),
        ({"settings": {"analysis.pmi.min_cuont": 3}}, "analysis.pmi.min_cuont"),
        ({"kind": "causal"}, "masked"),
        ({"revision": "main"}, "revision"),
        ({"language": "de"}, "de"),
    ],
)
def test_ask_rejects_wrong_options(mine, options, offender):
    with pytest.raises(UserError, match=offender):
        plumbline.politicians(mine, **options)


@pytest.mark.parametrize(
    ("study", "control", "language", "known"),
    [
        ("values", "world-values", "fr", "cs"),
        ("politicians", "world-values", "en", "none"),
        ("leaning", "world-leaning", "cs", "en"),
    ],
)
def test_ask_language_that_a_control_lacks(study, control, language, known, tmp_path):
    with pytest.raises(UserError, match=rf"'{language}'.* {known}"):
        plumbline.ask(study, control, language=language, into=tmp_path / "results")
    assert not (tmp_path / "results").exists()


def test_ask_wrong_model_or_study(mine):
    with pytest.raises(UserError, match="masked"):
        plumbline.nationality(mine)
    with pytest.raises(UserError, match="int"):
        plumbline.politicians(42)
    with pytest.raises(UserError, match="politics"):
        plumbline.ask("politics", mine)


def test_leaning_generative_model_needs_a_judge(tmp_path):
    writer = copied("world-writing", tmp_path / "writer")
    with pytest.raises(UserError, match="judge"):
        plumbline.leaning(writer)


@pytest.mark.slow
def test_leaning_named_judge_equals_the_controls(tmp_path):
    writer = copied("world-writing", tmp_path / "writer")
    judge = {"id": copied("world-stance", tmp_path / "judge").as_posix(), "kind": "classifier"}
    named = {"models.judge": judge, "probes.stances.generation.nli_model": "judge"}
    named["probes.stances.multiple_choice.excluded_models"] = ["writer"]  # as is the control
    ours = plumbline.leaning(writer, settings=named).headline
    assert_frame_equal(ours, plumbline.leaning("world-writing").headline)


def test_validated_datasets_are_those_of_the_pipeline(monkeypatch):
    monkeypatch.chdir(TOP)
    if not Path("data/validation/words.json").is_file():
        pytest.skip("nothing was run here yet: make repro")
    known = json.loads(VALIDATED.read_text("utf-8"))
    assert known == validated(), "PYTHONPATH=. python tests/validated.py writes them anew"


def test_asked_in_reports_missing_languages(tmp_path):
    outputs = tmp_path / "associations/mine"
    for name in ("en", "hi", "coverage"):
        (outputs / name).mkdir(parents=True)
    known = {"language": ["en", "en", "hi"], "words": [100, 100, 50], "covered": [90, 80, 2]}
    pl.DataFrame(known).write_parquet(outputs / "coverage/0.parquet")
    (note,) = language_notes(outputs)
    assert "4% of the words in hi" in note
    pl.DataFrame(known | {"covered": [90, 80, 20]}).write_parquet(outputs / "coverage/0.parquet")
    assert language_notes(outputs) == ()
    statements = tmp_path / "agreement/mine"
    for name in ("cs", "en"):
        (statements / name).mkdir(parents=True)
    assert "cs, en" in language_notes(statements)[0]
    (statements / "en").rmdir()
    assert language_notes(statements) == ()
