"""Checks of ``politicians`` that look across rows and languages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date
from pathlib import Path
from typing import Literal

import polars as pl
from pydantic import Field

from plumbline.builders.core import parquet as store
from plumbline.builders.datasets.politicians.person import (
    GENDERS,
    PRECISIONS,
    gender_of,
    official_languages,
)
from plumbline.builders.datasets.politicians.script import script_of
from plumbline.validation import suite

FEW = 20  # people who may all have as many links
# Of 24,000 real labels .0005 have brackets or digits (of 2,300 Russian ones .005).
USUAL = {"no_brackets_no_digits": 0.98, "begins_with_a_capital": 0.95}


class Params(suite.Params):
    """Floors and ceilings, and the fewest people of each gender."""

    gender_min: dict[Literal["male", "female", "non-binary"], int] = Field(
        description="fewest people in a config, for each gender"
    )
    born: tuple[date, date] = Field(
        (date(1900, 1, 1), date(2000, 12, 31)), description="first and last day of birth"
    )
    script_min_share: float = Field(
        0.9, ge=0, le=1, description="share of names in the language's script"
    )


def _people(params: Params, folder: Path) -> list[suite.Table]:
    """Hold that one person is the same in all languages, and none was lost in one."""
    columns = ["gender", "gender_qids", "birth_date", "birth_precision", "countries"]
    columns += ["country_qids", "popularity"]
    all_of = pl.concat(f.select("qid", *columns) for _, f in suite.frames(folder))
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
    numbers = {c: (len(f), lost.get(c, 0)) for c, f in suite.frames(folder)}
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
        born_in_time=born.is_between(*params.born),
        first_of_a_year=(exact != PRECISIONS.index("year")) | first,
        no_brackets_no_digits=~name.str.contains(r"[()\[\]{}<>]|\p{Nd}"),
        begins_with_a_capital=~name.str.contains(r"^\p{Ll}"),
        there_once=~(pl.struct("name", "birth_date").is_duplicated() & (exact == 0)),
    )
    shares = _shares(params, names.columns[2:])
    script, letters = script_of(config), name.str.count_matches(r"\p{L}")
    if script:
        plausible = name.str.count_matches(rf"[\p{{{script}}}]") * 2 > letters
        names = names.with_columns(frame.select(name_in_script=plausible))
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


def _native(
    language: str, codes: Iterable[str], known: Mapping[str, frozenset[str] | None]
) -> bool | None:
    spoken = [of for code in codes if (of := known[code]) is not None]
    return any(language in of for of in spoken) if spoken else None
