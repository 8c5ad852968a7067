"""Analysis ``ensemble``: votes of classifiers of partisan corpora, and of others.

Feng et al. (2023), section 5 and Table 6: the partisan ensemble against the mean and the best of
its members. Beyond them: ensembles of the same size whose members differ in their seeds alone, so
that one sees whether it is partisanship that helps, or voting.
"""

from __future__ import annotations

import hashlib
from itertools import combinations
from math import comb
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import ndtr

from plumbline.probes.leaning.predictions import Case, Runs, cases, over_seeds, tables
from plumbline.probes.leaning.schemas import ENSEMBLE as SCHEMAS
from plumbline.probes.leaning.schemas import ROUNDED
from plumbline.probes.leaning.schemas import EnsembleParams as Params
from plumbline.probes.stats.bootstrap import percentiles
from plumbline.probes.stats.classification import METRICS, VOTES, cells, metrics, vote
from plumbline.probes.stats.crossed import Contrast, combined, left_out
from plumbline.probes.stats.estimate import Estimate, finite

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import polars as pl
    from numpy.typing import NDArray

    from plumbline.probes.core.run_analysis import Inputs

    Bools = NDArray[np.bool_]
    Floats = NDArray[np.float64]

EACH = False
DATASETS = ("downstream",)
OUTPUTS = ("finetuned_classifiers",)
TABLES = ()
FAITHFUL, CORRECTED = range(len(ROUNDED))
TESTED = ("accuracy", "balanced accuracy", "F1")
OVER_TEXTS = "bootstrap percentile over clusters (Poisson weights), these trainings"
NORMAL = "0: equally good on other texts (normal, SE of the bootstrap)"
UNTESTED = "none: no test"
__all__ = ["SCHEMAS", "Params"]

PARTISAN = "partisan"
MEAN = "members, mean"
BEST = "best member, chosen on the same texts"
BLIND = "best member, chosen on other texts"
ONE = "one corpus, by seed: {}"
ONES = "one corpus, by seed: mean"
ITSELF = "the model itself, by seed"
HARD, NONE = VOTES[0], ""  # no vote
CHOSEN_BY = METRICS.index("balanced accuracy")


Gains = dict[tuple[str, str], tuple["Floats", int]]  # by name and vote: measures, and size


class Voters(NamedTuple):
    """Ensembles of one kind, or single classifiers."""

    name: str
    vote: str  # how they vote; empty: they are single
    size: int  # voters of each
    predicted: Bools  # (ensembles, texts)


class Scored(NamedTuple):
    """The measures of ensembles of one kind."""

    voters: Voters
    each: Floats  # (ensembles, measures)
    mean: Floats  # (1 + replicates, measures) over the ensembles, the sample first


def run(inputs: Inputs, params: Params) -> dict[str, pl.DataFrame]:
    """Compute the tables of all models.

    Returns
    -------
    dict
        ``scores`` and ``differences``; nothing of a model that was trained on fewer than two of
        the partisan corpora. Columns as in :data:`SCHEMAS`.

    Raises
    ------
    UserError
        If the positive class of a task is not named, or is none of two.
    """
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in SCHEMAS}
    for model in inputs.models:
        for case in cases(inputs, model, params.positive, 1, "analysis.ensemble.positive"):
            weights = case.weights(params.n_bootstrap, params.seed)
            itself = next((runs for state, runs in case.states.items() if state.itself), None)
            differences = []
            for (period, share), members in _partisan(case, params).items():
                drawn = (case, members, itself, params.max_ensembles, params.seed)
                every = {
                    FAITHFUL: list(first_run(case, list(members.values()))),
                    CORRECTED: list(all_runs(*drawn)),
                }
                without = without_each_seed(*drawn)
                for reading, voters in every.items():
                    place = {"model": model, "task": case.task, "reading": reading}
                    place |= {"period": period, "share": share}
                    scored = [_scored(case, own, weights) for own in voters]
                    for own in scored:
                        found["scores"] += [place | row for row in _rows(own, case, params)]
                    differences += [
                        place | row
                        for row in _differences(
                            scored, case, without if reading == CORRECTED else [], params
                        )
                    ]
            found["differences"] += differences
    return tables(found, SCHEMAS)


def _partisan(case: Case, params: Params) -> dict[tuple[int, float], dict[str, Runs]]:
    """Return the runs of the partisan corpora, two at least, by period and share."""
    found: dict[tuple[int, float], dict[str, Runs]] = {}
    for state, runs in case.states.items():
        if state.corpus in params.partisan:
            found.setdefault((state.period, state.share), {})[state.corpus] = runs
    return {key: found[key] for key in sorted(found) if len(found[key]) > 1}


def _scored(case: Case, voters: Voters, weights: Floats) -> Scored:
    drawn = metrics(cells(case.true, voters.predicted, weights))
    return Scored(voters, drawn[:, 0], drawn.mean(axis=0))


def _rows(own: Scored, case: Case, params: Params) -> list[dict[str, Any]]:
    every = np.ones(len(case.ids), dtype=np.bool_)
    several = len(own.each) > 1
    sd = own.each.std(axis=0, ddof=1) if several else np.full(len(METRICS), np.nan)
    limits = percentiles(own.mean[1:].T, params.confidence)
    n = case.size(every)
    return [
        Estimate(own.mean[0, m], limits.low[m], limits.high[m], n, OVER_TEXTS).row(
            cluster=case.cluster,
            null=UNTESTED,
            ensemble=own.voters.name,
            vote=own.voters.vote,
            metric=metric,
            size=own.voters.size,
            ensembles=len(own.each),
            sd=finite(sd[m]),
        )
        for m, metric in enumerate(METRICS)
    ]


def _differences(
    scored: list[Scored],
    case: Case,
    without: list[list[Gains]],
    params: Params,
) -> list[dict[str, Any]]:
    """Compare the partisan ensemble with all else, each way of voting by itself.

    Parameters
    ----------
    without
        The same without each seed; see :func:`without_each_seed`.
    """
    result = []
    every = np.ones(len(case.ids), dtype=np.bool_)
    for own in (each for each in scored if each.voters.name == PARTISAN):
        for other in scored:
            if other.voters.name == PARTISAN or other.voters.vote not in ("", own.voters.vote):
                continue
            apart = own.mean - other.mean
            limits = percentiles(apart[1:].T, params.confidence)
            se = np.nanstd(apart[1:], axis=0, ddof=1)
            for m, metric in enumerate(METRICS):
                p = None
                if metric in TESTED and np.isfinite(apart[0, m]):
                    same = abs(apart[0, m]) < 1e-12
                    p = 1.0 if same else 2 * float(ndtr(-abs(apart[0, m]) / max(se[m], 1e-12)))
                at = (apart[0, m], limits.low[m], limits.high[m], case.size(every), OVER_TEXTS)
                row = Estimate(*at).row(
                    cluster=case.cluster,
                    null=UNTESTED if p is None else NORMAL,
                    p=p,
                    baseline=other.voters.name,
                    vote=own.voters.vote,
                    metric=metric,
                    size=own.voters.size,
                    baseline_size=other.voters.size,
                )
                found = _contrast(own, other, m, float(se[m]), without, at[3], params)
                result.append(row | over_seeds(found, tested=metric in TESTED))
    return result


def _contrast(
    own: Scored,
    other: Scored,
    m: int,
    se: float,
    without: list[list[Gains]],
    texts: int,
    params: Params,
) -> Contrast | None:
    """Return a difference over texts and trainings; None where too few are left of these."""
    key = (other.voters.name, own.voters.vote)
    parts = [(se**2, max(1, texts - 1))]
    for each in without:
        if not each or any(found.get(key, (None, 0))[1] != other.voters.size for found in each):
            return None
        parts.append(left_out(np.array([found[key][0][m] for found in each])))
    if len(parts) < 3:
        return None
    return combined(float(own.mean[0, m] - other.mean[0, m]), parts, params.confidence)


def first_run(case: Case, members: Sequence[Runs]) -> Iterator[Voters]:
    """Yield what the paper compares, of one training of each partisan corpus."""
    own = np.stack([runs.probability[0] for runs in members])
    yield Voters(PARTISAN, HARD, len(own), vote(own, HARD)[None])
    yield from _singles(case, [runs.predicted[:1] for runs in members], blind=False)


def all_runs(
    case: Case, members: dict[str, Runs], itself: Runs | None, draws: int, seed: int
) -> Iterator[Voters]:
    """Yield ensembles of all trainings: partisan, of one corpus, of the model itself.

    Parameters
    ----------
    members
        The runs of each partisan corpus.
    itself
        Those of the model without further training.
    """
    size = len(members)
    shared = sorted(set.intersection(*(set(runs.seeds) for runs in members.values())))
    if not shared:
        return
    own = [runs.pick(shared).probability for runs in members.values()]
    mixed = _choices(len(shared), size, draws, f"{seed} {PARTISAN}")
    together = np.stack([_dealt(own, choice, number) for number, choice in enumerate(mixed)])
    for how in VOTES:
        yield Voters(PARTISAN, how, size, vote(together, how))
    yield from _singles(case, [runs.predicted for runs in members.values()], blind=True)
    for how in VOTES:
        each = [
            Voters(ONE.format(corpus), how, min(size, len(runs.seeds)), _votes(runs, how, at))
            for corpus, runs in members.items()
            for at in (_choices(len(runs.seeds), size, draws, f"{seed} {corpus}"),)
        ]
        yield from each
        if len({voters.size for voters in each}) == 1:
            every = np.concatenate([voters.predicted for voters in each])
            yield Voters(ONES, how, each[0].size, every)
        if itself is not None:
            at = _choices(len(itself.seeds), size, draws, f"{seed} ")
            fewer = min(size, len(itself.seeds))
            yield Voters(ITSELF, how, fewer, _votes(itself, how, at))


def gains(case: Case, voters: Iterable[Voters]) -> Gains:
    """Return what the partisan ensemble is better by than each other, and the other's size.

    Keys are the other's name and the vote; single classifiers stand beside either vote. The best
    are left out: how they are chosen jumps when a training is left out.
    """
    means = {
        (own.name, own.vote): (
            metrics(cells(case.true, own.predicted))[:, 0].mean(axis=0),
            own.size,
        )
        for own in voters
        if own.name not in (BEST, BLIND)
    }
    return {
        (name, how): (own - value, size)
        for (partisan, how), (own, _) in means.items()
        if partisan == PARTISAN
        for (name, other), (value, size) in means.items()
        if name != PARTISAN and other in (NONE, how)
    }


def without_each_seed(
    case: Case, members: dict[str, Runs], itself: Runs | None, draws: int, seed: int
) -> list[list[Gains]]:
    """Return the gains without each pretraining seed in turn, and without each fine-tuning seed.

    A list is empty where a corpus would be left without a training.
    """
    found: list[list[Gains]] = []
    for place in (0, 1):
        seeds = sorted({own[place] for runs in members.values() for own in runs.seeds})
        kept = [
            {name: _without(runs, place, out) for name, runs in members.items()} for out in seeds
        ]
        if any(not runs.seeds for own in kept for runs in own.values()):
            found.append([])
            continue
        base = [_without(itself, place, out) if itself and place else itself for out in seeds]
        found.append(
            [
                gains(
                    case, all_runs(case, own, other if other and other.seeds else None, draws, seed)
                )
                for own, other in zip(kept, base, strict=True)
            ]
        )
    return found


def _without(runs: Runs, place: int, out: int) -> Runs:
    keep = [own for own in runs.seeds if own[place] != out]
    return runs.pick(keep) if keep else Runs([], runs.probability[:0])


def _dealt(own: list[Floats], choice: tuple[int, ...], number: int) -> Floats:
    """Return a run of each corpus, (corpora, texts), their seeds as different as those of one."""
    return np.stack([x[choice[(i + number) % len(choice)]] for i, x in enumerate(own)])


def _votes(runs: Runs, how: str, choices: list[tuple[int, ...]]) -> Bools:
    return np.stack([vote(runs.probability[list(choice)], how) for choice in choices])


def _choices(runs: int, size: int, draws: int, key: str) -> list[tuple[int, ...]]:
    """Return which runs vote together: all choices, or some of them that follow from a key."""
    size = min(size, runs)
    if comb(runs, size) <= draws:
        return list(combinations(range(runs), size))
    digest = hashlib.sha256(key.encode()).digest()
    rng = np.random.default_rng(int.from_bytes(digest[:8], "big"))
    found: set[tuple[int, ...]] = set()
    while len(found) < draws:
        found.add(tuple(sorted(rng.choice(runs, size, replace=False).tolist())))
    return sorted(found)


def _singles(case: Case, each: list[Bools], *, blind: bool) -> Iterator[Voters]:
    """Yield the mean of the partisan members, and the best of them."""
    yield Voters(MEAN, NONE, 1, np.concatenate(each))
    best = int(np.argmax([_score(case.true, own) for own in each]))
    yield Voters(BEST, NONE, 1, each[best])
    if blind:
        half = np.array([hashlib.sha256(name.encode()).digest()[0] % 2 == 0 for name in case.units])
        told = [
            int(np.argmax([_score(case.true[own], x[:, own]) for x in each]))
            for own in (~half, half)
        ]
        runs = min(len(own) for own in each)
        judged = np.where(half, each[told[0]][:runs], each[told[1]][:runs])
        yield Voters(BLIND, NONE, 1, judged)


def _score(true: Bools, predicted: Bools) -> float:
    """Return by what the best is chosen: the mean over runs of the balanced accuracy."""
    found = metrics(cells(true, predicted))[:, 0, CHOSEN_BY].mean()
    return float(found) if np.isfinite(found) else -1.0
