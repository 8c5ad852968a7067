"""A person's facts in Wikidata, and the official languages of countries."""

from __future__ import annotations

import re
from collections import defaultdict
from datetime import date
from functools import cache
from typing import Any

from plumbline.builders.core.parquet import EVERY, Reject
from plumbline.builders.readers.table import Binding, entity

GENDERS = ("male", "female", "non-binary")
GENDER_OF = {
    "Q6581097": "male",  # male
    "Q6581072": "female",  # female
    "Q15145779": "female",  # cisgender female
    "Q18116794": "non-binary",  # genderfluid
    "Q12964198": "non-binary",  # genderqueer
    "Q48270": "non-binary",  # non-binary
    "Q48279": "non-binary",  # third gender
    "Q27679684": "non-binary",  # transfeminine
    "Q1052281": "non-binary",  # transgender female
    "Q2449503": "non-binary",  # transgender male
}
ORGANISMS = {"Q43445", "Q44148"}  # female and male organism, excluded as in the paper
PRECISIONS = ("day", "month", "year", "unstated")
UNSTATED, COARSE = 3, 4  # COARSE is less precise than a year and treated as unknown
PRECISION_OF = {"14": 0, "13": 0, "12": 0, "11": 0, "10": 1, "9": 2}  # keyed by Wikidata's code
DATE = re.compile(r"^\+?(\d{4})-(\d\d)-(\d\d)T")


def person(
    qid: str, facts: list[Binding], dates: list[Binding], born: tuple[date, date]
) -> dict[str, Any] | Reject:
    """Return the language-independent facts, or the reason for rejecting the person.

    Among several dates of birth the most precise one is used, then the earliest.
    """
    values: defaultdict[str, list[dict[str, str]]] = defaultdict(list)
    for row in facts:
        values[row["property"]["value"].rsplit("/", 1)[-1]].append(row["value"])
    genders, countries = (_entities(values[name]) for name in ("P21", "P27"))
    gender, reason = gender_of(genders)
    if gender is None:
        return Reject(EVERY, qid, reason)
    stated: dict[str, int] = {}
    for row in dates:
        text, code = row["value"]["value"], PRECISION_OF.get(row["precision"]["value"], COARSE)
        stated[text] = min(code, stated.get(text, COARSE))
    births = sorted(filter(None, (_birth(value["value"], stated) for value in values["P569"])))
    if not births:
        reason = "date of birth is not a date" if values["P569"] else "no date of birth"
        return Reject(EVERY, qid, reason)
    precision, day = births[0]
    if precision == COARSE:
        return Reject(EVERY, qid, "no date of birth exact to a year", str(day))
    if not born[0] <= day <= born[1]:
        return Reject(EVERY, qid, "born outside the range", str(day))
    counted = (value["value"] for value in values["ontology#sitelinks"])
    links = (int(text) for text in counted if text.isdecimal() and len(text) < 10)
    return {
        "qid": qid,
        "gender": gender,
        "gender_qids": genders,
        "birth_date": day,
        "birth_precision": precision,
        "birth_year": day.year,
        "country_qids": countries,
        "popularity": max(links, default=None),
    }


def _birth(text: str, stated: dict[str, int]) -> tuple[int, date] | None:
    """Return the code of a date's precision, and the date; None if the date is invalid."""
    if not (match := DATE.match(text)):
        return None
    year, month, day = map(int, match.groups())
    try:
        return stated.get(text, UNSTATED), date(year, max(month, 1), max(day, 1))
    except ValueError:
        return None


def gender_of(qids: list[str]) -> tuple[str | None, str]:
    """Group the values of P21 as the paper does.

    If all values belong to one group, that group is returned. Non-binary together with a binary
    group gives non-binary, the more specific statement. Male and female together give no group.
    Values for organisms are ignored.

    Returns the group, or None and the reason for rejecting the person.
    """
    if unlisted := [q for q in qids if q not in GENDER_OF and q not in ORGANISMS]:
        return None, f"gender in neither list: {', '.join(unlisted)}"
    groups = {GENDER_OF[q] for q in qids if q in GENDER_OF}
    if not groups:
        return None, "gender of an organism" if qids else "gender unknown"
    if len(groups) > 1 and "non-binary" not in groups:
        return None, "male and female stated at once"
    return "non-binary" if "non-binary" in groups else groups.pop(), ""


def _entities(values: list[dict[str, str]]) -> list[str]:
    qids = {qid for v in values if (qid := entity(v))}
    return sorted(qids, key=lambda qid: int(qid[1:]))


@cache
def official_languages(code: str) -> frozenset[str] | None:
    """Return the base codes of a country's official languages, or None if it is not in CLDR."""
    from babel import Locale
    from babel.languages import get_official_languages

    if code not in Locale("en").territories:
        return None
    spoken = get_official_languages(code, regional=False, de_facto=True)
    return frozenset(language.split("_")[0] for language in spoken)
