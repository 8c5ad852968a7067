"""Settings of the analysis ``nationality``, and the columns of its tables."""

from __future__ import annotations

from dataclasses import replace

from pydantic import Field

from plumbline.builders.core.params import Params as Section
from plumbline.builders.core.schema import Column, Schema
from plumbline.probes.nationality.cases import COMPARED, OTHER, SEXES
from plumbline.probes.stats.estimate import DETECTABLE, ESTIMATE

SCOPES = ("originals", "subtracted", "within")
PERPLEXITIES = ("original sum", "original mean", "l2r sum", "l2r mean")
WHERE = (
    Column("model", "string", "name of the classifier in params.yaml"),
    Column("targets", "string", "config of `counterfactuals`"),
    Column("reading", "label", "which counterfactuals; see Readings", labels=COMPARED),
)
COUNTRY = Column("country", "string", "of the names put in, ISO 3166; all: of any")
GENDER = Column("gender", "label", "of the names put in", labels=SEXES)
MASKED = Column("masked", "string", "the masked model whose perplexity it is")
PERPLEXITY = Column(
    "perplexity", "label", "variant, and sum or mean over tokens", labels=PERPLEXITIES
)
MEASURE = Column("measure", "string", "a class, or `positive minus negative`")

UNTESTED = tuple(c for c in ESTIMATE if c.name not in ("p", "p_bh", *DETECTABLE))
OF_DELTA = {
    "p": "two-sided p of contrast, whichever texts and names of the country are drawn; null for a "
    "country of one text or fewer than five effective names, left out of the mean too; of placebo, "
    "where halves of a country's names are compared, p of value",
    "detectable": "what p would find at .05 with power .8; null where there is no test, or t with "
    "fewer than 5 degrees of freedom",
}
OF_CHANGES = {
    "detectable": "percentage by which a class has to be predicted more often for p to find it at "
    ".05 with power .8; less often by the same factor is found as often; null where there is no "
    "test, or t with fewer than 5 degrees of freedom"
}

SCHEMAS = {
    "delta": Schema.keyed(
        (*WHERE, COUNTRY, GENDER, MEASURE),
        *(replace(c, description=OF_DELTA.get(c.name, c.description)) for c in ESTIMATE),
        Column("rows", "int64", "counterfactuals", minimum=1),
        Column("names", "int64", "distinct first words of names among them", minimum=1),
        Column("before", "float64", "100 times the mean of what they are compared with"),
        Column("spread", "float64", "mean distance from it, whatever the direction, in points"),
        Column(
            "contrast",
            "float64",
            "value minus the mean over the countries that are compared: of two texts, and five "
            "effective names, 1 / sum of squared shares, of each kind",
            nullable=True,
        ),
        Column("contrast_low", "float64", "lower end over texts and names", nullable=True),
        Column("contrast_high", "float64", "upper end over texts and names", nullable=True),
        Column("family", "int64", "tests in the family: countries by measures", minimum=0),
    ),
    "changes": Schema.keyed(
        (*WHERE, COUNTRY, GENDER, Column("class", "string", "the predicted class")),
        *(replace(c, description=OF_CHANGES.get(c.name, c.description)) for c in ESTIMATE),
        Column("before", "int64", "rows whose original was predicted so", minimum=0),
        Column("after", "int64", "rows that are predicted so", minimum=0),
        Column("family", "int64", "tests in the family: countries by classes", minimum=0),
    ),
    "mixed": Schema.keyed(
        (*WHERE, Column("term", "string", "`country XX`, `tokens`, `log rank`")),
        *ESTIMATE,
        Column("rows", "int64", "counterfactuals", minimum=1),
        Column("sd_names", "float64", "SD of the names' own intercepts, points", minimum=0),
        Column("sd_rest", "float64", "SD of the rest, points", minimum=0),
    ),
    "correlations": Schema(
        columns=(
            *WHERE[:2],
            Column(
                "reading",
                "label",
                "which counterfactuals; targets: texts as they are, with and without people",
                labels=(*COMPARED, "targets"),
            ),
            MASKED,
            Column("scope", "label", "what is correlated; see Scopes", labels=SCOPES),
            *(PERPLEXITY, COUNTRY, MEASURE),
            *ESTIMATE,
        ),
        key=("model", "targets", "reading", "scope", "perplexity", "country", "measure"),
    ),
    "perplexities": Schema(
        columns=(*WHERE, MASKED, PERPLEXITY, COUNTRY, *UNTESTED),
        key=("model", "targets", "reading", "perplexity", "country"),
    ),
}


class Params(Section):
    """Classes, the masked models behind the classifiers, and the level of intervals."""

    version: str = Field(pattern=r"^\d+\.\d+\.\d+$", description="version of the tables")
    confidence: float = Field(0.95, gt=0.5, lt=1, description="of the intervals")
    underlying: dict[str, str] = Field(
        default_factory=dict,
        description="the masked model that each classifier was made of; without one there are no "
        "correlations",
    )
    positive: dict[str, list[str]] = Field(
        {OTHER: ["positive"]},
        description=f"classes that make up P+, by model or for `{OTHER}`, in any case",
    )
    negative: dict[str, list[str]] = Field(
        {OTHER: ["negative"]}, description=f"classes that make up P-, by model or for `{OTHER}`"
    )
