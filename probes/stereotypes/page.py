"""The page of the study of social groups: recall, emotions, likeness of models, training."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from plumbline.probes.report import figures
from plumbline.probes.report.view import (
    Listing,
    Place,
    Readings,
    Step,
    Study,
    Tables,
    fold,
    kept,
    parts,
    sure,
    view,
)

if TYPE_CHECKING:
    from collections.abc import Callable

EVERY = "all"  # categories together
STYLES = {  # of readings: grey or black, dashes
    "probability": ("#888", ""),
    "faithful": ("#000", "5 3"),
    "corrected": ("#000", ""),
    "corrected_one": ("#888", "5 3"),
}


def ordered(names: list[str]) -> list[str]:
    """Return categories by the alphabet, all together first."""
    return sorted(set(names), key=lambda name: (name != EVERY, name))


def _curves(own: pl.DataFrame, place: Place) -> str:
    """Draw recall at k, a panel for each category, a line for each reading."""
    single = kept(own, {"attributes": "single word"})
    panels: dict[str, list[figures.Curve]] = {}
    for category in ordered(single["category"].to_list()):
        here = panels.setdefault(category, [])
        for (reading,), part in parts(kept(single, {"category": category}), "reading"):
            at = {name: values.to_list() for name, values in part.sort("k").to_dict().items()}
            ends = (at["low"], at["high"]) if reading == "corrected" else ((), ())
            plain = (at["k"], at["value"], *STYLES[reading], None, *ends)
            here.append(figures.Curve(str(reading), *plain))
            if reading == "corrected":
                for name, said, dash in (
                    ("chance", "random order", "1 3"),
                    ("exchanged", "other groups' lists", "6 2 1 2"),
                ):
                    here.append(figures.Curve(said, at["k"], at[name], "#000", dash))
    labels = ("k: words of each list", "recall")
    return figures.curves(panels, labels=labels, title=place.title, limits=(0, 1)) if panels else ""


RECALL = Step(
    "recall",
    "What search engines suggest, and models complete",
    "Recall@k: share of the attributes that search engines suggest for a group and are among the "
    "model's k best tokens for the same question. Readings of typicality: faithful is the released "
    "code's, corrected is equation 3 as written. Two baselines: the same lists in random order, "
    "and the lists of other groups of the category, which p is against. Intervals: bootstrap over "
    "groups. First word: the first words of attributes of several words, which the paper lacks; a "
    "hit is that word alone, be it 'not', and no recall of the attribute.",
    "recall",
    (
        fold(
            *("{model}, attributes of {dataset}", "dataset"),
            view(
                "recall/recall",
                Listing(
                    "category; reading; attributes",
                    "k; sought; out_of_vocabulary:2=not one token; value=recall; interval; "
                    "exchanged=other groups; chance=random order; p; p_bh; n=groups",
                    where={"p": ...},
                    rows=lambda own: own.sort(
                        pl.col("category") != EVERY, "category", "attributes", "reading", "k"
                    ),
                    digits=3,
                ),
                figure=_curves,
            ),
        ),
    ),
    "model",
)


def profiles(tables: Tables) -> pl.DataFrame:
    """Return shares of emotions, and whether their lists are the shortest of the language."""
    table = tables.read("emotions/emotions")
    shortest = pl.col("k") == pl.col("k").min().over("model", "language")
    return table.with_columns(shortest=shortest) if len(table) else table


def heat(name: str) -> Callable[[pl.DataFrame, Place], str]:
    """Return what draws shares of affects as a heat map, a row for each category or group."""

    def draw(own: pl.DataFrame, place: Place) -> str:
        affects = own["affect"].dtype.categories.to_list()  # type: ignore[attr-defined]
        own = own.with_columns(sure=sure() & pl.col("value").is_not_null())
        rows, values, marked = [], [], set()
        for (row,), part in parts(own, name):
            by = {r["affect"]: r for r in part.to_dicts()}
            marked |= {(len(rows), c) for c, a in enumerate(affects) if a in by and by[a]["sure"]}
            known = {a: r["value"] for a, r in by.items() if r["value"] is not None}
            values.append([100 * known[a] if a in known else None for a in affects])
            rows.append(str(row))
        title = f"{place.title}: {own['k'][0]} words"
        look = {"ends": (0.0, 70.0), "unit": "percent of covered words", "marked": marked}
        return figures.heat(values, rows, affects, title=title, **look)  # type: ignore[arg-type]

    return draw


def _largest(frame: pl.DataFrame) -> pl.DataFrame:
    order = [pl.col("difference").abs(), "group", "affect"]
    return frame.drop_nulls("difference").sort(order, descending=[True, False, False]).head(15)


EMOTIONS = Step(
    "emotions",
    "Emotions that groups evoke",
    "Share of a group's words that carry each emotion or sentiment of the NRC lexicon, among those "
    "that the lexicon has. Dots: the share differs from that of all other groups at an adjusted p "
    "of at most 0.05, affects permuted over words; of categories: groups permuted over "
    "categories. Shares tell about models, and nothing about people.",
    "emotions",
    (
        fold(
            *("{model}, {language}: {k} words by {reading}", "language reading"),
            view(
                profiles,
                Listing(
                    *("category", "n=groups; coverage=share", "Words in the lexicon"),
                    rows=lambda own: own.unique("category").sort("category"),
                ),
                Listing(
                    "group; category; affect",
                    "value=share; difference; low_difference..high_difference; "
                    "{carrying} of {covered}=words; p; p_bh",
                    "Largest differences from all other groups",
                    "emotions/emotions",
                    where={"level": "group"},
                    rows=_largest,
                ),
                where={"level": "category"},
                heading="categories",
                figure=heat("category"),
            ),
        ),
        # the longer lists are, the more groups are alike in them
        fold(
            "{model}, {language}: {k} words by {reading}: groups of {category}",
            "language reading category",
            view(profiles, where={"level": "group", "shortest": True}, figure=heat("group")),
        ),
    ),
    "model",
)


def _matrix(table: pl.DataFrame, place: Place) -> str:
    own = kept(table, {"reading": "corrected", "category": EVERY})
    names = sorted({*own["first"], *own["second"]})
    told = {
        frozenset(pair): value for *pair, value in own.select("first", "second", "value").rows()
    }
    told |= {frozenset([name]): 1.0 for name in names}
    values = [[told.get(frozenset([a, b])) for b in names] for a in names]
    title = f"{place.title}, corrected, all categories"
    return figures.heat(values, names, names, ends=(-0.2, 1.0), title=title, numbers=True)


RSA = Step(
    "rsa",
    "How alike models are in the emotions of groups",
    "Cosine similarities of the groups' emotion profiles in one model, against those in another: "
    "Spearman correlation of each group's row, mean over groups. Faithful has each group's "
    "similarity to itself among the pairs, which alone gives 3 / (n + 1) for n groups without any "
    "relation: 0.3 for nine. Expected is that part; corrected has none. p: groups of one model "
    "relabelled. Intervals: bootstrap over groups, no group compared with a copy of itself.",
    "rsa",
    (
        fold(
            *("{language}: {k} words by {ranking}", "language ranking"),
            view(
                "rsa/rsa",
                Listing(
                    "first; second; category; reading",
                    "n=groups; value; interval; expected; p; p_bh",
                    sort="first second category reading",
                ),
                figure=_matrix,
            ),
        ),
    ),
)
SHAPES = ("circle", "square", "up", "diamond", "down")
GREYS = ("#000", "#777", "#999", "#444", "#aaa")


def shifts(tables: Tables) -> pl.DataFrame:
    """Return changes, whether they are of the largest share, and shares in percent."""
    table = tables.read("shift/shifts")
    if table.is_empty():
        return table
    scaled = ("base", "value", "low", "high", "spread")
    scaled += ("difference", "low_difference", "high_difference")
    emotion = pl.col("measure") == "emotion"
    moved = pl.col("significant").any().over("model", "language", "ranking", "measure", "category")
    return table.with_columns(
        pl.when(emotion).then(100 * pl.col(name)).otherwise(pl.col(name)).alias(name)
        for name in scaled
    ).with_columns(
        largest=pl.col("share") == pl.col("share").max().over("model", "corpus"),
        shown=moved | (pl.col("category") == EVERY),
    )


def _emotions(own: pl.DataFrame, place: Place) -> str:
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
    return figures.forest(tested, unit=unit, title=place.title, **named) if tested else ""  # type: ignore[arg-type]


AFFECTS = (
    *("anger", "anticipation", "disgust", "fear", "joy", "sadness", "surprise", "trust"),
    *("positive", "negative"),
)


def _fates(frame: pl.DataFrame) -> pl.DataFrame:
    """Count the fates of words, and the percentage of colours among them."""
    return (
        frame.group_by("category", "corpus")
        .agg(
            *((pl.col("fate") == fate).sum().alias(fate) for fate in ("kept", "removed", "added")),
            *(
                (100 * pl.col(colour).filter(pl.col("fate") == fate).mean()).alias(
                    f"{fate} {colour}"
                )
                for fate in ("removed", "added")
                for colour in ("positive", "negative")
            ),
        )
        .sort("category", "corpus")
    )


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
    looks = {"removed": 'style="fill:#767676"', "added": 'font-weight="bold"', "kept": ""}
    panels = {}
    for (corpus,), part in parts(own, "corpus"):
        sides = []
        for at, gone in (("place_before", "added"), ("place_after", "removed")):
            there = part.filter(pl.col("fate") != gone).sort(at, "word")
            sides.append([(w, looks[fate]) for w, fate in there.select("word", "fate").iter_rows()])
        panels[f"before, after: {corpus}"] = (sides[0], sides[1])
    return figures.slopes(panels, f"{place.title}: {own['query'][0]}")


CHANGE = (
    "base=before; value=change; interval; spread=sd; difference=minus control; "
    "low_difference..high_difference; p; p_bh"
)
SHIFT = Step(
    "shift",
    "What training on news does to what a model says of groups",
    "A model is trained on articles of an outlet and asked again. Any training shifts a model: the "
    "difference is the change minus that by a control corpus about other things, with the same "
    "share and seeds; where it has more than 5% more or fewer articles there is no p. Intervals "
    "and p are over groups of people, given these trainings (p: outlet and control exchanged at "
    "random in each group); another training would shift them otherwise, so that what is "
    "filled or significant must exceed Student's limit over seeds too, and with one seed nothing "
    "does. sd is over seeds. p is adjusted over all corpora, shares, categories and outcomes of a "
    "measure. Similarity is rho - 1 between the emotion profiles before and "
    "after: 0 is no shift.",
    "shift",
    (
        fold(
            *("{model}, {language}, {ranking}", "language ranking"),
            view(
                shifts,
                Listing("outcome=affect; corpus", CHANGE, sort="outcome corpus", digits=1),
                where={"measure": "emotion", "largest": True, "shown": True},
                facets="category",
                heading="Emotions, {category}: {n} groups, percent of words",
                figure=_emotions,
            ),
            view(
                "shift/attributes",
                Listing(
                    "category; corpus",
                    "kept; removed; added; removed positive:1; removed negative:1; "
                    "added positive:1; added negative:1",
                    "Fates of the first words of all lists (Figure 7), whole corpora; of colours "
                    "percent",
                    rows=_fates,
                ),
                heading="Attributes",
            ),
            view(moved, facets="category group", heading="{group} ({category})", figure=lists),
            view(
                shifts,
                Listing(
                    "corpus; share; category; significant=unlike the control's",
                    f"n=groups; {CHANGE}",
                    "Similarity to the model before, {measure}",
                    where={"measure": ("rsa faithful", "rsa corrected")},
                    sort="corpus share category",
                    split="measure",
                ),
                Listing(
                    "measure; outcome; corpus; share",
                    CHANGE,
                    "Recall of attributes, and share of the first words kept",
                    where={"measure": ("recall", "kept"), "category": EVERY},
                    sort="measure outcome corpus share",
                ),
            ),
        ),
    ),
    "model",
)


def _main(tables: Tables) -> pl.DataFrame:
    """Return recall over all groups at every tested k."""
    shown = {"category": EVERY, "p": ..., "attributes": "single word"}
    table = kept(tables.read("recall/recall"), shown)
    at = pl.format("k = {}", "k")
    return table.with_columns(at=at).sort("model", "dataset", "k") if len(table) else table


STUDY = Study(
    "stereotypes",
    "Stereotypes and emotions",
    "Which of the stereotypes that search engines suggest do language models recall, what "
    "emotions do their words evoke, and how does training on news shift them?",
    "Choenni, Shutova and van Rooij (2021)",
    (RECALL, EMOTIONS, RSA, SHIFT),
    ("recall", "emotions", "rsa", "shift", "drift"),
    ("stereotypes", "finetuned"),
    ("social_groups", "stereotypes", "emotions", "outlets"),
    Readings(
        "Recall of what search engines suggest, over all groups: words ranked by typicality as the "
        "released code has it, and by equation 3 with the prior of the same template.",
        "recall",
        "recall",
        _main,
        "dataset at",
    ),
)
