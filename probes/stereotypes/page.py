"""Figures of the study ``stereotypes``: recall by list length, and similarities of models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from plumbline.probes.report import figures
from plumbline.probes.report.results import Drawing

if TYPE_CHECKING:
    from plumbline.probes.report.tables import Tables

LINES = {  # colour and dashes of each method variant
    "probability": ("#888", ""),
    "faithful": ("#000", "5 3"),
    "corrected": ("#000", ""),
    "corrected_one": ("#888", "5 3"),
}


def draw_recall(table: pl.DataFrame, title: str, _: Tables) -> str:
    """Draw recall at k, with one panel per category and one line per ranking and baseline."""
    table = table.sort(pl.col("category") != "all", "category", "reading", "k")
    panels: dict[str, list[figures.Series]] = {}
    for (category, reading), part in table.group_by("category", "reading", maintain_order=True):
        stroke, dash = LINES[str(reading)]
        look: dict[str, Any] = {"stroke": stroke, "dash": dash}
        if reading == "corrected":
            look["along"] = [
                None if None in ends else ends for ends in part.select("low", "high").rows()
            ]
        lines = panels.setdefault(str(category), [])
        lines.append(figures.Series(str(reading), part.select("k", "value").rows(), **look))
        if reading == "corrected":
            for name, dash in (("random_order", "1 3"), ("other_groups", "6 2 1 2")):
                label, points = name.replace("_", " "), part.select("k", name).rows()
                lines.append(figures.Series(label, points, dash=dash))
    labels = ("k: words of each list", "recall")
    return figures.plane(panels, labels=labels, title=title, size=(180.0, 130.0), limits=(0, 1))


def draw_similarity(table: pl.DataFrame, title: str, _: Tables) -> str:
    """Draw a matrix of the similarities of all pairs of models, over all categories."""
    pairs = {(a, b): v for a, b, v in table.select("first", "second", "value").iter_rows()}
    names = sorted({name for pair in pairs for name in pair})
    cells = pairs | {(name, name): 1.0 for name in names}
    values = [[cells.get((a, b), cells.get((b, a))) for b in names] for a in names]
    return figures.heat(values, names, names, ends=(-0.2, 1.0), title=title)


DRAWINGS = {
    "recall/recall": Drawing(("model", "dataset", "attributes"), draw_recall),
    "rsa/rsa": Drawing(("language", "ranking", "category", "reading"), draw_similarity),
}
