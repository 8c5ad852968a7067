"""Show how well the controls recover known biases, with verdicts and metrics.

The stage ``recovery`` writes the table, and ``probes/controls/measures.py`` declares the question
and the criterion of each measure. ``dvc metrics`` reads ``metrics.json``, and ``dvc plots`` reads
the tables under ``plots``.
"""

from __future__ import annotations

import json
from collections import Counter
from statistics import fmean
from typing import TYPE_CHECKING, Any

import polars as pl

from plumbline.probes import ALL, EACH
from plumbline.probes.controls import measures
from plumbline.probes.report.figures import Mark, forest
from plumbline.probes.report.view import LEVEL, Group, Part, Section, link, listed
from plumbline.probes.site.headlines import HEADLINES

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from pathlib import Path

    from plumbline.probes.report.tables import Tables
    from plumbline.probes.report.view import Row, Study

NAME = "controls"
TITLE = "Controls: do the probes detect known biases?"
MARKS = {measures.YES: Mark(), measures.UNCLEAR: Mark("circle", "#fff"), measures.NO: Mark("cross")}
NOTE = (
    "Control models (worlds) are trained on artificial text with or without known biases. If there "
    "are biases (positive control), a probe should detect them, rank them correctly, and cover "
    "them with its 95% intervals; if not (negative control), it should detect nothing."
)
ROW = {name: name for name in ("analysis", "measure", "reading", "item", "model")}
NUMBERS = {"value": "value", "interval": "95% interval", "n": "n", "expected": "compared with"}
SIZES = {"expected": "planted", "value": "measured", "interval": "95% interval"}
KEYS = {measures.FOUND: "found", measures.ORDER: "order", measures.HOLD: "coverage"}  # metrics
# Analyses of models trained in the run: the last bits of their weights depend on the device, so
# git does not track their metrics.
TRAINED = ("shift", "compass", "fairness", "ensemble")
DIGITS = 6
ENDS = ("value", "low", "high")


def checks(tables: Tables) -> list[Row]:
    """Return all rows of the table recovery that answer a question, with their verdicts."""
    return [check for row in _rows(tables) if (check := judged(row["analysis"], row))]


def effects(tables: Tables) -> list[Row]:
    """Return the estimates in the table recovery whose planted value (``expected``) is known."""
    return [row for row in _rows(tables) if row["measure"] == "estimate"]


def _rows(tables: Tables) -> list[Row]:
    """Return the rows of the table recovery in the order of the analyses."""
    path = tables.data / "tables/recovery/recovery.parquet"
    rows = pl.read_parquet(path).drop_nulls("value").to_dicts() if path.is_file() else []
    return sorted(rows, key=lambda row: (*EACH, *ALL).index(row["analysis"]))


def judged(analysis: str, row: Row) -> Row:
    """Add the question and the verdict to a recovery row; return {} if it answers no question."""
    question = measures.question(row["measure"], row["world"])
    if not question:
        return {}
    result = measures.verdict(row["measure"], row["world"], row["value"], row["low"], row["high"])
    return row | {"analysis": analysis, "question": question, "verdict": result}


def section(rows: Sequence[Row], studies: Sequence[Study], planted: Sequence[Row] = ()) -> Section:
    """Return the section of the controls: failures, counts by analysis, a figure and all numbers.

    ``rows``, ``planted``: from :func:`checks` and :func:`effects`; other studies are left out.
    """
    by_analysis = {analysis: study for study in studies for analysis in study.analyses}
    rows = [row for row in rows if row["analysis"] in by_analysis]
    if not rows:
        return Section(NAME, TITLE, NOTE, [], "recovery")
    counts = Counter(row["verdict"] for row in rows)
    full = len(studies) == 1
    failed = [
        row | {"limit": explained(row, by_analysis[row["analysis"]], full=full)}
        for row in rows
        if row["verdict"] == measures.NO
    ]
    yes, unclear, no = (
        counts[verdict] for verdict in (measures.YES, measures.UNCLEAR, measures.NO)
    )
    caption = f"{yes} of {len(rows)} numbers pass, {unclear} are unclear, {no} fail."
    failures = listed(failed, ROW | {"limit": "known limit"}, NUMBERS, "What failed")
    glance = [
        {"analysis": analysis} | {q: _passed(rows, analysis, q) for q in measures.QUESTIONS}
        for analysis in dict.fromkeys(row["analysis"] for row in rows)
    ]
    heads = {name: name for name in ("analysis", *measures.QUESTIONS)}
    parts = [
        Part(caption=caption, tables=(failures,) if failed else (), open=True),
        Part(tables=(listed(glance, heads, caption="Controls by question"),), open=True),
        Part(figure=figure(rows), caption="Filled marks pass, crosses fail, others are unclear."),
    ]
    columns = ROW | {"question": "question", "world": "world", "verdict": "passes"}
    numbers = listed(rows, columns, NUMBERS, "Controls, number by number")
    names = sorted({row["measure"] for row in rows})
    about = listed(
        [measures.MEASURES[name]._asdict() | {"name": name} for name in names],
        {"name": "measure", "description": "what it is", "planted": "passes if biases exist"}
        | {"null": "passes if there is no bias"},
        {"expected": "this number"},
    )
    if planted := [row for row in planted if row["analysis"] in by_analysis]:
        sizes = listed(planted, ROW, SIZES, "Planted and measured effects, in the same unit")
        parts.append(Part("Planted and measured effects", tables=(sizes,)))
    parts.append(Part("All numbers of the controls", tables=(numbers,)))
    parts.append(Part("What the measures are", tables=(about,)))
    return Section(NAME, TITLE, NOTE, [Group("", parts)], "recovery")


def _passed(rows: Sequence[Row], analysis: str, question: str) -> str:
    """Return the number of an analysis's checks that pass for one question, as text."""
    verdicts = Counter(
        row["verdict"] for row in rows if (row["analysis"], row["question"]) == (analysis, question)
    )
    others = [
        f"{verdicts[verdict]} {verdict}"
        for verdict in (measures.UNCLEAR, measures.NO)
        if verdicts[verdict]
    ]
    total = verdicts.total()
    return "; ".join([f"{verdicts[measures.YES]} of {total}", *others]) if total else "no measure"


def explained(check: Row, study: Study, *, full: bool) -> str:
    """Return the known limit that explains a failure, or "not explained".

    A limit in ``page.yaml`` consists of column values of the table recovery and a text ``about``.
    ``full``: True to return this text, False to return a link to it.
    """
    for limit in study.limits:
        where = {name: values for name, values in limit.items() if name != "about"}
        if all(check[name] in values for name, values in where.items()):
            return limit["about"] if full else link(f"{study.name}.html#{NAME}", "a known limit")
    return "not explained"


def figure(rows: Sequence[Row]) -> str:
    """Draw every number of the controls with its interval, in one panel per question."""
    nulls = {measures.FOUND: LEVEL, measures.ORDER: 0.0, measures.HOLD: 0.95}
    return forest(
        [
            row | {"line": row["analysis"], "series": row["verdict"], "panel": row["question"]}
            for row in rows
        ],
        unit="lines: no order, 95% of intervals, 5% of tests",
        marks=MARKS,
        zero=nulls | {measures.SILENT: LEVEL},
        limits=(-0.25, 1.05),
        spread=True,
    )


def write_metrics(
    rows: Sequence[Row], headlines: Sequence[Row], into: Path, but: Collection[str] = ()
) -> None:
    """Write the metrics and plots of the controls and headlines into a folder.

    ``but``: names of analyses to leave out.
    """
    rows = [row for row in rows if row["analysis"] not in but]
    headlines = [row for row in headlines if HEADLINES[row["study"]].analysis not in but]
    models: dict[str, Any] = {}
    for row in headlines:
        numbers = {end: None if row[end] is None else round(row[end], DIGITS) for end in ENDS}
        numbers |= {"found": row["sure"], "tested": row["tested"]}
        models.setdefault(row["study"], {})[row["model"]] = numbers
    text = json.dumps(metrics(rows) | {"models": models}, indent=1, sort_keys=True) + "\n"
    (into / "metrics.json").write_text(text, encoding="utf-8")
    key = ("analysis", "model", "reading", "measure", "item")
    labels = {
        "controls": [
            (_metric(row), ": ".join(filter(None, map(row.get, key))), row["reading"] or "all")
            for row in rows
        ],
        "headlines": [
            (row["unit"], f"{row['study']}: {row['model']}", "clearest") for row in headlines
        ],
    }
    (into / "plots").mkdir()
    schema = dict.fromkeys(("panel", "what", "reading"), pl.String)
    for name, plotted in (("controls", rows), ("headlines", headlines)):
        ends = pl.DataFrame(plotted, schema=dict.fromkeys(ENDS, pl.Float64))
        frame = pl.DataFrame(labels[name], schema, orient="row").hstack(ends)
        frame = frame.with_columns(pl.col(*ENDS).round(DIGITS))
        frame.write_csv(into / f"plots/{name}.csv", null_value="")


def metrics(rows: Sequence[Row]) -> dict[str, Any]:
    """Return the mean values of the controls by analysis, method variant and question.

    In positive controls, these are ``found`` (the share of known biases that are detected, or their
    recovered size), ``order`` (the correlation with the known order) and ``coverage`` of 95%
    intervals; in negative controls, ``false_discoveries`` (the share of tests with a significant
    adjusted p), ``false_positives`` (the same by unadjusted p), and the mean estimate.
    ``as_it_should`` counts the numbers that pass.
    """
    values: dict[tuple[str, str, str], list[float]] = {}
    for row in rows:
        group = (row["analysis"], row["reading"] or "all", _metric(row))
        values.setdefault(group, []).append(row["value"])
    means: dict[str, Any] = {}
    for (analysis, reading, name), numbers in values.items():
        mean = round(fmean(numbers), DIGITS)
        means.setdefault(analysis, {}).setdefault(reading, {})[name] = mean
    passed = sum(row["verdict"] == measures.YES for row in rows)
    return {"controls": means, "as_it_should": {"of": len(rows), "yes": passed}}


def _metric(row: Row) -> str:
    if row["question"] != measures.SILENT:
        return KEYS[row["question"]]
    if row["measure"] in measures.ADJUSTED:
        return "false_discoveries"
    return "false_positives" if row["measure"] in measures.TESTS else "in_place_of_nothing"
