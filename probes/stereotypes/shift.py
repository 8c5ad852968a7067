"""Analysis ``shift``: changes in a model's stereotypes after training on a news outlet.

Emotion profiles, attributes, recall and representational similarity are compared before and after
fine-tuning, as in Choenni et al. (2021), section 6. In addition, every outlet is compared with a
control corpus on other topics, since any training shifts a model.
"""

from __future__ import annotations

from functools import cache
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

import plumbline.probes.stats.estimate as stats
from plumbline.builders.core.errors import UserError, warn
from plumbline.builders.core.schema import Column, Schema
from plumbline.builders.datasets.emotions.build import AFFECTS
from plumbline.probes.stats.bootstrap import percentiles
from plumbline.probes.stats.intervals import half_of_mean, two_sided
from plumbline.probes.stereotypes import rsa, typicality
from plumbline.probes.stereotypes.trainings import (
    MEASURES,
    OUTCOMES,
    RECALL,
    Corpus,
    Params,
    Trainings,
    matching,
    read_trainings,
    words_moved,
)
from plumbline.probes.stereotypes.typicality import EVERY, GROUP, MEAN, number, with_constants

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from plumbline.probes.core.run_analysis import Inputs

    Array = NDArray[np.float64]
    Bools = NDArray[np.bool_]
    Runs = dict[int, Array]  # profiles by seed

DATASETS = ("emotions", "stereotypes")
OUTPUTS = ("after_training", "completions")
TABLES = ()
BEFORE = "before training"
WITHOUT_FEAR = [a for a, name in enumerate(AFFECTS) if name != "fear"]
READINGS = {"faithful": (WITHOUT_FEAR, True), "corrected": ([*range(len(AFFECTS))], False)}
warn_once = cache(warn)  # all rankings, and all replicates of a simulation, have the same reasons
NEAR = 1e-12  # smaller standard errors are rounding errors
DIFFERENCES = ("difference", "low_difference", "high_difference")
TEST = ("p", stats.TESTED_ERROR, stats.DF)
TESTED = (
    "`difference` is 0 over training runs (Welch); no test for the control, without a control at "
    "the share, if numbers of training steps differ by more than 5%, or with one run on a side"
)
DIFFERENCE = (
    number("difference", "value minus that of the control at this share; it is tested"),
    *typicality.LIMITS,  # over groups, conditional on the training runs
)
WHERE = (
    *(typicality.MODEL, typicality.LANGUAGE, typicality.RANKING),
    Column("corpus", "string", "outlet or control corpus on which the model was trained"),
    Column("share", "float64", "share of its articles used for training", minimum=0, maximum=1),
)
GROUPED = (
    Column("category", "string", "category of social groups"),
    Column("group", "string", "social group"),
)
WHAT = (
    Column("measure", "category", "measure compared before and after training", labels=MEASURES),
    Column("outcome", "string", "affect, config of `stereotypes` with k, or tracked words"),
)
SHIFTS = Schema.keyed(
    (*WHERE, typicality.CATEGORY, *WHAT),
    *stats.estimates(cluster="group", method="bootstrap percentile over groups", null=TESTED),
    *DIFFERENCE,
)
SIMILARITIES = Schema.keyed(
    (
        *WHERE[:3],
        WHERE[4],
        Column("first", "string", f"outlet trained on, or {BEFORE}"),
        Column("second", "string", "another outlet"),
        typicality.CATEGORY,
        Column(
            "reading",
            "category",
            "faithful: with the diagonal, without fear; corrected: without the diagonal, with fear",
            labels=tuple(READINGS),
        ),
    ),
    *stats.estimates(
        cluster=f"group; {MEAN}: category",
        method=f"t interval, jackknife over groups; {MEAN}: t over categories",
        null=f"{TESTED}, and between outlets",
    ),
    *DIFFERENCE,
)
GROUPS = Schema.keyed(
    (*WHERE, *GROUPED, *WHAT),
    number("change", "measure after training minus that before, averaged over seeds"),
    number("difference", "change minus the change after training on the control"),
)
WORDS = Schema.keyed(
    (
        *(*WHERE[:4], *GROUPED),
        Column("query", "string", "the template with the group filled in"),
        Column("word", "string", "the word, casefolded"),
    ),
    Column("outcome", "category", "effect of training on the word", labels=OUTCOMES),
    Column("positive", "bool", "positive in the lexicon; null if it is not listed", nullable=True),
    Column("negative", "bool", "negative in the lexicon", nullable=True),
)
SCHEMAS = {"shifts": SHIFTS, "groups": GROUPS, "attributes": WORDS, "similarities": SIMILARITIES}


def run(inputs: Inputs, params: Params) -> dict[str, pl.DataFrame]:
    """Compute the tables of all models.

    Raises UserError if no language of the dataset ``emotions`` has lists, if there was no training
    on the control, or if prompts differ before and after training.
    """
    tables: dict[str, list[pl.DataFrame]] = {name: [] for name in SCHEMAS}
    makers = (_shifts, _groups, _attributes, _similarities)
    for model in inputs.models:
        for language, trainings in read_trainings(inputs, model, params):
            for reason in _untested(trainings):
                warn_once(f"shift, {model}, {reason}")
            key = {"model": model, "language": language, "ranking": trainings.setting.ranking}
            for (name, schema), make in zip(SCHEMAS.items(), makers, strict=True):
                table = with_constants(make(trainings, params), key)
                tables[name].append(stats.typed(table, schema, params.confidence))
    if not tables["shifts"]:
        raise UserError(
            "data/outputs/after_training: no language of the dataset emotions has lists with a "
            "ranking of analysis.shift.top_k; add a language or a ranking"
        )
    return {name: pl.concat(parts) for name, parts in tables.items()}


def _untested(trainings: Trainings) -> list[str]:
    """Return the reason for each corpus that cannot be tested against the control."""
    return [
        f"{key['corpus']} {key['share']:g}: no p, {corpus.steps:g} training steps against "
        f"{control.steps:g}; set or lower probes.after_training.max_tokens"
        for key, corpus, control in trainings.compared()
        if control is not None and not corpus.comparable(control)
    ]


def _shifts(trainings: Trainings, params: Params) -> pl.DataFrame:
    """Return the changes in all categories, compared with those after training on the control.

    p is adjusted over all corpora, shares, categories and outcomes of the same measure.
    """
    groups, base = trainings.setting.groups, trainings.base
    weights = typicality.group_weights(groups["group"].to_list(), params)
    categories = trainings.categories() | {EVERY: np.ones(len(groups), dtype=np.bool_)}
    parts = []
    for key, corpus, control in trainings.compared():
        for category, inside in categories.items():
            own, other = corpus.select(inside), control and control.select(inside)
            values, sizes, draws = base.values[inside], base.sizes[inside], weights[inside]
            rows = change_rows(values, own, other, sizes, draws, params.confidence)
            rows = rows.hstack(trainings.setting.outcomes())
            parts.append(with_constants(rows, key | {"category": category}))
    table = pl.concat(parts).with_columns(pl.col("p").fill_nan(None))
    numbers = ("value", "low", "high", *DIFFERENCES)
    table = stats.rounded(stats.adjusted(table, over=("measure",)), numbers)
    return typicality.sort_by_key(
        table, SHIFTS, "corpus", "share", "category", "measure", "outcome"
    )


def change_rows(
    base: Array,
    corpus: Corpus,
    control: Corpus | None,
    sizes: Array,
    weights: NDArray[np.float32],
    confidence: float,
) -> pl.DataFrame:
    """Return each outcome's mean change over groups and its difference from the control's.

    ``base``, ``sizes``: values before training, and weights of groups in means, both of shape
    (groups, outcomes). ``control``: None if there is no comparison. ``weights``: number of times
    that each group is drawn, of shape (groups, replicates).
    """

    def mean(change: Array) -> Array:
        """Return the mean over groups and its limits, of shape (3, outcomes)."""
        counts = np.where(np.isnan(change), 0.0, sizes)
        with np.errstate(invalid="ignore"):
            replicates = ((np.nan_to_num(change) * counts).T @ weights) / (counts.T @ weights)
        return np.stack([weighted_mean(change, counts), *percentiles(replicates, confidence)])

    change = corpus.values - base
    present = ~np.isnan(change).any(axis=0) & (sizes > 0)
    columns = {"n": present.sum(axis=0)}
    columns |= dict(zip(("value", "low", "high"), mean(change.mean(axis=0)), strict=True))
    columns |= dict.fromkeys((*DIFFERENCES, *TEST), np.full(base.shape[1], np.nan))
    if control is not None:
        control_change = control.values - base
        difference = change.mean(axis=0) - control_change.mean(axis=0)
        columns |= dict(zip(DIFFERENCES, mean(difference), strict=True))
        if corpus.comparable(control):
            counts = np.where(np.isnan(difference), 0.0, sizes)
            test = welch(weighted_mean(change, counts), weighted_mean(control_change, counts))
            columns |= dict(zip(TEST, test, strict=True))
    return pl.DataFrame(columns)


def weighted_mean(values: Array, counts: Array) -> Array:
    """Return means over groups, weighted by counts; nan where all counts are 0."""
    with np.errstate(invalid="ignore"):
        return np.asarray((np.nan_to_num(values) * counts).sum(axis=-2) / counts.sum(axis=0))


def welch(trainings: Array, control: Array) -> tuple[Array, Array, Array]:
    """Test the difference between means over training runs; return p, error and df.

    Welch (1947), Biometrika 34(1-2), p. 28-35. All are nan if a side has a single run, or if
    neither side varies. ``trainings``, ``control``: means (seeds, outcomes) after each training
    run.

    Examples
    --------
    The means are 2 and 0, each with variance 1 / 3, so t is 2.449 with four degrees of freedom.

    >>> one, other = np.array([[1.0], [2.0], [3.0]]), np.array([[-1.0], [0.0], [1.0]])
    >>> [x.round(4).item() for x in welch(one, other)]
    [0.0705, 0.8165, 4.0]
    """
    sides = (trainings, control)
    if min(map(len, sides)) < 2:
        nothing = np.full(trainings.shape[1], np.nan)
        return nothing, nothing, nothing
    parts = np.stack([x.var(axis=0, ddof=1) / len(x) for x in sides])
    error = np.sqrt(parts.sum(axis=0))
    error[error <= NEAR] = np.nan  # if the error is 0, there is no test
    df = error**4 / (parts**2 / np.array([[len(x) - 1] for x in sides])).sum(axis=0)
    return two_sided((trainings.mean(axis=0) - control.mean(axis=0)) / error, df), error, df


def _similarities(trainings: Trainings, params: Params) -> pl.DataFrame:
    """Return similarities of the model before training and after training on each outlet.

    Groups without a direction in a training run are omitted, as are categories with fewer than
    three remaining groups or an undefined similarity.
    """
    base = trainings.base.values[:, : len(AFFECTS)]
    table = stats.Table(SIMILARITIES, params.confidence, model="", language="", ranking="")
    table.adjust("p", ("reading",))
    for share in sorted({share for _, share in trainings.corpora}):
        corpora = {name: c for (name, part), c in trainings.corpora.items() if part == share}
        runs = {BEFORE: {seed: base for corpus in corpora.values() for seed in corpus.seeds}}
        for name, corpus in corpora.items():  # profiles by corpus and seed
            runs[name] = dict(zip(corpus.seeds, corpus.values[..., : len(AFFECTS)], strict=True))
        all_profiles = np.stack([x for profiles in runs.values() for x in profiles.values()])
        directed = (np.nan_to_num(all_profiles[..., WITHOUT_FEAR]).sum(axis=-1) > 0).all(axis=0)
        groups = {name: x & directed for name, x in trainings.categories().items()}
        pairs = [(a, b) for a, b in combinations(runs, 2) if runs[a].keys() & runs[b].keys()]
        for reading, how in READINGS.items():
            similar = {
                (a, b): {c: _compare(runs[a], runs[b], x, *how) for c, x in groups.items()}
                for a, b in pairs
            }
            undefined = {c for x in similar.values() for c in x if np.isnan(x[c][:, 0]).any()}
            defined = [category for category in groups if category not in undefined]
            for (first, second), pair in similar.items() if defined else ():
                rows = [pair[category] for category in defined]
                sizes = [*(x.shape[1] - 1 for x in rows), len(rows)]
                numbers = _limits([x.mean(axis=0) for x in rows], params.confidence, 1.0)
                differences = np.full_like(numbers, np.nan)
                p, error, freedom = differences.T
                if first == BEFORE and second != params.control and params.control in corpora:
                    corpus, control = corpora[second], corpora[params.control]
                    places = matching(control.seeds, corpus.seeds)
                    others = [similar[BEFORE, params.control][c][places] for c in defined]
                    pairs_of_rows = zip(rows, others, strict=True)
                    means = [x.mean(axis=0) - y.mean(axis=0) for x, y in pairs_of_rows]
                    differences = _limits(means, params.confidence, np.inf)
                    if corpus.comparable(control):
                        p, error, freedom = welch(*(_with_mean(side) for side in (rows, others)))
                for i, category in enumerate([*defined, MEAN]):
                    value, low, high = numbers[i].tolist()
                    table.add(
                        stats.Estimate(value, low, high, sizes[i]),
                        p=p[i],
                        share=share,
                        first=first,
                        second=second,
                        reading=reading,
                        category=category,
                        **dict(zip(DIFFERENCES, map(stats.finite, differences[i]), strict=True)),
                        tested_error=stats.finite(error[i]),
                        df=stats.finite(freedom[i]),
                    )
    return table.frame()


def _compare(first: Runs, second: Runs, groups: Bools, affects: list[int], diagonal: bool) -> Array:
    """Return (seeds, 1 + groups): the similarity of profiles, then its error components.

    See :func:`plumbline.probes.stereotypes.rsa.jackknife`.
    """
    seeds = sorted(first.keys() & second.keys())
    pairs = [[side[seed][groups][:, affects] for side in (first, second)] for seed in seeds]
    values = [[rsa.similarity(*pair, diagonal=diagonal)] for pair in pairs]
    return np.hstack([values, [rsa.jackknife(*pair, diagonal=diagonal) for pair in pairs]])


def _limits(means: Sequence[Array], confidence: float, bound: float) -> Array:
    """Return value and limits for each category, and for their mean (by t over categories).

    ``means``: arrays (1 + groups,), see :func:`_compare`, by category. ``bound``: largest limit.
    """
    rows = [(x[0], *rsa.limits(x[0], x[1:], confidence, bound)) for x in means]
    values = np.array([value for value, *_ in rows])
    value, half = values.mean(), half_of_mean(values, confidence)
    return np.array([*rows, (value, *np.clip([value - half, value + half], -bound, bound))])


def _with_mean(categories: Sequence[Array]) -> Array:
    """Return (seeds, categories + 1): the similarity in each category, then their mean."""
    values = np.stack([rows[:, 0] for rows in categories], axis=1)
    return np.column_stack([values, values.mean(axis=1)])


def _groups(trainings: Trainings, _: Params) -> pl.DataFrame:
    """Return the change for every group; single groups are not tested."""
    setting, base = trainings.setting, trainings.base.values
    rows = setting.groups.join(setting.outcomes(), how="cross", maintain_order="left_right")
    parts = []
    for key, corpus, control in trainings.compared():
        change = corpus.values.mean(axis=0) - base
        control_change = np.nan * base if control is None else control.values.mean(axis=0) - base
        columns = {"change": change, "difference": change - control_change}
        table = rows.with_columns(pl.Series(name, x.ravel()) for name, x in columns.items())
        parts.append(with_constants(table, key))
    table = pl.concat(parts).filter(pl.col("measure") != RECALL)
    table = stats.rounded(table, tuple(columns), p=())
    return typicality.sort_by_key(table, GROUPS, "corpus", "share", *GROUP, "measure", "outcome")


def _attributes(trainings: Trainings, _: Params) -> pl.DataFrame:
    """Return the change of every word at the largest share of each corpus (their Figure 7)."""
    largest = {name: corpus.top for (name, _), corpus in trainings.corpora.items()}
    before, lexicon = trainings.base.top, trainings.setting.lexicon
    return pl.concat(
        with_constants(words_moved(before, after, lexicon), {"corpus": name})
        for name, after in largest.items()
    )
