"""Validation of ``supersenses`` and ``emotions``: what is spoilt is told."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
import yaml

from plumbline.builders.core.build import build
from plumbline.builders.core.errors import Problem
from plumbline.builders.core.parquet import write_table
from plumbline.builders.datasets.emotions import build as emotions
from plumbline.builders.datasets.supersenses import build as supersenses
from plumbline.validation.run import validate


@pytest.fixture
def mine(project):
    for module in (emotions, supersenses):
        build(module.__name__.split(".")[-2], module)
    return project


def spoil(module, change) -> str:
    """Rewrite the English config, validate, and return what is told."""
    name = module.__name__.split(".")[-2]
    path = Path("data/datasets") / name / "en.parquet"
    write_table(change(pl.read_parquet(path)), module.SCHEMA.arrow(), path)
    with pytest.raises(Problem) as caught:
        validate(name)
    return str(caught.value)


def of(lemma, value, column, otherwise):
    return pl.when(pl.col("lemma") == lemma).then(value).otherwise(otherwise).alias(column)


def test_both_are_valid_as_built(mine):
    for name in ("emotions", "supersenses"):
        assert validate(name)["success"]


def test_weights_that_are_no_shares_are_told_with_the_lemma(mine):
    half = of("yawn", pl.lit(0.5), "weight", pl.col("weight"))
    told = spoil(supersenses, lambda frame: frame.with_columns(half))
    assert "weights_sum_to_one" in told
    assert "lemma=yawn" in told


def test_a_lemma_without_a_best_class_and_an_adjective_with_two_are_told(mine):
    none = of("yawn", pl.lit(value=False), "best", pl.col("best"))
    assert "best_has_the_greatest_weight" in spoil(supersenses, lambda f: f.with_columns(none))
    two = of("calm", pl.lit(value=True), "best", pl.col("best"))
    told = spoil(supersenses, lambda f: f.with_columns(two))
    assert "adjective_has_all_classes_and_one_choice" in told


def test_an_adjective_in_a_class_of_verbs_is_told(mine):
    verb = pl.lit(supersenses.CODES["verb.weather"])
    calm = (pl.col("lemma") == "calm") & pl.col("best")
    told = spoil(
        supersenses,
        lambda f: f.with_columns(
            pl.when(calm).then(verb).otherwise(pl.col("supersense")).alias("supersense")
        ),
    )
    assert "classes_of_its_part_of_speech" in told


def test_a_class_or_an_affect_that_lost_its_words_is_told(mine):
    weather = supersenses.CODES["verb.weather"]
    told = spoil(supersenses, lambda f: f.filter(pl.col("supersense") != weather))
    assert "group=verb.weather, lemmas=0" in told
    told = spoil(emotions, lambda f: f.with_columns(joy=pl.lit(value=False)))
    assert "affect=joy, words=0" in told


def test_words_that_are_positive_and_negative_at_once_are_told_beyond_a_share(mine):
    told = spoil(emotions, lambda f: f.with_columns(positive=True, negative=True))
    assert "of_one_sign" in told


def test_judgements_that_differ_between_languages_are_told(mine):
    folder = Path("data/datasets/emotions")
    other = pl.read_parquet(folder / "en.parquet").with_columns(anger=~pl.col("anger"))
    write_table(other, emotions.SCHEMA.arrow(), folder / "es.parquet")
    params = yaml.safe_load(Path("params.yaml").read_text("utf-8"))
    params["validation"]["emotions"]["rows_min"]["es"] = 1
    Path("params.yaml").write_text(yaml.safe_dump(params), "utf-8")
    with pytest.raises(Problem, match="same_judgement_in_all_languages"):
        validate("emotions")
