"""The controls: what analyses find of what was planted, and whether it is as it should be.

The stage ``recovery`` has a table of every analysis. Here each of its numbers is given the question
that it answers, by its words, so that an analysis that is added answers without more code.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

import polars as pl

from plumbline.probes import ALL, EACH
from plumbline.probes.report.figures import Mark, forest
from plumbline.probes.report.view import Block, Group, Listing, Part, Section, link, listed

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from plumbline.probes.report.tables import Tables
    from plumbline.probes.report.view import Row, Study, Table

NAME = "controls"
TITLE = "Controls: can these probes see what was planted?"
FOUND, ORDER, HOLD, SILENT = QUESTIONS = (
    "is what was planted found?",
    "in its order?",
    "do intervals hold the truth?",
    "silent where nothing is planted?",
)
YES, UNCLEAR, NO = ("yes", "unclear", "no")
NOMINAL = 0.95  # of intervals
FALSE = 0.05  # of tests where nothing is planted
MARGIN = 0.1  # within which recall is as planted: no model learns all of it
READINGS = (
    *("faithful", "paper", "released", "probability", "corrected", "corrected_one"),
    *("continuous", "named", "likeliest", "expected", "placebo", "largest"),
)
DIFFERENCE = re.compile(r"minus that in the lists|the way it speaks|above that of unrelated")
EQUAL = re.compile(r"as planted, mean over groups|\|rating - planted rating\|")
TESTED = re.compile(r"\bp\b(?!\()|p_bh|p_bonferroni|false discover|make a difference")
SIGN = re.compile(r"\bsign\b|planted side|that are found")
POWER = re.compile(r"(0\.\d+): the power that is asked for")
RELATED = re.compile(r"Spearman|^order of|^correlation of planted")
SAID = {YES: "as it should be", UNCLEAR: "unclear", NO: "not as it should be"}
MARKS = {SAID[YES]: Mark(), SAID[UNCLEAR]: Mark("circle", "#fff"), SAID[NO]: Mark("cross")}
NOTE = (
    "Worlds are languages with biases that are known, and models trained on them. Where biases "
    "were planted (positive control) a probe should find them, in their order, and its 95% "
    "intervals should hold the truth; where none were (negative control) it should be silent. "
    "Read these before any result."
)
JUDGED = (
    "What was planted counts as found, or as in order, if the interval lies above chance (where a "
    "power is asked for: if the share is no less; unclear, if its interval has it), and a "
    f"difference from what was planted as none if it lies within {MARGIN}; "
    "intervals and silence are as they should be unless the interval of the share excludes it. "
    "Numbers without an interval, or of few clusters, are unclear sooner than right."
)
CONTROLS = ("planted", "nothing planted")
KINDS = ("positive control: biases planted", "negative control: nothing planted")
RECOVERY = Listing("measure; cluster; null=judged against", "value; interval; n", digits=3)
FAILED = Listing(
    "study; analysis; model; what; null=judged against; limit=known limit",
    "value; interval; n",
    digits=3,
)
NUMBERS = Listing(
    "analysis; question; verdict=as it should be; control; model=world; reading?–; way?–=variant; "
    "measure; null=judged against",
    "value; interval; n",
    digits=3,
)


def recovery_files(tables: Tables, analysis: str) -> list[Path]:
    """Return the files of an analysis's recovery, of whichever study it is."""
    return sorted((tables.data / "tables/recovery").glob(f"*/{analysis}.parquet"))


def recoveries(tables: Tables) -> Iterator[tuple[str, pl.DataFrame]]:
    """Yield analysis and recovery of one world after another, codes as they are."""
    for analysis in (*EACH, *ALL):
        for path in recovery_files(tables, analysis):
            for table in pl.read_parquet(path).partition_by("model", maintain_order=True):
                yield analysis, table


def checks(tables: Tables) -> list[Row]:
    """Return all numbers of controls that answer one of the questions, see :func:`judged`."""
    return [
        check
        for analysis, table in recoveries(tables)
        for row in table.to_dicts()
        if row["value"] is not None and (check := judged(analysis, row))
    ]


def judged(analysis: str, row: Row) -> Row | None:
    """Return a row of such a table with its question and verdict; None where it answers none.

    Its measure is without the reading, "" where the analysis has one, and without the way of
    prompting, where there are several: they stand beside it.
    """
    reading, way, measure = parted(row["measure"])
    question = question_of(measure, row["null"], planted=not row["world"])
    if not question:
        return None
    own = {"analysis": analysis, "control": CONTROLS[row["world"]], "reading": reading, "way": way}
    own |= {"question": question, "verdict": verdict(question, measure, row), "measure": measure}
    return row | own | {"mark": SAID[own["verdict"]]}


def parted(measure: str) -> tuple[str, str, str]:
    """Return the reading, the way of prompting and the measure itself.

    Examples
    --------
    >>> parted("mask, continuous, axes-en: order of planted stances")
    ('continuous', 'mask, axes-en', 'order of planted stances')
    >>> parted("ADJ: share of words")
    ('', '', 'ADJ: share of words')
    """
    head, colon, rest = measure.partition(": ")
    pieces = head.split(", ")
    known = [piece for piece in pieces if piece in READINGS]
    if not (colon and known):
        return "", "", measure
    others = [piece for piece in pieces if piece != known[-1]]
    return known[-1], ", ".join(others), rest


def question_of(measure: str, null: str, *, planted: bool) -> str:
    """Return the question that a measure answers; '' if it answers none."""
    if "interval" in measure:
        return HOLD
    if DIFFERENCE.search(measure) or EQUAL.search(measure):
        return FOUND if planted else SILENT
    for asked, pattern in ((FOUND, SIGN), (ORDER, RELATED)):
        if planted and pattern.search(measure):
            return asked
    alone = "other differences" in measure
    nothing = "no nominal value" not in null and (not planted or alone)
    return SILENT if nothing and TESTED.search(measure) else ""


def verdict(question: str, measure: str, row: Row) -> str:
    """Judge a number by its interval, or where it has none by itself.

    What was planted is found, or in order, if the interval lies above chance; 'no' if the number
    itself does not; else it is unclear. Intervals hold the truth, and a probe is silent, unless
    that is outside of the interval of the share.
    """
    value, low, high = row["value"], row["low"], row["high"]
    difference = DIFFERENCE.search(measure)
    if EQUAL.search(measure):
        if low is None or low <= -MARGIN <= high or low <= MARGIN <= high:
            return UNCLEAR
        return YES if abs(value) < MARGIN else NO
    if asked := POWER.match(row["null"]):
        power = float(asked[1])
        return YES if value >= power else NO if high is None or high < power else UNCLEAR
    if question in (FOUND, ORDER):
        tested = TESTED.search(measure) or "that are found" in measure
        chance = 0.0 if question == ORDER or difference else FALSE if tested else 0.5
        if value <= chance:
            return NO
        return YES if low is not None and low > chance else UNCLEAR
    if question == HOLD:
        good = (value if high is None else high) >= NOMINAL
    elif difference:
        # the test's expectation is the number that what it is judged against begins with
        good = low is not None and low <= float(row["null"].partition(":")[0]) <= high
    else:
        good = (value if low is None else low) <= FALSE
    return YES if good else NO


def models(tables: Tables, study: Study) -> dict[str, Group]:
    """Return the recovery tables of a study, by world."""
    found: dict[tuple[int, str], list[Table]] = {}
    for analysis, table in recoveries(tables):
        if analysis in study.analyses and len(table):
            at = (int(table["world"][0]), str(table["model"][0]))
            found.setdefault(at, []).append(listed(RECOVERY, table.to_dicts(), analysis))
    groups = {}
    for (null, name), every in sorted(found.items()):
        more = study.planted(tables, name) if study.planted and not null else []
        blocks = [Block("", [*more, Part(tables=tuple(every))])]
        groups[name] = Group(f"Controls ({KINDS[null]})", blocks, NAME, name)
    return groups


def section(found: Sequence[Row], studies: Sequence[Study], shown: Mapping[str, str]) -> Section:
    """Return what failed, one table of the analyses, the figure, and all numbers behind it.

    ``found``: see :func:`checks`; those of other studies are left out.
    ``shown``: names of models as they stand on the page.
    """
    own = {analysis for study in studies for analysis in study.analyses}
    found = [
        check | {"model": shown.get(check["model"], check["model"])}
        for check in found
        if check["analysis"] in own
    ]
    groups = []
    if found:
        caption = (
            "Dots are numbers of controls, with 95% intervals; lines: no order, 95% of "
            "intervals, 5% of tests. Filled: as it should be; hollow: unclear; cross: not."
        )
        every = Part(tables=(listed(NUMBERS, found, "Controls, number by number"),))
        glance = Part(tables=(_glance(found, studies),), open=True)
        parts = [failed(found, studies), glance, Part("", figure(found), caption)]
        groups.append(Group("", [Block("", parts), Block("All numbers of the controls", [every])]))
    return Section(NAME, TITLE, f"{NOTE} {JUDGED}", groups, studies[0].analyses[0])


def failed(found: Sequence[Row], studies: Sequence[Study]) -> Part:
    """Return how many numbers are as they should be, and by name those that are not.

    Beside each its known limit: on the page of a study in words, on another a link to it.
    """
    by = Counter(check["verdict"] for check in found)
    rows = []
    for check in found:
        if check["verdict"] == NO:
            study = next(study for study in studies if check["analysis"] in study.analyses)
            what = ", ".join(filter(None, (check["reading"], check["way"], check["measure"])))
            limit = explained(check, study, here=len(studies) == 1)
            rows.append(check | {"study": study.name, "what": what, "limit": limit})
    caption = (
        f"Of {len(found)} numbers {by[YES]} are as they should be, {by[UNCLEAR]} unclear, "
        f"{by[NO]} not{': these failed.' if rows else '.'}"
    )
    tables = (listed(FAILED, rows, "What failed"),) if rows else ()
    return Part(caption=caption, tables=tables, open=True)


def explained(check: Row, study: Study, *, here: bool) -> str:
    """Return the known limit behind a number that is not as it should be, or that there is none."""
    for limit in study.limits:
        if limit.analysis == check["analysis"] and re.search(limit.measure, check["measure"]):
            return limit.about if here else link(f"{study.name}.html#{NAME}", "a known limit")
    return "not explained"


def _glance(found: Sequence[Row], studies: Sequence[Study]) -> Table:
    study_of = {analysis: study.name for study in studies for analysis in study.analyses}
    by = {c["analysis"]: {question: Counter[str]() for question in QUESTIONS} for c in found}
    for check in found:
        by[check["analysis"]][check["question"]][check["verdict"]] += 1
    rows = [
        {"analysis": analysis, "study": study_of.get(analysis, "–")}
        | {str(n): _said(verdicts) for n, verdicts in enumerate(of.values())}
        for analysis, of in by.items()
    ]
    heads = [f"{n}={question}" for n, question in enumerate(QUESTIONS)]
    caption = "Positive and negative controls of every probe: how many numbers are as they should"
    return listed(Listing("; ".join(["analysis", "study", *heads])), rows, caption)


def _said(verdicts: Counter[str]) -> str:
    right, of = verdicts[YES], verdicts.total()
    rest = [f"{verdicts[verdict]} {verdict}" for verdict in (UNCLEAR, NO) if verdicts[verdict]]
    if not rest:
        return f"yes ({right} of {of})" if of else "no measure"
    return f"{right} of {of}; {', '.join(rest)}"


def figure(found: Sequence[Row]) -> str:
    """Draw every number of a control with its interval, a panel for each question."""
    return forest(
        found,
        line="analysis",
        unit=", ".join(f"{sum(r['mark'] == name for r in found)} {name}" for name in MARKS),
        series="mark",
        marks=MARKS,
        panel="question",
        panels=QUESTIONS,
        limits=(-0.25, 1.05),
        zero={FOUND: FALSE, ORDER: 0.0, HOLD: NOMINAL, SILENT: FALSE},
        spread=True,
    )
