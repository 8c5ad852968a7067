"""Scores of the responses in the five studies, and the facets of each response.

A score is the simplest component of a study's measure. Invalid responses (refusals, unclear
responses, responses without a word in the lexicon) have a null score.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from plumbline.probes.leaning.choices import choice, refused
from plumbline.probes.leaning.scoring import OPTIONS, STANCES
from plumbline.probes.prompts.opinions import METHODS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from plumbline.probes.core.run_analysis import Inputs

FACETS = ("statement", "template", "order", "seed")
WHERE = ("measure", "scale", "language", "model", "respondent")
COLUMNS = (*WHERE, *FACETS, "score")
BEST = 20  # number of top-ranked completions of a prompt that are scored
CORRECTED = 2  # code of the corrected variant in the dataset `counterfactuals`


def scores(probe: str, inputs: Inputs) -> pl.DataFrame:
    """Return the scores of all models with outputs of a probe, in the columns :data:`COLUMNS`.

    All columns but the score contain text, or "" for a facet that the probe does not record.
    ``respondent`` is "" for the pretrained model, and otherwise the name of a trained checkpoint.
    Missing files are skipped.
    """
    folder = inputs.data / "outputs" / probe
    names = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
    parts = [
        table.with_columns(model=pl.lit(name))
        for name in names
        if not name.startswith(".")
        for table in READ[probe](folder / name, inputs)
    ]
    if not parts:
        return pl.DataFrame(schema=dict.fromkeys(COLUMNS[:-1], pl.String) | {"score": pl.Float64})
    table = pl.concat(parts, how="diagonal_relaxed")
    missing = [pl.lit("").alias(name) for name in COLUMNS if name not in table.columns]
    text = pl.col(COLUMNS[:-1]).cast(pl.String).fill_null("")
    finite = pl.col("score").cast(pl.Float64).fill_nan(None)
    return table.with_columns(missing).select(text, finite).sort(COLUMNS[:-1])


def _configs(folder: Path, *but: str) -> Iterator[tuple[str, pl.DataFrame]]:
    for path in sorted(folder.iterdir()):
        if path.is_dir() and path.name not in but and any(path.glob("*.parquet")):
            yield path.name, pl.read_parquet(path / "*.parquet")


def _associations(folder: Path, inputs: Inputs) -> Iterator[pl.DataFrame]:
    """Yield the mean sentiment of the words that are generated for a name in each template."""
    for language, rows in _configs(folder, "coverage"):
        lexicon = inputs.datasets["lexica"] / f"{language}.parquet"
        if lexicon.is_file():
            words = pl.read_parquet(lexicon, columns=["word", "score"])
            table = _sentiment(
                rows, pl.col("lemma"), words, "pos", statement="qid", template="frame"
            )
            scales = {"ADJ": "adjectives", "VERB": "verbs"}
            scale = pl.col("pos").replace_strict(scales, default="words")
            yield table.with_columns(scale=scale, language=pl.lit(language))


def _completions(folder: Path, inputs: Inputs) -> Iterator[pl.DataFrame]:
    """Yield the share of positive minus that of negative words among each prompt's top words."""
    for language, rows in _configs(folder, "vocabulary"):
        lexicon = inputs.datasets["emotions"] / f"{language}.parquet"
        if lexicon.is_file():
            words = pl.read_parquet(lexicon).select(
                pl.col("word").str.to_lowercase(),
                score=pl.col("positive").cast(pl.Int64) - pl.col("negative").cast(pl.Int64),
            )
            best, word = rows.filter(pl.col("rank") <= BEST), pl.col("word").str.to_lowercase()
            table = _sentiment(best, word, words, "template", statement="group")
            yield table.with_columns(language=pl.lit(language))


def _sentiment(
    rows: pl.DataFrame, word: pl.Expr, lexicon: pl.DataFrame, *by: str, **renamed: Any
) -> pl.DataFrame:
    """Return the mean lexicon score of the words, grouped by the given columns."""
    scores = lexicon.group_by("word").agg(pl.col("score").mean())
    joined = rows.join(scores, left_on=word, right_on="word", how="left")
    means = joined.group_by(*by, **renamed).agg(pl.col("score").mean())
    return means.with_columns(measure=pl.lit("sentiment"))


def _statements(inputs: Inputs) -> pl.DataFrame:
    """Return the scale of each statement, and its sign: -1 for reversed statements, else 1."""
    folder = inputs.datasets["statements"]
    tables = [
        pl.read_parquet(path).select(
            "id",
            questionnaire=pl.lit(path.stem),
            language="language",
            scale=pl.concat_str("scale", "axis", separator=" ").str.strip_chars(),
            sign=pl.when("reversed").then(-1.0).otherwise(1.0),
        )
        for path in sorted(folder.glob("*.parquet"))
        if path.stem != "rejects"
    ]
    return pl.concat(tables).unique(maintain_order=True)


def _keyed(rows: pl.DataFrame, inputs: Inputs) -> pl.DataFrame:
    """Return scores in the direction of the axis; those of reversed statements are negated."""
    statements = _statements(inputs)
    joined = rows.drop("scale", strict=False).join(statements, on=["questionnaire", "id"])
    score = pl.col("score") * pl.col("sign")
    return joined.with_columns(score=score, statement=pl.col("id"), template=pl.col("frame"))


def _agreement(folder: Path, inputs: Inputs) -> Iterator[pl.DataFrame]:
    """Yield log-odds of agreement by the preferred method, averaged over genders."""
    for _, rows in _configs(folder):
        plain = rows.filter(form="plain", method=max(rows["method"], key=METHODS.index))
        odds = (pl.col("agree_nats") - pl.col("disagree_nats")).mean()
        table = plain.group_by("questionnaire", "id", "frame").agg(score=odds)
        yield _keyed(table, inputs).with_columns(measure=pl.lit("agreement"))


def _stances(folder: Path, inputs: Inputs) -> Iterator[pl.DataFrame]:
    """Yield stances: log-odds at the mask, probability differences, or options from -1 to 1."""
    state = pl.concat_str("corpus", "period", "share", "pretraining_seed", "epoch", separator=" ")
    for config, rows in _configs(folder):
        plain = rows.filter(form="plain", variant="")
        if config == "mask":
            score = pl.col("agree_nats") - pl.col("disagree_nats")
        elif config == "generation":
            stance = pl.col("entailed_nats").exp() - pl.col("contradicted_nats").exp()
            empty = pl.col("response").str.strip_chars() == ""
            no = [refused(*pair) for pair in plain.select("response", "text").rows()]
            lost = empty | pl.Series(no, dtype=pl.Boolean)
            score = pl.when(lost).then(None).otherwise(stance)
        else:
            responses = plain.select("response", "options", "text").rows()
            named = [_named(text, tuple(options), prompt) for text, options, prompt in responses]
            score = pl.lit(pl.Series("score", named, dtype=pl.Float64))
        respondent = pl.when(pl.col("corpus") != "").then(state).otherwise(pl.lit(""))
        plain = plain.with_columns(score=score, respondent=respondent)
        yield _keyed(plain, inputs).with_columns(measure=pl.lit(config.replace("_", " ")))


def _named(text: str, offered: tuple[str, ...], prompt: str) -> float | None:
    """Return the stance of the option that a response names, or None if it names none."""
    options = [option.strip().casefold() for option in offered] or list(OPTIONS)
    index = choice(text, options, prompt, numbered=bool(offered)).option
    return None if index is None else STANCES[OPTIONS.index(options[index])]


def _classification(folder: Path, inputs: Inputs) -> Iterator[pl.DataFrame]:
    """Yield the log-odds of one class (positive, else the last) for counterfactual texts."""
    for config, rows in _configs(folder, "pieces"):
        file = inputs.datasets["counterfactuals"] / f"{config}.parquet"
        if file.is_file():
            classes = sorted(set(rows["class"]))
            label = "positive" if "positive" in classes else classes[-1]
            odds = pl.col("logprob_nats") - (1 - pl.col("logprob_nats").exp()).log()
            own_odds = rows.filter(pl.col("class") == label).select("text", score=odds)
            texts = pl.read_parquet(file).filter(pl.col("reading") == CORRECTED)
            table = texts.join(own_odds, on="text", how="left").select(
                "score", statement="target", template="country", seed="draw"
            )
            measure = pl.lit(f"log-odds of {label}")
            yield table.with_columns(measure=measure, scale=pl.lit(config))


READ: dict[str, Callable[[Path, Inputs], Iterator[pl.DataFrame]]] = {
    "associations": _associations,
    "completions": _completions,
    "agreement": _agreement,
    "stances": _stances,
    "classification": _classification,
}
