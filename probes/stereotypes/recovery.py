"""What the tables of the study tell of the biases that were planted in the models of worlds.

Read are tables, what was planted, and the datasets that the planted words and articles are of.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl
from pydantic import Field

from plumbline.builders.datasets.emotions.build import AFFECTS
from plumbline.probes.stats.estimate import Bootstrap, Estimate, Table
from plumbline.probes.stats.intervals import spearman
from plumbline.probes.stereotypes.typicality import READINGS, folded
from plumbline.probes.worlds.recovery import RECOVERY, Planted, Resampling, planted

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from plumbline.probes.core.run_analysis import Inputs

    Row = tuple[str, str, Estimate, str]  # language, measure, estimate, what it is judged against

DATASETS = ("emotions", "outlets")
TABLES = ("recall", "emotions", "rsa", "shift")
SCHEMAS = dict.fromkeys(TABLES, RECOVERY)
LEVEL = 0.05
SIGNED = (pl.col("positive").cast(pl.Int8) - pl.col("negative").cast(pl.Int8)).alias("sign")


class Params(Bootstrap):
    """How intervals are made, over groups."""

    version: str = Field("0.1.0", pattern=r"^\d+\.\d+\.\d+$", description="version of the tables")
    n_bootstrap: int = Field(1000, ge=100, description="bootstrap replicates")


class World(NamedTuple):
    """What was planted in a model, its rows in the tables of one analysis, and the datasets."""

    planted: Planted
    model: str
    folder: Path
    datasets: dict[str, Path]
    by: Resampling

    def read(self, name: str) -> pl.DataFrame:
        """Return the model's rows of a table; none where there is no such table."""
        path = self.folder / f"{name}.parquet"
        table = pl.read_parquet(path) if path.is_file() else pl.DataFrame()
        return table.filter(pl.col("model") == self.model) if len(table) else table

    def lexicon(self, language: str) -> pl.DataFrame:
        """Return words as they are compared, and the affects that they carry."""
        table = pl.read_parquet(self.datasets["emotions"] / f"{language}.parquet")
        return table.group_by(key=folded("word")).agg(pl.col(AFFECTS).any())


def run(inputs: Inputs, params: Params) -> dict[str, pl.DataFrame]:
    """Compare the tables of each analysis with what was planted, for all models of worlds."""
    by = Resampling(params.n_bootstrap, params.seed, params.confidence)
    worlds = {model: planted(inputs.weights(model)) for model in inputs.models}
    result = {}
    for analysis, part in zip(TABLES, (_recall, _emotions, _rsa, _shift), strict=True):
        found, folder = Table(RECOVERY), inputs.tables(analysis)
        for model, known in worlds.items():
            if known is not None and folder.is_dir():
                world = World(known, model, folder, inputs.datasets, by)
                for language, measure, estimate, null in part(world):
                    key: dict[str, Any] = {"model": model, "language": language}
                    key |= {"world": int(known.null), "measure": measure}
                    found.add(estimate, cluster="group", null=null, **key)
        if found.rows:
            result[analysis] = found.frame()
    return result


def _each(table: pl.DataFrame, *keys: str) -> Iterator[tuple[list[Any], pl.DataFrame]]:
    for values, part in table.group_by(keys, maintain_order=True):
        yield list(values), part


def _recall(world: World) -> Iterator[Row]:
    """Yield how far attributes are above the lists of others, and the order of scores."""
    groups = world.read("groups").filter(
        pl.col("dataset") == pl.col("language"),
        pl.col("attributes") == 0,
        pl.col("k") == pl.col("k").min(),
    )
    for (language, reading, k), own in _each(groups, "language", "reading", "k"):
        name = READINGS[reading]
        excess = (own["hits"] / own["n_attributes"] - own["other_groups"]).to_numpy()
        found = world.by.mean(excess, own["group"].to_list())
        what = f"recall@{k} of the attributes minus that in the lists of others"
        null = "0: lists say nothing about their group"
        yield language, f"{name}: {what}, mean over groups", found, null
        if world.planted.null:
            continue
        scored = world.read("words").filter(language=language)
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
    table = world.read("emotions").filter(pl.col("level") == 0)
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
        if len(both) >= 4:
            pair = both["planted"].to_numpy(), both["difference"].to_numpy()
            found = spearman(*pair, world.by.confidence)._replace(n=both["group"].n_unique())
            what = "Spearman correlation of planted and measured differences"
            yield language, f"{place}: {what}, over groups and affects", found, "0: no relation"


def _rsa(world: World) -> Iterator[Row]:
    """Yield what a model's profiles give with themselves, and with their rows mixed up."""
    names = ("faithful", "released", "corrected")
    for row in world.read("bounds").iter_rows(named=True):
        place = f"{READINGS[row['ranking']]}, {row['top_k']} words, {names[row['reading']]}"
        value, low, high = (
            float("nan") if row[x] is None else row[x] for x in ("value", "low", "high")
        )
        found = Estimate(value, low, high, row["n"], row["method"])
        null = f"{3 / (row['n'] + 1):.3f}: the diagonal, 3 / (n + 1)"
        if names[row["reading"]] == "corrected":
            null = "0: no relation"
        what = "with its rows in random orders, mean" if row["compared"] else "with itself"
        yield row["language"], f"{place}: {what}", found, null if row["compared"] else "1: the same"


def _shift(world: World) -> Iterator[Row]:
    """Yield whether outlets shift a model as they speak, and what another seed alone does."""
    for (language, ranking), table in _each(world.read("groups"), "language", "ranking"):
        place = READINGS[ranking]
        own = table.filter(
            pl.col("measure") == 0,
            pl.col("outcome").is_in(["positive", "negative"]),
            pl.col("share") == pl.col("share").max(),
        )
        gaps = own.pivot(on="outcome", index=["corpus", "category", "group"], values="difference")
        path = world.datasets["outlets"] / f"{language}.parquet"
        tones = spoken(path, gaps["group"].unique().to_list(), world.lexicon(language))
        joined = gaps.join(tones, on=["corpus", "group"], how="left")
        for (corpus,), part in _each(joined.sort("corpus", "category", "group"), "corpus"):
            gap = part["positive"] - part["negative"]
            values = (gap * part["tone"]).cast(pl.Float64).fill_null(float("nan"))
            if not values.is_nan().all():
                found = world.by.mean(values.to_numpy(), part["group"].to_list())
                what = f"{corpus}: positive minus negative words, the way it speaks of a group"
                yield language, f"{place}: {what}", found, "0: as the control shifts them"
        tests = world.read("seeds")
        tests = tests.filter(language=language, ranking=ranking) if len(tests) else tests
        if len(tests):
            share, nothing = float((tests["p_groups"] <= LEVEL).mean()), float("nan")  # type: ignore[arg-type]
            n = gaps.select("category", "group").n_unique()
            method = (
                f"none; {len(tests)} tests of affects, in all groups and categories of six or more"
            )
            what = f"one seed against another: share of tests with p_groups <= {LEVEL}"
            null = f"{LEVEL}: nominal; above it groups alone tell trainings apart, not corpora"
            found = Estimate(share, nothing, nothing, n, method)
            yield language, f"{place}: {tests['corpus'][0]}, {what}", found, null
        yield language, *_false(world, place, {"language": language, "ranking": ranking})


def _false(world: World, place: str, where: dict[str, Any]) -> tuple[str, Estimate, str]:
    """Return how often halves of the trainings on the control are told apart: falsely."""
    table, nothing = world.read("halves"), float("nan")
    table = table.filter(**where) if len(table) else table
    what = (
        f"{place}: control, one seed half against the other: share of splits with false discoveries"
    )
    if table.is_empty():
        none = Estimate(nothing, nothing, nothing, 0, "none: there are fewer than four trainings")
        return what, none, f"at most {LEVEL}"
    splits = table.group_by("share", "split").agg(pl.col("significant").any())
    method = f"none; {len(table)} tests in {len(splits)} splits of the same trainings"
    value = float(splits["significant"].mean())  # type: ignore[arg-type]
    found = Estimate(value, nothing, nothing, int(table["seeds"].max()), method)  # type: ignore[arg-type]
    return what, found, f"at most {LEVEL}"


def spoken(path: Path, groups: list[str], lexicon: pl.DataFrame) -> pl.DataFrame:
    """Return how every corpus speaks of every group that its articles name.

    Returns
    -------
    DataFrame
        Columns corpus, group and tone: 1 where the articles of a corpus (of the dataset
        ``outlets``) that name the group have more positive words than negative ones, -1 where
        fewer; no row where none name it, or they have as many.
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
