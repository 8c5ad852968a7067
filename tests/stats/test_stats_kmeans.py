"""k-means: what is planted is found, and one cloud looks like one cloud."""

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score, silhouette_score

from plumbline.probes.stats.kmeans import (
    gap,
    null,
    numbered,
    partition,
    principal,
    upper_p,
)

SEEDS = (1, 2, 3)


def blobs(sizes, width, apart, seed):
    """Draw points around centres on different axes; return them and where they are from."""
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(len(sizes)), sizes)
    points = rng.normal(size=(len(labels), width))
    points[np.arange(len(labels)), labels] += apart
    order = rng.permutation(len(labels))
    return points[order], labels[order]


def test_the_inertia_of_a_case_worked_by_hand():
    points = np.array([[0.0, 0], [2, 0], [10, 0], [14, 0], [12, 3]])
    found = partition(points, 2, SEEDS)
    assert found.labels.tolist() == [1, 1, 0, 0, 0]
    # centres (1, 0) and (12, 1): 1 + 1 and 5 + 5 + 4
    assert found.inertia.min() == pytest.approx(16)
    # of the first point: 2 to its own, (10 + 14 + sqrt(153)) / 3 to the others
    other = (10 + 14 + np.sqrt(153)) / 3
    assert found.widths[0] == pytest.approx((other - 2) / other)
    assert found.silhouette == pytest.approx(found.widths.mean())


@pytest.mark.parametrize("sizes", [(30, 30), (40, 20, 12), (9, 8, 7, 6)])
def test_planted_blobs_are_found_to_the_last_point_and_their_number_too(sizes):
    points, truth = blobs(sizes, 40, 25.0, sum(sizes))
    scores = principal(points)
    widths = {}
    for k in (2, 3, 4, 5):
        found = partition(scores, k, range(10))
        widths[k] = found.silhouette
        if k == len(sizes):
            assert adjusted_rand_score(found.labels, truth) == 1
            assert np.bincount(found.labels).tolist() == sorted(sizes, reverse=True)
            one = null(points, [k], 3, 19, 5)[0]
            assert found.silhouette > one.silhouette.max()
            assert upper_p(found.silhouette, one.silhouette) == pytest.approx(2 / 20)
            value, error = gap(found.inertia.min(), one)
            assert value > 5 * error > 0
    assert max(widths, key=widths.get) == len(sizes)


def test_principal_axes_keep_distances_and_do_not_depend_on_the_frame():
    rng = np.random.default_rng(3)
    points = rng.normal(size=(12, 30))
    scores = principal(points)
    assert scores.shape == (12, 12)

    def distances(x):
        return np.linalg.norm(x[:, None] - x[None], axis=2)

    assert np.allclose(distances(scores), distances(points))
    turn, _ = np.linalg.qr(rng.normal(size=(30, 30)))
    moved = principal(points @ turn + 7)
    assert np.allclose(moved[:, :11], scores[:, :11])
    assert (np.diff(scores.var(axis=0)) <= 1e-12).all()


def test_labels_of_clusters_follow_from_the_clusters_alone():
    points, _ = blobs((9, 8, 7), 10, 20.0, 1)
    one, other = (partition(points, 3, seeds) for seeds in ((1, 2), (8, 9)))
    assert (one.labels == other.labels).all()
    for seed in range(20):
        rng = np.random.default_rng(seed)
        labels = rng.integers(0, 4, 15)
        renamed = rng.permutation(4)[labels]
        assert (numbered(labels) == numbered(renamed)).all(), f"seed {seed}"


def test_runs_that_differ_are_told_by_their_agreement():
    points, _ = blobs((20, 20), 6, 30.0, 2)
    assert (partition(points, 2, range(6)).agreement == 1).all()
    cloud = np.random.default_rng(4).normal(size=(40, 6))
    loose = partition(cloud, 5, range(6))
    assert len(loose.agreement) == 15
    assert loose.agreement.mean() < 0.9
    assert loose.inertia.min() < loose.inertia.max()


def test_too_few_points_are_refused():
    with pytest.raises(ValueError, match="3 clusters"):
        partition(np.array([[0.0], [1], [1], [2], [0]]), 3, SEEDS)


def test_clouds_parted_many_at_once_are_parted_as_one_by_one():
    rng = np.random.default_rng(7)
    points = rng.normal(size=(40, 6)) * [4, 2, 1, 1, 1, 1]
    points @= np.linalg.qr(rng.normal(size=(6, 6)))[0]  # so that columns covary
    lengths = np.linalg.svd(points - points.mean(axis=0), compute_uv=False)
    rng = np.random.default_rng(8)
    inertia, widths = [], []
    for _ in range(60):
        turned = rng.normal(size=points.shape)
        turned = np.linalg.qr(turned - turned.mean(axis=0))[0] * lengths
        run = KMeans(3, n_init=3, random_state=int(rng.integers(1 << 31))).fit(turned)
        inertia.append(np.log(run.inertia_))
        widths.append(silhouette_score(turned, run.labels_))
    (many,) = null(points, [3], 3, 400, 9)
    for one, other in ((many.log_inertia, inertia), (many.silhouette, widths)):
        error = np.std(other) * np.sqrt(1 / 60 + 1 / 400)
        assert abs(one.mean() - np.mean(other)) < 4 * error
        assert 0.7 < one.std() / np.std(other) < 1.4
