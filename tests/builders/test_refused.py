"""Files that are not what they are declared to be: each reader refuses them, and names the line."""

from __future__ import annotations

import json

import pytest
from published import compass, eight

from plumbline.builders.datasets.downstream import read as downstream
from plumbline.builders.datasets.emotions.build import lexicon
from plumbline.builders.datasets.lexica import formats
from plumbline.builders.datasets.politicians import build as politicians
from plumbline.builders.datasets.social_groups.read import groups
from plumbline.builders.datasets.statements.formats import scale
from plumbline.builders.datasets.statements.read import statements
from plumbline.builders.datasets.stereotypes.build import published
from plumbline.builders.datasets.supersenses import build as supersenses
from plumbline.builders.datasets.survey.responses import respondents
from plumbline.builders.datasets.targets import build as targets
from plumbline.builders.readers.name_lists import List, entries
from plumbline.builders.readers.table import tweeteval

TERMS = {"licence": "CC0-1.0", "citation": "the project"}
NAMES = List(name="x", address="x", **TERMS)
TEXTS = targets.Corpus(
    name="x", format="tsv", parts={"test": "x"}, task="mood", language="en", **TERMS
)
PARTS = downstream.Corpus(
    format="csv",
    parts={"all": "x"},
    columns={"text": "text", "label": "label"},
    language="en",
    **TERMS,
)
WORDS = formats.View(
    name="x", files={"a": "http://x/a.txt"}, format="table", scale="continuous", **TERMS
)
READERS = {
    "verbs": supersenses.synsets,
    "emotions": lexicon,
    "groups": groups,
    "labels": lambda body: tweeteval(b"a\nb\n", body, b"0\tnegative\n"),
    "lexica": lambda body: formats.read(WORDS, "http://x/a.txt", body),
    "mentions": politicians.mentions,
    "names": lambda body: entries(NAMES, body),
    "people": politicians.names,
    "statements": statements,
    "stereotypes": published,
    "survey": lambda body: respondents(body, ["*"]),
    "targets": lambda body: targets.texts(TEXTS, "test", body),
    "downstream": lambda body: downstream.read(PARTS, "all", body),
    "compass": lambda body: scale(body, "political-compass"),
    "8values": lambda body: scale(body, "8values"),
}
STATEMENT = "id,text,axis,weight,reversed,polarity,opposite\n"
SUGGESTION = "input\ttarget_category\ttarget_group\tcompletion\tsearch_engine\n"
SYNSET = "00000001-v:\n  members:\n  - run\n  partOfSpeech: v\n"


@pytest.mark.parametrize(
    ("reader", "text", "value"),
    [
        ("verbs", SYNSET.replace("- run", "- run\n  - run"), "00000001-v"),
        ("verbs", "a: [\n", ""),
        ("emotions", "war\tbliss\t1\n", "line 1"),
        ("emotions", "war\tjoy\t1\n", "war"),
        ("groups", "category,group,name,kind\nage,kids,kids,persons\n", "line 2"),
        ("labels", "0\n", "2"),
        ("labels", "0\n5\n", "line 2"),
        ("lexica", "just words\n", ""),
        ("mentions", "language,qid,mentions\nen,Q5,many\n", "line 2"),
        ("names", "country,kind,rank,name\nfr,male,first,Jean\n", "line 2"),
        ("people", "language,name,gender\nen,Ada,f\n", "line 2"),
        ("people", '{"Ada Example": "female"}', ""),
        ("statements", f"{STATEMENT}a,tea is good,tribalism,one,no,,\n", "line 2"),
        ("statements", f"{STATEMENT}a,tea is good,tribalism,1,no,,b\n", "b"),
        ("stereotypes", f"{SUGGESTION}why are kids so\tage\tkids\tgoogle\n", "line 2"),
        ("stereotypes", f"{SUGGESTION}why are kids so\tage\tkids\tmean\tbing\n", "bing"),
        ("survey", "respondent,gender,infected,a\nr1,female,no,6\n", "line 2"),
        ("survey", "respondent,gender,infected,a\n" + "r1,female,no,5\n" * 2, "line 3"),
        ("targets", "text\tlabel\nx\n", "line 2"),
        ("downstream", "text,label\ntea\n", "line 2"),
        ("compass", json.dumps(json.loads(compass())["propositions"][1:]), "62"),
        ("compass", compass(economic=[78, 5, 0, -83]), "-83"),
        ("8values", "fetch('x');" + eight(), ""),
        ("8values", eight(69), "69"),
    ],
)
def test_read_refuses_other_files(reader, text, value):
    with pytest.raises(ValueError) as caught:
        list(READERS[reader](text.encode()))
    assert value in str(caught.value)


@pytest.mark.parametrize(
    "reader", ["emotions", "groups", "lexica", "names", "statements", "survey"]
)
def test_read_refuses_web_pages_and_cut_files(reader):
    for body in (b"<!DOCTYPE html>\n<p>Moved</p>\n", b"\xff\xfe\xfa", b""):
        with pytest.raises(ValueError):
            list(READERS[reader](body))
