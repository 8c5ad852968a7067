"""Columns of the tables of the analysis ``reliability``."""

from __future__ import annotations

from pydantic import Field

from plumbline.builders.core.schema import Column, Schema
from plumbline.probes.stats.estimate import ESTIMATE, Bootstrap
from plumbline.probes.stats.reliability import FORMS

ALPHA, HALVES = "alpha", "split halves"
COEFFICIENTS = (*FORMS, ALPHA, HALVES)
RANDOM = ("templates, seeds", "statements, templates, seeds")


class Params(Bootstrap):
    """Draws and splits."""

    draws: int = Field(1000, ge=100, description="of the pivotal quantities of parts of variance")
    splits: int = Field(200, ge=1, description="halves that are drawn where there are more")
    reml_scores: int = Field(800, ge=0, description="REML beside ANOVA up to so many; 0: nowhere")


PLACE = (
    Column("probe", "string", "whose responses are scored"),
    Column("measure", "string", "what a score is, see the page of the method"),
    Column("scale", "string", "questionnaire and axis, part of speech, or config; or empty"),
    Column("language", "string", "of the prompts; empty: all languages together"),
    Column("model", "string", "name of the model in params.yaml; empty: all models together"),
)
RANDOM_FACETS = Column(
    "random_facets", "label", "facets that another run would draw anew", labels=RANDOM
)
REASON = Column("reason", "string", "why there is no number; empty where there is one")
SCHEMAS = {
    "parts": Schema.keyed(
        (
            *PLACE,
            Column("term", "string", "facet, facets that interact (with x), or rest"),
        ),
        *ESTIMATE,
        Column("unbiased", "float64", "the same, which may be below 0", nullable=True),
        Column("share", "float64", "part of the sum of all parts", nullable=True),
        Column("reml", "float64", "by restricted maximum likelihood", nullable=True),
        Column("levels", "int64", "of the facet, or cells of several", minimum=0),
        REASON,
    ),
    "consistency": Schema.keyed(
        (
            *PLACE,
            Column("cases", "string", "what is told apart"),
            Column("items", "string", "what it is told apart by"),
            Column("coefficient", "label", "which", labels=COEFFICIENTS),
        ),
        *ESTIMATE,
        Column("n_items", "int64", "how many items", minimum=0),
        REASON,
    ),
    "ranks": Schema.keyed(
        (
            *PLACE[:-1],
            Column("first", "string", "a model"),
            Column("second", "string", "another"),
            RANDOM_FACETS,
        ),
        *ESTIMATE,
        Column("difference", "float64", "mean score of the first less the second", nullable=True),
        REASON,
    ),
    "valid": Schema.keyed(
        (
            *PLACE,
            Column("facet", "string", "facet; empty: all responses"),
            Column("level", "string", "template, order or seed"),
        ),
        *ESTIMATE,
        Column("responses", "int64", "how many", minimum=1),
    ),
}
