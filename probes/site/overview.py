"""The first page: whether the probes see what was planted, and what is in the run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plumbline.probes import ALL, EACH, PROBES
from plumbline.probes.report.view import Block, Group, Part, Section, Table, interval, number
from plumbline.probes.site import figures_controls, versions
from plumbline.probes.site.controls import NO, QUESTIONS, UNCLEAR, YES
from plumbline.probes.site.studies import STUDIES

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from plumbline.probes.site.controls import Check

NOTE = (
    "Worlds are languages with biases that are known, and models trained on them. Where biases "
    "were planted (positive control) a probe should find them, in their order, and its 95% "
    "intervals should hold the truth; where none were (negative control) it should be silent. "
    "What was planted counts as found, or as in order, if the interval lies above chance; "
    "intervals and silence are as they should be unless the interval of the share excludes it. "
    "Numbers without an interval, or of few clusters, are unclear sooner than right. What is "
    "'no' is a known limit, and the study's page says which: read it before any result."
)
CONTROLS = {True: "planted", False: "nothing planted"}


def controls(found: Sequence[Check]) -> Section:
    """Return the figure of all controls, one table of all probes, and all numbers behind it."""
    groups = []
    if found:
        figure = figures_controls.controls(found)
        caption = (
            "Dots are numbers of controls, with 95% intervals; dotted lines: no order, 95% of "
            "intervals, 5% of tests. Filled: as it should be; hollow: unclear; cross: not."
        )
        title = f"All {len(found)} numbers of the controls"
        every = Block(title, [Part(tables=(_all(found),))])
        parts = [Part(tables=(_glance(found),)), Part(figure=figure, caption=caption)]
        groups.append(Group("", [Block("", parts), every]))
    title = "Controls: can these probes see what was planted?"
    return Section("controls", title, NOTE, groups, "pmi")


def contents(data: Path) -> Section:
    """Return the models and the datasets of the run, with their versions."""
    parts = [
        Part(tables=(versions.models(data, tuple(PROBES)),)),
        Part(tables=(versions.datasets(data, versions.validated(data)),)),
        Part(tables=(_tables(),)),
    ]
    note = "What was asked of which model, and of what the questions were made."
    title = "What is in this run"
    return Section("contents", title, note, [Group("", [Block("", parts)])], "validate")


def _study(analysis: str) -> str:
    return next((study.name for study in STUDIES if analysis in study.analyses), "–")


def _glance(found: Sequence[Check]) -> Table:
    rows = []
    for analysis in dict.fromkeys(check.analysis for check in found):
        own = [check for check in found if check.analysis == analysis]
        cells = []
        for question in QUESTIONS:
            verdicts = [check.verdict for check in own if check.question == question]
            cells.append(_said(verdicts))
        rows.append([analysis, _study(analysis), *cells])
    caption = "Positive and negative controls of every probe: how many numbers are as they should"
    return Table(caption, ("analysis", "study", *QUESTIONS), (), rows)


def _said(verdicts: list[str]) -> str:
    if not verdicts:
        return "not asked"
    counts = {verdict: verdicts.count(verdict) for verdict in (YES, UNCLEAR, NO)}
    if counts[YES] == len(verdicts):
        return f"yes ({len(verdicts)} of {len(verdicts)})"
    rest = [f"{n} {verdict}" for verdict, n in counts.items() if n and verdict != YES]
    return f"{counts[YES]} of {len(verdicts)}; {', '.join(rest)}"


def _all(found: Sequence[Check]) -> Table:
    rows = [
        [
            *(check.analysis, check.question, check.verdict, CONTROLS[check.planted], check.model),
            *(check.reading or "–", check.way or "–", check.measure, check.null),
            *(number(check.value, 3), interval(check._asdict(), 3), str(check.n)),
        ]
        for check in found
    ]
    words = (
        *("analysis", "question", "as it should be", "control", "world", "reading", "asked"),
        *("measure", "judged against"),
    )
    return Table("Controls, number by number", words, ("value", "interval", "n"), rows)


def _tables() -> Table:
    told = EACH | ALL
    rows = [
        [study.name, analysis, told.get(analysis, "waves of suggestions compared")]
        for study in STUDIES
        for analysis in study.analyses
    ]
    return Table("Analyses", ("study", "analysis", "what it estimates"), (), rows)
