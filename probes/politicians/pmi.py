"""Analysis ``pmi``: association of words and genders, from the outputs of ``associations``.

Stańczak et al. (2023) define PMI for one model in equation 1, and for the pooled lists of several
models in section 4 and Table 3. Intervals are computed over names, since the responses of several
models to one name are dependent. Only the smoothed estimator, which counts names instead of people,
has a test. Counted units are lemmas, as in the paper, and forms, some of which agree with a
person's gender.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import polars as pl
from pydantic import Field

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.schema import Column, Schema
from plumbline.builders.datasets.politicians.person import GENDERS
from plumbline.probes.politicians.words import word_counts
from plumbline.probes.politicians.words.word_counts import (
    FEMALE,
    MALE,
    OF_PMI,
    UNITS,
    category,
    schema,
)
from plumbline.probes.stats.bootstrap import percentiles
from plumbline.probes.stats.estimate import Bootstrap, estimates
from plumbline.probes.stats.pmi import intervals, pmi, smoothed
from plumbline.probes.stats.tests import permuted_sums_p

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from plumbline.probes.core.run_analysis import Inputs

DATASETS = ("politicians",)
OUTPUTS = ("associations",)
METHOD = "95% percentile bootstrap over names, with Poisson or (if smoothed) Bayesian weights"
ITEM = (
    category("unit", UNITS, "whether lemmas or forms are counted"),
    Column("word", "string", "the counted lemma or form"),
)
READING = category(
    "reading",
    OF_PMI,
    "plug-in: counts people, as in the paper, and has no p, since people with the same name share "
    "a list; smoothed: counts distinct names, with additive smoothing",
)
CELL = (
    Column("count", "int64", "number of lists of this gender that contain the word", minimum=0),
    Column("people", "int64", "number of people of this gender, or of distinct names", minimum=1),
    *estimates(
        cluster="name",
        method=METHOD,
        null="gender labels permuted over distinct names with lists of equal length; exact for one "
        "model, for several models sampled or, if small, a saddlepoint approximation",
    ),
)
GROUP = Column("group", "string", "name of the group of models in params.yaml")
POOLED = (GROUP, word_counts.LANGUAGE, word_counts.PART, *ITEM)
SCHEMAS = {
    "pmi": schema(
        (*ITEM, word_counts.GENDER, READING),
        Column("form", "string", "most frequent form; equal to `word` if forms are counted"),
        Column("list_length", "int64", "number of forms in each list", minimum=1),
        *CELL,
    ),
    "pooled": Schema.keyed(
        (*POOLED, word_counts.GENDER, READING),
        Column("members", "string", "names of the group's models with outputs in the language"),
        *CELL,
    ),
    "differences": Schema.keyed(
        (*POOLED, READING),
        Column(
            "rank",
            "int64",
            "rank by the absolute difference among the words of the group, language, part of "
            "speech, unit and reading; in `plug-in`, words that one gender never gets rank first",
            minimum=1,
        ),
        Column("count_female", "int64", "`count` of women, as in `pooled`", minimum=0),
        Column("count_male", "int64", "`count` of men, as in `pooled`", minimum=0),
        *estimates(cluster="name", method=METHOD),
    ),
}


class Params(Bootstrap):
    """Settings of estimates, intervals and tests, and groups of models."""

    smoothing: float = Field(gt=0, description="constant added by the smoothed estimator")
    min_count: int = Field(ge=1, description="minimum number of lists that contain a word")
    groups: dict[str, list[str] | Literal["all"]] = Field(
        {"all": "all"},
        min_length=1,
        description="models of each group, by its name; `all`: all assigned models except worlds",
    )
    n_permutations: int = Field(9999, ge=999, description="number of permutations for groups")


class Sample(NamedTuple):
    """Counts of one language, part of speech and unit, with bootstrap replicates."""

    language: str
    counts: word_counts.Counts
    chosen: NDArray[np.intp]  # indices of the common words, at least one
    draws: word_counts.Draws  # bootstrap replicates for these words

    def rows(self, axes: dict[str, Any], *arrays: Any, **constants: Any) -> pl.DataFrame:
        """Return a row for each chosen word and each cell of the other axes."""
        words = {"word": self.counts.words["word"][self.chosen]}
        constants |= {"language": self.language, "pos": self.counts.source.pos}
        constants |= {"unit": self.counts.source.unit, "n": self.counts.clusters}
        return word_counts.rows_of(words | axes, *arrays, **constants)


def run(inputs: Inputs, params: Params) -> dict[str, pl.DataFrame]:
    """Compute the table ``pmi`` of one model; its columns are defined in :data:`SCHEMAS`.

    Raises UserError if no word is in enough lists.
    """
    (model,) = inputs.models
    tables = []
    for sample in _samples(inputs, [model], params):
        counts = sample.counts
        length = round(counts.rows / counts.people.sum())
        table = rows(sample, params, list_length=length)
        tables.append(
            table.join(counts.words.select("word", "form"), "word", maintain_order="left")
        )
    if not tables:
        raise UserError(
            f"{inputs.outputs('associations', model)}: no word is in at least {params.min_count} "
            "lists; lower analysis.pmi.min_count, or check the `coverage` config for missing words"
        )
    over = ["unit", "reading"]
    table = word_counts.table_of(SCHEMAS["pmi"], tables, params.confidence, over, model=model)
    return {"pmi": table}


def pooled(inputs: Inputs, params: Params) -> dict[str, pl.DataFrame]:
    """Compute the tables ``pooled`` and ``differences`` of all groups of models.

    Raises UserError if a group names a model without outputs, or no word is in enough lists.
    """
    tables: list[pl.DataFrame] = []
    contrasts: list[pl.DataFrame] = []
    for group, models in members(inputs, params).items():
        for sample in _samples(inputs, models, params):
            folders = sample.counts.source.folders
            names = ", ".join(folder.parent.name for folder in folders)
            tables.append(rows(sample, params, group=group, members=names))
            contrasts.append(differences(sample, params, group=group))
    if not tables:
        raise UserError(
            f"analysis.pmi.min_count: no word is in at least {params.min_count} lists of any "
            "group; lower it, or name models under analysis.pmi.groups"
        )
    over = ["group", "unit", "reading"]
    return {
        "pooled": word_counts.table_of(SCHEMAS["pooled"], tables, params.confidence, over),
        "differences": word_counts.table_of(SCHEMAS["differences"], contrasts, params.confidence),
    }


def members(inputs: Inputs, params: Params) -> dict[str, list[str]]:
    """Return the names of the models in each group that is not empty."""
    real = [m for m in inputs.models if not (inputs.weights(m) / "world.json").is_file()]
    groups = {
        group: real if models == "all" else sorted(set(models))
        for group, models in sorted(params.groups.items())
    }
    for group, models in groups.items():
        if strange := sorted(set(models) - set(inputs.models)):
            raise UserError(
                f"analysis.pmi.groups.{group}: {', '.join(strange)} must be in "
                f"assignments.associations; available: {', '.join(inputs.models)}"
            )
    return {group: models for group, models in groups.items() if models}


def _samples(inputs: Inputs, models: list[str], params: Params) -> Iterator[Sample]:
    """Yield counts summed over models, for each language, part of speech and unit."""
    for language, source, path in word_counts.sources(inputs, *models):
        people = word_counts.read_people(path)
        for unit in UNITS:
            counts = word_counts.count(source._replace(unit=unit), people)
            if len(chosen := counts.common(params.min_count)):
                size = params.n_bootstrap, params.seed
                draws = word_counts.bootstrap_counts(counts, chosen, *size, once=True)
                yield Sample(language, counts, chosen, draws)


def rows(sample: Sample, params: Params, **constants: str | int) -> pl.DataFrame:
    """Return a row for each common word, gender and reading.

    ``constants``: columns with the same value in all rows.
    """
    _, counts, chosen, draws = sample
    times, sizes = word_counts.overlaps(counts, chosen)
    # if list lengths are fixed, PMI increases with the count, so testing the count is enough
    p = permuted_sums_p(times, counts.distinct[chosen], sizes, params.n_permutations, params.seed)
    numbers = []
    for table, smoothing, replicates in (
        (counts.lists, 0.0, draws.ordinary),
        (counts.distinct, params.smoothing, draws.bayesian),
    ):
        limits = intervals(replicates, smoothing, params.seed, params.confidence, draws.merged)
        values = pmi(table.astype(np.float64), smoothing)[chosen]
        numbers.append([values, *(ends[: len(chosen)] for ends in limits)])
    return sample.rows(
        {"gender": [GENDERS[g] for g in counts.genders], "reading": OF_PMI},
        np.stack(numbers, axis=-1),
        count=np.stack([counts.lists[chosen], counts.distinct[chosen]], axis=-1),
        people=np.stack([counts.people, counts.names], axis=-1),
        p=np.stack([np.full(p.shape, np.nan), p], axis=-1),
        **constants,
    )


def differences(sample: Sample, params: Params, **constants: str | int) -> pl.DataFrame:
    """Return the PMI of women minus that of men per common word and reading, largest first.

    Stańczak et al. (2023), Table 3, show the 15 adjectives with the largest differences. The word's
    overall share cancels, so that the difference is the log-ratio of its shares in the lists of
    women and men. For words that are in the lists of only one gender, the plug-in difference is
    infinite: it is null, and these words rank first, by their share in that gender's lists. Words
    that are in the lists of neither have no difference and rank last. The table is empty unless
    both women and men have lists.

    ``constants``: columns with the same value in all rows.
    """
    _, counts, chosen, draws = sample
    if not {FEMALE, MALE} <= set(counts.genders.tolist()):
        return pl.DataFrame()
    sides = np.searchsorted(counts.genders, (FEMALE, MALE))

    def differ(cells: NDArray[np.float64]) -> NDArray[np.float64]:
        with np.errstate(divide="ignore", invalid="ignore"):
            shares = np.log(cells[:, sides] / cells[:, sides].sum(axis=0))
            return np.asarray(shares[:, 0] - shares[:, 1])

    noisy = smoothed(draws.bayesian, params.smoothing, params.seed, draws.merged)
    numbers, lists, order = [], [], []
    for table, smoothing, replicates in (
        (counts.lists, 0.0, draws.ordinary),
        (counts.distinct, params.smoothing, noisy),
    ):
        limits = percentiles(differ(replicates)[: len(chosen)], params.confidence)
        values = differ(np.asarray(table + smoothing, dtype=np.float64))[chosen]
        estimate = np.stack([values, *limits])
        lists.append(table[chosen][:, sides])
        estimate[:, ~lists[-1].any(axis=1)] = np.nan
        numbers.append(estimate)
        share = (lists[-1] / table[:, sides].sum(axis=0)).max(axis=1)
        ranked = np.lexsort((-share, -np.abs(estimate[0])))  # nan is last
        order.append(np.argsort(ranked) + 1)
    counted = np.stack(lists, axis=1)
    return sample.rows(
        {"reading": OF_PMI},
        np.stack(numbers, axis=-1),
        rank=np.stack(order, axis=-1),
        count_female=counted[..., 0],
        count_male=counted[..., 1],
        **constants,
    ).sort("reading", "rank")
