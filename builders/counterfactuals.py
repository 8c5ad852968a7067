"""Dataset ``counterfactuals``: the texts of ``targets`` with other people's names put in.

The method of Barriere and Cifuentes (2024): find the people in a text, put names in their places
that are common in a country, and ask the classifier again.
"""

from __future__ import annotations

from builders.lib.schema import Column, Schema

INPUTS = ("targets", "names")
READINGS = ("original", "faithful", "corrected", "placebo")
GENDERS = ("male", "female", "unknown")

SCHEMA = Schema(
    columns=(
        Column("id", "string", "target, and for all but originals reading, country and draw"),
        Column("target", "string", "id of the text in targets"),
        Column("reading", "label", "what was done to it; see Readings", labels=READINGS),
        Column("of", "string", "id of the row that it is compared with; empty for originals"),
        Column("country", "string", "of the name put in; empty for originals"),
        Column("gender", "label", "of the name put in", labels=GENDERS),
        Column("draw", "int32", "which replacement of its text, reading and country", minimum=0),
        Column("entity", "string", "mention of a person that was replaced; empty for originals"),
        Column("name", "string", "what was put in its place; empty for originals"),
        Column("text", "string", "the text as it is to be classified"),
        Column("label", "string", "gold class of the target; may be empty"),
        Column("redistributable", "bool", "no terms of its source forbid to publish the row"),
    ),
    key=("id",),
)
