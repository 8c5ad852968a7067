"""Named corruptions of every dataset, each of which can be seen in the data; drawn by a seed.

A corruption changes the rows of a dataset, by config. Those of strings and of rows are the same for
all datasets; the others contradict what the columns of one say of each other.
"""

import random
import unicodedata
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import polars as pl

Frames = dict[str, pl.DataFrame]
Change = Callable[[Frames, random.Random], None]
SPANISH = "los vecinos de la ciudad dicen que el mercado no es para todos"
RUSSIAN = "соседи говорят, что рынок открыт не для всех"


class Corruption(NamedTuple):
    """One way of being wrong."""

    dataset: str
    name: str
    change: Change


class Main(NamedTuple):
    """What is changed in a dataset: a config, its string in natural language, and a label."""

    config: str
    text: str
    label: str
    several: bool  # whether it is a text, whose language can be told


MAIN = {
    "corpora": Main("news-left", "text", "leaning", True),
    "counterfactuals": Main("sentiment-en", "text", "label", True),
    "downstream": Main("hate-en", "text", "label", True),
    "emotions": Main("en", "word", "positive", False),
    "labelled_texts": Main("en", "text", "label", True),
    "lexica": Main("fr", "word", "redistributable", False),
    "names": Main("es", "name", "kind", False),
    "outlets": Main("en", "text", "leaning", True),
    "politicians": Main("fr", "name", "gender", False),
    "social_groups": Main("en", "group", "kind", False),
    "statements": Main("values-en", "text", "reversed", True),
    "stereotypes": Main("en", "attribute", "single_word", False),
    "supersenses": Main("en", "lemma", "best", False),
    "survey": Main("simulated", "item", "gender", False),
    "targets": Main("sentiment-en", "text", "label", True),
    "words": Main("es", "form", "pos", False),
}


def some(frame: pl.DataFrame, by: random.Random, share: float) -> set[int]:
    """Return places of a share of the rows, at least one."""
    return set(by.sample(range(len(frame)), max(1, round(share * len(frame)))))


def changing(change: Callable[[pl.DataFrame, random.Random], pl.DataFrame], config: str) -> Change:
    """Return what changes the frame of a config, or those of all."""

    def apply(frames: Frames, by: random.Random) -> None:
        for name in [config] if config else list(frames):
            frames[name] = change(frames[name], by)

    return apply


def put(frame: pl.DataFrame, column: str, values: list[Any]) -> pl.DataFrame:
    """Return a frame with other values in a column of the same type."""
    return frame.with_columns(pl.Series(column, values, frame.schema[column]))


def each(column: str, change: Callable[[Any], Any], share: float = 0.1, config: str = "") -> Change:
    """Return what changes a column in a share of the rows of a config, or of all."""

    def changed(frame: pl.DataFrame, by: random.Random) -> pl.DataFrame:
        chosen = some(frame, by, share)
        values = enumerate(frame[column].to_list())
        return put(frame, column, [change(v) if at in chosen else v for at, v in values])

    return changing(changed, config)


def rows(change: Callable[[pl.DataFrame], pl.DataFrame], config: str = "") -> Change:
    """Return what changes the frame of a config, or those of all, the same each time."""
    return changing(lambda frame, _: change(frame), config)


def into(config: str, other: str) -> Change:
    """Return what puts the rows of one config into the place of another's."""
    return lambda frames, _: frames.update({config: frames[other]})


def exchanged(column: str, first: Any, second: Any, config: str = "") -> Change:
    """Return what exchanges two values of a column, or of lists."""
    swap = {first: second, second: first}
    return each(
        column,
        lambda v: [swap.get(x, x) for x in v] if isinstance(v, list) else swap.get(v, v),
        1,
        config,
    )


def shuffled(column: str, share: float = 1.0, config: str = "") -> Change:
    """Return what deals the values of a column anew among a share of the rows."""

    def changed(frame: pl.DataFrame, by: random.Random) -> pl.DataFrame:
        values = frame[column].to_list()
        places = sorted(some(frame, by, share))
        new = list(values)
        for place, source in zip(places, by.sample(places, len(places)), strict=True):
            new[place] = values[source]
        return put(frame, column, new)

    return changing(changed, config)


def lost(share: float, config: str = "") -> Change:
    """Return what drops a share of the rows."""

    def changed(frame: pl.DataFrame, by: random.Random) -> pl.DataFrame:
        gone = some(frame, by, share)
        return frame[[i for i in range(len(frame)) if i not in gone]]

    return changing(changed, config)


def again(share: float, config: str = "", **changed: Callable[[Any], Any]) -> Change:
    """Return what adds a share of the rows a second time, some columns changed."""

    def added(frame: pl.DataFrame, by: random.Random) -> pl.DataFrame:
        more = frame[sorted(some(frame, by, share))]
        for column, change in changed.items():
            more = put(more, column, [change(v) for v in more[column].to_list()])
        return pl.concat([frame, more])

    return changing(added, config)


def missing(config: str) -> Change:
    """Return what takes a config away."""
    return lambda frames, _: frames.pop(config)


def _accented(text: str) -> str:
    """Put an accent on a text that has none, so that its bytes can be decoded wrongly."""
    return (
        text if any(ord(c) > 127 for c in text) else text.replace("e", "é").replace("a", "á") + "é"
    )


def _wrong_bytes(text: str, charset: str) -> str:
    return _accented(text).encode().decode(charset, "replace")


STRINGS: dict[str, Callable[[str], Any]] = {
    "mojibake of Windows-1252": lambda t: _wrong_bytes(t, "cp1252"),
    "characters that were lost": lambda t: _accented(t).encode().decode("ascii", "replace"),
    "tags of HTML": lambda t: f"<b>{t}</b>",
    "a space of no width": lambda t: f"{t[:2]}\u200b{t[2:]}",
    "a control character": lambda t: f"{t[:1]}\x07{t[1:]}",
    "decomposed": lambda t: unicodedata.normalize("NFD", _accented(t)),
    "two spaces": lambda t: f"{t}  x",
    "a space at its end": lambda t: f"{t} ",
    "empty": lambda _: "",
    "null": lambda _: None,
    "N/A": lambda _: "N/A",
}
TEXTS: dict[str, tuple[Callable[[str], Any], float]] = {
    "a fifth of the texts in Spanish": (lambda t: f"{SPANISH} {len(t)}", 0.2),
    "a fifth of the texts in Russian": (lambda t: f"{RUSSIAN} {len(t)}", 0.2),
    "all texts in Spanish": (lambda t: f"{SPANISH} {len(t)}", 1.0),
    "texts cut after ten characters": (lambda t: t[:10].strip(), 1.0),
    "texts in capitals": (str.upper, 1.0),
}


def _common(dataset: str) -> Iterator[tuple[str, Change]]:
    config, text, label, several = MAIN[dataset]
    for name, change in STRINGS.items():
        yield name, each(text, change, 0, config)  # in one row
    for name, (change, share) in TEXTS.items() if several else ():
        yield name, each(text, change, share, config)
    yield "a third of the rows lost", lost(0.35, config)
    yield "no rows but one", rows(lambda f: f.head(1), config)
    yield "a tenth of the rows twice", again(0.1, config)
    yield "a column dropped", rows(lambda f: f.drop(label), config)
    yield (
        "a column of nulls",
        rows(lambda f: f.with_columns(pl.lit(None).cast(f.schema[label]).alias(label)), config),
    )
    yield (
        "a column of another type",
        rows(lambda f: f.with_columns(pl.lit("x").alias(label).cast(pl.Categorical)), config),
    )
    yield "columns in another order", rows(lambda f: f.select(reversed(f.columns)), config)
    yield "one more column", rows(lambda f: f.with_columns(author=pl.lit("x")), config)


def _columns_exchanged(first: str, second: str, config: str = "") -> Change:
    return rows(
        lambda f: f.with_columns(pl.col(first).alias(second), pl.col(second).alias(first)), config
    )


OWN: dict[str, dict[str, Change]] = {
    "politicians": {
        "birth year against its date": each("birth_year", lambda y: y + 10, 0.1, "en"),
        "gender against what is stated": each("gender", lambda g: (g + 1) % 2, 0.1, "en"),
        "names in Latin letters": each("name", lambda _: "Latin Name", 0.4, "ru"),
        "people twice in every language": again(0.08, qid=lambda q: f"{q}99"),
        "no Hindi": missing("hi"),
        "items without their letter": each("qid", lambda q: q[1:], 0.1, "en"),
    },
    "stereotypes": {
        "ranks of zero": each("ranks", lambda r: [0 for _ in r], 0.1, "en"),
        "groups dealt anew": shuffled("group", 1, "en"),
        "templates without a group": each("template", lambda t: t.replace("{group}", "x"), 0.1),
        "an engine lost": rows(lambda f: f.filter(pl.col("engines").list.len() > 1), "en"),
    },
    "statements": {
        "text against its sentence": each("sentence", lambda _: "Tea is warm.", 0.1, "values-en"),
        "polarity null": each("polarity", lambda _: None, 0.2, "calibration-en"),
        "opposite of itself": rows(lambda f: f.with_columns(opposite=pl.col("id")), "axes-en"),
        "weights tenfold": each("weight", lambda w: 10 * w, 1, "values-en"),
    },
    "outlets": {
        "no dates": each("date", lambda _: None, 1),
        "an outlet lost": rows(lambda f: f.filter(pl.col("outlet") != "post")),
        "one text for a tenth": each("text", lambda _: "The same text again.", 0.1),
    },
    "names": {
        "Chinese names for German ones": into("de", "cn"),
        "men and women exchanged": exchanged("kind", 0, 1, "fr"),
        "unknown flags": each("flags", lambda _: ["odd"], 0.1, "us"),
    },
    "words": {
        "place turned": each("place", lambda p: 1 - p, 1, "fr"),
        "Hindi words for Arabic ones": into("ar", "hi"),
        "no verbs": rows(lambda f: f.filter(pl.col("pos") == 0), "hi"),
    },
    "downstream": {
        "labels exchanged": exchanged("label", "hate", "not-hate", "hate-en"),
        "labels dealt anew": shuffled("label", 1, "misinformation-en"),
        "all in train": each("split", lambda _: 0, 1, "hate-en"),
    },
    "labelled_texts": {
        "near copies of some": again(0.05, text=lambda t: f"{t} !!", split=lambda s: 1 - s),
        "a fifth of the labels dealt anew": shuffled("label", 0.4),
        "splits exchanged": exchanged("split", 0, 1),
    },
    "targets": {
        "labels exchanged": exchanged("label", "positive", "negative"),
        "labels emptied": each("label", lambda _: "", 0.2),
        "splits of other ids": each("split", lambda _: "train", 0.2),
    },
    "counterfactuals": {
        "originals missing": rows(lambda f: f.filter(pl.col("reading") != 0)),
        "entities null": each("entity", lambda _: None, 0.05),
        "texts dealt anew": shuffled("text", 0.2),
        "entities dealt anew": shuffled("entity", 0.3),
    },
    "corpora": {
        "dates of another century": each("date", lambda d: d and f"19{d[2:]}", 0.2),
        "periods turned": each("period", lambda p: 1 - p if p < 2 else p, 0.2),
        "names of users": each("text", lambda t: f"{t} u/some_body", 0.2),
        "right for left": into("news-left", "news-right"),
    },
    "survey": {
        "answers of zero": each("answer", lambda _: 0, 0.05),
        "answers turned round": each("answer", lambda a: 6 - a, 1),
        "genders that differ in a respondent": shuffled("gender", 0.05),
        "two scales": each("scale", lambda _: "PI34", 0.1),
    },
    "emotions": {
        "positive and negative exchanged": _columns_exchanged("positive", "negative"),
        "all positive": each("positive", lambda _: True, 1),
        "trust turned": each("trust", lambda t: not t, 1),
        "English words of others": shuffled("english", 0.2),
    },
    "lexica": {
        "masses exchanged": _columns_exchanged("beta_positive", "beta_negative", "en"),
        "scores of the views turned": each("view_scores", lambda s: [-x for x in s], 0.5, "en"),
        "Russian words for Czech ones": into("cs", "ru"),
    },
    "supersenses": {
        "weights that do not sum to one": each("weight", lambda w: w / 2, 0.1),
        "weights over one": each("weight", lambda w: w + 1, 0.05),
        "best classes dealt anew": shuffled("best", 0.3),
        "a class lost": rows(lambda f: f.filter(pl.col("supersense") != 3)),
    },
    "social_groups": {
        "names of other groups": shuffled("name", 0.3),
        "kinds turned": each("kind", lambda k: 1 - k, 1),
        "a category lost": rows(lambda f: f.filter(pl.col("category") != "religion")),
        "groups twice in capitals": again(0.05, group=str.upper, name=str.upper),
    },
}


def corruptions() -> list[Corruption]:
    """Return all corruptions of all datasets."""
    return [
        Corruption(dataset, name, change)
        for dataset in sorted(MAIN)
        for name, change in [*_common(dataset), *OWN[dataset].items()]
    ]
