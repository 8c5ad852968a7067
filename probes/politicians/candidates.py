"""Candidates: the words of one language that a model is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from plumbline.builders.core.errors import Problem
from plumbline.builders.datasets.words import build as words_dataset
from plumbline.probes.prompts.politicians import bare

if TYPE_CHECKING:
    from pathlib import Path


class Candidates:
    """The words of one language and part of speech, ready to be asked for."""

    def __init__(self, folder: Path, language: str, pos: str) -> None:
        code = words_dataset.SCHEMA["pos"].code(pos)
        frame = pl.read_parquet(folder / f"{language}.parquet").filter(pl.col("pos") == code)
        if frame.is_empty():
            raise Problem(f"{folder}: no {pos} in {language!r}; the treebanks must have some")
        frame = frame.sort(["count", "form", "lemma"], descending=[True, False, False])
        self.place = words_dataset.PLACES[frame["place"][0]]
        first = frame.unique("form", keep="first", maintain_order=True)
        totals = dict(frame.group_by("form").agg(pl.col("count").sum()).iter_rows())
        self.lemmas: dict[str, str] = dict(zip(first["form"], first["lemma"], strict=True))
        self.tokens: dict[str, int] = {form: totals[form] for form in self.lemmas}
        self.forms: list[str] = list(self.lemmas)

    def prompt(self, name: str) -> str:
        """Return the paper's frame around a name."""
        return bare(self.place).about(name)


def candidates_of(folder: Path, language: str) -> dict[str, Candidates]:
    """Return the candidates of every part of speech in a language."""
    return {pos: Candidates(folder, language, pos) for pos in words_dataset.POS}
