"""Political leaning of models before and after training: the analysis ``compass``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from plumbline.probes.leaning.schemas import BASELINES, SCHEMAS
from plumbline.probes.report import figures_compass
from plumbline.probes.report.view import (
    LEVEL,
    Block,
    Group,
    Part,
    Section,
    Table,
    interval,
    labelled,
    number,
    parts,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

TITLE = "Where models lean, and what partisan texts do to it"
NOTE = (
    "Stances on the statements of a questionnaire, scored as a person's would be. Grey: where 95% "
    "of those are who answer at random; dotted: who gives the same answer to everything, so that "
    "a model that only says yes is not taken for one with opinions. Whiskers are 95% intervals "
    "over statements, prompts and trainings. Read first how stable the answers are: a model whose "
    "answers do not turn with the statement has no leaning. Shifts are judged against training on "
    "a corpus about nothing political."
)
DRAWN = {  # readings side by side, by way of asking
    "filled": ("faithful", "corrected"),
    "written": ("faithful", "corrected"),
    "chosen": ("named", "likeliest"),
}
TESTED = {"filled": "continuous", "written": "continuous", "chosen": "named"}
MOST = 40  # lines of a figure of shifts


def section(data: Path) -> Section:
    """Return the compass, the shifts, and how stable answers are, of each model."""
    folder = data / "tables/compass"
    groups = []
    if (folder / "coordinates.parquet").is_file():
        found = {
            name: labelled(pl.read_parquet(folder / f"{name}.parquet"), schema)
            for name, schema in SCHEMAS.items()
            if (folder / f"{name}.parquet").is_file()
        }
        for (model,), own in parts(found["coordinates"], "model"):
            blocks = [
                Block(f"{model}, {questionnaire}, {asked}", _parts(found, part, str(asked)))
                for (questionnaire, asked), part in parts(own, "questionnaire", "asked")
            ]
            groups.append(Group(model, blocks))
    return Section("compass", TITLE, NOTE, groups, "compass")


def _parts(found: dict[str, pl.DataFrame], own: pl.DataFrame, asked: str) -> list[Part]:
    model, questionnaire = own["model"][0], own["questionnaire"][0]

    def of(name: str) -> pl.DataFrame:
        table = found.get(name)
        if table is None:
            return own.clear()
        return table.filter(
            (pl.col("model") == model)
            & (pl.col("questionnaire") == questionnaire)
            & (pl.col("asked") == asked)
        )

    title = f"{model}, {questionnaire}"
    last = latest(own)
    result = []
    axes = _plane(own["axis"].unique().sort().to_list())
    if axes is not None:
        base = found["baselines"].filter(pl.col("questionnaire") == questionnaire)
        drawn = _compass(last, base, axes, asked, title)
        caption = "Hollow circle: the model itself; white faces: social media."
        result.append(Part("the compass", drawn, caption, (_coordinates(last),)))
    else:
        result.append(Part(tables=(_coordinates(last),)))
    if along := _trajectory(own, asked, title):
        result.append(Part("along the training", along, f"Reading: {TESTED[asked]}."))
    shifts = of("shifts")
    if len(shifts):
        result.append(_shifts(shifts, asked, title))
    more = (_prompts(of("runs"), asked), _stability(of("stability")), _answered(of("answered")))
    result.append(Part(tables=more))
    return result


def latest(own: pl.DataFrame) -> pl.DataFrame:
    """Return the states at the end of their trainings, on the largest share of each corpus."""
    for name in ("share", "epoch"):
        most = pl.col(name).max().over("corpus", "period")
        own = own.filter(pl.col(name) == most)
    return own


def _plane(axes: Sequence[str]) -> tuple[str, str] | None:
    """Return the axis to the right and the one upwards; None with fewer than two."""
    if len(axes) < 2:
        return None
    east = next((axis for axis in axes if axis.startswith("econ")), axes[0])
    rest = [axis for axis in axes if axis != east]
    return east, next((axis for axis in rest if axis in ("social", "govt")), rest[0])


def _compass(
    own: pl.DataFrame, base: pl.DataFrame, axes: tuple[str, str], asked: str, title: str
) -> str:
    if "all" in own.filter(pl.col("corpus") != "")["period"].to_list():
        own = own.filter(pl.col("period") == "all")
    panels: dict[str, list[dict[str, Any]]] = {}
    for reading in DRAWN[asked]:
        states: dict[tuple[str, str], dict[str, Any]] = {}
        for row in own.filter(pl.col("reading") == reading).to_dicts():
            state = states.setdefault(
                (row["corpus"], row["period"]),
                {"corpus": row["corpus"], "period": row["period"] if row["corpus"] else "all"},
            )
            state[row["axis"]] = (row["value"], row["low"], row["high"])
        if states:
            panels[reading] = [states[key] for key in sorted(states)]
    constants = base.filter(pl.col("constants") == "corrected")
    lines = {
        name: {
            row["axis"]: (row["value"], row["sd"])
            for row in constants.filter(pl.col("baseline") == name).to_dicts()
        }
        for name in BASELINES
    }
    return figures_compass.compass(panels, lines, axes, title)


def _trajectory(own: pl.DataFrame, asked: str, title: str) -> str:
    """Draw coordinates by epoch at the largest share, or else by share; '' with one of each."""
    own = own.filter(pl.col("reading") == TESTED[asked])
    trained = own.filter(pl.col("corpus") != "")
    if "all" in trained["period"].to_list():
        own = own.filter(pl.col("period") == "all")
        trained = trained.filter(pl.col("period") == "all")
    for along, other, name in (
        ("epoch", "share", "times that the texts were read"),
        ("share", "epoch", "share of the texts"),
    ):
        if trained[along].n_unique() > 1:
            most = pl.col(other) == pl.col(other).max().over("corpus")
            rows = own.filter(most).with_columns(at=pl.col(along).cast(pl.Float64))
            axes = own["axis"].unique().sort().to_list()
            return figures_compass.trajectory(rows.to_dicts(), axes, name, title)
    return ""


def _coordinates(own: pl.DataFrame) -> Table:
    order = ("reading", "corpus", "period", "axis")
    rows = [
        [
            *(r["reading"], r["corpus"] or "the model itself", r["period"], r["axis"]),
            *(number(r["value"]), interval(r), _fixed(r), number(r["p_bh"], 3)),
            *(number(r["missing"], 1), _bounds(r)),
            *(str(r["prompts"]), str(r["seeds"])),
        ]
        for r in own.sort(order).to_dicts()
    ]
    numbers = (
        *("coordinate", "interval", "these statements", "p adj., random answers", "missing"),
        *("bounds", "prompts", "trainings"),
    )
    return Table("coordinates", ("reading", "corpus", "period", "axis"), numbers, rows)


def _bounds(row: dict[str, Any]) -> str:
    return interval({"low": row["bound_low"], "high": row["bound_high"]})


def _fixed(row: dict[str, Any]) -> str:
    return interval({"low": row["low_fixed"], "high": row["high_fixed"]})


def _shifts(table: pl.DataFrame, asked: str, title: str) -> Part:
    own = latest(table)
    shown = own.filter(pl.col("reading") == TESTED[asked])
    if len(beside := shown.filter(pl.col("contrast") != "itself")):
        shown = beside
    if "all" in shown["period"].to_list():
        shown = shown.filter((pl.col("period") == "all") | (pl.col("contrast") == "period"))
    rows = [
        row | {"label": _called(row), "significant": _both(row)}
        for row in shown.sort("contrast", "corpus", "period").to_dicts()
    ]
    axes = shown["axis"].unique().sort().to_list()
    drawn = figures_compass.shifts(rows, axes, title) if len(rows) <= MOST * len(axes) else ""
    cells = [
        [
            *(r["reading"], _called(r), r["axis"], number(r["value"]), interval(r)),
            *(number(r["p"], 4), number(r["p_bh"], 3), number(r["p_seeds"], 4)),
            *(number(r["p_seeds_bh"], 3), number(r["seed_sd"]), str(r["seeds"])),
        ]
        for r in own.sort("reading", "contrast", "corpus", "period", "axis").to_dicts()
        if r["reading"] in (DRAWN[asked][0], TESTED[asked])
    ]
    numbers = (
        *("shift", "interval", "p, statements", "p adj.", "p, trainings", "p adj."),
        *("SD over trainings", "trainings"),
    )
    told = Table("shifts", ("reading", "contrast", "axis"), numbers, cells)
    caption = (
        f"Reading: {TESTED[asked]}. Filled: adjusted p at most {LEVEL} over statements, which "
        "tells these trainings apart, and over trainings, which tells their corpora apart."
    )
    return Part("shifts", drawn, caption, (told,))


def _both(row: dict[str, Any]) -> bool:
    """Tell whether a shift is one over statements, and over trainings, of which one is too few."""
    if row["p_bh"] is None:
        return False
    alike = row["p_seeds_bh"] is None and row["seeds"] > 1  # all trainings are the same
    trained = alike or (row["p_seeds_bh"] is not None and row["p_seeds_bh"] <= LEVEL)
    return bool(row["p_bh"] <= LEVEL and trained)


def _called(row: dict[str, Any]) -> str:
    period = "" if row["period"] == "all" or row["contrast"] == "period" else f", {row['period']}"
    if row["contrast"] == "period":
        return f"{row['corpus']}, from − before"
    return f"{row['corpus']}{period} − {row['against'] or 'itself'}"


def _prompts(table: pl.DataFrame, asked: str) -> Table:
    """Return where the model itself is in every prompt."""
    own = table.filter((pl.col("corpus") == "") & (pl.col("reading") == TESTED[asked]))
    rows = [
        [
            *(r["prompt"] or "all", r["axis"], number(r["value"]), interval(r)),
            *(number(r["missing"], 1), _bounds(r)),
        ]
        for r in own.sort("prompt", "axis").to_dicts()
    ]
    numbers = ("coordinate", "interval", "missing", "bounds")
    return Table(f"the model itself by prompt, {TESTED[asked]}", ("prompt", "axis"), numbers, rows)


def _stability(table: pl.DataFrame) -> Table:
    rows = []
    if len(table):
        own = latest(table).sort("reading", "compared", "corpus", "period")
        rows = [
            [
                *(r["reading"], r["compared"], r["corpus"] or "the model itself", r["period"]),
                *(number(r["value"]), interval(r), number(r["chance"]), number(r["p_bh"], 3)),
                *(str(r["n"]), str(r["pairs"])),
            ]
            for r in own.to_dicts()
        ]
    words = ("reading", "asked otherwise", "corpus", "period")
    numbers = ("share that stays", "interval", "by chance", "p adj.", "clusters", "pairs")
    return Table("does the model agree with itself?", words, numbers, rows)


def _answered(table: pl.DataFrame) -> Table:
    rows = []
    if len(table):
        own = latest(table).filter((pl.col("corpus") == "") | (pl.col("prompt") == ""))
        rows = [
            [
                *(r["reading"], r["corpus"] or "the model itself", r["prompt"] or "all"),
                *(number(r["value"]), interval(r), f"{r['answers']:,}", f"{r['refused']:,}"),
                *(f"{r['unclear']:,}", f"{r['unlisted']:,}"),
            ]
            for r in own.sort("reading", "corpus", "period", "prompt").to_dicts()
        ]
    words = ("reading", "corpus", "prompt")
    numbers = ("answered", "interval", "answers", "refused", "unclear", "no listed word")
    return Table("how many answers there are", words, numbers, rows)
