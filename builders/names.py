"""Dataset ``names``: common first and last names of countries, ranked.

The gazetteer of Barriere and Cifuentes (2024): which names stand for a country, and which words of
a text are the names of people. Lists and counts of people are put together as they are.
"""

from __future__ import annotations

from builders.lib.schema import Column, Schema

KINDS = ("male", "female", "last")
BEARERS = ("any", "male", "female")

SCHEMA = Schema(
    columns=(
        Column("name", "string", "the name, as the lists spell it in Latin letters, or in its own"),
        Column("kind", "label", "first name of men, of women, or last name", labels=KINDS),
        Column("rank", "int32", "within country and kind; 1: the most frequent", minimum=1),
        Column("count", "int64", "people of that name; null: its lists only rank", True, minimum=1),
        Column("bearer", "label", "whose form of a last name it is", labels=BEARERS),
        Column("sources", "strings", "lists that have the name, in the order of the params"),
        Column("flags", "strings", "why it is not to be used; empty: it may be"),
    ),
    key=("kind", "name"),
)
