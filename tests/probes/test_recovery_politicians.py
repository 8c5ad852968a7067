"""Recovery of the study of politicians: what is true follows from what was planted."""

import json

import numpy as np
import polars as pl
import pytest
from recovering import plant, write_tables

from plumbline.probes.core.run_analysis import Inputs
from plumbline.probes.politicians import recovery
from plumbline.probes.politicians.recovery import shares, words

WORDS = [f"w{i:02}" for i in range(24)]
RATIO = np.repeat([2.0, -2.0], 12)
PLANTED = {"word": WORDS, "pos": "ADJ", "frequency_nats": 0.0}


def recovered_clusters(folder, genders, clusters, **world):
    """Return recovery of a world whose words are of a gender and in a cluster, by measure."""
    inputs = Inputs(("m",), {}, folder)
    plant(inputs.weights("m"), PLANTED | {"log_ratio_nats": RATIO, "sentiment": "neutral"}, **world)
    at = {"model": "m", "language": "en", "pos": "ADJ", "reading": "largest"}
    of_words = pl.DataFrame({"word": WORDS, "gender": genders, "cluster_id": clusters})
    of_words = of_words.with_columns(
        group=pl.lit("together"), **{k: pl.lit(v) for k, v in at.items()}
    )
    of_clusters = []
    for cluster in sorted(set(clusters)):
        inside = [g for g, c in zip(genders, clusters, strict=True) if c == cluster]
        for gender in ("male", "female"):
            share = {"value": inside.count(gender) / len(inside), "p": 0.5, "p_bh": 1.0}
            of_clusters.append(at | {"cluster_id": cluster, "gender": gender} | share)
    tables = {"words": of_words, "shares": pl.DataFrame(of_clusters)}
    write_tables(inputs, "clusters", tables, "m")
    return {row["measure"]: row for row in recovery.run(inputs)["clusters"].to_dicts()}


@pytest.mark.parametrize("swapped", [False, True])
def test_clusters_of_planted_words(tmp_path, swapped):
    genders = ["female"] * 12 + ["male"] * 12
    found = recovered_clusters(tmp_path, genders[::-1] if swapped else genders, [0] * 12 + [1] * 12)
    sign, order = found["sign_agreement"], found["rank_correlation"]
    assert sign["value"] == 1 - swapped
    assert order["value"] == pytest.approx(-1 if swapped else 1)
    assert (sign["n"], order["n"], sign["world"]) == (24, 24, "planted")


def test_clusters_of_a_null_world_count_discoveries(tmp_path):
    none = {"word_effect": 0, "supersense_effect": 0}
    found = recovered_clusters(tmp_path, ["male", "female"] * 12, [0] * 12 + [1] * 12, **none)
    assert set(found) == {"discoveries", "discoveries_bh"}
    assert {(r["value"], r["n"], r["world"]) for r in found.values()} == {(0, 2, "null")}


@pytest.mark.parametrize(("nats", "people", "true"), [(12.0, 50, -1.0), (0.0, 400, 0.0)])
def test_sampled_shares(tmp_path, nats, people, true):
    """Positive words go with women by so many nats: all of women's are positive, or a third."""
    kinds = np.repeat(["positive", "negative", "neutral"], 8)
    ratio = nats * np.repeat([1.0, -1.0, 0.0], 8)
    inputs = Inputs(("m",), {}, tmp_path)
    plant(
        inputs.weights("m"), PLANTED | {"log_ratio_nats": ratio, "sentiment": kinds}, name_noise=1.0
    )
    world = recovery.truth(inputs, "m")
    differences = shares.sampled_shares(world, "ADJ", {"male": people, "female": people}, 8, 24, 8)
    # negative words are men's: none of women's largest are, all of men's
    wanted = {"positive": true, "negative": -true, "neutral": 0}
    assert differences == pytest.approx(wanted, abs=1e-9 if nats else 0.1)


SIZES = {"one": "base", "two": "small", "tres": "base", "cuatro": "small"}


@pytest.fixture
def worlds(tmp_path):
    """Four worlds of two languages and two sizes; nothing is planted in the second."""
    inputs = Inputs(tuple(SIZES), {}, tmp_path)
    four = {"word": ["a", "b", "c", "d"], "pos": ["ADJ"] * 4, "sentiment": ["positive"] * 4}
    for name, size in SIZES.items():
        effect = [0.0] * 4 if name == "two" else [2.0, -2.0, 0.0, 0.0]
        language = "en" if name in ("one", "two") else "es"
        truth = four | {"frequency_nats": [0.0] * 4, "log_ratio_nats": effect}
        plant(inputs.weights(name), truth, language=language)
        facts = {"family": "F", "size": size, "control": "positive"}
        folder = tmp_path / "samples/worlds" / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "manifest.json").write_text(json.dumps({"model": facts}), encoding="utf-8")
    return [recovery.truth(inputs, name) for name in SIZES]


def test_pooled_truth_of_a_planted_and_a_neutral_world(worlds):
    lists = pl.DataFrame({"gender": ["male", "female"], "people": 10, "list_length": 1})
    lists = lists.with_columns(pos=pl.lit("ADJ"), language=pl.lit("en"), unit=pl.lit("lemma"))
    for world in worlds[:2]:
        write_tables(world.inputs, "pmi", {"pmi": lists}, world.model)
    pmi = []
    for some in (worlds[:1], worlds[1:2], worlds[:2]):
        (table,) = words.pooled_truth(some, lists)
        pmi.append({(r["word"], r["gender"]): r["true"] for r in table.to_dicts()})
    planted, neutral, both = pmi
    assert list(neutral.values()) == pytest.approx([0] * 8, abs=0.05)
    # half of the lists say nothing of gender
    assert 0 < both["a", "female"] < planted["a", "female"]
    assert 0 > both["a", "male"] > planted["a", "male"]
    assert both["c", "male"] == pytest.approx(0, abs=0.05)


def test_fitted_is_the_planted_design(worlds):
    """20 points, 5 more of small models, 30 less in Spanish: the same whatever is the reference."""
    response = [20.0, 25.0, -10.0, -5.0]
    columns = ["factor", "level", "reference"]
    rows = [("intercept", "", ""), ("size", "small", "base"), ("language", "es", "en")]
    part = pl.DataFrame([*rows, ("family", "F", "F")], schema=columns, orient="row")
    found = shares.fitted(worlds, response, part).to_list()
    assert found[:3] == pytest.approx([20, 5, -30])
    assert found[3] is None
    rows = [("intercept", "", ""), ("size", "base", "small"), ("language", "en", "es")]
    part = pl.DataFrame(rows, schema=columns, orient="row")
    assert shares.fitted(worlds, response, part).to_list() == pytest.approx([-5, -5, 30])
