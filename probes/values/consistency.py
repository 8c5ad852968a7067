"""How a model agrees with itself: across frames, genders, methods, denials and opposites."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from plumbline.probes.prompts.opinions import GENDERS
from plumbline.probes.stats.estimate import finite
from plumbline.probes.stats.intervals import rank_correlations
from plumbline.probes.values.calibration import each, fit
from plumbline.probes.values.ratings import Rows, estimate
from plumbline.probes.values.schemas import COMPARED

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    from plumbline.probes.values.responses import Block
    from plumbline.probes.values.schemas import Params

    Array = NDArray[np.float64]

Side = tuple[str, "Array"]


def consistency(
    blocks: Mapping[str, tuple[Block, Block]], drawn: tuple[Array, Array], params: Params
) -> Rows:
    """Return correlations of residuals, of the statements of a scale and of the calibration.

    Parameters
    ----------
    blocks
        By method: the statements for calibration, and those of a scale, in all frames and forms.
    drawn
        How often each of them is drawn, (statements, 1 + replicates).
    """
    rows: Rows = []
    for which in (0, 1):
        err = {m: each(pair[which], fit(pair[0], drawn[0][:, :1])) for m, pair in blocks.items()}
        block = next(iter(blocks.values()))[which]
        clusters = np.array(block.clusters())
        for compared, (first, one), (second, two) in _pairs(block, err):
            kept = np.isfinite(one) & np.isfinite(two)
            n = len(set(clusters[kept]))
            if n < 3:
                continue
            x, y = one[kept], two[kept]
            key = {"scale": str(block.about["scale"][0]), "compared": COMPARED.index(compared)}
            rows.append(
                estimate(
                    correlation(x, y, drawn[which][kept]),
                    n,
                    params,
                    null="0: unrelated, values shuffled over statements",
                    p=_shuffled_p(x, y, params),
                    first=first,
                    second=second,
                    spearman=finite(float(rank_correlations(x, y))),
                    **key,
                )
            )
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
    means = {method: own.mean(axis=1)[:, plain].mean(axis=1) for method, own in err.items()}
    for this, that in combinations(means, 2):
        yield "methods", (this, means[this]), (that, means[that])


def correlation(x: Array, y: Array, weights: Array) -> Array:
    """Return Pearson correlations of (n,) arrays under (n, replicates) weights."""
    total = weights.sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        mx, my = x @ weights / total, y @ weights / total
        xy = (x * y) @ weights / total - mx * my
        xx, yy = x**2 @ weights / total - mx**2, y**2 @ weights / total - my**2
        found = xy / np.sqrt(xx * yy)
    return np.asarray(np.clip(found, -1, 1), dtype=np.float64)


def _shuffled_p(x: Array, y: Array, params: Params) -> float | None:
    """Return the two-sided p of a correlation with one side shuffled."""
    x, y = x - x.mean(), y - y.mean()
    if not (x.any() and y.any()):
        return None
    rng = np.random.default_rng(params.seed)
    drawn = np.array([rng.permutation(x) @ y for _ in range(params.draws)])
    hits = int((np.abs(drawn) >= abs(x @ y) * (1 - 1e-9)).sum())
    return (1 + hits) / (1 + params.draws)
