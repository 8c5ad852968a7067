"""Recovery of shares of sentiments: ``sentiment``, ``subgroups`` and ``robustness``."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl

from plumbline.builders.datasets.lexica.build import SENTIMENTS
from plumbline.builders.datasets.politicians.person import GENDERS
from plumbline.builders.datasets.words.build import POS
from plumbline.probes.controls.recovery import ROUNDING, signs
from plumbline.probes.politicians.recovery.control import (
    CODES,
    FEMALE,
    LARGE,
    MALE,
    MANY,
    SMOOTHED,
    Control,
    planted_difference,
    true_pmi,
)
from plumbline.probes.politicians.recovery.language import Planted, tastes
from plumbline.probes.stats.intervals import wilson

if TYPE_CHECKING:
    from numpy.typing import NDArray

SAMPLES = 30  # of as many names
HALF = 0.5  # added to every count before words are ranked, as the analyses do by default
RANKED = {  # by codes of deviation and reading
    (0, 1): "",
    (1, 0): "latent-faithful, pairs: ",
    (1, 1): "latent-faithful, argmax: ",
    (2, 1): "latent-corrected, argmax: ",
}
LISTS_CUT = 5  # code of the kind of robustness in which lists are shorter


def planted_shares(
    control: Control, pmi: pl.DataFrame, people: dict[int, int], size: int, length: int
) -> NDArray[np.float64]:
    """Return the planted differences of shares, male minus female, (sentiments,).

    ``pmi``: rows of the table ``pmi`` of one part of speech: the words that differences can be of.
    ``people``: how many people each gender (code) has.
    ``size``: words taken for each gender.
    ``length``: words in a list.
    """
    if control.null:
        return np.zeros(len(SENTIMENTS))
    true = true_pmi(control.truth, pmi["pos"][0], people, length)
    true = true.filter(pl.col("word").is_in(pmi["word"].implode()))
    kinds = true.select("word", share=1.0, **{"class": pl.col("sentiment")}).unique()
    kinds = kinds.with_columns(pl.col("class").replace_strict(CODES))
    return planted_difference(true, kinds, size, (MALE, FEMALE), len(SENTIMENTS))


def sampled_shares(
    control: Control, pos: int, people: dict[int, int], size: int, candidates: int, length: int
) -> NDArray[np.float64]:
    """Return the differences, male minus female, that as many other names give, (sentiments,).

    The mean over ``SAMPLES`` draws of names with lists that are read off the planted probabilities:
    what an interval over names is for where names are few, since then ordinary words are among
    those that deviate most, and differences are smaller than among names without end.

    ``people``: how many people each gender (code) has.
    ``size``, ``candidates``: lemmas taken for each gender, and how many they are taken from: the
    most frequent ones.
    """
    if control.null:
        return np.zeros(len(SENTIMENTS))
    world, forms, lemmas = (
        control.truth.world,
        *(of.filter(pos=POS[pos]) for of in (control.truth.forms, control.truth.words)),
    )
    kinds = lemmas["sentiment"].replace_strict(CODES).to_numpy()
    place = {word: i for i, word in enumerate(lemmas["word"])}
    of = [place[lemma] for lemma in forms["lemma"]]
    chances = (tuple(forms[f"{name}_nats"]) for name in ("frequency", "log_ratio"))
    seed, drawn = (world.seed, pos, *people.values()), tuple(people.items())
    every = _counts(*chances, tuple(of), world.name_noise, drawn, length, seed)
    apart = np.zeros(len(SENTIMENTS))
    for counts in every:
        kept = np.argsort(-counts.sum(axis=0), kind="stable")[:candidates]
        cells = counts + HALF
        lift = np.log(cells / cells.sum(axis=0) / cells.sum(axis=1, keepdims=True))[:, kept]
        for gender, sign in ((MALE, 1), (FEMALE, -1)):
            largest = kept[np.argsort(-lift[list(people).index(gender)], kind="stable")[:size]]
            apart += sign * np.bincount(kinds[largest], minlength=len(SENTIMENTS)) / size
    return apart / SAMPLES


@lru_cache(maxsize=64)  # analyses ask for the same names with other sizes
def _counts(
    frequency: tuple[float, ...],
    log_ratio: tuple[float, ...],
    lemma: tuple[int, ...],
    noise: float,
    people: tuple[tuple[int, int], ...],
    length: int,
    seed: tuple[int, ...],
) -> NDArray[np.float64]:
    """Draw names and count whose lists have each lemma, (draws, genders, lemmas).

    ``lemma``: of each form, its number.
    """
    of = np.array(lemma)
    nothing = np.zeros(len(of), dtype=np.int64)  # sentiments do not matter here
    planted = Planted(("",) * len(of), np.array(frequency), np.array(log_ratio), nothing, ())
    rng = np.random.default_rng(seed)
    counts = np.zeros((SAMPLES, len(people), of.max() + 1))
    for sample in counts:
        for row, (gender, number) in zip(sample, people, strict=True):
            taste = tastes(planted, [GENDERS[gender]] * number, noise, rng)
            top = np.argsort(-taste, axis=1)[:, :length]
            has = np.zeros((number, len(row)))
            has[np.arange(number)[:, None], of[top]] = 1
            row[:] = has.sum(axis=0)
    return counts


class Rows(NamedTuple):
    """Rows of a table about parts of the same names, which are no more evidence than one of them.

    Shares of them have intervals of as many clusters as there are parts of speech and sentiments.
    """

    control: Control
    compared: pl.DataFrame  # columns pos, sentiment, true, value, low, high, p, p_bh

    def share(self, measure: str, held: pl.Expr, null: str) -> None:
        """Add how often something holds."""
        table = self.compared.filter(held.is_not_null())
        number = table.select("pos", "sentiment").n_unique()
        if number:
            hits = float(table.select(held.mean()).item()) * number
            found = wilson(hits, number, self.control.params.confidence)
            self.control.add(found, measure, "part of speech and sentiment", null)

    def coverage(self, of: str = "") -> None:
        """Add how often intervals hold the truth."""
        level = self.control.params.confidence
        within = pl.col("true").is_between(pl.col("low") - ROUNDING, pl.col("high") + ROUNDING)
        title = f"share of {level:.0%} intervals with the planted difference{of}"
        self.share(title, within, f"{level:g}: nominal")

    def signs(self, of: str = "") -> None:
        """Add how often differences that are large have their sign."""
        large = pl.col("true").abs() >= LARGE
        same = pl.when(large).then(pl.col("true").sign() == pl.col("value").sign())
        title = f"share of planted differences of at least {LARGE:g} whose sign is found{of}"
        self.share(title, same, "0.5: coin")

    def discoveries(self, tests: str) -> None:
        """Add the shares of tests that find something."""
        null = "at most 0.05: nominal" if self.control.null else MANY
        for column, limit in (("p", 0.05), ("p_bh", self.control.params.false_discovery_rate)):
            title = f"share of {tests} with {column} at or below {limit:g}"
            self.share(title, pl.col(column) <= limit, null)


def sentiment_rows(control: Control) -> None:
    """Add differences of shares by every deviation and reading, coverage, signs and discoveries."""
    found, pmi = control.read("sentiment", "differences", each=False), control.read("pmi")
    if found.is_empty() or pmi.is_empty():
        return
    mine = found.filter(pl.col("model") == control.model)
    for (deviation, reading), of in RANKED.items():
        part = mine.filter(deviation=deviation, reading=reading)
        if len(part):
            _sentiments(control, part.sort("test", "pos", "sentiment"), pmi, of)


def _sentiments(control: Control, table: pl.DataFrame, pmi: pl.DataFrame, of: str) -> None:
    """Add what one deviation and reading says, by the last of its tests."""
    rate, cluster = control.params.false_discovery_rate, "part of speech and sentiment"
    held = []
    last = table.filter(pl.col("test") == pl.col("test").max())
    for (pos,), part in last.group_by("pos", maintain_order=True):
        of_pos = pmi.filter(pl.col("pos") == pos, reading=SMOOTHED)
        people = dict(of_pos.select("gender", "people").unique().iter_rows())
        length = of_pos["list_length"][0]
        size = part["top_k"][0] // (len(SENTIMENTS) if "pairs" in of else 1)
        apart = planted_shares(control, of_pos, people, size, length)
        for row in part.iter_rows(named=True):
            share, kind = apart[row["sentiment"]], SENTIMENTS[row["sentiment"]]
            title = f"{of}{POS[pos]}, {kind}: share, male minus female"
            only = " of words; of pairs the sign alone" if "pairs" in of else ""
            control.copy(row, title, f"{share:.3f}: planted{only}")
        held.append(part.with_columns(true=pl.Series(apart[part["sentiment"].to_numpy()])))
    compared, level = pl.concat(held), control.params.confidence
    if len(told := compared.drop_nulls("low")):
        title = f"{of}share of {level:.0%} intervals with the planted difference"
        control.coverage(told, title, cluster)
    strong = compared.filter(pl.col("true").abs() >= LARGE)
    if len(strong):
        title = f"{of}share of planted differences of at least {LARGE:g} whose sign is found"
        same = signs(strong["true"].to_numpy(), strong["value"].to_numpy(), level)
        control.add(same, title, cluster, "0.5: coin")
    null = "0: no discovery is true" if control.null else "no nominal value: effects are planted"
    for test, name in enumerate(("words", "names")):
        p = table.filter(pl.col("test") == test)["p_bh"].drop_nulls()
        if len(p):
            control.discoveries(p, rate, cluster, null, f"tests ({of}{name})")


def subgroup_rows(control: Control) -> None:
    """Add coverage, signs and discoveries of differences within subgroups and between them."""
    apart, pmi = control.read("subgroups", "differences"), control.read("pmi")
    if apart.is_empty() or pmi.is_empty():
        return
    sizes = control.read("subgroups", "shares")
    people = control.read("subgroups", "people")
    lengths = dict(pmi.select("pos", "list_length").unique().iter_rows())
    true: dict[tuple[int, int], NDArray[np.float64]] = {}
    for (pos, number), part in sizes.group_by("pos", "subgroup", maintain_order=True):
        own = people.filter(pl.col("subgroup") == number, pl.col("people") > 0)
        of = dict(own.select("gender", "people").iter_rows())
        some = part["top_k"][0], part["candidates"][0]
        true[pos, number] = -sampled_shares(control, pos, of, *some, lengths[pos])  # women less men
    pairs = [(i, i + 1) for i in range(0, sizes["subgroup"].n_unique(), 2)]
    rows = []
    for row in apart.iter_rows(named=True):
        contrast = row["contrast"]
        several = pairs[contrast - 2 * len(pairs)] if contrast >= 2 * len(pairs) else (contrast,)
        each = [true[row["pos"], number][row["sentiment"]] for number in several]
        rows.append(row | {"true": each[0] - sum(each[1:]), "between": len(several) > 1})
    compared = pl.DataFrame(rows, infer_schema_length=None)
    inside, between = (Rows(control, compared.filter(between=b)) for b in (False, True))
    inside.coverage(", in a subgroup")
    inside.signs(", in a subgroup")
    between.coverage(", between subgroups")
    inside.discoveries("differences in a subgroup")
    between.discoveries("differences between subgroups")
    agreement = control.read("subgroups", "agreement")
    if not control.null and len(agreement):  # the same was planted in all
        alike = np.ones(len(agreement))
        same = signs(alike, agreement["value"].to_numpy(), control.params.confidence)
        title = "share of agreements of subgroups whose sign is the planted one"
        control.add(same, title, "part of speech and pair", "0.5: coin")


def robustness_rows(control: Control) -> None:
    """Add coverage, signs and discoveries of the differences, with whatever is varied.

    What is planted depends on the length of lists, on how many words are taken, and hardly on how
    many men and women are left; nothing else that is varied changes it.
    """
    table, pmi = control.read("robustness"), control.read("pmi")
    if table.is_empty() or pmi.is_empty():
        return
    for deviation, of in ((0, ""), (2, " by latent-corrected")):
        own = table.filter(deviation=deviation, number=0).drop_nulls("value")
        if len(own):
            _varied(control, own, pmi, of)


def _varied(control: Control, table: pl.DataFrame, pmi: pl.DataFrame, by: str) -> None:
    """Add what the differences by one deviation say."""
    parts = []
    lengths = dict(pmi.select("pos", "list_length").unique().iter_rows())
    what = ["pos", "kind", "variation", "men", "women", "non_binary", "top_k", "candidates"]
    for (pos, kind, variation, *people, size, words), part in table.group_by(
        what, maintain_order=True
    ):
        length = int(variation) if kind == LISTS_CUT else lengths[pos]
        of = {gender: number for gender, number in enumerate(people) if number}
        true = sampled_shares(control, pos, of, size, words, length)
        parts.append(part.with_columns(true=pl.Series(true[part["sentiment"].to_numpy()])))
    rows = Rows(control, pl.concat(parts))
    rows.coverage(by)
    rows.signs(by)
    rows.discoveries(f"tests{by}")
