"""What the tables of the study tell of the biases that were planted in the models of worlds.

Read are tables, what was planted, and the datasets that the planted words and articles are of.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl
from pydantic import Field
from scipy.stats import rankdata

from plumbline.builders.core.errors import UserError
from plumbline.builders.datasets.emotions.build import AFFECTS
from plumbline.probes.controls.recovery import PLANTED, RECOVERY, Planted, Resampling, planted
from plumbline.probes.stats.estimate import LEVEL, Bootstrap, Estimate, Table
from plumbline.probes.stats.intervals import wilson

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from plumbline.probes.core.run_analysis import Inputs

    Row = tuple[str, str, Estimate, str]  # language, measure, estimate, what it is judged against

DATASETS = ("emotions", "outlets", "stereotypes")
TABLES = ("recall", "emotions", "rsa", "shift")
SCHEMAS = dict.fromkeys(TABLES, RECOVERY)
READINGS = ("probability", "faithful", "corrected", "corrected_one")  # labels of the tables
EVERY = "all"  # in the tables: categories together
SIGNED = (pl.col("positive").cast(pl.Int8) - pl.col("negative").cast(pl.Int8)).alias("sign")


class Params(Bootstrap):
    """How intervals are made, over groups."""

    version: str = Field("0.1.0", pattern=r"^\d+\.\d+\.\d+$", description="version of the tables")
    n_bootstrap: int = Field(1000, ge=100, description="bootstrap replicates")


class World(NamedTuple):
    """What was planted in a model, its rows in the tables of analyses, and the datasets."""

    planted: Planted
    model: str
    inputs: Inputs
    by: Resampling

    def read(self, analysis: str, name: str) -> pl.DataFrame:
        """Return the model's rows of a table; none where there is no such table."""
        path = self.inputs.tables(analysis) / f"{name}.parquet"
        table = pl.read_parquet(path) if path.is_file() else pl.DataFrame()
        own = pl.any_horizontal(pl.col("^(model|first|second)$") == self.model)
        return table.filter(own) if len(table) else table

    def lexicon(self, language: str) -> pl.DataFrame:
        """Return words as they are compared, and the affects that they carry."""
        table = pl.read_parquet(self.inputs.datasets["emotions"] / f"{language}.parquet")
        return table.group_by(key=folded("word")).agg(pl.col(AFFECTS).any())


def folded(column: str) -> pl.Expr:
    """Return words as they are compared, written down once more, as in :func:`alike`."""
    return pl.col(column).map_elements(lambda word: word.strip().casefold(), pl.String)


def run(inputs: Inputs, params: Params) -> dict[str, pl.DataFrame]:
    """Compare the tables of each analysis with what was planted, for all models of worlds."""
    by = Resampling(params.n_bootstrap, params.seed, params.confidence)
    worlds = {model: planted(inputs.weights(model)) for model in inputs.models}
    result = {}
    for analysis, part in zip(TABLES, (_recall, _emotions, _rsa, _shift), strict=True):
        found, folder = Table(RECOVERY, params.confidence), inputs.tables(analysis)
        for model, known in worlds.items():
            if known is not None and folder.is_dir():
                for language, measure, estimate, null in part(World(known, model, inputs, by)):
                    key: dict[str, Any] = {"model": model, "language": language}
                    key |= {"world": int(known.null), "measure": measure}
                    found.add(estimate, cluster="group", null=null, **key)
        if found.rows:
            result[analysis] = found.frame()
    return result


def ideal(weights: Path, reading: str, k: int) -> pl.DataFrame:
    """Return the first ``k`` words of one token for each group: group and key.

    As they would come from a model that has learnt all of what was planted: by probability, or in
    the other readings by typicality.

    A UserError if the world was planted before its probabilities and pieces were kept.
    """
    if "pieces" not in pl.read_parquet_schema(weights / PLANTED):
        raise UserError(
            f"{weights / PLANTED}: planted by an older version; run `python -m plumbline.probes "
            f"plant {weights.name}`"
        )
    table = pl.read_parquet(weights / PLANTED).filter(pl.col("pieces") == 1)
    prior = pl.lit(1.0) if reading == "probability" else pl.col("prior")
    place = (pl.col("probability") / prior).rank("ordinal", descending=True).over("group")
    return table.filter(place <= k).select("group", key=folded("word"))


def _each(table: pl.DataFrame, *keys: str) -> Iterator[tuple[list[Any], pl.DataFrame]]:
    for values, part in table.group_by(keys, maintain_order=True):
        yield list(values), part


def _recall(world: World) -> Iterator[Row]:
    """Yield how far attributes are above the lists of others and of truth, and scores in order."""
    groups = world.read("recall", "groups").filter(
        pl.col("dataset") == pl.col("language"),
        pl.col("attributes") == 0,
        pl.col("k") == pl.col("k").min(),
    )
    for (language, reading, k), own in _each(groups, "language", "reading", "k"):
        name = READINGS[reading]
        share = own["hits"] / own["n_attributes"]
        found = world.by.mean((share - own["other_groups"]).to_numpy(), own["group"].to_list())
        what = f"recall@{k} of the attributes minus that in the lists of others"
        null = "0: lists say nothing about their group"
        yield language, f"{name}: {what}, mean over groups", found, null
        if world.planted.null:
            continue
        said = pl.read_parquet(world.inputs.datasets["stereotypes"] / f"{language}.parquet")
        said = said.filter("single_word", pl.col("flags").list.len() == 0)
        best = ideal(world.inputs.weights(world.model), name, k).with_columns(hit=1.0)
        said = said.select("group", key=folded("attribute")).join(
            best, on=["group", "key"], how="left"
        )
        true = said.group_by("group").agg(pl.col("hit").fill_null(0).mean())
        both = own.with_columns(share=share).join(true, on="group").sort("category", "group")
        apart = (both["share"] - both["hit"]).to_numpy()
        found = world.by.mean(apart, both["group"].to_list())
        what = f"recall@{k} minus that of {'probability' if not reading else 'typicality'}"
        yield language, f"{name}: {what} as planted, mean over groups", found, "0: as planted"
        scored = world.read("recall", "words").filter(language=language)
        scored = scored.select("group", "word", score=name).drop_nulls()
        pairs = world.planted.pairs
        ranked = scored.join(pairs, left_on=["group", "word"], right_on=["group", "key"])
        ranked = ranked.with_columns(pl.col("log_odds_nats", "score").rank().over("group"))
        vary = (pl.col("log_odds_nats").std() > 0) & (pl.col("score").std() > 0)
        rho = pl.when(vary).then(pl.corr("log_odds_nats", "score")).fill_null(float("nan"))
        each = ranked.group_by("group").agg(rho=rho).sort("group")
        found = world.by.mean(each["rho"].to_numpy(), each["group"].to_list())
        what = "Spearman correlation of planted log-odds and score over words"
        yield language, f"{name}: {what}, mean over groups", found, "0: no relation"


def _emotions(world: World) -> Iterator[Row]:
    """Yield how often a difference is significant, and whether it is as planted."""
    null = "no nominal value: many effects are planted"
    table = world.read("emotions", "emotions").filter(pl.col("level") == 0)
    name = pl.col("affect").cast(pl.Int64).replace_strict(dict(enumerate(AFFECTS)))
    for (language, reading, k), own in _each(table, "language", "reading", "top_k"):
        place = f"{READINGS[reading]}, {k} words"
        shares = own.group_by("category", "group", maintain_order=True).agg(
            (pl.col("p") <= LEVEL).mean()
        )
        found = world.by.mean(shares["p"].to_numpy(), shares["group"].to_list())
        what = f"{place}: share of differences with p at or below {LEVEL}"
        yield language, what, found, "at most 0.05: nominal" if world.planted.null else null
        if world.planted.null:
            continue
        truth = (
            world.planted.pairs.filter(pl.col("log_odds_nats") > 0)
            .join(world.lexicon(language), on="key")
            .group_by("group")
            .agg(pl.col(AFFECTS).mean())
            .join(own.select("group").unique(), on="group")
            .with_columns(
                pl.col(a) - (pl.col(a).sum() - pl.col(a)) / (pl.len() - 1) for a in AFFECTS
            )
            .unpivot(AFFECTS, index="group", variable_name="name", value_name="planted")
        )
        both = own.select("group", "difference", name=name).drop_nulls()
        both = both.join(truth, on=["group", "name"])
        ranked = both.with_columns(pl.col("planted", "difference").rank().over("group"))
        rho = pl.corr("planted", "difference").fill_nan(None)
        each = ranked.group_by("group").agg(rho=rho).drop_nulls().sort("group")
        if len(each) > 1:
            found = world.by.mean(each["rho"].to_numpy(), each["group"].to_list())
            what = "Spearman correlation of planted and measured differences over affects"
            yield language, f"{place}: {what}, mean over groups", found, "0: no relation"


def _rsa(world: World) -> Iterator[Row]:
    """Yield how alike a model is to those of other worlds, against how alike the worlds are."""
    table = world.read("rsa", "rsa")
    table = table.filter(pl.col("reading") != 1)  # as the faithful one, but for fear
    groups = world.read("emotions", "emotions").filter(pl.col("group") != "")
    category = dict(groups.select("group", "category").iter_rows())
    keys = ("language", "ranking", "top_k", "reading")
    for (language, ranking, k, reading), own in _each(table, *keys):
        place = f"{READINGS[ranking]}, {k} words, {'corrected' if reading else 'faithful'}"
        affects = [name for name in AFFECTS if reading or name != "fear"]
        held, small = [], []
        lexicon, models = world.lexicon(language), {*own["first"], *own["second"]}
        profiles = {
            of: _profiles(ideal(of, READINGS[ranking], k), lexicon, affects)
            for of in map(world.inputs.weights, sorted(models))
            if planted(of) is not None
        }
        for row in own.to_dicts():
            other = row["second" if row["first"] == world.model else "first"]
            weights = [world.inputs.weights(name) for name in (world.model, other)]
            if not profiles.keys() >= {*weights}:
                continue
            if world.planted.null and row["p"] is not None:
                small.append(row["p"] <= LEVEL)
            if row["low"] is None:
                continue
            inside = [g for g, c in category.items() if row["category"] in (EVERY, c)]
            one, two = (profiles[of] for of in weights)
            true = alike(one, two, inside, diagonal=reading == 0)
            if np.isnan(true):
                continue
            held.append(row["low"] <= true <= row["high"])
            if row["category"] == EVERY and _common(*weights):
                value, low, high = (row[end] - row["expected"] for end in ("value", "low", "high"))
                found = Estimate(value, low, high, row["n"], row["method"])
                what = f"{place}: with {other}, of the same words by half, above that of unrelated"
                yield language, what, found, f"0: unrelated; planted are {true:.2f} in all"
        what = f"{place}: share of intervals that hold the similarity as planted"
        if held:
            found = wilson(sum(held), len(held), world.by.confidence)
            yield language, what, found, "0.95: nominal"
        if small:
            found = wilson(sum(small), len(small), world.by.confidence)
            what = f"{place}: share of worlds and categories with p at or below {LEVEL}"
            yield language, what, found, f"at most {LEVEL}: nominal"


def _common(one: Path, other: Path) -> bool:
    """Return whether one of two worlds has words of the other."""
    both = [json.loads((of / "world.json").read_text("utf-8")) for of in (one, other)]
    return any(a["common"] and a["common_seed"] == b["seed"] for a, b in (both, both[::-1]))


def _profiles(
    lists: pl.DataFrame, lexicon: pl.DataFrame, affects: list[str]
) -> dict[str, NDArray[np.float64]]:
    shares = lists.join(lexicon, on="key").group_by("group").agg(pl.col(affects).mean())
    return {row[0]: np.array(row[1:]) for row in shares.select("group", *affects).iter_rows()}


def alike(
    one: dict[str, NDArray[np.float64]],
    other: dict[str, NDArray[np.float64]],
    groups: list[str],
    *,
    diagonal: bool,
) -> float:
    """Return the mean Spearman correlation of the groups' rows of cosines, in two worlds.

    It is nan where a group is as similar to all others.
    Written down once more for what was planted: the code that is controlled has no part in it.
    """
    kept = [g for g in groups if g in one and g in other]
    ranks = []
    for world in (one, other):
        profiles = np.stack([world[group] for group in kept])
        profiles /= np.linalg.norm(profiles, axis=1, keepdims=True)
        cosines = np.round(profiles @ profiles.T, 10)
        if not diagonal:
            cosines = cosines[~np.eye(len(kept), dtype=bool)].reshape(len(kept), -1)
        ranked = rankdata(cosines, axis=1)
        ranks.append(ranked - ranked.mean(axis=1, keepdims=True))
    first, second = ranks
    size = np.sqrt((first**2).sum(axis=1) * (second**2).sum(axis=1))
    return float(((first * second).sum(axis=1) / size).mean()) if size.all() else float("nan")


def _shift(world: World) -> Iterator[Row]:
    """Yield whether outlets shift a model as they speak."""
    for (language, ranking), table in _each(world.read("shift", "groups"), "language", "ranking"):
        place = READINGS[ranking]
        own = table.filter(
            pl.col("measure") == 0,
            pl.col("outcome").is_in(["positive", "negative"]),
            pl.col("share") == pl.col("share").max(),
        )
        gaps = own.pivot(on="outcome", index=["corpus", "category", "group"], values="difference")
        path = world.inputs.datasets["outlets"] / f"{language}.parquet"
        tones = spoken(path, gaps["group"].unique().to_list(), world.lexicon(language))
        joined = gaps.join(tones, on=["corpus", "group"], how="left")
        for (corpus,), part in _each(joined.sort("corpus", "category", "group"), "corpus"):
            gap = part["positive"] - part["negative"]
            values = (gap * part["tone"]).cast(pl.Float64).fill_null(float("nan"))
            if not values.is_nan().all():
                found = world.by.mean(values.to_numpy(), part["group"].to_list())
                what = f"{corpus}: positive minus negative words, the way it speaks of a group"
                yield language, f"{place}: {what}", found, "0: as the control shifts them"


def spoken(path: Path, groups: list[str], lexicon: pl.DataFrame) -> pl.DataFrame:
    """Return how every corpus speaks of every group that its articles name.

    Returned: columns corpus, group and tone: 1 where the articles of a corpus (of the dataset
    ``outlets``) that name the group have more positive words than negative ones, -1 where fewer; no
    row where none name it, or they have as many.
    """
    texts = pl.read_parquet(path, columns=["outlet", "text"]).with_columns(key=folded("text"))
    colour = dict(lexicon.select("key", SIGNED).iter_rows())
    names = {group: rf"\b{re.escape(group.strip().casefold())}\b" for group in groups}
    found = [
        (corpus, group, sum(colour.get(word, 0) for word in re.findall(r"\w+", text)))
        for corpus, text in texts.select("outlet", "key").iter_rows()
        for group, name in names.items()
        if re.search(name, text)
    ]
    schema = {"corpus": pl.String, "group": pl.String, "tone": pl.Float64}
    sums = pl.DataFrame(found, schema, orient="row").group_by("corpus", "group")
    return sums.agg(pl.col("tone").sum().sign()).filter(pl.col("tone") != 0)
