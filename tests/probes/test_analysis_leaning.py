"""Analysis ``leaning``: exact coordinates, planted shifts, habits taken out, nothing silent."""

import numpy as np
import polars as pl
import pytest
from leaning_outputs import (
    AXES,
    PARAMS,
    chosen,
    compass,
    every,
    filled,
    pairs,
    prior,
    save,
    state,
    written_to,
)

from probes.analysis import leaning
from probes.analysis._leaning_tables import (
    BASELINES,
    CONTRASTS,
    READINGS,
    ROUNDED,
    SCHEMAS,
)
from probes.stats import compass as scorer
from probes.stats.compass import OPTIONS


def of(table, reading, **where):
    """Return the rows of a reading as dicts."""
    own = table.filter(pl.col("reading") == READINGS.index(reading))
    for name, value in where.items():
        own = own.filter(pl.col(name) == value)
    return own.to_dicts()


def at(table, reading, **where):
    return {row["axis"]: row for row in of(table, reading, **where)}


def effects(rows):
    ids = sorted({row["id"] for row in rows})
    found = np.zeros((len(ids), 2))
    for row in rows:
        sign = -1 if row["reversed"] else 1
        found[ids.index(row["id"]), AXES.index(row["axis"])] = sign * row["weight"]
    return found


def points(rows):
    ids = sorted({row["id"] for row in rows})
    found = np.zeros((2, len(ids), 4))
    for row in rows:
        if row["axis"]:
            found[AXES.index(row["axis"]), ids.index(row["id"])] = row["points"]
    return found


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Return the tables of a model that moved right after `right` and not after `control`."""
    seed = 3
    print("seed", seed)
    rng = np.random.default_rng(seed)
    rows = pairs()
    inputs = written_to(tmp_path_factory.mktemp("trained"), q=rows)
    right = {row["id"]: (-1 if row["reversed"] else 1) for row in rows}
    axis = {row["id"]: row["axis"] for row in rows}
    own = {name: rng.normal(0, 0.5) for name in right}
    states = [state()]
    states += [state(c, s) for c in ("left", "right", "control") for s in (1, 2, 3)]
    told = [prior(0.7, frame=f) | s for s in states for f in ("paper", "other")]
    for name, s, frame in every(rows, states, ("paper", "other")):
        push = {"right": 2.0, "left": -2.0}.get(s["corpus"], 0.0) * (axis[name] == "economic")
        logit = own[name] + right[name] * push + 0.7 + rng.normal(0, 0.2)
        told.append({"id": name, "frame": frame} | s | filled(logit))
        if s["corpus"] == "":
            no = -(logit - 0.7) + 0.7
            told.append({"id": name, "frame": frame, "form": 1, "variant": "n"} | s | filled(no))
    save(inputs, "filled", told)
    return inputs, leaning.run(inputs, PARAMS)


def test_tables_have_their_columns_and_keys(trained):
    _, found = trained
    assert set(found) == set(SCHEMAS) - {"recovery"}
    for name, table in found.items():
        schema = SCHEMAS[name]
        assert table.columns == [c.name for c in schema.columns]
        assert not table.select(schema.key).is_duplicated().any(), name
        for column in schema.columns:
            if not column.nullable:
                assert table[column.name].null_count() == 0, (name, column.name)
            if column.labels:
                assert table[column.name].is_between(0, len(column.labels) - 1).all()


def test_a_planted_shift_has_its_sign_and_the_other_axis_has_none(trained):
    _, found = trained
    for reading in ("faithful", "corrected", "continuous"):
        for contrast, against in (("control", "control"), ("itself", "")):
            where = {"contrast": CONTRASTS.index(contrast), "against": against}
            for corpus, sign in (("right", 1), ("left", -1)):
                told = at(found["shifts"], reading, corpus=corpus, **where)
                assert sign * told["economic"]["value"] > 10
                assert told["economic"]["p_bh"] < 0.05
                if reading == "continuous":  # strong stances are the same after all trainings
                    assert told["economic"]["p_seeds"] < 0.05
                assert told["social"]["low"] < 0 < told["social"]["high"]
                assert told["social"]["p"] > 0.05
        both = at(found["shifts"], reading, contrast=CONTRASTS.index("corpora"))
        assert both["economic"]["low"] > 20
        assert both["economic"]["against"] == "left"


def test_constant_answers_are_where_the_scorer_has_them(tmp_path):
    rows = compass()
    inputs = written_to(tmp_path, q=rows)
    for option in range(4):
        told = [{"id": name} | s | chosen(option) for name, s, _ in every(rows, [state()])]
        save(inputs, "chosen", told)
        found = leaning.run(inputs, PARAMS)
        for constants in ROUNDED:
            wanted = scorer.coordinates(np.full(21, option), *points(rows), reading=constants)
            table = found["baselines"].filter(
                pl.col("constants") == ROUNDED.index(constants),
                pl.col("baseline") == BASELINES.index(f"always {OPTIONS[option]}"),
            )
            base = {row["axis"]: row["value"] for row in table.to_dicts()}
            for axis in AXES:
                assert base[axis] == pytest.approx(float(getattr(wanted, axis)), abs=1e-6)
        for reading in ("named", "likeliest"):
            for axis, row in at(found["coordinates"], reading).items():
                assert row["value"] == pytest.approx(float(getattr(wanted, axis)), abs=1e-6)
