"""Rows of the tables of ``values`` that come from one model's responses in one reading."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from plumbline.probes.prompts.opinions import FORMS
from plumbline.probes.stats.bootstrap import METHOD, interval
from plumbline.probes.stats.estimate import Estimate, finite, significant
from plumbline.probes.stats.tests import tost
from plumbline.probes.values.calibration import (
    DEFAULT,
    VARIANTS,
    facing,
    fit,
    mean,
    probability,
    ratings,
    residuals,
)
from plumbline.probes.values.schemas import (
    ALL,
    CALIBRATION,
    COMBINED,
    MEASURES,
    READINGS,
    VERDICTS,
    WHO,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from plumbline.probes.values.calibration import Fit, Variant
    from plumbline.probes.values.responses import Block
    from plumbline.probes.values.schemas import Params

    Array = NDArray[np.float64]

Rows = list[dict[str, Any]]
ITEMS = "statement, with its opposite"


class Reading(NamedTuple):
    """Responses of a model in one reading, and how often each statement is drawn."""

    name: str
    calibration: Block
    items: Block  # of one scale
    weights: Array  # (statements of the calibration, 1 + replicates)
    drawn: Array  # (statements, 1 + replicates)

    def about(self) -> dict[str, Any]:
        """Return the columns that all of its rows share."""
        scale = str(self.items.about["scale"][0])
        return {"scale": scale, "reading": READINGS.index(self.name)}

    def axes(self) -> Iterator[tuple[str, NDArray[np.bool_]]]:
        """Yield each value and which rows bear on it."""
        axis = self.items.about["axis"].to_numpy()
        for name in sorted(set(axis.tolist())):
            yield name, axis == name


def estimate(draws: Array, clusters: int, params: Params, **more: Any) -> dict[str, Any]:
    """Return the columns of an estimate; the first of the draws is the one of the data."""
    low, high = interval(draws[1:], clusters, params.confidence)
    found = Estimate(float(draws[0]), low, high, clusters, METHOD)
    return found.row(**{"cluster": ITEMS} | more)


def values(reading: Reading, params: Params) -> Rows:
    """Return the means of every value, gender and variant of the calibration."""
    rows: Rows = []
    for variant in VARIANTS:
        lines = fit(reading.calibration, reading.weights, variant)
        turned = facing(reading.items, ratings(reading.items, lines))
        for axis, own in reading.axes():
            load = np.abs(reading.items.bearing()[own])
            clusters = len(set(reading.items.where(own).clusters()))
            shared = reading.about() | _variant(variant)
            shared |= {"axis": axis, "items": int(own.sum()), "null": "random answers: mean 3"}
            sides = (turned[own, 0], turned[own, 1], turned[own].mean(axis=1))
            for who, faced in enumerate(sides):
                draws = mean(faced, load, reading.drawn[own])
                shared["p"] = random_p(draws[0], load, params) if variant == DEFAULT else None
                sd = finite(faced[:, 0].std(ddof=1)) if own.sum() > 1 else None
                rows.append(estimate(draws, clusters, params, gender=who, sd=sd, **shared))
    return rows


def _variant(variant: Variant) -> dict[str, Any]:
    return {
        "fitted": int(not variant.pooled),
        "intercept": variant.intercept,
        "spread": int(variant.ddof == 0),
    }


def random_means(load: Array, params: Params) -> Array:
    """Return mean ratings of random responses, (draws,).

    Every P uniform on 0 to 1, as it is for statements that are like the apolitical ones.
    """
    rng = np.random.default_rng(params.seed)
    share = load / load.sum()
    found: Array = 4 * rng.random((params.n_permutations, len(load))) @ share + 1
    return found


def random_p(value: float, load: Array, params: Params) -> float:
    """Return the two-sided p of a mean rating under random responses."""
    apart = np.abs(random_means(load, params) - 3) >= abs(value - 3) - 1e-9
    return (1 + int(apart.sum())) / (1 + params.n_permutations)


def gender(reading: Reading, params: Params) -> Rows:
    """Return the differences between feminine and masculine frames, tested both ways."""
    rows: Rows = []
    for fitted, variant in enumerate((DEFAULT, DEFAULT._replace(pooled=False))):
        lines = fit(reading.calibration, reading.weights, variant)
        rated, control = (ratings(b, lines) for b in (reading.items, reading.calibration))
        bearing = np.abs(reading.items.bearing())
        about = reading.about() | {"fitted": fitted}
        every = np.ones(len(bearing), dtype=np.bool_)
        for m, measure in enumerate(MEASURES):
            found = facing(reading.items, rated) if measure == "value" else rated
            for axis, own in [*reading.axes(), (ALL, every)]:
                clusters = reading.items.where(own).clusters()
                key = about | {"measure": m, "axis": axis}
                drawn = reading.drawn[own]
                rows.append(key | _difference(clusters, found[own], bearing[own], drawn, params))
        neutral, ones = reading.calibration.clusters(), np.ones(len(control))
        key = about | {"measure": MEASURES.index("agreement"), "axis": CALIBRATION}
        rows.append(key | _difference(neutral, control, ones, reading.weights, params))
    return rows


def verdict(p: float | None, p_equivalence: float | None, level: float = 0.05) -> int:
    """Return what the test of a difference and that of equivalence say together."""
    apart, alike = (x is not None and x <= level for x in (p, p_equivalence))
    names = {(False, False): "undecided", (False, True): "equivalent", (True, False): "different"}
    return VERDICTS.index(names.get((apart, alike), "different, within the margin"))


def _difference(
    clusters: list[str], rated: Array, load: Array, drawn: Array, params: Params
) -> dict[str, Any]:
    """Return the mean difference of (statements, genders, replicates), tested over clusters."""
    apart = rated[:, 0] - rated[:, 1]
    names, place = np.unique(clusters, return_inverse=True)
    means = np.bincount(place, load * apart[:, 0]) / np.bincount(place, load)
    test = tost(means, params.equivalence_margin) if len(means) > 1 else None
    return estimate(
        mean(apart, load, drawn),
        len(names),
        params,
        items=len(apart),
        null="0: gender makes no difference",
        p=test and test.p_difference,
        equivalence_margin=params.equivalence_margin,
        equivalence_low=test and finite(test.low),
        equivalence_high=test and finite(test.high),
        p_equivalence=test and significant(test.p),
    )


def lines(reading: Reading, params: Params) -> Rows:
    """Return slopes, intercepts and spreads of the calibration, and its area under the curve."""
    rows: Rows = []
    calibration = reading.calibration
    n = len(calibration.about)

    def add(at: dict[str, Any], measure: str, draws: Array, **more: Any) -> None:
        own = {"measure": measure, "cluster": "statement", "null": "none"} | more
        rows.append(estimate(draws, n, params, **at, **own))

    for variant in (v for v in VARIANTS if v.ddof == 1):
        found = fit(calibration, reading.weights, variant)
        smaller = fit(calibration, reading.weights, variant._replace(ddof=0))
        left = residuals(calibration, found)
        for g, name in enumerate(("both",) if variant.pooled else WHO[:2]):
            about = {"reading": READINGS.index(reading.name), "gender": WHO.index(name)}
            about |= {"fitted": int(not variant.pooled), "intercept": variant.intercept}
            for c, cell in enumerate(calibration.cells):
                at = about | {"frame": cell.frame, "form": FORMS.index(cell.form)}
                add(at, "slope", found.slope[g, c])
                if variant.intercept:
                    add(at, "intercept", found.base[g, c])
            at = about | {"frame": COMBINED, "form": FORMS.index("plain")}
            add(at, "sigma (n-1)", found.sigma[g])
            add(at, "sigma (n)", smaller.sigma[g])
            err = left.mean(axis=1) if variant.pooled else left[:, g]
            p, null = _above_p(reading, err[:, 0], params), "0.5: no better than chance"
            add(at, "likely above unlikely", _above(reading, err), null=null, p=p)
    return rows


def _above(reading: Reading, err: Array) -> Array:
    """Return how often a likely statement is agreed with more than an unlikely one."""
    likely = reading.calibration.about["likely"].to_numpy()
    up, down = np.flatnonzero(likely), np.flatnonzero(~likely)
    total = np.zeros(err.shape[1])
    for i in up:
        wins = (err[i] > err[down]) + 0.5 * (err[i] == err[down])
        total += reading.weights[i] * (wins * reading.weights[down]).sum(axis=0)
    with np.errstate(invalid="ignore"):
        share: Array = total / (reading.weights[up].sum(axis=0) * reading.weights[down].sum(axis=0))
    return share


def _above_p(reading: Reading, err: Array, params: Params) -> float:
    """Return the two-sided p of that share with likely and unlikely statements shuffled."""
    likely = reading.calibration.about["likely"].to_numpy()
    rank = np.argsort(np.argsort(err, kind="stable"), kind="stable").astype(np.float64)
    rng = np.random.default_rng(params.seed)
    centre = rank.mean() * likely.sum()
    drawn = np.array([rank[rng.permutation(likely)].sum() for _ in range(params.n_permutations)])
    hits = int((np.abs(drawn - centre) >= abs(rank[likely].sum() - centre) - 1e-9).sum())
    return (1 + hits) / (1 + params.n_permutations)


def answers(reading: Reading, found: Fit) -> Rows:
    """Return the rating of each statement, those for calibration too."""
    rows: Rows = []
    for part in (reading.calibration, reading.items):
        err = residuals(part, found)[..., 0]
        p = probability(err, found.sigma[:, 0])
        about = part.about.select("scale", "axis", "id", "reversed").to_dicts()
        rows += [
            row
            | {
                "reading": READINGS.index(reading.name),
                "gender": g,
                "residual_nats": finite(err[i, g]),
                "probability": finite(p[i, g]),
                "rating": finite(4 * p[i, g] + 1),
            }
            for i, row in enumerate(about)
            for g in range(2)
        ]
    return rows


def points(reading: Reading) -> Rows:
    """Return all that a reading is computed from: the log-probabilities of every prompt."""
    return [
        row
        | {
            "reading": READINGS.index(reading.name),
            "cluster": cluster,
            "gender": g,
            "frame": cell.frame,
            "form": FORMS.index(cell.form),
            "disagree_nats": finite(part.disagree[i, g, c]),
            "agree_nats": finite(part.agree[i, g, c]),
        }
        for part in (reading.calibration, reading.items)
        for i, (row, cluster) in enumerate(
            zip(
                part.about.select("questionnaire", "scale", "axis", "id", "bearing").to_dicts(),
                part.clusters(),
                strict=True,
            )
        )
        for g in range(2)
        for c, cell in enumerate(part.cells)
    ]
