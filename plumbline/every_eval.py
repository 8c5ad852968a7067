"""A result as a record of Every Eval Ever, the shared format of the EvalEval coalition.

The schema is ``eval.schema.json``, version 0.3.0, of github.com/evaleval/every_eval_ever: one
aggregate record, with a score for each row of the headline that has a value.
"""

from __future__ import annotations

import os
from typing import Any

import polars as pl

from plumbline.models import ID

FILE = "every_eval_ever.json"
BOUNDS = {  # lower and upper bounds, by unit
    "recall above chance": (-1, 1),
    "of 1 to 5": (1, 5),
    "percent": (0, 100),
    "points from -10 to 10": (-10, 10),
}
UNBOUND = ("-Infinity", "Infinity")  # in the schema's spelling
CONTROLS = "data/samples/worlds/"
TESTS = ("p", "p_bh", "detectable")


def record(result: Any) -> dict[str, Any]:
    """Return a :class:`plumbline.Result` as an aggregate record, deterministically.

    ``retrieved_timestamp``, which the schema requires, is the environment variable
    SOURCE_DATE_EPOCH, or 0.
    """
    seconds = os.environ.get("SOURCE_DATE_EPOCH") or "0"
    name, facts = f"plumbline.{result.study}", result.provenance
    # id on the Hub, or a name without its folder's path
    address = str(facts["model"]["id"])
    is_control, is_public = address.startswith(CONTROLS), bool(ID.fullmatch(address))
    owner = "plumbline" if is_control else "local"
    identity = address if is_public else f"{owner}/{result.model}"
    inputs = {
        f"sha256 of {path}": str(digest)
        for path, digest in facts["inputs"].items()
        if not path.startswith(CONTROLS) and "models/" not in path
    }
    source = {"dataset_name": name, "source_type": "other", "additional_details": inputs}
    rows = result.headline.filter(pl.col("value").is_finite())
    others = pl.col("low", "high", *TESTS)
    nth = pl.int_range(1, pl.len() + 1).over("what")  # words may be equal in two languages
    rows = rows.with_columns(pl.when(others.is_finite()).then(others), nth=nth)
    return {
        "schema_version": "0.3.0",
        "evaluation_id": f"{name}/{identity}/{seconds}",
        "retrieved_timestamp": seconds,
        "source_metadata": {
            "source_name": "plumbline",
            "source_type": "evaluation_run",
            "source_organization_name": "unknown",
            "evaluator_relationship": "other",
        },
        "eval_library": {"name": "plumbline", "version": facts["libraries"]["plumbline"]},
        "model_info": {
            "name": result.model,
            "id": identity,
            "inference_engine": {
                "name": "transformers",
                "version": facts["libraries"]["transformers"],
            },
            "additional_details": {
                "deployment_type": "self_deployed",
                "model_availability": "open_weights" if is_control or is_public else "unknown",
                "revision": str(facts["model"]["revision"]),
            },
        },
        "evaluation_results": [
            {"evaluation_name": name, "source_data": source, **_score(result, row)}
            for row in rows.rows(named=True)
        ],
    }


def _score(result: Any, row: dict[str, Any]) -> dict[str, Any]:
    low, high = BOUNDS.get(row["unit"], UNBOUND)
    name, suffix = f"plumbline.{result.study}", f"/{row['nth']}" if row["nth"] > 1 else ""
    uncertainty: dict[str, Any] = {} if row["n"] is None else {"num_samples": row["n"]}
    if None not in (row["low"], row["high"]):
        ends = {"lower": row["low"], "upper": row["high"]}
        uncertainty["confidence_interval"] = ends | {"confidence_level": result.confidence}
    return {
        "evaluation_result_id": f"{name}/{row['what']}{suffix}",
        "metric_config": {
            "evaluation_description": f"{row['what']}: one of the {result.kind.things} tested",
            "metric_id": f"{name}.{result.main}",
            "metric_name": row["unit"],
            "metric_unit": row["unit"],
            "metric_parameters": {"what": row["what"], "null": row["null"]},
            "lower_is_better": False,  # required; `null` is the value without bias
            "score_type": "continuous",
            "min_score": low,
            "max_score": high,
        },
        "score_details": {
            "score": row["value"],
            "details": {key: f"{row[key]:.6g}" for key in TESTS if row[key] is not None},
            "uncertainty": uncertainty,
        },
    }
