"""Kills inside ``dvc repro``: a clone of this checkout ends with the same files, and nothing else.

    python tests/killing.py [--kills 50] [--seed 1]

Prints a line for each round, and what was seen at the end.

Stages are built in a clone, killed (SIGKILL, with all they have started) at random times, one to
three times in a row, then left to end; and so on, each round from the start.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from cloned import clone, ended, repro

STAGES = ("build@words", "build@politicians", "validate-people")
MADE = ("data/datasets", "data/validation")


def made(top: Path) -> dict[str, str]:
    """Return the sha256 of every file that stages may have written; hidden ones too."""
    paths = (path for part in MADE for path in (top / part).rglob("*"))
    return {
        path.relative_to(top).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in paths
        if path.is_file() and path.name != ".gitignore"
    }


def reset(top: Path) -> None:
    for place in (*MADE, ".dvc/cache", ".dvc/tmp"):
        shutil.rmtree(top / place, ignore_errors=True)
    subprocess.run(["git", "checkout", "--quiet", "."], cwd=top, check=True)


def mend(top: Path, seen: Counter[str]) -> None:
    """Do what ``make repro`` does before it calls DVC."""
    command = [sys.executable, "-m", "plumbline.builders.dvc.lock"]
    environment = os.environ | {"PYTHONPATH": str(top)}
    done = subprocess.run(
        command, cwd=top, env=environment, capture_output=True, text=True, check=True
    )
    seen["kills in the middle of a lock of DVC's, which was mended"] += bool(done.stdout)


def run(folder: Path, kills: int, seed: int, stages: Sequence[str] = STAGES) -> Counter[str]:
    """Kill so often; return what was seen, and raise what is not as it should be."""
    top, dice, seen = clone(folder / "clone"), random.Random(seed), Counter[str]()
    begun = time.monotonic()
    ended(repro(top, stages))
    whole, wanted = time.monotonic() - begun, made(top)
    assert wanted
    assert not [name for name in wanted if "/." in name]
    while seen["kills"] < kills:
        reset(top)
        for _ in range(min(dice.randint(1, 3), kills - seen["kills"])):
            begun = time.monotonic()
            with repro(top, stages) as running:
                try:
                    running.wait(dice.uniform(0, whole))
                except subprocess.TimeoutExpired:
                    os.killpg(running.pid, signal.SIGKILL)
                    running.communicate()
                    seen["kills"] += 1
                else:  # it is quicker now, as other work has ended
                    whole = min(whole, time.monotonic() - begun)
                    break
            left = set(made(top)) - set(wanted)
            seen["kills that left a temporary file until the next run"] += bool(left)
            mend(top, seen)
        ended(repro(top, stages))
        found = made(top)
        assert found == wanted, sorted(set(found.items()) ^ set(wanted.items()))
        seen["rounds that ended with the same files alone"] += 1
        print(dict(seen), flush=True)
    return seen


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for what, number in run(Path(folder), given.kills, given.seed).items():
            print(f"{what}: {number}")


if __name__ == "__main__":
    main()
