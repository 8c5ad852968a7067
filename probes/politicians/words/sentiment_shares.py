"""Shares of sentiments among the words most associated with each gender."""

from __future__ import annotations

import re
from itertools import product
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import polars as pl
from pydantic import Field

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.params import Params
from plumbline.builders.datasets.lexica.build import SENTIMENTS
from plumbline.builders.datasets.lexica.published import OF, PUBLISHED
from plumbline.builders.datasets.politicians.person import GENDERS
from plumbline.probes.politicians.words.word_counts import FEMALE, MALE
from plumbline.probes.stats import shares
from plumbline.probes.stats.estimate import Estimate, Resampling, finite
from plumbline.probes.stats.intervals import newcombe
from plumbline.probes.stats.tests import fisher_p, permutation_p

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from plumbline.probes.politicians.words.word_counts import Named

NUMBER = len(SENTIMENTS)
Q = tuple(f"q_{sentiment}" for sentiment in SENTIMENTS)
DEVIATIONS = _, FAITHFUL = "pmi", "latent-faithful"  # quantities by which words are ranked
READINGS = ("pairs", "argmax")  # the ranked units, and how their sentiments are counted
NEUTRAL = SENTIMENTS.index("neutral")
MAJORITY = 0.5  # minimum probability of a sentiment other than neutral in the published lexicon
MARKS = re.compile("[\u0610-\u061a\u0640\u064b-\u065f\u0670\u06d6-\u06ed]")  # vowel marks of Arabic
YO = str.maketrans("\u0451\u0401", "\u0435\u0415")


class Lexicon(Params):
    """Choice of a sentiment lexicon; a base class for the ``Params`` of an analysis."""

    lexicon: Literal["combined", "published"] = Field(
        "combined",
        description="English lexicon: `combined` is built by this project, `published` is the "
        "paper's (a config of lexica); must be equal in all analyses",
    )

    def file(self, lexica: Path, language: str) -> Path:
        """Return the path of the lexicon of a language, whether or not the file exists."""
        if self.lexicon != PUBLISHED or language != OF:
            return lexica / f"{language}.parquet"
        path = lexica / f"{PUBLISHED}.parquet"
        if not path.is_file():
            raise UserError(
                f"{lexica}: config {PUBLISHED} is missing, but `lexicon` requires it; set "
                "datasets.lexica.published to true, or lexicon to combined"
            )
        return path

    def sentiments(self, lexica: Path, language: str, words: pl.DataFrame) -> NDArray[np.float64]:
        """Return q(s | w), of shape (words, sentiments); nan for words that no lexicon contains.

        A word is looked up as written, in lower case, by its lemma, and by its most frequent form;
        if none is found, all four are looked up again after :func:`bare`.

        ``lexica``: folder of the dataset, which may have no config for the language.
        ``words``: columns word, lemma and form.
        """
        path = self.file(lexica, language)
        none = np.full(NUMBER, np.nan)
        if not path.is_file():
            return np.tile(none, (len(words), 1))
        lexicon = pl.read_parquet(path, columns=["word", *Q])
        q = lexicon.select(Q).to_numpy().astype(np.float64)
        q /= q.sum(axis=1, keepdims=True)  # the stored probabilities are rounded
        listed = dict(zip(lexicon["word"], q, strict=True))
        for word in lexicon["word"]:
            listed.setdefault(bare(word), listed[word])
        rows = []
        for word, lemma, form in words.select("word", "lemma", "form").iter_rows():
            written = (word, word.lower(), lemma, form)
            keys = (*written, *map(bare, written))
            rows.append(next((listed[key] for key in keys if key in listed), none))
        return np.array(rows).reshape(-1, NUMBER)

    def classes(self, q: NDArray[np.float64], language: str) -> NDArray[np.int64]:
        """Return the sentiment of each word: the most probable one, or neutral in case of a tie.

        In the published lexicon, neutral is not the most probable sentiment of any word. There, a
        word is neutral unless positive or negative has a probability above :data:`MAJORITY`.
        """
        classes = argmax(q)
        if self.lexicon == PUBLISHED and language == OF:
            classes[q.max(axis=1) <= MAJORITY] = NEUTRAL
        return classes


class TopWords(Lexicon, Resampling):
    """Numbers of selected words and of resamples; a base class for ``Params``."""

    top_k: int = Field(ge=1, description="number of words (or pairs) to select")
    top_share: float = Field(gt=0, le=1, description="maximum share of the candidates to select")
    smoothing: float = Field(gt=0, description="constant added to every count for PMI")

    def size(self, candidates: int) -> int:
        """Return the number of selected candidates."""
        return max(1, min(self.top_k, int(self.top_share * candidates)))


class Ranking(NamedTuple):
    """Sentiments of the words or pairs that deviate most, with one row per gender."""

    genders: tuple[int, ...]
    names: dict[int, int]  # number of distinct names of each gender
    hits: NDArray[np.int64]  # (genders, sentiments): counts among the selection
    top_k: int
    candidates: int
    base: NDArray[np.float64]  # (sentiments,): shares among all candidates
    replicates: NDArray[np.float64] | None = None  # (replicates, genders, sentiments): shares
    permuted: NDArray[np.float64] | None = None  # the same for permuted genders


def bare(word: str) -> str:
    """Normalise the spellings of a word that differ between treebanks and lexica.

    Arabic lemmas have vowel marks in PADT but not in lexica; Russian lemmas have the letter yo in
    lexica but not in GSD and SynTagRus.

    Examples
    --------
    >>> bare("т\u0451мный") == "темный"
    True
    """
    return MARKS.sub("", word).translate(YO)


def argmax(q: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the most probable sentiment of each word; neutral in case of a tie.

    Examples
    --------
    >>> argmax(np.array([[0.6, 0.2, 0.2], [0.4, 0.4, 0.2]])).tolist()
    [0, 2]
    """
    best = np.isclose(q, q.max(axis=1, keepdims=True))
    return np.where(best.sum(axis=1) == 1, best.argmax(axis=1), NEUTRAL)


def tested(base: NDArray[Any]) -> NDArray[np.intp]:
    """Return the sentiments to test: all or, if only two occur, the first, as both tests agree.

    ``base``: shares of the sentiments among the candidates, of shape (sentiments,).
    """
    present = np.flatnonzero(base)
    return present[: max(len(present) - 1, 0)] if len(present) < NUMBER else present


def by_pmi(lists: Named, q: NDArray[np.float64], how: TopWords, language: str) -> Ranking | None:
    """Rank words by smoothed PMI over distinct names, and count their sentiments.

    Returns None if no word has a known sentiment, or only one gender occurs.

    ``q``: q(s | w), of shape (words, sentiments); words whose row is nan are omitted.
    """
    has_q = np.flatnonzero(~np.isnan(q).any(axis=1))
    if not len(has_q) or len(lists.labels) < 2:
        return None
    classes, size = how.classes(q[has_q], language), how.size(len(has_q))
    matrix = lists.matrix.tocsc()[:, has_q].tocsr()
    ranked = shares.NameShares(matrix, lists.genders, classes, size, NUMBER, how.smoothing)
    permuted = None
    if {MALE, FEMALE} <= set(lists.labels) and how.n_permutations:
        pair = lists.labels.index(MALE), lists.labels.index(FEMALE)
        permuted = ranked.permuted(how.n_permutations, how.seed, pair)
    return Ranking(
        lists.labels,
        lists.of_gender(),
        np.rint(ranked.seen() * size).astype(np.int64),
        size,
        len(has_q),
        np.bincount(classes, minlength=NUMBER) / len(has_q),
        ranked.resampled(how.n_bootstrap, how.seed),
        permuted,
    )


def by_latent(
    table: pl.DataFrame, reading: str, how: TopWords, names: dict[int, int], language: str
) -> Ranking | None:
    """Rank words, or pairs of word and sentiment, by deviations of the latent-variable model.

    ``table``: rows of the table ``latent`` for one language and part of speech.
    ``reading``: the largest deviations are either those of (word, sentiment) pairs, each of which
    counts for its sentiment (``pairs``), or those of words by the largest of their three
    deviations, each of which counts for its sentiment in the lexicon (``argmax``).
    ``names``: number of distinct names of each gender.
    """
    genders = tuple(code for code, gender in enumerate(GENDERS) if gender in table["gender"])
    if len(genders) < 2:
        return None
    gender, sentiment = pl.col("gender").cast(pl.Enum(GENDERS)), pl.Enum(SENTIMENTS)
    table = table.sort(gender, "word", pl.col("sentiment").cast(sentiment))
    eta = table["value"].to_numpy().reshape(len(genders), -1, NUMBER)
    q = table["q"].cast(pl.Float64).to_numpy().reshape(eta.shape)[0]
    complete = ~np.isnan(q).any(axis=1)
    if not complete.any():
        return None
    eta, classes = eta[:, complete], how.classes(q[complete], language)
    if reading == "argmax":
        deviations = eta.max(axis=2)
    else:
        deviations = eta.reshape(len(genders), -1)
        classes = np.tile(np.arange(NUMBER), len(classes))
    size = how.size(len(classes))
    chosen = classes[shares.largest(deviations, size)]
    return Ranking(
        genders,
        names,
        np.stack([(chosen == s).sum(axis=1) for s in range(NUMBER)], axis=1),
        size,
        len(classes),
        np.bincount(classes, minlength=NUMBER) / len(classes),
    )


def share_rows(ranking: Ranking, confidence: float) -> Iterator[dict[str, Any]]:
    """Yield the share of each sentiment that candidates express; see :func:`difference_rows`."""
    for (g, gender), s in product(enumerate(ranking.genders), np.flatnonzero(ranking.base)):
        share = float(ranking.hits[g, s] / ranking.top_k)
        estimate = Estimate(share, np.nan, np.nan, ranking.top_k)
        if ranking.replicates is not None:
            ends = shares.symmetric(ranking.replicates[:, g, s], share, confidence, 0.0)
            estimate = Estimate(share, *ends, ranking.names[gender])
        key: dict[str, Any] = {"gender": GENDERS[gender], "sentiment": SENTIMENTS[s]}
        key |= {"top_k": ranking.top_k, "candidates": ranking.candidates}
        yield estimate.row(**key, base=finite(ranking.base[s]))


def difference_rows(ranking: Ranking, confidence: float) -> Iterator[dict[str, Any]]:
    """Yield the difference of each share, male minus female, for each available test.

    Rankings by the latent-variable model have neither tests nor intervals. The frequency of a
    sentiment within a gender is a separate parameter: eta is normalised within each sentiment and
    gender, so the level of deviations differs between sentiments even if no word differs.
    """
    if not {MALE, FEMALE} <= set(ranking.genders):
        return
    m, f = ranking.genders.index(MALE), ranking.genders.index(FEMALE)
    size, (replicates, permuted) = ranking.top_k, ranking[-2:]
    selective = replicates is not None and size < ranking.candidates
    with_test = tested(ranking.base) if selective else ()
    for s in map(int, np.flatnonzero(ranking.base)):
        hits, has_test = ranking.hits[[m, f], s], s in with_test
        by_words = newcombe((hits[0], hits[1]), (size, size), confidence)
        value = by_words.value
        if replicates is None:
            by_words = Estimate(value, np.nan, np.nan, by_words.n)
        p = fisher_p(hits[None], np.full(2, size))[0, 0] if has_test else None
        yield by_words.row(test="words", p=p, sentiment=SENTIMENTS[s], reach=1.0)
        if replicates is not None and permuted is not None:
            sampled, null = (x[:, m, s] - x[:, f, s] for x in (replicates, permuted))
            ends = shares.symmetric(sampled, value, confidence, -1.0)
            by_names = Estimate(value, *ends, ranking.names[MALE] + ranking.names[FEMALE])
            p = float(permutation_p(value, null)) if has_test else None
            yield by_names.row(test="names", p=p, sentiment=SENTIMENTS[s], reach=1.0)
