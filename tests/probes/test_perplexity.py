"""The probe perplexity, put to a masked model of a planted world."""

import polars as pl
import pytest
from passports import CONFIG

from plumbline.probes.models.load import load


def rows():
    return pl.read_parquet(f"data/datasets/counterfactuals/{CONFIG}.parquet")


def scored():
    return pl.read_parquet(f"data/outputs/perplexity/masked/{CONFIG}/*.parquet")


def test_perplexity_is_of_originals_and_the_wanted_readings(nations):
    plain = pl.read_parquet(f"data/datasets/targets/{CONFIG}.parquet")["text"]
    wanted = rows().filter(pl.col("reading").is_in([0, 2]))["text"].unique()
    assert set(plain) - set(rows()["text"])  # texts without a person
    assert set(scored()["text"]) == {*wanted, *plain}
    assert set(rows()["text"]) - set(scored()["text"])


def test_sums_are_the_engines_log_likelihoods(nations):
    found = scored().sort("text").head(4)
    scorer = load("masked")
    for column, method in (("sum_original_nats", "original"), ("sum_l2r_nats", "within_word_l2r")):
        each = list(scorer.pseudo_logprobs(found["text"].to_list(), method))
        assert found[column].to_list() == pytest.approx([s.logprob_nats for s in each], abs=1e-6)
        assert found["tokens"].to_list() == [s.tokens for s in each]
