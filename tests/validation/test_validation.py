import json
import math
import shutil
from datetime import date

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import whole
import yaml

from plumbline.builders.core import parquet as store
from plumbline.builders.core.errors import UserError
from plumbline.validation.run import render, validate
from plumbline.validation.suite import schema_of

UNCHANGED = {
    *("qid", "name", "name_language", "gender_qids", "countries", "country_qids"),
}


@pytest.fixture
def mine(built, tmp_path, monkeypatch):
    """A copy of the built project, to be spoilt."""
    shutil.copytree(built, tmp_path / "p")
    monkeypatch.chdir(tmp_path / "p")
    return tmp_path / "p"


def spoil(folder, dataset, config, change):
    path = folder / "data" / "datasets" / dataset / f"{config}.parquet"
    spoilt = change(pl.read_parquet(path)).to_arrow()
    declared = pq.read_schema(path)
    kept = [
        declared.field(f.name).with_nullable(True) if f.name in UNCHANGED else f
        for f in spoilt.schema
    ]
    pq.write_table(spoilt.cast(pa.schema(kept)), path)


def refused(name) -> str:
    with pytest.raises(UserError) as caught:
        validate(name)
    return str(caught.value)


def floors(folder, dataset, **changes):
    params = yaml.safe_load((folder / "params.yaml").read_text(encoding="utf-8"))
    params["validation"][dataset] |= changes
    (folder / "params.yaml").write_text(yaml.safe_dump(params), encoding="utf-8")


def only(folder, dataset, language):
    """Leave one language, since every other one takes its time."""
    for path in (folder / "data/datasets" / dataset).glob("??.parquet"):
        if path.stem != language:
            path.unlink()
    rejects = folder / "data/datasets" / dataset / "rejects.parquet"
    own = pl.read_parquet(rejects).filter(pl.col("config").is_in([language, "*"]))
    store.write_table(own, store.REJECTED.arrow(), rejects)
    floors(folder, dataset, rows_min={language: 1})


@pytest.mark.slow
def test_the_report_is_the_same_in_every_run_and_names_no_clock_or_path(mine):
    before = (mine / "data" / "validation" / "words.json").read_bytes()
    validate("words")
    assert (mine / "data" / "validation" / "words.json").read_bytes() == before
    assert str(mine).encode() not in before
    assert json.loads(before)["success"] is True


def test_a_failure_names_dataset_expectation_share_and_five_rows(mine):
    (mine / "data" / "validation" / "politicians.json").unlink()
    only(mine, "politicians", "en")

    def break_ids(frame):
        broken = pl.when(pl.int_range(pl.len()) < 8).then(pl.lit("X")).otherwise("qid")
        return frame.with_columns(qid=broken + pl.int_range(pl.len()).cast(pl.String))

    spoil(mine, "politicians", "en", break_ids)
    message = refused("politicians")
    line = next(m for m in message.splitlines() if "match_regex" in m)
    rows = len(pl.read_parquet(mine / "data" / "datasets" / "politicians" / "en.parquet"))
    assert "politicians/en: expect_column_values_to_match_regex(column=qid" in line
    assert f"8 of {rows} rows ({800 / rows:.3g}%)" in line
    assert line.count("qid=X") == 5
    assert not (mine / "data" / "validation" / "politicians.json").exists()
    with pytest.raises(UserError):
        store.require_validated("politicians")


ROWS = {  # faults of rows and columns, each in a language of its own
    "ar": (lambda f: f.drop("popularity"), "match_ordered_list"),
    "en": (lambda f: f.with_columns(gender=pl.lit(7, pl.Int64)), "be_in_set(column=gender"),
    "es": (lambda f: f.head(20), "row_count"),
    "fr": (lambda f: f.with_columns(name=pl.lit(None, pl.String)), "not_be_null"),
    "hi": (lambda f: f.with_columns(birth_year=pl.col("birth_year").cast(pl.Int64)), "as_declared"),
    "ru": (lambda f: f.with_columns(popularity=pl.lit(-1, pl.Int32)), "be_between"),
    "zh": (lambda f: f.with_columns(name=pl.lit("12")), "unbroken"),
}
PEOPLE = {  # faults of people, of whom a language has each once and all have the same
    "fr": (
        lambda f: f.with_columns(gender=1 - pl.col("gender").clip(0, 1)),
        "one_gender_in_all_languages",
    ),
    "hi": (lambda f: pl.concat([f, f.head(1)]), "expect_column_values_to_be_unique"),
    "es": (
        lambda f: f.with_columns(birth_date=pl.lit(date(1950, 1, 1))),
        "one_birth_date_in_all_languages",
    ),
}
MANY = {"counts_min": {"*": {"gender": {"non-binary": 1000}}}}
MANY |= {"rejects_max_share": {"no label": 0.001}, "rows_min": {"en": 1, "sw": 1}}
NAMED = ("value=non-binary", "config=hi, reason=no label", "config=sw")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("faults", "changes", "named"), [(ROWS, {}, ()), (PEOPLE, MANY, NAMED)], ids=["rows", "people"]
)
def test_validate_names_each_fault_and_its_config(mine, faults, changes, named):
    floors(mine, "politicians", **changes)
    for language, (change, _) in faults.items():
        spoil(mine, "politicians", language, change)
    lines = refused("politicians").splitlines()
    for language, (_, expectation) in faults.items():
        where = (f"/{language}: ", f"-{language}: ", f"={language}", "/people: ")
        assert any(expectation in m and any(w in m for w in where) for m in lines), expectation
    assert all(any(value in line for line in lines) for value in named)


def test_a_number_that_is_not_finite_stops_the_validation(sample, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    whole.write(tmp_path)
    shutil.copytree(sample("statements"), tmp_path / "data/datasets/statements")
    path = tmp_path / "data/datasets/statements/axes-en.parquet"
    frame = pl.read_parquet(path).with_columns(weight=pl.lit(math.nan))
    store.write_table(frame, schema_of("statements").arrow(), path)
    assert "column=weight" in refused("statements")


@pytest.mark.slow
def test_data_docs_are_rendered(mine):
    index = render(["politicians", "words"])
    assert "politicians-en" in index.read_text(encoding="utf-8")
    assert len(list(index.parent.rglob("*.html"))) > 20
