"""Params of models: the origin and settings of each model.

Models are listed under `models` in params.yaml. A world (a control model trained on artificial
text) is an input, like a snapshot: a folder in ``data/samples/worlds`` with a manifest that lists
its files.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import Field, model_validator

from plumbline.builders.core.errors import UserError, in_the_open
from plumbline.builders.core.params import Params, read, section

if TYPE_CHECKING:
    from collections.abc import Sequence

DATA = Path("data")
MODELS = DATA / "models"
POINTER = "model.json"
WORLDS = DATA / "samples/worlds"
MANIFEST = "manifest.json"
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
VERBS: dict[str, frozenset[str]] = {  # the methods that each kind of model supports
    "masked": frozenset({"fill", "predict", "pseudo_logprobs", "represent"}),
    "causal": frozenset({"fill", "predict", "logprobs", "generate", "represent"}),
    "seq2seq": frozenset({"fill", "logprobs", "generate"}),
    "classifier": frozenset({"classify"}),
    "remote": frozenset({"logprobs", "generate"}),
}


def verbs(verb: str | tuple[str, ...]) -> frozenset[str]:
    """Return the methods that a probe can use, as a set; a model must support one of them."""
    return frozenset({verb} if isinstance(verb, str) else verb)


class Endpoint(Params):
    """Address and limits of a remote model."""

    url: str = Field(
        pattern=r"^https?://[^\s]+$",
        description="address of an OpenAI-compatible server, up to and including /v1",
    )
    model: str = Field(min_length=1, description="name of the model on that server")
    api: Literal["chat", "completions"] = Field(
        "chat", description="chat, or completions (required for log-probabilities)"
    )
    key: str | None = Field(
        None,
        pattern=r"^[A-Z][A-Z0-9_]*$",
        description="environment variable that contains the key; never the key itself",
    )
    token_budget: int = Field(
        1_000_000, ge=1, description="number of prompt and response tokens after which a run stops"
    )
    concurrency: int = Field(4, ge=1, le=64, description="number of concurrent requests")

    @model_validator(mode="after")
    def _encrypted(self) -> Endpoint:
        if self.key and in_the_open(self.url):
            raise ValueError(f"its url would send the key in {self.key} unencrypted; use https")
        return self


class Model(Params):
    """One model: a Hub ``id`` with a pinned ``revision``, a folder, or an ``endpoint``."""

    id: str | None = Field(None, description="id on the Hugging Face Hub, or path of a folder")
    revision: str | None = Field(
        None, pattern=r"^[0-9a-f]{40}$", description="full commit hash on the Hub (40 digits)"
    )
    endpoint: Endpoint | None = Field(None, description="a server that runs the model")
    kind: Literal["masked", "causal", "seq2seq", "classifier", "remote"] = Field(
        "masked",
        description="masked (also XLNet, BART and mBART), causal, seq2seq, classifier, or remote "
        "for an endpoint",
    )
    dtype: Literal["float32", "float64", "bfloat16"] = Field(
        "float32", description="data type of the model's arithmetic"
    )
    context: str = Field(
        "", description="text placed before prompts (XLNet expects long inputs); saved in outputs"
    )
    pickles: bool = Field(
        False,
        description="load weights from pickles if there are no safetensors; code in pickles is not "
        "executed, but safetensors are safer",
    )
    languages: list[str] | None = Field(
        None, description="languages of the prompts; null: all languages of the probe"
    )
    family: str | None = Field(
        None, description="architecture, such as BERT; a factor in the analysis `anova`"
    )
    size: str | None = Field(
        None, description="size within the family, such as base; a factor in the analysis `anova`"
    )
    control: Literal["positive", "negative"] | None = Field(
        None, description="for control models: biases are known (positive) or absent (negative)"
    )

    def among(self, languages: Sequence[str]) -> list[str]:
        """Return the languages of a probe in which the model is prompted."""
        return [code for code in languages if self.languages is None or code in self.languages]

    @model_validator(mode="after")
    def _one_origin(self) -> Model:
        if bool(self.id) == bool(self.endpoint):
            raise ValueError("give id and revision, or endpoint: one of them")
        if bool(self.endpoint) != (self.kind == "remote"):
            raise ValueError("kind: remote requires endpoint and vice versa")
        if self.id and not self.revision and not _local(self.id):
            raise ValueError(
                f"{self.id} needs a pinned revision; paste the 40 digits of a commit from "
                f"https://huggingface.co/{self.id}/commits/main into a line `revision: ...`"
            )
        if self.id and self.revision and _local(self.id):
            raise ValueError(f"{self.id} is a folder and has no revision; remove that line")
        return self


def _local(name: str) -> bool:
    return name.startswith((".", "/", "data/"))


def pointer(name: str, data: Path = DATA) -> Path:
    """Return the path of the file that contains a model's id, revision and file hashes."""
    world = data / WORLDS.relative_to(DATA) / name / MANIFEST
    return world if world.is_file() else data / MODELS.relative_to(DATA) / name / POINTER


def worlds() -> dict[str, Model]:
    """Return the existing worlds (control models), by name."""
    manifests = {path.parent.name: path for path in sorted(WORLDS.glob(f"*/{MANIFEST}"))}
    return {name: _world(path) for name, path in manifests.items() if NAME.fullmatch(name)}


def _world(manifest: Path) -> Model:
    facts = json.loads(manifest.read_text(encoding="utf-8"))
    return Model.model_validate({"id": manifest.parent.as_posix(), **facts["model"]})


def model(name: str, data: Path = DATA) -> Model:
    """Return a model's params; raise UserError if its name is unknown or its entry is invalid."""
    entries = read().get("models") or {}
    file = pointer(name, data)
    if NAME.fullmatch(name) and file.name == MANIFEST:
        if name in entries:
            raise UserError(f"params.yaml: models.{name}: {file.parent} has this name; rename it")
        return _world(file)
    if name not in entries or not NAME.fullmatch(name):
        names = ", ".join([*entries, *worlds()]) or "none"
        raise UserError(
            f"params.yaml: no model {name!r}, and no such control model; available: {names}"
        )
    return section(f"models.{name}", Model)
