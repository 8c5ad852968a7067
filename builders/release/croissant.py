"""Croissant 1.1 descriptions: what is in a folder, where it is from and what it is fit for.

``croissant.json`` beside the card is JSON-LD with PROV-O and the vocabulary for responsible AI
(RAI). Addresses of files are relative, so that it works from a folder; publishing puts the Hub's.
Everything in it comes from the build: no clock, no path of this machine.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plumbline.builders.core import front_matter, parquet
from plumbline.builders.core.schema import LISTS, Column, Schema
from plumbline.builders.core.snapshot import digest
from plumbline.builders.core.yaml_text import parse
from plumbline.builders.release import facts as known
from plumbline.builders.release.facts import dates

if TYPE_CHECKING:
    from plumbline.builders.release.facts import Facts

FILE = "croissant.json"
_VOCABULARY = parse(Path(__file__).with_name("croissant.yaml").read_text(encoding="utf-8"))
CONFORMS: list[str] = _VOCABULARY["conforms"]
CONTEXT: dict[str, Any] = _VOCABULARY["context"]
PARQUET: list[str] = _VOCABULARY["parquet"]
TYPES: dict[str, str] = _VOCABULARY["types"]
LICENCES: dict[str, str] = _VOCABULARY["licences"]
REJECTS = Schema(
    columns=(
        Column("config", "string", "config that the row would be in; `*`: any"),
        Column("key", "string", "what names the row in its source"),
        Column("reason", "string", "why it is left out"),
        Column("detail", "string", "more about it, or empty"),
        Column("number", "int64", "how many rows this stands for"),
    ),
    key=("config", "key", "reason", "detail"),
)


def describe(facts: Facts, front: dict[str, Any], files_at: str = "") -> dict[str, Any]:
    """Return the description of a folder whose parquet files are all there.

    Parameters
    ----------
    front
        The front matter of its card.
    files_at
        Where the files are, relative to the description; empty: beside it.
    """
    folder, origin = facts.folder, facts.built.origin
    schemas = dict(facts.built.schemas)
    if (folder / parquet.REJECTS).is_file():
        schemas[parquet.REJECTS.removesuffix(".parquet")] = REJECTS
    distribution: list[Any] = [
        _file(folder, path, files_at) for path in sorted(folder.rglob("*.parquet"))
    ]
    records: list[Any] = []
    for config, schema in schemas.items():
        pattern = parquet.REJECTS if schema is REJECTS else facts.built.files.format(config=config)
        inside = sorted(path.relative_to(folder).as_posix() for path in folder.glob(pattern))
        source = {"fileObject": {"@id": inside[0]}}
        if len(inside) > 1:
            source = {"fileSet": {"@id": f"{config}-files"}}
            distribution.append(_set(config, pattern))
        records.append(_records(config, schema, source))
        records += [_enumeration(config, c) for c in schema.columns if c.kind == "label"]
    days = _days(facts)
    title = str(front.get("pretty_name", ""))
    description: dict[str, Any] = {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": CONFORMS,
        "name": named(folder),
        "alternateName": title,
        "description": _plain(next(iter(facts.sections.values()), title)),
        "license": _licence(front),
        "citeAs": _plain(facts.sections.get("Citation", "")),
        "creator": {"@type": "sc:Organization", "name": "The plumbline authors"},
        "dateCreated": days[-1] if days else None,
        "datePublished": days[-1] if days else None,
        "version": origin.version,
        "keywords": front.get("tags"),
        "inLanguage": front.get("language"),
        "prov:wasDerivedFrom": [_entity(s) for s in origin.sources],
        "prov:wasGeneratedBy": {
            "@type": "prov:Activity",
            "prov:label": origin.command,
            "sc:version": origin.version,
            "prov:wasAssociatedWith": {"@type": "prov:SoftwareAgent", "prov:label": "plumbline"},
        },
        **_responsible(facts, days),
        "distribution": distribution,
        "recordSet": records,
    }
    return {key: value for key, value in description.items() if value}


def published(described: dict[str, Any], address: str, repository: str, version: str) -> str:
    """Return a description with the addresses of a repository of the Hub, at a version's tag."""
    url = f"{address.rstrip('/')}/datasets/{repository}"
    distribution = []
    for entry in described["distribution"]:
        if entry["@type"] == "cr:FileSet":
            distribution.append(entry | {"containedIn": {"@id": "repository"}})
        else:
            where = f"{url}/resolve/{version}/{entry['@id']}"
            distribution.append(entry | {"contentUrl": where})
    if any(entry["@type"] == "cr:FileSet" for entry in distribution):
        distribution.append(_repository(url, version))
    return text(described | {"distribution": distribution, "url": url, "version": version})


def _repository(url: str, version: str) -> dict[str, Any]:
    """Return the repository itself, which sets of files are in; git has hashes of its own."""
    return {
        "@type": "cr:FileObject",
        "@id": "repository",
        "name": "repository",
        "description": "The repository on the Hub, at the tag of this version.",
        "contentUrl": f"{url}/tree/refs%2Ftags%2F{version}",
        "encodingFormat": "git+https",
        "sha256": "https://github.com/mlcommons/croissant/issues/80",
    }


def text(description: dict[str, Any]) -> str:
    """Return a description as JSON-LD."""
    return json.dumps(description, ensure_ascii=False, indent=1) + "\n"


def named(folder: Path) -> str:
    """Return the name of a folder, with its model where each has a folder."""
    own = folder.name.removeprefix(".").removesuffix(".partial")
    name, kind = folder.parent.name, folder.parent.parent.name
    return f"{name}-{own}" if kind in {"outputs", "tables"} else own


def _file(folder: Path, path: Path, files_at: str) -> dict[str, Any]:
    inside = path.relative_to(folder).as_posix()
    return {
        "@type": "cr:FileObject",
        "@id": inside,
        "name": inside,
        "contentUrl": f"{files_at}/{inside}" if files_at else inside,
        "contentSize": f"{path.stat().st_size} B",
        "encodingFormat": PARQUET,
        "sha256": digest(path),
    }


def _set(config: str, pattern: str) -> dict[str, Any]:
    """Return the shards of a config as one set; in no container, so of the folder itself."""
    return {
        "@type": "cr:FileSet",
        "@id": f"{config}-files",
        "name": f"files of {config}",
        "encodingFormat": PARQUET,
        "includes": pattern,
    }


def _records(config: str, schema: Schema, source: dict[str, Any]) -> dict[str, Any]:
    return {
        "@type": "cr:RecordSet",
        "@id": config,
        "name": config,
        "description": "Input rows that are not in the dataset, by reason."
        if schema is REJECTS
        else f"The rows of config {config}.",
        "key": [{"@id": f"{config}/{name}"} for name in schema.key],
        "field": [_field(config, column, source) for column in schema.columns],
    }


def _field(config: str, column: Column, source: dict[str, Any]) -> dict[str, Any]:
    codes = "; ".join(f"{code}: {label}" for code, label in enumerate(column.labels))
    described = f"{column.description} ({codes})" if codes else column.description
    listed = {"isArray": True, "arrayShape": "-1"} if column.kind in LISTS else {}
    return {
        "@type": "cr:Field",
        "@id": f"{config}/{column.name}",
        "name": column.name,
        "description": described,
        "dataType": TYPES[LISTS.get(column.kind, column.kind)],
        **listed,
        "source": {**source, "extract": {"column": column.name}},
    }


def _enumeration(config: str, column: Column) -> dict[str, Any]:
    """Return the names of a label's codes, as records."""
    name = f"{config}/{column.name}/labels"
    return {
        "@type": "cr:RecordSet",
        "@id": name,
        "name": name,
        "description": f"What the codes of {column.name} stand for.",
        "dataType": "sc:Enumeration",
        "key": [{"@id": f"{name}/code"}],
        "field": [
            {"@type": "cr:Field", "@id": f"{name}/code", "name": "code", "dataType": "cr:Int64"},
            {"@type": "cr:Field", "@id": f"{name}/name", "name": "name", "dataType": "sc:Text"},
        ],
        "data": [
            {f"{name}/code": code, f"{name}/name": label}
            for code, label in enumerate(column.labels)
        ],
    }


def _licence(front: dict[str, Any]) -> Any:
    known = str(front.get("license") or "unknown")
    if known in LICENCES or known.startswith("cc"):  # all of Creative Commons, in capitals
        return f"https://spdx.org/licenses/{LICENCES.get(known, known.upper())}.html"
    named = {"name": str(front.get("license_name") or known)}
    link = front.get("license_link")
    return {"@type": "sc:CreativeWork", **named, **({"url": link} if link else {})}


def _entity(source: dict[str, Any]) -> dict[str, Any]:
    """Return a source as PROV-O has it: the time of its retrieval is that of the copy used."""
    days = dates([source])
    return {
        "@type": "prov:Entity",
        "prov:label": source["source"],
        "prov:atLocation": source["address"],
        **({"prov:generatedAtTime": days[-1]} if days else {}),
        **({} if days else {"sc:identifier": source["retrieved"]}),
        "sc:license": source["licence"],
        "sc:citation": source["citation"],
    }


def _days(facts: Facts) -> list[str]:
    """Return the days of retrieval, those of the folders that things were made of among them."""
    found, todo, seen = set(facts.days), list(facts.built.origin.sources), set()
    while todo:
        path = Path(todo.pop()["address"]) / front_matter.FACTS
        if path.parts[0] == "data" and path not in seen and path.is_file():
            seen.add(path)
            sources = front_matter.read(path).origin.sources
            found.update(dates(sources))
            todo += sources
    return sorted(found)


def _responsible(facts: Facts, days: list[str]) -> dict[str, Any]:
    """Return the RAI properties, from the page's datasheet and sections."""
    said, there = facts.by_hand, facts.sections
    sources = [
        f"{s['source']}: {s['address']}, {s['retrieved']}" for s in facts.built.origin.sources
    ]
    limits = re.split(r"^- ", there.get("Known limits", ""), flags=re.MULTILINE)
    uses = [said.get(known.USES), said.get(known.NOT_FOR)]
    people = [said.get(known.PEOPLE), _plain(there.get("Sensitive content", ""))]
    found: dict[str, Any] = {
        "dataCollection": said.get(known.COLLECTED),
        "dataCollectionRawData": "; ".join(sources),
        "dataCollectionMissingData": facts.nullable,
        "dataCollectionTimeFrame": list(dict.fromkeys((days[0], days[-1]))) if days else None,
        "dataPreprocessingProtocol": said.get(known.PREPARED),
        "dataAnnotationProtocol": said.get(known.LABELS),
        "dataUseCases": [text for text in uses if text],
        "dataLimitations": [plain for text in limits if (plain := _plain(text))],
        "dataBiases": said.get(known.BIASES),
        "personalSensitiveInformation": [text for text in people if text],
        "dataSocialImpact": said.get(known.HARM),
        "dataReleaseMaintenancePlan": known.MAINTAINED,
    }
    return {f"rai:{key}": value for key, value in found.items() if value}


def _plain(markdown: str) -> str:
    """Return prose in one line, without blocks of code, tables and what they illustrate."""
    text = re.sub(r"^```.*?^```$", "", markdown, flags=re.MULTILINE | re.DOTALL)
    text = "\n".join(line for line in text.splitlines() if not line.startswith("|"))
    return " ".join(text.split())
