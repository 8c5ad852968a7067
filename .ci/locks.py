"""Hold the locks of a fresh run against those of the commit, and its numbers where they may move.

Training adds floating-point numbers in an order that is the processor's own, so what is made of
weights that are trained here may differ in last digits between kinds of processors: of those
stages the metrics are held within a tolerance, of all others every byte.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

TOP = Path(__file__).parents[1]
TRAINED = (  # made of weights that a stage trains: these, and what lies in them
    "data/pretrained",
    "data/outputs/stances",
    "data/outputs/finetuned_classifiers",
    "data/outputs/after_training",
    "data/tables/compass",
    "data/tables/fairness",
    "data/tables/ensemble",
    "data/tables/shift",
    "data/tables/reliability",
    "data/tables/recovery",
    "data/report",
)
WHOLE = ("data/tables", "data/outputs")  # deps that hold some of them; each part is an out as well
METRICS = Path("data/report/metrics.json")
EXPECTED = TOP / "tests/expected/metrics.json"
TOLERANCE = 1e-6  # of a control that no trained weights stand behind
# Shares of few trainings, whose last bits grow over thousands of steps: one more or less of four.
WIDER = dict.fromkeys(("compass", "ensemble", "fairness", "shift"), 0.5)
WIDER = {f"controls.{name}": wide for name, wide in WIDER.items()}
WIDER |= {"models.leaning": 10.0}  # percent, of which written answers are sampled
ALL = {"as_it_should": 8}  # controls, of all


def written(text: str) -> dict[str, dict[str, str]]:
    """Return the hash of each dep and out of the stages of a lock."""
    return {
        f"{stage} {kind}": {item["path"]: item["md5"] for item in entry.get(kind, [])}
        for stage, entry in yaml.safe_load(text)["stages"].items()
        for kind in ("deps", "outs")
    }


def moved() -> list[str]:
    """Return what differs between the locks of the commit and those here."""
    found = []
    for path in sorted([TOP / "dvc.lock", *TOP.glob("probes/*/dvc.lock")]):
        name = path.relative_to(TOP).as_posix()
        command = ["git", "show", f"HEAD:{name}"]
        before = written(subprocess.run(command, capture_output=True, text=True, check=True).stdout)  # noqa: S603
        now = written(path.read_text("utf-8"))
        for key in sorted({*before, *now}):
            one, two = before.get(key, {}), now.get(key, {})
            changed = {p for p in {*one, *two} if one.get(p) != two.get(p)}
            found += [f"{name}: {key}: {p}" for p in sorted(changed)]
    return found


def may_move(path: str) -> bool:
    """Tell whether the bytes of a path may differ between kinds of processors."""
    return path in WHOLE or any(path == one or path.startswith(f"{one}/") for one in TRAINED)


def apart(one: Any, two: Any, where: str = "") -> list[str]:
    """Return which numbers differ by more than the tolerance."""
    if isinstance(one, dict) and isinstance(two, dict):
        keys = sorted({*one, *two})
        return [line for k in keys for line in apart(one.get(k), two.get(k), f"{where}.{k}")]
    if isinstance(one, (int, float)) and isinstance(two, (int, float)):
        name = where[1:]
        wider = [t for start, t in (WIDER | ALL).items() if name.startswith(start)]
        same = math.isclose(one, two, rel_tol=0, abs_tol=wider[0] if wider else TOLERANCE)
        return [] if same else [f"{where[1:]}: {one} in the commit, {two} here"]
    return [] if one == two else [f"{where[1:]}: {one!r} in the commit, {two!r} here"]


def main() -> int:
    """Print what differs and must not; ``--write`` makes the numbers here the expected ones."""
    here = json.loads(METRICS.read_text("utf-8"))
    if "--write" in sys.argv:
        EXPECTED.parent.mkdir(exist_ok=True)
        EXPECTED.write_text(json.dumps(here, indent=1, sort_keys=True) + "\n", "utf-8")
        return 0
    changed = moved()
    wrong = [line for line in changed if not may_move(line.rpartition(": ")[2])]
    wrong += apart(json.loads(EXPECTED.read_text("utf-8")), here)
    print(f"locks: {len(changed)} hashes differ from the commit's, {len(wrong)} that must not")
    print(*wrong, sep="\n")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
