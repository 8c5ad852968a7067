"""Analysis ``fairness``: performance by group, for classifiers with different pretraining.

Feng et al. (2023), section 4 and Tables 3, 4, 12 and 13. Confidence intervals over texts are added,
and differences are tested over texts and training runs.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from plumbline.builders.core.params import parse
from plumbline.probes.leaning.predictions import (
    ALL,
    HALF,
    ITSELF,
    KIND,
    TESTED,
    State,
    cases,
    contrast_table,
    metric_table,
    tables,
)
from plumbline.probes.leaning.schemas import FAIRNESS as SCHEMAS
from plumbline.probes.leaning.schemas import FairnessParams as Params
from plumbline.probes.stats import crossed
from plumbline.probes.stats.bootstrap import percentiles
from plumbline.probes.stats.estimate import TESTED_ERROR, least_p
from plumbline.probes.stats.tests import chance_p, dealt, of_members, two_tailed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import ArrayLike

    from plumbline.probes.core.run_analysis import Inputs
    from plumbline.probes.leaning.predictions import Case, Floats, Runs

    Tables = Iterator[tuple[str, pl.DataFrame]]

DATASETS = ("downstream",)
OUTPUTS = ("finetuned_classifiers",)
__all__ = ["SCHEMAS", "Params"]


def run(inputs: Inputs, params: Params) -> dict[str, pl.DataFrame]:
    """Compute the tables of all models.

    Raises UserError if the positive class of a task is missing or is not one of its two classes.

    The tables ``overall``, ``groups``, ``differences`` and ``disagreements`` have the columns of
    :data:`SCHEMAS`.
    """

    def parts(case: Case) -> Tables:
        weights = case.weights(params.n_bootstrap, params.seed)
        yield from _values(case, weights, params)
        yield from _differences(case, weights, params)
        yield from _disagreements(case, params)

    tasks = cases(inputs, params.positive, params.texts_min, "fairness")
    least = 2 * least_p(params.n_permutations)  # p is twice the smaller tail probability
    return tables(tasks, parts, SCHEMAS, params.confidence, least)


def _values(case: Case, weights: Floats, params: Params) -> Tables:
    """Yield the performance on all texts and on each group, in both method variants."""
    permuting = (params.n_permutations, params.seed, case.clusters())
    overall: dict[State, Floats] = {}
    for group, member in case.members.items():
        clusters = int(case.clusters(member).max()) + 1
        table = "overall" if group == ALL else "groups"
        members = None if group == ALL else dealt(member, case.true, *permuting)
        for state, runs in case.states.items():
            measured = case.measured(runs.predicted, weights, member)
            mean, trainings = measured.mean(axis=0), len(measured)
            value, columns, tested = mean[0], state._asdict(), {}
            sd = (
                measured[:, 0].std(axis=0, ddof=1) if trainings > 1 else np.full(len(value), np.nan)
            )
            if members is None:
                overall[state] = mean
                p = chance_p(case.true, runs.predicted, *permuting)
            else:  # all checkpoints share the permutations of membership
                permuted = of_members(case.true, runs.predicted, members)
                p, contrast = two_tailed(permuted), mean - overall[state]
                ends = percentiles(contrast[1:].T, params.confidence)
                columns |= {"level": group[0], "group": group[1], "contrast": contrast[0]}
                tested = {"contrast_low": ends.low, "contrast_high": ends.high}
                tested[TESTED_ERROR] = permuted[1:].std(axis=0, ddof=1)
            columns["reading"] = "faithful"
            yield table, metric_table(value, value - sd, value + sd, trainings, **columns)
            ends = percentiles(mean[1:].T, params.confidence)
            columns |= {"reading": "corrected"} | tested
            yield table, metric_table(value, *ends, clusters, p, **columns)


def published() -> dict[tuple[str, str, str, str], float]:
    """Return the published results in percent, by task, corpus, group and measure."""
    tree = parse(Path(__file__).parent / "published.yaml")
    return {
        (task, corpus, group, measure): value
        for task in ("hate", "misinformation")
        for measure in ("precision", "recall")
        for corpus, values in tree[task][measure].items()
        for group, value in zip(tree[task]["groups"], values, strict=True)
    }


def _disagreements(case: Case, params: Params) -> Tables:
    """Yield the texts on which the majorities of left and right classifiers disagree.

    Tables 5 and 14 of the paper show such texts for one classifier per side; here, the share of the
    classifiers on each side that predict the positive class is given.
    """
    called = {state: runs.predicted.mean(axis=0) for state, runs in case.states.items()}
    itself = called.pop(ITSELF, None)
    for period, share in sorted({state[1:] for state in called}):
        sides = [
            [called[state] for c in side if (state := State(c, period, share)) in called]
            for side in (params.left, params.right)
        ]
        if not all(sides):
            continue
        left_share, right_share = (np.mean(side, axis=0) for side in sides)
        texts = {"id": case.ids, "positive": case.true, "left": left_share, "right": right_share}
        texts |= {"period": period, "share": share, "base_model": itself}
        disagreed = (left_share - HALF) * (right_share - HALF) < 0
        yield "disagreements", pl.DataFrame(texts).filter(disagreed)


def _differences(case: Case, weights: Floats, params: Params) -> Tables:
    """Yield the differences between checkpoints on the same texts.

    The paper's claim about groups is one contrast with one p: a mean over the groups of one kind,
    minus that over another, for left minus right classifiers and over all pairs of their corpora.
    """
    kinds = params.kinds.get(case.task, params.kinds.get(case.task.partition("-")[0], {}))
    claims: dict[tuple[str, float], list[Any]] = {}
    for state, baseline in _pairs(case, params):
        first, second = matched(case.states[state], case.states[baseline], baseline)
        if not first.seeds:
            continue
        tested = baseline == ITSELF or not params.unequal(first.steps, second.steps)
        by_group = {}
        for (level, group), member in case.members.items():
            runs = (case.measured(r.predicted, weights, member) for r in (first, second))
            by_group[group] = difference = np.subtract(*runs)  # (runs, 1 + replicates, measures)
            clusters = int(case.clusters(member).max()) + 1
            contrasts = _over_trainings(difference, first.seeds, clusters, params.confidence)
            columns = state._asdict() | {"baseline": baseline.corpus, "runs": len(difference)}
            table = contrast_table([*contrasts], clusters, level=level, group=group, **columns)
            yield "differences", table if tested else table.with_columns(p=None)
        groups = [[by_group[g] for g in names if g in by_group] for names in kinds.values()]
        pair = (state.corpus, baseline.corpus)
        if pair in zip(params.left, params.right, strict=True) and groups and all(groups):
            of_kinds = np.subtract(*(np.mean(kind, axis=0) for kind in groups))
            claims.setdefault(state[1:], []).append((*pair, tested, first.seeds, of_kinds))
    used = [m for (_, g), m in case.members.items() if any(g in names for names in kinds.values())]
    for (period, share), parts in claims.items():
        left, right, equal, seeds, differences = zip(*parts, strict=True)
        clusters = int(case.clusters(np.any(used, axis=0)).max()) + 1
        difference = np.concatenate(differences)
        contrasts = _over_trainings(difference, np.concatenate(seeds), clusters, params.confidence)
        columns = {"corpus": ", ".join(left), "baseline": ", ".join(right), "period": period}
        columns |= {"share": share, "level": KIND, "group": " minus ".join(kinds)}
        table = contrast_table([*contrasts], clusters, runs=len(difference), **columns)
        counted = (pl.col("metric") == TESTED[0]) & all(equal)
        yield "differences", table.with_columns(p=pl.when(counted).then("p"))


def _pairs(case: Case, params: Params) -> list[tuple[State, State]]:
    """Return pairs to compare: checkpoint with model itself, with control, and left with right."""
    pairs: dict[tuple[State, State], None] = {}
    for state in (state for state in case.states if state != ITSELF):
        sides = zip(params.left, params.right, strict=True)
        partners = (right for corpus, right in sides if corpus == state.corpus)
        corpora = (params.against(state.corpus), *partners)
        baselines = [ITSELF, *(state._replace(corpus=corpus) for corpus in corpora)]
        pairs |= {(state, other): None for other in baselines if other != state}
    return [pair for pair in pairs if pair[1] in case.states]


def matched(runs: Runs, others: Runs, state: State) -> tuple[Runs, Runs]:
    """Pair the runs of two checkpoints by seed; ``others`` belong to ``state``.

    The model itself has no pretraining seed, so its runs are paired with those of every seed.
    """
    start = int(state == ITSELF)  # index of the first seed that must be equal
    by_seed = {seeds[start:]: seeds for seeds in others.seeds}
    shared = [seeds for seeds in runs.seeds if seeds[start:] in by_seed]
    return runs.pick(shared), others.pick([by_seed[seeds[start:]] for seeds in shared])


def _over_trainings(
    difference: Floats, seeds: ArrayLike, texts: int, confidence: float
) -> Iterator[crossed.Contrast]:
    """Yield a contrast of each measure; ``difference``: (runs, 1 + replicates, measures)."""
    pretraining = np.array(seeds)[:, 0]
    means = np.stack([difference[pretraining == s].mean(axis=0) for s in np.unique(pretraining)])
    for trainings in np.moveaxis(means, -1, 0):
        value, drawn = trainings[:, 0], trainings[:, 1:]
        drawn = drawn[:, np.isfinite(drawn).all(axis=0)]
        variance = float(drawn.mean(axis=0).var(ddof=1)) if drawn.shape[1] > 1 else float("nan")
        overlap = crossed.own_part(drawn)
        yield crossed.over_trainings(value, variance, texts, confidence, overlap=overlap)
