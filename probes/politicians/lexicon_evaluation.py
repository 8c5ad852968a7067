"""Analysis ``lexicon_evaluation``: how well lexica tell the sentiment of labelled texts.

In kind the comparison of Stańczak et al. (2023), Table 12: the combination of the lexica, each of
them, and their plain mean. The rule by which a text is classified is ours: the mean score of the
words that the lexicon has, cut in two places that are chosen on other texts. No model is loaded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl

from plumbline.builders.core import parquet
from plumbline.builders.core.errors import UserError
from plumbline.builders.core.schema import Column, Schema
from plumbline.builders.datasets.labelled_texts.build import LABELS, SPLITS
from plumbline.builders.datasets.lexica.published import OF, PUBLISHED
from plumbline.probes.politicians.words import columns
from plumbline.probes.politicians.words.segmentation import known_words
from plumbline.probes.stats.classification import (
    Agreement,
    Chance,
    Difference,
    agreement,
    chance,
    dealt_p,
    difference,
)
from plumbline.probes.stats.estimate import (
    TESTED_ERROR,
    Estimate,
    Resampling,
    estimates,
    finite,
    least_p,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from plumbline.probes.core.run_analysis import Inputs

    Labels = NDArray[np.int64]
    Floats = NDArray[np.float64]
    Lexicon = dict[str, float]
    Texts = tuple[Sequence[Sequence[str]], Labels]

DATASETS = ("lexica", "labelled_texts")
KINDS = ("combination", "plain mean", "view", "majority class", "published")
MEASURES = ("accuracy", "macro-F1")
NEGATIVE, NEUTRAL, POSITIVE = range(3)  # the labels, in TweetEval's order
PLACES = 40  # cuts tried on either side
DEALT = "-null"  # ends the name of a corpus whose labels were dealt out: a negative control
CODES = {"positive": POSITIVE, "negative": NEGATIVE, "neutral": NEUTRAL}
PLACE = (
    Column("language", "string", "config of `lexica` and `labelled_texts`"),
    Column("source", "string", "corpus of labelled texts"),
    Column("kind", "category", "what the words' scores are", labels=KINDS),
    Column("lexicon", "string", "name of the view, else the kind"),
    Column("measure", "category", "of the labels that the texts are given", labels=MEASURES),
)
METHOD = "95% percentile bootstrap over texts"
AGREEMENT = Schema.keyed(
    PLACE,
    columns.share("unknown", "share of the testing texts without any word of it"),
    Column("negative_below", "float64", "means below it are negative", nullable=True),
    Column("positive_above", "float64", "means above it are positive", nullable=True),
    columns.share(
        "chance",
        "expected value if the same labels were dealt out to the texts at random; like the value "
        "null where no tuning text has a word of the lexicon",
        nullable=True,
    ),
    *estimates(
        cluster="text",
        method=METHOD,
        # giving labels of several kinds has the better macro-F1 even where they mean nothing
        null="accuracy: the majority class does as well (McNemar's exact test); macro-F1: chance "
        "(randomisation)",
    ),
)
DIFFERENCES = Schema.keyed(
    PLACE,
    *estimates(
        cluster="text",
        method=METHOD,
        null="0: both do equally well (accuracy: McNemar's exact test; macro-F1: randomisation)",
    ),
)
SCHEMAS = {"agreement": AGREEMENT, "differences": DIFFERENCES}
INTERVALS = {"confidence", "n_bootstrap", "seed"}  # params of intervals


class Params(Resampling):
    """How intervals and tests are made."""


class Evaluation(NamedTuple):
    """How well one lexicon does, and by how much the first one does better."""

    lexicon: Any  # its key
    covered: float  # share of the texts with a word of it
    low: float  # texts under it are negative
    high: float  # texts over it are positive
    agreement: Agreement
    chance: Chance
    first_less_this: Difference | None  # None for the first lexicon
    less_majority: Difference
    dealt_p: float  # of macro-F1 against the same labels dealt out at random


def run(inputs: Inputs, params: Params) -> dict[str, pl.DataFrame]:
    """Evaluate the lexica of every language that has labelled texts, corpus by corpus.

    The tables are ``agreement`` and ``differences``; columns as in :data:`SCHEMAS`.

    Raises UserError if a language has texts but no lexica, or a corpus lacks a split.
    """
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in SCHEMAS}
    folder = inputs.datasets["labelled_texts"]
    for language in parquet.configs(folder):
        compared = scores(inputs.datasets["lexica"], language)
        texts = pl.read_parquet(folder / f"{language}.parquet").sort("source", "split", "text")
        for (source,), part in texts.group_by("source", maintain_order=True):
            for name, row in _rows(f"{language}/{source}", part, compared, params):
                found[name].append(row | {"language": language, "source": source})
    return {name: _table(SCHEMAS[name], rows, params) for name, rows in found.items()}


def _table(schema: Schema, rows: list[dict[str, Any]], params: Params) -> pl.DataFrame:
    """Return rows as a table; all tests are a family, those of negative controls another."""
    parts = [pl.DataFrame(rows, infer_schema_length=None)] if rows else []
    parts = [part.with_columns(dealt=pl.col("source").str.ends_with(DEALT)) for part in parts]
    return columns.table_of(schema, parts, params.confidence, ["dealt"], "least")


def scores(lexica: Path, language: str) -> dict[tuple[str, str], Lexicon]:
    """Return the scores of words, -1 to 1, by kind and name of the lexicon.

    The combination's score is q(positive) - q(negative), the plain mean's and the views' are as in
    the dataset. Of English the published combination is there too, where the dataset has it.

    ``lexica``: folder of the dataset ``lexica``.
    """
    path = lexica / f"{language}.parquet"
    if not path.is_file():
        raise UserError(
            f"{path}: no lexica for the labelled texts in {language!r}; add the language to "
            "datasets.lexica.languages, or take it out of datasets.labelled_texts.languages"
        )
    read = ["word", "q_positive", "q_negative", "score", "view_names", "view_scores"]
    frame = pl.read_parquet(path, columns=read)
    side = frame["q_positive"] - frame["q_negative"]
    found = {
        ("combination", "combination"): dict(zip(frame["word"], side, strict=True)),
        ("plain mean", "plain mean"): dict(zip(frame["word"], frame["score"], strict=True)),
    }
    views = frame.explode("view_names", "view_scores").sort("view_names", "word")
    for (name,), part in views.group_by("view_names", maintain_order=True):
        found["view", str(name)] = dict(zip(part["word"], part["view_scores"], strict=True))
    if language == OF and (path := lexica / f"{PUBLISHED}.parquet").is_file():
        theirs = pl.read_parquet(path).select("word", pl.col("q_positive") - pl.col("q_negative"))
        found[PUBLISHED, PUBLISHED] = dict(theirs.iter_rows())
    return found


def mean_scores(texts: Iterable[Sequence[str]], lexicon: Mapping[str, float]) -> Floats:
    """Return the mean score of each text's words, (texts,); NaN where the lexicon has none.

    Examples
    --------
    >>> mean_scores([["good", "but", "bad", "food"], ["nothing"]], {"good": 1.0, "bad": -0.5})
    array([0.25,  nan])
    """
    scores = ([lexicon[word] for word in text if word in lexicon] for text in texts)
    return np.array([sum(own) / len(own) if own else np.nan for own in scores], dtype=np.float64)


def classify(scores: Floats, low: float, high: float, rest: int = NEUTRAL) -> Labels:
    """Return negative under ``low``, positive over ``high``; others and NaN are ``rest``."""
    return np.where(scores > high, POSITIVE, np.where(scores < low, NEGATIVE, rest))


def cuts(scores: Floats, labels: Labels, rest: int = NEUTRAL) -> tuple[float, float]:
    """Return the two cuts, at quantiles of the scores, whose classes have the best macro-F1.

    Of equally good ones the lowest is taken. What is neither under nor over is ``rest``.
    """
    known = scores[~np.isnan(scores)]
    if not len(known):
        raise ValueError("no text has a word of the lexicon")
    places = np.unique(np.quantile(known, np.linspace(0, 1, PLACES)).round(6))
    best = (-1.0, 0.0, 0.0)
    for i, low in enumerate(places):
        for high in places[i:]:
            table = np.bincount(labels * 3 + classify(scores, low, high, rest), minlength=9)
            table = table.reshape(3, 3)
            total = table.sum(0) + table.sum(1)
            f1 = float((2 * table.diagonal() / np.where(total > 0, total, 1)).mean())
            if f1 > best[0] + 1e-12:
                best = (f1, float(low), float(high))
    return best[1], best[2]


def majority(labels: Labels) -> int:
    """Return the most frequent label; of equally frequent ones the first."""
    return int(np.bincount(labels).argmax())


def evaluate(
    tuning: Texts,
    testing: Texts,
    lexica: Mapping[Any, Mapping[str, float]],
    params: Params,
) -> list[Evaluation]:
    """Cut each lexicon's mean scores on the tuning texts, and classify the others.

    ``tuning``, ``testing``: the words of each text, and labels 0 negative, 1 neutral, 2 positive.
    Where no tuning text is neutral, texts between the cuts, and those without any word of a
    lexicon, get the most frequent label of the tuning texts; else they are neutral.
    ``lexica``: score of each word, -1 to 1, by key of the lexicon; the first one is compared with
    all others on the same texts.

    Returned: in the order of ``lexica``. Unit: a text. ``less_majority`` compares with giving all
    texts the most frequent label of the tuning texts, ``dealt`` with the same labels in random
    order.

    Raises ValueError if no tuning text has a word of a lexicon.
    """
    settings = params.model_dump(include=INTERVALS)
    paired = settings | {"n_permutations": params.n_permutations}
    texts, true = testing
    most = majority(tuning[1])
    rest = NEUTRAL if (tuning[1] == NEUTRAL).any() else most
    same = np.full(len(true), most)
    found: list[Evaluation] = []
    first = None
    for name, lexicon in lexica.items():
        low, high = cuts(mean_scores(tuning[0], lexicon), tuning[1], rest)
        scores = mean_scores(texts, lexicon)
        guess = classify(scores, low, high, rest)
        one = Evaluation(
            name,
            float((~np.isnan(scores)).mean()),
            low,
            high,
            agreement(true, guess, **settings),
            chance(true, guess),
            None if first is None else difference(true, first, guess, **paired),
            difference(true, guess, same, **paired),
            dealt_p(true, guess, params.n_permutations, params.seed),
        )
        first = guess if first is None else first
        found.append(one)
    return found


def _texts(corpus: str, part: pl.DataFrame, split: str, known: Collection[str]) -> Texts:
    """Return the known words of the texts of a split, and labels, numbered as in TweetEval."""
    rows = part.filter(pl.col("split") == SPLITS.index(split))
    if rows.is_empty():
        raise UserError(f"labelled_texts {corpus}: no {split} text is left; name another corpus")
    labels = np.array([CODES[label] for label in LABELS], dtype=np.int64)
    language = corpus.partition("/")[0]
    return known_words(rows["text"], known, language), labels[rows["label"].to_numpy()]


def _rows(
    corpus: str, part: pl.DataFrame, compared: dict[tuple[str, str], Lexicon], params: Params
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the rows of one corpus, each with the name of its table."""
    every: set[str] = set().union(*compared.values())
    tuning, testing = (_texts(corpus, part, split, every) for split in SPLITS)
    known = {
        key: lexicon
        for key, lexicon in compared.items()
        if not np.isnan(mean_scores(tuning[0], lexicon)).all()
    }
    if ("combination", "combination") not in known:
        raise UserError(
            f"labelled_texts {corpus}: no tuning text has a word of lexica; mend one of them"
        )
    for one in evaluate(tuning, testing, known, params):
        yield from (("agreement", row) for row in _evaluated(one, params))
        if less := one.first_less_this:
            for row in _measured(one.lexicon, less[:2], params, p=[less.p, less.p_macro_f1]):
                yield "differences", row
    number = len(testing[0])
    nothing = [Estimate(np.nan, np.nan, np.nan, number)] * len(MEASURES)
    for key in [key for key in compared if key not in known]:
        unknown = finite(float(np.isnan(mean_scores(testing[0], compared[key])).mean()))
        for row in _measured(key, nothing, params, unknown=unknown):
            yield "agreement", row
    guess = np.full(number, majority(tuning[1]))  # the baseline: all get one label
    baseline = agreement(testing[1], guess, **params.model_dump(include=INTERVALS))
    chances = [finite(estimate.value) for estimate in baseline]  # the same in any order
    same = {"unknown": 1.0, "chance": chances}
    for row in _measured(("majority class", "majority class"), baseline, params, **same):
        yield "agreement", row


def _evaluated(one: Evaluation, params: Params) -> Iterator[dict[str, Any]]:
    """Yield the rows of one lexicon in ``agreement``."""
    error = one.less_majority[0].standard_error(params.confidence)
    return _measured(
        one.lexicon,
        one.agreement,
        params,
        unknown=finite(1 - one.covered),
        negative_below=finite(one.low),
        positive_above=finite(one.high),
        chance=[finite(value) for value in one.chance],
        p=[one.less_majority.p, one.dealt_p],
        **{TESTED_ERROR: [error, None]},
    )


def _measured(
    key: tuple[str, str], estimates: Iterable[Estimate], params: Params, **more: Any
) -> Iterator[dict[str, Any]]:
    """Yield a row for each measure; a list has the value of each."""
    least = [0.0, least_p(params.n_permutations)]
    for i, (measure, estimate) in enumerate(zip(MEASURES, estimates, strict=True)):
        others = {name: x[i] if isinstance(x, list) else x for name, x in more.items()}
        key_of: dict[str, Any] = {"kind": key[0], "lexicon": key[1], "measure": measure}
        yield estimate.row(**others, **key_of, least=least[i])
