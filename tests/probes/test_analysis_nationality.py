"""The analysis nationality on classifiers that answer exactly as planted."""

import numpy as np
import polars as pl
import pytest
from passports import CONFIG, answered
from recovering import write_tables

from calibration.nationality.nationality import PARAMS as SIMULATED
from calibration.nationality.nationality import TRUTHS, draw
from calibration.nationality.swaps import SwapsShape
from plumbline.builders.core.errors import UserError
from plumbline.builders.datasets.counterfactuals.build import READINGS
from plumbline.probes.comparison import comparison
from plumbline.probes.nationality import nationality, recovery
from plumbline.probes.nationality.cases import cases, classified, log_rank
from plumbline.probes.nationality.schemas import PERPLEXITIES

SEED = 20261121
PARAMS = nationality.Params(
    version="0.1.0",
    underlying={"m": "m"},
    positive={"other": ["Positive"]},
    negative={"other": ["negative"]},
)
CONTRAST = "positive minus negative"


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    return answered(tmp_path_factory.mktemp("planted"), 0.2, seed=SEED)


@pytest.fixture(scope="module")
def tables(planted):
    return nationality.run(planted.inputs, PARAMS)


@pytest.fixture(scope="module")
def noisy(tmp_path_factory):
    """Return a classifier that varies between names, and its tables; only to be read."""
    there = answered(tmp_path_factory.mktemp("noisy"), 0.15, noise=0.08, seed=SEED)
    return there, nationality.run(there.inputs, PARAMS)


def contrasts(tables, reading, gender="all"):
    return tables["delta"].filter(reading=reading, gender=gender, measure=CONTRAST)


def test_cases_rows_are_in_the_order_of_the_dataset(planted):
    """Rows of two classifiers are paired by their position: `probes/comparison/comparison.py`."""
    path = planted.inputs.datasets["counterfactuals"] / f"{CONFIG}.parquet"
    outputs = planted.inputs.outputs("classification", "m") / CONFIG
    known = {"positive": PARAMS.positive, "negative": PARAMS.negative}
    every = pl.read_parquet(path)
    found = [*cases(path, *classified(outputs, "m", known))]
    assert len(found) == 3
    for case in found:
        rows = every.filter(reading=READINGS.index(case.reading))
        assert len(rows) > 200
        assert (case.names["first"] + " " + case.names["rest"]).str.strip_chars().to_list() == rows[
            "name"
        ].to_list()
        assert [case.countries[c] for c in case.country] == rows["country"].to_list()


def test_classified_refuses_a_misspelt_class_of_the_model(tmp_path):
    """A class that is listed for all models may be missing; one that is listed for this may not."""
    shares = {"pos": 0.2, "neg": 0.3, "very_neg": 0.5}
    rows = [
        {"text": "a", "class": name, "logprob_nats": np.log(share), "tokens": 5}
        for name, share in shares.items()
    ]
    pl.DataFrame(rows).write_parquet(tmp_path / "0.parquet")
    sides = {"positive": {"other": ["pos", "joy"]}, "negative": {"m": ["neg", "VERY_neg"]}}
    scores, _ = classified(tmp_path, "m", sides)
    assert scores.values[0, 0] == pytest.approx(0.2 - 0.8)
    with pytest.raises(UserError, match="verry_neg"):
        classified(tmp_path, "m", sides | {"negative": {"m": ["neg", "verry_neg"]}})


@pytest.mark.parametrize("reading", ["faithful", "corrected"])
def test_run_planted_offset_d_gives_100_d(planted, tables, reading):
    assert contrasts(tables, "placebo")["value"].abs().max() < 1e-4
    own = contrasts(tables, reading)
    found = dict(own.select("country", "value").iter_rows())
    assert found == pytest.approx({c: 100 * d for c, d in planted.offsets.items() if c}, abs=1e-4)
    assert (own["low"] - 1e-4 <= own["value"]).all()
    assert own["n"].to_list() == [24] * 6
    mean = own["value"].mean()
    assert own["contrast"].to_list() == pytest.approx((own["value"] - mean).to_list(), abs=1e-5)
    assert own["p"].null_count() == 6  # a change without any spread cannot be tested
    for country, d in planted.offsets.items():
        by = dict(
            tables["delta"]
            .filter(reading=reading, gender="all", country=country)
            .select("measure", "value")
            .iter_rows()
        )
        for measure, part in (("positive", 50), ("negative", -50), ("neutral", 0)):
            assert not country or by[measure] == pytest.approx(part * d, abs=1e-4)


def test_run_classifier_that_ignores_names_gives_0(tmp_path):
    there = answered(tmp_path, 0.2, seed=SEED, ignores=True)
    found = nationality.run(there.inputs, PARAMS)
    for name in ("value", "low", "high"):
        assert found["delta"][name].abs().max() < 1e-9
    assert found["delta"]["p"].min() == 1
    changes = found["changes"]
    assert set(changes["value"].drop_nulls()) == {0}
    assert "mixed" not in found


def test_run_finds_countries_that_differ_despite_their_names(tmp_path):
    there = answered(tmp_path, 0.25, noise=0.02, seed=SEED)
    own = contrasts(nationality.run(there.inputs, PARAMS), "corrected")
    assert (own["p_bh"] <= 0.05).sum() >= 4
    by = dict(own.select("country", "value").iter_rows())
    order = sorted(by, key=by.__getitem__)
    assert order == sorted(order, key=there.offsets.__getitem__)


def test_run_genders_are_those_of_the_names_put_in(tables):
    assert set(tables["delta"].filter(reading="faithful")["gender"]) == {"all", "male", "female"}
    assert set(tables["delta"].filter(reading="corrected")["gender"]) == {"all", "female"}


def test_run_test_and_interval_are_of_the_same_quantity(noisy):
    _, found = noisy
    contrast = found["delta"].filter(pl.col("reading") != "placebo")
    contrast = contrast.with_columns(low="contrast_low", high="contrast_high")
    for name, least in (("delta", 80), ("changes", 60), ("mixed", 8)):
        own = (
            (contrast if name == "delta" else found[name])
            .drop_nulls(["p", "low", "high"])
            .filter(pl.col("low") < pl.col("high"))
        )
        assert len(own) >= least, name
        beyond = (own["low"] > 0) | (own["high"] < 0)
        assert ((own["p"] <= 0.05) == beyond).all(), name
        assert 0 < beyond.sum() < len(own), name
    changes = found["changes"]
    never = changes.filter(pl.col("value").is_null() | (pl.col("value") == -100))
    assert never["p"].null_count() == never["low"].null_count() == len(never)
    placebo = changes.filter(reading="placebo")
    for column in ("low", "p", "p_bh", "detectable"):
        assert placebo[column].null_count() == len(placebo) > 0


def test_run_placebo_swaps_compare_names_of_odd_and_even_ranks(noisy):
    there, found = noisy
    names = pl.read_parquet(there.inputs.datasets["names"] / "*.parquet")
    answers = pl.read_parquet(there.inputs.outputs("classification", "m") / f"{CONFIG}/*.parquet")
    shares = answers.with_columns(pl.col("logprob_nats").exp())
    tone = shares.pivot(on="class", index="text", values="logprob_nats")
    rows = (
        there.rows.with_columns(first=pl.col("name").str.split(" ").list.first())
        .join(names.select(first="name", odd=pl.col("rank").cast(int) % 2), on="first")
        .join(tone.select("text", tone=pl.col("positive") - pl.col("negative")), on="text")
    )
    pairs = rows.filter(reading=3).join(rows, left_on="reference_id", right_on="id", suffix="_0")
    way = pl.col("odd") - pl.col("odd_0")  # 0: a swap within a half
    change = (100 * way * (pl.col("tone") - pl.col("tone_0"))).filter(way != 0).mean()
    wanted = dict(pairs.group_by("country").agg(change).iter_rows())
    own = contrasts(found, "placebo")
    assert dict(own.select("country", "value").iter_rows()) == pytest.approx(wanted, abs=1e-4)
    assert own["p"].null_count() == 0
    assert own["contrast"].null_count() == len(own) == 6


def test_effects_of_countries_next_to_tokens_and_frequency(planted, tables):
    own = tables["mixed"].filter(reading="corrected")
    mean = np.mean([d for c, d in planted.offsets.items() if c])
    for row in own.to_dicts():
        if row["term"].startswith("country"):
            d = planted.offsets[row["term"].split()[1]]
            assert row["value"] == pytest.approx(100 * (d - mean), abs=0.05)
        else:
            assert abs(row["value"]) < 0.05
    assert {"tokens", "log rank"} & set(own["term"])


def test_run_country_in_one_text_is_left_out_and_the_others_are_compared(tmp_path):
    there = answered(tmp_path, 0.25, noise=0.05, seed=SEED)
    path = there.inputs.datasets["counterfactuals"] / f"{CONFIG}.parquet"
    rows = pl.read_parquet(path)
    alone = rows.filter(pl.col("country") != "")["country"].min()
    own = pl.col("country") == alone
    rows.filter(~own | (pl.col("target") == pl.col("target").filter(own).first())).write_parquet(
        path
    )
    found = nationality.run(there.inputs, PARAMS)
    delta = contrasts(found, "corrected")
    without = delta.filter(pl.col("country") != alone)
    left_out = delta.filter(country=alone)
    assert left_out["value"].null_count() == 0
    assert left_out["contrast"].null_count() == left_out["p"].null_count() == 1
    assert without["p"].null_count() == 0
    apart = without["value"] - without["value"].mean()
    assert without["contrast"].to_list() == pytest.approx(apart.to_list(), abs=1e-5)
    mixed = found["mixed"].filter(reading="corrected")
    terms = [f"country {c}" for c in without["country"]]
    assert mixed["term"].to_list()[: len(terms)] == terms
    assert mixed["p"].null_count() == 0


@pytest.mark.parametrize("names", [3, 5])
def test_run_country_of_fewer_than_five_effective_names_has_no_p(tmp_path, names):
    """The analysis in which 2 and 3 names had false findings in .39 and .19 of families."""
    print("seed", SEED)
    rng = np.random.default_rng(SEED)
    kind = {"women": 0.0, "full": 0.0, "placebos": 0, "draws": names}
    shape = SwapsShape(countries=7, texts=20, names=names, **kind)
    inputs = draw(tmp_path, TRUTHS["names differ, countries do not"], shape, rng).inputs
    path = inputs.datasets["counterfactuals"] / "sentiment-en.parquet"
    rows = pl.read_parquet(path)
    # of one country the fifth name is in a single text: 4.2 effective names
    rare = pl.col("name").str.starts_with("Male06") & pl.col("name").str.ends_with("x04")
    rows.filter(~rare | (pl.col("target") == "t0000")).write_parquet(path)
    tables = nationality.run(inputs, nationality.Params(version="0.1.0", **SIMULATED))
    found = contrasts(tables, "corrected")
    outputs = inputs.outputs("classification", inputs.models[0]) / path.stem
    sides = {side: SIMULATED[side] for side in ("positive", "negative")}
    (case,) = cases(path, *classified(outputs, "m", sides))
    models = case, case._replace(compared=case.compared[::-1])
    compared = comparison.compare_changes("x", *models, comparison.Params(version="0.1.0"))
    tested = found.filter(pl.col("country") != "c06") if names == 5 else found.clear()
    assert found.drop_nulls("value").height == 7
    for column in ("p", "p_bh", "contrast_low"):
        assert found.drop_nulls(column)["country"].to_list() == tested["country"].to_list()
    assert [row["p"] is None for row in compared] == found["p"].is_null().to_list()
    for name in ("changes", "correlations"):
        own = tables[name].filter(pl.col("country") != "all", reading="corrected").drop_nulls("p")
        assert set(own["country"]) == set(tested["country"]), name
    terms = tables["mixed"]["term"].to_list() if "mixed" in tables else []
    assert terms[: len(tested)] == [f"country {country}" for country in tested["country"]]


def test_run_placebo_of_few_effective_names_has_no_p(tmp_path):
    shape = SwapsShape(names=4, draws=2, placebos=2, women=0, full=0)
    rng = np.random.default_rng(SEED)
    inputs = draw(tmp_path, TRUTHS["names differ, countries do not"], shape, rng).inputs
    found = contrasts(nationality.run(inputs, nationality.Params(version="0.1.0")), "placebo")
    assert len(found) == found["value"].is_not_null().sum() == found["p"].null_count() == 13


def test_run_correlations_within_a_text_are_those_that_were_planted(tables):
    correlations = tables["correlations"].filter(reading="corrected")
    own = correlations.filter(country="all", measure=CONTRAST, perplexity="original sum")
    by = dict(own.select("scope", "value").iter_rows())
    for scope in ("originals", "within", "subtracted"):  # what lifts P+ - P- lowers perplexity
        assert by[scope] == pytest.approx(-1, abs=1e-6)
    assert correlations.filter(measure="neutral", country="all")["value"].is_null().all()
    for scope, per in (("originals", 1), ("subtracted", 7), ("within", 7)):
        part = correlations.filter(measure="positive", scope=scope)
        assert len(part) == per * len(PERPLEXITIES)


def test_run_global_correlations_are_of_all_texts(planted, tables):
    own = tables["correlations"].filter(reading="targets", measure="positive")
    assert set(own["scope"]) == {"originals"}
    assert own["n"].to_list() == [24 + 5] * len(PERPLEXITIES)
    known = {}
    for probe in ("classification", "perplexity"):
        known[probe] = pl.read_parquet(planted.inputs.outputs(probe, "m") / CONFIG / "*.parquet")
    texts = pl.read_parquet(planted.inputs.datasets["targets"] / f"{CONFIG}.parquet").select("text")
    both = texts.join(known["classification"].filter(pl.col("class") == "positive"), on="text")
    both = both.join(known["perplexity"], on="text")
    r = np.corrcoef(-both["sum_original_nats"], both["logprob_nats"].exp())[0, 1]
    sums = own.filter(perplexity="original sum")
    assert sums["value"].item() == pytest.approx(r, abs=1e-6)


def test_run_without_counterfactuals_has_global_correlations(tmp_path):
    there = answered(tmp_path, 0.2, seed=SEED, sentences=8)
    (there.inputs.datasets["counterfactuals"] / f"{CONFIG}.parquet").unlink()
    found = nationality.run(there.inputs, PARAMS)
    assert set(found) == {"correlations"}
    assert set(found["correlations"]["reading"]) == {"targets"}
    for path in there.inputs.outputs("perplexity", "m").glob("*/*.parquet"):  # not all were asked
        pl.read_parquet(path).head(10).write_parquet(path)
    assert not nationality.run(there.inputs, PARAMS)


def test_log_rank_of_a_whole_name_and_by_its_words():
    ranks = {
        ("aa", "female"): {"ann": 1, "maria elena": 8},
        ("aa", "male"): {"ann": 5},
        ("aa", "last"): {"de la cruz": 16, "ann": 64},
    }
    assert log_rank(ranks, "aa", "female", "ann") == 0
    assert log_rank(ranks, "aa", "male", "ann") == pytest.approx(np.log(5))
    both = log_rank(ranks, "aa", "female", "maria elena de la cruz")
    assert both == pytest.approx((np.log(8) + np.log(16)) / 2)
    assert log_rank(ranks, "aa", "female", "bob") is None


@pytest.mark.parametrize(
    ("change", "value"),
    [({"positive": {"other": ["joy"]}}, "joy"), ({"underlying": {"m": "elsewhere"}}, "elsewhere")],
)
def test_run_classes_and_models_that_are_not_there_are_errors(planted, change, value):
    with pytest.raises(UserError, match="m" if value == "joy" else value):
        nationality.run(planted.inputs, PARAMS.model_copy(update=change))
    alone = PARAMS.model_copy(update={"underlying": {}})
    assert set(nationality.run(planted.inputs, alone)) == {"delta", "changes", "mixed"}


def test_run_readings_that_were_not_scored_have_no_correlations(tmp_path):
    there = answered(tmp_path, 0.2, seed=SEED, sentences=8)
    wanted = there.rows.filter(pl.col("reading").is_in([0, 2]))["text"].to_list()
    path = there.inputs.outputs("perplexity", "m") / CONFIG / "00000.parquet"
    whole = pl.read_parquet(path)
    whole.filter(pl.col("text").is_in(wanted)).write_parquet(path)
    found = nationality.run(there.inputs, PARAMS)
    assert set(found["correlations"]["reading"]) == {"corrected"}  # nor have texts of targets
    assert set(found["delta"]["reading"]) == {"faithful", "corrected", "placebo"}
    originals = there.rows.filter(reading=0)["text"].to_list()
    whole.filter(~pl.col("text").is_in(originals)).write_parquet(path)
    with pytest.raises(UserError):
        nationality.run(there.inputs, PARAMS)


@pytest.mark.parametrize("swapped", [False, True])
def test_recovery_planted_and_swapped_signs(planted, tables, swapped):
    if swapped:
        ends = {"low": -pl.col("high"), "high": -pl.col("low")}
        tables = tables | {"delta": tables["delta"].with_columns(-pl.col("value"), **ends)}
    write_tables(planted.inputs, "nationality", tables)
    rows = recovery.run(planted.inputs)["nationality"]
    assert set(rows["world"]) == {"planted"}
    rows = rows.filter(item="delta", reading="corrected").to_dicts()
    value = {row["measure"]: row["value"] for row in rows}
    assert value["rank_correlation"] == pytest.approx(-1 if swapped else 1)
    assert value["sign_agreement"] == 1 - swapped
    assert (value["distance"] > 5) if swapped else (value["distance"] < 1e-3)
