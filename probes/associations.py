"""Probe ``associations``: which adjectives and verbs a model puts beside a politician's name.

The frame is the bare name with one mask before or after it, by the language's word order; the
ranked candidates are the words of the dataset ``words`` that the model has as one piece.

Stańczak et al. (2023), section 3; supplement S2 for the order.
"""

from __future__ import annotations

import math
import zlib
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import Field, model_validator

from builders import words as words_dataset
from builders.lib import store
from builders.lib.params import Params as Section
from builders.lib.problem import Problem
from builders.lib.schema import Column, Schema
from probes.models.precision import agreement
from probes.models.scorer import MASK, Filled, Fills, Scorer
from probes.shards import Shard

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

INPUTS = ("politicians", "words")
VERB = "fill"
SHARD = 20_000  # names in a shard; part of the layout of the outputs
COVERED = "coverage"
FEW = 2000  # names among which they are
CHECKED = 32  # prompts of each part of speech that are asked in double precision too
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
        Column(
            "precision_nats",
            "float64",
            "largest difference of a log-probability from double precision, over the first prompts",
            minimum=0,
        ),
        Column(
            "precision_overlap",
            "float64",
            "share of the 20 best words that double precision has among its own, mean over prompts",
            minimum=0,
            maximum=1,
        ),
        Column("revision", "string", "commit of the model on the Hub, or hash of a trained one"),
    ),
    key=("language", "pos"),
)

SCHEMAS = {"one a language": SCHEMA, COVERED: COVERAGE}


class Params(Section):
    """Languages, and how many words to keep of each list."""

    version: str = Field(pattern=r"^\d+\.\d+\.\d+$", description="version of the outputs")
    models: list[str] = Field(description="names under `models` of those that are asked")
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


def schema(config: str) -> Schema:
    """Return the schema of a config of the outputs: a language, or ``coverage``."""
    return COVERAGE if config == COVERED else SCHEMA


def shards(params: Params, only: Sequence[str] | None, folders: dict[str, Path]) -> list[Shard]:
    """Return what is to be asked of a model: names in shards, and its coverage, per language.

    Raises
    ------
    Problem
        If a language is not in the datasets.
    """
    languages = languages_of(params, only)
    there = set(store.configs(folders["politicians"])) & set(store.configs(folders["words"]))
    if missing := sorted(set(languages) - there):
        raise Problem(
            f"probes.associations.languages: {', '.join(missing)} not in politicians and words; "
            "add them under datasets, or take them out"
        )
    found = []
    for language in languages:
        rows = pq.read_metadata(folders["politicians"] / f"{language}.parquet").num_rows
        parts = max(1, math.ceil(rows / SHARD))
        found += [Shard(language, f"{part:05d}", part, parts) for part in range(parts)]
    return [*found, *(Shard(COVERED, language, 0, 1) for language in languages)]


def amount(params: Params, only: Sequence[str] | None, folders: dict[str, Path]) -> dict[str, int]:
    """Return the number of prompts in each language."""
    found = {}
    for language in languages_of(params, only):
        path = folders["politicians"] / f"{language}.parquet"
        people = pl.read_parquet(path, columns=["name"])["name"]
        found[language] = len(POS) * people.n_unique()
    return found


def answer(
    shard: Shard,
    folders: dict[str, Path],
    scorer: Scorer,
    params: Params,
    exact: Callable[[], Scorer],
) -> Iterator[pa.Table]:
    """Yield the tables of one shard: raw facts, no statistics.

    Parameters
    ----------
    exact
        Loads the model in double precision.
    """
    assert isinstance(scorer, Fills)
    if shard.config == COVERED:
        language = shard.part
        rows_there = pq.read_metadata(folders["politicians"] / f"{language}.parquet").num_rows
        people = names(folders["politicians"], language, 0, max(1, rows_there // FEW))
        double = exact()
        assert isinstance(double, Fills)
        rows = coverage(language, people, folders["words"], scorer, double, params)
        yield pa.Table.from_pylist(list(rows), schema=COVERAGE.arrow())
        return
    language = shard.config
    people = names(folders["politicians"], language, shard.number, shard.of)
    words = candidates_of(folders["words"], language)
    yield from run(people, words, scorer, params.lengths(language), language)


def run(
    people: dict[str, list[str]],
    candidates: dict[str, Candidates],
    scorer: Fills,
    lengths: dict[str, int],
    language: str,
) -> Iterator[pa.Table]:
    """Yield output rows for some names, in tables of the outputs' schema.

    Parameters
    ----------
    people
        Distinct names with their items, from :func:`names`.
    lengths
        List length for each part of speech, from :meth:`Params.lengths`.
    """
    facts = scorer.facts()
    for pos, wanted in candidates.items():
        prompts = (wanted.prompt(name) for name in people)
        rest = iter(people.items())
        for block in scorer.fill(prompts, wanted.forms, lengths[pos], language=language):
            asked = [next(rest) for _ in block.prompts]
            yield _table(block, asked, wanted, SCHEMA["pos"].code(pos), facts)


def _table(
    block: Filled,
    asked: list[tuple[str, list[str]]],
    wanted: Candidates,
    pos: int,
    facts: dict[str, str | int],
) -> pa.Table:
    """Return the rows of a block: for each person with a name, the name's list."""
    length = block.best.shape[1]
    people = np.array([len(qids) for _, qids in asked])
    prompt = np.repeat(np.arange(len(asked)), people)  # of each person
    row = np.repeat(prompt, length)  # prompt of each row
    best = block.best[prompt].ravel()
    total = len(row)

    def taken(values: Sequence[Any], index: np.ndarray) -> pa.Array:
        return pa.array(values).take(pa.array(index))

    lemmas = [wanted.lemmas[word] for word in block.candidates]
    columns = {
        "qid": taken(
            [qid for _, qids in asked for qid in qids], np.repeat(np.arange(len(prompt)), length)
        ),
        "name": taken([name for name, _ in asked], row),
        "word": taken(list(block.candidates), best),
        "lemma": taken(lemmas, best),
        "pos": pa.array(np.full(total, pos, np.int64)),
        "rank": pa.array(np.tile(np.arange(1, length + 1, dtype=np.int32), len(prompt))),
        "logprob_nats": pa.array(block.logprobs_nats[prompt].ravel()),
        "prompt": taken(list(block.prompts), row),
        "unknown_pieces": pa.array(block.unknown[row]),
        "model": taken([str(facts["model"])], np.zeros(total, np.int32)),
        "revision": taken([str(facts["revision"])], np.zeros(total, np.int32)),
    }
    return pa.table([columns[c.name] for c in SCHEMA.columns], schema=SCHEMA.arrow())


def coverage(
    language: str,
    people: dict[str, list[str]],
    folder: Path,
    scorer: Fills,
    double: Fills,
    params: Params,
) -> Iterator[dict[str, Any]]:
    """Yield how much of the candidate words a model has, and how exact it is, by part of speech."""
    lengths = params.lengths(language)
    for pos, wanted in candidates_of(folder, language).items():
        known = scorer.vocabulary(wanted.forms, language).ids
        tokens = sum(wanted.tokens[form] for form in known)
        prompts = [wanted.prompt(name) for name in list(people)[:CHECKED]]
        apart, overlap = agreement(scorer, double, prompts, wanted.forms, language)
        yield {
            "language": language,
            "pos": SCHEMA["pos"].code(pos),
            "words": len(wanted.forms),
            "covered": len(known),
            "tokens_covered": round(tokens / sum(wanted.tokens.values()), 6),
            "asked": lengths[pos],
            "precision_nats": apart,
            "precision_overlap": overlap,
            **scorer.facts(),
        }


def candidates_of(folder: Path, language: str) -> dict[str, Candidates]:
    """Return the candidates of every part of speech in a language."""
    return {pos: Candidates(folder, language, pos) for pos in words_dataset.POS}


def languages_of(params: Params, only: Sequence[str] | None) -> list[str]:
    """Return the probe's languages, or those of them that a model is restricted to."""
    return [code for code in params.languages if only is None or code in only]
