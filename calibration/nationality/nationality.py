"""Analysis ``nationality`` on simulated predictions; effects are in points of P+ - P-.

Its simplifications are described in :mod:`calibration.nationality.swaps`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from calibration.nationality import swaps
from calibration.truth import Drawn, Generator, Tables, Truth, outcomes_by
from plumbline.probes.nationality.cases import CONTRAST, EVERY

Shape = swaps.SwapsShape
SHAPES = {
    "55 texts, 4 draws, 12 names": Shape(),
    "53 texts, 2 draws, 10 names": Shape(
        texts=53, draws=2, placebos=1, names=10, women=0.0, full=0.0, sd_name=0.7
    ),
    "55 texts, 40% about one person, a quarter of names of two countries": Shape(
        celebrity=0.4, shared=0.25
    ),
}
SIZES = (0.2, 0.4, 0.8)  # planted effects, units
TRUTHS = {
    # only names and texts differ
    "names differ, countries do not": Truth("null"),
    # P+ - P- differs between some countries; in others it depends on the nats of names
    "countries planted": Truth("planted"),
    # effects are larger, as `changes` requires; none depends on the nats of names
    "countries planted far apart": Truth("planted", sizes=(0.8, 1.6, 3.2)),
    # countries differ only in variance
    "names of some countries vary more": Truth("decoy", vary=3.0),
    # length and perplexity depend on the country
    "names of some countries are rare and long": Truth("decoy", rare=2.0, long=2.0),
    # countries differ only in the length of their names
    "long names move predictions": Truth("decoy", long=2.0, per_token=0.4),
}
PARAMS: dict[str, Any] = {
    "underlying": {swaps.MODEL: swaps.MODEL},
    "positive": {"other": ["positive"]},
    "negative": {"other": ["negative"]},
}
SIGNS = {CONTRAST: 1.0, "positive": 0.5, "negative": -0.5, "neutral": 0.0}
POINTS = 100 * swaps.UNIT


def draw(folder: Path, truth: Truth, shape: Shape, rng: Generator) -> Drawn:
    """Write one replicate."""
    effects = planted(truth, shape)
    inputs = swaps.write(folder, shape, effects, rng)
    shift, slope, rare = (
        swaps.of_names(values, shape).mean(axis=-1)
        for values in (effects.shift, effects.slope, effects.rare)
    )
    rows = pl.read_parquet(inputs.datasets["counterfactuals"] / f"{swaps.CONFIG}.parquet")
    full = rows.filter(pl.col("country") != "").select(pl.col("name").str.contains(" ").mean())
    values = {"shift": shift * POINTS, "slope": slope * POINTS, "rare": rare}
    values["nats"] = rare * (1 + full.item())  # both parts of a full name are rare
    countries = [swaps.code(n) for n in range(shape.countries)]
    return Drawn(inputs, pl.DataFrame({"country": countries} | values), truth)


def planted(truth: Truth, shape: Shape) -> swaps.Planted:
    """Return the effects planted in countries.

    Each size is planted with both signs in two countries, and as a relation to the perplexity of
    names in as many others. ``truth.settings``: ``sizes``, effects without such relations; ``all``,
    a shift of every country; ``vary``, a factor for the variation of names in a quarter of the
    countries; ``rare`` and ``long``, ranges over the countries; ``per_token``, an effect per token.
    """
    n = shape.countries
    settings = truth.settings
    shift, slope, vary = np.full(n, settings.get("all", 0.0)), np.zeros(n), np.ones(n)
    if truth.kind == "planted":
        signed = [sign * size for size in settings.get("sizes", SIZES) for sign in (1, -1)]
        shift[: len(signed)] += signed
        if "sizes" not in settings:
            slope[len(signed) :][: len(signed)] = signed[: n - len(signed)]
    vary[: n // 4] = settings.get("vary", 1.0)
    spread = np.linspace(-0.5, 0.5, n)
    return swaps.Planted(
        *(shift, slope, vary),
        rare=settings.get("rare", 0.0) * 2 * spread,
        long=0.3 + settings.get("long", 0.0) * (spread + 0.5),
        per_token=settings.get("per_token", 0.0),
    )


def outcomes(tables: Tables, sample: Drawn) -> Tables:
    """Return the rows of each test."""
    per_token = sample.truth.get("per_token", 0.0) * POINTS
    placebo, shift = pl.col("reading") == "placebo", pl.col("shift")
    sign = pl.col("measure").replace_strict(SIGNS)
    # an effect of long names is no country effect, but the null hypothesis is false too
    moved = None if per_token else shift * sign + 0.0
    delta, changes, mixed, correlations, sums = (
        table.join(sample.known, on="country", how="left", maintain_order="left")
        for table in (
            tables["delta"],
            tables["changes"].rename({"class": "measure"}).filter(~placebo),
            tables["mixed"].with_columns(country=pl.col("term").str.strip_prefix("country ")),
            tables["correlations"],
            tables["perplexities"].filter(~placebo, perplexity="original sum"),
        )
    )
    halves, delta = delta.filter(placebo), delta.filter(~placebo)
    by = ["reading", "gender"]
    how: dict[str, Any] = {"effect": moved, "target": moved}
    others = how | {"interval": ("contrast", "contrast_low", "contrast_high"), "family": by}
    same: dict[str, Any] = {"effect": 0.0, "target": 0.0, "family": by}
    result = outcomes_by(delta, "delta: a country against the originals", p="", **how)
    result |= outcomes_by(delta, "delta: a country against the others", **others)
    result |= outcomes_by(halves, "delta: names of the same country", **same)
    # neutral becomes less frequent if the other classes change in either direction
    sure = (shift == 0) | (sign != 0)
    log = (pl.col("value", "low", "high") / 100 + 1).log()  # the scale of the test
    result |= outcomes_by(
        changes.with_columns(log),
        "changes: a class more often",
        effect=None if per_token else pl.when(sure).then(moved),
        target=None if per_token else pl.when(shift == 0).then(0.0),
        family=by,
    )
    kind = shift.is_null().replace_strict({True: "tokens and log rank", False: "countries"})
    effect = shift.fill_null(pl.when(pl.col("term") == "tokens").then(per_token).otherwise(0.0))
    how = {"effect": effect, "target": effect, "family": ["reading"]}
    result |= outcomes_by(mixed.with_columns(kind=kind), "mixed: {kind}", **how)
    # if only some countries have a relation, the pooled one is not zero, but unknown
    homogeneous = not sample.known.select((pl.col("slope", "shift") != 0).any()).row(0).count(True)
    single = pl.when(pl.col("country") == EVERY).then(0.0 if homogeneous else None)
    related = None if per_token else single.otherwise(pl.col("slope") * sign + 0.0)
    planted = pl.when(pl.col("scope") == "originals").then(0.0).otherwise(related)
    none = pl.when(planted == 0).then(0.0)
    how = {"effect": planted, "target": none, "family": ["reading", "perplexity"]}
    result |= outcomes_by(correlations, "correlations: {scope}", **how)
    rare = pl.col("rare").round(6) + 0.0  # one level per effect, despite rounding
    return result | outcomes_by(sums, "perplexities", effect=rare, target="nats", p="")
