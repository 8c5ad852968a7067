"""The simulation of the analysis ``values``: what it plants is there, and every test is told."""

import numpy as np
import polars as pl
import pytest

from calibration.truth import DECOY, NULL
from calibration.values import values as simulated
from plumbline.builders.core.params import section
from plumbline.probes.values import values as analysis

pytestmark = pytest.mark.slow

SEED = 11
FIRST, _, SINGLE = simulated.SHAPES
PAIRED = simulated.SHAPES[FIRST]
GENDER = "gender, faithful, by gender, value: difference"
NAMES = tuple(simulated.TRUTHS)


def drawn(folder, truth, shape=PAIRED, seed=SEED, **changes):
    """Return the tables of one replicate, what is known of it, and the outcomes."""
    print("seed", seed)
    folder.mkdir(exist_ok=True)
    found = simulated.draw(folder, simulated.TRUTHS[truth], shape, np.random.default_rng(seed))
    params = section("analysis.values", analysis.Params).model_dump()
    params |= simulated.PARAMS | {"n_bootstrap": 50, "n_permutations": 39} | changes
    tables = analysis.run(found.inputs, analysis.Params.model_validate(params))
    return tables, found.known, simulated.outcomes(tables, found)


@pytest.fixture(scope="module")
def null(tmp_path_factory):
    return drawn(tmp_path_factory.mktemp("values") / "null", NAMES[0])


def test_every_p_and_interval_of_the_tables_has_its_row(null):
    tables, _, found = null

    def told(starts, ends="", column="p"):
        own = [f for n, f in found.items() if n.startswith(starts) and n.endswith(ends)]
        return sum(len(frame.drop_nulls(column)) for frame in own)

    for name, starts, ends, column in (
        ("values", "values, ", "", "p"),
        ("gender", "gender, ", ": difference", "p"),
        ("gender", "gender: ", "difference", "p"),
        ("gender", "gender, ", ": equivalence", "p_equivalence"),
        ("gender", "gender: ", "equivalence", "p_equivalence"),
        ("calibration", "calibration: ", "", "p"),
        ("consistency", "consistency, ", "", "p"),
    ):
        assert told(starts, ends) == tables[name][column].count() > 0, (name, column)
    for name, starts, ends, column in (
        ("values", "values, ", "", "low"),
        ("gender", "gender, ", ": difference", "low"),
        ("gender", "gender, ", ": equivalence, 90% interval", "equivalence_low"),
        ("calibration", "calibration: ", "", "low"),
        ("consistency", "consistency, ", "", "low"),
        ("respondents", "respondents", "", "low"),
    ):
        assert told(starts, ends, "low") == tables[name][column].count() > 0, (name, column)
    others = ("standing", "respondents", "baselines", "answers", "points")
    assert set(tables) == {"values", "gender", "calibration", "consistency", *others}
    assert not any(tables[n]["p"].count() for n in others if "p" in tables[n].columns)
    assert len(found["baselines: random answers"]) == PAIRED.axes


def test_nothing_is_planted_in_the_null(null):
    _, known, found = null
    assert known.kind == NULL
    for name, frame in found.items():
        if not name.startswith("consistency") and not name.endswith("equivalence"):
            assert set(frame["effect"]) == {0.0}, name
    assert set(found["consistency, opposites"]["effect"]) == {-0.65}


def test_scales_without_opposites_have_no_p_and_a_reason(tmp_path):
    tables, _, found = drawn(tmp_path / "one", NAMES[0], simulated.SHAPES[SINGLE])
    own = tables["values"]
    assert own["p"].count() == 0
    assert own["null"].str.starts_with("none: ").all()
    assert own["low"].count() == len(own)
    assert found["values, faithful"]["p_adjusted"].count() == 0


@pytest.mark.parametrize(
    "truth",
    [
        "gender at the margin",
        "values differ",
        "less is related",
        "little is related",
        "genders differ",
        "women agree",
    ],
)
def test_what_is_said_to_be_true_is_what_many_statements_show(tmp_path, truth):
    many = PAIRED.model_copy(update={"pairs": 80, "single": 80, "neutral": 900, "people": 900})
    _, known, found = drawn(tmp_path / "many", truth, many, n_bootstrap=20, n_permutations=19)
    near = {"values": 0.2, "gender": 0.06, "consistency": 0.15, "respondents": 0.12}
    if "related" in truth:  # opposites too, which values would blur; genders vary more
        near["gender"] = 0.2
        own = found["consistency, opposites"]["effect"].drop_nulls()
        assert len(own)
        assert (own < -0.2).all()
    for name, frame in found.items():
        if name.startswith("baselines") or name.endswith("equivalence"):
            continue
        own = frame.drop_nulls(["target", "value"])
        least = near.get(name.split(",")[0].split(":")[0], 0.1)
        assert ((own["value"] - own["target"]).abs() < least).all(), (name, own)
    if known.kind == DECOY:
        assert set(found["values, faithful"]["effect"]) == {0.0}


@pytest.mark.parametrize(
    ("truth", "tests"),
    [
        ("values differ", ("values, faithful", "values, corrected")),
        ("genders differ", (GENDER, GENDER.replace("faithful", "corrected"))),
    ],
)
def test_what_is_planted_is_found_with_its_sign(tmp_path, truth, tests):
    found = [drawn(tmp_path / f"{n}", truth, seed=n)[2] for n in range(4)]
    rows = pl.concat(each[test] for each in found for test in tests)
    rows = rows.filter((pl.col("effect") != 0) & (pl.col("p") <= 0.05))
    assert len(rows) > 6
    assert (rows["value"] * rows["effect"] < 0).mean() < 0.1
