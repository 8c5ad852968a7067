"""Counts of people by name and country, as Wikidata's answers in a snapshot have them."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from plumbline.builders.readers.name_lists import normal
from plumbline.builders.readers.sparql_json import bindings, entity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plumbline.builders.core.snapshot import Snapshot

FOLDER = "wikidata"  # of the snapshot, and the name of this source among the lists
GENDERS = {  # Wikidata's items for a person's sex or gender
    "Q6581097": "male",
    "Q2449503": "male",  # trans man
    "Q6581072": "female",
    "Q1052281": "female",  # trans woman
}


def counted(snapshot: Snapshot) -> Iterator[tuple[str, str, str, int, int]]:
    """Yield country, kind, name, rank and people of every name that was counted.

    Items with one label are one name. People of genders in neither list are not among the first
    names. A name without a label comes as ''.
    """
    labels: dict[str, str] = {}
    for path in snapshot.names(f"{FOLDER}/labels/"):
        for row in bindings(snapshot.read(path)):
            qid, label = entity(row["item"]), row["label"]
            better = label.get("xml:lang") != "mul"  # a language of its own wins
            if qid and (better or qid not in labels):
                labels[qid] = normal(label["value"])
    numbers: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for path in snapshot.names(f"{FOLDER}/counts/"):
        country, what = path.split("/")[2:4]
        for row in bindings(snapshot.read(path)):
            qid = entity(row["name"])
            gender = GENDERS.get(entity(row.get("gender", {})) or "")
            kind = gender if what == "given" else "last"
            if qid and kind:
                numbers[country, kind][labels.get(qid, "")] += int(row["number"]["value"])
    for (country, kind), names in sorted(numbers.items()):
        ordered = sorted(names.items(), key=lambda item: (-item[1], item[0]))
        for rank, (name, number) in enumerate(ordered, start=1):
            yield country, kind, name, rank, number
