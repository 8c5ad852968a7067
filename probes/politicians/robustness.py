"""Analysis ``robustness``: sensitivity of the headline numbers.

The differences of ``sentiment`` between men and women, and the shares of non-binary people, are
recomputed with other hyper-parameters, truncated lists, names matched on length and popularity,
names in the native script, other templates (frames), and halves of the names. The paper has no such
analysis.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl
from pydantic import Field

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.schema import Column
from plumbline.builders.datasets.lexica.build import SENTIMENTS
from plumbline.builders.readers.table import script_of
from plumbline.probes.politicians.words import sentiment_shares, word_counts
from plumbline.probes.politicians.words.sentiment_shares import TopWords
from plumbline.probes.politicians.words.word_counts import FEMALE, MALE, Lists, Named, by_name
from plumbline.probes.politicians.words.word_counts import NON_BINARY as OTHER
from plumbline.probes.stats.estimate import Resampling, adjusted, estimates, least_p, typed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from plumbline.probes.core.run_analysis import Inputs

    Strata = NDArray[np.int64]

DATASETS = ("politicians", "lexica")
OUTPUTS = ("associations",)
NUMBERS = ("male minus female", "non-binary")
SETTINGS = ("top_k", "top_share", "smoothing")  # for ranking words
OTHERS = ("min_count", "list length", "matched", "names", "half", "frame", "unit")
KINDS = ("default", *SETTINGS, *OTHERS)
ROBUSTNESS = word_counts.schema(
    (
        word_counts.category(
            "number",
            NUMBERS,
            "result: difference of shares, or share among the words of non-binary people",
        ),
        word_counts.category("sentiment", SENTIMENTS, "sentiment of the share"),
        word_counts.category("kind", KINDS, "varied setting"),
        Column("variation", "string", "value of the varied setting; empty for the default"),
    ),
    Column("men", "int64", "distinct names of men", minimum=0),
    Column("women", "int64", "distinct names of women", minimum=0),
    Column("non_binary", "int64", "distinct names of non-binary people", minimum=0),
    word_counts.TOP_K,
    word_counts.CANDIDATES,
    *estimates(
        cluster="name",
        method="95% symmetric Bayesian bootstrap over names",
        null="genders permuted over names, matched names within strata; a share has no test",
    ),
)
SCHEMAS = {"robustness": ROBUSTNESS}


class Params(sentiment_shares.Lexicon, Resampling):
    """The default, and settings varied one at a time."""

    top_k: list[int] = Field(min_length=1, description="numbers of words; the first is the default")
    top_share: list[float] = Field(
        min_length=1, description="largest shares of candidates; the first is the default"
    )
    smoothing: list[float] = Field(min_length=1, description="values; the first is the default")
    min_count: list[int] = Field(
        min_length=1,
        description="least numbers of names whose list has a word; the first is the default",
    )
    lengths: list[int] = Field(description="lengths of truncated lists")
    bins: int = Field(ge=2, description="bins of name length and popularity for matching")
    halves: int = Field(ge=0, description="number of random splits of the names, two rows each")

    def default(self) -> TopWords:
        """Return the default settings."""
        return TopWords.model_construct(
            **dict(self) | {name: getattr(self, name)[0] for name in SETTINGS}
        )


class Variation(NamedTuple):
    """The default or one variation."""

    kind: str
    variation: str
    lists: Named | None  # None if no word is in enough lists
    how: TopWords
    strata: Strata | None = None  # (names,) for matched names


def run(inputs: Inputs, params: Params) -> dict[str, pl.DataFrame]:
    """Compute the table ``robustness`` of one model; columns as in :data:`SCHEMAS`.

    Without words of known sentiment, numbers are null.

    Raises UserError if there are no lists.
    """
    (model,) = inputs.models
    rows: list[dict[str, Any]] = []
    for language, source, people in word_counts.sources(inputs, model):
        names = by_name(source, people, 1)
        cell = {"model": model, "language": language, "pos": source.pos}
        lexica = inputs.datasets["lexica"], language
        for varied in _variations(params, names, language, source, people) if names else ():
            key = cell | {"kind": varied.kind, "variation": varied.variation}
            rows += [key | row for row in _numbers(varied, lexica, params)]
    if not rows:
        folder = inputs.outputs("associations", model)
        raise UserError(f"{folder}: no lists there; see the config coverage for what is missing")
    # tests of one variation are a family
    table = pl.DataFrame(rows, infer_schema_length=None)
    table = adjusted(table, over=["kind", "variation"], least=least_p(params.n_permutations))
    table = word_counts.sort_by_key(table, ROBUSTNESS)
    return {"robustness": typed(table, ROBUSTNESS, params.confidence)}


def _variations(
    params: Params, everything: Named, language: str, source: Lists, people: Path
) -> Iterator[Variation]:
    """Yield the default, then the variations."""
    least, how = params.min_count[0], params.default()
    everybody = np.ones(len(everything.names), dtype=np.bool_)
    default = everything.only(everybody, least)

    def part(kind: str, variation: str, **changed: Any) -> Variation:
        lists = by_name(source._replace(**changed), people, least)
        return Variation(kind, variation, lists, how)

    yield Variation("default", "", default, how)
    for setting in SETTINGS:
        for value in getattr(params, setting)[1:]:
            changed = how.model_copy(update={setting: value})
            yield Variation(setting, f"{value:g}", default, changed)
    for count in params.min_count[1:]:
        yield Variation("min_count", str(count), everything.only(everybody, count), how)
    yield part("unit", "form", unit="form")
    for length in params.lengths:
        yield part("list length", str(length), most=(("rank", length),))
    for kind, name, chosen, strata in _names(everything, params, language, source):
        yield Variation(kind, name, everything.only(chosen, least), how, strata)
    yield part("names", "all pieces known to the model", most=(("unknown_pieces", 0),))
    for frame in word_counts.frames(source.folders[0])[1:]:
        yield part("frame", frame, frame=frame)


def _names(
    everything: Named, params: Params, language: str, source: Lists
) -> Iterator[tuple[str, str, NDArray[np.bool_], Strata | None]]:
    """Yield subsets of names: matched (with strata), in the native script, and halves."""
    genders = np.array(everything.labels)[everything.genders]
    names, popularity = everything.names["name"], everything.names["popularity"]
    length = names.str.len_chars().to_numpy().astype(np.float64)
    words = names.str.split(" ").list.len().to_numpy().astype(np.int64)
    # within a template, prompts differ only in the tokens of the name
    prompts = pl.concat(word_counts.scan(source, source.folders[0])).group_by("qid")
    pieces = everything.names.lazy().join(
        prompts.agg(pl.col("prompt_pieces").first().cast(pl.Int64)),
        on="qid",
        how="left",
        maintain_order="left",
    )
    spelt = pieces.collect()["prompt_pieces"].to_numpy()[:, None]
    popular = popularity.cast(pl.Float64).fill_null(float("nan")).to_numpy()
    size = np.stack([words, coarsened(length, params.bins)], axis=1)
    fame = coarsened(popular, params.bins)[:, None]
    for name, strata in (
        ("length", size),
        ("pieces", spelt),
        ("popularity", fame),
        ("pieces and popularity", np.hstack([spelt, fame])),
        ("length and popularity", np.hstack([size, fame])),
    ):
        chosen = matched(strata, genders, (MALE, FEMALE), params.seed)
        yield "matched", name, chosen, np.unique(strata, axis=0, return_inverse=True)[1][chosen]
    if script := script_of(language):
        foreign = names.str.contains(rf"[\p{{L}}--\p{{{script}}}]")
        yield "names", "native script alone", ~foreign.to_numpy(), None
    rng = np.random.default_rng(params.seed)
    for half in range(params.halves):
        first = rng.random(len(genders)) < 0.5
        yield "half", f"{half + 1}a", first, None
        yield "half", f"{half + 1}b", ~first, None


def _numbers(
    varied: Variation, lexica: tuple[Path, str], params: Params
) -> Iterator[dict[str, Any]]:
    """Yield the headline numbers of a ranking, None if undefined.

    ``lexica``: folder of the dataset, and language of the words.
    """
    lists, ranking, names = varied.lists, None, {}
    numbers: dict[tuple[str, str], dict[str, Any]] = {}
    if lists is not None:
        names = lists.of_gender()
        q = params.sentiments(*lexica, lists.words)
        ranking = sentiment_shares.by_pmi(lists, q, varied.how, varied.strata)
    if ranking is not None:
        for row in sentiment_shares.difference_rows(ranking, params.confidence):
            if row["test"] == "names":
                numbers[NUMBERS[0], row["sentiment"]] = row
        for row in sentiment_shares.share_rows(ranking, params.confidence):
            if row["gender"] == "non-binary":
                numbers[NUMBERS[1], row["sentiment"]] = row
    constants = {"top_k": 0, "candidates": 0} if ranking is None else ranking.sizes()
    genders = zip(("men", "women", "non_binary"), (MALE, FEMALE, OTHER), strict=True)
    constants |= {name: names.get(gender, 0) for name, gender in genders}
    for number, (s, sentiment) in product(NUMBERS, enumerate(SENTIMENTS)):
        if ranking is None or ranking.base[s]:  # else no candidate has the sentiment
            row = numbers.get((number, sentiment), {"n": 0})
            estimate = {name: row.get(name) for name in ("value", "low", "high", "n", "p")}
            yield {"number": number, "sentiment": sentiment} | constants | estimate


def coarsened(values: NDArray[np.float64], bins: int) -> NDArray[np.int64]:
    """Return the quantile bin of each value; equal values share a bin.

    ``values``: values to bin, (n,); the bin of nan is -1.

    Examples
    --------
    >>> coarsened(np.array([1.0, 1, 1, 2, 3, 4]), 2).tolist()
    [0, 0, 0, 1, 1, 1]
    """
    unknown = np.isnan(values)
    if unknown.all():
        return np.full(len(values), -1)
    edges = np.unique(np.quantile(values[~unknown], np.arange(1, bins) / bins, method="lower"))
    return np.where(unknown, -1, np.searchsorted(edges, values))


def matched(
    strata: NDArray[np.int64], groups: NDArray[np.int64], pair: tuple[int, int], seed: int
) -> NDArray[np.bool_]:
    """Return a mask of units with two groups equally frequent in every stratum.

    This is one-to-one coarsened exact matching: the larger group in each stratum is sampled down
    to the size of the smaller; units in other groups are retained.

    Iacus, King and Porro (2012), Causal inference without balance checking: coarsened exact
    matching, Political Analysis 20(1), p. 1-24.

    ``strata``: coarsened covariates, (n, k); units with equal rows match.
    ``groups``: group of each unit, (n,).

    Examples
    --------
    >>> matched(np.array([[0], [0], [0], [1]]), np.array([0, 0, 1, 1]), (0, 1), 1).sum()
    np.int64(2)
    """
    rng = np.random.default_rng(seed)
    keep = ~np.isin(groups, pair)
    distinct, stratum = np.unique(strata, axis=0, return_inverse=True)
    shuffled = rng.permutation(len(groups))
    for s in range(len(distinct)):
        members = shuffled[stratum[shuffled] == s]
        first, second = (members[groups[members] == g] for g in pair)
        size = min(len(first), len(second))
        keep[[*first[:size], *second[:size]]] = True
    return keep
