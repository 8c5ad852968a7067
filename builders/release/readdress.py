"""A release as its readers on the Hub need it: the repository's name in place of the folder's."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from plumbline.builders.release import croissant
from plumbline.builders.release.model_card import CARD

if TYPE_CHECKING:
    from plumbline.builders.release.terms import Release


def addressed(made: Release, address: str, repo: str, version: str) -> Release:
    """Return a release whose card and description name the repository at a version's tag.

    Parameters
    ----------
    address
        Of the Hub.
    """
    if made.kind == "model":
        return made
    folder = made.folder.as_posix()
    if len(made.folder.parts) > 3:  # of a model: the page's example may name another one
        pattern = re.escape(made.folder.parent.as_posix()) + '/[^"]+'
    else:
        pattern = re.escape(folder)
    text = re.sub(rf'load_dataset\("{pattern}"', f'load_dataset("{repo}"', made.card)
    files = made.files | ({CARD: text.encode()} if text != made.card else {})
    described = made.folder / croissant.FILE
    if described.is_file():
        text = described.read_text(encoding="utf-8")
        files[croissant.FILE] = croissant.published(text, address, repo, version)
    return replace(made, files=files)
