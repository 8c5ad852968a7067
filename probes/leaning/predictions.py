"""Outputs of the probe ``finetuned_classifiers`` as arrays: predictions of every training."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl

from plumbline.builders.core.errors import UserError
from plumbline.probes.leaning.schemas import KEY, PLANTED
from plumbline.probes.stats import bootstrap as resampling
from plumbline.probes.stats.bootstrap import Limits, percentiles
from plumbline.probes.stats.classification import METRICS, cells, metrics
from plumbline.probes.stats.crossed import Contrast
from plumbline.probes.stats.estimate import DF, TESTED_ERROR, Estimate, adjusted, finite, typed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from plumbline.builders.core.schema import Schema
    from plumbline.probes.core.run_analysis import Inputs

    Bools = NDArray[np.bool_]
    Floats = NDArray[np.float64]

HALF = 0.5
SEED = "finetuning_seed"
ALL = ("all", "all")
TESTED = ("balanced accuracy", "F1")  # accuracy is the first again, or goes with the larger class
UNTESTED = "none: no test"
OVER_TRAININGS = "t interval over texts and trainings (Satterthwaite)"
TRAININGS = "0: equally good on average of other trainings, on other texts"
LEAST_TRAININGS = 5  # by fewer nothing is told of that: whose error is small by chance tells it
WORD = "word"  # of a world: its texts are named after it, WORD-NUMBER


class State(NamedTuple):
    """What a model was trained on further; corpus "" for the model itself."""

    corpus: str
    period: int
    share: float

    @property
    def itself(self) -> bool:
        """Whether it is the model without further training."""
        return not self.corpus


class Runs(NamedTuple):
    """The classifiers of one state."""

    seeds: list[tuple[int, int]]  # of pretraining and fine-tuning, sorted
    probability: Floats  # (runs, texts) of the positive class
    steps: float = 0.0  # of the further pretraining, mean

    @property
    def predicted(self) -> Bools:
        """Return whether each calls each text positive."""
        return np.asarray(self.probability > HALF)

    def pick(self, seeds: list[tuple[int, int]]) -> Runs:
        """Return some of the runs, in this order."""
        return Runs(seeds, self.probability[[self.seeds.index(own) for own in seeds]], self.steps)


class Case(NamedTuple):
    """One task of one model."""

    model: str
    task: str  # config of `downstream`
    ids: list[str]
    true: Bools  # (texts,) whether of the positive class
    states: dict[State, Runs]  # sorted, the model itself first
    members: dict[tuple[str, str], Bools]  # (of, name): (texts,) who is of it; ALL first
    cluster: str = "text"  # what is drawn

    @property
    def units(self) -> list[str]:
        """Return the cluster of each text: itself, or the word of a world that it is about."""
        if self.cluster == "text":
            return self.ids
        return [name.rpartition("-")[0] for name in self.ids]

    @property
    def every(self) -> Bools:
        """Return all texts."""
        return np.ones(len(self.ids), dtype=np.bool_)

    def numbers(self, member: Bools) -> NDArray[np.int64]:
        """Return the number of the cluster of some texts, from 0."""
        own = [unit for unit, kept in zip(self.units, member, strict=True) if kept]
        order = {unit: i for i, unit in enumerate(dict.fromkeys(own))}
        return np.array([order[unit] for unit in own], dtype=np.int64)

    def weights(self, bootstrap: int, seed: int) -> Floats:
        """Return how often each text counts: once, and in each replicate, (texts, 1 + B)."""
        once, place = np.unique(resampling.keys(self.units), return_inverse=True)
        drawn = resampling.poisson(resampling.bits(once, bootstrap, seed))[place]
        return np.concatenate([np.ones((len(self.ids), 1)), drawn.astype(np.float64)], axis=1)

    def drawn(self, predicted: Bools, member: Bools, weights: Floats) -> Floats:
        """Return measures of runs on some texts, (runs, 1 + replicates, measures)."""
        at = slice(None) if member.all() else member  # a view: weights are large
        return metrics(cells(self.true[at], predicted[:, at], weights[at]))

    def measured(self, predicted: Bools, member: Bools, weights: Floats) -> Measured:
        """Return the measures of runs on some texts, in the sample and in every replicate."""
        drawn = self.drawn(predicted, member, weights)
        return Measured(drawn[:, 0], drawn.mean(axis=0))

    def rows(
        self,
        drawn: Floats,
        member: Bools,
        method: str,
        confidence: float,
        p: tuple[Floats, str] | None = None,
        limits: Limits | None = None,
        **columns: Any,
    ) -> Iterator[dict[str, Any]]:
        """Yield a row of a table for each measure.

        Parameters
        ----------
        drawn : (1 + replicates, measures)
            As :class:`Measured` has them.
        p
            Of each measure, and what it is judged against; of :data:`TESTED` it is shown.
        limits
            Intervals, (measures,); without, percentiles of the replicates.
        columns
            More of them; an array has a value for each measure.
        """
        limits = limits or percentiles(drawn[1:].T, confidence)
        n = int(self.numbers(member).max()) + 1
        for m, metric in enumerate(METRICS):
            tested = p is not None and metric in TESTED and np.isfinite(p[0][m])
            yield Estimate(drawn[0, m], limits.low[m], limits.high[m], n, method).row(
                cluster=self.cluster,
                null=p[1] if p and tested else UNTESTED,
                p=p[0][m] if p and tested else None,
                metric=metric,
                **{name: _cell(value, m) for name, value in columns.items()},
            )


class Measured(NamedTuple):
    """Measures of several runs, or of ensembles, on some texts."""

    each: Floats  # (runs, measures)
    mean: Floats  # (1 + replicates, measures) over runs, the sample first

    @property
    def sd(self) -> Floats:
        """Return the standard deviation over runs, nan with one."""
        several = len(self.each) > 1
        return self.each.std(axis=0, ddof=1) if several else np.full(len(METRICS), np.nan)


def _cell(value: Any, m: int) -> Any:
    return finite(value[m]) if isinstance(value, np.ndarray) else value


def cases(
    inputs: Inputs, positive: dict[str, str], texts_min: int, analysis: str
) -> Iterator[Case]:
    """Yield the tasks of every model, in the order of their names.

    A UserError if there are not two classes with the positive one, or trainings were asked
    different texts.

    Parameters
    ----------
    positive
        The class that is sought, by task or by what its name begins with.
    texts_min
        Texts that a group must have.
    analysis
        Whose params these are, for messages.
    """
    outputs = "finetuned_classifiers"
    places = ((m, p) for m in inputs.models for p in sorted(inputs.outputs(outputs, m).iterdir()))
    for model, path in places:
        if not path.is_dir():
            continue
        task = path.name
        sought = positive.get(task, positive.get(task.partition("-")[0], ""))
        frame = pl.read_parquet(path / "*.parquet")
        classes = sorted(frame["class"].unique())
        if sought not in classes or len(classes) != 2:
            raise UserError(
                f"analysis.{analysis}.positive: {task} has the classes {', '.join(classes)}; name "
                "one of two for it"
            )
        states, ids, true = _states(frame.filter(pl.col("class") == sought), sought, path)
        members = _members(inputs, task, frame, ids, texts_min)
        cluster = WORD if task == PLANTED else "text"
        yield Case(model, task, ids, true, states, members, cluster)


def _states(
    frame: pl.DataFrame, sought: str, path: Path
) -> tuple[dict[State, Runs], list[str], Bools]:
    """Return the runs of each state, the texts, and which are of the positive class."""
    runs = frame.sort(*KEY, SEED, "id").group_by(*KEY, SEED, maintain_order=True)
    table = runs.agg("id", "label", pl.col("logprob_nats").exp(), pl.col("steps").first())
    ids = table["id"][0].to_list()
    if any(own.to_list() != ids for own in table["id"]):
        raise UserError(
            f"{path}: trainings have responses to different texts; remove the folder and run "
            "`make repro` again"
        )
    states = {}
    for state, own in table.group_by(State._fields, maintain_order=True):
        seeds = list(own.select("pretraining_seed", SEED).iter_rows())
        probability = np.array(own["logprob_nats"].to_list())
        states[State(*state)] = Runs(seeds, probability, float(np.mean(own["steps"].to_list())))
    return states, ids, (table["label"][0] == sought).to_numpy()


def _members(
    inputs: Inputs, task: str, frame: pl.DataFrame, ids: list[str], texts_min: int
) -> dict[tuple[str, str], Bools]:
    """Return who is of which group or source; of one that all are of, or too few, nobody."""
    if task == PLANTED:
        mapped = pl.when(pl.col("group") != "").then(pl.concat_list("group")).otherwise([])
        about = frame.select("id", mapped=mapped, source=pl.lit("")).unique("id")
    else:
        path = inputs.datasets["downstream"] / f"{task}.parquet"
        about = pl.read_parquet(path, columns=["id", "mapped", "source"])
    joined = pl.DataFrame({"id": ids}).join(about, on="id", how="left", maintain_order="left")
    found = {}
    groups, sources = joined["mapped"].fill_null([]), joined["source"].fill_null("")
    for name in sorted(set(groups.explode(empty_as_null=False).drop_nulls()) - {""}):
        found["group", name] = groups.list.contains(name).to_numpy()
    for name in sorted(set(sources) - {""}):
        found["source", name] = (sources == name).to_numpy()
    some = {key: own for key, own in found.items() if texts_min <= own.sum() < len(ids)}
    return {ALL: np.ones(len(ids), dtype=np.bool_)} | some


def by_pretraining(runs: Runs, drawn: Floats) -> Floats:
    """Return the mean over the runs of each pretraining seed of values (runs, ...)."""
    seeds = np.array([own[0] for own in runs.seeds])
    return np.stack([drawn[seeds == seed].mean(axis=0) for seed in np.unique(seeds)])


def pairs(
    case: Case, against: Callable[[str], str], sides: list[tuple[str, str]]
) -> list[tuple[State, State]]:
    """Return what is compared: with the model itself, with its control, and side with side."""
    trained = [state for state in case.states if not state.itself]
    itself = [state for state in case.states if state.itself]
    found = [
        (one, other)
        for one in trained
        for other in (*itself, one._replace(corpus=against(one.corpus)))
    ]
    found += [
        (one, one._replace(corpus=right))
        for left, right in sides
        for one in trained
        if one.corpus == left
    ]
    return list(
        dict.fromkeys(pair for pair in found if pair[1] in case.states and len({*pair}) > 1)
    )


def matched(one: Runs, other: Runs, state: State) -> tuple[Runs, Runs]:
    """Return the runs of both that have the same seeds; ``other`` is of ``state``.

    The model itself has no seeds of pretraining: its runs stand beside those of each.
    """
    start = int(state.itself)  # of the seeds that must be the same
    by_seed = {own[start:]: own for own in other.seeds}
    seeds = [own for own in one.seeds if own[start:] in by_seed]
    return one.pick(seeds), other.pick([by_seed[own[start:]] for own in seeds])


def tables(
    cases: Iterable[Case],
    rows_of: Callable[[Case], Iterable[tuple[str, dict[str, Any]]]],
    schemas: dict[str, Schema],
    confidence: float,
    least: float = 0.0,
) -> dict[str, pl.DataFrame]:
    """Return what each case has for which table, if there is something.

    p is adjusted over all tests of a task of a model in a reading; ``confidence`` is that of the
    intervals, ``least`` the smallest p that permutation tests can have.
    """
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in schemas}
    for case in cases:
        for name, row in rows_of(case):
            found[name].append({"model": case.model, "task": case.task} | row)
    result = {}
    for name, rows in found.items():
        if rows:
            table = pl.DataFrame(rows, infer_schema_length=None)
            if "p" in table.columns:
                lowest = 0.0 if DF in table.columns else least
                table = adjusted(table, "p", ("model", "task", "reading"), lowest)
            result[name] = typed(table, schemas[name], confidence)
    return result


def training_columns(found: Sequence[Contrast | None], trainings: int) -> dict[str, Any]:
    """Return limits, p and its error for differences over texts and trainings, by measure.

    With three trainings an error has five degrees of freedom only where that over trainings is
    small by chance, and what it would find is found in .69 (.62 to .75) of other tables: then none
    are told. With five it is .82, with ten .78.
    """
    nothing = Contrast(np.nan, np.nan, np.nan, np.nan)
    low, high, p, error, df = np.array([(each or nothing)[1:] for each in found]).T
    free = df if trainings >= LEAST_TRAININGS else np.ones_like(df)
    told = {"limits": Limits(low, high), "p": (p, TRAININGS)}
    return told | {TESTED_ERROR: error, DF: free}
