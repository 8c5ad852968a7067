"""What params.yaml says of a model: where it comes from and how it is run."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

from pydantic import Field, model_validator

from plumbline.builders.core.errors import Problem
from plumbline.builders.core.params import Params
from plumbline.probes.worlds.convictions import Convictions
from plumbline.probes.worlds.language import World
from plumbline.probes.worlds.partisanship import Partisanship
from plumbline.probes.worlds.passports import Nations
from plumbline.probes.worlds.society import Society

if TYPE_CHECKING:
    from collections.abc import Sequence

NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
VERBS: dict[str, frozenset[str]] = {  # what a model of each kind can be asked
    "masked": frozenset({"fill", "predict", "pseudo_logprobs", "represent"}),
    "causal": frozenset({"fill", "predict", "logprobs", "generate", "represent"}),
    "seq2seq": frozenset({"fill", "logprobs", "generate"}),
    "classifier": frozenset({"classify"}),
    "remote": frozenset({"logprobs", "generate"}),
}


def verbs(verb: str | tuple[str, ...]) -> frozenset[str]:
    """Return what a model must be able to do to be put to a probe: one of these."""
    return frozenset({verb} if isinstance(verb, str) else verb)


class Endpoint(Params):
    """Where a remote model answers, and what it may cost."""

    url: str = Field(
        pattern=r"^https?://[^\s]+$",
        description="address of an OpenAI-compatible server, up to and with /v1",
    )
    model: str = Field(min_length=1, description="name of the model on that server")
    api: Literal["chat", "completions"] = Field(
        "chat", description="chat, or plain completions (log-probabilities need them)"
    )
    key: str | None = Field(
        None,
        description="name of the environment variable with the key; never the key itself",
    )
    token_budget: int = Field(
        1_000_000, ge=1, description="tokens, asked and answered, after which a run stops"
    )
    timeout_s: float = Field(120, gt=0, description="seconds to wait for an answer")
    tries: int = Field(6, ge=1, description="times that one request is tried")
    concurrency: int = Field(4, ge=1, le=64, description="requests on their way at once")

    @model_validator(mode="after")
    def _no_secret(self) -> Endpoint:
        if self.key is not None and not re.fullmatch(r"[A-Z][A-Z0-9_]*", self.key):
            raise ValueError(
                "key: give the name of an environment variable (capitals, digits and _) that holds "
                "the key, never the key itself"
            )
        if "@" in self.url:
            raise ValueError("url: holds a user or password; give the address alone")
        return self


class Examples(Params):
    """Labelled texts, as TweetEval lays them out: a line each."""

    texts: str = Field(min_length=1, description="file of texts")
    labels: str = Field(min_length=1, description="file of the numbers of their classes")


class Taught(Params):
    """A classifier that the pipeline trains: of which model, on what, and how."""

    start: str = Field(min_length=1, description="folder of the masked model that it is made of")
    examples: list[Examples] = Field(min_length=1, description="labelled texts to train on")
    mapping: str = Field(min_length=1, description="file of the numbers and names of the classes")
    epochs: int = Field(3, ge=1, description="times that every text is read")
    batch: int = Field(16, ge=1, description="texts in a step")
    length: int = Field(128, ge=8, description="tokens of a text at most; the rest is cut")
    learning_rate: float = Field(gt=0, description="highest learning rate of AdamW")
    seed: int = Field(1, ge=0, description="of the training")


class Model(Params):
    """One model: a Hub ``id`` with a pinned ``revision``, a world, or an ``endpoint``."""

    id: str | None = Field(None, description="id on the Hugging Face Hub, or a local folder")
    revision: str | None = Field(
        None, pattern=r"^[0-9a-f]{40}$", description="commit on the Hub, all 40 digits"
    )
    world: World | None = Field(None, description="a planted world, trained by the pipeline")
    society: Society | None = Field(
        None, description="a planted world of social groups, trained by the pipeline"
    )
    convictions: Convictions | None = Field(
        None, description="a planted world of values, trained by the pipeline"
    )
    nations: Nations | None = Field(
        None,
        description="a planted world of countries and names, trained by the pipeline; of kind "
        "masked or classifier",
    )
    partisanship: Partisanship | None = Field(
        None,
        description="a planted world of two sides, trained by the pipeline; masked, causal, or as "
        "a classifier the judge of what its causal models say",
    )
    taught: Taught | None = Field(
        None, description="a classifier that the pipeline trains on labelled texts"
    )
    endpoint: Endpoint | None = Field(None, description="a server that runs the model")
    kind: Literal["masked", "causal", "seq2seq", "classifier", "remote"] = Field(
        "masked",
        description="masked (also XLNet, BART and mBART), causal, seq2seq, classifier; remote for "
        "an endpoint",
    )
    dtype: Literal["float32", "float64", "bfloat16"] = Field(
        "float32", description="arithmetic of the model"
    )
    context: str = Field(
        "", description="put before every prompt (XLNet expects long inputs); kept in the outputs"
    )
    pickles: bool = Field(
        False,
        description="take weights from pickles where there are no safetensors; they are read "
        "without running what they hold, but safetensors are safer",
    )
    languages: list[str] | None = Field(
        None, description="languages it is asked in; default: all of the probe's"
    )
    family: str | None = Field(
        None, description="architecture, such as BERT: a factor of the analysis `anova`"
    )
    size: str | None = Field(
        None, description="size within its family, such as base: a factor of the analysis `anova`"
    )

    def among(self, languages: Sequence[str]) -> list[str]:
        """Return those of a probe's languages that the model is asked in."""
        return [code for code in languages if self.languages is None or code in self.languages]

    @property
    def planted(self) -> bool:
        """Whether it is trained here: on a world, or on labelled texts."""
        return any(map(bool, self._made_here))

    @property
    def _made_here(self) -> tuple[object, ...]:
        worlds = (self.world, self.society, self.convictions, self.nations, self.partisanship)
        return (*worlds, self.taught)

    @model_validator(mode="after")
    def _one_origin(self) -> Model:
        origins = (self.id, *self._made_here, self.endpoint)
        if sum(map(bool, origins)) != 1:
            raise ValueError(
                "give id and revision, or world, society, convictions, nations, partisanship, "
                "taught or endpoint: one of them"
            )
        if self.nations and self.kind not in ("masked", "classifier"):
            raise ValueError(f"a world of countries is masked or a classifier, not {self.kind}")
        if self.partisanship and self.kind not in ("masked", "causal", "classifier"):
            raise ValueError(f"a world of two sides writes, fills or judges; not {self.kind}")
        if self.taught and self.kind != "classifier":
            raise ValueError("taught and kind: classifier belong together")
        if bool(self.endpoint) != (self.kind == "remote"):
            raise ValueError("kind: remote and endpoint belong together")
        if self.id and not self.revision and not _local(self.id):
            raise ValueError(
                f"{self.id} needs a pinned revision; paste the 40 digits of a commit from "
                f"https://huggingface.co/{self.id}/commits/main into a line `revision: ...`"
            )
        if self.id and self.revision and _local(self.id):
            raise ValueError(f"{self.id} is a folder: it has no revision, take that line out")
        return self


def _local(name: str) -> bool:
    return name.startswith((".", "/", "data/"))


class Models(Params):
    """All models, by name."""

    models: dict[str, Model]


def model(name: str) -> Model:
    """Return one model's params.

    Raises
    ------
    Problem
        If params.yaml has no such model, or its entry is wrong.
    """
    from plumbline.builders.core.params import read, section

    known = read().get("models") or {}
    if not isinstance(known, dict) or name not in known or not NAME.fullmatch(name):
        names = ", ".join(known) or "none"
        raise Problem(f"params.yaml: no model {name!r} under models; there are: {names}")
    return section(f"models.{name}", Model)
