"""The documentation as tests read it: its pages, their blocks of code, links and anchors."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import NamedTuple

TOP = Path(__file__).parent.parent
PAGES = [
    *(TOP / name for name in ("README.md", "CONTRIBUTING.md")),
    *sorted((TOP / "docs").rglob("*.md")),
]
FENCE = re.compile(r"^ *```([\w-]+)?([^\n]*)\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#{1,6} +(.+?)\s*$", re.MULTILINE)
CODE = re.compile(r"`[^`\n]*`")


class Block(NamedTuple):
    page: str
    line: int
    language: str
    about: str  # what stands behind the language, such as title="tiny.py"
    text: str


class Command(NamedTuple):
    page: str
    line: int
    text: str  # without comment, assignments of variables and the path of the environment
    words: tuple[str, ...]


def blocks(*languages: str, pages: list[Path] | None = None) -> list[Block]:
    """Return the blocks of these languages, in the order of pages and lines."""
    found = []
    for page in pages or PAGES:
        text, name = page.read_text(encoding="utf-8"), page.relative_to(TOP).as_posix()
        for match in FENCE.finditer(text):
            if (match[1] or "") in languages:
                line = text[: match.start()].count("\n") + 2
                found.append(Block(name, line, match[1] or "", match[2].strip(), match[3]))
    return found


def commands(pages: list[Path] | None = None) -> list[Command]:
    """Return every command of every block of shell."""
    return [command for block in blocks("sh", "bash", "console", "shell", pages=pages)
            for command in _commands(block)]  # fmt: skip


def _commands(block: Block):
    pending, start = "", 0
    for number, raw in enumerate(block.text.splitlines()):
        start = start if pending else number
        pending += raw.removesuffix("\\")
        if raw.endswith("\\"):
            continue
        words = [word.removeprefix(".venv/bin/") for word in shlex.split(pending, comments=True)]
        pending = ""
        while words and re.match(r"[A-Z_]+=", words[0]):
            words = words[1:]
        if words:
            yield Command(block.page, block.line + start, " ".join(words), tuple(words))


def prose(page: Path) -> str:
    """Return a page without its blocks of code and its code in lines."""
    return CODE.sub("", FENCE.sub("", page.read_text(encoding="utf-8")))


def anchors(page: Path) -> set[str]:
    """Return the anchors that GitHub makes of a page's headings."""
    found: dict[str, int] = {}
    result = {""}
    for heading in HEADING.findall(FENCE.sub("", page.read_text(encoding="utf-8"))):
        plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower()
        slug = "".join(c for c in plain if c.isalnum() or c in " -_").replace(" ", "-")
        number = found.get(slug, 0)
        found[slug] = number + 1
        result.add(f"{slug}-{number}" if number else slug)
    return result
