"""Checks of ``politicians`` that look across rows and languages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date
from pathlib import Path
from typing import Literal

import polars as pl
from pydantic import Field

from plumbline.builders.core import parquet as store
from plumbline.builders.datasets.politicians.build import PUBLISHED
from plumbline.builders.datasets.politicians.person import (
    GENDERS,
    PRECISIONS,
    gender_of,
    official_languages,
)
from plumbline.builders.datasets.politicians.script import script_of
from plumbline.validation import suite

BORN = date(1900, 1, 1), date(2000, 12, 31)  # first and last day of birth
FEW = 20  # people who may all have as many links
# Of 24,000 real labels .0005 have brackets or digits (of 2,300 Russian ones .005).
BRACKETS = r"[()\[\]{}<>]|\p{Nd}"
USUAL = {"no_brackets_no_digits": 0.98, "begins_with_a_capital": 0.95}


class Params(suite.Params):
    """Floors and ceilings, and the fewest people of each gender."""

    gender_min: dict[Literal["male", "female", "non-binary"], int] = Field(
        description="fewest people in a config, for each gender"
    )
    script_min_share: float = Field(
        0.9, ge=0, le=1, description="share of names in the language's script"
    )


def _people(params: Params, folder: Path) -> list[suite.Table]:
    """Hold that one person is the same in all languages, and none was lost in one."""
    columns = ["gender", "gender_qids", "birth_date", "birth_precision", "countries"]
    columns += ["country_qids", "popularity"]
    configs = {c: f for c, f in suite.frames(folder) if c != PUBLISHED}
    all_of = pl.concat(f.select("qid", *columns) for f in configs.values())
    people = all_of.group_by("qid").agg(
        **{f"one_{c}_in_all_languages": pl.col(c).n_unique() == 1 for c in columns},
        _codes=pl.col("countries").first(),
        _of=pl.col("country_qids").first(),
    )
    # a country has its codes, whoever is its citizen
    people = people.with_columns(codes_of_its_countries=suite.same("_codes", "_of"))
    checks = [c for c in people.columns if not c.startswith("_")]
    rejects = pl.read_parquet(folder / store.REJECTS).group_by("config").agg(pl.col("number").sum())
    lost = dict(rejects.iter_rows())
    numbers = {c: (len(f), lost.get(c, 0)) for c, f in configs.items()}
    most = max(map(sum, numbers.values()))
    rows = [(c, *of, most, sum(of) == most) for c, of in numbers.items()]
    return [
        suite.checked("people", people.select(checks).sort("qid"), shares=_shares(params, checks)),
        suite.listed("languages", "config rows rejects people nobody_lost", rows, 4),
    ]


def _shares(params: Params, checks: Iterable[str]) -> dict[str, float]:
    return dict.fromkeys(checks, 1 - params.odd_max_share)


@suite.each_config("genders", "config gender people floor over_floor", 4, across=_people)
def tables(params: Params, config: str, frame: pl.DataFrame) -> suite.Found:
    """Hold that columns agree, nobody is there twice, and each gender has enough people."""
    if config == PUBLISHED:
        return _released(params, frame)
    name, born, language = pl.col("name"), pl.col("birth_date"), pl.col("name_language")
    exact, first = pl.col("birth_precision"), (born.dt.month() == 1) & (born.dt.day() == 1)
    genders = [gender_of(qids or [])[0] for qids in frame["gender_qids"].to_list()]
    known = {
        code: official_languages(code) for code in frame["countries"].explode().unique() if code
    }
    native = [_native(config, codes or [], known) for codes in frame["countries"].to_list()]
    codes = pl.col("countries").list
    names = frame.select(
        "qid",
        "name",
        year_of_its_date=born.dt.year() == pl.col("birth_year"),
        gender_as_stated=pl.Series([GENDERS.index(g) if g else -1 for g in genders])
        == pl.col("gender"),
        countries_as_stated=codes.len() <= pl.col("country_qids").list.len(),
        country_codes=codes.eval(pl.element().str.contains(r"^[A-Z]{2}$")).list.all(),
        native_to_its_countries=pl.col("native").eq_missing(pl.Series(native, dtype=pl.Boolean)),
        name_of_the_language=language.is_in([config, "mul"]),
        fallback_to_all_languages=pl.col("name_fallback") == (language == "mul"),
        born_in_time=born.is_between(*BORN),
        first_of_a_year=(exact != PRECISIONS.index("year")) | first,
        no_brackets_no_digits=~name.str.contains(BRACKETS),
        begins_with_a_capital=~name.str.contains(r"^\p{Ll}"),
        there_once=~(pl.struct("name", "birth_date").is_duplicated() & (exact == 0)),
    )
    shares = _shares(params, names.columns[2:])
    if script := script_of(config):
        names = names.with_columns(frame.select(name_in_script=_written(name, script)))
    numbers = [
        (label, int((frame["gender"] == GENDERS.index(label)).sum()), floor)
        for label, floor in sorted(params.gender_min.items())
    ]
    lengths, links = frame["name"].str.len_chars(), frame["popularity"].drop_nulls()
    cut = int((lengths == lengths.max()).sum())
    rows = suite.floors(config, numbers)
    rows.append(
        (config, "names of the greatest length", cut, most := max(5, len(frame) // 20), cut <= most)
    )
    rows.append(
        (
            config,
            "different popularities",
            links.n_unique(),
            2,
            len(links) < FEW or links.n_unique() > 1,
        )
    )
    share = {"name_in_script": params.script_min_share} | USUAL
    return [suite.checked(f"names-{config}", names, 2, shares | share)], rows


def _released(params: Params, frame: pl.DataFrame) -> suite.Found:
    """Hold that names are plausible, most in the script of their language, and one of a gender."""
    name, language, found = pl.col("name"), pl.col("name_language"), []
    of_a_name = pl.col("gender").n_unique().over("name_language", "name")
    checks = {
        "no_brackets_no_digits": ~name.str.contains(BRACKETS),
        "begins_with_a_capital": ~name.str.contains(r"^\p{Ll}"),
        "of_one_gender": of_a_name == 1,
    }
    shares = USUAL | {"of_one_gender": USUAL["no_brackets_no_digits"]}
    key = ["name_language", "name", "gender_stated"]
    found.append(suite.checked(f"names-{PUBLISHED}", frame.select(*key, **checks), 3, shares))
    for code in frame["name_language"].unique().sort():
        if script := script_of(code):
            own = frame.filter(language == code).select(*key, name_in_script=_written(name, script))
            share = {"name_in_script": params.script_min_share}
            found.append(suite.checked(f"names-{PUBLISHED}-{code}", own, 3, share))
    return found, []


def _written(name: pl.Expr, script: str) -> pl.Expr:
    letters = name.str.count_matches(r"\p{L}")
    return name.str.count_matches(rf"[\p{{{script}}}]") * 2 > letters


def _native(
    language: str, codes: Iterable[str], known: Mapping[str, frozenset[str] | None]
) -> bool | None:
    spoken = [of for code in codes if (of := known[code]) is not None]
    return any(language in of for of in spoken) if spoken else None
