"""Probe ``completions``: a model's predictions for the queries of autocompleted stereotypes.

The outputs are the most probable tokens for every social group and template, and their
log-probabilities with and without the group. From these, the typicality log(P_post / P_prior) is
computed. Choenni, Shutova and van Rooij (2021), section 4.1 and eq. 3.
"""

from __future__ import annotations

from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import Field

from plumbline.builders.core import parquet
from plumbline.builders.core.errors import UserError
from plumbline.builders.core.schema import Column, Schema
from plumbline.probes.core.run_probe import MODEL, Shard, Task, rows, split
from plumbline.probes.models.scorer import DECIMALS, Predicts, Scorer
from plumbline.probes.prompts import groups as prompts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    import pyarrow as pa
    from numpy.typing import NDArray

    from plumbline.probes.models.params import Model
    from plumbline.probes.prompts.groups import Frames, Query

    Array = NDArray[np.float64]

INPUTS = prompts.DATASETS
VERB = "predict"
PROMPT = "prompt"  # name of the column that contains the prompts
SHARD = 100  # number of groups in a shard, which determines the layout of outputs
VOCABULARY = "vocabulary"

COLUMNS = (
    Column("category", "string", "category of the social group"),
    Column("group", "string", "the group, as in the prompt"),
    Column("template", "string", "the template, in lower case"),
    Column("query", "string", "template and group in lower case; key for joins with `stereotypes`"),
    Column(
        "rewritten",
        "bool",
        "whether the template contains a key term of an attribute, such as `good at`; it is used "
        "only for groups with such attributes, and excluded from comparisons of groups",
    ),
    Column("prompt", "string", "exact prompt"),
    Column("token", "string", "the token, as in the vocabulary"),
    Column("word", "string", "the token as stripped text; key for joins with attributes"),
    Column(
        "starts_word",
        "bool",
        "whether the token is the complete `word` when it follows another word; otherwise it is "
        "part of a longer word, a special token, or another spelling",
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
        "log-probability at the mask, normalised over the retained tokens, as in the released code",
        maximum=0,
    ),
    Column(
        "prior_nats",
        "float64",
        "log-probability of the token when each token of the group is replaced by a mask (eq. 2 "
        "uses a single mask); for causal models, with a neutral group instead",
        maximum=0,
    ),
    Column(
        "prior_one_nats",
        "float64",
        "the token's log-probability with one mask for the group (eq. 2); null for causal models",
        nullable=True,
        maximum=0,
    ),
    Column(
        "prior_released_nats",
        "float64",
        "prior of the released code: log-probability in the one template `released`, of the token "
        "equal to `word` or else of the unknown token; null for causal models",
        nullable=True,
        maximum=0,
    ),
    Column("unknown_pieces", "int32", "number of unknown tokens in the prompt", minimum=0),
    *MODEL,
)
SCHEMA = Schema(columns=COLUMNS, key=("category", "group", "query", "rank"))

HAVE = Schema.keyed(
    (
        Column("language", "string", "config of the dataset `social_groups`"),
        Column("attribute", "string", "attribute from the dataset `stereotypes`, casefolded"),
    ),
    Column(
        "pieces",
        "int32",
        "number of tokens of the attribute after another word: the minimum over its spellings "
        "(lower case, capitalised, as suggested); 0 if the vocabulary cannot encode it. Only "
        "single tokens can be predicted",
        minimum=0,
    ),
    *MODEL,
)
SCHEMAS = {"one a language": SCHEMA, VOCABULARY: HAVE}


class Params(prompts.Asking):
    """Settings for prompts, and the number of retained tokens."""

    version: str = Field(pattern=r"^\d+\.\d+\.\d+$", description="version of the outputs")
    top_k: int = Field(200, ge=1, description="tokens retained per prompt; the paper uses 200")


def shards(params: Params, model: Model, folders: dict[str, Path]) -> list[Shard]:
    """Return the shards; raise UserError if the dataset does not contain a language."""
    languages = model.among(params.languages)
    if missing := sorted(set(languages) - set(parquet.configs(folders["social_groups"]))):
        raise UserError(
            f"probes.completions.frames: {', '.join(missing)} not in social_groups; add their "
            "groups under datasets, or remove the languages"
        )
    result = []
    for language in languages:
        groups = {(q.category, q.group) for q in prompts.prompted(params, folders, language)}
        result += split(language, len(groups), SHARD)
    return [*result, *(Shard(VOCABULARY, language, 0, 1) for language in languages)]


def amount(params: Params, model: Model, folders: dict[str, Path]) -> dict[str, int]:
    """Return the number of prompts per language, excluding those for priors and rewritten ones."""
    return {
        language: len(prompts.queries(params, folders, language))
        for language in model.among(params.languages)
    }


def answer(shard: Shard, task: Task, scorer: Scorer) -> Iterator[pa.Table]:
    """Yield the output tables of one shard, without statistics."""
    assert isinstance(scorer, Predicts)
    if shard.config == VOCABULARY:
        yield _vocabulary(scorer, shard.part, attributes(task.folders["stereotypes"], shard.part))
        return
    params: Params = task.params
    groups: dict[tuple[str, str], list[Query]] = {}
    for query in prompts.prompted(params, task.folders, shard.config):
        groups.setdefault((query.category, query.group), []).append(query)
    selected = [query for of_group in shard.among(list(groups.values())) for query in of_group]
    frames, causal = params.frames[shard.config], task.model.kind == "causal"
    yield from run(selected, frames, scorer, params.top_k, shard.config, causal=causal)


def run(
    queries: Sequence[Query],
    frames: Frames,
    scorer: Predicts,
    top_k: int,
    language: str,
    *,
    causal: bool,
    schema: Schema = SCHEMA,
    **further: str | float,
) -> Iterator[pa.Table]:
    """Yield output rows for queries; raise UserError if no number of masks can replace a group.

    ``schema``: :data:`COLUMNS` and further columns, whose constant values are in ``further``.
    """
    if not queries:
        return
    ending = "" if causal else frames.ending
    pieces = scorer.pieces(language)
    tokens, words = np.array(pieces.tokens, object), np.array(pieces.words, object)

    @cache
    def prior(text: str) -> tuple[Array, int]:
        """Return the log-probability of each token id, and the number of tokens in the prompt."""
        (block,) = scorer.predict([text], len(tokens), language=language)
        values = np.empty(len(tokens))
        values[block.ids[0]] = block.logprobs_nats[0]
        return values, int(block.length[0])

    def masked(query: Query, masks: int, gap: str = " ") -> tuple[Array, int]:
        """Return the prior from a query's template, in which masks replace the group."""
        return prior(prompts.prompt(prompts.masked(query.template, masks, gap), ending))

    def without(query: Query, length: int) -> Array:
        """Return the prior when each token of the group is replaced by a mask."""
        if causal:
            text = query.template.replace(prompts.GROUP, frames.neutral[query.kind])
            return prior(prompts.prompt(text, ending))[0]
        masks = length - masked(query, 1)[1] + 1
        for gap in (" ", ""):
            values, size = masked(query, masks, gap)
            if size == length:
                return values
        raise UserError(
            f"models.{scorer.name}: {query.text!r} has {length} tokens, but no number of masks for "
            "the group gives that length; remove the model from assignments.completions"
        )

    remaining = iter(queries)
    texts = [prompts.prompt(query.text, ending) for query in queries]
    for block in scorer.predict(texts, top_k, language=language):
        batch = list(islice(remaining, len(block.prompts)))
        n, k = block.ids.shape
        ids, top = block.ids.ravel(), block.logprobs_nats
        listed = top - np.logaddexp.reduce(top, axis=1, keepdims=True)
        bare = np.where(pieces.bare[ids] < 0, pieces.unknown, pieces.bare[ids])
        priors = zip(map(without, batch, block.length.tolist()), block.ids, strict=True)
        single = zip((masked(q, 1)[0] for q in batch), block.ids, strict=True)
        released = not causal and pieces.unknown >= 0
        facts = {
            "category": [q.category for q in batch],
            "group": [q.group for q in batch],
            "template": [q.template.lower() for q in batch],
            "query": [q.text.lower() for q in batch],
            "rewritten": [q.rewritten for q in batch],
            "prompt": block.prompts,
            "unknown_pieces": block.unknown,
        }
        columns: dict[str, Any] = {
            key: np.repeat(np.array(of_batch, object), k) for key, of_batch in facts.items()
        }
        columns |= {
            "token": tokens[ids],
            "word": words[ids],
            "starts_word": pieces.starts[ids],
            "rank": np.tile(np.arange(1, k + 1), n),
            "logprob_nats": top.ravel(),
            "logprob_top_nats": np.minimum(listed, 0).round(DECIMALS).ravel(),
            "prior_nats": np.concatenate([values[chosen] for values, chosen in priors]),
            "prior_one_nats": None
            if causal
            else np.concatenate([v[chosen] for v, chosen in single]),
            "prior_released_nats": prior(frames.released)[0][bare] if released else None,
        }
        yield rows(schema, scorer, n * k, columns | further)


def attributes(folder: Path, language: str) -> dict[str, set[str]]:
    """Return the spellings of each suggested attribute, keyed by the casefolded attribute."""
    spellings: dict[str, set[str]] = {}
    for text in prompts.suggestions(folder, language, "attribute")["attribute"]:
        small = text.casefold()
        spellings.setdefault(small, {small, small.capitalize(), small.title()}).add(text)
    return dict(sorted(spellings.items()))


def _vocabulary(scorer: Predicts, language: str, spellings: dict[str, set[str]]) -> pa.Table:
    """Return the number of tokens of each attribute in its shortest spelling."""
    lengths = scorer.spelled(sorted({t for texts in spellings.values() for t in texts}), language)
    pieces = [
        min((lengths[t] for t in texts if t in lengths), default=0) for texts in spellings.values()
    ]
    columns = {"language": language, "attribute": list(spellings), "pieces": pieces}
    return rows(HAVE, scorer, len(spellings), columns)
