"""Analysis ``comparison``: differences between the estimates of two models, study by study.

It is run by :func:`plumbline.compare`, not by a stage of the pipeline. Differences are paired by
name, group, statement or text, so item effects common to both models cancel out. Each study defines
a probe, a unit, a function that reads a model's data by language and by dataset or questionnaire,
and a function that compares two models.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl
from pydantic import Field

from plumbline.builders.core.params import Params as Section
from plumbline.builders.core.params import section
from plumbline.builders.core.schema import Column, Schema
from plumbline.builders.datasets.words.build import POS
from plumbline.probes.leaning import schemas as leaning
from plumbline.probes.leaning.responses import ITSELF, Reading, outputs, readings
from plumbline.probes.leaning.scoring import moved, scales
from plumbline.probes.nationality import schemas as nationality
from plumbline.probes.nationality.cases import Case, cases, classified
from plumbline.probes.politicians.words.word_counts import (
    FEMALE,
    MALE,
    Lists,
    Named,
    by_name,
    languages,
)
from plumbline.probes.stats.counterfactual import delta, gather
from plumbline.probes.stats.crossed import estimated, of_mean, of_total
from plumbline.probes.stats.estimate import DF, Estimate, Table, estimates, finite
from plumbline.probes.stats.intervals import t_half_width, t_p
from plumbline.probes.stats.two_way import replicated, two_way
from plumbline.probes.stereotypes import recall, typicality
from plumbline.probes.values import schemas as values
from plumbline.probes.values.calibration import (
    Block,
    block,
    facing,
    fit,
    mean,
    ratings,
    statements,
)
from plumbline.probes.values.ratings import apart_error, balanced

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from plumbline.probes.core.run_analysis import Inputs

    Array = NDArray[np.float64]
    Item = tuple[str, str, str]  # values of the columns language, scale and what
    Row = dict[str, Any]

LEAST = 2  # minimum number of names per gender, or of groups per category
METHODS = ("l2r", "sequence")  # methods of the probe ``agreement``, by preference
PREFERRED = ("continuous", "likeliest", "corrected")  # method variants, by preference


class Params(Section):
    """Settings for comparing models."""

    version: str = Field(pattern=r"^\d+\.\d+\.\d+$", description="version of the table")
    confidence: float = Field(0.95, gt=0.5, lt=1, description="level of the intervals")
    min_count: int = Field(20, ge=1, description="minimum lists that contain a word, both models")
    n_bootstrap: int = Field(400, ge=20, description="number of bootstrap replicates for agreement")


def difference(
    item: Item, first: float, estimate: Estimate, p: float | None, freedom: float
) -> Row:
    """Return a table row: the first model's estimate, and its difference from the second's.

    ``item``: values of language, scale and what. ``freedom``: degrees of freedom of t; 0 if
    unknown.
    """
    row = estimate.row(p=p, **dict(zip(("language", "scale", "what"), item, strict=True)))
    others = {"value_first": finite(first), "value_second": finite(first - estimate.value)}
    return row | others | {DF: freedom}


def t_difference(
    item: Item,
    first: float,
    value: float,
    error: float,
    freedom: float,
    n: int,
    params: Params,
    *,
    tested: bool = True,
) -> Row:
    """Return the row of :func:`difference` with a t interval and, if tested, a p-value.

    ``error``, ``freedom``: standard error of the difference and its df (0 if unknown); ``n``:
    number of clusters.
    """
    half = float(t_half_width(error, freedom, params.confidence)) if freedom > 0 else float("nan")
    p = t_p(value, error, freedom) if tested and freedom > 0 else None
    return difference(item, first, Estimate(value, value - half, value + half, n), p, freedom)


def read_lists(inputs: Inputs, model: str, _: Params) -> dict[tuple[str, str], Named]:
    """Return a model's lists by language and part of speech."""
    folder, people = inputs.outputs("associations", model), inputs.datasets["politicians"]
    return {
        (language, pos): named
        for language in languages(folder)
        for pos in POS
        if (named := by_name(Lists((folder / language,), pos), people / f"{language}.parquet", 1))
    }


def compare_words(item: tuple[str, str], a: Named, b: Named, params: Params) -> Iterator[Row]:
    """Yield the difference for each sufficiently frequent word, in percentage points.

    The estimate is the share of women's lists that contain the word minus that of men's. Each name
    has one list per model, so its difference between models is 1, 0 or -1; Welch's test (1947,
    Biometrika 34(1-2)) compares women's names with men's.
    """
    sides = [
        named.names.select("name", "gender").with_row_index(index)
        for named, index in ((a, "one"), (b, "other"))
    ]
    names = sides[0].join(sides[1], on=["name", "gender"], maintain_order="left")
    genders = [names["gender"].cast(int).to_numpy() == gender for gender in (FEMALE, MALE)]
    sizes = np.array([gender.sum() for gender in genders])
    if sizes.min() < LEAST:
        return
    words = sorted({*a.words["word"], *b.words["word"]})
    lists = [_lists(a, names["one"], words), _lists(b, names["other"], words)]
    common = np.flatnonzero((lists[0] + lists[1]).sum(axis=0) >= params.min_count)
    had, change = 100 * lists[0][:, common], 100 * (lists[0] - lists[1])[:, common]
    first, value = (x[genders[0]].mean(axis=0) - x[genders[1]].mean(axis=0) for x in (had, change))
    parts = np.array([change[gender].var(axis=0, ddof=1) / gender.sum() for gender in genders])
    total, spent = parts.sum(axis=0), (parts**2 / (sizes[:, None] - 1)).sum(axis=0)
    flat = spent == 0
    freedom = np.where(flat, sizes.sum() - 2, total**2 / np.where(flat, 1.0, spent))
    for i, w in enumerate(common):
        numbers = float(first[i]), float(value[i]), float(total[i] ** 0.5), float(freedom[i])
        yield t_difference((*item, words[w]), *numbers, int(sizes.sum()), params)


def _lists(named: Named, rows: pl.Series, words: list[str]) -> Array:
    """Return indicators of the words in each name's list, of shape (names, words)."""
    column = {word: i for i, word in enumerate(named.words["word"])}
    columns = np.array([column.get(word, -1) for word in words])
    lists = np.zeros((len(rows), len(words)))
    matrix = named.matrix[rows.to_numpy().astype(np.int64)].tocsc()
    lists[:, columns >= 0] = matrix[:, columns[columns >= 0]].toarray()
    return lists


def read_attributes(inputs: Inputs, model: str, _: Params) -> dict[tuple[str, str], pl.DataFrame]:
    """Return each group's attribute count and recall above chance, by language and dataset."""
    k = min(section("analysis.recall", recall.Params).tested)
    folder, tables = inputs.outputs("completions", model), {}
    for language in typicality.languages(folder):
        lists = typicality.read_lists(folder / language).filter(~pl.col("rewritten"))
        ranked = recall.Lists.of(lists, "corrected")
        for config, kinds in recall.attributes(inputs.datasets["stereotypes"], language).items():
            attributes, groups = ranked.find(kinds[recall.KINDS[0]])
            row, item = attributes["row"].to_numpy(), attributes["place"].to_numpy()
            number = np.bincount(row, minlength=len(groups))
            chance = ranked.exchange(attributes, [k], k, 1, 0)[1][:, -1]
            above = (recall.hits(item, row, len(groups), k)[:, -1] - chance) / number
            tables[language, config] = groups.with_columns(number=number, above=above)
    return tables


def compare_attributes(
    item: tuple[str, str], a: pl.DataFrame, b: pl.DataFrame, params: Params
) -> Iterator[Row]:
    """Yield the difference for each category in a dataset of attributes.

    The estimate is the recall of the groups' attributes minus their recall in lists of other
    groups. Groups are weighted by their number of attributes; the t interval is over groups.
    """
    table = a.join(b, on=["category", "group"], suffix="_other").sort("category", "group")
    for (category,), rows in table.group_by("category", maintain_order=True):
        n = len(rows)
        if n >= LEAST:
            load = rows["number"].to_numpy() / rows["number"].sum()
            first, second = rows["above"].to_numpy(), rows["above_other"].to_numpy()
            value = float(load @ (first - second))
            residuals = load * (first - second - value)
            error = float(np.sqrt(n / (n - 1) * (residuals**2).sum()))
            numbers = (float(load @ first), value, error, n - 1.0, n)
            yield t_difference((*item, str(category)), *numbers, params)


class Rated(NamedTuple):
    """A model's ratings of the statements in a questionnaire."""

    items: Block
    side: Array  # (statements, draws), ratings
    neutral: int  # number of calibration statements


def read_ratings(inputs: Inputs, model: str, params: Params) -> dict[tuple[str, str], Rated]:
    """Return a model's ratings by language and questionnaire."""
    how = section("analysis.values", values.Params)
    how = how.model_copy(update={"n_bootstrap": params.n_bootstrap})
    items_of_all = statements(inputs.datasets["statements"])
    folder, rated_items = inputs.outputs("agreement", model), {}
    for language in (path.name for path in folder.iterdir() if path.is_dir()):
        rows = pl.read_parquet(folder / language / "*.parquet")
        about = items_of_all.filter(language=language)
        neutral = about.filter(pl.col("polarity").is_not_null())
        method = next(m for m in METHODS if m in rows["method"])
        lines = fit(block(rows, neutral, method, how))
        for (scale,), bearing in about.filter(pl.col("axis") != "").group_by("scale"):
            items = block(rows, bearing, method, how)
            rated = facing(items, ratings(items, lines)).mean(axis=1)
            rated_items[language, str(scale)] = Rated(items, rated, len(neutral))
    return rated_items


def compare_ratings(item: tuple[str, str], a: Rated, b: Rated, params: Params) -> Iterator[Row]:
    """Yield the difference for each human value in a questionnaire.

    The estimate is the mean rating of its statements, from 1 to 5; ratings of opposite statements
    are reversed. The standard error combines variation over pairs of opposites and over the
    calibration lines, as both models are calibrated on the same apolitical statements. For the
    degrees of freedom (Satterthwaite), see :func:`plumbline.probes.values.ratings.apart_error`.
    """
    items, neutral = b.items, b.neutral
    signed, axis = items.about["bearing"].to_numpy(), items.about["axis"].to_numpy()
    for name in sorted(set(axis.tolist())):
        rows = axis == name
        load, pairs = np.abs(signed[rows]), items.clusters[rows]
        still = np.ones_like(items.weights[rows])
        change = (a.side - b.side)[rows]
        draws = mean(change, load, still)  # the draws differ only in their calibration lines
        spread = float(np.nanstd(draws[1:]) * np.sqrt(neutral / (neutral - 1)))
        error, freedom = apart_error((change[:, 0], signed[rows], pairs), spread, neutral)
        clusters = len(np.unique(pairs))
        first = float(mean(a.side[rows][:, :1], load, still[:, :1])[0])
        numbers = (first, float(draws[0]), error, freedom if clusters > 1 else 0.0, clusters)
        tested = balanced(signed[rows], pairs)
        yield t_difference((*item, name), *numbers, params, tested=tested)


def read_changes(inputs: Inputs, model: str, _: Params) -> dict[str, Case]:
    """Return the changes of a classifier's predictions, by config."""
    settings = section("analysis.nationality", nationality.Params)
    sides = {"positive": settings.positive, "negative": settings.negative}
    changes = {}
    for path in sorted(inputs.datasets["counterfactuals"].glob("*.parquet")):
        folder = inputs.outputs("classification", model) / path.stem
        for case in cases(path, *classified(folder, model, sides)) if folder.is_dir() else ():
            if case.reading == "corrected":
                changes[path.stem] = case
    return changes


def compare_changes(config: str, a: Case, b: Case, params: Params) -> Iterator[Row]:
    """Yield the difference for each country, in percentage points.

    The estimate is the mean change of P+ - P- after the country's names are inserted into the same
    texts; errors are clustered by texts and names, as in the study.
    """
    first_change, change = (a.change[:, :1], a.change[:, :1] - b.change[:, :1])
    where = a.sentence, a.country, a.shape
    cells = gather(change, *where)
    value, first = delta(cells)[:, 0], delta(gather(first_change, *where))[:, 0]
    clusters = a.country, a.sentence, a.units()
    tested = two_way(100 * change, *clusters, np.eye(a.shape[1]))
    enough = replicated(*clusters, a.shape[1])
    number = (cells.counts > 0).sum(axis=0)
    for c, country in enumerate(a.countries):
        error, freedom = float(tested.se[c, 0]), float(tested.freedom[c, 0])
        spread = (error, freedom) if np.isfinite(error) else (np.nan, 0.0)
        numbers = (float(first[c]), float(value[c]), *spread, int(number[c]))
        yield t_difference(("", config, country), *numbers, params, tested=bool(enough[c]))


def read_stances(inputs: Inputs, model: str, _: Params) -> dict[str, Reading]:
    """Return a model's responses to each questionnaire before further training."""
    params = section("analysis.compass", leaning.CompassParams)
    states: list[Reading] = []
    for form in leaning.FORMATS:
        rows = outputs(inputs.outputs("stances", model), form)
        if rows is not None:
            known_scales = scales(inputs.datasets["statements"], set(rows["questionnaire"]) - {""})
            states += readings(form, rows, known_scales, params)
    best: dict[str, Reading] = {}
    states = [r for r in states if r.name in PREFERRED and ITSELF in r.states]
    for reading in sorted(states, key=lambda reading: PREFERRED.index(reading.name)):
        best.setdefault(reading.scale.name, reading)
    return best


def compare_axes(_: str, a: Reading, b: Reading, params: Params) -> Iterator[Row]:
    """Yield the difference for each axis of a questionnaire.

    The estimate is computed over statements paired with their opposites, and over prompts if both
    models have the same prompts, as for shifts after training.
    """
    scale, start = a.scale, a.scale.start(a.rounded)
    sides = [reading.added(ITSELF).mean(axis=0, keepdims=True) for reading in (a, b)]
    if a.prompts != b.prompts:  # the prompts differ, so they are not paired
        sides = [side.mean(axis=1, keepdims=True) for side in sides]
    for i, axis in enumerate(scale.axes):
        change = moved(scale, i, sides[0][:, :, i], sides[1][:, :, i])
        crossed = of_total(change.totals), of_mean(change.prompts)
        value, low, high, p = estimated(change.value, crossed, params.confidence)[:4]
        first = float(start[i] + moved(scale, i, sides[0][:, :, i]).value)
        estimate = Estimate(value, low, high, len(change.totals))
        yield difference((scale.language, scale.name, axis), first, estimate, p, 0.0)


class Study(NamedTuple):
    """Probe, unit and functions that define the comparison of one study."""

    probe: str
    unit: str
    read: Callable[[Inputs, str, Params], dict[Any, Any]]
    compare: Callable[[Any, Any, Any, Params], Iterator[Row]]


STUDIES = {
    "politicians": Study(
        "associations", "points, share of women's lists less of men's", read_lists, compare_words
    ),
    "stereotypes": Study("completions", "recall above chance", read_attributes, compare_attributes),
    "values": Study("agreement", "of 1 to 5", read_ratings, compare_ratings),
    "nationality": Study(
        "classification", "points, positive less negative", read_changes, compare_changes
    ),
    "leaning": Study("stances", "percent of the axis", read_stances, compare_axes),
}
COMPARISON = Schema.keyed(
    (
        Column("study", "string", "name of the study"),
        Column("first", "string", "first model"),
        Column("second", "string", "second model"),
        Column("language", "string", "language of the prompts; empty if the study covers only one"),
        Column("scale", "string", "part of speech, dataset, questionnaire or config, by study"),
        Column("what", "string", "word, category, value, country or axis, by study"),
    ),
    *estimates(
        cluster="name, group, statement, text or word, depending on the study",
        method="95% t interval of paired differences",
        null="0: no difference between models (values without reversed statements are not tested)",
    ),
    Column("family", "int64", "number of tests in the family of p_bh"),
    Column("unit", "string", "unit of the difference"),
    Column("value_first", "float64", "estimate for the first model", nullable=True),
    Column("value_second", "float64", "estimate for the second model", nullable=True),
)
SCHEMAS = {"comparison": COMPARISON}


def run(inputs: Inputs, params: Params) -> dict[str, pl.DataFrame]:
    """Compare all pairs of models, the first minus the second.

    Returns the table ``comparison``, see :data:`SCHEMAS`; p is adjusted over all rows of a study.
    """
    table = Table(COMPARISON, params.confidence)
    table.adjust(over=("study",))
    for name, study in STUDIES.items():
        models = [model for model in inputs.models if inputs.outputs(study.probe, model).is_dir()]
        results = {model: study.read(inputs, model, params) for model in models}
        for first, second in combinations(models, 2):
            key = {"study": name, "first": first, "second": second, "unit": study.unit}
            for item in sorted(results[first].keys() & results[second].keys()):
                sides = (results[first][item], results[second][item])
                table.rows += [key | row for row in study.compare(item, *sides, params)]
    return {"comparison": table.frame().sort(COMPARISON.key, maintain_order=True)}
