"""Analysis ``reliability`` on simulated responses of one model to two probes.

``stances``: written responses, whose difference of probabilities is a tenth of the score, for parts
of variance. ``agreement`` in several languages, in the last of which some statements may work
otherwise, by their score and by the odds of agreeing. Effects are normal; what is not valid is so
by chance.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from pydantic import Field

from calibration.truth import DECOY, NULL, PLANTED, Drawn, Truth, outcome
from plumbline.builders.core.params import Params
from plumbline.probes.core.run_analysis import Inputs

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    Array = NDArray[np.float64]

MODEL = "simulated"
UNIT = 0.1  # of a score, in differences of probability
OTHER = 0.5  # variance of statement by language by template


class Shape(Params):
    """The shape of a run."""

    statements: int = Field(40, ge=6, description="of a questionnaire")
    templates: int = Field(5, ge=3, description="that each of them is put in")
    seeds: int = Field(3, ge=3, description="samples of each prompt")
    languages: int = Field(2, ge=2, le=4, description="that statements are put in")
    lost: float = Field(0.0, ge=0, lt=0.5, description="share of responses that are not valid")


SHAPES = {
    "40 statements, 5 templates, 3 seeds, 2 languages": Shape(),
    "20 statements, 3 templates, 5 seeds, 4 languages, 10% lost": Shape(
        statements=20, templates=3, seeds=5, languages=4, lost=0.1
    ),
    "20 statements, 30 templates, 3 seeds, 2 languages": Shape(statements=20, templates=30),
}
PARTS = {
    "statement": 1.0,
    "template": 0.3,
    "seed": 0.2,
    "statement x template": 0.5,
    "statement x seed": 0.0,
    "template x seed": 0.0,
    "rest": 0.2,
}
ALONE = dict.fromkeys(PARTS, 0.0) | {"statement": 1.0, "rest": 0.2}
OTHERWISE = (1.2, -1.8, 2.6)  # of three statements in the last language
TRUTHS = {
    "statements alone": Truth(NULL, "scores vary with the statement, and by chance", ALONE),
    "parts, and items": Truth(
        PLANTED,
        "parts of variance; items work otherwise, SDs of the statements",
        PARTS | {"items": 1.0},
    ),
    "language": Truth(DECOY, "all statements differ between languages", PARTS | {"shift": 2.0}),
}
PARAMS: dict[str, Any] = {
    "n_bootstrap": 20,
    "splits": 10,
    "draws": 400,
    "reml_scores": 0,
    "templates": [1, 5, 20],
    "statements": [10],
    "seeds": [1, 20],
}


def draw(folder: Path, truth: Truth, shape: Shape, rng: np.random.Generator) -> Drawn:
    """Write one replicate."""
    names = [f"s{place:03d}" for place in range(shape.statements)]
    languages = [f"l{place}" for place in range(shape.languages)]
    inputs = Inputs((MODEL,), {"statements": folder / "statements"}, folder / "data")
    _statements(inputs.datasets["statements"], names, languages)
    signs = np.where(np.arange(shape.statements) % 3 == 0, -1.0, 1.0)
    score = effects(truth.settings, shape, rng) * signs[:, None, None]
    _stances(inputs.outputs("stances", MODEL), score, names, shape.lost, rng)
    planted = np.zeros((shape.statements, shape.languages))
    if truth.settings.get("items"):
        planted[: len(OTHERWISE), -1] = OTHERWISE
    base = effects(truth.settings, shape, rng)[:, :, 0]
    for place, language in enumerate(languages):
        own = base + planted[:, place, None] + truth.settings.get("shift", 0.0) * place
        own = (own + rng.normal(0, OTHER**0.5, own.shape)) * signs[:, None]
        _agreement(inputs.outputs("agreement", MODEL) / language, own, names, language)
    return Drawn(inputs, {"planted": planted, "names": names, "parts": dict(truth.settings)})


def effects(parts: Mapping[str, float], shape: Shape, rng: np.random.Generator) -> Array:
    """Return scores, (statements, templates, seeds)."""
    sizes = {"statement": shape.statements, "template": shape.templates, "seed": shape.seeds}
    found = np.zeros(tuple(sizes.values()))
    for term in PARTS:
        facets = list(sizes) if term == "rest" else term.split(" x ")
        size = [n if name in facets else 1 for name, n in sizes.items()]
        found += rng.normal(0, 1, size) * parts[term] ** 0.5
    return found


def _statements(folder: Path, names: list[str], languages: list[str]) -> None:
    folder.mkdir(parents=True)
    for name, scale, of in (("axes", "axes", "l0"), *((f"v-{x}", "values", x) for x in languages)):
        table = {"id": names, "reversed": [place % 3 == 0 for place in range(len(names))]}
        same = {"language": of, "scale": scale, "axis": "one"}
        pl.DataFrame(table).with_columns(pl.lit(v).alias(k) for k, v in same.items()).write_parquet(
            folder / f"{name}.parquet"
        )


def _stances(
    folder: Path, score: Array, names: list[str], lost: float, rng: np.random.Generator
) -> None:
    """Write responses, some of them empty."""
    place = [own.ravel() for own in np.indices(score.shape)]
    small = score.ravel() * UNIT
    table = pl.DataFrame(
        {
            "id": [names[s] for s in place[0]],
            "frame": [f"t{t}" for t in place[1]],
            "seed": place[2],
            "text": "",
            "response": np.where(rng.random(score.size) < lost, "", "I say this.").tolist(),
            "entailed_nats": np.log(0.5 + small / 2),
            "contradicted_nats": np.log(0.5 - small / 2),
        }
    )
    state = {"corpus": "", "period": 0, "share": 0.0, "pretraining_seed": 0, "epoch": 0}
    state |= {"questionnaire": "axes", "form": 0, "variant": ""}
    (folder / "generation").mkdir(parents=True)
    table.with_columns(pl.lit(v).alias(k) for k, v in state.items()).write_parquet(
        folder / "generation/0.parquet"
    )


def _agreement(folder: Path, score: Array, names: list[str], language: str) -> None:
    place = [own.ravel() for own in np.indices(score.shape)]
    table = pl.DataFrame(
        {
            "id": [names[s] for s in place[0]],
            "frame": [f"t{t}" for t in place[1]],
            "agree_nats": score.ravel() - 20,
            "disagree_nats": np.full(score.size, -20.0),
        }
    )
    same = {"questionnaire": f"v-{language}", "scale": "values", "form": 0, "method": 1}
    folder.mkdir(parents=True)
    genders = [
        table.with_columns(pl.lit(v).alias(k) for k, v in (same | {"gender": g}).items())
        for g in range(2)
    ]
    pl.concat(genders).write_parquet(folder / "0.parquet")


def outcomes(tables: dict[str, pl.DataFrame], drawn: Drawn) -> dict[str, pl.DataFrame]:
    """Return intervals of the parts and of a design, and the tests of items."""
    known = drawn.known
    parts = tables["parts"].filter(pl.col("probe") == "stances", pl.col("value").is_not_null())
    parts = parts.filter(pl.col("language") != "", pl.col("model") != "")
    truth = pl.DataFrame({"term": list(PARTS), "effect": [known["parts"][term] for term in PARTS]})
    parts = parts.join(truth, on="term")
    found = {
        f"parts: {term}": outcome(
            parts.filter(pl.col("term") == term),
            effect=pl.col("effect"),
            target=pl.col("effect") * UNIT**2,
        )
        for term in PARTS
    }
    half = pl.sum_horizontal(_of_mean(term, known["parts"][term]) for term in PARTS)
    designs = tables["designs"].filter(pl.col("probe") == "stances")
    found["designs"] = outcome(designs, effect=1.0, target=1.959964 * UNIT * half.sqrt())
    number = known["planted"].shape[1]
    planted = pl.DataFrame(
        {
            "language": np.repeat([f"l{x}" for x in range(number)], len(known["names"])),
            "statement": known["names"] * number,
            "effect": _apart(known["planted"]).T.ravel(),
        }
    )
    # an odds ratio is of scores cut at 0: what it is of a planted effect hangs on the statement
    none = pl.when(pl.col("effect") == 0).then(0.0)
    for name, target in (("items", pl.col("effect")), ("odds", none)):
        own = tables[name].filter(pl.col("model") != "", pl.col("statement") != "")
        own = own.join(planted, on=["language", "statement"])
        found[name] = outcome(
            own, effect=pl.col("effect"), target=target, family=["model"], by_mean=False
        )
    return found


def _of_mean(term: str, part: float) -> pl.Expr:
    """Return what a part adds to the variance of the mean of a design."""
    columns = {"statement": "statements", "template": "templates", "seed": "seeds"}
    facets = list(columns) if term == "rest" else term.split(" x ")
    cells = pl.lit(1.0)
    for facet in facets:
        cells = cells * pl.col(columns[facet])
    drawn = (pl.col("random_facets") == 1) | pl.lit(facets != ["statement"])
    return pl.when(drawn).then(part / cells).otherwise(0.0)


def _apart(planted: Array) -> Array:
    """Return effects in a language less the mean of those in the others."""
    number = planted.shape[1]
    return np.asarray((planted - planted.mean(axis=1, keepdims=True)) * number / (number - 1))
