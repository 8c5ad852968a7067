"""Checks on the dataset ``politicians`` across rows and languages."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import polars as pl
from pydantic import Field

from plumbline.builders.core import parquet as store
from plumbline.builders.datasets.politicians.build import PUBLISHED
from plumbline.builders.datasets.politicians.person import GENDERS, PRECISIONS, gender_of
from plumbline.builders.readers.table import label_codes, script_of
from plumbline.validation import suite

BORN = date(1900, 1, 1), date(2000, 12, 31)  # earliest and latest date of birth
FEW = 20  # with at least this number of people, their numbers of sitelinks must differ
# Brackets or digits occur in .05% of 24,000 real labels (in .5% of 2,300 Russian labels).
BRACKETS = r"[()\[\]{}<>]|\p{Nd}"
USUAL = {"no_brackets_no_digits": 0.98, "begins_with_a_capital": 0.95}
NAMED = {
    "no_brackets_no_digits": ~pl.col("name").str.contains(BRACKETS),
    "begins_with_a_capital": ~pl.col("name").str.contains(r"^\p{Ll}"),
}
SAME = ["gender", "gender_qids", "birth_date", "birth_precision", "popularity"]
SAME += ["countries", "country_qids"]


class Params(suite.Params):
    """Minimum and maximum values."""

    script_min_share: float = Field(
        0.9, ge=0, le=1, description="minimum share of names in the language's script"
    )


def tables(params: Params, config: str, frame: pl.DataFrame) -> list[suite.Table]:
    """Check that columns agree, people are unique, and names are in the language of the config."""
    if config == PUBLISHED:
        return _released(params, frame)
    born, language = pl.col("birth_date"), pl.col("name_language")
    exact, first = pl.col("birth_precision"), (born.dt.month() == 1) & (born.dt.day() == 1)
    genders = [gender_of(qids)[0] for qids in frame["gender_qids"].to_list()]
    expected = pl.Series([GENDERS.index(g) if g else -1 for g in genders], dtype=pl.Int64)
    codes = pl.col("countries").list
    names = frame.select(
        "qid",
        "name",
        year_of_its_date=born.dt.year() == pl.col("birth_year"),
        gender_as_stated=expected == pl.col("gender"),
        countries_as_stated=codes.len() <= pl.col("country_qids").list.len(),
        country_codes=codes.eval(pl.element().str.contains(r"^[A-Z]{2}$")).list.all(),
        name_of_the_language=language.is_in([*label_codes(config), "mul"]),
        fallback_to_all_languages=pl.col("name_fallback") == (language == "mul"),
        born_in_time=born.is_between(*BORN),
        first_of_a_year=(exact != PRECISIONS.index("year")) | first,
        there_once=~(pl.struct("name", "birth_date").is_duplicated() & (exact == 0)),
        **NAMED,
    )
    shares = dict.fromkeys(names.columns[2:], 1 - params.odd_max_share) | USUAL
    lengths, links = frame["name"].str.len_chars(), frame["popularity"].drop_nulls()
    longest = (lengths == lengths.max()).sum()
    of_all = pl.DataFrame(
        {
            "config": [config],
            "names_not_cut": [longest <= max(5, len(frame) // 20)],
            "popularities_differ": [len(links) < FEW or links.n_unique() > 1],
        }
    )
    return [
        suite.checked(f"names-{config}", names, 2, shares),
        suite.checked(f"people-{config}", of_all),
        *_in_script(params, config, config, frame.select("qid", "name")),
    ]


def _released(params: Params, frame: pl.DataFrame) -> list[suite.Table]:
    """Check that names are plausible, mostly in the language's script, and have one gender each."""
    single = pl.col("gender").n_unique().over("name_language", "name") == 1
    names = frame.select("name_language", "name", "gender_stated", of_one_gender=single, **NAMED)
    shares = USUAL | {"of_one_gender": USUAL["no_brackets_no_digits"]}
    checks = [suite.checked(f"names-{PUBLISHED}", names, 3, shares)]
    for (code,), rows in sorted(frame.group_by("name_language")):
        name = f"{PUBLISHED}-{code}"
        checks += _in_script(params, name, str(code), rows.select("name", "gender_stated"))
    return checks


def _in_script(params: Params, name: str, language: str, frame: pl.DataFrame) -> list[suite.Table]:
    """Check that most names are in the language's usual script, if that is known."""
    if (script := script_of(language)) is None:
        return []
    text, key = pl.col("name").str, frame.width
    fits = text.count_matches(rf"[\p{{{script}}}]") * 2 > text.count_matches(r"\p{L}")
    share = {"name_in_script": params.script_min_share}
    return [suite.checked(f"script-{name}", frame.with_columns(name_in_script=fits), key, share)]


def across(params: Params, folder: Path) -> list[suite.Table]:
    """Check that every person is in all languages, with the same facts in each."""
    configs = {c: f for c, f in suite.frames(folder) if c != PUBLISHED}
    everybody = pl.concat(f.select("qid", *SAME) for f in configs.values())
    people = everybody.group_by("qid").agg(
        **{f"one_{c}_in_all_languages": pl.col(c).n_unique() == 1 for c in SAME},
        _codes=pl.col("countries").first(),
        _of=pl.col("country_qids").first(),
    )
    # equal lists of countries must have equal codes
    people = people.with_columns(codes_of_its_countries=suite.same("_codes", "_of"))
    people = people.drop("_codes", "_of").sort("qid")
    rejects = pl.read_parquet(folder / store.REJECTS).group_by("config").agg(pl.col("number").sum())
    lost = dict(rejects.iter_rows())
    numbers = {c: (len(f), lost.get(c, 0)) for c, f in configs.items()}
    most = max(map(sum, numbers.values()))
    rows = [(c, *number, most, sum(number) == most) for c, number in numbers.items()]
    shares = dict.fromkeys(people.columns[1:], 1 - params.odd_max_share)
    return [
        suite.checked("people", people, shares=shares),
        suite.listed("languages", "config rows rejects people nobody_lost", rows, 4),
    ]
