"""Write the locks beside this file from pyproject.toml: every package with its hashes.

``main.txt`` is what the extra ``pipeline`` needs, ``gpu.txt`` the libraries of NVIDIA that PyPI's
build of torch for Linux needs besides, and ``EXTRA.txt`` what an extra adds. Each installs without
a resolver: ``pip install --no-deps --require-hashes -r FILE``. Run it with ``make lock``.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
PYTHON = "3.11.5"
EXTRAS = ("test", "docs", "s3", "cluster")
GPU = re.compile(r"(nvidia|cuda)-|triton==")
CPU = (  # torch as its authors build it for processors alone; installed where pip is shown it
    "torch==2.13.0",
    "sha256:6746dbcbeb526eb61330b76b41ff1b4eb848951103a892eeb080dfa2b264667b",
)


def compiled(pins: Path, *options: str) -> dict[str, str]:
    """Resolve the project for every platform, and return the entry of each package."""
    command = [sys.executable, "-m", "uv", "pip", "compile", "pyproject.toml", "--universal"]
    command += ["--python-version", PYTHON, "--generate-hashes", "--quiet", "--no-header"]
    command += ["--no-annotate", "--no-emit-index-url", "--no-emit-find-links", *options]
    if pins.stat().st_size:
        command += ["--constraint", str(pins)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=HERE.parent)  # noqa: S603
    entries = re.split(r"^(?=\S)", done.stdout, flags=re.MULTILINE)
    return {entry.partition(" ")[0]: entry for entry in entries if "==" in entry}


def main() -> None:
    """Write all locks; locked versions stay as they are, ``--upgrade`` takes the newest."""
    pins = HERE / "pins.txt"
    old = [p.read_text("utf-8") for p in HERE.glob("*.txt") if "--upgrade" not in sys.argv]
    pins.write_text("\n".join(sorted(set(re.findall(r"^\S+==\S+", "\n".join(old), re.MULTILINE)))))
    main = compiled(pins, "--extra", "pipeline")
    name, build = CPU
    assert name in main, f"torch is another version: look up the hash of {name} without CUDA"
    main[name] = main[name].rstrip("\n") + f" \\\n    --hash={build}\n"
    gpu = {name: entry for name, entry in main.items() if GPU.match(name)}
    put("main", {name: entry for name, entry in main.items() if name not in gpu})
    put("gpu", gpu)
    for extra in EXTRAS:
        found = compiled(pins, "--extra", "pipeline", "--extra", extra)
        put(extra, {name: entry for name, entry in found.items() if name not in main})
    pins.unlink()


def put(name: str, entries: dict[str, str]) -> None:
    """Write one lock."""
    (HERE / f"{name}.txt").write_text("".join(entries[key] for key in sorted(entries)), "utf-8")


if __name__ == "__main__":
    main()
