"""The models of the full study of politicians."""

from itertools import product
from pathlib import Path

import polars as pl
import yaml

from plumbline.builders.core.params import section
from plumbline.probes.models.params import Model
from plumbline.probes.politicians.anova import DESIGNS, build
from plumbline.probes.politicians.anova import Params as Anova
from plumbline.probes.stats.linear import estimable

TOP = Path(__file__).parents[2]
FULL = yaml.safe_load((TOP / "params" / "full.yaml").read_text(encoding="utf-8"))
TREE = {name: FULL["models"][name] for name in FULL["assignments"]["associations"]}


def test_anova_of_the_full_study_is_estimable():
    found = {name: Model.model_validate({"revision": "0" * 40} | TREE[name]) for name in TREE}
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
