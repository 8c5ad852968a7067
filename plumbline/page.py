"""A page of results: what was found first, models by studies, then a figure for each."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from plumbline import studies
from plumbline.builders.core.snapshot import write_bytes
from plumbline.probes.report.view import Block, Group, Linked, Part, Section
from plumbline.probes.site import headlines
from plumbline.probes.site.build import STUDIES, render

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from plumbline.result import Result


def write(results: Sequence[Result], path: Path, before: str = "", title: str = "Results") -> Path:
    """Write a page of results, those of control models last, and return its path.

    It is written whole or not at all.

    Parameters
    ----------
    before
        HTML that stands above the table of all results.
    """
    kinds = ("positive", "negative")
    known = {s: dict(zip(of.controls, kinds, strict=True)) for s, of in studies.STUDIES.items()}

    def kind_of(result: Result) -> str:
        return known[result.study].get(result.model.split()[0], "")  # options stand behind it

    results = sorted(results, key=lambda result: ("", *kinds).index(kind_of(result)))
    every = [headlines.of_model(r.study, r.model, r.kind, r.headline, kind_of(r)) for r in results]
    rows = [row for row in every if row]
    sections = [headlines.section(rows, (), STUDIES)] if rows else []
    for study in dict.fromkeys(result.study for result in results):
        groups = [_group(result) for result in results if result.study == study]
        sections.append(Section(study, study, "", groups, ""))
    path.parent.mkdir(parents=True, exist_ok=True)
    write_bytes(path, render(sections, title=title, before=before).encode())
    return path


def _group(result: Result) -> Group:
    known = result.provenance["model"]
    tables = ", ".join(f"{name} ({len(table):,} rows)" for name, table in result.tables.items())
    command = f"plumbline export {result.study} --model {result.model} --to FOLDER"
    told = (
        f"{tables}.",
        Linked(f"CSV, parquet, LaTeX and figures: <code>{escape(command)}</code>"),
        f"{known['id']}, {known['revision']}",
    )
    captions = (result.summary, *(f"Note: {note}" for note in result.notes))
    shown = [*(Part(caption=text) for text in captions), Part(figure=result.svg())]
    folded = Block("tables and model", [Part(caption=text) for text in told])
    return Group(result.model, [Block("", shown), folded], f"{result.study}-{result.folder.name}")
