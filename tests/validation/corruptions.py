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


def turned_round(config: str, other: str) -> Change:
    """Return what exchanges the rows of two configs."""
    return lambda frames, _: frames.update({config: frames[other], other: frames[config]})


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


def again_where(which: pl.Expr, config: str = "", **changed: pl.Expr) -> Change:
    """Return what adds some of the rows a second time, some columns changed."""
    return rows(lambda f: pl.concat([f, f.filter(which).with_columns(**changed)]), config)


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
    "mojibake of Latin-1": lambda t: _wrong_bytes(t, "latin-1"),
    "characters that were lost": lambda t: _accented(t).encode().decode("ascii", "replace"),
    "tags of HTML": lambda t: f"<b>{t}</b>",
    "entities of HTML": lambda t: f"{t} &amp; more",
    "a space of no width": lambda t: f"{t[:2]}\u200b{t[2:]}",
    "a mark of direction": lambda t: f"\u202e{t}\u202c",
    "a byte order mark": lambda t: f"\ufeff{t}",
    "a control character": lambda t: f"{t[:1]}\x07{t[1:]}",
    "a tab": lambda t: f"{t}\tx",
    "decomposed": lambda t: unicodedata.normalize("NFD", _accented(t)),
    "two spaces": lambda t: f"{t}  x",
    "a space at its end": lambda t: f"{t} ",
    "empty": lambda _: "",
    "null": lambda _: None,
    "N/A": lambda _: "N/A",
    "digits": lambda _: "12345",
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


def _first(f: pl.DataFrame, column: str) -> Any:
    return pl.lit(f[column][0]).cast(f.schema[column]).alias(column)


def _constant(column: str, config: str = "") -> Change:
    return rows(lambda f: f.with_columns(_first(f, column)), config)


def _turned(column: str, share: float = 1, config: str = "") -> Change:
    return each(column, lambda v: not v, share, config)


def _both(*changes: Change) -> Change:
    def apply(frames: Frames, by: random.Random) -> None:
        for change in changes:
            change(frames, by)

    return apply


def _columns_exchanged(first: str, second: str, config: str = "") -> Change:
    return rows(
        lambda f: f.with_columns(pl.col(first).alias(second), pl.col(second).alias(first)), config
    )


def _later(years: int) -> Callable[[Any], Any]:
    return lambda day: day and day.replace(year=day.year + years, day=min(day.day, 28))


def _later_text(years: int) -> Callable[[str], str]:
    return lambda day: day and f"{int(day[:4]) + years}{day[4:]}"


def _as_news(posts: pl.DataFrame) -> pl.DataFrame:
    kind, outlet = pl.lit(0, pl.Int64), pl.lit("The Commons")
    return posts.with_columns(kind=kind, id="news/" + pl.col("id"), outlet=outlet)


OWN: dict[str, dict[str, Change]] = {
    "politicians": {
        "birth year against its date": each("birth_year", lambda y: y + 10, 0.1, "en"),
        "birth dates a century early": each("birth_date", _later(-100), 0.1, "ru"),
        "birth dates to come": each("birth_date", _later(150), 0.1, "ru"),
        "gender against what is stated": each("gender", lambda g: (g + 1) % 2, 0.1, "en"),
        "genders of all exchanged": exchanged("gender", 0, 1),
        "stated genders emptied": each("gender_qids", lambda _: [], 0.2),
        "stated genders of nobody": each("gender_qids", lambda _: ["Q5"], 0.1),
        "countries dealt anew": shuffled("countries", 0.3, "en"),
        "countries emptied": each("countries", lambda _: [], 0.3),
        "country codes in small letters": each("countries", lambda c: [x.lower() for x in c], 0.3),
        "items of countries dealt anew": shuffled("country_qids", 0.3),
        "fallback against the language": _turned("name_fallback", 0.1, "en"),
        "names of another language": each("name_language", lambda _: "de", 0.1, "en"),
        "items for names": rows(lambda f: f.with_columns(name=pl.col("qid")), "es"),
        "some items for names": each("name", lambda _: "Q12345", 0.05, "es"),
        "names cut after eight characters": each("name", lambda n: n[:8].strip(), 1, "en"),
        "names cut with an ellipsis": each("name", lambda n: f"{n[:6]}…", 0.1, "en"),
        "names dealt anew": shuffled("name", 0.3, "en"),
        "names in Latin letters": each("name", lambda _: "Latin Name", 0.4, "ru"),
        "native turned": _turned("native", 1, "en"),
        "native null": each("native", lambda _: None, 0.2, "en"),
        "no links": each("popularity", lambda _: 0, 1),
        "links below none": each("popularity", lambda _: -1, 0.1),
        "people twice under new items": again(0.08, "en", qid=lambda q: f"{q}99"),
        "people twice in every language": again(0.08, qid=lambda q: f"{q}99"),
        "a third of a language missing": lost(0.3, "zh"),
        "no women": rows(lambda f: f.filter(pl.col("gender") != 1)),
        "French names for Spanish ones": into("es", "fr"),
        "items without their letter": each("qid", lambda q: q[1:], 0.1, "en"),
        "days of people whose year is known": each("birth_precision", lambda _: 2, 0.3),
        "no Hindi": missing("hi"),
        "links that differ between languages": each("popularity", lambda p: p + 3, 0.03, "fr"),
        "names with what tells them apart": each("name", lambda n: f"{n} (MP)", 0.1, "en"),
        "names with digits": each("name", lambda n: f"{n} 2", 0.05, "en"),
        "names in small letters": each("name", str.lower, 0.1, "en"),
        "Cyrillic letters in Latin names": each("name", lambda n: f"{n}а", 0, "en"),
    },
    "stereotypes": {
        "ranks of zero": each("ranks", lambda r: [0 for _ in r], 0.1, "en"),
        "all ranks one": each("ranks", lambda r: [1 for _ in r], 1, "en"),
        "a rank too few": each("ranks", lambda r: r[:-1], 0.1, "en"),
        "groups dealt anew": shuffled("group", 1, "en"),
        "some groups dealt anew": shuffled("group", 0.15, "en"),
        "queries dealt anew": shuffled("query", 0.2, "en"),
        "templates without a group": each("template", lambda t: t.replace("{group}", "x"), 0.1),
        "language of another config": each("language", lambda _: "es", 1, "en"),
        "some of another language": each("language", lambda _: "es", 0.2, "en"),
        "waves of two days": each("wave", lambda _: "2026-12-24", 0.3, "en"),
        "a wave of no day": each("wave", lambda _: "2026-13-45", 1, "en"),
        "flags emptied": each("flags", lambda _: [], 1),
        "flags for all": each("flags", lambda _: ["trend"], 1, "en"),
        "unknown flags": each("flags", lambda _: ["odd"], 0.05, "en"),
        "an engine's suggestions given to another": each(
            "engines", lambda e: sorted({"google" if x == "yahoo" else x for x in e}), 1, "en"
        ),
        "an engine twice": each("engines", lambda e: [*e, e[-1]], 0.1, "en"),
        "an engine lost": rows(lambda f: f.filter(pl.col("engines").list.len() > 1), "en"),
        "single words turned": _turned("single_word", 1, "en"),
        "categories dealt anew": shuffled("category", 0.3, "en"),
        "rows of the file all one": each("source_row", lambda _: 1, 1, "choenni2021"),
        "rows of the file in the wave": each("source_row", lambda _: 7, 0.1, "en"),
        "attributes in another language": each("attribute", lambda _: "глупые", 0.2, "en"),
        "addresses for attributes": each("attribute", lambda a: f"https://{a}.org", 0.01, "en"),
        "queries in capitals": each("query", str.upper, 0.1, "en"),
    },
    "statements": {
        "text against its sentence": each("sentence", lambda _: "Tea is warm.", 0.1, "values-en"),
        "texts dealt anew": shuffled("text", 0.2, "values-es"),
        "Spanish for English": into("values-en", "values-es"),
        "Spanish texts alone": _both(
            into("values-en", "values-es"), each("language", lambda _: "en", 1, "values-en")
        ),
        "Czech calibration for Russian": into("calibration-ru", "calibration-cs"),
        "polarity turned": exchanged("polarity", 0, 1, "calibration-en"),
        "some polarities turned": each("polarity", lambda p: 1 - p, 0.1, "calibration-en"),
        "polarity null": each("polarity", lambda _: None, 0.2, "calibration-en"),
        "a licence of some": each("licence", lambda _: "all rights reserved", 0.2, "values-en"),
        "another licence": each("licence", lambda _: "all rights reserved", 1, "values-en"),
        "opposites emptied": each("opposite", lambda _: "", 1, "values-en"),
        "opposites that are not there": each("opposite", lambda _: "nothing-1", 0.1, "axes-en"),
        "opposites null": each("opposite", lambda _: None, 0.1, "axes-en"),
        "opposite of itself": rows(lambda f: f.with_columns(opposite=pl.col("id")), "axes-en"),
        "reversed turned in one language": _turned("reversed", 1, "values-cs"),
        "all reversed": each("reversed", lambda _: True, 1, "values-en"),
        "axes dealt anew": shuffled("axis", 0.3, "values-ru"),
        "an axis lost": rows(lambda f: f.filter(pl.col("axis") != "tribalism"), "values-en"),
        "weights of another sign": each("weight", lambda w: -w, 0.2, "axes-en"),
        "weights tenfold": each("weight", lambda w: 10 * w, 1, "values-en"),
        "ids of other languages": each("id", lambda i: f"en-{i}", 1, "values-en"),
        "final stops": each("text", lambda t: f"{t}.", 0.1, "values-en"),
        "capitals at the beginning": each("text", str.capitalize, 1, "values-en"),
        "one text for all": _constant("text", "calibration-en"),
        "points of two answers": each("points", lambda _: [1.0, 2.0], 0.1, "axes-en"),
        "no Russian values": missing("values-ru"),
    },
    "outlets": {
        "dates of the First World War": each("date", _later(-100), 0.1),
        "dates to come": each("date", _later(100), 0.1),
        "no dates": each("date", lambda _: None, 1),
        "leanings that differ in an outlet": shuffled("leaning", 0.2),
        "leanings exchanged": exchanged("leaning", 0, 2),
        "outlets dealt anew": shuffled("outlet", 1),
        "an outlet lost": rows(lambda f: f.filter(pl.col("outlet") != "post")),
        "no control": each("outlet", lambda o: "herald" if o == "control" else o, 1),
        "one text for a tenth": each("text", lambda _: "The same text again.", 0.1),
        "articles of no corpus": each("article", lambda a: a.split("/")[1], 1),
        "topics of all lost": each("topic", lambda _: "", 1),
        "not to be published": _turned("redistributable"),
    },
    "names": {
        "Chinese names for German ones": into("de", "cn"),
        "two countries exchanged": turned_round("cn", "tr"),
        "first and last names exchanged": exchanged("kind", 0, 2, "pl"),
        "men and women exchanged": exchanged("kind", 0, 1, "fr"),
        "all names of men": each("kind", lambda _: 0, 1, "it"),
        "flags emptied": each("flags", lambda _: [], 1),
        "unknown flags": each("flags", lambda _: ["odd"], 0.1, "us"),
        "flags for many": each("flags", lambda _: ["word"], 0.5, "us"),
        "ranks all one": each("rank", lambda _: 1, 1, "us"),
        "ranks of zero": each("rank", lambda r: r - 1, 1, "us"),
        "ranks dealt anew": shuffled("rank", 1, "ng"),
        "lists emptied": each("sources", lambda _: [], 0.1, "us"),
        "lists twice": each("sources", lambda s: s * 2, 0.1, "us"),
        "bearers of first names": each("bearer", lambda _: 1, 0.5, "us"),
        "names in Cyrillic": each("name", lambda n: f"И{n}", 0.2, "de"),
        "names in small letters": each("name", str.lower, 0.2, "us"),
        "a country that is none": lambda frames, _: frames.update(xx=frames.pop("de")),
        "no Turkey": missing("tr"),
        "no women": rows(lambda f: f.filter(pl.col("kind") != 1), "in"),
    },
    "words": {
        "place turned": each("place", lambda p: 1 - p, 1, "fr"),
        "some places turned": each("place", lambda p: 1 - p, 0.2, "en"),
        "treebank of another language": each(
            "treebanks", lambda b: [f"es{x[2:]}" for x in b], 1, "fr"
        ),
        "Spanish words for French ones": into("fr", "es"),
        "Hindi words for Arabic ones": into("ar", "hi"),
        "forms in capitals": each("form", str.upper, 1, "en"),
        "forms with a capital": each("form", str.capitalize, 0.3, "en"),
        "forms and lemmas in capitals": _both(
            each("form", str.upper, 1, "en"), each("lemma", str.upper, 1, "en")
        ),
        "adjectives and verbs exchanged": exchanged("pos", 0, 1, "en"),
        "all adjectives": each("pos", lambda _: 0, 1, "en"),
        "counts that do not add up": each("count", lambda c: c + 5, 0.1, "ru"),
        "counts of zero": each("count", lambda _: 0, 0.1, "ru"),
        "counts of treebanks emptied": each("treebank_counts", lambda _: [], 0.1, "ru"),
        "hyphens in forms": each("form", lambda f: f"{f}-{f}", 0.1, "fr"),
        "digits in forms": each("form", lambda f: f"{f}1", 0.1, "fr"),
        "lemmas dealt anew": shuffled("lemma", 1, "es"),
        "forms of other lemmas": shuffled("form", 0.3, "en"),
        "no verbs": rows(lambda f: f.filter(pl.col("pos") == 0), "hi"),
        "no Chinese": missing("zh"),
    },
    "downstream": {
        "another language": each("language", lambda _: "fr", 1, "hate-en"),
        "another language of some": each("language", lambda _: "fr", 0.1, "hate-en"),
        "test texts in train but for a sign": again_where(
            pl.col("split") == 2,
            "hate-en",
            split=pl.lit(0, pl.Int64),
            text=pl.col("text") + " !",
            id=pl.col("id") + "b",
        ),
        "near copies of some": again(
            0.05, "misinformation-en", id=lambda i: f"{i}b", text=str.upper, split=lambda s: 2 - s
        ),
        "labels exchanged": exchanged("label", "hate", "not-hate", "hate-en"),
        "some labels exchanged": each(
            "label", lambda v: "hate" if v == "not-hate" else "not-hate", 0.1, "hate-en"
        ),
        "an unknown label": each("label", lambda _: "spite", 0.05, "hate-en"),
        "labels dealt anew": shuffled("label", 1, "misinformation-en"),
        "labels in one split alone": rows(
            lambda f: f.with_columns(
                label=pl.when(pl.col("split") == 2).then(pl.lit("hate")).otherwise("label")
            ),
            "hate-en",
        ),
        "splits dealt anew": shuffled("split", 1, "hate-en"),
        "all in train": each("split", lambda _: 0, 1, "hate-en"),
        "groups against what is mapped": shuffled("group", 0.2, "hate-en"),
        "groups emptied": _both(
            each("group", lambda _: "", 1, "hate-en"), each("mapped", lambda _: [], 1, "hate-en")
        ),
        "groups of the source dealt anew": shuffled("groups", 0.3, "hate-en"),
        "one group for all": _constant("group", "hate-en"),
        "another task": each("task", lambda t: 1 - t, 1, "hate-en"),
        "classes of the source dealt anew": shuffled("source_label", 0.2, "hate-en"),
        "sources emptied": each("source", lambda _: "", 0.1, "misinformation-en"),
        "tasks' texts exchanged": into("misinformation-en", "hate-en"),
        "ids dealt anew": shuffled("id", 1, "hate-en"),
    },
    "labelled_texts": {
        "test texts in tuning in capitals": again_where(
            pl.col("split") == 1, split=pl.lit(0, pl.Int64), text=pl.col("text").str.to_uppercase()
        ),
        "near copies of some": again(0.05, text=lambda t: f"{t} !!", split=lambda s: 1 - s),
        "positive and negative exchanged": exchanged("label", 0, 1),
        "a fifth of the labels dealt anew": shuffled("label", 0.4),
        "no neutral texts": rows(lambda f: f.filter(pl.col("label") != 2)),
        "all positive": each("label", lambda _: 0, 1),
        "all in testing": each("split", lambda _: 1, 1),
        "splits exchanged": exchanged("split", 0, 1),
        "sources dealt anew": shuffled("source", 0.3),
        "a source's name lost": each("source", lambda _: "", 0.2),
        "terms that differ in a corpus": _turned("redistributable", 0.2),
    },
    "targets": {
        "labels exchanged": exchanged("label", "positive", "negative"),
        "labels dealt anew": shuffled("label"),
        "labels emptied": each("label", lambda _: "", 0.2),
        "an unknown label": each("label", lambda _: "mixed", 0.1),
        "another task": each("task", lambda _: "hate", 1),
        "another language": each("language", lambda _: "fr", 1),
        "splits of other ids": each("split", lambda _: "train", 0.2),
        "texts twice in capitals": again(0.1, id=lambda i: f"{i}b", text=str.upper),
        "texts dealt anew": shuffled("text"),
        "not to be published": _turned("redistributable"),
    },
    "counterfactuals": {
        "originals missing": rows(lambda f: f.filter(pl.col("reading") != 0)),
        "some originals missing": rows(
            lambda f: f.filter((pl.col("reading") != 0) | (pl.int_range(pl.len()) > 3000))
        ),
        "references null": each("reference_id", lambda _: None, 0.05),
        "names null": each("name", lambda _: None, 0.05),
        "entities null": each("entity", lambda _: None, 0.05),
        "targets null": each("target", lambda _: None, 0.05),
        "readings null": each("reading", lambda _: None, 0.05),
        "texts dealt anew": shuffled("text", 0.2),
        "texts of another sentence": each("text", lambda t: f"{t} And more.", 0.1),
        "countries dealt anew": shuffled("country", 0.3),
        "countries of no names": each("country", lambda c: c and "xx", 0.2),
        "labels of other texts": shuffled("label", 0.2),
        "genders unknown": each("gender", lambda _: 2, 0.3),
        "readings exchanged": exchanged("reading", 1, 2),
        "placebos of another reading": exchanged("reading", 2, 3),
        "names dealt anew": shuffled("name", 0.3),
        "entities dealt anew": shuffled("entity", 0.3),
        "names of nobody in the text": each("name", lambda _: "Qwerty", 0.0005),
        "draws all one": each("draw", lambda _: 0, 1),
        "references of other texts": shuffled("reference_id", 0.2),
        "as they were": rows(
            lambda f: f.with_columns(
                text=pl.when(pl.col("reading") > 0)
                .then(pl.col("text").first().over("target"))
                .otherwise("text")
            )
        ),
    },
    "corpora": {
        "dates of another century": each("date", _later_text(-100), 0.2),
        "dates to come": each("date", _later_text(100), 0.2),
        "periods turned": each("period", lambda p: 1 - p if p < 2 else p, 0.2),
        "words miscounted": each("words", lambda w: w + 3, 0.2),
        "names of users": each("text", lambda t: f"{t} u/some_body", 0.2),
        "leaning of another corpus": each("leaning", lambda _: 2, 0.2, "news-left"),
        "left and right exchanged": turned_round("news-left", "news-right"),
        "kind of another corpus": each("kind", lambda k: 1 - k, 1, "news-left"),
        "outlets of another kind": each("outlet", lambda o: f"r/{o}", 0.3, "news-left"),
        "outlets of another corpus": each("outlet", lambda _: "The Gazette", 0.3),
        "a text in two corpora": lambda frames, _: frames.update(
            {"news-left": pl.concat([frames["news-left"], _as_news(frames["social-left"].head(3))])}
        ),
        "texts twice but for a sign": again(
            0.1, "news-left", id=lambda i: f"{i}b", text=lambda t: f"{t} !", words=lambda w: w + 1
        ),
        "flags emptied": each("flags", lambda _: [], 1),
        "probabilities over one": each("hate_score", lambda _: 1.5, 0.2),
        "half of a corpus": lost(0.5, "social-right"),
        "no corpus of the centre": missing("social-center"),
    },
    "survey": {
        "answers of zero": each("answer", lambda _: 0, 0.05),
        "answers of six": each("answer", lambda _: 6, 0.05),
        "answers all three": each("answer", lambda _: 3, 1),
        "answers turned round": each("answer", lambda a: 6 - a, 1),
        "answers dealt anew": shuffled("answer", 1),
        "answers null": each("answer", lambda _: None, 0.1),
        "genders that differ in a respondent": shuffled("gender", 0.05),
        "genders unstated": each("gender", lambda _: 2, 1),
        "statuses that differ": shuffled("infected", 0.1),
        "statuses unknown": each("infected", lambda _: 2, 1),
        "two licences": each("licence", lambda _: "in confidence", 0.1),
        "another licence": each("licence", lambda _: "in confidence", 1),
        "two scales": each("scale", lambda _: "PI34", 0.1),
        "simulated ones called real": _turned("simulated"),
        "respondents of one name": each("respondent", lambda _: "simulated-001", 0.1),
        "items of another scale": each("item", lambda i: f"x-{i}", 1),
        "half of the items lost": rows(lambda f: f.filter(pl.col("item").hash(1) % 2 == 0)),
        "one respondent alone": rows(
            lambda f: f.filter(pl.col("respondent") == f["respondent"][0])
        ),
    },
    "emotions": {
        "positive and negative exchanged": _columns_exchanged("positive", "negative"),
        "joy and sadness exchanged": _columns_exchanged("joy", "sadness"),
        "all positive": each("positive", lambda _: True, 1),
        "no fear": each("fear", lambda _: False, 1),
        "trust turned": _turned("trust"),
        "anger dealt anew": shuffled("anger"),
        "English words of others": shuffled("english", 0.2),
        "words dealt anew": shuffled("word", 1),
        "words in Cyrillic": each("word", lambda _: "слово", 0.2),
    },
    "lexica": {
        "masses exchanged": _columns_exchanged("beta_positive", "beta_negative", "en"),
        "all signs exchanged": _both(
            _columns_exchanged("beta_positive", "beta_negative", "en"),
            _columns_exchanged("q_positive", "q_negative", "en"),
        ),
        "all turned, with scores": _both(
            _columns_exchanged("beta_positive", "beta_negative", "en"),
            _columns_exchanged("q_positive", "q_negative", "en"),
            each("score", lambda s: -s, 1, "en"),
            each("view_scores", lambda s: [-x for x in s], 1, "en"),
        ),
        "scores turned": each("score", lambda s: -s, 1, "en"),
        "scores of the views turned": each("view_scores", lambda s: [-x for x in s], 0.5, "en"),
        "shares over one": each("q_positive", lambda q: q + 1, 0.1, "en"),
        "masses tenfold": each("beta_neutral", lambda b: 10 * b, 0.1, "en"),
        "a view too many": each("views", lambda v: v + 1, 0.1, "en"),
        "names of views lost": each("view_names", lambda _: [], 0.1, "en"),
        "a view twice": each("view_names", lambda v: [v[0]] * len(v), 0.5, "en"),
        "words dealt anew": shuffled("word", 1, "en"),
        "Spanish words for French ones": into("fr", "es"),
        "Russian words for Czech ones": into("cs", "ru"),
        "no Hindi": missing("hi"),
        "not to be published": _turned("redistributable", 1, "en"),
    },
    "supersenses": {
        "weights that do not sum to one": each("weight", lambda w: w / 2, 0.1),
        "weights dealt anew": shuffled("weight", 1),
        "weights over one": each("weight", lambda w: w + 1, 0.05),
        "no best class": each("best", lambda _: False, 1),
        "best classes dealt anew": shuffled("best", 0.3),
        "classes of another part of speech": each("supersense", lambda c: (c + 13) % 28, 0.1),
        "classes dealt anew": shuffled("supersense", 0.5),
        "parts of speech exchanged": exchanged("pos", 0, 1),
        "senses of adjectives": each("senses", lambda _: 2, 0.5),
        "senses lost": each("senses", lambda _: None, 1),
        "a class lost": rows(lambda f: f.filter(pl.col("supersense") != 3)),
        "no verbs": rows(lambda f: f.filter(pl.col("pos") == 0)),
        "lemmas dealt anew": shuffled("lemma", 1),
    },
    "social_groups": {
        "names of other groups": shuffled("name", 0.3),
        "kinds that differ in a category": shuffled("kind", 0.3),
        "kinds turned": each("kind", lambda k: 1 - k, 1),
        "categories dealt anew": shuffled("category", 0.5),
        "a category lost": rows(lambda f: f.filter(pl.col("category") != "religion")),
        "one category for all": _constant("category"),
        "groups twice in capitals": again(0.05, group=str.upper, name=str.upper),
        "groups in capitals": each("group", str.upper, 1),
        "groups in Cyrillic": each("group", lambda g: f"и{g}", 0.3),
    },
}


def corruptions() -> list[Corruption]:
    """Return all corruptions of all datasets."""
    return [
        Corruption(dataset, name, change)
        for dataset in sorted(MAIN)
        for name, change in [*_common(dataset), *OWN[dataset].items()]
    ]
