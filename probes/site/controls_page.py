"""Controls: what the analyses find of what was planted in worlds, and where nothing was."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import polars as pl

from plumbline.builders.datasets.politicians.build import GENDERS
from plumbline.builders.datasets.words.build import POS
from plumbline.probes import ALL, EACH
from plumbline.probes.models.files import weights_folder
from plumbline.probes.report import figures
from plumbline.probes.report.view import Block, Group, Part, Section, Table, interval, number
from plumbline.probes.site.controls import recoveries

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

WITH_RECOVERY = tuple(EACH)  # a table for each world, if any
OVER_ALL = tuple(ALL)  # one for all models, if any
NOTE = (
    "Worlds are languages with biases that are known, and models trained on them. Where biases "
    "were planted the probe should find them; where none were, it should find nothing. Read these "
    "before any result."
)
KINDS = ("positive control: biases planted", "negative control: nothing planted")


def section(data: Path, analyses: Sequence[str] = ()) -> Section:
    """Return the recovery tables of some analyses, or of all, those of planted worlds first."""
    found: dict[tuple[int, str], list[Table]] = {}
    for analysis, table in recoveries(data, WITH_RECOVERY, OVER_ALL):
        if not analyses or analysis in analyses:
            _add(found, table, analysis)
    groups = []
    for (null, name), tables in sorted(found.items()):
        part = Part(tables=tuple(tables))
        figure = [] if null or (analyses and "pmi" not in analyses) else _figure(data, name)
        groups.append(Group(f"{name} ({KINDS[null]})", [Block("", [*figure, part])]))
    title = "Controls: can the probe see what was planted?"
    return Section("controls", title, NOTE, groups, analyses[0] if analyses else "pmi")


def _add(found: dict[tuple[int, str], list[Table]], recovery: pl.DataFrame, analysis: str) -> None:
    if recovery.is_empty():
        return
    rows = [
        [r["measure"], r["cluster"], r["null"], number(r["value"], 3), interval(r, 3), str(r["n"])]
        for r in recovery.to_dicts()
    ]
    words = ("measure", "cluster", "judged against")
    table = Table(analysis, words, ("value", "interval", "n"), rows)
    at = (int(recovery["world"][0]), str(recovery["model"][0]))
    found.setdefault(at, []).append(table)


def _figure(data: Path, name: str) -> list[Part]:
    """Return planted log-ratio against measured PMI."""
    weights, path = weights_folder(name, data), data / "tables/pmi" / name / "pmi.parquet"
    if not path.is_file():
        return []
    truth = pl.read_parquet(weights / "planted.parquet").with_columns(
        pl.col("pos").replace_strict({pos: i for i, pos in enumerate(POS)}, return_dtype=pl.Int64)
    )
    language = json.loads((weights / "world.json").read_text(encoding="utf-8"))["language"]
    table = pl.read_parquet(path).filter(
        (pl.col("reading") == 1) & (pl.col("language") == language)
    )
    by_gender = {
        g: table.filter(pl.col("gender") == GENDERS.index(g)).select(
            "word", "pos", pl.col("value").alias(g)
        )
        for g in ("male", "female")
    }
    frame = (
        by_gender["male"]
        .join(by_gender["female"], on=["word", "pos"])
        .join(
            truth.select("word", "pos", "sentiment", planted="log_ratio_nats"), on=["word", "pos"]
        )
        .with_columns(contrast=pl.col("female") - pl.col("male"))
        .sort("word")
    )
    caption = "One point a word. Points on a rising line: the probe finds what was planted."
    return [Part(figure=figures.recovery(frame), caption=caption)]
