"""Analysis ``anova`` on simulated shares, a table of ``sentiment``.

Each model deviates equally in all languages, as if owing to training, and its words are drawn
independently. Simplifications: only adjectives, one ranking, men and women. The deviations and
readings (method variants) stand for three sizes of the planted effect.
"""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from pydantic import Field

from calibration.truth import Drawn, Generator, Tables, Truth, outcomes_by
from plumbline.builders.core.params import Params
from plumbline.builders.datasets.lexica.build import SENTIMENTS
from plumbline.probes.core.run_analysis import Inputs

SIZES = ("base", "large", "xlarge", "xxlarge")
ALONE = {"ALBERT": 4, "BERT": 2, "BERTweet": 1, "RoBERTa": 2, "XLNet": 2}  # English: sizes
OF_MANY = {"XLM": 2, "XLM-R": 2, "m-BERT": 2}  # multilingual: models
BASE = (0.14, 0.76, 0.1)  # shares of the sentiments, which leave room for a change of 3 x 16 points
CHANGED = ("ALBERT", "XLM", "large", "es")  # levels for which an effect is planted


class Shape(Params):
    """Shape of a study with many models."""

    alone: dict[str, int] = Field(ALONE, description="number of English models (sizes) in a family")
    of_many: dict[str, int] = Field(OF_MANY, description="number of multilingual models by family")
    languages: list[str] = Field(["en", "es", "fr"], description="languages of the prompts")
    worlds: bool = Field(False, description="number of monolingual models, equal in all languages")
    words: int = Field(100, ge=10, description="number of words selected for each gender")
    training: float = Field(4, ge=0, description="SD over models of their deviation, points")


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
    # models differ, but not by any factor
    "nothing matters": Truth("null"),
    # percentage points of positive words added for men
    "levels planted": Truth("planted", effects=(4, 8, 16)),
    # large models differ five times as much from one another
    "unequal spread": Truth("decoy", spread=5),
}
REFERENCES = {"family": "BERT", "size": "base", "language": "en"}
DESIGNS = ("two-way", "three-way")
PARAMS: dict[str, Any] = {"references": dict.fromkeys(DESIGNS, REFERENCES)}
FAMILY = ["deviation", "reading"]
# indices of the sizes in the table
PLACES = (("pmi", "pairs"), ("pmi", "argmax"), ("latent-faithful", "argmax"))


def draw(folder: Path, truth: Truth, shape: Shape, rng: Generator) -> Drawn:
    """Write one replicate: the models' manifests and the table of shares."""
    rows, names = [], []
    effects = truth.get("effects", (0,))
    for family, number in (shape.alone | shape.of_many).items():
        languages = [shape.languages if family in shape.of_many else shape.languages[:1]]
        if shape.worlds:
            languages = [[language] for language in shape.languages]
        for n, own_languages in product(range(number), languages):
            size = "base" if family == "m-BERT" else SIZES[n]
            names.append("-".join([family, str(n), *own_languages * shape.worlds]).lower())
            where = folder / "samples/worlds" / names[-1]
            where.mkdir(parents=True)
            facts: dict[str, Any] = {"model": {"family": family, "size": size}}
            facts["model"] |= {"control": "positive"} if shape.worlds else {}
            (where / "manifest.json").write_text(json.dumps(facts), "utf-8")
            spread = truth.get("spread", 1) if size != "base" else 1
            deviation = rng.normal(0, shape.training * spread, (len(effects), 2))
            for level, language in product(range(len(effects)), own_languages):
                levels = sum(x in CHANGED for x in (family, size, language))
                moved = deviation[level] + [effects[level] * levels, 0]  # male, female
                shares = np.clip(BASE + np.outer(moved, [1, -1, 0]) / 100, 0.01, 1)
                hits = rng.multinomial(shape.words, shares / shares.sum(axis=1, keepdims=True))
                rows += [
                    (names[-1], language, *PLACES[level], gender, s, hit / shape.words)
                    for gender, own_hits in zip(("male", "female"), hits.tolist(), strict=True)
                    for s, hit in zip(SENTIMENTS, own_hits, strict=True)
                ]
    inputs = Inputs(tuple(sorted(names)), {}, folder)
    keys = ["model", "language", *FAMILY, "gender", "sentiment", "value"]
    table = pl.DataFrame(rows, schema=keys, orient="row")
    table = table.with_columns(pos=pl.lit("ADJ"), top_k=shape.words)
    table.write_parquet(inputs.tables("sentiment") / "shares.parquet", mkdir=True)
    return Drawn(inputs, effects, truth)


def outcomes(tables: Tables, sample: Drawn) -> Tables:
    """Return the rows of each test by design and interval; F tests have no sign and no interval."""
    sizes = {f"{d}, {r}": float(e) for (d, r), e in zip(PLACES, sample.known, strict=False)}
    planted = pl.concat_str(FAMILY, separator=", ").replace_strict(sizes, return_dtype=pl.Float64)
    men = pl.col("response").is_in(["male", "male minus female"])
    sign = pl.col("sentiment").replace_strict(dict(zip(SENTIMENTS, (1.0, -1.0, 0.0), strict=True)))
    moved = pl.col("level").is_in(CHANGED) & men
    effect = pl.when(moved).then(planted * sign).otherwise(0.0) + 0.0
    table = tables["coefficients"].filter(pl.col("factor") != "intercept")
    test = "coefficients: {design}, {interval}"
    result = outcomes_by(table, test, effect=effect, target=effect, family=FAMILY)
    if sample.truth.kind != "planted":
        test = "tests: {design}"
        result |= outcomes_by(tables["tests"], test, effect=0.0, family=FAMILY, interval=())
    return result
