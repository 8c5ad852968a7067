"""The headline of a study about a model: what was tested, what was found, the clearest of all.

The report begins with them, and :mod:`plumbline.studies` answers with them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from plumbline.probes.report.figures import Mark, shared
from plumbline.probes.report.view import (
    LEVEL,
    Block,
    Group,
    Listing,
    Part,
    Row,
    Section,
    listed,
)
from plumbline.probes.site.controls import YES

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from plumbline.probes.report.tables import Tables
    from plumbline.probes.report.view import Study

COLUMNS = ("what", "value", "low", "high", "n", "p", "p_bh", "detectable_bh")
TITLE = "Results: models and studies"
NOTE = (
    "Found: tests with an adjusted p of at most .05. The clearest is the one with the smallest p. "
    "Power .8: the distance from the null at which that test would find an effect, after "
    "adjustment; a dash where it would find none, or rests on too little to tell. Your models "
    "stand first, control models last."
)
CAPTION = (
    "The clearest test of each model and study with its interval: the distance from the null, "
    "in units of that which it would find with power .8; left out where that is not known. "
    "Filled: adjusted p at most .05."
)
LISTING = Listing(
    "model; study; found; what=clearest; unit",
    "value; low..high; p_bh:3=adjusted p; detectable_bh=power .8",
)
CONTROLS = "; controls=controls as they should be"


class Kind(NamedTuple):
    """What the numbers of a study are."""

    things: str  # what there are several of: "words"
    verb: str  # what is told of those that are found: "go with a gender"
    unit: str
    null: float  # what they are held against


class Headline(NamedTuple):
    """Where the headline of a study stands."""

    analysis: str
    tables: tuple[str, ...]
    kind: Kind
    rows: Callable[[Mapping[str, pl.DataFrame]], pl.DataFrame]


def headline(rows: pl.DataFrame, what: Sequence[str], null: float) -> pl.DataFrame:
    """Return the rows of a table as a headline, the surest first.

    ``what``: columns that together say what a row is about.
    ``null``: what values are held against.
    """
    told = pl.concat_str([pl.col(name).cast(pl.String) for name in what], separator=", ")
    away = (pl.col("value") - null).abs()
    return (
        rows.with_columns(what=told)
        .sort(pl.col("p_bh"), pl.col("p"), -away, nulls_last=True, maintain_order=True)
        .select(COLUMNS)
    )


def _words(tables: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """One row a word: the gender whose PMI with it is the highest; p is the word's own."""
    own = tables["pmi"].filter(pl.col("reading") == "smoothed", pl.col("unit") == "lemma")
    most = pl.col("value") == pl.col("value").max().over("language", "pos", "word")
    own = own.filter(most).unique(["language", "pos", "word"], keep="first", maintain_order=True)
    gender = pl.col("gender").cast(pl.String)
    return headline(own.with_columns(who=pl.lit("with ") + gender), ("word", "who"), 0)


def _recalled(tables: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """One row a category: recall among the most words, by the corrected reading.

    It is the distance of the recall from that with the lists of other groups, which is the null.
    """
    own = tables["recall"].filter(
        pl.col("reading") == "corrected",
        pl.col("attributes") == "single word",
        pl.col("category") != "all",
        pl.col("p").is_not_null(),
    )
    own = own.filter(pl.col("k") == pl.col("k").min().over("dataset", "category"))
    chance = pl.col("other_groups")
    shifted = own.with_columns([(pl.col(c) - chance).alias(c) for c in ("value", "low", "high")])
    return headline(shifted, ("category", "dataset"), 0)


def _values(tables: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    own = tables["values"].filter(
        pl.col("reading") == "corrected",
        pl.col("fitted") == "by gender",
        pl.col("gender") == "both",
        pl.col("p").is_not_null(),
    )
    own = own.unique(["language", "scale", "axis"], keep="first", maintain_order=True)
    return headline(own, ("axis", "language"), 3)


def _countries(tables: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    own = tables["delta"].filter(
        pl.col("reading") == "corrected",
        pl.col("gender") == "all",
        pl.col("measure") == "positive minus negative",
    )
    return headline(own, ("country",), 0)


def _axes(tables: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    own = tables["coordinates"].filter(pl.col("corpus") == "", pl.col("unit") == "percent")
    reading = pl.col("reading")
    for wanted in ("continuous", "likeliest", "corrected"):
        if len(rows := own.filter(reading == wanted)):
            return headline(rows, ("axis", "questionnaire"), 50)
    return headline(own, ("axis", "questionnaire"), 50)


HEADLINES: dict[str, Headline] = {
    "politicians": Headline(
        "pmi",
        ("pmi",),
        Kind("words", "go with a gender", "nats of pointwise mutual information", 0),
        _words,
    ),
    "stereotypes": Headline(
        "recall",
        ("recall",),
        Kind("categories", "have their suggested attributes first", "recall above chance", 0),
        _recalled,
    ),
    "values": Headline(
        "values",
        ("values",),
        Kind("values", "are agreed with more, or less, than their opposites", "of 1 to 5", 3),
        _values,
    ),
    "nationality": Headline(
        "nationality",
        ("delta",),
        Kind("countries", "have names that move predictions", "points, positive less negative", 0),
        _countries,
    ),
    "leaning": Headline(
        "compass",
        ("coordinates",),
        Kind("axes", "lie to one side of the middle", "percent", 50),
        _axes,
    ),
}


def headlines(tables: Tables, controls: Collection[str]) -> list[Row]:
    """Return a row for each model and study: those of the user first, control models last."""
    found = []
    for study, of in HEADLINES.items():
        frames = {table: tables.read(f"{of.analysis}/{table}") for table in of.tables}
        if any(frame.is_empty() for frame in frames.values()):
            continue
        names = next(iter(frames.values()))["model"].unique().sort().to_list()
        for model in names:
            own = of.rows(
                {t: frame.filter(pl.col("model") == model) for t, frame in frames.items()}
            )
            if row := of_model(study, model, of.kind, own):
                found.append(row | {"control": model in controls})
    return sorted(found, key=lambda row: (row["control"], row["study"], row["model"]))


def of_model(study: str, model: str, kind: Kind, own: pl.DataFrame) -> Row:
    """Return what the headline of a model comes to; nothing where nothing was tested."""
    tested = own.drop_nulls("p_bh")
    if not len(tested):
        return {}
    sure = len(tested.filter(pl.col("p_bh") <= LEVEL))
    return (
        tested.row(0, named=True)
        | {"study": study, "model": model}
        | {"tested": len(tested), "sure": sure, "unit": kind.unit, "null": kind.null}
        | {"found": f"{sure} of {len(tested)} {kind.things}"}
    )


def section(
    rows: Sequence[Row],
    checks: Sequence[Row],
    studies: Sequence[Study],
    shown: Mapping[str, str],
    name: str = "results",
    model: str = "",
) -> Section:
    """Return a table with a row for each model and study, and one figure with zero in it.

    ``rows``: of all models and studies, whose numbers the axis has room for.
    ``checks``: of the control models; without any, there is no column of them.
    ``shown``: names of models as they stand on the page.
    ``model``: that the section is of alone, if it is.
    """
    analyses = {study.name: set(study.analyses) for study in studies}
    own = [r for r in rows if r["study"] in analyses and model in ("", r["model"])]
    listing = []
    for row in own:
        of = [c["verdict"] == YES for c in checks if c["analysis"] in analyses[row["study"]]]
        badge = f"{sum(of)} of {len(of)}" if of else "not run"
        listing.append(row | {"controls": badge, "model": shown.get(row["model"], row["model"])})
    shape = LISTING._replace(words=LISTING.words + CONTROLS) if checks else LISTING
    table = listed(shape, listing, "What was found, by model and study")
    parts = [Part(tables=(table,), open=True)]
    unit = "distance from the null, in units of what would be found"
    every = shared(scaled(rows), line="line", unit=unit, marks={"": Mark()}, filled="sure")
    if lines := scaled(own):
        parts.append(Part("", every._replace(rows=lines).draw(every.ends), CAPTION))
    groups = [Group("", [Block("", parts)])] if listing else []
    return Section(name, TITLE, NOTE, groups, studies[0].analyses[0])


def scaled(rows: Sequence[Row]) -> list[Row]:
    """Return the distances of headlines from the null, in units of what their tests would find."""
    lines = []
    for row in rows:
        if least := row["detectable_bh"]:
            ends = (row["value"], row["low"], row["high"])
            apart = [None if end is None else (end - row["null"]) / least for end in ends]
            lines.append(
                dict(zip(("value", "low", "high"), apart, strict=True))
                | {"line": f"{row['study']}: {row['model']}", "sure": row["p_bh"] <= LEVEL}
            )
    return lines


def measured(rows: Sequence[Row]) -> dict[str, Any]:
    """Return the headlines as metrics, by study and model."""
    told: dict[str, Any] = {}
    for row in rows:
        numbers = {name: row[name] for name in ("value", "low", "high")}
        rounded = {name: None if x is None else round(x, 6) for name, x in numbers.items()}
        own = rounded | {"found": row["sure"], "tested": row["tested"]}
        told.setdefault(row["study"], {})[row["model"]] = own
    return told
