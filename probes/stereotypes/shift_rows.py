"""Changes of a model by training, as rows: mean over groups, spread over seeds, and the control."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl
from pydantic import Field
from scipy.special import ndtri, stdtrit

from plumbline.builders.core.schema import Column, Schema
from plumbline.builders.datasets.emotions.build import AFFECTS
from plumbline.probes.stats.bootstrap import keys, percentiles
from plumbline.probes.stats.estimate import (
    DF,
    ESTIMATE,
    LEVEL,
    TESTED_ERROR,
    beside,
    detectable_beside,
    least_p,
)
from plumbline.probes.stats.intervals import t_half_width, two_sided
from plumbline.probes.stats.tests import sign_flip_p
from plumbline.probes.stereotypes import similarity, typicality
from plumbline.probes.stereotypes.match_attributes import Flagged
from plumbline.probes.stereotypes.training_effects import EMOTION, OUTCOMES, RECALL, RETAINED
from plumbline.probes.stereotypes.typicality import GroupBootstrap, Reading, number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Weights = NDArray[np.float32]

FLIPPED = "no difference over trainings (Welch), nor over groups: {} sign patterns or all"
SWAPPED = "no difference over trainings (Welch), nor over groups: {} exchanges of profiles or all"
METHOD = "bootstrap percentile (Poisson weights); of the difference: and Welch's over trainings"
THE_CONTROL = "none: this is the control"
NO_CONTROL = "none: no training on the control at this share"
UNEQUAL = "none: trained on {own:g} articles, the control on {control:g}"
ALONE = "none: one training on it, or on the control"
FEW = "none: of so few groups no p is at most 0.05"
ONE = "none: all trainings do the same"
APART = 0.05  # of the larger number of articles: corpora further apart are not compared
NEAR = 1e-12  # means over groups as near as that are equal up to rounding
FAITHFUL, CORRECTED = "rsa faithful", "rsa corrected"  # with the diagonal and without fear; neither
MEASURES = (EMOTION, RECALL, RETAINED, FAITHFUL, CORRECTED)
ALL = slice(None)
WITHOUT_FEAR = [a for a, name in enumerate(AFFECTS) if name != "fear"]
WHERE = (
    *(typicality.MODEL, typicality.LANGUAGE, typicality.RANKING),
    Column("corpus", "string", "outlet, or control, that the model was trained on"),
    Column("share", "float64", "part of its articles", minimum=0, maximum=1),
)
AT = tuple(column.name for column in WHERE)
WHAT = (
    typicality.CATEGORY,
    Column("measure", "label", "what is compared with the model before", labels=MEASURES),
    Column("outcome", "string", "affect; or config of `stereotypes` and k; or words followed"),
)
FOUND_GROUPS = beside(
    "groups",
    "difference that p_groups would find at .05 with power .8, by its error over groups; null "
    "where there is no test, no error over groups, or fewer than 6 of them",
    adjusted=False,
)
SPREAD = "standard deviation of it over seeds; null with one seed"
PARTS = (
    Column(
        "p_groups",
        "float64",
        "of the difference over groups, given these trainings: p is the larger of this one, which "
        "alone is no test of what was trained on, and p_seeds",
        nullable=True,
        minimum=0,
        maximum=1,
    ),
    Column(
        "p_seeds",
        "float64",
        "of the difference over trainings (Welch); null with one",
        nullable=True,
        minimum=0,
        maximum=1,
    ),
    *FOUND_GROUPS,
    *beside(
        "seeds",
        "difference that p_seeds would find at .05 with power .8, by Welch's error; null where "
        "there is no test, or t with fewer than 5 degrees of freedom, as of two or three trainings",
        adjusted=False,
    ),
)

SHIFTS = Schema.keyed(
    (*WHERE, *WHAT),
    number("base", "mean before the training"),
    *ESTIMATE,
    Column("seeds", "int64", "trainings that value is the mean of", minimum=1),
    Column("articles", "float64", "articles trained on, mean of the trainings", minimum=1),
    Column("steps", "float64", "steps of the training, mean of the trainings", minimum=1),
    number("spread", SPREAD),
    number("difference", "value minus that of the control at the same share; what p is a test of"),
    *typicality.LIMITS,
    number("spread_difference", SPREAD),
    number(
        "half_width_seeds",
        "half the width of Welch's interval of the difference over trainings; null with one",
    ),
    *PARTS,
    Column("significant", "bool", f"p_bh is at most {LEVEL}"),
    typicality.FAMILY,
)
GROUPS = Schema.keyed(
    (
        *WHERE,
        Column("category", "string", "category of social groups"),
        Column("group", "string", "social group"),
        *WHAT[1:],
    ),
    number("base", "before the training"),
    number("change", "mean over seeds of after minus before"),
    number("smallest", "of the changes of all seeds"),
    number("largest", "of them"),
    Column("seeds", "int64", "trainings", minimum=1),
    number("difference", "change minus that by the control"),
)
ATTRIBUTES = Schema.keyed(
    (
        *WHERE,
        *(Column(n, "string", d) for n, d in (("category", "category"), ("group", "social group"))),
        Column("query", "string", "the template with the group"),
        Column("word", "string", "the word, casefolded"),
    ),
    Column("outcome", "label", "of the word among the followed ones", labels=OUTCOMES),
    Column("rank_before", "int64", "rank before the training; null: not there", nullable=True),
    number("rank_after", "mean rank after it, where there"),
    Column("seeds_with", "int64", "trainings after which it is there", minimum=0),
    Column("seeds", "int64", "trainings", minimum=1),
    Column("positive", "bool", "the lexicon calls it positive; null: not in it", nullable=True),
    Column("negative", "bool", "the lexicon calls it negative", nullable=True),
)
SCHEMAS = {"shifts": SHIFTS, "groups": GROUPS, "attributes": ATTRIBUTES}


class Params(GroupBootstrap):
    """What is measured, and how intervals and tests are made."""

    top_k: dict[Reading, int] = Field(
        {"probability": 200},
        min_length=1,
        description="words of each list in a profile, by ranking; the paper: probability, 200",
    )
    top_k_followed: int = Field(15, ge=1, description="words of each list followed one by one")
    recall_at: list[int] = Field([10, 50], min_length=1, description="k of the recall compared")
    flagged: Flagged = Field("published", description="as of recall")
    control: str = Field("control", description="corpus that the others are judged against")
    n_permutations: int = Field(
        9999, ge=99, description="sign patterns over groups, where not all are tried"
    )
    n_permutations_similarity: int = Field(
        999, ge=99, description="exchanges of profiles in a similarity, where not all are tried"
    )
    n_bootstrap: int = Field(500, ge=100, description="bootstrap replicates over groups")


class Corpus(NamedTuple):
    """What a model was after the trainings on a corpus, by seed, and what it is judged against."""

    seeds: Sequence[int]
    values: Array  # (seeds, groups, outcomes); for rsa the outcomes are the affects
    articles: float = 0.0  # mean of the trainings
    steps: float = 0.0
    control: Corpus | None = None
    untested: str = THE_CONTROL  # why there is no p; empty: there is one

    def of(self, inside: NDArray[np.bool_], outcomes: Sequence[int] | slice = ALL) -> Corpus:
        """Return the values of some groups and outcomes."""
        control = self.control and self.control.of(inside, outcomes)
        return self._replace(values=self.values[:, inside][..., outcomes], control=control)

    def pairs(self) -> list[tuple[int, int]]:
        """Return where the seeds that the control has too stand in either."""
        other = self.control.seeds if self.control else []
        both = sorted(set(self.seeds) & set(other))
        return [(self.seeds.index(seed), other.index(seed)) for seed in both]

    def against(self, control: Corpus | None) -> Corpus:
        """Return it with the control, another corpus, and whether the two may be compared.

        Who reads more articles takes more steps, and moves further whatever they say: there is no
        test where the numbers differ by more than 5% of the larger.

        Examples
        --------
        >>> hundred = Corpus([1], np.zeros((1, 2, 3)), 100)
        >>> hundred._replace(articles=96).against(hundred).untested
        ''
        >>> hundred._replace(articles=94).against(hundred).untested
        'none: trained on 94 articles, the control on 100'
        """
        if control is None:
            return self._replace(untested=NO_CONTROL)
        larger = max(self.articles, control.articles)
        unequal = abs(self.articles - control.articles) > APART * larger
        why = UNEQUAL.format(own=self.articles, control=control.articles) if unequal else ""
        return self._replace(control=control, untested=why)


def judged(
    base: Array, own: Corpus, sizes: Array, weights: Weights, params: Params
) -> pl.DataFrame:
    """Return a row for each outcome: the mean change over groups, and that minus the control's.

    Parameters
    ----------
    base : (groups, outcomes) array
        Before the training.
    sizes : (groups, outcomes) array
        How much a group counts for.
    weights : (groups, replicates) array
        How often a group is drawn.
    """

    def means(change: Array, *confidence: float) -> tuple[Array, ...]:
        """Return means of each seed, and that of all with its limits, (3, outcomes), by confidence.

        They are over groups; the first is (seeds, outcomes).
        """
        mean = change.mean(axis=0)
        counts = np.where(np.isnan(mean), 0.0, sizes)
        with np.errstate(invalid="ignore"):
            drawn = ((np.nan_to_num(mean) * counts).T @ weights) / (counts.T @ weights)
        whole = weighted(mean, counts)
        limits = (np.stack([whole, *percentiles(drawn, level)]) for level in confidence)
        return np.stack([weighted(one, counts) for one in change]), *limits

    change = own.values - base
    present = ~np.isnan(change).any(axis=0) & (sizes > 0)
    gap, gap_by_seed = np.full((3, base.shape[1]), np.nan), np.empty((0, base.shape[1]))
    p, trainings = gap[0], np.full((3, base.shape[1]), np.nan)
    tested_gap, tested_reach = gap, trainings[0]
    if own.control is not None:
        other = own.control.values - base
        apart = change.mean(axis=0) - other.mean(axis=0)
        _, gap, tested_gap = means(apart[None], params.confidence, 1 - LEVEL)
        counts = np.where(np.isnan(apart), 0.0, sizes)
        mine, others = (np.stack([weighted(one, counts) for one in x]) for x in (change, other))
        trainings = welch(mine, others, params.confidence)
        tested_reach = welch(mine, others, 1 - LEVEL)[0]
        if pairs := own.pairs():
            gap_by_seed = np.stack([mine[i] - others[j] for i, j in pairs])
        if not own.untested:
            counted = apart * np.where(sizes > 0, sizes, np.nan)
            p = sign_flip_p(counted, params.n_permutations, params.seed)
    n = present.sum(axis=0)
    # of replicates that draw n of n groups the spread is (n - 1) / n of the variance
    few = np.sqrt(n / np.where(n > 1, n - 1, np.nan))
    half = (tested_gap[2] - tested_gap[1]) / 2
    groups, tested = np.stack([few * half / ndtri(0.975), n - 1.0]), (tested_gap, tested_reach)
    before = weighted(base, sizes * present)
    by_seed, mean = means(change, params.confidence)
    found = _rows(before, mean, by_seed, gap, gap_by_seed, p, groups, trainings, tested)
    return with_p(found.with_columns(n=pl.Series(n)), own, FLIPPED, params.n_permutations)


def welch(own: Array, control: Array, confidence: float) -> Array:
    """Return half the width of Welch's interval of a difference of means, p and degrees of freedom.

    Welch (1947), Biometrika 34(1-2), p. 28-35. Where all trainings do the same p is nan.

    Parameters
    ----------
    own, control : (seeds, outcomes) arrays
        The mean after each training; with one training on either all is nan.

    Returns
    -------
    (3, outcomes) array

    Examples
    --------
    Means 2 and 0, both of variance 1 / 3, so that t is 2.449 with four degrees of freedom.

    >>> own, control = np.array([[1.0], [2.0], [3.0]]), np.array([[-1.0], [0.0], [1.0]])
    >>> welch(own, control, 0.95).round(4).ravel().tolist()
    [2.267, 0.0705, 4.0]
    """
    if min(len(own), len(control)) < 2:
        return np.full((3, own.shape[1]), np.nan)
    parts = np.stack([x.var(axis=0, ddof=1) / len(x) for x in (own, control)])
    free = np.array([[len(own) - 1], [len(control) - 1]])
    apart, total = own.mean(axis=0) - control.mean(axis=0), parts.sum(axis=0)
    still = total <= NEAR**2  # no spread is no evidence
    with np.errstate(invalid="ignore", divide="ignore"):
        df = total**2 / (parts**2 / free).sum(axis=0)
        half = np.where(still, 0.0, t_half_width(np.sqrt(total), df, confidence))
        p = np.where(still, np.nan, two_sided(apart / np.sqrt(total), df))
    return np.stack([half, p, np.where(still, np.nan, df)])


def with_p(table: pl.DataFrame, own: Corpus, null: str, number: int) -> pl.DataFrame:
    """Add p, the larger of those over groups and over trainings, and why there is none.

    Where groups are so few that no p over them is at most ``LEVEL`` there is no test.
    """
    alone = own.control is not None and min(len(own.values), len(own.control.values)) < 2
    few = 2.0 ** (1 - pl.col("n")) > LEVEL
    known = pl.col("p_groups").is_not_null() & pl.col("p_seeds").is_not_null() & ~few
    why = pl.lit(own.untested or (ALONE if alone else null.format(number)))
    if not own.untested:
        why = pl.when(few).then(pl.lit(FEW)).otherwise(why)
    if not own.untested and not alone:
        why = pl.when(pl.col("p_seeds").is_null() & ~few).then(pl.lit(ONE)).otherwise(why)
    return table.with_columns(
        p=pl.when(known).then(pl.max_horizontal("p_groups", "p_seeds")),
        null=why,
        method=pl.lit(METHOD),
        least=pl.lit(least_p(number)),
    )


def _rows(
    base: Array,
    mean: Array,
    by_seed: Array,
    gap: Array,
    gap_by_seed: Array,
    p: Array,
    groups: Array,
    trainings: Array,
    tested: tuple[Array, Array],
) -> pl.DataFrame:
    """Return a row for each outcome, the last axis of all arrays; the first is limits or seeds.

    The interval of the difference has the ends of both, over groups and over trainings: 0 is in it
    where either does not tell the difference from 0. With one training there is none. ``groups``:
    standard error over groups, and its degrees of freedom. ``tested``: the difference and half the
    width over trainings as 95% intervals have them, which tell what is found at .05.
    """
    (reach, p_seeds, freedom), wide = trainings, _both(*tested)
    gap = _both(gap, reach)
    columns = dict(zip(("base", "value", "low", "high"), [base, *mean], strict=True))
    columns |= dict(zip(("difference", "low_difference", "high_difference"), gap, strict=True))
    columns["spread"], columns["spread_difference"] = _sd(by_seed), _sd(gap_by_seed)
    columns["half_width_seeds"] = reach
    columns["error_groups"], columns["freedom_groups"] = groups
    columns |= {"error_seeds": tested[1] / stdtrit(freedom, 0.975), "freedom_seeds": freedom}
    # where the wider interval is that over groups, which are many, z tells what is found
    wider = wide[2] - wide[1] > 2 * tested[1] + NEAR
    of_groups = (wide[2] - wide[1]) / 2 / ndtri(0.975)
    columns[TESTED_ERROR] = np.where(wider, of_groups, columns["error_seeds"])
    columns[DF] = np.where(wider, np.nan, freedom)
    columns["p_groups"] = np.where(np.isnan(gap[0]), np.nan, p)
    columns["p_seeds"] = np.where(np.isnan(columns["p_groups"]), np.nan, p_seeds)
    return pl.DataFrame(columns).with_columns(pl.col("p_groups", "p_seeds").fill_nan(None))


def _both(gap: Array, reach: Array) -> Array:
    """Return a difference over groups with the ends of both intervals, (3, outcomes)."""
    ends = np.minimum(gap[1], gap[0] - reach), np.maximum(gap[2], gap[0] + reach)
    return np.stack([gap[0], *ends])


def detectable(table: pl.DataFrame) -> pl.DataFrame:
    """Add what p over groups and p over trainings would find, each by its own error."""
    table = detectable_beside(table, "groups", "error_groups", "freedom_groups")
    return detectable_beside(table, "seeds", "error_seeds", "freedom_seeds")


class Likeness(NamedTuple):
    """Similarity to the model before, of some groups."""

    values: Array  # (seeds,)
    parts: Array  # (seeds, groups): of the error, see :func:`similarity.jackknife`

    @property
    def groups(self) -> int:
        """Return the number of groups."""
        return int(self.parts.shape[1])


def likeness(base: Array, own: Corpus, *, diagonal: bool) -> Likeness:
    """Compare profiles with those before the training, among the groups of one category.

    Parameters
    ----------
    base : (groups, affects) array
        Before; profiles must have a direction before and after all trainings.
    """
    pairs = [(base, x) for x in own.values]
    values = np.array([similarity.rsa(*pair, diagonal=diagonal) for pair in pairs])
    return Likeness(
        values, np.stack([similarity.jackknife(*pair, diagonal=diagonal) for pair in pairs])
    )


def exchanged(
    base: Array, own: Corpus, category: str, params: Params, *, diagonal: bool
) -> similarity.Exchanged | None:
    """Return the difference of two similarities in a category after exchanges of profiles.

    Trainings are paired in the order of their seeds, as many as both corpora have. Parameters as
    of :func:`likeness`; categories have random streams of their own. None without a test.
    """
    if own.control is None or own.untested:
        return None
    both = min(len(own.values), len(own.control.values))
    seed = [params.seed, int(keys([category])[0])]
    given = base, own.values[:both], own.control.values[:both], params.n_permutations_similarity
    return similarity.exchange(*given, seed, diagonal=diagonal)


def together(kept: Sequence[Likeness]) -> Likeness:
    """Return the mean of categories, each counting as it has groups."""
    sizes = np.array([part.groups for part in kept])
    share = sizes / sizes.sum()
    values: Array = share @ np.stack([part.values for part in kept])
    parts = [size * part.parts for size, part in zip(share, kept, strict=True)]
    return Likeness(values, np.concatenate(parts, axis=1))


def compared(
    own: Likeness, control: Likeness | None, of: Corpus, p: float, params: Params
) -> pl.DataFrame:
    """Return the row of a similarity: rho - 1, and that minus the control's.

    Parameters
    ----------
    of
        The corpus.
    p
        Of the difference, nan without a test; see :func:`exchanged`.
    """

    def limits(value: float, parts: Array, confidence: float = params.confidence) -> Array:
        ends = similarity.limits(value, parts.mean(axis=0), confidence)
        return np.array([value, *ends])[:, None]

    mean = limits(own.values.mean() - 1, own.parts)
    gap, by_seed = np.full((3, 1), np.nan), np.empty((0, 1))
    trainings = np.full((3, 1), np.nan)
    tested = gap, trainings[0]
    if control is not None:
        parts = own.parts.mean(axis=0) - control.parts.mean(axis=0)
        apart = own.values.mean() - control.values.mean()
        gap = limits(apart, parts[None])
        mine, others = own.values[:, None], control.values[:, None]
        trainings = welch(mine, others, params.confidence)
        tested = limits(apart, parts[None], 1 - LEVEL), welch(mine, others, 1 - LEVEL)[0]
        by_seed = np.array([mine[i] - others[j] for i, j in of.pairs()]).reshape(-1, 1)
    one = np.ones(1)
    free = own.groups - 1.0
    half = (tested[0][2] - tested[0][1]) / 2
    groups = np.stack([half / stdtrit(free, 0.975), free * one])
    found = _rows(one, mean, own.values[:, None], gap, by_seed, p * one, groups, trainings, tested)
    found = found.with_columns(n=pl.lit(own.groups))
    found = with_p(found, of, SWAPPED, params.n_permutations_similarity)
    return found.with_columns(
        method=pl.lit(f"{similarity.METHOD}; of the difference: and Welch's over trainings")
    )


def _sd(by_seed: Array) -> Array:
    """Return the standard deviation over seeds, the first axis."""
    alone = len(by_seed) < 2
    return np.full(by_seed.shape[1:], np.nan) if alone else by_seed.std(axis=0, ddof=1)


def weighted(values: Array, counts: Array) -> Array:
    """Return the mean of the groups, (outcomes,), weighted by counts; nan where all are 0."""
    with np.errstate(invalid="ignore"):
        found: Array = (np.nan_to_num(values) * counts).sum(axis=0) / counts.sum(axis=0)
    return found
