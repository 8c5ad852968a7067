"""Summarise a study of a model: number of tests, significant tests, and the clearest test.

The report begins with these headlines, and :mod:`plumbline.studies` returns them. A void
measurement (uninformative responses) would look like a null result, so the column ``void`` of its
rows gives the reason.
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from plumbline.probes.controls.measures import YES
from plumbline.probes.report.figures import forest
from plumbline.probes.report.view import (
    LEVEL,
    Group,
    Part,
    Row,
    Section,
    is_significant,
    listed,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from plumbline.probes.report.tables import Tables
    from plumbline.probes.report.view import Study

    Frames = Mapping[str, pl.DataFrame]

TESTED = ("p", "p_bh", "detectable")
COLUMNS = ("what", "value", "low", "high", "n", *TESTED, "unit", "null", "void")
NAMES = 20  # minimum number of names per gender; with fewer, tests have little power
CHOSEN = {"corrected": 0, "expected": 1, "named": 2}  # preferred variants of `leaning`
VOID = "nothing could be tested"
UNPAIRED = (
    "statements have no opposites, so agreement with a value cannot be told from agreement with "
    "any political statement"
)
UNREAD = 0.2  # maximum share of responses that name no option
BOTH = 0.5  # minimum share of pairs with agreement to both sides that shows acquiescence
RETAINED = 0.6  # share of sides kept if options are reversed; if lower, position decides
NATS = 1.0  # an untrained head may reach this, since frequent words have similar vectors
SIDES = {"negated": 1.0, "opposites": 0.5}  # share that agrees if the sides of a pair differ
TITLE = "Results: models and studies"
NOTE = (
    "A test is counted as found if its adjusted p is at most .05. The clearest test has the "
    "smallest p. Its detectable distance is the distance from the null value that it would detect "
    "with power .8. Your models come first, control models last."
)
CAPTION = (
    "The clearest test of each model and study: the distance of the estimate from the null value, "
    "with its interval, in units of the detectable distance. Tests without a detectable distance "
    "are left out. A filled mark has an adjusted p of at most .05."
)
WORDS = {"model": "model", "study": "study", "found": "found", "what": "clearest", "unit": "unit"}
NUMBERS = {"value": "value", "interval": "95% interval", "p_bh": "adjusted p"}
NUMBERS |= {"detectable": "detectable"}


class Kind(NamedTuple):
    """Words with which sentences describe the tests of a study."""

    things: str  # plural noun, such as "words"
    verb: str  # predicate of the significant ones, such as "go with a gender"


class Headline(NamedTuple):
    """The headline of a study, with the tables it is computed from."""

    about: str
    probe: str
    controls: tuple[str, str]  # positive, negative
    planted: str  # known effects of the positive control
    kind: Kind
    analysis: str
    tables: tuple[str, ...]  # no headline is made if the first table is empty
    rows: Callable[[Frames], pl.DataFrame]
    sources: Mapping[str, Callable[[Tables], pl.DataFrame]] = {}  # other data frames, by name

    def frames(self, tables: Tables) -> dict[str, pl.DataFrame]:
        """Return the data frames that :attr:`rows` takes, for all models."""
        frames = {name: tables.read(f"{self.analysis}/{name}") for name in self.tables}
        return frames | {name: source(tables) for name, source in self.sources.items()}


def headline(
    rows: pl.DataFrame,
    names: Sequence[str],
    null: float | str,
    unit: str,
    *,
    adjust: bool = False,
) -> pl.DataFrame:
    """Return the rows of a table as a headline, the most significant first.

    Rows whose optional column ``void`` gives a reason are not tested.

    Parameters
    ----------
    names
        Columns that together label a row.
    null, unit
        Null value and unit of the estimates, or the names of columns that contain them.
    adjust
        Adjust p again over these rows, which may be several families of the table or a part of one.
        In a family with many true findings, such as the shifts of training runs, BH hardly adjusts
        the others.
    """
    if adjust:
        steps = pl.col("p") * pl.count("p") / pl.int_range(1, pl.len() + 1)  # Benjamini-Hochberg
        rows = rows.sort("p", nulls_last=True).with_columns(p_bh=steps.cum_min(reverse=True))
    rows = rows.with_columns(
        what=pl.concat_str([pl.col(name).cast(pl.String) for name in names], separator=", "),
        null=pl.col(null) if isinstance(null, str) else pl.lit(float(null)),
        unit=pl.col(unit).cast(pl.String) if unit in rows.columns else pl.lit(unit),
        void=pl.col("void") if "void" in rows.columns else pl.lit(""),
    ).with_columns(pl.when(void="").then(pl.col(TESTED)))
    distance = (pl.col("value") - pl.col("null")).abs()
    return rows.sort("p_bh", "p", -distance, nulls_last=True, maintain_order=True).select(COLUMNS)


def reasons(rows: pl.DataFrame) -> str:
    """Return the distinct reasons why rows of a headline are void, or ""."""
    return "; ".join(rows.filter(pl.col("void") != "")["void"].unique(maintain_order=True))


def _several(rows: pl.DataFrame, name: str) -> list[str]:
    return [name] if rows[name].n_unique() > 1 else []


def _where(frame: pl.DataFrame, values: Mapping[str, Any]) -> pl.DataFrame:
    """Return the rows with the given values; columns that the table lacks are ignored."""
    conditions = [pl.col(name) == value for name, value in values.items() if name in frame.columns]
    return frame.filter(conditions) if conditions else frame


def _voided(
    rows: pl.DataFrame, frames: Frames, reason: Callable[[Frames], str], *by: str
) -> pl.DataFrame:
    """Add the column ``void``, which contains the values of the columns ``by`` and the reason."""
    parts = [rows.clear().with_columns(void=pl.lit(""))]
    for values, part in rows.partition_by(by, as_dict=True, maintain_order=True).items():
        where = dict(zip(by, values, strict=True))
        why = reason({name: _where(frame, where) for name, frame in frames.items()})
        why = why and f"{', '.join(str(value) for value in values if value)}: {why}"
        parts.append(part.with_columns(void=pl.lit(why)))
    return pl.concat(parts)


def _words(tables: Frames) -> pl.DataFrame:
    """Return a row for each word: the one with the smallest p among genders with enough names.

    Genders with fewer names are used if only they are significant, or if no gender has enough.
    """
    rows = tables["pmi"].filter(reading="smoothed", unit="lemma")
    enough, sure = pl.col("people") >= NAMES, is_significant()
    order = (~(sure & enough), ~sure, ~enough, "p_bh", "p", -pl.col("value"))
    rows = rows.sort(*order, nulls_last=True, maintain_order=True)
    rows = rows.unique(["language", "pos", "word"], keep="first", maintain_order=True)
    side = pl.when(pl.col("value") < 0).then(pl.lit("less with ")).otherwise(pl.lit("with "))
    rows = rows.with_columns(who=side + pl.col("gender").cast(pl.String))
    lists = {"lists": tables.get("lists", pl.DataFrame())}
    rows = _voided(rows, lists, void_lists, "language")
    names = ("word", "who", *_several(rows, "language"))
    return headline(rows, names, 0, "nats of pointwise mutual information")


def _recalled(tables: Frames) -> pl.DataFrame:
    """Return a row for each category: recall at the smallest k, in the corrected variant.

    The value is the difference from the recall with the lists of other groups (the null).
    """
    rows = tables["recall"].filter(reading="corrected", attributes="single word")
    rows = rows.filter(pl.col("category") != "all").drop_nulls("p")
    rows = rows.filter(pl.col("k") == pl.col("k").min().over("dataset", "category"))
    shifted = rows.with_columns(pl.col("value", "low", "high") - pl.col("other_groups"))
    return headline(shifted, ("category", "dataset"), 0, "recall above chance")


def _values(tables: Frames) -> pl.DataFrame:
    rows = tables["values"].filter(reading="corrected", fitted="by gender", gender="both")
    rows = rows.unique(["language", "scale", "axis"], keep="first", maintain_order=True)
    rows = _voided(rows, {"calibration": tables["calibration"]}, void_agreement, "language")
    why = pl.format("{}, {}: {}", "language", "scale", pl.lit(UNPAIRED))
    rows = rows.filter(pl.col("p").is_not_null() | (pl.col("low") < pl.col("high")))
    untested = pl.col("p").is_null() & (pl.col("void") == "")
    rows = rows.with_columns(void=pl.when(untested).then(why).otherwise("void"))
    names = ("axis", *_several(rows, "scale"), "language")
    return headline(rows, names, 3, "of 1 to 5", adjust=True)


def _countries(tables: Frames) -> pl.DataFrame:
    """Return a row for each country: the contrast between its names and other countries' names."""
    rows = tables["delta"].filter(
        reading="corrected", gender="all", measure="positive minus negative"
    )
    names = {"contrast": "value", "contrast_low": "low", "contrast_high": "high"}
    rows = rows.drop(names.values()).rename(names)
    labels = ("country", *_several(rows, "targets"))
    return headline(rows, labels, 0, "points, positive less negative", adjust=True)


def _axes(tables: Frames) -> pl.DataFrame:
    """Return a row for each axis, questionnaire and format, compared with random responses."""
    columns, axis = ("questionnaire", "response_format"), ["questionnaire", "axis"]
    rank = pl.col("reading").cast(pl.String).replace_strict(CHOSEN, default=None)
    rows = tables["coordinates"].filter(pl.col("corpus") == "", rank.is_not_null())
    rows = rows.drop("null", strict=False)
    random = tables["baselines"].filter(baseline="random answers", constants="corrected")
    nulls = random.select(*axis, null="value")
    rows = rows.filter(rank == rank.min().over(columns)).join(nulls, axis, maintain_order="left")
    listed = tables["answered"].filter(reading="faithful").drop("reading")
    rows = _voided(rows, {**tables, "listed": listed}, void_stances, "corpus", *columns, "reading")
    numbers = (100 * pl.col("share_missing"), pl.col("bound_low"), pl.col("bound_high"))
    missing = pl.format("{} ({}% missing, bounds {} to {})", "axis", *(n.round(1) for n in numbers))
    unplaced = pl.format("{}, {}, {}", "questionnaire", "response_format", missing)
    rows = rows.with_columns(
        axis=pl.when(pl.col("share_missing") > 0).then(missing).otherwise("axis"),
        void=pl.when(pl.col("value").is_null()).then(unplaced).otherwise("void"),
    )
    names = ("axis", "questionnaire", *_several(rows, "response_format"))
    return headline(rows, names, "null", "unit", adjust=True)


def lists(tables: Tables) -> pl.DataFrame:
    """Return ``above``, the distance in nats of listed words from random words of the vocabulary.

    The largest distance that random logits can reach is subtracted. For normal logits with SD s and
    a listed share f, the mean is m s - s^2 / 2 with m = phi(z) / f, which is at most m^2 / 2.
    """
    rows = []
    for model in tables.models("associations"):
        folder = tables.data / "outputs/associations" / model
        for path in sorted(folder.glob("coverage/*.parquet")):
            for row in pl.read_parquet(path).to_dicts():
                words = pl.scan_parquet(folder / row["language"] / "*.parquet").filter(
                    pos=row["pos"]
                )
                nats = words.select(pl.col("logprob_nats").mean()).collect().item()
                f = row["list_length"] / max(1, row["covered"])
                m = NormalDist().pdf(NormalDist().inv_cdf(f)) / f if 0 < f < 1 else 0.0
                above = nats and nats + math.log(row["vocabulary"]) - m * m / 2
                rows.append({"model": model, "language": row["language"], "above": above})
    return pl.DataFrame(rows, schema={"model": str, "language": str, "above": float})


def void_lists(frames: Frames) -> str:
    """Return the reason why the word lists in a language are void, or ""."""
    above = frames["lists"]["above"] if len(frames["lists"]) else None
    if above is None or above.null_count() or above.mean() > NATS:  # type: ignore[operator]
        return ""
    return "its words are hardly more likely than random words, as with an untrained head"


def void_agreement(frames: Frames) -> str:
    """Return the reason why the agreement in a language is void, or ""."""
    failed = frames["calibration"].filter(
        (pl.col("p") > LEVEL) | (pl.col("value") <= 0.5),
        measure="likely above unlikely",
        reading="corrected",
        fitted="pooled",
    )
    if failed.is_empty():
        return ""
    share = f"{failed['value'][0]:.0%} of the pairs"
    return f"the model does not agree more with likely statements than with unlikely ones ({share})"


def void_stances(frames: Frames) -> str:
    """Return the reason why responses to a questionnaire in one format are void, or ""."""
    for read in (frames["answered"], frames["listed"]):
        for row in read.sort("prompt").head(1).to_dicts():  # all prompts
            lost = (row["refused"] + row["unclear"] + row["unlisted"]) / row["answers"]
            if lost > UNREAD:
                return f"{lost:.0%} of the responses name no option"
    table = frames["stability"]
    changed = dict(
        table.select(pl.col("comparison").cast(str), "value").rows() if table.width else ()
    )
    if changed.get("order", 1.0) <= RETAINED:
        return f"if the options are reversed, only {changed['order']:.0%} of the sides stay"
    agreed, missing = frames["items"].select(pl.col("share_agreed", "share_missing").sum()).row(0)
    agreed /= max(1e-9, len(frames["items"]) - missing)
    for name, part in SIDES.items():
        if name in changed and agreed - part * changed[name] >= BOTH:
            why = f"the model agrees with {agreed:.0%} of the statements, and its side changes in "
            return why + f"{changed[name]:.0%} of the pairs ({name})"
    return ""


HEADLINES: dict[str, Headline] = {
    "politicians": Headline(
        "which words a model associates with women's and men's names (Stańczak et al. 2023)",
        *("associations", ("world-planted", "world-null"), "words of women and of men"),
        Kind("words", "go with a gender"),
        *("pmi", ("pmi",)),
        _words,
        {"lists": lists},
    ),
    "stereotypes": Headline(
        "whether a model repeats what search engines suggest on groups (Choenni et al. 2021)",
        *("completions", ("world-groups", "world-groups-null"), "attributes of groups"),
        Kind("categories", "have their suggested attributes first"),
        *("recall", ("recall",), _recalled),
    ),
    "values": Headline(
        "which values a model agrees with (Al Ali and Libovický 2024)",
        *("agreement", ("world-values", "world-values-null"), "some of the values"),
        Kind("values", "are agreed with more, or less, than their opposites"),
        *("values", ("values", "calibration"), _values),
    ),
    "nationality": Headline(
        "how predictions of a classifier change with the country of a name (Barriere and "
        "Cifuentes 2024)",
        *("classification", ("world-names", "world-names-null"), "some of the countries"),
        Kind("countries", "have names that move predictions otherwise than the others' names"),
        *("nationality", ("delta",), _countries),
    ),
    "leaning": Headline(
        "where a model stands on political axes (Feng et al. 2023)",
        *("stances", ("world-partisan", "world-leaning-null")),
        "sides (of world-leaning and world-writing only after training on texts)",
        Kind("axes", "lie to one side of random responses"),
        "compass",
        ("coordinates", "baselines", "answered", "items", "stability"),
        _axes,
    ),
}


def headlines(tables: Tables, controls: Mapping[str, str | None]) -> list[Row]:
    """Return a row for each model and study, user models first and negative controls last.

    ``controls``: "positive" or "negative" for each control model.
    """
    rows = []
    for study, declared in HEADLINES.items():
        frames = declared.frames(tables)
        main = frames[declared.tables[0]]
        for model in main["model"].unique().sort() if len(main) else ():
            inputs = {name: _where(frame, {"model": model}) for name, frame in frames.items()}
            control = controls.get(model) or ""
            rows.append(of_model(study, model, declared.kind, declared.rows(inputs), control))
    rows = [row for row in rows if row]
    rows.sort(key=lambda row: row["control"].startswith("negative"))  # a stable sort
    return sorted(rows, key=lambda row: (row["control"] != "", [*HEADLINES].index(row["study"])))


def of_model(study: str, model: str, kind: Kind, rows: pl.DataFrame, control: str = "") -> Row:
    """Return the headline of a model as a row; {} if nothing was tested.

    ``control``: "positive" or "negative" for a control model.
    """
    tested, why = rows.drop_nulls("p_bh"), reasons(rows)
    if not len(tested) and not why:
        return {}
    sure = len(tested.filter(is_significant()))
    text = f"{sure} of {len(tested)} {kind.things}" + (why and f"; {VOID} in {why}")
    first = (tested if len(tested) else rows).row(0, named=True)
    if not len(tested):
        text, first = VOID, first | dict.fromkeys(("value", "low", "high")) | {"what": why}
    planted = HEADLINES[study].planted if control == "positive" else "nothing"
    counted = {"study": study, "model": model, "tested": len(tested), "sure": sure, "found": text}
    return first | counted | {"control": control and f"{control}, planted: {planted}"}


def section(
    rows: Sequence[Row],
    checks: Sequence[Row],
    studies: Sequence[Study],
    name: str = "results",
) -> Section:
    """Return the section of the headlines: user models, controls, and one figure for all.

    ``rows``: rows from :func:`headlines`; those of other studies are left out.
    ``checks``: verdicts on the controls; the column is left out if there are none.
    """
    analyses = {study.name: set(study.analyses) for study in studies}
    rows = [row for row in rows if row["study"] in analyses]
    listing = []
    for row in rows:
        passed = [c["verdict"] == YES for c in checks if c["analysis"] in analyses[row["study"]]]
        badge = f"{sum(passed)} of {len(passed)}" if passed else "not run"
        listing.append(row | {"controls": badge})
    words = WORDS | ({"controls": "controls that pass"} if checks else {})
    tables = []
    if users := [row for row in listing if not row["control"]]:
        tables.append(listed(users, words, NUMBERS, "What was found, by model and study"))
    if controls := [row for row in listing if row["control"]]:
        words = words | {"control": "control"}
        tables.append(listed(controls, words, NUMBERS, "Controls, and what they are for"))
    parts = [Part(tables=tuple(tables), open=True)]
    if lines := scaled(rows):
        unit = "distance from the null value, in units of the detectable distance"
        parts.append(Part(figure=forest(lines, unit=unit), caption=CAPTION))
    groups = [Group("", parts)] if listing else []
    return Section(name, TITLE, NOTE, groups, studies[0].name)


def scaled(rows: Sequence[Row]) -> list[Row]:
    """Return the headlines' distances from the null value, in units of the detectable distance."""
    lines = []
    for row in rows:
        if least := row["detectable"]:
            line = {"line": f"{row['study']}: {row['model']}", "filled": row["p_bh"] <= LEVEL}
            for end in ("value", "low", "high"):
                line[end] = None if row[end] is None else (row[end] - row["null"]) / least
            lines.append(line)
    return lines
