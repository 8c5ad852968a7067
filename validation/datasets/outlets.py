"""Checks of ``outlets`` that look across columns and rows."""

from __future__ import annotations

import polars as pl
from pydantic import Field

from plumbline.builders.datasets.outlets.build import CONTROL
from plumbline.validation import suite


class Params(suite.Params):
    """Floors, and the fewest articles of an outlet."""

    articles_min: int = Field(ge=1, description="fewest articles of each outlet and the control")
    dated_min_share: float = Field(ge=0, le=1, description="smallest share of articles with a date")


COLUMNS = "config outlet articles over_floor as_many_as_others"


@suite.each_config("outlets", COLUMNS, 3, warn=("as_many_as_others",))
def tables(params: Params, config: str, frame: pl.DataFrame) -> suite.Found:
    """Hold that texts are clean and of one outlet, outlets equally large; a control."""
    text = pl.col("text")
    texts = frame.select(
        "article",
        once=text.str.to_lowercase().hash().is_unique(),
        leaning_of_its_outlet=(pl.col("outlet") == CONTROL) | suite.same("leaning", "outlet"),
        names_its_corpus=pl.col("article").str.contains(r"^[^/]+/."),
        dated=pl.col("date").is_not_null(),
    )
    shares = dict.fromkeys(texts.columns[1:], 1 - params.odd_max_share)
    shares["dated"] = params.dated_min_share
    found = suite.checked(f"texts-{config}", texts, shares=shares)
    counts = dict(frame.group_by("outlet").len().sort("outlet").iter_rows())
    counts.setdefault(CONTROL, 0)
    most, least = max(counts.values()), params.articles_min
    return [found], [(config, outlet, n, n >= least, n == most) for outlet, n in counts.items()]
