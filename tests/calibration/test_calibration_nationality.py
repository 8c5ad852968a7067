"""Simulated predictions for texts with other names: what is planted, and all tests are told."""

import numpy as np
import polars as pl
import pytest
from scipy.optimize import brentq
from scipy.stats import nct
from scipy.stats import t as student

from calibration.nationality import nationality as simulated
from calibration.tally import tally
from calibration.truth import DECOY, NULL, PLANTED
from plumbline.probes.nationality import cases
from plumbline.probes.nationality import nationality as analysis

pytestmark = pytest.mark.slow

SEED = 20261123
SMALL = simulated.Shape(texts=24, draws=4, placebos=2, names=8)
P = {"delta": ("p",), "changes": ("p",), "mixed": ("p",), "correlations": ("p",)}


def replicate(folder, name, number=0, shape=SMALL):
    rng = np.random.default_rng([SEED, number])
    truth = simulated.TRUTHS[name]
    folder.mkdir(exist_ok=True)
    drawn = simulated.draw(folder, truth, shape, rng)
    params = analysis.Params.model_validate({"version": "0.1.0"} | simulated.PARAMS)
    return analysis.run(drawn.inputs, params), drawn


@pytest.fixture(scope="module")
def null(tmp_path_factory):
    return replicate(tmp_path_factory.mktemp("null"), next(iter(simulated.TRUTHS)))


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    return replicate(tmp_path_factory.mktemp("planted"), "countries planted")


def test_every_p_of_the_tables_is_told(null):
    tables, drawn = null
    found = simulated.outcomes(tables, drawn)
    told = sum(frame["p"].is_not_null().sum() for frame in found.values())
    there = {name for name in tables for c in tables[name].columns if c.split("_")[0] == "p"}
    assert there == {*P}
    assert told == sum(tables[name][c].is_not_null().sum() for name in P for c in P[name])
    ends = sum(frame["low"].is_not_null().sum() for frame in found.values())
    first = tables["perplexities"].filter(perplexity=0)  # others are the same by other units
    others = [tables[name]["low"].is_not_null().sum() for name in P]
    contrasts = tables["delta"]["contrast_low"].is_not_null().sum()
    assert ends == sum(others) + contrasts + len(first)


def test_nothing_is_planted_in_the_null(null):
    tables, drawn = null
    effects = pl.concat(simulated.outcomes(tables, drawn).values())["effect"]
    assert set(effects) == {0.0}


def test_planted_countries_have_their_sign_and_size(planted):
    tables, drawn = planted
    found = simulated.outcomes(tables, drawn)
    for name in ("originals", "others"):
        own = found[f"delta: a country against the {name}"]
        effect, value = own["effect"].to_numpy(), own["value"].to_numpy()
        assert set(np.abs(effect)) == {0.0, 0.5, 1.0, 2.0, 4.0}
        assert (np.sign(value) == np.sign(effect))[np.abs(effect) == 4].all()
        assert np.abs(value - effect).max() < 4
        covered = own.filter(pl.col("target").is_between("low", "high"))
        assert 0.8 < len(covered) / len(own) <= 1


def test_what_is_detectable_of_correlations_is_of_their_z(planted):
    """Where r is high its interval is narrow, and tells too little of what would be found."""
    own = planted[0]["correlations"].drop_nulls(["p", "detectable"])
    own = own.filter(pl.col("p").is_between(0.001, 0.9))
    assert len(own) > 10
    for row in own.to_dicts():
        low, value, high = (np.arctanh(row[name]) for name in ("low", "value", "high"))
        half = (high - low) / 2

        def apart(df, value=value, half=half, p=row["p"]):
            return 2 * student.sf(abs(value) / half * student.isf(0.025, df), df) - p

        df = brentq(apart, 1, 1e5)  # by interval and p, error and degrees of freedom are known
        at = np.arctanh(row["detectable"]) / half * student.isf(0.025, df)
        assert nct.sf(student.isf(0.025, df), df, at) == pytest.approx(0.8, abs=3e-3)
    assert own["value"].abs().max() > 0.4


def test_outputs_that_are_swapped_are_seen(tmp_path):
    """Positive for negative in the outputs of the probe: the planted signs turn round."""
    name = "countries planted"
    rng = np.random.default_rng([SEED, 3])
    drawn = simulated.draw(tmp_path, simulated.TRUTHS[name], SMALL, rng)
    path = drawn.inputs.outputs("classification", "m") / "sentiment-en/00000.parquet"
    other = {"positive": "negative", "negative": "positive"}
    told = pl.read_parquet(path).with_columns(pl.col("class").replace(other))
    told.write_parquet(path)
    params = analysis.Params.model_validate({"version": "0.1.0"} | simulated.PARAMS)
    own = simulated.outcomes(analysis.run(drawn.inputs, params), drawn)
    counts = tally(own["delta: a country against the others"]).filter(pl.col("effect") > 0)
    assert counts["wrong_sign"].sum() == counts["p05"].sum() > 10


def test_probabilities_are_possible_and_texts_are_each_told_once(null):
    _, drawn = null
    path = drawn.inputs.outputs("classification", "m") / "sentiment-en/00000.parquet"
    told = pl.read_parquet(path).with_columns(pl.col("logprob_nats").exp())
    shares = told.pivot(on="class", index="text", values="logprob_nats")
    np.testing.assert_allclose(shares.drop("text").sum_horizontal(), 1)
    rows = pl.read_parquet(drawn.inputs.datasets["counterfactuals"] / "sentiment-en.parquet")
    assert set(rows["text"]) == set(shares["text"])
    assert rows["id"].is_unique().all()
    assert set(rows["reference_id"]) - {""} <= set(rows["id"])


def test_names_of_two_countries_are_the_same_and_mean_half_of_each(tmp_path):
    shape = SMALL.model_copy(update={"shared": 0.25})
    tables, drawn = replicate(tmp_path, "countries planted", shape=shape)
    folder = drawn.inputs.datasets["names"]
    names = {path.stem: set(pl.read_parquet(path)["name"]) for path in folder.glob("*.parquet")}
    assert len(names["c00"] & names["c01"]) == 3 * 8 / 4  # of three kinds
    assert not (names["c00"] | names["c01"]) & names["c02"]
    shifts = dict(drawn.known[0].select("country", "shift").iter_rows())
    # of .2 and -.2 units of 5 points: three quarters are names of one country alone
    assert (shifts["c00"], shifts["c01"], shifts["c12"]) == pytest.approx((0.75, -0.75, 0))
    own = simulated.outcomes(tables, drawn)["delta: a country against the others"]
    assert np.abs(own["value"] - own["effect"]).max() < 4


@pytest.mark.parametrize(("celebrity", "alike"), [(0.0, False), (1.0, True)])
def test_originals_about_one_person_have_one_name(tmp_path, celebrity, alike):
    """Where only names move predictions, a name changes all texts about one person alike."""
    only_names = {"sd_text": 0.0, "sd_rest": 0.0, "celebrity": celebrity}
    rng = np.random.default_rng(SEED)
    truth = next(iter(simulated.TRUTHS.values()))
    drawn = simulated.draw(tmp_path, truth, SMALL.model_copy(update=only_names), rng)
    rows = drawn.inputs.datasets["counterfactuals"] / "sentiment-en.parquet"
    outputs = drawn.inputs.outputs("classification", "m") / "sentiment-en"
    corrected = next(
        case
        for case in cases.cases(rows, *cases.classified(outputs, "m", simulated.PARAMS))
        if case.reading == "corrected"
    )
    changes = corrected.names.select("first", "rest").with_columns(
        change=corrected.change[:, 0].round(9)
    )
    assert (changes.unique().select("first", "rest").is_unique().all()) == alike


def test_each_kind_of_truth_is_there_and_changes_what_it_says():
    kinds = {truth.kind for truth in simulated.TRUTHS.values()}
    assert kinds == {NULL, PLANTED, DECOY}
    for truth in simulated.TRUTHS.values():
        of = simulated.planted(truth, SMALL)
        assert (truth.kind == PLANTED) == bool(of.shift.any())
        moved = (of.vary != 1).any() or of.rare.any() or of.per_token or np.ptp(of.long)
        assert (truth.kind == DECOY) == bool(moved)
        assert of.shift.sum() == pytest.approx(0)


def test_few_of_the_tests_find_something_where_nothing_is(tmp_path):
    """Five worlds: some of the tests find something, as tests of the right size do."""
    found = []
    for number in range(5):
        tables, _ = replicate(tmp_path / str(number), next(iter(simulated.TRUTHS)), number)
        own = tables["delta"].filter(pl.col("gender") == 0, pl.col("reading") == 1)
        found += [*own["p"].to_list()]
    share = np.mean(np.array(found) <= 0.05)
    assert 0 < share <= 0.1
