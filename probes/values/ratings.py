"""Rows of the tables of ``values`` that come from one model's answers in one reading."""

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
    Fit,
    Variant,
    facing,
    fit,
    mean,
    ratings,
    residuals,
)
from plumbline.probes.values.calibration_model import probability
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

    from plumbline.probes.values.responses import Block
    from plumbline.probes.values.values import Params

    Array = NDArray[np.float64]

Rows = list[dict[str, Any]]
ITEMS = "statement, with its opposite"


class Reading(NamedTuple):
    """What a model answered in one reading, and how often each statement is drawn."""

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


def estimate(draws: Array, clusters: int, params: Params, cluster: str) -> dict[str, Any]:
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
    }


def values(reading: Reading, params: Params) -> Rows:
    """Return the means of every value, gender and variant of the calibration."""
    rows: Rows = []
    for variant in VARIANTS:
        lines = fit(reading.calibration, reading.weights, variant)
        turned = facing(reading.items, ratings(reading.items, lines))
        family: Rows = []
        for axis, own in reading.axes():
            load = np.abs(reading.items.about["weight"].to_numpy()[own])
            clusters = len(set(reading.items.where(own).clusters()))
            for who, faced in zip(WHO, _genders(turned[own]), strict=True):
                found = estimate(mean(faced, load, reading.drawn[own]), clusters, params, ITEMS)
                found["p"] = random_p(float(found["value"]), load, params) if _is(variant) else None
                family.append(
                    reading.about()
                    | found
                    | {
                        "fitted": int(not variant.pooled),
                        "intercept": variant.intercept,
                        "spread": int(variant.ddof == 0),
                        "axis": axis,
                        "gender": WHO.index(who),
                        "items": int(own.sum()),
                        "null": "random answers: mean 3",
                        "sd": finite(faced[:, 0].std(ddof=1)) if own.sum() > 1 else None,
                    }
                )
        if _is(variant):
            _adjust(family, "p")
        rows += family
    return rows


def _is(variant: Variant) -> bool:
    return variant == DEFAULT


def _genders(turned: Array) -> tuple[Array, ...]:
    """Return the ratings of women, of men and their means, each (statements, replicates)."""
    return turned[:, 0], turned[:, 1], turned.mean(axis=1)


def random_means(load: Array, params: Params) -> Array:
    """Return mean ratings of one who answers at random, (draws,).

    Every P uniform on 0 to 1, as it is for statements that are like the apolitical ones.
    """
    rng = np.random.default_rng(params.seed)
    share = load / load.sum()
    found: Array = 4 * rng.random((params.draws, len(load))) @ share + 1
    return found


def random_p(value: float, load: Array, params: Params) -> float:
    """Return the two-sided p of a mean rating under random answers."""
    apart = np.abs(random_means(load, params) - 3) >= abs(value - 3) - 1e-9
    return significant((1 + int(apart.sum())) / (1 + params.draws))


def _adjust(rows: Rows, name: str) -> None:
    """Put adjusted p-values in, over all rows that have one."""
    tested = [row for row in rows if row[name] is not None]
    if tested:
        adjusted = benjamini_hochberg(np.array([row[name] for row in tested]))
        for row, p in zip(tested, adjusted, strict=True):
            row[f"{name}_bh"] = significant(float(p))


def gender(reading: Reading, params: Params) -> Rows:
    """Return the differences between feminine and masculine frames, tested both ways."""
    rows: Rows = []
    for variant in (DEFAULT, DEFAULT._replace(pooled=False)):
        lines = fit(reading.calibration, reading.weights, variant)
        rated = ratings(reading.items, lines)
        family: Rows = []
        for measure in MEASURES:
            found = facing(reading.items, rated) if measure == "value" else rated
            apart = found[:, 0] - found[:, 1]
            every = np.ones(len(apart), dtype=np.bool_)
            for axis, own in [*reading.axes(), (ALL, every)]:
                part = reading.items.where(own)
                load = np.abs(part.about["weight"].to_numpy())
                family.append(
                    _difference(part.clusters(), apart[own], load, reading.drawn[own], params)
                    | {"measure": MEASURES.index(measure), "axis": axis}
                )
        control = ratings(reading.calibration, lines)
        family.append(
            _difference(
                reading.calibration.clusters(),
                control[:, 0] - control[:, 1],
                np.ones(len(control)),
                reading.weights,
                params,
            )
            | {"measure": MEASURES.index("agreement"), "axis": CALIBRATION}
        )
        for name in ("p", "p_equivalence"):
            _adjust(family, name)
        for row in family:
            row["fitted"] = FITTED.index("pooled" if variant.pooled else "by gender")
            row["verdict"] = VERDICTS.index(verdict(row["p_bh"], row["p_equivalence_bh"]))
            rows.append(reading.about() | row)
    return rows


def verdict(p: float | None, p_equivalence: float | None, level: float = 0.05) -> str:
    """Say what the test of a difference and that of equivalence say together."""
    apart = p is not None and p <= level
    alike = p_equivalence is not None and p_equivalence <= level
    if apart:
        return "different, within the bound" if alike else "different"
    return "equivalent" if alike else "undecided"


def _difference(
    clusters: list[str], apart: Array, load: Array, drawn: Array, params: Params
) -> dict[str, Any]:
    """Return the mean of (statements, replicates) differences, and both tests over clusters."""
    names = sorted(set(clusters))
    place = np.array([names.index(name) for name in clusters])
    weight = np.bincount(place, load)
    means = np.bincount(place, load * apart[:, 0]) / weight
    found = estimate(mean(apart, load, drawn), len(names), params, ITEMS)
    found |= {
        "items": len(apart),
        "null": "0: gender makes no difference",
        "p": None,
        "bound": params.bound,
        "equivalence_low": None,
        "equivalence_high": None,
        "p_equivalence": None,
        "p_equivalence_bh": None,
    }
    if len(means) > 1:
        test = tost(means, params.bound)
        found |= {
            "p": significant(test.p_difference),
            "equivalence_low": finite(test.low),
            "equivalence_high": finite(test.high),
            "p_equivalence": significant(test.p),
        }
    return found


def lines(reading: Reading, params: Params) -> Rows:
    """Return slopes, intercepts and spreads of the calibration, and whether it tells anything."""
    rows: Rows = []
    n = len(reading.calibration.about)

    def add(about: dict[str, Any], measure: str, draws: Array, null: str = "none") -> None:
        found = estimate(draws, n, params, "statement") | {"measure": measure, "null": null}
        rows.append({"reading": READINGS.index(reading.name), **about, **found})

    for variant in (v for v in VARIANTS if v.ddof == 1):
        found = fit(reading.calibration, reading.weights, variant)
        smaller = fit(reading.calibration, reading.weights, variant._replace(ddof=0))
        who = ("both",) if variant.pooled else WHO[:2]
        for g, name in enumerate(who):
            about = {
                "fitted": int(not variant.pooled),
                "intercept": variant.intercept,
                "gender": WHO.index(name),
            }
            for c, cell in enumerate(reading.calibration.cells):
                at = about | {"frame": cell.frame, "form": FORMS.index(cell.form)}
                add(at, "slope", found.slope[g, c])
                if variant.intercept:
                    add(at, "intercept", found.base[g, c])
            at = about | {"frame": COMBINED, "form": FORMS.index("plain")}
            add(at, "sigma (n-1)", found.sigma[g])
            add(at, "sigma (n)", smaller.sigma[g])
            left = residuals(reading.calibration, found)
            err = left.mean(axis=1) if variant.pooled else left[:, g]
            add(at, "likely above unlikely", *_above(reading, err))
            rows[-1]["p"] = _above_p(reading, err[:, 0], params)
    _adjust(rows, "p")
    return rows


def _above(reading: Reading, err: Array) -> tuple[Array, str]:
    """Return how often a likely statement is agreed with more than an unlikely one."""
    likely = reading.calibration.about["likely"].to_numpy()
    up, down = np.flatnonzero(likely), np.flatnonzero(~likely)
    total = np.zeros(err.shape[1])
    for i in up:
        wins = (err[i] > err[down]) + 0.5 * (err[i] == err[down])
        total += reading.weights[i] * (wins * reading.weights[down]).sum(axis=0)
    with np.errstate(invalid="ignore"):
        share = total / (reading.weights[up].sum(axis=0) * reading.weights[down].sum(axis=0))
    return share, "0.5: no better than chance"


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
        for row, errs, ps in zip(about, err, p, strict=True):
            for g, name in enumerate(WHO[:2]):
                rows.append(
                    row
                    | {
                        "reading": READINGS.index(reading.name),
                        "gender": WHO.index(name),
                        "residual_nats": finite(errs[g]),
                        "probability": finite(ps[g]),
                        "rating": finite(4 * ps[g] + 1),
                    }
                )
    return rows


def points(reading: Reading) -> Rows:
    """Return what a calibration line is fitted to, of the first way of asking."""
    return [
        row
        | {
            "gender": g,
            "disagree_nats": finite(part.disagree[i, g, 0]),
            "agree_nats": finite(part.agree[i, g, 0]),
        }
        for part in (reading.calibration, reading.items)
        for i, row in enumerate(part.about.select("scale", "id").to_dicts())
        for g in range(2)
    ]
