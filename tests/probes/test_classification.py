"""The probes classification and perplexity, put to models of planted worlds."""

import numpy as np
import polars as pl
import pytest
from passports import CONFIG, EACH

from plumbline.builders.core.errors import UserError
from plumbline.probes.core.run_probe import Task
from plumbline.probes.models.load import load


def rows():
    return pl.read_parquet(f"data/datasets/counterfactuals/{CONFIG}.parquet")


def classified():
    return pl.read_parquet(f"data/outputs/classification/planted/{CONFIG}/*.parquet")


def scored():
    return pl.read_parquet(f"data/outputs/perplexity/masked/{CONFIG}/*.parquet")


def test_classification_texts(nations):
    found = classified()
    assert len(rows()) > rows()["text"].n_unique()
    plain = pl.read_parquet(f"data/datasets/targets/{CONFIG}.parquet")["text"]
    assert set(found["text"]) == {*rows()["text"], *plain}
    assert len(found) == 3 * found["text"].n_unique()


def test_classification_is_the_models(nations):
    found = classified()
    sums = found.group_by("text").agg(pl.col("logprob_nats").exp().sum())["logprob_nats"]
    assert np.abs(sums.to_numpy() - 1).max() < 1e-5
    texts = found["text"].unique(maintain_order=True).to_list()[:5]
    for each in load("planted").classify(texts):
        own = found.filter(pl.col("text") == each.text)
        assert own["class"].to_list() == ["negative", "neutral", "positive"]
        assert own["logprob_nats"].to_list() == list(each.logprobs_nats)
        assert own["logprob_nats"].exp().to_list() == pytest.approx(each.probabilities, abs=2e-6)


def test_pieces(nations):
    found = pl.read_parquet("data/outputs/classification/planted/pieces/*.parquet")
    assert len(found) == 3 * 3 * (EACH - 1)  # the last of each kind is flagged
    assert set(found["tokens"]) == {1}  # the world's tokenizer knows all names


def test_perplexity_texts(nations):
    plain = pl.read_parquet(f"data/datasets/targets/{CONFIG}.parquet")["text"]
    wanted = rows().filter(pl.col("reading").is_in([0, 2]))["text"].unique()
    assert set(plain) - set(rows()["text"])  # texts without a person
    assert set(scored()["text"]) == {*wanted, *plain}
    assert set(rows()["text"]) - set(scored()["text"])


def test_perplexity_is_the_models(nations):
    found = scored().sort("text").head(4)
    scorer = load("masked")
    for column, method in (("sum_original_nats", "original"), ("sum_l2r_nats", "within_word_l2r")):
        each = list(scorer.pseudo_logprobs(found["text"].to_list(), method))
        assert found[column].to_list() == pytest.approx([s.logprob_nats for s in each], abs=1e-6)
        assert found["tokens"].to_list() == [s.tokens for s in each]


def test_task_rejects_other_kinds(nations):
    with pytest.raises(UserError, match="cannot classify"):
        Task("classification", "masked")
    with pytest.raises(UserError, match="cannot pseudo_logprobs"):
        Task("perplexity", "planted")
