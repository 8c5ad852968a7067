"""Outputs of the probe ``finetuned_classifiers`` as arrays: predictions of every training."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl

from plumbline.builders.core.errors import UserError
from plumbline.probes.leaning.schemas import KEY, PLANTED
from plumbline.probes.stats import bootstrap as resampling
from plumbline.probes.stats.estimate import adjusted, finite, significant, typed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from plumbline.builders.core.schema import Schema
    from plumbline.probes.core.run_analysis import Inputs
    from plumbline.probes.stats.crossed import Contrast

    Bools = NDArray[np.bool_]
    Floats = NDArray[np.float64]

HALF = 0.5
SEED = "finetuning_seed"
ALL = ("all", "all")
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
    read: int = 0  # texts of the further pretraining, at most

    @property
    def predicted(self) -> Bools:
        """Return whether each calls each text positive."""
        found: Bools = self.probability > HALF
        return found

    def pick(self, seeds: list[tuple[int, int]]) -> Runs:
        """Return some of the runs, in this order."""
        return Runs(seeds, self.probability[[self.seeds.index(own) for own in seeds]], self.read)


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

    def numbers(self, member: Bools) -> NDArray[np.int64]:
        """Return the number of the cluster of some texts, from 0."""
        own = [unit for unit, kept in zip(self.units, member, strict=True) if kept]
        order = {unit: i for i, unit in enumerate(dict.fromkeys(own))}
        return np.array([order[unit] for unit in own], dtype=np.int64)

    def size(self, member: Bools) -> int:
        """Return how many clusters some texts are of."""
        return int(self.numbers(member).max()) + 1

    def weights(self, bootstrap: int, seed: int) -> Floats:
        """Return how often each text counts: once, and in each replicate, (texts, 1 + B)."""
        keys = resampling.keys(self.units)
        once, place = np.unique(keys, return_inverse=True)
        drawn = resampling.poisson(resampling.bits(once, bootstrap, seed))[place]
        return np.concatenate([np.ones((len(self.ids), 1)), drawn.astype(np.float64)], axis=1)


def cases(
    inputs: Inputs, model: str, positive: dict[str, str], texts_min: int, key: str
) -> Iterator[Case]:
    """Yield the tasks of a model, in the order of their names.

    Parameters
    ----------
    positive
        The class that is sought, by task or by what its name begins with.
    texts_min
        Texts that a group must have.
    key
        Of the params, for messages.

    Raises
    ------
    UserError
        If there are not two classes with the positive one, or trainings were asked different texts.
    """
    folder = inputs.outputs("finetuned_classifiers", model)
    for path in sorted(p for p in folder.iterdir() if p.is_dir()):
        task = path.name
        sought = positive.get(task, positive.get(task.partition("-")[0], ""))
        frame = pl.read_parquet(path / "*.parquet")
        classes = sorted(frame["class"].unique())
        if sought not in classes or len(classes) != 2:
            raise UserError(
                f"{key}: {task} has the classes {', '.join(classes)}; name one of two for it"
            )
        states, ids, true = _states(frame.filter(pl.col("class") == sought), sought, path)
        members = _members(_about(inputs, task, frame), ids, texts_min)
        cluster = WORD if task == PLANTED else "text"
        yield Case(model, task, ids, true, states, members, cluster)


def _states(
    frame: pl.DataFrame, sought: str, path: Path
) -> tuple[dict[State, Runs], list[str], Bools]:
    found: dict[State, list[tuple[tuple[int, int], Floats, int]]] = {}
    ids: list[str] = []
    true = np.zeros(0, dtype=np.bool_)
    runs = frame.sort(*KEY, SEED, "id").group_by(*KEY, SEED, maintain_order=True)
    for (corpus, period, share, pretraining, _, seed), own in runs:
        if not ids:
            ids, true = own["id"].to_list(), (own["label"] == sought).to_numpy()
        if own["id"].to_list() != ids:
            raise UserError(
                f"{path}: trainings have responses to different texts; remove the folder and run "
                "`make repro` again"
            )
        state = State(str(corpus), int(period), float(share))
        run = ((int(pretraining), int(seed)), own["logprob_nats"].exp().to_numpy(), own["texts"][0])
        found.setdefault(state, []).append(run)
    states = {}
    for state, several in sorted(found.items()):
        seeds, values, read = zip(*several, strict=True)
        states[state] = Runs(list(seeds), np.stack(values), max(read))
    return states, ids, true


def _about(inputs: Inputs, task: str, frame: pl.DataFrame) -> pl.DataFrame:
    """Return id, mapped (groups) and source of the texts of a task."""
    if task != PLANTED:
        path = inputs.datasets["downstream"] / f"{task}.parquet"
        return pl.read_parquet(path, columns=["id", "mapped", "source"])
    groups = pl.when(pl.col("group") != "").then(pl.concat_list("group")).otherwise([])
    return frame.select("id", mapped=groups, source=pl.lit("")).unique("id")


def _members(about: pl.DataFrame, ids: list[str], texts_min: int) -> dict[tuple[str, str], Bools]:
    """Return who is of which group or source; of one that all are of, or too few, nobody."""
    joined = pl.DataFrame({"id": ids}).join(about, on="id", how="left", maintain_order="left")
    found = {ALL: np.ones(len(ids), dtype=np.bool_)}
    groups = joined["mapped"].fill_null([])
    for name in sorted(set(groups.explode(empty_as_null=False).drop_nulls()) - {""}):
        found["group", name] = groups.list.contains(name).to_numpy()
    sources = joined["source"].fill_null("")
    for name in sorted(set(sources) - {""}):
        found["source", name] = (sources == name).to_numpy()
    return {
        key: own for key, own in found.items() if key == ALL or (texts_min <= own.sum() < len(ids))
    }


def grid(runs: Runs, values: Floats) -> Floats:
    """Lay out values of runs by pretraining and fine-tuning seed; nan where there is no run."""
    pretraining = sorted({p for p, _ in runs.seeds})
    seeds = sorted({s for _, s in runs.seeds})
    found = np.full((len(pretraining), len(seeds)), np.nan)
    for (p, s), value in zip(runs.seeds, values, strict=True):
        found[pretraining.index(p), seeds.index(s)] = value
    return found


def pairs(case: Case, control: str, sides: list[tuple[str, str]]) -> list[tuple[State, State]]:
    """Return what is compared: with the model itself, with the control, and side with side."""
    found = []
    for state in case.states:
        if state.itself:
            continue
        found += [(state, other) for other in case.states if other.itself]
        other = state._replace(corpus=control)
        if other in case.states and other != state:
            found.append((state, other))
    for left, right in sides:
        found += [
            (state, state._replace(corpus=right))
            for state in case.states
            if state.corpus == left and state._replace(corpus=right) in case.states
        ]
    return list(dict.fromkeys(found))


def matched(one: Runs, other: Runs, state: State) -> tuple[Runs, Runs]:
    """Return the runs of both that have the same seeds; the model itself has none of pretraining.

    Its runs stand beside those of each pretraining seed.
    """
    if state.itself:
        by_seed = {seed: own for own in other.seeds for seed in own[1:]}
        seeds = [own for own in one.seeds if own[1] in by_seed]
        return one.pick(seeds), other.pick([by_seed[seed] for _, seed in seeds])
    seeds = [own for own in one.seeds if own in other.seeds]
    return one.pick(seeds), other.pick(seeds)


def tables(
    found: dict[str, list[dict[str, Any]]], schemas: dict[str, Schema]
) -> dict[str, pl.DataFrame]:
    """Return rows as tables, adjusted over all tests of a task of a model in a reading."""
    result = {}
    for name, rows in found.items():
        if rows:
            table = pl.DataFrame(rows, infer_schema_length=None)
            for column in ("p", *({"p_trainings"} & set(table.columns))):
                table = adjusted(table, column, ("model", "task", "reading"))
            result[name] = typed(table, schemas[name])
    return result


def over_seeds(found: Contrast | None, *, tested: bool) -> dict[str, float | None]:
    """Return the columns of a difference over texts and trainings; nothing without one."""
    if found is None:
        return dict.fromkeys(("trainings_low", "trainings_high", "p_trainings"))
    return {
        "trainings_low": finite(found.low),
        "trainings_high": finite(found.high),
        "p_trainings": significant(found.p) if tested and np.isfinite(found.p) else None,
    }
