"""Analysis ``anova`` on simulated shares of ``sentiment``.

A model has a deviation of its own, the same in all languages, as a training gives it, and its words
are drawn one by one. What p would be of words as rows, which the tables do not have, is told for
what it is: a test of these trainings, not of architectures. Simplified: adjectives, one reading,
men and women. Deviations and readings stand for three sizes of what is planted: by
`latent-corrected` there is no p.
"""

from __future__ import annotations

import json
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from pydantic import Field
from scipy.special import fdtrc

from calibration.truth import DECOY, NULL, PLANTED, Drawn, Truth, outcome
from plumbline.builders.core.params import Params
from plumbline.builders.datasets.politicians.person import GENDERS
from plumbline.probes.core.run_analysis import Inputs
from plumbline.probes.politicians.anova import (
    DESIGNS,
    FACTORS,
    INTERVALS,
    NAMES,
    RESPONSES,
    UNITS,
    build,
)

if TYPE_CHECKING:
    from pathlib import Path

SIZES = ("base", "large", "xlarge", "xxlarge")
ALONE = {"ALBERT": 4, "BERT": 2, "BERTweet": 1, "RoBERTa": 2, "XLNet": 2}  # English: sizes
OF_MANY = {"XLM": 2, "XLM-R": 2, "m-BERT": 2}  # multilingual: models
BASE = (0.14, 0.76, 0.1)  # shares of the sentiments: there is room for three times 16 points
CHANGED = ("ALBERT", "XLM", "large", "es")  # levels that have what is planted


class Shape(Params):
    """Shape of a study of many models."""

    alone: dict[str, int] = Field(ALONE, description="models of English, by family: their sizes")
    of_many: dict[str, int] = Field(OF_MANY, description="models of all languages, by family")
    languages: list[str] = Field(["en", "es", "fr"], description="that models are asked in")
    worlds: bool = Field(False, description="models of one language each, as many of every one")
    words: int = Field(100, ge=10, description="words taken for a gender")
    training: float = Field(4, ge=0, description="SD of what a model has of its own, points")


SHAPES = {
    "17 models, 6 of them in 3 languages": Shape(),
    "8 models, 4 of them in 3 languages": Shape(
        alone={"BERT": 2, "ALBERT": 2}, of_many={"XLM": 2, "XLM-R": 2}
    ),
    "4 worlds of 2 languages": Shape(
        alone={"BERT": 2}, of_many={}, languages=["en", "es"], worlds=True
    ),
    "12 worlds of 3 languages": Shape(alone={"BERT": 2, "ALBERT": 2}, of_many={}, worlds=True),
}
TRUTHS = {
    "nothing matters": Truth(NULL, "models differ, by nothing that is known of them"),
    "levels planted": Truth(PLANTED, "points more positive words of men", {"effects": (4, 8, 16)}),
    "unequal spread": Truth(
        DECOY, "large models differ among each other five times as much", {"spread": 5}
    ),
}
REFERENCES = {"family": "BERT", "size": "base", "language": "en"}
PARAMS: dict[str, Any] = {"references": dict.fromkeys(DESIGNS, REFERENCES)}
F = ("df", "residual_df", "f")
FAMILY = ["deviation", "reading"]
PLACES = ((0, 0), (0, 1), (1, 1))  # deviations and readings of the sizes


def draw(folder: Path, truth: Truth, shape: Shape, rng: np.random.Generator) -> Drawn:
    """Write one replicate: what is known of models, and the table of shares."""
    rows, names, described = [], [], []
    effects = truth.settings.get("effects", (0,))
    every = (shape.alone | shape.of_many).items()
    apart = [[language] for language in shape.languages]
    for family, number in every:
        of = (
            apart
            if shape.worlds
            else [shape.languages if family in shape.of_many else shape.languages[:1]]
        )
        for n, own_languages in product(range(number), of):
            size = "base" if family == "m-BERT" else SIZES[n]
            names.append("-".join([family, str(n), *own_languages * shape.worlds]).lower())
            where = folder / "samples/worlds" / names[-1]
            where.mkdir(parents=True)
            facts: dict[str, Any] = {"model": {"family": family, "size": size}}
            facts["model"] |= {"control": "positive"} if shape.worlds else {}
            (where / "manifest.json").write_text(json.dumps(facts), "utf-8")
            spread = truth.settings.get("spread", 1) if size != "base" else 1
            group = int(family in shape.of_many)
            described += [(group, names[-1], family, size, x) for x in own_languages]
            own = rng.normal(0, shape.training * spread, (len(effects), 2))
            for level, effect in enumerate(effects):
                for language in own_languages:
                    planted = effect * sum(x in CHANGED for x in (family, size, language))
                    for gender, more in enumerate((planted, 0)):
                        moved = np.array([1, -1, 0]) * (own[level, gender] + more) / 100
                        shares = np.clip(np.add(BASE, moved), 0.01, 1)
                        hits = rng.multinomial(shape.words, shares / shares.sum())
                        rows += [
                            (names[-1], language, *PLACES[level], gender, s, hit)
                            for s, hit in enumerate(hits.tolist())
                        ]
    inputs = Inputs(tuple(sorted(names)), {}, folder)
    inputs.tables("sentiment").mkdir(parents=True)
    keys = ["model", "language", *FAMILY, "gender", "sentiment", "hits"]
    pl.DataFrame(rows, schema=keys, orient="row").with_columns(
        pos=0, top_k=shape.words
    ).write_parquet(inputs.tables("sentiment") / "shares.parquet")
    facts_of = pl.DataFrame(
        described, schema=["group", "model", *DESIGNS["three-way"]], orient="row"
    )
    return Drawn(inputs, (effects, _moved(facts_of, worlds=shape.worlds)))


def _moved(described: pl.DataFrame, *, worlds: bool) -> pl.DataFrame:
    """Return how far a planted point moves the shares by each factor, in each design.

    That is the root mean square over models of its planted levels, less what all other factors of
    the design explain: what F tests.
    """
    parts = [(0, g, x, own) for (g, x), own in described.group_by("group", "language")]
    group = 0 if worlds else 1
    parts.append((1, group, "all", described.filter(group=group)))
    found = []
    for design, g, language, own in parts:
        factors = DESIGNS[NAMES[design]]
        built = build(own, factors, REFERENCES)
        planted = {f: own[f].is_in(CHANGED).to_numpy().astype(float) for f in factors}
        planted["all"] = np.sum([*planted.values()], axis=0)
        for factor, of in planted.items():
            others = [0] + [
                i for i, c in enumerate(built.columns[1:], 1) if factor not in (c[0], "all")
            ]
            matrix = built.matrix[:, others]
            left = of - matrix @ np.linalg.lstsq(matrix, of)[0]
            found.append((design, g, language, FACTORS.index(factor), (left**2).mean() ** 0.5))
    keys = ["design", "group", "language", "factor", "moved"]
    return pl.DataFrame(found, schema=keys, orient="row")


def outcomes(tables: dict[str, pl.DataFrame], drawn: Drawn) -> dict[str, pl.DataFrame]:
    """Return the rows of each test, by design and interval; F has neither sign nor interval."""
    effects, moved = drawn.known
    sizes = {sum(place): float(effect) for place, effect in zip(PLACES, effects, strict=False)}
    planted = pl.sum_horizontal(pl.col(FAMILY).cast(pl.Int64)).replace_strict(sizes)
    men = pl.col("response").is_in([GENDERS.index("male"), RESPONSES.index("male minus female")])
    sign = pl.col("sentiment").cast(pl.Int64).replace_strict({0: 1.0, 1: -1.0, 2: 0.0})
    sign = pl.when(men).then(sign).otherwise(0.0)
    found = {}
    table = tables["coefficients"].filter(pl.col("factor") != FACTORS.index("intercept"))
    effect = pl.when(pl.col("level").is_in(CHANGED)).then(planted * sign).otherwise(0.0) + 0.0
    for d, design in enumerate(DESIGNS):
        for i, interval in enumerate(INTERVALS):
            rows = table.filter(design=d, interval=i)
            found[f"coefficients: {design}, {interval}"] = outcome(
                rows, effect=effect, target=effect, family=FAMILY
            )
        # every factor has a level with what is planted
        rows = (
            tables["tests"]
            .with_columns(pl.col("design", "group", "factor").cast(pl.Int64))
            .filter(design=d)
            .join(moved, on=["design", "group", "language", "factor"], how="left")
            .with_columns(value=0.0, low=None, high=None)
        )
        effect_of = planted * sign + 0.0
        shares, words = (rows.filter(unit=unit) for unit in range(len(UNITS)))
        found[f"tests: {design}"] = outcome(
            shares, effect=effect_of, target=effect_of.abs() * pl.col("moved"), family=FAMILY
        )
        p = fdtrc(*(words[name].cast(pl.Float64).to_numpy() for name in F))
        none = dict.fromkeys(("detectable", "detectable_bh", "p_bh"))
        words = words.with_columns(p=pl.Series(p).fill_nan(None), **none)
        name = f"not in the tables: F of words, {design}"
        found[name] = outcome(words, effect=effect_of)
    return found
