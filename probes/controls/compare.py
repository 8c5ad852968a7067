"""Comparison of estimates with the planted (known) effects of control models."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import polars.selectors as cs

from plumbline.builders.core import front_matter, parquet
from plumbline.builders.core.errors import during
from plumbline.builders.core.params import STUDIES
from plumbline.probes import PROBES, module_of
from plumbline.probes.controls.measures import MEASURES, RECOVERY
from plumbline.probes.core.assignments import assigned_models
from plumbline.probes.core.run_analysis import Inputs, write_tables
from plumbline.probes.report.tables import labelled, labels
from plumbline.probes.stats.bootstrap import bits, keys, percentiles, poisson
from plumbline.probes.stats.estimate import LEVEL, Bootstrap, Estimate, finite
from plumbline.probes.stats.intervals import spearman, wilson

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

PLANTED = "planted.parquet"  # file in the folder of a world (a control model)
ROUNDING = 1e-6  # maximum rounding error of numbers in tables
ENDS = ("value", "low", "high")
KINDS = {"string": pl.String, "float64": pl.Float64, "int64": pl.Int64}
LEAST = 4  # minimum number of pairs for a rank correlation


class Params(Bootstrap):
    """Settings of the intervals of recovery measures."""

    version: str = "0.1.0"
    n_bootstrap: int = 1000


PARAMS = Params()


class Comparison:
    """Rows of one recovery table; ``at``: model, language and kind of control of the next rows."""

    def __init__(self, params: Params = PARAMS) -> None:
        self.params, self.confidence = params, params.confidence
        self.rows: list[dict[str, Any]] = []
        self.at: dict[str, str] = {}

    def add(
        self,
        measure: str,
        estimate: Estimate,
        cluster: str,
        *,
        item: str = "",
        reading: str = "",
        expected: float | None = None,
    ) -> None:
        """Add a row; by default, ``expected`` is the value declared by the measure."""
        expected = MEASURES[measure].expected if expected is None else expected
        key = {"measure": measure, "item": item, "reading": reading, "cluster": cluster}
        numbers = {name: finite(getattr(estimate, name)) for name in ENDS}
        numbers["expected"] = None if expected is None else finite(expected)
        self.rows.append(self.at | key | numbers | {"n": estimate.n})

    def copy(self, measure: str, row: dict[str, Any], cluster: str, **key: Any) -> None:
        """Add an unchanged estimate from a table."""
        value, low, high = (np.nan if row[end] is None else row[end] for end in ENDS)
        self.add(measure, Estimate(value, low, high, row["n"]), cluster, **key)

    def share(
        self, measure: str, outcomes: Sequence[bool] | pl.Series, cluster: str, **key: Any
    ) -> None:
        """Add the share of true outcomes with Wilson's interval, if there are any outcomes."""
        if len(outcomes):
            hits = float(sum(map(bool, outcomes)))
            self.add(measure, wilson(hits, len(outcomes), self.confidence), cluster, **key)

    def discoveries(self, p: pl.Series, measure: str, cluster: str, **key: Any) -> None:
        """Add the share of tests with p of at most .05."""
        self.share(measure, p.drop_nulls() <= LEVEL, cluster, **key)

    def coverage(self, table: pl.DataFrame, cluster: str, **key: Any) -> None:
        """Add the coverage of intervals, given a table with the columns low, high and true."""
        within = pl.col("true").is_between(pl.col("low") - ROUNDING, pl.col("high") + ROUNDING)
        self.share("coverage", table.drop_nulls("low").select(within).to_series(), cluster, **key)

    def signs(self, true: Floats, measured: Floats, cluster: str, **key: Any) -> None:
        """Add the share of estimates with the planted sign, given two arrays of shape (n,)."""
        self.share("sign_agreement", np.sign(true) == np.sign(measured), cluster, **key)

    def order(self, true: Floats, measured: Floats, cluster: str, **key: Any) -> None:
        """Add the rank correlation of planted and measured values if there are at least 4 pairs."""
        if len(true) >= LEAST:
            rho = spearman(true, measured, self.confidence)
            self.add("rank_correlation", rho, cluster, **key)

    def size(self, table: pl.DataFrame, planted: Floats, cluster: str, **key: Any) -> None:
        """Add the slope of the measured effects in a table on planted ones, (effects,), through 0.

        Its limits are slopes of the effects' limits, as though errors were perfectly correlated.
        """
        values, low, high = table.select(ENDS).to_numpy().astype(np.float64).T
        if planted.any():
            ends = np.where(planted < 0, [high, low], [low, high])
            slopes = np.array([values, *ends]) @ planted / (planted @ planted)
            value, lowest, highest = slopes.tolist()
            estimate = Estimate(value, lowest, highest, min(table["n"].to_list()))
            self.add("slope", estimate, cluster, **key)

    def mean(
        self, measure: str, values: Floats, groups: Sequence[str], cluster: str, **key: Any
    ) -> None:
        """Add the mean of ``values`` (shape (groups,)), ignoring nan, with a bootstrap interval."""
        defined = ~np.isnan(values)
        names = [group for group, keep in zip(groups, defined, strict=True) if keep]
        if not names:
            return
        weights = poisson(bits(keys(names), self.params.n_bootstrap, self.params.seed))
        with np.errstate(invalid="ignore"):
            replicates = values[defined] @ weights / weights.sum(axis=0)
        low, high = map(float, percentiles(replicates, self.confidence))
        estimate = Estimate(float(values[defined].mean()), low, high, len(names))
        self.add(measure, estimate, cluster, **key)

    def frame(self) -> pl.DataFrame:
        """Return the table, sorted by its key."""
        columns = [c for c in RECOVERY.columns if c.name not in ("study", "analysis")]
        table = pl.DataFrame(self.rows, schema={c.name: KINDS[c.kind] for c in columns})
        return table.sort([name for name in RECOVERY.key if name in table.columns])


def read_table(path: Path) -> pl.DataFrame:
    """Read a table, with labels as strings; the table is empty if the path does not exist."""
    if not path.exists():
        return pl.DataFrame()
    table = labelled(
        pl.read_parquet(path), labels(path.with_name(front_matter.FACTS)).get(path.stem, {})
    )
    return table.with_columns(cs.enum().cast(pl.String))


def recover(studies: Sequence[str] = STUDIES) -> Path:
    """Compare the tables of studies with the effects planted in their control models.

    ``probes/STUDY/recovery.py`` defines ``TABLES`` (the analyses whose tables it reads), ``run``
    (which returns the rows of each analysis), ``truth`` and, optionally, ``DATASETS``.
    """
    parts = [pl.DataFrame(pl.from_arrow(RECOVERY.arrow().empty_table()))]
    hashes: dict[Path, str] = {}
    for study in studies:
        module: Any = importlib.import_module(f"plumbline.probes.{study}.recovery")
        probes = [probe for probe in PROBES if module_of(probe).split(".")[2] == study]
        models = tuple(sorted({model for probe in probes for model in assigned_models(probe)}))
        needed = {name: parquet.require_validated(name) for name in getattr(module, "DATASETS", ())}
        inputs = Inputs(models, needed)
        folders = [inputs.tables(analysis) for analysis in module.TABLES]
        hashes |= {folder: parquet.fingerprint(folder) for folder in folders if folder.is_dir()}
        with during(f"recovery {study}"):
            for analysis, rows in module.run(inputs).items():
                names = {"study": pl.lit(study), "analysis": pl.lit(analysis)}
                parts.append(rows.with_columns(**names).select(parts[0].columns))
    table = pl.concat(parts).sort(RECOVERY.key)
    sources = [front_matter.source(f, "tables", sha256) for f, sha256 in hashes.items()]
    origin = front_matter.Origin(sources, "make repro STAGE=recovery", "0.1.0")
    final = inputs.tables("recovery")
    return write_tables(final, {"recovery": table}, {"recovery": RECOVERY}, hashes, origin)
