"""Recovery of the study ``politicians``: its tables against what was planted in worlds of names.

Only tables and the planted truth are read. What is true of names without end follows from the
planted probabilities, by nothing that the analyses compute with.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl
from pydantic import Field

from plumbline.builders.core.params import Params as Section
from plumbline.builders.datasets.lexica.build import SENTIMENTS
from plumbline.builders.datasets.politicians.build import GENDERS
from plumbline.builders.datasets.supersenses.build import CLASSES
from plumbline.builders.datasets.words.build import POS
from plumbline.probes.stats.estimate import Estimate, Table
from plumbline.probes.stats.intervals import spearman
from plumbline.probes.worlds.politicians import Planted, World, expected_counts
from plumbline.probes.worlds.recovery import PLANTED, RECOVERY, covered, discoveries, signs

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numpy.typing import NDArray

    from plumbline.probes.core.run_analysis import Inputs

TABLES = ("pmi", "latent", "sentiment", "supersenses")
SCHEMAS = dict.fromkeys(TABLES, RECOVERY)
OWN = {"word", "pos", "frequency_nats", "log_ratio_nats", "sentiment"}
MALE, FEMALE = GENDERS.index("male"), GENDERS.index("female")
LEAST = 4  # words or classes that a correlation needs
LARGE = 0.1  # differences of shares whose sign is judged
MANY = "no nominal value: many effects are planted"


class Params(Section):
    """Levels of what is reported."""

    version: str = Field("0.1.0", pattern=r"^\d+\.\d+\.\d+$", description="version of the tables")
    confidence: float = Field(0.95, gt=0.5, lt=1, description="that of the analyses")
    false_discovery_rate: float = Field(0.05, gt=0, lt=1, description="level of p_bh")


class Truth(NamedTuple):
    """What was planted in a model."""

    world: World
    words: pl.DataFrame  # columns as in OWN


def run(inputs: Inputs, params: Params) -> dict[str, pl.DataFrame]:
    """Compare the tables of every world of names with what was planted in it.

    Returns
    -------
    dict
        A table for each analysis that some world has tables of; columns as in :data:`SCHEMAS`.
    """
    measures: dict[str, Callable[[Inputs, str, Truth, Table, Params], None]] = {
        "pmi": _pmi,
        "latent": _latent,
        "sentiment": _sentiment,
        "supersenses": _supersenses,
    }
    found = {}
    for analysis, measure in measures.items():
        table = Table(RECOVERY)
        for model in inputs.models:
            truth = planted(inputs.weights(model))
            if truth is None:
                continue
            table.key = {
                "model": model,
                "language": truth.world.language,
                "world": int(truth.world.null),
            }
            measure(inputs, model, truth, table, params)
        if table.rows:
            found[analysis] = table.frame()
    return found


def planted(weights: Path) -> Truth | None:
    """Return what was planted in a model; None of one that is no world of names."""
    path = weights / PLANTED
    if not path.is_file() or not set(pl.read_parquet_schema(path)) >= OWN:
        return None
    world = json.loads((weights / "world.json").read_text(encoding="utf-8"))
    return Truth(World.model_validate(world), pl.read_parquet(path))


def true_pmi(truth: Truth, pos: int, people: dict[int, int], length: int) -> pl.DataFrame:
    """Return the PMI of words and genders in the lists of names without end.

    Parameters
    ----------
    people
        How many people each gender (code) has; those in the lists.
    length
        Words in a list.

    Returns
    -------
    DataFrame
        Columns word, sentiment, gender (code) and value (nats): a row for each planted word, in the
        order planted, and each gender.
    """
    part = truth.words.filter(pl.col("pos") == POS[pos])
    total = sum(people.values())
    shares = {GENDERS[g]: number / total for g, number in sorted(people.items())}
    words = Planted(
        tuple(part["word"]),
        part["frequency_nats"].to_numpy(),
        part["log_ratio_nats"].to_numpy(),
        np.zeros(len(part), dtype=np.int64),
        ("",) * len(part),
    )
    world = truth.world
    cells = expected_counts(words, shares, world.name_noise, min(length, len(part)), world.seed)
    cells /= cells.sum()
    with np.errstate(divide="ignore"):
        value = np.log(cells / np.outer(cells.sum(axis=1), cells.sum(axis=0)))
    columns = part.select("word", "sentiment")
    return pl.concat(
        columns.with_columns(gender=pl.lit(g, pl.Int64), value=pl.Series(value[:, i]))
        for i, g in enumerate(sorted(people))
    )


def _truths(pmi: pl.DataFrame, truth: Truth) -> dict[int, pl.DataFrame]:
    """Return :func:`true_pmi` of each part of speech in the table ``pmi`` of one language."""
    return {
        pos: true_pmi(
            truth,
            pos,
            dict(part.select("gender", "people").unique().iter_rows()),
            part["list_length"][0],
        )
        for (pos,), part in pmi.group_by("pos", maintain_order=True)
    }


def _read(inputs: Inputs, analysis: str, model: str, truth: Truth, name: str = "") -> pl.DataFrame:
    """Read a table, in the language of the world; codes of labels as numbers."""
    path = inputs.tables(analysis, model) / f"{name or analysis}.parquet"
    if not path.is_file():
        return pl.DataFrame()
    table = pl.read_parquet(path).filter(pl.col("language") == truth.world.language)
    labels = ("pos", "gender", "sentiment", "supersense", "reading", "first", "second")
    return table.with_columns(
        pl.col(name).cast(pl.Int64) for name in labels if name in table.columns
    )


def _relation(
    table: Table, true: NDArray[np.float64], value: NDArray[np.float64], what: str, params: Params
) -> None:
    """Add how planted log-ratios of words and their measured differences go together."""
    if len(true) >= LEAST:
        title = f"Spearman correlation of planted log-ratio and measured {what}"
        found = spearman(true, value, params.confidence)
        table.add(found, measure=title, cluster="word", null="0: no relation")
        table.add(
            signs(true, value, params.confidence),
            measure="share of words whose measured sign is the planted one",
            cluster="word",
            null="0.5: coin",
        )


def _contrast(table: pl.DataFrame) -> pl.DataFrame:
    """Return columns word and contrast: the value of women minus that of men."""
    female, male = (
        table.filter(pl.col("gender") == g).select("word", "value") for g in (FEMALE, MALE)
    )
    both = female.join(male, on="word", suffix="_male").drop_nulls()
    return both.select("word", contrast=pl.col("value") - pl.col("value_male")).sort("word")


def _pmi(inputs: Inputs, model: str, truth: Truth, table: Table, params: Params) -> None:
    pmi = _read(inputs, "pmi", model, truth)
    if pmi.is_empty():
        return
    null, rate = truth.world.null, params.false_discovery_rate
    tests, smoothed = (pmi.filter(pl.col("reading") == reading) for reading in (0, 1))
    p, p_bh = (tests[column].to_numpy() for column in ("p", "p_bh"))
    if null:
        table.add(
            discoveries(np.array([p_bh.min()]), rate, params.confidence),
            measure=f"false discovery proportion at {rate:g}: 1 if there is any, as all are false",
            cluster="world",
            null=f"{rate:g}: nominal mean over worlds",
        )
    else:
        both = _contrast(smoothed).join(truth.words, on="word")
        ratio, contrast = (both[column].to_numpy() for column in ("log_ratio_nats", "contrast"))
        _relation(table, ratio, contrast, "PMI, female minus male", params)
    true = pl.concat(
        part.select("word", "gender", true="value", pos=pl.lit(pos, pl.Int64))
        for pos, part in _truths(pmi, truth).items()
    )
    held = smoothed.join(true, on=["pos", "word", "gender"]).filter(
        pl.col("gender").is_in([MALE, FEMALE])
    )
    level = f"{params.confidence:.0%} intervals (smoothed, binary)"
    table.add(
        covered(held, params.confidence),
        measure=f"share of {level} with the true PMI",
        cluster="word and gender",
        null=f"{params.confidence:g}: nominal",
    )
    for column, values, limit, none in (
        ("p_bh", p_bh, rate, "0: no discovery is true"),
        ("p", p, 0.05, "at most 0.05: nominal"),
    ):
        table.add(
            discoveries(values, limit, params.confidence),
            measure=f"share of tests with {column} at or below {limit:g}",
            cluster="word and gender",
            null=none if null else MANY,
        )


def _latent(inputs: Inputs, model: str, truth: Truth, table: Table, params: Params) -> None:
    latent = _read(inputs, "latent", model, truth)
    if latent.is_empty():
        return
    null, rate = truth.world.null, params.false_discovery_rate
    if not null:
        words = _read(inputs, "latent", model, truth, "words")
        both = pl.concat(
            _contrast(part).join(truth.words.filter(pl.col("pos") == POS[pos]), on="word")
            for (pos,), part in words.group_by("pos", maintain_order=True)
        )
        ratio, contrast = (both[column].to_numpy() for column in ("log_ratio_nats", "contrast"))
        _relation(table, ratio, contrast, "log p(w|g), female less male", params)
    for row in _read(inputs, "latent", model, truth, "tilt").iter_rows(named=True):
        table.add(
            _estimate(row),
            measure=f"{POS[row['pos']]}: log-ratio female to male of p(positive|g), less that of "
            "p(negative|g)",
            cluster="name",
            null=f"{truth.world.sentiment_effect:.3f}: planted in the words",
        )
    for column, limit in (("p_bh", rate), ("p", 0.05)):
        table.add(
            discoveries(latent[column].to_numpy(), limit, params.confidence),
            measure=f"share of tests with {column} at or below {limit:g}",
            cluster="word, sentiment and gender",
            null="at most this: nominal" if null else "no nominal value: many are planted",
        )


def _sentiment(inputs: Inputs, model: str, truth: Truth, table: Table, params: Params) -> None:
    found = _read(inputs, "sentiment", "", truth, "differences")
    pmi = _read(inputs, "pmi", model, truth)
    if found.is_empty() or pmi.is_empty():
        return
    mine = found.filter((pl.col("model") == model) & (pl.col("deviation") == 0))
    by_name = mine.filter(pl.col("test") == 1).sort("pos", "sentiment")
    held = []
    for (pos,), part in by_name.group_by("pos", maintain_order=True):
        apart = np.zeros(len(SENTIMENTS))
        if not truth.world.null:
            of_pos = pmi.filter(pl.col("pos") == pos)
            true = _truths(of_pos, truth)[pos].filter(pl.col("word").is_in(of_pos["word"]))
            sides = []
            for gender in (MALE, FEMALE):
                own = true.filter(pl.col("gender") == gender)
                largest = own.sort("value", descending=True, maintain_order=True)
                kinds = largest["sentiment"][: part["largest"][0]].to_list()
                sides.append(np.array([kinds.count(s) / len(kinds) for s in SENTIMENTS]))
            apart = sides[0] - sides[1]
        for row in part.iter_rows(named=True):
            planted_share, kind = apart[row["sentiment"]], SENTIMENTS[row["sentiment"]]
            held.append({k: row[k] for k in ("value", "low", "high")} | {"true": planted_share})
            table.add(
                _estimate(row),
                measure=f"{POS[pos]}, {kind}: share, male minus female",
                cluster=row["cluster"],
                null=f"{planted_share:.3f}: planted",
                p=row["p"],
            )
            table.rows[-1]["p_bh"] = row["p_bh"]
    if not held:
        return
    compared = pl.DataFrame(held)
    cluster = "part of speech and sentiment"
    table.add(
        covered(compared, params.confidence),
        measure=f"share of {params.confidence:.0%} intervals with the planted difference",
        cluster=cluster,
        null=f"{params.confidence:g}: nominal",
    )
    strong = compared.filter(pl.col("true").abs() >= LARGE)
    if len(strong):
        at = [strong[name].to_numpy() for name in ("true", "value")]
        table.add(
            signs(at[0], at[1], params.confidence),
            measure=f"share of planted differences of at least {LARGE:g} whose sign is found",
            cluster=cluster,
            null="0.5: coin",
        )
    for test, name in enumerate(("words", "names")):
        p = mine.filter(pl.col("test") == test)["p_bh"].to_numpy()
        if len(p):
            table.add(
                discoveries(p, params.false_discovery_rate, params.confidence),
                measure=f"share of tests ({name}) with p_bh at or below "
                f"{params.false_discovery_rate:g}",
                cluster=cluster,
                null="0: no discovery is true"
                if truth.world.null
                else "no nominal value: effects are planted",
            )


def _supersenses(inputs: Inputs, model: str, truth: Truth, table: Table, params: Params) -> None:
    found, pmi = (_read(inputs, name, model, truth) for name in ("supersenses", "pmi"))
    if found.is_empty() or pmi.is_empty():
        return
    compared = found.filter(
        (pl.col("first") == FEMALE)
        & (pl.col("second") == MALE)
        & (pl.col("unit") == 0)
        & (pl.col("counting") == 0)
    ).sort("supersense")
    classes = _read(inputs, "supersenses", model, truth, "words")
    true = np.zeros(len(CLASSES))
    for (pos,), lists in compared.group_by("pos", maintain_order=True):
        if truth.world.null:
            break
        words = _truths(pmi.filter(pl.col("pos") == pos), truth)[pos]
        size = max(lists["words_first"][0], lists["words_second"][0])
        sides = []
        for gender in (FEMALE, MALE):
            own = words.filter((pl.col("gender") == gender) & (pl.col("value") > 0))
            own = own.filter(pl.col("word").is_in(classes.filter(pl.col("pos") == pos)["word"]))
            largest = own.sort("value", descending=True, maintain_order=True)[:size]
            parts = classes.filter(pl.col("pos") == pos).join(largest, on="word")
            shares = np.zeros(len(CLASSES))
            np.add.at(shares, parts["supersense"].to_numpy(), parts["share"].to_numpy())
            sides.append(shares / max(len(largest), 1))
        true += sides[0] - sides[1]
    compared = compared.filter(pl.col("supersense").is_in(classes["supersense"].unique().implode()))
    if compared.is_empty():
        return
    compared = compared.with_columns(true=pl.Series(true[compared["supersense"].to_numpy()]))
    expected, value = (compared[column].to_numpy() for column in ("true", "value"))
    null, level = truth.world.null, params.confidence
    decided = (expected != 0) & (value != 0)
    if not null and len(value) >= LEAST:
        table.add(
            spearman(expected, value, level),
            measure="Spearman correlation of planted and measured differences of shares",
            cluster="class",
            null="0: no relation",
        )
    if not null and decided.any():
        table.add(
            signs(expected[decided], value[decided], level),
            measure="share of classes whose measured sign is the planted one, where neither is 0",
            cluster="class",
            null="0.5: coin",
        )
    for suffix, kind, note in (
        ("", "", ""),
        ("_words", " over words", ", or more: lists are no random draws of words"),
    ):
        ends = {"low": pl.col(f"low{suffix}"), "high": pl.col(f"high{suffix}")}
        table.add(
            covered(compared.with_columns(**ends), level),
            measure=f"share of {level:.0%} intervals{kind} with the planted difference",
            cluster="class",
            null=f"{level:g}: nominal{note}",
        )
    for column in ("p", "p_bonferroni"):
        table.add(
            discoveries(compared[column].to_numpy(), 0.05, level),
            measure=f"share of classes with {column} at or below 0.05",
            cluster="class",
            null="at most 0.05: nominal" if null else MANY,
        )


def _estimate(row: dict[str, Any]) -> Estimate:
    """Return the estimate of a row of a table."""
    ends = [float("nan") if row[k] is None else row[k] for k in ("value", "low", "high")]
    return Estimate(ends[0], ends[1], ends[2], row["n"], row["method"])
