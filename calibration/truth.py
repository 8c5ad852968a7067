"""What a simulation of an analysis is made of.

A module ``calibration/STUDY/ANALYSIS.py`` (of pooled models another, see ``OF_GROUPS``) draws
responses from a known truth, in the schema of the probe and without a model, and tells of each test
of the tables what was true of it. It has

- ``Shape``: the shape of a run, its params with defaults like a real run's; ``SHAPES``, those that
  are simulated, by name;
- ``TRUTHS``: the truths that responses are drawn from, by name;
- ``PARAMS``: settings of the analysis that are other than those of the params, such as fewer draws;
- ``draw(folder, truth, shape, rng)``: writes one replicate, and returns it as a :class:`Drawn`;
- ``outcomes(tables, drawn)``: returns for each test its rows, see :func:`outcome`.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from plumbline.probes.core.run_analysis import Inputs

NULL = "null"  # nothing differs
PLANTED = "planted"  # what is tested differs, by stated effects
DECOY = "decoy"  # something differs, but not what is tested
COLUMNS = (
    *("effect", "target", "family", "value", "low", "high", "p", "p_adjusted"),
    *("detectable", "detectable_bh", "by_mean"),
)


class Truth(NamedTuple):
    """What responses are drawn from."""

    kind: str  # null, planted or decoy
    about: str  # what differs, in a few words
    settings: Mapping[str, Any] = MappingProxyType({})  # as the module that draws understands them


class Drawn(NamedTuple):
    """One replicate: where its files are, and what is true of it."""

    inputs: Inputs
    known: Any  # as its module understands it
    params: Mapping[str, Any] = MappingProxyType({})  # of the analysis, where the shape sets them


def outcome(
    table: pl.DataFrame,
    *,
    effect: pl.Expr | float,
    target: pl.Expr | float | None = None,
    family: Sequence[str] = (),
    p: str = "p",
    p_adjusted: str = "p_bh",
    null_value: float = 0.0,
    by_mean: bool = True,
) -> pl.DataFrame:
    """Return the rows of a test with the columns :data:`COLUMNS`.

    ``table``: rows of a table of the analysis, those of no test left out.
    ``effect``: what was planted in the thing tested, signed; 0: the null is true; null: neither, as
    where something else was planted nearby. Levels, not estimates: rates are told for each.
    ``target``: what the interval should cover, where that is known.
    ``family``: columns: rows that are equal in all of them were adjusted together.
    ``null_value``: what the value is under the null; the sign of an effect is told from it.
    ``by_mean``: whether, where there is no ``target``, the mean over tables of what one row says
    (of as many rows, in their order) at one ``effect`` is what is true there, on the scale of
    ``detectable``; not so of values that have no sign, nor of what is true of one table's models.
    """
    name = p.removeprefix("p")  # beside p_seeds is detectable_seeds
    told = f"detectable{name}" if f"detectable{name}" in table.columns else None
    told_bh = {f"{p}_bh": f"detectable_bh{name}", "p_bonferroni": "detectable_bonferroni"}.get(
        p_adjusted if told else ""
    )

    def column(value: pl.Expr | float | None) -> pl.Expr:
        return value if isinstance(value, pl.Expr) else pl.lit(value, dtype=pl.Float64)

    joined = pl.concat_str([pl.col(c).cast(pl.String).fill_null("") for c in family], separator="|")
    return table.select(
        effect=column(effect).cast(pl.Float64),
        target=column(target).cast(pl.Float64),
        family=joined if family else pl.lit("all"),
        value=pl.col("value") - null_value,
        low=pl.col("low") - null_value,
        high=pl.col("high") - null_value,
        p=pl.col(p).cast(pl.Float64),
        p_adjusted=pl.col(p_adjusted).cast(pl.Float64),
        detectable=pl.col(told).cast(pl.Float64) if told else None,
        detectable_bh=pl.col(told_bh).cast(pl.Float64) if told_bh else None,
        by_mean=pl.lit(value=by_mean),
    ).with_columns(target=pl.col("target") - null_value)
