"""What classifiers of a world show of what its corpora know."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from plumbline.probes.leaning.fairness_schemas import OF, PLANTED, READINGS
from plumbline.probes.stats.intervals import wilson

if TYPE_CHECKING:
    from pathlib import Path

    from plumbline.probes.leaning.fairness import Params
    from plumbline.probes.leaning.predictions import Case
    from plumbline.probes.stats.estimate import Estimate

LEVEL = 0.05
CORRECTED = READINGS.index("corrected")


def knows(weights: Path) -> dict[str, list[str]] | None:
    """Return which groups each corpus of a world knows; None of a model that is no such world."""
    path = weights / "world.json"
    if not path.is_file():
        return None
    found = json.loads(path.read_text(encoding="utf-8")).get("knows")
    return found if isinstance(found, dict) else None


def recovery(
    case: Case, weights: Path, differences: list[dict[str, Any]], params: Params
) -> list[dict[str, Any]]:
    """Return rows of one world; none of a model that is no world, or of other tasks.

    Parameters
    ----------
    differences
        The rows of the table ``differences``.
    """
    known = knows(weights)
    if known is None or case.task != PLANTED:
        return []
    own = [
        row | {"planted": _planted(known, row)}
        for row in differences
        if row["metric"] == "accuracy" and row["reading"] == CORRECTED and OF[row["of"]] == "group"
    ]
    rows = [
        {
            "measure": f"accuracy at {row['group']}: {row['corpus']} minus "
            f"{row['against'] or 'the model itself'}"
            + (f", {row['share']:g} of the texts" if row["share"] != 1 else "")
            + (f", period {row['period']}" if row["period"] else ""),
            "value": row["value"],
            "low": row["trainings_low"] if row["trainings_low"] is not None else row["low"],
            "high": row["trainings_high"] if row["trainings_high"] is not None else row["high"],
            "n": row["n"],
            "cluster": "text, and trainings where there are several seeds",
            "method": "t over texts and trainings (Satterthwaite); one seed: bootstrap over texts",
            "null": {1: "above 0: planted", -1: "below 0: planted", 0: "0: nothing planted"}[
                row["planted"]
            ],
            "p": row["p_trainings"],
            "p_bh": row["p_trainings_bh"],
        }
        for row in own
    ]
    for column, words in (("p_bh", "texts exchanged"), ("p_trainings_bh", "over trainings")):
        tested = [row for row in own if row[column] is not None]
        planted = [row for row in tested if row["planted"]]
        rest = [row for row in tested if not row["planted"]]
        right = [
            row
            for row in planted
            if row[column] <= LEVEL and np.sign(row["value"]) == row["planted"]
        ]
        false = [row for row in rest if row[column] <= LEVEL]
        if planted:
            rows.append(
                _share(
                    f"share of planted differences that are found, {words}",
                    wilson(len(right), len(planted), params.confidence),
                    "1: all, with their sign",
                )
            )
        if rest:
            rows.append(
                _share(
                    f"share of other differences with adjusted p at most .05, {words}",
                    wilson(len(false), len(rest), params.confidence),
                    "0: nothing planted",
                )
            )
    world = int(not any(known.values()))
    return [{"model": case.model, "language": PLANTED, "world": world} | row for row in rows]


def _planted(known: dict[str, list[str]], row: dict[str, Any]) -> int:
    """Return the sign of what was planted: whether one alone knows the group."""
    sides = [row["group"] in known.get(row[side], ()) for side in ("corpus", "against")]
    return int(sides[0]) - int(sides[1])


def _share(measure: str, estimate: Estimate, null: str) -> dict[str, Any]:
    return {
        "measure": measure,
        "value": round(estimate.value, 6),
        "low": round(estimate.low, 6),
        "high": round(estimate.high, 6),
        "n": estimate.n,
        "cluster": "difference of two models at a group",
        "method": estimate.method,
        "null": null,
        "p": None,
        "p_bh": None,
    }
