"""Dataset cards: a hand-written page, and what the build knows, as one README.

The page ``docs/datasets/NAME.md`` has YAML front matter for the Hub and prose; the schema, counts,
provenance, the datasheet and the command that rebuilds the dataset are added here. Beside the card
stand its Croissant description and, where the Hub knows no name for the licence, the terms.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from plumbline.builders.core.errors import Problem
from plumbline.builders.core.parquet import fingerprint
from plumbline.builders.release import croissant
from plumbline.builders.release import facts as datasheet

if TYPE_CHECKING:
    from plumbline.builders.core.parquet import Counts
    from plumbline.builders.core.schema import Schema

PAGES = Path("docs/datasets")
TERMS = "LICENSE.md"  # one of the two names that the Hub knows for it
ADULT = "not-for-all-audiences"  # the Hub's tag for what its readers may not want to see
WARNING = "content_warning"  # of a page: why; its card begins with it
LEVELS = ("1K", "10K", "100K", "1M", "10M", "100M", "1B", "10B", "100B", "1T")
SIZES = (
    (10**3, f"n<{LEVELS[0]}"),
    *(
        (10**power, f"{low}<n<{high}")
        for power, low, high in zip(range(4, 13), LEVELS, LEVELS[1:], strict=False)
    ),
)
GENERATED = re.compile(r"<!-- begin generated -->.*?<!-- end generated -->\n?", re.DOTALL)


@dataclass(frozen=True)
class Origin:
    """Where a dataset comes from, for its card."""

    sources: list[dict[str, Any]]  # the manifests, or the like, of everything it was made of
    command: str
    version: str
    validation: str = ""


def write(
    folder: Path,
    page: Path,
    schemas: Schema | dict[str, Schema],
    counts: Counts,
    origin: Origin,
    extra: str = "",
    files: str = "{config}.parquet",
) -> None:
    """Write ``README.md`` into a dataset's folder.

    Parameters
    ----------
    page
        The hand-written page; its front matter becomes the card's.
    schemas
        One schema for all configs, or one for each.
    extra
        Markdown that the builder made from the rows, such as tables of counts.
    files
        Where the parquet files of a config are, relative to the folder.
    """
    front, prose = read_page(page)
    warning = front.pop(WARNING, "")
    names = sorted(counts.rows)
    by_config = schemas if isinstance(schemas, dict) else dict.fromkeys(names, schemas)
    front = _front(front, counts, by_config, files, adult=bool(warning))
    facts = datasheet.Facts(
        front,
        dict(counts.rows),
        by_config,
        origin.sources,
        datasheet.answers(prose),
        sum(counts.rejects.values()),
    )
    parts = [
        "---\n" + yaml.safe_dump(front, allow_unicode=True, sort_keys=False) + "---\n",
        _warned(datasheet.without(prose), warning).rstrip() + "\n",
        _columns(by_config),
        _counts(counts),
        extra.rstrip() + "\n" if extra else "",
        _sources(origin.sources),
        f"## Validation\n\n{origin.validation}\n" if origin.validation else "",
        datasheet.render(facts) if facts.by_hand else "",
        _rebuild(origin, folder),
    ]
    (folder / "README.md").write_text("\n".join(p for p in parts if p), encoding="utf-8")
    if front.get("license_link") == TERMS:
        (folder / TERMS).write_text(_terms(front, origin.sources), encoding="utf-8")
    name = croissant.named(folder, page.stem)
    described = croissant.Described(name, facts, prose, origin.command, origin.version, files)
    croissant.write(folder, described)


def read_page(page: Path) -> tuple[dict[str, Any], str]:
    """Split a hand-written page into its front matter and its prose, generated parts left out.

    Raises
    ------
    Problem
        If the page is missing or has no front matter.
    """
    if not page.is_file():
        raise Problem(f"{page}: no such page; every dataset has one, copy another and edit it")
    pieces = page.read_text(encoding="utf-8").split("---\n", 2)
    if len(pieces) != 3 or pieces[0]:
        raise Problem(f"{page}: no YAML front matter between two lines of '---'")
    return dict(yaml.safe_load(pieces[1])), GENERATED.sub("", pieces[2])


def _front(
    front: dict[str, Any],
    counts: Counts,
    by_config: dict[str, Schema],
    files: str,
    *,
    adult: bool,
) -> dict[str, Any]:
    """Return a card's YAML: the page's, and what follows from rows and schemas."""
    names = sorted(counts.rows)
    total = sum(counts.rows.values())
    if front.get("license") == "other" and "license_link" not in front:
        pairs = list(front.items())
        after = "license_name" if "license_name" in front else "license"
        pairs.insert(1 + list(front).index(after), ("license_link", TERMS))
        front = dict(pairs)
    if adult:
        front["tags"] = list(dict.fromkeys([*front.get("tags", ()), ADULT]))
    if languages := front.get("language"):
        there = {name.rpartition("-")[2] for name in names}
        if there <= set(languages):  # configs are named for their languages: only those built
            front["language"] = languages = [code for code in languages if code in there]
        many = len(languages) > 1 or "mul" in languages
        front.setdefault("multilinguality", ["multilingual" if many else "monolingual"])
    return front | {
        "size_categories": [next((label for limit, label in SIZES if total < limit), "n>1T")],
        "configs": [
            {
                "config_name": name,
                "data_files": [{"split": "train", "path": files.format(config=name)}],
                **({"default": True} if name == ("en" if "en" in names else names[0]) else {}),
            }
            for name in names
        ],
        "dataset_info": [{"config_name": n, "features": by_config[n].features()} for n in names],
    }


def _warned(prose: str, warning: str) -> str:
    """Put the content warning under the title."""
    if not warning:
        return prose
    title, _, rest = prose.strip().partition("\n")
    return f"\n{title}\n\n> **Content warning.** {' '.join(warning.split())}\n{rest}"


def _terms(front: dict[str, Any], sources: list[dict[str, Any]]) -> str:
    """Tell the terms of a folder whose licence the Hub has no name for."""
    name = str(front.get("license_name", "other"))
    return (
        f"# {name}\n\nNo single licence covers these rows: each keeps the terms of what it is made "
        f"of. The card (`README.md`) says more.\n\n{_sources(sources)}"
    )


def _columns(by_config: dict[str, Schema]) -> str:
    parts = ["## Columns\n"]
    for schema in dict.fromkeys(by_config.values()):
        configs = [name for name in by_config if by_config[name] is schema]
        if len(configs) < len(by_config):
            parts.append(f"Config `{'`, `'.join(configs)}`.")
        parts.append(f"One row is named by `{'`, `'.join(schema.key)}`.\n\n{schema.table()}\n")
    return "\n".join(parts)


def _rebuild(origin: Origin, folder: Path) -> str:
    """Name the version by its hash too: caches that go by the card then see that rows changed."""
    return (
        f"## Rebuild\n\nVersion {origin.version}; sha256 over its parquet files:\n"
        f"`{fingerprint(folder)}`. In a clone:\n\n```sh\n{origin.command}\n```\n"
    )


def _counts(counts: Counts) -> str:
    lines = ["## Counts", "", "| config | rows |", "|---|---:|"]
    lines += [f"| {name} | {n:,} |" for name, n in sorted(counts.rows.items())]
    if not counts.rejects:
        return "\n".join(lines) + "\n"
    lines += ["", "Input rows that are not in the dataset, by reason (`*`: in no config):", ""]
    lines += ["| config | reason | rows |", "|---|---|---:|"]
    lines += [f"| {c} | {reason} | {n:,} |" for (c, reason), n in sorted(counts.rejects.items())]
    return "\n".join(lines) + "\n"


def _sources(sources: list[dict[str, Any]]) -> str:
    lines = ["## Sources", ""]
    for s in sources:
        lines.append(f"- {s['source']}, {s['address']}, retrieved {s['retrieved']}.")
        lines.append(f"  Licence: {s['licence']}. Citation: {s['citation']}.")
    return "\n".join(lines) + "\n"
