"""A combined lexicon published by its authors.

Hoyle et al. (2019) release their model's posteriors for 53,683 English words, as parameters of
Dirichlet distributions; Stańczak et al. (2023) use these for English unchanged.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, Literal

from pydantic import Field, model_validator

from plumbline.builders.core.parquet import Reject, Row
from plumbline.builders.datasets.lexica.formats import AXES, normal
from plumbline.builders.readers.declared import Terms
from plumbline.builders.readers.spelling import decimal
from plumbline.builders.readers.table import decoded, records

PUBLISHED = "published"  # name of the config
OF = "en"  # language of the lexicon
FILE = f"{PUBLISHED}/lexicon.csv"
GRID = 2.0**-12  # beta is rounded to multiples of this value, so that its sum is exact
NEAR = 0.01  # maximum distance of the number of views, in single precision, from an integer


class Published(Terms):
    """A file of words and the parameters of their Dirichlet distributions."""

    lexicon: str = Field(description="address or path of a CSV file with a header")
    word: str = Field("", description="column of the words")
    betas: dict[Literal["positive", "negative", "neutral"], str] = Field(
        description="column of each of the three parameters"
    )

    @model_validator(mode="after")
    def _whole(self) -> Published:
        if set(self.betas) != set(AXES):
            raise ValueError("betas: needs columns for positive, negative and neutral")
        return self

    def read(self, body: bytes) -> Iterator[tuple[str, list[float]]]:
        """Yield each normalised word, and its beta for positive, negative and neutral."""
        columns = {"word": self.word} | self.betas
        for line, row in records(decoded(body, complete=True), columns):
            beta = [number for axis in AXES if (number := decimal(row[axis])) is not None]
            if len(beta) < len(AXES):
                raise ValueError(f"line {line}: not three numbers")
            yield normal(row["word"]), beta


def rows(body: bytes, published: Published) -> Iterator[Row | Reject]:
    """Yield one row per word, sorted.

    If words differ only in case, the one in the most lexica is retained. The sum of beta minus 3,
    the prior's sum, is the number of lexica that list the word; their names are not published.
    """
    betas: dict[str, list[float]] = {}
    for word, beta in published.read(body):
        views = sum(beta) - 3
        sound = min(beta) >= 1 - NEAR and views > NEAR and abs(views - round(views)) < NEAR
        if not word or not sound:
            yield Reject(PUBLISHED, word, "no word, or no mass of whole lexica")
            continue
        if word in betas:
            yield Reject(PUBLISHED, word, "the same word in another case")
        if word not in betas or sum(beta) > sum(betas[word]) + NEAR:
            betas[word] = beta
    for word, beta in sorted(betas.items()):
        two = [max(1.0, math.floor(b / GRID) * GRID) for b in beta[:2]]
        values = word_row(word, two, round(sum(beta)) - 3)
        values["score"] = round(values["q_positive"] - values["q_negative"], 6)
        yield Row(PUBLISHED, values | {"redistributable": published.redistribute})


def word_row(word: str, two: Sequence[float], views: int) -> dict[str, Any]:
    """Return a row that contains beta and q; neutral receives the remaining mass."""
    mass = views + 3.0
    shares = dict(zip(AXES, [*two, mass - sum(two)], strict=True))
    return {
        "word": word,
        **{f"beta_{axis}": beta for axis, beta in shares.items()},
        **{f"q_{axis}": beta / mass for axis, beta in shares.items()},
        "views": views,
        **dict.fromkeys(("seed_sd", "leave_out_change")),
        **{name: [] for name in ("pos", "view_names", "view_values", "view_scores")},
    }
