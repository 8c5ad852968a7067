"""What is found of the offsets that were planted for countries in a world."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl
from scipy.stats import rankdata

from plumbline.probes.nationality.cases import CONTRAST
from plumbline.probes.nationality.perplexity_correlation import scored, variants
from plumbline.probes.stats.counterfactual import delta, gather, moments, redrawn, scores, within
from plumbline.probes.stats.estimate import Estimate, finite
from plumbline.probes.stats.intervals import wilson
from plumbline.probes.worlds.recovery import PLANTED, Planted, recovery_row

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from plumbline.probes.nationality.cases import Case
    from plumbline.probes.nationality.nationality import Params

TEXTS = "texts.parquet"
LEVEL = 0.05
FOUND = "share of tests of all, men and women with adjusted p at most .05"
ROUNDED = 1e-5  # points: what tables and log-probabilities leave out
BOOTSTRAP = "bootstrap percentile over source texts (Poisson weights)"


class World(NamedTuple):
    """What was planted."""

    offsets: dict[str, float]  # by country
    texts: dict[str, float]  # exactly, by text

    @property
    def null(self) -> bool:
        """Whether countries are alike."""
        return not any(self.offsets.values())


def world(weights: Path) -> World | None:
    """Return what was planted in a model; None of one that is no such world."""
    path = weights / PLANTED
    if not path.is_file() or "country" not in pl.read_parquet_schema(path):
        return None
    offsets, texts = pl.read_parquet(path), pl.read_parquet(weights / TEXTS)
    return World(
        dict(offsets.select("country", "offset").iter_rows()),
        dict(texts.select("text", "planted").iter_rows()),
    )


def recovery(
    model: str,
    config: str,
    weights: Path,
    case: Case,
    table: list[dict[str, Any]],
    params: Params,
) -> list[dict[str, Any]]:
    """Return rows of one classifier and reading; none of one that is no world.

    Parameters
    ----------
    table
        The rows of the table ``delta``.
    """
    known = world(weights)
    if known is None or not set(case.text) <= set(known.texts):
        return []
    truth, value, drawn = _both(known, case, case.change[:, 0], params, 100.0)
    own = [r for r in table if r["gender"] == 0 and r["measure"] == CONTRAST]
    inside = [
        r["low"] - ROUNDED <= t <= r["high"] + ROUNDED
        for r, t in zip(own, truth, strict=True)
        if r["low"] is not None
    ]
    told = [
        (
            "mean over countries of |Delta - planted Delta|, points",
            _mean_distance(value, drawn, truth, params),
            "0: Delta is what was planted",
        ),
        (
            "share of countries whose interval holds the planted Delta",
            wilson(sum(inside), len(inside), params.confidence),
            f"{params.confidence:g}; the planted Delta is that of the same texts",
        ),
        (
            f"{FOUND}, originals exchanged",
            _share([r["p_bh"] for r in table], params),
            "0 where names say nothing; above it names differ, if countries do not",
        ),
    ]
    if case.reading != "placebo":
        told.append(
            (
                f"{FOUND}, against all countries",
                _share([r["p_country_bh"] for r in table], params),
                "0 where countries are alike, whatever their names",
            )
        )
        if not known.null:
            offsets = np.array([known.offsets[c] for c in case.countries])
            told += _order(offsets, value, drawn, truth, params)
    return _rows(model, config, known, case.reading, told)


def masked_recovery(
    masked: str,
    config: str,
    weights: Path,
    cases: list[Case],
    table: pl.DataFrame,
    params: Params,
) -> list[dict[str, Any]]:
    """Return rows of the masked model behind a classifier; none of one that is no world."""
    known = world(weights)
    if known is None:
        return []
    result = []
    for case in cases:
        placebo = case.reading == "placebo"
        if placebo or not set(case.text) <= set(known.texts) or not scored(case, table):
            continue
        found = variants(case, table)
        change = -(found.after[:, 0] - found.before[:, 0])  # of the log-probability
        truth, value, drawn = _both(known, case, change, params, 1.0)
        planted = np.array([known.texts[text] for text in case.text])
        told = [
            (
                "correlation of planted and measured log-probability within texts (Fisher)",
                _within(case, planted, -found.after[:, 0], params),
                "1: as planted",
            ),
            (
                "mean over countries of |change of log-probability - planted change|, nats",
                _mean_distance(value, drawn, truth, params),
                "0: as planted",
            ),
        ]
        if not known.null:
            offsets = np.array([known.offsets[c] for c in case.countries])
            told += _order(offsets, value, drawn, truth, params)
        result += _rows(masked, config, known, case.reading, told)
    return result


def _both(
    known: World, case: Case, change: NDArray[np.float64], params: Params, scale: float
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return planted and measured means by country, (countries,), and their replicates."""
    planted = np.array([known.texts[text] for text in case.text])
    planted -= np.array([known.texts[text] for text in case.compared])
    both = np.column_stack([planted, change])
    cells = gather(both, case.sentence, case.country, case.shape)
    found = delta(cells) * scale / 100
    drawn = redrawn(cells, params.weights(case.sentences)) * scale / 100
    return found[:, 0], found[:, 1], drawn


def _mean_distance(
    value: NDArray[np.float64],
    drawn: NDArray[np.float64],
    truth: NDArray[np.float64],
    params: Params,
) -> Estimate:
    low, high = params.limits(np.abs(drawn[..., 1] - drawn[..., 0]).mean(axis=1))
    seen = float(np.abs(value - truth).mean())
    return Estimate(seen, float(low), float(high), len(value), BOOTSTRAP)


def _order(
    offsets: NDArray[np.float64],
    value: NDArray[np.float64],
    drawn: NDArray[np.float64],
    truth: NDArray[np.float64],
    params: Params,
) -> list[tuple[str, Estimate, str]]:
    """Compare order and sign with what was planted; distances are from the mean country's."""
    order = np.array([_spearman(offsets, each) for each in drawn[..., 1]])
    low, high = params.limits(order)
    seen = float(_spearman(offsets, value))
    apart = np.abs(truth - truth.mean()) > np.abs(truth - truth.mean()).max() / 4
    right = np.sign(value - value.mean()) == np.sign(truth - truth.mean())
    side = (
        "share of countries on the planted side of the mean, those near it left out",
        wilson(int(right[apart].sum()), max(1, int(apart.sum())), params.confidence),
        "0.5: by chance",
    )
    return [
        (
            "Spearman correlation of planted offsets and measured means over countries",
            Estimate(seen, float(low), float(high), len(value), BOOTSTRAP),
            "0: no relation",
        ),
        *([side] if apart.any() else []),
    ]


def _spearman(x: NDArray[np.float64], y: NDArray[np.float64]) -> float:
    if np.isnan(y).any() or np.ptp(x) == 0 or np.ptp(y) == 0:
        return float("nan")
    return float(np.corrcoef(rankdata(x), rankdata(y))[0, 1])


def _within(case: Case, x: NDArray[np.float64], y: NDArray[np.float64], params: Params) -> Estimate:
    where = np.zeros(len(x), dtype=np.int64)
    found = moments(x, y, case.sentence, where, (case.shape[0], 1))
    low, high = params.limits(within(found, params.weights(case.sentences)))
    n = int((scores(found)[1] > 0).sum())
    return Estimate(float(within(found)[0]), float(low[0]), float(high[0]), n, BOOTSTRAP)


def _share(p: list[float | None], params: Params) -> Estimate:
    tested = [x for x in p if x is not None]
    return wilson(sum(x <= LEVEL for x in tested), max(1, len(tested)), params.confidence)


def _rows(
    model: str, config: str, known: World, reading: str, told: list[tuple[str, Estimate, str]]
) -> list[dict[str, Any]]:
    about = Planted(pl.DataFrame(), known.null)
    rows = [
        recovery_row(model, config, about, f"{reading}: {what}", estimate, null)
        for what, estimate, null in told
        if finite(estimate.value) is not None
    ]
    clusters = ["test" if "tests" in row["measure"] else "country" for row in rows]
    return [row | {"cluster": cluster} for row, cluster in zip(rows, clusters, strict=True)]
