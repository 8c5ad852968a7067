"""A result as a record of Every Eval Ever, the shared format of the EvalEval coalition.

The schema is ``eval.schema.json``, version 0.3.0, of github.com/evaleval/every_eval_ever: one
aggregate record, a score for each row of the headline that has a value.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from typing import TYPE_CHECKING, Any

from plumbline.builders.core.errors import UserError
from plumbline.models import ID

if TYPE_CHECKING:
    import polars as pl

    from plumbline.probes.site.headlines import Kind

SCHEMA = "0.3.0"
FILE = "every_eval_ever.json"
EPOCH = "SOURCE_DATE_EPOCH"  # the custom of reproducible builds: seconds since 1970
BOUNDS = {  # by unit
    "recall above chance": (-1, 1),
    "of 1 to 5": (1, 5),
    "percent": (0, 100),
    "points from -10 to 10": (-10, 10),
}
UNBOUND = ("-Infinity", "Infinity")  # as the schema spells them
CONTROLS = "data/samples/worlds/"


def record(
    study: str,
    model: str,
    kind: Kind,
    main: str,
    headline: pl.DataFrame,
    facts: dict[str, Any],
    confidence: float,
) -> dict[str, Any]:
    """Return a result's attributes (``facts``: its provenance) as an aggregate record.

    The same result gives the same record: ``retrieved_timestamp``, which the schema asks for, is
    the environment variable SOURCE_DATE_EPOCH, or 0 without it.

    Raises
    ------
    UserError
        If SOURCE_DATE_EPOCH is not a number of seconds.
    """
    at = os.environ.get(EPOCH) or "0"
    if not at.isascii() or not at.isdigit():
        raise UserError(f"{EPOCH}: {at!r} is not a number of seconds since 1970; set it so")
    about = _model(model, facts)
    common = {
        "evaluation_name": f"plumbline.{study}",
        "source_data": {
            "dataset_name": f"plumbline.{study}",
            "source_type": "other",
            "additional_details": {
                f"sha256 of {path}": str(digest)
                for path, digest in facts["inputs"].items()
                if not path.startswith(CONTROLS) and "models/" not in path
            },
        },
    }
    rows = [row for row in headline.rows(named=True) if _finite(row["value"])]
    seen: Counter[str] = Counter()
    scores, of = [], (study, kind, main, confidence)
    for row in rows:  # a word may be there in two languages, or as two parts of speech
        seen[row["what"]] += 1
        scores.append(common | _score(*of, row, seen[row["what"]]))
    return {
        "schema_version": SCHEMA,
        "evaluation_id": f"plumbline.{study}/{about['id']}/{at}",
        "retrieved_timestamp": at,
        "source_metadata": {
            "source_name": "plumbline",
            "source_type": "evaluation_run",
            "source_organization_name": "unknown",
            "evaluator_relationship": "other",
        },
        "eval_library": {"name": "plumbline", "version": facts["libraries"]["plumbline"]},
        "model_info": about,
        "evaluation_results": scores,
    }


def _model(name: str, facts: dict[str, Any]) -> dict[str, Any]:
    """Return the model: its id on the Hub, or a name without the path of a folder."""
    known, libraries = facts["model"], facts["libraries"]
    said = str(known["id"])
    control, hub = said.startswith(CONTROLS), bool(ID.fullmatch(said))
    details = {
        "deployment_type": "self_deployed",
        "model_availability": "open_weights" if control or hub else "unknown",
        "revision": str(known["revision"]),
    }
    whose = "plumbline" if control else "local"
    return {
        "name": name,
        "id": said if hub else f"{whose}/{name}",
        "inference_engine": {"name": "transformers", "version": libraries["transformers"]},
        "additional_details": details,
    }


def _score(
    study: str, kind: Kind, main: str, confidence: float, row: dict[str, Any], nth: int
) -> dict[str, Any]:
    """Return one row of the headline, the ``nth`` of its name."""
    low, high = BOUNDS.get(row["unit"], UNBOUND)
    name = f"plumbline.{study}"
    uncertainty: dict[str, Any] = {}
    if _finite(row["low"]) and _finite(row["high"]):
        ends = {"lower": row["low"], "upper": row["high"]}
        uncertainty["confidence_interval"] = ends | {"confidence_level": confidence}
    if row["n"] is not None:
        uncertainty["num_samples"] = row["n"]
    tested = {key: row[key] for key in ("p", "p_bh", "detectable_bh") if _finite(row[key])}
    return {
        "evaluation_result_id": f"{name}/{row['what']}" + (f"/{nth}" if nth > 1 else ""),
        "metric_config": {
            "evaluation_description": f"{row['what']}: one of the {kind.things} that are tested",
            "metric_id": f"{name}.{main}",
            "metric_name": row["unit"],
            "metric_unit": row["unit"],
            "metric_parameters": {"what": row["what"], "null": row["null"]},
            "lower_is_better": False,  # the schema asks; neither is: the null is without bias
            "score_type": "continuous",
            "min_score": low,
            "max_score": high,
            "additional_details": {
                "unbiased": f"{row['null']:g}; neither lower nor higher is better"
            },
        },
        "score_details": {
            "score": row["value"],
            "details": {key: f"{value:.6g}" for key, value in tested.items()},
            "uncertainty": uncertainty,
        },
    }


def _finite(value: float | None) -> bool:
    return value is not None and math.isfinite(value)
