"""Write what the commands of README's first screen print, and its figure, into the docs."""

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
LINES, WIDTH = 5, 16  # lines of the figure, and its centimetres
DRAW = f"""
import plumbline
from plumbline.drawing import standalone
result = plumbline.politicians("world-planted", language="en")
print(standalone(result.svg(most={LINES}), {WIDTH}), end="")
"""


def printed(home: Path) -> str:
    """Return what README's commands print, with datasets and results in a folder."""
    found = SCREEN.search(README.read_text("utf-8"))
    assert found, "README.md has no block of commands with their output"
    commands = [line for line in found[1].splitlines() if line.startswith("plumbline ")]
    texts = [_run(["-m", *shlex.split(command)], home) for command in commands]
    lines = [line for text in texts for line in text.splitlines() if not line.startswith("  ")]
    return "".join(f"{textwrap.fill(line, 120, break_on_hyphens=False)}\n" for line in lines)


def figure(home: Path) -> str:
    """Return the figure: the most certain words of the control model with a planted bias."""
    return _run(["-c", DRAW], home)


def _run(words: list[str], home: Path) -> str:
    environment = os.environ | {"PYTHONPATH": str(TOP), "PLUMBLINE_HOME": str(home)}
    home.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, *words]
    return subprocess.run(  # noqa: S603
        command, check=True, stdout=subprocess.PIPE, text=True, env=environment, cwd=home
    ).stdout


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        screen, drawing = printed(Path(folder)), figure(Path(folder))
    text = README.read_text("utf-8")
    README.write_text(SCREEN.sub(lambda m: m[1] + m[2] + screen, text, count=1), "utf-8")
    FIGURE.write_text(drawing, "utf-8")
