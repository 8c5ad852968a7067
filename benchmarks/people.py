"""Measure precision and recall of finding people in texts with marked people.

    python benchmarks/people.py data/samples/facts/persons

The argument is a file with one text per line and ``[[ ]]`` around each person, or a folder of such
files, LANGUAGE.txt; the validated dataset ``names`` is needed. A name counts as found only if it is
complete. The script prints proportions with 95% Wilson intervals as Markdown.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from statsmodels.stats.proportion import proportion_confint

from plumbline.builders.core.params import section
from plumbline.builders.core.parquet import require_validated
from plumbline.builders.datasets.counterfactuals import build as counterfactuals
from plumbline.builders.datasets.counterfactuals.find_people import Span, finder, small_words
from plumbline.builders.readers import gazetteer

MARK = re.compile(r"\[\[(.+?)\]\]")


class Marked(NamedTuple):
    """A text without its marks, and the people marked in it."""

    text: str
    people: tuple[Span, ...]


def read(file: Path) -> list[Marked]:
    texts = []
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1):
        text, people = "", []
        for at, part in enumerate(MARK.split(line)):
            if "[[" in part or "]]" in part:
                raise ValueError(f"{file}, line {number}: [[ and ]] do not pair up")
            people += [Span(len(text), len(text) + len(part))] * (at % 2)
            text += part
        texts.append(Marked(text, tuple(people)))
    return texts


def count(
    texts: Sequence[Marked], find: Callable[[Iterable[str]], Iterator[list[Span]]]
) -> tuple[int, int, int]:
    """Return the numbers of people found correctly, found, and marked."""
    pairs = list(zip(texts, find(text.text for text in texts), strict=True))
    right = sum(len({*spans} & {*text.people}) for text, spans in pairs)
    return right, sum(len(spans) for _, spans in pairs), sum(len(t.people) for t in texts)


def share(successes: int, trials: int) -> str:
    low, high = proportion_confint(successes, trials, method="wilson") if trials else (0.0, 1.0)
    return f"{successes / trials if trials else math.nan:.3f} | {low:.3f} to {high:.3f}"


def main(where: Path) -> None:
    params = section("derived.counterfactuals", counterfactuals.Params)
    known = gazetteer.load(require_validated("names"))
    rows = []
    for file in sorted(where.glob("*.txt")) or [where]:
        language = file.stem if where.is_dir() else "en"
        texts = read(file)
        small = small_words(text.text for text in texts)
        rows.append((language, *count(texts, finder(params.people, known, language, small))))
    if len(rows) > 1:
        rows.append(("all", *map(sum, list(zip(*rows, strict=True))[1:])))
    print("| found | precision | 95% | recall | 95% | right | found | marked |")
    print("|---|---:|---|---:|---|---:|---:|---:|")
    for what, right, found, marked in rows:
        shares = f"{share(right, found)} | {share(right, marked)}"
        print(f"| {what} | {shares} | {right} | {found} | {marked} |")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
