"""Analysis ``lexicon_evaluation``: how well lexica tell the sentiment of labelled texts.

In kind the comparison of Stańczak et al. (2023), Table 12: the combination of the lexica, each of
them, and their plain mean. The rule by which a text is classified is ours: the mean score of the
words that the lexicon has, cut in two places that are chosen on other texts. No model is loaded.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl

from plumbline.builders.core import parquet
from plumbline.builders.core.errors import UserError
from plumbline.builders.core.schema import Column, Schema
from plumbline.builders.datasets.labelled_texts.build import LABELS, SPLITS
from plumbline.probes.politicians.words.columns import REASON, TESTED
from plumbline.probes.stats.classification import (
    Agreement,
    Chance,
    Difference,
    agreement,
    chance,
    difference,
)
from plumbline.probes.stats.estimate import (
    ESTIMATE,
    Estimate,
    Resampling,
    adjusted,
    finite,
    typed,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from plumbline.probes.core.run_analysis import Inputs

    Labels = NDArray[np.int64]
    Floats = NDArray[np.float64]
    Lexicon = dict[str, float]
    Texts = tuple[list[str], Labels]

EACH = False
DATASETS = ("lexica", "labelled_texts")
OUTPUTS = ()
TABLES = ()
KINDS = ("combination", "plain mean", "view", "majority class")
MEASURES = ("accuracy", "macro-F1")
NEGATIVE, NEUTRAL, POSITIVE = range(3)  # the labels, in TweetEval's order
PLACES = 40  # cuts tried on either side
WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
CODES = {"positive": POSITIVE, "negative": NEGATIVE, "neutral": NEUTRAL}
PLACE = (
    Column("language", "string", "config of `lexica` and `labelled_texts`"),
    Column("source", "string", "corpus of labelled texts"),
    Column("kind", "label", "what the words' scores are", labels=KINDS),
    Column("lexicon", "string", "name of the view, else the kind"),
    Column("measure", "label", "of the labels that the texts are given", labels=MEASURES),
)
AGREEMENT = Schema(
    columns=(
        *PLACE,
        Column("words", "int64", "words of the lexicon, phrases with them", minimum=0),
        Column(
            "unknown",
            "float64",
            "share of the testing texts without any word of it",
            minimum=0,
            maximum=1,
        ),
        Column("under", "float64", "means under it are negative", nullable=True),
        Column("over", "float64", "means over it are positive", nullable=True),
        Column(
            "chance",
            "float64",
            "expected value if the same labels were dealt out to the texts at random",
            nullable=True,
            minimum=0,
            maximum=1,
        ),
        *ESTIMATE,
        REASON,
        TESTED,
    ),
    key=tuple(c.name for c in PLACE),
)
DIFFERENCES = Schema((*PLACE, *ESTIMATE, TESTED), key=AGREEMENT.key)
SCHEMAS = {"agreement": AGREEMENT, "differences": DIFFERENCES}


class Params(Resampling):
    """How intervals and tests are made."""


class Evaluation(NamedTuple):
    """How well one lexicon does, and by how much the first one does better."""

    lexicon: Any  # its key
    words: int
    covered: float  # share of the texts with a word of it
    low: float  # texts under it are negative
    high: float  # texts over it are positive
    agreement: Agreement
    chance: Chance
    first_less_this: Difference | None  # None for the first lexicon
    less_majority: Difference


def run(inputs: Inputs, params: Params) -> dict[str, pl.DataFrame]:
    """Evaluate the lexica of every language that has labelled texts, corpus by corpus.

    Returns
    -------
    dict
        ``agreement`` and ``differences``; columns as in :data:`SCHEMAS`.

    Raises
    ------
    UserError
        If a language has texts but no lexica, or a corpus lacks a split.
    """
    agreements: list[dict[str, Any]] = []
    differences: list[dict[str, Any]] = []
    folder = inputs.datasets["labelled_texts"]
    for language in parquet.configs(folder):
        compared = scores(inputs.datasets["lexica"], language)
        texts = pl.read_parquet(folder / f"{language}.parquet").sort("source", "split", "text")
        for source in texts["source"].unique().sort():
            part = texts.filter(pl.col("source") == source)
            place = {"language": language, "source": source}
            one, other = _compared(place, part, compared, params)
            agreements += [place | row for row in one]
            differences += [place | row for row in other]
    return {
        "agreement": typed(_adjusted(agreements), AGREEMENT),
        "differences": typed(_adjusted(differences), DIFFERENCES),
    }


def scores(lexica: Path, language: str) -> dict[tuple[str, str], Lexicon]:
    """Return the scores of words, -1 to 1, by kind and name of the lexicon.

    The combination's score is q(positive) - q(negative), the plain mean's and the views' are as in
    the dataset.

    Parameters
    ----------
    lexica
        Folder of the dataset ``lexica``.
    """
    path = lexica / f"{language}.parquet"
    if not path.is_file():
        raise UserError(
            f"{path}: no lexica for the labelled texts in {language!r}; add the language to "
            "datasets.lexica.languages, or take it out of datasets.labelled_texts.languages"
        )
    columns = ["word", "q_positive", "q_negative", "score", "view_names", "view_scores"]
    frame = pl.read_parquet(path, columns=columns)
    side = frame["q_positive"] - frame["q_negative"]
    found = {
        ("combination", "combination"): dict(zip(frame["word"], side, strict=True)),
        ("plain mean", "plain mean"): dict(zip(frame["word"], frame["score"], strict=True)),
    }
    views = frame.explode("view_names", "view_scores").sort("view_names", "word")
    for (name,), part in views.group_by("view_names", maintain_order=True):
        found["view", str(name)] = dict(zip(part["word"], part["view_scores"], strict=True))
    return found


def mean_scores(texts: Sequence[str], lexicon: Mapping[str, float]) -> Floats:
    """Return the mean score of each text's words, (texts,); NaN where the lexicon has none.

    Words are runs of letters in lower case, with apostrophes and hyphens inside.

    Examples
    --------
    >>> mean_scores(["Good, but bad food!", "Nothing."], {"good": 1.0, "bad": -0.5})
    array([0.25,  nan])
    """
    found = np.full(len(texts), np.nan)
    for i, text in enumerate(texts):
        scores = [lexicon[w] for w in WORD.findall(text.lower()) if w in lexicon]
        if scores:
            found[i] = sum(scores) / len(scores)
    return found


def classify(scores: Floats, low: float, high: float) -> Labels:
    """Return negative under ``low``, positive over ``high``, else neutral; NaN is neutral."""
    return np.where(scores > high, POSITIVE, np.where(scores < low, NEGATIVE, NEUTRAL))


def cuts(scores: Floats, labels: Labels) -> tuple[float, float]:
    """Return the two cuts, at quantiles of the scores, whose classes have the best macro-F1.

    Of equally good ones the lowest is taken.
    """
    known = scores[~np.isnan(scores)]
    if not len(known):
        raise ValueError("no text has a word of the lexicon")
    places = np.unique(np.quantile(known, np.linspace(0, 1, PLACES)).round(6))
    best = (-1.0, 0.0, 0.0)
    for i, low in enumerate(places):
        for high in places[i:]:
            table = np.bincount(labels * 3 + classify(scores, low, high), minlength=9).reshape(3, 3)
            total = table.sum(0) + table.sum(1)
            f1 = float((2 * table.diagonal() / np.where(total > 0, total, 1)).mean())
            if f1 > best[0] + 1e-12:
                best = (f1, float(low), float(high))
    return best[1], best[2]


def majority(labels: Labels) -> int:
    """Return the most frequent label; of equally frequent ones the first."""
    return int(np.bincount(labels).argmax())


def evaluate(
    tuning: tuple[Sequence[str], Labels],
    testing: tuple[Sequence[str], Labels],
    lexica: Mapping[Any, Mapping[str, float]],
    params: Params,
) -> list[Evaluation]:
    """Cut each lexicon's mean scores on the tuning texts, and classify the others.

    Parameters
    ----------
    tuning, testing
        Texts and their labels 0 negative, 1 neutral, 2 positive.
    lexica
        Score of each word, -1 to 1, by key of the lexicon; the first one is compared with all
        others on the same texts.

    Returns
    -------
    list of Evaluation
        In the order of ``lexica``. Unit: a text. ``less_majority`` compares with giving all texts
        the most frequent label of the tuning texts.

    Raises
    ------
    ValueError
        If no tuning text has a word of a lexicon.
    """
    found: list[Evaluation] = []
    first = None
    settings = _settings(params)
    paired = settings | {"n_permutations": params.n_permutations}
    same = np.full(len(testing[1]), majority(tuning[1]))
    for name, lexicon in lexica.items():
        low, high = cuts(mean_scores(tuning[0], lexicon), tuning[1])
        scores = mean_scores(testing[0], lexicon)
        guess = classify(scores, low, high)
        versus = None
        if first is None:
            first = guess
        else:
            versus = difference(testing[1], first, guess, **paired)
        found.append(
            Evaluation(
                name,
                len(lexicon),
                float((~np.isnan(scores)).mean()),
                low,
                high,
                agreement(testing[1], guess, **settings),
                chance(testing[1], guess),
                versus,
                difference(testing[1], guess, same, **paired),
            )
        )
    return found


def _compared(
    place: dict[str, str],
    part: pl.DataFrame,
    compared: dict[tuple[str, str], Lexicon],
    params: Params,
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the rows of both tables for one corpus."""
    tuning, testing = (_texts(place, part, split) for split in SPLITS)
    known = {
        key: lexicon
        for key, lexicon in compared.items()
        if not np.isnan(mean_scores(tuning[0], lexicon)).all()
    }
    if ("combination", "combination") not in known:
        corpus = "/".join(place.values())
        raise UserError(
            f"labelled_texts {corpus}: no tuning text has a word of lexica; mend one of them"
        )
    agreements: list[dict[str, Any]] = []
    differences: list[dict[str, Any]] = []
    for one in evaluate(tuning, testing, known, params):
        kind, name = one.lexicon
        at: dict[str, Any] = {"kind": KINDS.index(kind), "lexicon": name}
        agreements += [at | row for row in _agreement(one, params.confidence)]
        if one.first_less_this:
            null = "0: both do equally well"
            tests = _differences(one.first_less_this, null, params.confidence)
            differences += [at | row for row in tests]
    for (kind, name), lexicon in compared.items():
        if (kind, name) not in known:
            at = {"kind": KINDS.index(kind), "lexicon": name, "words": len(lexicon)}
            unknown = float(np.isnan(mean_scores(testing[0], lexicon)).mean())
            agreements += [at | row for row in _nothing(unknown, len(testing[0]))]
    agreements += _majority(tuning[1], testing[1], params)
    return agreements, differences


def _texts(place: dict[str, str], part: pl.DataFrame, split: str) -> Texts:
    """Return the texts of a split and their labels, numbered as in TweetEval."""
    rows = part.filter(pl.col("split") == SPLITS.index(split))
    if rows.is_empty():
        corpus = "/".join(place.values())
        raise UserError(f"labelled_texts {corpus}: no {split} text is left; name another corpus")
    labels = np.array([CODES[label] for label in LABELS], dtype=np.int64)
    return rows["text"].to_list(), labels[rows["label"].to_numpy()]


def _settings(params: Params) -> dict[str, Any]:
    names = ("confidence", "n_bootstrap", "seed")
    return {name: getattr(params, name) for name in names}


def _agreement(one: Evaluation, confidence: float) -> Iterator[dict[str, Any]]:
    """Yield a row for each measure; judged against the majority class on the same texts."""
    tests = _differences(one.less_majority, "the majority class does as well", confidence)
    for i, (row, estimate) in enumerate(zip(tests, one.agreement, strict=True)):
        yield estimate.at(confidence).row(
            measure=i,
            words=one.words,
            unknown=finite(1 - one.covered),
            under=finite(one.low),
            over=finite(one.high),
            chance=finite(one.chance[i]),
            **{name: row[name] for name in ("cluster", "null", "p")},
        )


def _differences(found: Difference, null: str, confidence: float) -> list[dict[str, Any]]:
    tests = (("McNemar's exact test", found.p), ("randomisation", found.p_macro_f1))
    return [
        estimate.at(confidence).row(measure=i, cluster="text", null=f"{null} ({test})", p=p)
        for i, (estimate, (test, p)) in enumerate(zip(found[:2], tests, strict=True))
    ]


def _nothing(unknown: float, n: int) -> Iterator[dict[str, Any]]:
    """Yield the rows of a lexicon that cannot be cut."""
    nan = float("nan")
    for measure in range(len(MEASURES)):
        yield Estimate(nan, nan, nan, n, "none").row(
            measure=measure,
            unknown=finite(unknown),
            reason="no tuning text has a word of it",
            cluster="text",
            null="none",
        )


def _majority(tuning: Labels, testing: Labels, params: Params) -> Iterator[dict[str, Any]]:
    """Yield the rows of the baseline: all texts get the most frequent label of the tuning texts."""
    guess = np.full(len(testing), majority(tuning))
    for measure, estimate in enumerate(agreement(testing, guess, **_settings(params))):
        yield estimate.at(params.confidence).row(
            kind=KINDS.index("majority class"),
            lexicon="majority class",
            measure=measure,
            words=0,
            unknown=1.0,
            chance=finite(estimate.value),  # in any order they are the same
            cluster="text",
            null="none",
        )


def _adjusted(rows: list[dict[str, Any]]) -> pl.DataFrame:
    """Add Benjamini-Hochberg over all tests of a table."""
    columns = {"under", "over", "chance", "reason"} - set().union(*rows)
    table = adjusted(pl.DataFrame(rows, infer_schema_length=None))
    tested = pl.when(pl.col("p").is_not_null()).then("family").otherwise(0)
    return table.with_columns(tested=tested, **dict.fromkeys(columns))
