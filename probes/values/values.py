"""Analysis ``values``: the political values that a model seems to have, and what gender does to it.

Al Ali and Libovický (2024): agreement with political statements beyond the habit of agreeing, which
statements about nothing political tell; rated from 1 to 5 and held against a survey.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from plumbline.builders.core.errors import UserError
from plumbline.probes.prompts.opinions import GENDERS
from plumbline.probes.stats.estimate import adjusted, finite, typed
from plumbline.probes.stats.intervals import rank_correlations
from plumbline.probes.values import ratings as rows_of
from plumbline.probes.values.calibration import each, fit
from plumbline.probes.values.ratings import Reading, estimate
from plumbline.probes.values.responses import Cell, answers, block, statements
from plumbline.probes.values.schemas import COMPARISONS, SCHEMAS, Params
from plumbline.probes.values.survey import baselines, respondents, standing, surveys

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    from plumbline.probes.core.run_analysis import Inputs
    from plumbline.probes.values.ratings import Rows
    from plumbline.probes.values.responses import Block

    Array = NDArray[np.float64]

EACH = False
DATASETS = ("statements", "survey")
OUTPUTS = ("agreement",)
TABLES = ()
METHODS = {"faithful": ("together", "sequence"), "corrected": ("l2r", "sequence")}
OPTIONAL = ("respondents", "standing")  # tables that may have no row
FAMILIES = {  # columns that are equal in tests that are adjusted together
    "values": ("model", "language", "scale", "reading"),
    "gender": ("model", "language", "scale", "reading", "fitted"),
    "calibration": ("model", "language", "reading"),
    "consistency": ("model", "language", "scale"),
}
__all__ = ["SCHEMAS", "Params"]

Side = tuple[str, "Array"]


def run(inputs: Inputs, params: Params) -> dict[str, pl.DataFrame]:
    """Compute the tables of all models.

    Returns
    -------
    dict
        Columns as in :data:`SCHEMAS`.

    Raises
    ------
    UserError
        If a language has no statements for calibration, or none that bear on a value.
    """
    folder = inputs.datasets["statements"]
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in SCHEMAS}
    every: dict[str, pl.DataFrame] = {}
    for model in inputs.models:
        outputs = inputs.outputs("agreement", model)
        for language in sorted(p.name for p in outputs.iterdir() if p.is_dir()):
            about = every.setdefault(language, statements(folder, language))
            for name, own in _model(answers(outputs, language), about, params).items():
                found[name] += [{"model": model, "language": language} | row for row in own]
    people = surveys(inputs.datasets["survey"], statements(folder))
    found["standing"] = standing(found["values"], people)
    found["respondents"] = [row for survey in people for row in respondents(survey, params)]
    for language, about in sorted(every.items()):
        bearing = about.filter(pl.col("axis") != "")
        found["baselines"] += baselines(bearing, language, people, params)
    return {name: _table(own, name) for name, own in found.items() if own or name not in OPTIONAL}


def _table(own: list[dict[str, Any]], name: str) -> pl.DataFrame:
    """Return rows as a table, in the order of its key."""
    schema = SCHEMAS[name]
    if not own:
        raise UserError(f"analysis.values: no row of {name}; does any model have outputs?")
    table = pl.DataFrame(own, infer_schema_length=None)
    if name in FAMILIES:
        table = adjusted(table, over=FAMILIES[name])
    if name == "gender":
        table = adjusted(table, "p_equivalence", FAMILIES[name])
        both = table.select("p_bh", "p_equivalence_bh").iter_rows()
        table = table.with_columns(verdict=pl.Series([rows_of.verdict(*p) for p in both]))
    return typed(table, schema).sort(schema.key)


def _model(
    answered: pl.DataFrame, about: pl.DataFrame, params: Params
) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of one model in one language, by table."""
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in SCHEMAS}
    there = answered["method"].unique().to_list()
    neutral = about.filter(pl.col("polarity").is_not_null())
    bearing = about.filter(pl.col("axis") != "")
    if neutral.is_empty() or bearing.is_empty():
        missing = "for calibration" if neutral.is_empty() else "that bear on a value"
        raise UserError(
            f"datasets.statements.configs: no statements {missing} in a language of the outputs; "
            "name a questionnaire with them"
        )
    for scale in sorted(set(bearing["scale"])):
        pair = (neutral, bearing.filter(pl.col("scale") == scale))
        for name, methods in METHODS.items():
            method = next(m for m in methods if m in there)
            cells = [Cell(params.frame, "plain")] if name == "faithful" else None
            blocks = [block(answered, part, method, cells) for part in pair]
            drawn = [b.weights(params.n_bootstrap, params.seed) for b in blocks]
            reading = Reading(name, blocks[0], blocks[1], drawn[0], drawn[1])
            found["values"] += rows_of.values(reading, params)
            found["gender"] += rows_of.gender(reading, params)
            found["calibration"] += rows_of.lines(reading, params)
            found["answers"] += rows_of.answers(
                reading, fit(reading.calibration, reading.weights[:, :1])
            )
            found["points"] += rows_of.points(reading)
        sides = {
            m: (block(answered, pair[0], m), block(answered, pair[1], m))
            for m in sorted(there, reverse=True)
        }
        found["consistency"] += consistency(sides, (drawn[0], drawn[1]), params)
    for name in ("answers", "points", "calibration", "consistency"):  # of several scales once
        key = [k for k in SCHEMAS[name].key if k not in ("model", "language")]
        found[name] = list({tuple(row[k] for k in key): row for row in found[name]}.values())
    return found


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
        for comparison, (first, one), (second, two) in _pairs(block, err):
            kept = np.isfinite(one) & np.isfinite(two)
            n = len(set(clusters[kept]))
            if n < 3:
                continue
            x, y = one[kept], two[kept]
            key = {
                "scale": str(block.about["scale"][0]),
                "comparison": COMPARISONS.index(comparison),
            }
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
    """Yield what is comparison and both sides, (statements,) each."""
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
    drawn = np.array([rng.permutation(x) @ y for _ in range(params.n_permutations)])
    hits = int((np.abs(drawn) >= abs(x @ y) * (1 - 1e-9)).sum())
    return (1 + hits) / (1 + params.n_permutations)
