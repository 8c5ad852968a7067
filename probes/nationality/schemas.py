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
TARGETS = "targets"  # reading: original texts
CLUSTER = "source text"
WHERE = (
    Column("model", "string", "name of the classifier in params.yaml"),
    Column("targets", "string", "config of `counterfactuals`"),
    Column("reading", "category", "type of counterfactuals; see Readings", labels=COMPARED),
)
COUNTRY = Column("country", "string", "country of the inserted names, ISO 3166, or all")
GENDER = Column("gender", "category", "gender of the inserted names", labels=SEXES)
MASKED = Column("masked", "string", "masked model of the perplexity")
PERPLEXITY = Column(
    "perplexity", "category", "variant, and sum or mean over tokens", labels=PERPLEXITIES
)
MEASURE = Column("measure", "string", "a class, or `positive minus negative`")
SCHEMAS = {
    "delta": Schema.keyed(
        (*WHERE, COUNTRY, GENDER, MEASURE),
        *estimates(
            cluster=CLUSTER,
            method=METHOD,
            null="`contrast` is 0 over texts and names of the country; placebo (names of odd "
            "minus even ranks): value is 0",
        ),
        Column(
            "contrast",
            "float64",
            "value minus the mean over the compared countries, those with two texts and five "
            "effective names of each kind (1 / sum of squared shares); null for the others",
            nullable=True,
        ),
        Column("contrast_low", "float64", "lower end over texts and names", nullable=True),
        Column("contrast_high", "float64", "upper end over texts and names", nullable=True),
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
        (*WHERE, Column("term", "string", "`country XX`, `tokens`, `log rank`")),
        *estimates(
            cluster="first word of a name, by country",
            method=f"mixed model (REML), source texts swept out, names random; {METHOD}",
            null="0; for a country: the mean of the countries",
        ),
    ),
    "correlations": Schema(
        columns=(
            *WHERE[:2],
            Column(
                "reading",
                "category",
                "type of counterfactuals; targets: original texts, with and without people",
                labels=(*COMPARED, TARGETS),
            ),
            MASKED,
            Column("scope", "category", "texts that are correlated; see Scopes", labels=SCOPES),
            *(PERPLEXITY, COUNTRY, MEASURE),
            *estimates(
                cluster=CLUSTER,
                method=f"originals: t interval of Fisher's z; else {METHOD}, of Fisher's z",
                null="0 within texts, over texts and names; other scopes have no test",
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
        default_factory=dict, description="masked model of each classifier; none: no correlations"
    )
    positive: dict[str, list[str]] = Field(
        {OTHER: ["positive"]},
        description=f"classes that make up P+, by model or for `{OTHER}`; case is ignored",
    )
    negative: dict[str, list[str]] = Field(
        {OTHER: ["negative"]}, description=f"classes that make up P-, by model or for `{OTHER}`"
    )
