"""Analysis ``robustness``: which headline numbers move, and with what.

The differences of ``sentiment`` between men and women, and the shares of non-binary people, are
computed anew with other settings and among other names: hyper-parameters, lists cut shorter, names
matched on length and popularity, names in the language's own script, other frames, halves of the
names. Stańczak et al. (2023) have nothing of it.
"""

from __future__ import annotations

import math
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from pydantic import Field

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.schema import Column
from plumbline.builders.datasets.lexica.build import SENTIMENTS
from plumbline.builders.datasets.politicians.script import script_of
from plumbline.probes.politicians.words import columns, sentiment_shares
from plumbline.probes.politicians.words.columns import FEMALE, MALE
from plumbline.probes.politicians.words.columns import NON_BINARY as OTHER
from plumbline.probes.politicians.words.matching import coarsened, matched
from plumbline.probes.politicians.words.sentiment_shares import Ranking, TopWords
from plumbline.probes.politicians.words.word_counts import (
    Lists,
    Named,
    by_name,
    frames,
    read_pieces,
    sources,
)
from plumbline.probes.stats.estimate import (
    Estimate,
    Resampling,
    adjusted,
    estimates,
    least_p,
    typed,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from plumbline.probes.core.run_analysis import Inputs

DATASETS = ("politicians", "lexica")
OUTPUTS = ("associations",)
NUMBERS = ("male minus female", "non-binary")
KINDS = (
    "default",
    "top_k",
    "top_share",
    "smoothing",
    "min_count",
    "list length",
    "matched",
    "names",
    "half",
    "frame",
    "unit",
)
SETTINGS = ("top_k", "top_share", "smoothing")  # of how words are ranked
ROBUSTNESS = columns.schema(
    "language pos number sentiment kind variation",
    *columns.PLACE,
    Column(
        "number",
        "category",
        "headline number: difference of shares, or share among the words of non-binary people",
        labels=NUMBERS,
    ),
    Column("sentiment", "category", "of which sentiment", labels=SENTIMENTS),
    Column("kind", "category", "what is varied", labels=KINDS),
    Column("variation", "string", "how it is varied; empty for the default"),
    Column("men", "int64", "distinct names of men", minimum=0),
    Column("women", "int64", "distinct names of women", minimum=0),
    Column("non_binary", "int64", "distinct names of non-binary people", minimum=0),
    columns.TOP_K,
    columns.CANDIDATES,
    *estimates(
        cluster="name",
        method="95% symmetric Bayesian bootstrap over names",
        null="genders permuted over names, of matched names within their stratum; a share has no "
        "test",
    ),
    Column("change", "float64", "value minus that of the default", nullable=True),
)
SCHEMAS = {"robustness": ROBUSTNESS}
NOTHING = Estimate(math.nan, math.nan, math.nan, 0).row()


class Params(sentiment_shares.Lexicon, Resampling):
    """The default, and what is varied, one thing at a time."""

    top_k: list[int] = Field(min_length=1, description="words taken; the first is the default")
    top_share: list[float] = Field(
        min_length=1, description="most of all candidates; the first is the default"
    )
    smoothing: list[float] = Field(min_length=1, description="the first is the default")
    min_count: list[int] = Field(
        min_length=1, description="names in whose list a word must be; the first is the default"
    )
    lengths: list[int] = Field(description="lists cut to so many words")
    bins: int = Field(ge=2, description="bins of name length and popularity, for matching")
    halves: int = Field(ge=0, description="random halvings of the names, two rows each")

    def default(self) -> TopWords:
        """Return the default of what is varied, and what is not."""
        return TopWords.model_construct(
            **dict(self) | {name: getattr(self, name)[0] for name in SETTINGS}
        )


def run(inputs: Inputs, params: Params) -> dict[str, pl.DataFrame]:
    """Compute the table ``robustness`` of one model; columns as in :data:`SCHEMAS`.

    Where no word has a known sentiment its numbers are null.

    Raises UserError if there are no lists.
    """
    (model,) = inputs.models
    lexica = inputs.datasets["lexica"]
    rows: list[dict[str, Any]] = []
    for language, source, people in sources(inputs, model):
        whole = by_name(source, people, 1)
        if whole is None:
            continue
        for kind, name, lists, how, strata in _variations(params, whole, language, source, people):
            place = {"model": model, "language": language, "pos": source.pos}
            place |= {"kind": kind, "variation": name}
            names, ranking = {}, None
            if lists is not None:
                names = lists.of_gender()
                spelt = (lists.words[name] for name in ("word", "lemma", "form"))
                q = sentiment_shares.of_words(lexica, params.config(lexica, language), *spelt)
                ranking = sentiment_shares.by_pmi(lists, q, how, strata)
            rows += [place | row for row in _numbers(ranking, names, params)]
    if not rows:
        folder = inputs.outputs("associations", model)
        raise UserError(f"{folder}: no lists there; see the config coverage for what is missing")
    table = pl.DataFrame(rows, infer_schema_length=None)
    table = _compared(table, least_p(params.n_permutations))
    return {"robustness": typed(table, ROBUSTNESS, params.confidence)}


def _variations(
    params: Params, whole: Named, language: str, source: Lists, people: Path
) -> Iterator[tuple[str, str, Named | None, TopWords, NDArray[np.int64] | None]]:
    """Yield the default, then one change of it at a time; of matched names also their strata."""
    least, how = params.min_count[0], params.default()

    def only(kept: NDArray[np.bool_], least: int = least) -> Named | None:
        part = whole.only(kept, least) if kept.any() else None
        return part if part is not None and len(part.words) else None

    def part(**changed: Any) -> Named | None:
        return by_name(source._replace(**changed), people, least)

    everybody = np.ones(len(whole.names), dtype=np.bool_)
    default = only(everybody)
    yield "default", "", default, how, None
    for setting in SETTINGS:
        for value in getattr(params, setting)[1:]:
            yield setting, f"{value:g}", default, how.model_copy(update={setting: value}), None
    for count in params.min_count[1:]:
        yield "min_count", str(count), only(everybody, count), how, None
    yield "unit", "form", part(unit="form"), how, None
    for length in params.lengths:
        yield "list length", str(length), part(most=(("rank", length),)), how, None
    for kind, name, kept, strata in _names(whole, params, language, source):
        yield kind, name, only(kept), how, None if strata is None else strata[kept]
    yield "names", "all pieces known to the model", part(most=(("unknown_pieces", 0),)), how, None
    for frame in frames(source.folders[0])[1:]:
        yield "frame", frame, part(frame=frame), how, None


def _names(
    whole: Named, params: Params, language: str, source: Lists
) -> Iterator[tuple[str, str, NDArray[np.bool_], NDArray[np.int64] | None]]:
    """Yield subsets of the names: matched, with the stratum of each name; native script; halves."""
    genders = np.array(whole.labels)[whole.genders]
    length = whole.names["name"].str.len_chars().to_numpy().astype(np.float64)
    words = whole.names["name"].str.split(" ").list.len().to_numpy().astype(np.int64)
    spelt = read_pieces(source, whole.names)[:, None]
    popular = whole.names["popularity"].cast(pl.Float64).fill_null(float("nan")).to_numpy()
    size = np.stack([words, coarsened(length, params.bins)], axis=1)
    fame = coarsened(popular, params.bins)[:, None]
    for name, strata in (
        ("length", size),
        ("pieces", spelt),
        ("popularity", fame),
        ("pieces and popularity", np.hstack([spelt, fame])),
        ("length and popularity", np.hstack([size, fame])),
    ):
        kept = matched(strata, genders, (MALE, FEMALE), params.seed)
        yield "matched", name, kept, np.unique(strata, axis=0, return_inverse=True)[1]
    if script := script_of(language):
        foreign = whole.names["name"].str.contains(rf"[\p{{L}}--\p{{{script}}}]")
        yield "names", "native script alone", ~foreign.to_numpy(), None
    rng = np.random.default_rng(params.seed)
    for half in range(params.halves):
        first = rng.random(len(genders)) < 0.5
        yield "half", f"{half + 1}a", first, None
        yield "half", f"{half + 1}b", ~first, None


def _numbers(
    ranking: Ranking | None, names: dict[int, int], params: Params
) -> Iterator[dict[str, Any]]:
    """Yield the headline numbers of a ranking; without a number where there is none.

    ``names``: distinct names of each gender.
    """
    sizes = {"top_k": 0, "candidates": 0} if ranking is None else ranking.sizes()
    genders = zip(("men", "women", "non_binary"), (MALE, FEMALE, OTHER), strict=True)
    sizes |= {name: names.get(gender, 0) for name, gender in genders}
    found = {}
    if ranking is not None:
        for row in sentiment_shares.difference_rows(ranking, params.confidence):
            if row["test"] == "names":
                found[NUMBERS[0], row["sentiment"]] = row
        for row in sentiment_shares.share_rows(ranking, params.confidence):
            if row["gender"] == "non-binary":
                found[NUMBERS[1], row["sentiment"]] = row
    for number, (s, sentiment) in product(NUMBERS, enumerate(SENTIMENTS)):
        if ranking is None or ranking.base[s]:  # else no candidate has it
            row = NOTHING | found.get((number, sentiment), {})
            numbers = {name: row[name] for name in NOTHING}
            yield {"number": number, "sentiment": sentiment} | sizes | numbers


def _compared(rows: pl.DataFrame, least: float) -> pl.DataFrame:
    """Add the change from the default, and p adjusted over languages, parts of speech, sentiments.

    A variation is one analysis of everything, and its tests one family.
    """
    numbers = pl.col("value", "low", "high", "p").cast(pl.Float64)  # may be all null
    keys = ["language", "pos", "number", "sentiment"]
    rows = rows.with_columns(numbers)
    default = rows.filter(kind="default").select(*keys, default="value")
    rows = adjusted(rows, over=["kind", "variation"], least=least).join(default, on=keys)
    rows = rows.with_columns(change=(pl.col("value") - pl.col("default")).round(6))
    return columns.sort_by_key(rows, ROBUSTNESS)
