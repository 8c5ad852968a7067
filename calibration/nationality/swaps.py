"""Simulated outputs of ``classification`` and ``perplexity``, from known parameters and no model.

P+ - P- and the probability of the class neutral are sums of five effects: those of the text, its
country (the planted one), its name, the text by country, and the name by text. The names of the
originals belong to no country. The simulated variants are ``corrected`` and ``placebo``; the same
code analyses ``faithful``. Countries form pairs that may share names; a shared name has the mean
effect of both countries. Several texts may be about the same person, whose effect they share.
Simplification: each text mentions one person.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from pydantic import Field

from calibration.truth import Array, Bools, Generator, Integers
from plumbline.builders.core.params import Params
from plumbline.builders.datasets.counterfactuals.build import GENDERS, READINGS
from plumbline.builders.readers.name_lists import KINDS
from plumbline.probes.core.run_analysis import Inputs

CONFIG, MODEL = "sentiment-en", "m"
UNIT = 0.05  # unit of SDs and effects: 5 points of P+ - P-
NEUTRAL, SPREAD = 0.35, 0.04  # mean and SD over texts of the probability of the class neutral
TONE = 0.1  # SD of P+ - P- over texts
HALF = 0.5  # SDs for the probability of the class neutral, relative to those for P+ - P-
BASE = 12  # number of tokens in a text without its name
KEPT = ("id", "target", "reading", "reference_id", "country", "gender", "name", "text")
ROW = (*KEPT, "apart", "middle", "nats", "tokens")  # P+ - P-, P(neutral), minus log-probability


class SwapsShape(Params):
    """Shape of the counterfactuals, and the SDs of effects."""

    countries: int = Field(13, description="number of countries")
    texts: int = Field(55, description="source texts")
    draws: int = Field(4, description="number of names drawn for each text and country")
    placebos: int = Field(2, description="number of draws that get a second name")
    names: int = Field(12, description="number of names per country and kind")
    women: float = Field(0.4, description="share of texts about a woman")
    full: float = Field(0.3, description="share of texts with a full name")
    celebrity: float = Field(0.0, description="share of texts about the same person")
    shared: float = Field(0.0, description="share of names that belong to two countries")
    sd_name: float = Field(0.3, description="SD of the effect of names, units")
    sd_text: float = Field(0.2, description="SD of the effect of text by country, units")
    sd_rest: float = Field(1.0, description="SD of the effect of name by text, units")


class Planted(NamedTuple):
    """True parameters of the countries; each array has the shape (countries,)."""

    shift: Array  # effect on P+ - P-, units
    slope: Array  # effect on P+ - P- of each nat by which a name is less likely, units
    vary: Array  # factor for the SD of its names
    rare: Array  # number of nats by which its names are less likely
    long: Array  # mean number of tokens of its names after the first token
    per_token: float  # effect of each token of a name on P+ - P-, units


class _Drawn(NamedTuple):
    """Drawn names and texts, for c countries, p names per kind and t texts."""

    owner: Integers  # (c, p): the first country that has the name
    names: Array  # (2, 3, c, p): effects on P+ - P- and on neutral, by kind; units
    nats: Array  # (3, c, p)
    tokens: Integers  # (3, c, p)
    own: Array  # (2, t, 1, 1): effects of the text, probabilities
    tilt: Array  # (2, t, c, p): effects of text by country, units
    rest: Array  # (2, t, c, p): effects of name by text, units
    luck: Array  # (t, c, p): effects of name by text, nats
    base: Array  # (t,): nats of the text
    woman: Bools  # (t,)
    full: Bools  # (t,)
    star: Bools  # (t,): True if the text is about the same person


def write(folder: Path, shape: SwapsShape, planted: Planted, rng: Generator) -> Inputs:
    """Write the datasets, and the outputs of one classifier and one masked model."""
    data = folder / "data"
    sets = {name: data / "datasets" / name for name in ("counterfactuals", "names", "targets")}
    inputs = Inputs((MODEL,), sets, data)
    drawn = _draw(shape, planted, rng)
    rows = pl.concat([_originals(shape, drawn, rng), _swapped(shape, planted, drawn, rng)])
    texts, nats = rows.unique("text", maintain_order=True), pl.col("nats")
    bounded = pl.col("middle").clip(0.02, 0.6), pl.col("apart").clip(-0.38, 0.38)
    write_classes(inputs, MODEL, texts.with_columns(bounded))
    sums = {"sum_original_nats": -nats, "sum_l2r_nats": -1.2 * nats}
    scored = texts.select("text", pl.col("tokens") - 2, **sums)
    names = _listed(drawn)
    kinds = pl.col("kind").replace_strict(range(len(KINDS)), KINDS, return_dtype=pl.String)
    pieces = inputs.outputs("classification", MODEL) / "pieces/00000.parquet"
    names.drop("rank").with_columns(kinds).write_parquet(pieces, mkdir=True)
    scored.write_parquet(inputs.outputs("perplexity", MODEL) / CONFIG / "00000.parquet", mkdir=True)
    rows.select(KEPT).write_parquet(sets["counterfactuals"] / f"{CONFIG}.parquet", mkdir=True)
    plain = rows.filter(pl.col("reading") == READINGS.index("original")).select("text")
    plain.write_parquet(sets["targets"] / f"{CONFIG}.parquet", mkdir=True)
    for (country,), part in names.group_by("country"):
        part.write_parquet(sets["names"] / f"{country}.parquet", mkdir=True)
    return inputs


def write_classes(inputs: Inputs, model: str, texts: pl.DataFrame) -> None:
    """Write class probabilities: ``middle``, neutral; ``apart``, positive minus negative."""
    middle, apart = pl.col("middle"), pl.col("apart")
    shares = {"negative": (1 - middle - apart) / 2, "neutral": middle}
    shares["positive"] = (1 - middle + apart) / 2
    classes = pl.concat(
        texts.select("text", "tokens", pl.lit(name).alias("class"), logprob_nats=value.log())
        for name, value in shares.items()
    )
    path = inputs.outputs("classification", model) / CONFIG / "00000.parquet"
    classes.write_parquet(path, mkdir=True)


def code(country: int) -> str:
    """Return the code of a country."""
    return f"c{country:02d}"


def of_names(values: Array, shape: SwapsShape) -> Array:
    """Return values of names, (..., countries, names): the mean of both countries if shared."""
    other = _others(shape.countries)
    both = (values + values[..., other]) / 2
    two = np.arange(shape.names) < round(shape.shared * shape.names)
    return np.where(two, both[..., None], values[..., None])


def _others(countries: int) -> Integers:
    """Return the other country of each pair; a last country without a pair is its own partner."""
    index = np.arange(countries)
    return np.asarray(np.minimum(index + 1 - 2 * (index % 2), countries - 1))


def _draw(shape: SwapsShape, planted: Planted, rng: Generator) -> _Drawn:
    """Draw names and texts."""
    t, c, p, kinds = shape.texts, shape.countries, shape.names, len(KINDS)
    sds = np.array([1, HALF])[:, None, None, None]
    two = np.arange(p) < round(shape.shared * p)
    owner = np.where(two, np.minimum(np.arange(c), _others(c))[:, None], np.arange(c)[:, None])
    same = (..., owner, np.arange(p))
    slope, vary, rare, long = (
        of_names(values, shape)
        for values in (planted.slope, planted.vary, planted.rare, planted.long)
    )
    nats = rng.normal(size=(kinds, c, p))[same]
    tokens = 1 + rng.poisson(long, (kinds, c, p))[same]
    names = sds * shape.sd_name * vary * rng.normal(size=(2, kinds, c, p))[same]
    names[0] += slope * nats + planted.per_token * tokens
    tone = np.array([[0], [NEUTRAL]]) + np.array([[TONE], [SPREAD]]) * rng.normal(size=(2, t))
    star = rng.permutation(t) < round(shape.celebrity * t)
    woman, full = (rng.permutation(t) < round(n * t) for n in (shape.women, shape.full))
    return _Drawn(
        *(owner, names, nats + rare, tokens, tone[..., None, None]),
        tilt=sds * shape.sd_text * of_names(rng.normal(size=(2, t, c)), shape),
        rest=sds * shape.sd_rest * rng.normal(size=(2, t, c, p))[same],
        luck=rng.normal(0, 0.5, (t, c, p))[same],
        base=rng.normal(30, 6, t).clip(10),
        woman=_alike(woman, star),
        full=_alike(full, star),
        star=star,
    )


def _alike(values: Any, star: Bools) -> Any:
    """Return values, (..., texts), that are equal for all texts about the same person."""
    return np.where(star, values[..., [np.argmax(star)]], values)


def _originals(shape: SwapsShape, drawn: _Drawn, rng: Generator) -> pl.DataFrame:
    """Return the rows of the originals, whose names belong to no country."""
    t, parts, star = shape.texts, 1 + drawn.full, drawn.star
    moved = np.sqrt(parts) * shape.sd_name * _alike(rng.normal(size=(2, t)), star)
    moved += np.hypot(shape.sd_text, shape.sd_rest) * rng.normal(size=(2, t))
    apart, middle = drawn.own[..., 0, 0] + UNIT * np.array([[1], [HALF]]) * moved
    nats = drawn.base + np.sqrt(parts) * _alike(rng.normal(size=t), star) + rng.normal(0, 0.5, t)
    ids = [f"t{n:04d}" for n in range(t)]
    same = {"reading": np.int64(0), "reference_id": "", "country": ""}
    same |= {"gender": np.int64(GENDERS.index("unknown")), "name": ""}
    columns = {"id": ids, "target": ids, "text": [f"{one} Original" for one in ids]} | same
    columns |= {"apart": apart, "middle": middle, "nats": nats}
    tokens = BASE + parts + _alike(rng.poisson(0.5, t), star)
    return pl.DataFrame(columns | {"tokens": tokens}).select(ROW)


def _swapped(shape: SwapsShape, planted: Planted, drawn: _Drawn, rng: Generator) -> pl.DataFrame:
    """Return the rows of both variants."""
    t, c, p = shape.texts, shape.countries, shape.names
    number = shape.draws + shape.placebos
    turns = -(-number // p)  # all names are used before any is repeated

    def places() -> Integers:
        orders = [np.argsort(rng.random((t, c, p)), axis=2) for _ in range(turns)]
        return np.concatenate(orders, axis=2)[:, :, :number].ravel()

    text, country, draw = (a.ravel() for a in np.indices((t, c, number)))
    first, last = places(), places()
    kind, full = drawn.woman[text].astype(np.int64), drawn.full[text]
    value = drawn.names[:, kind, country, first] + full * drawn.names[:, 2, country, last]
    value = value + drawn.tilt[:, text, country, first] + drawn.rest[:, text, country, first]
    value[0] += of_names(planted.shift, shape)[country, first]
    apart, middle = drawn.own[:, text, 0, 0] + UNIT * value
    nats = drawn.nats[kind, country, first] + full * drawn.nats[2, country, last]
    tokens = drawn.tokens[kind, country, first] + full * drawn.tokens[2, country, last]
    second = draw >= shape.draws
    words = np.array(
        [[[_word(k, i, n) for n, i in enumerate(own)] for own in drawn.owner] for k in range(3)]
    )
    table = {
        "target": np.char.mod("t%04d", text),
        "country": np.array([code(i) for i in range(c)])[country],
        "first": words[kind, country, first],
        "last": np.where(full, np.char.add(" ", words[2, country, last]), ""),
        "draw": np.where(second, draw - shape.draws, draw),
        "reading": np.where(second, *(READINGS.index(r) for r in ("placebo", "corrected"))),
        "gender": kind,
        "apart": apart,
        "middle": middle,
        "nats": drawn.base[text] + nats + drawn.luck[text, country, first],
        "tokens": BASE + tokens,
    }
    where = pl.format("{}-{}-{}", "target", "country", "draw")
    placebo = pl.col("reading") == READINGS.index("placebo")
    frame = pl.DataFrame(table).with_columns(
        id=pl.when(placebo).then(pl.format("{}-again", where)).otherwise(where),
        reference_id=pl.when(placebo).then(where).otherwise("target"),
        name=pl.col("first") + pl.col("last"),
    )
    return frame.with_columns(text=pl.format("{} {}", "target", "name")).select(ROW)


def _listed(drawn: _Drawn) -> pl.DataFrame:
    """Return all names with their ranks and tokens."""
    kind, country, index = (a.ravel() for a in np.indices(drawn.tokens.shape))
    owners = drawn.owner[country, index]
    keys = zip(kind.tolist(), owners.tolist(), index.tolist(), strict=True)
    columns: dict[str, Any] = {"country": [code(n) for n in country.tolist()], "kind": kind}
    columns |= {"name": [_word(*key) for key in keys], "tokens": drawn.tokens.ravel()}
    return pl.DataFrame(columns | {"rank": index + 1})


def _word(kind: int, country: int, index: int) -> str:
    return f"{KINDS[kind].title()}{country:02d}x{index:02d}"
