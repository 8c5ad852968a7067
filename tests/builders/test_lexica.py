from __future__ import annotations

from collections import Counter

import building
import pytest

from plumbline.builders.core.parquet import Reject, Row
from plumbline.builders.datasets.lexica import build as lexica

SIGNS = {"positive": 1, "negative": -1}
TERMS = {"licence": "CC0-1.0", "citation": "test", "redistribute": True}
POLES = {"name": "poles", "format": "list", "scale": "binary", "labels": SIGNS} | TERMS
POLES |= {"files": {"positive": "x/positive.txt", "negative": "x/negative.txt"}}
DEGREES = {"name": "degrees", "format": "table", "scale": "continuous"} | TERMS
DEGREES |= {"files": {"d": "x/degrees.tsv"}, "low": -4, "high": 4}
CLASSES = {"name": "classes", "format": "table", "scale": "classes", "delimiter": ","} | TERMS
CLASSES |= {"files": {"c": "x/classes.csv"}, "labels": SIGNS | {"neutral": 0}}
CLASSES |= {"value": [2], "pos": 1}
GOOD = ["good", "kind", "fair", "warm", "wise"]
BAD = ["bad", "cruel", "rude", "foul", "grim"]
PLAIN = ["green", "round", "wooden"]
TEXTS = {
    "poles/positive.txt": "\n".join([*GOOD, "proud"]),
    "poles/negative.txt": "\n".join([*BAD, "stern"]),
    "degrees/degrees.tsv": "\n".join(
        [f"{w}\t3" for w in GOOD] + [f"{w}\t-3" for w in BAD] + [f"{w}\t0" for w in PLAIN]
        + ["proud\t-2", "good\t4", "wild\t9"]
    ),
    "classes/classes.csv": "\n".join(
        [f"{w},adj,positive" for w in GOOD[:3]] + [f"{w},adj,negative" for w in BAD[:3]]
        + [f"{w},adj,neutral" for w in PLAIN]
        + ["proud,adj,negative", "proud,noun,positive", "stern,adj,neutral", "odd,adj,mixed"]
    ),
}  # fmt: skip


# of the shape of the file that Hoyle et al. (2019) give out
BETAS = {"negative": "alpha_1", "positive": "alpha_2", "neutral": "alpha_3"}
LEXICON = {"lexicon": "x", "betas": BETAS} | TERMS
THEIRS = """\
,alpha_1,alpha_2,alpha_3,from_vae
good,1.2500001192092896,3.5,1.25,True
Bad,2.75,1.125,1.125,True
bad,3.5,1.25,1.25,True
green,1.25,1.375,1.375,True
torn,1.25,1.375,1.5,True
grim,1.75,1.125,1.125,True
kind,1.125,3.75,1.125,True
"""


def built_from(tmp_path, views=(POLES, DEGREES, CLASSES), theirs=None, **changes):
    names = tuple(view["name"] for view in views)
    files = {f"en/{n}": f"{text}\n" for n, text in TEXTS.items() if n.startswith(names)}
    request = {"views": {"en": list(views)}}
    if theirs:
        files |= {"published/lexicon.csv": theirs}
        request |= {"published": LEXICON}
    found = building.snapshot(tmp_path, "lexica", files, request)
    wanted = {
        "version": "0.1.0",
        "snapshot": "x",
        "languages": ["en"],
        "anchors": {"en": {"positive": ["good", "kind"], "negative": ["bad", "cruel"]}},
        "seeds": [1, 2],
        "steps": 250,
        "learning_rate": 2e-3,
    }
    params = lexica.Params(**(wanted | changes))
    return list(lexica.build(found, params))


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    return built_from(tmp_path_factory.mktemp("lexica"))


@pytest.fixture(scope="module")
def rows(found):
    return {item.values["word"]: item.values for item in found if isinstance(item, Row)}


def test_build_keeps_the_values_of_views(rows):
    row = rows["stern"]
    assert row["view_names"] == ["classes", "poles"]
    assert row["view_values"] == ["neutral", "negative"]
    assert row["view_scores"] == [0, -1]
    assert row["score"] == -0.5
    assert row["pos"] == ["ADJ"]
    assert rows["wise"]["pos"] == []


def test_build_resolves_repeated_words(found, rows):
    assert rows["good"]["view_values"][1] == "0.875"  # mean of 3 and 4, of 4
    assert rows["proud"]["view_names"] == ["degrees", "poles"]  # its two classes tie
    rejects = [(r.key, r.reason) for r in found if isinstance(r, Reject)]
    assert Counter(rejects) == {
        ("degrees", "repeated in its view, merged into one row"): 1,
        ("degrees", "out of range"): 1,
        ("classes", "labels of one word that tie"): 2,
        ("classes", "label that the view does not declare"): 1,
    }


def test_build_marks_words_not_redistributable(tmp_path):
    private = CLASSES | {"redistribute": False}
    items = built_from(tmp_path, (POLES, private), steps=100, seeds=[1], leave_out=False)
    rows, _ = building.parted(items)
    assert {row.values["redistributable"] for row in rows} == {True, False}
    for row in rows:
        assert row.values["redistributable"] is ("classes" not in row.values["view_names"])
        assert row.values["seed_sd"] is None
        assert row.values["leave_out_change"] is None


QUICK = {"published": True, "seeds": [1], "leave_out": False, "steps": 100, "learning_rate": 5e-3}


def test_build_published_lexicon(tmp_path):
    rows, rejects = building.parted(built_from(tmp_path, theirs=THEIRS, **QUICK))
    assert {row.config for row in rows} == {"en", "published"}
    theirs = {row.values["word"]: row.values for row in rows if row.config != "en"}
    assert list(theirs) == ["bad", "good", "green", "grim", "kind"]
    good = theirs["good"]
    assert [good[f"beta_{axis}"] for axis in lexica.AXES] == [3.5, 1.25, 1.25]
    assert (good["views"], good["view_names"], good["redistributable"]) == (3, [], True)
    assert good["score"] == pytest.approx(2.25 / 6)
    # of both spellings the one that more lexica have
    assert (theirs["bad"]["views"], theirs["bad"]["beta_negative"]) == (3, 3.5)
    assert [(r.key, r.reason) for r in rejects if r.config == "published"] == [
        ("bad", "the same word in another case"),
        ("torn", "no word, or no mass of whole lexica"),
    ]
