"""The sentiment of words, and its shares among those that deviate most towards each gender."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl

from plumbline.builders.datasets.lexica.build import SENTIMENTS
from plumbline.probes.politicians.words.columns import FEMALE, MALE
from plumbline.probes.stats import shares
from plumbline.probes.stats.estimate import Estimate, finite
from plumbline.probes.stats.intervals import newcombe, wilson
from plumbline.probes.stats.tests import fisher_p, permutation_p

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from plumbline.probes.politicians.words.word_counts import Named

NUMBER = len(SENTIMENTS)
Q = tuple(f"q_{sentiment}" for sentiment in SENTIMENTS)
DEVIATIONS = ("pmi", "latent", "latent-faithful")  # what words are ranked by
READINGS = ("pairs", "argmax")  # what is ranked, and how sentiments are counted
NEUTRAL = SENTIMENTS.index("neutral")


class Settings(NamedTuple):
    """How many words are taken, and how much is resampled."""

    top_k: int
    top_share: float
    smoothing: float
    n_permutations: int
    n_bootstrap: int
    confidence: float
    seed: int

    def size(self, candidates: int) -> int:
        """Return how many of so many candidates are taken."""
        return max(1, min(self.top_k, int(self.top_share * candidates)))


class Ranking(NamedTuple):
    """Sentiments of the largest deviations; one row a gender."""

    genders: tuple[int, ...]
    names: dict[int, int]  # distinct names of each gender
    hits: NDArray[np.int64]  # (genders, sentiments): how many of the largest
    size: int  # how many are taken
    base: NDArray[np.float64]  # (sentiments,): shares among all candidates
    candidates: int
    left_out: int  # words without a known sentiment
    replicates: NDArray[np.float64] | None  # (replicates, genders, sentiments): shares, over names
    permuted: NDArray[np.float64] | None  # the same, male and female permuted over names


def of_words(
    words: Sequence[str], lemmas: Sequence[str], lexica: Path, language: str
) -> NDArray[np.float64]:
    """Return q(s | w) for words, an array (words, sentiments); nan for a word in no lexicon.

    A form is looked up as it is, then in lower case, then by its lemma.

    Parameters
    ----------
    lexica
        Folder of the dataset, with a config for the language or without.
    """
    path = lexica / f"{language}.parquet"
    if not path.is_file():
        return np.full((len(words), len(Q)), np.nan)
    lexicon = pl.read_parquet(path, columns=["word", *Q])
    shares = lexicon.select(Q).to_numpy().astype(np.float64)
    shares = shares / shares.sum(axis=1, keepdims=True)  # they are rounded in the dataset
    place = {word: i for i, word in enumerate(lexicon["word"].to_list())}
    none = np.full(len(Q), np.nan)
    rows = [
        next((place[key] for key in (word, word.lower(), lemma) if key in place), None)
        for word, lemma in zip(words, lemmas, strict=True)
    ]
    return np.array([none if row is None else shares[row] for row in rows]).reshape(-1, len(Q))


def argmax(q: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the most probable sentiment of each word; neutral where two are equally probable.

    Examples
    --------
    >>> argmax(np.array([[0.6, 0.2, 0.2], [0.4, 0.4, 0.2]])).tolist()
    [0, 2]
    """
    best = np.isclose(q, q.max(axis=1, keepdims=True))
    return np.where(best.sum(axis=1) == 1, best.argmax(axis=1), NEUTRAL)


def by_pmi(lists: Named, q: NDArray[np.float64], settings: Settings) -> Ranking | None:
    """Rank words by their smoothed PMI over distinct names; each counts with the argmax of q.

    Parameters
    ----------
    q : (words, sentiments) array
        q(s | w); rows of nan for words of which it is not known, which are left out.

    Returns
    -------
    Ranking or None
        None where no word has a known sentiment, or where there is but one gender.
    """
    known = np.flatnonzero(~np.isnan(q).any(axis=1))
    if not len(known) or len(lists.labels) < 2:
        return None
    classes, size = argmax(q[known]), settings.size(len(known))
    matrix = lists.matrix.tocsc()[:, known].tocsr()
    ranked = shares.NameShares(matrix, lists.genders, classes, size, NUMBER, settings.smoothing)
    both = MALE in lists.labels and FEMALE in lists.labels
    return Ranking(
        lists.labels,
        lists.of_gender(),
        np.rint(ranked.seen() * size).astype(np.int64),
        size,
        np.bincount(classes, minlength=NUMBER) / len(known),
        len(known),
        len(q) - len(known),
        ranked.resampled(settings.n_bootstrap, settings.seed),
        ranked.permuted(
            settings.n_permutations,
            settings.seed,
            (lists.labels.index(MALE), lists.labels.index(FEMALE)),
        )
        if both and settings.n_permutations
        else None,
    )


def by_latent(
    table: pl.DataFrame,
    reading: str,
    settings: Settings,
    names: dict[int, int],
    column: str = "value",
) -> Ranking | None:
    """Rank pairs of word and sentiment, or words, by the deviation of the latent-variable model.

    Parameters
    ----------
    table
        Columns word, gender, sentiment (codes), q and ``column``, for one language and part of
        speech.
    reading
        ``pairs``: the (word, sentiment) pairs with the largest deviations, each counting for its
        sentiment. ``argmax``: the words whose largest deviation over sentiments is largest, each
        counting for the sentiment that q holds most probable.
    names
        Distinct names of each gender.
    """
    words = table["word"].unique().sort().to_list()
    genders = tuple(sorted(table["gender"].unique().to_list()))
    if not words or len(genders) < 2:
        return None
    row = {word: i for i, word in enumerate(words)}
    eta = np.full((len(genders), len(words), NUMBER), np.nan)
    q = np.full((len(words), NUMBER), np.nan)
    for word, gender, sentiment, value, known in table.select(
        "word", "gender", "sentiment", column, "q"
    ).iter_rows():
        eta[genders.index(gender), row[word], sentiment] = np.nan if value is None else value
        q[row[word], sentiment] = np.nan if known is None else known
    there = ~np.isnan(q).any(axis=1) & ~np.isnan(eta).any(axis=(0, 2))
    if not there.any():
        return None
    eta, q = eta[:, there], q[there]
    if reading == "pairs":
        deviations = eta.reshape(len(genders), -1)
        classes = np.tile(np.arange(NUMBER), len(q))
    else:
        deviations, classes = eta.max(axis=2), argmax(q)
    size = settings.size(len(classes))
    chosen = classes[shares.largest(deviations, size)]
    hits = np.stack([(chosen == s).sum(axis=1) for s in range(NUMBER)], axis=1)
    base = np.bincount(classes, minlength=NUMBER) / len(classes)
    left_out = len(words) - int(there.sum())
    return Ranking(genders, names, hits, size, base, len(classes), left_out, None, None)


def share_rows(ranking: Ranking, settings: Settings) -> Iterator[dict[str, Any]]:
    """Yield the share of each sentiment for each gender."""
    for (g, gender), s in product(enumerate(ranking.genders), range(NUMBER)):
        hits = int(ranking.hits[g, s])
        found = wilson(hits, ranking.size, settings.confidence)
        if ranking.replicates is not None:
            drawn = ranking.replicates[:, g, s]
            ends = shares.symmetric(drawn, found.value, settings.confidence, 0.0)
            found = Estimate(found.value, *ends, ranking.names.get(gender, 0), shares.OVER_NAMES)
        yield found.at(settings.confidence).row(
            gender=gender,
            sentiment=s,
            hits=hits,
            **_sizes(ranking),
            base=finite(ranking.base[s]),
            names=ranking.names.get(gender, 0),
            cluster="word" if ranking.replicates is None else "name",
            null="base: share among all candidates",
        )


def difference_rows(ranking: Ranking, settings: Settings) -> Iterator[dict[str, Any]]:
    """Yield the difference male minus female of each share, by each test that there is."""
    if not {MALE, FEMALE} <= set(ranking.genders):
        return
    m, f = ranking.genders.index(MALE), ranking.genders.index(FEMALE)
    sizes = (ranking.size, ranking.size)
    for s in range(NUMBER):
        hits = ranking.hits[[m, f], s]
        found = newcombe((hits[0], hits[1]), sizes, settings.confidence)
        key = {"sentiment": s, **_sizes(ranking)}
        yield found._replace(
            method=f"{settings.confidence:.0%} {found.method}, words taken as independent"
        ).row(
            test=0,
            cluster="word",
            null="words of both lists permuted, exact",
            p=fisher_p(hits[None], np.array(sizes))[0, 0],
            **key,
        )
        if ranking.replicates is None or ranking.permuted is None:
            continue
        drawn, null = (x[:, m, s] - x[:, f, s] for x in (ranking.replicates, ranking.permuted))
        ends = shares.symmetric(drawn, found.value, settings.confidence, -1.0)
        n = ranking.names[MALE] + ranking.names[FEMALE]
        found = Estimate(found.value, *ends, n, shares.OVER_NAMES).at(settings.confidence)
        yield found.row(
            test=1,
            cluster="name",
            null=f"genders permuted over names, {len(null):,} times",
            p=permutation_p(found.value, null),
            **key,
        )


def _sizes(ranking: Ranking) -> dict[str, int]:
    return {
        "top_k": ranking.size,
        "candidates": ranking.candidates,
        "left_out": ranking.left_out,
    }
