"""The page of the study of social groups: recall, emotions, likeness of models, training."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from plumbline.probes.report import figures
from plumbline.probes.report.tables import Tables, kept, parts
from plumbline.probes.report.view import Place, study, sure

if TYPE_CHECKING:
    from collections.abc import Callable

EVERY = "all"  # categories together
STYLES = {  # of readings: grey or black, dashes
    "probability": ("#888", ""),
    "faithful": ("#000", "5 3"),
    "corrected": ("#000", ""),
    "corrected_one": ("#888", "5 3"),
}


def _curves(own: pl.DataFrame, place: Place) -> str:
    """Draw recall at k, a panel for each category, a line for each reading."""
    single = kept(own, {"attributes": "single word"})
    single = single.sort(pl.col("category") != EVERY, "category", "reading", "k")
    panels: dict[str, list[figures.Curve]] = {}
    for (category, reading), part in single.group_by("category", "reading", maintain_order=True):
        at = {name: values.to_list() for name, values in part.to_dict().items()}
        ends = (at["low"], at["high"]) if reading == "corrected" else ((), ())
        plain = (at["k"], at["value"], *STYLES[str(reading)], None, *ends)
        here = panels.setdefault(str(category), [])
        here.append(figures.Curve(str(reading), *plain))
        if reading == "corrected":
            orders = figures.Curve("random order", at["k"], at["random_order"], "#000", "1 3")
            others = ("other groups' lists", at["k"], at["other_groups"], "#000", "6 2 1 2")
            here += [orders, figures.Curve(*others)]
    labels = ("k: words of each list", "recall")
    return figures.curves(panels, labels=labels, title=place.title, limits=(0, 1)) if panels else ""


def profiles(tables: Tables) -> pl.DataFrame:
    """Return shares of emotions, and whether their lists are the shortest of the language."""
    table = tables.read("emotions/emotions")
    shortest = pl.col("top_k") == pl.col("top_k").min().over("model", "language")
    return table.with_columns(shortest=shortest) if len(table) else table


def heat(name: str) -> Callable[[pl.DataFrame, Place], str]:
    """Return what draws shares of affects as a heat map, a row for each category or group."""

    def draw(own: pl.DataFrame, place: Place) -> str:
        affects = own["affect"].dtype.categories.to_list()  # type: ignore[attr-defined]
        cells = {(r[name], r["affect"]): r for r in own.with_columns(sure=sure()).to_dicts()}
        rows = own[name].unique().sort().to_list()
        every = [[cells.get((row, affect), {"value": None}) for affect in affects] for row in rows]
        values = [[r["value"] for r in of] for of in every]
        known = [(r, c) for r, of in enumerate(values) for c, x in enumerate(of) if x is not None]
        marked = [(r, c) for r, c in known if every[r][c]["sure"]]
        title = f"{place.title}: {own['top_k'][0]} words"
        look = {"ends": (0.0, 0.8), "unit": "share of covered words", "marked": marked}
        return figures.heat(values, [*map(str, rows)], affects, title=title, **look)  # type: ignore[arg-type]

    return draw


def coverage(frame: pl.DataFrame) -> pl.DataFrame:
    """Return a row for each category."""
    return frame.unique("category").sort("category")


def _largest(frame: pl.DataFrame) -> pl.DataFrame:
    order = [pl.col("difference").abs(), "group", "affect"]
    return frame.drop_nulls("difference").sort(order, descending=[True, False, False]).head(15)


def _matrix(table: pl.DataFrame, place: Place) -> str:
    own = kept(table, {"reading": "corrected", "category": EVERY})
    pairs = {(a, b): value for a, b, value in own.select("first", "second", "value").rows()}
    names = sorted({name for pair in pairs for name in pair})
    known = pairs | {(name, name): 1.0 for name in names}
    values = [[known.get((a, b), known.get((b, a))) for b in names] for a in names]
    title = f"{place.title}, corrected, all categories"
    return figures.heat(values, names, names, ends=(-0.2, 1.0), title=title, numbers=True)


SHAPES = ("circle", "square", "up", "diamond", "down")
GREYS = ("#000", "#777", "#999", "#444", "#aaa")


def shifts(tables: Tables) -> pl.DataFrame:
    """Return changes, whether they are of the largest share, and shares in percent."""
    table = tables.read("shift/shifts")
    if table.is_empty():
        return table
    limits = ("difference", "low_difference", "high_difference", "detectable", "detectable_bh")
    scaled = pl.col("base", "value", "low", "high", "spread", *limits)
    emotion = pl.col("measure") == "emotion"
    moved = pl.col("significant").any().over("model", "language", "ranking", "measure", "category")
    return table.with_columns(pl.when(emotion).then(scaled * 100).otherwise(scaled)).with_columns(
        largest=pl.col("share") == pl.col("share").max().over("model", "corpus"),
        shown=moved | (pl.col("category") == EVERY),
    )


def _emotions(own: pl.DataFrame, place: Place) -> figures.Forest | str:
    """Draw the change of every affect by outlet, minus that by the control."""
    rows = own.drop_nulls("difference").sort("corpus").to_dicts()
    tested = [
        {"affect": r["outcome"], "corpus": r["corpus"], "value": r["difference"]}
        | {"low": r["low_difference"], "high": r["high_difference"], "sure": r["significant"]}
        for r in sorted(rows, key=lambda r: AFFECTS.index(r["outcome"]))
    ]
    corpora = sorted({r["corpus"] for r in rows})
    looks = zip(SHAPES * 9, GREYS * 9, strict=False)
    marks = {c: figures.Mark(s, g, g) for c, (s, g) in zip(corpora, looks, strict=False)}
    unit = "change minus the control's, percent of words; filled: significant"
    named = {"line": "affect", "series": "corpus", "marks": marks, "filled": "sure"}
    return figures.shared(tested, unit=unit, title=place.title, **named) if tested else ""


AFFECTS = (
    *("anger", "anticipation", "disgust", "fear", "joy", "sadness", "surprise", "trust"),
    *("positive", "negative"),
)


def _fates(frame: pl.DataFrame) -> pl.DataFrame:
    """Count the fates of words, and the percentage of colours among them."""
    found = []
    for fate in ("retained", "removed", "added"):
        own = pl.col("outcome") == fate
        found.append(own.sum().alias(fate))
        if fate != "retained":
            colours = (pl.col(colour).filter(own).mean() for colour in ("positive", "negative"))
            found += [(mean * 100).name.prefix(f"{fate} ") for mean in colours]
    return frame.group_by("category", "corpus").agg(found).sort("category", "corpus")


def moved(tables: Tables) -> pl.DataFrame:
    """Return the words of the groups whose positive words change most beside the control."""
    groups, words = tables.read("shift/groups"), tables.read("shift/attributes")
    if groups.is_empty() or words.is_empty():
        return pl.DataFrame()
    of = ["model", "language", "ranking"]
    here = groups.filter(
        (pl.col("outcome") == "positive")
        & (pl.col("share") == pl.col("share").max().over("model", "corpus"))
    ).drop_nulls("difference")
    ranked = here.sort(-pl.col("difference").abs(), "category", "group")
    most = ranked.group_by(*of, "corpus", maintain_order=True).head(2)
    every = [*of, "category", "group"]
    own = words.join(most.select(every).unique(), on=every)
    return own.filter(pl.col("query") == pl.col("query").min().over(every))


def lists(own: pl.DataFrame, place: Place) -> str:
    """Draw the first words of a list before and after training on each corpus, as Figure 7."""
    looks = {"removed": 'style="fill:#767676"', "added": 'font-weight="bold"', "retained": ""}
    panels = {}
    for (corpus,), part in parts(own, "corpus"):
        before, after = (
            part.filter(pl.col("outcome") != gone).sort(at, "word").select("word", "outcome").rows()
            for at, gone in (("rank_before", "added"), ("rank_after", "removed"))
        )
        sides = [[(word, looks[fate]) for word, fate in side] for side in (before, after)]
        panels[f"before, after: {corpus}"] = (sides[0], sides[1])
    return figures.slopes(panels, f"{place.title}: {own['query'][0]}")


def _main(tables: Tables) -> pl.DataFrame:
    """Return recall over all groups at every tested k."""
    shown = {"category": EVERY, "p_random_order": "*", "attributes": "single word"}
    table = kept(tables.read("recall/recall"), shown)
    at = pl.format("k = {}", "k")
    return table.with_columns(at=at).sort("model", "dataset", "k") if len(table) else table


STUDY = study(__file__, globals())
