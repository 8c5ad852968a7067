"""The headline of a study about a model: what was tested, what was found, the clearest of all.

The report begins with them, and :mod:`plumbline.studies` answers with them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from plumbline.probes.controls.measures import YES
from plumbline.probes.report.figures import forest
from plumbline.probes.report.tables import kept
from plumbline.probes.report.view import LEVEL, Block, Group, Part, Row, Section, listed
from plumbline.probes.site import void

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from plumbline.probes.report.tables import Source, Tables
    from plumbline.probes.report.view import Study

TESTED = ("p", "p_bh", "detectable")
COLUMNS = ("what", "value", "low", "high", "n", *TESTED, "unit", "null", "void")
NAMES = 20  # of a gender, below which its test finds next to nothing
CHOSEN = {"corrected": 0, "expected": 1, "named": 2}  # readings of `leaning`: a format's first
VOID = "nothing could be read"
TITLE = "Results: models and studies"
NOTE = (
    "Found: tests with an adjusted p of at most .05. The clearest is the one with the smallest p. "
    "Detectable: the distance from the null hypothesis at which that test would find an effect "
    "with power .8. Your models come first, control models last."
)
CAPTION = (
    "The clearest test of each model and study with its interval: the distance from the null "
    "hypothesis, in units of the detectable one; left out where that is not known. Filled: "
    "adjusted p at most .05."
)
WORDS = {"model": "model", "study": "study", "found": "found", "what": "clearest", "unit": "unit"}
NUMBERS = {"value": "value", "interval": "95% interval", "p_bh": "adjusted p"}
NUMBERS |= {"detectable": "detectable"}


class Kind(NamedTuple):
    """Words for the tests of a study."""

    things: str  # plural noun: "words"
    verb: str  # predicate of those that are found: "go with a gender"


class Headline(NamedTuple):
    """The tables of a study that its headline is made of, and how."""

    analysis: str
    tables: tuple[str, ...]  # of the analysis; without rows in the first there is no headline
    kind: Kind
    rows: Callable[[Mapping[str, pl.DataFrame]], pl.DataFrame]
    planted: str  # in positive controls
    sources: Mapping[str, Source] = {}  # others, by name

    def frames(self, tables: Tables) -> dict[str, pl.DataFrame]:
        """Return the frames that :attr:`rows` takes, of all models."""
        own = {name: tables.read(f"{self.analysis}/{name}") for name in self.tables}
        return own | {name: tables.read(source) for name, source in self.sources.items()}


def headline(
    rows: pl.DataFrame, what: Sequence[str], null: float | str, unit: str, *families: str
) -> pl.DataFrame:
    """Return the rows of a table as a headline, the surest first.

    ``what``: columns that together say what a row is about; ``null``, ``unit``: of the values, or
    a column that has them; ``families``: columns that are equal in tests that the table adjusts
    together: of several, p is adjusted over all, as one sentence is about all.

    Rows with a reason in the column ``void``, if there is one, are not tested.
    """
    if families and rows.n_unique(families) > 1:
        each = pl.col("p") * pl.count("p") / pl.int_range(1, pl.len() + 1)  # Benjamini-Hochberg
        rows = rows.sort("p", nulls_last=True).with_columns(p_bh=each.cum_min(reverse=True))
    rows = rows.with_columns(
        what=pl.concat_str([pl.col(name).cast(pl.String) for name in what], separator=", "),
        null=pl.col(null) if isinstance(null, str) else pl.lit(float(null)),
        unit=pl.col(unit).cast(pl.String) if unit in rows.columns else pl.lit(unit),
        void=pl.col("void") if "void" in rows.columns else pl.lit(""),
    ).with_columns(pl.when(void="").then(pl.col(TESTED)))
    away = (pl.col("value") - pl.col("null")).abs()
    return rows.sort("p_bh", "p", -away, nulls_last=True, maintain_order=True).select(COLUMNS)


def reasons(rows: pl.DataFrame) -> str:
    """Return why rows of a headline are void, each reason once; "" where none is."""
    return "; ".join(rows.filter(pl.col("void") != "")["void"].unique(maintain_order=True))


def _several(rows: pl.DataFrame, *names: str) -> list[str]:
    """Return the columns that differ between rows."""
    return [name for name in names if rows[name].n_unique() > 1]


def _of(frame: pl.DataFrame, where: Mapping[str, Any]) -> pl.DataFrame:
    """Return the rows of a table with some values, whatever columns it lacks."""
    return kept(frame, {name: value for name, value in where.items() if name in frame.columns})


def _voided(
    rows: pl.DataFrame,
    frames: Mapping[str, pl.DataFrame],
    reason: Callable[[Mapping[str, pl.DataFrame]], str],
    *by: str,
) -> pl.DataFrame:
    """Add the column ``void``: for values of some columns what they are, and why they are void."""
    parts = [rows.clear().with_columns(void=pl.lit(""))]
    for at, own in rows.partition_by(by, as_dict=True, maintain_order=True).items():
        where = dict(zip(by, at, strict=True))
        why = reason({name: _of(frame, where) for name, frame in frames.items()})
        why = why and f"{', '.join(str(value) for value in at if value)}: {why}"
        parts.append(own.with_columns(void=pl.lit(why)))
    return pl.concat(parts)


def _words(tables: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """One row a word: its cell with the smallest p among genders with enough names.

    That of another gender where it alone is found, or no gender has as many.
    """
    own = tables["pmi"].filter(pl.col("reading") == "smoothed", pl.col("unit") == "lemma")
    enough, found = pl.col("people") >= NAMES, (pl.col("p_bh") <= LEVEL).fill_null(value=False)
    order = (~(found & enough), ~found, ~enough, "p_bh", "p", -pl.col("value"))
    own = own.sort(*order, nulls_last=True, maintain_order=True)
    own = own.unique(["language", "pos", "word"], keep="first", maintain_order=True)
    side = pl.when(pl.col("value") < 0).then(pl.lit("less with ")).otherwise(pl.lit("with "))
    own = own.with_columns(who=side + pl.col("gender").cast(pl.String))
    lists = {"lists": tables.get("lists", pl.DataFrame())}
    what = ("word", "who", *_several(own, "language"))
    own = _voided(own, lists, void.politicians, "language")
    return headline(own, what, 0, "nats of pointwise mutual information")


def _recalled(tables: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """One row a category: recall among the most words, by the corrected reading.

    It is the distance of the recall from that with the lists of other groups, which is the null.
    """
    own = tables["recall"].filter(
        pl.col("reading") == "corrected",
        pl.col("attributes") == "single word",
        pl.col("category") != "all",
        pl.col("p").is_not_null(),
    )
    own = own.filter(pl.col("k") == pl.col("k").min().over("dataset", "category"))
    chance = pl.col("other_groups")
    shifted = own.with_columns([(pl.col(c) - chance).alias(c) for c in ("value", "low", "high")])
    return headline(shifted, ("category", "dataset"), 0, "recall above chance")


def _values(tables: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    own = tables["values"].filter(
        pl.col("reading") == "corrected",
        pl.col("fitted") == "by gender",
        pl.col("gender") == "both",
        pl.col("p").is_not_null(),
    )
    own = own.unique(["language", "scale", "axis"], keep="first", maintain_order=True)
    what = ("axis", *_several(own, "scale"), "language")
    own = _voided(own, {"calibration": tables["calibration"]}, void.values, "language")
    return headline(own, what, 3, "of 1 to 5", "language", "scale")


def _countries(tables: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """One row a country: its names against those of the others, as any name moves predictions."""
    own = tables["delta"].filter(
        pl.col("reading") == "corrected",
        pl.col("gender") == "all",
        pl.col("measure") == "positive minus negative",
    )
    names = {"contrast": "value", "contrast_low": "low", "contrast_high": "high"}
    own = own.drop(names.values()).rename(names)
    what = ("country", *_several(own, "targets"))
    return headline(own, what, 0, "points, positive less negative", "targets")


def _axes(tables: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """One row an axis, questionnaire and format of responses, tested against random responses."""
    place, axis = ("questionnaire", "response_format"), ["questionnaire", "axis"]
    rank = pl.col("reading").cast(pl.String).replace_strict(CHOSEN, default=None)
    own = tables["coordinates"].filter(pl.col("corpus") == "", rank.is_not_null())
    own = own.drop("null", strict=False)
    random = (pl.col("baseline") == "random answers") & (pl.col("constants") == "corrected")
    nulls = tables["baselines"].filter(random).select(*axis, null="value")
    own = own.filter(rank == rank.min().over(place)).join(nulls, axis, maintain_order="left")
    listed = tables["answered"].filter(pl.col("reading") == "faithful").drop("reading")
    what = ("axis", "questionnaire", *_several(own, "response_format"))
    own = _voided(own, {**tables, "listed": listed}, void.leaning, "corpus", *place, "reading")
    return headline(own, what, "null", "unit", *place)


HEADLINES: dict[str, Headline] = {
    "politicians": Headline(
        *("pmi", ("pmi",), Kind("words", "go with a gender"), _words, "words of women and of men"),
        {"lists": void.lists},
    ),
    "stereotypes": Headline(
        "recall",
        ("recall",),
        Kind("categories", "have their suggested attributes first"),
        _recalled,
        "attributes of groups",
    ),
    "values": Headline(
        "values",
        ("values", "calibration"),
        Kind("values", "are agreed with more, or less, than their opposites"),
        _values,
        "some of the values",
    ),
    "nationality": Headline(
        "nationality",
        ("delta",),
        Kind("countries", "have names that move predictions otherwise than the others' names"),
        _countries,
        "some of the countries",
    ),
    "leaning": Headline(
        "compass",
        ("coordinates", "baselines", "answered", "items", "stability"),
        Kind("axes", "lie to one side of random responses"),
        _axes,
        "sides; in world-leaning and world-writing only in texts to train on: none to find here",
    ),
}


def headlines(tables: Tables, controls: Mapping[str, str | None]) -> list[Row]:
    """Return a row for each model and study: those of the user, positive controls, null ones.

    ``controls``: control models, and whether they are positive or negative.
    """
    found = []
    for study, of in HEADLINES.items():
        frames = of.frames(tables)
        main = frames[of.tables[0]]
        for model in main["model"].unique().sort() if len(main) else ():
            own = of.rows({name: _of(frame, {"model": model}) for name, frame in frames.items()})
            if row := of_model(study, model, of.kind, own, controls.get(model) or ""):
                found.append(row)
    order = [*HEADLINES]
    return sorted(
        found,
        key=lambda row: (
            *(row["control"] != "", order.index(row["study"])),
            *(row["control"].startswith("negative"), row["model"]),
        ),
    )


def of_model(study: str, model: str, kind: Kind, own: pl.DataFrame, control: str = "") -> Row:
    """Return what the headline of a model comes to; nothing where nothing was tested.

    ``control``: positive or negative, of a control model.
    """
    tested, why = own.drop_nulls("p_bh"), reasons(own)
    if not len(tested) and not why:
        return {}
    sure = len(tested.filter(pl.col("p_bh") <= LEVEL))
    found = f"{sure} of {len(tested)} {kind.things}" + (why and f"; {VOID} in {why}")
    first = (tested if len(tested) else own).row(0, named=True)
    if not len(tested):
        found, first = VOID, first | dict.fromkeys(("value", "low", "high")) | {"what": why}
    planted = HEADLINES[study].planted if control == "positive" else "nothing"
    counted = {"study": study, "model": model, "tested": len(tested), "sure": sure}
    counted["control"] = control and f"{control}, planted: {planted}"
    return first | counted | {"found": found}


def section(
    rows: Sequence[Row],
    checks: Sequence[Row],
    studies: Sequence[Study],
    name: str = "results",
) -> Section:
    """Return a row for each model and study, controls in a table below, and one figure.

    ``rows``: see :func:`headlines`; those of other studies are left out.
    ``checks``: of the control models; without any, there is no column of them.
    """
    analyses = {study.name: set(study.analyses) for study in studies}
    own = [row for row in rows if row["study"] in analyses]
    listing = []
    for row in own:
        passed = [c["verdict"] == YES for c in checks if c["analysis"] in analyses[row["study"]]]
        badge = f"{sum(passed)} of {len(passed)}" if passed else "not run"
        listing.append(row | {"controls": badge})
    users = [row for row in listing if not row["control"]]
    controls = [row for row in listing if row["control"]]
    words = WORDS | ({"controls": "controls that pass"} if checks else {})
    tables = []
    if users:
        tables.append(listed(users, words, NUMBERS, "What was found, by model and study"))
    if controls:
        words = words | {"control": "control"}
        tables.append(listed(controls, words, NUMBERS, "Controls, and what they are for"))
    parts = [Part(tables=tuple(tables), open=True)]
    if lines := scaled(own):
        unit = "distance from the null hypothesis, in units of the detectable one"
        parts.append(Part(forest(lines, line="line", unit=unit, filled="sure"), CAPTION))
    groups = [Group("", [Block("", parts)])] if listing else []
    return Section(name, TITLE, NOTE, groups, studies[0].name)


def scaled(rows: Sequence[Row]) -> list[Row]:
    """Return the distances of headlines from the null, in units of the detectable one."""
    lines = []
    for row in rows:
        if least := row["detectable"]:
            ends = (row["value"], row["low"], row["high"])
            apart = [None if end is None else (end - row["null"]) / least for end in ends]
            lines.append(
                dict(zip(("value", "low", "high"), apart, strict=True))
                | {"line": f"{row['study']}: {row['model']}", "sure": row["p_bh"] <= LEVEL}
            )
    return lines


def measured(rows: Sequence[Row]) -> dict[str, Any]:
    """Return the headlines as metrics, by study and model."""
    told: dict[str, Any] = {}
    for row in rows:
        numbers = {name: row[name] for name in ("value", "low", "high")}
        rounded = {name: None if x is None else round(x, 6) for name, x in numbers.items()}
        own = rounded | {"found": row["sure"], "tested": row["tested"]}
        told.setdefault(row["study"], {})[row["model"]] = own
    return told
