"""Analysis ``lexicon_evaluation``: sentiment classification of labelled texts with lexica.

As in Stańczak et al. (2023), Table 12, the combined lexicon, each lexicon and their plain mean are
compared. Unlike in the paper, texts are classified by the mean lexicon score of their words, with
two thresholds chosen on other texts. No model is loaded.
"""

from __future__ import annotations

from itertools import combinations_with_replacement
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import regex

from plumbline.builders.core import parquet
from plumbline.builders.core.errors import UserError
from plumbline.builders.core.schema import Column, Schema
from plumbline.builders.datasets.labelled_texts.build import LABELS, SPLITS
from plumbline.builders.datasets.lexica.published import OF, PUBLISHED
from plumbline.builders.readers.spelling import lowered, straight
from plumbline.probes.politicians.words import word_counts
from plumbline.probes.stats import classification
from plumbline.probes.stats.estimate import (
    TESTED_ERROR,
    Estimate,
    Resampling,
    estimates,
    finite,
    least_p,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from plumbline.probes.core.run_analysis import Inputs

    Labels = NDArray[np.int64]
    Floats = NDArray[np.float64]
    Lexicon = dict[str, float]
    Texts = tuple[Sequence[Sequence[str]], Labels]

DATASETS = ("lexica", "labelled_texts")
MEASURES = ("accuracy", "macro-F1")
COMBINATION, BASELINE = "combination", "majority class"
NEGATIVE, NEUTRAL, POSITIVE = range(3)  # labels in the order of TweetEval
PLACES = 40  # number of candidate thresholds
DEALT = "-null"  # suffix of corpora with permuted labels, which are negative controls
CODES = {"positive": POSITIVE, "negative": NEGATIVE, "neutral": NEUTRAL}
# word boundaries are Unicode's defaults, except that hyphenated compounds are one word
WORD = regex.compile(r"(?ws)\b\w.*?\b(?:-\w.*?\b)*")
ELIDED = regex.compile(r"^([cdjlmnst]|qu|jusqu|lorsqu|puisqu|quoiqu)['’](?=\w)")
UNSPACED = ("ja", "km", "lo", "my", "th", "zh")  # languages written without spaces
PLACE = (
    Column("language", "string", "language, a config of `lexica` and `labelled_texts`"),
    Column("source", "string", "corpus of labelled texts"),
    Column(
        "lexicon",
        "string",
        "source of the scores: combination, plain mean, majority class, published, or the name of "
        "one lexicon (a view)",
    ),
    Column("measure", "category", "measure of agreement with the labels", labels=MEASURES),
)
METHOD = "95% percentile bootstrap over texts"
AGREEMENT = Schema.keyed(
    PLACE,
    Column("negative_below", "float64", "texts with a lower mean are negative", nullable=True),
    Column("positive_above", "float64", "texts with a higher mean are positive", nullable=True),
    word_counts.share(
        "chance",
        "expected value if predicted labels are permuted over texts; null if no tuning text "
        "contains a word of the lexicon",
        nullable=True,
    ),
    *estimates(
        cluster="text",
        method=METHOD,
        # uninformative labels of several classes can have a higher macro-F1 than the majority class
        null="accuracy: equal to the majority class (McNemar's exact test); macro-F1: chance "
        "(randomisation)",
    ),
)
DIFFERENCES = Schema.keyed(
    PLACE,
    *estimates(
        cluster="text",
        method=METHOD,
        null="0: equal performance (accuracy: McNemar's exact test; macro-F1: randomisation)",
    ),
)
SCHEMAS = {"agreement": AGREEMENT, "differences": DIFFERENCES}


class Params(Resampling):
    """Settings of intervals and tests."""


def run(inputs: Inputs, params: Params) -> dict[str, pl.DataFrame]:
    """Evaluate the lexica of every language that has labelled texts, separately for each corpus.

    The columns of the tables ``agreement`` and ``differences`` are defined in :data:`SCHEMAS`.

    Raises UserError if a language has texts but no lexicon, or a corpus has no texts in a split.
    """
    rows: dict[str, list[dict[str, Any]]] = {name: [] for name in SCHEMAS}
    folder = inputs.datasets["labelled_texts"]
    for language in parquet.configs(folder):
        compared = scores(inputs.datasets["lexica"], language)
        texts = pl.read_parquet(folder / f"{language}.parquet").sort("source", "split", "text")
        for (source,), part in texts.group_by("source", maintain_order=True):
            key = {"language": language, "source": source, "dealt": str(source).endswith(DEALT)}
            for name, row in _rows(f"{language}/{source}", part, compared, params):
                rows[name].append(key | row)
    # tests of negative controls form a separate family
    how = params.confidence, ["dealt"], "least"
    return {
        name: word_counts.table_of(
            SCHEMAS[name], [pl.DataFrame(table_rows, infer_schema_length=None)], *how
        )
        for name, table_rows in rows.items()
    }


def scores(lexica: Path, language: str) -> dict[str, Lexicon]:
    """Return the scores of each lexicon's words, from -1 to 1, by name of the lexicon.

    The score of a combination is q(positive) - q(negative); the plain mean and the single lexica
    (views) are those in the dataset. For English, the published combination is included if the
    dataset contains it.

    ``lexica``: folder of the dataset ``lexica``.
    """
    path = lexica / f"{language}.parquet"
    if not path.is_file():
        raise UserError(
            f"{path}: missing, but there are labelled texts in {language!r}; add the language to "
            "datasets.lexica.languages, or remove it from datasets.labelled_texts.languages"
        )
    read = ["word", "q_positive", "q_negative", "score", "view_names", "view_scores"]
    frame = pl.read_parquet(path, columns=read)
    side = frame["q_positive"] - frame["q_negative"]
    lexicons = {
        COMBINATION: dict(zip(frame["word"], side, strict=True)),
        "plain mean": dict(zip(frame["word"], frame["score"], strict=True)),
    }
    views = frame.explode("view_names", "view_scores").sort("view_names", "word")
    for (name,), part in views.group_by("view_names", maintain_order=True):
        lexicons[str(name)] = dict(zip(part["word"], part["view_scores"], strict=True))
    if language == OF and (path := lexica / f"{PUBLISHED}.parquet").is_file():
        theirs = pl.read_parquet(path).select("word", pl.col("q_positive") - pl.col("q_negative"))
        lexicons[PUBLISHED] = dict(theirs.iter_rows())
    return lexicons


def mean_scores(texts: Iterable[Sequence[str]], lexicon: Mapping[str, float]) -> Floats:
    """Return the mean word score of each text, of shape (texts,); nan if no word has a score.

    Examples
    --------
    >>> mean_scores([["good", "but", "bad", "food"], ["nothing"]], {"good": 1.0, "bad": -0.5})
    array([0.25,  nan])
    """
    scores = ([lexicon[word] for word in text if word in lexicon] for text in texts)
    return np.array(
        [sum(values) / len(values) if values else np.nan for values in scores], dtype=np.float64
    )


def classify(scores: Floats, low: float, high: float, otherwise: int = NEUTRAL) -> Labels:
    """Label scores below ``low`` negative, above ``high`` positive, and others ``otherwise``."""
    return np.where(scores > high, POSITIVE, np.where(scores < low, NEGATIVE, otherwise))


def cuts(scores: Floats, labels: Labels, otherwise: int = NEUTRAL) -> tuple[float, float]:
    """Choose the two thresholds, among quantiles of the scores, with the highest macro-F1.

    In case of a tie, the lowest thresholds are chosen. Scores between them are labelled
    ``otherwise``.
    """
    finite_scores = scores[~np.isnan(scores)]
    if not len(finite_scores):
        raise ValueError("no text has a word of the lexicon")
    places = np.unique(np.quantile(finite_scores, np.linspace(0, 1, PLACES)).round(6)).tolist()
    pairs = list(combinations_with_replacement(places, 2))
    cells = (labels * 3 + classify(scores, *pair, otherwise) for pair in pairs)
    tables = np.stack([np.bincount(cell, minlength=9) for cell in cells]).reshape(-1, 3, 3)
    total = np.maximum(tables.sum(axis=1) + tables.sum(axis=2), 1)
    f1 = (2 * tables.diagonal(axis1=1, axis2=2) / total).mean(axis=1)
    return pairs[int(np.argmax(f1 > f1.max() - 1e-12))]


def majority(labels: Labels) -> int:
    """Return the most frequent label; the first one in case of a tie."""
    return int(np.bincount(labels).argmax())


def predict(
    tuning: Texts, texts: Sequence[Sequence[str]], lexicon: Mapping[str, float]
) -> tuple[tuple[float, float], Labels]:
    """Choose a lexicon's thresholds on the tuning texts, and classify other texts.

    Texts with a score between the thresholds, and texts without words of the lexicon, are labelled
    neutral or, if no tuning text is neutral, with the most frequent label of the tuning texts.

    ``tuning``: words of each text, and labels (0 negative, 1 neutral, 2 positive).
    ``lexicon``: word scores from -1 to 1.

    Raises ValueError if no tuning text has a word of the lexicon.
    """
    known, labels = tuning
    otherwise = NEUTRAL if (labels == NEUTRAL).any() else majority(labels)
    ends = cuts(mean_scores(known, lexicon), labels, otherwise)
    return ends, classify(mean_scores(texts, lexicon), *ends, otherwise)


def _texts(corpus: str, part: pl.DataFrame, split: str) -> Texts:
    """Return the words of each text in a split, and the labels, coded as in TweetEval."""
    rows = part.filter(pl.col("split") == SPLITS.index(split))
    if rows.is_empty():
        raise UserError(f"labelled_texts {corpus}: split {split} is empty; name another corpus")
    labels = np.array([CODES[label] for label in LABELS], dtype=np.int64)
    language = corpus.partition("/")[0]
    return [words(text, language) for text in rows["text"]], labels[rows["label"].to_numpy()]


def _rows(
    corpus: str, part: pl.DataFrame, compared: dict[str, Lexicon], params: Params
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield pairs of table name and row for one corpus."""
    tuning, (texts, true) = (_texts(corpus, part, split) for split in SPLITS)
    intervals = params.model_dump(include={"confidence", "n_bootstrap", "seed"})
    paired = intervals | {"n_permutations": params.n_permutations}
    constant = np.full(len(true), majority(tuning[1]))  # the baseline: one label for all texts
    baseline = classification.agreement(true, constant, **intervals)
    chances = [finite(estimate.value) for estimate in baseline]  # text order is irrelevant
    yield from _measured("agreement", BASELINE, baseline, params, chance=chances)
    first: Labels | None = None
    for name, lexicon in compared.items():
        if np.isnan(mean_scores(tuning[0], lexicon)).all():
            if name == COMBINATION:
                raise UserError(
                    f"labelled_texts {corpus}: no tuning text has a word of the lexica; name "
                    "another corpus, or add lexica"
                )
            nothing = [Estimate(np.nan, np.nan, np.nan, len(true))] * len(MEASURES)
            yield from _measured("agreement", name, nothing, params)
            continue
        ends, guess = predict(tuning, texts, lexicon)
        low, high = map(finite, ends)
        above = classification.difference(true, guess, constant, **paired)
        dealt_p = classification.dealt_p(true, guess, params.n_permutations, params.seed)
        yield from _measured(
            "agreement",
            name,
            classification.agreement(true, guess, **intervals),
            params,
            negative_below=(low, low),
            positive_above=(high, high),
            chance=[finite(value) for value in classification.chance(true, guess)],
            p=(above.p, dealt_p),
            **{TESTED_ERROR: (above.accuracy.standard_error(params.confidence), None)},
        )
        if first is None:
            first = guess
        else:
            less = classification.difference(true, first, guess, **paired)
            yield from _measured("differences", name, less[:2], params, p=(less.p, less.p_macro_f1))


def _measured(
    table: str, lexicon: str, numbers: Iterable[Estimate], params: Params, **more: Sequence[Any]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the table name and a row per measure; ``more``: columns with a value per measure."""
    least = (0.0, least_p(params.n_permutations))
    for i, (measure, estimate) in enumerate(zip(MEASURES, numbers, strict=True)):
        key: dict[str, Any] = {"lexicon": lexicon, "measure": measure, "reach": 1.0}
        key |= {"least": least[i]} | {name: values[i] for name, values in more.items()}
        yield table, estimate.row(**key)


def words(text: str, language: str) -> list[str]:
    """Return the words of a text in lower case, with straight apostrophes.

    Boundaries follow Unicode Standard Annex 29: marks such as vowel signs, and apostrophes between
    letters, do not separate words. Hyphenated compounds are one word. French elided words (``l'``,
    ``qu'``) are separate words. Languages without spaces are segmented by ICU's dictionaries.

    ``language``: ISO 639-1 code.

    Raises UserError if the language has no spaces and icu4py is not installed.

    Examples
    --------
    >>> words("A well-made film, isn't it?", "en")
    ['a', 'well-made', 'film', "isn't", 'it']
    >>> words("मुझे यह फ़िल्म अच्छी लगी।", "hi")
    ['मुझे', 'यह', 'फ़िल्म', 'अच्छी', 'लगी']
    >>> words("J'aime l’histoire d’aujourd’hui", "fr")
    ['j', 'aime', 'l', 'histoire', 'd', "aujourd'hui"]
    """
    lower = lowered(straight(text), language)
    if language not in UNSPACED:
        parts: list[str] = WORD.findall(lower)
        if language == "fr":
            parts = [part for word in parts for part in ELIDED.sub(r"\1 ", word).split(" ")]
        return parts
    try:
        from icu4py.breakers import WordBreaker
    except ModuleNotFoundError as error:
        raise UserError(
            f"texts in {language!r} have no spaces between words, and icu4py, which segments them, "
            "is not installed; run `pip install 'plumbline[segmentation]'`"
        ) from error
    return [word for word in WordBreaker(lower, language) if word[0].isalnum()]
