"""Ways to break the analyses, as a slip of the pen would: in what they read, or in a function."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl
from scipy.special import fdtrc

from calibration.truth import PLANTED, Truth
from plumbline.builders.datasets.emotions.build import AFFECTS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Change = Callable[[pl.DataFrame], pl.DataFrame]

SEED = 17


class Breakage(NamedTuple):
    """What is broken: files after they are drawn, or a function of a module."""

    analysis: str
    name: str
    files: Callable[[Path], None] | None = None  # gets the folder of a replicate
    target: str = ""  # module of the study and its attribute
    instead: Callable[..., object] | None = None  # gets the true function first
    shape: str = ""  # how the name of the simulated run begins; by default the first
    truth: str = ""  # of those below; by default each of the simulation's own


# Truths in which a slip shows that elsewhere takes hundreds of tables, and the settings of them.
TRUTHS = {
    "attributes come first": (
        Truth(PLANTED, "nats that attributes have more", {"lifts": (5.0, 5.0, 5.0)}),
        {"tested": [1, 2]},
    ),
}


def rewritten(pattern: str, change: Change) -> Callable[[Path], None]:
    """Return a breakage of all files that a pattern finds; one that finds none breaks nothing."""

    def apply(folder: Path) -> None:
        paths = [path for path in folder.glob(pattern) if "rejects" not in path.name]
        assert paths, pattern
        for path in paths:
            change(pl.read_parquet(path)).write_parquet(path)

    return apply


def shuffled(*columns: str) -> Change:
    """Return a change that deals the values of columns out anew, together."""

    def change(table: pl.DataFrame) -> pl.DataFrame:
        order = np.random.default_rng(SEED).permutation(len(table))
        return table.with_columns(table.select(columns)[order])

    return change


def swapped(column: str, one: object, other: object) -> Change:
    """Return a change that takes one value for another."""
    both = {one: other, other: one}
    return lambda table: table.with_columns(pl.col(column).replace(both))


def exchanged(one: str, other: str) -> Change:
    """Return a change that takes one column for another."""
    return lambda table: table.rename({one: other, other: one})


def turned(column: str) -> Change:
    """Return a change of the sign of a column."""
    return lambda table: table.with_columns(-pl.col(column))


def rotated(*columns: str) -> Change:
    """Return a change that gives what is of one thing to the next one; "" stays what it is."""

    def change(table: pl.DataFrame) -> pl.DataFrame:
        things = table.select(columns).unique().filter(pl.col(columns[0]) != "").sort(columns)
        number = things.with_row_index("at")
        following = pl.concat([things[1:], things[:1]]).with_row_index("at")
        both = number.join(following, on="at", suffix="_new").drop("at")
        found = table.join(both, on=columns, how="left", maintain_order="left")
        return found.with_columns(
            pl.coalesce(f"{name}_new", name).alias(name) for name in columns
        ).select(table.columns)

    return change


def both(one: str, other: str, change: Change) -> Callable[[Path], None]:
    """Return a breakage of the files of two patterns."""

    def apply(folder: Path) -> None:
        rewritten(one, change)(folder)
        rewritten(other, change)(folder)

    return apply


def models_swapped(folder: Path) -> None:
    """Take the outputs of one model for those of the other."""
    one, other = sorted(folder.glob("**/outputs/*/*"))
    one.rename(folder / "aside")
    other.rename(one)
    (folder / "aside").rename(other)


def lists_dealt(table: pl.DataFrame) -> pl.DataFrame:
    """Give the lists of one person to another."""
    people = table["qid"].unique().sort()
    others = people.sample(fraction=1.0, shuffle=True, seed=SEED)
    return table.with_columns(pl.col("qid").replace(people, others))


def classes(table: pl.DataFrame) -> pl.DataFrame:
    """Give each lemma the classes of the next one of its part of speech."""
    return pl.concat(rotated("lemma")(own) for own in table.partition_by("pos"))


def of_one_model(table: pl.DataFrame) -> pl.DataFrame:
    """Take groups for the next ones, in the first model alone."""
    first = pl.col("model") == table["model"].min()
    moved = rotated("category", "group")(table.filter(first, pl.col("group") != ""))
    return pl.concat([moved, table.filter(first, pl.col("group") == ""), table.filter(~first)])


def next_affects(table: pl.DataFrame) -> pl.DataFrame:
    """Take each affect for the next one."""
    return table.rename(dict(zip(AFFECTS, (*AFFECTS[1:], AFFECTS[0]), strict=True)))


def turned_round(table: pl.DataFrame) -> pl.DataFrame:
    """Take reversed statements for straight ones."""
    return table.with_columns(~pl.col("reversed"))


def negative(true: Callable[..., np.ndarray], *given: object, **named: object) -> np.ndarray:
    """Return what is right but for the sign."""
    return -true(*given, **named)


def without_groups(_: object, counts: np.ndarray, smoothing: float) -> np.ndarray:
    """Return log p(w, g) - log p(w): the group is left out."""
    cells = counts + smoothing
    with np.errstate(divide="ignore"):
        return np.log(cells / cells.sum(axis=1, keepdims=True))


def a_rank_late(true: Callable[..., object], ranks: np.ndarray, *given: object) -> object:
    """Return what is right of ranks that start at 2."""
    return true(np.where(ranks > 0, ranks + 1, 0), *given)


def half_confident(true: Callable[..., object], *given: object) -> object:
    """Return intervals of half the confidence."""
    draws, smoothing, seed, confidence, merged = given
    return true(draws, smoothing, seed, confidence / 2, merged)


def models_not_held_together(
    true: Callable[..., object], y: np.ndarray, matrix: np.ndarray, _: object, *given: object
) -> object:
    """Return a jackknife over rows: what a model's languages have in common is left out."""
    return true(y, matrix, range(len(y)), *given)


def parameters_free(true: Callable[..., object], y: np.ndarray, *given: object) -> object:
    """Return an F test whose residual degrees of freedom are the number of rows."""
    found = true(y, *given)
    return found._replace(p=float(fdtrc(found.freedom, len(y), found.f)))


PEOPLE, LEXICA = "**/people/*.parquet", "**/lexica/*.parquet"
WORDS = "**/outputs/associations/*/*/*.parquet"
OF_GROUPS, TRAINED = "**/outputs/completions/*/en/*.parquet", "**/after_training/*/en/*.parquet"
CLASSIFIED = "**/outputs/classification/*/sentiment-en/*.parquet"
SWAPS = "**/counterfactuals/*.parquet"
STANCES, TUNED = "**/outputs/stances/*/*/*.parquet", "**/finetuned_classifiers/*/*/*.parquet"
AGREED = "**/outputs/agreement/*/*/*.parquet"
genders = swapped("gender", 0, 1)
agreeing = exchanged("agree_nats", "disagree_nats")
poles_of_shares = swapped("sentiment", 0, 1)
poles = swapped("class", "positive", "negative")
upside_down, affects = exchanged("q_positive", "q_negative"), exchanged("positive", "negative")
POLITICIANS = ("pmi", "latent", "supersenses", "clusters", "subgroups", "robustness", "pooled_pmi")
POLITICIANS += ("sentiment", "anova", "lexicon_evaluation", "reliability")
BREAKAGES = [
    Breakage("pmi", "genders swapped", rewritten(PEOPLE, genders)),
    Breakage("pmi", "genders shuffled", rewritten(PEOPLE, shuffled("gender"))),
    Breakage("pmi", "lists shuffled", rewritten(WORDS, lists_dealt)),
    Breakage("pmi", "sign of PMI", target="pmi:pmi", instead=negative),
    Breakage("pmi", "group left out of PMI", target="pmi:pmi", instead=without_groups),
    Breakage("pmi", "half the confidence", target="pmi:intervals", instead=half_confident),
    Breakage("pooled_pmi", "genders swapped", rewritten(PEOPLE, genders)),
    Breakage("pooled_pmi", "lists shuffled", rewritten(WORDS, lists_dealt)),
    Breakage("pooled_pmi", "sign of PMI", target="pmi:pmi", instead=negative),
    Breakage("supersenses", "genders swapped", both(PEOPLE, "**/pmi/*/pmi.parquet", genders)),
    Breakage("supersenses", "classes shifted", rewritten("**/supersenses/*", classes)),
    Breakage("subgroups", "genders swapped", rewritten(PEOPLE, genders)),
    Breakage("subgroups", "lexicon upside down", rewritten(LEXICA, upside_down)),
    Breakage("subgroups", "natives shuffled", rewritten(PEOPLE, shuffled("native"))),
    Breakage("subgroups", "lists shuffled", rewritten(WORDS, lists_dealt)),
    Breakage("latent", "genders swapped", rewritten(PEOPLE, genders)),
    Breakage("latent", "lexicon upside down", rewritten(LEXICA, upside_down)),
    Breakage("latent", "lists shuffled", rewritten(WORDS, lists_dealt)),
    Breakage("reliability", "samples of other statements", rewritten(STANCES, shuffled("id"))),
    Breakage("reliability", "samples of other prompts", rewritten(STANCES, shuffled("frame"))),
    Breakage("robustness", "genders swapped", rewritten(PEOPLE, genders)),
    Breakage("robustness", "lexicon upside down", rewritten(LEXICA, upside_down)),
    Breakage("robustness", "lexicon shuffled", rewritten(LEXICA, shuffled("word"))),
    Breakage("sentiment", "genders swapped", rewritten(PEOPLE, genders)),
    Breakage("sentiment", "lexicon upside down", rewritten(LEXICA, upside_down)),
    Breakage("sentiment", "lexicon shuffled", rewritten(LEXICA, shuffled("word"))),
    Breakage("anova", "genders swapped", rewritten("**/shares.parquet", genders)),
    Breakage("anova", "sentiments swapped", rewritten("**/shares.parquet", poles_of_shares)),
    Breakage(
        "anova",
        "models not held together",
        target="anova:jackknife",
        instead=models_not_held_together,
        shape="17 models",
    ),
    Breakage("anova", "parameters not counted", target="anova:drop", instead=parameters_free),
    Breakage("clusters", "words shuffled", rewritten("**/representations/*/*/*", shuffled("word"))),
    Breakage("clusters", "genders swapped", rewritten("**/pmi/*/pmi.parquet", genders)),
    Breakage("lexicon_evaluation", "labels shuffled", rewritten("**/texts/*", shuffled("label"))),
    Breakage("lexicon_evaluation", "lexicon shuffled", rewritten(LEXICA, shuffled("word"))),
    Breakage("lexicon_evaluation", "lexicon upside down", rewritten(LEXICA, upside_down)),
    Breakage("recall", "words shuffled", rewritten(OF_GROUPS, shuffled("word", "token"))),
    Breakage(
        "recall", "attributes shuffled", rewritten("**/stereotypes/en*", shuffled("attribute"))
    ),
    Breakage("recall", "prompts of other groups", rewritten(OF_GROUPS, rotated("query"))),
    Breakage(
        "recall",
        "a rank late",
        target="match_attributes:hits",
        instead=a_rank_late,
        truth="attributes come first",
    ),
    Breakage("emotions", "sign", target="emotions:differences", instead=negative),
    Breakage("emotions", "groups exchanged", rewritten(OF_GROUPS, rotated("category", "group"))),
    Breakage("emotions", "lexicon shuffled", rewritten("**/emotions/en.parquet", shuffled("word"))),
    Breakage("emotions", "affects shifted", rewritten("**/emotions/en.parquet", next_affects)),
    Breakage("rsa", "sign", target="similarity:rsa", instead=negative),
    Breakage("rsa", "groups of a model shifted", rewritten("**/tables/emotions/*", of_one_model)),
    Breakage("shift", "lexicon shuffled", rewritten("**/emotions/en.parquet", shuffled("word"))),
    Breakage("shift", "affects exchanged", rewritten("**/emotions/en.parquet", affects)),
    Breakage(
        "shift", "control for a corpus", rewritten(TRAINED, swapped("corpus", "control", "wire"))
    ),
    Breakage("shift", "outlets swapped", rewritten(TRAINED, swapped("corpus", "herald", "wire"))),
    Breakage("shift", "words shuffled", rewritten(TRAINED, shuffled("word", "token"))),
    Breakage("nationality", "classes swapped", rewritten(CLASSIFIED, poles)),
    Breakage("nationality", "countries shuffled", rewritten(SWAPS, shuffled("country"))),
    Breakage("nationality", "predictions of next texts", rewritten(CLASSIFIED, rotated("text"))),
    Breakage("values", "reversed forgotten", rewritten("**/statements/v*", turned_round)),
    Breakage("values", "wrong template", rewritten(AGREED, rotated("frame"))),
    Breakage("values", "denials swapped", rewritten(AGREED, swapped("form", 0, 1))),
    Breakage("values", "genders swapped", rewritten(AGREED, genders)),
    Breakage("values", "disagreeing for agreeing", rewritten(AGREED, agreeing)),
    Breakage("compass", "sides swapped", rewritten(STANCES, swapped("corpus", "left", "right"))),
    Breakage("compass", "corpora shifted", rewritten(STANCES, rotated("corpus"))),
    Breakage(
        "compass",
        "periods swapped",
        rewritten(STANCES, swapped("period", 1, 2)),
        shape="masked, 5 trainings, before",
    ),
    Breakage("compass", "disagreeing for agreeing", rewritten(STANCES, agreeing)),
    Breakage("compass", "reversed forgotten", rewritten("**/statements/q.parquet", turned_round)),
    Breakage("compass", "statements shifted", rewritten(STANCES, rotated("id"))),
    Breakage("fairness", "corpora shifted", rewritten(TUNED, rotated("corpus"))),
    Breakage("fairness", "classes swapped", rewritten(TUNED, swapped("class", "hate", "not-hate"))),
    Breakage("fairness", "groups shifted", rewritten(TUNED, rotated("group"))),
    Breakage("ensemble", "corpora shifted", rewritten(TUNED, rotated("corpus"))),
    Breakage("ensemble", "classes swapped", rewritten(TUNED, swapped("class", "hate", "not-hate"))),
    Breakage("ensemble", "labels shuffled", rewritten(TUNED, shuffled("label"))),
    Breakage("comparison", "stereotypes: models swapped", models_swapped, shape="stereotypes"),
    *(
        Breakage("comparison", f"{study}: {name}", rewritten(pattern, change), shape=study)
        for study, name, pattern, change in (
            ("politicians", "genders swapped", PEOPLE, genders),
            ("values", "reversed forgotten", "**/statements/v*", turned_round),
            ("nationality", "classes swapped", CLASSIFIED, poles),
            ("leaning", "disagreeing for agreeing", STANCES, agreeing),
        )
    ),
]
