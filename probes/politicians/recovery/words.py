"""Recovery of effects planted in words, in ``pmi``, ``latent``, ``supersenses`` and others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from plumbline.probes import POOLED
from plumbline.probes.controls.compare import Comparison, read_table
from plumbline.probes.politicians.recovery.truth import (
    World,
    by_language,
    class_differences,
    pmi_of,
    true_cells,
    true_pmi,
    with_true,
)
from plumbline.probes.stats.estimate import LEVEL, Estimate

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from plumbline.probes.core.run_analysis import Inputs

LARGE = 0.1  # minimum planted difference of shares whose sign is compared
HEAVY, LIGHT = 1.0, 1e-3  # minimum posterior weight, and maximum L1 weight, of compared fits
BINARY = ("male", "female")
DEALT = "-null"  # suffix of the names of corpora with permuted labels
CHANCE = 1 / 3  # accuracy if labels are uninformative


def _discoveries(rows: Comparison, table: pl.DataFrame, cluster: str, **key: str) -> None:
    for column, measure in (("p_bh", "discoveries_bh"), ("p", "discoveries")):
        rows.discoveries(table[column], measure, cluster, **key)


def pmi_rows(rows: Comparison, world: World) -> None:
    """Compare PMI with its true values: order, signs, coverage and discoveries."""
    pmi = world.read("pmi", "pmi")
    if pmi.is_empty():
        return
    smoothed = pmi.filter(reading="smoothed")
    if world.null:
        rows.share("any_discovery", [any(smoothed["p_bh"] <= LEVEL)], "world")
    else:
        _compare_contrasts(rows, contrast(smoothed, "word").join(world.words, on="word"), "")
    true = pl.concat(true_pmi(world, part) for part in smoothed.partition_by("pos"))
    binary = smoothed.filter(pl.col("gender").is_in(BINARY))
    keys = ["pos", "word", "gender"]
    rows.coverage(binary.join(true.select(*keys, true="value"), on=keys), "word and gender")
    _discoveries(rows, smoothed, "word and gender")


def contrast(table: pl.DataFrame, *keys: str) -> pl.DataFrame:
    """Return the value for women minus that for men by key, in the column ``contrast``."""
    female, male = (pl.col("value").filter(gender=g).first() for g in ("female", "male"))
    return table.group_by(keys).agg(contrast=female - male).drop_nulls().sort(keys)


def _compare_contrasts(rows: Comparison, compared: pl.DataFrame, item: str) -> None:
    """Compare the planted log-ratios of words with their measured contrasts."""
    true, measured = (compared[column].to_numpy() for column in ("log_ratio_nats", "contrast"))
    rows.order(true, measured, "word", item=item)
    if len(true) >= 4:
        rows.signs(true, measured, "word", item=item)


def pooled_rows(rows: Comparison, worlds: Sequence[World]) -> None:
    """Compare the PMI of each group of control models, and the differences between genders."""
    for group_worlds in by_language(worlds):
        pooled, differences = (
            group_worlds[0].read("pmi", name, POOLED) for name in ("pooled", "differences")
        )
        by_name = {world.model: world for world in group_worlds}
        groups = (
            pooled.filter(reading="smoothed").partition_by("group", "members")
            if len(pooled)
            else []
        )
        for part in groups:
            group, names = part["group"][0], part["members"][0].split(", ")
            planted = [by_name[name] for name in names if name in by_name]
            if len(planted) < len(names) or all(w.null for w in planted):
                continue
            rows.at = {**group_worlds[0].key, "model": group, "world": "planted"}
            true = pl.concat(pooled_truth(planted, part))
            binary = part.filter(pl.col("gender").is_in(BINARY))
            rows.coverage(binary.join(true, on=["pos", "word", "gender"]), "word and gender")
            ratio = contrast(true.rename({"true": "value"}), "word").rename(
                {"contrast": "log_ratio_nats"}
            )
            measured = differences.filter(group=group, reading="smoothed").drop_nulls("value")
            measured = measured.join(ratio, on="word").with_columns(
                contrast="value", true="log_ratio_nats"
            )
            _compare_contrasts(rows, measured, "female minus male")
            rows.coverage(measured, "word", item="female minus male")


def pooled_truth(worlds: Sequence[World], table: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Yield the true PMI of the pooled lists of control models, for each part of speech."""
    for (pos,), part in table.group_by("pos", maintain_order=True):
        people = dict(part.select("gender", "people").unique().iter_rows())
        cells = []
        for world in worlds:
            length = world.read("pmi", "pmi").filter(pos=pos)["list_length"][0]
            counts = true_cells(world, str(pos), people, length)
            cells.append(counts.select("word", "gender", "expected"))
        added = pl.concat(cells).group_by("word", "gender", maintain_order=True).sum()
        yield added.select("word", "gender", true=pmi_of(added), pos=pl.lit(pos))


def latent_rows(rows: Comparison, world: World) -> None:
    """Compare words and sentiments of the latent-variable model with planted ones.

    Sentiments are compared separately, since the order of words by gender depends neither on
    sentiments nor on the posterior term or the lexicon.
    """
    latent, shares = world.read("latent", "latent"), world.read("latent", "shares")
    if latent.is_empty():
        return
    for row in world.read("latent", "tilt").to_dicts():
        effect = world.sentiment_effect
        rows.copy("estimate", row, "name", item=f"{row['pos']}: tilt", expected=effect)
    likeliest = _likeliest(latent, shares).join(world.words, on=["pos", "word"])
    agreed = likeliest["likeliest"] == likeliest["sentiment"]
    rows.share("label_agreement", agreed, "word")
    if not world.null:
        words = contrast(world.read("latent", "words"), "pos", "word")
        _compare_contrasts(rows, words.join(world.words, on=["pos", "word"]), "")
        differences = contrast(shares, "pos", "sentiment").join(
            _sentiment_differences(world.words), on=["pos", "sentiment"]
        )
        large = differences.filter(pl.col("true").abs() >= LARGE)
        true, measured = (large[column].to_numpy() for column in ("true", "contrast"))
        unit = "part of speech and sentiment"
        rows.signs(true, measured, unit, item="share of a sentiment")
    fits = world.read("latent", "fits").drop_nulls("kl_word")
    fits = fits.filter(pl.col("posterior") >= HEAVY, pl.col("l1") <= LIGHT)
    if len(fits):
        most = float(fits["kl_word"].to_numpy().max())
        rows.add("divergence", Estimate(most, np.nan, np.nan, len(fits)), "fit")


def _likeliest(table: pl.DataFrame, shares: pl.DataFrame) -> pl.DataFrame:
    """Return each word's most probable sentiment, in the columns pos, word and likeliest.

    The joint probability p(w, s) is the sum over genders of p(g) p(s | g) p(w | s, g), which follow
    from the deviations in the table.
    """
    cell, odds, count = ["pos", "sentiment", "gender"], pl.col("odds"), pl.col("count")
    joint = (
        table.join(shares.select(*cell, share="value"), on=cell)
        .with_columns(odds=pl.col("value").exp() * count.sum().over("pos", "word", "sentiment"))
        .with_columns(p=odds / odds.sum().over(cell) * pl.col("share") * count.sum().over(cell))
        .group_by("pos", "word", "sentiment")
        .agg(pl.col("p").sum())
        .sort("pos", "word", "sentiment")
    )
    likeliest = pl.col("sentiment").get(pl.col("p").arg_max()).alias("likeliest")
    return joint.group_by("pos", "word", maintain_order=True).agg(likeliest)


def _sentiment_differences(words: pl.DataFrame) -> pl.DataFrame:
    """Return the planted p(s | female) - p(s | male) in the columns pos, sentiment and true."""
    frequency, ratio = pl.col("frequency_nats"), pl.col("log_ratio_nats")
    sides = [(frequency + sign * ratio / 2).exp() for sign in (1, -1)]
    female, male = (odds / odds.sum().over("pos") for odds in sides)
    return words.with_columns(true=female - male).group_by("pos", "sentiment").agg(pl.sum("true"))


def supersense_rows(rows: Comparison, world: World) -> None:
    """Compare class differences for words ranked by PMI."""
    table, pmi = world.read("supersenses", "supersenses"), world.read("pmi", "pmi")
    if table.is_empty() or pmi.is_empty():
        return
    null, smoothed = world.null, pmi.filter(reading="smoothed")
    classes = world.read("supersenses", "words").rename({"supersense": "class"})
    table = table.filter(pl.col("supersense").is_in(classes["class"].unique().implode()))
    table = table.filter(first="female", second="male", deviation="pmi")
    true: dict[tuple[str, ...], float] = {}
    keys = ["pos", "words_first", "words_second"]
    for pos, *sizes in table.select(keys).unique(maintain_order=True).iter_rows():
        words = true_pmi(world, smoothed.filter(pos=pos)).filter(pl.col("value") > 0)
        parts = classes.filter(pos=pos).select("word", "class", "share")
        planted = class_differences(words, parts, max(sizes), "female", "male")
        true |= {(pos, name): 0.0 if null else x for name, x in planted.items()}
    compared = with_true(table, true, ("pos", "supersense"))
    expected, measured = (compared[column].to_numpy() for column in ("true", "value"))
    decided = (expected != 0) & (measured != 0)
    key = {"cluster": "class", "item": "pmi"}
    if not null:
        rows.order(expected, measured, **key)
        rows.signs(expected[decided], measured[decided], **key)
    rows.coverage(compared, **key)
    rows.discoveries(compared["p"], "discoveries", **key)
    bonferroni = compared["p_bonferroni"]
    if null:  # with planted effects, only one class in thirty is significant
        rows.share("any_discovery", [any(bonferroni <= LEVEL)], "world", item="pmi")
    else:
        rows.discoveries(bonferroni, "discoveries_bonferroni", **key)


def cluster_rows(rows: Comparison, world: World) -> None:
    """Compare the genders and clusters of words with their planted log-ratios.

    The logit of a word is the product of a prompt's hidden state and the word's embedding, and the
    state of an isolated word is close to that embedding. Therefore words planted for women and men
    are separated; without planted effects, no cluster is associated with a gender.
    """
    words, shares = world.read("clusters", "words"), world.read("clusters", "shares")
    if shares.is_empty():
        return
    women = shares.filter(gender="female")
    keys = ["pos", "reading", "cluster_id"]
    compared = words.filter(group="together")
    compared = compared.join(
        world.words.select("pos", "word", "log_ratio_nats"), on=["pos", "word"]
    )
    compared = compared.join(women.select(*keys, women="value"), on=keys)
    for (reading,), part in women.group_by("reading", maintain_order=True):
        key = {"reading": str(reading)}
        of_reading = compared.filter(reading=reading)
        if not world.null and len(of_reading) >= 4:
            gendered = of_reading.filter(pl.col("gender").is_in(BINARY))
            side = (gendered["gender"] == "female").cast(pl.Float64) * 2 - 1
            rows.signs(gendered["log_ratio_nats"].to_numpy(), side.to_numpy(), "word", **key)
            rows.order(
                of_reading["log_ratio_nats"].to_numpy(),
                of_reading["women"].to_numpy(),
                "word",
                **key,
            )
        _discoveries(rows, part, "cluster", **key)


def lexicon_rows(rows: Comparison, inputs: Inputs) -> None:
    """Compare lexica on texts with planted labels, and on the same texts with permuted labels.

    Since the three labels are equally frequent, the accuracy of any lexicon is 1/3 if labels are
    uninformative, and its macro-F1 is not higher.
    """
    table = read_table(inputs.tables("lexicon_evaluation") / "agreement.parquet")
    if table.is_empty():
        return
    table = table.filter(pl.col("lexicon") != "majority class").drop_nulls("value")
    cluster = "lexicon and measure"
    for language, null in table.select("language", "source").unique().sort(pl.all()).rows():
        planted = null.removesuffix(DEALT)
        if planted == null:
            continue
        for source, world in ((planted, "planted"), (null, "null")):
            rows.at = {"language": language, "model": source, "world": world}
            rows_of_source = table.filter(language=language, source=source)
            _discoveries(rows, rows_of_source, cluster)
            if world == "planted":
                above = rows_of_source["value"] - CHANCE
                rows.signs(
                    np.ones(len(rows_of_source)), above.to_numpy(), cluster, item="above chance"
                )
            else:
                dealt = rows_of_source.filter(measure="accuracy").with_columns(true=CHANCE)
                rows.coverage(dealt, "lexicon", item="accuracy")
