"""Measure the seconds of the default run, of its repetition, and of adding a model.

    python benchmarks/default_run.py [FOLDER]

The script clones the last commit into a folder (by default a temporary one), uses the virtual
environment of this checkout, and runs what a user runs:

1. a new model for the first time: three lines in ``params.yaml``, then
   ``make repro STAGE=pmi@mine``, which builds and validates what this table needs;
2. the same for a second model, with the datasets in place;
3. ``make repro``, which runs everything;
4. ``make repro`` again.

The model is the one-layer BERT of a control model, copied to a folder with its tokenizer, so that
the pipeline and not the model takes most of the time. Times are wall-clock times; run the script on
an idle machine.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TOP = Path(__file__).parents[1]
MODEL = TOP / "data/samples/worlds/world-planted"
FILES = ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json")
STAGE = re.compile(r"Running stage '(?:.*:)?([^']+)'")


def clone(into: Path) -> None:
    """Clone the last commit, to run in the environment of this checkout."""
    subprocess.run(["git", "clone", "--quiet", str(TOP), str(into)], check=True)
    (into / ".venv").symlink_to((TOP / ".venv").resolve())


def make(folder: Path, *words: str) -> tuple[float, list[tuple[str, float]]]:
    """Run ``make``, and return its duration and that of each stage, in seconds."""
    # -o: the environment is up to date, although it is older than the clone's files
    command = ["make", "-o", ".venv/ready", *words]
    environment = os.environ | {"PYTHONPATH": str(folder)}
    began = time.perf_counter()
    stages: list[tuple[str, float]] = []
    with subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as running:
        said = []
        for line in running.stdout or ():
            said.append(line)
            if found := STAGE.search(line):
                stages.append((found[1], time.perf_counter()))
    end = time.perf_counter()
    if running.returncode:
        raise SystemExit("".join(said[-20:]))
    after = [*(start for _, start in stages[1:]), end][: len(stages)]
    return end - began, [(name, b - a) for (name, a), b in zip(stages, after, strict=True)]


def add(folder: Path, name: str) -> None:
    """Add a model to params.yaml, as its comments describe."""
    own = folder.parent / f"weights-{name}"
    own.mkdir()
    for file in FILES:
        shutil.copyfile(MODEL / file, own / file)
    path = folder / "params.yaml"
    text = path.read_text("utf-8")
    text = re.sub(r"^models: \{\}$", "models:", text, flags=re.MULTILINE)
    text = text.replace("models:\n", f"models:\n  {name}:\n    id: {own}\n    languages: [en]\n", 1)
    for probe in ("associations", "words"):
        text = re.sub(rf"^  {probe}: \[(?:, )?", rf"  {probe}: [{name}, ", text, flags=re.MULTILINE)
    path.write_text(text.replace(", ]", "]"), "utf-8")


def main(into: Path) -> None:
    """Make the four runs, and print their seconds."""
    mine, whole = into / "mine", into / "whole"
    clone(mine)
    add(mine, "mine")
    first, _ = make(mine, "repro", "STAGE=pmi@mine")
    print(f"a model of one's own, the first time  {first:7.1f} s", flush=True)
    add(mine, "other")
    second, _ = make(mine, "repro", "STAGE=pmi@other")
    print(f"a second one                          {second:7.1f} s", flush=True)
    clone(whole)
    run, stages = make(whole, "repro")
    print(f"the default run, {len(stages)} stages          {run:7.1f} s", flush=True)
    for name, seconds in sorted(stages, key=lambda stage: -stage[1]):
        print(f"{seconds:7.1f} {name}")
    again, _ = make(whole, "repro")
    print(f"again, nothing to do                  {again:7.1f} s", flush=True)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]).resolve())
    else:
        with tempfile.TemporaryDirectory() as folder:
            main(Path(folder))
