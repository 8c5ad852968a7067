"""What experiments are compared by: numbers of the controls, and the main numbers of each study.

``dvc metrics`` reads ``metrics.json``, ``dvc plots`` the tables under ``plots``. What git keeps of
them must be the same on every processor, so it is without what rests on weights that the run itself
trains, whose last bits are the processor's own.
"""

from __future__ import annotations

import json
import re
from statistics import fmean
from typing import TYPE_CHECKING, Any

import polars as pl

from plumbline.probes.site.controls import FOUND, HOLD, ORDER, SILENT, TESTED, YES
from plumbline.probes.site.headlines import HEADLINES, measured
from plumbline.probes.site.readings import ENDS, lines, sides

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from pathlib import Path

    from plumbline.probes.report.tables import Tables
    from plumbline.probes.report.view import Row, Study

KEYS = {FOUND: "found", ORDER: "order", HOLD: "coverage"}
TRAINED = ("shift", "compass", "fairness", "ensemble")  # of weights that the run itself trains
SHOWN = ("", "faithful", "corrected", "continuous", "smoothed")  # readings; "" where there is one
DIGITS = 6
ADJUSTED = re.compile(r"adjusted|p_bh|p_bonferroni|false discover|make a difference")
NAME = ("analysis", "model", "reading", "way", "measure")  # of a number of the controls


def write(
    tables: Tables,
    studies: Sequence[Study],
    found: Sequence[Row],
    told: Sequence[Row],
    into: Path,
    but: Collection[str] = (),
) -> None:
    """Write metrics and plots into a folder: of the controls, and the models' headlines.

    ``but``: analyses that are left out.
    """
    found = [check for check in found if check["analysis"] not in but]
    told = [row for row in told if HEADLINES[row["study"]].analysis not in but]
    every = metrics(found) | {"models": measured(told)}
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
            | {
                "panel": row["unit"],
                "what": f"{row['study']}: {row['model']}",
                "reading": "clearest",
            }
            for row in told
        ],
    }
    for study in studies:
        if (of := study.readings) is None or of.stage in but:
            continue
        names = of.what.split()
        plots[study.name] = [
            {"panel": of.unit, "what": f"{line['model']}: {', '.join(line[n] for n in names)}"}
            | side
            for line in lines(tables, of).to_dicts()
            for side in sides(line)
        ]
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
    false positives, by p itself; and what is measured in place of nothing. ``as_it_should``
    counts all.
    """
    values: dict[tuple[str, str, str], list[float]] = {}
    for check in found:
        if check["reading"] in SHOWN:
            at = (check["analysis"], check["reading"] or "all", _key(check))
            values.setdefault(at, []).append(check["value"])
    means: dict[str, Any] = {}
    for (analysis, reading, key), own in values.items():
        means.setdefault(analysis, {}).setdefault(reading, {})[key] = round(fmean(own), DIGITS)
    right = sum(check["verdict"] == YES for check in found)
    return {"controls": means, "as_it_should": {"of": len(found), "yes": right}}


def _key(check: Row) -> str:
    if check["question"] != SILENT:
        return KEYS[check["question"]]
    if ADJUSTED.search(check["measure"]):
        return "false_discoveries"
    return "false_positives" if TESTED.search(check["measure"]) else "in_place_of_nothing"
