"""The simulations of all analyses: every test is counted, and what is stated as true is true."""

import numpy as np
import polars as pl
import pytest

from calibration.calibrate import analysis_of, replicate, simulated_analyses, simulation_of
from calibration.leaning import classified, compass, fairness
from calibration.nationality import nationality
from calibration.politicians import lists, pmi
from calibration.reliability import reliability
from calibration.stereotypes import completions
from calibration.values import values
from plumbline.probes.leaning.ensemble import ITSELF

pytestmark = pytest.mark.slow

SEED = 17
ELSEWHERE = {("fairness", "overall")}  # tested where classifiers guess
TESTED = {  # rows that have a null here: an intercept has none, nor a class exact by itself
    "anova": pl.col("factor") != "intercept",
    "ensemble": pl.col("baseline") != ITSELF,  # is tested where luck alone differs
    "lexicon_evaluation": pl.col("lexicon") != "majority class",
}


def truth_of(analysis, kind):
    """Return the name of the first truth of a kind; None if there is none."""
    truths = simulation_of(analysis).TRUTHS.items()
    return next((name for name, truth in truths if truth.kind == kind), None)


def simulate(analysis, truth, seed=SEED):
    """Return the tables and the rows of each test of one replicate of the first shape."""
    shape = next(iter(simulation_of(analysis).SHAPES))
    return replicate(analysis, shape, truth, np.random.default_rng(seed), 1)


@pytest.mark.parametrize("analysis", simulated_analyses())
def test_simulations_of_a_null_count_every_p(analysis):
    tables, found = simulate(analysis, truth_of(analysis, "null"))
    counted = pl.concat(found.values())["p"].drop_nulls().implode()
    for name, table in tables.items():
        if "p" in table.columns and (analysis, name) not in ELSEWHERE:
            rows = table.filter(TESTED[analysis]) if analysis in TESTED else table
            assert rows.drop_nulls("p").filter(~pl.col("p").is_in(counted)).is_empty(), name
    for test, rows in found.items():
        if not test.startswith("consistency") and not test.endswith("equivalence"):
            assert set(rows.drop_nulls(["effect", "p"])["effect"]) <= {0.0}, test


PLANTING = [name for name in simulated_analyses() if truth_of(name, "planted")]


@pytest.mark.parametrize("analysis", PLANTING)
def test_intervals_cover_what_is_planted(analysis):
    _, found = simulate(analysis, truth_of(analysis, "planted"))
    rows = pl.concat(found.values()).drop_nulls(["effect", "target", "value", "low", "high"])
    assert len(rows) > 5
    covered = rows["target"].is_between(rows["low"], rows["high"]).mean()
    assert covered > 0.8


def test_trainings_on_longer_articles_are_not_tested():
    tables, _ = simulate("shift", "the articles of one outlet are longer")
    assert set(tables["shifts"].drop_nulls("p")["corpus"]) == {"post", "wire"}


def test_expected_lists_have_the_shares_of_draws():
    shape = lists.ListsShape(words=30, length=6, men=2, women=2)
    truth = pmi.TRUTHS["words planted"]
    population = lists.population(shape, truth, 0)
    rng = np.random.default_rng(SEED)
    expected = lists.expected(shape, truth, 0)
    for column, woman in enumerate((False, True)):
        women = np.full(40_000, woman)
        origin = lists.origins(population, women, rng)
        utility = lists.utilities(population, origin, women - 0.5)
        drawn = lists.best(utility, shape.length, rng)
        seen = np.bincount(drawn.ravel(), minlength=shape.words) / 40_000
        assert np.abs(seen - expected[:, column]).max() < 0.02
    assert expected.sum(axis=0) == pytest.approx([6, 6, 6])


def test_coordinates_are_where_the_truth_has_them(tmp_path):
    shape = compass.Shape(pairs=60, trainings=6, prompts=5, uneven=0.0, training=0.05)
    truth, rng = compass.TRUTHS["corpora"], np.random.default_rng(SEED)
    drawn = compass.draw(tmp_path, truth, shape, rng)
    _, run, params = analysis_of("compass")
    params = type(params).model_validate(params.model_dump() | compass.PARAMS)
    table = run(drawn.inputs, params)["coordinates"]
    true = compass.truth_of(drawn.known, "continuous").rename({"here": "target"})
    both = table.join(true, on=["corpus", "axis"]).filter(pl.col("unit").is_not_null())
    apart = (both["value"] - both["target"]).abs()
    assert apart.min() < 3


def test_classifiers_are_right_as_often_as_the_truth_has_it(tmp_path):
    shape = fairness.Shape(words=3000, each=1, pretraining=2)
    rng = np.random.default_rng(SEED)
    drawn = fairness.draw(tmp_path, fairness.TRUTHS["corpora"], shape, rng)
    path = drawn.inputs.outputs("finetuned_classifiers", "m") / "planted/*.parquet"
    rows = pl.read_parquet(path).filter(pl.col("class") == classified.POSITIVE)
    positive = pl.col("label") == classified.POSITIVE
    right = ((pl.col("logprob_nats").exp() > 0.5) == positive).mean()
    both = rows.group_by("corpus", "group").agg(value=right)
    both = both.join(fairness.truth_of(drawn), on=["corpus", "group"])
    assert len(both) == 12
    assert (both["value"] - both["these"]).abs().max() < 0.02


@pytest.mark.parametrize("truth", ["gender at the margin", "values differ", "women agree"])
def test_ratings_of_many_statements_are_as_the_truth_has_them(truth, monkeypatch):
    many = values.Shape(pairs=80, single=80, neutral=900, people=900)
    monkeypatch.setattr(values, "SHAPES", {"many": many})
    _, found = simulate("values", truth, seed=5)
    # seeds differ: of gender one in five has a deviation beyond .06 by chance
    near = {"values": 0.2, "gender": 0.06, "consistency": 0.15, "respondents": 0.12}
    for name, table in found.items():
        if not name.startswith("baselines"):
            rows = table.drop_nulls(["target", "value"])
            least = near.get(name.split(",")[0].split(":")[0], 0.1)
            assert ((rows["value"] - rows["target"]).abs() < least).all(), name


def test_shared_names_have_half_of_the_effect_of_each_country(tmp_path):
    shape = nationality.Shape(texts=24, names=8, shared=0.25)
    truth = nationality.TRUTHS["countries planted"]
    drawn = nationality.draw(tmp_path, truth, shape, np.random.default_rng(SEED))
    folder = drawn.inputs.datasets["names"]
    names = {path.stem: set(pl.read_parquet(path)["name"]) for path in folder.glob("*.parquet")}
    assert len(names["c00"] & names["c01"]) == 3 * 8 / 4  # of three kinds
    assert not (names["c00"] | names["c01"]) & names["c02"]
    shifts = dict(drawn.known.select("country", "shift").iter_rows())
    # .2 and -.2 units of 5 points: three quarters are names of one country alone
    assert (shifts["c00"], shifts["c01"], shifts["c12"]) == pytest.approx((0.75, -0.75, 0))


def test_parts_of_variance_that_are_0_have_intervals_that_begin_at_0():
    _, found = simulate("reliability", "statements alone")
    zero = [term for term, part in reliability.ALONE.items() if not part]
    assert len(zero) == 5
    assert max(found[f"parts: {term}"]["low"].max() for term in zero) < 1e-4


def test_lists_have_the_columns_that_the_probe_writes():
    from plumbline.probes.core.run_probe import MODEL
    from plumbline.probes.stereotypes.completions import COLUMNS

    rng, shape = np.random.default_rng(SEED), completions.ListsShape()
    words = completions.vocabulary(shape, rng)
    planted = np.zeros((len(shape.category), shape.words))
    scores = completions.scores(shape, words, shape.category, planted, rng)
    table = completions.table(shape.groups, scores, words.frequency, shape.top)
    models = {column.name for column in MODEL}
    assert table.columns == [c.name for c in COLUMNS if c.name not in models]
    best, last = (table.filter(rank=rank)["logprob_nats"] for rank in (1, shape.top))
    assert (best > last).all()
