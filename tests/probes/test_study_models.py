"""The models of the studies: of politicians those of the full study, of others their lists."""

from itertools import product
from pathlib import Path

import polars as pl
import yaml

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
LEANING = yaml.safe_load((PAGES / "leaning-models.yaml").read_text(encoding="utf-8"))["models"]


def commits(entries):
    return {m["id"]: m["revision"] for m in entries.values() if "revision" in m}


def read(entries, **default):
    return {name: Model.model_validate(default | entry) for name, entry in entries.items()}


def filled(entries=TREE):
    return read(entries, revision="0" * 40)


def test_anova_of_the_full_study_is_estimable():
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


def test_stereotypes_models():
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


def test_leaning_models():
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
