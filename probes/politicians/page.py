"""Figures of the study ``politicians``: words in the plane of hidden states (Figure 5)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plumbline.probes.report import figures
from plumbline.probes.report.results import Drawing

if TYPE_CHECKING:
    import polars as pl

    from plumbline.probes.report.tables import Tables

SHAPES = {"male": "square", "female": "circle", "non-binary": "diamond"}
SHADES = ("#440154", "#31688e", "#35b779", "#fde725", "#777777", "#ffffff")  # for clusters


def draw_clusters(words: pl.DataFrame, title: str, _: Tables) -> str:
    """Draw words in the plane of their hidden states' first two components, shaded by cluster."""
    numbers = words["cluster_id"].unique().sort().to_list()
    points = []
    words = words.sort("cluster_id", "gender", "word")
    for (cluster, gender), members in words.group_by("cluster_id", "gender", maintain_order=True):
        shade = SHADES[numbers.index(cluster) % len(SHADES)]
        mark = figures.Mark(SHAPES.get(str(gender), "up"), shade)
        points_xy = list(members.select("x", "y").iter_rows())
        points.append(
            figures.Series(f"cluster {cluster}, {gender} ({len(members)})", points_xy, mark)
        )
    labels = ("first principal component of the hidden states", "second principal component")
    return figures.plane({"": points}, labels=labels, title=title, size=(360.0, 260.0))


DRAWINGS = {
    "clusters/words": Drawing(("model", "language", "pos", "reading", "group"), draw_clusters)
}
