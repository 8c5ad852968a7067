"""The page of the study of names: what classifiers make of a name's country."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plumbline.probes.report import figures
from plumbline.probes.report.tables import Tables, kept
from plumbline.probes.report.view import Place, study, sure

if TYPE_CHECKING:
    import polars as pl

EVERY = {"gender": "all"}
CONTRAST = EVERY | {"measure": "positive minus negative"}
MARKS = {"names of the country": figures.Mark(), "placebo": figures.Mark("cross", "#888", "#888")}


def _ranked(own: pl.DataFrame, place: Place) -> figures.Forest:
    """Draw countries, the highest on top, with placebo swaps within the country."""
    rows = own.with_columns(sure=sure()).sort("value", "country", descending=True)
    placebo = kept(place.read("nationality/delta", "reading"), CONTRAST | {"reading": "placebo"})
    swaps = dict(placebo.select("country", "value").iter_rows())
    dots = [row | {"kind": "names of the country"} for row in rows.to_dicts()]
    dots += [
        {"country": row["country"], "value": swaps[row["country"]], "kind": "placebo"}
        | {"low": None, "high": None, "sure": True}
        for row in dots
        if row["country"] in swaps
    ]
    unit = "change of P+ − P−, points; filled: unlike the other countries"
    look = {"series": "kind", "marks": MARKS, "filled": "sure"}
    return figures.shared(dots, line="country", unit=unit, title=place.title, **look)


def _main(tables: Tables) -> pl.DataFrame:
    table = kept(tables.read("nationality/delta"), CONTRAST)
    return table.sort("model", "targets", "country") if len(table) else table


STUDY = study(__file__, globals())
