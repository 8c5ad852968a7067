"""A page for each model: its headlines, its controls, and what the studies measure of it.

The pages of studies keep what compares models: a row a model, and links to these pages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from plumbline.probes.report.view import Block, Group, Linked, Part, Section, link

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from plumbline.probes.report.view import Row, Study

FOLDER = "models"


def shown(names: Sequence[str]) -> dict[str, str]:
    """Return the names of models as they stand on pages of the site's root."""
    return {name: link(f"{FOLDER}/{name}.html", name) for name in names}


def about(row: Row, worlds: Collection[str]) -> str:
    """Return in a sentence what a model is."""
    kind = "control" if row["name"] in worlds else row["kind"]
    return f"A {kind} model: {row['id']}, revision {row['revision']}."


def left(study: Study, whole: Section, names: Sequence[str]) -> Section:
    """Return a section without what is of single models: links to their pages in its place."""
    kept = [group for group in whole.groups if not group.model]
    own = {group.model for group in whole.groups} - {""}
    if own:
        at = f"{study.name}-{whole.name}"
        links = [link(f"{FOLDER}/{name}.html#{at}", name) for name in names if name in own]
        part = Part(caption=Linked("Model by model: " + ", ".join(links)))
        kept.insert(0, Group("", [Block("", [part])]))
    return whole._replace(groups=kept)


def moved(
    study: Study, first: Sequence[Mapping[str, Group]], steps: Sequence[Section], name: str
) -> list[Section]:
    """Return the section of a study on a model's page, if there is anything of the model.

    ``first``: by model, what stands before the steps.
    """
    groups = [
        own[name]._replace(name=f"{study.name}-{own[name].name}") for own in first if name in own
    ]
    for step in steps:
        about = link(f"../{study.name}.html#{step.name}", "What is measured, and how to read it")
        found = [group for group in step.groups if group.model == name]
        for n, group in enumerate(found, 1):
            title = step.title + group.title.removeprefix(name)
            at = f"{study.name}-{step.name}" + (f"-{n}" if n > 1 else "")
            head = [Part(caption=text) for text in (about, step.calibration) if text]
            blocks = [Block("", head), *group.blocks]
            groups.append(Group(title, blocks, at, name))
    return [Section(study.name, study.title, "", groups, "")] if groups else []
