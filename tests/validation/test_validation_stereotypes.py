from __future__ import annotations

import pytest

from plumbline.builders.core import parquet
from plumbline.builders.datasets.social_groups import build as social_groups
from plumbline.builders.datasets.stereotypes import build as stereotypes
from plumbline.validation.datasets import social_groups as check_groups
from plumbline.validation.datasets import stereotypes as check_stereotypes

SUGGESTED = {
    "category": "age",
    "group": "kids",
    "language": "en",
    "template": "why are {group} so",
    "query": "why are kids so",
    "attribute": "sad",
    "single_word": True,
    "engines": ["google", "yahoo"],
    "ranks": [1, 2],
    "wave": "2026-11-21",
    "flags": [],
    "source_row": 0,
}
GROUP = {"category": "age", "group": "kids", "name": "kids", "kind": 0}


def failing(found) -> set[str]:
    """Return the checks that some row of some frame does not hold."""
    names = set()
    for table in found:
        for check in table.checks:
            column, share = check.arguments["column"], check.arguments["mostly"]
            if table.frame[column].mean() < share:
                names.add(column)
    return names


def of_suggestions(tmp_path, *rows, **floors) -> set[str]:
    parquet.write([parquet.Row("en", row) for row in rows], stereotypes.SCHEMA, tmp_path / "x")
    parquet.finish(tmp_path / "x")
    given = {"rows_min": {"en": 1}, "engine_min": {"google": 1}, "flagged_max_share": 0.5}
    params = check_stereotypes.Params(**(given | floors))
    return failing(check_stereotypes.tables(params, tmp_path / "x"))


def of_groups(tmp_path, *rows, **floors) -> set[str]:
    parquet.write([parquet.Row("en", row) for row in rows], social_groups.SCHEMA, tmp_path / "x")
    parquet.finish(tmp_path / "x")
    params = check_groups.Params(**({"rows_min": {"en": 1}, "category_min": 1} | floors))
    return failing(check_groups.tables(params, tmp_path / "x"))


def test_sound_suggestions_hold_every_check(tmp_path):
    paper = {"engines": ["multiple"], "ranks": [], "source_row": 3}
    assert of_suggestions(tmp_path, SUGGESTED, SUGGESTED | paper) == set()


@pytest.mark.parametrize(
    ("changes", "check"),
    [
        ({"query": "why are Kids so"}, "query_is_normal"),
        ({"query": "why are kids so "}, "query_is_normal"),
        ({"template": "why is {group} so"}, "query_fits_template"),
        ({"attribute": "..."}, "attribute_is_a_text"),
        ({"engines": [], "ranks": []}, "has_an_engine"),
        ({"ranks": [1]}, "a_rank_for_each_engine"),
        ({"attribute": "sad now"}, "single_word_has_no_space"),
        ({"flags": ["odd"]}, "known_flags"),
        ({"flags": ["trend"]}, "clean"),
        ({"engines": ["bing"], "ranks": [1]}, "over_floor"),
    ],
)
def test_each_kind_of_fault_in_suggestions_is_found(tmp_path, changes, check):
    assert check in of_suggestions(tmp_path, SUGGESTED | changes)


def test_sound_groups_hold_every_check(tmp_path):
    assert of_groups(tmp_path, GROUP) == set()


@pytest.mark.parametrize(
    ("rows", "check"),
    [
        ([GROUP | {"group": "old  people"}], "single_spaces"),
        ([GROUP | {"group": "80", "name": "80"}], "has_a_letter"),
        ([GROUP | {"name": "children"}], "one_spelling"),
        ([GROUP, GROUP | {"group": "teens", "name": "teens", "kind": 1}], "one_kind_a_category"),
    ],
)
def test_each_kind_of_fault_in_groups_is_found(tmp_path, rows, check):
    assert check in of_groups(tmp_path, *rows)


def test_a_category_under_the_floor_is_found(tmp_path):
    assert of_groups(tmp_path, GROUP, category_min=2) == {"over_floor"}
