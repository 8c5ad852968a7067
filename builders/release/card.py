"""Dataset cards: READMEs that combine a hand-written page with the facts of the build.

The page contains YAML front matter for the Hub, and prose; this module adds the schema, counts,
provenance, datasheet and the command that rebuilds the dataset. The Croissant description is
written next to the card, as are the terms if the Hub has no name for the licence.
"""

from __future__ import annotations

import importlib
import os
from bisect import bisect
from collections import defaultdict
from collections.abc import Iterable
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template

from plumbline.builders import DATASETS
from plumbline.builders.core import front_matter, parquet
from plumbline.builders.core.front_matter import CARD, count_rows
from plumbline.builders.core.schema import Schema
from plumbline.builders.core.snapshot import write_bytes
from plumbline.builders.release import croissant
from plumbline.builders.release import facts as known
from plumbline.builders.release.facts import Facts
from plumbline.builders.release.params import publishing

CARDS = Path("data/cards")  # separate, so that editing a page makes no dataset stale
TERMS = "LICENSE.md"  # one of the two file names that the Hub recognises
ADULT = "not-for-all-audiences"  # the Hub's tag for sensitive content
WARNING = "content_warning"  # key in the front matter; the card begins with the warning
SUMMARY = (  # labels of the answers at the top of a card, and their questions
    ("A row", known.ROW),
    ("Source", known.COLLECTED),
    ("Use", known.USES),
    ("Not for", known.NOT_FOR),
)
POWERS = ("1K", "10K", "100K", "1M", "10M", "100M", "1B", "10B", "100B", "1T")
SIZES = ("n<1K", *(f"{low}<n<{high}" for low, high in pairwise(POWERS)), "n>1T")


def write_all(names: Iterable[str]) -> None:
    """Write the cards, Croissant descriptions and terms of named datasets, or of all built ones.

    Raises UserError if a dataset is not built, or has no page.
    """
    for name in names or [n for n in DATASETS if (parquet.DATASETS / n).is_dir()]:
        folder, into = parquet.DATASETS / name, CARDS / name
        for file, body in render(folder, files_at=os.path.relpath(folder, into)).items():
            write_bytes(into / file, body)
        print(into / CARD)


def render(folder: Path, page: Path | None = None, files_at: str = "") -> dict[str, bytes]:
    """Return the card of a folder under ``data`` and the files next to it, by file name.

    Raises UserError if the folder was not written by a build, or the page is missing.
    """
    facts = known.gather(folder, page or known.page_of(folder))
    origin = facts.built.origin
    warning = " ".join(facts.front.pop(WARNING, "").split())
    front = _front(facts, adult=bool(warning))
    prose = known.without_datasheet(facts.prose).strip()
    title, _, remainder = prose.partition("\n")
    notice = [f"> **Content warning.** {warning}", ""] if warning else []
    summary = [f"- **{label}**: {facts.by_hand[q]}" for label, q in SUMMARY if q in facts.by_hand]
    prose = "\n".join([title, "", *notice, *summary, remainder]).strip()
    extra = [origin.recorded] if origin.recorded else []
    dataset = folder.name if folder.parent == parquet.DATASETS else ""
    if dataset in DATASETS:
        builder = importlib.import_module(f"plumbline.builders.datasets.{dataset}.build")
        extra.append(count_rows(folder, builder.SCHEMA, *builder.COUNTS))
    configs: dict[Schema, list[str]] = defaultdict(list)
    for config, schema in facts.built.schemas.items():
        configs[schema].append(config)
    sources = template("sources.md.j2").render(sources=origin.sources).rstrip()
    text = template("card.md.j2").render(
        front=front,
        front_matter=front_matter.dump(front),
        prose=prose,
        columns=[(s, named if len(configs) > 1 else ()) for s, named in configs.items()],
        extra="\n".join(extra).rstrip(),
        sources=sources,
        validation=dataset,
        facts=facts,
        contact=publishing().contact,
        gated="extra_gated_" in " ".join(front),
        maintained=known.MAINTAINED,
        origin=origin,
        fingerprint=parquet.fingerprint(folder),
    )
    written = {
        CARD: text,
        croissant.FILE: croissant.text(croissant.describe(facts, front, files_at)),
    }
    if front.get("license_link") == TERMS:
        terms = {"name": front.get("license_name"), "sources": sources}
        written[TERMS] = template("terms.md.j2").render(terms)
    return {name: body.encode() for name, body in written.items()}


@cache
def template(name: str) -> Template:
    """Return a Markdown template from this folder."""
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
    """Return a card's front matter: that of the page, and fields derived from rows and schemas."""
    front: dict[str, Any] = {}
    after = "license_name" if "license_name" in facts.front else "license"
    for key, value in facts.front.items():
        front[key] = value
        if key == after and facts.front.get("license") == "other":
            front["license_link"] = facts.front.get("license_link", TERMS)
    if adult:
        front["tags"] = list(dict.fromkeys([*front.get("tags", ()), ADULT]))
    if languages := front.get("language"):
        built = {name.rpartition("-")[2] for name in facts.rows}
        if built <= set(languages):  # omit languages that were not built
            front["language"] = languages = [code for code in languages if code in built]
        many = len(languages) > 1 or "mul" in languages
        front.setdefault("multilinguality", ["multilingual" if many else "monolingual"])
    index = bisect([10**power for power in range(3, 13)], sum(facts.rows.values()))
    front["size_categories"] = [SIZES[index]]
    return front | front_matter.entries(facts.built.schemas, facts.built.files)
