"""The models of the studies: of politicians those of the full study, of others their lists."""

from itertools import product
from pathlib import Path

import polars as pl
import pytest
import yaml
from pydantic import ValidationError

from plumbline.builders.core.params import section
from plumbline.probes.models.params import NAME, Model
from plumbline.probes.politicians.anova import DESIGNS, build
from plumbline.probes.politicians.anova import Params as Anova
from plumbline.probes.stats.linear import estimable

TOP = Path(__file__).parents[2]
PAGES = TOP / "docs" / "studies"
FULL = yaml.safe_load((TOP / "params" / "full.yaml").read_text(encoding="utf-8"))
TREE = {name: FULL["models"][name] for name in FULL["assignments"]["associations"]}
GROUPS = yaml.safe_load((PAGES / "stereotypes-models.yaml").read_text(encoding="utf-8"))
VALUES = yaml.safe_load((PAGES / "values-models.yaml").read_text(encoding="utf-8"))
LEANING = yaml.safe_load((PAGES / "leaning-models.yaml").read_text(encoding="utf-8"))["models"]
NAMES = yaml.safe_load((PAGES / "nationality-models.yaml").read_text(encoding="utf-8"))
MISSING = [name for name, entry in TREE.items() if "revision" not in entry]


def commits(entries):
    return {m["id"]: m["revision"] for m in entries.values() if "revision" in m}


KNOWN = commits(GROUPS["models"]) | commits(TREE)  # of other studies


def read(entries, **default):
    return {name: Model.model_validate(default | entry) for name, entry in entries.items()}


def filled(entries=TREE):
    return read(entries, revision="0" * 40)


def test_they_are_models_once_each_has_a_revision():
    found = filled()
    assert len(found) == 17
    assert all(NAME.fullmatch(name) for name in found)
    sizes = {(m.family, m.size) for m in found.values()}
    assert len(sizes) == 16  # m-BERT is there cased and uncased
    assert None not in {value for pair in sizes for value in pair}


def test_no_two_have_one_id_or_commit():
    assert len({entry["id"] for entry in TREE.values()}) == 17
    assert len(set(commits(TREE).values())) == len(commits(TREE)) == 17 - len(MISSING)


@pytest.mark.parametrize("name", MISSING)
def test_without_a_revision_one_is_told_where_to_look(name):
    entry = TREE[name]
    with pytest.raises(ValidationError, match=rf"huggingface\.co/{entry['id']}/commits/main"):
        Model.model_validate(entry)


def test_they_tell_all_coefficients_of_the_analysis_apart():
    found = filled()
    rows = [
        {"model": name, "family": m.family, "size": m.size, "language": language}
        for name, m in found.items()
        for language in {*m.languages} - {"cs"}  # for another study
    ]
    table = pl.DataFrame(rows)
    references = section("analysis.anova", Anova).references
    many = pl.col("language").n_unique().over("model") > 1
    english = build(table.filter(~many), DESIGNS["two-way"], references["two-way"])
    assert english.levels["size"] == ("base", "large", "xlarge", "xxlarge")
    assert english.levels["family"] == ("ALBERT", "BERT", "BERTweet", "RoBERTa", "XLNet")
    several = table.filter(many)
    assert set(several["family"]) == {"m-BERT", "XLM", "XLM-R"}
    assert set(several["language"]) == {"ar", "zh", "en", "fr", "hi", "ru", "es"}
    three = build(several, DESIGNS["three-way"], references["three-way"])
    assert (three.levels["family"][0], three.levels["language"][0]) == ("m-BERT", "ar")
    for design, n in ((english, 11), (three, 6 * 7)):
        assert len(design.matrix) == n
        assert estimable(design.matrix).all()
    pairs = list(product(("XLM", "XLM-R"), ("base", "large")))
    assert {(r["family"], r["size"]) for r in rows} >= set(pairs)


def test_those_asked_about_social_groups_are_the_nine_of_the_released_code():
    assert set(GROUPS) == {"models"}
    found = read(GROUPS["models"])
    assert {m.id.split("/")[1] for m in found.values()} == {
        *("bert-base-uncased", "bert-large-uncased", "bert-base-multilingual-uncased"),
        *("roberta-base", "roberta-large", "bart-base", "bart-large"),
        *("xlm-roberta-base", "xlm-roberta-large"),
    }
    assert all(NAME.fullmatch(name) for name in found)
    assert {m.kind for m in found.values()} == {"masked"}  # which can be asked and trained
    assert len({m.revision for m in found.values()}) == 9


def test_one_id_has_one_commit_in_both_studies():
    shared = commits(TREE).keys() & commits(GROUPS["models"]).keys()
    assert len(shared) == 5
    assert all(commits(TREE)[name] == commits(GROUPS["models"])[name] for name in shared)


def test_those_asked_for_values_are_the_six_of_the_paper():
    entries = VALUES["models"]
    assert set(entries) == {
        *("robeczech", "czert-b", "fernet-news", "m-bert", "xlm-r-base", "slavic-bert")
    }
    assert commits(entries)
    assert commits(entries).items() <= KNOWN.items()  # no other commit
    for name, entry in entries.items():
        found = Model.model_validate({"revision": "0" * 40} | entry)
        assert NAME.fullmatch(name)
        assert found.kind == "masked"
        assert "cs" in found.languages


def test_each_classifier_of_names_has_its_masked_model():
    found = filled(NAMES["models"])
    assert all(NAME.fullmatch(name) for name in found)
    classifiers = {name for name, m in found.items() if m.kind == "classifier"}
    assert classifiers == set(NAMES["underlying"])
    assert set(NAMES["underlying"].values()) == set(found) - classifiers
    pinned = [entry["revision"] for entry in NAMES["models"].values() if "revision" in entry]
    assert len(set(pinned)) == len(pinned) == 5
    for name, below in NAMES["underlying"].items():
        assert found[name].id.startswith(found[below].id)


def test_those_asked_about_politics_can_be_asked_and_trained_and_one_tells_stances():
    found = filled(LEANING)
    assert all(NAME.fullmatch(name) for name in found)
    kinds = {name: model.kind for name, model in found.items()}
    assert kinds.pop("stance") == "classifier"  # facebook/bart-large-mnli in the paper
    assert found["stance"].id == "facebook/bart-large-mnli"
    causal = {"gpt2", "gpt2-medium", "gpt2-large", "gpt2-xl", "gpt-j", "llama-7b", "alpaca"}
    assert {name for name, kind in kinds.items() if kind == "causal"} == causal
    masked = {name for name, kind in kinds.items() if kind == "masked"}
    assert set(kinds) == causal | masked
    assert len(masked) == 12  # of Table 10
    assert {"roberta-base", "gpt2"} <= set(found)  # the two that the paper trains further
    assert commits(LEANING)
    assert commits(LEANING).items() <= KNOWN.items()  # no other commit
