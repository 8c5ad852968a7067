"""Simulated lists of social groups: what the outcomes of a replicate tell, and how they fail."""

from __future__ import annotations

import importlib
import tempfile
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from calibration.calibrate import simulated
from calibration.stereotypes import completions
from calibration.truth import NULL, PLANTED, Truth
from plumbline.probes import module_of

pytestmark = pytest.mark.slow

SEED = 17
SMALL = {"age": 7, "country": 9, "profession": 12}
SHAPES = {
    "recall": {"categories": SMALL},
    "emotions": {"categories": SMALL},
    "rsa": {"categories": {"age": 5, "country": 9}},
    "shift": {"categories": {"age": 7, "country": 9}, "seeds": 3, "affects": 0.0},
}
TESTED = {  # table, column of p, and the outcomes that have all of its rows between them
    "recall": [
        ("recall", "p", ["p: single word", "p: first word"]),
        ("recall", "p_random_order", ["p_random_order: single word", "p_random_order: first word"]),
    ],
    "emotions": [
        (
            "emotions",
            "p",
            [
                f"difference: {level}, {reading}"
                for level in ("group", "category")
                for reading in ("probability", "corrected")
            ],
        )
    ],
    "rsa": [("rsa", "p", ["faithful", "released", "corrected"])],
    "shift": [
        ("shifts", p, [f"{measure}: {what}" for measure in MEASURED for what in parts])
        for MEASURED in [("emotion", "recall", "retained", "rsa faithful", "rsa corrected")]
        for p, parts in (
            ("p", ("all groups", "a category")),
            ("p_groups", ("p_groups",)),
            ("p_seeds", ("p_seeds",)),
        )
    ],
}
STRONG = {
    "recall": ("lifts", "p: single word"),
    "emotions": ("groups", "difference: group, corrected"),
    "shift": ("words", "emotion: all groups"),
}


def replicate(analysis, truth, seed):
    """Draw, analyse and return tables and outcomes."""
    print("seed", seed)
    module = simulated(analysis)
    shape, read = module.Shape(**SHAPES[analysis]), importlib.import_module(module_of(analysis))
    with tempfile.TemporaryDirectory() as folder:
        drawn = module.draw(Path(folder), truth, shape, np.random.default_rng(seed))
        given = {"version": "0.1.0"} | module.PARAMS | {"n_permutations": 199} | drawn.params
        tables = read.run(drawn.inputs, read.Params.model_validate(given))
        return tables, module.outcomes(tables, drawn)


def null_of(analysis):
    return next(truth for truth in simulated(analysis).TRUTHS.values() if truth.kind == NULL)


@pytest.mark.parametrize("analysis", list(SHAPES))
def test_no_p_of_the_tables_is_forgotten_and_under_the_null_nothing_is_planted(analysis):
    tables, found = replicate(analysis, null_of(analysis), SEED)
    for table, column, tests in TESTED[analysis]:
        wanted = tables[table]
        if analysis == "shift":
            wanted = wanted.filter(pl.col("corpus") != "control")
        own = sum(found[test]["p"].count() for test in tests)
        assert own == wanted[column].count() > 0
    for frame in found.values():
        assert set(frame["effect"].drop_nulls()) <= {0.0}
    every = pl.concat(found.values())
    assert every["target"].count() > 0
    assert every["p_adjusted"].drop_nulls().is_between(0, 1).all()


@pytest.mark.parametrize("analysis", list(STRONG))
def test_what_is_planted_has_its_sign(analysis):
    what, test = STRONG[analysis]
    _, found = replicate(analysis, Truth(PLANTED, "", {what: (2.0, 2.0, 2.0)}), SEED + 1)
    own = found[test].filter(pl.col("effect") != 0, pl.col("p") <= 0.05)
    assert len(own) > 2
    assert (own["value"] * own["effect"] < 0).mean() <= 0.1


def test_groups_that_move_apart_are_less_like_those_before():
    _, found = replicate("shift", Truth(PLANTED, "", {"groups": (0.0, 2.0, 2.0)}), SEED + 4)
    for measure in ("retained", "rsa faithful", "rsa corrected"):
        own = found[f"{measure}: all groups"]
        moved = own.filter(pl.col("effect") < 0)["value"]
        assert moved.max() < min(0, own.filter(effect=0.0)["value"].min())
        assert len(moved) == 2


def test_models_that_share_all_are_alike():
    truth = Truth(PLANTED, "", {"shared": (1.0, 1.0, 1.0)})
    _, found = replicate("rsa", truth, SEED + 2)
    assert found["corrected: a category"].filter(effect=1.0)["value"].mean() > 0.3


def test_categories_that_are_planted_have_the_share_that_many_groups_have():
    truth = Truth(PLANTED, "", {"categories": (1.0, 1.0, 1.0)})
    _, found = replicate("emotions", truth, SEED + 3)
    own = found["share: category, corrected"]
    assert len(own) == 3 * 10
    near = (own["value"] - own["target"]).abs()
    assert near.mean() < 0.05
    assert near.mean() < (own["value"] - own["target"].shuffle(seed=1)).abs().mean() / 2


def test_lists_have_the_columns_that_the_probe_writes():
    from plumbline.probes.core.shards import MODEL
    from plumbline.probes.stereotypes.completions import COLUMNS

    rng = np.random.default_rng(SEED)
    shape = completions.ListsShape()
    words = completions.vocabulary(shape, rng)
    planted = np.zeros((len(shape.category), shape.words))
    scores = completions.scores(shape, words, shape.category, planted, rng)
    table = completions.table(shape.groups, scores, words.frequency, shape.top)
    of_models = {column.name for column in MODEL}
    assert table.columns == [c.name for c in COLUMNS if c.name not in of_models]
    assert (table["logprob_nats"] < 0).all()
    assert table["logprob_nats"].is_sorted() is False
    best = table.filter(pl.col("rank") == 1)["logprob_nats"].to_numpy()
    last = table.filter(pl.col("rank") == shape.top)["logprob_nats"].to_numpy()
    assert (best > last).all()
