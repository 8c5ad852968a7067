"""Records of Every Eval Ever: what its schema, version 0.3.0, asks for, and whose numbers."""

import json
from dataclasses import replace
from importlib.util import find_spec

import polars as pl
import pytest

from plumbline.every_eval import record
from plumbline.probes.site.headlines import HEADLINES
from plumbline.result import Result

ROWS = [
    {"what": "kind, en", "value": 0.75, "low": 0.6, "high": 0.9, "n": 40,
     "p": 1e-9, "p_bh": 2e-9, "detectable": 0.1},
    {"what": "calm, en", "value": -0.5, "low": None, "high": None, "n": 3,
     "p": None, "p_bh": None, "detectable": None},
    {"what": "calm, en", "value": 0.5, "low": 0.1, "high": 0.9, "n": 3,
     "p": 0.1, "p_bh": 0.1, "detectable": None},
    {"what": "tall, en", "value": None, "low": None, "high": None, "n": 0,
     "p": None, "p_bh": None, "detectable": None},
]  # fmt: skip
SCALES = {"values": ("of 1 to 5", 3.0), "leaning": ("percent", 50.0)}


def result(
    folder,
    study="politicians",
    model="my-bert",
    identity="/somewhere/my.bert",
    confidence=0.95,
):
    told = HEADLINES[study]
    unit, null = SCALES.get(study, ("nats", 0.0))
    types = {"n": pl.Int64, "what": pl.String}
    rows = pl.DataFrame(ROWS, schema={key: types.get(key, pl.Float64) for key in ROWS[0]})
    rows = rows.with_columns(unit=pl.lit(unit), null=pl.lit(null), void=pl.lit(""))
    facts = {
        "model": {"id": identity, "revision": "0" * 40},
        "inputs": {"data/datasets/politicians": "a" * 64, "data/models/my-bert/model.json": "b"},
        "libraries": {"plumbline": "0.1.0", "transformers": "5.23.0"},
    }
    main = told.tables[0]
    own = study, model, told.kind, rows, {main: rows}, main, folder, facts
    return Result(*own, confidence=confidence, _controls=dict)


def test_record_numbers_are_those_of_the_headline(tmp_path):
    log = record(result(tmp_path))
    # `required` of the schema, which allows no further keys at the top
    assert set(log) == {
        *("schema_version", "evaluation_id", "retrieved_timestamp", "source_metadata"),
        *("model_info", "eval_library", "evaluation_results"),
    }
    first, second, third = log["evaluation_results"]  # one row has no value
    assert first["score_details"]["score"] == 0.75
    assert first["score_details"]["uncertainty"] == {
        "confidence_interval": {"lower": 0.6, "upper": 0.9, "confidence_level": 0.95},
        "num_samples": 40,
    }
    assert float(first["score_details"]["details"]["p_bh"]) == 2e-9
    assert second["score_details"]["uncertainty"] == {"num_samples": 3}
    assert first["metric_config"]["metric_parameters"] == {"what": "kind, en", "null": 0}
    assert len({one["evaluation_result_id"] for one in (first, second, third)}) == 3


@pytest.mark.parametrize(
    ("identity", "model", "known", "weights"),
    [
        ("google-bert/bert-base-cased", "bert", "google-bert/bert-base-cased", "open_weights"),
        ("data/samples/worlds/world-null", "world-null", "plumbline/world-null", "open_weights"),
        ("/home/somebody/my.bert", "my-bert", "local/my-bert", "unknown"),
    ],
)
def test_record_has_no_path_of_a_folder(tmp_path, identity, model, known, weights):
    found = record(result(tmp_path, model=model, identity=identity))
    assert found["model_info"]["id"] == known
    assert found["model_info"]["additional_details"]["model_availability"] == weights
    assert "somebody" not in json.dumps(found)


@pytest.mark.parametrize(("study", "ends"), [("values", (1, 5)), ("leaning", (0, 100))])
def test_record_scale_with_ends(tmp_path, study, ends):
    metric = record(result(tmp_path, study))["evaluation_results"][0]["metric_config"]
    assert (metric["min_score"], metric["max_score"]) == ends
    assert ends[0] < metric["metric_parameters"]["null"] < ends[1]


@pytest.mark.skipif(not find_spec("every_eval_ever"), reason="every_eval_ever is not installed")
@pytest.mark.parametrize("study", HEADLINES)
def test_record_is_valid_by_the_projects_types(tmp_path, study):
    from every_eval_ever.eval_types import EvaluationLog

    EvaluationLog.model_validate(json.loads(json.dumps(record(result(tmp_path, study)))))


def test_export_writes_record(tmp_path):
    own = result(tmp_path)
    files = {path.name: path for path in own.export(tmp_path / "paper", width=8)}
    assert json.loads(files["every_eval_ever.json"].read_text("utf-8")) == record(own)


def test_confidence_of_intervals_is_that_of_the_result(tmp_path):
    own = result(tmp_path, confidence=0.8)
    told = record(own)["evaluation_results"][0]["score_details"]["uncertainty"]
    assert told["confidence_interval"]["confidence_level"] == 0.8
    assert r"80\% interval" in own.to_latex()
    assert "80% interval" in own.svg()
    assert "95" not in own.to_latex() + own.svg().split("</text>", 1)[0]


def test_summary_without_detectable_effect(tmp_path):
    rows = [row | {"p": 0.06, "p_bh": 0.06, "detectable": None} for row in ROWS[:3]]
    same = result(tmp_path)
    found = replace(
        same, headline=pl.DataFrame(rows).with_columns(unit=pl.lit("nats"), void=pl.lit(""))
    )
    assert found.summary.endswith(
        "; half of them would have found none, or rest on too little to tell."
    )
