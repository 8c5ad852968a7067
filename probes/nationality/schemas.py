"""Settings of the analysis ``nationality``, and the columns of its tables."""

from __future__ import annotations

from pydantic import Field

from plumbline.builders.core.params import Params as Section
from plumbline.builders.core.schema import Column, Schema
from plumbline.probes.nationality.cases import COMPARED, OTHER, SEXES
from plumbline.probes.stats.estimate import estimates
from plumbline.probes.stats.two_way import METHOD

SCOPES = ("originals", "subtracted", "within")
PERPLEXITIES = ("original sum", "original mean", "l2r sum", "l2r mean")
TARGETS = "targets"  # value of the column reading for the original texts
CLUSTER = "source text"
WHERE = (
    Column("model", "string", "name of the classifier in params.yaml"),
    Column("targets", "string", "config of `counterfactuals`"),
    Column("reading", "category", "method variant of the counterfactuals", labels=COMPARED),
)
COUNTRY = Column("country", "string", "country of the inserted names (ISO 3166), or all")
GENDER = Column("gender", "category", "gender of the inserted names", labels=SEXES)
MASKED = Column("masked", "string", "masked model that computes the perplexity")
PERPLEXITY = Column(
    "perplexity", "category", "masking method, and sum or mean over tokens", labels=PERPLEXITIES
)
MEASURE = Column("measure", "string", "a class, or `positive minus negative`")
SCHEMAS = {
    "delta": Schema.keyed(
        (*WHERE, COUNTRY, GENDER, MEASURE),
        *estimates(
            cluster=CLUSTER,
            method=METHOD,
            null="`contrast` is 0 over texts and names of the country; for placebo (names of odd "
            "minus even ranks), `value` is 0",
        ),
        Column(
            "contrast",
            "float64",
            "value minus the mean over countries with at least two texts and five effective names "
            "(1 / sum of squared shares) of each kind; null for other countries",
            nullable=True,
        ),
        Column("contrast_low", "float64", "lower end of the contrast's interval", nullable=True),
        Column("contrast_high", "float64", "upper end of the contrast's interval", nullable=True),
    ),
    "changes": Schema.keyed(
        (*WHERE, COUNTRY, GENDER, Column("class", "string", "the predicted class")),
        *estimates(
            cluster=CLUSTER,
            method=f"{METHOD}, of the log ratio",
            null="0 percent on average over texts and names of the country; detectable: percentage "
            "by which the class is predicted more often",
        ),
    ),
    "mixed": Schema.keyed(
        (*WHERE, Column("term", "string", "covariate: `country XX`, `tokens` or `log rank`")),
        *estimates(
            cluster="first word of a name, by country",
            method=f"mixed model (REML), source texts swept out, names random; {METHOD}",
            null="0; for a country, the mean over countries",
        ),
    ),
    "correlations": Schema(
        columns=(
            *WHERE[:2],
            Column(
                "reading",
                "category",
                "method variant of the counterfactuals; targets: all original texts",
                labels=(*COMPARED, TARGETS),
            ),
            MASKED,
            Column("scope", "category", "texts over which values are correlated", labels=SCOPES),
            *(PERPLEXITY, COUNTRY, MEASURE),
            *estimates(
                cluster=CLUSTER,
                method=f"for originals, t interval of Fisher's z; else {METHOD}, of Fisher's z",
                null="0 within texts, over texts and names; other scopes are not tested",
            ),
        ),
        key=("model", "targets", "reading", "scope", "perplexity", "country", "measure"),
    ),
    "perplexities": Schema(
        columns=(
            *(*WHERE, MASKED, PERPLEXITY, COUNTRY),
            *estimates(cluster=CLUSTER, method=METHOD),
        ),
        key=("model", "targets", "reading", "perplexity", "country"),
    ),
}


class Params(Section):
    """Classes, the masked models behind the classifiers, and the level of intervals."""

    version: str = Field(pattern=r"^\d+\.\d+\.\d+$", description="version of the tables")
    confidence: float = Field(0.95, gt=0.5, lt=1, description="level of the intervals")
    underlying: dict[str, str] = Field(
        default_factory=dict, description="masked model behind each classifier, for correlations"
    )
    positive: dict[str, list[str]] = Field(
        {OTHER: ["positive"]},
        description=f"classes that make up P+, by model or for `{OTHER}`; case is ignored",
    )
    negative: dict[str, list[str]] = Field(
        {OTHER: ["negative"]}, description=f"classes that make up P-, by model or for `{OTHER}`"
    )
