"""What the tables of a world's model tell of the values that were planted in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from scipy.stats import spearmanr

from plumbline.probes.stats.estimate import finite
from plumbline.probes.values.consistency import correlation
from plumbline.probes.values.ratings import Reading, Rows, estimate, gender, values
from plumbline.probes.values.schemas import ALL, CALIBRATION, MEASURES, VERDICTS, WHO
from plumbline.probes.worlds.recovery import PLANTED

if TYPE_CHECKING:
    from pathlib import Path

    from plumbline.probes.values.values import Params


def planted(weights: Path) -> pl.DataFrame | None:
    """Return what was planted for each question; None of a model that is no world of values."""
    path = weights / PLANTED
    if not path.is_file() or "agree_nats" not in pl.read_parquet_schema(path):
        return None
    return pl.read_parquet(path)


def is_null(world: pl.DataFrame) -> bool:
    """Tell whether nothing is planted: no value is agreed with, and genders are alike."""
    shares = world.filter(pl.col("axis") != "")["planted_nats"]
    return not (shares != 0).any()


def recovery(measured: Reading, true: Reading, null: bool, params: Params) -> Rows:
    """Return the rows of one reading.

    Parameters
    ----------
    measured, true
        What the model answered, and what it was to answer, to the same questions.
    null
        Whether nothing is planted.
    """
    rows = [_odds(measured, true, params)]
    got, wanted = (
        {(r["axis"], r["gender"]): r for r in values(each, params) if _default(r)}
        for each in (measured, true)
    )
    rows.append(_share(got, wanted, "values whose interval holds the one planted"))
    both = WHO.index("both")
    axes = sorted({axis for axis, _ in got})
    if not null:
        rank = spearmanr(
            [got[a, both]["value"] for a in axes], [wanted[a, both]["value"] for a in axes]
        )
        rows.append(
            _bare(
                "Spearman correlation of planted and measured values", rank[0], len(axes), "value"
            )
            | {"null": "0: no relation"}
        )
    differences, true_differences = (
        {r["axis"]: r for r in gender(each, params) if _default(r) and r["measure"] == 0}
        for each in (measured, true)
    )
    rows += [
        {k: v for k, v in differences[axis].items() if k in _COLUMNS}
        | {
            "measure": f"feminine minus masculine, {axis}",
            "null": f"planted: {true_differences[axis]['value'] + 0.0:.3f}",
            "p": None,
            "p_bh": None,
        }
        for axis in [*axes, ALL]
    ]
    found = [
        r for r in gender(measured, params) if _default(r) and r["axis"] not in (ALL, CALIBRATION)
    ]
    found = [r for r in found if r["measure"] == MEASURES.index("value")]
    apart = [VERDICTS[r["verdict"]] == "different" for r in found]
    rows.append(
        _bare(
            "values on which gender is said to make a difference that matters",
            sum(apart) / len(apart),
            len(apart),
            "value",
        )
        | {
            "null": "0 of them planted"
            if null
            else _planted_share(true_differences, axes, params.bound)
        }
    )
    return [{"measure": f"{measured.name}: {row.pop('measure')}"} | row for row in rows]


_COLUMNS = {"value", "low", "high", "n", "cluster", "method"}


def _planted_share(true: dict[str, Any], axes: list[str], bound: float) -> str:
    number = sum(abs(true[axis]["value"]) > bound for axis in axes)
    return f"{number} of {len(axes)} planted above the bound"


def _default(row: dict[str, Any]) -> bool:
    return not (row["fitted"] or row.get("intercept") or row.get("spread"))


def _odds(measured: Reading, true: Reading, params: Params) -> dict[str, Any]:
    """Correlate planted and measured log-odds over all questions of a scale."""
    sides = []
    for each in (measured, true):
        apart = each.items.agree - each.items.disagree
        sides.append(apart.reshape(len(apart), -1))
    times = sides[0].shape[1]
    x, y = (side.ravel() for side in sides)
    draws = correlation(x, y, np.repeat(measured.drawn, times, axis=0))
    n = len(set(measured.items.clusters()))
    return estimate(draws, n, params, "statement, with its opposite") | {
        "measure": "correlation of planted and measured log-odds of agreeing, over questions",
        "null": "0: no relation",
    }


def _share(got: dict[Any, Any], wanted: dict[Any, Any], measure: str) -> dict[str, Any]:
    held = [row["low"] <= wanted[key]["value"] <= row["high"] for key, row in got.items()]
    return _bare(measure, float(np.mean(held)), len(held), "value and gender") | {"null": "1: all"}


def _bare(measure: str, value: float, n: int, cluster: str) -> dict[str, Any]:
    return {
        "measure": measure,
        "value": finite(float(value)),
        "low": None,
        "high": None,
        "n": n,
        "cluster": cluster,
        "method": "count, no interval",
        "p": None,
        "p_bh": None,
    }
