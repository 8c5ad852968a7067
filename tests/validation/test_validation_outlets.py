from __future__ import annotations

from datetime import date

import pytest

from plumbline.builders.core import parquet
from plumbline.builders.datasets.outlets import build as outlets
from plumbline.builders.readers.articles import LEANINGS
from plumbline.validation.datasets.outlets import Params, tables

FLOORS = Params(rows_min={"en": 6}, articles_min=2, dated_min_share=0.5)


def row(outlet: str, number: int, **changes) -> parquet.Row:
    values = {
        "outlet": outlet,
        "leaning": LEANINGS.index("left"),
        "date": None if number else date(2020, 1, 2),
        "topic": "",
        "text": f"Text {number} of {outlet}.\nAnd more.",
        "article": f"mine/{outlet}{number}",
        "redistributable": True,
    }
    return parquet.Row("en", values | changes)


SOUND = [row(outlet, n) for outlet in ("control", "one", "two") for n in range(2)]


def failing(tmp_path, rows: list[parquet.Row]) -> set[str]:
    """Return the names of the checks that some row of some frame does not hold."""
    parquet.write(rows, outlets.SCHEMA, tmp_path / "outlets")
    parquet.finish(tmp_path / "outlets")
    return {
        check.arguments["column"]
        for table in tables(FLOORS, tmp_path / "outlets")
        for check in table.checks
        if table.frame[check.arguments["column"]].mean() < check.arguments["mostly"]
    }


def test_sound_articles_pass(tmp_path):
    assert failing(tmp_path, SOUND) == set()


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ([*SOUND[:5], row("two", 1, text=" Text.")], {"trimmed", "single_spaces"}),
        ([*SOUND[:5], row("two", 1, text="A  text.")], {"single_spaces"}),
        ([*SOUND[:5], row("two", 1, text="A text.\n\nMore.")], {"single_spaces"}),
        ([*SOUND[:5], row("two", 1, text="A cafe\u0301.")], {"composed"}),
        ([*SOUND[:5], row("two", 1, text="123.")], {"has_a_letter"}),
        ([*SOUND[:5], row("two", 1, text="Text 0 of one.\nAnd more.")], {"once"}),
        ([*SOUND[:4], row("two", 1), row("two", 2)], {"dated"}),
        (SOUND[:5], {"over_floor", "as_many_as_others"}),
        (SOUND[2:], {"over_floor", "as_many_as_others"}),
        ([*SOUND, row("two", 2)], {"dated", "as_many_as_others"}),
    ],
    ids=[
        *("untrimmed", "two spaces", "empty line", "decomposed", "no letter", "twice", "undated"),
        *("few", "no control", "unequal"),
    ],
)
def test_what_is_wrong_is_found(tmp_path, rows, told):
    assert failing(tmp_path, rows) == told


def test_unequal_numbers_are_a_warning_only(tmp_path):
    parquet.write(SOUND, outlets.SCHEMA, tmp_path / "outlets")
    parquet.finish(tmp_path / "outlets")
    (found,) = [t for t in tables(FLOORS, tmp_path / "outlets") if t.name == "outlets"]
    assert {c.arguments["column"]: c.warning for c in found.checks} == {
        "over_floor": False,
        "as_many_as_others": True,
    }
