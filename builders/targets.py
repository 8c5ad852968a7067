"""Dataset ``targets``: texts of the domain that a classifier is used on, with their gold class."""

from __future__ import annotations

from builders.lib.schema import Column, Schema

SCHEMA = Schema(
    columns=(
        Column("id", "string", "corpus, split and place of the text"),
        Column("text", "string", "the text; see Normalisation"),
        Column("label", "string", "its gold class; may be empty"),
        Column("task", "string", "what it is classified for"),
        Column("language", "string", "its language"),
        Column("split", "string", "part of its corpus"),
        Column("redistributable", "bool", "no terms of its source forbid to publish the row"),
    ),
    key=("id",),
)
