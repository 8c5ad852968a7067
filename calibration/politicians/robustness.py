"""Analysis ``robustness`` on simulated lists.

Words are positive, negative or neutral, drawn anew in each replicate; planted is how much positive
words go more with women, and negative ones less. Names of other origins are longer, in tokens and
letters, and may have words of other sentiments: where women are more often of those, sentiments
differ by origin, not by gender, and must not differ among names that are matched on tokens. There
is no latent-variable model: numbers by it have no test and no interval.

What an interval should cover is what another sample of as many names gives on average for the same
words and setting: the mean of ``SAMPLES`` samples. It is not told where names are matched, which
leaves fewer, but that without any effect it is 0; and not for the shares of non-binary people, six
names or none.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from calibration.politicians import lists
from calibration.truth import Array, Drawn, Generator, Integers, Tables, Truth, outcomes_by
from plumbline.builders.datasets.lexica.build import SENTIMENTS
from plumbline.builders.datasets.words.build import POS
from plumbline.probes.politicians.words.word_counts import FEMALE, MALE
from plumbline.probes.stats.pmi import pmi
from plumbline.probes.stats.shares import shares

Shape = lists.ListsShape
SHAPES = {
    "default run: 99 men, 88 women, 6 others": Shape(men=99, women=88, others=6, words=90),
    "real run, 1 name in 40: 400 men, 90 women": Shape(men=400, women=90),
}
NONE = ((0.0, 0.0, 0.0),) * 2
TRUTHS = {
    # words differ in frequency and origin alone
    "nothing goes with a gender": Truth("null"),
    # log-odds of positive and negative words, adjectives and verbs
    "sentiments planted": Truth("planted", nats=((0.4, -0.2, 0.0), (0.2, -0.1, 0.0))),
    # words depend on gender, independent of their sentiment
    "words without sentiments": Truth("decoy", own=0.4),
    # women are of other origins, which have other sentiments
    "origin": Truth("decoy", origin=0.5, slope=0.5),
}
PARAMS: dict[str, Any] = {
    "top_k": [100],
    "top_share": [0.33, 0.2],
    "smoothing": [0.5],
    "min_count": [5, 10],
    "lengths": [10],
    "halves": 1,
    "n_bootstrap": 100,
    "n_permutations": 199,
}
KEYS = ("pos", "sentiment", "parts", "length", "least", "share")
FRAMES = 2
SAMPLES = 20  # other samples of as many names


def draw(folder: Path, truth: Truth, shape: Shape, rng: Generator) -> Drawn:
    """Write one replicate."""
    sentiments = [rng.permutation(np.arange(shape.words) % len(SENTIMENTS)) for _ in range(2)]
    populations = [_words(shape, truth, pos, own, rng) for pos, own in enumerate(sentiments)]
    inputs = lists.write(folder, shape, populations, rng, frames=FRAMES)
    inputs.datasets["lexica"] = lists.write_lexicon(folder / "lexica", sentiments)
    known = _true(shape, truth, populations, sentiments, rng)
    return Drawn(inputs, (known, truth.kind == "null"))


def _words(
    shape: Shape, truth: Truth, pos: int, sentiment: Integers, rng: Generator
) -> lists.Population:
    """Return the population of lists.

    ``truth.settings``: ``nats`` that positive, negative and neutral words go more with women,
    adjectives and verbs; ``own``, SD of what goes with a gender of a word alone; ``origin`` as in
    :func:`lists.population`, and by how much ``slope`` positive words are more frequent, and
    negative ones less, from one origin to the next.
    """
    of = lists.population(shape, truth, pos)
    nats = np.array(truth.get("nats", NONE)[pos])[sentiment]
    own = rng.normal(0, truth.get("own", 0.0), shape.words)
    towards = np.array([1.0, -1.0, 0.0])[sentiment] * truth.get("slope", 0.0)
    steps = np.arange(shape.origins) - (shape.origins - 1) / 2
    return of._replace(
        effect=nats + own,
        origin=of.origin + steps[:, None] * towards,
        frequency=rng.permutation(of.frequency),
    )


def _true(
    shape: Shape,
    truth: Truth,
    populations: list[lists.Population],
    sentiments: list[Integers],
    rng: Generator,
) -> pl.DataFrame:
    """Return planted nats, and differences of shares of men and women on average over samples.

    A row for each part of speech, sentiment, and setting: whether names are halved, length of
    lists, names that must have a word, share of words taken.
    """
    settings = [(1, shape.length, PARAMS["min_count"][0], s) for s in PARAMS["top_share"]]
    settings += [
        (1, shape.length, least, PARAMS["top_share"][0]) for least in PARAMS["min_count"][1:]
    ]
    rest = PARAMS["min_count"][0], PARAMS["top_share"][0]
    settings += [(1, length, *rest) for length in PARAMS["lengths"]] + [(2, shape.length, *rest)]
    rows = []
    sums = np.zeros((len(settings), 2, len(SENTIMENTS)))
    for _ in range(SAMPLES):
        drawn: dict[tuple[int, int], list[Array]] = {}
        for n, (parts, length, least, share) in enumerate(settings):
            if (parts, length) not in drawn:
                sizes = {"men": shape.men // parts, "women": shape.women // parts, "others": 0}
                other = shape.model_copy(update=sizes | {"length": length})
                drawn[parts, length] = lists.counts(other, populations, rng)
            for pos, counts in enumerate(drawn[parts, length]):
                kept = counts.sum(axis=1) >= least
                deviations = np.round(pmi(counts[kept][:, :2], PARAMS["smoothing"][0]).T, 10)
                size = max(1, int(share * kept.sum()))
                both = shares(deviations, sentiments[pos][kept], size, len(SENTIMENTS))
                sums[n, pos] += (both[MALE] - both[FEMALE]) / SAMPLES
    for (n, setting), pos, s in product(enumerate(settings), range(2), range(len(SENTIMENTS))):
        nats = truth.get("nats", NONE)[pos][s]
        rows.append((POS[pos], SENTIMENTS[s], *map(float, setting), nats, sums[n, pos, s]))
    names = [*KEYS, "nats", "target"]
    return pl.DataFrame(rows, schema=names, orient="row")


def outcomes(tables: Tables, sample: Drawn) -> Tables:
    """Return the rows of each test, for each deviation and kind of variation.

    Names that are matched are told apart by what they are matched on. Of neutral words no effect is
    told where others have one.
    """
    truth, null = sample.known
    kind, variation = pl.col("kind"), pl.col("variation")

    def setting(name: str, default: float) -> pl.Expr:
        varied = pl.when(kind == name).then(variation)
        return varied.otherwise(pl.lit(f"{default:g}")).cast(pl.Float64)

    table = tables["robustness"].filter(number="male minus female")
    table = table.with_columns(
        parts=pl.when(kind == "half").then(2.0).otherwise(1.0),
        length=setting("list length", truth["length"].to_list()[0]),
        least=setting("min_count", PARAMS["min_count"][0]),
        share=setting("top_share", PARAMS["top_share"][0]),
    )
    table = table.join(truth, on=KEYS, how="left", maintain_order="left")
    planted = bool((truth["nats"] != 0).any())
    matched = kind == "matched"
    table = table.with_columns(
        effect=pl.when(pl.col("nats") != 0).then(-pl.col("nats")) if planted else 0.0,
        target=pl.when(matched).then(0.0 if null else None).otherwise("target"),
        test=kind + pl.when(matched).then(" on " + variation).otherwise(pl.lit("")),
    )
    return outcomes_by(table, "pmi: {test}", effect="effect", target="target", family=["variation"])
