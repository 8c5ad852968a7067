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

from plumbline.builders.core.errors import UserError
from plumbline.probes.stats.estimate import adjusted, finite, rounded, typed
from plumbline.probes.stereotypes import (
    emotions,
    match_attributes,
    shift_rows,
    training_effects,
    typicality,
)
from plumbline.probes.stereotypes.shift_rows import (
    LEVEL,
    MEASURES,
    SCHEMAS,
    Baseline,
    Corpus,
    Resampled,
    judged,
    weighted,
)
from plumbline.probes.stereotypes.similarity import together
from plumbline.probes.stereotypes.training_effects import (
    EMOTION,
    GROUP,
    Measured,
    Setting,
    measured,
)
from plumbline.probes.stereotypes.typicality import EVERY, GroupBootstrap

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from plumbline.probes.core.run_analysis import Inputs
    from plumbline.probes.stereotypes.similarity import Exchanged
    from plumbline.probes.stereotypes.training_effects import Training

EACH = False
DATASETS = ("emotions", "stereotypes")
OUTPUTS = ("after_training", "completions")
TABLES = ()
__all__ = ["SCHEMAS"]


class Params(GroupBootstrap):
    """What is measured, and how intervals and tests are made."""

    top_k: dict[Literal["probability", "faithful", "corrected", "corrected_one"], int] = Field(
        {"probability": 200},
        min_length=1,
        description="words of each list in a profile, by ranking; the paper: probability, 200",
    )
    top_k_followed: int = Field(15, ge=1, description="words of each list followed one by one")
    recall_at: list[int] = Field([10, 50], min_length=1, description="k of the recall compared")
    flagged: bool = Field(default=True, description="whether attributes with a flag are sought too")
    control: str = Field("control", description="corpus that the others are judged against")
    n_permutations: int = Field(
        9999, ge=99, description="sign patterns over groups, where not all are tried"
    )
    n_permutations_similarity: int = Field(
        999, ge=99, description="exchanges of profiles in a similarity, where not all are tried"
    )
    n_bootstrap: int = Field(500, ge=100, description="bootstrap replicates over groups")


class Shifted(NamedTuple):
    """A model before and after all its trainings, in one language and ranking."""

    groups: pl.DataFrame
    base: Measured
    after: dict[Training, Measured]
    names: dict[str, list[str]]  # outcomes of each measure
    lexicon: pl.DataFrame
    control: str
    by: Resampled

    @property
    def categories(self) -> list[tuple[str, NDArray[np.bool_]]]:
        """Return every category and all of them together, and which groups are in it."""
        of = self.groups["category"].to_numpy()
        each = [(str(name), of == name) for name in sorted(set(of.tolist()))]
        return [*each, (EVERY, np.ones(len(of), dtype=np.bool_))]

    def against(self, measure: str) -> Iterator[tuple[float, str, Corpus, Baseline]]:
        """Yield share, corpus, what was measured, and the control at the same share."""
        runs: dict[tuple[float, str], list[Training]] = {}
        for training in self.after:
            runs.setdefault((training.share, training.corpus), []).append(training)
        corpora = {
            key: Corpus(
                [t.seed for t in own],
                np.stack([self.after[t].values[measure] for t in own]),
                float(np.mean([t.articles for t in own])),
                float(np.mean([t.steps for t in own])),
            )
            for key, own in runs.items()
        }
        for (share, corpus), own in corpora.items():
            against = shift_rows.baseline(own, corpora.get((share, self.control)))
            yield share, corpus, own, Baseline() if corpus == self.control else against


def run(inputs: Inputs, params: Params) -> dict[str, pl.DataFrame]:
    """Compute the tables of all models.

    Raises
    ------
    UserError
        If there is nothing in a language that the dataset ``emotions`` has, if no training is on
        the control, or if lists before and after the trainings are not of the same prompts.
    """
    tables: dict[str, list[pl.DataFrame]] = {name: [] for name in SCHEMAS}
    parts = {"shifts": _shifts, "runs": _runs, "groups": _groups}
    parts |= {"attributes": _attributes, "seeds": _seeds}
    for model in inputs.models:
        for language, ranking, found in _shifted(inputs, model, params):
            place = {"model": pl.lit(model), "language": pl.lit(language)}
            place["ranking"] = pl.lit(typicality.READINGS.index(ranking))
            for name, part in parts.items():
                if len(table := part(found)):
                    tables[name].append(typed(table.with_columns(**place), SCHEMAS[name]))
    if not tables["shifts"]:
        raise UserError(
            "data/outputs/after_training: no list in a language of the dataset emotions and a "
            "ranking of analysis.shift.top_k; add one there"
        )
    return {name: pl.concat(parts) for name, parts in tables.items() if parts}


def _shifted(inputs: Inputs, model: str, params: Params) -> Iterator[tuple[str, str, Shifted]]:
    """Yield language, ranking and measures; the lists of one training in memory at a time."""
    folder = inputs.outputs("after_training", model)
    for language in typicality.languages(folder):
        lexicon = emotions.lexicon(inputs.datasets["emotions"], language)
        if lexicon is None:
            continue
        before = typicality.answers(inputs.outputs("completions", model) / language)
        groups = before.select(GROUP).unique().sort(GROUP)
        by = Resampled(
            params.weights(groups["group"].to_list()),
            params.n_permutations,
            params.confidence,
            params.seed,
            params.n_permutations_similarity,
        )
        known = match_attributes.attributes(
            inputs.datasets["stereotypes"], language, flagged=params.flagged
        )
        single = {config: kinds[match_attributes.KINDS[0]] for config, kinds in known.items()}
        followed, ranks = params.top_k_followed, params.recall_at
        found: dict[str, tuple[Setting, Shifted]] = {}
        for name in typicality.readings(before):
            if name in params.top_k:
                own = Setting(name, params.top_k[name], followed, ranks, lexicon, single)
                base, names = measured(before, groups, own), training_effects.outcomes(own)
                found[name] = own, Shifted(groups, base, {}, names, lexicon, params.control, by)
        done = training_effects.trainings(folder / language, params.control)
        for training, paths in done.items():
            lists = training_effects.lists_after(paths, training, before)
            for own, shifted in found.values():
                shifted.after[training] = measured(lists, groups, own, shifted.base)
        yield from ((language, name, shifted) for name, (_, shifted) in found.items())


def _shifts(found: Shifted) -> pl.DataFrame:
    """Return the changes of all categories, judged against the control.

    p is adjusted over all corpora, shares, categories and outcomes of one measure.
    """
    rows: list[dict[str, Any]] = []
    for measure, names in found.names.items():
        base, sizes = found.base.values[measure], found.base.sizes[measure]
        for share, corpus, own, against in found.against(measure):
            place = _place(share, corpus, own, measure)
            for category, inside in found.categories:
                changes = judged(
                    base[inside],
                    own.of(inside),
                    against.of(inside),
                    sizes[inside],
                    found.by.of(inside),
                )
                for name, row in zip(names, changes, strict=True):
                    rows.append(place | {"category": category, "outcome": name} | row)
    rows += _similarities(found)
    table = rounded(adjusted(pl.DataFrame(rows, infer_schema_length=None), over=("measure",)))
    above = pl.col("difference").cast(pl.Float64).abs() > pl.col("half_width_seeds").cast(
        pl.Float64
    )
    return table.with_columns(
        cluster=pl.lit("group"),
        significant=((pl.col("p_bh") <= LEVEL) & above).fill_null(value=False),
    ).sort("corpus", "share", "category", "measure", "outcome")


def _place(share: float, corpus: str, own: Corpus, measure: str) -> dict[str, Any]:
    place = {"corpus": corpus, "share": share, "measure": MEASURES.index(measure)}
    sizes = {"articles": finite(own.articles), "steps": finite(own.steps)}
    return place | sizes | {"seeds": len(own.seeds)}


def _similarities(found: Shifted) -> Iterator[dict[str, Any]]:
    """Yield the rows of representational similarity to the model before."""
    base, by = found.base.values[EMOTION], found.by
    every = [base, *(after.values[EMOTION] for after in found.after.values())]
    directed = np.stack([shift_rows.directed(shares) for shares in every]).all(axis=0)
    categories = {name: inside & directed for name, inside in found.categories[:-1]}
    for reading in (shift_rows.FAITHFUL, shift_rows.CORRECTED):
        faithful = reading == shift_rows.FAITHFUL
        alike = {
            (share, corpus): {
                name: shift_rows.likeness(base, own, inside, by, faithful=faithful)
                for name, inside in categories.items()
            }
            for share, corpus, own, _ in found.against(EMOTION)
        }
        defined = [  # the same for all, so that `all` compares means of the same categories
            name
            for name in categories
            if not any(np.isnan(parts[name].values).any() for parts in alike.values())
        ]
        for parts in alike.values():
            if defined:
                parts[EVERY] = shift_rows.together([parts[name] for name in defined])
        for share, corpus, own, (control, untested) in found.against(EMOTION):
            tests: dict[str, Exchanged] = {}
            if control and not untested:
                for name, inside in categories.items():
                    tests[name] = shift_rows.exchanged(
                        base, own, control, inside, by, name, faithful=faithful
                    )
                if defined:
                    sizes = [alike[share, corpus][name].groups for name in defined]
                    parts_of = [tests[name] for name in defined]
                    number = by.n_permutations_similarity
                    tests[EVERY] = together(parts_of, sizes, number, by.seed)
            null = untested or shift_rows.SWAPPED.format(by.n_permutations_similarity)
            for category, one in alike[share, corpus].items():
                other = alike[share, found.control][category] if control else None
                pairs = own.pairs(control) if control else []
                p = tests[category].p() if tests else None
                yield (
                    _place(share, corpus, own, reading)
                    | {"category": category, "outcome": "rho - 1"}
                    | shift_rows.compared(one, other, pairs, by, null, p)
                )


def _seeds(found: Shifted) -> pl.DataFrame:
    """Compare every training on the control with those with another seed, as if other corpora.

    Only emotions, in all groups and in categories that are large enough for a p of ``LEVEL``.
    """
    values, sizes = found.base.values[EMOTION], found.base.sizes[EMOTION]
    categories = [(c, x) for c, x in found.categories if 2 / 2 ** float(x.sum()) <= LEVEL]
    rows: list[dict[str, Any]] = []
    for pair in combinations([t for t in found.after if t.corpus == found.control], 2):
        if pair[0].share != pair[1].share:
            continue
        for category, inside in categories:
            one, other = (Corpus([1], found.after[t].values[EMOTION][None, inside]) for t in pair)
            changes = judged(
                values[inside], one, Baseline(other, ""), sizes[inside], found.by.of(inside)
            )
            rows += [
                {name: row[name] for name in ("n", "difference", "p")}
                | {"corpus": found.control, "share": pair[0].share, "category": category}
                | {"outcome": outcome, "seed": pair[0].seed, "other_seed": pair[1].seed}
                for outcome, row in zip(found.names[EMOTION], changes, strict=True)
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
                start, moved = weighted(base[inside], counts), weighted(change, counts)
                place = training._asdict() | {"tuning_seed": training.seed}
                place |= {"category": category, "measure": MEASURES.index(measure)}
                rows += [
                    place | {"outcome": name, "base": finite(b), "change": finite(c)}
                    for name, b, c in zip(names, start, moved, strict=True)
                ]
    return pl.DataFrame(rows, infer_schema_length=None).sort(
        "corpus", "share", "tuning_seed", "category", "measure", "outcome"
    )


def _groups(found: Shifted) -> pl.DataFrame:
    """Return the change of every group: of one there is a spread over seeds, and no test."""
    parts = []
    for measure in (EMOTION, training_effects.RETAINED):
        base = found.base.values[measure]
        for share, corpus, own, (control, _) in found.against(measure):
            change = own.values - base
            apart = np.full_like(base, np.nan)
            if control is not None:
                apart = change.mean(axis=0) - (control.values - base).mean(axis=0)
            columns = {
                "base": base,
                "change": change.mean(axis=0),
                "smallest": change.min(axis=0),
                "largest": change.max(axis=0),
                "difference": apart,
            }
            parts += [
                found.groups.with_columns(
                    *(pl.Series(key, values[:, o]) for key, values in columns.items()),
                    corpus=pl.lit(corpus),
                    share=pl.lit(share),
                    measure=pl.lit(MEASURES.index(measure)),
                    outcome=pl.lit(name),
                    seeds=pl.lit(len(own.seeds)),
                )
                for o, name in enumerate(found.names[measure])
            ]
    table = rounded(pl.concat(parts), tuple(columns), p=())
    return table.sort("corpus", "share", *GROUP, "measure", "outcome")


def _attributes(found: Shifted) -> pl.DataFrame:
    """Return what becomes of every followed word at each corpus's largest share (Figure 7)."""
    parts = []
    for corpus in sorted({t.corpus for t in found.after}):
        share = max(t.share for t in found.after if t.corpus == corpus)
        own = [a.top for t, a in found.after.items() if (t.corpus, t.share) == (corpus, share)]
        words = training_effects.words_moved(found.base.top, own, found.lexicon)
        parts.append(words.with_columns(corpus=pl.lit(corpus), share=pl.lit(share)))
    return pl.concat(parts)
