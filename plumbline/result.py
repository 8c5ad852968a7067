"""The result of a study on a model: summary, tables, plot, and results of the controls."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plumbline import latex
from plumbline.builders.core.errors import optional_library
from plumbline.builders.core.snapshot import write_bytes, writing
from plumbline.figure import FORMATS, Figure
from plumbline.probes.report.figures import forest
from plumbline.probes.report.view import (
    interval,
    is_significant,
    median_detectable,
    number,
    p_value,
)
from plumbline.probes.site.headlines import VOID, reasons

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas as pd
    import polars as pl

    from plumbline.probes.site.headlines import Kind

MOST = 30  # default maximum number of lines in a plot


@dataclass(frozen=True)
class Result:
    """The result of a study on one model.

    Attributes
    ----------
    study, model
        Name of the study and name of the model.
    headline
        One row for each test of the summary. Columns: ``what``, the tested item; ``value``, the
        estimate; ``low`` and ``high``, its interval; ``n``, the number of clusters; ``p``;
        ``p_bh``, p adjusted over the complete family of the analysis (Benjamini and Hochberg);
        ``detectable``, the minimum detectable distance from the null value at power .8; ``unit``
        and ``null``, the unit and the null value; and ``void``, the reason if nothing could be
        measured. Rows are sorted by p, then by distance from the null value.
    tables
        All tables of the analysis, by name, with labels as strings.
    main
        Name of the main table.
    folder
        Folder that contains the outputs and the tables, with their cards.
    provenance
        Model and its revision, datasets, and versions of libraries.
    confidence
        Confidence level of the intervals.
    notes
        Caveats, such as languages that the model may not know.
    """

    study: str
    model: str
    kind: Kind
    headline: pl.DataFrame
    tables: dict[str, pl.DataFrame]
    main: str
    folder: Path
    provenance: dict[str, Any]
    confidence: float
    _controls: Callable[[], dict[str, Result]] = field(repr=False)
    notes: tuple[str, ...] = ()

    @property
    def table(self) -> pl.DataFrame:
        """Return the main table as a Polars DataFrame; use :meth:`to_pandas` for a pandas one."""
        return self.tables[self.main]

    def to_pandas(self) -> pd.DataFrame:
        """Return the main table as a pandas data frame."""
        with optional_library():
            return self.table.to_pandas()

    @property
    def found(self) -> pl.DataFrame:
        """Return the headline's rows that have an adjusted p of at most .05."""
        return self.headline.filter(is_significant())

    @property
    def void(self) -> str:
        """Return the reason why the study measured nothing, or "" if anything was tested."""
        return "" if len(self.headline.drop_nulls("p_bh")) else reasons(self.headline)

    @property
    def summary(self) -> str:
        """Return a sentence with the number of significant tests and the clearest, or the power."""
        tested, significant = self.headline.drop_nulls("p_bh"), self.found
        why = reasons(self.headline)
        if not len(tested) and why:
            return f"{self.model}: nothing of {self.study} could be tested: {why}."
        if not len(tested):
            return f"{self.model}: nothing of {self.study} could be tested; see the tables."
        things = f"{len(tested)} {self.kind.things} {self.kind.verb} (false discovery rate 5%)"
        if len(significant):
            row = significant.row(0, named=True)
            null = f" (null: {number(row['null'])})" if row["null"] else ""
            clearest = f"{row['what']}: {interval(row)} {row['unit']}{null}"
            text = f"{len(significant)} of {things}; the clearest is {clearest}, adjusted p "
            text += p_value(row["p_bh"])
        else:
            units = tested.group_by("unit", maintain_order=True)
            least = [(median_detectable(rows["detectable"]), unit) for (unit,), rows in units]
            shown = " or ".join(f"{number(x)} {unit}" for x, unit in least if x is not None)
            text = f"none of {things}; half of them would have " + (
                f"been found with power .8 at {shown} from the null"
                if shown
                else "found none, or rest on too little to tell"
            )
        return f"{self.model}: {text}." + (why and f" {VOID.capitalize()} in {why}.")

    @property
    def _unit(self) -> str:
        units = ", ".join(self.headline["unit"].unique(maintain_order=True))
        return f"{units}, {self.confidence * 100:.6g}% interval"

    @cached_property
    def controls(self) -> dict[str, Result]:
        """Return the results of the control models, obtained with the same settings.

        The positive control was trained on an artificial language with a known bias, the negative
        control on the same language without that bias. Keys are the names of the models; the models
        run when this property is first accessed.
        """
        return self._controls()

    def plot(self, *, width: float = 12, most: int = MOST) -> Figure:
        """Return a forest plot of the headline; ``savefig`` saves it.

        Parameters
        ----------
        width
            Width in centimetres.
        most
            Maximum number of lines; those with the smallest p are shown.
        """
        return Figure(self.svg(most=most), width)

    def svg(self, *, most: int = MOST) -> str:
        """Return the plot as SVG to embed in an HTML page, in the style of the report."""
        rows = self.headline.drop_nulls("value").head(most).with_columns(filled=is_significant())
        nulls = self.headline["null"].unique().to_list()
        return forest(
            rows.rename({"what": "line"}).to_dicts(),
            unit=f"{self._unit}; filled: adjusted p ≤ .05",
            title=f"{self.study}: {self.model}",
            zero={"": nulls[0]} if len(nulls) == 1 else {},
            spread=True,
        )

    def to_latex(self, *, most: int = MOST) -> str:
        """Return the headline as a LaTeX table that uses the package booktabs."""
        estimates = self.headline.drop_nulls("value")
        rows = estimates.head(most).rows(named=True)
        columns = {
            "": [latex.text(row["what"]) for row in rows],
            latex.text(self._unit): [latex.formula(interval(row)) for row in rows],
            "adjusted $p$": [latex.formula(p_value(row["p_bh"])) for row in rows],
        }
        note = f"{most} of {len(estimates)} rows, the most certain."
        return latex.table(columns, "lrr", note if len(estimates) > most else "")

    def export(self, folder: str | Path, *, width: float = 12) -> list[Path]:
        """Write the tables, the headline as LaTeX, the plot, the summary and the provenance.

        Parameters
        ----------
        width
            Width of the plot (SVG, PDF and PNG), in centimetres.

        Returns
        -------
        list
            Paths of the files. Tables are written as CSV and parquet, with labels as strings.

        Raises
        ------
        UserError
            If the folder cannot be written, or the width is out of bounds.
        """
        facts = json.dumps(self.provenance, indent=1, sort_keys=True, allow_nan=False)
        files = {
            "headline.tex": self.to_latex().encode(),
            "summary.txt": f"{self.summary}\n".encode(),
            "provenance.json": f"{facts}\n".encode(),
        }
        files |= {f"headline.{kind}": self.plot(width=width).encode(kind) for kind in FORMATS}
        into, tables = Path(folder).expanduser(), {"headline": self.headline, **self.tables}
        files |= {f"{name}.csv": table.write_csv().encode() for name, table in tables.items()}
        for name, body in files.items():
            write_bytes(into / name, body)
        for name, table in tables.items():
            with writing(into / f"{name}.parquet") as part:
                table.write_parquet(part)
        return [into / name for name in (*files, *(f"{name}.parquet" for name in tables))]

    def _repr_html_(self) -> str:
        """Return the summary and the first rows as HTML for a notebook."""
        return f"<p>{escape(self.summary)}</p>{self.headline.head(10)._repr_html_()}"

    def __str__(self) -> str:
        """Return the summary."""
        return self.summary
