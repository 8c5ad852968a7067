"""The one released input and output of Barriere and Cifuentes' code, through the builders."""

import csv
import re

import building
import pytest
import whole
from samples import REAL_NAMES

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.parquet import Row
from plumbline.builders.datasets.counterfactuals import build as counterfactuals
from plumbline.builders.datasets.counterfactuals import find_people
from plumbline.builders.datasets.names import build as names

PAIRS = REAL_NAMES / "sample_tweets_with_PER_perturbated_French_Female.tsv"
TARGET = {"label": "", "task": "sentiment", "language": "en", "split": "", "redistributable": False}


def differing(text: str, other: str) -> find_people.Span:
    """Return the words of a text that another text does not share."""
    words, others = (re.split(r"(\W)", each) for each in (text, other))
    start, end = (
        next(i for i, (a, b) in enumerate(zip(*pair, strict=False)) if a != b)
        for pair in ((words, others), (words[::-1], others[::-1]))
    )
    first, last = ("".join(part) for part in (words[:start], words[len(words) - end :]))
    return find_people.Span(len(first), len(text) - len(last))


@pytest.mark.shared
@pytest.mark.skipif(not PAIRS.is_file(), reason="no shared data beside the checkout")
def test_build_faithful_released_pairs_byte_for_byte(tmp_path, monkeypatch):
    """The authors' entities and new names are inputs; the list and the code do the rest."""
    released = PAIRS.read_text("utf-8")
    pairs = [row[1:] for row in csv.reader(released.splitlines(), delimiter="\t")][1:]
    spans = {old: differing(old, new) for new, old in pairs}
    drawn = [new[slice(*differing(new, old))].split() for new, old in pairs]
    kinds = {
        "male": ["Jean"],
        "female": [d[0] for d in drawn],
        "last": [d[1] for d in drawn if d[1:]],
    }
    french = [f"fr,{kind},{i},{name}" for kind in kinds for i, name in enumerate(kinds[kind])]
    declared = whole.tree()["sources"]["names"]["lists"]
    own = dict.fromkeys(("name", "address", "licence", "citation"), "drawn")
    files = {
        "lists/checklist.json": (REAL_NAMES / "checklist_names_flat.json").read_bytes(),
        "lists/drawn.csv": "\n".join(["country,kind,rank,name", *french]),
    }
    lists = {"lists": [own, *(entry for entry in declared if entry["name"] == "checklist")]}
    snapshot = building.snapshot(tmp_path / "raw", "names", files, lists)
    # a flag keeps a name from being inserted, but does not remove it from the authors' list
    fixed = {"version": "0.1.0", "snapshot": "x", "usable_min": 1, "words": ["jonathan"]}
    rows = {
        "names": building.parted(names.build(snapshot, names.Params(**fixed)))[0],
        "targets": [Row("en", TARGET | {"id": old, "text": old}) for _, old in pairs],
    }
    inputs = {name: building.written(tmp_path / name, name, own) for name, own in rows.items()}
    find = lambda texts: ([spans[text]] for text in texts)  # noqa: E731
    monkeypatch.setattr(find_people, "finder", lambda *_: find)
    # with so many draws, each combination of a first and a last name is drawn
    fixed = {"version": "0.1.0", "names_min": 1, "genders": ["female"], "replacements": 1000}
    params = counterfactuals.Params(eligible="checklist", **fixed)
    made = [row.values for row in building.parted(counterfactuals.build(inputs, params))[0]]
    faithful = counterfactuals.READINGS.index("faithful")
    texts = {(r["target"], r["name"]): r["text"] for r in made if r["reading"] == faithful}
    with (tmp_path / "made.tsv").open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, delimiter="\t", lineterminator="\n")
        table.writerow(["", "changed", "original"])
        for i, ((_, old), name) in enumerate(zip(pairs, drawn, strict=True)):
            table.writerow([i, texts[old, " ".join(name)], old])
    assert (tmp_path / "made.tsv").read_bytes() == f"{released}\n".encode()
    with pytest.raises(UserError, match="absent"):
        [*counterfactuals.build(inputs, counterfactuals.Params(eligible="absent", **fixed))]
