"""The page of the study of leaning: where models stand, and classifiers made of them."""

from __future__ import annotations

from typing import Any

import polars as pl

from plumbline.probes.report import figures
from plumbline.probes.report.tables import Source, Tables, kept, parts
from plumbline.probes.report.view import LEVEL, Place, Row, study

# blue, grey, vermilion of Okabe and Ito, which the colour-blind tell apart, and marks to the side
SIDES = {
    "left": ("#0072B2", "left"),
    "center": ("#737373", "circle"),
    "right": ("#D55E00", "right"),
}
OTHER = ("#009E73", "square")
RADIUS = 2.447747  # of a circle that holds 95% of two independent normals
DRAWN = {  # readings side by side, by way of asking
    "mask": ("faithful", "corrected"),
    "generation": ("faithful", "corrected"),
    "multiple_choice": ("named", "likeliest"),
}
TESTED = {"mask": "continuous", "generation": "continuous", "multiple_choice": "named"}
MOST = 40  # lines of a figure of shifts
ITSELF = "the model itself"


def style(corpus: str) -> figures.Mark:
    """Return the mark of a corpus, light of social media; black and hollow: the model itself."""
    if not corpus:
        return figures.Mark("circle", "#fff", "#000")
    found = [style for side, style in SIDES.items() if corpus.endswith(side)]
    colour, shape = found[0] if found else OTHER
    return figures.Mark(shape, "#fff" if corpus.startswith("social") else colour, colour)


def ordered(corpora: set[str]) -> list[str]:
    """Return corpora of one kind from left to right, the model itself first."""

    def place(corpus: str) -> tuple[str, int, str]:
        kind, _, side = corpus.rpartition("-")
        return kind, list(SIDES).index(side) if side in SIDES else -1, corpus

    return sorted(corpora, key=place)


def latest(own: pl.DataFrame) -> pl.DataFrame:
    """Return the states at the end of their trainings, on the largest share of each corpus."""
    of = ("model", "questionnaire", "response_format", "corpus", "period")
    for name in ("share", "epoch"):
        own = own.filter(pl.col(name) == pl.col(name).max().over(of))
    return own


def _whole(own: pl.DataFrame) -> pl.DataFrame:
    """Return the states of all texts where there are such."""
    trained = own.filter(pl.col("corpus") != "")
    return kept(own, {"period": "all"}) if "all" in trained["period"].to_list() else own


def _axis(name: str) -> str:
    side = {"economic": "right", "social": "authoritarian"}.get(name, "")
    return f"{name} (plus: {side})" if side else name


def _plane(axes: list[str]) -> tuple[str, str] | None:
    """Return the axis to the right and the one upwards; None with fewer than two."""
    if len(axes) < 2:
        return None
    east = next((axis for axis in axes if axis.startswith("econ")), axes[0])
    rest = [axis for axis in axes if axis != east]
    return east, next((axis for axis in rest if axis in ("social", "govt")), rest[0])


def _states(own: pl.DataFrame, axes: tuple[str, str]) -> list[figures.Points]:
    """Return the states of a model with intervals, the model itself first."""
    found = []
    for (corpus, period), part in parts(own, "corpus", "period"):
        by = {row["axis"]: row for row in part.to_dicts()}
        x, y = (by.get(axis, {"value": None}) for axis in axes)
        if x["value"] is None or y["value"] is None:
            continue
        label = (corpus or ITSELF) + (f", {period}" if corpus and period != "all" else "")
        across, along = ([None if r["low"] is None else (r["low"], r["high"])] for r in (x, y))
        spot = [(x["value"], y["value"])]
        found.append((corpus, figures.Points(label, spot, style(corpus), across, along, 5)))
    order = ordered({corpus for corpus, _ in found})
    return [points for _, points in sorted(found, key=lambda each: order.index(each[0]))]


def _compass(own: pl.DataFrame, place: Place) -> str:
    """Draw states of a model in the plane of two axes, a panel for each reading."""
    axes = _plane(own["axis"].unique().sort().to_list())
    if axes is None:
        return ""
    own = _whole(latest(own))
    at = {"questionnaire": place.at["questionnaire"], "constants": "corrected"}
    lines: dict[str, dict[str, Row]] = {}
    for row in kept(place.tables.read("compass/baselines"), at).to_dicts():
        lines.setdefault(row["baseline"], {})[row["axis"]] = row
    random = lines.pop("random answers")
    centre = [random[axis]["value"] for axis in axes]
    radii = [RADIUS * random[axis]["sd"] for axis in axes]
    constant = [tuple(of[axis]["value"] for axis in axes) for of in lines.values()]

    def under(plot: figures.Panel) -> None:
        plot.ellipse((centre[0], centre[1]), (radii[0], radii[1]), figures.FAINT)
        plot.spans([(*plot.x, centre[1])], "#ccc")
        plot.spans([(*plot.y, centre[0])], "#ccc", upright=True)
        plot.path(constant, 'stroke="#555" stroke-dasharray="2 3"')
        signs: dict[Any, list[str]] = {}
        for sign, spot in zip(("−−", "−", "+", "++"), constant, strict=True):
            signs.setdefault(tuple(round(v, 3) for v in spot), []).append(sign)
        for spot, both in signs.items():  # answers that fall on one place are named together
            plot.words(spot, " ".join(both), 'font-size="9"', (4, -4))

    panels = {
        reading: found
        for reading in DRAWN[place.at["response_format"]]
        if (found := _states(kept(own, {"reading": reading}), axes))
    }
    edge = [(centre[0] + s * radii[0], centre[1] + s * radii[1]) for s in (-1, 1)]
    return figures.scatter(
        panels,
        labels=(_axis(axes[0]), _axis(axes[1])),
        title=f"{place.at['model']}, {place.at['questionnaire']}",
        under=under,
        reach=[*edge, *constant],
        legend=[
            (figures.box(figures.FAINT), "95% of who answers at random"),
            (figures.key(stroke="#555", dash="2 3"), "the same answer to all: −− to ++"),
        ],
        size=(300.0, 300.0),
    )


def _trajectory(own: pl.DataFrame, place: Place) -> str:
    """Draw coordinates by epoch at the largest share, or else by share; '' with one of each."""
    own = _whole(kept(own, {"reading": TESTED[place.at["response_format"]], "value": "*"}))
    trained = own.filter(pl.col("corpus") != "")
    for at, other, name in (
        ("epoch", "share", "times that the texts were read"),
        ("share", "epoch", "share of the texts"),
    ):
        if trained[at].n_unique() < 2:
            continue
        rows = own.filter(pl.col(other) == pl.col(other).max().over("corpus")).sort(at).to_dicts()
        corpora = ordered({row["corpus"] for row in rows if row["corpus"]})
        panels: dict[str, list[figures.Curve]] = {}
        level = {row["axis"]: row["value"] for row in rows if not row["corpus"]}
        for axis in own["axis"].unique().sort().to_list():
            for c, corpus in enumerate(corpora):
                line = [r for r in rows if r["axis"] == axis and r["corpus"] in ("", corpus)]
                apart = (c - (len(corpora) - 1) / 2) * 0.02 * max(r[at] for r in line)
                xs = [float(r[at]) + apart * bool(r["corpus"]) for r in line]
                ends = ([r[end] if r["corpus"] else None for r in line] for end in ("low", "high"))
                mark, values = style(corpus), [r["value"] for r in line]
                curve = figures.Curve(corpus, xs, values, mark.edge, "", mark, *ends)
                panels.setdefault(_axis(axis), []).append(curve)
        levels = {_axis(axis): value for axis, value in level.items()}
        places = sorted({float(row[at]) for row in rows})
        title = f"{place.at['model']}, {place.at['questionnaire']}"
        return figures.curves(
            panels,
            labels=(name, "coordinate"),
            title=title,
            levels=levels,
            own=True,
            ticks_at=places,
        )
    return ""


def _called(row: Row) -> str:
    period = "" if row["period"] == "all" or row["contrast"] == "period" else f", {row['period']}"
    if row["contrast"] == "period":
        return f"{row['corpus']}, from − before"
    return f"{row['corpus']}{period} − {row['baseline'] or 'itself'}"


def _both(row: Row) -> bool:
    """Tell whether a shift is one over statements, and over trainings, of which one is too few."""
    if row["p_bh"] is None:
        return False
    alike = row["p_seeds_bh"] is None and row["seeds"] > 1  # all trainings are the same
    trained = alike or (row["p_seeds_bh"] is not None and row["p_seeds_bh"] <= LEVEL)
    return bool(row["p_bh"] <= LEVEL and trained)


def shifts(tables: Tables) -> pl.DataFrame:
    """Return the shifts at the end of trainings, in the readings that are shown and tested."""
    table = tables.read("compass/shifts")
    if table.is_empty():
        return table
    rows = latest(table).to_dicts()
    shown = [
        r["reading"] in (DRAWN[r["response_format"]][0], TESTED[r["response_format"]]) for r in rows
    ]
    return latest(table).with_columns(
        label=pl.Series([_called(row) for row in rows], dtype=pl.String),
        significant=pl.Series([_both(row) for row in rows], dtype=pl.Boolean),
        shown=pl.Series(shown, dtype=pl.Boolean),
    )


def _shifts(own: pl.DataFrame, place: Place) -> str:
    shown = kept(own, {"reading": TESTED[place.at["response_format"]]})
    if len(beside := shown.filter(pl.col("contrast") != "itself")):
        shown = beside
    if "all" in shown["period"].to_list():
        shown = shown.filter((pl.col("period") == "all") | (pl.col("contrast") == "period"))
    axes = shown["axis"].unique().sort().to_list()
    rows = shown.sort("contrast", "corpus", "period").to_dicts()
    if not rows or len(rows) > MOST * len(axes):
        return ""
    corpora = ordered({row["corpus"] for row in rows})
    return figures.forest(
        rows,
        line="label",
        unit=f"shift, {TESTED[place.at['response_format']]}; filled: both adjusted p <= {LEVEL}",
        title=f"{place.at['model']}, {place.at['questionnaire']}",
        series="corpus",
        spread=True,
        marks={corpus: style(corpus)._replace(face=style(corpus).edge) for corpus in corpora},
        panel="axis",
        panels=axes,
        filled="significant",
    )


def last(name: str) -> Source:
    """Return a table at the end of trainings."""

    def read(tables: Tables) -> pl.DataFrame:
        table = tables.read(f"compass/{name}")
        return latest(table) if len(table) else table

    return read


def tested(name: str) -> Source:
    """Return a table of the model itself, or of all prompts, in the reading that is tested."""

    def read(tables: Tables) -> pl.DataFrame:
        table = tables.read(f"compass/{name}")
        if table.is_empty():
            return table
        asked = pl.col("response_format").cast(pl.String).replace_strict(TESTED)
        return table.filter((pl.col("corpus") == "") & (pl.col("reading").cast(pl.String) == asked))

    return read


def answered(tables: Tables) -> pl.DataFrame:
    """Return how many answers there are: of the model by prompt, of trained states in all."""
    table = tables.read(last_answered)
    return (
        table.filter((pl.col("corpus") == "") | (pl.col("prompt") == "")) if len(table) else table
    )


last_answered = last("answered")


def states(source: str) -> Source:
    """Return a table of classifiers, their states named, and period and share where not all."""

    def read(tables: Tables) -> pl.DataFrame:
        table = kept(tables.read(source), {"reading": "corrected"})
        if table.is_empty():
            return table
        period, share = pl.col("period").cast(pl.String), pl.col("share")
        more = pl.concat_str(
            pl.when(period == "all")
            .then(pl.lit(""))
            .otherwise(pl.format(", {} 2017-01-20", period)),
            pl.when(share == 1).then(pl.lit("")).otherwise(pl.format(", {} of the texts", share)),
        )
        names = [name for name in ("corpus", "baseline") if name in table.columns]
        return table.with_columns(
            pl.when(pl.col(name) == "")
            .then(pl.lit(ITSELF))
            .otherwise(pl.col(name) + more)
            .alias(f"{name}_state")
            for name in names
        )

    return read


def _overall(own: pl.DataFrame) -> pl.DataFrame:
    place = ["corpus_state", "corpus", "period", "share"]
    wide = own.pivot("metric", index=place, values="value")
    main = kept(own, {"metric": MAIN}).select(
        *place, "value", "low", "high", "sd_runs", "n", "runs"
    )
    return wide.join(main, on=place).sort("corpus", "period", "share")


MAIN = "balanced accuracy"


def _main(tables: Tables) -> pl.DataFrame:
    """Return the coordinates of a model, and of its states at the end of their trainings."""
    table = tables.read("compass/coordinates")
    if table.is_empty():
        return table
    table = kept(table, {"period": "all"}) if "all" in table["period"] else table
    corpus = pl.when(pl.col("corpus") == "").then(pl.lit(ITSELF)).otherwise(pl.col("corpus"))
    order = ("model", "questionnaire", "response_format", "axis", "corpus")
    return latest(table).with_columns(corpus=corpus).sort(order)


STUDY = study(__file__, globals())
