"""What the analysis ``latent`` finds of what was planted in a world."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl

from plumbline.builders.core.errors import Problem
from plumbline.builders.datasets.politicians.build import GENDERS
from plumbline.builders.datasets.words.build import POS
from plumbline.probes.politicians import latent_model as model
from plumbline.probes.stats.estimate import Estimate, finite
from plumbline.probes.stats.intervals import spearman, wilson
from plumbline.probes.worlds.politicians import SENTIMENTS, Planted, World, expected_counts

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from plumbline.probes.politicians.latent import Found, Params

    Array = NDArray[np.float64]


class Truth(NamedTuple):
    """What names without end would give, for one part of speech; and what was measured."""

    planted: Array  # (words,): log-ratio female to male, nats
    measured: Array  # (words,): log p(w | female) - log p(w | male), nats
    covered: NDArray[np.bool_]  # deviations, all of them
    tilt: Estimate
    true_tilt: float


def recovery(
    table: pl.DataFrame, found: list[Found], weights: Path, outputs: Path, params: Params
) -> pl.DataFrame:
    """Hold what was measured against what was planted.

    Raises
    ------
    Problem
        If the world's language has too few words to compare.
    """
    world = World.model_validate(json.loads((weights / "world.json").read_text(encoding="utf-8")))
    planted = pl.read_parquet(weights / "planted.parquet")
    chosen = [part for part in found if part.language == world.language]
    truths = {POS[p.pos]: _truth(p, planted, world, outputs, params) for p in chosen}
    measured = np.concatenate([t.measured for t in truths.values()]) if truths else np.empty(0)
    if len(measured) < 4:
        raise Problem(
            f"analysis.latent.min_count: {params.min_count} leaves {len(measured)} planted words, "
            "too few to compare; lower it"
        )
    rows: list[tuple[str, Estimate, str, str]] = []
    level, rate = params.confidence, params.false_discovery_rate
    if not world.null:
        log_ratio = np.concatenate([t.planted for t in truths.values()])
        title = (
            "Spearman correlation of planted log-ratio and measured log p(w|g), female less male"
        )
        rows.append((title, spearman(log_ratio, measured, level), "word", "0: no relation"))
        agree = int((np.sign(log_ratio) == np.sign(measured)).sum())
        title = "share of words whose measured sign is the planted one"
        rows.append((title, wilson(agree, len(measured), level), "word", "0.5: coin"))
    covered = np.concatenate([t.covered.ravel() for t in truths.values()])
    title = f"share of {level:.0%} intervals of deviations with that of names without end"
    share = wilson(int(covered.sum()), covered.size, level)
    rows.append((title, share, "word, sentiment and gender", f"{level:g}: nominal"))
    for pos, truth in truths.items():
        title = f"{pos}: log-ratio female to male of p(positive|g), less that of p(negative|g)"
        rows.append((title, truth.tilt, "name", f"{truth.true_tilt:.3f}: names without end"))
    here = table.filter(pl.col("language") == world.language)
    for column, limit in (("p_bh", rate), ("p", 0.05)):
        hits = int((here[column] <= limit).sum())
        title = f"share of tests with {column} at or below {limit:g}"
        versus = "at most this: nominal" if world.null else "no nominal value: many are planted"
        share = wilson(hits, len(here), level)
        rows.append((title, share, "word, sentiment and gender", versus))
    base = {"model": table["model"][0], "language": world.language, "world": int(world.null)}
    return pl.DataFrame(
        [
            base
            | {"measure": title}
            | {k: finite(getattr(e, k)) for k in ("value", "low", "high")}
            | {"n": e.n, "cluster": cluster, "method": e.method, "null": versus}
            | {"p": None, "p_bh": None}
            for title, e, cluster, versus in rows
        ]
    )


def _truth(
    found: Found, planted: pl.DataFrame, world: World, outputs: Path, params: Params
) -> Truth:
    part = planted.filter(pl.col("pos") == POS[found.pos])
    names = [GENDERS[g] for g in found.genders]
    people = found.counts.people / found.counts.people.sum()
    lists = pl.scan_parquet(outputs / world.language / "*.parquet")
    longest = lists.filter(pl.col("pos") == found.pos).select("rank").max().collect().item()
    truth = Planted(
        tuple(part["word"]),
        part["frequency_nats"].to_numpy(),
        part["log_ratio_nats"].to_numpy(),
        np.zeros(len(part), dtype=np.int64),
        ("",) * len(part),
    )
    shares = dict(zip(names, people.tolist(), strict=True))
    length = min(int(longest), len(part))
    expected = expected_counts(truth, shares, world.name_noise, length, world.seed)
    place = {word: i for i, word in enumerate(truth.words)}
    here = [i for i, word in enumerate(found.counts.words) if word in place]
    there = [place[found.counts.words[i]] for i in here]
    q, counts = found.q[here], np.maximum(expected[there], 1e-12)
    weights = model.grid(params.l1, params.posterior)
    each = []
    for seed in params.seeds:
        start = model.begin(counts, len(SENTIMENTS), seed, params.jitter)
        fits = model.fit(counts[None], q, *weights, start, params.schedule)
        each.append(model.average(fits, len(fits.phi)))
    true = model.Averages(*(np.mean(parts, axis=0) for parts in zip(*each, strict=True)))
    low, high = (x[..., here] for x in model.percentiles(found.drawn.eta, params.confidence))
    male, female = (names.index(g) for g in ("male", "female"))
    low_tilt, high_tilt = model.percentiles(
        _tilt(found.drawn.sentiments, male, female), params.confidence
    )
    method = f"{params.confidence:.0%} Bayesian bootstrap percentile over names, refitted"
    value = float(_tilt(found.value.sentiments, male, female)[0])
    words = found.value.words[0]
    return Truth(
        truth.log_ratio[there],
        (words[female] - words[male])[here],
        (low <= true.eta[0]) & (true.eta[0] <= high),
        Estimate(value, float(low_tilt), float(high_tilt), found.counts.names, method),
        float(_tilt(true.sentiments, male, female)[0]),
    )


def _tilt(shares: Array, male: int, female: int) -> Array:
    """Return the log-odds of positive against negative, female less male, of p(s | g)."""
    odds = np.log(shares[:, 0] / shares[:, 1])
    result: Array = odds[:, female] - odds[:, male]
    return result
