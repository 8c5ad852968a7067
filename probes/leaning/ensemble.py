"""Analysis ``ensemble``: votes of classifiers of partisan corpora, and of others.

Feng et al. (2023), section 5 and Table 6: the partisan ensemble against the mean and the best of
its members. Beyond them: ensembles of the same size whose members differ in their seeds alone, so
that one sees whether it is partisanship that helps, or voting.
"""

from __future__ import annotations

import hashlib
from itertools import combinations
from math import comb
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from plumbline.probes.leaning.predictions import (
    Case,
    Measured,
    Runs,
    cases,
    contrast_rows,
    metric_rows,
    spread,
    tables,
)
from plumbline.probes.leaning.schemas import ENSEMBLE as SCHEMAS
from plumbline.probes.leaning.schemas import EnsembleParams as Params
from plumbline.probes.stats.bootstrap import percentiles
from plumbline.probes.stats.classification import METRICS, cells, metrics, vote
from plumbline.probes.stats.crossed import Contrast, Part, estimated, left_out, own_part

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import polars as pl

    from plumbline.probes.core.run_analysis import Inputs
    from plumbline.probes.leaning.predictions import Bools, Floats, Row

DATASETS = ("downstream",)
OUTPUTS = ("finetuned_classifiers",)
FEWER = 200  # replicates, for what pretrainings have by themselves of the variance over texts
__all__ = ["SCHEMAS", "Params"]

PARTISAN = "partisan"
MEAN = "members, mean"
BEST = "best member, chosen on the same texts"
BLIND = "best member, chosen on other texts"
ONE = "one corpus, by seed: {}"
ONES = "one corpus, by seed: mean"
ITSELF = "the model itself, by seed"
CHOSEN_BY = METRICS.index("balanced accuracy")


class Voters(NamedTuple):
    """Ensembles of one kind, or single classifiers."""

    name: str
    size: int  # voters of each
    predicted: Bools  # (ensembles, texts)


Scored = list[tuple[Voters, Measured]]
Scores = dict[str, tuple["Floats", int]]  # by name: measures, and size


def run(inputs: Inputs, params: Params) -> dict[str, pl.DataFrame]:
    """Compute the tables of all models.

    A UserError if the positive class of a task is not named, or is none of two.

    Returned: ``scores`` and ``differences``; nothing of a model that was trained on fewer than two
    of the partisan corpora. Columns as in :data:`SCHEMAS`.
    """
    tasks = cases(inputs, params.positive, 1, "ensemble")
    return tables(tasks, lambda case: _rows(case, params), SCHEMAS, params.confidence)


def _rows(case: Case, params: Params) -> Iterator[tuple[str, Row]]:
    weights = case.weights(params.n_bootstrap, params.seed)
    itself = next((runs for state, runs in case.states.items() if state.itself), None)
    partisan: dict[tuple[str, float], dict[str, Runs]] = {}
    for state, runs in case.states.items():
        if state.corpus in params.partisan:
            partisan.setdefault((state.period, state.share), {})[state.corpus] = runs

    def scored(voters: Iterator[Voters]) -> Scored:
        return [(v, case.measured(v.predicted, case.every, weights)) for v in voters]

    for (period, share), members in sorted(partisan.items(), key=lambda item: item[0]):
        if len(members) < 2:
            continue
        drawn = (case, members, itself, params.max_ensembles, params.seed)
        faithful = scored(first_run(case, list(members.values())))
        corrected = scored(all_runs(*drawn))
        place = {"period": period, "share": share}
        for reading, voters in (("faithful", faithful), ("corrected", corrected)):
            for row in _scores(voters, case, params):
                yield "scores", place | {"reading": reading} | row
        without = without_seeds(*drawn, weights[:, : 1 + FEWER])
        for row in _differences(corrected, case, without, params):
            yield "differences", place | row


def _scores(scored: Scored, case: Case, params: Params) -> Iterator[Row]:
    """Yield how well ensembles of each kind do."""
    clusters = len(set(case.units))
    for voters, measured in scored:
        yield from metric_rows(
            measured.mean[0],
            percentiles(measured.mean[1:].T, params.confidence),
            clusters,
            ensemble=voters.name,
            size=voters.size,
            ensembles=len(measured.runs),
            sd=spread(measured.runs),
        )


def _differences(
    scored: Scored, case: Case, without: dict[int, Scores], params: Params
) -> Iterator[Row]:
    """Yield the partisan ensemble minus all others.

    ``without``: the same without seeds; see :func:`without_seeds`.
    """
    clusters = len(set(case.units))
    one, mine = next(pair for pair in scored if pair[0].name == PARTISAN)
    for other, others in scored:
        if other.name == PARTISAN:
            continue
        difference = mine.mean - others.mean
        variances = np.nanstd(difference[1:], axis=0, ddof=1) ** 2
        gains = _gains(one, other, without)
        contrasts = [
            _over_trainings(
                difference[:, m],
                {seed: gain[:, m] for seed, gain in gains.items()},
                Part(float(variances[m]), max(1, clusters - 1)),
                params.confidence,
            )
            for m in range(len(METRICS))
        ]
        yield from contrast_rows(
            contrasts,
            clusters,
            baseline=other.name,
            size=one.size,
            baseline_size=other.size,
        )


def _gains(one: Voters, other: Voters, without: dict[int, Scores]) -> dict[int, Floats]:
    """Return differences without each training, (1 + replicates, measures); nothing with too few.

    Too few are left where without one there are fewer than vote.
    """
    gains: dict[int, Floats] = {}
    for seed, scores in without.items():
        if other.name not in scores or scores[other.name][1] != other.size:
            return {}
        gains[seed] = scores[one.name][0] - scores[other.name][0]
    return gains


def _over_trainings(
    drawn: Floats, gains: dict[int, Floats], texts: Part, confidence: float
) -> Contrast:
    """Return a difference over texts and trainings, (1 + replicates,); no interval with too few.

    Jackknife: a statistic is P times itself minus P - 1 times that without a training, of that
    training. What such values have each by itself over texts counts once; see
    :func:`plumbline.probes.stats.crossed.over_trainings`.
    """
    value = float(drawn[0])
    if len(gains) < 2:
        return Contrast(value, *[float("nan")] * 3)
    alone, n = np.array(list(gains.values())), len(gains)  # (trainings, 1 + replicates)
    pseudo = n * drawn[: alone.shape[1]] - (n - 1) * alone
    return estimated(value, [texts, left_out(alone[:, 0])], confidence, own_part(pseudo[:, 1:]))


def first_run(case: Case, members: Sequence[Runs]) -> Iterator[Voters]:
    """Yield the ensemble of the paper, of one training of each partisan corpus, and its members."""
    first = np.stack([runs.probability[0] for runs in members])
    yield Voters(PARTISAN, len(first), vote(first)[None])
    yield from _singles(case, [runs.predicted[:1] for runs in members])


def all_runs(
    case: Case, members: dict[str, Runs], itself: Runs | None, draws: int, seed: int
) -> Iterator[Voters]:
    """Yield ensembles of all trainings: partisan, of one corpus, of the model itself.

    ``members``: the runs of each partisan corpus.
    ``itself``: those of the model without further training.
    """
    size = len(members)
    shared = sorted(set.intersection(*(set(runs.seeds) for runs in members.values())))
    if not shared:
        return
    each = [runs.pick(shared).probability for runs in members.values()]
    chosen = enumerate(_choices(len(shared), size, draws, f"{seed} {PARTISAN}"))
    mixed = np.array(  # a run of each corpus, their seeds as different as those of one
        [[x[at[(i + number) % len(at)]] for i, x in enumerate(each)] for number, at in chosen]
    )
    yield Voters(PARTISAN, size, vote(mixed))
    predicted = [runs.predicted for runs in members.values()]
    yield from _singles(case, predicted)
    yield _blind(case, predicted)

    def of_one(name: str, corpus: str, runs: Runs) -> Voters:
        at = np.array(_choices(len(runs.seeds), size, draws, f"{seed} {corpus}"))
        return Voters(name, at.shape[1], vote(runs.probability[at]))

    ones = [of_one(ONE.format(corpus), corpus, runs) for corpus, runs in members.items()]
    yield from ones
    if len({voters.size for voters in ones}) == 1:
        yield Voters(ONES, ones[0].size, np.concatenate([voters.predicted for voters in ones]))
    if itself:
        yield of_one(ITSELF, "", itself)


def without_seeds(
    case: Case,
    members: dict[str, Runs],
    itself: Runs | None,
    draws: int,
    seed: int,
    weights: Floats,
) -> dict[int, Scores]:
    """Return the scores without each training, by its pretraining seed.

    Those of the model itself that have its fine-tuning seeds are left out with it. Empty where a
    corpus would be left without a training. The best are left out: how they are chosen jumps.
    """
    scores: dict[int, Scores] = {}
    for out in sorted({seeds[0] for runs in members.values() for seeds in runs.seeds}):
        tuned = {s[1] for runs in members.values() for s in runs.seeds if s[0] == out}
        kept = {name: _without(runs, {out}, 0) for name, runs in members.items()}
        if not all(runs.seeds for runs in kept.values()):
            return {}
        base = _without(itself, tuned, 1) if itself else None
        scores[out] = {}
        for voters in all_runs(case, kept, base if base and base.seeds else None, draws, seed):
            if voters.name not in (BEST, BLIND):
                drawn = case.resampled(voters.predicted, case.every, weights)
                scores[out][voters.name] = drawn.mean(axis=0), voters.size
    return scores


def _without(runs: Runs, out: set[int], place: int) -> Runs:
    """Return the runs without those that have a seed, of pretraining (0) or fine-tuning (1)."""
    return runs.pick([seeds for seeds in runs.seeds if seeds[place] not in out])


def _choices(runs: int, size: int, draws: int, key: str) -> list[tuple[int, ...]]:
    """Return which runs vote together: all choices, or some of them that follow from a key."""
    size = min(size, runs)
    if comb(runs, size) <= draws:
        return list(combinations(range(runs), size))
    digest = hashlib.sha256(key.encode()).digest()
    rng = np.random.default_rng(int.from_bytes(digest[:8], "big"))
    choices: set[tuple[int, ...]] = set()
    while len(choices) < draws:
        choices.add(tuple(sorted(rng.choice(runs, size, replace=False).tolist())))
    return sorted(choices)


def _singles(case: Case, members: list[Bools]) -> Iterator[Voters]:
    """Yield the mean of the partisan members, and the best of them."""
    yield Voters(MEAN, 1, np.concatenate(members))
    yield Voters(BEST, 1, members[_best(case.true, members)])


def _blind(case: Case, members: list[Bools]) -> Voters:
    """Return the member that is the best on one half of the texts, on the other half."""
    half = np.array([hashlib.sha256(name.encode()).digest()[0] % 2 == 0 for name in case.units])
    on, off = (members[_best(case.true[at], [x[:, at] for x in members])] for at in (~half, half))
    runs = min(map(len, members))
    return Voters(BLIND, 1, np.where(half, on[:runs], off[:runs]))


def _best(true: Bools, members: list[Bools]) -> int:
    """Return the place of the member with the best balanced accuracy, the mean over runs."""
    scores = [metrics(cells(true, one))[:, 0, CHOSEN_BY].mean() for one in members]
    return int(np.nan_to_num(scores, nan=-1.0).argmax())
