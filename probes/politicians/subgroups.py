"""Analysis ``subgroups``: gender and sentiment in subgroups of the politicians.

Stańczak et al. (2023), Figures 7 to 9, compare three subgroups with all other people: native
speakers of the language of the names, the most popular people, and people born after a date. The
paper reports neither intervals over names nor permutation tests.
"""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl
from pydantic import Field
from scipy.special import ndtri

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.schema import Column, Schema
from plumbline.builders.datasets.lexica.build import SENTIMENTS
from plumbline.builders.datasets.politicians.person import GENDERS
from plumbline.builders.datasets.words.build import POS
from plumbline.probes.politicians.words import word_counts
from plumbline.probes.politicians.words.sentiment_shares import TopWords, tested
from plumbline.probes.politicians.words.word_counts import FEMALE, MALE, category, schema
from plumbline.probes.stats.estimate import TESTED_ERROR, estimates, least_p
from plumbline.probes.stats.intervals import DIGITS, rank_correlations
from plumbline.probes.stats.pmi import pmi, smoothed
from plumbline.probes.stats.shares import shares
from plumbline.probes.stats.tests import permutation_p

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from plumbline.probes.core.run_analysis import Inputs

    # observed and bootstrap values; for tests, observed and permuted values for distinct names
    Four = list[NDArray[np.float64]]

DATASETS = ("politicians", "lexica")
OUTPUTS = ("associations",)
PAIRS = (("native", "foreign"), ("popular", "other"), ("older", "younger"))
SUBGROUPS = tuple(name for pair in PAIRS for name in pair)
AGAINST = " against "
LEAST_WORDS = 4  # minimum number of words for a rank correlation
CONTRASTS = (*SUBGROUPS, *map(AGAINST.join, PAIRS))
SUBGROUP = category("subgroup", SUBGROUPS, "subgroup of the people")
CONTRAST = category(
    "contrast",
    CONTRASTS,
    "for one subgroup, female minus male; for two, this difference in the first minus that in the "
    "second, or the agreement of both",
)
ESTIMATES = {"cluster": "name", "method": "95% symmetric Bayesian bootstrap over names"}
TESTED = estimates(**ESTIMATES, null="genders permuted over names within each subgroup")
SCHEMAS = {
    "people": Schema(
        (
            word_counts.MODEL,
            word_counts.LANGUAGE,
            SUBGROUP,
            word_counts.GENDER,
            Column("people", "int64", "number of people of this gender in the subgroup", minimum=0),
        ),
        ("language", "subgroup", "gender"),
    ),
    "shares": schema(
        (SUBGROUP, word_counts.GENDER, word_counts.SENTIMENT),
        word_counts.TOP_K,
        word_counts.CANDIDATES,
        *estimates(**ESTIMATES),
    ),
    "differences": schema((CONTRAST, word_counts.SENTIMENT), *TESTED),
    "agreement": schema((CONTRAST,), *TESTED),
}


class Params(TopWords):
    """Definitions of subgroups, numbers of words, and settings of intervals and tests."""

    top_sitelinks: int = Field(
        ge=1,
        description="number of popular people: those with the most sitelinks or, if "
        "available, mentions; at most half of all people",
    )
    born_after: date = Field(description="earliest date of birth of younger people")
    min_count: int = Field(ge=1, description="minimum number of a subgroup's lists with a word")
    min_people: int = Field(ge=1, description="minimum number of men, and of women, in a subgroup")


class Part(NamedTuple):
    """Deviations of words for one subgroup and part of speech."""

    counts: word_counts.Counts
    words: list[str]  # candidate words
    classes: NDArray[np.int64] | None  # (words,): sentiments; None if all are unknown
    size: int  # number of selected words
    deviations: Four  # (replicates, groups, words)

    def shares(self) -> Four:
        """Return shares among the selected words, of shape (replicates, groups, sentiments)."""
        assert self.classes is not None
        rounded = (np.round(values, DIGITS) for values in self.deviations)
        return [shares(values, self.classes, self.size, len(SENTIMENTS)) for values in rounded]

    def apart(self, values: Four) -> Four:
        """Return the values for women minus those for men; groups are on axis -2."""
        female, male = np.searchsorted(self.counts.genders, (FEMALE, MALE))
        return [x[..., female, :] - x[..., male, :] for x in values]


def run(inputs: Inputs, params: Params) -> dict[str, pl.DataFrame]:
    """Compute the tables of one model; their columns are defined in :data:`SCHEMAS`.

    ``shares`` and ``differences`` are omitted if no word has a known sentiment.

    Raises UserError if no subgroup has enough people and words.
    """
    (model,) = inputs.models
    tables: dict[str, list[pl.DataFrame]] = {name: [] for name in SCHEMAS}
    for language, source, path in word_counts.sources(inputs, model):
        people = pl.read_parquet(path)
        members = subgroups(people, params)
        if source.pos == POS[0]:
            table = _people(people, members).with_columns(language=pl.lit(language))
            tables["people"].append(table)
        parts = {}
        for number, (name, qids) in enumerate(members.items()):
            chosen = pl.col("qid").is_in(qids.implode())
            counts = word_counts.count(source, word_counts.read_people(path, chosen))
            if part := _part(counts, inputs.datasets["lexica"], language, number, params):
                parts[name] = part
        cell = {"language": pl.lit(language), "pos": pl.lit(source.pos)}
        for name, table in _compared(parts, params):
            tables[name].append(table.with_columns(**cell))
    if not tables["shares"] and not tables["agreement"]:
        raise UserError(
            f"{inputs.outputs('associations', model)}: no subgroup has {params.min_people} men, as "
            f"many women, and a word in at least {params.min_count} lists; lower min_people or "
            "min_count under analysis.subgroups"
        )
    how = params.confidence, (), least_p(params.n_permutations)  # each table's tests form a family
    return {
        name: word_counts.table_of(SCHEMAS[name], parts, *how, model=model)
        for name, parts in tables.items()
        if parts
    }


def subgroups(people: pl.DataFrame, params: Params) -> dict[str, pl.Series]:
    """Return the Wikidata items of the people in each subgroup.

    People whose citizenship implies no native language are neither native nor foreign, and people
    with unknown sitelinks or mentions are not popular. Ties in popularity are broken by the lower
    item number.
    """
    order = [pl.col("popularity").fill_null(-1), word_counts.ITEM]
    ranked = people.sort(order, descending=[True, False])
    best = min(params.top_sitelinks, len(people) // 2)
    return {
        "native": people.filter(pl.col("native"))["qid"],
        "foreign": people.filter(~pl.col("native"))["qid"],
        "popular": ranked["qid"][:best],
        "other": ranked["qid"][best:],
        "older": people.filter(pl.col("birth_date") < params.born_after)["qid"],
        "younger": people.filter(pl.col("birth_date") >= params.born_after)["qid"],
    }


def _people(people: pl.DataFrame, members: dict[str, pl.Series]) -> pl.DataFrame:
    """Return the number of people by subgroup and gender."""
    numbers = [
        (name, gender, len(people.filter(pl.col("qid").is_in(qids.implode()), gender=code)))
        for name, qids in members.items()
        for code, gender in enumerate(GENDERS)
    ]
    return pl.DataFrame(numbers, schema=["subgroup", "gender", "people"], orient="row")


def _part(
    counts: word_counts.Counts, lexica: Path, language: str, number: int, params: Params
) -> Part | None:
    """Resample and permute a subgroup's lists; return None if people or words are too few."""
    people = dict(zip(counts.genders.tolist(), counts.people.tolist(), strict=True))
    if min(people.get(MALE, 0), people.get(FEMALE, 0)) < params.min_people:
        return None
    chosen = counts.common(params.min_count)
    q = params.sentiments(lexica, language, counts.words[chosen])
    has_q, classes = ~np.isnan(q).any(axis=1), None
    if has_q.any():
        chosen, classes = chosen[has_q], params.classes(q[has_q], language)
    if not len(chosen):
        return None
    draws = word_counts.bootstrap_counts(counts, chosen, params.n_bootstrap, params.seed)
    replicates = smoothed(draws.bayesian, params.smoothing, [params.seed, number], draws.merged)
    pair, size = (MALE, FEMALE), params.n_permutations
    null = word_counts.permute_counts(counts, chosen, pair, size, params.seed)

    def deviations(cells: NDArray[Any], smoothing: float = params.smoothing) -> NDArray[np.float64]:
        values = pmi(np.moveaxis(cells, -1, 0), smoothing, draws.merged)
        return np.swapaxes(values[:, : len(chosen)], 1, 2)

    seen, distinct = (
        pmi(table.astype(np.float64), params.smoothing)[chosen].T[None]
        for table in (counts.lists, counts.distinct)
    )
    four = [seen, deviations(replicates, 0.0), distinct, deviations(null)]
    words = counts.words["word"][chosen].to_list()
    return Part(counts, words, classes, params.size(len(chosen)), four)


def _compared(parts: dict[str, Part], params: Params) -> Iterator[tuple[str, pl.DataFrame]]:
    """Yield pairs of table name and rows for one language and part of speech."""
    classes = {name: part.classes for name, part in parts.items() if part.classes is not None}
    shares_of = {name: parts[name].shares() for name in classes}
    for name, (seen, replicates, *_) in shares_of.items():
        part = parts[name]
        axes = {"gender": [GENDERS[g] for g in part.counts.genders], "sentiment": SENTIMENTS}
        key: dict[str, Any] = {"subgroup": name, "top_k": part.size, "candidates": len(part.words)}
        table = _rows(axes, seen, replicates, [part], params, 0.0, **key)
        yield "shares", _with_sentiment(table, classes[name])
    gaps = {name: parts[name].apart(four) for name, four in shares_of.items()}
    for contrast in CONTRASTS:
        names = contrast.split(AGAINST)
        if set(names) <= set(gaps):
            gap = gaps[names[0]]
            for name in names[1:]:
                gap = [a - b for a, b in zip(gap, gaps[name], strict=True)]
            compared, most = [parts[name] for name in names], float(len(names))
            pooled = np.concatenate([classes[name] for name in names])
            selective = all(part.size < len(part.words) for part in compared)
            possible = np.isin(np.arange(len(SENTIMENTS)), tested(np.bincount(pooled))) & selective
            p = np.where(possible, _p(gap), np.nan)
            axes = {"sentiment": SENTIMENTS}
            table = _rows(
                axes, gap[0], gap[1], compared, params, -most, most, p=p, contrast=contrast
            )
            yield "differences", _with_sentiment(table, pooled)
    for pair in PAIRS:
        if not set(pair) <= set(parts):
            continue
        compared = [parts[name] for name in pair]
        words, *rows = np.intersect1d(compared[0].words, compared[1].words, return_indices=True)
        if len(words) < LEAST_WORDS:
            continue
        values = (
            part.apart([x[..., columns] for x in part.deviations])
            for part, columns in zip(compared, rows, strict=True)
        )
        rho = [rank_correlations(a, b)[:, None] for a, b in zip(*values, strict=True)]
        if np.isfinite(rho[0]).all() and np.isfinite(rho[2]).all():
            axes = {"contrast": [AGAINST.join(pair)]}
            yield "agreement", _rows(axes, rho[0], rho[1], compared, params, p=_p(rho))


def _with_sentiment(table: pl.DataFrame, classes: NDArray[np.int64]) -> pl.DataFrame:
    """Return the rows of sentiments that occur in ``classes``."""
    return table.filter(pl.col("sentiment").is_in([SENTIMENTS[s] for s in np.unique(classes)]))


def _p(four: Four) -> NDArray[np.float64]:
    """Return p-values from statistics for distinct names under permuted genders."""
    (value,), null = four[2:]
    return permutation_p(value, np.moveaxis(null, 0, -1))


def _rows(
    axes: dict[str, Any],
    seen: NDArray[np.float64],
    replicates: NDArray[np.float64],
    parts: list[Part],
    params: Params,
    least: float = -1.0,
    most: float = 1.0,
    **more: Any,
) -> pl.DataFrame:
    """Return a row with its interval for each cell.

    Words are ranked again in each replicate, which is noisier than the data, so replicates are
    biased towards 0. The interval is therefore symmetric; see
    :func:`plumbline.probes.stats.shares.symmetric`.

    ``least``, ``most``: bounds of the values.
    """
    (value,) = seen
    half = np.nanquantile(np.abs(replicates - value), params.confidence, axis=0)
    return word_counts.rows_of(
        axes,
        (value, np.maximum(least, value - half), np.minimum(most, value + half)),
        n=sum(part.counts.clusters for part in parts),
        # unlike the interval, the standard error is not truncated at the bounds of the scale
        reach=most,
        **{TESTED_ERROR: half / ndtri((1 + params.confidence) / 2)},
        **more,
    )
