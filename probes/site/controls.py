"""The controls: what analyses find of what was planted, and whether they pass.

The stage ``recovery`` has a table of every analysis. ``probes/controls/measures.py`` declares for
each of their measures which question it answers, and what counts as passed.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import polars as pl

from plumbline.probes import ALL, EACH
from plumbline.probes.controls.measures import (
    FOUND,
    HOLD,
    MEASURES,
    NO,
    ORDER,
    QUESTIONS,
    SILENT,
    UNCLEAR,
    YES,
    question,
    verdict,
)
from plumbline.probes.report.figures import Mark, forest
from plumbline.probes.report.view import LEVEL, Block, Group, Part, Section, link, listed

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from plumbline.probes.report.tables import Tables
    from plumbline.probes.report.view import Row, Study, Table

NAME = "controls"
TITLE = "Controls: can these probes see what was planted?"
MARKS = {YES: Mark(), UNCLEAR: Mark("circle", "#fff"), NO: Mark("cross")}
NOTE = (
    "Worlds are languages with known biases, and models trained on them. Where biases were planted "
    "(positive control) a probe should find them, in their order, and its 95% intervals should "
    "include the truth; where none were (negative control) it should be silent. Read these first."
)
CONTROLS = {"planted": "biases planted", "null": "nothing planted"}
ROW = {"analysis": "analysis", "measure": "measure", "reading": "reading", "item": "item"}
ROW |= {"model": "model"}
NUMBERS = {"value": "value", "interval": "95% interval", "n": "n", "expected": "compared with"}


def recovery_files(tables: Tables, analysis: str) -> list[Path]:
    """Return the files of an analysis's recovery, of whichever study it is."""
    return sorted((tables.data / "tables/recovery").glob(f"*/{analysis}.parquet"))


def checks(tables: Tables) -> list[Row]:
    """Return all numbers of controls that answer one of the questions, with their verdict."""
    return [
        check
        for analysis in (*EACH, *ALL)
        for path in recovery_files(tables, analysis)
        for row in pl.read_parquet(path).drop_nulls("value").to_dicts()
        if (check := judged(analysis, row))
    ]


def judged(analysis: str, row: Row) -> Row:
    """Return a row of recovery with its question and verdict; empty where it answers none."""
    asked = question(row["measure"], row["world"])
    if not asked:
        return {}
    said = verdict(row["measure"], row["world"], row["value"], row["low"], row["high"])
    return row | {"analysis": analysis, "question": asked, "verdict": said}


def section(found: Sequence[Row], studies: Sequence[Study]) -> Section:
    """Return what failed, a table of the analyses, a figure, and all numbers behind it.

    ``found``: see :func:`checks`; those of other studies are left out.
    """
    by_analysis = {analysis: study for study in studies for analysis in study.analyses}
    found = [check for check in found if check["analysis"] in by_analysis]
    groups = []
    if found:
        counts = Counter(check["verdict"] for check in found)
        failed = [check for check in found if check["verdict"] == NO]
        here = len(studies) == 1
        failed = [
            check | {"limit": explained(check, by_analysis[check["analysis"]], here=here)}
            for check in failed
        ]
        caption = f"{counts[YES]} of {len(found)} numbers pass, {counts[UNCLEAR]} are unclear, "
        caption += f"{counts[NO]} fail."
        words = ROW | {"limit": "known limit"}
        tables = (listed(failed, words, NUMBERS, "What failed"),) if failed else ()
        parts = [
            Part(caption=caption, tables=tables, open=True),
            Part(tables=(_glance(found),), open=True),
            Part(figure(found), "Filled: passes; hollow: unclear; cross: fails."),
        ]
        every = ROW | {"question": "question", "world": "world", "verdict": "passes"}
        numbers = listed(found, every, NUMBERS, "Controls, number by number")
        blocks = [Block("", parts), Block("All numbers of the controls", [Part(tables=(numbers,))])]
        blocks.append(Block("What the measures are", [Part(tables=(_measures(found),))]))
        groups.append(Group("", blocks))
    return Section(NAME, TITLE, NOTE, groups, "recovery")


def explained(check: Row, study: Study, *, here: bool) -> str:
    """Return the known limit behind a number that fails, or that there is none.

    A limit is declared in ``page.yaml``: values of columns of recovery, and what it is about.
    """
    for limit in study.limits:
        where = {name: values for name, values in limit.items() if name != "about"}
        if all(check[name] in values for name, values in where.items()):
            return limit["about"] if here else link(f"{study.name}.html#{NAME}", "a known limit")
    return "not explained"


def _glance(found: Sequence[Row]) -> Table:
    """Return for each analysis how many numbers pass, by question."""
    counts: dict[str, dict[str, Counter[str]]] = {}
    for check in found:
        own = counts.setdefault(check["analysis"], {asked: Counter() for asked in QUESTIONS})
        own[check["question"]][check["verdict"]] += 1
    rows = [
        {"analysis": analysis} | {asked: _passed(verdicts) for asked, verdicts in own.items()}
        for analysis, own in counts.items()
    ]
    heads = {"analysis": "analysis"} | {asked: asked for asked in QUESTIONS}
    return listed(rows, heads, caption="How many numbers of the controls pass")


def _passed(verdicts: Counter[str]) -> str:
    if not verdicts.total():
        return "no measure"
    rest = [f"{verdicts[said]} {said}" for said in (UNCLEAR, NO) if verdicts[said]]
    return "; ".join([f"{verdicts[YES]} of {verdicts.total()}", *rest])


def _measures(found: Sequence[Row]) -> Table:
    """Return what the measures are, and what counts as passed."""
    names = sorted({check["measure"] for check in found})
    rows = [MEASURES[name]._asdict() | {"name": name} for name in names]
    heads = {"name": "measure", "description": "what it is"}
    heads |= {world: f"{said}: passes if" for world, said in CONTROLS.items()}
    return listed(rows, heads, {"expected": "this number"})


def figure(found: Sequence[Row]) -> str:
    """Draw every number of a control with its interval, a panel for each question."""
    return forest(
        found,
        line="analysis",
        unit="lines: no order, 95% of intervals, 5% of tests",
        series="verdict",
        marks=MARKS,
        panel="question",
        panels=QUESTIONS,
        limits=(-0.25, 1.05),
        zero={FOUND: LEVEL, ORDER: 0.0, HOLD: 0.95, SILENT: LEVEL},
        spread=True,
    )
