"""What experiments are compared by: numbers of the controls, and the main numbers of each study.

``dvc metrics`` reads ``metrics.json``, ``dvc plots`` the tables under ``plots``.
"""

from __future__ import annotations

import json
import re
from statistics import fmean
from typing import TYPE_CHECKING, Any

import polars as pl

from plumbline.probes.site.controls import FOUND, HOLD, ORDER, SILENT, TESTED, YES
from plumbline.probes.site.readings import lines

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from plumbline.probes.report.tables import Tables
    from plumbline.probes.report.view import Readings, Study
    from plumbline.probes.site.controls import Check

KEYS = {FOUND: "found", ORDER: "order", HOLD: "coverage"}
SHOWN = ("", "faithful", "corrected", "continuous", "smoothed")  # readings; "" where there is one
DIGITS = 6
ADJUSTED = re.compile(r"adjusted|p_bh|p_bonferroni|false discover|make a difference")


def write(tables: Tables, studies: Sequence[Study], found: Sequence[Check], into: Path) -> None:
    """Write metrics and plots into a folder."""
    text = json.dumps(metrics(found), indent=1, sort_keys=True) + "\n"
    (into / "metrics.json").write_text(text, encoding="utf-8")
    plots = into / "plots"
    plots.mkdir()
    _controls(found).write_csv(plots / "controls.csv", null_value="")
    for study in studies:
        _main(tables, study.readings).write_csv(plots / f"{study.name}.csv", null_value="")


def metrics(found: Sequence[Check]) -> dict[str, Any]:
    """Return means of the controls' numbers by analysis, reading and question.

    Found: share of what was planted, or how much of it; order: correlation with it; coverage of
    95% intervals. Where nothing is planted: false discoveries, the share of tests by adjusted p;
    false positives, by p itself; and what is measured in place of nothing. ``as_it_should``
    counts all.
    """
    means: dict[str, Any] = {}
    for check in found:
        if check.reading in SHOWN:
            own = means.setdefault(check.analysis, {}).setdefault(check.reading or "all", {})
            own.setdefault(_key(check), []).append(check.value)
    for readings_ in means.values():
        for own in readings_.values():
            for key, values in own.items():
                own[key] = round(fmean(values), DIGITS)
    right = sum(check.verdict == YES for check in found)
    return {"controls": means, "as_it_should": {"of": len(found), "yes": right}}


def _key(check: Check) -> str:
    if check.question != SILENT:
        return KEYS[check.question]
    if ADJUSTED.search(check.measure):
        return "false_discoveries"
    return "false_positives" if TESTED.search(check.measure) else "in_place_of_nothing"


def _controls(found: Sequence[Check]) -> pl.DataFrame:
    rows = [
        {
            "panel": _key(check),
            "what": ": ".join(
                filter(None, (check.analysis, check.model, check.reading, check.way, check.measure))
            ),
            "reading": check.reading or "all",
            "value": check.value,
            "low": check.low,
            "high": check.high,
        }
        for check in found
    ]
    return _typed(rows)


def _main(tables: Tables, of: Readings) -> pl.DataFrame:
    rows = [
        {"panel": of.unit, "what": f"{line.model}: {', '.join(line.what)}", "reading": name}
        | {key: row[key] for key in ("value", "low", "high")}
        for line in lines(tables, of)
        for name, row in (("faithful", line.faithful), ("corrected", line.corrected))
    ]
    return _typed(rows)


def _typed(rows: list[dict[str, Any]]) -> pl.DataFrame:
    text, numbers = ("panel", "what", "reading"), ("value", "low", "high")
    schema = dict.fromkeys(text, pl.String) | dict.fromkeys(numbers, pl.Float64)
    return pl.DataFrame(rows, schema=schema).with_columns(pl.col(*numbers).round(DIGITS))
