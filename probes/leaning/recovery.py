"""Recovery of the study ``leaning``: tables against the stances and knowledge planted in worlds.

It reads the tables of ``compass`` and ``fairness`` and what the worlds say was planted, nothing
else.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from pydantic import Field
from scipy.special import ndtri

from plumbline.builders.core.params import Params as Section
from plumbline.probes.leaning.schemas import (
    CONTRASTS,
    FAIRNESS_READINGS,
    FORMATS,
    LEVELS,
    PERIODS,
    READINGS,
)
from plumbline.probes.leaning.schemas import PLANTED as TASK
from plumbline.probes.stats.estimate import Estimate
from plumbline.probes.stats.intervals import spearman
from plumbline.probes.worlds.recovery import PLANTED, RECOVERY, Findings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plumbline.probes.core.run_analysis import Inputs

    Row = dict[str, Any]
    Tables = dict[str, pl.DataFrame]

TABLES = ("compass", "fairness")
SCHEMAS = {"compass": RECOVERY, "fairness": RECOVERY}
LEVEL = 0.05
READ = ("corrected", "continuous", "named", "expected")  # readings that are compared


class Params(Section):
    """Intervals of what is recovered."""

    version: str = Field("0.1.0", pattern=r"^\d+\.\d+\.\d+$", description="version of the tables")
    confidence: float = Field(0.95, gt=0.5, lt=1, description="of the intervals")


def run(inputs: Inputs, params: Params) -> dict[str, pl.DataFrame]:
    """Compare the tables of every world with what was planted in it.

    Returns
    -------
    dict
        By analysis, with the columns of :data:`SCHEMAS`; nothing without a world.
    """
    found = {name: Findings() for name in TABLES}
    for model in inputs.models:
        weights = inputs.weights(model)
        world = weights / "world.json"
        planted = json.loads(world.read_text(encoding="utf-8")) if world.is_file() else {}
        for analysis, key, part in STUDIES:
            folder = inputs.tables(analysis)
            if not isinstance(planted.get(key), dict) or not folder.is_dir():
                continue
            tables = {
                path.stem: pl.read_parquet(path).filter(pl.col("model") == model)
                for path in folder.glob("*.parquet")
                if "model" in pl.read_parquet_schema(path)
            }
            if analysis == "compass":
                tables["baselines"] = pl.read_parquet(folder / "baselines.parquet")
                tables["planted"] = pl.read_parquet(weights / PLANTED)
            found[analysis].key = {"model": model}
            part(found[analysis], tables, planted[key], params)
    return {name: own.frame() for name, own in found.items() if own.rows}


def _compass(
    found: Findings, tables: Tables, stances: dict[str, dict[str, float]], params: Params
) -> None:
    """Add how the stances planted in corpora are found.

    Parameters
    ----------
    stances
        By corpus and axis, in nats.
    """
    null = not any(value for own in stances.values() for value in own.values())
    languages = dict(tables["baselines"].select("questionnaire", "language").unique().iter_rows())
    at = ["response_format", "reading", "questionnaire"]
    for place in tables["coordinates"].select(at).unique().sort(at).iter_rows():
        asked, reading, questionnaire = FORMATS[place[0]], READINGS[place[1]], place[2]
        if reading not in READ:
            continue
        own = {
            name: table.filter(*(pl.col(c) == v for c, v in zip(at, place, strict=True)))
            for name, table in tables.items()
            if name in ("coordinates", "shifts")
        }
        found.key |= {"language": languages[questionnaire], "world": int(null)}
        found.label = f"{asked}, {reading}, {questionnaire}: "
        if (asked, reading) == ("mask", "continuous"):
            _odds(found, tables["questions"], tables["planted"], questionnaire, params)
        if "shifts" in own:
            _shifts(found, own["shifts"].to_dicts(), stances, params)
        if null:
            _band(found, own["coordinates"], tables["baselines"], params)


def _odds(
    found: Findings,
    questions: pl.DataFrame,
    planted: pl.DataFrame,
    questionnaire: str,
    params: Params,
) -> None:
    """Correlate planted and measured log-odds, and the changes of both by training."""
    at = ["id", "frame", "form"]
    here = pl.col("questionnaire") == questionnaire
    true = planted.filter(here).select("corpus", *at, true="log_odds_nats")
    measured = questions.filter(here)
    base = measured.filter(pl.col("corpus") == "").select(*at, start="log_odds_nats")
    both = base.join(true.filter(pl.col("corpus") == "").drop("corpus"), on=at)
    what = "log-odds of agreeing, the model itself"
    _correlation(found, both["id"], both["start"], both["true"], what, params)
    after = measured.filter(pl.col("corpus") != "").sort("corpus", "period", "share", "epoch")
    states = after.group_by("corpus", "period", "share", "epoch", maintain_order=True)
    for (corpus, *state), own in states:
        end = true.filter(pl.col("corpus") == corpus).select(*at, end="true")
        joined = both.join(own.select(*at, "log_odds_nats"), on=at).join(end, on=at)
        change = joined["end"] - joined["true"]
        if len(joined) and change.std():
            what = f"change by {_called(corpus, *state)}"
            apart = joined["log_odds_nats"] - joined["start"]
            _correlation(found, joined["id"], apart, change, what, params)


def _called(corpus: object, period: int, share: float, epoch: int) -> str:
    return f"{corpus}{', ' + PERIODS[period] if period else ''}, share {share:g}, epoch {epoch}"


def _correlation(
    found: Findings, ids: pl.Series, x: pl.Series, y: pl.Series, name: str, params: Params
) -> None:
    """Add Pearson's r over questions; the interval counts statements alone."""
    n = ids.n_unique()
    with np.errstate(invalid="ignore"):
        r = float(np.corrcoef(x, y)[0, 1]) if len(x) > 1 else float("nan")
    half = float(ndtri((1 + params.confidence) / 2)) / np.sqrt(n - 3) if n > 3 else float("nan")
    z = np.arctanh(np.clip(r, -1 + 1e-12, 1 - 1e-12))
    low, high = float(np.tanh(z - half)), float(np.tanh(z + half))
    found.add(
        Estimate(r, low, high, n, "Fisher z, as many as there are statements"),
        measure=f"correlation of planted and measured, over questions: {name}",
        cluster="statement",
        null="0: no relation",
    )


def _shifts(
    found: Findings, shifts: list[Row], stances: dict[str, dict[str, float]], params: Params
) -> None:
    """Add how shifts against the control, or else the model itself, are those planted."""
    control = CONTRASTS.index("control")
    there = {row["contrast"] for row in shifts}
    used = control if control in there else CONTRASTS.index("itself")
    own = [row for row in shifts if row["contrast"] == used]
    for row in own:
        one, two = (stances.get(row[c], {}).get(row["axis"], 0.0) for c in ("corpus", "baseline"))
        row["planted"] = float(one - two)
        state = _called(row["corpus"], row["period"], row["share"], row["epoch"])
        what = f"shift by {state} minus {row['baseline'] or 'itself'}, {row['axis']}"
        found.copy(row, what, f"planted: {row['planted'] + 0.0:+.2f} nats")

    def share(measure: str, held: Sequence[Any], null: str) -> None:
        found.share(measure, held, null, "state and axis", params.confidence)

    planted = [row for row in own if row["planted"]]
    empty = [row for row in own if not row["planted"]]
    if planted:
        right = [np.sign(row["value"] or 0) == np.sign(row["planted"]) for row in planted]
        what = "planted stances whose shift has their sign"
        share(what, right, "1: all")
        told = [r and _small(row["p_bh"]) for r, row in zip(right, planted, strict=True)]
        share(f"{what}, and an adjusted p of at most {LEVEL}", told, "1: all")
        true = np.array([row["planted"] for row in own])
        if len(own) > 3 and len(set(true)) > 1:
            values = np.array([row["value"] or 0.0 for row in own])
            rho = spearman(values, true, params.confidence)
            what = "order of planted stances and shifts, Spearman"
            found.add(rho, measure=what, cluster="corpus and axis", null="0: no relation")
    what = "shifts where nothing is planted"
    if flipped := [_small(row["p_bh"]) for row in empty if row["p_bh"] is not None]:
        share(f"{what}, adjusted p at most {LEVEL}", flipped, "0: none")
    if tested := [row for row in empty if row["p_seeds"] is not None]:
        raw = [_small(row["p_seeds"]) for row in tested]
        share(f"{what}, p over trainings at most {LEVEL}", raw, f"{LEVEL}: nominal")
        both = [_small(row["p_bh"]) and _small(row["p_seeds_bh"]) for row in tested]
        share(f"{what}, both adjusted p at most {LEVEL}", both, "0: none")


def _small(p: float | None) -> bool:
    return p is not None and p <= LEVEL


def _band(
    found: Findings, coordinates: pl.DataFrame, baselines: pl.DataFrame, params: Params
) -> None:
    """Add how many states are where random answers are."""
    random = (pl.col("baseline") == 0) & (pl.col("constants") == 1)
    band = baselines.filter(random).select("questionnaire", "axis", start="low", end="high")
    own = coordinates.filter(pl.col("value").is_not_null()).join(band, on=["questionnaire", "axis"])
    inside = own.select(pl.col("value").is_between("start", "end")).to_series().to_list()
    what = "states inside the band of who answers at random"
    found.share(what, inside, "0.95 of those who do", "state and axis", params.confidence)


def _fairness(found: Findings, tables: Tables, knows: dict[str, list[str]], params: Params) -> None:
    """Add how the groups that corpora know are found.

    Parameters
    ----------
    knows
        By corpus.
    """
    differences = tables.get("differences")
    if differences is None:
        return
    found.key |= {"language": TASK, "world": int(not any(knows.values()))}
    rows = differences.filter(
        pl.col("task") == TASK,
        pl.col("metric") == "accuracy",
        pl.col("reading") == FAIRNESS_READINGS.index("corrected"),
        pl.col("level") == LEVELS.index("group"),
    ).to_dicts()
    nulls = {1: "above 0: planted", -1: "below 0: planted", 0: "0: nothing planted"}
    for row in rows:
        sides = [row["group"] in knows.get(row[side], ()) for side in ("corpus", "baseline")]
        row["planted"] = int(sides[0]) - int(sides[1])
        seeds = row["trainings_low"] is not None
        what = f"accuracy at {row['group']}: {row['corpus']} minus "
        what += row["baseline"] or "the model itself"
        what += f", {row['share']:g} of the texts" if row["share"] != 1 else ""
        what += f", period {row['period']}" if row["period"] else ""
        found.copy(
            row,
            what,
            nulls[row["planted"]],
            low=row["trainings_low"] if seeds else row["low"],
            high=row["trainings_high"] if seeds else row["high"],
            cluster="text, and trainings where there are several seeds",
            method="t over texts and trainings (Satterthwaite); one seed: bootstrap over texts",
            p=row["p_trainings"],
            p_bh=row["p_trainings_bh"],
        )
    cluster = "difference of two models at a group"
    for column, words in (("p_bh", "texts exchanged"), ("p_trainings_bh", "over trainings")):
        tested = [row for row in rows if row[column] is not None]
        right = [
            _small(row[column]) and np.sign(row["value"]) == row["planted"]
            for row in tested
            if row["planted"]
        ]
        if right:
            what = f"share of planted differences that are found, {words}"
            found.share(what, right, "1: all, with their sign", cluster, params.confidence)
        false = [_small(row[column]) for row in tested if not row["planted"]]
        if false:
            what = f"share of other differences with adjusted p at most .05, {words}"
            found.share(what, false, "0: nothing planted", cluster, params.confidence)


STUDIES = (("compass", "stances", _compass), ("fairness", "knows", _fairness))
