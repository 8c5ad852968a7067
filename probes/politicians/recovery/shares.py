"""Recovery of effects planted in shares of sentiments, for one or several control models."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from plumbline.builders.datasets.lexica.build import SENTIMENTS
from plumbline.probes.controls.compare import ROUNDING, Comparison, read_table
from plumbline.probes.models.params import model as params_of
from plumbline.probes.politicians.recovery.truth import (
    World,
    by_language,
    class_differences,
    sampled_shares,
    true_pmi,
    with_true,
)
from plumbline.probes.politicians.recovery.words import LARGE
from plumbline.probes.stats.estimate import LEVEL
from plumbline.probes.stats.intervals import wilson

if TYPE_CHECKING:
    from collections.abc import Sequence

    Shares = dict[str, float]  # difference of shares, by sentiment

STRONG = 200 * LARGE  # twice LARGE, in points: coefficients are differences of differences
CELL = "part of speech and sentiment"
DIFFERENCE = "male minus female"


def sentiment_rows(rows: Comparison, world: World) -> None:
    """Compare differences of shares, by deviation and reading, from the last available test."""
    table, pmi = world.read("sentiment", "differences", ""), world.read("pmi", "pmi")
    shares = world.read("sentiment", "shares", "")
    if table.is_empty() or pmi.is_empty():
        return
    smoothed = pmi.filter(reading="smoothed")
    for (deviation, reading), part in table.group_by("deviation", "reading", maintain_order=True):
        name, pairs = f"{deviation}, {reading}", reading == "pairs"
        tests = [test for test in ("words", "names") if test in part["test"]]
        taken = shares.filter(deviation=deviation, reading=reading)
        true: dict[tuple[str, str], float] = {}
        for pos, size in taken.select("pos", "top_k").unique().iter_rows():
            number = size // (len(SENTIMENTS) if pairs else 1)
            true |= {(pos, sentiment): 0.0 for sentiment in SENTIMENTS}  # for infinitely many names
            if not world.null:
                words = true_pmi(world, smoothed.filter(pos=pos))
                words = words.join(smoothed.filter(pos=pos), on="word", how="semi")
                classes = words.select("word", share=1.0, **{"class": pl.col("sentiment")}).unique()
                planted = class_differences(words, classes, number, "male", "female")
                true |= {(pos, sentiment): share for sentiment, share in planted.items()}
        compared = with_true(part.filter(test=tests[-1]), true)
        for row in compared.to_dicts():
            item = f"{name}: {row['pos']}, {row['sentiment']}"
            measure = "direction" if pairs else "estimate"  # shares of words, not of pairs
            expected = float(np.sign(row["true"])) if pairs else row["true"]
            rows.copy(measure, row, "name", item=item, expected=expected)
        rows.coverage(compared, CELL, item=name)
        large = compared.filter(pl.col("true").abs() >= LARGE)
        rows.signs(large["true"].to_numpy(), large["value"].to_numpy(), CELL, item=name)
        for test in tests:
            p = part.filter(test=test)["p_bh"]
            rows.discoveries(p, "discoveries_bh", CELL, item=f"{name}, {test}")


def _compare(
    rows: Comparison, table: pl.DataFrame, item: str, *, signs: bool = True, tests: bool = True
) -> None:
    """Compare differences in subsets of names: coverage, signs of large effects, and discoveries.

    Overlapping subsets are dependent, so the clusters are pairs of part of speech and sentiment.

    ``table``: columns true, value, low, high and, if ``tests`` is true, p and p_bh.
    """
    true, value = pl.col("true"), pl.col("value")
    measures = {"coverage": true.is_between(pl.col("low") - ROUNDING, pl.col("high") + ROUNDING)}
    if signs:
        large = true.abs() >= LARGE
        measures["sign_agreement"] = pl.when(large).then(true.sign() == value.sign())
    if tests:
        measures["discoveries"] = pl.col("p") <= LEVEL
        measures["discoveries_bh"] = pl.col("p_bh") <= LEVEL
    for measure, condition in measures.items():
        judged = table.filter(condition.is_not_null())
        if clusters := judged.select("pos", "sentiment").n_unique():
            share = float(judged.select(condition.mean()).item())
            rows.add(measure, wilson(share * clusters, clusters, rows.confidence), CELL, item=item)


def subgroup_rows(rows: Comparison, world: World) -> None:
    """Compare differences within and between subgroups, and the agreement of subgroups."""
    table, pmi = world.read("subgroups", "differences"), world.read("pmi", "pmi")
    if table.is_empty() or pmi.is_empty():
        return
    people = world.read("subgroups", "people").filter(pl.col("people") > 0)
    lengths = dict(pmi.select("pos", "list_length").unique().iter_rows())
    male_minus_female: dict[tuple[str, str], Shares] = {}
    sizes = world.read("subgroups", "shares").select("pos", "subgroup", "top_k", "candidates")
    for pos, name, size, candidates in sizes.unique(maintain_order=True).iter_rows():
        genders = dict(people.filter(subgroup=name).select("gender", "people").iter_rows())
        shares = sampled_shares(world, pos, genders, size, candidates, lengths[pos])
        male_minus_female[pos, name] = shares
    true = []
    for pos, contrast, sentiment in table.select("pos", "contrast", "sentiment").iter_rows():
        differences = [
            male_minus_female[pos, name][sentiment] for name in contrast.split(" against ")
        ]
        true.append(sum(differences[1:]) - differences[0])
    between = pl.col("contrast").str.contains(" against ")
    table = table.with_columns(true=pl.Series(true, dtype=pl.Float64))
    _compare(rows, table.filter(~between), "in a subgroup")
    _compare(rows, table.filter(between), "between subgroups", signs=False)
    agreement = world.read("subgroups", "agreement")
    if not world.null and len(agreement):  # all subgroups have the same planted effects
        ones, values = np.ones(len(agreement)), agreement["value"].to_numpy()
        rows.signs(ones, values, "part of speech and pair", item="agreement of subgroups")


def sampled_by_cell(world: World) -> dict[tuple[str, str], float]:
    """Return the planted differences for words ranked by PMI, by part of speech and sentiment."""
    shares = world.read("sentiment", "shares", "")
    coverage = read_table(world.inputs.outputs("associations", world.model) / "coverage")
    if shares.is_empty() or coverage.is_empty():
        return {}
    lengths = dict(coverage.select("pos", "list_length").iter_rows())
    ranking = shares.filter(deviation="pmi", reading="argmax")
    true: dict[tuple[str, str], float] = {}
    by = ranking.group_by("pos", "top_k", "candidates", maintain_order=True)
    for (pos, size, candidates), part in by:
        people = dict(part.select("gender", "n").unique(maintain_order=True).iter_rows())
        sizes = (int(str(size)), int(str(candidates)), lengths[pos])
        differences = sampled_shares(world, str(pos), people, *sizes)
        true |= {(str(pos), sentiment): share for sentiment, share in differences.items()}
    return true


def average_rows(rows: Comparison, worlds: Sequence[World]) -> None:
    """Compare differences of shares, averaged over the control models of a language."""
    for group in by_language([world for world in worlds if not world.null]):
        table = group[0].read("averages", "averages", "")
        shares = [by_cell for world in group if (by_cell := sampled_by_cell(world))]
        if table.is_empty() or not shares:
            continue
        table = table.filter(people="everybody", response=DIFFERENCE, models="worlds")
        table = table.filter(deviation="pmi", reading="argmax", n=len(shares))
        cells = set.intersection(*map(set, shares))
        true = {cell: float(np.mean([share[cell] for share in shares])) for cell in cells}
        rows.at = {**group[0].key, "model": "worlds"}
        _compare(rows, with_true(table, true), "", tests=False)


def anova_rows(rows: Comparison, worlds: Sequence[World]) -> None:
    """Compare coefficients, in points, with those fitted to the planted differences."""
    shares = {w.model: sampled_by_cell(w) for w in worlds if not w.null}
    if not shares:
        return
    table = read_table(worlds[0].inputs.tables("anova") / "coefficients.parquet")
    if table.is_empty():
        return
    table = table.filter(models="worlds", response=DIFFERENCE, language="all")
    table = table.filter(deviation="pmi", reading="argmax")
    parts = []
    for values, part in table.group_by("pos", "sentiment", "interval", maintain_order=True):
        cell = str(values[0]), str(values[1])
        fitted_worlds = [world for world in worlds if cell in shares.get(world.model, {})]
        if len(fitted_worlds) == part["n"][0]:
            response = [100 * shares[world.model][cell] for world in fitted_worlds]
            parts.append(part.with_columns(true=fitted(fitted_worlds, response, part)))
    if not parts:
        return
    compared = pl.concat(parts).drop_nulls(["value", "true"])
    rows.at = {"model": "worlds", "language": "all", "world": "planted"}
    cluster = "coefficient and sentiment"
    for interval in ("least squares", "jackknife"):
        rows.coverage(compared.filter(interval=interval), cluster, item=interval)
    large = compared.filter(pl.col("true").abs() >= STRONG, interval="least squares")
    rows.signs(large["true"].to_numpy(), large["value"].to_numpy(), cluster)


def fitted(worlds: Sequence[World], response: Sequence[float], part: pl.DataFrame) -> pl.Series:
    """Return the coefficient for each row of a table, fitted to planted differences."""
    facts = [
        dict(params_of(world.model, world.inputs.data)) | {"language": world.language}
        for world in worlds
    ]
    columns: dict[int, list[float]] = {}
    for i, row in enumerate(part.select("factor", "level", "reference").to_dicts()):
        if row["factor"] == "intercept":
            columns[i] = [1.0] * len(worlds)
        elif row["level"] != row["reference"]:
            columns[i] = [float(fact[row["factor"]] == row["level"]) for fact in facts]
    coefficients = np.full(len(part), np.nan)
    design = np.array(list(columns.values())).T
    coefficients[list(columns)] = np.linalg.lstsq(design, np.array(response))[0]
    return pl.Series(coefficients, nan_to_null=True)
