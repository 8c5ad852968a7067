from __future__ import annotations

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from plumbline.builders.core import parquet as store
from plumbline.builders.datasets.corpora import build as corpora
from plumbline.validation.datasets.corpora import Params, tables

FLOORS = Params(
    rows_min={}, dated_min_share=0.5, words_max_ratio=1.5, period_min={"before": 1, "from": 1}
)


def row(config: str, number: int, **changes) -> store.Row:
    kind, _, leaning = config.partition("-")
    values = {
        "id": f"{config}/{number}",
        "text": f"Text {number} of {config}.\nAnd more.",
        "kind": corpora.KINDS.index(kind),
        "leaning": corpora.LEANINGS.index(leaning),
        "outlet": "Paper",
        "date": ("2017-01-19", "2017-01-20", "")[number % 3],
        "period": number % 3,
        "hate_score": None,
        "flags": ["date"] if number % 3 == 2 else [],
        "words": 6,
    }
    return store.Row(config, values | changes)


def sound(**changed) -> list[store.Row]:
    """Return two dated and an undated text of every corpus, the first of the left changed."""
    rows = [row(config, n) for config in corpora.CONFIGS for n in range(3)]
    return [row("news-left", 0, **changed), *rows[1:]]


def failing(tmp_path, rows: list[store.Row]) -> set[str]:
    """Return the names of the checks that some row of some frame does not hold."""
    folder = tmp_path / "corpora"
    store.write(rows, corpora.SCHEMA, folder)
    store.finish(folder)
    return {
        check.arguments["column"]
        for table in tables(FLOORS, folder)
        for check in table.checks
        if table.frame[check.arguments["column"]].mean() < check.arguments["mostly"]
    }


def test_sound_corpora_pass(tmp_path):
    assert failing(tmp_path, sound()) == set()


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"text": "Text 0  of news-left. And so more."}, {"clean", "as_many_words"}),
        ({"text": " Text of the news-left and more"}, {"clean"}),
        ({"text": "Text of a cafe\u0301 and more"}, {"composed"}),
        ({"text": "1 2 3 4 5 6"}, {"has_a_letter"}),
        ({"words": 7}, {"as_many_words"}),
        ({"date": "2017-01-20"}, {"in_its_period"}),  # periods are counted as the column has them
        ({"period": 1}, {"in_its_period", "enough_of_each_period"}),
        ({"date": "19 January"}, {"in_its_period", "date_or_empty", "flagged_if_undated", "dated"}),
        ({"date": "2017-02-30"}, {"in_its_period", "date_or_empty", "flagged_if_undated", "dated"}),
        ({"flags": ["date"]}, {"flagged_if_undated"}),
        ({"kind": 1}, {"of_the_kind"}),
        ({"leaning": 2}, {"of_the_leaning"}),
        ({"text": "as /u/some_body said, it is so"}, {"no_names_of_users"}),
        ({"text": "u/some-body said that it is so"}, {"no_names_of_users"}),
        ({"id": "social-right/1"}, {"id_once"}),
        ({"text": "TEXT 1 of social-right.\nAnd more."}, {"text_once"}),
        ({"text": "a b c d " * 5 + "e f", "words": 22}, {"comparable"}),
    ],
)
def test_what_is_wrong_is_found(tmp_path, changes, told):
    assert failing(tmp_path, sound(**changes)) == told


def test_a_masked_name_is_none(tmp_path):
    assert failing(tmp_path, sound(text="as /u/[user] said, it was so")) == set()


def test_a_corpus_that_is_missing_or_of_no_known_name_is_told(tmp_path):
    rows = [r for r in sound() if r.config != "social-center"]
    assert failing(tmp_path, rows) == {"comparable", "enough_of_each_period", "there"}
    odd = [r._replace(config="news-far") if r.config == "news-left" else r for r in sound()]
    wrong = failing(tmp_path / "b", odd)
    assert {"of_the_leaning", "there"} <= wrong


def test_a_column_that_names_authors_is_told(tmp_path):
    assert failing(tmp_path, sound()) == set()
    path = tmp_path / "corpora/news-left.parquet"
    table = pq.read_table(path)
    extra = pa.array(["somebody"] * len(table))
    pq.write_table(table.append_column("author_name", extra), path)
    (found,) = [t for t in tables(FLOORS, tmp_path / "corpora") if t.name == "columns"]
    assert found.frame.filter(~pl.col("no_author"))["column"].to_list() == ["author_name"]
