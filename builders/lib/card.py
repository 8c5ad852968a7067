"""Dataset cards: a hand-written page, and what the build knows, as one README.

The page ``docs/datasets/NAME.md`` has YAML front matter for the Hub and prose; the schema, counts,
provenance and the command that rebuilds the dataset are added here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from builders.lib.problem import Problem
from builders.lib.store import fingerprint

if TYPE_CHECKING:
    from builders.lib.schema import Schema
    from builders.lib.store import Counts

PAGES = Path("docs/datasets")
SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (10**6, "100K<n<1M"))
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
    names = sorted(counts.rows)
    total = sum(counts.rows.values())
    by_config = schemas if isinstance(schemas, dict) else dict.fromkeys(names, schemas)
    front |= {
        "size_categories": [next((label for limit, label in SIZES if total < limit), "1M<n<10M")],
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
    parts = [
        "---\n" + yaml.safe_dump(front, allow_unicode=True, sort_keys=False) + "---\n",
        prose.rstrip() + "\n",
        _columns(by_config),
        _counts(counts),
        extra.rstrip() + "\n" if extra else "",
        _sources(origin.sources),
        f"## Validation\n\n{origin.validation}\n" if origin.validation else "",
        _rebuild(origin, folder),
    ]
    (folder / "README.md").write_text("\n".join(p for p in parts if p), encoding="utf-8")


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
