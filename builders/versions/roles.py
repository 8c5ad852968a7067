"""What the columns of a dataset mean to whoever compares two versions of it: data, no code.

A dataset without an entry is compared by its key, column by column. Outputs and tables follow from
the names of their columns, which are the same in all of them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

SIGNIFICANT = 0.05  # an adjusted p below this is what the report calls a finding


@dataclass(frozen=True)
class Sentiment:
    """A number that is the difference of two columns: how positive a word is."""

    plus: str
    minus: str

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it is made of."""
        return self.plus, self.minus

    @property
    def told(self) -> str:
        """How it is written."""
        return f"{self.plus} - {self.minus}"


@dataclass(frozen=True)
class Suggested:
    """Two lists, which engines suggested something and at which place, and what it was."""

    engines: str
    ranks: str
    within: tuple[str, ...]  # who it was said of
    text: tuple[str, ...]  # columns that make up what was said, joined by blanks

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it is made of."""
        return *self.within, *self.text, self.engines, self.ranks


@dataclass(frozen=True)
class Meaning:
    """The roles of a dataset's columns."""

    one: str = "row"
    many: str = "rows"
    shown: tuple[str, ...] = ()  # told beside the key
    first: tuple[str, ...] = ()  # columns whose every change is told, in this order
    words: dict[str, str] = field(default_factory=dict)  # what a change of a column is called
    across: bool = False  # the same key in several configs is the same thing
    instead: dict[str, str] = field(default_factory=dict)  # of a key: what names a row better
    sentiment: Sentiment | None = None
    suggested: Suggested | None = None


DATASETS = {
    "politicians": Meaning(
        "person",
        "people",
        shown=("name",),
        first=("gender", "birth_date", "birth_year", "countries", "parties", "name"),
        words={"name": "label", "birth_date": "birth date", "birth_year": "birth year"},
        across=True,
    ),
    "lexica": Meaning("word", "words", sentiment=Sentiment("q_positive", "q_negative")),
    "emotions": Meaning("word", "words", sentiment=Sentiment("positive", "negative")),
    "stereotypes": Meaning(
        "suggestion",
        "suggestions",
        suggested=Suggested("engines", "ranks", ("group",), ("query", "attribute")),
    ),
    "names": Meaning("name", "names", first=("rank", "count", "bearer")),
    "statements": Meaning("statement", "statements", first=("text", "polarity", "reversed")),
    "supersenses": Meaning("sense", "senses", first=("best", "weight")),
    "words": Meaning("word", "words", first=("count",)),
    "social_groups": Meaning("group", "groups", first=("name", "kind")),
    "labelled_texts": Meaning("text", "texts", first=("label", "split")),
    "targets": Meaning("text", "texts", first=("label", "text")),
    "downstream": Meaning("text", "texts", first=("label", "split", "group")),
    "corpora": Meaning("text", "texts", first=("leaning", "text")),
    "outlets": Meaning("article", "articles", first=("leaning",)),
    "survey": Meaning("answer", "answers", first=("answer",)),
}
# In the lists of a model a row is named by its rank; what is at it is what moves.
OUTPUTS = {
    "associations": Meaning("answer", "answers", instead={"rank": "word"}),
    "stereotypes": Meaning("answer", "answers", instead={"rank": "token"}),
    "finetuned": Meaning("answer", "answers", instead={"rank": "token"}),
}
OTHERS = {"outputs": Meaning("answer", "answers"), "tables": Meaning("estimate", "estimates")}
ESTIMATES = (  # of tables: a value and its interval
    ("value", "low", "high"),
    ("difference", "low_difference", "high_difference"),
    ("contrast", "contrast_low", "contrast_high"),
    ("jaccard", "jaccard_low", "jaccard_high"),
    ("share_first", "low_first", "high_first"),
    ("share_second", "low_second", "high_second"),
)
ADJUSTED = re.compile(r"p_(\w+_)?bh")
LOGPROBS = re.compile(r"\w+_nats")  # in outputs, a number or a list of them


def meaning(kind: str, name: str) -> Meaning:
    """Return the roles for a dataset, a probe's outputs or an analysis's tables."""
    own = {"datasets": DATASETS, "outputs": OUTPUTS}.get(kind, {})
    return own.get(name) or OTHERS.get(kind) or Meaning()
