"""Changes of a model by training, as rows: mean over groups, spread over seeds, and the control."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.stats import t as student

from plumbline.builders.core.schema import Column, Schema
from plumbline.builders.datasets.emotions.build import AFFECTS
from plumbline.probes.stats.bootstrap import keys, percentiles
from plumbline.probes.stats.estimate import ESTIMATE, finite
from plumbline.probes.stats.tests import sign_flip_p
from plumbline.probes.stereotypes import similarity
from plumbline.probes.stereotypes.similarity import Exchanged, exchange, redrawn, rsa
from plumbline.probes.stereotypes.training_effects import (
    EMOTION,
    GROUP,
    OUTCOMES,
    RECALL,
    RETAINED,
)
from plumbline.probes.stereotypes.typicality import EVERY, READINGS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Array = NDArray[np.float64]

FEAR = AFFECTS.index("fear")
FLIPPED = "these trainings: groups' outlet and control exchanged, {} sign patterns or all"
SWAPPED = "these trainings: groups' outlet and control profiles exchanged, {} patterns or all"
METHOD = "bootstrap percentile (Poisson weights)"
THE_CONTROL = "none: this is the control"
NO_CONTROL = "none: no training on the control at this share"
UNEQUAL = "none: trained on {own:g} articles, the control on {control:g}"
APART = 0.05  # of the larger number of articles: corpora further apart are not compared
LEVEL = 0.05  # of p_bh
FAITHFUL, CORRECTED = "rsa faithful", "rsa corrected"
MEASURES = (EMOTION, RECALL, RETAINED, FAITHFUL, CORRECTED)
WHERE = (
    Column("model", "string", "name of the model in params.yaml"),
    Column("language", "string", "language of the lists"),
    Column("ranking", "label", "what lists are ranked by", labels=READINGS),
    Column("corpus", "string", "outlet, or control, that the model was trained on"),
    Column("share", "float64", "part of its articles", minimum=0, maximum=1),
)
WHAT = (
    Column("category", "string", f"category of social groups, or {EVERY}"),
    Column("measure", "label", "what is compared with the model before", labels=MEASURES),
    Column("outcome", "string", "affect; or config of `stereotypes` and k; or words followed"),
)
SIZES = (
    Column("articles", "float64", "articles trained on, mean of the trainings", minimum=1),
    Column("steps", "float64", "steps of the training, mean of the trainings", minimum=1),
)
SPREAD = "standard deviation of it over seeds; null with one seed"

SHIFTS = Schema(
    columns=(
        *WHERE,
        *WHAT,
        Column("base", "float64", "mean before the training", nullable=True),
        *ESTIMATE,
        Column("seeds", "int64", "trainings that value is the mean of", minimum=1),
        *SIZES,
        Column("spread", "float64", SPREAD, nullable=True),
        Column(
            "difference",
            "float64",
            "value minus that of the control at the same share; what p is a test of",
            nullable=True,
        ),
        Column("low_difference", "float64", "lower end of its interval", nullable=True),
        Column("high_difference", "float64", "upper end of it", nullable=True),
        Column("spread_difference", "float64", SPREAD, nullable=True),
        Column(
            "half_width_seeds",
            "float64",
            "half the width of Student's interval of the difference over the seeds that both have; "
            "null with one seed",
            nullable=True,
        ),
        Column(
            "significant",
            "bool",
            f"p_bh is at most {LEVEL} and the difference further from 0 than half_width_seeds",
        ),
        Column("family", "int64", "tests in the family that p_bh is taken over", minimum=0),
    ),
    key=("model", "language", "ranking", "corpus", "share", "category", "measure", "outcome"),
)
RUNS = Schema(
    columns=(
        *WHERE,
        Column("tuning_seed", "int32", "seed of the training"),
        Column("articles", "int32", "articles trained on", minimum=1),
        Column("steps", "int32", "steps of the training", minimum=1),
        *WHAT,
        Column("base", "float64", "mean before the training", nullable=True),
        Column("change", "float64", "mean after it, minus base", nullable=True),
    ),
    key=(*SHIFTS.key[:5], "tuning_seed", *SHIFTS.key[5:]),
)
GROUPS = Schema(
    columns=(
        *WHERE,
        Column("category", "string", "category of social groups"),
        Column("group", "string", "social group"),
        *WHAT[1:],
        Column("base", "float64", "before the training", nullable=True),
        Column("change", "float64", "mean over seeds of after minus before", nullable=True),
        Column("smallest", "float64", "of the changes of all seeds", nullable=True),
        Column("largest", "float64", "of them", nullable=True),
        Column("seeds", "int64", "trainings", minimum=1),
        Column("difference", "float64", "change minus that by the control", nullable=True),
    ),
    key=("model", "language", "ranking", "corpus", "share", *GROUP, "measure", "outcome"),
)
SEEDS = Schema(
    columns=(
        *WHERE,
        Column("category", "string", f"category of social groups, or {EVERY}"),
        *WHAT[2:],
        Column("seed", "int32", "seed of a training on the control"),
        Column("other_seed", "int32", "seed of another, in the place of its control"),
        Column("n", "int64", "groups", minimum=1),
        Column("difference", "float64", "change by the one minus that by the other", nullable=True),
        Column(
            "p", "float64", "of it, tested as corpora are: no corpus differs", minimum=0, maximum=1
        ),
    ),
    key=(*SHIFTS.key[:6], "outcome", "seed", "other_seed"),
)
ATTRIBUTES = Schema(
    columns=(
        *WHERE,
        *(Column(n, "string", d) for n, d in (("category", "category"), ("group", "social group"))),
        Column("query", "string", "the template with the group"),
        Column("word", "string", "the word, casefolded"),
        Column("outcome", "label", "of the word among the followed ones", labels=OUTCOMES),
        Column("rank_before", "int64", "rank before the training; null: not there", nullable=True),
        Column("rank_after", "float64", "mean rank after it, where there", nullable=True),
        Column("seeds_with", "int64", "trainings after which it is there", minimum=0),
        Column("seeds", "int64", "trainings", minimum=1),
        Column("positive", "bool", "the lexicon calls it positive; null: not in it", nullable=True),
        Column("negative", "bool", "the lexicon calls it negative", nullable=True),
    ),
    key=("model", "language", "ranking", "corpus", "share", *GROUP, "query", "word"),
)
SCHEMAS = {
    "shifts": SHIFTS,
    "runs": RUNS,
    "groups": GROUPS,
    "attributes": ATTRIBUTES,
    "seeds": SEEDS,
}


class Resampled(NamedTuple):
    """How groups are resampled."""

    weights: NDArray[np.float32]  # (groups, replicates)
    n_permutations: int
    confidence: float
    seed: int
    n_permutations_similarity: int = 999

    def of(self, inside: NDArray[np.bool_]) -> Resampled:
        """Return the weights of some groups."""
        return self._replace(weights=self.weights[inside])


class Corpus(NamedTuple):
    """What a model was after the trainings on one corpus, by seed."""

    seeds: Sequence[int]
    values: Array  # (seeds, groups, outcomes); for rsa the outcomes are the affects
    articles: float = 0.0  # mean of the trainings
    steps: float = 0.0

    def of(self, inside: NDArray[np.bool_]) -> Corpus:
        """Return the values of some groups."""
        return self._replace(values=self.values[:, inside])

    def pairs(self, other: Corpus) -> list[tuple[int, int]]:
        """Return where the seeds that both have stand in either."""
        both = sorted(set(self.seeds) & set(other.seeds))
        return [(self.seeds.index(seed), other.seeds.index(seed)) for seed in both]


class Baseline(NamedTuple):
    """What a corpus is judged against."""

    control: Corpus | None = None
    untested: str = THE_CONTROL  # why there is no p; empty: there is one

    def of(self, inside: NDArray[np.bool_]) -> Baseline:
        """Return the values of some groups."""
        return self._replace(control=self.control and self.control.of(inside))


def baseline(own: Corpus, control: Corpus | None) -> Baseline:
    """Return the control of a corpus that is another, and whether the two may be compared.

    Who reads more articles takes more steps, and moves further whatever they say: there is no test
    where the numbers differ by more than 5% of the larger.

    Examples
    --------
    >>> hundred = Corpus([1], np.zeros((1, 2, 3)), 100)
    >>> baseline(hundred._replace(articles=96), hundred).untested
    ''
    >>> baseline(hundred._replace(articles=94), hundred).untested
    'none: trained on 94 articles, the control on 100'
    """
    if control is None:
        return Baseline(None, NO_CONTROL)
    larger = max(own.articles, control.articles)
    if abs(own.articles - control.articles) > APART * larger:
        return Baseline(control, UNEQUAL.format(own=own.articles, control=control.articles))
    return Baseline(control, "")


def judged(
    base: Array, own: Corpus, against: Baseline, sizes: Array, by: Resampled
) -> list[dict[str, Any]]:
    """Return a row for each outcome: the mean change over groups, and that minus the control's.

    Parameters
    ----------
    base : (groups, outcomes) array
        Before the training.
    against
        The trainings that ``own`` is judged against, and whether there is a test.
    sizes : (groups, outcomes) array
        How much a group counts for.
    """
    change = own.values - base
    mean, by_seed = _means(change, sizes, by)
    present = ~np.isnan(change).any(axis=0) & (sizes > 0)
    start = weighted(base, sizes * present)
    gap, gap_by_seed = np.full((3, base.shape[1]), np.nan), np.empty((0, base.shape[1]))
    p = gap[0]
    if against.control is not None:
        other = against.control.values - base
        apart = change.mean(axis=0) - other.mean(axis=0)
        gap, _ = _means(apart[None], sizes, by)
        if pairs := own.pairs(against.control):
            _, gap_by_seed = _means(np.stack([change[i] - other[j] for i, j in pairs]), sizes, by)
        if not against.untested:
            tested = apart * np.where(sizes > 0, sizes, np.nan)
            p = sign_flip_p(tested, by.n_permutations, by.seed)
            p = np.where(np.isnan(gap[0]), np.nan, p)
    null = against.untested or FLIPPED.format(by.n_permutations)
    return [
        _row(start[o], mean[:, o], by_seed[:, o], gap[:, o], gap_by_seed[:, o], by.confidence)
        | {"n": int(present[:, o].sum()), "method": METHOD, "null": null}
        | {"p": None if np.isnan(p[o]) else float(p[o])}
        for o in range(base.shape[1])
    ]


class Likeness(NamedTuple):
    """Similarity to the model before, of some groups."""

    values: Array  # (seeds,)
    drawn: Array  # (seeds, replicates)
    rows: Array  # (replicates,) groups drawn
    groups: int


def likeness(
    base: Array, own: Corpus, inside: NDArray[np.bool_], by: Resampled, *, faithful: bool
) -> Likeness:
    """Compare profiles with those before the training, among the groups of one category.

    Parameters
    ----------
    inside : (groups,) array
        The groups; their profiles must have a direction before and after all trainings.
    faithful
        With the diagonal and without fear, as published; else without diagonal, and all affects.
    """
    dimensions = _dimensions(faithful=faithful)
    weights = by.weights[inside]
    first = base[inside][:, dimensions]
    after = [x[inside][:, dimensions] for x in own.values]
    with np.errstate(invalid="ignore"):
        values = np.array([rsa(first, x, diagonal=faithful) for x in after])
        drawn = np.stack([redrawn(first, x, weights, diagonal=faithful) for x in after])
    return Likeness(values, drawn, weights.sum(axis=0), int(inside.sum()))


def exchanged(
    base: Array,
    own: Corpus,
    control: Corpus,
    inside: NDArray[np.bool_],
    by: Resampled,
    category: str,
    *,
    faithful: bool,
) -> Exchanged:
    """Return the difference of two similarities in a category after exchanges of profiles.

    Trainings are paired in the order of their seeds, as many as both corpora have. Parameters as
    of :func:`likeness`; categories have random streams of their own.
    """
    dimensions = _dimensions(faithful=faithful)
    first, one, other = (
        x[..., inside, :][..., dimensions] for x in (base, own.values, control.values)
    )
    both = min(len(one), len(other))
    seed = [by.seed, int(keys([category])[0])]
    number = by.n_permutations_similarity
    return exchange(first, one[:both], other[:both], number, seed, diagonal=faithful)


def _dimensions(*, faithful: bool) -> list[int]:
    return [a for a in range(len(AFFECTS)) if not (faithful and a == FEAR)]


def directed(shares: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Tell which profiles have a direction, with fear left out too."""
    carried = np.nan_to_num(np.delete(shares, FEAR, axis=1)).sum(axis=1)
    return np.asarray(carried > 0, dtype=np.bool_)


def together(kept: Sequence[Likeness]) -> Likeness:
    """Return the mean of categories, each counting as it has groups."""
    sizes = np.array([part.groups for part in kept])
    values: Array = sizes @ np.stack([part.values for part in kept]) / sizes.sum()
    drawn = np.stack([part.drawn for part in kept])  # (categories, seeds, replicates)
    rows = np.stack([part.rows for part in kept])[:, None] * ~np.isnan(drawn)
    with np.errstate(invalid="ignore"):
        mean: Array = (np.nan_to_num(drawn) * rows).sum(axis=0) / rows.sum(axis=0)
    return Likeness(values, mean, kept[0].rows, int(sizes.sum()))


def compared(
    own: Likeness,
    control: Likeness | None,
    pairs: Sequence[tuple[int, int]],
    by: Resampled,
    null: str,
    p: float | None = None,
) -> dict[str, Any]:
    """Return the row of a similarity: rho - 1, and that minus the control's.

    Parameters
    ----------
    pairs
        The trainings of both with the same seed.
    null, p
        What the difference is judged against; see :func:`exchanged`.
    """
    mean = _drawn(own.values.mean() - 1, own.drawn.mean(axis=0) - 1, by.confidence)
    gap, differ = np.full(3, np.nan), np.empty(0)
    if control is not None:
        drawn = own.drawn.mean(axis=0) - control.drawn.mean(axis=0)
        gap = _drawn(own.values.mean() - control.values.mean(), drawn, by.confidence)
        differ = np.array([own.values[i] - control.values[j] for i, j in pairs])
    return _row(1.0, mean, own.values, gap, differ, by.confidence) | {
        "n": own.groups,
        "method": similarity.METHOD,
        "null": null,
        "p": None if np.isnan(gap[0]) else p,
    }


def half_width(by_seed: Array, confidence: float) -> float:
    """Return half the width of Student's interval of the mean of some differences, by seed.

    nan with fewer than two seeds.

    Examples
    --------
    >>> round(half_width(np.array([-0.5, 0.5]) * 2**0.5, 0.95), 3)
    8.985
    """
    n = len(by_seed)
    if n < 2:
        return float("nan")
    return float(student.ppf((1 + confidence) / 2, n - 1) * _sd(by_seed) / n**0.5)


def _row(
    base: float, mean: Array, by_seed: Array, gap: Array, gap_by_seed: Array, confidence: float
) -> dict[str, Any]:
    names = ("value", "low", "high", "difference", "low_difference", "high_difference")
    return dict(zip(names, map(finite, [*mean, *gap]), strict=True)) | {
        "base": finite(base),
        "spread": finite(_sd(by_seed)),
        "spread_difference": finite(_sd(gap_by_seed)),
        "half_width_seeds": finite(half_width(gap_by_seed, confidence)),
    }


def _means(change: Array, sizes: Array, by: Resampled) -> tuple[Array, Array]:
    """Return the mean over seeds and groups with limits, (3, outcomes), and that of each seed."""
    mean = change.mean(axis=0)
    counts = np.where(np.isnan(mean), 0.0, sizes)
    summed = np.nan_to_num(mean) * counts
    with np.errstate(invalid="ignore"):
        drawn = (summed.T @ by.weights) / (counts.T @ by.weights)
    limits = percentiles(drawn, by.confidence)
    by_seed = np.stack([weighted(one, counts) for one in change])
    return np.stack([weighted(mean, counts), limits.low, limits.high]), by_seed


def weighted(values: Array, counts: Array) -> Array:
    """Return the mean of the groups, (outcomes,), weighted by counts; nan where all are 0."""
    with np.errstate(invalid="ignore"):
        found: Array = (np.nan_to_num(values) * counts).sum(axis=0) / counts.sum(axis=0)
    return found


def _drawn(value: float, drawn: Array, confidence: float) -> Array:
    limits = percentiles(drawn[None], confidence)
    return np.array([value, limits.low[0], limits.high[0]])


def _sd(values: Array) -> float:
    return float(values.std(ddof=1)) if len(values) > 1 else float("nan")
