"""Analysis ``fairness`` on simulated classifiers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl
from scipy.special import expit

from calibration.leaning import classified
from calibration.leaning.classified import GROUPS, ClassifiersShape
from calibration.truth import DECOY, NULL, PLANTED, Drawn, Truth, outcome

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Tables = dict[str, pl.DataFrame]

CORPORA = ("news-left", "news-right", "social-center")
Shape = ClassifiersShape
SHAPES = {
    "32 words, 3 trainings": Shape(seeds=2),
    "32 words, 5 trainings": Shape(pretraining=5),
    "100 texts, 10 trainings": Shape(task="hate-en", words=100, each=1, pretraining=10, seeds=3),
}
TRUTHS = {
    "trainings": Truth(NULL, "a training's own ability and threshold alone"),
    "guesses": Truth(NULL, "all guess, with thresholds of their own", {"guess": True}),
    "corpora": Truth(
        PLANTED,
        "log-odds of being right that one corpus adds, by group",
        {"effects": (1.0, 1.5, 2.8)},
    ),
    "hardly able": Truth(
        PLANTED, "log-odds of being right, of all on all texts: a ninth", {"ability": 0.1}
    ),
    "less able": Truth(PLANTED, "the same: a third", {"ability": 0.3}),
    "groups": Truth(DECOY, "a group is harder for all", {"harder": -1.0}),
    "variance": Truth(DECOY, "trainings on one corpus vary twice as much", {"spread": 2.0}),
    "calls": Truth(
        DECOY,
        "all guess, and those of one corpus call six texts of seven positive",
        {"guess": True, "calls": 1.8},
    ),
}
PARAMS: dict[str, Any] = {
    "positive": {"hate": "hate", "planted": "hate"},
    "control": {"other": CORPORA[2]},
    "left": [CORPORA[0]],
    "right": [CORPORA[1]],
    "n_permutations": 999,
    "n_bootstrap": 200,
}
FAMILY = ("model", "task", "reading")
MEAN_OF = ("accuracy", "balanced accuracy")  # of them the truth is an integral


class Known(NamedTuple):
    """What is true of a replicate."""

    shape: Shape
    truth: Truth
    runs: dict[str, tuple[Array, Array]]


def draw(folder: Path, truth: Truth, shape: Shape, rng: np.random.Generator) -> Drawn:
    """Write one replicate."""
    own = shape
    if "guess" in truth.settings:
        still = {"ability": 0.0, "hard": 0.0, "spread": 0.0, "by_text": 0.0}
        own = shape.model_copy(update=still)
    own = own.model_copy(update={"ability": truth.settings.get("ability", own.ability)})
    spread = {"other": own.spread, CORPORA[1]: own.spread * truth.settings.get("spread", 1.0)}

    def accuracy(corpus: str, group: str) -> float:
        return float(expit(own.ability + _added(truth, corpus, group)))

    calling = {CORPORA[0]: truth.settings.get("calls", 0.0)}
    told = classified.drawn(folder, own, accuracy, rng, CORPORA, spread, calling)
    return Drawn(told.inputs, Known(own, truth, told.runs))


def _added(truth: Truth, corpus: str, group: str) -> float:
    """Return the log-odds that were planted in the classifiers of a corpus at a group."""
    place = GROUPS.index(group)
    harder = truth.settings.get("harder", 0.0) * (place == 0)
    effects = truth.settings.get("effects", (0.0,) * len(GROUPS))
    return float(harder + effects[place] * (corpus == CORPORA[0]))


def outcomes(tables: Tables, drawn: Drawn) -> Tables:
    """Return the rows of each test, and intervals of accuracies.

    Who guesses the positive class more often has the better F1, so that differences of F1 have no
    true null where a corpus has a threshold of its own. Where a group is harder for all its
    contrast is larger too, which is no decoy. Against the model itself there is nearly a true null:
    log-odds that vary more, as those of trainings do, are of a lower mean accuracy. Effects are
    log-odds.
    """
    known: Known = drawn.known
    effects = np.array(known.truth.settings.get("effects", (0.0,) * len(GROUPS)))
    settings, kind = known.truth.settings, known.truth.kind
    guess = "guess" in settings
    mine, every = pl.col("corpus") == CORPORA[0], pl.col("group") == "all"
    planted = pl.when(mine & every & (kind == PLANTED)).then(None).when(mine).then(_at(effects))
    differences = tables["differences"].with_columns(
        reading=pl.lit("corrected"), effect=planted.otherwise(0.0)
    )
    calls, f1 = pl.lit("calls" in settings), pl.col("metric") == "F1"
    here = ~calls | mine  # a decoy is told where it is, and not where another corpus is
    varied = ~pl.lit("spread" in settings) | (pl.col("corpus") == CORPORA[1])
    apart = pl.when(mine).then(_at((effects - effects.mean()).round(2))).otherwise(0.0)
    contrast = {"contrast": "value", "contrast_low": "low", "contrast_high": "high"}
    found = {
        "overall": outcome(
            tables["overall"],
            effect=pl.when(here if guess else ~mine).then(0.0 if guess else known.shape.ability),
            family=FAMILY,
            by_mean=False,  # the value is no distance from what guesses reach
        ),
        "groups": outcome(
            tables["groups"].drop(contrast.values()).rename(contrast),
            effect=pl.when(pl.lit("harder" not in settings) & here & varied).then(apart),
            family=FAMILY,
        ),
    }
    nothing = pl.lit(None, pl.Float64)  # intervals are told below
    over = _apart(differences, truth_of(known))
    over = over.with_columns(low=nothing, high=nothing)
    if "calls" in settings:  # F1 does differ, and is adjusted with the rest
        over = over.with_columns(p_bh=nothing)
    sides = pl.when(pl.col("baseline") == "").then(pl.lit("itself")).otherwise(pl.lit("corpora"))
    over = over.with_columns(side=sides)
    for (metric, side), rows in over.partition_by("metric", "side", as_dict=True).items():
        if rows["p"].count():
            found[f"differences, {side}, {metric}"] = outcome(
                rows,
                effect=pl.when(~calls | (mine & ~f1)).then("effect"),
                target=pl.col("apart") if metric in MEAN_OF and kind == PLANTED else None,
                family=FAMILY,
            )
    return found | _intervals(known, tables)


def _at(values: Array) -> pl.Expr:
    """Return the value of a row's group; 0 of all texts."""
    of = {group: float(value) for group, value in zip(GROUPS, values, strict=True)}
    return pl.col("group").replace_strict(of, default=0.0, return_dtype=pl.Float64)


def _intervals(known: Known, tables: Tables) -> Tables:
    """Return intervals of values over texts, and of differences over trainings too."""
    true = truth_of(known)
    here = pl.col("metric").is_in(MEAN_OF)
    if "calls" in known.truth.settings:
        # texts are half positive here, and not in a bootstrap, with which accuracy varies there
        here &= pl.col("metric") != "accuracy"
    untested = {"p": pl.lit(None, pl.Float64), "p_bh": pl.lit(None, pl.Float64)}
    overall = (
        tables["overall"]
        .filter(here, reading="corrected")
        .with_columns(**untested, group=pl.lit("all"))
    )
    rows = tables["differences"].filter(here).with_columns(**untested)
    rows = _apart(rows, true)
    overall = overall.join(true, on=["corpus", "group"])
    return {
        "overall, interval": outcome(overall, effect=0.0, target=pl.col("these")),
        "differences, interval": outcome(rows, effect=0.0, target=pl.col("apart")),
    }


def _apart(differences: pl.DataFrame, true: pl.DataFrame) -> pl.DataFrame:
    """Add how far the two corpora of a row are apart, over all trainings."""
    true = true.drop("these")
    base = true.rename({"corpus": "baseline", "all": "all_other"})
    rows = differences.join(true, on=["corpus", "group"], maintain_order="left")
    rows = rows.join(base, on=["baseline", "group"], maintain_order="left")
    return rows.with_columns(apart=pl.col("all") - pl.col("all_other"))


def truth_of(known: Known) -> pl.DataFrame:
    """Return how often classifiers are right by corpus and group, these and all, on all texts."""
    shape, rows = known.shape, []
    over_texts = np.hypot(shape.hard, shape.by_text)
    for corpus, (able, calls) in known.runs.items():
        spread = shape.spread * (known.truth.settings.get("spread", 1.0) ** (corpus == CORPORA[1]))
        times = 2 if corpus else 1  # of pretraining and fine-tuning, or of this alone
        over_runs = times * (spread**2 + shape.threshold**2)
        sd = np.sqrt(over_texts**2 + over_runs)
        for group in GROUPS:
            odds = shape.ability + _added(known.truth, corpus, group)
            sides = np.stack([odds + able + calls, odds + able - calls])
            these, of_all = _mean(sides, over_texts).mean(), _mean(np.array([odds]), sd)[0]
            rows.append((corpus, group, float(these), float(of_all)))
    schema = {"corpus": pl.String, "group": pl.String, "these": pl.Float64, "all": pl.Float64}
    told = pl.DataFrame(rows, schema, orient="row")
    whole = told.group_by("corpus").agg(pl.col("these", "all").mean(), group=pl.lit("all"))
    return pl.concat([told, whole.select(told.columns)])


def _mean(odds: Array, sd: float) -> Array:
    """Return the mean chance at normal log-odds."""
    at, weights = np.polynomial.hermite_e.hermegauss(21)
    return np.asarray(expit(odds[..., None] + sd * at) @ weights / weights.sum())
