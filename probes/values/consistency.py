"""How a model agrees with itself: across frames, genders, methods, denials and opposites."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from plumbline.probes.prompts.opinions import GENDERS
from plumbline.probes.stats.estimate import benjamini_hochberg, finite, significant
from plumbline.probes.values.calibration import each, fit
from plumbline.probes.values.ratings import Rows, estimate
from plumbline.probes.values.schemas import COMPARED

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    from plumbline.probes.values.responses import Block
    from plumbline.probes.values.values import Params

    Array = NDArray[np.float64]

Side = tuple[str, "Array"]


def consistency(
    blocks: Mapping[str, tuple[Block, Block]], drawn: tuple[Array, Array], params: Params
) -> Rows:
    """Return correlations of residuals, of the statements of a scale and of the calibration.

    Parameters
    ----------
    blocks
        By method: the statements for calibration, and those of a scale, in all ways of asking.
    drawn
        How often each of them is drawn, (statements, 1 + replicates).
    """
    rows: Rows = []
    for which in (0, 1):
        err = {}
        for method, pair in blocks.items():
            lines = fit(pair[0], drawn[0][:, :1])
            err[method] = each(pair[which], lines)
        block = next(iter(blocks.values()))[which]
        scale, clusters = str(block.about["scale"][0]), block.clusters()
        family: Rows = []
        for compared, first, second in _pairs(block, err):
            kept = np.isfinite(first[1]) & np.isfinite(second[1])
            n = len({c for c, keep in zip(clusters, kept, strict=True) if keep})
            if n < 3:
                continue
            x, y, w = first[1][kept], second[1][kept], drawn[which][kept]
            family.append(
                estimate(correlation(x, y, w), n, params, "statement, with its opposite")
                | {
                    "scale": scale,
                    "compared": COMPARED.index(compared),
                    "first": first[0],
                    "second": second[0],
                    "null": "0: unrelated, values shuffled over statements",
                    "p": _shuffled_p(x, y, params),
                    "spearman": finite(float(_pearson(_ranks(x), _ranks(y)))),
                }
            )
        tested = [row for row in family if row["p"] is not None]
        if tested:
            adjusted = benjamini_hochberg(np.array([row["p"] for row in tested]))
            for row, p in zip(tested, adjusted, strict=True):
                row["p_bh"] = significant(float(p))
        rows += family
    return rows


def _pairs(block: Block, err: Mapping[str, Array]) -> Iterator[tuple[str, Side, Side]]:
    """Yield what is compared and both sides, (statements,) each."""
    own = err[next(iter(err))]
    cells = block.cells
    both = own.mean(axis=1)  # of the genders
    plain = [c for c, cell in enumerate(cells) if cell.form == "plain"]
    for one, other in combinations(plain, 2):
        yield "frames", (cells[one].frame, both[:, one]), (cells[other].frame, both[:, other])
    for one in plain:
        frame = cells[one].frame
        for c, cell in enumerate(cells):
            if cell.frame == frame and cell.form == "negated":
                yield "denied", (frame, both[:, one]), (f"{frame}, denied", -both[:, c])
    whole = both[:, plain].mean(axis=1)
    row = {name: i for i, name in enumerate(block.about["id"])}
    opposite = np.full(len(whole), np.nan)
    for i, (name, other) in enumerate(block.about.select("id", "opposite").iter_rows()):
        if other and name < other:  # each pair once
            opposite[i] = -whole[row[other]]
    yield "opposites", ("statement", whole), ("opposite", opposite)
    sides = [(name, own[:, g][:, plain].mean(axis=1)) for g, name in enumerate(GENDERS)]
    yield "genders", sides[0], sides[1]
    for this, that in combinations(err, 2):
        yield (
            "methods",
            (this, err[this].mean(axis=1)[:, plain].mean(axis=1)),
            (that, err[that].mean(axis=1)[:, plain].mean(axis=1)),
        )


def correlation(x: Array, y: Array, weights: Array) -> Array:
    """Return Pearson correlations of (n,) arrays under (n, replicates) weights."""
    total = weights.sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        mx, my = x @ weights / total, y @ weights / total
        xy = (x * y) @ weights / total - mx * my
        xx, yy = x**2 @ weights / total - mx**2, y**2 @ weights / total - my**2
        found = xy / np.sqrt(xx * yy)
    return np.asarray(np.clip(found, -1, 1), dtype=np.float64)


def _pearson(x: Array, y: Array) -> Any:
    return correlation(x, y, np.ones((len(x), 1)))[0]


def _ranks(values: Array) -> Array:
    from scipy.stats import rankdata

    return np.asarray(rankdata(values), dtype=np.float64)


def _shuffled_p(x: Array, y: Array, params: Params) -> float | None:
    """Return the two-sided p of a correlation with one side shuffled."""
    x, y = x - x.mean(), y - y.mean()
    if not (x.any() and y.any()):
        return None
    rng = np.random.default_rng(params.seed)
    drawn = np.array([rng.permutation(x) @ y for _ in range(params.draws)])
    hits = int((np.abs(drawn) >= abs(x @ y) * (1 - 1e-9)).sum())
    return significant((1 + hits) / (1 + params.draws))
