"""The facts on a folder's card, collected from its page, its build and its parquet files.

The questions of the datasheet follow Gebru et al. (2021), Datasheets for Datasets, in the project's
own words; ``datasheet.md.j2`` contains all of them. A page answers some of them in its section
``## Datasheet``, in paragraphs that begin with the question in bold type.

Each dataset has a page. Outputs and tables are described by a section of their study's page, whose
front matter contains the metadata of their cards.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

from plumbline.builders.core import front_matter, parquet
from plumbline.builders.core.errors import UserError
from plumbline.builders.core.front_matter import Built
from plumbline.builders.readers.declared import exceeds

HEADING = "Datasheet"
ROW, SAMPLE, LABELS, PEOPLE, BIASES, COLLECTED, ASKED, PREPARED, USES, NOT_FOR, HARM = BY_HAND = (
    "What is one row?",
    "Is it complete, or a sample?",
    "Which labels are there, and who assigned them?",
    "Is it about people, and can they be identified?",
    "What is over- or underrepresented?",
    "How was it collected?",
    "Was consent obtained?",
    "How was it cleaned and prepared?",
    "What is it for?",
    "What should it not be used for?",
    "What harm could come of it?",
)
MAINTAINED = (
    "The authors of plumbline maintain its builder. Errors are fixed there or at the source, never "
    "in the rows. Every fetch of its sources is a dated snapshot, and every build has a version of "
    "three numbers. A published version is a tag that never moves, so older versions remain."
)
DATASET_PAGES = Path("docs/datasets")
STUDY_PAGES = Path("docs/studies")
METHOD_PAGES = Path("docs/methods")  # pages about analyses across studies
CARDS = "cards"  # key in a study's front matter for the cards' metadata, by kind and name
SHARED = ("Sensitive content", "Citation")  # sections of a study's page that all its cards repeat
GENERATED = re.compile(r"<!-- begin generated -->.*?<!-- end generated -->\n?", re.DOTALL)
_RELATIVE = re.compile(r"\[([^]]+)\]\((?!https?:|mailto:)[^)\s]+\)")
_ANSWER = re.compile(
    r"^\*\*(?P<question>[^*]+\?)\*\*\s+(?P<answer>.+?)(?=\n\n|\Z)", re.MULTILINE | re.DOTALL
)


@dataclass(frozen=True)
class Facts:
    """Content of cards and Croissant descriptions."""

    folder: Path
    page: Path
    front: dict[str, Any]  # front matter of the page
    prose: str
    built: Built
    rows: dict[str, int]  # by config
    rejects: dict[tuple[str, str], int] = field(default_factory=dict)  # by config and reason

    @cached_property
    def by_hand(self) -> dict[str, str]:
        """The answers that the page gives, by question."""
        return answers(self.prose)

    @cached_property
    def sections(self) -> dict[str, str]:
        """The sections of the page, by heading."""
        return sections(self.prose)

    @property
    def days(self) -> list[str]:
        """The days on which sources were retrieved, sorted."""
        return dates(self.built.origin.sources)

    @property
    def nullable(self) -> str:
        """A sentence that lists the nullable columns."""
        schemas = self.built.schemas.values()
        names = dict.fromkeys(f"`{c.name}`" for s in schemas for c in s.columns if c.nullable)
        if not names:
            return "No column is ever null."
        return f"May be null, for the reasons given under Columns: {', '.join(names)}."

    def column(self, name: str) -> bool:
        """Return True if any config has a column with that name."""
        return any(c.name == name for s in self.built.schemas.values() for c in s.columns)


def page_of(folder: Path) -> Path:
    """Return the page that describes a folder under ``data``.

    Raises UserError if no page describes these outputs or tables.
    """
    _, kind, name, *_ = folder.parts
    if kind == "datasets":
        return DATASET_PAGES / f"{name}.md"
    for page in sorted(STUDY_PAGES.glob("*.md")):
        if name in _split(page)[0].get(CARDS, {}).get(kind, {}):
            return page
    if kind == "tables" and (METHOD_PAGES / f"{name}.md").is_file():
        return METHOD_PAGES / f"{name}.md"
    raise UserError(f"{STUDY_PAGES}: no page describes the {kind} `{name}`; add a card for it")


def gather(folder: Path, page: Path) -> Facts:
    """Collect the facts of a folder.

    Raises UserError if the folder was not written by a build, or the page is missing.
    """
    import polars as pl
    import pyarrow.parquet as pq

    path, rejected = folder / front_matter.FACTS, folder / parquet.REJECTS
    if not path.is_file():
        raise UserError(f"{path}: no such file; make the folder with `make repro`")
    built = front_matter.read(path)
    front, prose = read_page(page, folder)
    front = limited(front, folder)
    rows = {}
    for config in built.schemas:
        shards = folder.glob(built.files.format(config=config))
        rows[config] = sum(pq.read_metadata(p).num_rows for p in shards)
    rejects = {}
    if rejected.is_file():
        counts = pl.read_parquet(rejected).group_by("config", "reason").agg(pl.col("number").sum())
        rejects = {(c, reason): number for c, reason, number in sorted(counts.iter_rows())}
    return Facts(folder, page, front, prose, built, rows, rejects)


def read_page(page: Path, folder: Path | None = None) -> tuple[dict[str, Any], str]:
    """Return the front matter and prose that describe a folder, without generated parts.

    From a study's page, only the section on these outputs or tables is returned, as a page.

    Raises UserError if the page is missing, or lacks front matter or a section for the folder.
    """
    front, prose = _split(page)
    prose = GENERATED.sub("", prose)
    if folder is None or CARDS not in front:
        return front, prose
    places = ((kind, n) for kind in front[CARDS] for n in (folder.name, folder.parent.name))
    kind, name = next(((k, n) for k, n in places if n in front[CARDS][k]), ("", ""))
    if not kind:
        raise UserError(f"{page}: its front matter has no card for {folder}")
    parts = sections(prose)
    if name not in parts:
        raise UserError(f"{page}: no section '## {name}'")
    body = re.sub(r"^##(#+ )", r"#\1", parts[name], flags=re.MULTILINE)
    pieces = [f"# {kind.capitalize()} of `{name}`", body]
    pieces += [f"## {s}\n\n{parts[s]}" for s in SHARED if s in parts and s not in sections(body)]
    prose = _RELATIVE.sub(r"\1", "\n\n".join(pieces)) + "\n"
    return front.get(kind, {}) | front[CARDS][kind][name], prose


def limited(front: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Replace the licence in front matter if it permits more than the licences of the sources.

    Each source then keeps its own licence. Tables are exempt, since they contain estimates
    but no rows of the sources.
    """
    licence = str(front.get("license") or "other")
    if licence == "other" or folder.parts[1:2] == ("tables",):
        return front
    stated = [str(source["licence"]) for source, inner in origins(folder) if inner is None]
    if not exceeds(licence, stated):
        return front
    return front | {"license": "other", "license_name": "licences-of-the-sources"}


def origins(folder: Path) -> Iterator[tuple[dict[str, Any], Path | None]]:
    """Yield all direct and indirect sources of a folder, each with its path if it is under data."""
    todo, seen = [folder], {folder}
    for part in todo:
        for source in front_matter.read(part / front_matter.FACTS).origin.sources:
            path = Path(source["address"])
            inner = path.parts[:1] == ("data",) and (path / front_matter.FACTS).is_file()
            if inner and path not in seen:
                seen.add(path)
                todo.append(path)
            yield source, path if inner else None


def _split(page: Path) -> tuple[dict[str, Any], str]:
    if not page.is_file():
        raise UserError(f"{page}: no such page; copy and edit the page of another dataset")
    pieces = page.read_text(encoding="utf-8").split("---\n", 2)
    if len(pieces) != 3 or pieces[0]:
        raise UserError(f"{page}: no YAML front matter between two lines of '---'")
    return dict(yaml.safe_load(pieces[1])), pieces[2]


def sections(prose: str) -> dict[str, str]:
    """Return the second-level sections of a page, by heading."""
    pieces = [piece.strip() for piece in re.split(r"^## (.+)\n", prose, flags=re.MULTILINE)]
    return dict(zip(pieces[1::2], pieces[2::2], strict=True))


def answers(prose: str) -> dict[str, str]:
    """Return the hand-written answers on a page, by question; each is one line."""
    pairs = _ANSWER.findall(sections(prose).get(HEADING, ""))
    return {" ".join(question.split()): " ".join(answer.split()) for question, answer in pairs}


def without_datasheet(prose: str) -> str:
    """Return the prose of a page without its datasheet."""
    return re.sub(rf"^## {HEADING}\n.*?(?=^## |\Z)", "", prose, flags=re.MULTILINE | re.DOTALL)


def dates(sources: list[dict[str, Any]]) -> list[str]:
    """Return the days on which sources were retrieved, sorted."""
    pairs = (re.findall(r"\d{4}-\d{2}-\d{2}", str(source["retrieved"])) for source in sources)
    return sorted({day for days in pairs for day in days})
