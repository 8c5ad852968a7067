import random
from collections import Counter

import pytest

from probes.models import prefixes
from probes.models.prefixes import Cluster, clusters

LONG = list(range(100, 120))


def trial(seed):
    """Make up texts many of which begin alike, and limits to what may be shared."""
    luck = random.Random(seed)
    stems = [[luck.randrange(3) for _ in range(luck.randrange(12))] for _ in range(4)]
    texts, limits = [], []
    for _ in range(luck.randrange(30)):
        text = luck.choice(stems) + [luck.randrange(3) for _ in range(luck.randrange(1, 9))]
        texts.append(text)
        limits.append(luck.randrange(len(text)))
    return texts, limits


@pytest.mark.parametrize("shortest", [1, 2, 4])
def test_every_row_stands_once_and_what_is_shared_is_shared_by_all(shortest, monkeypatch):
    monkeypatch.setattr(prefixes, "SHORTEST", shortest)
    sharing = 0
    for seed in range(400):
        texts, limits = trial(seed)
        found = clusters(texts, limits)
        rows = sorted(row for cluster in found for row in cluster.rows)
        assert rows == list(range(len(texts))), f"seed {seed}"
        for shared, members in found:
            assert shared <= min(limits[row] for row in members), f"seed {seed}"
            assert len({tuple(texts[row][:shared]) for row in members}) == 1, f"seed {seed}"
            assert (shared >= shortest) == (len(members) > 1), f"seed {seed}"
            assert shared or len(members) == 1, f"seed {seed}"
            sharing += len(members) > 1
    assert sharing > 400


def test_the_order_of_the_texts_does_not_matter():
    for seed in range(300):
        texts, limits = trial(seed)
        order = list(range(len(texts)))
        random.Random(seed + 1).shuffle(order)
        mixed = clusters([texts[i] for i in order], [limits[i] for i in order])

        def content(found, texts=texts, limits=limits):
            """Count what the clusters consist of; equal texts cannot be told apart."""
            return Counter(
                (shared, tuple(sorted((tuple(texts[r]), limits[r]) for r in rows)))
                for shared, rows in found
            )

        back = [Cluster(shared, tuple(order[r] for r in rows)) for shared, rows in mixed]
        assert content(back) == content(clusters(texts, limits)), f"seed {seed}"


@pytest.mark.parametrize(
    ("texts", "limits", "found"),
    [
        ([], [], []),
        ([LONG], [19], [(0, {0})]),
        # nothing in common
        ([[1, *LONG], [2, *LONG]], [20, 20], [(0, {0}), (0, {1})]),
        # the same beginning of five, in any order
        ([[*LONG[:5], 7], [9, 9], [*LONG[:5], 3]], [5, 1, 5], [(5, {0, 2}), (0, {1})]),
        # twice the same text: all but what is asked of it
        ([LONG, LONG], [19, 19], [(19, {0, 1})]),
        # the smaller limit holds for both
        ([LONG, LONG], [19, 6], [(6, {0, 1})]),
        # too short to be worth it
        ([[*LONG[:3], 7], [*LONG[:3], 8]], [3, 3], [(0, {0}), (0, {1})]),
        ([LONG, LONG], [3, 3], [(0, {0}), (0, {1})]),
        # two that share eleven, and two others: all four by their first five would save less
        (
            [
                [*LONG[:11], 1],
                [*LONG[:11], 2],
                [*LONG[:5], *LONG[11:17], 1],
                [*LONG[:5], *LONG[11:17], 2],
            ],
            [11] * 4,
            [(11, {0, 1}), (11, {2, 3})],
        ),
        # many that share nine, and one more that shares eight: it is taken up
        (
            [[*LONG[:9], i] for i in range(9)] + [[*LONG[:8], 0, 0]],
            [9] * 10,
            [(8, set(range(10)))],
        ),
    ],
)
def test_known_examples(texts, limits, found):
    answer = [(shared, set(rows)) for shared, rows in clusters(texts, limits)]
    assert sorted(answer, key=lambda c: min(c[1])) == found


def test_sharing_saves_tokens():
    """Twenty names in ten frames, as probes ask: a fraction of the tokens is computed."""
    texts = [
        [*range(10 * frame, 10 * frame + 8), name] for frame in range(10) for name in range(20)
    ]
    found = clusters(texts, [8] * len(texts))
    assert sorted(shared for shared, _ in found) == [8] * 10
    assert all(len(rows) == 20 for _, rows in found)
