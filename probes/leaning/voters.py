"""Who votes in the ensembles that are compared."""

from __future__ import annotations

import hashlib
from itertools import combinations
from math import comb
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from plumbline.probes.leaning.predictions import Runs
from plumbline.probes.stats.classification import METRICS, VOTES, cells, metrics, vote

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from plumbline.probes.leaning.predictions import Case

    Bools = NDArray[np.bool_]
    Floats = NDArray[np.float64]

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
