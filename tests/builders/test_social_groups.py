from __future__ import annotations

import csv
import gzip
import json
from pathlib import Path

import polars as pl
import pytest
from samples import DAY, SAMPLES

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.snapshot import Snapshot
from plumbline.builders.datasets.social_groups import build as social_groups
from plumbline.builders.datasets.social_groups.read import groups

SHARED = Path(__file__).parents[3] / "shared/data"
HEAD = "category,group,name,kind\n"


def test_the_default_list_is_the_papers(sample):
    frame = pl.read_parquet(sample("social_groups") / "en.parquet")
    assert len(frame) == 374  # the sum of the paper's list
    sizes = dict(frame.group_by("category").len().iter_rows())
    assert len(sizes) == 9
    respelled = frame.filter(pl.col("group") != pl.col("name"))
    assert dict(respelled.select("group", "name").iter_rows())["millenials"] == "millennials"
    countries = frame.filter(pl.col("category") == "country")
    assert countries["kind"].unique().to_list() == [social_groups.KINDS.index("country")]


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("group,name\nkids,kids\n", "line 1: not the columns"),
        (HEAD, "no group in it"),
        (HEAD + "age,kids,kids,people", "cut short"),
        (HEAD + "age,kids,kids\n", "line 2 has 3 columns, not 4"),
        (HEAD + "age,kids,,people\n", "line 2: a field is empty"),
        (HEAD + "age,old  people,old people,people\n", "line 2: a field is empty or has spaces"),
        (HEAD + "age,kids,kids,persons\n", "line 2: 'persons' is neither people nor country"),
        (HEAD + "age,kids,kids,people\n" * 2, "line 3: 'kids' a second time in age"),
    ],
)
def test_a_list_that_is_none_is_refused_with_the_line(text, wrong):
    with pytest.raises(ValueError, match=wrong):
        groups(text.encode())


def test_a_byte_order_mark_and_quotes_do_no_harm():
    body = f'\ufeff{HEAD}age,"kids","kids",people\r\n'.encode()
    assert groups(body)[0].group == "kids"


def test_a_language_without_a_list_is_named():
    params = social_groups.Params(version="0.1.0", snapshot="x", languages=["sw"])
    with pytest.raises(UserError, match="no groups for 'sw'"):
        list(social_groups.build(Snapshot.open(SAMPLES / "social_groups" / DAY), params))


@pytest.mark.shared
@pytest.mark.skipif(not SHARED.is_dir(), reason="no shared data beside the checkout")
def test_every_published_group_is_in_the_list():
    ours = {g.group for g in groups((SAMPLES / "social_groups" / DAY / "en.csv").read_bytes())}
    published = SHARED / "published/stereotypes"
    scores = pl.read_parquet(published / "emotion_scores_bert-base-uncased.parquet")
    assert scores["group"].n_unique() == 371
    assert set(scores["group"]) < ours
    with gzip.open(published / "bert-base-uncased-corrected.json.gz") as file:
        prompts = " ".join(json.load(file))
    assert all(name in prompts for name in ("belgium", "croatia", "malta"))
    with (SHARED / "stereotypes/stereo_dataset.csv").open(encoding="utf-8", newline="") as file:
        suggested = {row["target_group"].strip() for row in csv.DictReader(file, delimiter="\t")}
    assert len(suggested) == 274
    lower = {group.casefold() for group in ours}
    assert {group for group in suggested if group.casefold() not in lower} == {"millennials"}
