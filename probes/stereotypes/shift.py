"""Analysis ``shift``: changes of a model's output about social groups by training on a news outlet.

Choenni et al. (2021), section 6: emotion profiles, attributes and representational similarity
after fine-tuning, against the same model before; recall too. Beyond the paper every outlet is
compared with a control corpus about other things, since any training shifts a model.
"""

from __future__ import annotations

from itertools import combinations, groupby
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl
from pydantic import Field

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.schema import Column, Schema
from plumbline.builders.datasets.emotions.build import AFFECTS
from plumbline.probes.stats.estimate import (
    Bootstrap,
    Table,
    adjusted,
    estimates,
    rounded,
    typed,
)
from plumbline.probes.stereotypes import emotions, match_attributes, typicality
from plumbline.probes.stereotypes import shift_rows as rows
from plumbline.probes.stereotypes import training_effects as effects
from plumbline.probes.stereotypes.shift_rows import Corpus, Similarity
from plumbline.probes.stereotypes.training_effects import (
    EMOTION,
    GROUP,
    OUTCOMES,
    RECALL,
    RETAINED,
    Training,
)
from plumbline.probes.stereotypes.typicality import (
    EVERY,
    MEAN,
    Reading,
    located,
    number,
    sort_by_key,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from plumbline.probes.core.run_analysis import Inputs

    Array = NDArray[np.float64]
    Bools = NDArray[np.bool_]

DATASETS = ("emotions", "stereotypes")
OUTPUTS = ("after_training", "completions")
TABLES = ()
BEFORE = "before training"
MEASURES = (EMOTION, RECALL, RETAINED)
WITHOUT_FEAR = [a for a, name in enumerate(AFFECTS) if name != "fear"]
READINGS = {"faithful": (WITHOUT_FEAR, True), "corrected": ([*range(len(AFFECTS))], False)}
TESTED = (
    "`difference` is 0 over trainings (Welch); null for the control, without it at the share, "
    "where numbers of articles differ by more than 5%, and with one training on either"
)
DIFFERENCE = (
    number("difference", "value minus that of the control at the same share; what p is a test of"),
    number(
        "low_difference",
        "lower end of its interval over groups, given these trainings: others would differ too",
    ),
    number("high_difference", "upper end of it"),
)
WHERE = (
    *(typicality.MODEL, typicality.LANGUAGE, typicality.RANKING),
    Column("corpus", "string", "outlet, or control, that the model was trained on"),
    Column("share", "float64", "part of its articles", minimum=0, maximum=1),
)
GROUPED = (
    Column("category", "string", "category of social groups"),
    Column("group", "string", "social group"),
)
WHAT = (
    Column("measure", "category", "what is compared with the model before", labels=MEASURES),
    Column("outcome", "string", "affect; or config of `stereotypes` and k; or words followed"),
)
SHIFTS = Schema.keyed(
    (*WHERE, typicality.CATEGORY, *WHAT),
    *estimates(cluster="group", method="bootstrap percentile over groups", null=TESTED),
    number("base", "mean before the training"),
    *DIFFERENCE,
)
SIMILARITIES = Schema.keyed(
    (
        *WHERE[:3],
        WHERE[4],
        Column("first", "string", f"outlet trained on, or {BEFORE}"),
        Column("second", "string", "another outlet"),
        typicality.CATEGORY,
        Column(
            "reading",
            "category",
            "faithful: with the diagonal, without fear; corrected: neither",
            labels=tuple(READINGS),
        ),
    ),
    *estimates(
        cluster=f"group; of {MEAN} category",
        method=f"jackknife over groups, t; of {MEAN} t over categories",
        null=f"{TESTED}, and between outlets",
    ),
    *DIFFERENCE,
)
GROUPS = Schema.keyed(
    (*WHERE, *GROUPED, *WHAT),
    number("base", "before the training"),
    number("change", "mean over seeds of after minus before"),
    number("difference", "change minus that by the control"),
)
ATTRIBUTES = Schema.keyed(
    (
        *(*WHERE, *GROUPED),
        Column("query", "string", "the template with the group"),
        Column("word", "string", "the word, casefolded"),
    ),
    Column("outcome", "category", "of the word among the followed ones", labels=OUTCOMES),
    Column("rank_before", "int64", "rank before the training; null: not there", nullable=True),
    number("rank_after", "mean rank after it, where there"),
    Column("positive", "bool", "the lexicon calls it positive; null: not in it", nullable=True),
    Column("negative", "bool", "the lexicon calls it negative", nullable=True),
)
SCHEMAS = {
    "shifts": SHIFTS,
    "groups": GROUPS,
    "attributes": ATTRIBUTES,
    "similarities": SIMILARITIES,
}


class Params(Bootstrap):
    """What is measured, and how intervals are computed."""

    top_k: dict[Reading, int] = Field(
        {"probability": 200},
        min_length=1,
        description="words of each list in a profile, by ranking; the paper: probability, 200",
    )
    top_k_followed: int = Field(15, ge=1, description="words of each list followed one by one")
    recall_at: list[int] = Field([10, 50], min_length=1, description="k of the recall compared")
    control: str = Field("control", description="corpus that the others are compared with")


class Trainings(NamedTuple):
    """Measures of a model before and after all its trainings, in one language and ranking."""

    setting: effects.Setting
    base: effects.Measured
    after: dict[Training, effects.Measured]
    params: Params

    def categories(self) -> dict[str, Bools]:
        """Return which groups are in each category, (groups,)."""
        category = self.setting.groups["category"].to_numpy()
        return {str(name): category == name for name in np.unique(category)}

    def corpora(self, measure: str) -> dict[tuple[str, float], tuple[Corpus, Corpus | None]]:
        """Return each corpus and share with the control's trainings that it is compared with."""
        corpora = {}
        for key, group in groupby(self.after, key=lambda t: (t.corpus, t.share)):
            trainings = list(group)
            values = np.stack([self.after[t].values[measure] for t in trainings])
            articles = float(np.mean([t.articles for t in trainings]))
            corpora[key] = Corpus([t.seed for t in trainings], values, articles)
        controls = {share: c for (name, share), c in corpora.items() if name == self.params.control}
        return {
            (name, share): (
                corpus,
                corpus.matching(controls[share])
                if share in controls and name != self.params.control
                else None,
            )
            for (name, share), corpus in corpora.items()
        }


def run(inputs: Inputs, params: Params) -> dict[str, pl.DataFrame]:
    """Compute the tables of all models.

    Raises
    ------
    UserError
        If there is nothing in a language that the dataset ``emotions`` has, if no training is on
        the control, or if lists before and after the trainings are not of the same prompts.
    """
    tables: dict[str, list[pl.DataFrame]] = {name: [] for name in SCHEMAS}
    parts = {
        "shifts": _shifts,
        "groups": _groups,
        "attributes": _attributes,
        "similarities": _similarities,
    }
    for model in inputs.models:
        for key, trainings in _read_trainings(inputs, model, params):
            for name, part in parts.items():
                table = located(part(trainings), key | {"model": model})
                tables[name].append(typed(table, SCHEMAS[name], params.confidence))
    if not tables["shifts"]:
        raise UserError(
            "data/outputs/after_training: no list in a language of the dataset emotions and a "
            "ranking of analysis.shift.top_k; add one there"
        )
    return {name: pl.concat(parts) for name, parts in tables.items()}


def _read_trainings(
    inputs: Inputs, model: str, params: Params
) -> Iterator[tuple[dict[str, Any], Trainings]]:
    """Yield measures by language and ranking; the lists of one training in memory at a time."""
    folder = inputs.outputs("after_training", model)
    for language in typicality.languages(folder):
        lexicon = emotions.lexicon(inputs.datasets["emotions"], language)
        if lexicon is None:
            continue
        before = typicality.answers(inputs.outputs("completions", model) / language)
        groups = before.select(GROUP).unique().sort(GROUP)
        configs = match_attributes.attributes(inputs.datasets["stereotypes"], language)
        single = {config: kinds[match_attributes.KINDS[0]] for config, kinds in configs.items()}
        rankings: list[Trainings] = []
        for name in (x for x in typicality.readings(before) if x in params.top_k):
            sizes = params.top_k[name], params.top_k_followed, params.recall_at
            setting = effects.Setting(groups, name, *sizes, lexicon, single)
            rankings.append(Trainings(setting, setting.measured(before), {}, params))
        for training, paths in effects.trainings(folder / language, params.control).items():
            lists = effects.lists_after(paths, training, before)
            for ranking in rankings:
                ranking.after[training] = ranking.setting.measured(lists, ranking.base)
        for ranking in rankings:
            yield {"language": language, "ranking": ranking.setting.ranking}, ranking


def _shifts(trainings: Trainings) -> pl.DataFrame:
    """Return the changes of all categories, compared with the control.

    p is adjusted over all corpora, shares, categories and outcomes of one measure.
    """
    groups = trainings.setting.groups
    weights = typicality.group_weights(groups["group"].to_list(), trainings.params)
    categories = trainings.categories() | {EVERY: np.ones(len(groups), dtype=np.bool_)}
    parts = []
    for measure, names in trainings.setting.outcomes().items():
        base, sizes = trainings.base.values[measure], trainings.base.sizes[measure]
        for (name, share), (corpus, control) in trainings.corpora(measure).items():
            for category, inside in categories.items():
                table = rows.change_rows(
                    base[inside],
                    corpus.select(inside),
                    control and control.select(inside),
                    sizes[inside],
                    weights[inside],
                    trainings.params.confidence,
                )
                key = {"corpus": name, "share": share, "category": category, "measure": measure}
                parts.append(located(table.with_columns(pl.Series("outcome", names)), key))
    numbers = ("value", "low", "high", "base", *(column.name for column in DIFFERENCE))
    table = pl.concat(parts).with_columns(pl.col("p").fill_nan(None))
    table = rounded(adjusted(table, over=("measure",)), numbers)
    return sort_by_key(table, SHIFTS, "corpus", "share", "category", "measure", "outcome")


def _similarities(trainings: Trainings) -> pl.DataFrame:
    """Return similarities of the model before, and after trainings on each outlet, to each other.

    Groups without direction in some training are left out, and categories with fewer than three
    others, or in which a similarity is not defined.
    """
    params, base = trainings.params, trainings.base.values[EMOTION]
    table = Table(SIMILARITIES, params.confidence, model="", language="", ranking="")
    table.adjust("p", ("reading",))
    corpora, categories = trainings.corpora(EMOTION), trainings.categories()
    for share in sorted({share for _, share in corpora}):
        runs = {  # profiles by corpus and seed
            name: dict(zip(corpus.seeds, corpus.values, strict=True))
            for (name, part), (corpus, _) in corpora.items()
            if part == share
        }
        every = np.stack([base, *(x for profiles in runs.values() for x in profiles.values())])
        directed = (np.nan_to_num(every[..., WITHOUT_FEAR]).sum(axis=-1) > 0).all(axis=0)
        runs = {BEFORE: {seed: base for profiles in runs.values() for seed in profiles}} | runs
        pairs = [(a, b) for a, b in combinations(runs, 2) if runs[a].keys() & runs[b].keys()]
        for reading, (affects, diagonal) in READINGS.items():
            found: dict[tuple[str, str], dict[str, Similarity]] = {}
            for pair in pairs:
                found[pair] = {}
                for category, inside in categories.items():
                    kept = np.ix_(inside & directed, affects)
                    sides = ({s: x[kept] for s, x in runs[name].items()} for name in pair)
                    found[pair][category] = Similarity.compare(*sides, diagonal=diagonal)
            defined = [
                category
                for category in categories
                if not any(np.isnan(of_pair[category].values).any() for of_pair in found.values())
            ]
            for (first, second), of_pair in found.items() if defined else ():
                corpus, control = corpora[second, share]
                outlet, other = [of_pair[category] for category in defined], None
                if first == BEFORE and control:
                    of_control = found[BEFORE, params.control]
                    other = [of_control[category].matching(corpus.seeds) for category in defined]
                part = rows.similarity_rows(outlet, other, params.confidence)
                comparable = control is not None and corpus.comparable(control)
                for category, (estimate, p, columns) in zip([*defined, MEAN], part, strict=True):
                    key = {"share": share, "first": first, "second": second, "reading": reading}
                    p_value = p if comparable else None
                    table.add(estimate, p=p_value, **key, category=category, **columns)
    return table.frame()


def _groups(trainings: Trainings) -> pl.DataFrame:
    """Return the change of every group: of one there is no test."""
    parts = []
    for measure in (EMOTION, RETAINED):
        base = trainings.base.values[measure]
        for (name, share), (corpus, control) in trainings.corpora(measure).items():
            change = corpus.values.mean(axis=0) - base
            other = np.nan * base if control is None else control.values.mean(axis=0) - base
            columns = {"base": base, "change": change, "difference": change - other}
            for o, outcome in enumerate(trainings.setting.outcomes()[measure]):
                values = [pl.Series(key, x[:, o]) for key, x in columns.items()]
                table = trainings.setting.groups.with_columns(values)
                key = {"corpus": name, "share": share, "measure": measure, "outcome": outcome}
                parts.append(located(table, key))
    table = rounded(pl.concat(parts), tuple(columns), p=())
    return sort_by_key(table, GROUPS, "corpus", "share", *GROUP, "measure", "outcome")


def _attributes(trainings: Trainings) -> pl.DataFrame:
    """Return what becomes of every followed word at each corpus's largest share (Figure 7)."""
    parts = []
    for corpus, group in groupby(trainings.after, key=lambda t: t.corpus):
        runs = list(group)
        share = runs[-1].share
        after = [trainings.after[t].top for t in runs if t.share == share]
        words = effects.words_moved(trainings.base.top, after, trainings.setting.lexicon)
        parts.append(located(words, {"corpus": corpus, "share": share}))
    return pl.concat(parts)
