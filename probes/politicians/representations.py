"""Probe ``representations``: a model's hidden states for the words in the dataset ``words``.

Each form is a separate text with the model's special tokens. Its representation is the last hidden
state, averaged over the tokens of the form.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pyarrow as pa
from pydantic import Field

from plumbline.builders.core import parquet
from plumbline.builders.core.errors import UserError
from plumbline.builders.core.params import Params as Section
from plumbline.builders.core.schema import Column, Schema
from plumbline.probes.core.run_probe import MODEL, Shard, Task, rows, split
from plumbline.probes.models.scorer import Represents, Scorer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from plumbline.probes.models.params import Model

INPUTS = ("words",)
VERB = "represent"
PROMPT = "word"  # column of the prompts
SHARD = 5_000  # words per shard; determines the layout of the outputs

SCHEMA = Schema(
    columns=(
        Column("word", "string", "form of the word, which is the exact input"),
        Column("pieces", "int32", "number of tokens, excluding special tokens", minimum=1),
        Column(
            "unknown_pieces",
            "int32",
            "number of unknown tokens of the word; if above 0, the input is incomplete",
            minimum=0,
        ),
        Column("state", "floats", "last hidden state, averaged over tokens, with six decimals"),
        *MODEL,
    ),
    key=("word",),
)

SCHEMAS = {"one a language": SCHEMA}


class Params(Section):
    """Languages."""

    version: str = Field(pattern=r"^\d+\.\d+\.\d+$", description="version of the outputs")
    languages: list[str] = Field(min_length=1, description="configs of `words`")


def forms(folder: Path, language: str) -> list[str]:
    """Return the distinct forms of a language, sorted."""
    frame = pl.read_parquet(folder / f"{language}.parquet", columns=["form"])
    return frame["form"].unique().sort().to_list()


def shards(params: Params, model: Model, folders: dict[str, Path]) -> list[Shard]:
    """Return the shards of a model's outputs: the words of each language.

    Raises UserError if the dataset lacks a language.
    """
    languages = model.among(params.languages)
    if missing := sorted(set(languages) - set(parquet.configs(folders["words"]))):
        raise UserError(
            f"probes.representations.languages: {', '.join(missing)} must be in words; add them "
            "under datasets, or remove them here"
        )
    sizes = amount(params, model, folders)
    return [shard for language in languages for shard in split(language, sizes[language], SHARD)]


def amount(params: Params, model: Model, folders: dict[str, Path]) -> dict[str, int]:
    """Return the number of words in each language."""
    languages = model.among(params.languages)
    return {language: len(forms(folders["words"], language)) for language in languages}


def answer(shard: Shard, task: Task, scorer: Scorer) -> Iterator[pa.Table]:
    """Yield the output tables of one shard."""
    assert isinstance(scorer, Represents)
    words = shard.among(forms(task.folders["words"], shard.config))
    state = SCHEMA.arrow().field("state").type
    for block in scorer.represent(words, language=shard.config):
        n, width = block.states.shape
        offsets = pa.array(range(0, (n + 1) * width, width), pa.int32())
        columns = {
            "word": block.words,
            "pieces": block.pieces,
            "unknown_pieces": block.unknown,
            "state": pa.ListArray.from_arrays(offsets, pa.array(block.states.ravel()), type=state),
        }
        yield rows(SCHEMA, scorer, n, columns)
