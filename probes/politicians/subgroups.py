"""Analysis ``subgroups``: gender and sentiment among parts of the politicians.

Stańczak et al. (2023), figures 7 to 9: people whose native language is that of the names, the most
popular ones, and those born before and from a day on; each beside all others, with the number of
people, intervals over names and permutation tests that the paper does not have.
"""

from __future__ import annotations

from datetime import date  # noqa: TC003 pydantic reads it
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl
from pydantic import Field

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.schema import Column, Schema
from plumbline.builders.datasets.lexica.build import SENTIMENTS
from plumbline.builders.datasets.politicians.build import GENDERS
from plumbline.builders.datasets.words.build import POS
from plumbline.probes.politicians.words import columns, word_counts
from plumbline.probes.politicians.words.columns import (
    FEMALE,
    GENDER,
    LANGUAGE,
    MALE,
    MODEL,
    SENTIMENT,
)
from plumbline.probes.politicians.words.resample_counts import bootstrap_counts, permute_counts
from plumbline.probes.politicians.words.sentiment_shares import argmax, of_words
from plumbline.probes.stats.bootstrap import percentiles
from plumbline.probes.stats.estimate import ESTIMATE, Estimate, Resampling, adjusted, typed
from plumbline.probes.stats.intervals import DIGITS, rank_correlations
from plumbline.probes.stats.pmi import pmi, smoothed
from plumbline.probes.stats.shares import shares
from plumbline.probes.stats.tests import permutation_p

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from plumbline.probes.core.run_analysis import Inputs

EACH = True
DATASETS = ("politicians", "lexica")
OUTPUTS = ("associations",)
TABLES = ()
PAIRS = (("native", "foreign"), ("popular", "other"), ("older", "younger"))
SUBGROUPS = tuple(name for pair in PAIRS for name in pair)
CONTRASTS = (*SUBGROUPS, *(f"{one} against {other}" for one, other in PAIRS))
SUBGROUP = Column("subgroup", "label", "part of the people", labels=SUBGROUPS)
PEOPLE = Schema(
    columns=(
        MODEL,
        LANGUAGE,
        SUBGROUP,
        GENDER,
        Column("people", "int64", "people of this gender in the subgroup", minimum=0),
        Column("names", "int64", "distinct names among them", minimum=0),
    ),
    key=("language", "subgroup", "gender"),
)
SHARES = Schema(
    columns=(
        *columns.PLACE,
        SUBGROUP,
        GENDER,
        SENTIMENT,
        columns.TOP_K,
        columns.CANDIDATES,
        Column("names", "int64", "distinct names of this gender in the subgroup", minimum=1),
        *ESTIMATE,
    ),
    key=("language", "pos", "subgroup", "gender", "sentiment"),
)
DIFFERENCES = Schema(
    columns=(
        *columns.PLACE,
        Column(
            "contrast",
            "label",
            "a subgroup: share female minus male in it; two: that of the first minus that of the "
            "second",
            labels=CONTRASTS,
        ),
        SENTIMENT,
        *ESTIMATE,
        columns.FAMILY,
    ),
    key=("language", "pos", "contrast", "sentiment"),
)
AGREEMENT = Schema(
    columns=(
        *columns.PLACE,
        Column("contrast", "label", "the two subgroups", labels=CONTRASTS),
        Column("words", "int64", "words that are common in both", minimum=1),
        *ESTIMATE,
        columns.FAMILY,
    ),
    key=("language", "pos", "contrast"),
)
SCHEMAS = {
    "people": PEOPLE,
    "shares": SHARES,
    "differences": DIFFERENCES,
    "agreement": AGREEMENT,
}


class Params(Resampling):
    """Who is in a subgroup, how many words are taken, and how intervals and tests are made."""

    top_sitelinks: int = Field(
        ge=1, description="people with the most sitelinks, the popular ones, at most half of all"
    )
    born_after: date = Field(description="first day of birth of the younger ones")
    top_k: int = Field(ge=1, description="words with the largest deviations")
    top_share: float = Field(
        gt=0, le=1, description="most that may be taken of all candidates, where they are few"
    )
    smoothing: float = Field(gt=0, description="added to every cell before PMI is computed")
    min_count: int = Field(ge=1, description="lists of a subgroup that must have the word")
    min_people: int = Field(ge=1, description="men, and women, that a subgroup must have")
    seed: int = Field(1, ge=0, lt=2**31, description="of the resampling")


class Part(NamedTuple):
    """What is known of a subgroup, for one part of speech."""

    counts: word_counts.Counts
    words: list[str]  # candidates
    classes: NDArray[np.int64] | None  # (words,) sentiments; None: of no word is it known
    size: int  # words taken
    seen: NDArray[np.float64]  # (1, groups, words) deviations
    distinct: NDArray[np.float64]  # the same over distinct names, which the tests go by
    replicates: NDArray[np.float64]  # (replicates, groups, words)
    permuted: NDArray[np.float64]  # (permutations, groups, words)

    def shares(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return shares (replicates, groups, sentiments) of the words that lead."""
        assert self.classes is not None
        return shares(np.round(values, DIGITS), self.classes, self.size, len(SENTIMENTS))

    def apart(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return female minus male, of an array whose axis before the last is groups."""
        female, male = np.searchsorted(self.counts.genders, (FEMALE, MALE))
        found: NDArray[np.float64] = np.take(values, female, -2) - np.take(values, male, -2)
        return found

    def gaps(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the shares of women minus those of men, (replicates, sentiments)."""
        return self.apart(self.shares(values))


def run(inputs: Inputs, params: Params) -> dict[str, pl.DataFrame]:
    """Compute the tables of one model.

    Returns
    -------
    dict
        ``people``, ``shares``, ``differences`` and ``agreement``; columns as in :data:`SCHEMAS`.
        The middle two are left out where no word's sentiment is known.

    Raises
    ------
    UserError
        If no subgroup has enough people and words.
    """
    (model,) = inputs.models
    outputs = inputs.outputs("associations", model)
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in SCHEMAS}
    for language in word_counts.languages(outputs):
        path = inputs.datasets["politicians"] / f"{language}.parquet"
        members = subgroups(pl.read_parquet(path), params)
        for i, (name, qids) in enumerate(members.items()):
            found["people"] += _people(path, qids, {"language": language, "subgroup": i})
            assert name == SUBGROUPS[i]
        for pos in range(len(POS)):
            source = word_counts.Lists((outputs / language,), pos)
            parts = {}
            for i, (name, qids) in enumerate(members.items()):
                people = word_counts.read_people(path, qids)
                if part := _part(inputs, source, language, people, i, params):
                    parts[name] = part
            base = {"language": language, "pos": pos}
            found["shares"] += [base | row for row in _shares(parts, params)]
            found["differences"] += [base | row for row in _differences(parts, params)]
            found["agreement"] += [base | row for row in _agreement(parts, params)]
    if not found["shares"] and not found["agreement"]:
        raise UserError(
            f"{outputs}: no subgroup has {params.min_people} men and women and a word in "
            f"{params.min_count} lists; lower analysis.subgroups.min_people or min_count"
        )
    tables = {}
    for name, rows in found.items():
        if rows:
            table = pl.DataFrame(rows, infer_schema_length=None).with_columns(model=pl.lit(model))
            if "family" in SCHEMAS[name].arrow().names:
                table = adjusted(table)
            tables[name] = typed(table, SCHEMAS[name])
    return tables


def subgroups(people: pl.DataFrame, params: Params) -> dict[str, pl.Series]:
    """Return the items of the people in each subgroup.

    Whose citizenship says nothing of a native language is neither native nor foreign; whose number
    of sitelinks is unknown is not popular. Of equally popular people the lower item number is more
    popular.
    """
    number = pl.col("qid").str.slice(1).cast(pl.Int64)
    ranked = people.sort([pl.col("popularity").fill_null(-1), number], descending=[True, False])
    best = min(params.top_sitelinks, len(people) // 2)
    return {
        "native": people.filter(pl.col("native"))["qid"],
        "foreign": people.filter(~pl.col("native"))["qid"],
        "popular": ranked["qid"][:best],
        "other": ranked["qid"][best:],
        "older": people.filter(pl.col("birth_date") < params.born_after)["qid"],
        "younger": people.filter(pl.col("birth_date") >= params.born_after)["qid"],
    }


def _people(path: Path, qids: pl.Series, base: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield how many people of each gender there are, also of those that nobody has."""
    people = word_counts.read_people(path, qids)
    for gender in range(len(GENDERS)):
        here = people.genders == gender
        names = int((here & people.first).sum())
        yield base | {"gender": gender, "people": int(here.sum()), "names": names}


def _part(
    inputs: Inputs,
    source: word_counts.Lists,
    language: str,
    people: word_counts.People,
    number: int,
    params: Params,
) -> Part | None:
    """Count, resample and permute the lists of a subgroup; None where there are too few."""
    counts = word_counts.count(source, people)
    of = dict(zip(counts.genders.tolist(), counts.people.tolist(), strict=True))
    if min(of.get(MALE, 0), of.get(FEMALE, 0)) < params.min_people:
        return None
    chosen = counts.common(params.min_count)
    words, lemmas = ([of[w] for w in chosen] for of in (counts.words, counts.lemmas))
    q = of_words(words, lemmas, inputs.datasets["lexica"], language)
    known = ~np.isnan(q).any(axis=1)
    classes = None
    if known.any():
        chosen, classes = chosen[known], argmax(q[known])
    if not len(chosen):
        return None
    draws = bootstrap_counts(counts, chosen, params.n_bootstrap, params.seed)
    null = permute_counts(counts, chosen, (MALE, FEMALE), params.n_permutations, params.seed)
    merged = draws.merged
    added = smoothed(draws.bayesian, params.smoothing, [params.seed, number], merged)

    def observed(table: NDArray[np.int64]) -> NDArray[np.float64]:
        rest = np.delete(table, chosen, axis=0).sum(axis=0, keepdims=True)
        kept = np.concatenate([table[chosen], rest]) if merged else table[chosen]
        return _deviations(kept[:, :, None], params.smoothing, merged)

    return Part(
        counts,
        [counts.words[w] for w in chosen],
        classes,
        max(1, min(params.top_k, int(params.top_share * len(chosen)))),
        observed(counts.lists),
        observed(counts.distinct),
        _deviations(added, 0.0, merged),
        _deviations(null, params.smoothing, merged),
    )


def _deviations(draws: NDArray[Any], smoothing: float, merged: int) -> NDArray[np.float64]:
    """Return PMI, (replicates, groups, words), of counts (words, groups, replicates)."""
    found = pmi(np.moveaxis(draws, -1, 0), smoothing, merged)
    return np.swapaxes(found[:, :-1] if merged else found, 1, 2)


def _shares(parts: dict[str, Part], params: Params) -> Iterator[dict[str, Any]]:
    """Yield the share of each sentiment for each gender and subgroup."""
    for name, part in parts.items():
        if part.classes is None:
            continue
        seen, drawn = part.shares(part.seen), part.shares(part.replicates)
        tested, null = part.shares(part.distinct), part.shares(part.permuted)
        for g, gender in enumerate(part.counts.genders):
            for s in range(len(SENTIMENTS)):
                middle = float(null[:, g, s].mean())
                p = permutation_p(float(tested[0, g, s]) - middle, null[:, g, s] - middle)
                found = _estimate(seen[0, g, s], drawn[:, g, s], part.counts.clusters, params)
                yield found.row(
                    subgroup=SUBGROUPS.index(name),
                    gender=int(gender),
                    sentiment=s,
                    top_k=part.size,
                    candidates=len(part.words),
                    names=int(part.counts.names[g]),
                    cluster="name",
                    null="genders permuted over the subgroup's names",
                    p=p if gender in (MALE, FEMALE) else None,
                )


def _differences(parts: dict[str, Part], params: Params) -> Iterator[dict[str, Any]]:
    """Yield differences of genders within subgroups, and of those between subgroups."""
    gaps = {
        name: [part.gaps(x) for x in (part.seen, part.replicates, part.distinct, part.permuted)]
        for name, part in parts.items()
        if part.classes is not None
    }
    rows = [
        (name, gap, parts[name].counts.clusters, "the subgroup's names")
        for name, gap in gaps.items()
    ]
    for one, other in PAIRS:
        if one in gaps and other in gaps:
            both = [a - b for a, b in zip(gaps[one], gaps[other], strict=True)]
            n = parts[one].counts.clusters + parts[other].counts.clusters
            rows.append((f"{one} against {other}", both, n, "the names of either subgroup"))
    for contrast, (seen, drawn, tested, null), n, where in rows:
        for s in range(len(SENTIMENTS)):
            yield _estimate(seen[0, s], drawn[:, s], n, params).row(
                contrast=CONTRASTS.index(contrast),
                sentiment=s,
                cluster="name",
                null=f"genders permuted over {where}",
                p=permutation_p(float(tested[0, s]), null[:, s]),
            )


def _agreement(parts: dict[str, Part], params: Params) -> Iterator[dict[str, Any]]:
    """Yield Spearman's correlation, over words, of PMI female minus male in two subgroups."""
    for one, other in PAIRS:
        if one not in parts or other not in parts:
            continue
        words = sorted(set(parts[one].words) & set(parts[other].words))
        if len(words) < 4:
            continue
        values = []
        for part in (parts[one], parts[other]):
            place = {word: i for i, word in enumerate(part.words)}
            rows = [place[word] for word in words]
            kinds = (part.seen, part.replicates, part.distinct, part.permuted)
            values.append([part.apart(x[..., rows]) for x in kinds])
        seen, drawn, tested, null = (rank_correlations(a, b) for a, b in zip(*values, strict=True))
        if not np.isfinite(seen[0]) or not np.isfinite(tested[0]):
            continue
        n = parts[one].counts.clusters + parts[other].counts.clusters
        yield _estimate(seen[0], drawn, n, params).row(
            contrast=CONTRASTS.index(f"{one} against {other}"),
            words=len(words),
            cluster="name",
            null="genders permuted over the names of either subgroup",
            p=permutation_p(float(tested[0]), null),
        )


def _estimate(value: float, drawn: NDArray[np.float64], n: int, params: Params) -> Estimate:
    """Return an estimate with its interval.

    A replicate ranks words anew, with more noise than the data, and so is drawn towards no
    difference: the interval is stretched to hold the estimate.
    """
    limits = percentiles(drawn, params.confidence)
    method = f"{params.confidence:.0%} Bayesian bootstrap percentile over names"
    value = float(value)
    return Estimate(value, min(float(limits.low), value), max(float(limits.high), value), n, method)
