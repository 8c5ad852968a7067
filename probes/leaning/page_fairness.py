"""How classifiers do that differ in their pretraining: by group, and when they vote."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from plumbline.probes.leaning.schemas import DIFFERENCES, ENSEMBLE, GROUPS, OVERALL
from plumbline.probes.report.view import (
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
    from pathlib import Path

TITLE = "Classifiers of differently pretrained models"
NOTE = (
    "A model is trained further on partisan texts, and classifiers are made of each of its states: "
    "same texts, same settings, same seeds. Values are means over trainings; intervals: bootstrap "
    "over test texts; SD: over trainings. p of differences: predictions of the two exchanged text "
    "by text; p over trainings: other texts and other trainings might have been drawn. Adjusted "
    "over all tests of a model, task and reading. Shown is the reading corrected."
)
READING = "corrected"
MAIN = "balanced accuracy"
DIGITS = 3


def section(data: Path) -> Section:
    """Return the scores of each model and task, by group, their differences, and the votes."""
    path = data / "tables/fairness/overall.parquet"
    groups = []
    if path.is_file():
        overall = labelled(pl.read_parquet(path), OVERALL).filter(pl.col("reading") == READING)
        for (model, task), own in parts(overall, "model", "task"):
            title = f"{model}, {task}"
            blocks = [Block("", [Part(tables=(_overall(own),))])]
            for what, found in _more(data, str(model), str(task)):
                blocks.append(Block(f"{title}: {what}", [Part(tables=found)]))
            groups.append(Group(title, blocks))
    return Section("fairness", TITLE, NOTE, groups, "fairness")


def _state(row: dict[str, Any], name: str = "corpus") -> str:
    """Name a state: its corpus, and period and share where they are not all of it."""
    if not row[name]:
        return "the model itself"
    period = "" if row["period"] == "all" else f", {row['period']} 2017-01-20"
    return (
        str(row[name]) + period + ("" if row["share"] == 1 else f", {row['share']:g} of the texts")
    )


def _overall(table: pl.DataFrame) -> Table:
    rows = []
    for _, own in parts(table, "corpus", "period", "share"):
        by = {row["metric"]: row for row in own.to_dicts()}
        first = by[MAIN]
        rows.append(
            [
                _state(first),
                *(number(first["value"], DIGITS), interval(first, DIGITS)),
                number(first["sd_runs"], DIGITS),
                *(number(by[name]["value"], DIGITS) for name in ("accuracy", "F1", "macro F1")),
                *(number(by[name]["value"], DIGITS) for name in ("precision", "recall")),
                *(str(first["n"]), str(first["runs"])),
            ]
        )
    numbers = (MAIN, "interval", "SD", "accuracy", "F1", "macro F1", "precision", "recall")
    return Table("all test texts", ("trained on",), (*numbers, "texts", "trainings"), rows)


def _more(data: Path, model: str, task: str) -> list[tuple[str, tuple[Table, ...]]]:
    """Return what is folded, where there are such tables."""
    tables = (
        ("groups beside all texts", "fairness/groups", GROUPS, _groups),
        ("differences between trainings", "fairness/differences", DIFFERENCES, _differences),
        ("ensembles", "ensemble/scores", ENSEMBLE["scores"], _votes),
        (
            "the partisan ensemble beside others",
            "ensemble/differences",
            ENSEMBLE["differences"],
            _gain,
        ),
    )
    found: list[tuple[str, tuple[Table, ...]]] = []
    for what, name, schema, write in tables:
        path = data / "tables" / f"{name}.parquet"
        if not path.is_file():
            continue
        own = labelled(pl.read_parquet(path), schema).filter(
            (pl.col("model") == model)
            & (pl.col("task") == task)
            & (pl.col("reading") == READING)
            & (pl.col("metric") == ("accuracy" if name == "fairness/groups" else MAIN))
        )
        if len(own):
            found.append((what, (write(own),)))
    return found


def _groups(table: pl.DataFrame) -> Table:
    order = table.sort("of", "group", "corpus", "period", "share")
    rows = [
        [
            *(row["group"], _state(row), number(row["value"], DIGITS)),
            number(row["contrast"], DIGITS),
            f"{number(row['contrast_low'], DIGITS)} to {number(row['contrast_high'], DIGITS)}",
            *(number(row["p_bh"], DIGITS), str(row["n"])),
        ]
        for row in order.to_dicts()
    ]
    numbers = ("accuracy", "minus all texts", "interval", "p adj.", "texts")
    return Table("accuracy by group or source", ("group", "trained on"), numbers, rows)


def _differences(table: pl.DataFrame) -> Table:
    order = table.sort("of", "group", "corpus", "against", "period", "share")
    rows = [
        [
            *(row["group"], _state(row), _state(row, "against")),
            *(number(row["value"], DIGITS), interval(row, DIGITS), number(row["p_bh"], DIGITS)),
            _trainings(row),
            *(number(row["p_trainings_bh"], DIGITS), str(row["n"])),
        ]
        for row in order.to_dicts()
    ]
    numbers = ("difference", "interval", "p adj.", "over trainings", "p adj.", "texts")
    return Table(MAIN, ("group", "trained on", "against"), numbers, rows)


def _trainings(row: dict[str, Any]) -> str:
    return interval({f"{end}_": row[f"trainings_{end}"] for end in ("low", "high")}, DIGITS, "_")


def _votes(table: pl.DataFrame) -> Table:
    rows = [
        [
            *(row["ensemble"], row["vote"] or "none", number(row["value"], DIGITS)),
            *(interval(row, DIGITS), number(row["sd"], DIGITS)),
            *(str(row["size"]), str(row["ensembles"])),
        ]
        for row in table.sort("period", "share", "ensemble", "vote").to_dicts()
    ]
    numbers = (MAIN, "interval", "SD", "voters", "ensembles")
    return Table("what votes", ("ensemble", "vote"), numbers, rows)


def _gain(table: pl.DataFrame) -> Table:
    rows = [
        [
            *(row["against"], row["vote"], number(row["value"], DIGITS)),
            *(interval(row, DIGITS), number(row["p_bh"], DIGITS)),
            *(_trainings(row), number(row["p_trainings_bh"], DIGITS)),
            f"{row['size']} and {row['size_against']}",
        ]
        for row in table.sort("period", "share", "vote", "against").to_dicts()
    ]
    numbers = (MAIN, "interval", "p adj.", "over trainings", "p adj.", "voters")
    return Table("partisan minus the other", ("against", "vote"), numbers, rows)
