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
from plumbline.probes.stats.estimate import ESTIMATE, Estimate, Table
from plumbline.probes.stats.intervals import spearman
from plumbline.probes.worlds.politicians import Planted, World, expected_counts
from plumbline.probes.worlds.recovery import PLANTED, RECOVERY, covered, discoveries, signs

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from plumbline.probes.core.run_analysis import Inputs

TABLES = ("pmi", "latent", "sentiment", "supersenses")
SCHEMAS = dict.fromkeys(TABLES, RECOVERY)
OWN = {"word", "pos", "frequency_nats", "log_ratio_nats", "sentiment"}
CODES = {sentiment: code for code, sentiment in enumerate(SENTIMENTS)}
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
    measures = zip(TABLES, (_pmi, _latent, _sentiment, _supersenses), strict=True)
    truths = {model: planted(inputs.weights(model)) for model in inputs.models}
    found = {}
    for analysis, measure in measures:
        table = Table(RECOVERY)
        for model, truth in truths.items():
            if truth is not None:
                measure(Control(inputs, model, truth, table, params))
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


class Control(NamedTuple):
    """One world: the tables of its model, what is true of it, and the rows that compare them."""

    inputs: Inputs
    model: str
    truth: Truth
    table: Table
    params: Params

    @property
    def null(self) -> bool:
        """Whether nothing was planted."""
        return self.truth.world.null

    def read(self, analysis: str, name: str = "", *, each: bool = True) -> pl.DataFrame:
        """Read a table, in the language of the world; codes of labels as numbers."""
        folder = self.inputs.tables(analysis, self.model if each else "")
        path = folder / f"{name or analysis}.parquet"
        if not path.is_file():
            return pl.DataFrame()
        table = pl.read_parquet(path).filter(pl.col("language") == self.truth.world.language)
        labels = ("pos", "gender", "sentiment", "supersense", "reading", "first", "second")
        return table.with_columns(
            pl.col(name).cast(pl.Int64) for name in labels if name in table.columns
        )

    def true_pmi(self, pmi: pl.DataFrame) -> dict[int, pl.DataFrame]:
        """Return :func:`true_pmi` of each part of speech in the table ``pmi``."""
        return {
            pos: true_pmi(
                self.truth,
                pos,
                dict(part.select("gender", "people").unique().iter_rows()),
                part["list_length"][0],
            )
            for (pos,), part in pmi.group_by("pos", maintain_order=True)
        }

    def add(
        self, estimate: Estimate, measure: str, cluster: str, null: str, p: float | None = None
    ) -> None:
        """Add a row."""
        self.copy(estimate.row(cluster=cluster, null=null, p=p), measure, null)

    def copy(self, row: dict[str, Any], measure: str, null: str) -> None:
        """Add a row of a table of estimates."""
        at = {"language": self.truth.world.language, "world": int(self.null), "model": self.model}
        own = {column.name: row.get(column.name) for column in ESTIMATE}
        self.table.rows.append(own | at | {"measure": measure, "null": null})

    def relation(self, both: pl.DataFrame, what: str) -> None:
        """Add how planted log-ratios of words and their measured contrasts go together."""
        true, value = (both[column].to_numpy() for column in ("log_ratio_nats", "contrast"))
        if len(true) >= LEAST:
            title = f"Spearman correlation of planted log-ratio and measured {what}"
            level = self.params.confidence
            self.add(spearman(true, value, level), title, "word", "0: no relation")
            title = "share of words whose measured sign is the planted one"
            self.add(signs(true, value, level), title, "word", "0.5: coin")

    def coverage(self, held: pl.DataFrame, measure: str, cluster: str, note: str = "") -> None:
        """Add how often intervals hold the truth."""
        level = self.params.confidence
        self.add(covered(held, level), measure, cluster, f"{level:g}: nominal{note}")

    def discoveries(
        self, p: pl.Series, limit: float, cluster: str, null: str, tests: str = "tests"
    ) -> None:
        """Add the share of p-values at or below a limit."""
        found = discoveries(p.to_numpy(), limit, self.params.confidence)
        title = f"share of {tests} with {p.name} at or below {limit:g}"
        self.add(found, title, cluster, null)


def _contrast(table: pl.DataFrame) -> pl.DataFrame:
    """Return columns word and contrast: the value of women minus that of men."""
    female, male = (
        pl.col("value").filter(pl.col("gender") == gender).first() for gender in (FEMALE, MALE)
    )
    return table.group_by("word").agg(contrast=female - male).drop_nulls().sort("word")


def _pmi(control: Control) -> None:
    pmi, params = control.read("pmi"), control.params
    if pmi.is_empty():
        return
    rate, cluster = params.false_discovery_rate, "word and gender"
    tests, smoothed = (pmi.filter(pl.col("reading") == reading) for reading in (0, 1))
    if control.null:
        least = discoveries(np.array([tests["p_bh"].min()]), rate, params.confidence)
        title = f"false discovery proportion at {rate:g}: 1 if there is any, as all are false"
        control.add(least, title, "world", f"{rate:g}: nominal mean over worlds")
    else:
        both = _contrast(smoothed).join(control.truth.words, on="word")
        control.relation(both, "PMI, female minus male")
    true = pl.concat(
        part.select("word", "gender", true="value", pos=pl.lit(pos, pl.Int64))
        for pos, part in control.true_pmi(pmi).items()
    )
    held = smoothed.join(true, on=["pos", "word", "gender"])
    held = held.filter(pl.col("gender").is_in([MALE, FEMALE]))
    level = f"{params.confidence:.0%} intervals (smoothed, binary)"
    control.coverage(held, f"share of {level} with the true PMI", cluster)
    for column, limit, none in (
        ("p_bh", rate, "0: no discovery is true"),
        ("p", 0.05, "at most 0.05: nominal"),
    ):
        control.discoveries(tests[column], limit, cluster, none if control.null else MANY)


def _latent(control: Control) -> None:
    latent, words = control.read("latent"), control.truth.words
    if latent.is_empty():
        return
    if not control.null:
        both = pl.concat(
            _contrast(part).join(words.filter(pl.col("pos") == POS[pos]), on="word")
            for (pos,), part in control.read("latent", "words").group_by("pos", maintain_order=True)
        )
        control.relation(both, "log p(w|g), female less male")
    for row in control.read("latent", "tilt").iter_rows(named=True):
        title = "log-ratio female to male of p(positive|g), less that of p(negative|g)"
        null = f"{control.truth.world.sentiment_effect:.3f}: planted in the words"
        control.copy(row, f"{POS[row['pos']]}: {title}", null)
    null = "at most this: nominal" if control.null else "no nominal value: many are planted"
    for column, limit in (("p_bh", control.params.false_discovery_rate), ("p", 0.05)):
        control.discoveries(latent[column], limit, "word, sentiment and gender", null)


def planted_difference(
    words: pl.DataFrame, parts: pl.DataFrame, size: int, genders: tuple[int, int], number: int
) -> NDArray[np.float64]:
    """Return the planted difference, first minus second, of shares of classes, (number,).

    Parameters
    ----------
    words
        Of :func:`true_pmi`: for either gender the ``size`` words of the largest values are taken.
    parts
        Columns word, class (code) and share, the part of the word that is in the class; words
        without a class are left out.
    """
    sides = []
    for gender in genders:
        own = words.filter(
            pl.col("gender") == gender, pl.col("word").is_in(parts["word"].implode())
        )
        largest = own.sort("value", descending=True, maintain_order=True).head(size)
        found = parts.join(largest, on="word")
        shares = np.bincount(found["class"], weights=found["share"], minlength=number)
        sides.append(shares / max(len(largest), 1))
    difference: NDArray[np.float64] = sides[0] - sides[1]
    return difference


def _sentiment(control: Control) -> None:
    found, pmi = control.read("sentiment", "differences", each=False), control.read("pmi")
    if found.is_empty() or pmi.is_empty():
        return
    level, rate = control.params.confidence, control.params.false_discovery_rate
    mine = found.filter(pl.col("model") == control.model, pl.col("deviation") == 0)
    by_name = mine.filter(pl.col("test") == 1).sort("pos", "sentiment")
    if by_name.is_empty():
        return
    held = []
    for (pos,), part in by_name.group_by("pos", maintain_order=True):
        apart = np.zeros(len(SENTIMENTS))
        if not control.null:
            of_pos = pmi.filter(pl.col("pos") == pos)
            true = control.true_pmi(of_pos)[pos].filter(
                pl.col("word").is_in(of_pos["word"].implode())
            )
            kinds = true.select("word", share=1.0, **{"class": pl.col("sentiment")}).unique()
            kinds = kinds.with_columns(pl.col("class").replace_strict(CODES))
            size = part["top_k"][0]
            apart = planted_difference(true, kinds, size, (MALE, FEMALE), len(SENTIMENTS))
        for row in part.iter_rows(named=True):
            share, kind = apart[row["sentiment"]], SENTIMENTS[row["sentiment"]]
            title = f"{POS[pos]}, {kind}: share, male minus female"
            control.copy(row, title, f"{share:.3f}: planted")
        held.append(part.with_columns(true=pl.Series(apart[part["sentiment"].to_numpy()])))
    compared, cluster = pl.concat(held), "part of speech and sentiment"
    title = f"share of {level:.0%} intervals with the planted difference"
    control.coverage(compared, title, cluster)
    strong = compared.filter(pl.col("true").abs() >= LARGE)
    if len(strong):
        title = f"share of planted differences of at least {LARGE:g} whose sign is found"
        same = signs(strong["true"].to_numpy(), strong["value"].to_numpy(), level)
        control.add(same, title, cluster, "0.5: coin")
    null = "0: no discovery is true" if control.null else "no nominal value: effects are planted"
    for test, name in enumerate(("words", "names")):
        p = mine.filter(pl.col("test") == test)["p_bh"]
        if len(p):
            control.discoveries(p, rate, cluster, null, f"tests ({name})")


def _supersenses(control: Control) -> None:
    found, pmi = control.read("supersenses"), control.read("pmi")
    if found.is_empty() or pmi.is_empty():
        return
    compared = found.filter(
        pl.col("first") == FEMALE,
        pl.col("second") == MALE,
        pl.col("unit") == 0,
        pl.col("counting") == 0,
    ).sort("supersense")
    classes = control.read("supersenses", "words").rename({"supersense": "class"})
    true = np.zeros(len(CLASSES))
    for (pos,), lists in () if control.null else compared.group_by("pos", maintain_order=True):
        words = control.true_pmi(pmi.filter(pl.col("pos") == pos))[pos]
        size = max(lists["words_first"][0], lists["words_second"][0])
        parts = classes.filter(pl.col("pos") == pos).select("word", "class", "share")
        positive = words.filter(pl.col("value") > 0)
        true += planted_difference(positive, parts, size, (FEMALE, MALE), len(CLASSES))
    compared = compared.filter(pl.col("supersense").is_in(classes["class"].unique().implode()))
    if compared.is_empty():
        return
    compared = compared.with_columns(true=pl.Series(true[compared["supersense"].to_numpy()]))
    expected, value = (compared[column].to_numpy() for column in ("true", "value"))
    level = control.params.confidence
    decided = (expected != 0) & (value != 0)
    if not control.null and len(value) >= LEAST:
        title = "Spearman correlation of planted and measured differences of shares"
        control.add(spearman(expected, value, level), title, "class", "0: no relation")
    if not control.null and decided.any():
        title = "share of classes whose measured sign is the planted one, where neither is 0"
        control.add(signs(expected[decided], value[decided], level), title, "class", "0.5: coin")
    for suffix, kind, note in (
        ("", "", ""),
        ("_words", " over words", ", or more: lists are no random draws of words"),
    ):
        ends = {"low": pl.col(f"low{suffix}"), "high": pl.col(f"high{suffix}")}
        title = f"share of {level:.0%} intervals{kind} with the planted difference"
        control.coverage(compared.with_columns(**ends), title, "class", note)
    null = "at most 0.05: nominal" if control.null else MANY
    for column in ("p", "p_bonferroni"):
        control.discoveries(compared[column], 0.05, "class", null, "classes")
