"""Analysis ``robustness`` on simulated lists.

Words are positive, negative or neutral, which is drawn for each replicate; planted is how much
positive words go more with women, and negative ones less. Names of other origins are longer, in
tokens and letters, and may have words of other sentiments: where women are more often of those,
sentiments differ by origin, not by gender, and must not differ among names matched on tokens.
The tables ``latent`` are fitted to the same lists by their own analysis, with few weights and draws.

What an interval should cover is the difference of infinitely many names with the same setting: PMI
follows from expected counts; without any effect it is 0. Of the shares of non-binary people, six
names or none, nothing is told: the words that lead among infinitely many names are all tied.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from plumbline.builders.datasets.lexica.build import SENTIMENTS
from plumbline.probes.calibration.truth import DECOY, NULL, PLANTED, Drawn, Truth, outcome
from plumbline.probes.politicians import latent
from plumbline.probes.politicians.robustness import KINDS
from plumbline.probes.politicians.simulated import lists
from plumbline.probes.politicians.words.columns import FEMALE, MALE
from plumbline.probes.politicians.words.sentiment_shares import DEVIATIONS
from plumbline.probes.stats.pmi import pmi
from plumbline.probes.stats.shares import shares

if TYPE_CHECKING:
    from pathlib import Path

    from plumbline.probes.core.run_analysis import Inputs

Shape = lists.ListsShape
SHAPES = {
    "default run: 99 men, 88 women, 6 others": Shape(men=99, women=88, others=6, words=90),
    "real run, 1 name in 40: 400 men, 90 women": Shape(men=400, women=90),
}
NONE = ((0.0, 0.0, 0.0),) * 2
TRUTHS = {
    "nothing goes with a gender": Truth(NULL, "words differ in frequency and origin alone"),
    "sentiments planted": Truth(
        PLANTED,
        "log-odds of positive and negative words, adjectives and verbs",
        {"nats": ((0.4, -0.2, 0.0), (0.2, -0.1, 0.0))},
    ),
    "words without sentiments": Truth(
        DECOY, "words go with genders, whatever their sentiment", {"own": 0.4}
    ),
    "origin": Truth(
        DECOY,
        "women are of other origins, which have other sentiments",
        {"origin": 0.5, "slope": 0.5},
    ),
}
PARAMS: dict[str, Any] = {
    "top_k": [100],
    "top_share": [0.33, 0.2],
    "smoothing": [0.5],
    "min_count": [5, 10],
    "lengths": [10],
    "halves": 1,
    "n_bootstrap": 100,
    "n_permutations": 99,
}
LATENT: dict[str, Any] = {
    "version": "0.0.0",
    "min_count": 5,
    "smoothing": 0.5,
    "l1": [0.0, 1e-2],
    "posterior": [1e-2],
    "steps": 100,
    "learning_rate": 0.2,
    "seeds": [1],
    "n_bootstrap": 20,
    "n_permutations": 19,
}
FRAMES = 2


def draw(folder: Path, truth: Truth, shape: Shape, rng: np.random.Generator) -> Drawn:
    """Write one replicate."""
    sentiments = [rng.permutation(np.arange(shape.words) % len(SENTIMENTS)) for _ in range(2)]
    populations = [_words(shape, truth, pos, own, rng) for pos, own in enumerate(sentiments)]
    names = lists.names(shape, populations[0], rng)
    inputs = lists.write_people(folder, names, ("m",))
    each = [lists.utilities(of, names.origin, names.side()) for of in populations]
    lists.write_lists(inputs, "m", names, each, shape.length, rng, frames=FRAMES)
    inputs.datasets["lexica"] = lists.write_lexicon(folder / "lexica", sentiments)
    _write_latent(inputs)
    known = [
        _true(shape, truth, of, own, pos)
        for pos, (of, own) in enumerate(zip(populations, sentiments, strict=True))
    ]
    return Drawn(inputs, pl.concat(known))


def _words(
    shape: Shape, truth: Truth, pos: int, sentiment: lists.Integers, rng: np.random.Generator
) -> lists.Population:
    """Return what lists are drawn from.

    ``truth.settings``: ``nats`` that positive, negative and neutral words go more with women,
    adjectives and verbs; ``own``, SD of what goes with a gender of a word alone; ``origin`` as in
    :func:`lists.population`, and by how much ``slope`` positive words are more frequent, and
    negative ones less, from one origin to the next.
    """
    of = lists.population(shape, truth, pos)
    nats = np.array(truth.settings.get("nats", NONE)[pos])[sentiment]
    own = rng.normal(0, truth.settings.get("own", 0.0), shape.words)
    towards = np.array([1.0, -1.0, 0.0])[sentiment] * truth.settings.get("slope", 0.0)
    steps = np.arange(shape.origins) - (shape.origins - 1) / 2
    return of._replace(
        effect=nats + own,
        origin=of.origin + steps[:, None] * towards,
        frequency=rng.permutation(of.frequency),
    )


def _write_latent(inputs: Inputs) -> None:
    """Write the tables ``latent`` of these lists."""
    folder = inputs.tables("latent", inputs.models[0])
    folder.mkdir(parents=True)
    for name, table in latent.run(inputs, latent.Params.model_validate(LATENT)).items():
        table.write_parquet(folder / f"{name}.parquet")


def _true(
    shape: Shape, truth: Truth, of: lists.Population, sentiment: lists.Integers, pos: int
) -> pl.DataFrame:
    """Return planted nats, and differences of shares of men and women, for each setting."""
    people = np.array([shape.men, shape.women])
    nats = np.array(truth.settings.get("nats", NONE)[pos])
    parts = []
    for length in (shape.length, *PARAMS["lengths"]):
        chance = lists.expected(of, shape.model_copy(update={"length": length}))[:, :2] * people
        for least in PARAMS["min_count"]:
            kept = chance.sum(axis=1) >= least
            deviations = pmi(chance)[kept].T
            for share in PARAMS["top_share"]:
                size = max(1, int(share * kept.sum()))
                both = shares(deviations, sentiment[kept], size, len(SENTIMENTS))
                apart = (both[MALE] - both[FEMALE]) * (truth.kind != NULL)
                same = {"pos": pos, "length": length, "least": least, "share": share}
                columns = {"sentiment": range(len(SENTIMENTS)), "nats": nats, "target": apart}
                parts.append(
                    pl.DataFrame(columns).with_columns(
                        **{name: pl.lit(value) for name, value in same.items()}
                    )
                )
    numbers = pl.col("length", "least", "share").cast(pl.Float64)
    known = pl.concat(parts).with_columns(pl.col("pos", "sentiment").cast(pl.Int64), numbers)
    if "slope" in truth.settings:
        known = known.with_columns(target=pl.lit(None, dtype=pl.Float64))
    return known


def outcomes(tables: dict[str, pl.DataFrame], drawn: Drawn) -> dict[str, pl.DataFrame]:
    """Return the rows of each test, for each deviation and kind of variation.

    Names that are matched are told apart by what they are matched on. Of neutral words no effect is
    told where others have one, and where sentiments go with origins no truth: it is another one in
    each variation.
    """
    table = (
        tables["robustness"]
        .filter(number=0)
        .with_columns(pl.col("pos", "sentiment", "deviation", "kind").cast(pl.Int64))
    )
    variation = pl.col("variation")

    def setting(kind: str, default: float) -> pl.Expr:
        varied = pl.when(pl.col("kind") == KINDS.index(kind)).then(variation)
        return varied.otherwise(pl.lit(f"{default:g}")).cast(pl.Float64)

    table = table.with_columns(
        length=setting("list length", drawn.known["length"].to_list()[0]),
        least=setting("min_count", PARAMS["min_count"][0]),
        share=setting("top_share", PARAMS["top_share"][0]),
    )
    keys = ["pos", "sentiment", "length", "least", "share"]
    table = table.join(drawn.known, on=keys, how="left", maintain_order="left")
    planted = bool((drawn.known["nats"] != 0).any())
    effect = pl.when(pl.col("nats") != 0).then(-pl.col("nats")) if planted else pl.lit(0.0)
    names = pl.col("kind").replace_strict(dict(enumerate(KINDS)), return_dtype=pl.String)
    matched = pl.when(pl.col("kind") == KINDS.index("matched")).then(" on " + variation)
    table = table.with_columns(effect=effect, test=names + matched.otherwise(pl.lit("")))
    return {
        f"{DEVIATIONS[d]}: {test}": outcome(
            own, effect=pl.col("effect"), target=pl.col("target"), family=["variation"]
        )
        for (d, test), own in table.group_by("deviation", "test", maintain_order=True)
    }
