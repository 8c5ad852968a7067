"""Lists from the probe ``completions``, ranked by typicality, and resampling of groups.

Typicality is the logarithm of P(word | group) / P(word | group masked), in nats: Choenni et al.
(2021), equation 3, computed in the variants :data:`READINGS`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import polars as pl
from pydantic import Field

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.params import Params
from plumbline.builders.core.schema import Column, Schema
from plumbline.probes.stats.bootstrap import bits, keys, poisson

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from plumbline.probes.stats.estimate import Bootstrap

VOCABULARY = "vocabulary"  # folder of the outputs that is not a language
SCORES = {  # nats
    "probability": pl.col("logprob_nats"),
    "faithful": pl.col("logprob_top_nats") - pl.col("prior_released_nats"),
    "corrected": pl.col("logprob_nats") - pl.col("prior_nats"),
    "corrected_one": pl.col("logprob_nats") - pl.col("prior_one_nats"),
}
READINGS = tuple(SCORES)
WHOLE = ("corrected", "corrected_one")  # rankings that exclude parts of longer words
BYTE_LEVEL_SPACE, PIECE = "Ġ", "##"  # prefixes of tokens in GPT-2 and in WordPiece
GROUP = ("category", "group")
LIST = (*GROUP, "query")  # columns that identify a list
EVERY = "all"  # all categories
MEAN = "mean of categories"  # unweighted mean
Reading = Literal["probability", "faithful", "corrected", "corrected_one"]


def number(name: str, description: str) -> Column:
    """Return a column of numbers that may be null."""
    return Column(name, "float64", description, nullable=True)


# columns that occur in several tables of the study
MODEL = Column("model", "string", "name of the model in params.yaml")
LANGUAGE = Column("language", "string", "language of the lists")
READING, RANKING = (
    Column(name, "category", "score by which lists are ranked", labels=READINGS)
    for name in ("reading", "ranking")
)
TOP_K = Column("top_k", "int64", "number of words taken from each template's list", minimum=1)
CATEGORY = Column("category", "string", f"category of social groups, {EVERY}, or {MEAN}")
LIMITS = (
    number("low_difference", "lower end of the interval of `difference`"),
    number("high_difference", "upper end of the interval of `difference`"),
)


class GroupTests(Params):
    """Settings for intervals over groups and for permutation tests."""

    version: str = Field(pattern=r"^\d+\.\d+\.\d+$", description="version of the tables")
    n_permutations: int = Field(999, ge=99, description="permutations in tests that are not exact")
    confidence: float = Field(0.95, gt=0.5, lt=1, description="level of the intervals")
    seed: int = Field(1, ge=0, description="seed of the permutations")


def group_weights(units: Sequence[str], params: Bootstrap) -> NDArray[np.float32]:
    """Return bootstrap weights of groups or words, of shape (units, replicates)."""
    return poisson(bits(keys(units), params.n_bootstrap, params.seed))


def with_constants(table: pl.DataFrame, values: Mapping[str, Any]) -> pl.DataFrame:
    """Add columns that contain the same value in all rows."""
    return table.with_columns(pl.lit(value).alias(name) for name, value in values.items())


def sort_by_key(table: pl.DataFrame, schema: Schema, *columns: str) -> pl.DataFrame:
    """Sort by the key or by given columns; labels are sorted in the order of the schema."""
    keys = (schema[name] for name in columns or schema.key)
    return table.sort(
        pl.col(key.name).cast(pl.Enum(key.labels)) if key.labels else key.name for key in keys
    )


def languages(outputs: Path) -> list[str]:
    """Return the languages in a model's outputs."""
    return sorted(p.name for p in outputs.iterdir() if p.is_dir() and p.name != VOCABULARY)


def read_lists(folder: Path) -> pl.DataFrame:
    """Return the normalised lists of one language; raise UserError if there are none."""
    files = sorted(folder.glob("*.parquet"))
    table = pl.concat([pl.read_parquet(f) for f in files]) if files else pl.DataFrame()
    if table.is_empty():
        raise UserError(f"{folder}: contains no lists; run `make repro STAGE=completions` again")
    return normalise(table)


def normalise(table: pl.DataFrame) -> pl.DataFrame:
    """Sort lists, and add the columns ``key`` (the casefolded word) and ``string``.

    ``string`` is the string that the released code compares: the decoded token, including a leading
    space in byte-level vocabularies and the prefix of word parts in WordPiece.
    """
    token, word = pl.col("token"), pl.col("word")
    behind = pl.when(token.str.starts_with(BYTE_LEVEL_SPACE)).then(" " + word)
    decoded = behind.when(token.str.starts_with(PIECE)).then(token).otherwise(word)
    table = table.with_columns(key=casefold("word"), string=decoded)
    return table.sort(*LIST, "rank")


def casefold(column: str) -> pl.Expr:
    """Return words, stripped and casefolded for comparison."""
    return pl.col(column).map_batches(
        lambda words: pl.Series([str(w).strip().casefold() for w in words], dtype=pl.String),
        return_dtype=pl.String,
    )


def readings(table: pl.DataFrame) -> list[str]:
    """Return the names of the rankings whose scores are complete."""
    nulls = table.select(score.has_nulls().alias(name) for name, score in SCORES.items())
    return [name for name in READINGS if not nulls[name].item()]


def rank_words(table: pl.DataFrame, reading: str) -> pl.DataFrame:
    """Add ``score`` and ``place``, its rank in the list from 1; ``rank`` breaks ties.

    In the rankings :data:`WHOLE`, parts of words are excluded, and ``key`` is the casefolded word.
    Other rankings include them, as in the released code, and ``key`` is the stripped string.
    """
    exact = pl.col("string").str.strip_chars()
    words = table.filter("starts_word") if reading in WHOLE else table.with_columns(key=exact)
    order = [*LIST, "score", "rank"]
    ranked = words.with_columns(score=SCORES[reading]).sort(
        order, descending=[name == "score" for name in order]
    )
    return ranked.with_columns(place=pl.int_range(1, pl.len() + 1).over(LIST))


def top_words(ranked: pl.DataFrame, k: int, reading: str) -> pl.DataFrame:
    """Return the distinct words among the first ``k`` in any list of a group.

    The sorted columns are category, group, ``key`` (the casefolded word) and ``strings``, its
    count: 1 in the rankings :data:`WHOLE`, else the number of spellings ("Bad", "bad"), as in the
    released code.
    """
    keys = [*LIST[:2], "key"]
    first = ranked.filter(pl.col("place") <= k)
    once = pl.lit(1) if reading in WHOLE else pl.col("string").n_unique()
    words = first.with_columns(key=casefold("string")) if reading not in WHOLE else first
    return words.group_by(keys).agg(strings=once.cast(pl.Int64)).sort(keys)
