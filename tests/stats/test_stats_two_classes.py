from __future__ import annotations

import numpy as np
import pytest

from plumbline.probes.stats.classification import METRICS, cells, metrics

TRUE = np.array([True] * 9 + [False] * 11)
FOUND = np.array([True] * 6 + [False] * 3 + [True] * 2 + [False] * 9)


def measured(true, predicted, weights=None):
    values = metrics(cells(true, predicted[None], weights))[0]
    return dict(zip(METRICS, values.T if weights is not None else values[0], strict=True))


def test_a_table_worked_by_hand():
    # 6 found of 9, 8 called so; F1 2 * 6 / (9 + 8); of the others 18 / (11 + 12)
    found = measured(TRUE, FOUND)
    assert found == pytest.approx(
        {
            "accuracy": 15 / 20,
            "balanced accuracy": (6 / 9 + 9 / 11) / 2,
            "F1": 12 / 17,
            "macro F1": (12 / 17 + 18 / 23) / 2,
            "precision": 6 / 8,
            "recall": 6 / 9,
        }
    )


def test_always_the_commoner_class_is_accurate_and_no_better_than_chance_when_balanced():
    true = np.array([True] * 2 + [False] * 98)
    found = measured(true, np.zeros(100, dtype=bool))
    assert found["accuracy"] == pytest.approx(0.98)
    assert found["balanced accuracy"] == pytest.approx(0.5)
    assert (found["F1"], found["precision"], found["recall"]) == (0, 0, 0)


def test_without_a_class_its_measures_are_nothing():
    only = np.ones(4, dtype=bool)
    found = measured(only, np.array([True, True, True, False]))
    assert (found["accuracy"], found["recall"], found["precision"]) == (0.75, 0.75, 1)
    assert np.isnan([found["balanced accuracy"], found["macro F1"]]).all()
    found = measured(~only, np.array([True, True, True, False]))
    assert found["accuracy"] == 0.25
    assert np.isnan([found["F1"], found["precision"], found["recall"]]).all()


def test_weights_are_texts_that_stand_there_so_often():
    weights = np.array([[2.0, 0.0]] * 10 + [[1.0, 3.0]] * 10)
    found = metrics(cells(TRUE, FOUND[None], weights))[0]
    for column in range(2):
        often = weights[:, column].astype(int)
        whole = metrics(cells(TRUE.repeat(often), FOUND.repeat(often)[None]))[0, 0]
        np.testing.assert_allclose(found[column], whole, equal_nan=True)


def test_exchanging_the_classes_leaves_what_treats_them_alike():
    before, after = measured(TRUE, FOUND), measured(~TRUE, ~FOUND)
    for name in ("accuracy", "balanced accuracy", "macro F1"):
        assert before[name] == pytest.approx(after[name])
    assert before["recall"] != pytest.approx(after["recall"])
