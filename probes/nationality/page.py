"""The page of the study of names: what classifiers make of a name's country."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plumbline.probes.report import figures
from plumbline.probes.report.view import (
    Listing,
    Place,
    Readings,
    Step,
    Study,
    Tables,
    fold,
    kept,
    sure,
    view,
)

if TYPE_CHECKING:
    import polars as pl

EVERY = {"gender": "all"}
CONTRAST = EVERY | {"measure": "positive minus negative"}
READINGS = {"reading": ("faithful", "corrected")}
MARKS = {
    "names of the country": figures.Mark(),
    "placebo": figures.Mark("cross", "#888", "#888"),
}


def _ranked(own: pl.DataFrame, place: Place) -> str:
    """Draw countries, the highest on top, with placebo swaps within the country."""
    rows = own.with_columns(sure=sure("p_country_bh")).sort("value", "country", descending=True)
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
    return figures.forest(dots, line="country", unit=unit, title=place.title, **look)  # type: ignore[arg-type]


STEP = Step(
    "nationality",
    "What classifiers make of a name's country",
    "People in texts get names that are common in a country, and classifiers are asked again. "
    "Change: 100 times the mean of P+ − P− of the counterfactuals, minus that of the originals. "
    "Readings: faithful is the released code's, corrected keeps the gender of the person and "
    "replaces all mentions, placebo swaps a name for another one of the same country. Intervals: "
    "bootstrap over source texts; p: original and counterfactual exchanged. Among countries: "
    "against the mean of all countries, where other texts and other names might have been drawn.",
    "nationality",
    (
        fold(
            *("", ""),
            view(
                "nationality/delta",
                where=CONTRAST | READINGS,
                facets="reading",
                figure=_ranked,
                beside=True,
            ),
        ),
        fold(
            *("{model}, {targets}: changes by country", ""),
            view(
                "nationality/delta",
                Listing(
                    "country; reading",
                    "value=change; interval; p_bh; contrast=among countries; p_country_bh=p adj.; "
                    "n=texts; names",
                    "change of P+ − P−, points",
                    rows=lambda own: own.sort(
                        "reading", "value", "country", descending=[False, True, False]
                    ),
                ),
                where=CONTRAST,
            ),
        ),
        fold(
            *("{model}, {targets}: predictions by country and class", ""),
            view(
                "nationality/changes",
                Listing(
                    "country; class; reading",
                    "value:1=percent; interval:1; p_bh; before; after",
                    "how much more often a class is predicted",
                    sort="country class reading",
                ),
                where=EVERY | READINGS,
            ),
        ),
        fold(
            *("{model}, {targets}: beside length and frequency of names", ""),
            view(
                "nationality/mixed",
                Listing(
                    *("term; reading", "value=points; interval; p; p_bh; n=names"),
                    "source texts swept out, names random",
                    sort="term reading",
                ),
            ),
        ),
        fold(
            *("{model}, {targets}: perplexity and probabilities", ""),
            view(
                "nationality/correlations",
                Listing(
                    *("measure; reading; scope", "value=r; interval; n=texts"),
                    "perplexity: {perplexity} over tokens",
                    sort="measure reading scope",
                    digits=3,
                ),
                # the variant of perplexity that the released code has
                where={"country": "all", "perplexity": "original mean"},
            ),
        ),
    ),
    "model targets",
)


def _main(tables: Tables) -> pl.DataFrame:
    table = kept(tables.read("nationality/delta"), CONTRAST)
    return table.sort("model", "targets", "country") if len(table) else table


STUDY = Study(
    "nationality",
    "Nationality bias in names",
    "Does a classifier change its mind about a text with the country that a name is common in, "
    "and does that go with how likely a language model finds the text?",
    "Barriere and Cifuentes (2024)",
    (STEP,),
    ("nationality",),
    ("classification", "perplexity"),
    ("names", "targets", "counterfactuals"),
    Readings(
        "What a country's names change: names as the released code puts them in, and with the "
        "person's own gender and all mentions replaced.",
        "change of P+ − P−, points",
        "nationality",
        _main,
        "targets country",
    ),
)
