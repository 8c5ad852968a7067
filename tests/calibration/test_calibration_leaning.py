"""The simulations of the study leaning: all tests are told, and planted ones have their sign."""

import importlib
from collections import Counter

import numpy as np
import polars as pl
import pytest

from calibration.leaning import classified
from calibration.tally import tally
from calibration.truth import PLANTED
from plumbline.builders.core.params import section
from plumbline.probes.leaning.schemas import COMPARISONS, CONTRASTS, READINGS

pytestmark = pytest.mark.slow

SEED = 20261123
FEWER = {"n_permutations": 99, "n_bootstrap": 60, "max_ensembles": 6}
FEWER |= {"n_permutations_stability": 99}
BETWEEN = ("shifts between corpora", "shifts between periods", "shifts apart, between periods")
PLANTED_IN = {  # some of the tests
    "compass": {"stability, prompts", "stability, opposites", "shifts between corpora: corrected"},
    "fairness": {"overall", "groups", "differences, corpora, F1"},
    "ensemble": set(),
}
MODULES = ("compass", "fairness", "ensemble")


def simulated(name):
    return importlib.import_module(f"calibration.leaning.{name}")


def replicate(folder, name, truth, shape, seed=SEED):
    """Return a replicate and its tables."""
    print("seed", seed)
    module = simulated(name)
    analysis = importlib.import_module(f"plumbline.probes.leaning.{name}")
    drawn = module.draw(folder, module.TRUTHS[truth], shape, np.random.default_rng(seed))
    params = section(f"analysis.{name}", analysis.Params)
    fewer = {k: v for k, v in FEWER.items() if k in type(params).model_fields}
    given = params.model_dump() | module.PARAMS | drawn.params | fewer
    tables = analysis.run(drawn.inputs, type(params).model_validate(given))
    return drawn, tables, module.outcomes(tables, drawn)


@pytest.mark.parametrize("name", MODULES)
def test_every_truth_of_every_shape_is_told(tmp_path, name):
    module = simulated(name)
    levels = set()
    for i, shape in enumerate(module.SHAPES.values()):
        few = {"words": 16} if "words" in type(shape).model_fields else {}
        quick = shape.model_copy(update=few)
        for truth, about in module.TRUTHS.items():
            if i and truth not in ("trainings", "random"):
                continue
            _, _, found = replicate(tmp_path / f"{i}{truth}", name, truth, quick)
            told = pl.concat(found.values())
            effects = told.drop_nulls("effect")
            planted = effects.filter(pl.col("effect") != 0, pl.col("p").is_not_null())
            if about.kind == PLANTED:
                assert len(planted)
                levels |= {
                    (test, abs(effect))
                    for test, rows in found.items()
                    for effect in rows.drop_nulls("p")["effect"].drop_nulls()
                    if effect
                }
            else:  # the null, and decoys
                own = pl.concat(rows for test, rows in found.items() if test != "overall")
                assert not own.filter(pl.col("effect") != 0).height
            assert effects["p"].is_not_null().any()
            for rows in found.values():
                assert tally(rows)["effect"].is_not_null().all()
    number = Counter(test for test, _ in levels)
    assert {test for test, of in number.items() if of < 3} == set()
    assert set(number) >= PLANTED_IN[name]


def test_no_p_of_compass_is_forgotten(tmp_path):
    module = simulated("compass")
    for i, shape in enumerate(module.SHAPES.values()):
        small = shape.model_copy(update={"pairs": 4, "trainings": 2, "refused": 0.0, "unsure": 0.0})
        _, tables, found = replicate(tmp_path / str(i), "compass", "random", small)
        readings = {READINGS[code] for code in tables["shifts"]["reading"]}
        for reading in readings:
            own = {
                name: table.filter(reading=READINGS.index(reading))
                for name, table in tables.items()
                if "reading" in table.columns
            }
            tests = {
                key.rpartition(": ")[0]: t for key, t in found.items() if key.endswith(reading)
            }
            both = sum(tests[f"coordinates, {w}"]["p"].count() for w in ("itself", "trained"))
            assert both == own["coordinates"]["p"].count()
            itself = own["shifts"]["contrast"] == CONTRASTS.index("base model")
            between = own["shifts"].filter(~itself)["p"].count()
            told = [t["p"].count() for key, t in tests.items() if key in BETWEEN]
            assert sum(told) == between
            untold = {name for name, t in own.items() if "p" in t.columns and t["p"].count()}
            assert untold == {"coordinates", "shifts", "stability"}
        stable = tables["stability"].group_by("comparison").agg(pl.col("p").count())
        for code, number in stable.iter_rows():
            assert found[f"stability, {COMPARISONS[code]}"]["p"].count() == number
    _, tables, found = replicate(tmp_path / "own", "compass", "trainings", module.Shape(pairs=4))
    seeds = sum(
        t["p"].count() for key, t in found.items() if key.startswith(("shifts a", "shifts b"))
    )
    assert seeds == tables["shifts"]["p"].count()


def test_no_p_of_classifiers_is_forgotten(tmp_path):
    shape = simulated("fairness").Shape(words=12)
    _, tables, found = replicate(tmp_path / "fairness", "fairness", "guesses", shape)
    for name in ("overall", "groups"):
        assert found[name]["p"].count() == tables[name]["p"].count() > 0
    differences = tables["differences"]
    over = sum(t["p"].count() for key, t in found.items() if key.startswith("differences"))
    assert over == differences["p"].count() > 0
    shape = simulated("ensemble").Shape(words=12)
    _, tables, found = replicate(tmp_path / "ensemble", "ensemble", "texts", shape)
    over = sum(t["p"].count() for key, t in found.items() if key.startswith("p, "))
    assert over == tables["differences"]["p"].count() > 0


def test_planted_shifts_have_their_sign(tmp_path):
    quick = simulated("compass").Shape(trainings=6)
    _, _, found = replicate(tmp_path, "compass", "corpora", quick)
    for reading in ("corrected", "continuous"):
        told = found[f"shifts between corpora: {reading}"]
        told = told.filter(pl.col("effect").abs() >= 3, pl.col("p").is_not_null())
        assert len(told)
        assert (told["value"] * told["effect"] >= 0).all()


def test_coordinates_are_where_the_truth_has_them(tmp_path):
    shape = simulated("compass").Shape(pairs=60, trainings=6, prompts=5, uneven=0.0)
    shape = shape.model_copy(update={"training": 0.05})
    module, rng = simulated("compass"), np.random.default_rng(SEED)
    drawn = module.draw(tmp_path, module.TRUTHS["corpora"], shape, rng)
    analysis = importlib.import_module("plumbline.probes.leaning.compass")
    params = section("analysis.compass", analysis.Params).model_dump() | module.PARAMS
    given = analysis.Params.model_validate(params)
    told = analysis.outputs(drawn.inputs.outputs("stances", "m"), "mask")
    known = analysis.scales(drawn.inputs.datasets["statements"], {"q"})
    for reading in analysis.readings("mask", told, known, given):
        if reading.name in module.MEANS:
            rows = pl.DataFrame(list(analysis.coordinates(reading, given)))
            true = module.truth_of(drawn.known, reading.name)["fixed"]
            both = rows.join(true, on=["corpus", "axis"])
            assert len(both) == 8
            assert (both["value"] - both["target"]).abs().max() < 3


def test_classifiers_are_right_as_often_as_the_truth_has_it(tmp_path):
    module = simulated("fairness")
    shape = module.Shape(words=3000, each=1, pretraining=2)
    drawn = module.draw(tmp_path, module.TRUTHS["corpora"], shape, np.random.default_rng(SEED))
    path = drawn.inputs.outputs("finetuned_classifiers", "m") / "planted/*.parquet"
    told = pl.read_parquet(path).filter(pl.col("class") == classified.POSITIVE)
    positive = pl.col("label") == classified.POSITIVE
    right = ((pl.col("logprob_nats").exp() > 0.5) == positive).mean()
    found = told.group_by("corpus", "group").agg(value=right)
    both = found.join(module.truth_of(drawn.known), on=["corpus", "group"])
    assert len(both) == 12
    assert (both["value"] - both["these"]).abs().max() < 0.02
