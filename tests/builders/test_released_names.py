"""The one released input and output of Barriere and Cifuentes' code, through the builders."""

import csv
import json
import re

import building
import pytest
import whole
from samples import REAL_NAMES

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.parquet import Row
from plumbline.builders.datasets.counterfactuals import build as counterfactuals
from plumbline.builders.datasets.counterfactuals import find_people

PAIRS = REAL_NAMES / "sample_tweets_with_PER_perturbated_French_Female.tsv"
TWEETS = PAIRS.with_name("sample_tweets_with_PER.tsv")
TARGET = {"label": "", "task": "sentiment", "language": "en", "split": "", "redistributable": False}


def differing(text: str, other: str) -> find_people.Span:
    """Return the words of a text that another text does not share."""
    match = re.fullmatch(r"(.*\W|)(.+?)(\W.*|)\n\1.+\3", f"{text}\n{other}")
    return find_people.Span(*match.span(2))


@pytest.mark.shared
@pytest.mark.skipif(not PAIRS.is_file(), reason="no shared data beside the checkout")
def test_build_faithful_released_pairs_byte_for_byte(tmp_path, monkeypatch):
    """The authors' entities and new names are inputs; the list and the code do the rest."""
    released = PAIRS.read_text("utf-8")
    pairs = [row[1:] for row in csv.reader(released.splitlines(), delimiter="\t")][1:]
    spans = {old: differing(old, new) for new, old in pairs}
    drawn = [new[slice(*differing(new, old))] for new, old in pairs]
    kinds = {"male": {"Jean"}, "female": {n.split()[0] for n in drawn}}
    kinds["last"] = {n.split()[1] for n in drawn if " " in n}
    files = {
        "lists/checklist.json": (REAL_NAMES / "checklist_names_flat.json").read_bytes(),
        "lists/drawn.json": json.dumps({k: {"France": sorted(kinds[k])} for k in kinds}),
    }
    own = dict.fromkeys(("name", "address", "licence", "citation"), "drawn")
    declared = whole.tree()["sources"]["names"]["lists"]
    lists = [own | {"format": "by-kind"}, *(x for x in declared if x["name"] == "checklist")]
    snapshot = building.snapshot(tmp_path / "raw", "names", files, {"lists": lists})
    names = building.builder("names")
    # a flag keeps a name from being inserted, but does not remove it from the authors' list
    params = names.Params(version="0.1.0", snapshot="x", usable_min=1, words=["jonathan"])
    rows = {"names": building.parted(names.build(snapshot, params))[0]}
    tweets = [*csv.reader(TWEETS.read_text("utf-8").splitlines(), delimiter="\t")][1:]
    rows["targets"] = [Row("en", TARGET | {"id": text, "text": text}) for (text,) in tweets]
    inputs = {name: building.written(tmp_path / name, name, rows[name]) for name in rows}
    found = lambda texts: ([spans[text]] for text in texts)  # noqa: E731
    monkeypatch.setattr(find_people, "finder", lambda *_: found)
    # with so many draws, each combination of a first and a last name is drawn
    fixed = {"version": "0.1.0", "names_min": 1, "genders": ["female"], "replacements": 1000}
    params = counterfactuals.Params(eligible="checklist", **fixed)
    made = [row.values for row in building.parted(counterfactuals.build(inputs, params))[0]]
    faithful = [r for r in made if counterfactuals.READINGS[r["reading"]] == "faithful"]
    texts = {(r["target"], r["name"]): r["text"] for r in faithful}
    for (new, old), name in zip(pairs, drawn, strict=True):
        assert texts[old, name].encode() == new.encode()
    with pytest.raises(UserError, match="absent"):
        [*counterfactuals.build(inputs, counterfactuals.Params(eligible="absent", **fixed))]
