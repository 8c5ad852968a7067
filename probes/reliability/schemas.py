"""Columns of the tables of the analysis ``reliability``."""

from __future__ import annotations

from pydantic import Field

from plumbline.builders.core.params import Params as Section
from plumbline.builders.core.schema import Column, Schema
from plumbline.probes.stats.estimate import estimates
from plumbline.probes.stats.reliability import FORMS

ALPHA = "alpha"
COEFFICIENTS = (*FORMS, ALPHA)


class Params(Section):
    """Intervals of parts of variance."""

    version: str = Field(pattern=r"^\d+\.\d+\.\d+$", description="version of the tables")
    confidence: float = Field(0.95, gt=0.5, lt=1, description="of the intervals")
    seed: int = Field(1, ge=0, description="of the draws")
    draws: int = Field(1000, ge=100, description="of the pivotal quantities of parts of variance")
    reml_scores: int = Field(800, ge=0, description="REML beside ANOVA up to so many; 0: nowhere")


PLACE = (
    Column("probe", "string", "whose responses are scored"),
    Column("measure", "string", "what a score is, see the page of the method"),
    Column("scale", "string", "questionnaire and axis, part of speech, or config; or empty"),
    Column("language", "string", "of the prompts; empty: all languages together"),
    Column("model", "string", "name of the model in params.yaml; empty: all models together"),
)
REASON = Column("reason", "string", "why there is no number; empty where there is one")
SCHEMAS = {
    "parts": Schema.keyed(
        (
            *PLACE,
            Column("term", "string", "facet, facets that interact (with x), or rest"),
        ),
        *estimates(
            cluster="level of the facet",
            method="95% generalized pivotal quantities of ANOVA, Henderson's methods I and III",
        ),
        Column("unbiased", "float64", "the same, which may be below 0", nullable=True),
        Column("share", "float64", "part of the sum of all parts", nullable=True),
        Column("reml", "float64", "by restricted maximum likelihood", nullable=True),
        Column("levels", "int64", "of the facet, or cells of several", minimum=0),
        REASON,
    ),
    "consistency": Schema.keyed(
        (
            *PLACE,
            Column("cases", "string", "rows of the grid: statements, models or states"),
            Column(
                "items",
                "string",
                "its columns: templates, orders, seeds, models or statements",
            ),
            Column("coefficient", "category", "which", labels=COEFFICIENTS),
        ),
        *estimates(cluster="case", method="95% of F, McGraw and Wong (1996)"),
        Column("n_items", "int64", "how many items", minimum=0),
        REASON,
    ),
    "valid": Schema.keyed(
        (
            *PLACE,
            Column("facet", "string", "facet; empty: all responses"),
            Column("level", "string", "template, order or seed"),
        ),
        *estimates(cluster="statement", method="95% Wilson, of the effective number of responses"),
        Column("responses", "int64", "how many", minimum=1),
    ),
}
