"""Dataset cards: a hand-written page, and what the build knows, as one README.

The page has YAML front matter for the Hub and prose; the schema, counts, provenance, the datasheet
and the command that rebuilds the dataset are added here. Beside the card stand its Croissant
description and, where the Hub knows no name for the licence, the terms.
"""

from __future__ import annotations

import importlib
import os
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template

from plumbline.builders import DATASETS
from plumbline.builders.core import front_matter, parquet
from plumbline.builders.core.front_matter import CARD
from plumbline.builders.core.snapshot import write_bytes
from plumbline.builders.release import croissant
from plumbline.builders.release import facts as known

if TYPE_CHECKING:
    from collections.abc import Iterable

    from plumbline.builders.release.facts import Facts

CARDS = Path("data/cards")  # beside the datasets: a page that changes makes no dataset stale
TERMS = "LICENSE.md"  # one of the two names that the Hub knows for it
WRITTEN = (CARD, croissant.FILE, TERMS)
ADULT = "not-for-all-audiences"  # the Hub's tag for what its readers may not want to see
WARNING = "content_warning"  # of a page: why; its card begins with it
POWERS = ("1K", "10K", "100K", "1M", "10M", "100M", "1B", "10B", "100B", "1T")
SIZES = ("n<1K", *(f"{low}<n<{high}" for low, high in pairwise(POWERS)), "n>1T")


def write_all(names: Iterable[str]) -> None:
    """Write the cards of datasets that are built; of all of them where no name is given."""
    for name in names or [n for n in DATASETS if (parquet.DATASETS / n).is_dir()]:
        print(write_dataset_card(name) / CARD)


def write_dataset_card(name: str) -> Path:
    """Write card, Croissant description and terms of a built dataset, and return their folder.

    Raises
    ------
    UserError
        If the dataset is not built, or has no page.
    """
    into = CARDS / name
    folder = parquet.DATASETS / name
    for file, body in render(folder, files_at=os.path.relpath(folder, into)).items():
        write_bytes(into / file, body)
    return into


def render(folder: Path, page: Path | None = None, files_at: str = "") -> dict[str, bytes]:
    """Return the card of a folder under ``data``, and what stands beside it, by file name.

    Raises
    ------
    UserError
        If the folder was not written by a build, or the page is missing.
    """
    facts = known.gather(folder, page or known.page_of(folder))
    warning = facts.front.pop(WARNING, "")
    front = _front(facts, adult=bool(warning))
    sources = template("sources.md.j2").render(sources=facts.built.origin.sources).rstrip()
    extra = facts.built.origin.recorded
    dataset = folder.name if folder.parent == parquet.DATASETS else ""
    if dataset in DATASETS:
        builder = importlib.import_module(f"plumbline.builders.datasets.{dataset}.build")
        extra = f"{extra}\n{builder.describe(folder)}" if extra else builder.describe(folder)
    schemas = facts.built.schemas
    distinct = list(dict.fromkeys(schemas.values()))
    configs = [[c for c in schemas if schemas[c] == schema] for schema in distinct]
    several = len(distinct) > 1
    text = template("card.md.j2").render(
        front=front,
        front_matter=front_matter.dump(front),
        prose=_warned(known.without_datasheet(facts.prose), warning).strip(),
        columns=[(s, c if several else ()) for s, c in zip(distinct, configs, strict=True)],
        rows=facts.rows,
        rejects=facts.rejects,
        extra=extra.rstrip(),
        sources=sources,
        validation=dataset,
        by_hand=facts.by_hand,
        facts=facts,
        gated=any(key.startswith("extra_gated_") for key in front),
        maintained=known.MAINTAINED,
        origin=facts.built.origin,
        fingerprint=parquet.fingerprint(folder),
    )
    described = croissant.describe(facts, front, files_at)
    written = {CARD: text.encode(), croissant.FILE: croissant.text(described).encode()}
    if front.get("license_link") == TERMS:
        terms = template("terms.md.j2").render(name=front.get("license_name"), sources=sources)
        written[TERMS] = terms.encode()
    return written


@cache
def template(name: str) -> Template:
    """Return a template of Markdown."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701 - Markdown
    )
    return environment.get_template(name)


def _front(facts: Facts, *, adult: bool) -> dict[str, Any]:
    """Return a card's YAML: the page's, and what follows from rows and schemas."""
    front = dict(facts.front)
    if front.get("license") == "other" and "license_link" not in front:
        pairs = list(front.items())
        after = "license_name" if "license_name" in front else "license"
        pairs.insert(1 + list(front).index(after), ("license_link", TERMS))
        front = dict(pairs)
    if adult:
        front["tags"] = list(dict.fromkeys([*front.get("tags", ()), ADULT]))
    if languages := front.get("language"):
        there = {name.rpartition("-")[2] for name in facts.rows}
        if there <= set(languages):  # configs are named for their languages: only those built
            front["language"] = languages = [code for code in languages if code in there]
        many = len(languages) > 1 or "mul" in languages
        front.setdefault("multilinguality", ["multilingual" if many else "monolingual"])
    power = len(str(sum(facts.rows.values()))) - 4  # of ten, from a thousand on
    front["size_categories"] = [SIZES[min(max(power, -1), len(SIZES) - 2) + 1]]
    return front | front_matter.entries(facts.built.schemas, facts.built.files)


def _warned(prose: str, warning: str) -> str:
    """Put the content warning under the title."""
    if not warning:
        return prose
    title, _, rest = prose.strip().partition("\n")
    return f"\n{title}\n\n> **Content warning.** {' '.join(warning.split())}\n{rest}"
