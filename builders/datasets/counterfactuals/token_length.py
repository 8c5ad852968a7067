"""How many tokens a model's tokenizer makes of a name: long names are rare ones to a model."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import Field

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.params import Params as Section

if TYPE_CHECKING:
    from collections.abc import Callable


class Match(Section):
    """Whose tokens are counted."""

    tokenizer: str = Field(description="a file tokenizer.json, as models on the Hub have it")
    sha256: str = Field(pattern="^[0-9a-f]{64}$", description="of that file")


def lengths(params: Match) -> Callable[[str], int]:
    """Return a function that counts the tokens of a name inside a sentence."""
    from tokenizers import Tokenizer

    path = Path(params.tokenizer)
    where = "derived.counterfactuals.match"
    if not path.is_file():
        raise UserError(f"{where}: no file {path}; copy a model's tokenizer.json there")
    body = path.read_bytes()
    if hashlib.sha256(body).hexdigest() != params.sha256:
        raise UserError(f"{where}: {path} has another sha256; paste its own")
    tokenizer = Tokenizer.from_buffer(body)

    @cache
    def count(name: str) -> int:
        return len(tokenizer.encode(f" {name}", add_special_tokens=False).ids)

    return count
