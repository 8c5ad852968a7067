"""The page of the study of politicians: words, classes and sentiments that go with genders."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import polars as pl

from plumbline.probes.report import figures
from plumbline.probes.report.view import (
    Listing,
    Part,
    Place,
    Readings,
    Row,
    Source,
    Step,
    Study,
    Tables,
    fold,
    interval,
    number,
    parts,
    sure,
    view,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

GENDERS = ("male", "female", "non-binary")
SENTIMENTS = ("positive", "negative", "neutral")
MARKS = {
    "male": figures.Mark("square", "#000", "#000"),
    "female": figures.Mark("circle", "#fff", "#000"),
    "non-binary": figures.Mark("diamond", "#bbb", "#777"),
}
TOP = 10
PAIRS = (("native", "foreign"), ("popular", "other"), ("older", "younger"))
MODEL, WHERE, HERE = "model", "language pos", "{model}, {language}, {pos}"


def highest(table: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of the largest values, equal ones by the alphabet."""
    return table.sort(["value", "word"], descending=[True, False]).head(TOP)


def _words(own: pl.DataFrame, place: Place) -> str:
    best = highest(own.filter(pl.col("reading") == "smoothed")).with_columns(
        *(pl.col(end).fill_null(pl.col("value")) for end in ("low", "high")), sure=sure()
    )
    title = f"{place.title}: {TOP} highest"
    unit = "PMI (nats), with interval; filled: adjusted p at most 0.05"
    return figures.forest(best.to_dicts(), line="word", unit=unit, title=title, filled="sure")


RANKING = "interval; {count:,} of {people:,}=lists; p; p_bh"
RANKINGS = tuple(
    Listing("word", f"value=PMI; {RANKING}", called, where={"reading": reading}, rows=highest)
    for reading, called in (("plug-in", "Faithful (plug-in)"), ("smoothed", "Corrected (smoothed)"))
)
VOCABULARY = Listing(
    "language; pos=part of speech; {revision:.12}=revision; dtype",
    "words=asked for; covered; tokens_covered=of tokens; asked=list length",
    "Vocabulary",
)
WORDS = Step(
    "results",
    "Words and genders",
    "PMI (nats) of a word and a gender over the lists that the model gave for each name. Faithful: "
    "the plug-in estimate of the paper. Corrected: the smoothed one. Intervals: bootstrap over "
    "names. p: gender labels permuted over names, exact, two-sided; adjusted by Benjamini-Hochberg "
    "over all words, genders, parts of speech and languages of the model.",
    "pmi",
    (
        fold("", "", view("outputs/associations/coverage", VOCABULARY)),
        fold(
            *(HERE, WHERE),
            view(
                *("pmi/pmi", *RANKINGS),
                where={"value": ...},
                facets="gender",
                heading="{gender} ({people:,} people)",
                figure=_words,
            ),
        ),
    ),
    MODEL,
)
POOLED = Step(
    "pooled",
    "Words and genders, models pooled",
    "PMI (nats) from the lists of several models added up, as the paper pools them. What several "
    "models answer to one name is no independent evidence: intervals and tests are over names. p "
    "is adjusted over all words, genders, parts of speech and languages of the group.",
    "pooled",
    (
        fold(
            *("{group}, {language}, {pos}: {models} model(s)", WHERE),
            view(
                *("pooled/pooled", *RANKINGS),
                where={"value": ...},
                facets="gender",
                heading="{gender} ({people:,} people, a list of each model)",
            ),
        ),
    ),
    "group",
)
LATENT = Step(
    "latent",
    "Words by gender and sentiment (Tables 4 and 6)",
    "Deviations eta (nats) of the latent-variable model: the words that go most with a gender, for "
    "each sentiment, means over the grid of both weights and over seeds. Compare words within a "
    "gender and sentiment. Intervals: Bayesian bootstrap over names, refitted. p: gender labels "
    "permuted over names, refitted; of k permutations no p is below 1 / (1 + k), so that few words "
    "among many cannot pass; adjusted by Benjamini-Hochberg over all words, sentiments, "
    "genders, parts of speech and languages of the model.",
    "latent",
    (
        fold(
            *(HERE, WHERE),
            view(
                "latent/latent",
                Listing(
                    *("word", f"value=deviation; {RANKING}", "{sentiment}"),
                    sort="rank",
                    split="sentiment",
                ),
                where={"rank": tuple(range(1, TOP + 1))},
                facets="gender",
                heading="{gender} ({people:,} people)",
            ),
            view(
                "latent/shares",
                Listing(
                    *("gender; sentiment", "value=p(s|g); interval; n=names"),
                    "Sentiments of the genders in the model",
                    sort="gender sentiment",
                ),
            ),
        ),
    ),
    MODEL,
)


def _supersenses(own: pl.DataFrame, _: Place) -> str:
    rows = own.sort("supersense").to_dicts()
    pair = [rows[0][side] for side in ("first", "second")]
    long = [
        {"class": r["supersense"], "gender": r[s], "value": r[f"share_{s}"]}
        | {end: r[f"{end}_{s}"] for end in ("low", "high")}
        for r in rows
        for s in ("first", "second")
    ]
    return figures.forest(
        long,
        line="class",
        unit="share of the words, with interval; bold: adjusted p at most 0.05",
        title=" and ".join(pair),
        series="gender",
        marks={pair[0]: figures.Mark(), pair[1]: figures.Mark("square", "#888", "#888")},
        bold=[r["supersense"] for r in rows if r["p_bonferroni"] <= 0.05],
    )


SUPERSENSES = Step(
    "supersenses",
    "Classes of the words of each gender (Figure 3)",
    "Share of each class among the words with the largest deviations towards either gender; a word "
    "counts in its best class. Intervals: of shares Wilson's, given the two lists; of the "
    "difference a symmetric bootstrap over names, with words ranked anew. p: words of both "
    "lists relabelled; Bonferroni over 13 classes of adjectives or 15 of verbs, as in the paper, "
    "and Benjamini-Hochberg over all classes, parts of speech and pairs of genders. Other ways of "
    "counting are in the tables.",
    "supersenses",
    (
        fold(
            *("{model}, {language}, {pos}, by {deviation}", f"{WHERE} deviation"),
            view(
                "supersenses/supersenses",
                Listing(
                    "supersense=class",
                    "share_first={first}; low_first..high_first; share_second={second}; "
                    "low_second..high_second; value=difference; interval; p; "
                    "p_bonferroni=p Bonf.; p_bh",
                    sort="supersense",
                ),
                where={"unit": "form", "counting": "best"},
                facets="first second",
                heading="{first} ({words_first} words, {people_first:,} people) and "
                "{second} ({words_second} words, {people_second:,} people)",
                figure=_supersenses,
            ),
        ),
    ),
    MODEL,
)


def _shares(own: pl.DataFrame, title: str) -> str:
    """Draw shares of sentiments, a panel each, men beside women."""
    based = "base" in own.columns
    key = '<path d="M12 0V12" stroke="#aaa"/>'
    return figures.forest(
        own.to_dicts(),
        line="label",
        unit="percent of the words that deviate most; *: men and women differ",
        title=title,
        series="gender",
        marks=MARKS,
        panel="sentiment",
        panels=SENTIMENTS,
        starred="significant",
        base="base" if based else "",
        limits=(0.0, 1.0),
        ticks_at=[(i / 4, str(25 * i)) for i in range(5)],
        zero={},
        legend=[(key, "all candidates")] if based else (),
    )


def shares(tables: Tables) -> pl.DataFrame:
    """Return shares twice: models of each language, and languages of each model of several."""
    frame, apart = tables.read("sentiment/shares"), tables.read("sentiment/differences")
    if frame.is_empty() or apart.is_empty():
        return pl.DataFrame()
    place = ["model", "language", "pos", "deviation", "reading", "sentiment"]
    tested = (  # the test of names comes last, and counts where there is one
        apart.sort("test").group_by(place, maintain_order=True).agg(pl.col("p_bh").last())
    )
    whole = frame.drop("p", "p_bh").join(tested, on=place, how="left")
    whole = whole.with_columns(significant=sure() & (pl.col("gender") == "male"))
    several = pl.col("language").n_unique().over("model", "deviation", "reading", "pos") > 1
    return pl.concat(
        [
            whole.with_columns(by=pl.lit("model"), head="language", label="model"),
            whole.filter(several).with_columns(
                by=pl.lit("language"), head="model", label="language"
            ),
        ]
    )


def _sentiments(own: pl.DataFrame, place: Place) -> str:
    title = f"{place.at['head']}: {', '.join(place.at[k] for k in ('pos', 'deviation', 'reading'))}"
    return _shares(own.sort("label", "gender", "sentiment"), title)


def _distinct(own: pl.DataFrame) -> Iterator[Row]:
    for _, part in parts(own, "label"):
        of = dict(part.select("gender", "names").iter_rows())
        yield part.row(0, named=True) | {g: of.get(g) for g in GENDERS}


SENTIMENT = Step(
    "sentiments",
    "Sentiments of the words that deviate most (Figures 4 and 6)",
    "Shares of positive, negative and neutral words among those that deviate most towards each "
    "gender. Grey line: share among all candidate words, against which a share is to be read. "
    "Star: men and women differ, adjusted p at most 0.05 over all models, languages, parts of "
    "speech and sentiments; genders permuted over names where words are ranked by PMI, words "
    "permuted between the lists (as in the paper) where by the latent-variable model.",
    "sentiment",
    (
        fold(
            *("{pos}, {deviation}, {reading}", "deviation reading pos"),
            *(
                view(
                    shares,
                    Listing(
                        "label={by}", "male; female; non-binary", "Distinct names", rows=_distinct
                    ),
                    where={"by": by},
                    facets="head",
                    figure=_sentiments,
                )
                for by in ("model", "language")
            ),
        ),
    ),
)


def _pivoted(frame: pl.DataFrame, keys: str, write: str) -> Iterator[Row]:
    """Yield rows of three sentiments, with why there is no number where there is none."""
    for _, part in parts(frame, *keys.split()):
        rows = part.to_dicts()
        why = "; ".join(sorted({r["reason"] for r in rows if r["reason"]}))
        yield (
            rows[0]
            | {"why": why}
            | {
                r["sentiment"]: "–"
                if r["reason"]
                else write.format(
                    *(number(r.get("value", r.get("f"))), number(r["p"], 4), number(r["p_bh"], 3)),
                    interval=interval(r) if "low" in r else "",
                    star="*" if r["p_bh"] is not None and r["p_bh"] <= 0.05 else "",
                )
                for r in rows
            }
        )


def coefficients(tables: Tables) -> pl.DataFrame:
    """Return coefficients, what they are called, and how many names are behind their shares."""
    frame, of = tables.read("anova/coefficients"), tables.read("sentiment/shares")
    if frame.is_empty():
        return frame
    told = {}
    for (gender,), part in parts(of, "gender") if len(of) else ():
        ends = dict.fromkeys(map(str, (part["names"].min(), part["names"].max())))
        told[gender] = f" (distinct names: {' to '.join(ends)})"
    names = (
        pl.col("response").cast(pl.String).replace_strict(told, default="", return_dtype=pl.String)
    )
    against = pl.format("{}: {} against {}", pl.col("factor").cast(pl.String), "level", "reference")
    plain = (pl.col("level") == "") | (pl.col("level") == pl.col("reference"))
    term = pl.when(plain).then(pl.col("factor").cast(pl.String)).otherwise(against)
    return frame.with_columns(term=term, names=names)


THREE = "positive; negative; neutral"
ANOVA = Step(
    "anova",
    "Shares by architecture, size and language (Tables 5 and 8)",
    "Linear models with treatment coding of the shares above, in percent: two-way (family, size) "
    "in each language, three-way (and language) over models that were asked in several. A "
    "coefficient is the difference from the reference level. Intervals: t of least squares, as in "
    "the paper, and of a jackknife over models, which errors may be unequal and clustered for. "
    "Star: adjusted p at most 0.05, over all coefficients of one ranking and reading. Where the "
    "models there are do not tell, the reason stands in place of the number. Worlds and real "
    "models are never mixed.",
    "anova",
    (
        fold(
            "{design}, {language}, {deviation}, {reading}, {pos}",
            "design language deviation reading pos",
            view(
                coefficients,
                Listing(
                    *("term; interval; why=why not", THREE),
                    "Coefficients, percent ({rows} shares, {freedom} residual degrees of freedom)",
                    rows=lambda own: _pivoted(
                        own, "factor level interval", "{0} ({interval}){star}"
                    ),
                ),
                Listing(
                    *("factor; {freedom} and {residual}=degrees of freedom; why=why not", THREE),
                    "F of each factor, given the others (type II)",
                    "anova/tests",
                    rows=lambda own: _pivoted(own, "factor", "{0} (p {1}, adj. {2})"),
                ),
                facets="response",
                heading="{response}{names}",
            ),
        ),
    ),
    "models",
)


def fits(tables: Tables) -> pl.DataFrame:
    """Return the measures of clusters, and how many people are behind the words of a gender."""
    frame, pmi = tables.read("clusters/fits"), tables.read("pmi/pmi")
    if frame.is_empty() or pmi.is_empty():
        return frame.with_columns(behind=pl.lit("")) if len(frame) else frame
    place = ["model", "language", "gender"]
    people = pmi.select(
        *(*place[:2], pl.col("gender").cast(pl.String)),
        pl.format(", {} people", "people").alias("behind"),
    ).unique(place)
    frame = frame.with_columns(gender=pl.col("group").cast(pl.String))
    behind = pl.col("behind").fill_null("")
    return frame.join(people, on=place, how="left").with_columns(behind).drop("gender")


def _clusters(_: pl.DataFrame, place: Place) -> str:
    frame = place.read("clusters/words").sort("word")
    numbers = frame["part"].unique().sort().to_list() if len(frame) else []
    shades = ("#440154", "#31688e", "#35b779", "#fde725", "#777777", "#ffffff")
    points = []
    for (part, gender), own in parts(frame, "part", "gender") if len(frame) else ():
        mark = figures.Mark(MARKS[gender].shape, shades[numbers.index(part) % len(shades)])
        at = list(own.select("x", "y").iter_rows())
        points.append(figures.Points(f"cluster {part}, {gender} ({len(own)})", at, mark))
    labels = ("first principal component of the states", "second principal component")
    return figures.scatter({"": points}, labels=labels, title=place.title) if points else ""


def _measures(frame: pl.DataFrame) -> Iterator[Row]:
    for (clusters,), part in parts(frame, "clusters"):
        by = {r["measure"]: r for r in part.to_dicts()}
        star = "*" if by["silhouette"]["chosen"] else ""
        cells = {name: f"{number(r['value'])} ({interval(r)})" for name, r in by.items()}
        yield by["silhouette"] | cells | {"clusters": f"{clusters}{star}"}


CLUSTERS = Step(
    "clusters",
    "Words of each gender in the model's states (Figure 5)",
    "k-means over the last hidden states of the words that deviate most to each gender. Star: the "
    "number of clusters with the largest silhouette, which the figure shows. Inertia: best run, "
    "and range over seeds. Silhouette: bootstrap over words; judged against one normal cloud of "
    "the same mean and covariance. Stability: adjusted Rand index of pairs of seeds, and its "
    "range. A silhouette near 0 is no cluster, however stable. Genders that are not here were left "
    "out for want of people, which is no finding of no pattern.",
    "clusters",
    (
        fold(
            *(HERE, WHERE),
            view(
                fits,
                Listing(
                    "clusters",
                    "inertia; silhouette; stability; gap; p:3=p of silhouette; p_bh",
                    rows=_measures,
                ),
                facets="group",
                heading="{group} ({words} words{behind})",
                figure=_clusters,
            ),
            view(
                "clusters/shares",
                Listing(
                    "part=cluster; gender",
                    "{count} of {words}=words; value=share; interval; expected; p; p_bh",
                    "Genders in the clusters of all words",
                    sort="part gender",
                ),
            ),
        ),
    ),
    MODEL,
)


def _pair(name: str) -> pl.Expr:
    """Return the pair of parts of the people that a column tells of."""
    told = {name: f"{a} against {b}" for a, b in PAIRS for name in (a, b, f"{a} against {b}")}
    pairs = pl.Enum(list(dict.fromkeys(told.values())))
    return pl.col(name).cast(pl.String).replace_strict(told, return_dtype=pairs).alias("pair")


def subgroup_shares(tables: Tables) -> pl.DataFrame:
    """Return shares in parts of the people, what they are called, and whether men differ."""
    frame, people = tables.read("subgroups/shares"), tables.read("subgroups/people")
    apart = tables.read("subgroups/differences")
    if frame.is_empty() or people.is_empty() or apart.is_empty():
        return pl.DataFrame()
    wide = people.group_by("model", "language", "subgroup").agg(
        pl.col("people").filter(pl.col("gender") == g).sum().alias(g) for g in GENDERS
    )
    of = ["model", "language", "pos", "of", "sentiment"]
    tested = apart.with_columns(of=pl.col("contrast").cast(pl.String)).select(*of, apart="p_bh")
    label = pl.format("{}, {} (n {} m, {} f, {} nb)", "language", "of", *GENDERS)
    return (
        frame.with_columns(_pair("subgroup"), of=pl.col("subgroup").cast(pl.String))
        .join(tested, on=of, how="left")
        .join(wide, on=["model", "language", "subgroup"], how="left")
        .with_columns(significant=sure("apart") & (pl.col("gender") == "male"), label=label)
        .sort("language", "subgroup", "gender", "sentiment")
    )


def contrasts(name: str) -> Source:
    """Return a table of contrasts with the pair of parts that each is of."""

    def read(tables: Tables) -> pl.DataFrame:
        frame = tables.read(f"subgroups/{name}")
        return frame.with_columns(_pair("contrast")) if len(frame) else frame

    return read


def _people(frame: pl.DataFrame) -> Iterator[Row]:
    for (_, _), part in parts(frame, "language", "subgroup"):
        rows = part.to_dicts()
        of = {r["gender"]: f"{r['people']:,} ({r['names']:,})" for r in rows}
        yield rows[0] | dict.fromkeys(GENDERS, "–") | of


TESTED = "interval; n=names; p; p_bh"
SUBGROUPS = Step(
    "subgroups",
    "Parts of the people (Figures 7 to 9)",
    "Shares of sentiments among the words that deviate most towards each gender, in parts of the "
    "people beside all others of the language. Star: men and women differ within the part, "
    "adjusted p at most 0.05. Intervals: Bayesian bootstrap over distinct names; p: genders "
    "permuted over them, adjusted over all differences of the model. Agreement: Spearman's "
    "correlation, over words, of PMI female minus male in both parts. Non-binary people are few: "
    "intervals without a test, which is no sign of no pattern; read their number first.",
    "subgroups",
    (
        fold(
            *("", ""),
            view(
                "subgroups/people",
                Listing(
                    *("language; subgroup=part of the people", "male; female; non-binary"),
                    "People (distinct names)",
                    rows=_people,
                ),
            ),
        ),
        fold(
            *("{model}, {pair}", "pair"),
            view(
                subgroup_shares,
                facets="pos",
                caption="n: men, women, and non-binary people.",
                figure=lambda own, at: _shares(own, f"{at.at['pos']}, {at.at['pair']}"),
            ),
            view(
                contrasts("differences"),
                Listing(
                    "language; pos=part of speech; contrast=in; sentiment",
                    f"value=difference; {TESTED}",
                    "Share female minus male; of two parts: that of the first minus the second",
                    sort="language pos contrast sentiment",
                ),
            ),
            view(
                contrasts("agreement"),
                Listing(
                    "language; pos=part of speech",
                    f"words; value=correlation; {TESTED}",
                    "Agreement of both parts",
                    sort="language pos",
                ),
            ),
        ),
    ),
    MODEL,
)


def varied(tables: Tables) -> pl.DataFrame:
    """Return the numbers of which one thing was done otherwise, with what became of them."""
    table = tables.read("robustness/robustness")
    if table.is_empty():
        return table
    plain, kind = (pl.col(name).cast(pl.String) for name in ("number", "kind"))
    by = plain + pl.lit(", by ") + pl.col("deviation").cast(pl.String)
    size = pl.col("change").abs()
    moved = pl.when(size > 0).then(pl.lit("moved")).otherwise(pl.lit("still"))
    order = ("language", "pos", "deviation", "number", "sentiment", "kind", "variation")
    return (
        table.filter(pl.col("kind") != "default")
        .sort(order)
        .sort(size, descending=True, maintain_order=True, nulls_last=True)
        .with_columns(
            number=pl.when(pl.col("deviation") == "pmi").then(plain).otherwise(by),
            fate=pl.when(size.is_null()).then(pl.lit("lacking")).otherwise(moved),
            what=pl.format("{}: {}", kind, "variation"),
            why=pl.col("reason").fill_null("the default cannot be had"),
        )
    )


def _summary(frame: pl.DataFrame) -> pl.DataFrame:
    size = pl.col("change").abs()
    return (
        frame.drop_nulls("change")
        .group_by("kind", "number")
        .agg(
            numbers=pl.len(),
            moved=(size > 0).sum(),
            largest=size.max(),
            left=(~pl.col("holds_default")).sum(),
        )
        .sort("kind", "number")
    )


def _reasons(frame: pl.DataFrame) -> pl.DataFrame:
    keys = ("kind", "variation", "language", "pos", "number", "what", "why")
    return frame.group_by(keys).agg(numbers=pl.len()).sort(keys)


VARIED = "what=what is varied; language; pos=part of speech; number"
MOVES = Listing(
    f"{VARIED}; sentiment; holds_default=default held",
    "change; value; interval; men; women; others=non-binary; "
    "{largest} of {candidates}=words; p; p_bh",
)
ROBUSTNESS = Step(
    "robustness",
    "Which numbers move, and with what",
    "The differences of shares between men and women, and the shares of non-binary people, with "
    "one thing done otherwise at a time. Numbers that move come first, by the size of the change "
    "from the default (by the latent-variable model, from its own); the others are folded. Default "
    "held: whether the interval has the default in it. p: genders permuted over distinct names; "
    "adjusted within one variation, over all languages, parts of speech and sentiments.",
    "robustness",
    (
        fold(
            *("", ""),
            view(
                varied,
                Listing(
                    "kind=what is varied; number",
                    "numbers; moved; largest=largest change; left=default not held",
                    "Changes from the default",
                    rows=_summary,
                ),
            ),
        ),
        *(
            fold(
                f"{{model}}: {{rows:,}} numbers {what}", "", view(varied, one, where={"fate": fate})
            )
            for fate, what, one in (
                ("moved", "that move", MOVES),
                ("still", "that stay as they are", MOVES),
                (
                    "lacking",
                    "that cannot be had",
                    Listing(f"{VARIED}; why", "numbers", rows=_reasons),
                ),
            )
        ),
    ),
    MODEL,
)


def lexica(tables: Tables) -> pl.DataFrame:
    """Return how well lexica do, and what their combination does better than each."""
    table, apart = (tables.read(f"sentiment_lexica/{t}") for t in ("agreement", "differences"))
    if table.is_empty() or apart.is_empty():
        return pl.DataFrame()
    of = ["language", "source", "kind", "lexicon", "measure"]
    view, reason = pl.col("kind") == "view", pl.col("reason")
    name = pl.when(view).then(pl.format("view: {}", "lexicon")).otherwise(pl.col("lexicon"))
    called = pl.when(reason.is_null()).then(name).otherwise(pl.format("{} ({})", name, reason))
    return table.join(apart, on=of, how="left", suffix="_apart").with_columns(called=called)


LEXICA = Step(
    "sentiment_lexica",
    "Lexica against labelled texts (Table 12)",
    "Texts with labels, classified by the mean sentiment of their words: by the combined lexica, "
    "by each view of them, and by the plain mean of the views. Cuts between the labels are chosen "
    "on other texts. Chance: the same labels in a random order. p: against the majority class, "
    "one label for all texts. Combination less: the combination's measure less that of the "
    "row; above 0 it is better. Intervals: bootstrap over texts. p: McNemar's exact test for "
    "accuracy, labels swapped at random for macro-F1; adjusted over all tests of one kind.",
    "sentiment_lexica",
    (
        fold(
            *("{language}, {source}", "language source"),
            view(
                lexica,
                Listing(
                    "called=lexicon",
                    "words; unknown=texts without any; value; interval; chance; p; p_bh; "
                    "value_apart=combination less; low_apart..high_apart; p_apart:4=p; "
                    "p_bh_apart=p adj.",
                    "{measure}, {n:,} texts",
                    sort="kind lexicon",
                    split="measure",
                ),
            ),
        ),
    ),
)


def _main(tables: Tables) -> pl.DataFrame:
    """Return the PMI of the words that are highest in the corrected reading."""
    table = tables.read("pmi/pmi")
    if table.is_empty():
        return table
    table = table.drop_nulls("value")
    smoothed = table.filter(
        (pl.col("reading") == "smoothed")
        & (pl.col("language") == pl.col("language").min().over("model"))
        & pl.col("gender").is_in(GENDERS[:2])
    )
    where = ["model", "language", "pos", "gender"]
    best = (
        smoothed.sort([*where, "value", "word"], descending=[*(False,) * 4, True, False])
        .group_by(where, maintain_order=True)
        .head(TOP // 2)
        .select(*where, "word")
    )
    return best.join(table, on=[*where, "word"], how="left", maintain_order="left")


def planted(tables: Tables, world: str) -> list[Part]:
    """Return planted log-ratio against measured PMI, one point a word."""
    places = (tables.data / "models" / world, tables.data / "samples/worlds" / world)
    weights = next((place for place in places if (place / "planted.parquet").is_file()), None)
    pmi = tables.read("pmi/pmi")
    pmi = pmi if pmi.is_empty() else pmi.filter(pl.col("model") == world)
    if weights is None or pmi.is_empty():
        return []
    truth = pl.read_parquet(weights / "planted.parquet")
    language = json.loads((weights / "world.json").read_text(encoding="utf-8"))["language"]
    own = pmi.filter((pl.col("reading") == "smoothed") & (pl.col("language") == language))
    male, female = (
        own.filter(pl.col("gender") == gender).select(
            "word", pl.col("pos").cast(pl.String), pl.col("value").alias(gender)
        )
        for gender in ("male", "female")
    )
    keys = ["word", "pos"]
    frame = male.join(female, on=keys).join(truth, on=keys).sort("word")
    frame = frame.with_columns(contrast=pl.col("female") - pl.col("male"))
    looks = {
        "positive": ("up", "#000"),
        "negative": ("down", "#777"),
        "neutral": ("circle", "#bbb"),
    }
    points = [
        figures.Points(
            f"planted {name}",
            list(part.select("log_ratio_nats", "contrast").drop_nulls().iter_rows()),
            figures.Mark(shape, face, face),
        )
        for name, (shape, face) in looks.items()
        if len(part := frame.filter(pl.col("sentiment") == name))
    ]
    labels = ("planted log-odds ratio, female to male (nats)", "measured PMI, female − male (nats)")

    def zeros(plot: figures.Panel) -> None:
        plot.spans([(*plot.x, 0.0)], figures.FAINT)
        plot.spans([(*plot.y, 0.0)], figures.FAINT, upright=True)

    drawn = figures.scatter({"": points}, labels=labels, under=zeros, reach=[(0.0, 0.0)])
    caption = "One point a word. Points on a rising line: the probe finds what was planted."
    return [Part(figure=drawn, caption=caption)]


STUDY = Study(
    "politicians",
    "Gender bias towards politicians",
    "What words do language models put beside the names of politicians, and do they differ "
    "between men, women and non-binary people?",
    "Stańczak, Ray Choudhury, Pimentel, Cotterell and Augenstein (2023)",
    (
        *(WORDS, LATENT, SUPERSENSES, SENTIMENT, ANOVA, CLUSTERS, SUBGROUPS, POOLED),
        *(ROBUSTNESS, LEXICA),
    ),
    (
        *("pmi", "latent", "supersenses", "sentiment", "anova", "clusters", "subgroups"),
        *("pooled", "robustness", "sentiment_lexica"),
    ),
    ("associations", "representations"),
    ("politicians", "words", "lexica", "supersenses", "labelled_texts"),
    Readings(
        "PMI of the words that go most with men and with women: the plug-in estimate of the paper, "
        "and the smoothed one, which is not carried away by words that few names have.",
        "PMI (nats)",
        "pmi",
        _main,
        "word pos gender",
        ("plug-in", "smoothed"),
    ),
    planted,
)
