"""Predictions of every training run of the probe ``finetuned_classifiers``, as arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl
import polars.selectors as cs

from plumbline.builders.core.errors import UserError
from plumbline.probes.leaning.schemas import KEY, PLANTED
from plumbline.probes.stats import bootstrap
from plumbline.probes.stats.classification import METRICS, cells, metrics
from plumbline.probes.stats.estimate import DF, TESTED_ERROR, adjusted, rounded, typed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from plumbline.builders.core.schema import Schema
    from plumbline.probes.core.run_analysis import Inputs
    from plumbline.probes.stats.crossed import Contrast

    Bools = NDArray[np.bool_]
    Floats = NDArray[np.float64]

HALF = 0.5
SEED = "finetuning_seed"
ALL, KIND = ("all", "all"), "kind"  # key of all texts; level of contrasts between kinds of groups
TESTED = ("balanced accuracy", "F1")  # accuracy equals the first, or depends on the majority class


class State(NamedTuple):
    """A checkpoint of a model's further training."""

    corpus: str
    period: str
    share: float


ITSELF = State("", "all", 0.0)  # the model without further training


class Runs(NamedTuple):
    """The classifiers fine-tuned from one checkpoint."""

    seeds: list[tuple[int, int]]  # pretraining and fine-tuning seeds, sorted
    probability: Floats  # of the positive class, (runs, texts)
    steps: float = 0.0  # mean number of further pretraining steps

    @property
    def predicted(self) -> Bools:
        """Return a mask of the texts that are classified as positive, of shape (runs, texts)."""
        return np.asarray(self.probability > HALF)

    def pick(self, seeds: list[tuple[int, int]]) -> Runs:
        """Return the runs with the given seeds, in this order."""
        rows = [self.seeds.index(seed) for seed in seeds]
        return Runs(seeds, self.probability[rows], self.steps)


class Case(NamedTuple):
    """The predictions of all classifiers of one model for one task."""

    model: str
    task: str  # config of `downstream`
    ids: list[str]
    units: list[str]  # cluster of each text: the text, or its word for control models
    true: Bools  # (texts,), True for texts of the positive class
    states: dict[State, Runs]  # sorted; the model itself is first
    members: dict[tuple[str, str], Bools]  # membership (texts,) by (level, group); ALL is first

    def clusters(self, member: Bools | slice = slice(None)) -> NDArray[np.int64]:
        """Return the cluster numbers of the selected texts, counted from 0."""
        return np.unique(np.array(self.units)[member], return_inverse=True)[1]

    def weights(self, replicates: int, seed: int) -> Floats:
        """Return bootstrap weights of shape (texts, 1 + replicates), whose first column is 1."""
        keys, inverse = np.unique(bootstrap.keys(self.units), return_inverse=True)
        counts = bootstrap.poisson(bootstrap.bits(keys, replicates, seed))[inverse]
        return np.concatenate([np.ones((len(self.ids), 1)), counts.astype(np.float64)], axis=1)

    def measured(
        self, predicted: Bools, weights: Floats, member: Bools | slice = slice(None)
    ) -> Floats:
        """Return measures of shape (runs, 1 + replicates, measures), the original sample first."""
        return metrics(cells(self.true[member], predicted[:, member], weights[member]))


def metric_table(
    values: Floats, low: Floats, high: Floats, n: int, p: Floats | None = None, **columns: Any
) -> pl.DataFrame:
    """Return a table with one row per measure, and p for the tested measures.

    ``columns``: further columns, which are constant or arrays with one value per measure.
    """
    tested = np.where(np.isin(METRICS, TESTED), np.nan if p is None else p, np.nan)
    columns |= {"metric": METRICS, "value": values, "low": low, "high": high, "n": n, "p": tested}
    columns["reach"] = 1.0
    return pl.DataFrame(columns, nan_to_null=True)


def contrast_table(contrasts: Sequence[Contrast], n: int, **columns: Any) -> pl.DataFrame:
    """Return a table with one row per measure, from contrasts over texts and training runs."""
    value, low, high, p, error, df = np.array(contrasts).T
    return metric_table(value, low, high, n, p, **{TESTED_ERROR: error, DF: df}, **columns)


def cases(
    inputs: Inputs, positive: dict[str, str], texts_min: int, analysis: str
) -> Iterator[Case]:
    """Yield the predictions for each task of every model, sorted by name.

    Raises UserError if a task does not have exactly two classes, one of them positive, or if
    training runs have predictions for different texts.

    ``positive``: the positive class, by task or the part of its name before a dash.
    ``texts_min``: minimum number of texts in a group.
    ``analysis``: name of the analysis, for messages.
    """
    for model in inputs.models:
        for path in sorted(inputs.outputs("finetuned_classifiers", model).iterdir()):
            if not path.is_dir():
                continue
            task = path.name
            sought = positive.get(task, positive.get(task.partition("-")[0], ""))
            frame = pl.read_parquet(path / "*.parquet")
            classes = sorted(frame["class"].unique())
            if sought not in classes or len(classes) != 2:
                raise UserError(
                    f"analysis.{analysis}.positive: {task} has the classes {', '.join(classes)}; "
                    "the task must have two, and this must be one of them"
                )
            states, ids, true = _states(frame.filter(pl.col("class") == sought), sought, path)
            units = [name.rpartition("-")[0] for name in ids] if task == PLANTED else ids
            members = _members(inputs, task, frame, ids, texts_min)
            yield Case(model, task, ids, units, true, states, members)


def _states(
    frame: pl.DataFrame, sought: str, path: Path
) -> tuple[dict[State, Runs], list[str], Bools]:
    """Return the runs of each checkpoint, the ids of the texts, and a mask of positive texts."""
    runs = frame.sort(*KEY, SEED, "id").group_by(*KEY, SEED, maintain_order=True)
    table = runs.agg("id", "label", pl.col("logprob_nats").exp(), pl.col("steps").first())
    ids = table["id"][0].to_list()
    if any(texts.to_list() != ids for texts in table["id"]):
        raise UserError(
            f"{path}: training runs classified different texts; remove the folder and run "
            "`make repro` again"
        )
    states = {}
    for state, rows in table.group_by(State._fields, maintain_order=True):
        seeds = list(rows.select("pretraining_seed", SEED).iter_rows())
        probability = np.array(rows["logprob_nats"].to_list())
        states[State(*state)] = Runs(seeds, probability, float(np.mean(rows["steps"].to_list())))
    return states, ids, (table["label"][0] == sought).to_numpy()


def _members(
    inputs: Inputs, task: str, frame: pl.DataFrame, ids: list[str], texts_min: int
) -> dict[tuple[str, str], Bools]:
    """Return masks of the groups and sources that have enough texts, but not all texts."""
    if task == PLANTED:
        parts = [frame.select("id", level=pl.lit("group"), name="group")]
    else:
        about = pl.read_parquet(inputs.datasets["downstream"] / f"{task}.parquet")
        parts = [about.select("id", level=pl.lit("group"), name="mapped").explode("name")]
        parts.append(about.select("id", level=pl.lit("source"), name="source"))
    names = pl.concat(parts).filter(pl.col("name") != "").sort("level", "name")
    members = {ALL: np.ones(len(ids), dtype=np.bool_)}
    for (level, name), rows in names.group_by("level", "name", maintain_order=True):
        member = np.isin(ids, rows["id"])
        if texts_min <= member.sum() < len(ids):
            members[str(level), str(name)] = member
    return members


def tables(
    cases: Iterable[Case],
    parts_of: Callable[[Case], Iterable[tuple[str, pl.DataFrame]]],
    schemas: dict[str, Schema],
    confidence: float,
    least: float = 0.0,
) -> dict[str, pl.DataFrame]:
    """Return the tables that have rows; ``parts_of`` yields their names and rows for each case.

    p is adjusted over all tests of a model, task and method variant, but separately for contrasts
    between kinds of groups. ``confidence``: level of the intervals. ``least``: smallest possible p
    in all tables except ``differences``.
    """
    parts: dict[str, list[pl.DataFrame]] = {name: [] for name in schemas}
    for case in cases:
        key = {"model": pl.lit(case.model), "task": pl.lit(case.task)}
        for name, part in parts_of(case):
            parts[name].append(part.with_columns(**key))
    result = {}
    for name, frames in parts.items():
        if sum(map(len, frames)):
            table = pl.concat(frames, how="diagonal_relaxed")
            p = ["p"] if "p" in table.columns else []
            table = rounded(table, table.drop(p).select(cs.float()).columns, p)
            if p:
                level = pl.col("level") if "level" in table.columns else pl.lit("")
                table = table.with_columns(single=level == KIND)
                family = [c for c in ("model", "task", "reading", "single") if c in table.columns]
                table = adjusted(table, "p", family, 0.0 if name == "differences" else least)
            result[name] = typed(table, schemas[name], confidence)
    return result
