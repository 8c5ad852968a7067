"""Analysis ``shift``: what training on a news outlet does to what a model says of social groups.

Choenni et al. (2021), section 6: emotion profiles, attributes and representational similarity
after fine-tuning, against the same model before; recall too. Beyond the paper every outlet is
judged against a control corpus about other things, since any training shifts a model.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import polars as pl
from pydantic import Field

from plumbline.builders.core.errors import Problem
from plumbline.probes.stats.estimate import adjusted, finite, rounded, typed
from plumbline.probes.stereotypes import (
    emotion_words,
    match_attributes,
    training_effects,
    typicality,
)
from plumbline.probes.stereotypes.schemas import (
    CORRECTED,
    EVERY,
    FAITHFUL,
    LEVEL,
    MEASURES,
    SCHEMAS,
    GroupBootstrap,
)
from plumbline.probes.stereotypes.shift_rows import (
    SWAPPED,
    Corpus,
    Resampled,
    Rival,
    apart,
    compared,
    directed,
    judged,
    likeness,
    rival,
    together,
    weighted,
)
from plumbline.probes.stereotypes.similarity import together as exchanged_together
from plumbline.probes.stereotypes.training_effects import EMOTION, GROUP, KEPT, Measured, Setting

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from plumbline.probes.core.run_analysis import Inputs
    from plumbline.probes.stereotypes.similarity import Exchanged
    from plumbline.probes.stereotypes.training_effects import Training

EACH = False
DATASETS = ("emotions", "stereotypes")
OUTPUTS = ("finetuned", "stereotypes")
TABLES = ()
__all__ = ["SCHEMAS"]


class Params(GroupBootstrap):
    """What is measured, and how intervals and tests are made."""

    k: dict[Literal["probability", "faithful", "corrected", "corrected_one"], int] = Field(
        {"probability": 200},
        min_length=1,
        description="words of each list in a profile, by ranking; the paper: probability, 200",
    )
    top: int = Field(15, ge=1, description="words of each list that are followed one by one")
    recall: list[int] = Field([10, 50], min_length=1, description="k at which recall is compared")
    flagged: bool = Field(default=True, description="whether attributes with a flag are sought too")
    control: str = Field("control", description="corpus that the others are judged against")
    flips: int = Field(
        9999, ge=99, description="sign patterns over groups, where not all are tried"
    )
    swaps: int = Field(
        999, ge=99, description="exchanges of profiles in a similarity, where not all are tried"
    )
    bootstrap: int = Field(500, ge=100, description="bootstrap replicates over groups")


class Shifted(NamedTuple):
    """A model before and after all its trainings, in one language and ranking."""

    groups: pl.DataFrame
    base: Measured
    after: dict[Training, Measured]
    names: dict[str, list[str]]  # outcomes of each measure
    lexicon: pl.DataFrame

    @property
    def categories(self) -> list[tuple[str, NDArray[np.bool_]]]:
        """Return every category and all of them together, and which groups are in it."""
        of = self.groups["category"].to_numpy()
        each = [(str(name), of == name) for name in sorted(set(of.tolist()))]
        return [*each, (EVERY, np.ones(len(of), dtype=np.bool_))]


def run(inputs: Inputs, params: Params) -> dict[str, pl.DataFrame]:
    """Compute the tables of all models.

    Raises
    ------
    Problem
        If there is nothing in a language that the dataset ``emotions`` has, if no training is on
        the control, or if answers before and after the trainings are not to the same prompts.
    """
    tables: dict[str, list[pl.DataFrame]] = {name: [] for name in SCHEMAS}
    for model in inputs.models:
        for language, ranking, found in _shifted(inputs, model, params):
            place = {"model": pl.lit(model), "language": pl.lit(language)}
            place["ranking"] = pl.lit(typicality.READINGS.index(ranking))
            for name, table in (
                ("shifts", _adjusted(_shifts(found, params))),
                ("runs", _runs(found)),
                ("groups", _groups(found, params)),
                ("attributes", _attributes(found)),
                ("seeds", _seeds(found, params)),
            ):
                if len(table):
                    tables[name].append(typed(table.with_columns(**place), SCHEMAS[name]))
    if not tables["shifts"]:
        raise Problem(
            "data/outputs/finetuned: no list in a language of the dataset emotions and a ranking "
            "of analysis.shift.k; add one there"
        )
    return {name: pl.concat(parts) for name, parts in tables.items() if parts}


def _shifted(inputs: Inputs, model: str, params: Params) -> Iterator[tuple[str, str, Shifted]]:
    """Yield language, ranking and measures; the lists of one training in memory at a time."""
    outputs, tuned = inputs.outputs("stereotypes", model), inputs.outputs("finetuned", model)
    for language in typicality.languages(tuned):
        lexicon = emotion_words.lexicon(inputs.datasets["emotions"], language)
        if lexicon is None:
            continue
        before = typicality.answers(outputs / language)
        groups = training_effects.groups_of(before)
        known = inputs.datasets["stereotypes"]
        attributes = {
            config: training_effects.single_words(
                match_attributes.attributes(known / f"{config}.parquet", flagged=params.flagged)
            )
            for config in match_attributes.configs(known, language)
        }
        rankings = [name for name in typicality.readings(before) if name in params.k]
        settings = {
            name: Setting(name, params.k[name], params.top, params.recall, lexicon, attributes)
            for name in rankings
        }
        base = {
            name: training_effects.measured(before, groups, settings[name]) for name in rankings
        }
        after: dict[str, dict[Training, Measured]] = {name: {} for name in rankings}
        done = training_effects.trainings(tuned / language)
        training_effects.require_control(done, params.control, tuned / language)
        for training, paths in done.items():
            answers = training_effects.answers_after(paths, training)
            training_effects.same_lists(before, answers, tuned / language)
            for name in rankings:
                after[name][training] = training_effects.measured(
                    answers, groups, settings[name], base[name]
                )
        for name in rankings:
            names = training_effects.outcomes(settings[name])
            yield language, name, Shifted(groups, base[name], after[name], names, lexicon)


def _corpora(found: Shifted, measure: str) -> dict[float, dict[str, Corpus]]:
    """Return what was measured after the trainings, by share and corpus."""
    result: dict[float, dict[str, Corpus]] = {}
    for training in found.after:
        result.setdefault(training.share, {}).setdefault(training.corpus, Corpus([], np.empty(0)))
    for share, by_corpus in result.items():
        for corpus in by_corpus:
            own = [t for t in found.after if (t.corpus, t.share) == (corpus, share)]
            values = np.stack([found.after[t].values[measure] for t in own])
            articles, steps = (float(np.mean(x)) for x in zip(*(t[-2:] for t in own), strict=True))
            by_corpus[corpus] = Corpus([t.seed for t in own], values, articles, steps)
    return result


def _shifts(found: Shifted, params: Params) -> pl.DataFrame:
    """Return the changes of all categories, judged against the control."""
    by = _resampled(found, params)
    weights = by.weights
    rows: list[dict[str, Any]] = []
    for measure, names in found.names.items():
        base, sizes = found.base.values[measure], found.base.sizes[measure]
        for share, corpus, own, against in _against(found, measure, params):
            place = _place(share, corpus, own, measure)
            control = against.control
            for category, inside in found.categories:
                told = judged(
                    base[inside],
                    own._replace(values=own.values[:, inside]),
                    against._replace(
                        control=control and control._replace(values=control.values[:, inside])
                    ),
                    sizes[inside],
                    by._replace(weights=weights[inside]),
                )
                for name, row in zip(names, told, strict=True):
                    rows.append(place | {"category": category, "outcome": name} | row)
    rows += _similarities(found, params, by)
    return pl.DataFrame(rows, infer_schema_length=None)


def _resampled(found: Shifted, params: Params) -> Resampled:
    weights = params.weights(found.groups["group"].to_list())
    return Resampled(weights, params.flips, params.confidence, params.seed, params.swaps)


def _against(
    found: Shifted, measure: str, params: Params
) -> Iterator[tuple[float, str, Corpus, Rival]]:
    """Yield share, corpus, what was measured, and the control at the same share."""
    for share, by_corpus in _corpora(found, measure).items():
        control = by_corpus.get(params.control)
        for corpus, own in by_corpus.items():
            yield share, corpus, own, Rival() if corpus == params.control else rival(own, control)


def _place(share: float, corpus: str, own: Corpus, measure: str) -> dict[str, Any]:
    place = {"corpus": corpus, "share": share, "measure": MEASURES.index(measure)}
    sizes = {"articles": finite(own.articles), "steps": finite(own.steps)}
    return place | sizes | {"seeds": len(own.seeds)}


def _similarities(found: Shifted, params: Params, by: Resampled) -> Iterator[dict[str, Any]]:
    """Yield the rows of representational similarity to the model before."""
    base = found.base.values[EMOTION]
    every = [base, *(after.values[EMOTION] for after in found.after.values())]
    pointing = np.asarray(np.stack([directed(s) for s in every]).all(axis=0), dtype=np.bool_)
    *categories, _ = found.categories
    for reading in (FAITHFUL, CORRECTED):
        faithful = reading == FAITHFUL
        alike = {
            (share, corpus): {
                name: likeness(base, own, inside & pointing, by, faithful=faithful)
                for name, inside in categories
            }
            for share, corpus, own, _ in _against(found, EMOTION, params)
        }
        defined = [  # the same for all, so that `all` compares means of the same categories
            name
            for name, _ in categories
            if not any(np.isnan(parts[name].values).any() for parts in alike.values())
        ]
        for parts in alike.values():
            if defined:
                parts[EVERY] = together([parts[name] for name in defined])
        for share, corpus, own, (control, untested) in _against(found, EMOTION, params):
            seeds = [list(own.seeds), list(control.seeds) if control else []]
            tests: dict[str, Exchanged] = {}
            if control and not untested:
                tests = {
                    name: apart(base, own, control, inside & pointing, by, name, faithful=faithful)
                    for name, inside in categories
                }
                sizes = [alike[share, corpus][name].groups for name in defined]
                if defined:
                    kept = [tests[name] for name in defined]
                    tests[EVERY] = exchanged_together(kept, sizes, by.swaps, by.seed)
            for category, one in alike[share, corpus].items():
                other = alike[share, params.control][category] if control else None
                null = untested or SWAPPED.format(swaps=by.swaps)
                p = tests[category].p() if tests else None
                yield (
                    _place(share, corpus, own, reading)
                    | {"category": category, "outcome": "rho - 1"}
                    | compared(one, other, seeds, params.confidence, null, p)
                )


def _adjusted(table: pl.DataFrame) -> pl.DataFrame:
    """Adjust p over all corpora, shares, categories and outcomes of one measure."""
    table = rounded(adjusted(table, over=("measure",)))
    above = pl.col("difference").cast(pl.Float64).abs() > pl.col("least").cast(pl.Float64)
    return table.with_columns(
        cluster=pl.lit("group"),
        significant=((pl.col("p_bh") <= LEVEL) & above).fill_null(value=False),
    ).sort("corpus", "share", "category", "measure", "outcome")


def _seeds(found: Shifted, params: Params) -> pl.DataFrame:
    """Compare every training on the control with those with another seed, as if other corpora.

    Only emotions, in all groups and in categories that are large enough for a p of ``LEVEL``.
    """
    values, sizes = found.base.values[EMOTION], found.base.sizes[EMOTION]
    by = _resampled(found, params)
    parts = [(c, x) for c, x in found.categories if 2 / 2 ** float(x.sum()) <= LEVEL]
    rows: list[dict[str, Any]] = []
    for share in sorted({t.share for t in found.after if t.corpus == params.control}):
        own = [t for t in found.after if (t.corpus, t.share) == (params.control, share)]
        for pair in combinations(own, 2):
            for category, inside in parts:
                one, other = (
                    Corpus([1], found.after[t].values[EMOTION][None, inside]) for t in pair
                )
                some = by._replace(weights=by.weights[inside])
                told = judged(values[inside], one, Rival(other, ""), sizes[inside], some)
                rows += [
                    {name: row[name] for name in ("n", "difference", "p")}
                    | {"corpus": params.control, "share": share, "category": category}
                    | {"outcome": outcome, "seed": pair[0].seed, "other_seed": pair[1].seed}
                    for outcome, row in zip(found.names[EMOTION], told, strict=True)
                    if row["p"] is not None
                ]
    return rounded(pl.DataFrame(rows, infer_schema_length=None)) if rows else pl.DataFrame()


def _runs(found: Shifted) -> pl.DataFrame:
    """Return the change of each training, without similarities."""
    rows = []
    for measure, names in found.names.items():
        base, sizes = found.base.values[measure], found.base.sizes[measure]
        for category, inside in found.categories:
            for training, after in found.after.items():
                change = (after.values[measure] - base)[inside]
                counts = np.where(np.isnan(change), 0.0, sizes[inside])
                for o, name in enumerate(names):
                    rows.append(
                        {"corpus": training.corpus, "share": training.share}
                        | {"tuning_seed": training.seed, "category": category}
                        | {"articles": training.articles, "steps": training.steps}
                        | {"measure": MEASURES.index(measure), "outcome": name}
                        | {"base": finite(weighted(base[inside], counts)[o])}
                        | {"change": finite(weighted(change, counts)[o])}
                    )
    return pl.DataFrame(rows, infer_schema_length=None).sort(
        "corpus", "share", "tuning_seed", "category", "measure", "outcome"
    )


def _groups(found: Shifted, params: Params) -> pl.DataFrame:
    """Return the change of every group: of one there is a spread over seeds, and no test."""
    parts = []
    for measure in (EMOTION, KEPT):
        base = found.base.values[measure]
        for share, corpus, own, (control, _) in _against(found, measure, params):
            change = own.values - base
            apart = np.full_like(base, np.nan)
            if control is not None:
                apart = change.mean(axis=0) - (control.values - base).mean(axis=0)
            for o, name in enumerate(found.names[measure]):
                columns = {
                    "base": base[:, o],
                    "change": change[..., o].mean(axis=0),
                    "smallest": change[..., o].min(axis=0),
                    "largest": change[..., o].max(axis=0),
                    "difference": apart[:, o],
                }
                parts.append(
                    found.groups.with_columns(
                        **{
                            key: pl.Series([finite(x) for x in column], dtype=pl.Float64)
                            for key, column in columns.items()
                        },
                        corpus=pl.lit(corpus),
                        share=pl.lit(share),
                        measure=pl.lit(MEASURES.index(measure)),
                        outcome=pl.lit(name),
                        seeds=pl.lit(len(own.seeds)),
                    )
                )
    return pl.concat(parts).sort("corpus", "share", *GROUP, "measure", "outcome")


def _attributes(found: Shifted) -> pl.DataFrame:
    """Return the fate of every followed word at each corpus's largest share (Figure 7)."""
    largest: dict[str, float] = {}
    for training in found.after:
        largest[training.corpus] = max(training.share, largest.get(training.corpus, 0.0))
    parts = []
    for corpus, share in sorted(largest.items()):
        own = [a.top for t, a in found.after.items() if (t.corpus, t.share) == (corpus, share)]
        told = training_effects.fates(found.base.top, own, found.lexicon)
        parts.append(told.with_columns(corpus=pl.lit(corpus), share=pl.lit(share)))
    return pl.concat(parts)
