"""Analysis ``shift``: what training on a news outlet does to what a model says of social groups.

Choenni et al. (2021), section 6: emotion profiles, attributes and representational similarity
after fine-tuning, against the same model before; recall too. Beyond the paper every outlet is
judged against a control corpus about other things, since any training shifts a model.
"""

from __future__ import annotations

from itertools import combinations, groupby
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.schema import Column, Schema
from plumbline.probes.stats.estimate import (
    ESTIMATE,
    LEVEL,
    Estimate,
    Table,
    adjusted,
    finite,
    rounded,
    typed,
)
from plumbline.probes.stats.intervals import half_of_mean
from plumbline.probes.stereotypes import emotions, match_attributes, similarity, typicality
from plumbline.probes.stereotypes import shift_rows as rows
from plumbline.probes.stereotypes import training_effects as effects
from plumbline.probes.stereotypes.shift_rows import Corpus, Params
from plumbline.probes.stereotypes.training_effects import EMOTION, GROUP, Training
from plumbline.probes.stereotypes.typicality import EVERY, MEAN, located, number

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    from plumbline.probes.core.run_analysis import Inputs

    Array = NDArray[np.float64]
    Runs = Mapping[int, Array]  # (groups, affects) of each training, by its seed

DATASETS = ("emotions", "stereotypes")
OUTPUTS = ("after_training", "completions")
TABLES = ()
NUMBERS = (
    *("base", "value", "low", "high", "spread", "half_width_seeds"),
    *("difference", "low_difference", "high_difference", "spread_difference"),
)
P = ("p", "p_groups", "p_seeds")
BEFORE = "before training"
READINGS = {rows.FAITHFUL: (rows.WITHOUT_FEAR, True), rows.CORRECTED: (rows.ALL, False)}
OUTLETS = Schema.keyed(
    (
        *(typicality.MODEL, typicality.LANGUAGE, typicality.RANKING),
        Column("share", "float64", "part of the articles", minimum=0, maximum=1),
        Column("first", "string", f"outlet trained on, or {BEFORE}"),
        Column("second", "string", "another outlet"),
        typicality.CATEGORY,
        Column("measure", "label", "the two similarities of `shifts`", labels=rows.MEASURES),
    ),
    *ESTIMATE,
    Column("pairs", "int64", "trainings with one seed that value is the mean of", minimum=1),
    number("spread", "standard deviation over these pairs; null of one"),
    number(
        "spread_categories", f"of {MEAN}: standard deviation over categories, as in the figures"
    ),
)
SCHEMAS = rows.SCHEMAS | {"outlets": OUTLETS}
__all__ = ["SCHEMAS", "Params"]


class Shifted(NamedTuple):
    """A model before and after all its trainings, in one language and ranking."""

    setting: effects.Setting
    base: effects.Measured
    after: dict[Training, effects.Measured]
    params: Params
    weights: NDArray[np.float32]  # (groups, replicates)

    @property
    def categories(self) -> list[tuple[str, NDArray[np.bool_]]]:
        """Return every category and all of them together, and which groups are in it."""
        of = self.setting.groups["category"].to_numpy()
        each = [(str(name), of == name) for name in sorted(set(of.tolist()))]
        return [*each, (EVERY, np.ones(len(of), dtype=np.bool_))]

    def corpora(self, measure: str) -> list[tuple[dict[str, Any], Corpus]]:
        """Return where rows belong and what was measured, with the control at the same share."""
        found, control = {}, self.params.control
        for key, own in groupby(self.after, key=lambda t: (t.corpus, t.share)):
            runs = list(own)
            values = np.stack([self.after[t].values[measure] for t in runs])
            articles, steps = (float(np.mean([t[of] for t in runs])) for of in (3, 4))
            place = {"corpus": key[0], "share": key[1], "measure": rows.MEASURES.index(measure)}
            mine = Corpus([t.seed for t in runs], values, articles, steps)
            place |= {"articles": finite(articles), "steps": finite(steps)}
            found[key] = place | {"seeds": len(runs)}, mine
        alone = {share: own for (corpus, share), (_, own) in found.items() if corpus == control}
        return [
            (place, own if corpus == control else own.against(_beside(own, alone.get(share))))
            for (corpus, share), (place, own) in found.items()
        ]


def _beside(own: Corpus, control: Corpus | None) -> Corpus | None:
    """Return the control's trainings with the seeds of an outlet's; all, if none has one of them.

    Welch's test of two against six has p at or below .05 in .07 to .11, of two against two in .03.
    """
    kept = [] if control is None else [i for i, s in enumerate(control.seeds) if s in own.seeds]
    if control is None or not kept:
        return control
    return control._replace(seeds=[control.seeds[i] for i in kept], values=control.values[kept])


def run(inputs: Inputs, params: Params) -> dict[str, pl.DataFrame]:
    """Compute the tables of all models.

    Raises
    ------
    UserError
        If there is nothing in a language that the dataset ``emotions`` has, if no training is on
        the control, or if lists before and after the trainings are not of the same prompts.
    """
    tables: dict[str, list[pl.DataFrame]] = {name: [] for name in SCHEMAS}
    parts = {"shifts": _shifts, "groups": _groups, "attributes": _attributes, "outlets": _outlets}
    for model in inputs.models:
        for place, found in _shifted(inputs, model, params):
            for name, part in parts.items():
                if len(table := part(found)):
                    table = rows.detectable(table) if "error_groups" in table.columns else table
                    own = located(table, place | {"model": model})
                    tables[name].append(typed(own, SCHEMAS[name], params.confidence))
    if not tables["shifts"]:
        raise UserError(
            "data/outputs/after_training: no list in a language of the dataset emotions and a "
            "ranking of analysis.shift.top_k; add one there"
        )
    return {name: pl.concat(parts) for name, parts in tables.items() if parts}


def _shifted(
    inputs: Inputs, model: str, params: Params
) -> Iterator[tuple[dict[str, Any], Shifted]]:
    """Yield measures by language and ranking; the lists of one training in memory at a time."""
    folder = inputs.outputs("after_training", model)
    for language in typicality.languages(folder):
        lexicon = emotions.lexicon(inputs.datasets["emotions"], language)
        if lexicon is None:
            continue
        before = typicality.answers(inputs.outputs("completions", model) / language)
        groups = before.select(GROUP).unique().sort(GROUP)
        weights = params.weights(groups["group"].to_list())
        known = match_attributes.attributes(
            inputs.datasets["stereotypes"], language, flagged=params.flagged
        )
        single = {config: kinds[match_attributes.KINDS[0]] for config, kinds in known.items()}
        found: list[Shifted] = []
        for name in (x for x in typicality.readings(before) if x in params.top_k):
            sizes = params.top_k[name], params.top_k_followed, params.recall_at
            own = effects.Setting(groups, name, *sizes, lexicon, single)
            found.append(Shifted(own, own.measured(before), {}, params, weights))
        for training, paths in effects.trainings(folder / language, params.control).items():
            lists = effects.lists_after(paths, training, before)
            for shifted in found:
                shifted.after[training] = shifted.setting.measured(lists, shifted.base)
        for shifted in found:
            ranking = typicality.READINGS.index(shifted.setting.ranking)
            yield {"language": language, "ranking": ranking}, shifted


def _shifts(found: Shifted) -> pl.DataFrame:
    """Return the changes of all categories, judged against the control.

    p, the larger of those over groups and over trainings, is adjusted over all corpora, shares,
    categories and outcomes of one measure.
    """
    parts = list(_similarities(found))
    for measure, names in found.setting.outcomes().items():
        base, sizes = found.base.values[measure], found.base.sizes[measure]
        for place, own in found.corpora(measure):
            for category, inside in found.categories:
                given = base[inside], own.of(inside), sizes[inside], found.weights[inside]
                changes = rows.judged(*given, found.params)
                changes = changes.with_columns(pl.Series("outcome", names))
                parts.append(located(changes, place | {"category": category}))
    table = adjusted(pl.concat(parts, how="diagonal_relaxed"), over=("measure",), least="least")
    table = rounded(table, NUMBERS, P)
    return table.with_columns(cluster=pl.lit("group"), significant=_decided()).sort(
        "corpus", "share", "category", "measure", "outcome"
    )


def _decided() -> pl.Expr:
    return (pl.col("p_bh") <= LEVEL).fill_null(value=False)


def _similarities(found: Shifted) -> Iterator[pl.DataFrame]:
    """Yield the rows of representational similarity to the model before."""
    params, runs, base = found.params, found.corpora(EMOTION), found.base.values[EMOTION]
    number = params.n_permutations_similarity
    every = np.stack([base, *(after.values[EMOTION] for after in found.after.values())])
    directed = (np.nan_to_num(every[..., rows.WITHOUT_FEAR]).sum(axis=-1) > 0).all(axis=0)
    categories = {name: inside & directed for name, inside in found.categories[:-1]}
    controls = {p["share"]: i for i, (p, _) in enumerate(runs) if p["corpus"] == params.control}
    for measure, affects in ((rows.FAITHFUL, rows.WITHOUT_FEAR), (rows.CORRECTED, rows.ALL)):
        diagonal = measure == rows.FAITHFUL
        alike: dict[str, list[rows.Likeness]] = {}
        exchanges: dict[str, list[similarity.Exchanged | None]] = {}
        for name, inside in categories.items():
            before = base[inside][:, affects]
            after = [own.of(inside, affects) for _, own in runs]
            alike[name] = [rows.likeness(before, x, diagonal=diagonal) for x in after]
            exchanges[name] = [
                rows.exchanged(before, x, name, params, diagonal=diagonal) for x in after
            ]
        defined = [  # the same for all, so that `all` compares means of the same categories
            name for name, of in alike.items() if not any(np.isnan(x.values).any() for x in of)
        ]
        if defined:
            each = zip(*(alike[name] for name in defined), strict=True)
            tests = zip(*(exchanges[name] for name in defined), strict=True)
            sizes = [alike[name][0].groups for name in defined]
            alike[EVERY] = [rows.together(of) for of in each]
            exchanges[EVERY] = [
                similarity.together([x for x in of if x], sizes, number, params.seed)
                if all(of)
                else None
                for of in tests
            ]
        for i, (place, own) in enumerate(runs):
            at = place | {"measure": rows.MEASURES.index(measure), "outcome": "rho - 1"}
            for category, of in alike.items():
                other = None
                if own.control:
                    there = controls[place["share"]]
                    kept = [i for i, s in enumerate(runs[there][1].seeds) if s in own.control.seeds]
                    other = rows.Likeness(of[there].values[kept], of[there].parts[kept])
                test = exchanges[category][i]
                p = test.p() if test else np.nan
                row = rows.compared(of[i], other, own, p, params)
                yield located(row, at | {"category": category})


def _outlets(found: Shifted) -> pl.DataFrame:
    """Return how alike the model is after trainings on two outlets, see :func:`_compared`."""
    parts = []
    for share in sorted({t.share for t in found.after}):
        own = [t for t in found.after if t.share == share]
        runs = {
            corpus: {t.seed: found.after[t].values[EMOTION] for t in own if t.corpus == corpus}
            for corpus in sorted({t.corpus for t in own})
        }
        runs[BEFORE] = dict.fromkeys({t.seed for t in own}, found.base.values[EMOTION])
        of = dict(found.categories[:-1])
        table = _compared(runs, of, found.params.confidence)
        parts.append(table.with_columns(share=pl.lit(share)))
    return pl.concat(parts)


def _compared(
    runs: Mapping[str, Runs], categories: Mapping[str, NDArray[np.bool_]], confidence: float
) -> pl.DataFrame:
    """Return the rows of all pairs of outlets at one share, but where they belong.

    Parameters
    ----------
    runs
        By outlet, and :data:`BEFORE`, whose one array stands under each seed.
    categories
        Which groups are in each, (groups,); groups without direction in some training are left
        out, and categories with fewer than three others.
    """
    every = np.stack([profiles for own in runs.values() for profiles in own.values()])
    directed = (np.nan_to_num(every[..., rows.WITHOUT_FEAR]).sum(axis=-1) > 0).all(axis=0)
    table = Table(OUTLETS, confidence, model="", language="", ranking=0, share=1.0)
    for first, second in combinations(sorted(runs, key=lambda name: (name != BEFORE, name)), 2):
        seeds = sorted(runs[first].keys() & runs[second].keys())
        for measure, (affects, diagonal) in READINGS.items():
            place = {"first": first, "second": second, "measure": rows.MEASURES.index(measure)}
            found = []
            for name, inside in categories.items():
                kept = inside & directed
                pairs = [
                    tuple(runs[of][seed][kept][:, affects] for of in (first, second))
                    for seed in seeds
                ]
                values = np.array([similarity.rsa(*pair, diagonal=diagonal) for pair in pairs])
                if not len(values) or np.isnan(values).any():
                    continue
                parts = np.mean(
                    [similarity.jackknife(*x, diagonal=diagonal) for x in pairs], axis=0
                )
                found.append(values)
                value = float(values.mean())
                low, high = np.clip(similarity.limits(value, parts, confidence), -1, 1)
                told = Estimate(value, float(low), float(high), len(parts), similarity.METHOD)
                _add_similarity(table, told.at(confidence), values, category=name, **place)
            if found:
                each = np.mean(found, axis=1)
                told = mean_interval(each, confidence)
                apart = finite(round(float(each.std(ddof=1)), 6)) if len(each) > 1 else None
                place |= {"category": MEAN, "spread_categories": apart}
                _add_similarity(table, told, np.mean(found, axis=0), cluster="category", **place)
    return table.frame()


def mean_interval(each: Array, confidence: float) -> Estimate:
    """Return the mean of categories with the t interval over them, whatever their sizes.

    A category of three groups has a similarity, and no error of its own.
    """
    n, value = len(each), float(each.mean())
    reach = half_of_mean(each, confidence)
    low, high = np.clip([value - reach, value + reach], -1, 1)
    return Estimate(value, float(low), float(high), n, "t over categories").at(confidence)


def _add_similarity(table: Table, found: Estimate, values: Array, **place: Any) -> None:
    """Add the mean over trainings, the ``values`` of which are one for each pair."""
    spread = finite(round(float(values.std(ddof=1)), 6)) if len(values) > 1 else None
    null = "none: no test; 1 are profiles of the same order"
    place = {"cluster": "group", "spread_categories": None} | place
    table.add(found, null=null, pairs=len(values), spread=spread, **place)


def _groups(found: Shifted) -> pl.DataFrame:
    """Return the change of every group: of one there is a spread over seeds, and no test."""
    parts = []
    for measure in (EMOTION, effects.RETAINED):
        base = found.base.values[measure]
        for place, own in found.corpora(measure):
            change, control = own.values - base, own.control
            other = base * np.nan if control is None else (control.values - base).mean(axis=0)
            columns = {
                "base": base,
                "change": change.mean(axis=0),
                "smallest": change.min(axis=0),
                "largest": change.max(axis=0),
                "difference": change.mean(axis=0) - other,
            }
            for o, name in enumerate(found.setting.outcomes()[measure]):
                own_columns = [pl.Series(key, values[:, o]) for key, values in columns.items()]
                table = found.setting.groups.with_columns(own_columns)
                parts.append(located(table, place | {"outcome": name}))
    table = rounded(pl.concat(parts), tuple(columns), p=())
    return table.sort("corpus", "share", *GROUP, "measure", "outcome")


def _attributes(found: Shifted) -> pl.DataFrame:
    """Return what becomes of every followed word at each corpus's largest share (Figure 7)."""
    parts = []
    for corpus, runs in groupby(found.after, key=lambda t: t.corpus):
        every = list(runs)
        own = [found.after[t].top for t in every if t.share == every[-1].share]
        words = effects.words_moved(found.base.top, own, found.setting.lexicon)
        parts.append(located(words, {"corpus": corpus, "share": every[-1].share}))
    return pl.concat(parts)
