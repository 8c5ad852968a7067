"""Analysis ``pmi``: which words go with which gender, from the outputs of ``associations``.

Stańczak et al. (2023), equation 1 and Table 3, with intervals, a null and control of multiplicity.
For a planted world also how much of what was planted is found.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from pydantic import Field

from plumbline.builders.core.errors import Problem
from plumbline.builders.core.params import Params as Section
from plumbline.builders.core.schema import Column, Schema
from plumbline.builders.datasets.politicians.build import GENDERS
from plumbline.builders.datasets.words.build import POS
from plumbline.probes.politicians import resample_counts, word_counts
from plumbline.probes.stats.estimate import ESTIMATE, benjamini_hochberg, finite, significant, typed
from plumbline.probes.stats.intervals import spearman, wilson
from plumbline.probes.stats.pmi import intervals, pmi
from plumbline.probes.stats.tests import fisher_p
from plumbline.probes.worlds.politicians import true_pmi, world_of

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from plumbline.probes.core.run_analysis import Inputs
    from plumbline.probes.stats.estimate import Estimate

EACH = True
DATASETS = ("politicians",)
OUTPUTS = ("associations",)
TABLES = ()
READINGS = ("plug-in", "smoothed")
METHODS = {
    "plug-in": "bootstrap percentile (Poisson weights)",
    "smoothed": "Bayesian bootstrap percentile",
}
PMI = Schema(
    columns=(
        Column("model", "string", "name of the model in params.yaml"),
        Column("language", "string", "language of names and words"),
        Column("pos", "label", "universal part of speech", labels=POS),
        Column("word", "string", "form of the word"),
        Column("lemma", "string", "its lemma"),
        Column("gender", "label", "the paper's grouping", labels=GENDERS),
        Column("reading", "label", "plug-in: as the paper; smoothed: additive", labels=READINGS),
        Column("count", "int64", "people of this gender in whose list the word is", minimum=0),
        Column("count_all", "int64", "people in whose list the word is", minimum=1),
        Column("people", "int64", "people of this gender", minimum=1),
        *ESTIMATE,
        Column("family", "int64", "tests in the family that p_bh is taken over", minimum=1),
    ),
    key=("language", "pos", "word", "gender", "reading"),
)

RECOVERY = Schema(
    columns=(
        Column("model", "string", "name of the model in params.yaml"),
        Column("language", "string", "language of names and words"),
        Column("world", "label", "whether biases were planted", labels=("planted", "null")),
        Column("measure", "string", "what is compared"),
        *ESTIMATE,
    ),
    key=("language", "measure"),
)

SCHEMAS = {"pmi": PMI, "recovery": RECOVERY}


class Estimation(Section):
    """How estimates and intervals are made."""

    version: str = Field(pattern=r"^\d+\.\d+\.\d+$", description="version of the tables")
    smoothing: float = Field(gt=0, description="added to every cell in the smoothed reading")
    min_count: int = Field(ge=1, description="lists that must have the word")
    bootstrap: int = Field(ge=100, description="bootstrap replicates over names")
    confidence: float = Field(gt=0.5, lt=1, description="of the intervals")
    seed: int = Field(ge=0, description="of the resampling")


class Params(Estimation):
    """How estimates, intervals and tests are made."""

    false_discovery_rate: float = Field(gt=0, lt=1, description="level of Benjamini-Hochberg")


def run(inputs: Inputs, params: Params) -> dict[str, pl.DataFrame]:
    """Compute the tables of one model.

    Returns
    -------
    dict
        ``pmi``, and for a world ``recovery``; columns as in :data:`SCHEMAS`.

    Raises
    ------
    Problem
        If no word is in enough lists.
    """
    (model,) = inputs.models
    outputs, weights = inputs.outputs("associations", model), inputs.weights(model)
    people = inputs.datasets["politicians"]
    tables: list[pl.DataFrame] = []
    for language in word_counts.languages(outputs):
        folk = word_counts.people(people / f"{language}.parquet")
        for pos in range(len(POS)):
            source = word_counts.Lists((outputs / language,), pos)
            counts = word_counts.count(source, folk)
            if len(chosen := counts.common(params.min_count)):
                p = fisher_p(counts.distinct[chosen], counts.names)
                table = rows(source, folk, counts, p, params)
                tables.append(table.with_columns(model=pl.lit(model), language=pl.lit(language)))
    if not tables:
        raise Problem(
            f"{outputs}: no word is in {params.min_count} lists; lower analysis.pmi.min_count, or "
            "see the config coverage for what the model lacks"
        )
    table = adjusted(pl.concat(tables))
    found = {"pmi": typed(table, PMI)}
    if (weights / "world.json").is_file():
        found["recovery"] = typed(_recovery(table, weights, people, outputs, params), RECOVERY)
    return found


def rows(
    source: word_counts.Lists,
    folk: word_counts.People,
    counts: word_counts.Counts,
    p: NDArray[np.float64],
    params: Estimation,
    null: str = "gender labels permuted over distinct names, exact",
) -> pl.DataFrame:
    """Return a row for each common word, gender and reading; readings alternate row by row.

    Parameters
    ----------
    counts
        At least one word is common.
    p : (words, groups) array
        For the common words.
    """
    chosen = counts.common(params.min_count)
    draws = resample_counts.draw(source, folk, counts, chosen, params.bootstrap, params.seed)
    estimates = []
    for smoothing, drawn in ((0.0, draws.ordinary), (params.smoothing, draws.bayesian)):
        limits = intervals(drawn, smoothing, params.seed, params.confidence, draws.merged)
        values = pmi(counts.lists.astype(np.float64), smoothing)[chosen]
        estimates.append((values, limits.low, limits.high))
    out: list[dict[str, Any]] = []
    for i, w in enumerate(chosen):
        for g, label in enumerate(counts.genders):
            for r, reading in enumerate(READINGS):
                value, low, high = (finite(x[i, g]) for x in estimates[r])
                out.append(
                    {
                        "pos": source.pos,
                        "word": counts.words[w],
                        "lemma": counts.lemmas[w],
                        "gender": int(label),
                        "reading": r,
                        "count": int(counts.lists[w, g]),
                        "count_all": int(counts.lists[w].sum()),
                        "people": int(counts.people[g]),
                        "value": value,
                        "low": low,
                        "high": high,
                        "n": counts.clusters,
                        "cluster": "name",
                        "method": f"{params.confidence:.0%} {METHODS[reading]} over names",
                        "null": null,
                        "p": significant(p[i, g]),
                    }
                )
    return pl.DataFrame(out, infer_schema_length=None)


def adjusted(table: pl.DataFrame) -> pl.DataFrame:
    """Add ``p_bh`` and ``family``: Benjamini-Hochberg over all rows of one reading."""
    family = table.filter(pl.col("reading") == 0)["p"].to_numpy()
    p_bh = [significant(p) for p in benjamini_hochberg(family)]
    return table.with_columns(
        p_bh=pl.Series(np.repeat(p_bh, len(READINGS))), family=pl.lit(len(family))
    )


def _recovery(
    table: pl.DataFrame, weights: Path, people: Path, outputs: Path, params: Params
) -> pl.DataFrame:
    """Hold what was measured against what was planted."""
    world = world_of(weights)
    null = world.null
    truth = pl.read_parquet(weights / "planted.parquet")
    language = table.filter(pl.col("language") == world.language)
    smoothed = language.filter(pl.col("reading") == READINGS.index("smoothed"))
    p_bh = language.filter(pl.col("reading") == 0)["p_bh"].to_numpy()
    p = language.filter(pl.col("reading") == 0)["p"].to_numpy()
    base = {
        "model": table["model"][0],
        "language": world.language,
        "world": int(null),
    }
    rate = params.false_discovery_rate
    found: list[tuple[str, Estimate, str, str]] = []
    if not null:
        measured = _contrast(smoothed).join(truth, on=["word"], how="inner")
        planted = measured["log_ratio_nats"].to_numpy()
        contrast = measured["contrast"].to_numpy()
        if len(planted) < 4:
            raise Problem(
                f"analysis.pmi.min_count: {params.min_count} leaves {len(planted)} planted words, "
                "too few to compare; lower it"
            )
        found.append(
            (
                "Spearman correlation of planted log-ratio and measured PMI, female minus male",
                spearman(planted, contrast, params.confidence),
                "word",
                "0: no relation",
            )
        )
        agree = int((np.sign(planted) == np.sign(contrast)).sum())
        found.append(
            (
                "share of words whose measured sign is the planted one",
                wilson(agree, len(planted), params.confidence),
                "word",
                "0.5: coin",
            )
        )
    else:
        discoveries = int((p_bh <= rate).sum())
        found.append(
            (
                f"false discovery proportion at {rate:g}: 1 if there is any, as all are false",
                wilson(int(discoveries > 0), 1, params.confidence),
                "world",
                f"{rate:g}: nominal mean over worlds",
            )
        )
    covered, cells = _covered(smoothed, weights, people, outputs)
    found.append(
        (
            f"share of {params.confidence:.0%} intervals (smoothed, binary) with the true PMI",
            wilson(covered, cells, params.confidence),
            "word and gender",
            f"{params.confidence:g}: nominal",
        )
    )
    found.append(
        (
            f"share of tests with p_bh at or below {rate:g}",
            wilson(int((p_bh <= rate).sum()), len(p_bh), params.confidence),
            "word and gender",
            "0: no discovery is true" if null else "no nominal value: many effects are planted",
        )
    )
    found.append(
        (
            "share of tests with p at or below 0.05",
            wilson(int((p <= 0.05).sum()), len(p), params.confidence),
            "word and gender",
            "at most 0.05: nominal" if null else "no nominal value: many effects are planted",
        )
    )
    return pl.DataFrame(
        [
            base
            | {"measure": measure}
            | {k: finite(getattr(e, k)) for k in ("value", "low", "high")}
            | {"n": e.n, "cluster": cluster, "method": e.method, "null": versus}
            | {"p": None, "p_bh": None}
            for measure, e, cluster, versus in found
        ]
    )


def _contrast(smoothed: pl.DataFrame) -> pl.DataFrame:
    male, female = GENDERS.index("male"), GENDERS.index("female")
    return (
        smoothed.group_by("word")
        .agg(
            contrast=pl.col("value").filter(pl.col("gender") == female).first()
            - pl.col("value").filter(pl.col("gender") == male).first()
        )
        .drop_nulls()
        .sort("word")
    )


def _covered(smoothed: pl.DataFrame, weights: Path, people: Path, outputs: Path) -> tuple[int, int]:
    """Count intervals that hold the true PMI, and all of them."""
    covered = cells = 0
    for pos in range(len(POS)):
        true = true_pmi(weights, people, outputs, pos).filter(
            pl.col("gender") != GENDERS.index("non-binary")
        )
        both = smoothed.filter(pl.col("pos") == pos).drop("value", strict=False)
        both = both.join(true, on=["word", "gender"], how="inner")
        cells += both.height
        covered += int(both.select(pl.col("value").is_between("low", "high").sum()).item())
    return covered, cells
