"""Analysis ``fairness`` on simulated classifiers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from scipy.special import expit

from calibration.leaning import classified
from calibration.leaning.classified import GROUPS, ClassifiersShape
from calibration.truth import Drawn, Generator, Tables, Truth, normal_mean, outcomes_by

CORPORA = ("news-left", "news-right", "social-center")
Shape = ClassifiersShape
SHAPES = {
    "32 words, 3 trainings": Shape(seeds=2),
    "32 words, 5 trainings": Shape(pretraining=5),
    "100 texts, 10 trainings": Shape(task="hate-en", words=100, each=1, pretraining=10, seeds=3),
}
GUESS = {"ability": 0.0, "hard": 0.0, "spread": 0.0, "by_text": 0.0}
TRUTHS = {
    # training runs differ in ability and threshold by chance
    "trainings": Truth("null"),
    # all classifiers guess, with different thresholds
    "guesses": Truth("null", guess=True, shape=GUESS),
    # log-odds of being right added by one corpus, by group
    "corpora": Truth("planted", effects=(1.0, 1.5, 2.8)),
    # one group is harder for all classifiers
    "groups": Truth("decoy", harder=-1.0),
    # training runs on one corpus vary twice as much
    "variance": Truth("decoy", spread=2.0),
    # all classifiers guess; those of one corpus predict the positive class for six of seven texts
    "calls": Truth("decoy", guess=True, shape=GUESS, calls=1.8),
}
PARAMS: dict[str, Any] = {
    "positive": {"hate": "hate", "planted": "hate"},
    "control": {"other": CORPORA[2]},
    "kinds": {task: {name: [name] for name in GROUPS[:2]} for task in ("hate", "planted")},
    "left": [CORPORA[0]],
    "right": [CORPORA[1]],
    "n_permutations": 999,
    "n_bootstrap": 200,
}
FAMILY = ("model", "task")
CONTRAST = ("contrast", "contrast_low", "contrast_high")
MEAN_OF = ("accuracy", "balanced accuracy")  # metrics whose true value is an integral


def draw(folder: Path, truth: Truth, shape: Shape, rng: Generator) -> Drawn:
    """Write one replicate."""

    def accuracy(corpus: str, group: str) -> float:
        return float(expit(shape.ability + _added(truth, corpus, group)))

    spread = {CORPORA[1]: shape.spread * truth.get("spread", 1.0)}
    calling = {CORPORA[0]: truth.get("calls", 0.0)}
    how: dict[str, Any] = {"spread": spread, "calling": calling}
    answers = classified.write(folder, shape, accuracy, rng, CORPORA, **how)
    return Drawn(answers.inputs, answers.runs, truth, shape)


def _added(truth: Truth, corpus: str, group: str) -> float:
    """Return the log-odds added for classifiers from one corpus on texts about one group."""
    index = GROUPS.index(group)
    harder = truth.get("harder", 0.0) * (index == 0)
    effects = truth.get("effects", (0.0,) * len(GROUPS))
    return float(harder + effects[index] * (corpus == CORPORA[0]))


def outcomes(tables: Tables, sample: Drawn) -> Tables:
    """Return the rows of each test, and intervals for accuracies.

    More frequent positive predictions raise F1, so the null hypothesis about F1 is false if the
    threshold of a corpus differs. If one group is harder for all classifiers, its contrast is
    larger too, so contrasts are not counted as decoys. For the pretrained model, the null
    hypothesis is nearly true: the larger variance of log-odds after training lowers mean accuracy.
    """
    intervals = _intervals(sample, tables)
    if sample.truth.kind == "planted":
        return intervals
    settings = sample.truth.settings
    calls, changed = "calls" in settings, pl.col("corpus") == CORPORA[0]
    counted = changed | (not calls)  # a decoy is counted only in the rows of its corpus
    varied = (pl.col("corpus") == CORPORA[1]) | ("spread" not in settings)
    same = pl.when(counted & varied & ("harder" not in settings)).then(0.0)
    how: dict[str, Any] = {"family": FAMILY, "interval": CONTRAST}
    result = outcomes_by(tables["groups"], "groups", effect=same, **how)
    if "guess" in settings:
        effect = pl.when(counted).then(0.0)
        result |= outcomes_by(tables["overall"], "overall", effect=effect, family=FAMILY)
    side = pl.when(baseline="").then(pl.lit("itself")).otherwise(pl.lit("corpora"))
    side = pl.when(level="kind").then(pl.lit("kinds")).otherwise(side)
    differences = tables["differences"].with_columns(side=side)
    result |= outcomes_by(
        differences.filter(pl.col("p").is_not_null().any().over("metric", "side")),
        "differences, {side}, {metric}",
        effect=pl.when((changed & (pl.col("metric") != "F1")) | (not calls)).then(0.0),
        family=FAMILY,
        interval=["value"],  # intervals are counted separately
        p_adjusted="" if calls else "p_bh",  # F1 does differ, and is tested in the same family
    )
    return result | intervals


def _intervals(sample: Drawn, tables: Tables) -> Tables:
    """Return the intervals: values vary over texts, differences over texts and training runs."""
    true = truth_of(sample)
    used = pl.col("metric").is_in(MEAN_OF)
    if "calls" in sample.truth.settings:
        # half of the texts are positive here, but not in each bootstrap sample
        used &= pl.col("metric") != "accuracy"
    overall = tables["overall"].filter(used, reading="corrected").with_columns(group=pl.lit("all"))
    overall = overall.join(true, on=["corpus", "group"])
    true = true.drop("these")
    base = true.rename({"corpus": "baseline", "all": "all_other"})
    rows = tables["differences"].filter(used).join(true, on=["corpus", "group"])
    rows = rows.join(base, on=["baseline", "group"])
    difference = pl.col("all") - pl.col("all_other")
    result = outcomes_by(overall, "overall, interval", effect=0.0, target="these", p="")
    return result | outcomes_by(rows, "differences, interval", effect=0.0, target=difference, p="")


def truth_of(sample: Drawn) -> pl.DataFrame:
    """Return the true accuracies by corpus and group of these and of all possible classifiers."""
    shape, rows = sample.shape, []
    over_texts = np.hypot(shape.hard, shape.by_text)
    for corpus, (able, calls) in sample.known.items():
        spread = shape.spread * (sample.truth.get("spread", 1.0) ** (corpus == CORPORA[1]))
        times = 2 if corpus else 1  # number of variances: pretraining, fine-tuning
        over_runs = times * (spread**2 + shape.threshold**2)
        sd = np.sqrt(over_texts**2 + over_runs)
        for group in GROUPS:
            odds = shape.ability + _added(sample.truth, corpus, group)
            sides = np.stack([odds + able + calls, odds + able - calls])
            these, of_all = normal_mean(expit, sides, over_texts), normal_mean(expit, odds, sd)
            rows.append((corpus, group, float(these.mean()), float(of_all)))
    schema = {"corpus": pl.String, "group": pl.String, "these": pl.Float64, "all": pl.Float64}
    groups = pl.DataFrame(rows, schema, orient="row")
    overall = groups.group_by("corpus").agg(pl.col("these", "all").mean(), group=pl.lit("all"))
    return pl.concat([groups, overall.select(groups.columns)])
