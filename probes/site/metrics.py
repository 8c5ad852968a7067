"""Metrics that experiments are compared by: the controls, and the main numbers of each study.

``dvc metrics`` reads ``metrics.json``, ``dvc plots`` the tables under ``plots``. What git keeps of
them must be the same on every processor, so it leaves out what rests on weights that the run itself
trains, whose last bits depend on the device.
"""

from __future__ import annotations

import json
from statistics import fmean
from typing import TYPE_CHECKING, Any

import polars as pl

from plumbline.probes.controls.measures import ADJUSTED, FOUND, HOLD, ORDER, SILENT, TESTS, YES
from plumbline.probes.site.headlines import HEADLINES, measured

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from pathlib import Path

    from plumbline.probes.report.view import Row

KEYS = {FOUND: "found", ORDER: "order", HOLD: "coverage"}
TRAINED = ("shift", "compass", "fairness", "ensemble")  # of weights that the run itself trains
DIGITS = 6
ENDS = ("value", "low", "high")
NAME = ("analysis", "model", "reading", "measure", "item")  # of a number of the controls


def write(
    found: Sequence[Row], headlines: Sequence[Row], into: Path, but: Collection[str] = ()
) -> None:
    """Write metrics and plots into a folder: of the controls, and the models' headlines.

    ``but``: analyses that are left out.
    """
    found = [check for check in found if check["analysis"] not in but]
    headlines = [row for row in headlines if HEADLINES[row["study"]].analysis not in but]
    every = metrics(found) | {"models": measured(headlines)}
    text = json.dumps(every, indent=1, sort_keys=True) + "\n"
    (into / "metrics.json").write_text(text, encoding="utf-8")
    plots = {
        "controls": [
            check
            | {"panel": _key(check), "what": ": ".join(filter(None, map(check.get, NAME)))}
            | {"reading": check["reading"] or "all"}
            for check in found
        ],
        "headlines": [
            row
            | {"panel": row["unit"], "what": f"{row['study']}: {row['model']}"}
            | {"reading": "clearest"}
            for row in headlines
        ],
    }
    (into / "plots").mkdir()
    schema: dict[str, Any] = dict.fromkeys(("panel", "what", "reading"), pl.String)
    schema |= dict.fromkeys(ENDS, pl.Float64)
    for name, rows in plots.items():
        frame = pl.DataFrame(rows, schema=schema).with_columns(pl.col(*ENDS).round(DIGITS))
        frame.write_csv(into / f"plots/{name}.csv", null_value="")


def metrics(found: Sequence[Row]) -> dict[str, Any]:
    """Return means of the controls' numbers by analysis, reading and question.

    Found: share of what was planted, or how much of it; order: correlation with it; coverage of
    95% intervals. Where nothing is planted: false discoveries, the share of tests by adjusted p;
    false positives, by p itself; and what is measured in place of nothing. ``as_it_should`` has
    the number that pass, of all.
    """
    values: dict[tuple[str, str, str], list[float]] = {}
    for check in found:
        at = (check["analysis"], check["reading"] or "all", _key(check))
        values.setdefault(at, []).append(check["value"])
    means: dict[str, Any] = {}
    for (analysis, reading, key), own in values.items():
        means.setdefault(analysis, {}).setdefault(reading, {})[key] = round(fmean(own), DIGITS)
    passed = sum(check["verdict"] == YES for check in found)
    return {"controls": means, "as_it_should": {"of": len(found), "yes": passed}}


def _key(check: Row) -> str:
    if check["question"] != SILENT:
        return KEYS[check["question"]]
    if check["measure"] in ADJUSTED:
        return "false_discoveries"
    return "false_positives" if check["measure"] in TESTS else "in_place_of_nothing"
