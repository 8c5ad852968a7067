"""Memory and time of the tests of countries against the others, at the size of the full plan.

    python benchmarks/countries.py [TEXTS [COUNTRIES [NAMES]]]

invents changes of P+ - P- and of three classes for 1,630 texts, 55 countries and 50 names each (of
250 first and 250 last names of each country), 4.5 million rows, and tests each country against
what was before and against the others, as the analysis `nationality` does. Told are rows, seconds,
peak resident memory of the whole process, and the part of it that the estimator itself added.
"""

from __future__ import annotations

import resource
import sys
import time
from pathlib import Path

TOP = Path(__file__).parent.parent
sys.path.insert(0, str(TOP))

import numpy as np  # noqa: E402

from plumbline.probes.stats.two_way import estimable, two_way  # noqa: E402

MEASURES = 4  # P+ - P- and three classes
LISTED = 250  # first names of a country, and last names
GOAL = 2000.0  # MB


def main() -> None:
    given = [int(word) for word in sys.argv[1:]]
    texts, countries, names = given + [1630, 55, 50][len(given) :]
    rng = np.random.default_rng(1)
    country = np.tile(np.repeat(np.arange(countries), names), texts)
    text = np.repeat(np.arange(texts), countries * names)
    first, last = (country * LISTED + rng.integers(0, LISTED, len(country)) for _ in range(2))
    values = rng.normal(0.0, 1.0, (len(country), MEASURES))
    for measure in range(MEASURES):  # names differ, countries do not
        values[:, measure] += rng.normal(0.0, 0.3, countries * LISTED)[first]
    before = peak()

    begun = time.perf_counter()
    there = estimable(country, text, [first, last], countries)
    against = np.eye(countries) - there / there.sum()
    means = np.array([np.bincount(country, own, countries) for own in values.T]).T
    means /= np.bincount(country)[:, None]
    tested = two_way(
        *(values, country, text, [first, last]), np.concatenate([np.eye(countries), against])
    )
    p = tested.p(np.concatenate([means, against @ means]))[countries:]
    took = time.perf_counter() - begun

    whole = peak()
    print(f"p at most .05, of countries that are alike: {(p <= 0.05).mean():.3f}")
    print("| rows | seconds | peak MB | of that added, MB | goal, MB |")
    print("|---:|---:|---:|---:|---:|")
    print(f"| {len(country):,} | {took:.1f} | {whole:.0f} | {whole - before:.0f} | {GOAL:.0f} |")


def peak() -> float:
    """Return the most memory that the process ever had, MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main()
