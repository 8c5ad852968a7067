"""Running an analysis that is broken on simulated responses, and how that shows.

Each breakage changes what an analysis reads or one of its functions, as a slip of the pen would. A
few replicates of the planted truths and of the null are then run, whole and broken, one truth after
the other, and the rates of both compared. A breakage is seen where a size or a coverage leaves its
bounds, planted effects get the wrong sign, half of those found are lost, or small effects are
found as much more often than large ones as the large ones were.
"""

from __future__ import annotations

import importlib
import tempfile
from functools import cache
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from breakages import SEED, TRUTHS, Breakage

from calibration.calibrate import simulated, simulating
from calibration.rates import rows
from calibration.tally import tally
from calibration.truth import NULL, PLANTED
from plumbline.probes.report import error_rates

REPLICATES = 6
FEW = 4  # of analyses that take long, of which as many tell all breakages
FAR = 0.25  # of the share of large effects found, from that of small ones
LONG = ("sentiment", "robustness", "clusters", "emotions", "shift")


def truths(analysis: str) -> list[str]:
    """Return the truths that are simulated, planted ones first: most breakages are seen there."""
    known = {name: what.kind for name, what in simulated(analysis).TRUTHS.items()}
    return [name for kind in (PLANTED, NULL) for name in known if known[name] == kind]


def run(
    analysis: str,
    truth: str,
    broken: Breakage | None,
    monkeypatch: pytest.MonkeyPatch,
    seed: int = SEED,
    beginning: str = "",
) -> list[dict[str, object]]:
    """Return the rows of rates of some replicates of a truth."""
    module, (measure, params) = simulated(analysis), simulating(analysis)
    (shape, given), *_ = (x for x in module.SHAPES.items() if x[0].startswith(beginning))
    if broken and broken.target:
        name, _, attribute = broken.target.partition(":")
        where = importlib.import_module(f"{measure.__module__.rpartition('.')[0]}.{name}")
        true, instead = getattr(where, attribute), broken.instead
        monkeypatch.setattr(where, attribute, lambda *a, **k: instead(true, *a, **k))
    what, special = TRUTHS[truth] if truth in TRUTHS else (module.TRUTHS[truth], {})
    monkeypatch.setattr(module, "PARAMS", module.PARAMS | special)  # the simulation reads it too
    parts = []
    for number in range(FEW if analysis in LONG else REPLICATES):
        rng = np.random.default_rng([seed, number])
        with tempfile.TemporaryDirectory() as folder:
            drawn = module.draw(Path(folder), what, given, rng)
            if broken and broken.files:
                broken.files(Path(folder))
            own = {"seed": number + 1} if "seed" in type(params).model_fields else {}
            settings = params.model_dump() | module.PARAMS | dict(drawn.params) | own
            tables = measure(drawn.inputs, type(params).model_validate(settings))
            for test, frame in module.outcomes(tables, drawn).items():
                same = {"test": test, "shape": shape, "truth": truth, "kind": what.kind}
                same |= {"replicate": number}
                columns = {key: pl.lit(value) for key, value in same.items()}
                parts.append(tally(frame).with_columns(**columns))
    return rows(analysis, pl.concat(parts)).to_dicts()


def seen(whole: list[dict], broken: list[dict]) -> list[str]:
    """Return how a breakage shows in the rates, in words; none where it does not."""
    key = ("test", "truth", "effect", "measure")
    before = {tuple(row[k] for k in key): row for row in whole}
    found = []
    for row in broken:
        at = tuple(row[k] for k in key)
        old, measure = before.get(at), row["measure"]
        if old is None or row["value"] is None or old["value"] is None:
            continue
        judged = measure in (*error_rates.OF_NULL, error_rates.COVERAGE)
        least, most = error_rates.BOUNDS[measure] if judged else (None, None)
        outside = least is not None and (row["low"] > most or row["high"] < least)
        outside = outside and (row["low"] > old["high"] or row["high"] < old["low"])
        wrong = measure == "wrong sign among found" and row["low"] > max(0.2, old["high"])
        lost = measure == "found at .05" and old["value"] > 0.5 and row["high"] < old["value"] / 2
        if outside or wrong or lost:
            found.append(f"{row['test']}, {measure}: {old['value']:.2f} became {row['value']:.2f}")
    was, now = rises(whole), rises(broken)
    return found + [
        f"{test}, {truth}: large effects found {was[test, truth]:+.2f}, became {rise:+.2f}"
        for (test, truth), rise in now.items()
        if was.get((test, truth), 0) > FAR and rise < -FAR
    ]


def rises(rates: list[dict]) -> dict[tuple[str, str], float]:
    """Return how much more often the largest planted effect is found than the smallest."""
    shares: dict[tuple[str, str], dict[float, float]] = {}
    for row in rates:
        if row["measure"] == "found at .05" and row["effect"] and row["value"] is not None:
            shares.setdefault((row["test"], row["truth"]), {})[row["effect"]] = row["value"]
    return {of: found[max(found)] - found[min(found)] for of, found in shares.items()}


@cache
def whole(analysis: str, truth: str, beginning: str = "") -> list[dict]:
    """Return the rates of an analysis as it is, simulated once."""
    with pytest.MonkeyPatch.context() as patch:
        return run(analysis, truth, None, patch, beginning=beginning)


def shown(broken: Breakage, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return how a breakage shows, by the first truth that shows it."""
    for truth in [broken.truth] if broken.truth else truths(broken.analysis):
        changed = run(broken.analysis, truth, broken, monkeypatch, beginning=broken.shape)
        monkeypatch.undo()
        if found := seen(whole(broken.analysis, truth, broken.shape), changed):
            return found
    return []
