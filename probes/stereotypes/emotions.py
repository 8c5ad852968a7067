"""Analysis ``emotions``: the emotions of the words that models put beside social groups.

Choenni et al. (2021), emotion profiles: which share of a group's words carries each of the eight
emotions and two sentiments of the NRC lexicon, among the words that the lexicon knows; with
intervals and tests, for groups and categories.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import polars as pl
from pydantic import Field

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.schema import Column, Schema
from plumbline.builders.datasets.emotions.build import AFFECTS
from plumbline.probes.stats.bootstrap import percentiles
from plumbline.probes.stats.estimate import ESTIMATE, adjusted, rounded, typed
from plumbline.probes.stats.intervals import wilson
from plumbline.probes.stats.tests import permutation_test
from plumbline.probes.stereotypes import typicality
from plumbline.probes.stereotypes.typicality import GroupBootstrap, folded

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from plumbline.probes.core.run_analysis import Inputs

    Array = NDArray[np.float64]

EACH = False
DATASETS = ("emotions",)
OUTPUTS = ("completions",)
TABLES = ()
BLOCK = 256  # replicates held at once
NEAR = 1e-9  # statistics as far from the mean as each other up to rounding count as equally far
LEVELS = ("group", "category")
LIMITS = ("value", "low", "high")
DIFFERENCE = ("difference", "low_difference", "high_difference")
EMOTIONS = Schema(
    columns=(
        Column("model", "string", "name of the model in params.yaml"),
        Column("language", "string", "language of the lists"),
        Column("reading", "label", "what lists are ranked by", labels=typicality.READINGS),
        Column("top_k", "int64", "words taken of each template's list", minimum=1),
        Column(
            "level",
            "label",
            "group: share of its words; category: mean of its groups",
            labels=LEVELS,
        ),
        Column("category", "string", "category of social groups"),
        Column("group", "string", "social group; empty for a category"),
        Column("affect", "label", "emotion or sentiment", labels=AFFECTS),
        Column("carrying", "int64", "words that carry it; of a group", nullable=True, minimum=0),
        Column("covered", "int64", "words that the lexicon has; of a group", nullable=True),
        Column("words", "int64", "different words; of a group", nullable=True, minimum=0),
        Column("coverage", "float64", "share of the words that the lexicon has", nullable=True),
        *ESTIMATE,
        Column(
            "difference",
            "float64",
            "value minus the mean of all other groups, or of those outside of the category; what p "
            "is a test of",
            nullable=True,
        ),
        Column("low_difference", "float64", "lower end of its interval", nullable=True),
        Column("high_difference", "float64", "upper end of it", nullable=True),
        Column("family", "int64", "tests in the family that p_bh is taken over", minimum=1),
    ),
    key=("model", "language", "reading", "level", "category", "group", "affect"),
)
SCHEMAS = {"emotions": EMOTIONS}


class Profiles(NamedTuple):
    """What the words of each group carry."""

    carrying: NDArray[np.int64]  # (groups, affects) words of the group that carry the affect
    covered: NDArray[np.int64]  # (groups,) words of the group that the lexicon has
    words: NDArray[np.int64]  # (groups,) words of the group

    @property
    def share(self) -> Array:
        """Return the profiles, (groups, affects) between 0 and 1; nan without covered words."""
        with np.errstate(invalid="ignore"):
            found: Array = self.carrying / self.covered[:, None]
        return found


def differences(share: Array) -> Array:
    """Return each group's share minus the mean share of all other groups, of the same shape.

    Parameters
    ----------
    share : (groups, ...) array
        At least two groups; those of nan are left out of the means of the others.

    Examples
    --------
    >>> differences(np.array([[0.5], [0.1], [0.3]])).round(10).ravel().tolist()
    [0.3, -0.3, 0.0]
    """
    defined = ~np.isnan(share)
    total = np.where(defined, share, 0.0)
    others = defined.sum(axis=0) - 1
    with np.errstate(invalid="ignore", divide="ignore"):
        found: Array = share - (total.sum(axis=0) - total) / others
    return found


class Members(NamedTuple):
    """Which words go with which groups, and what the words carry."""

    members: NDArray[np.bool_]  # (groups, words) a word counts once however often it was predicted
    affects: NDArray[np.bool_]  # (words, affects) False where the lexicon does not have the word
    known: NDArray[np.bool_]  # (words,) whether the lexicon has the word, with affects or without
    groups: pl.DataFrame = pl.DataFrame()  # (groups,) rows that name them, sorted
    words: Sequence[str] = ()  # (words,) sorted

    def profiles(self) -> Profiles:
        """Count, for each group, its words that carry each affect.

        References
        ----------
        Choenni, Shutova and van Rooij (2021), Stepmothers are mean and academics are pretentious,
        EMNLP, section on emotion profiles; times 100 it is the percentage of their released scores.

        Examples
        --------
        >>> members, affects = np.array([[1, 1, 1, 0]]), np.array([[1, 0], [0, 0], [0, 0], [1, 1]])
        >>> members, affects, known = (x == 1 for x in (members, affects, np.array([1, 1, 0, 1])))
        >>> found = Members(members, affects, known).profiles()
        >>> found.share.tolist(), found.covered.tolist(), found.words.tolist()
        ([[0.5, 0.0]], [2], [3])
        """
        kept = self.members & self.known
        carrying = kept.astype(np.int64) @ self.affects.astype(np.int64)
        return Profiles(carrying, kept.sum(axis=1), self.members.sum(axis=1))

    def redrawn(self, weights: NDArray[np.float32]) -> Array:
        """Return profiles with words drawn anew, (groups, affects, replicates).

        The cluster is the word: it has one weight in a replicate for all groups that have it, so
        that what groups have in common is resampled in common.

        Parameters
        ----------
        weights : (words, replicates) array
            Whole numbers, such as Poisson draws: the sums of them are exact.
        """
        kept = (self.members & self.known).astype(np.float32)
        total = (kept @ weights).astype(np.float64)
        found = np.empty((len(kept), self.affects.shape[1], weights.shape[1]))
        with np.errstate(invalid="ignore"):
            for a, carries in enumerate(self.affects.T):
                found[:, a] = (kept[:, carries] @ weights[carries]) / total
        return found

    def shuffled_p(self, n_permutations: int, seed: int) -> Array:
        """Test :func:`differences` of profiles; return p-values, (groups, affects).

        The null: which words a group has says nothing about their affects. The affects, all of a
        word together, are permuted over the covered words, while every group keeps its words; so
        that groups share words as much as they do, and only words that not all have can make a
        difference. Two-sided, the outcome seen counted as one of them; 1 for groups without covered
        words.

        References
        ----------
        Phipson and Smyth (2010), Permutation p-values should never be zero, equation 2.
        """
        kept = self.members[:, self.known].astype(np.float32)
        carries = self.affects[self.known].astype(np.float32)
        size = kept.sum(axis=1, dtype=np.float64)[:, None, None]

        def far(drawn: NDArray[np.float32]) -> Array:
            with np.errstate(invalid="ignore"):
                counted = kept @ drawn.reshape(len(drawn), drawn.shape[1] * drawn.shape[2])
                return np.abs(differences(counted.reshape(len(kept), *drawn.shape[1:]) / size))

        seen = far(carries[:, None]) - NEAR
        beyond = np.zeros((len(kept), carries.shape[1]))
        rng = np.random.default_rng(seed)
        for start in range(0, n_permutations, BLOCK):
            number = min(BLOCK, n_permutations - start)
            orders = rng.permuted(np.tile(np.arange(len(carries)), (number, 1)), axis=1)
            beyond += (far(carries[orders.T]) >= seen).sum(axis=1)
        p = (beyond + 1) / (n_permutations + 1)
        return np.where(np.isnan(seen[:, 0]), 1.0, p)


def lexicon(emotions: Path, language: str) -> pl.DataFrame | None:
    """Return words as they are compared and a column for each affect; None without the language.

    A word that is the translation of several English words carries what any of them carries, and
    one that differs from another in case alone is one with it.
    """
    path = emotions / f"{language}.parquet"
    if not path.is_file():
        return None
    table = pl.read_parquet(path, columns=["word", *AFFECTS])
    return table.group_by(key=folded("word")).agg(pl.col(AFFECTS).any()).sort("key")


def members(unions: pl.DataFrame, lexicon: pl.DataFrame) -> Members:
    """Gather the words of groups.

    Parameters
    ----------
    unions
        Column ``key``, and others that name a group; see ``typicality.unions``.
    """
    names = [name for name in unions.columns if name != "key"]
    groups = unions.select(names).unique().sort(names).with_row_index("row")
    words = unions.select("key").unique().sort("key").with_row_index("column")
    cells = unions.join(groups, on=names).join(words, on="key")
    found = np.zeros((len(groups), len(words)), dtype=np.bool_)
    found[cells["row"].to_numpy(), cells["column"].to_numpy()] = True
    looked = words.join(lexicon, on="key", how="left", maintain_order="left")
    known = looked[AFFECTS[0]].is_not_null().to_numpy()
    affects = looked.select(pl.col(AFFECTS).fill_null(value=False)).to_numpy()
    return Members(found, affects, known, groups.drop("row"), words["key"].to_list())


class Params(GroupBootstrap):
    """Which words are taken, and how intervals and tests are made."""

    top_k: dict[Literal["probability", "faithful", "corrected", "corrected_one"], int] = Field(
        {"probability": 200},
        min_length=1,
        description="words of each list that are taken, by ranking; the paper: probability, 200",
    )


def run(inputs: Inputs, params: Params) -> dict[str, pl.DataFrame]:
    """Compute the table of all models; those in languages without a lexicon have no rows.

    Raises
    ------
    UserError
        If there is no list in a language that the dataset ``emotions`` has.
    """
    rows: list[pl.DataFrame] = []
    for model in inputs.models:
        outputs = inputs.outputs("completions", model)
        for language in typicality.languages(outputs):
            words = lexicon(inputs.datasets["emotions"], language)
            if words is None:
                continue
            table = typicality.answers(outputs / language)
            for reading in (name for name in typicality.readings(table) if name in params.top_k):
                ranked = typicality.placed(table, reading)
                unions = typicality.unions(ranked, params.top_k[reading])
                found = members(unions, words)
                both = _groups(found, params), _categories(found, params)
                part = pl.concat(both, how="diagonal")
                place = {"model": model, "language": language, "top_k": params.top_k[reading]}
                place["reading"] = typicality.READINGS.index(reading)
                part = part.with_columns(**{name: pl.lit(value) for name, value in place.items()})
                rows.append(typed(part, EMOTIONS))
    if not rows:
        raise UserError(
            "data/outputs/completions: no list in a language of the dataset emotions and a ranking "
            "of analysis.emotions.top_k; add one there"
        )
    return {"emotions": pl.concat(rows)}


def _groups(found: Members, params: Params) -> pl.DataFrame:
    """Return the rows of groups."""
    counts = found.profiles()
    drawn = differences(found.redrawn(params.weights(found.words)))
    apart = np.stack([differences(counts.share), *percentiles(drawn, params.confidence)])
    p = found.shuffled_p(params.n_permutations, params.seed)
    rows: list[dict[str, Any]] = []
    for g, group in enumerate(found.groups.iter_rows(named=True)):
        covered, words = int(counts.covered[g]), int(counts.words[g])
        known = {"covered": covered, "n": covered, "words": words, "coverage": covered / words}
        for a, carrying in enumerate(counts.carrying[g].tolist()):
            share = wilson(carrying, covered, params.confidence)[:3] if covered else [None] * 3
            rows.append(
                group
                | known
                | {"affect": a, "carrying": carrying, "p": float(p[g, a])}
                | dict(zip(LIMITS, share, strict=True))
                | dict(zip(DIFFERENCE, apart[:, g, a], strict=True))
            )
    return _finished(
        rows,
        level=LEVELS.index("group"),
        cluster="word",
        method="Wilson score; of the difference: bootstrap percentile (Poisson weights)",
        null=f"affects permuted over covered words, {params.n_permutations} drawn",
    )


def _categories(found: Members, params: Params) -> pl.DataFrame:
    """Return the rows of categories: means of their groups, compared with all other groups."""
    counts = found.profiles()
    defined = counts.covered > 0
    share, groups = counts.share[defined], found.groups.filter(pl.Series(defined))
    coverage = (counts.covered / counts.words)[defined]
    weights = params.weights(groups["group"].to_list()).astype(np.float64)
    rows: list[dict[str, Any]] = []
    for category in groups["category"].unique().sort():
        inside = (groups["category"] == category).to_numpy()
        mean = _means(share[inside], weights[inside], params)
        apart, p = np.full((3, len(AFFECTS)), np.nan), np.ones(len(AFFECTS))
        if not inside.all():
            apart = _means(share, weights, params, inside)
            parts = share[inside], share[~inside]
            p = permutation_test(*parts, params.n_permutations, params.seed).p
        known = {"category": category, "group": "", "n": int(inside.sum())}
        known |= dict.fromkeys(("carrying", "covered", "words"))
        known |= {"coverage": coverage[inside].mean()}
        rows += [
            known
            | {"affect": a, "p": float(p[a])}
            | dict(zip(LIMITS, mean[:, a], strict=True))
            | dict(zip(DIFFERENCE, apart[:, a], strict=True))
            for a in range(len(AFFECTS))
        ]
    return _finished(
        rows,
        level=LEVELS.index("category"),
        cluster="group",
        method="bootstrap percentile (Poisson weights)",
        null="groups permuted over categories",
    )


def _means(
    share: Array, weights: Array, params: Params, inside: NDArray[np.bool_] | None = None
) -> Array:
    """Return the mean of groups, or of those inside minus the others, and limits, (3, affects)."""

    def mean(part: NDArray[np.bool_] | slice, by: Array) -> Array:
        with np.errstate(invalid="ignore"):
            found: Array = share[part].T @ by[part] / by[part].sum(axis=0)
        return found

    def estimate(by: Array) -> Array:
        if inside is None:
            return mean(slice(None), by)
        return mean(inside, by) - mean(~inside, by)

    limits = percentiles(estimate(weights), params.confidence)
    return np.stack([estimate(np.ones((len(share), 1)))[:, 0], limits.low, limits.high])


def _finished(rows: list[dict[str, Any]], **columns: Any) -> pl.DataFrame:
    """Add what rows have in common, and p adjusted over all of them."""
    table = adjusted(pl.DataFrame(rows, infer_schema_length=None))
    return (
        rounded(table, (*LIMITS, *DIFFERENCE, "coverage"))
        .with_columns(
            pl.col("carrying", "covered", "words").cast(pl.Int64),
            **{name: pl.lit(value) for name, value in columns.items()},
        )
        .sort("category", "group", "affect")
    )
