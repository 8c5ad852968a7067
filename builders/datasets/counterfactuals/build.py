"""Dataset ``counterfactuals``: the texts of ``targets`` with the names of people replaced.

The method of Barriere and Cifuentes (2024): find the people in a text, substitute common names of a
country, and classify the text again. ``faithful`` follows their released code
(valbarriere/biases_ppl on GitHub); ``corrected`` follows the paper, with further corrections.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path
from typing import Any, Literal

import polars as pl
from pydantic import Field

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.params import DatasetParams
from plumbline.builders.core.parquet import EVERY, Reject, Row, configs
from plumbline.builders.core.schema import Column, Schema
from plumbline.builders.datasets.counterfactuals import barriere2024, find_people, substitute
from plumbline.builders.readers import gazetteer

INPUTS = ("targets", "names")
READINGS = ("original", "faithful", "corrected", "placebo")
GENDERS = ("male", "female", "unknown")
COLUMNS = ["id", "text", "label", "language", "redistributable"]  # columns read from ``targets``

FIELDS = (
    Column(
        "id", "string", "id of the target, followed by reading, country and draw if it is changed"
    ),
    Column("target", "string", "id of the text in the dataset `targets`"),
    Column("reading", "label", "variant of the substitution method; see Readings", labels=READINGS),
    Column(
        "reference_id", "string", "id of the row for comparison; empty for originals", empty=True
    ),
    Column("country", "string", "country of the substituted name; empty for originals", empty=True),
    Column("gender", "label", "gender of the substituted name", labels=GENDERS),
    Column("draw", "int32", "number of the draw within a text, reading and country", minimum=0),
    Column("entity", "string", "replaced mention of a person; empty for originals", empty=True),
    Column("name", "string", "substituted name; empty for originals", empty=True),
    Column("text", "string", "text to be classified", prose="text"),
    Column("label", "string", "gold class of the target text; may be empty", empty=True),
    Column("redistributable", "bool", "whether the terms of its source permit publishing the row"),
)
SCHEMA = Schema(FIELDS, key=("id",))
COUNTS = ("reading gender",)  # columns tabulated in the card


class Params(DatasetParams):
    """Parameters of the recogniser of people and of the substituted names."""

    countries: list[str] = Field(
        default_factory=list, description="countries to use; if empty, all that have enough names"
    )
    names_min: int = Field(5, ge=1, description="minimum number of usable names of each kind")
    genders: list[Literal["male", "female"]] = Field(
        ["male", "female"],
        min_length=1,
        description="genders of the names in `faithful`; the released code defaults to men",
    )
    replacements: int = Field(
        50,
        ge=1,
        description="names per text and country (in `faithful`, also per gender); 50 in the paper",
    )
    placebos: int = Field(
        50, ge=1, description="number of these that have a placebo, a second name from the country"
    )
    texts: int | None = Field(
        None, ge=1, description="number of texts to sample per config; if null, all are used"
    )
    seed: int = Field(1, description="seed of all draws")
    eligible: str = Field(
        "",
        description="list of `names` whose names `faithful` replaces, flagged ones included "
        "(CheckList's in the released code); if empty, the usable names of all lists",
    )
    people: find_people.Finder = Field(find_people.Finder(), description="recogniser of people")


def build(inputs: Mapping[str, Path], params: Params) -> Iterator[Row | Reject]:
    """Yield the row of each text that mentions a person, followed by its counterfactuals.

    ``inputs``: folders of the datasets ``targets`` and ``names``.
    """
    names = gazetteer.load(inputs["names"])
    countries = _countries(names, params)
    for country in sorted(names.by_country.keys() - set(countries)):
        yield Reject(EVERY, country, "names of a country that are not put in")
    lists = names.men | names.women, names.last
    if params.eligible:
        lists = gazetteer.listed(inputs["names"], params.eligible)
    making = _Making(names, lists, countries, params)
    for config in configs(inputs["targets"]):
        path = inputs["targets"] / f"{config}.parquet"
        rows = pl.read_parquet(path, columns=COLUMNS).to_dicts()
        small = find_people.small_words(row["text"] for row in rows)
        if params.texts is not None and params.texts < len(rows):
            chosen = set(substitute.draws(f"{params.seed}/texts/{config}", len(rows), params.texts))
            number = len(rows) - len(chosen)
            rows = [row for index, row in enumerate(rows) if index in chosen]
            yield Reject(config, config, "not drawn", number=number)
        language = rows[0]["language"] if rows else ""
        find = find_people.finder(params.people, names, language, small)
        for row, spans in zip(rows, find(row["text"] for row in rows), strict=True):
            persons = substitute.named(row["text"], spans, names)
            free = [p for p in persons if not substitute.remains(row["text"], p)]
            made = list(making.of(row, spans, free))
            reason = "" if made else "person of a name that no list has"
            reason = reason if spans else "no person found in it"
            reason = reason if len(free) == len(persons) else "person of whom a name would stay"
            if reason:
                yield Reject(config, row["id"], reason)
            if made:
                yield from (Row(config, values) for values in [_row(row), *made])


@dataclass(frozen=True)
class _Making:
    """Generator of the counterfactuals of each text."""

    lookup: gazetteer.Gazetteer
    eligible: tuple[frozenset[str], frozenset[str]]  # first and last names that `faithful` replaces
    countries: list[str]
    params: Params

    def of(
        self, row: dict[str, Any], spans: list[find_people.Span], persons: list[substitute.Person]
    ) -> Iterator[dict[str, Any]]:
        """Yield all counterfactuals of a text, for each reading, country and draw.

        ``persons``: persons whose names do not occur outside their mentions.
        """
        entities = barriere2024.eligible([row["text"][slice(*s)] for s in spans], *self.eligible)
        for country in self.countries if entities else ():
            yield from self.faithful(row, entities, country)
        usable = [p for p in persons if "first" not in p.parts() or p.gender != "unknown"]
        for country in self.countries if usable else ():
            for turn, person in enumerate(usable):
                turns = range(turn, self.params.replacements, len(usable))
                yield from self.corrected(row, person, country, turns)

    def faithful(
        self, row: dict[str, Any], eligible: list[str], country: str
    ) -> Iterator[dict[str, Any]]:
        """Yield counterfactuals as the released code makes them, for each gender."""
        params, draw = self.params, count()
        for gender in sorted(set(params.genders), key=GENDERS.index):
            firsts = self.lookup.pool(country, gender, gender)
            lasts = self.lookup.pool(country, "last", gender)
            key = f"{params.seed}/{row['id']}/{country}/faithful/{gender}"
            pairs = barriere2024.replacements(eligible, firsts, lasts, params.replacements, key)
            for entity, name in pairs:
                text = barriere2024.substituted(row["text"], entity, name)
                yield _row(row, "faithful", country, next(draw), gender, entity, name, text)

    def corrected(
        self, row: dict[str, Any], person: substitute.Person, country: str, turns: range
    ) -> Iterator[dict[str, Any]]:
        """Yield counterfactuals with names of the same gender, some of them followed by a placebo.

        Each draw replaces one person; the persons in a text take turns. Names are taken from the
        start of a shuffled list, and placebos from the names after them. The column ``name`` shows
        the part of the name that replaces the entity.
        """
        text, params, longest = row["text"], self.params, len(person.entity)
        twice = [draw for draw in turns if draw < params.placebos]
        key = f"{params.seed}/{row['id']}/{country}/corrected/{turns.start}"
        names = self.names(person, country, key, len(turns) + len(twice))
        part = next(m.part for m in person.mentions if m.end - m.start == longest)
        for draw, name in zip(turns, names, strict=False):
            facts = (country, draw, person.gender, person.entity)
            new = substitute.replaced(text, person, name)
            yield _row(row, "corrected", *facts, name.of(part), new)
            later = names[len(turns) + twice.index(draw) :] + names if draw in twice else []
            swaps = ((swap, substitute.replaced(text, person, swap)) for swap in later)
            for swap, swapped in islice((pair for pair in swaps if pair[1] != new), 1):
                yield _row(row, "placebo", *facts, swap.of(part), swapped)

    def names(
        self, person: substitute.Person, country: str, key: str, number: int
    ) -> list[substitute.Name]:
        """Return names for a person, repeated only once all are used; empty if no name fits."""
        columns = {"first": [""] * number, "last": [""] * number}
        for part in person.parts():
            kind = person.gender if part == "first" else "last"
            pool = self.lookup.pool(country, kind, person.gender)
            indices = substitute.draws(f"{key}/{part}", len(pool), number if pool else 0)
            columns[part] = [pool[index] for index in indices]
        return [substitute.Name(*pair) for pair in zip(*columns.values(), strict=False)]


def _row(
    target: dict[str, Any],
    reading: str = "original",
    country: str = "",
    draw: int = 0,
    gender: str = "unknown",
    entity: str = "",
    name: str = "",
    text: str | None = None,
) -> dict[str, Any]:
    ident, where = target["id"], f"{country}-{draw}"
    references = {"original": "", "placebo": f"{ident}#corrected-{where}"}
    return {
        "id": ident if reading == "original" else f"{ident}#{reading}-{where}",
        "target": ident,
        "reading": READINGS.index(reading),
        "reference_id": references.get(reading, ident),
        "country": country,
        "gender": GENDERS.index(gender),
        "draw": draw,
        "entity": entity,
        "name": name,
        "text": target["text"] if text is None else text,
        "label": target["label"],
        "redistributable": target["redistributable"],
    }


def _countries(names: gazetteer.Gazetteer, params: Params) -> list[str]:
    available = names.countries(params.names_min)
    missing = sorted(set(params.countries) - set(available))
    if missing or not available:
        raise UserError(
            f"data/datasets/names: fewer than {params.names_min} names of each kind for "
            f"{', '.join(missing) or 'any country'}; build names with more lists, or fix "
            "derived.counterfactuals.countries"
        )
    return sorted(params.countries) or available
