"""Build the site of the docs: ``make site`` writes it to site/.

The pages are those of docs/, with the README as the first one. Navigation follows the folders, so
that a new page or folder needs no entry anywhere. Equations are converted to MathML, so that pages
need no scripts and no external fonts. A link that leads nowhere, or a resource that would be loaded
from another server, is an error.
"""

from __future__ import annotations

import html
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

TOP = Path(__file__).parent.parent
STAGED = TOP / ".site"  # the pages that the generator reads
SITE = TOP / "site"
ROOT_PAGES = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md"}
ROOT_PAGES["CHANGELOG.md"] = "changelog.md"
ROOT_FILES = ("CITATION.cff", "LICENSE")
KEPT = {".md", ".yaml", ".svg", ".png", ".css"}
# Order of the navigation; folders and pages that are not named here come last.
FIRST = ("index", "tutorial")
SECTIONS = {
    "howto": "How to",
    "studies": "Studies",
    "datasets": "Datasets",
    "methods": "Methods",
    "reference": "Reference",
    "project": "Project",
}
PROJECT = ("changelog.md", "contributing.md")
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
INLINE = re.compile(r"\$`([^`]+)`\$")
LIST = re.compile(r"^(?!(?:[-*]|\d+\.) |  |#)(.+)\n(?=(?:-|\d+\.) )", re.MULTILINE)
LATER = re.compile(r"(\n\n {2,3}\S[^\n]*(?:\n {2,3}\S[^\n]*)*)\n(?=(?:-|\d+\.) )")
FRONT = re.compile(r"\A---\n.*?\n---\n+", re.DOTALL)
LINK = re.compile(r"(\]\()([^)\s]+)(\))")
INSIDE = re.compile(r"^ {2,3}(?=\S)", re.MULTILINE)


def main() -> int:
    """Stage the pages, build and check the site, and move it into place."""
    shutil.rmtree(STAGED, ignore_errors=True)
    pages = stage(TOP, STAGED / "pages")
    settings = yaml.safe_load((TOP / "docs/mkdocs.yml").read_text(encoding="utf-8"))
    settings |= {"docs_dir": "pages", "site_dir": "html", "nav": navigation(pages)}
    text = yaml.safe_dump(settings, allow_unicode=True, sort_keys=False)
    (STAGED / "mkdocs.yml").write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "zensical", "build", "--strict", "--clean"]
    done = subprocess.run(command, cwd=STAGED, check=False)  # noqa: S603
    if done.returncode:
        print("error: the site was not built; the lines above say why", file=sys.stderr)
        return 1
    from site_check import problems  # a module next to this one

    found = problems(STAGED / "html", {Path(p).with_suffix(".html").as_posix() for p in pages})
    for problem in found:
        print(f"error: {problem}", file=sys.stderr)
    if found:
        return 1
    shutil.rmtree(SITE, ignore_errors=True)
    (STAGED / "html").rename(SITE)
    shutil.rmtree(STAGED)
    print(f"site/index.html: {len(pages)} pages")
    return 0


def stage(top: Path, into: Path) -> list[str]:
    """Copy all pages of a checkout, adapted to the site, and return their sorted paths."""
    pages = []
    for path in sorted((top / "docs").rglob("*")):
        name = path.relative_to(top / "docs")
        if path.is_dir() or path.suffix not in KEPT or "__pycache__" in name.parts:
            continue
        (into / name).parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".md":
            (into / name).write_text(page(path, top), encoding="utf-8")
            pages.append(name.as_posix())
        elif name.name != "mkdocs.yml":
            shutil.copyfile(path, into / name)
    for source, name in ROOT_PAGES.items():
        (into / name).write_text(page(top / source, top), encoding="utf-8")
        pages.append(name)
    for name in ROOT_FILES:
        shutil.copyfile(top / name, into / f"{name}.txt")
    return sorted(pages)


def page(path: Path, top: Path) -> str:
    """Return the text of a page for the site, without front matter, with its links and MathML."""
    text = FRONT.sub("", path.read_text(encoding="utf-8"))
    made, end = [], 0
    for fence in FENCE.finditer(text):
        made.append(_prose(text[end : fence.start()], path, top))
        made.append(_display(fence[2], path) if fence[1] == "math" else fence[0])
        end = fence.end()
    return "".join([*made, _prose(text[end:], path, top)])


def _prose(text: str, path: Path, top: Path) -> str:
    # GitHub needs no empty line before a list and two spaces inside; Python-Markdown one and four.
    text = INSIDE.sub("    ", LATER.sub(r"\1\n\n", LIST.sub(r"\1\n\n", text)))
    # A span, since a line that begins with an equation would be read as a block of HTML.
    text = INLINE.sub(lambda m: f"<span>{mathml(m[1], path)}</span>", text)
    return LINK.sub(lambda m: m[1] + _moved(m[2], path, top) + m[3], text)


def _moved(link: str, path: Path, top: Path) -> str:
    """Return the target of a link on the site, where top-level pages are next to the others."""
    target, mark, anchor = link.partition("#")
    if not target or "://" in target or target.startswith("mailto:"):
        return link
    at_top = path.parent == top
    found = (path.parent / target).resolve()
    if found.parent == top and found.name in ROOT_PAGES | dict.fromkeys(ROOT_FILES, ""):
        name = ROOT_PAGES.get(found.name, f"{found.name}.txt")
        up = "" if at_top else "../" * len(path.parent.relative_to(top / "docs").parts)
        return up + name + mark + anchor
    return link.removeprefix("docs/") if at_top else link


def mathml(formula: str, path: Path, display: str = "inline") -> str:
    """Return a formula as MathML, which browsers render without scripts."""
    from latex2mathml.converter import convert

    try:
        made, fault = convert(formula.strip(), display=display), ""
    except Exception as error:  # noqa: BLE001 - the converter has many kinds of them
        made, fault = "", type(error).__name__
    if unknown := re.search(r">(\\[^<]*)<", made):  # unknown commands are passed on unchanged
        fault = f"unknown {unknown[1]}"
    if fault:
        raise SystemExit(f"error: {path}: cannot read the formula {formula.strip()!r} ({fault})")
    # Markdown would interpret stars and underscores, but not character references.
    made = re.sub(r">([*_`])<", lambda m: f">&#{ord(m[1])};<", made)
    words = html.escape(" ".join(formula.split()), quote=True)
    return made.replace("<math ", f'<math alttext="{words}" ', 1).replace("\n", " ")


def _display(formula: str, path: Path) -> str:
    rows = mathml(formula, path, "block")
    return f'\n<div class="equation">{rows}</div>\n'


def navigation(pages: list[str]) -> list[dict[str, Any]]:
    """Return the tree of pages by folder; top-level pages have their own sections."""
    sections: dict[str, list[str]] = {name: [] for name in SECTIONS}
    head: list[Any] = [f"{stem}.md" for stem in FIRST if f"{stem}.md" in pages]
    for name in sorted(set(pages) - set(head)):
        top = "project" if name in PROJECT else "reference"
        sections.setdefault(name.rpartition("/")[0] or top, []).append(name)
    named = {SECTIONS.get(name, name.capitalize()): inside for name, inside in sections.items()}
    return head + [{title: inside} for title, inside in named.items() if inside]


if __name__ == "__main__":
    sys.exit(main())
