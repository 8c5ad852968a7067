from __future__ import annotations

import csv
import gzip
import json

import building
import polars as pl
from samples import DAY, SAMPLES

from plumbline.builders.datasets.social_groups import build as social_groups
from plumbline.builders.datasets.social_groups.read import groups

SHARED = building.REAL


def test_default_groups_are_those_of_the_paper(sample):
    frame = pl.read_parquet(sample("social_groups") / "en.parquet")
    assert len(frame) == 374  # the sum of the nine counts in section 3, which has 382
    sizes = {"age": 11, "gender": 26, "profession": 115, "race": 99, "country": 73}
    sizes |= {"religion": 10, "political": 9, "sexuality": 12, "lifestyle": 19}
    assert dict(frame.group_by("category").len().iter_rows()) == sizes
    respelled = frame.filter(pl.col("group") != pl.col("name"))
    assert dict(respelled.select("group", "name").iter_rows())["millenials"] == "millennials"
    countries = frame.filter(pl.col("category") == "country")
    assert countries["kind"].unique().to_list() == [social_groups.KINDS.index("country")]


@building.reads("")
def test_default_groups_contain_the_published_ones():
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
