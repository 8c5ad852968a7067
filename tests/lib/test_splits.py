from collections import Counter

from plumbline.builders.datasets.downstream.build import Unit, drawn

SHARES = {"train": 0.7, "validation": 0.1, "test": 0.2}


def units(number: int, strata: int = 4, size: int = 1) -> list[Unit]:
    return [Unit(f"u{n}", f"s{n % strata}", size) for n in range(number)]


def test_every_stratum_and_the_whole_have_the_shares():
    own = units(400)
    found = drawn(own, SHARES, 1)
    assert Counter(found.values()) == {"train": 280, "validation": 40, "test": 80}
    for stratum in range(4):
        inside = Counter(found[unit.name] for unit in own if unit.stratum == f"s{stratum}")
        assert all(abs(inside[split] - 100 * share) <= 1 for split, share in SHARES.items())


def test_large_units_are_weighed_by_their_rows():
    own = [*units(70), *(Unit(f"big{n}", "big", 7) for n in range(30))]
    found = drawn(own, SHARES, 1)
    rows = Counter()
    for unit in own:
        rows[found[unit.name]] += unit.size
    assert all(abs(rows[split] - 280 * share) <= 7 for split, share in SHARES.items())
