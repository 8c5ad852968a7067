"""Recovery of what several models say together: pooled PMI, ``averages`` and ``anova``."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from plumbline.builders.datasets.lexica.build import SENTIMENTS
from plumbline.probes import POOLED
from plumbline.probes.controls.recovery import signs
from plumbline.probes.models.params import model as params_of
from plumbline.probes.politicians.recovery.control import (
    FEMALE,
    LARGE,
    MALE,
    SMOOTHED,
    Control,
    contrast,
    pmi_of,
    true_cells,
)
from plumbline.probes.politicians.recovery.shares import Rows, sampled_shares

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

BY_PMI, ARGMAX = 0, 1  # codes of deviation and reading
STRONG = 200 * LARGE  # percent: a coefficient is a difference of two differences
APART = 3  # code of the response male minus female
EVERYBODY = 0
INTERCEPT, ALL_LANGUAGES = 0, "all"
INTERVALS = ("least squares", "jackknife")


def pooled_rows(controls: Sequence[Control]) -> None:
    """Add order, signs and coverage of PMI, and of its differences, of each group of worlds."""
    for language in sorted({control.truth.world.language for control in controls}):
        _pooled_rows([c for c in controls if c.truth.world.language == language])


def _pooled_rows(controls: Sequence[Control]) -> None:
    by_name = {control.model: control for control in controls}
    first = controls[0]._replace(model=POOLED)
    table, apart = first.read("pmi", "pooled"), first.read("pmi", "differences")
    if table.is_empty():
        return
    smoothed = table.filter(reading=SMOOTHED)
    for (group, names), part in smoothed.group_by("group", "members", maintain_order=True):
        worlds = [by_name[name] for name in names.split(", ") if name in by_name]
        planted = [world for world in worlds if not world.null]
        if len(worlds) < len(names.split(", ")) or not planted:
            continue
        own = planted[0]._replace(model=str(group))
        true = pl.concat(_pooled(worlds, part))
        held = part.join(true, on=["pos", "word", "gender"])
        held = held.filter(pl.col("gender").is_in([MALE, FEMALE]))
        level = f"{own.params.confidence:.0%} intervals (smoothed, binary)"
        own.coverage(held, f"share of {level} with the true PMI", "word and gender")
        both = contrast(true.rename({"true": "value"})).rename({"contrast": "log_ratio_nats"})
        mine = apart.filter(group=group, reading=SMOOTHED)
        judged = mine.select("pos", "word", "value", "low", "high", contrast="value").join(
            both, on="word"
        )
        own.relation(judged, "PMI, female minus male")
        judged = judged.with_columns(true="log_ratio_nats")
        title = f"share of {own.params.confidence:.0%} intervals with the true difference of PMI"
        own.coverage(judged, title, "word")


def _pooled(worlds: Sequence[Control], table: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Yield the PMI of the lists of several worlds added up, of each part of speech."""
    for (pos,), part in table.group_by("pos", maintain_order=True):
        people = dict(part.select("gender", "people").unique().iter_rows())
        cells = []
        for world in worlds:
            length = world.read("pmi").filter(pos=pos)["list_length"][0]
            found = true_cells(world.truth, pos, people, length)
            cells.append(found.select("word", "gender", "expected"))
        added = pl.concat(cells).group_by("word", "gender", maintain_order=True).sum()
        yield added.select("word", "gender", true=pmi_of(added), pos=pl.lit(pos, pl.Int64))


def _planted(control: Control) -> dict[int, NDArray[np.float64]]:
    """Return the planted differences of shares of the ranking by PMI, of each part of speech."""
    shares = control.read("sentiment", "shares", each=False)
    outputs = control.inputs.outputs("associations", control.model) / "coverage"
    if shares.is_empty() or not any(outputs.glob("*.parquet")):
        return {}
    mine = shares.filter(model=control.model, deviation=BY_PMI, reading=ARGMAX)
    lengths = dict(pl.read_parquet(outputs).select("pos", "list_length").iter_rows())
    found = {}
    for (pos, size, candidates), part in mine.group_by(
        "pos", "top_k", "candidates", maintain_order=True
    ):
        people = dict(part.select("gender", "names").unique(maintain_order=True).iter_rows())
        found[pos] = sampled_shares(control, pos, people, size, candidates, lengths[pos])
    return found


def average_rows(controls: Sequence[Control]) -> None:
    """Add coverage and signs of differences of shares, means over the worlds of a language."""
    planted = [control for control in controls if not control.null]
    for language in sorted({control.truth.world.language for control in planted}):
        own = [control for control in planted if control.truth.world.language == language]
        table = own[0].read("averages", each=False)
        of = [shares for control in own if (shares := _planted(control))]
        if table.is_empty() or not of:
            continue
        table = table.filter(
            people=EVERYBODY, response=APART, deviation=BY_PMI, reading=ARGMAX, models=1, n=len(of)
        )
        places = product(sorted(set.intersection(*map(set, of))), range(len(SENTIMENTS)))
        true = pl.DataFrame(
            [
                {"pos": pos, "sentiment": s, "true": float(np.mean([w[pos][s] for w in of]))}
                for pos, s in places
            ]
        )
        rows = Rows(own[0]._replace(model="worlds"), table.join(true, on=["pos", "sentiment"]))
        rows.coverage()
        rows.signs()


def anova_rows(controls: Sequence[Control]) -> None:
    """Add coverage and signs of coefficients: those of the planted differences in percent.

    The planted ones are fitted to the worlds' planted differences of shares, without error.
    """
    planted = [control for control in controls if not control.null]
    path = controls[0].inputs.tables("anova") / "coefficients.parquet"
    if not planted or not path.is_file():
        return
    table = pl.read_parquet(path).filter(
        models=1, response=APART, deviation=BY_PMI, reading=ARGMAX, language=ALL_LANGUAGES
    )
    parts = []
    for (pos, sentiment, interval), part in table.group_by(
        "pos", "sentiment", "interval", maintain_order=True
    ):
        own = [(c, shares[pos]) for c in planted if pos in (shares := _planted(c))]
        if len(own) == part["rows"][0]:
            fitted = _fitted([c for c, _ in own], [100 * of[sentiment] for _, of in own], part)
            where = {"pos": pl.lit(pos), "sentiment": pl.lit(sentiment)}
            parts.append(part.with_columns(**where, interval=pl.lit(interval), true=fitted))
    if not parts:
        return
    every = pl.concat(parts).drop_nulls(["value", "true"])
    truth, level = planted[0].truth, planted[0].params.confidence
    whole = truth._replace(world=truth.world._replace(language=ALL_LANGUAGES))
    every_world = planted[0]._replace(model="worlds", truth=whole)
    for interval, name in enumerate(INTERVALS):
        held = every.filter(interval=interval).drop_nulls("low")
        if len(held):
            title = f"share of {level:.0%} intervals ({name}) with the planted coefficient"
            every_world.coverage(held, title, "coefficient and sentiment")
    large = every.filter(pl.col("interval") == 0, pl.col("true").abs() >= STRONG)
    if len(large):
        title = f"share of planted coefficients of at least {STRONG:g} whose sign is found"
        same = signs(large["true"].to_numpy(), large["value"].to_numpy(), level)
        every_world.add(same, title, "coefficient and sentiment", "0.5: coin")


def _fitted(worlds: Sequence[Control], response: Sequence[float], part: pl.DataFrame) -> pl.Series:
    """Return the coefficient of each row of a design, by least squares on what was planted."""
    facts = []
    for world in worlds:
        params = params_of(world.model, world.inputs.data)
        facts.append((None, params.family, params.size, world.truth.world.language))
    columns: list[NDArray[np.float64]] = []
    for factor, level, reference in part.select("factor", "level", "reference").iter_rows():
        at = [1.0 if factor == INTERCEPT else float(fact[factor] == level) for fact in facts]
        columns.append(np.array(at) if factor == INTERCEPT or level != reference else np.zeros(0))
    kept = [i for i, column in enumerate(columns) if len(column)]
    design = np.column_stack([columns[i] for i in kept])
    found = np.full(len(columns), np.nan)
    found[kept] = np.linalg.lstsq(design, np.array(response))[0]
    return pl.Series(found, nan_to_null=True)
