"""Dataset ``lexica``: sentiment lexica (views) and their combination by SentiVAE.

Hoyle et al. (2019), "Combining Sentiment Lexica with a Multi-View Variational Autoencoder", NAACL;
used by Stańczak et al. (2023), section 3.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from plumbline.builders.core.errors import UserError, reading
from plumbline.builders.core.params import LanguageParams
from plumbline.builders.core.parquet import Reject, Row
from plumbline.builders.core.schema import Column, Schema
from plumbline.builders.core.snapshot import Snapshot
from plumbline.builders.datasets.lexica.formats import AXES, Entry, View, entries
from plumbline.builders.datasets.lexica.published import (
    FILE,
    GRID,
    PUBLISHED,
    Published,
    rows,
    word_row,
)
from plumbline.builders.readers.declared import declared

if TYPE_CHECKING:
    from plumbline.builders.datasets.lexica.sentivae import Fits

SENTIMENTS = AXES
EMISSIONS: dict[str, Any] = {
    "binary": "bernoulli",
    **dict.fromkeys(("classes", "counts"), "multinomial"),
    **dict.fromkeys(("continuous", "pairs"), "normal"),
}
DECIMALS = 4

COLUMNS = (
    Column(
        "word", "string", "word or phrase in NFC and lower case, without underscores", prose="word"
    ),
    Column("pos", "strings", "parts of speech stated by the views; often none"),
    *(
        Column(f"beta_{axis}", "float64", f"Dirichlet parameter for {axis}", minimum=0)
        for axis in AXES
    ),
    *(
        Column(f"q_{axis}", "float64", f"beta_{axis} over the sum of beta", minimum=0, maximum=1)
        for axis in AXES
    ),
    Column("views", "int32", "number of lexica that list the word; sum of beta minus 3", minimum=1),
    Column(
        "score",
        "float64",
        "plain mean of `view_scores`, -1 (negative) to 1 (positive): the baseline; in "
        "`published` q_positive - q_negative",
        minimum=-1,
        maximum=1,
    ),
    Column(
        "seed_sd",
        "float64",
        "largest standard deviation of q over seeds among the axes; null if there is one seed",
        nullable=True,
        minimum=0,
    ),
    Column(
        "leave_out_change",
        "float64",
        "largest change of q, over axes and views, when one view is left out (first seed); a "
        "word's only view is never left out; null if no fit remains",
        nullable=True,
        minimum=0,
        maximum=1,
    ),
    Column("view_names", "strings", "names of the lexica that list the word; empty in `published`"),
    Column("view_values", "strings", "value of the word in each of its views, on the view's scale"),
    Column("view_scores", "floats", "value of the word in each of its views, rescaled to -1 to 1"),
    Column("redistributable", "bool", "whether its views' licences permit publishing the row"),
)
SCHEMA = Schema(COLUMNS, key=("word",))
COUNTS = ("views", "view_names")  # columns tabulated in the card


class Params(LanguageParams):
    """The snapshot, and the parameters of the fit."""

    anchors: dict[str, dict[Literal["positive", "negative", "neutral"], list[str]]] = Field(
        description="for each language and axis, words whose prior is raised on the axis in "
        "order to identify it; positive and negative are required"
    )
    published: bool = Field(
        False, description="whether to also build `published`, the lexicon of Hoyle et al. (2019)"
    )
    seeds: list[int] = Field(min_length=1, description="random seeds, over which beta is averaged")
    leave_out: bool = Field(True, description="whether to refit without each view (first seed)")
    steps: int = Field(ge=1, description="number of Adam steps, each over all words")
    learning_rate: float = Field(5e-4, gt=0, description="learning rate; 5e-4 in the paper")
    draws: int = Field(
        16,
        ge=1,
        description="maximum number of Monte Carlo draws per step for words with equal values",
    )
    divergence: float = Field(
        1.0,
        gt=0,
        le=1,
        description="weight of the Kullback-Leibler term; with 1, as in the paper, a single "
        "binary view has no influence, but with 0.5 it has some",
    )


@dataclass
class Lexicon:
    """One view, with a single value for each word."""

    view: View
    values: dict[str, str | tuple[float, ...]] = field(default_factory=dict)
    pos: dict[str, set[str]] = field(default_factory=dict)
    refused: defaultdict[str, list[str]] = field(default_factory=lambda: defaultdict(list))

    def score(self, word: str) -> float:
        """Return the value of a word on a scale from -1 to 1."""
        value = self.values[word]
        if isinstance(value, str):
            return self.view.labels[value]
        if self.view.scale == "counts":  # equally spaced classes from -1 to 1
            places = [2 * i / (len(value) - 1) - 1 for i in range(len(value))]
            return sum(c * p for c, p in zip(value, places, strict=True)) / sum(value)
        return value[0] - value[1] if self.view.scale == "pairs" else value[0]

    def numbers(self, word: str) -> list[float]:
        """Return a word's input to the model: 0 or 1, counts of classes, or its own numbers."""
        value = self.values[word]
        if self.view.scale == "binary":
            return [float(self.score(word) > 0)]
        if isinstance(value, str):
            return [float(value == label) for label in sorted(self.view.labels)]
        return list(value)


def build(snapshot: Snapshot, params: Params) -> Iterator[Row | Reject]:
    """Yield one row per word that is in any view, sorted; count rejects by view and reason."""
    for language in params.languages:
        lexica = []
        views = declared(snapshot, View, "views", language)
        for view in sorted(views, key=lambda view: view.name):
            lexicon, refused = read(snapshot, view, language)
            lexica.append(lexicon)
            for reason in sorted(refused):
                for position in lexicon.refused[reason]:
                    yield Reject(language, view.name, reason, position)
        words = sorted(set().union(*(lexicon.values for lexicon in lexica)))
        fits = _fit(lexica, words, params, language)
        yield from _rows(language, lexica, words, fits)
    if params.published:
        (theirs,) = declared(snapshot, Published, PUBLISHED)
        with reading(f"{snapshot.folder / FILE}", "fetch it again"):
            yield from rows(snapshot.read(FILE), theirs)


def read(snapshot: Snapshot, view: View, language: str) -> tuple[Lexicon, Counter[str]]:
    """Read one view and resolve repeated words; also return the number of rejects by reason.

    A word receives its most frequent label, or is rejected if two labels tie; its counts are added,
    and other numbers are averaged.
    """
    values_of: defaultdict[str, list[Any]] = defaultdict(list)
    positions: defaultdict[str, list[str]] = defaultdict(list)
    lexicon = Lexicon(view)
    advice = "fix its format under sources.lexica.views and fetch it again"
    with reading(f"{snapshot.folder}: view {language}/{view.name}", advice):
        paths = view.paths(language).items()
        bodies = {address: snapshot.read(path) for address, path in paths}
        for position, entry in entries(view, bodies, language):
            if isinstance(entry, Entry):
                values_of[entry.word].append(entry.value)
                positions[entry.word].append(position)
                lexicon.pos.setdefault(entry.word, set()).update([entry.pos] if entry.pos else [])
            else:
                lexicon.refused[entry].append(position)
    for word, values in values_of.items():
        value = _resolve(view, values)
        if value is None:
            lexicon.refused["labels of one word that tie"] += positions[word]
        else:
            lexicon.values[word] = value
            lexicon.refused["repeated in its view, merged into one row"] += positions[word][1:]
    return lexicon, +Counter({reason: len(where) for reason, where in lexicon.refused.items()})


def _resolve(view: View, values: list[Any]) -> str | tuple[float, ...] | None:
    if isinstance(values[0], str):
        (best, most), *others = Counter(values).most_common(2)
        return None if others and others[0][1] == most else str(best)
    sums = [sum(column) for column in zip(*values, strict=True)]
    return tuple(sums if view.scale == "counts" else (s / len(values) for s in sums))


def _fit(lexica: list[Lexicon], words: list[str], params: Params, language: str) -> Fits:
    import numpy as np

    from plumbline.builders.datasets.lexica import sentivae

    index = {word: i for i, word in enumerate(words)}
    anchors = np.full(len(words), -1)
    where = f"datasets.lexica.anchors.{language}"
    for axis, chosen in params.anchors.get(language, {}).items():
        for word in chosen:
            if word not in index:
                raise UserError(f"{where}.{axis}: {word!r} is in no view; choose another word")
            anchors[index[word]] = AXES.index(axis)
    if not {0, 1} <= set(anchors.tolist()):
        raise UserError(f"{where}: positive and negative anchors are missing; add them")
    views = []
    for lexicon in lexica:
        listed = sorted(lexicon.values)
        values = np.array([lexicon.numbers(word) for word in listed])
        emission = EMISSIONS[lexicon.view.scale]
        views.append(sentivae.View(emission, np.array([index[word] for word in listed]), values))
    settings = {"seeds", "leave_out", "steps", "learning_rate", "draws", "divergence"}
    fits = sentivae.fit(views, anchors, **params.model_dump(include=settings))
    if wrong := sentivae.misplaced(fits, anchors):
        raise UserError(
            f"{where}: the anchors of {' and '.join(wrong)} have a larger share on another axis; "
            "choose clearer words, or increase steps"
        )
    return fits


def _rows(language: str, lexica: list[Lexicon], words: list[str], fits: Fits) -> Iterator[Row]:
    import numpy as np

    q = fits.beta / fits.beta.sum(-1, keepdims=True)
    full = [i for i, view in enumerate(fits.left_out) if view is None]
    beta = np.round(fits.beta[full].mean(0) / GRID) * GRID
    seeds = len(full) > 1
    sd = q[full].std(0, ddof=1).max(-1) if seeds else np.zeros(len(words))
    changes = {
        view: np.abs(q[i] - q[full[0]]).max(-1)
        for i, view in enumerate(fits.left_out)
        if view is not None
    }
    for i, word in enumerate(words):
        indices = [v for v, lexicon in enumerate(lexica) if word in lexicon.values]
        having = [lexica[v] for v in indices]
        change = [float(c[i]) for v, c in changes.items() if indices != [v]]
        scores = [round(lexicon.score(word), 6) for lexicon in having]
        values = word_row(word, [float(b) for b in beta[i, :2]], len(indices)) | {
            "pos": sorted(set().union(*(lexicon.pos.get(word, set()) for lexicon in lexica))),
            "score": round(sum(scores) / len(scores), 6),
            "seed_sd": round(float(sd[i]), DECIMALS) if seeds else None,
            "leave_out_change": round(max(change), DECIMALS) if change else None,
            "view_names": [lexicon.view.name for lexicon in having],
            "view_values": [_shown(lexicon.values[word]) for lexicon in having],
            "view_scores": scores,
            "redistributable": all(lexicon.view.redistribute for lexicon in having),
        }
        yield Row(language, values)


def _shown(value: str | tuple[float, ...]) -> str:
    return value if isinstance(value, str) else " ".join(f"{x:.6g}" for x in value)
