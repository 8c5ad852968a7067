"""Recovery of the study ``stereotypes``: tables compared with biases planted in control models.

The inputs are tables, planted biases, and the datasets that contain planted words and articles.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl

from plumbline.builders.datasets.emotions.build import AFFECTS
from plumbline.probes.controls.compare import PARAMS, PLANTED, Comparison, Params, read_table
from plumbline.probes.stats.estimate import LEVEL, Estimate
from plumbline.probes.stats.intervals import rank_correlations

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from plumbline.probes.core.run_analysis import Inputs

    Profiles = dict[str, NDArray[np.float64]]  # profile (share of each affect) by group

DATASETS = ("emotions", "outlets", "stereotypes")
TABLES = ("recall", "emotions", "rsa", "shift")


class World(NamedTuple):
    """A control model with its planted biases, tables and datasets."""

    model: str
    planted: pl.DataFrame  # group, key (casefolded word), log_odds_nats
    inputs: Inputs

    @property
    def null(self) -> bool:
        """Whether nothing was planted: there are no pairs, or all log-odds are 0."""
        return not (self.planted["log_odds_nats"] != 0).any()

    def read(self, analysis: str, name: str) -> pl.DataFrame:
        """Return the rows of a table that belong to the model; empty if the table is missing."""
        table = read_table(self.inputs.tables(analysis) / f"{name}.parquet")
        in_row = pl.any_horizontal(pl.col("^(model|first|second)$") == self.model)
        return table.filter(in_row) if len(table) else table

    def lexicon(self, language: str) -> pl.DataFrame:
        """Return the lexicon's casefolded words and their affects."""
        table = pl.read_parquet(self.inputs.datasets["emotions"] / f"{language}.parquet")
        return table.group_by(key=casefold("word")).agg(pl.col(AFFECTS).any())


def casefold(column: str) -> pl.Expr:
    """Return casefolded words; this does not use the code of the analyses."""
    return pl.col(column).map_elements(lambda word: word.strip().casefold(), pl.String)


def truth(inputs: Inputs, model: str) -> World | None:
    """Return a model's planted biases, or None if it is not a control model of the study."""
    path = inputs.weights(model) / PLANTED
    if not path.is_file() or "group" not in pl.read_parquet_schema(path):
        return None
    pairs = pl.read_parquet(path).select("group", "log_odds_nats", key=casefold("word"))
    pairs = pairs.group_by("group", "key").agg(pl.col("log_odds_nats").max()).sort("group", "key")
    return World(model, pairs, inputs)


def run(inputs: Inputs, params: Params = PARAMS) -> dict[str, pl.DataFrame]:
    """Compare the tables of each analysis with the planted biases, for all control models."""
    worlds = [world for model in inputs.models if (world := truth(inputs, model))]
    result = {}
    for analysis, compare in zip(TABLES, (_recall, _emotions, _rsa, _shift), strict=True):
        rows = Comparison(params)
        for world in worlds if inputs.tables(analysis).is_dir() else ():
            rows.at = {"model": world.model, "world": "null" if world.null else "planted"}
            compare(rows, world)
        if rows.rows:
            result[analysis] = rows.frame()
    return result


def ideal(weights: Path, reading: str, k: int) -> pl.DataFrame:
    """Return the columns group and key of the ``k`` best single-token words of each group.

    They are the lists of a model that has learned all planted biases, ranked by probability if
    ``reading`` is probability, and otherwise by typicality.
    """
    table = pl.read_parquet(weights / PLANTED).filter(pieces=1)
    prior = pl.lit(1.0) if reading == "probability" else pl.col("prior")
    rank = (pl.col("probability") / prior).rank("ordinal", descending=True).over("group")
    return table.filter(rank <= k).select("group", key=casefold("word"))


def _recall(rows: Comparison, world: World) -> None:
    """Compare recall with other groups' lists and with true recall, and scores with log-odds."""
    groups = world.read("recall", "groups").filter(
        pl.col("dataset") == pl.col("language"),
        pl.col("k") == pl.col("k").min(),
        attributes="single word",
    )
    share = pl.col("hits") / pl.col("n_attributes")
    for (language, reading, k), table in _parts(groups, "language", "reading", "k"):
        rows.at["language"] = language
        key = {"reading": reading, "item": f"recall@{k}"}
        _mean(rows, "difference_from_lists", table, share - pl.col("other_groups"), **key)
        if world.null:
            continue
        attributes = pl.read_parquet(world.inputs.datasets["stereotypes"] / f"{language}.parquet")
        attributes = attributes.filter("single_word", pl.col("flags").list.len() == 0)
        attributes = attributes.select("group", key=casefold("attribute"))
        best = ideal(world.inputs.weights(world.model), reading, k).with_columns(hit=1.0)
        hits = attributes.join(best, on=["group", "key"], how="left")
        true = hits.group_by("group").agg(pl.col("hit").fill_null(0).mean())
        joined = table.join(true, on="group").sort("category", "group")
        _mean(rows, "error", joined, share - pl.col("hit"), **key)
        scores = world.read("recall", "words").filter(language=language)
        scores = scores.select("group", key="word", score=reading).drop_nulls()
        pairs = scores.join(world.planted, on=["group", "key"])
        _group_orders(rows, pairs, ("log_odds_nats", "score"), reading=reading)


def _mean(rows: Comparison, measure: str, table: pl.DataFrame, value: pl.Expr, **key: str) -> None:
    """Add the mean over groups of a value, given a table with one row per group."""
    values = table.select(value.cast(pl.Float64).fill_null(float("nan"))).to_series()
    rows.mean(measure, values.to_numpy(), table["group"].to_list(), "group", **key)


def _group_orders(
    rows: Comparison, table: pl.DataFrame, sides: tuple[str, str], **key: str
) -> None:
    """Add the mean over groups of the rank correlation of two columns."""
    rho = pl.corr(*sides, method="spearman")
    correlations = table.group_by("group").agg(rho=rho).sort("group")
    _mean(rows, "rank_correlation", correlations, pl.col("rho"), **key)


def _emotions(rows: Comparison, world: World) -> None:
    """Add the share of significant differences, and compare their order with the planted order."""
    table = world.read("emotions", "emotions").filter(level="group")
    for (language, reading, k), part in _parts(table, "language", "reading", "top_k"):
        rows.at["language"] = language
        key = {"reading": reading, "item": f"{k} words"}
        grouped = part.group_by("category", "group", maintain_order=True)
        shares = grouped.agg((pl.col("p") <= LEVEL).mean())
        _mean(rows, "discoveries", shares, pl.col("p"), **key)
        if world.null:
            continue
        carried = world.planted.filter(pl.col("log_odds_nats") > 0)
        carried = carried.join(world.lexicon(language), on="key")
        planted = carried.group_by("group").agg(pl.col(AFFECTS).mean())
        planted = planted.join(part, on="group", how="semi")
        affects = pl.col(AFFECTS)
        planted = planted.with_columns(affects - (affects.sum() - affects) / (pl.len() - 1))
        planted = planted.unpivot(AFFECTS, index="group", variable_name="affect", value_name="true")
        joined = part.select("group", "difference", "affect").drop_nulls()
        joined = joined.join(planted, on=["group", "affect"])
        if joined["group"].n_unique() > 1:
            _group_orders(rows, joined, ("true", "difference"), **key)


def _rsa(rows: Comparison, world: World) -> None:
    """Compare the similarities of control models with the similarities of their planted biases."""
    table = world.read("rsa", "rsa")
    if table.is_empty():
        return
    groups = world.read("emotions", "emotions").filter(pl.col("group") != "")
    category = dict(groups.select("group", "category").iter_rows())
    table = table.filter(pl.col("reading") != "released")  # differs from `faithful` only by fear
    folder = world.inputs.weights
    for (language, ranking, k, reading), part in _parts(
        table, "language", "ranking", "top_k", "reading"
    ):
        rows.at["language"] = language
        key = {"reading": reading, "item": f"{ranking}, {k} words"}
        affects = [affect for affect in AFFECTS if reading == "corrected" or affect != "fear"]
        lexicon = world.lexicon(language)
        profiles = {
            name: _profiles(ideal(folder(name), ranking, k), lexicon, affects)
            for name in {world.model, *part["first"], *part["second"]}
            if truth(world.inputs, name) is not None
        }
        covered, significant = [], []
        for row in part.to_dicts():
            partner = row["second" if row["first"] == world.model else "first"]
            if partner not in profiles:
                continue
            if world.null and row["p"] is not None:
                significant.append(row["p"] <= LEVEL)
            inside = [g for g, c in category.items() if row["category"] in ("all", c)]
            pair = (profiles[world.model], profiles[partner])
            true = similarity(*pair, inside, diagonal=reading == "faithful")
            if row["low"] is None or np.isnan(true):
                continue
            covered.append(row["low"] <= true <= row["high"])
            if row["category"] == "all" and _share_words(folder(world.model), folder(partner)):
                value, low, high = (row[x] - row["expected"] for x in ("value", "low", "high"))
                item = f"{key['item']}: with {partner}"
                estimate = Estimate(value, low, high, row["n"])
                rows.add("similarity", estimate, "group", reading=reading, item=item)
        rows.share("coverage", covered, "group", **key)
        rows.share("discoveries", significant, "group", **key)


def _share_words(first: Path, second: Path) -> bool:
    """Return True if the planted words of two control models are the same."""
    settings = [json.loads((path / "world.json").read_text("utf-8")) for path in (first, second)]
    return any(a["common"] and a["common_seed"] == b["seed"] for a, b in (settings, settings[::-1]))


def _profiles(lists: pl.DataFrame, lexicon: pl.DataFrame, affects: list[str]) -> Profiles:
    shares = lists.join(lexicon, on="key").group_by("group").agg(pl.col(affects).mean())
    return {row[0]: np.array(row[1:]) for row in shares.select("group", *affects).iter_rows()}


def similarity(a: Profiles, b: Profiles, groups: Sequence[str], *, diagonal: bool) -> float:
    """Return the mean Spearman correlation of the rows of two models' matrices of cosines.

    It is nan if a group is equally similar to all others. The analysis does not use this function.
    """
    shared = [group for group in groups if group in a and group in b]
    sides = []
    for world in (a, b):
        profiles = np.stack([world[group] for group in shared])
        profiles /= np.linalg.norm(profiles, axis=1, keepdims=True)
        cosines = profiles @ profiles.T
        off = ~np.eye(len(shared), dtype=bool) | diagonal
        sides.append(cosines[off].reshape(len(shared), -1))
    return float(rank_correlations(*sides).mean())


def _shift(rows: Comparison, world: World) -> None:
    """Compare shifts after training on an outlet with the outlet's tone towards each group."""
    for (language, ranking), table in _parts(world.read("shift", "groups"), "language", "ranking"):
        rows.at["language"] = language
        coloured = table.filter(
            pl.col("outcome").is_in(["positive", "negative"]),
            pl.col("share") == pl.col("share").max(),
            measure="emotion",
        )
        keys = ["corpus", "category", "group"]
        gaps = coloured.pivot(on="outcome", index=keys, values="difference")
        path = world.inputs.datasets["outlets"] / f"{language}.parquet"
        tones = spoken(path, gaps["group"].unique().to_list(), world.lexicon(language))
        joined = gaps.join(tones, on=["corpus", "group"], how="left").sort(keys)
        for (corpus,), part in _parts(joined, "corpus"):
            shift = (pl.col("positive") - pl.col("negative")) * pl.col("tone")
            _mean(rows, "tone_shift", part, shift, reading=ranking, item=corpus)


def spoken(path: Path, groups: list[str], lexicon: pl.DataFrame) -> pl.DataFrame:
    """Return the tone of each corpus towards each group that is named in its articles.

    The columns are corpus, group and tone. The tone is 1 if the articles in the dataset ``outlets``
    that name the group contain more positive than negative words, and -1 if they contain fewer. A
    group without such articles, or with equal counts, has no row.
    """
    texts = pl.read_parquet(path, columns=["outlet", "text"]).with_columns(key=casefold("text"))
    signed = pl.col("positive").cast(pl.Int8) - pl.col("negative").cast(pl.Int8)
    colour = dict(lexicon.select("key", sign=signed).iter_rows())
    names = {group: rf"\b{re.escape(group.strip().casefold())}\b" for group in groups}
    tones = [
        (corpus, group, sum(colour.get(word, 0) for word in re.findall(r"\w+", text)))
        for corpus, text in texts.select("outlet", "key").iter_rows()
        for group, name in names.items()
        if re.search(name, text)
    ]
    schema = {"corpus": pl.String, "group": pl.String, "tone": pl.Float64}
    sums = pl.DataFrame(tones, schema, orient="row").group_by("corpus", "group")
    return sums.agg(pl.col("tone").sum().sign()).filter(pl.col("tone") != 0)


def _parts(table: pl.DataFrame, *keys: str) -> Any:
    """Return pairs of key values and their rows; no pairs for an empty table."""
    return table.group_by(keys, maintain_order=True) if len(table) else ()
