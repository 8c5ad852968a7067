"""The page of the study of leaning: where models stand, and classifiers made of them."""

from __future__ import annotations

from typing import Any

import polars as pl

from plumbline.probes.report import figures
from plumbline.probes.report.tables import Source, Tables, kept, parts
from plumbline.probes.report.view import LEVEL, Place, study, sure

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
SHIFTED = TESTED | {"mask": "corrected"}  # in log-odds
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
    for name in ("share", "epoch") if len(own) else ():
        own = own.filter(pl.col(name) == pl.col(name).max().over(of))
    return own


def _whole(own: pl.DataFrame) -> pl.DataFrame:
    """Return the states of all texts where there are such."""
    trained = own.filter(pl.col("corpus") != "")
    return kept(own, {"period": "all"}) if "all" in trained["period"].to_list() else own


def _axis(name: str) -> str:
    side = {"economic": "right", "social": "authoritarian"}.get(name, "")
    return f"{name} (plus: {side})" if side else name


def _plane(axes: list[str]) -> list[str]:
    """Return the axis to the right and the one upwards, of two or more, and the others."""
    east = min(axes, key=lambda axis: not axis.startswith("econ"))
    return sorted(axes, key=lambda axis: (axis != east, axis not in ("social", "govt")))


def _states(own: pl.DataFrame, axes: list[str]) -> list[figures.Points]:
    """Return the states of a model with intervals, the model itself first."""
    found = {}
    for (corpus, period), part in parts(kept(own, {"value": "*"}), "corpus", "period"):
        by = {row["axis"]: row for row in part.to_dicts()}
        if set(axes) <= set(by):
            x, y = (by[axis] for axis in axes)
            ends = [[None if r["low"] is None else (r["low"], r["high"])] for r in (x, y)]
            label = (corpus or ITSELF) + (f", {period}" if corpus and period != "all" else "")
            spot = figures.Points(
                label, [(x["value"], y["value"])], style(corpus), ends[0], ends[1], 5
            )
            found[corpus, period] = spot
    order = ordered({corpus for corpus, _ in found})
    return [found[place] for place in sorted(found, key=lambda place: order.index(place[0]))]


def _compass(own: pl.DataFrame, place: Place) -> str:
    """Draw states of a model in the plane of two axes, a panel for each reading."""
    axes = _plane(own["axis"].unique().sort().to_list())[:2]
    if len(axes) < 2:
        return ""
    own = _whole(latest(own))
    at = {"questionnaire": place.at["questionnaire"], "constants": "corrected"}
    lines = kept(place.tables.read("compass/baselines"), at)
    spots = {
        of: [row for axis in axes for row in kept(part, {"axis": axis}).to_dicts()]
        for (of,), part in parts(lines, "baseline")
    }
    random = spots.pop("random answers")
    centre, radii = ([row["value"] for row in random], [RADIUS * row["sd"] for row in random])
    constant = [tuple(row["value"] for row in rows) for rows in spots.values()]

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
    if not panels:
        return ""
    edge = [(centre[0] + s * radii[0], centre[1] + s * radii[1]) for s in (-1, 1)]
    of = {"questionnaire": at["questionnaire"], "value": "*"}
    of["reading"] = DRAWN[place.at["response_format"]]
    models = _whole(kept(place.tables.read(last_coordinates), of))
    sides = [kept(models, {"axis": axis}).select("value", "low", "high") for axis in axes]
    for end in (min, max):  # all models in one plane
        corner = [end(x for row in side.rows() for x in row if x is not None) for side in sides]
        edge.append((corner[0], corner[1]))
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
    names = {"epoch": "times that the texts were read", "share": "share of the texts"}
    several = [at for at in names if trained[at].n_unique() > 1]
    if not several:
        return ""
    at, other = several[0], {"epoch": "share", "share": "epoch"}[several[0]]
    table = own.filter(pl.col(other) == pl.col(other).max().over("corpus")).sort(at)
    corpora = ordered(set(table["corpus"]) - {""})
    panels: dict[str, list[figures.Curve]] = {}
    for (axis,), part in parts(table, "axis"):
        for c, corpus in enumerate(corpora):
            line = kept(part, {"corpus": ("", corpus)}).to_dicts()
            apart = (c - (len(corpora) - 1) / 2) * 0.02 * max(r[at] for r in line)
            xs = [float(r[at]) + apart * bool(r["corpus"]) for r in line]
            ends = ([r[end] if r["corpus"] else None for r in line] for end in ("low", "high"))
            mark, values = style(corpus), [r["value"] for r in line]
            curve = figures.Curve(corpus, xs, values, mark.edge, "", mark, *ends)
            panels.setdefault(_axis(axis), []).append(curve)
    level = kept(table, {"corpus": ""}).select("axis", "value").iter_rows()
    return figures.curves(
        panels,
        labels=(names[at], "coordinate"),
        title=f"{place.at['model']}, {place.at['questionnaire']}",
        levels={_axis(axis): value for axis, value in level},
        own=True,
        ticks_at=sorted({float(value) for value in table[at]}),
    )


def shifts(tables: Tables) -> pl.DataFrame:
    """Return the shifts at the end of trainings, in the readings that are shown and tested."""
    table = latest(tables.read("compass/shifts"))
    if table.is_empty():
        return table
    text = {
        c: pl.col(c).cast(pl.String) for c in ("contrast", "period", "response_format", "reading")
    }
    period = pl.when(text["period"] == "all").then(pl.lit("")).otherwise(", " + text["period"])
    baseline = pl.col("baseline").replace("", "base model")
    label = pl.format("{}{} − {}", "corpus", period, baseline)
    within = text["contrast"] == "period"
    apart = text["contrast"] == "polarisation"
    label = (
        pl.when(apart)
        .then(pl.format("{} − {}, from − before", "corpus", "baseline"))
        .otherwise(label)
    )
    shown = [
        text["reading"] == text["response_format"].replace_strict(readings)
        for readings in ({asked: drawn[0] for asked, drawn in DRAWN.items()}, SHIFTED)
    ]
    return table.with_columns(
        label=pl.when(within).then(pl.format("{}, from − before", "corpus")).otherwise(label),
        significant=sure(),
        shown=shown[0] | shown[1],
    )


def _shifts(own: pl.DataFrame, place: Place) -> figures.Forest | str:
    reading = SHIFTED[place.at["response_format"]]
    shown = kept(own, {"reading": reading})
    if len(beside := shown.filter(pl.col("contrast") != "base model")):
        shown = beside
    if "all" in shown["period"].to_list():
        shown = shown.filter(
            (pl.col("period") == "all") | pl.col("contrast").is_in(["period", "polarisation"])
        )
    axes = shown["axis"].unique().sort().to_list()
    rows = shown.sort("contrast", "corpus", "period").to_dicts()
    if not rows or len(rows) > MOST * len(axes):
        return ""
    corpora = ordered({row["corpus"] for row in rows})
    return figures.shared(
        rows,
        line="label",
        unit=f"shift, {rows[0]['unit']}, {reading}; filled: adjusted p <= {LEVEL}",
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
    return lambda tables: latest(tables.read(f"compass/{name}"))


def tested(name: str) -> Source:
    """Return a table of the model itself, or of all prompts, in the reading that is tested."""

    def read(tables: Tables) -> pl.DataFrame:
        table = kept(tables.read(f"compass/{name}"), {"corpus": ""})
        asked = pl.col("response_format").cast(pl.String).replace_strict(TESTED)
        own = pl.col("reading").cast(pl.String) == asked
        return table.filter(own) if len(table) else table

    return read


def answered(tables: Tables) -> pl.DataFrame:
    """Return how many answers there are: of the model by prompt, of trained states in all."""
    table = tables.read(last_answered)
    own = (pl.col("corpus") == "") | (pl.col("prompt") == "")
    return table.filter(own) if len(table) else table


last_answered = last("answered")
last_coordinates = last("coordinates")


def states(source: str) -> Source:
    """Return a table of classifiers, their states named, and period and share where not all."""

    def read(tables: Tables) -> pl.DataFrame:
        table = kept(tables.read(source), {"reading": "corrected"})
        if table.is_empty():
            return table
        period, share, none = pl.col("period").cast(pl.String), pl.col("share"), pl.lit("")
        when = pl.when(period == "all").then(none).otherwise(pl.format(", {} 2017-01-20", period))
        part = pl.when(share == 1).then(none).otherwise(pl.format(", {} of the texts", share))
        return table.with_columns(
            pl.when(pl.col(name) == "")
            .then(pl.lit(ITSELF))
            .otherwise(pl.concat_str(name, when, part))
            .alias(f"{name}_state")
            for name in ("corpus", "baseline")
            if name in table.columns
        )

    return read


MAIN = "balanced accuracy"


def _overall(own: pl.DataFrame) -> pl.DataFrame:
    place = ["corpus_state", "corpus", "period", "share"]
    wide = own.pivot("metric", index=place, values="value")
    main = kept(own, {"metric": MAIN}).select(
        *place, "value", "low", "high", "sd_runs", "n", "runs"
    )
    return wide.join(main, on=place).sort("corpus", "period", "share")


def _main(tables: Tables) -> pl.DataFrame:
    """Return the coordinates of a model, and of its states at the end of their trainings."""
    table = tables.read("compass/coordinates")
    if table.is_empty():
        return table
    table = kept(table, {"period": "all"}) if "all" in table["period"] else table
    order = ("model", "questionnaire", "response_format", "axis", "corpus")
    middle = pl.when(pl.col("unit") == "percent").then(50.0).otherwise(0.0)
    named = pl.col("corpus").replace("", ITSELF)
    return latest(table).with_columns(named, zero=middle).sort(order)


STUDY = study(__file__, globals())
