"""Analysis ``ensemble``: votes of classifiers with partisan pretraining, compared with baselines.

Feng et al. (2023), section 5 and Table 6, compare the partisan ensemble with the mean and the best
of its members. Ensembles of the same size whose members differ only in their seeds are added, to
separate the gain from partisanship from the gain from voting.
"""

from __future__ import annotations

import hashlib
from itertools import combinations
from math import comb
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl

from plumbline.probes.leaning.predictions import ITSELF as BASE
from plumbline.probes.leaning.predictions import State, cases, contrast_table, metric_table, tables
from plumbline.probes.leaning.schemas import ENSEMBLE as SCHEMAS
from plumbline.probes.leaning.schemas import EnsembleParams as Params
from plumbline.probes.stats.bootstrap import percentiles
from plumbline.probes.stats.classification import METRICS, cells, metrics, vote
from plumbline.probes.stats.crossed import Contrast, Part, estimated, left_out, own_part

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from plumbline.probes.core.run_analysis import Inputs
    from plumbline.probes.leaning.predictions import Bools, Case, Floats, Runs

DATASETS = ("downstream",)
OUTPUTS = ("finetuned_classifiers",)
FEWER = 200  # bootstrap replicates for the variance of jackknife pseudo-values over texts
__all__ = ["SCHEMAS", "Params"]

PARTISAN = "partisan"
MEAN = "members, mean"
BEST = "best member, chosen on the same texts"
BLIND = "best member, chosen on other texts"
ONE = "one corpus, by seed: {}"
ONES = "one corpus, by seed: mean"
ITSELF = "the model itself, by seed"
Means = dict[str, tuple["Floats", int]]  # by kind: scores, (1 + replicates, measures), and size
CHOSEN_BY = METRICS.index("balanced accuracy")


class Voters(NamedTuple):
    """The ensembles, or single classifiers, of one kind."""

    name: str
    size: int  # voters per ensemble
    predicted: Bools  # (ensembles, texts)


class Trained(NamedTuple):
    """The candidate voters of a task."""

    case: Case
    members: dict[str, Runs]  # by partisan corpus
    itself: Runs | None  # runs of the model without further training
    draws: int  # maximum number of ensembles of a kind
    seed: int


def run(inputs: Inputs, params: Params) -> dict[str, pl.DataFrame]:
    """Compute the tables of all models.

    Raises UserError if the positive class of a task is missing or is not one of its two classes.

    The tables ``scores`` and ``differences`` include the models that were trained on at least two
    partisan corpora; their columns are those of :data:`SCHEMAS`.
    """
    tasks = cases(inputs, params.positive, 1, "ensemble")
    return tables(tasks, lambda case: _parts(case, params), SCHEMAS, params.confidence)


def _parts(case: Case, params: Params) -> Iterator[tuple[str, pl.DataFrame]]:
    weights = case.weights(params.n_bootstrap, params.seed)
    for period, share in sorted({state[1:] for state in case.states}):
        states = {corpus: State(corpus, period, share) for corpus in sorted(params.partisan)}
        members = {name: case.states[s] for name, s in states.items() if s in case.states}
        if len(members) > 1:
            base = case.states.get(BASE)
            trained = Trained(case, members, base, params.max_ensembles, params.seed)
            for name, table in _tested(trained, weights, params.confidence):
                yield name, table.with_columns(period=pl.lit(period), share=pl.lit(share))


def _tested(
    trained: Trained, weights: Floats, confidence: float
) -> Iterator[tuple[str, pl.DataFrame]]:
    """Yield the scores of each kind of ensemble, and the partisan ensemble's scores minus these."""
    case, clusters = trained.case, len(set(trained.case.units))
    means: Means = {}
    for reading, kinds in (("faithful", first_run), ("corrected", all_runs)):
        means = _means(case, kinds(trained), weights)
        for name, (mean, size) in means.items():
            columns: dict[str, Any] = {"reading": reading, "ensemble": name, "size": size}
            ends = percentiles(mean[1:].T, confidence)
            yield "scores", metric_table(mean[0], *ends, clusters, **columns)
    reduced = without_seeds(trained, weights[:, : 1 + FEWER]).values()
    for name, (mean, size) in means.items():
        if name == PARTISAN:
            continue
        difference = means[PARTISAN][0] - mean  # (1 + replicates, measures)
        variances = np.nanstd(difference[1:], axis=0, ddof=1) ** 2
        # no interval is computed if leaving out a run changes the ensemble's size
        enough = all(name in scores and scores[name][1] == size for scores in reduced)
        gains = [scores[PARTISAN][0] - scores[name][0] for scores in reduced if enough]
        contrasts = [
            over_trainings(
                difference[:, m],
                np.array([gain[:, m] for gain in gains]),
                Part(float(variances[m]), max(1, clusters - 1)),
                confidence,
            )
            for m in range(len(METRICS))
        ]
        columns = {"baseline": name, "baseline_size": size}
        yield "differences", contrast_table(contrasts, clusters, **columns)


def over_trainings(
    differences: Floats, reduced: Floats, texts: Part, confidence: float
) -> Contrast:
    """Return a difference, with an interval over texts and runs if there are at least two runs.

    The jackknife's pseudo-values are P times the statistic minus P - 1 times the statistic without
    one of the P runs. The variance over texts that is specific to a run is counted once; see
    :func:`plumbline.probes.stats.crossed.over_trainings`.

    ``differences``: values in the sample and in each replicate, of shape (1 + replicates,);
    ``reduced``: the same with each run left out, of shape (runs, 1 + fewer replicates).
    """
    value, n = float(differences[0]), len(reduced)
    if n < 2:
        return Contrast(value, *[float("nan")] * 3)
    pseudo = n * differences[: reduced.shape[1]] - (n - 1) * reduced
    return estimated(value, [texts, left_out(reduced[:, 0])], confidence, own_part(pseudo[:, 1:]))


def first_run(trained: Trained) -> Iterator[Voters]:
    """Yield the paper's ensemble, with one training run per partisan corpus, and its members."""
    members = [runs.pick(runs.seeds[:1]) for runs in trained.members.values()]
    votes = vote(np.concatenate([runs.probability for runs in members]))
    yield Voters(PARTISAN, len(members), votes[None])
    yield from _singles(trained.case, [runs.predicted for runs in members])


def all_runs(trained: Trained) -> Iterator[Voters]:
    """Yield ensembles of all training runs: partisan, of one corpus, and of the model itself."""
    case, members, itself, draws, seed = trained
    size = len(members)
    shared = sorted(set.intersection(*(set(runs.seeds) for runs in members.values())))
    if not shared:
        return
    probability = [runs.pick(shared).probability for runs in members.values()]
    chosen = np.array(_choices(len(shared), size, draws, f"{seed} {PARTISAN}"))
    # one run per corpus; their seeds differ, as do those in an ensemble of one corpus
    turns = (np.arange(len(chosen))[:, None] + np.arange(size)) % chosen.shape[1]
    runs_of = zip(probability, np.take_along_axis(chosen, turns, axis=1).T, strict=True)
    yield Voters(PARTISAN, size, vote(np.stack([runs[rows] for runs, rows in runs_of], axis=1)))
    predicted = [runs.predicted for runs in members.values()]
    yield from _singles(case, predicted)
    # the best member on one half of the texts is evaluated on the other half
    half = np.array([hashlib.sha256(name.encode()).digest()[0] % 2 == 0 for name in case.units])
    on, off = (
        predicted[_best(case.true[rows], [x[:, rows] for x in predicted])] for rows in (~half, half)
    )
    number = min(map(len, predicted))
    yield Voters(BLIND, 1, np.where(half, on[:number], off[:number]))

    def of_one(name: str, corpus: str, runs: Runs) -> Voters:
        rows = np.array(_choices(len(runs.seeds), size, draws, f"{seed} {corpus}"))
        return Voters(name, rows.shape[1], vote(runs.probability[rows]))

    ones = [of_one(ONE.format(corpus), corpus, runs) for corpus, runs in members.items()]
    yield from ones
    if len({voters.size for voters in ones}) == 1:
        yield Voters(ONES, ones[0].size, np.concatenate([voters.predicted for voters in ones]))
    if itself and itself.seeds:
        yield of_one(ITSELF, "", itself)


def without_seeds(trained: Trained, weights: Floats) -> dict[int, Means]:
    """Return the means and ensemble sizes obtained when each pretraining seed is left out.

    The model's own runs with that seed's fine-tuning seeds are left out too. The result is empty if
    a corpus would then have no runs. The best members are omitted, since the jackknife requires a
    smooth statistic, which a choice of the best is not.
    """
    case, members, itself = trained[:3]
    means = {}
    pairs = [seeds for runs in members.values() for seeds in runs.seeds]
    for out in sorted({seed for seed, _ in pairs}):
        tuned = {tuning for seed, tuning in pairs if seed == out}
        others = {
            corpus: runs.pick([seeds for seeds in runs.seeds if seeds[0] != out])
            for corpus, runs in members.items()
        }
        if not all(runs.seeds for runs in others.values()):
            return {}
        base = itself and itself.pick([seeds for seeds in itself.seeds if seeds[1] not in tuned])
        voters = all_runs(trained._replace(members=others, itself=base))
        means[out] = _means(case, (v for v in voters if v.name not in (BEST, BLIND)), weights)
    return means


def _means(case: Case, voters: Iterable[Voters], weights: Floats) -> Means:
    """Return the mean scores of each kind of ensemble, (1 + replicates, measures), and its size."""
    return {v.name: (case.measured(v.predicted, weights).mean(axis=0), v.size) for v in voters}


def _choices(runs: int, size: int, draws: int, key: str) -> list[tuple[int, ...]]:
    """Return the runs that vote together: all combinations, or a random sample seeded by a key."""
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
    """Yield the partisan members, whose scores are averaged, and the best one."""
    yield Voters(MEAN, 1, np.concatenate(members))
    yield Voters(BEST, 1, members[_best(case.true, members)])


def _best(true: Bools, members: list[Bools]) -> int:
    """Return the index of the member with the best balanced accuracy, averaged over runs."""
    scores = [metrics(cells(true, runs))[:, 0, CHOSEN_BY].mean() for runs in members]
    return int(np.nan_to_num(scores, nan=-1.0).argmax())
