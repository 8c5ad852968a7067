"""The page of reliability: what the scores of each study vary with, and what more would buy."""

from __future__ import annotations

from functools import cache

import polars as pl

from plumbline.builders.core.params import STUDIES
from plumbline.probes import PROBES, module_of
from plumbline.probes.report import figures
from plumbline.probes.report.tables import Source, Tables, parts
from plumbline.probes.report.view import Place, study

PLACE = ("study", "probe", "measure", "scale", "language", "model")
POOLED = {"model": "all models", "language": "all languages"}  # in place of an empty name
DESIGN = ("templates", "statements", "seeds")
OTHERS = "statements, templates, seeds"  # label: another run draws all of these anew
LARGEST = 3  # parts in a sentence
REACH = 1.6  # of the axis, in largest values: intervals of few levels have no end worth drawing
SHOWN = 20  # rows of statements that work otherwise
UNIT = "standard deviation of scores of {}, with 95% interval, cut at the edge"


@cache
def table(name: str) -> Source:
    """Return what reads a table of the analysis, with the study that each probe is of."""

    def read(tables: Tables) -> pl.DataFrame:
        found = tables.read(f"reliability/{name}")
        if not found.columns:
            return found
        of = {probe: module_of(probe).split(".")[2] for probe in PROBES}
        named = [pl.col(c).replace("", text) for c, text in POOLED.items() if c in found.columns]
        return found.with_columns(
            pl.col("probe").replace_strict(of, return_dtype=pl.Enum(STUDIES)).alias("study"), *named
        )

    return read


def sentences(tables: Tables) -> pl.DataFrame:
    """Return for each study what its scores vary with, and what more would buy."""
    told, designs = (tables.read(table(name)) for name in ("parts", "designs"))
    rows = [
        {"study": of, "varies": varies(own)}
        | {"buys": buys(designs.filter(study=of) if len(designs) else designs)}
        for (of,), own in (parts(told, "study") if len(told) else ())
    ]
    return pl.DataFrame(rows)


def varies(own: pl.DataFrame) -> str:
    """Say which parts of variance are largest: medians over measures, languages and models."""
    single = own.filter(~pl.col("model").is_in([*POOLED.values()]))
    single = single.filter(~pl.col("language").is_in([*POOLED.values()]))
    known = single.drop_nulls("share")
    if known.is_empty():
        why = single.filter(pl.col("reason") != "")["reason"].mode().sort()
        return f"No number: {why[0] if len(why) else 'scores do not vary'}."
    largest = known.group_by("term").agg(pl.median("share"))
    largest = largest.sort(["share", "term"], descending=[True, False]).head(LARGEST)
    shares = ", ".join(f"{term} {share:.0%}" for term, share in largest.iter_rows() if share)
    number = known.select(PLACE).n_unique()
    return f"Scores vary with {shares} of the variance (n = {number})."


def buys(designs: pl.DataFrame) -> str:
    """Say how wide the interval of a model's mean would be with the largest designs."""
    told = []
    for facet in DESIGN if len(designs) else ():
        anew = designs.filter(pl.col("random_facets") == OTHERS)
        rest = [name for name in DESIGN if name != facet]
        own = anew.filter("observed").select(*PLACE, *rest, observed_value="value", least=facet)
        pairs = anew.join(own, on=[*PLACE, *rest]).filter(pl.col(facet) > pl.col("least"))
        pairs = pairs.filter(pl.col(facet) == pl.col(facet).max(), pl.col("observed_value") > 0)
        if len(pairs):
            ratio, least = (
                float(str(each.median()))
                for each in (pairs["value"] / pairs["observed_value"], pairs["least"])
            )
            told.append(
                f"{ratio:.2f} times as wide with {pairs[facet][0]} {facet} ({least:g} observed)"
            )
    if not told:
        return "No design could be estimated: see the reasons."
    return f"The interval of a model's mean would be {', '.join(told)}."


def reasons(tables: Tables) -> pl.DataFrame:
    """Return how often there is no number, and why."""
    kinds = {"parts": "term", "consistency": "items", "items": "probe", "odds": "probe"}
    kinds |= {"ranks": "probe"}
    found = [
        own.filter(pl.col("reason") != "").select(
            "study", "reason", table=pl.lit(name), of=pl.col(column).cast(pl.String)
        )
        for name, column in kinds.items()
        if len(own := tables.read(table(name)))
    ]
    if not found:
        return pl.DataFrame()
    by = ["study", "table", "of", "reason"]
    return pl.concat(found).group_by(by).len("number").sort(by)


def near(tables: Tables) -> pl.DataFrame:
    """Return the designs that differ in one number from the observed one, and that itself."""
    designs = tables.read(table("designs"))
    if designs.is_empty():
        return designs
    observed = designs.filter("observed").select(*PLACE, "random_facets", *DESIGN)
    both = designs.join(observed, on=[*PLACE, "random_facets"], suffix="_observed")
    other = pl.sum_horizontal(pl.col(name) != pl.col(f"{name}_observed") for name in DESIGN)
    return both.filter(other <= 1)


def first(found: pl.DataFrame) -> pl.DataFrame:
    """Return the first rows of a long table."""
    return found.head(SHOWN)


def _parts(own: pl.DataFrame, place: Place) -> figures.Forest | str:
    """Draw standard deviations: roots of parts and of the ends of their intervals."""
    ends = pl.col("value"), pl.col("low").fill_null(0), pl.col("high").fill_null(float("inf"))
    rows = own.drop_nulls("value").with_columns(end.clip(0).sqrt() for end in ends).to_dicts()
    if not rows:
        return ""
    rows.sort(key=lambda row: (row["term"] == "rest", row["term"].count(" x "), row["term"]))
    models = list(dict.fromkeys(row["model"] for row in rows))
    measure = ", ".join(filter(None, (rows[0]["measure"], rows[0]["scale"])))
    top = REACH * max(row["value"] for row in rows) or 1.0
    of = {"title": place.title, "panel": "model", "panels": models, "limits": (0.0, top)}
    return figures.shared(rows, line="term", unit=UNIT.format(measure), **of)


def _designs(own: pl.DataFrame, place: Place) -> str:
    """Draw half-widths against numbers of templates, darker with more statements."""
    numbers = sorted(set(own["statements"]))
    shades = {n: round(190 - 190 * at / max(1, len(numbers) - 1)) for at, n in enumerate(numbers)}
    panels = {}
    for (model, random), every in parts(own, "model", "random_facets"):
        observed = every.row(by_predicate=pl.col("observed"), named=True)
        most = every["seeds"].max()
        lines = []
        for (seeds, statements), line in parts(every, "seeds", "statements"):
            if seeds in (observed["seeds"], most):
                few = seeds == observed["seeds"]
                name = f"{statements} statements" + (f", {seeds} seeds" if seeds > 1 else "")
                stroke = f"#{shades[statements]:02x}" + 2 * f"{shades[statements]:02x}"
                xs, ys = (line.sort("templates")[c].to_list() for c in ("templates", "value"))
                lines.append(figures.Curve(name, xs, ys, stroke, "" if few else "4 3"))
        x, y, low, high = ([observed[name]] for name in ("templates", "value", "low", "high"))
        point = figures.Mark()
        lines.append(figures.Curve("observed", x, y, mark=point, lows=low, highs=high))
        again = "other statements" if random == OTHERS else "same statements"
        panels[f"{model}, {again}"] = lines
    labels = ("templates", "half-width")
    given = {"labels": labels, "title": place.title, "columns": 4, "ticks_at": (1, 5, 10, 20)}
    return figures.curves(panels, **given)  # type: ignore[arg-type]


STUDY = study(__file__, globals())
