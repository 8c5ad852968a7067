"""Recovery of shares of sentiments, of one model and of several together."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from plumbline.builders.datasets.lexica.build import SENTIMENTS
from plumbline.probes.controls.compare import ROUNDING, Comparison, read_table
from plumbline.probes.models.params import model as params_of
from plumbline.probes.politicians.recovery.truth import (
    World,
    class_differences,
    list_sizes,
    sampled_shares,
    true_pmi,
)
from plumbline.probes.politicians.recovery.words import LARGE
from plumbline.probes.stats.estimate import LEVEL
from plumbline.probes.stats.intervals import wilson

if TYPE_CHECKING:
    from collections.abc import Sequence

    Shares = dict[str, float]  # difference of shares by sentiment

STRONG = 200 * LARGE  # percent: a coefficient is a difference of two differences
CELL = "part of speech and sentiment"
DIFFERENCE = "male minus female"


def planted_shares(world: World, pmi: pl.DataFrame, pos: str, size: int) -> Shares:
    """Return the planted differences of shares, male minus female, of names without end.

    ``pmi``: rows of the table ``pmi`` of one part of speech: the words that differences can be of.
    ``size``: words taken for each gender.
    """
    if world.settings.null:
        return dict.fromkeys(SENTIMENTS, 0.0)
    true = true_pmi(world, pos, *list_sizes(pmi))
    true = true.filter(pl.col("word").is_in(pmi["word"].implode()))
    classes = true.select("word", share=1.0, **{"class": pl.col("sentiment")}).unique()
    return dict.fromkeys(SENTIMENTS, 0.0) | class_differences(true, classes, size, "male", "female")


def sentiment_rows(rows: Comparison, world: World) -> None:
    """Compare differences of shares by every deviation and reading, by the last of its tests."""
    table, pmi = world.read("sentiment", "differences", ""), world.read("pmi", "pmi")
    if table.is_empty() or pmi.is_empty():
        return
    own = table.filter(model=world.model)
    for (deviation, reading), part in own.group_by("deviation", "reading", maintain_order=True):
        name = f"{deviation}, {reading}"
        tests = [test for test in ("words", "names") if test in part["test"]]
        pairs, compared = reading == "pairs", []
        for (pos,), last in part.filter(test=tests[-1]).group_by("pos", maintain_order=True):
            smoothed = pmi.filter(pos=pos, reading="smoothed")
            size = last["top_k"][0] // (len(SENTIMENTS) if pairs else 1)
            true = planted_shares(world, smoothed, str(pos), size)
            for row in last.to_dicts():
                share = true[row["sentiment"]]
                item = f"{name}: {pos}, {row['sentiment']}"
                measure = "direction" if pairs else "estimate"  # planted are shares of words
                planted = float(np.sign(share)) if pairs else share
                rows.copy(measure, row, "name", item=item, expected=planted)
            compared.append(last.with_columns(true=pl.col("sentiment").replace_strict(true)))
        both = pl.concat(compared)
        rows.coverage(both, CELL, item=name)
        large = both.filter(pl.col("true").abs() >= LARGE)
        rows.signs(large["true"].to_numpy(), large["value"].to_numpy(), CELL, item=name)
        for test in tests:
            p = part.filter(test=test)["p_bh"]
            rows.discoveries(p, "discoveries_bh", CELL, item=f"{name}, {test}")


def _share(rows: Comparison, measure: str, table: pl.DataFrame, held: pl.Expr, item: str) -> None:
    """Add how often something holds in rows about parts of the same names.

    They are no more evidence than one of them: the interval has as many clusters as there are parts
    of speech and sentiments.
    """
    table = table.filter(held.is_not_null())
    clusters = table.select("pos", "sentiment").n_unique()
    if clusters:
        share = float(table.select(held.mean()).item())
        rows.add(measure, wilson(share * clusters, clusters, rows.confidence), CELL, item=item)


def _compare(rows: Comparison, table: pl.DataFrame, item: str, *, signs: bool = True) -> None:
    """Add coverage, and the signs of large differences: columns true, value, low and high."""
    within = pl.col("true").is_between(pl.col("low") - ROUNDING, pl.col("high") + ROUNDING)
    _share(rows, "coverage", table, within, item)
    same = pl.when(pl.col("true").abs() >= LARGE).then(
        pl.col("true").sign() == pl.col("value").sign()
    )
    if signs:
        _share(rows, "sign_agreement", table, same, item)


def _discoveries(rows: Comparison, table: pl.DataFrame, item: str) -> None:
    for column, measure in (("p", "discoveries"), ("p_bh", "discoveries_bh")):
        _share(rows, measure, table, pl.col(column) <= LEVEL, item)


def subgroup_rows(rows: Comparison, world: World) -> None:
    """Compare differences within subgroups and between them, and the agreement of subgroups."""
    table, pmi = world.read("subgroups", "differences"), world.read("pmi", "pmi")
    if table.is_empty() or pmi.is_empty():
        return
    people = world.read("subgroups", "people").filter(pl.col("people") > 0)
    lengths = dict(pmi.select("pos", "list_length").unique().iter_rows())
    true: dict[tuple[str, str], Shares] = {}
    sizes = world.read("subgroups", "shares").unique(["pos", "subgroup"], maintain_order=True)
    for row in sizes.to_dicts():
        pos, name = row["pos"], row["subgroup"]
        genders = dict(people.filter(subgroup=name).select("gender", "people").iter_rows())
        size = (row["top_k"], row["candidates"])
        true[pos, name] = sampled_shares(world, pos, genders, *size, lengths[pos])
    compared = []
    for row in table.to_dicts():
        both = row["contrast"].split(" against ")
        male_minus_female = [true[row["pos"], name][row["sentiment"]] for name in both]
        planted = sum(male_minus_female[1:]) - male_minus_female[0]
        compared.append(row | {"true": planted, "between": len(both) > 1})
    frame = pl.DataFrame(compared, infer_schema_length=None)
    for between, item in ((False, "in a subgroup"), (True, "between subgroups")):
        part = frame.filter(between=between)
        _compare(rows, part, item, signs=not between)
        _discoveries(rows, part, item)
    agreement = world.read("subgroups", "agreement")
    if not world.settings.null and len(agreement):  # the same was planted in all
        ones, values = np.ones(len(agreement)), agreement["value"].to_numpy()
        rows.signs(ones, values, "part of speech and pair", item="agreement of subgroups")


def robustness_rows(rows: Comparison, world: World) -> None:
    """Compare the differences, with whatever is varied.

    What is planted depends on the length of lists, on how many words are taken, and hardly on how
    many men and women are left; nothing else that is varied changes it.
    """
    table, pmi = world.read("robustness", "robustness"), world.read("pmi", "pmi")
    if table.is_empty() or pmi.is_empty():
        return
    lengths = dict(pmi.select("pos", "list_length").unique().iter_rows())
    keys = ["pos", "kind", "variation", "men", "women", "non_binary", "top_k", "candidates"]
    own = table.filter(number=DIFFERENCE).drop_nulls("value")
    parts = []
    for values, part in own.group_by(keys, maintain_order=True):
        pos, kind, variation, *people, size, candidates = values
        length = int(variation) if kind == "list length" else lengths[pos]
        counts = zip(("male", "female", "non-binary"), people, strict=True)
        genders = {gender: number for gender, number in counts if number}
        true = sampled_shares(world, str(pos), genders, size, candidates, length)
        parts.append(part.with_columns(true=pl.col("sentiment").replace_strict(true)))
    if parts:
        _compare(rows, pl.concat(parts), "pmi")
        _discoveries(rows, pl.concat(parts), "pmi")


def sampled_by_pos(world: World) -> dict[str, Shares]:
    """Return the planted differences of shares of the ranking by PMI, by part of speech."""
    shares = world.read("sentiment", "shares", "")
    coverage = read_table(world.inputs.outputs("associations", world.model) / "coverage")
    if shares.is_empty() or coverage.is_empty():
        return {}
    own = shares.filter(model=world.model, deviation="pmi", reading="argmax")
    lengths = dict(coverage.select("pos", "list_length").iter_rows())
    by = own.group_by("pos", "top_k", "candidates", maintain_order=True)
    differences = {}
    for (pos, size, candidates), part in by:
        people = dict(part.select("gender", "n").unique(maintain_order=True).iter_rows())
        sizes = (int(str(size)), int(str(candidates)), lengths[pos])
        differences[str(pos)] = sampled_shares(world, str(pos), people, *sizes)
    return differences


def average_rows(rows: Comparison, worlds: Sequence[World]) -> None:
    """Compare differences of shares, means over the worlds of a language."""
    planted = [world for world in worlds if not world.settings.null]
    for language in sorted({world.settings.language for world in planted}):
        own = [world for world in planted if world.settings.language == language]
        table = own[0].read("averages", "averages", "")
        shares = [by_pos for world in own if (by_pos := sampled_by_pos(world))]
        if table.is_empty() or not shares:
            continue
        table = table.filter(people="everybody", response=DIFFERENCE, models="worlds")
        table = table.filter(deviation="pmi", reading="argmax", n=len(shares))
        cells = product(sorted(set.intersection(*map(set, shares))), SENTIMENTS)
        means = [(p, s, float(np.mean([by_pos[p][s] for by_pos in shares]))) for p, s in cells]
        true = pl.DataFrame(means, ["pos", "sentiment", "true"], orient="row")
        rows.at = {**own[0].key, "model": "worlds"}
        _compare(rows, table.join(true, on=["pos", "sentiment"]), "")


def anova_rows(rows: Comparison, worlds: Sequence[World]) -> None:
    """Compare coefficients with those fitted to the planted differences, in percent."""
    shares = {w.model: sampled_by_pos(w) for w in worlds if not w.settings.null}
    table = read_table(worlds[0].inputs.tables("anova") / "coefficients.parquet")
    if not shares or table.is_empty():
        return
    table = table.filter(models="worlds", response=DIFFERENCE, language="all")
    table = table.filter(deviation="pmi", reading="argmax")
    parts = []
    for values, part in table.group_by("pos", "sentiment", "interval", maintain_order=True):
        pos, sentiment = str(values[0]), str(values[1])
        own = [world for world in worlds if pos in shares.get(world.model, {})]
        if len(own) == part["n"][0]:
            response = [100 * shares[world.model][pos][sentiment] for world in own]
            parts.append(part.with_columns(true=fitted(own, response, part)))
    if not parts:
        return
    every = pl.concat(parts).drop_nulls(["value", "true"])
    rows.at = {"model": "worlds", "language": "all", "world": "planted"}
    cluster = "coefficient and sentiment"
    for interval in ("least squares", "jackknife"):
        rows.coverage(every.filter(interval=interval), cluster, item=interval)
    large = every.filter(pl.col("true").abs() >= STRONG, interval="least squares")
    rows.signs(large["true"].to_numpy(), large["value"].to_numpy(), cluster)


def fitted(worlds: Sequence[World], response: Sequence[float], part: pl.DataFrame) -> pl.Series:
    """Return the coefficient of each row of a design, by least squares on what was planted."""
    facts = []
    for world in worlds:
        params = params_of(world.model, world.inputs.data)
        own = {"family": params.family, "size": params.size, "language": world.settings.language}
        facts.append(own)
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
