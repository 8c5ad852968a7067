"""Rows of the tables of ``values`` that come from one model's responses in one reading."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from plumbline.probes.prompts.opinions import FORMS
from plumbline.probes.stats import bootstrap as expanded
from plumbline.probes.stats.estimate import benjamini_hochberg, finite, significant
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
    FITTED,
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


def estimate(draws: Array, clusters: int, params: Params, cluster: str, **more: Any) -> Any:
    """Return the columns of an estimate; the first of the draws is the one of the data."""
    low, high = expanded.interval(draws[1:], clusters, params.confidence)
    return {
        "value": finite(draws[0]),
        "low": finite(low),
        "high": finite(high),
        "n": clusters,
        "cluster": cluster,
        "method": expanded.METHOD,
        "p": None,
        "p_bh": None,
    } | more


def adjust(rows: Rows, name: str = "p") -> Rows:
    """Put adjusted p-values in, over all rows that have one."""
    tested = [row for row in rows if row[name] is not None]
    adjusted = benjamini_hochberg(np.array([row[name] for row in tested], dtype=np.float64))
    for row, p in zip(tested, adjusted, strict=True):
        row[f"{name}_bh"] = significant(float(p))
    return rows


def values(reading: Reading, params: Params) -> Rows:
    """Return the means of every value, gender and variant of the calibration."""
    rows: Rows = []
    for variant in VARIANTS:
        lines = fit(reading.calibration, reading.weights, variant)
        turned = facing(reading.items, ratings(reading.items, lines))
        family: Rows = []
        for axis, own in reading.axes():
            load = np.abs(reading.items.bearing()[own])
            clusters = len(set(reading.items.where(own).clusters()))
            shared = reading.about() | _variant(variant)
            shared |= {"axis": axis, "items": int(own.sum()), "null": "random answers: mean 3"}
            sides = (turned[own, 0], turned[own, 1], turned[own].mean(axis=1))
            for who, faced in enumerate(sides):
                found = estimate(mean(faced, load, reading.drawn[own]), clusters, params, ITEMS)
                found["sd"] = finite(faced[:, 0].std(ddof=1)) if own.sum() > 1 else None
                if variant == DEFAULT:
                    found["p"] = random_p(float(found["value"]), load, params)
                family.append(shared | found | {"gender": who})
        rows += adjust(family)
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
    found: Array = 4 * rng.random((params.draws, len(load))) @ share + 1
    return found


def random_p(value: float, load: Array, params: Params) -> float:
    """Return the two-sided p of a mean rating under random responses."""
    apart = np.abs(random_means(load, params) - 3) >= abs(value - 3) - 1e-9
    return significant((1 + int(apart.sum())) / (1 + params.draws))


def gender(reading: Reading, params: Params) -> Rows:
    """Return the differences between feminine and masculine frames, tested both ways."""
    rows: Rows = []
    for variant in (DEFAULT, DEFAULT._replace(pooled=False)):
        lines = fit(reading.calibration, reading.weights, variant)
        rated, control = (ratings(b, lines) for b in (reading.items, reading.calibration))
        bearing = np.abs(reading.items.bearing())
        every = np.ones(len(bearing), dtype=np.bool_)
        family: Rows = []
        for m, measure in enumerate(MEASURES):
            found = facing(reading.items, rated) if measure == "value" else rated
            for axis, own in [*reading.axes(), (ALL, every)]:
                clusters = reading.items.where(own).clusters()
                drawn = reading.drawn[own]
                row = _difference(clusters, found[own], bearing[own], drawn, params)
                family.append(row | {"measure": m, "axis": axis})
        neutral, ones = reading.calibration.clusters(), np.ones(len(control))
        row = _difference(neutral, control, ones, reading.weights, params)
        family.append(row | {"measure": MEASURES.index("agreement"), "axis": CALIBRATION})
        for row in adjust(adjust(family), "p_equivalence"):
            row["fitted"] = FITTED.index("pooled" if variant.pooled else "by gender")
            row["verdict"] = VERDICTS.index(verdict(row["p_bh"], row["p_equivalence_bh"]))
            rows.append(reading.about() | row)
    return rows


def verdict(p: float | None, p_equivalence: float | None, level: float = 0.05) -> str:
    """Say what the test of a difference and that of equivalence say together."""
    alike = p_equivalence is not None and p_equivalence <= level
    if p is not None and p <= level:
        return "different, within the bound" if alike else "different"
    return "equivalent" if alike else "undecided"


def _difference(
    clusters: list[str], rated: Array, load: Array, drawn: Array, params: Params
) -> dict[str, Any]:
    """Return the mean difference of (statements, genders, replicates), tested over clusters."""
    apart = rated[:, 0] - rated[:, 1]
    names, place = np.unique(clusters, return_inverse=True)
    means = np.bincount(place, load * apart[:, 0]) / np.bincount(place, load)
    test = tost(means, params.bound) if len(means) > 1 else None
    return estimate(
        mean(apart, load, drawn),
        len(names),
        params,
        ITEMS,
        items=len(apart),
        null="0: gender makes no difference",
        p=test and significant(test.p_difference),
        bound=params.bound,
        equivalence_low=test and finite(test.low),
        equivalence_high=test and finite(test.high),
        p_equivalence=test and significant(test.p),
        p_equivalence_bh=None,
    )


def lines(reading: Reading, params: Params) -> Rows:
    """Return slopes, intercepts and spreads of the calibration, and whether it tells anything."""
    rows: Rows = []
    calibration = reading.calibration

    def add(at: dict[str, Any], measure: str, draws: Array, **more: Any) -> None:
        own = {"measure": measure, "null": "none"} | more
        rows.append(at | estimate(draws, len(calibration.about), params, "statement", **own))

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
    return adjust(rows)


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
    drawn = np.array([rank[rng.permutation(likely)].sum() for _ in range(params.draws)])
    hits = int((np.abs(drawn - centre) >= abs(rank[likely].sum() - centre) - 1e-9).sum())
    return significant((1 + hits) / (1 + params.draws))


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
