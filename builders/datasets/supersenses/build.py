"""Dataset ``supersenses``: coarse classes of meaning of English adjectives and verbs.

Adjectives have the 13 classes of Tsvetkov et al. (2014), with their classifier's probabilities.
Verbs have 15 classes, the lexicographer files of WordNet as in the Open English WordNet; a verb is
in every class in which it has a sense.
"""

from __future__ import annotations

import math
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

import yaml
from pydantic import Field

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.params import Reader, SnapshotParams, yaml_of
from plumbline.builders.core.parquet import Reject, Row
from plumbline.builders.core.schema import Column, Schema
from plumbline.builders.core.snapshot import Snapshot
from plumbline.builders.readers.declared import read
from plumbline.builders.readers.table import decoded, json_object, lines

POS = ("ADJ", "VERB")
ADJECTIVES = (
    *("behavior", "body", "feeling", "mind", "miscellaneous", "motion", "perception", "quantity"),
    *("social", "spatial", "substance", "temporal", "weather"),
)
VERBS = (
    *("body", "change", "cognition", "communication", "competition", "consumption", "contact"),
    *("creation", "emotion", "motion", "perception", "possession", "social", "stative", "weather"),
)
CLASSES = (*(f"adj.{name}" for name in ADJECTIVES), *(f"verb.{name}" for name in VERBS))
CODES = {name: code for code, name in enumerate(CLASSES)}
LANGUAGE = "en"
DECIMALS = 6

COLUMNS = (
    Column("lemma", "string", "dictionary form in the source, NFC", prose="word"),
    Column("pos", "label", "universal part of speech", labels=POS),
    Column(
        "supersense",
        "label",
        "class of meaning; its name begins with the part of speech",
        labels=CLASSES,
    ),
    Column(
        "weight",
        "float64",
        "adjectives: probability of the class; verbs: share of the lemma's senses in the class; "
        "sums to 1 over the classes of a lemma and part of speech",
        minimum=0,
        maximum=1,
    ),
    Column(
        "senses",
        "int64",
        "verbs: number of senses (synsets) of the lemma in this class; adjectives: null",
        nullable=True,
        minimum=1,
    ),
    Column(
        "best",
        "bool",
        "adjectives: whether the source selects this class; verbs: whether no class has more "
        "senses, so that several may tie",
    ),
)
SCHEMA = Schema(COLUMNS, key=("lemma", "pos", "supersense"))
COUNTS = ("supersense best",)  # columns tabulated in the card


class Params(SnapshotParams):
    """The snapshot to build from."""

    languages: list[str] = Field(
        default=[LANGUAGE],
        min_length=1,
        max_length=1,
        description="languages; only en is available",
    )


def build(snapshot: Snapshot, params: Params) -> Iterator[Row | Reject]:
    """Yield one row per lemma, part of speech and class, sorted.

    An adjective is in all 13 classes, a verb in each in which it has a sense. A second line for the
    same adjective is rejected.
    """
    (language,) = params.languages
    classes: dict[str, tuple[str, dict[str, float]]] = {}
    for file in snapshot.names("adjectives/"):
        for spelled, choice, probabilities in read(snapshot, file, adjectives, "fetch it again"):
            lemma = unicodedata.normalize("NFC", spelled)
            if lemma in classes:
                yield Reject(language, lemma, "adjective a second time")
            classes.setdefault(lemma, (choice, probabilities))
    for lemma, (choice, probabilities) in sorted(classes.items()):
        for name, weight in sorted(probabilities.items()):
            yield _row(language, lemma, f"adj.{name}", weight, None, name == choice)
    for lemma, counts in sorted(_senses(snapshot).items()):
        total, most = counts.total(), max(counts.values())
        for name, number in sorted(counts.items()):
            yield _row(language, lemma, f"verb.{name}", number / total, number, number == most)


def _row(language: str, lemma: str, name: str, weight: float, *senses_and_best: Any) -> Row:
    code = CODES[name]
    values = (lemma, int(code >= len(ADJECTIVES)), code, round(weight, DECIMALS), *senses_and_best)
    return Row(language, dict(zip((c.name for c in SCHEMA.columns), values, strict=True)))


def adjectives(body: bytes) -> Iterator[tuple[str, str, dict[str, float]]]:
    """Yield the lemma, class and all probabilities on each line of a file of adjectives."""
    for number, line in enumerate(lines(decoded(body, complete=True)), start=1):
        fields = line.split("\t")
        if len(fields) != 3:
            raise ValueError(f"line {number} has {len(fields)} columns, not three")
        lemma, choice, weights = fields
        objects = json_object(weights, f"line {number}, third column")
        probabilities = {key.lower(): p for key, p in objects.items()}
        if set(probabilities) != set(ADJECTIVES):
            raise ValueError(f"line {number}: not a probability for each of the 13 classes")
        sound = all(isinstance(p, int | float) and 0 <= p <= 1 for p in probabilities.values())
        if not sound or not math.isclose(sum(probabilities.values()), 1, abs_tol=1e-6):
            raise ValueError(f"line {number}: not probabilities that sum to 1")
        name = choice.lower()
        if not lemma.strip() or probabilities.get(name) != max(probabilities.values()):
            raise ValueError(f"line {number}: {choice!r} is not the most probable class")
        yield lemma, name, probabilities


def synsets(body: bytes) -> Iterator[tuple[str, list[str]]]:
    """Yield the identifier and members of each synset in a lexicographer file of verbs."""
    text = decoded(body, complete=True)
    try:
        tree = yaml_of(text, Reader)
    except (yaml.YAMLError, RecursionError, TypeError) as error:
        raise ValueError(f"not YAML ({' '.join(str(error).split())})") from error
    if not isinstance(tree, dict) or not tree:
        raise ValueError("the file has no synsets")
    for synset, entry in tree.items():
        members: Any = entry.get("members") if isinstance(entry, dict) else None
        listed = isinstance(members, list) and members and all(isinstance(m, str) for m in members)
        if not listed or entry.get("partOfSpeech") != "v":
            raise ValueError(f"{synset}: not a synset of verbs with members")
        if len(set(members)) < len(members):
            raise ValueError(f"{synset}: a member appears twice")
        yield str(synset), members


def _senses(snapshot: Snapshot) -> dict[str, Counter[str]]:
    """Return the number of each verb's synsets in each class."""
    senses: defaultdict[str, Counter[str]] = defaultdict(Counter)
    seen: set[str] = set()
    for name in VERBS:
        file = f"verbs/verb.{name}.yaml"
        for synset, members in read(snapshot, file, synsets, "fetch it again"):
            if synset in seen:
                raise UserError(f"{snapshot.folder / file}: {synset} occurs twice; fetch it again")
            seen.add(synset)
            for member in members:
                senses[unicodedata.normalize("NFC", member)][name] += 1
    return senses
