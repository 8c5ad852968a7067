"""Write the output of commands into the pages that show it: README's first screen, and a trace."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

TOP = Path(__file__).parent.parent
README, FIGURE = TOP / "README.md", TOP / "docs/howto/figures/answer.svg"
SCREEN = re.compile(r"(?<=^```sh\n)(.*?)(```\n\n```text\n)(.*?)(?=^```$)", re.DOTALL | re.MULTILINE)
LINES, WIDTH = 5, 16  # number of lines in the figure, and its width in centimetres
DRAW = f"""
import plumbline
result = plumbline.politicians("world-planted", language="en")
print(result.plot(width={WIDTH}, most={LINES}).encode("svg").decode(), end="")
"""
TRACING = TOP / "docs/howto/fresh-data.md"
TABLE = "data/tables/pmi/world-planted/pmi.parquet"
TRACE = re.compile(rf"(?<=^```text\n){TABLE}\n.*?(?=^```$)", re.DOTALL | re.MULTILINE)
NUMBER = r"-?\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?"


def printed(home: Path) -> str:
    """Return the output of README's commands, with datasets and results in a folder."""
    found = SCREEN.search(README.read_text("utf-8"))
    assert found, "README.md has no block of commands with their output"
    commands = [line for line in found[1].splitlines() if line.startswith("plumbline ")]
    texts = [run(["-m", *shlex.split(command)], home, home) for command in commands]
    lines = [line for text in texts for line in text.splitlines() if not line.startswith("  ")]
    return "".join(f"{textwrap.fill(line, 120, break_on_hyphens=False)}\n" for line in lines)


def figure(home: Path) -> str:
    """Return the figure of the most significant words for the positive control."""
    return run(["-c", DRAW], home, home)


def refreshed(block: str, text: str) -> str:
    """Return a block with the numbers that a command printed; "…" stands for any text.

    Raises
    ------
    SystemExit
        If the command printed no such line.
    """
    lines = []
    for line in block.splitlines():
        parts = re.split(f"( ?…|{NUMBER})", line.strip())
        kinds = (("…", ".*?"), (NUMBER, f"({NUMBER})"), (".*", ""))
        wanted = ""
        for part in parts:
            kind = next(made for known, made in kinds if re.fullmatch(known, part.strip()))
            wanted += kind or re.escape(part)
        pattern = re.compile(rf"{wanted}(?: \[[0-9a-f]+\])?")  # hashes are optional
        found = next(filter(None, map(pattern.fullmatch, map(str.strip, text.splitlines()))), None)
        if not found:
            raise SystemExit(f"error: no command prints {line.strip()!r} any more; edit the page")
        numbers = iter(found.groups())
        lines.append(re.sub(NUMBER, lambda _, left=numbers: next(left), line))
    return "".join(f"{line}\n" for line in lines)


def run(words: list[str], folder: Path, home: Path) -> str:
    """Return the output of Python in one folder, with datasets and results in another."""
    environment = os.environ | {"PYTHONPATH": str(TOP), "PLUMBLINE_HOME": str(home)}
    folder.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, *words]
    return subprocess.run(  # noqa: S603
        command, check=True, stdout=subprocess.PIPE, text=True, env=environment, cwd=folder
    ).stdout


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        screen, drawing = printed(Path(temporary)), figure(Path(temporary))
    page = README.read_text("utf-8")
    README.write_text(SCREEN.sub(lambda m: m[1] + m[2] + screen, page, count=1), "utf-8")
    FIGURE.write_text(drawing, "utf-8")
    if (TOP / TABLE).is_file():  # only after make repro
        traced = run(["-m", "plumbline.builders", "trace", f"{TABLE}#13"], TOP, TOP)
        page = TRACING.read_text("utf-8")
        TRACING.write_text(TRACE.sub(lambda m: refreshed(m[0], traced), page), "utf-8")
