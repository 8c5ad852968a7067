"""Calibration, ratings and percentiles, against sums by hand."""

import numpy as np
import pytest
from scipy.stats import norm

from plumbline.probes.values.calibration import line, rating
from plumbline.probes.values.values import percentile

X = -np.arange(1.0, 6)
Y = 0.8 * X + np.array([0.1, -0.1, 0.2, -0.2, 0])


def test_the_line_through_zero_of_the_worked_example():
    # sum xy = 44.3, sum x^2 = 55
    assert line(X, Y).slope == pytest.approx(44.3 / 55, abs=1e-12)
    assert line(X, Y).sigma == pytest.approx(0.156815, abs=5e-7)


def test_weights_are_how_often_a_point_is_there():
    times = np.array([2, 0, 1, 3, 1])
    again = np.repeat(np.arange(5), times)
    weighted = line(X, Y, np.column_stack([np.ones(5), times]))
    parts = zip(line(X, Y), line(X[again], Y[again]), strict=True)
    assert np.array(weighted) == pytest.approx(np.array([np.concatenate(part) for part in parts]))


@pytest.mark.parametrize(("x", "y"), [([1.0], [1.0]), ([1.0, 2], [1.0]), ([[1.0, 2]], [[1.0, 2]])])
def test_what_is_no_two_points_is_refused(x, y):
    with pytest.raises(ValueError, match="vectors of one length"):
        line(np.array(x), np.array(y))


def test_no_residual_is_a_rating_of_three_and_reversal_mirrors():
    sigma = np.array(0.2)
    assert rating(np.array([0.0]), sigma).tolist() == [3.0]
    err = np.array([-9.0, -0.3, 0.1, 0.2, 9])
    rated = rating(err, sigma)
    assert rated == pytest.approx(4 * norm.cdf(err / 0.2) + 1)
    assert rated[3] == pytest.approx(4 * 0.841344746 + 1)
    assert 6 - rated == pytest.approx(rating(-err, sigma))
    assert (rated.min(), rated.max()) == (pytest.approx(1), pytest.approx(5))


@pytest.mark.parametrize(
    ("value", "answers", "true"),
    [
        (3.2, [1, 2, 3, 4, 5], 0.8),
        (2.5, [1, 2, 3, 4], 1.0),
        (3, [3, 3, 3, 3], 0.0),
        (9, [1, 2, 3, 4, 5], 0.0),
        (1, [1, 2, 3, 4, 5], 0.0),
    ],
)
def test_percentiles_with_strict_inequalities(value, answers, true):
    assert percentile(value, np.array(answers)) == pytest.approx(true)


def test_a_percentile_is_twice_the_smaller_side_where_answers_are_skewed():
    answers = np.array([1, 2, 2, 2, 5])
    assert percentile(1.5, answers) == pytest.approx(0.4)
    assert percentile(3.5, answers) == pytest.approx(0.4)
    with pytest.raises(ValueError, match="answers"):
        percentile(3, np.array([]))
