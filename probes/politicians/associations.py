"""Probe ``associations``: the adjectives and verbs that a model ranks highest next to a name.

The paper's template (frame) is the name with one mask before or after it, depending on the
language's word order; others are sentences (``prompts.politicians``). Candidates are the words of
the dataset ``words`` that are one token in the model's vocabulary.
Stańczak et al. (2023), section 3 and, for the word order, supplement S2.
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
PROMPT = "prompt"  # the column of prompts
SHARD = 20_000  # names in a shard, which determines the layout of outputs
COVERED = "coverage"
FEW = 2000  # names among which they are
CHECKED = 32  # prompts per part of speech that are also run in double precision
POS = words_dataset.POS

SCHEMA = Schema(
    columns=(
        Column("qid", "string", "Wikidata item of the person"),
        Column("name", "string", "the name as in the prompt"),
        Column("word", "string", "form of the word"),
        Column("lemma", "string", "its lemma, the most frequent if the form has several"),
        Column("pos", "category", "universal part of speech", labels=POS),
        Column("frame", "string", "name of the template: bare, or a sentence in the params"),
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
            "log-probability of the same word in the same template without the name; null if the "
            "template has no such sentence, as for bare",
            nullable=True,
            maximum=0,
        ),
        Column("prompt", "string", "exact prompt"),
        Column(
            "prompt_pieces",
            "int32",
            "tokens of the prompt, special ones and the mask included; within a template, prompts "
            "differ only in the tokens of the name",
            minimum=1,
        ),
        Column(
            "unknown_pieces",
            "int32",
            "unknown tokens of the prompt; above 0 the model did not see the complete name, and "
            "several names may have equal responses",
            minimum=0,
        ),
        *MODEL,
    ),
    key=("qid", "pos", "frame", "rank"),
)
COVERAGE = Schema(
    columns=(
        Column("language", "string", "config of `words`"),
        Column("pos", "category", "universal part of speech", labels=POS),
        Column("words", "int64", "candidate forms"),
        Column("covered", "int64", "forms that are one word-initial token"),
        Column("list_length", "int32", "length of the lists"),
        Column("vocabulary", "int64", "size of the model's vocabulary"),
        Column(
            "precision_nats",
            "float64",
            "largest difference of a log-probability from double precision, over the first prompts "
            "in the model's first template",
            minimum=0,
        ),
        Column(
            "precision_overlap",
            "float64",
            "share of the 20 best words that are so in double precision too, mean over prompts",
            minimum=0,
            maximum=1,
        ),
        *MODEL,
    ),
    key=("language", "pos"),
)
SCHEMAS = {"one a language": SCHEMA, COVERED: COVERAGE}


class Params(Section):
    """Languages, and lengths of the lists."""

    version: str = Field(pattern=r"^\d+\.\d+\.\d+$", description="version of the outputs")
    languages: list[str] = Field(min_length=1, description="configs of politicians and words")
    top_k: dict[str, dict[Literal["ADJ", "VERB"], Annotated[int, Field(ge=1)]]] = Field(
        description="list length for ADJ and VERB, for a language or for `other`"
    )
    top_share: float = Field(
        1.0,
        gt=0,
        le=1,
        description="largest share of a model's candidates in a list; 1: lists always have full "
        "length, as in the paper",
    )
    frames_of: dict[Kind, list[str]] = Field(
        FAITHFUL,
        description="template names by kind of model; analyses use the first",
    )
    frames: Frames = Field(
        default_factory=dict,
        description="by template, language, and ADJ or VERB: sentence with and without the name",
    )

    @model_validator(mode="after")
    def _for_all(self) -> Params:
        sentences.check(self.frames, self.frames_of)
        for language in self.languages:
            if set(self.top_k.get(language) or self.top_k.get("other") or ()) != set(POS):
                raise ValueError(f"top_k needs ADJ and VERB for {language!r}, or for `other`")
        return self

    def lengths(self, language: str, numbers: Mapping[str, int] | None = None) -> dict[str, int]:
        """Return the list length for each part of speech in a language.

        ``known``: number of candidates of the model; a list has at most the share ``top_share``.
        """
        chosen = self.top_k.get(language) or self.top_k["other"]
        lengths = {str(pos): number for pos, number in chosen.items()}
        for pos, number in (numbers or {}).items():
            lengths[pos] = max(1, min(lengths[pos], int(self.top_share * number)))
        return lengths

    def frames_in(
        self, model: Model, language: str, places: Mapping[str, str]
    ) -> dict[str, dict[str, Frame]]:
        """Return a model's prompt templates, by part of speech and name.

        Raises UserError if its kind has none, or one is missing in the language.
        """
        return sentences.chosen(self.frames, self.frame_names(model), language, places)

    def frame_names(self, model: Model) -> list[str]:
        """Return the names of a model's prompt templates.

        Raises UserError if its kind has none.
        """
        names = [n for kind, listed in self.frames_of.items() if kind == model.kind for n in listed]
        if names:
            return names
        raise UserError(
            f"probes.associations.frames_of: no frame for models of kind {model.kind}; name "
            "some, or take those models out of assignments.associations"
        )


class Candidates(NamedTuple):
    """The candidate words of one language and part of speech, most frequent first."""

    place: str  # position of the word relative to the name: before or after
    lemmas: dict[str, str]  # by form

    @property
    def forms(self) -> list[str]:
        """Return the forms."""
        return list(self.lemmas)


def candidates_of(folder: Path, language: str) -> dict[str, Candidates]:
    """Return the candidates of every part of speech in a language."""
    words, candidates = pl.read_parquet(folder / f"{language}.parquet"), {}
    for code, pos in enumerate(POS):
        frame = words.filter(pl.col("pos") == code)
        if frame.is_empty():
            raise UserError(f"{folder}: no {pos} in {language!r}; the treebanks must have some")
        frame = frame.sort(["count", "form", "lemma"], descending=[True, False, False])
        forms = frame.unique("form", keep="first", maintain_order=True)
        side = words_dataset.PLACES[frame["place"][0]]
        candidates[pos] = Candidates(side, dict(forms.select("form", "lemma").iter_rows()))
    return candidates


def names(folder: Path, language: str, shard: int, shards: int) -> dict[str, list[str]]:
    """Return the distinct names of one shard, sorted, with their items.

    The shard depends only on the name: identical names share one prompt, and the shard size
    bounds memory.
    """
    items: dict[str, list[str]] = {}
    people = pl.read_parquet(folder / f"{language}.parquet", columns=["qid", "name"])
    for qid, name in people.iter_rows():
        if zlib.crc32(name.encode()) % shards == shard:
            items.setdefault(name, []).append(qid)
    return dict(sorted(items.items()))


def shards(params: Params, model: Model, folders: dict[str, Path]) -> list[Shard]:
    """Return the shards of a model's outputs: names and vocabulary coverage, by language.

    Raises UserError if a language is not in the datasets, or a template is missing in a language.
    """
    languages = model.among(params.languages)
    for language in languages:
        params.frames_in(model, language, dict.fromkeys(POS, "after"))
    available = set(store.configs(folders["politicians"])) & set(store.configs(folders["words"]))
    if missing := sorted(set(languages) - available):
        raise UserError(
            f"probes.associations.languages: {', '.join(missing)} not in politicians and words; "
            "add them under datasets, or take them out"
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
    """Yield the output tables of one shard, without statistics."""
    assert isinstance(scorer, Fills)
    params: Params = task.params
    folders, covered = task.folders, shard.config == COVERED
    language = shard.part if covered else shard.config
    words = candidates_of(folders["words"], language)
    places = {pos: candidates.place for pos, candidates in words.items()}
    frames = params.frames_in(task.model, language, places)
    numbers = {pos: len(scorer.vocabulary(w.forms, language).ids) for pos, w in words.items()}
    if not any(numbers.values()):
        number = sum(len(candidates.forms) for candidates in words.values())
        where = f"models.{scorer.name}"
        raise UserError(
            f"{where}: its vocabulary has none of the {number:,} words of {language} as one token; "
            f"leave {language} out of {where}.languages, or the model out of "
            "assignments.associations"
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
    """Yield output rows for names, in tables with the schema of the outputs.

    ``people``: distinct names with their items, from :func:`names`.
    ``lengths``: list length for each part of speech, from :meth:`Params.lengths`.
    ``frames``: prompt templates by part of speech and name.
    """
    for pos, words in candidates.items():
        for name, frame in frames[pos].items():
            prior = None
            if frame.without is not None:  # priors of all candidates
                alone = scorer.fill(
                    [frame.without], words.forms, len(words.forms), language=language
                )
                ((scores, _),) = (fill for block in alone for fill in block.by_prompt())
                prior = {word: nats for word, (nats, _) in scores.items()}
            prompts = (frame.about(person) for person in people)
            remaining = iter(people.items())
            for block in scorer.fill(prompts, words.forms, lengths[pos], language=language):
                columns = _columns(
                    block, islice(remaining, len(block.prompts)), words.lemmas, prior
                )
                columns |= {"pos": pos, "frame": name}
                yield rows(SCHEMA, scorer, len(columns["qid"]), columns)


def _columns(
    block: Filled,
    people: Iterable[tuple[str, list[str]]],
    lemmas: Mapping[str, str],
    prior: Mapping[str, float] | None,
) -> dict[str, Any]:
    """Return the columns of a block of prompts, with a list for each person.

    ``prior``: log-probability of each candidate without the name.
    """
    length = block.best.shape[1]
    persons = [(i, qid, name) for i, (name, qids) in enumerate(people) for qid in qids]
    prompt, qids, named = zip(*persons, strict=True)
    best = block.best[list(prompt)].ravel()
    person = np.repeat(np.arange(len(persons)), length)  # person of each row
    row = np.array(prompt)[person]  # prompt of each row

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


def coverage(
    language: str,
    people: dict[str, list[str]],
    candidates: dict[str, Candidates],
    scorer: Fills,
    double: Fills,
    lengths: dict[str, int],
    frames: Mapping[str, Mapping[str, Frame]],
) -> Iterator[dict[str, Any]]:
    """Yield the coverage of candidate words and the precision of a model, by part of speech."""
    for pos, words in candidates.items():
        frame = next(iter(frames[pos].values()))
        prompts = [frame.about(name) for name in list(people)[:CHECKED]]
        precision, overlap = agreement(scorer, double, prompts, words.forms, language)
        yield {
            "language": language,
            "pos": pos,
            "words": len(words.forms),
            "covered": len(scorer.vocabulary(words.forms, language).ids),
            "list_length": lengths[pos],
            "precision_nats": precision,
            "precision_overlap": overlap,
            **scorer.facts(),
        }
