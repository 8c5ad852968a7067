"""Analysis ``subgroups``: gender and sentiment among parts of the politicians.

Stańczak et al. (2023), figures 7 to 9: people whose native language is that of the names, the most
popular ones, and those born before and from a day on; each beside all others, with the number of
people, intervals over names and permutation tests that the paper does not have.
"""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl
from pydantic import Field
from scipy.special import ndtri

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.schema import Column
from plumbline.builders.datasets.lexica.build import SENTIMENTS
from plumbline.builders.datasets.politicians.person import GENDERS
from plumbline.builders.datasets.words.build import POS
from plumbline.probes.politicians.words import columns, word_counts
from plumbline.probes.politicians.words.columns import FEMALE, MALE
from plumbline.probes.politicians.words.resample_counts import bootstrap_counts, permute_counts
from plumbline.probes.politicians.words.sentiment_shares import TopWords, argmax, of_words, tested
from plumbline.probes.stats.estimate import LEVEL, TESTED_ERROR, estimates, least_p
from plumbline.probes.stats.intervals import DIGITS, rank_correlations
from plumbline.probes.stats.pmi import pmi, smoothed
from plumbline.probes.stats.shares import shares
from plumbline.probes.stats.tests import permutation_p

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from plumbline.probes.core.run_analysis import Inputs

    # as seen, in bootstrap replicates; over distinct names, which the tests go by, and permuted
    Four = list[NDArray[np.float64]]

DATASETS = ("politicians", "lexica")
OUTPUTS = ("associations",)
PAIRS = (("native", "foreign"), ("popular", "other"), ("older", "younger"))
SUBGROUPS = tuple(name for pair in PAIRS for name in pair)
AGAINST = " against "
CONTRASTS = (*SUBGROUPS, *map(AGAINST.join, PAIRS))
SUBGROUP = Column("subgroup", "category", "part of the people", labels=SUBGROUPS)
ESTIMATES = {
    "cluster": "name",
    "method": "95% symmetric Bayesian bootstrap over names",
}
NULL = "genders permuted over the names of the subgroup, or of either one"
PEOPLE = columns.schema(
    "language subgroup gender",
    columns.MODEL,
    columns.LANGUAGE,
    SUBGROUP,
    columns.GENDER,
    Column("people", "int64", "people of this gender in the subgroup", minimum=0),
    Column("names", "int64", "distinct names among them", minimum=0),
)
SHARES = columns.schema(
    "language pos subgroup gender sentiment",
    *columns.PLACE,
    SUBGROUP,
    columns.GENDER,
    columns.SENTIMENT,
    columns.TOP_K,
    columns.CANDIDATES,
    *estimates(**ESTIMATES),
)
DIFFERENCES = columns.schema(
    "language pos contrast sentiment",
    *columns.PLACE,
    Column(
        "contrast",
        "category",
        "a subgroup: share female minus male in it; two: that of the first minus that of the "
        "second",
        labels=CONTRASTS,
    ),
    columns.SENTIMENT,
    *estimates(**ESTIMATES, null=NULL),
)
AGREEMENT = columns.schema(
    "language pos contrast",
    *columns.PLACE,
    Column("contrast", "category", "the two subgroups", labels=CONTRASTS),
    Column("words", "int64", "words that are common in both", minimum=1),
    *estimates(**ESTIMATES, null=NULL),
)
SCHEMAS = {"people": PEOPLE, "shares": SHARES, "differences": DIFFERENCES, "agreement": AGREEMENT}
FAMILIES: dict[str, tuple[str, ...]] = {"differences": (), "agreement": ()}  # all tests of a table


class Params(TopWords):
    """Who is in a subgroup, how many words are taken, and how intervals and tests are made."""

    top_sitelinks: int = Field(
        ge=1,
        description="people with the most sitelinks, or mentions where these were brought, the "
        "popular ones, at most half of all",
    )
    born_after: date = Field(description="first day of birth of the younger ones")
    min_count: int = Field(ge=1, description="lists of a subgroup that must have the word")
    min_people: int = Field(ge=1, description="men, and women, that a subgroup must have")
    seed: int = Field(1, ge=0, lt=2**31, description="of the resampling")


class Part(NamedTuple):
    """What is known of a subgroup, for one part of speech."""

    counts: word_counts.Counts
    words: list[str]  # candidates
    classes: NDArray[np.int64] | None  # (words,) sentiments; None: of no word is it known
    size: int  # words taken
    deviations: Four  # (replicates, groups, words)

    def shares(self) -> Four:
        """Return shares (replicates, groups, sentiments) of the words that lead."""
        assert self.classes is not None
        rounded = (np.round(values, DIGITS) for values in self.deviations)
        return [shares(values, self.classes, self.size, len(SENTIMENTS)) for values in rounded]

    def apart(self, values: Four) -> Four:
        """Return female minus male, of arrays whose axis before the last is groups."""
        female, male = np.searchsorted(self.counts.genders, (FEMALE, MALE))
        return [x[..., female, :] - x[..., male, :] for x in values]


def run(inputs: Inputs, params: Params) -> dict[str, pl.DataFrame]:
    """Compute the tables of one model; columns as in :data:`SCHEMAS`.

    ``shares`` and ``differences`` are left out where no word's sentiment is known.

    Raises UserError if no subgroup has enough people and words.
    """
    (model,) = inputs.models
    found: dict[str, list[pl.DataFrame]] = {name: [] for name in SCHEMAS}
    for language, source, path in word_counts.sources(inputs, model):
        people = pl.read_parquet(path)
        members = subgroups(people, params)
        parts = {}
        for number, (name, qids) in enumerate(members.items()):
            counts = word_counts.count(source, word_counts.read_people(path, qids))
            if part := _part(counts, inputs.datasets["lexica"], language, number, params):
                parts[name] = part
        tables = {
            "people": _people(people, members) if source.pos == POS[0] else [],
            "shares": _shares(parts, params),
            "differences": _differences(parts, params),
            "agreement": _agreement(parts, params),
        }
        place = {"language": pl.lit(language), "pos": pl.lit(source.pos)}
        for name, rows in tables.items():
            found[name] += [table.with_columns(**place) for table in rows]
    if not found["shares"] and not found["agreement"]:
        raise UserError(
            f"{inputs.outputs('associations', model)}: no subgroup has {params.min_people} men and "
            f"women and a word in {params.min_count} lists; lower analysis.subgroups.min_people or "
            "min_count"
        )
    of, least = params.confidence, least_p(params.n_permutations)
    return {
        name: columns.table_of(SCHEMAS[name], tables, of, FAMILIES.get(name), least, model=model)
        for name, tables in found.items()
        if tables
    }


def subgroups(people: pl.DataFrame, params: Params) -> dict[str, pl.Series]:
    """Return the items of the people in each subgroup.

    Whose citizenship says nothing of a native language is neither native nor foreign; whose number
    of sitelinks, or mentions, is unknown is not popular. Of equally popular people the lower item
    number is more popular.
    """
    number = pl.col("qid").str.slice(1).cast(pl.Int64)
    ranked = people.sort([pl.col("popularity").fill_null(-1), number], descending=[True, False])
    best = min(params.top_sitelinks, len(people) // 2)
    return {
        "native": people.filter(pl.col("native"))["qid"],
        "foreign": people.filter(~pl.col("native"))["qid"],
        "popular": ranked["qid"][:best],
        "other": ranked["qid"][best:],
        "older": people.filter(pl.col("birth_date") < params.born_after)["qid"],
        "younger": people.filter(pl.col("birth_date") >= params.born_after)["qid"],
    }


def _people(people: pl.DataFrame, members: dict[str, pl.Series]) -> Iterator[pl.DataFrame]:
    """Yield how many people of each gender there are, also of those that nobody has."""
    every = pl.DataFrame({"gender": GENDERS})
    people = people.with_columns(pl.col("gender").replace_strict(range(len(GENDERS)), GENDERS))
    for name, qids in members.items():
        inside = people.filter(pl.col("qid").is_in(qids.implode()))
        found = inside.group_by("gender").agg(people=pl.len(), names=pl.col("name").n_unique())
        table = every.join(found, on="gender", how="left", maintain_order="left").fill_null(0)
        yield table.with_columns(subgroup=pl.lit(name))


def _part(
    counts: word_counts.Counts, lexica: Path, language: str, number: int, params: Params
) -> Part | None:
    """Resample and permute the lists of a subgroup; None where there are too few."""
    of = dict(zip(counts.genders.tolist(), counts.people.tolist(), strict=True))
    if min(of.get(MALE, 0), of.get(FEMALE, 0)) < params.min_people:
        return None
    chosen = counts.common(params.min_count)
    spelt = counts.words, counts.lemmas, counts.forms
    config = params.config(lexica, language)
    q = of_words(lexica, config, *([of[w] for w in chosen] for of in spelt))
    known = ~np.isnan(q).any(axis=1)
    classes = None
    if known.any():
        chosen, classes = chosen[known], argmax(q[known])
    if not len(chosen):
        return None
    draws = bootstrap_counts(counts, chosen, params.n_bootstrap, params.seed)
    null = permute_counts(counts, chosen, (MALE, FEMALE), params.n_permutations, params.seed)
    merged = draws.merged
    drawn = smoothed(draws.bayesian, params.smoothing, [params.seed, number], merged)

    def kept(table: NDArray[np.int64]) -> NDArray[np.int64]:
        rest = np.delete(table, chosen, axis=0).sum(axis=0, keepdims=True)
        return np.concatenate([table[chosen], rest[:merged]])[:, :, None]

    def deviations(cells: NDArray[Any], smoothing: float = params.smoothing) -> NDArray[np.float64]:
        found = pmi(np.moveaxis(cells, -1, 0), smoothing, merged)
        return np.swapaxes(found[:, : len(chosen)], 1, 2)

    return Part(
        counts,
        [counts.words[w] for w in chosen],
        classes,
        params.size(len(chosen)),
        [
            deviations(kept(counts.lists)),
            deviations(drawn, 0.0),
            deviations(kept(counts.distinct)),
            deviations(null),
        ],
    )


def _shares(parts: dict[str, Part], params: Params) -> Iterator[pl.DataFrame]:
    """Yield the share of each sentiment for each gender and subgroup."""
    for name, part in parts.items():
        if part.classes is None:
            continue
        seen, drawn, *_ = part.shares()
        genders = [GENDERS[g] for g in part.counts.genders]
        axes = {"gender": genders, "sentiment": SENTIMENTS}
        table = _rows(axes, seen, drawn, [part], params, 0.0, subgroup=name)
        sizes = {"top_k": pl.lit(part.size), "candidates": pl.lit(len(part.words))}
        yield _known(table.with_columns(**sizes), [part])


def _differences(parts: dict[str, Part], params: Params) -> Iterator[pl.DataFrame]:
    """Yield differences of genders within subgroups, and of those between subgroups."""
    known = {name: part for name, part in parts.items() if part.classes is not None}
    gaps = {name: part.apart(part.shares()) for name, part in known.items()}
    for contrast in CONTRASTS:
        names = contrast.split(AGAINST)
        if set(names) <= set(gaps):
            gap = gaps[names[0]]
            for name in names[1:]:
                gap = [a - b for a, b in zip(gap, gaps[name], strict=True)]
            both, most = [parts[name] for name in names], float(len(names))
            base = np.bincount(np.concatenate([known[name].classes for name in names]))
            some = all(part.size < len(part.words) for part in both)
            no_test = ~(np.isin(np.arange(len(SENTIMENTS)), tested(base)) & some)
            p = np.where(no_test, np.nan, _p(gap))
            axes = {"sentiment": SENTIMENTS}
            table = _rows(axes, gap[0], gap[1], both, params, -most, most, p=p, contrast=contrast)
            yield _known(table, both)


def _agreement(parts: dict[str, Part], params: Params) -> Iterator[pl.DataFrame]:
    """Yield Spearman's correlation, over words, of PMI female minus male in two subgroups."""
    for pair in PAIRS:
        if not set(pair) <= set(parts):
            continue
        of = [parts[name] for name in pair]
        words = sorted(set(of[0].words) & set(of[1].words))
        if len(words) < 4:
            continue
        values = []
        for part in of:
            place = {word: i for i, word in enumerate(part.words)}
            rows = [place[word] for word in words]
            values.append(part.apart([x[..., rows] for x in part.deviations]))
        found = [rank_correlations(a, b)[:, None] for a, b in zip(*values, strict=True)]
        if np.isfinite(found[0]).all() and np.isfinite(found[2]).all():
            axes = {"contrast": [AGAINST.join(pair)]}
            yield _rows(axes, found[0], found[1], of, params, p=_p(found), words=len(words))


def _known(table: pl.DataFrame, of: list[Part]) -> pl.DataFrame:
    """Return the rows of the sentiments that some word has."""
    classes = np.concatenate([part.classes for part in of if part.classes is not None])
    return table.filter(pl.col("sentiment").is_in([SENTIMENTS[s] for s in np.unique(classes)]))


def _p(four: Four) -> NDArray[np.float64]:
    """Return the p-values of numbers over distinct names, given those with genders permuted."""
    (value,), null = four[2:]
    return permutation_p(value, np.moveaxis(null, 0, -1))


def _rows(
    axes: dict[str, Any],
    seen: NDArray[np.float64],
    drawn: NDArray[np.float64],
    of: list[Part],
    params: Params,
    least: float = -1.0,
    most: float = 1.0,
    **more: Any,
) -> pl.DataFrame:
    """Return a row for each place with its interval.

    A replicate ranks words anew, with more noise than the data, and so is drawn towards no
    difference: the interval is symmetric, see :func:`plumbline.probes.stats.shares.symmetric`.

    ``least``, ``most``: values that there can be.
    """
    (value,) = seen
    half, tested_half = (
        np.nanquantile(np.abs(drawn - value), level, axis=0)
        for level in (params.confidence, 1 - LEVEL)
    )
    return columns.rows_of(
        axes,
        (value, np.maximum(least, value - half), np.minimum(most, value + half)),
        n=sum(part.counts.clusters for part in of),
        **{TESTED_ERROR: tested_half / ndtri(1 - LEVEL / 2)},  # not cut at the ends of the scale
        **more,
    )
