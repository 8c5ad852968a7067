"""Probe ``associations``: which adjectives and verbs a model puts beside a politician's name.

The frame is the bare name with one mask before or after it, by the language's word order; the
ranked candidates are the words of the dataset ``words`` that the model has as one piece.

Stańczak et al. (2023), section 3; supplement S2 for the order.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Annotated, Any, Literal

import polars as pl
from pydantic import Field, model_validator

from builders import words as words_dataset
from builders.lib import store
from builders.lib.params import Params as Section
from builders.lib.problem import Problem
from builders.lib.schema import Column, Schema
from probes.models.scorer import MASK

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from probes.models.scorer import Scorer

INPUTS = ("politicians", "words")
POS = words_dataset.POS

SCHEMA = Schema(
    columns=(
        Column("qid", "string", "Wikidata item of the person"),
        Column("name", "string", "the name as it stands in the prompt"),
        Column("word", "string", "form of the word"),
        Column("lemma", "string", "its lemma; the most frequent one, if the form has several"),
        Column("pos", "label", "universal part of speech", labels=words_dataset.POS),
        Column("rank", "int32", "rank among the candidates of this part of speech", minimum=1),
        Column(
            "logprob_nats",
            "float64",
            "log-probability at the mask, normalised over the model's full vocabulary",
            maximum=0,
        ),
        Column("prompt", "string", "the prompt exactly as the model got it"),
        Column(
            "unknown_pieces",
            "int32",
            "pieces of the prompt that the model has no symbol for; above 0 it did not see the "
            "whole name, and may have answered several names alike",
            minimum=0,
        ),
        Column("model", "string", "name of the model in params.yaml"),
        Column("revision", "string", "commit of the model on the Hub, or hash of a trained one"),
    ),
    key=("qid", "pos", "rank"),
)

COVERAGE = Schema(
    columns=(
        Column("language", "string", "config of `words`"),
        Column("pos", "label", "universal part of speech", labels=words_dataset.POS),
        Column("words", "int64", "candidate forms asked for"),
        Column("covered", "int64", "forms that the model has as one word-initial piece"),
        Column("tokens_covered", "float64", "the same, weighted by count in the treebanks"),
        Column("asked", "int32", "length of the lists asked for"),
        Column("model", "string", "name of the model in params.yaml"),
        Column("architecture", "string", "class of the model"),
        Column("vocabulary", "int64", "size of its vocabulary"),
        Column("mask_token", "string", "its mask"),
        Column("dtype", "string", "arithmetic"),
        Column("revision", "string", "commit of the model on the Hub, or hash of a trained one"),
    ),
    key=("language", "pos"),
)


class Params(Section):
    """Languages, and how many words to keep of each list."""

    version: str = Field(pattern=r"^\d+\.\d+\.\d+$", description="version of the outputs")
    languages: list[str] = Field(min_length=1, description="configs of politicians and words")
    top_k: dict[str, dict[Literal["ADJ", "VERB"], Annotated[int, Field(ge=1)]]] = Field(
        description="list length for ADJ and VERB, for a language or for `other`"
    )

    @model_validator(mode="after")
    def _for_all(self) -> Params:
        for language in self.languages:
            if set(self.top_k.get(language) or self.top_k.get("other") or ()) != set(POS):
                raise ValueError(f"top_k needs ADJ and VERB for {language!r}, or for `other`")
        return self

    def lengths(self, language: str) -> dict[str, int]:
        """Return the list length for each part of speech in a language."""
        chosen = self.top_k.get(language) or self.top_k["other"]
        return {pos: chosen[pos] for pos in ("ADJ", "VERB")}


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
        """Return the frame around a name."""
        return f"{MASK} {name}" if self.place == "before" else f"{name} {MASK}"


def names(folder: Path, language: str, shard: int, shards: int) -> dict[str, list[str]]:
    """Return the distinct names of one shard, sorted, each with the items that have it.

    A name's shard follows from the name alone, so that identical names meet and are asked once,
    and memory is bounded by a shard, however many names there are.
    """
    found: dict[str, list[str]] = {}
    for row in store.stream(folder / f"{language}.parquet", ["qid", "name"]):
        if zlib.crc32(row["name"].encode()) % shards == shard:
            found.setdefault(row["name"], []).append(row["qid"])
    return dict(sorted(found.items()))


def run(
    people: dict[str, list[str]], candidates: dict[str, Candidates], scorer: Scorer, params: Any
) -> Iterator[dict[str, Any]]:
    """Yield output rows for some names: raw facts, no statistics.

    Parameters
    ----------
    people
        Distinct names with their items, from :func:`names`.
    params
        List length for each part of speech, from :meth:`Params.lengths`.
    """
    facts = scorer.facts()
    for pos, wanted in candidates.items():
        prompts = (wanted.prompt(name) for name in people)
        fills = scorer.fill(prompts, wanted.forms, params[pos])
        for (name, qids), fill in zip(people.items(), fills, strict=True):
            pairs = list(zip(fill.words, fill.logprobs_nats, strict=True))
            for qid in qids:
                for rank, (word, logprob) in enumerate(pairs, start=1):
                    yield {
                        "qid": qid,
                        "name": name,
                        "word": word,
                        "lemma": wanted.lemmas[word],
                        "pos": SCHEMA["pos"].code(pos),
                        "rank": rank,
                        "logprob_nats": logprob,
                        "prompt": fill.prompt,
                        "unknown_pieces": fill.unknown,
                        "model": facts["model"],
                        "revision": facts["revision"],
                    }


def coverage(
    language: str, candidates: dict[str, Candidates], scorer: Scorer, lengths: dict[str, int]
) -> Iterator[dict[str, Any]]:
    """Yield how much of the candidate words a model has, for each part of speech."""
    facts = scorer.facts()
    for pos, wanted in candidates.items():
        known = scorer.vocabulary(wanted.forms).ids
        tokens = sum(wanted.tokens[form] for form in known)
        yield {
            "language": language,
            "pos": SCHEMA["pos"].code(pos),
            "words": len(wanted.forms),
            "covered": len(known),
            "tokens_covered": round(tokens / sum(wanted.tokens.values()), 6),
            "asked": lengths[pos],
            **facts,
        }


def candidates_of(folder: Path, language: str) -> dict[str, Candidates]:
    """Return the candidates of every part of speech in a language."""
    return {pos: Candidates(folder, language, pos) for pos in words_dataset.POS}


def languages_of(params: Params, only: Sequence[str] | None) -> list[str]:
    """Return the probe's languages, or those of them that a model is restricted to."""
    return [code for code in params.languages if only is None or code in only]
