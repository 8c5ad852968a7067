"""The questions of a datasheet, each answered by hand on a dataset's page or from its build.

They follow Gebru et al. (2021), Datasheets for Datasets, in the project's own words. A page
answers its part of them in its section ``## Datasheet``, in paragraphs that begin with the question
in bold.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from plumbline.builders.core.schema import Schema

HEADING = "Datasheet"
PARTS = (
    "Motivation",
    "Composition",
    "Collection",
    "Preprocessing",
    "Uses",
    "Distribution",
    "Maintenance",
)
ROW = "What is one row?"
SAMPLE = "Is it all there is, or a sample?"
LABELS = "Which labels are there, and who gave them?"
PEOPLE = "Is it about people, and can they be told from it?"
BIASES = "Of what does it show too much, or too little?"
COLLECTED = "How was it collected?"
ASKED = "Were those whom it is about asked?"
PREPARED = "How was it cleaned and prepared?"
USES = "What is it for?"
NOT_FOR = "What should it not be used for?"
HARM = "What harm could come of it?"
BY_HAND = (ROW, SAMPLE, LABELS, PEOPLE, BIASES, COLLECTED, ASKED, PREPARED, USES, NOT_FOR, HARM)
SECTIONS = ("Why", "Known limits", "Sensitive content", "Citation")  # that answer questions too
MAINTAINED = (
    "The authors of plumbline keep up its builder. Errors are mended there or at the source, never "
    "in the rows. Every fetch of its sources is a dated snapshot, every build has a version of "
    "three numbers. A published version is a tag that never moves, so older ones stay."
)
_ANSWER = re.compile(
    r"^\*\*(?P<question>[^*]+\?)\*\*\s+(?P<answer>.+?)(?=\n\n|\Z)", re.MULTILINE | re.DOTALL
)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


class Facts(NamedTuple):
    """What a build knows of a dataset, to answer from."""

    front: dict[str, Any]
    rows: dict[str, int]  # by config
    schemas: dict[str, Schema]  # by config
    sources: list[dict[str, Any]]
    by_hand: dict[str, str]  # answers of the page
    rejects: int


class Question(NamedTuple):
    """A question, the part that it stands in, and how it is answered: by hand where nothing is."""

    part: str
    text: str
    answer: Callable[[Facts], str] | None = None


def sections(prose: str) -> dict[str, str]:
    """Return the sections of the second level on a page, by heading."""
    pieces = re.split(r"^## (.+)\n", prose, flags=re.MULTILINE)
    return {
        name.strip(): body.strip() for name, body in zip(pieces[1::2], pieces[2::2], strict=True)
    }


def answers(prose: str) -> dict[str, str]:
    """Return the answers that a page gives by hand, by question, each in one line."""
    found = _ANSWER.finditer(sections(prose).get(HEADING, ""))
    return {" ".join(m["question"].split()): " ".join(m["answer"].split()) for m in found}


def missing(prose: str) -> list[str]:
    """Return what a page leaves out: questions unanswered, sections that are empty or not there."""
    given, there = answers(prose), sections(prose)
    unanswered = [question for question in BY_HAND if not given.get(question)]
    return unanswered + [f"## {name}" for name in SECTIONS if not there.get(name)]


def without(prose: str) -> str:
    """Return a page's prose without its datasheet."""
    return re.sub(rf"^## {HEADING}\n.*?(?=^## |\Z)", "", prose, flags=re.MULTILINE | re.DOTALL)


def render(facts: Facts) -> str:
    """Return the datasheet as a section of a card."""
    lines = [
        f"## {HEADING}",
        "",
        "After Gebru et al. (2021), Datasheets for Datasets, Communications of the ACM 64(12).",
    ]
    for part in PARTS:
        lines += ["", f"### {part}", ""]
        for question in QUESTIONS:
            if question.part == part:
                made = question.answer
                answer = made(facts) if made else facts.by_hand.get(question.text, "")
                lines += [f"- **{question.text}** {answer}"]
    return "\n".join(lines) + "\n"


def dates(sources: list[dict[str, Any]]) -> list[str]:
    """Return the days on which sources were retrieved, sorted."""
    return sorted({day for s in sources for day in _DATE.findall(str(s["retrieved"]))})


def nullable(facts: Facts) -> str:
    """Say which columns may be empty."""
    schemas = facts.schemas.values()
    names = dict.fromkeys(f"`{c.name}`" for s in schemas for c in s.columns if c.nullable)
    if not names:
        return "No column is ever null."
    return f"May be null, for the reasons given under Columns: {', '.join(names)}."


def _number(facts: Facts) -> str:
    rows = ", ".join(f"{name} {n:,}" for name, n in sorted(facts.rows.items()))
    left = f"; {facts.rejects:,} input rows were left out, see [Counts](#counts)"
    return f"{sum(facts.rows.values()):,} ({rows}){left if facts.rejects else ''}."


def _splits(facts: Facts) -> str:
    if any(column.name == "split" for s in facts.schemas.values() for column in s.columns):
        return "Yes: the column `split`. The split of the Hub is always `train`."
    return "No: the split of the Hub is always `train`, and holds everything."


def _when(facts: Facts) -> str:
    days = dates(facts.sources)
    if not days:
        return "When the datasets were that it is made of, see [Sources](#sources)."
    return f"Retrieved {' to '.join(dict.fromkeys((days[0], days[-1])))}, see [Sources](#sources)."


def _terms(facts: Facts) -> str:
    name = facts.front.get("license_name") or facts.front.get("license")
    closed = any(c.name == "redistributable" for s in facts.schemas.values() for c in s.columns)
    rows = " No row with `redistributable` false may be passed on." if closed else ""
    return f"{name}; each source keeps its own terms, see [Sources](#sources).{rows}"


def _given_out(facts: Facts) -> str:
    asked = any(key.startswith("extra_gated_") for key in facts.front)
    gate = ", where each reader is asked what it is for" if asked else ""
    return (
        "Built anew, see [Rebuild](#rebuild); or, where its terms allow it, as parquet files with "
        "this card and a Croissant description (`croissant.json`), in one commit with a version's "
        f"tag to a repository of the Hugging Face Hub{gate}."
    )


QUESTIONS = (
    Question("Motivation", "For what was it made?", lambda _: "See [Why](#why)."),
    Question(
        "Motivation",
        "Who made it, and who paid?",
        lambda _: "The authors of plumbline, from the sources below; no funding is declared.",
    ),
    Question("Composition", ROW),
    Question("Composition", "How many rows are there?", _number),
    Question("Composition", SAMPLE),
    Question("Composition", "What is in a row?", lambda _: "See [Columns](#columns)."),
    Question("Composition", "Is anything missing from rows?", nullable),
    Question("Composition", LABELS),
    Question("Composition", "Are there splits?", _splits),
    Question(
        "Composition",
        "Which errors are known?",
        lambda _: "See [Known limits](#known-limits).",
    ),
    Question("Composition", BIASES),
    Question(
        "Composition",
        "Does it rest on anything outside?",
        lambda _: "No: the files are whole. The sources are needed to rebuild it only.",
    ),
    Question("Composition", PEOPLE),
    Question(
        "Composition",
        "Is anything in it offensive, or sensitive?",
        lambda _: "See [Sensitive content](#sensitive-content).",
    ),
    Question("Collection", COLLECTED),
    Question("Collection", "When?", _when),
    Question("Collection", ASKED),
    Question("Preprocessing", PREPARED),
    Question(
        "Preprocessing",
        "Are the raw data kept, and the code?",
        lambda _: (
            "Yes: dated snapshots with a manifest of addresses, dates and hashes, and the builder "
            "beside them; see [Rebuild](#rebuild). Raw data are not published with the rows."
        ),
    ),
    Question("Uses", USES),
    Question("Uses", NOT_FOR),
    Question("Uses", HARM),
    Question("Distribution", "Under which terms?", _terms),
    Question("Distribution", "How is it given out?", _given_out),
    Question("Maintenance", "Who keeps it up, and how does it change?", lambda _: MAINTAINED),
    Question(
        "Maintenance",
        "How can others add to it?",
        lambda _: (
            "Through `params.yaml` (sources, languages, corpora; `docs/params.md`) or a change to "
            "the project (`CONTRIBUTING.md`); then the command under [Rebuild](#rebuild)."
        ),
    ),
)
