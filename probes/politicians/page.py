"""The page of the study of politicians: words, classes and sentiments that go with genders."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING

import polars as pl

from plumbline.builders.datasets.lexica.build import SENTIMENTS
from plumbline.probes.report import figures
from plumbline.probes.report.tables import Source, Tables, parts
from plumbline.probes.report.view import Part, Place, Row, interval, number, study, sure

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

GENDERS = ("male", "female", "non-binary")
MARKS = {
    "male": figures.Mark("square", "#000", "#000"),
    "female": figures.Mark("circle", "#fff", "#000"),
    "non-binary": figures.Mark("diamond", "#bbb", "#777"),
}
EXAMPLES = 5  # words of a cluster, as in the paper's tables
TOP = 10
DIFFERENT = 15  # words of Table 3
PAIRS = (("native", "foreign"), ("popular", "other"), ("older", "younger"))


def made_of(*sources: str) -> Callable[[Callable[..., pl.DataFrame]], Source]:
    """Make a source of a function of tables: empty where one of them is."""

    def source(function: Callable[..., pl.DataFrame]) -> Source:
        def read(tables: Tables) -> pl.DataFrame:
            frames = [tables.read(name) for name in sources]
            return pl.DataFrame() if any(f.is_empty() for f in frames) else function(*frames)

        return read

    return source


def highest(table: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of the largest values, equal ones by the alphabet."""
    return table.sort(["value", "word"], descending=[True, False]).head(TOP)


def _words(own: pl.DataFrame, place: Place) -> figures.Forest:
    best = highest(own.filter(pl.col("reading") == "smoothed")).with_columns(
        *(pl.col(end).fill_null(pl.col("value")) for end in ("low", "high")), sure=sure()
    )
    title = f"{place.title}: {TOP} highest"
    unit = "PMI (nats), with interval; filled: adjusted p at most 0.05"
    return figures.shared(best.to_dicts(), line="word", unit=unit, title=title, filled="sure")


def _supersenses(own: pl.DataFrame, _: Place) -> figures.Forest:
    rows = own.sort("supersense").to_dicts()
    pair = [rows[0][side] for side in ("first", "second")]
    long = [
        {"class": r["supersense"], "gender": r[s], "value": r[f"share_{s}"]}
        | {end: r[f"{end}_{s}"] for end in ("low", "high")}
        for r in rows
        for s in ("first", "second")
    ]
    return figures.shared(
        long,
        line="class",
        unit="share of the words, with interval; bold: adjusted p at most 0.05",
        title=" and ".join(pair),
        series="gender",
        marks={pair[0]: figures.Mark(), pair[1]: figures.Mark("square", "#888", "#888")},
        bold=[r["supersense"] for r in rows if r["p_bonferroni"] <= 0.05],
    )


def _with_words(own: pl.DataFrame) -> pl.DataFrame:
    """Return the classes that some word of either list has."""
    return own.filter(pl.col("share_first") + pl.col("share_second") > 0)


def _shares(own: pl.DataFrame, title: str) -> figures.Forest:
    """Draw shares of sentiments, a panel each, men beside women."""
    based = "base" in own.columns
    key = '<path d="M12 0V12" stroke="#aaa"/>'
    return figures.shared(
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


@made_of("sentiment/shares", "sentiment/differences")
def shares(frame: pl.DataFrame, apart: pl.DataFrame) -> pl.DataFrame:
    """Return shares twice: models of each language, and languages of each model of several."""
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


def _sentiments(own: pl.DataFrame, place: Place) -> figures.Forest:
    title = f"{place.at['head']}: {', '.join(place.at[k] for k in ('pos', 'deviation', 'reading'))}"
    return _shares(own.sort("label", "gender", "sentiment"), title)


def _distinct(own: pl.DataFrame) -> Iterator[Row]:
    for _, part in parts(own, "label"):
        of = dict(part.select("gender", "names").iter_rows())
        yield part.row(0, named=True) | {g: of.get(g) for g in GENDERS}


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
                if r["reason"] and not r["reason"].startswith("no p:")
                else write.format(
                    *(number(r.get("value", r.get("f"))), number(r["p"], 4), number(r["p_bh"], 3)),
                    interval=interval(r) if "low" in r else "",
                    star="*" if r["p_bh"] is not None and r["p_bh"] <= 0.05 else "",
                )
                for r in rows
            }
        )


# coefficients with their intervals, and F with its p
terms = partial(_pivoted, keys="factor level interval", write="{0} ({interval}){star}")
tests = partial(_pivoted, keys="factor unit", write="{0} (p {1}, adj. {2})")


def coefficients(tables: Tables) -> pl.DataFrame:
    """Return coefficients, what they are called, and how many names are behind their shares."""
    frame, of = tables.read("anova/coefficients"), tables.read("sentiment/shares")
    if frame.is_empty():
        return frame
    behind = {}
    for (gender,), part in parts(of, "gender") if len(of) else ():
        ends = dict.fromkeys(map(str, (part["names"].min(), part["names"].max())))
        behind[gender] = f" (distinct names: {' to '.join(ends)})"
    names = (
        pl.col("response")
        .cast(pl.String)
        .replace_strict(behind, default="", return_dtype=pl.String)
    )
    against = pl.format("{}: {} against {}", pl.col("factor").cast(pl.String), "level", "reference")
    plain = (pl.col("level") == "") | (pl.col("level") == pl.col("reference"))
    term = pl.when(plain).then(pl.col("factor").cast(pl.String)).otherwise(against)
    fitted = ("models", "design", "group", "language", "deviation", "reading", "pos", "response")
    most = (pl.col(n).max().cast(pl.Int64).over(fitted) for n in ("rows", "df"))
    return frame.with_columns(*most, term=term, names=names, kind=pl.col("interval"))


def fits(tables: Tables) -> pl.DataFrame:
    """Return the measures of clusters, and how many people are behind the words of a gender."""
    frame, pmi = tables.read("clusters/fits"), tables.read("pmi/pmi")
    if frame.is_empty() or pmi.is_empty():
        return frame.with_columns(behind=pl.lit("")) if len(frame) else frame
    place = ["model", "language", "gender"]
    people = pmi.filter(reading="plug-in").select(
        pl.col(place[:2]),
        pl.col("gender").cast(pl.String),
        pl.format(", {} people", "people").alias("behind"),
    )
    people = people.unique(place)
    frame = frame.with_columns(gender=pl.col("group").cast(pl.String))
    behind = pl.col("behind").fill_null("")
    return frame.join(people, on=place, how="left").with_columns(behind).drop("gender")


def _clusters(_: pl.DataFrame, place: Place) -> str:
    if place.at["reading"] == "faithful":  # which is about genders in clusters, not about words
        return ""
    frame = place.read("clusters/words").sort("word")
    numbers = frame["cluster_id"].unique().sort().to_list() if len(frame) else []
    shades = ("#440154", "#31688e", "#35b779", "#fde725", "#777777", "#ffffff")
    points = []
    for (cluster, gender), own in parts(frame, "cluster_id", "gender") if len(frame) else ():
        mark = figures.Mark(MARKS[gender].shape, shades[numbers.index(cluster) % len(shades)])
        at = list(own.select("x", "y").iter_rows())
        points.append(figures.Points(f"cluster {cluster}, {gender} ({len(own)})", at, mark))
    labels = ("first principal component of the states", "second principal component")
    return figures.scatter({"": points}, labels=labels, title=place.title) if points else ""


def _genders(own: pl.DataFrame, place: Place) -> figures.Forest:
    """Draw how genders share each cluster (Figure 5)."""
    return figures.shared(
        own.with_columns(line=pl.format("cluster {}", "cluster_id")).to_dicts(),
        line="line",
        unit="share of the words of the cluster, with interval",
        title=place.title,
        series="gender",
        marks=MARKS,
        limits=(0.0, 1.0),
        zero={},
    )


@made_of("clusters/words")
def examples(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the words of each cluster of generated words that most lists have."""
    by = ["model", "language", "pos", "reading", "group", "cluster_id"]
    best = frame.drop_nulls("lists").sort("lists", "word", descending=[True, False])
    words = pl.col("word").head(EXAMPLES).str.join(", ")
    return best.group_by(by).agg(words=words, size=pl.len()).sort(by)


@made_of("averages/averages")
def averaged(frame: pl.DataFrame) -> pl.DataFrame:
    """Return mean shares of men and women over several models, a line a language."""
    sides = frame.drop_nulls("low").filter(
        pl.col("response").cast(pl.String).is_in(GENDERS[:2])
    )  # as the paper
    label = pl.format("{} ({})", "language", "n")
    return sides.with_columns(gender="response", label=label, significant=pl.lit(False))


def _averages(own: pl.DataFrame, place: Place) -> figures.Forest:
    return _shares(own.sort("label", "gender", "sentiment"), place.title)


@made_of("pmi/differences", "pmi/pooled")
def apart(frame: pl.DataFrame, each: pl.DataFrame) -> pl.DataFrame:
    """Return the words that are furthest apart, with the PMI of women and of men (Table 3)."""
    by = ["group", "models", "language", "pos", "unit", "word", "reading"]
    frame = frame.filter(unit="lemma").drop_nulls("value").sort(*by[:4], "reading", "rank")
    for gender in ("female", "male"):
        own = each.filter(gender=gender).select(*by, pl.col("value").alias(gender))
        frame = frame.join(own, on=by, how="left", maintain_order="left")
    return frame.group_by(*by[:4], "reading", maintain_order=True).head(DIFFERENT)


def _measures(frame: pl.DataFrame) -> Iterator[Row]:
    for (clusters,), part in parts(frame, "clusters"):
        by = {r["measure"]: r for r in part.to_dicts()}
        star = "*" if by["silhouette"]["chosen"] else ""
        cells = {"gap": "–"}  # where there is nothing to compare with
        cells |= {name: f"{number(r['value'])} ({interval(r)})" for name, r in by.items()}
        yield by["silhouette"] | cells | {"clusters": f"{clusters}{star}"}


def _pair(name: str) -> pl.Expr:
    """Return the pair of parts of the people that a column is about."""
    names = {name: f"{a} against {b}" for a, b in PAIRS for name in (a, b, f"{a} against {b}")}
    pairs = pl.Enum(list(dict.fromkeys(names.values())))
    return pl.col(name).cast(pl.String).replace_strict(names, return_dtype=pairs).alias("pair")


@made_of("subgroups/shares", "subgroups/people", "subgroups/differences")
def subgroup_shares(frame: pl.DataFrame, people: pl.DataFrame, apart: pl.DataFrame) -> pl.DataFrame:
    """Return shares in parts of the people, what they are called, and whether men differ."""
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


def _subgroups(own: pl.DataFrame, place: Place) -> figures.Forest:
    return _shares(own, f"{place.at['pos']}, {place.at['pair']}")


def contrasts(name: str) -> Source:
    """Return a table of contrasts with the pair of parts that each is of."""
    return made_of(f"subgroups/{name}")(lambda frame: frame.with_columns(_pair("contrast")))


def _people(frame: pl.DataFrame) -> Iterator[Row]:
    for (_, _), part in parts(frame, "language", "subgroup"):
        rows = part.to_dicts()
        of = {r["gender"]: f"{r['people']:,} ({r['names']:,})" for r in rows}
        yield rows[0] | dict.fromkeys(GENDERS, "–") | of


@made_of("robustness/robustness")
def varied(table: pl.DataFrame) -> pl.DataFrame:
    """Return the numbers of which one thing was done otherwise, with what became of them."""
    plain, kind = (pl.col(name).cast(pl.String) for name in ("number", "kind"))
    by = plain + pl.lit(", latent")  # the one deviation of that model there is
    size = pl.col("change").abs()
    moved = pl.when(size > 0).then(pl.lit("moved")).otherwise(pl.lit("still"))
    order = ("language", "pos", "deviation", "number", "sentiment", "kind", "variation")
    return (
        table.filter(pl.col("kind") != "default")
        .sort(order)
        .sort(size, descending=True, maintain_order=True, nulls_last=True)
        .with_columns(
            number=pl.when(pl.col("deviation") == "pmi").then(plain).otherwise(by),
            fate=pl.when(size.is_null()).then(pl.lit("missing")).otherwise(moved),
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


@made_of("lexicon_evaluation/agreement", "lexicon_evaluation/differences")
def lexica(table: pl.DataFrame, apart: pl.DataFrame) -> pl.DataFrame:
    """Return how well lexica do, and what their combination does better than each."""
    table = table.filter(~pl.col("source").str.ends_with("-null"))  # stands with the controls
    of = ["language", "source", "kind", "lexicon", "measure"]
    view, reason = pl.col("kind") == "view", pl.col("reason")
    name = pl.when(view).then(pl.format("view: {}", "lexicon")).otherwise(pl.col("lexicon"))
    called = pl.when(reason.is_null()).then(name).otherwise(pl.format("{} ({})", name, reason))
    return table.join(apart, on=of, how="left", suffix="_apart").with_columns(called=called)


@made_of("pmi/pmi")
def _main(table: pl.DataFrame) -> pl.DataFrame:
    """Return the PMI of the words that are highest in the corrected reading."""
    table = table.filter(pl.col("unit") == "lemma").drop_nulls("value")
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
    by_form = (pl.col("reading") == "smoothed") & (pl.col("unit") == "form")  # as it was planted
    own = pmi.filter(by_form, pl.col("language") == language)
    value, gender = pl.col("value"), pl.col("gender")
    both = own.group_by("word", pl.col("pos").cast(pl.String)).agg(
        contrast=value.filter(gender == "female").first() - value.filter(gender == "male").first()
    )
    frame = both.join(truth, on=["word", "pos"]).sort("word")
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


STUDY = study(__file__, globals())
