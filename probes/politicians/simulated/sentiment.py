"""Analysis ``sentiment`` on simulated lists; its latent deviations come of the analysis ``latent``.

Simplified: the latent model starts from one seed.
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

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from plumbline.probes.core.run_analysis import Inputs


class Shape(meanings.MeaningsShape):
    """Shape of the lists, and what words are ranked by."""

    latent: bool = Field(False, description="whether by latent deviations too, which have no p")


SHAPES = {
    "4 men to a woman, 300 names": Shape(),
    "as many women, 200 names": Shape(men=100, women=100),
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
SAMPLES = 30  # of names, from which the mean over samples is taken


def draw(folder: Path, truth: Truth, shape: Shape, rng: np.random.Generator) -> Drawn:
    """Write one replicate."""
    cells = meanings.cells(shape, truth, rng)
    inputs = meanings.write(folder, shape, cells, rng)
    if shape.latent:
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
            )
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
        counts = seen.lists[kept].astype(np.float64)
        start = latent_model.begin(
            counts + given.smoothing, q.shape[1], given.seeds[0], given.jitter
        )
        values = {}
        for column, table, penalty in (
            ("value", counts + given.smoothing, given.penalty),
            ("value_faithful", counts, "subgradient"),
        ):
            how = latent_model.Schedule(given.steps, given.learning_rate, penalty)
            weights = latent_model.grid(given.l1, given.posterior)
            fits = latent_model.fit(table[None], q, *weights, start, how)
            values[column] = fits.eta.mean(axis=0)
        s, g, w = (place.ravel() for place in np.indices(values["value"].shape))
        found.append(
            pl.DataFrame(
                {
                    "language": [language] * len(s),
                    "pos": source.pos,
                    "word": words[w],
                    "sentiment": s,
                    "gender": seen.genders[g],
                    "q": q[w, s],
                    **{column: eta.ravel() for column, eta in values.items()},
                }
            ).with_columns(pl.col("q").fill_nan(None))
        )
    return pl.concat(found)


def _mean_shares(
    cell: meanings.Cell, shape: Shape, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Return the mean share of each sentiment over samples of as many names, (2, sentiments).

    What intervals are for, as the page of the study says. Of the known words that five names or
    more have, a third is taken, by the PMI of counts plus 0.5.
    """
    counts = meanings.counts(cell, shape, SAMPLES, rng)
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
    return found / SAMPLES


def outcomes(tables: dict[str, pl.DataFrame], drawn: Drawn) -> dict[str, pl.DataFrame]:
    """Return the rows of each test and interval; a test for each deviation, reading and unit."""
    keys = ["language", "pos", "sentiment"]
    differences = tables["differences"].join(drawn.known, on=keys)
    shares = tables["shares"].join(drawn.known, on=keys)
    mean = pl.when(pl.col("gender") == columns.MALE).then("men").otherwise("women")
    found = {
        "shares: pmi": outcome(shares.filter(deviation=0), effect=pl.col("effect"), target=mean)
    }
    for d, deviation in enumerate(DEVIATIONS):
        for r, reading in enumerate(READINGS):
            for t, test in enumerate(TESTS):
                rows = differences.filter(deviation=d, reading=r, test=t)
                if len(rows):
                    found[f"differences: {deviation}, {reading}, {test}"] = outcome(
                        rows,
                        effect=pl.col("effect"),
                        target=pl.col("men") - pl.col("women") if d == 0 else None,
                        family=["model"],
                    )
    return found
