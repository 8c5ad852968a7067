"""Descriptions of a folder in Croissant 1.1: contents, provenance and intended use.

``croissant.json``, next to the card, is JSON-LD with PROV-O and the vocabulary for responsible AI
(RAI). Addresses of files are relative, so that the description works in a local folder; publishing
replaces them with those on the Hub. All facts come from the build: neither the time of writing nor
an absolute path is recorded.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from plumbline.builders.core import parquet
from plumbline.builders.core.params import yaml_of
from plumbline.builders.core.parquet import REJECTED
from plumbline.builders.core.schema import LISTS, Schema
from plumbline.builders.core.snapshot import digest
from plumbline.builders.release import facts as known
from plumbline.builders.release.facts import Facts, dates, origins

FILE = "croissant.json"
VOCABULARY = yaml_of(Path(__file__).with_name("croissant.yaml").read_text(encoding="utf-8"))
FORMAT = {"encodingFormat": VOCABULARY["parquet"]}


def describe(facts: Facts, front: dict[str, Any], files_at: str = "") -> dict[str, Any]:
    """Return the description of a folder; all its parquet files must exist.

    ``front``: the front matter of its card.
    ``files_at``: path of the files relative to the description, or empty if they are in its folder.
    """
    folder, origin = facts.folder, facts.built.origin
    days = dates([source for source, _ in origins(folder)])
    title = str(front.get("pretty_name", ""))
    description: dict[str, Any] = {
        "@context": VOCABULARY["context"],
        "@type": "sc:Dataset",
        "conformsTo": VOCABULARY["conforms"],
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
        "distribution": [],
        "recordSet": [],
    }
    for path in sorted(folder.rglob("*.parquet")):
        inside = path.relative_to(folder).as_posix()
        address = {"contentUrl": f"{files_at}/{inside}" if files_at else inside}
        size = {"contentSize": f"{path.stat().st_size} B"}
        file = _node("FileObject", inside, **address, **size, **FORMAT, sha256=digest(path))
        description["distribution"].append(file)
    rejects = {"rejects": REJECTED} if (folder / parquet.REJECTS).is_file() else {}
    for config, schema in {**facts.built.schemas, **rejects}.items():
        pattern = parquet.REJECTS if schema is REJECTED else facts.built.files.format(config=config)
        inner = sorted(path.relative_to(folder).as_posix() for path in folder.glob(pattern))
        source = {"fileObject": {"@id": inner[0]}}
        if len(inner) > 1:  # shards, which are not in an archive
            shards = f"{config}-files"
            source = {"fileSet": {"@id": shards}}
            one_set = _node("FileSet", shards, f"files of {config}", **FORMAT, includes=pattern)
            description["distribution"].append(one_set)
        description["recordSet"] += _records(config, schema, source)
    return {key: value for key, value in description.items() if value}


def published(described: dict[str, Any], address: str, repository: str, version: str) -> str:
    """Return a description whose addresses are those of a Hub repository at a version's tag."""
    url = f"{address.rstrip('/')}/datasets/{repository}"
    repository_node = _node(
        "FileObject",
        "repository",
        description="The repository on the Hub, at the tag of this version.",
        contentUrl=f"{url}/tree/refs%2Ftags%2F{version}",
        encodingFormat="git+https",
        sha256="https://github.com/mlcommons/croissant/issues/80",  # stands in for git's hashes
    )
    entries = described["distribution"]
    sets = any(entry["@type"] == "cr:FileSet" for entry in entries)
    distribution = [
        entry | {"containedIn": {"@id": "repository"}}
        if entry["@type"] == "cr:FileSet"
        else entry | {"contentUrl": f"{url}/resolve/{version}/{entry['@id']}"}
        for entry in entries
    ] + [repository_node] * sets
    return text(described | {"distribution": distribution, "url": url, "version": version})


def text(description: dict[str, Any]) -> str:
    """Serialise a description as JSON-LD."""
    return json.dumps(description, ensure_ascii=False, indent=1) + "\n"


def named(folder: Path) -> str:
    """Return the name of a folder, including the model's name if each model has its own folder."""
    label = folder.name.removeprefix(".").removesuffix(".partial")
    name, kind = folder.parent.name, folder.parent.parent.name
    return f"{name}-{label}" if kind in {"outputs", "tables"} else label


def _node(kind: str, identity: str, name: str = "", **more: Any) -> dict[str, Any]:
    return {"@type": f"cr:{kind}", "@id": identity, "name": name or identity, **more}


def _records(config: str, schema: Schema, source: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the record set of a config's rows, and one for the codes of each label column."""
    rows = f"The rows of config {config}."
    rows = "Input rows that are not in the dataset, by reason." if schema is REJECTED else rows
    key = [{"@id": f"{config}/{name}"} for name in schema.key]
    fields = []
    for column in schema.columns:
        codes = "; ".join(f"{code}: {label}" for code, label in enumerate(column.labels))
        field = _node(
            "Field",
            f"{config}/{column.name}",
            column.name,
            description=f"{column.description} ({codes})" if codes else column.description,
            dataType=VOCABULARY["types"][LISTS.get(column.kind, column.kind)],
            **({"isArray": True, "arrayShape": "-1"} if column.kind in LISTS else {}),
            source={**source, "extract": {"column": column.name}},
        )
        fields.append(field)
    yield _node("RecordSet", config, description=rows, key=key, field=fields)
    for column in schema.columns:
        if column.kind != "label":
            continue
        labels = f"{config}/{column.name}/labels"
        code, name = f"{labels}/code", f"{labels}/name"
        yield _node(
            "RecordSet",
            labels,
            description=f"Meaning of the codes of {column.name}.",
            dataType="sc:Enumeration",
            key=[{"@id": code}],
            field=[
                _node("Field", code, "code", dataType="cr:Int64"),
                _node("Field", name, "name", dataType="sc:Text"),
            ],
            data=[{code: number, name: label} for number, label in enumerate(column.labels)],
        )


def _licence(front: dict[str, Any]) -> Any:
    stated, names = str(front.get("license") or "unknown"), VOCABULARY["licences"]
    if stated in names or stated.startswith("cc"):  # SPDX writes Creative Commons ids in upper case
        return f"https://spdx.org/licenses/{names.get(stated, stated.upper())}.html"
    link = front.get("license_link")
    label = {"@type": "sc:CreativeWork", "name": str(front.get("license_name") or stated)}
    return label | ({"url": link} if link else {})


def _entity(source: dict[str, Any]) -> dict[str, Any]:
    """Return a source in PROV-O, with the date of its retrieval."""
    days = dates([source])
    when = {"prov:generatedAtTime": days[-1]} if days else {"sc:identifier": source["retrieved"]}
    return {
        "@type": "prov:Entity",
        "prov:label": source["source"],
        "prov:atLocation": source["address"],
        **when,
        "sc:license": source["licence"],
        "sc:citation": source["citation"],
    }


def _responsible(facts: Facts, days: list[str]) -> dict[str, Any]:
    """Return the RAI properties, which come from the datasheet and sections of the page."""
    answers, sections, sources = facts.by_hand, facts.sections, facts.built.origin.sources
    limits = re.split(r"^- ", sections.get("Known limits", ""), flags=re.MULTILINE)
    people = (answers.get(known.PEOPLE), _plain(sections.get("Sensitive content", "")))
    raw = (f"{s['source']}: {s['address']}, {s['retrieved']}" for s in sources)
    properties: dict[str, Any] = {
        "dataCollection": answers.get(known.COLLECTED),
        "dataCollectionRawData": "; ".join(raw),
        "dataCollectionMissingData": facts.nullable,
        "dataCollectionTimeFrame": list(dict.fromkeys((days[0], days[-1]))) if days else None,
        "dataPreprocessingProtocol": answers.get(known.PREPARED),
        "dataAnnotationProtocol": answers.get(known.LABELS),
        "dataUseCases": [answers[q] for q in (known.USES, known.NOT_FOR) if answers.get(q)],
        "dataLimitations": [plain for limit in limits if (plain := _plain(limit))],
        "dataBiases": answers.get(known.BIASES),
        "personalSensitiveInformation": [text for text in people if text],
        "dataSocialImpact": answers.get(known.HARM),
        "dataReleaseMaintenancePlan": known.MAINTAINED,
    }
    return {f"rai:{key}": value for key, value in properties.items() if value}


def _plain(markdown: str) -> str:
    """Return prose as one line, without code blocks and tables."""
    text = re.sub(r"^```.*?^```$", "", markdown, flags=re.MULTILINE | re.DOTALL)
    return " ".join(" ".join(re.findall(r"^(?!\|).*$", text, re.MULTILINE)).split())
