"""Probe ``associations``: the adjectives and verbs that a model ranks highest next to a name.

The paper's template (frame) consists of the name and one mask, before or after it depending on the
language's word order; other templates are sentences (``prompts.politicians``). Candidates are the
words in the dataset ``words`` that are one token in the model's vocabulary. See Stańczak et al.
(2023), section 3 and, for the word order, supplement S2.
"""

from __future__ import annotations

import zlib
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import Field, model_validator

from plumbline.builders.core import parquet as store
from plumbline.builders.core.errors import UserError
from plumbline.builders.core.params import Params as Section
from plumbline.builders.core.schema import Column, Schema
from plumbline.builders.datasets.words import build as words_dataset
from plumbline.probes.core.run_probe import MODEL, Shard, Task, rows, split
from plumbline.probes.models.scorer import Filled, Fills, Scorer, agreement
from plumbline.probes.prompts import politicians as sentences
from plumbline.probes.prompts.politicians import FAITHFUL, Frame, Frames, Kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from plumbline.probes.models.params import Model

INPUTS = ("politicians", "words")
VERB = "fill"
PROMPT = "prompt"  # column of the prompts
SHARD = 20_000  # names per shard; determines the layout of the outputs
COVERED = "coverage"
FEW = 2000  # approximate number of names from which checked prompts are taken
CHECKED = 32  # number of prompts per part of speech that are also run in double precision
POS = words_dataset.POS

SCHEMA = Schema(
    columns=(
        Column("qid", "string", "Wikidata item of the person"),
        Column("name", "string", "name of the person, as in the prompt"),
        Column("word", "string", "form of the word"),
        Column("lemma", "string", "lemma of the form; the most frequent one if there are several"),
        Column("pos", "category", "universal part of speech", labels=POS),
        Column("frame", "string", "name of the template: bare, or the name of a sentence"),
        Column("rank", "int32", "rank among the candidates of this part of speech", minimum=1),
        Column(
            "logprob_nats",
            "float64",
            "log-probability at the mask, normalised over the model's full vocabulary",
            maximum=0,
        ),
        Column(
            "prior_nats",
            "float64",
            "log-probability of the same word in the same template without the name; null if no "
            "such sentence is defined, as for `bare`",
            nullable=True,
            maximum=0,
        ),
        Column("prompt", "string", "exact prompt"),
        Column(
            "prompt_pieces",
            "int32",
            "number of tokens of the prompt, including special tokens and the mask; within a "
            "template, prompts differ only in the tokens of the name",
            minimum=1,
        ),
        Column(
            "unknown_pieces",
            "int32",
            "number of unknown tokens of the prompt; if above 0, the model does not see the full "
            "name, and several names may have equal responses",
            minimum=0,
        ),
        *MODEL,
    ),
    key=("qid", "pos", "frame", "rank"),
)
COVERAGE = Schema(
    columns=(
        Column("language", "string", "language, a config of `words`"),
        Column("pos", "category", "universal part of speech", labels=POS),
        Column("words", "int64", "number of candidate forms"),
        Column("covered", "int64", "number of forms that are one word-initial token"),
        Column("list_length", "int32", "number of words in each list"),
        Column("vocabulary", "int64", "size of the model's vocabulary"),
        Column(
            "precision_nats",
            "float64",
            "largest difference between a log-probability and its value in double precision, for "
            "the first prompts of the model's first template",
            minimum=0,
        ),
        Column(
            "precision_overlap",
            "float64",
            "share of the 20 top words that are also in the top 20 in double precision, averaged "
            "over prompts",
            minimum=0,
            maximum=1,
        ),
        *MODEL,
    ),
    key=("language", "pos"),
)
SCHEMAS = {"one a language": SCHEMA, COVERED: COVERAGE}


class Params(Section):
    """Languages, list lengths and templates."""

    version: str = Field(pattern=r"^\d+\.\d+\.\d+$", description="version of the outputs")
    languages: list[str] = Field(min_length=1, description="configs of `politicians`, `words`")
    top_k: dict[str, dict[Literal["ADJ", "VERB"], Annotated[int, Field(ge=1)]]] = Field(
        description="list lengths of ADJ and VERB, by language; `other`: all other languages"
    )
    top_share: float = Field(
        1.0,
        gt=0,
        le=1,
        description="maximum share of a model's candidates in a list; if it is 1, lists always "
        "have full length, as in the paper",
    )
    frames_of: dict[Kind, list[str]] = Field(
        FAITHFUL,
        description="names of templates by kind of model; analyses read only the first",
    )
    frames: Frames = Field(
        default_factory=dict,
        description="sentences with and without the name, by template, language and part of speech",
    )

    @model_validator(mode="after")
    def _for_all(self) -> Params:
        sentences.check(self.frames, self.frames_of)
        for language in self.languages:
            if set(self.top_k.get(language) or self.top_k.get("other") or ()) != set(POS):
                raise ValueError(f"top_k needs ADJ and VERB for {language!r}, or for `other`")
        return self

    def lengths(self, language: str, numbers: Mapping[str, int] | None = None) -> dict[str, int]:
        """Return the list length of each part of speech in a language.

        ``numbers``: number of candidates; ``top_share`` limits a list to a share of this number.
        """
        chosen = self.top_k.get(language) or self.top_k["other"]
        lengths = {str(pos): number for pos, number in chosen.items()}
        for pos, number in (numbers or {}).items():
            lengths[pos] = max(1, min(lengths[pos], int(self.top_share * number)))
        return lengths

    def frames_in(
        self, model: Model, language: str, places: Mapping[str, str]
    ) -> dict[str, dict[str, Frame]]:
        """Return a model's prompt templates by part of speech and name.

        Raises UserError if the model's kind has no template, or a template lacks the language.
        """
        return sentences.chosen(self.frames, self.frame_names(model), language, places)

    def frame_names(self, model: Model) -> list[str]:
        """Return the names of a model's prompt templates.

        Raises UserError if the model's kind has no template.
        """
        names = [n for kind, listed in self.frames_of.items() if kind == model.kind for n in listed]
        if names:
            return names
        raise UserError(
            f"probes.associations.frames_of: no template for models of kind {model.kind}; add "
            "one, or remove these models from assignments.associations"
        )


class Candidates(NamedTuple):
    """The candidate words of one language and part of speech, the most frequent first."""

    place: str  # position of the word relative to the name: before or after
    lemmas: dict[str, str]  # lemma of each form, the most frequent form first


def candidates_of(folder: Path, language: str) -> dict[str, Candidates]:
    """Return the candidates of a language by part of speech."""
    words, candidates = pl.read_parquet(folder / f"{language}.parquet"), {}
    for code, pos in enumerate(POS):
        frame = words.filter(pl.col("pos") == code)
        if frame.is_empty():
            raise UserError(f"{folder}: no {pos} in {language!r}; use treebanks that contain some")
        frame = frame.sort(["count", "form", "lemma"], descending=[True, False, False])
        forms = frame.unique("form", keep="first", maintain_order=True)
        side = words_dataset.PLACES[frame["place"][0]]
        candidates[pos] = Candidates(side, dict(forms.select("form", "lemma").iter_rows()))
    return candidates


def names(folder: Path, language: str, shard: int, shards: int) -> dict[str, list[str]]:
    """Return the Wikidata items of the people with each name in one shard, sorted by name.

    The shard depends only on the name, so that all people with the same name share one prompt.
    """
    people = pl.read_parquet(folder / f"{language}.parquet", columns=["qid", "name"])
    chosen = [zlib.crc32(name.encode()) % shards == shard for name in people["name"]]
    people = people.filter(pl.Series(chosen, dtype=pl.Boolean))
    return dict(people.group_by("name", maintain_order=True).all().sort("name").iter_rows())


def shards(params: Params, model: Model, folders: dict[str, Path]) -> list[Shard]:
    """Return the shards of a model's outputs: names and vocabulary coverage of each language.

    Raises UserError if the datasets lack a language, or a template is missing in a language.
    """
    languages = model.among(params.languages)
    for language in languages:
        params.frames_in(model, language, dict.fromkeys(POS, "after"))
    available = set(store.configs(folders["politicians"])) & set(store.configs(folders["words"]))
    if missing := sorted(set(languages) - available):
        raise UserError(
            f"probes.associations.languages: {', '.join(missing)} must be in politicians and in "
            "words; add them under datasets, or remove them here"
        )
    parts = [
        shard
        for language in languages
        for shard in split(language, _people(folders, language), SHARD)
    ]
    return [*parts, *(Shard(COVERED, language, 0, 1) for language in languages)]


def _people(folders: dict[str, Path], language: str) -> int:
    return int(pq.read_metadata(folders["politicians"] / f"{language}.parquet").num_rows)


def amount(params: Params, model: Model, folders: dict[str, Path]) -> dict[str, int]:
    """Return the number of prompts in each language."""
    frames, numbers = len(POS) * len(params.frame_names(model)), {}
    for language in model.among(params.languages):
        people = pl.read_parquet(folders["politicians"] / f"{language}.parquet", columns=["name"])
        numbers[language] = frames * people["name"].n_unique()
    return numbers


def answer(shard: Shard, task: Task, scorer: Scorer) -> Iterator[pa.Table]:
    """Yield the output tables of one shard."""
    assert isinstance(scorer, Fills)
    params: Params = task.params
    folders, covered = task.folders, shard.config == COVERED
    language = shard.part if covered else shard.config
    words = candidates_of(folders["words"], language)
    places = {pos: candidates.place for pos, candidates in words.items()}
    frames = params.frames_in(task.model, language, places)
    numbers = {pos: covered_words(scorer, w, language) for pos, w in words.items()}
    if not any(numbers.values()):
        number = sum(len(candidates.lemmas) for candidates in words.values())
        where = f"models.{scorer.name}"
        raise UserError(
            f"{where}: none of the {number:,} words of {language} is one token; remove {language} "
            f"from {where}.languages, or the model from assignments.associations"
        )
    lengths = params.lengths(language, numbers)
    part = (shard.number, shard.of)
    part = (0, max(1, _people(folders, language) // FEW)) if covered else part
    people = names(folders["politicians"], language, *part)
    if covered:
        double = task.exact(scorer)
        assert isinstance(double, Fills)
        rows_of = coverage(language, people, words, scorer, double, lengths, frames)
        yield pa.Table.from_pylist(list(rows_of), schema=COVERAGE.arrow())
    else:
        yield from run(people, words, scorer, lengths, language, frames)


def run(
    people: dict[str, list[str]],
    candidates: dict[str, Candidates],
    scorer: Fills,
    lengths: dict[str, int],
    language: str,
    frames: Mapping[str, Mapping[str, Frame]],
) -> Iterator[pa.Table]:
    """Yield output rows for names, in tables with schema :data:`SCHEMA`.

    ``people``: Wikidata items by distinct name, from :func:`names`.
    ``lengths``: list length of each part of speech, from :meth:`Params.lengths`.
    ``frames``: prompt templates by part of speech and name.
    """
    for pos, words in candidates.items():
        forms = list(words.lemmas)
        for name, frame in frames[pos].items():
            prior = None
            if frame.without is not None:  # each candidate then has a prior
                alone = scorer.fill([frame.without], forms, len(forms), language=language)
                ((scores, _),) = (fill for block in alone for fill in block.by_prompt())
                prior = {word: nats for word, (nats, _) in scores.items()}
            prompts = (frame.about(person) for person in people)
            remaining = iter(people.items())
            for block in scorer.fill(prompts, forms, lengths[pos], language=language):
                listed = islice(remaining, len(block.prompts))
                columns = _columns(block, listed, words.lemmas, prior) | {"pos": pos, "frame": name}
                yield rows(SCHEMA, scorer, len(columns["qid"]), columns)


def _columns(
    block: Filled,
    people: Iterable[tuple[str, list[str]]],
    lemmas: Mapping[str, str],
    prior: Mapping[str, float] | None,
) -> dict[str, Any]:
    """Return the output columns for a block of prompts, with one list per person.

    ``people``: each prompt's name, and the Wikidata items of the people with that name.
    ``prior``: log-probability of each candidate without the name.
    """
    length = block.best.shape[1]
    persons = [(i, qid, name) for i, (name, qids) in enumerate(people) for qid in qids]
    prompt, qids, named = zip(*persons, strict=True)
    best = block.best[list(prompt)].ravel()
    person = np.repeat(np.arange(len(persons)), length)  # index of each row's person
    row = np.array(prompt)[person]  # index of each row's prompt

    def taken(values: Sequence[Any], index: np.ndarray) -> pa.Array:
        return pa.array(values).take(pa.array(index))

    return {
        "qid": taken(qids, person),
        "name": taken(named, person),
        "word": taken(list(block.candidates), best),
        "lemma": taken([lemmas[word] for word in block.candidates], best),
        "rank": np.tile(np.arange(1, length + 1, dtype=np.int32), len(qids)),
        "logprob_nats": block.logprobs_nats[list(prompt)].ravel(),
        "prior_nats": prior and taken([prior[word] for word in block.candidates], best),
        "prompt": taken(list(block.prompts), row),
        "prompt_pieces": block.lengths[row],
        "unknown_pieces": block.unknown[row],
    }


def covered_words(scorer: Fills, words: Candidates, language: str) -> int:
    """Return the number of candidates that are a single token of the model."""
    return list(scorer.spelled(list(words.lemmas), language).values()).count(1)


def coverage(
    language: str,
    people: dict[str, list[str]],
    candidates: dict[str, Candidates],
    scorer: Fills,
    double: Fills,
    lengths: dict[str, int],
    frames: Mapping[str, Mapping[str, Frame]],
) -> Iterator[dict[str, Any]]:
    """Yield vocabulary coverage and numerical precision of a model, by part of speech."""
    for pos, words in candidates.items():
        frame, forms = next(iter(frames[pos].values())), list(words.lemmas)
        prompts = [frame.about(name) for name in list(people)[:CHECKED]]
        precision, overlap = agreement(scorer, double, prompts, forms, language)
        yield {
            "language": language,
            "pos": pos,
            "words": len(forms),
            "covered": covered_words(scorer, words, language),
            "list_length": lengths[pos],
            "precision_nats": precision,
            "precision_overlap": overlap,
            **scorer.facts(),
        }
