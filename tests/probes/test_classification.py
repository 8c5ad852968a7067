"""The probes classification and perplexity, put to the models of a planted world."""

import shutil
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import yaml
from passports import CONFIG, EACH, datasets

from builders.lib.problem import Problem
from probes.models.load import load
from probes.models.weights import bring
from probes.outputs import probe
from probes.shards import Task

TOP = Path(__file__).parents[2]
LITTLE = {"targets": [CONFIG], "noise": 0.02, "batch": 96, "steps": 120, "learning_rate": 0.008}
WORLDS = {
    "planted": {"kind": "classifier", "nations": LITTLE | {"seed": 1, "offset": 0.2}},
    "masked": {"nations": LITTLE | {"seed": 1, "offset": 1.5}},
}
SIZES = {"countries": ("aa", "bb", "cc"), "sentences": 12, "draws": 3, "placebos": 2}


@pytest.fixture(scope="module")
def asked(tmp_path_factory):
    """Return a folder in which both worlds were trained and asked; only to be read."""
    folder = tmp_path_factory.mktemp("asked")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        (folder / "docs").symlink_to(TOP / "docs")
        (folder / "data").mkdir()
        datasets(folder / "data", **SIZES)
        tree = yaml.safe_load((TOP / "params.yaml").read_text(encoding="utf-8"))
        tree["models"] = {
            name: entry | {"dtype": "float64", "languages": ["en"]}
            for name, entry in WORLDS.items()
        }
        tree["probes"]["perplexity"]["readings"] = ["corrected"]
        Path("params.yaml").write_text(yaml.safe_dump(tree))
        for name in WORLDS:
            bring(name)
        probe("classification", "planted")
        probe("perplexity", "masked")
    return folder


@pytest.fixture
def there(asked, monkeypatch):
    monkeypatch.chdir(asked)
    return asked


def rows():
    return pl.read_parquet(f"data/datasets/counterfactuals/{CONFIG}.parquet")


def classified():
    return pl.read_parquet(f"data/outputs/classification/planted/{CONFIG}/*.parquet")


def scored():
    return pl.read_parquet(f"data/outputs/perplexity/masked/{CONFIG}/*.parquet")


def test_identical_texts_are_classified_once(there):
    found = classified()
    assert len(rows()) > rows()["text"].n_unique()
    assert found["text"].n_unique() == rows()["text"].n_unique()
    assert len(found) == 3 * found["text"].n_unique()


def test_probabilities_of_a_text_add_up_to_one_and_are_the_models_own(there):
    found = classified()
    sums = found.group_by("text").agg(pl.col("logprob_nats").exp().sum())["logprob_nats"]
    assert np.abs(sums.to_numpy() - 1).max() < 1e-5
    texts = found["text"].unique(maintain_order=True).to_list()[:5]
    for each in load("planted").classify(texts):
        own = found.filter(pl.col("text") == each.text)
        assert own["class"].to_list() == ["negative", "neutral", "positive"]
        assert own["logprob_nats"].to_list() == list(each.logprobs_nats)
        assert own["logprob_nats"].exp().to_list() == pytest.approx(each.probabilities, abs=2e-6)


def test_pieces_has_the_names_that_may_be_used(there):
    found = pl.read_parquet("data/outputs/classification/planted/pieces/*.parquet")
    assert len(found) == 3 * 3 * (EACH - 1)  # the last of each kind is flagged
    assert set(found["tokens"]) == {1}  # the world's tokenizer knows all names


def test_pieces_are_counted_behind_another_word(there):
    scorer = load("planted")
    words = ["again", "zzz"]
    whole = scorer.tokens.encode([f"a {w}" for w in words], special=False)
    assert scorer.lengths(words) == [len(ids) - 1 for ids in whole]
    assert scorer.lengths(["zzz"]) > scorer.lengths(["again"])


def test_perplexity_is_of_originals_and_the_wanted_readings(there):
    wanted = rows().filter(pl.col("reading").is_in([0, 2]))["text"].unique()
    assert set(scored()["text"]) == set(wanted)
    assert set(scored()["text"]) < set(rows()["text"])


def test_sums_are_the_engines_log_likelihoods(there):
    found = scored().sort("text").head(4)
    scorer = load("masked")
    for column, method in (("sum_original_nats", "original"), ("sum_l2r_nats", "within_word_l2r")):
        each = list(scorer.pseudo_logprobs(found["text"].to_list(), method))
        assert found[column].to_list() == pytest.approx([s.logprob_nats for s in each], abs=1e-6)
        assert found["tokens"].to_list() == [s.tokens for s in each]


def test_the_planted_offsets_are_in_what_the_models_say(there):
    known = pl.read_parquet("data/models/planted/texts.parquet")
    wide = (
        classified()
        .with_columns(pl.col("logprob_nats").exp())
        .pivot(on="class", index="text", values="logprob_nats")
    )
    both = wide.join(known, on="text").with_columns(d=pl.col("positive") - pl.col("negative"))
    assert both.select(pl.corr("d", "planted")).item() > 0.98
    assert both.select((pl.col("d") - pl.col("planted")).abs().mean()).item() < 0.02


def test_worlds_of_one_seed_have_their_countries_in_one_order(there):
    both = [pl.read_parquet(f"data/models/{name}/planted.parquet") for name in WORLDS]
    assert [sorted(each["offset"].to_list()) for each in both] == [[-0.2, 0, 0.2], [-1.5, 0, 1.5]]
    orders = [each.sort("offset")["country"].to_list() for each in both]
    assert orders[0] == orders[1]


def test_the_same_world_has_the_same_bytes(there):
    before = Path("data/models/planted/model.json").read_bytes()
    kept = Path("data/models/kept")
    shutil.copytree("data/models/planted", kept)
    try:
        bring("planted")
        assert Path("data/models/planted/model.json").read_bytes() == before
    finally:
        shutil.rmtree("data/models/planted")
        kept.rename("data/models/planted")


def test_a_masked_model_cannot_classify_and_a_classifier_has_no_perplexity(there):
    with pytest.raises(Problem, match="cannot be asked to classify"):
        Task("classification", "masked")
    with pytest.raises(Problem, match="cannot be asked to pseudo_logprobs"):
        Task("perplexity", "planted")


def test_a_config_that_is_not_there_is_told(there, monkeypatch, tmp_path):
    tree = yaml.safe_load(Path("params.yaml").read_text())
    tree["probes"]["classification"]["targets"] = ["hate-en"]
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(tree))
    (tmp_path / "data").symlink_to(there / "data")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(Problem, match=rf"hate-en not in counterfactuals; there are {CONFIG}"):
        Task("classification", "planted").shards()
