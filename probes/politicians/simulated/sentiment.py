"""Analysis ``sentiment`` on simulated lists; its latent deviations come of the analysis ``latent``.

The ranking by the largest deviations (``latent-faithful``) has no p in the tables. That the paper's
test would give it is told here, as what it is: of words of which none, or none for its sentiment,
goes with a gender, it says that they do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from pydantic import Field

from plumbline.builders.core.params import section
from plumbline.builders.datasets.lexica.build import SENTIMENTS
from plumbline.probes.calibration.truth import DECOY, NULL, PLANTED, Drawn, Truth, outcome
from plumbline.probes.politicians import latent, latent_model
from plumbline.probes.politicians.sentiment import TESTS
from plumbline.probes.politicians.simulated import lists, meanings
from plumbline.probes.politicians.words import columns, word_counts
from plumbline.probes.politicians.words.sentiment_shares import DEVIATIONS, READINGS
from plumbline.probes.stats.tests import fisher_p

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from plumbline.probes.core.run_analysis import Inputs


class Shape(meanings.MeaningsShape):
    """Shape of the lists, and what words are ranked by."""

    samples: int = Field(
        30, ge=0, description="of names, whose mean an interval should hold; 0: that is not told"
    )


SHAPES = {
    "4 men to a woman, 300 names": Shape(),
    "as many women, 200 names": Shape(men=100, women=100),
    "4 men to a woman, 400 words": Shape(men=1600, women=400, words=400, samples=0),
    "as many women, 400 words": Shape(men=1000, women=1000, words=400, samples=0),
    "4 men to a woman, 1,000 words": Shape(men=1600, women=400, words=1000, samples=0),
    "as many women, 1,000 words": Shape(men=1000, women=1000, words=1000, samples=0),
}
TRUTHS = {
    "no word goes with a gender": Truth(NULL, "words differ in frequency and origin alone"),
    "sentiments planted": Truth(
        PLANTED,
        "log-odds of positive and of negative words",
        {"effects": (0.1, 0.2, 0.4), "own": 1},
    ),
    "words, not sentiments": Truth(
        DECOY, "words go with genders, without regard to their sentiment", {"own": 1}
    ),
}
PARAMS: dict[str, Any] = {"n_bootstrap": 199, "n_permutations": 199}


def draw(folder: Path, truth: Truth, shape: Shape, rng: np.random.Generator) -> Drawn:
    """Write one replicate."""
    cells = meanings.cells(shape, truth, rng)
    inputs = meanings.write(folder, shape, cells, rng)
    where = inputs.tables("latent", *inputs.models)
    where.mkdir(parents=True)
    _deviations(inputs, cells).write_parquet(where / "latent.parquet")
    parts = []
    for cell in cells:
        mean = _mean_shares(cell, shape, rng)
        effect = np.array([-cell.effect, cell.effect, 0.0])  # male minus female
        if cell.effect:
            effect[meanings.NEUTRAL] = np.nan  # what it loses to the others hangs on much
        parts.append(
            pl.DataFrame(
                {
                    "language": cell.language,
                    "pos": cell.pos,
                    "sentiment": range(len(SENTIMENTS)),
                    "effect": effect + 0.0,
                    "men": mean[0],
                    "women": mean[1],
                }
            ).with_columns(pl.col("men", "women").fill_nan(None))
        )
    return Drawn(inputs, pl.concat(parts).with_columns(pl.col("effect").fill_nan(None)))


def _deviations(inputs: Inputs, cells: list[meanings.Cell]) -> pl.DataFrame:
    """Return the deviations of the latent model, fitted with the params' settings."""
    given = section("analysis.latent", latent.Params)
    found = []
    for language, source, path in word_counts.sources(inputs, *inputs.models):
        seen = word_counts.count(source, word_counts.read_people(path))
        kept = seen.common(given.min_count)
        words = np.array(seen.words)[kept]
        (cell,) = (c for c in cells if (c.language, c.pos) == (language, source.pos))
        q = cell.q[np.searchsorted(lists.words_of(cell.pos, len(cell.q)), words)]
        counts = seen.lists[kept].astype(np.float64) + given.smoothing
        weights = latent_model.grid(given.l1, given.posterior)
        how = latent_model.Schedule(given.steps, given.learning_rate)
        eta = latent_model.fit(counts[None], q, *weights, how).eta.mean(axis=0)
        table = columns.rows_of(
            {"word": words, "sentiment": range(len(SENTIMENTS)), "gender": seen.genders},
            [np.moveaxis(eta, 2, 0)],
            q=q[:, :, None],
        )
        found.append(table.with_columns(language=pl.lit(language), pos=pl.lit(source.pos)))
    return pl.concat(found)


def _mean_shares(
    cell: meanings.Cell, shape: Shape, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Return the mean share of each sentiment over samples of as many names, (2, sentiments).

    Without samples nan.

    What intervals are for, as the page of the study says. Of the known words that five names or
    more have, a third is taken, by the PMI of counts plus 0.5.
    """
    if not shape.samples:
        return np.full((2, len(SENTIMENTS)), np.nan)
    counts = meanings.counts(cell, shape, shape.samples, rng)
    known = ~np.isnan(cell.q[:, 0])
    found = np.zeros((2, len(SENTIMENTS)))
    for sample in counts:
        kept = np.flatnonzero(known & (sample.sum(axis=1) >= 5))
        table = sample[kept] + 0.5
        ratio = np.log(table / table.sum(axis=1, keepdims=True) / table.sum(axis=0))
        size = max(1, int(0.33 * len(kept)))
        for gender in range(2):
            top = kept[np.argsort(-ratio[:, gender])[:size]]
            found[gender] += np.bincount(cell.sentiment[top], minlength=len(SENTIMENTS)) / size
    return found / shape.samples


def outcomes(tables: dict[str, pl.DataFrame], drawn: Drawn) -> dict[str, pl.DataFrame]:
    """Return the rows of each test and interval; a test for each deviation, reading and unit."""
    keys = ["language", "pos", "sentiment"]
    differences = tables["differences"].join(drawn.known, on=keys)
    shares = tables["shares"].join(drawn.known, on=keys)
    mean = pl.when(pl.col("gender") == columns.MALE).then("men").otherwise("women")
    base = pl.when(effect=0).then("base")  # by contrasts without an effect the words are any
    found = {
        f"shares: {DEVIATIONS[d]}": outcome(
            shares.filter(deviation=d), effect=pl.col("effect"), target=target
        )
        for d, target in ((0, mean), (2, base))
    }
    for d, deviation in enumerate(DEVIATIONS):
        for r, reading in enumerate(READINGS):
            own = differences.filter(deviation=d, reading=r)
            for t, test in enumerate(TESTS):
                if len(rows := own.filter(test=t)):
                    found[f"differences: {deviation}, {reading}, {test}"] = outcome(
                        rows,
                        effect=pl.col("effect"),
                        target=pl.when(effect=0).then(0.0)
                        if d
                        else pl.col("men") - pl.col("women"),
                        family=["model"],
                    )
            if deviation == "latent-faithful" and len(own):
                rows = _by_the_paper(own, shares.filter(deviation=d, reading=r))
                name = f"not in the tables: {deviation}, {reading}, the paper's test of words"
                found[name] = outcome(rows, effect=pl.col("effect"))
    return found


def _by_the_paper(differences: pl.DataFrame, shares: pl.DataFrame) -> pl.DataFrame:
    """Return differences with the p that the paper's test of words would give them."""
    keys = ["language", "pos", "sentiment"]
    both = shares.group_by(*keys, maintain_order=True).agg(pl.col("hits").sort_by("gender"))
    joined = differences.join(both, on=keys, maintain_order="left")
    p = [
        fisher_p(np.array([hits]), np.full(2, size))[0, 0]
        for hits, size in joined.select("hits", "top_k").iter_rows()
    ]
    return joined.with_columns(p=pl.Series(p), p_bh=None)
