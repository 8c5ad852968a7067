"""What scores of the studies vary with: readers of the outputs, reasons, and published answers."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from plumbline.builders.datasets.statements.formats import scale
from plumbline.probes.core.run_analysis import Inputs
from plumbline.probes.leaning.scoring import OPTIONS
from plumbline.probes.reliability import reliability as analysis
from plumbline.probes.reliability.scores import CORRECTED, scores

SEED = 3
PARAMS = analysis.Params(version="0.1.0", draws=200)
SHARED = Path(__file__).parents[3] / "shared/data/statements"
real = pytest.mark.skipif(not SHARED.is_dir(), reason="no shared data beside the checkout")
MODELS = ("Mistral-7B-Instruct-v0.1", "gpt-3.5-turbo-1106")


def inputs_in(folder):
    names = ("lexica", "emotions", "statements", "counterfactuals")
    return Inputs((), {name: folder / name for name in names}, folder / "data")


def save(rows, path):
    path.parent.mkdir(parents=True, exist_ok=True)
    pl.DataFrame(rows, infer_schema_length=None).write_parquet(path)


def test_scores_associations(tmp_path):
    inputs = inputs_in(tmp_path)
    save({"word": ["good", "bad"], "score": [1.0, -0.5]}, tmp_path / "lexica/en.parquet")
    rows = {
        "qid": ["Q1", "Q1", "Q2"],
        "lemma": ["good", "bad", "odd"],
        "pos": ["ADJ"] * 3,
        "frame": ["bare"] * 3,
    }
    save(rows, inputs.outputs("associations", "m") / "en/0.parquet")
    found = scores("associations", inputs)
    assert found["score"].to_list() == [0.25, None]
    assert found.row(0, named=True) | {"score": 0} == {
        "measure": "sentiment",
        "scale": "adjectives",
        "language": "en",
        "model": "m",
        "respondent": "",
        "statement": "Q1",
        "template": "bare",
        "order": "",
        "seed": "",
        "score": 0,
    }


def test_scores_classification(tmp_path):
    inputs = inputs_in(tmp_path)
    known = {"text": ["a", "b"], "target": ["t", "t"], "country": ["cz", "fr"], "draw": [0, 0]}
    save(known | {"reading": [CORRECTED, 1]}, tmp_path / "counterfactuals/sentiment-en.parquet")
    said = {"text": ["a", "a", "b"], "class": ["negative", "positive", "positive"]}
    said |= {"logprob_nats": [np.log(0.2), np.log(0.8), np.log(0.5)]}
    save(said, inputs.outputs("classification", "m") / "sentiment-en/0.parquet")
    found = scores("classification", inputs)
    assert found["score"].to_list() == pytest.approx([np.log(4)])
    assert found.select("statement", "template", "seed").row(0) == ("t", "cz", "0")


def agreed(folder, models, languages=("cs",), frames=3, statements=8, seed=SEED):
    """Write agreement of models that differ by their place in the list."""
    rng = np.random.default_rng(seed)
    inputs = inputs_in(folder)
    ids = [f"s{place}" for place in range(statements)]
    about = {"id": ids, "scale": "values", "axis": "one", "reversed": [i == "s0" for i in ids]}
    own = rng.normal(0, 1, statements)
    for language in languages:
        save(about | {"language": language}, folder / f"statements/v-{language}.parquet")
        for place, model in enumerate(models):
            rows = [
                {"questionnaire": f"v-{language}", "scale": "values", "id": i, "frame": f"f{f}"}
                | {"gender": gender, "form": "plain", "method": method, "disagree_nats": -5.0}
                | {
                    "agree_nats": -5
                    + own[at]
                    + place * (-1 if i == "s0" else 1)
                    + rng.normal(0, 0.3)
                    + 9 * (method == "together")
                }
                for at, i in enumerate(ids)
                for f in range(frames)
                for gender in ("feminine", "masculine")
                for method in ("together", "l2r")
            ]
            save(rows, inputs.outputs("agreement", model) / language / "0.parquet")
    return inputs


def test_scores_agreement(tmp_path):
    found = scores("agreement", agreed(tmp_path, ["a"]))
    assert len(found) == 24
    assert found["score"].abs().max() < 5
    rows = pl.read_parquet(tmp_path / "data/outputs/agreement/a/cs/0.parquet")
    own = rows.filter(id="s0", method="l2r", frame="f0")
    mean = float((own["agree_nats"] - own["disagree_nats"]).mean())
    assert found["score"][0] == pytest.approx(-mean)


def test_run_two_levels_have_a_reason(tmp_path):
    found = analysis.run(agreed(tmp_path, ["a", "b"], frames=2), PARAMS)
    for table in ("parts", "consistency"):
        rows = found[table]
        told = rows["value"].is_not_null()
        assert (told == (rows["reason"] == "")).all(), table
    parts = found["parts"].filter(model="a", language="cs")
    reasons = dict(parts.select("term", "reason").iter_rows())
    assert reasons["template"] == "2 levels of template: 3 are needed"
    assert reasons["statement"] == ""
    assert "statement x template" not in reasons


def test_run_constant_scores_have_a_reason(tmp_path):
    inputs = agreed(tmp_path, ["a", "b"], ["cs", "ru"])
    for path in (tmp_path / "data/outputs").glob("agreement/*/*/0.parquet"):
        flat = -5.0 + (path.parts[-3] == "b")
        pl.read_parquet(path).with_columns(agree_nats=pl.lit(flat)).write_parquet(path)
    found = analysis.run(inputs, PARAMS)
    # of the first model agreement and disagreement are as likely, whichever side a statement is on
    flat = found["parts"].filter(pl.col("language") != "", model="a", term="rest")
    assert flat["reason"].to_list() == ["scores do not vary"] * 2
    assert flat["value"].null_count() == flat["share"].null_count() == 2
    consistent = found["consistency"].filter(model="a")
    assert consistent["value"].null_count() == len(consistent) > 0


def test_run_invalid_response_is_left_out_and_counted(tmp_path):
    inputs = agreed(tmp_path, ["a"])
    path = inputs.outputs("agreement", "a") / "cs/0.parquet"
    rows = pl.read_parquet(path)
    lost = (pl.col("id") == "s3") & (pl.col("frame") == "f1")
    rows.filter(~lost).write_parquet(path)
    left_out = analysis.run(inputs, PARAMS)
    rows.with_columns(agree_nats=pl.when(~lost).then("agree_nats")).write_parquet(path)
    found = analysis.run(inputs, PARAMS)
    for name in ("parts", "consistency"):
        assert found[name].equals(left_out[name]), name
    told = {
        (f, v): (x, n)
        for f, v, x, n in found["valid"].select("facet", "level", "value", "responses").iter_rows()
    }
    assert told == {
        ("", ""): (pytest.approx(23 / 24), 24),
        ("template", "f0"): (1, 8),
        ("template", "f1"): (7 / 8, 8),
        ("template", "f2"): (1, 8),
    }


def test_run_model_that_mostly_refuses_has_no_parts(tmp_path):
    inputs = agreed(tmp_path, ["a", "b", "c", "d"])
    path = inputs.outputs("agreement", "d") / "cs/0.parquet"
    rows = pl.read_parquet(path)
    lost = pl.when(pl.col("frame") != "f0").then(None).otherwise(pl.col("agree_nats"))
    rows.with_columns(agree_nats=lost).write_parquet(path)
    found = analysis.run(inputs, PARAMS)
    parts = found["parts"].filter(model="d", term="rest")
    assert parts["reason"].to_list() == ["33% of the responses are valid: 50% are needed"]
    assert parts["value"].to_list() == [None]
    pooled = found["parts"].filter(model="", term="model")
    assert pooled["levels"].to_list() == [3]
    shares = found["valid"].filter(model="d")
    told = dict(shares.select("level", "value").iter_rows())
    assert (told["f0"], told["f1"]) == (1, 0)


def test_run_three_models_that_agree(tmp_path):
    found = analysis.run(agreed(tmp_path, ["a", "b", "c"]), PARAMS)
    pooled = found["consistency"].filter(model="", items="model")
    values = dict(pooled.select("coefficient", "value").iter_rows())
    assert values["ICC(3,1)"] > 0.9
    alpha = found["consistency"].filter(cases="model")
    assert alpha.filter(coefficient="alpha")["n"].to_list() == [3]
    parts = found["parts"].filter(model="", term="model")
    assert parts["value"].item() > 0.1


def released(model):
    """Return the rows of the answers of a model."""
    with (SHARED / f"llm_responses/{model}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def propositions():
    return scale((SHARED / "political_compass.json").read_bytes(), "political-compass")


@pytest.mark.shared
@real
def test_run_released_answers(tmp_path):
    inputs, rows = inputs_in(tmp_path), propositions()
    about = [
        {"id": row.id, "language": "en", "scale": "compass", "axis": row.axis}
        | {"reversed": row.reversed}
        for row in rows
    ]
    save(about, tmp_path / "statements/political-compass-en.parquet")
    names = {int(row.id.split("-")[-1]): row.id for row in rows}
    for model in MODELS:
        told = [
            {"questionnaire": "political-compass-en", "id": names[int(row["pct_id"][3:])]}
            | {"frame": row["templ_id"], "order": 0, "seed": 0, "response": row["completion"]}
            | {"text": ""}
            | {"options": list(OPTIONS), "form": "plain", "variant": "", "corpus": ""}
            | {"period": "all", "share": 0.0, "pretraining_seed": 0, "epoch": 0}
            for row in released(model)
        ]
        save(told, inputs.outputs("stances", model) / "multiple_choice/0.parquet")
    found = analysis.run(inputs, PARAMS)
    valid = (
        found["valid"]
        .filter(facet="")
        .group_by("model")
        .agg((pl.col("value") * pl.col("responses")).sum(), pl.col("responses").sum())
    )
    shares = {name: (round(hits), of) for name, hits, of in valid.iter_rows()}
    assert shares == {MODELS[0]: (620, 620), MODELS[1]: (608, 620)}
    parts = found["parts"].filter(pl.col("value").is_not_null(), pl.col("model") != "")
    for _, own in parts.group_by("model", "scale"):
        share = dict(own.select("term", "share").iter_rows())
        assert share["statement"] > share["rest"] > share["template"]
        assert own["reml"].to_list() == pytest.approx(own["value"].to_list(), abs=0.01)
