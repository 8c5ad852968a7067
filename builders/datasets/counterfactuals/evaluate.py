"""How well people are found: precision and recall on texts whose people somebody marked."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from plumbline.builders.core.errors import UserError
from plumbline.builders.datasets.counterfactuals.find_people import Span

MARK = re.compile(r"\[\[(.+?)\]\]")


class Marked(NamedTuple):
    """A text without its marks, and the people in it."""

    text: str
    people: tuple[Span, ...]


class Measured(NamedTuple):
    """How many people were found, and how many of those marked."""

    what: str
    right: int  # found and marked
    found: int
    marked: int


def read(file: Path) -> list[Marked]:
    """Read a file with a text a line and ``[[`` ``]]`` around each person."""
    if not file.is_file():
        raise UserError(f"{file}: no such file of texts with the people marked")
    texts = []
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1):
        text, people = "", []
        for at, part in enumerate(MARK.split(line)):
            if "[[" in part or "]]" in part:
                raise UserError(f"{file}, line {number}: [[ and ]] do not pair up; mend the marks")
            people += [Span(len(text), len(text) + len(part))] * (at % 2)
            text += part
        texts.append(Marked(text, tuple(people)))
    if not any(text.people for text in texts):
        raise UserError(f"{file}: nobody is marked; put [[ and ]] around people")
    return texts


def measured(
    texts: Sequence[Marked], find: Callable[[Iterable[str]], Iterator[list[Span]]]
) -> list[Measured]:
    """Count people found with the same bounds, and those that overlap at least."""
    exact, overlapping, reached, found, marked = 0, 0, 0, 0, 0
    for text, spans in zip(texts, find(text.text for text in texts), strict=True):
        pairs = [(s, p) for s in spans for p in text.people if s.start < p.end and p.start < s.end]
        exact += len(set(spans) & set(text.people))
        overlapping += len({s for s, _ in pairs})
        reached += len({p for _, p in pairs})
        found, marked = found + len(spans), marked + len(text.people)
    return [
        Measured("the whole name", exact, found, marked),
        Measured("a part of it", min(overlapping, reached), found, marked),
    ]


def summed(languages: Mapping[str, Sequence[Measured]]) -> list[Measured]:
    """Return how many whole names were found in each language, and in all."""
    rows = [whole._replace(what=language) for language, (whole, *_) in languages.items()]
    right, found, marked = (sum(n) for n in zip(*(row[1:] for row in rows), strict=True))
    return [*rows, Measured("all", right, found, marked)]


def table(rows: Iterable[Measured]) -> str:
    """Return precision and recall with 95% Wilson intervals, as Markdown."""
    lines = ["| found | precision | 95% | recall | 95% | right | found | marked |"]
    lines.append("|---|---:|---|---:|---|---:|---:|---:|")
    for what, right, *of in rows:
        cells = " | ".join("{:.3f} | {:.3f} to {:.3f}".format(*wilson(right, n)) for n in of)
        lines.append(f"| {what} | {cells} | {right} | {of[0]} | {of[1]} |")
    return "\n".join(lines)


def wilson(successes: int, trials: int) -> tuple[float, float, float]:
    """Return a proportion with its 95% score interval (Wilson 1927, JASA 22, 209-212).

    Examples
    --------
    >>> [round(x, 4) for x in wilson(81, 263)]
    [0.308, 0.2553, 0.3662]
    """
    from statsmodels.stats.proportion import proportion_confint  # slow to import

    if not trials:
        return math.nan, 0.0, 1.0
    low, high = proportion_confint(successes, trials, method="wilson")
    return successes / trials, float(low), float(high)
