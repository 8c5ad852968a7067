"""Dataset ``downstream``: texts to train and test classifiers of hate speech and misinformation.

Feng et al. (2023), section 4, compare classifiers that differ only in their pretraining, overall
and by the target of the hate or the source of the misinformation.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from plumbline.builders.core.errors import UserError, reading
from plumbline.builders.core.params import SnapshotParams
from plumbline.builders.core.parquet import Reject, Row
from plumbline.builders.core.schema import Column, Schema
from plumbline.builders.core.snapshot import Snapshot, hash64
from plumbline.builders.datasets.downstream.read import SPLITS, Corpus, Split, Text, read
from plumbline.builders.readers.declared import declared

PAGE = "docs/datasets/downstream.md"
TASKS = ("hate", "misinformation")
CONFIG = r"^(hate|misinformation)-[a-z0-9]+(-[a-z0-9]+)*$"
SEVERAL = "several"
HELD_OUT = 0.1  # share of training texts for validation if the source has no such split
NOT_SHIPPED = ("hate-identity", "hate-demographic")  # available only from their authors

COLUMNS = (
    Column("id", "string", "id of the text in its source; if it has none, its part and position"),
    Column("text", "string", "the text; see Normalisation", prose="text"),
    Column("label", "string", "class of the text, as mapped by `labels` in the params"),
    Column("task", "label", "classification task", labels=TASKS),
    Column("split", "label", "split, given by the source or drawn; see Splits", labels=SPLITS),
    Column(
        "group",
        "string",
        "target (hate) or side of the source (misinformation), mapped by the table `groups`; empty "
        f"if there is none; `{SEVERAL}` if there are several",
        empty=True,
    ),
    Column("groups", "strings", "all groups of the text, as named by the source"),
    Column("mapped", "strings", "groups after mapping by the table, distinct and sorted"),
    Column(
        "source",
        "string",
        "speaker, outlet or collection, as named by the source; else the name of the corpus",
    ),
    Column("language", "string", "language of the text"),
    Column("source_label", "string", "class in the source, before mapping by the table"),
    Column("redistributable", "bool", "whether the terms of its source permit publishing the row"),
)
SCHEMA = Schema(COLUMNS, key=("id",))
COUNTS = ("split label", "group label")  # columns tabulated in the card

Name = Annotated[str, Field(pattern=CONFIG)]


class Params(SnapshotParams):
    """The snapshot, and the mapping of its classes, groups and splits."""

    configs: list[Name] = Field(min_length=1, description="task and name of each config")
    labels: dict[Name, dict[str, str]] = Field(
        default_factory=dict,
        description="for each config, the class to which each label of the source is mapped; "
        "texts whose class is then empty are left out. If a text has several labels, the first in "
        "the order of the table decides. Without a table, labels are unchanged",
    )
    groups: dict[Name, dict[str, str]] = Field(
        default_factory=dict,
        description="for each config, the group to which each group of the source is mapped; "
        "other groups are dropped",
    )
    shares: dict[Split, Annotated[float, Field(ge=0)]] = Field(
        {"train": 0.7, "validation": 0.1, "test": 0.2},
        description="shares of the splits if the source has no splits",
    )
    seed: int = Field(1, description="random seed")


def build(snapshot: Snapshot, params: Params) -> Iterator[Row | Reject]:
    """Yield one row per text, sorted by id.

    A text in two splits is removed from training, never from testing; case is ignored.
    """
    for config in params.configs:
        authors = "; available from its authors (https://osf.io/53tfs); provide your own file"
        hint = f"{authors if config in NOT_SHIPPED else ''} ({PAGE} has the formats)"
        (corpus,) = declared(snapshot, Corpus, "corpora", config, hint=hint)
        pairs: list[tuple[Text, str]] = []
        for text in _texts(snapshot, config, corpus):
            label, reason = labelled(text, corpus, params.labels.get(config))
            if reason:
                yield Reject(config, text.id, reason)
            else:
                pairs.append((text, label))
        splits, rows = _splits(pairs, params), []
        split_of: dict[str, str] = {}  # split of each text
        seen: set[tuple[str, str]] = set()
        pairs.sort(key=lambda pair: (-SPLITS.index(splits[pair[0].id]), pair[0].id))
        for text, label in pairs:
            folded, split = text.text.casefold(), splits[text.id]
            leaks, again = split_of.setdefault(folded, split) != split, (folded, label) in seen
            seen.add((folded, label))
            if leaks or again:
                reason = "the same text in another split" if leaks else "the same text again"
                yield Reject(config, text.id, reason)
            else:
                rows.append(_row(config, corpus, text, label, split, params))
        for row in sorted(rows, key=lambda row: str(row["id"])):
            yield Row(config, row)


def _row(
    config: str, corpus: Corpus, text: Text, label: str, split: str, params: Params
) -> dict[str, object]:
    task, _, name = config.partition("-")
    table = params.groups.get(config, {})
    mapped = sorted({table[group] for group in text.groups if table.get(group)})
    return {
        "id": text.id,
        "text": text.text,
        "label": label,
        "task": TASKS.index(task),
        "split": SPLITS.index(split),
        "group": SEVERAL if len(mapped) > 1 else "".join(mapped),
        "groups": list(text.groups),
        "mapped": mapped,
        "source": text.source or name,
        "language": corpus.language,
        "source_label": text.label,
        "redistributable": corpus.redistribute,
    }


def labelled(text: Text, corpus: Corpus, table: dict[str, str] | None) -> tuple[str, str]:
    """Return the class of a text according to a table, or the reason why it has none."""
    if not text.text or not text.label:
        return "", "no label" if text.text else "no text"
    if table is None:
        return text.label, ""
    separator = corpus.label_separator
    labels = text.label.split(separator) if separator else [text.label]
    if unknown := sorted(set(labels) - set(table)):
        return "", f"label in no table: {unknown[0]}"
    label = next(table[key] for key in table if key in labels)
    return label, "" if label else "label left out by the table"


def _splits(pairs: list[tuple[Text, str]], params: Params) -> dict[str, str]:
    """Return the split of each text: the source's, or one drawn for all texts of its unit.

    Units are sorted by label and groups, and within these by a hash of seed and name; each is
    assigned to the split that is furthest behind its share of the rows so far. In every stratum and
    in total, the splits are then within about one unit of their shares.
    """
    stated = {text.id: text.split for text, _ in pairs if text.split}
    free = [(text, label) for text, label in pairs if not text.split]
    splits = set(stated.values())
    shares: dict[str, float] = dict(params.shares)  # type: ignore[arg-type]
    if not free and "train" in splits and "validation" not in splits:
        free = [(text, label) for text, label in pairs if text.split == "train"]
        shares = {"train": 1 - HELD_OUT, "validation": HELD_OUT}
    members: dict[str, list[str]] = defaultdict(list)  # keyed by the name of the unit
    for text, label in free:
        members[text.together].append(f"{label} {text.groups}")
    total = sum(shares.values())
    targets = {split: shares[split] / total for split in SPLITS if shares.get(split)}
    filled, rows = dict.fromkeys(targets, 0), 0
    dealt: dict[str, str] = {}

    def order(name: str) -> tuple[str, int, str]:
        return "; ".join(sorted(set(members[name]))), hash64(f"{params.seed}\n{name}"), name

    for name in sorted(members, key=order):
        size = len(members[name])
        rows += size
        behind = {split: share * rows - filled[split] for split, share in targets.items()}
        dealt[name] = max(behind, key=lambda s: round(behind[s], 9))
        filled[dealt[name]] += size
    return stated | {text.id: dealt[text.together] for text, _ in free}


def _texts(snapshot: Snapshot, config: str, corpus: Corpus) -> Iterator[Text]:
    """Yield the texts of all parts; ids must be unique."""
    ids: set[str] = set()
    for part in (part for part in (*SPLITS, "all") if part in corpus.parts):
        advice = "fix it or its declaration under sources.downstream, and fetch again"
        with reading(f"{snapshot.folder}: {config}", advice):
            texts = read(corpus, part, snapshot.read(corpus.path(config, part)))
        if twice := [text.id for text in texts if text.id in ids]:
            raise UserError(
                f"{snapshot.folder}: {config} has the id {twice[0]!r} in two parts; leave id "
                "out of its columns under sources.downstream, and fetch again"
            )
        ids.update(text.id for text in texts)
        yield from texts
