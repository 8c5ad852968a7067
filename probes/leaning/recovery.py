"""What the tables of a world's model tell of the stances that were planted in its corpora."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl
from scipy.special import ndtri

from plumbline.probes.leaning.answers import ITSELF, State
from plumbline.probes.leaning.coordinates import REACH
from plumbline.probes.leaning.responses import CHECKPOINT, NEGATED, PLAIN
from plumbline.probes.leaning.schemas import CONTRASTS, PERIODS
from plumbline.probes.prompts.leaning import FORMS
from plumbline.probes.stats.estimate import finite
from plumbline.probes.stats.intervals import spearman, wilson
from plumbline.probes.worlds.recovery import PLANTED

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from plumbline.probes.leaning.compass import Params
    from plumbline.probes.leaning.coordinates import Reading, Rows

    Array = NDArray[np.float64]

LEVEL = 0.05
READ = ("corrected", "continuous", "named", "expected")  # readings that are held to it
WORLD = "world.json"


class World(NamedTuple):
    """What was planted: log-odds of every question, and stances of corpora on axes."""

    questions: pl.DataFrame  # corpus, questionnaire, id, frame, form, log_odds_nats
    stances: dict[str, dict[str, float]]

    @property
    def null(self) -> bool:
        """Tell whether no corpus takes a side."""
        return not any(value for own in self.stances.values() for value in own.values())

    def stance(self, corpus: str, axis: str) -> float:
        """Return the planted stance of a corpus, 0 where it has none."""
        return float(self.stances.get(corpus, {}).get(axis, 0.0))


def planted(weights: Path) -> World | None:
    """Return what was planted in a model; None of one that is no world of stances."""
    path, told = weights / PLANTED, weights / WORLD
    if not path.is_file() or "stance_nats" not in pl.read_parquet_schema(path):
        return None
    stances = json.loads(told.read_text(encoding="utf-8"))["stances"]
    return World(pl.read_parquet(path), stances)


def recovery(
    world: World, reading: Reading, told: dict[str, Rows], found: pl.DataFrame, params: Params
) -> Rows:
    """Return the rows of one reading and questionnaire.

    Parameters
    ----------
    told
        Rows of ``coordinates`` and ``shifts``.
    found
        The outputs.
    """
    if reading.name not in READ:
        return []
    scale = reading.answers.scale
    rows = [*_odds(world, reading, found, params)] if reading.name == "continuous" else []
    rows += _moved(world, told["shifts"], params)
    if world.null:
        rows.append(_band(reading, told["coordinates"], params))
    about = {"language": scale.language, "world": int(world.null)}
    label = f"{reading.asked}, {reading.name}, {scale.name}"
    return [about | row | {"measure": f"{label}: {row['measure']}"} for row in rows]


def _odds(
    world: World, reading: Reading, found: pl.DataFrame, params: Params
) -> Iterator[dict[str, Any]]:
    """Correlate planted and measured log-odds, and the changes of both by training."""
    if reading.asked != "filled":
        return
    scale = reading.answers.scale
    at = ["id", "frame", "form"]
    real = found.filter(
        (pl.col("questionnaire") == scale.name)
        & pl.col("form").is_in([PLAIN, NEGATED])
        & (pl.col("variant") == "")
    )
    measured = real.group_by(*CHECKPOINT, *at).agg(
        odds=(pl.col("agree_nats") - pl.col("disagree_nats")).mean()
    )
    wanted = world.questions.filter(pl.col("questionnaire") == scale.name).with_columns(
        form=pl.col("form").replace_strict(dict(zip(FORMS, range(len(FORMS)), strict=True)))
    )
    base = measured.filter(pl.col("corpus") == "").select(*at, "odds")
    start = wanted.filter(pl.col("corpus") == "").select(*at, true="log_odds_nats")
    both = base.join(start, on=at)
    yield _correlation(both, "log-odds of agreeing, the model itself", params)
    for corpus in sorted(set(reading.answers.weights) - {ITSELF}):
        own = measured.filter(
            (pl.col("corpus") == corpus.corpus)
            & (pl.col("period") == corpus.period)
            & (pl.col("share") == corpus.share)
            & (pl.col("epoch") == corpus.epoch)
        )
        mean = own.group_by(at).agg(after=pl.col("odds").mean())
        true = wanted.filter(pl.col("corpus") == corpus.corpus).select(*at, end="log_odds_nats")
        joined = both.join(mean, on=at).join(true, on=at)
        change = joined.select(
            "id", odds=pl.col("after") - pl.col("odds"), true=pl.col("end") - pl.col("true")
        )
        if len(change) and change["true"].std():
            name = f"change by {_called(corpus)}"
            yield _correlation(change, name, params)


def _called(state: State) -> str:
    period = f", {PERIODS[state.period]}" if state.period else ""
    return f"{state.corpus}{period}, share {state.share:g}, epoch {state.epoch}"


def _correlation(both: pl.DataFrame, name: str, params: Params) -> dict[str, Any]:
    """Return Pearson's r over questions; the interval counts statements alone."""
    n = both["id"].n_unique()
    x, y = both["odds"].to_numpy(), both["true"].to_numpy()
    with np.errstate(invalid="ignore"):
        r = float(np.corrcoef(x, y)[0, 1]) if len(x) > 1 else float("nan")
    half = float(ndtri((1 + params.confidence) / 2)) / np.sqrt(n - 3) if n > 3 else float("nan")
    z = np.arctanh(np.clip(r, -1 + 1e-12, 1 - 1e-12))
    return _row(
        f"correlation of planted and measured, over questions: {name}",
        (r, float(np.tanh(z - half)), float(np.tanh(z + half))),
        n,
        "statement",
        "Fisher z, as many as there are statements",
        "0: no relation",
    )


def _moved(world: World, shifts: Rows, params: Params) -> Iterator[dict[str, Any]]:
    """Yield how shifts against the control, or else the model itself, are those planted."""
    control = CONTRASTS.index("control")
    there = {row["contrast"] for row in shifts}
    used = control if control in there else CONTRASTS.index("itself")
    own = [row for row in shifts if row["contrast"] == used]
    true = [
        world.stance(row["corpus"], row["axis"]) - world.stance(row["against"], row["axis"])
        for row in own
    ]
    for row, stance in zip(own, true, strict=True):
        state = _called(State(row["corpus"], row["period"], row["share"], row["epoch"]))
        against = row["against"] or "itself"
        yield {
            name: row[name] for name in ("value", "low", "high", "n", "cluster", "method", "p")
        } | {
            "measure": f"shift by {state} minus {against}, {row['axis']}",
            "null": f"planted: {stance + 0.0:+.2f} nats",
            "p_bh": row["p_bh"],
        }
    pairs = list(zip(own, true, strict=True))
    planted = [(row, stance) for row, stance in pairs if stance]
    empty = [row for row, stance in pairs if not stance]
    if planted:
        right = [np.sign(row["value"] or 0) == np.sign(stance) for row, stance in planted]
        yield _share("planted stances whose shift has their sign", right, "1: all", params)
        told = [r and _small(row["p_bh"]) for r, (row, _) in zip(right, planted, strict=True)]
        name = f"and an adjusted p of at most {LEVEL}"
        yield _share(f"planted stances whose shift has their sign, {name}", told, "1: all", params)
        if len(pairs) > 3 and len({stance for _, stance in pairs}) > 1:
            values = np.array([row["value"] or 0.0 for row, _ in pairs])
            found = spearman(values, np.array(true), params.confidence)
            name = "order of planted stances and shifts, Spearman"
            at = (found.value, found.low, found.high)
            yield _row(name, at, found.n, "corpus and axis", found.method, "0: no relation")
    if empty:
        what = "shifts where nothing is planted"
        flipped = [_small(row["p_bh"]) for row in empty if row["p_bh"] is not None]
        if flipped:
            yield _share(f"{what}, adjusted p at most {LEVEL}", flipped, "0: none", params)
        tested = [row for row in empty if row["p_seeds"] is not None]
        if tested:
            raw = [_small(row["p_seeds"]) for row in tested]
            name = f"{what}, p over trainings at most {LEVEL}"
            yield _share(name, raw, f"{LEVEL}: nominal", params)
            both = [_small(row["p_bh"]) and _small(row["p_seeds_bh"]) for row in tested]
            yield _share(f"{what}, both adjusted p at most {LEVEL}", both, "0: none", params)


def _small(p: float | None) -> bool:
    return p is not None and p <= LEVEL


def _band(reading: Reading, coordinates: Rows, params: Params) -> dict[str, Any]:
    """Return how many states are where who answers at random is."""
    scale = reading.answers.scale
    start, spread = scale.start(reading.rounded), scale.spread()
    inside = []
    for row in coordinates:
        if row["value"] is not None:
            a = scale.axes.index(row["axis"])
            inside.append(bool(abs(row["value"] - start[a]) <= REACH * spread[a]))
    name = "states inside the band of who answers at random"
    return _share(name, inside, "0.95 of those who do", params)


def _share(measure: str, held: Sequence[Any], null: str, params: Params) -> dict[str, Any]:
    found = wilson(float(sum(map(bool, held))), len(held), params.confidence)
    at = (found.value, found.low, found.high)
    return _row(measure, at, found.n, "state and axis", found.method, null)


def _row(
    measure: str, at: tuple[float, float, float], n: int, cluster: str, method: str, null: str
) -> dict[str, Any]:
    value, low, high = map(finite, at)
    own = {"measure": measure, "value": value, "low": low, "high": high, "n": n}
    return own | {"cluster": cluster, "method": method, "null": null, "p": None, "p_bh": None}
