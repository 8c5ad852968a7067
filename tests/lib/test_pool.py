import random

import pytest

from plumbline.builders.datasets.corpora.sample import Pool, rank


def held(items, limit) -> list[tuple[int, int]]:
    pool = Pool(limit)
    for r, d, weight in items:
        pool.add((r, d), weight, None)
    return [key for key, _ in pool.items()]


def plain(items, limit) -> list[tuple[int, int]]:
    """Sort everything, and take from the front until the limit is reached."""
    found, total = [], 0
    for r, d, weight in sorted(items):
        if total >= limit:
            break
        found.append((r, d))
        total += weight
    return found


@pytest.mark.parametrize(("limit", "heaviest"), [(7.5, 1), (500, 40), (10**9, 40)])
def test_a_pool_holds_what_sorting_everything_would_find(limit, heaviest):
    rng = random.Random(1)
    print("seed 1")
    items = [
        (rng.getrandbits(64), rng.getrandbits(64), rng.randint(1, heaviest)) for _ in range(20_000)
    ]
    assert held(items, limit) == plain(items, limit)
    rng.shuffle(items)
    assert held(items, limit) == plain(items, limit)


def test_ranks_are_those_of_the_hash_and_uniform():
    # first eight bytes of BLAKE2b of "1/x" with a digest of 8 bytes, by coreutils' b2sum -l 64
    assert rank(1, "x") == 0xA3E6766A50EF562A
    ranks = [rank(1, str(n)) / 2**64 for n in range(4000)]
    assert abs(sum(ranks) / 4000 - 0.5) < 4 * (1 / 12 / 4000) ** 0.5
