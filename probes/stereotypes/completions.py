"""Probe ``stereotypes``: what a model puts where a search engine completes a stereotype.

For every social group and template the best tokens of the whole vocabulary, each with its
log-probability with the group and without, so that its typicality, log(P_post / P_prior), can be
taken in every reading. Choenni, Shutova and van Rooij (2021), section 4.1 and eq. 3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pyarrow as pa
from pydantic import Field

from plumbline.builders.core import parquet
from plumbline.builders.core.errors import Problem
from plumbline.builders.core.schema import Column, Schema
from plumbline.probes.core.shards import Shard, split
from plumbline.probes.models.scorer import DECIMALS, Predicts, Scorer
from plumbline.probes.prompts import groups as questions
from plumbline.probes.prompts.groups import GROUP, Asking, masked, prompt, queries

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from plumbline.probes.models.params import Model
    from plumbline.probes.prompts.groups import Frames, Query

INPUTS = questions.DATASETS
VERB = "predict"
PROMPT = "prompt"  # the column with what was asked
SHARD = 100  # groups in a shard; part of the layout of the outputs
VOCABULARY = "vocabulary"

COLUMNS = (
    Column("category", "string", "category of the group"),
    Column("group", "string", "the group, as it stands in the prompt"),
    Column("template", "string", "the template, in lower case"),
    Column("query", "string", "the template with the group, in lower case; joins `stereotypes`"),
    Column("prompt", "string", "the prompt exactly as the model got it"),
    Column("token", "string", "the token, as the vocabulary has it"),
    Column("word", "string", "the token as text, without spaces around; joins an attribute"),
    Column(
        "starts_word",
        "bool",
        "whether the token stands for the whole of `word` behind another word; else it is the rest "
        "of a longer word, a special token, or a second spelling",
    ),
    Column("rank", "int32", "rank by log-probability", minimum=1),
    Column(
        "logprob_nats",
        "float64",
        "log-probability at the mask, normalised over the model's full vocabulary",
        maximum=0,
    ),
    Column(
        "logprob_top_nats",
        "float64",
        "the same, normalised over the kept tokens alone, as the released code has it",
        maximum=0,
    ),
    Column(
        "prior_nats",
        "float64",
        "log-probability of the token with the group masked by as many masks as it has tokens "
        "(eq. 3); of causal models with a neutral group in its place",
        maximum=0,
    ),
    Column(
        "prior_one_nats",
        "float64",
        "the same with one mask for the group; null for causal models",
        nullable=True,
        maximum=0,
    ),
    Column(
        "prior_released_nats",
        "float64",
        "the prior of the released code: after the frame `released`, whatever the template, of "
        "what the vocabulary has for `word` as it stands, or else of its unknown token; null for "
        "causal models",
        nullable=True,
        maximum=0,
    ),
    Column(
        "unknown_pieces",
        "int32",
        "pieces of the prompt that the model has no symbol for",
        minimum=0,
    ),
    Column("model", "string", "name of the model in params.yaml"),
    Column("revision", "string", "commit of the model on the Hub, or hash of a trained one"),
)
SCHEMA = Schema(columns=COLUMNS, key=("category", "group", "query", "rank"))

HAVE = Schema(
    columns=(
        Column("language", "string", "config of `social_groups`"),
        Column("attribute", "string", "an attribute of the dataset `stereotypes`, casefolded"),
        Column(
            "pieces",
            "int32",
            "tokens that the model writes it in, behind another word, in the spelling (small, "
            "capital, as suggested) that takes fewest; 0 where it cannot write it. Only what is "
            "one token can be among the answers",
            minimum=0,
        ),
        Column("model", "string", "name of the model in params.yaml"),
        Column("revision", "string", "commit of the model on the Hub, or hash of a trained one"),
    ),
    key=("language", "attribute"),
)

SCHEMAS = {"one a language": SCHEMA, VOCABULARY: HAVE}


class Params(Asking):
    """Questions, and how many tokens to keep of their answers."""

    version: str = Field(pattern=r"^\d+\.\d+\.\d+$", description="version of the outputs")
    top_k: int = Field(200, ge=1, description="tokens kept of each prompt; the paper has 200")


def schema(config: str) -> Schema:
    """Return the schema of a config of the outputs: a language, or ``vocabulary``."""
    return HAVE if config == VOCABULARY else SCHEMA


def shards(params: Params, model: Model, folders: dict[str, Path]) -> list[Shard]:
    """Return what is to be asked of a model: groups in shards, and its vocabulary, per language.

    Raises
    ------
    Problem
        If a language is not in the dataset.
    """
    languages = model.among(params.languages)
    if missing := sorted(set(languages) - set(parquet.configs(folders["social_groups"]))):
        raise Problem(
            f"probes.stereotypes.frames: {', '.join(missing)} not in social_groups; add the groups "
            "under datasets, or take the frames out"
        )
    found = []
    for language in languages:
        groups = {(q.category, q.group) for q in queries(params, folders, language)}
        found += split(language, len(groups), SHARD)
    return [*found, *(Shard(VOCABULARY, language, 0, 1) for language in languages)]


def amount(params: Params, model: Model, folders: dict[str, Path]) -> dict[str, int]:
    """Return the number of prompts in each language, those of the priors left out."""
    return {
        language: len(queries(params, folders, language))
        for language in model.among(params.languages)
    }


def answer(
    shard: Shard,
    folders: dict[str, Path],
    scorer: Scorer,
    params: Params,
    model: Model,
    _exact: Callable[[], Scorer],
) -> Iterator[pa.Table]:
    """Yield the tables of one shard: raw facts, no statistics."""
    if shard.config == VOCABULARY:
        assert isinstance(scorer, Predicts)
        yield _have(scorer, shard.part, attributes(folders["stereotypes"], shard.part))
        return
    assert isinstance(scorer, Predicts)
    language = shard.config
    frames = params.frames[language]
    asked = queries(params, folders, language)
    wanted = set(shard.among(list(dict.fromkeys((q.category, q.group) for q in asked))))
    own = [q for q in asked if (q.category, q.group) in wanted]
    yield from run(own, frames, scorer, params.top_k, language, causal=model.kind == "causal")


def run(
    asked: Sequence[Query],
    frames: Frames,
    scorer: Predicts,
    top_k: int,
    language: str,
    *,
    causal: bool,
) -> Iterator[pa.Table]:
    """Yield output rows for some queries, in tables of the outputs' schema."""
    if not asked:
        return
    ending = "" if causal else frames.ending
    predicted = scorer.predict([prompt(q.text, ending) for q in asked], top_k, language=language)
    pieces = scorer.pieces(language)
    tokens, words = np.array(pieces.tokens, object), np.array(pieces.words, object)
    priors = Priors(scorer, frames, language, causal=causal)
    facts = scorer.facts()
    rest = iter(asked)
    for block in predicted:
        some = [next(rest) for _ in block.prompts]
        n, k = block.ids.shape
        of = np.repeat(np.arange(n), k)
        ids = block.ids.ravel()
        bare = pieces.bare[block.ids]
        bare[bare < 0] = pieces.unknown
        top = block.logprobs_nats
        wide = top - np.logaddexp.reduce(top, axis=1, keepdims=True)
        prior = np.stack(
            [
                priors.of(query, int(length))[chosen]
                for query, length, chosen in zip(some, block.length, block.ids, strict=True)
            ]
        )
        one = (
            None
            if causal
            else np.stack(
                [priors.one(q.template)[chosen] for q, chosen in zip(some, block.ids, strict=True)]
            )
        )
        released = None if causal or pieces.unknown < 0 else priors.released()[bare]
        names = [(q.category, q.group, q.template.lower(), q.text.lower()) for q in some]
        facts_of = [
            pa.array(list(column)).take(pa.array(of)) for column in zip(*names, strict=True)
        ]
        columns = dict(zip(("category", "group", "template", "query"), facts_of, strict=True)) | {
            "prompt": pa.array(list(block.prompts)).take(pa.array(of)),
            "token": pa.array(tokens[ids].tolist()),
            "word": pa.array(words[ids].tolist()),
            "starts_word": pa.array(pieces.starts[ids]),
            "rank": pa.array(np.tile(np.arange(1, k + 1, dtype=np.int32), n)),
            "logprob_nats": pa.array(top.ravel()),
            "logprob_top_nats": pa.array(np.minimum(wide, 0).round(DECIMALS).ravel()),
            "prior_nats": pa.array(prior.ravel()),
            "prior_one_nats": _floats(one, n * k),
            "prior_released_nats": _floats(released, n * k),
            "unknown_pieces": pa.array(block.unknown[of]),
            "model": pa.repeat(pa.scalar(str(facts["model"])), n * k),
            "revision": pa.repeat(pa.scalar(str(facts["revision"])), n * k),
        }
        yield pa.table([columns[c.name] for c in SCHEMA.columns], schema=SCHEMA.arrow())


class Priors:
    """What a model says without the group: log-probabilities of all tokens, (vocabulary,)."""

    def __init__(self, scorer: Predicts, frames: Frames, language: str, *, causal: bool) -> None:
        self.scorer, self.frames, self.language = scorer, frames, language
        self.causal = causal
        self._found: dict[str, tuple[NDArray[np.float64], int]] = {}

    def of(self, query: Query, length: int) -> NDArray[np.float64]:
        """Return the prior of eq. 3: the group masked by as many masks as it has tokens.

        Parameters
        ----------
        length
            Tokens of the prompt with the group.

        Raises
        ------
        Problem
            If the model has no such sentence.
        """
        if self.causal:
            return self._ask(query.template.replace(GROUP, self.frames.neutral[query.kind]))[0]
        _, with_one = self._ask(masked(query.template, 1))
        masks = length - with_one + 1
        for gap in (" ", ""):
            found, tokens = self._ask(masked(query.template, masks, gap))
            if tokens == length:
                return found
        raise Problem(
            f"models.{self.scorer.name}: {query.text!r} has {length} tokens, and no number of "
            "masks for the group makes as many; take the model out of assignments.stereotypes"
        )

    def one(self, template: str) -> NDArray[np.float64]:
        """Return the prior with one mask for the group."""
        return self._ask(masked(template, 1))[0]

    def released(self) -> NDArray[np.float64]:
        """Return the prior of the released code: one frame for all, as it stands."""
        return self._ask(self.frames.released, whole=True)[0]

    def _ask(self, text: str, *, whole: bool = False) -> tuple[NDArray[np.float64], int]:
        """Return log-probabilities by token id, and how many tokens the prompt has."""
        written = text if whole else prompt(text, "" if self.causal else self.frames.ending)
        if written not in self._found:
            every = len(self.scorer.pieces(self.language).tokens)
            (block,) = self.scorer.predict([written], every, language=self.language)
            values = np.empty(every)
            values[block.ids[0]] = block.logprobs_nats[0]
            self._found[written] = values, int(block.length[0])
        return self._found[written]


def attributes(folder: Path, language: str) -> dict[str, set[str]]:
    """Return the attributes that search engines gave, casefolded, each with its spellings."""
    found: dict[str, set[str]] = {}
    for config in parquet.configs(folder):
        frame = pl.read_parquet(folder / f"{config}.parquet", columns=["language", "attribute"])
        for text in frame.filter(pl.col("language") == language)["attribute"].to_list():
            small = text.casefold()
            found.setdefault(small, {small, small.capitalize(), small.title()}).add(text)
    return dict(sorted(found.items()))


def _have(scorer: Predicts, language: str, wanted: dict[str, set[str]]) -> pa.Table:
    """Return in how many tokens the model writes each attribute, in its shortest spelling."""
    spelled = scorer.spelled(sorted({t for texts in wanted.values() for t in texts}), language)
    facts = scorer.facts()
    pieces = [
        min((spelled[t] for t in texts if t in spelled), default=0) for texts in wanted.values()
    ]
    columns = [
        pa.repeat(pa.scalar(language), len(wanted)),
        pa.array(list(wanted), pa.string()),
        pa.array(pieces, pa.int32()),
        *(pa.repeat(pa.scalar(str(facts[name])), len(wanted)) for name in ("model", "revision")),
    ]
    return pa.table(columns, schema=HAVE.arrow())


def _floats(values: NDArray[np.float64] | None, total: int) -> pa.Array:
    return pa.nulls(total, pa.float64()) if values is None else pa.array(values.ravel())
