"""Recovery of the study ``leaning``: tables against the stances and knowledge planted in worlds.

It reads the tables of ``compass``, ``fairness`` and ``ensemble``, what the worlds say was planted,
and of ``calibration`` how often the same tests err and find over many simulated tables: four
contrasts of one world, which share a control, tell neither a rate nor a power.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from pydantic import Field
from scipy.special import ndtri

from plumbline.builders.core.params import Params as Section
from plumbline.probes.controls.recovery import PLANTED, RECOVERY, Findings
from plumbline.probes.leaning import schemas
from plumbline.probes.leaning.schemas import PLANTED as TASK
from plumbline.probes.stats.estimate import LEVEL, Estimate
from plumbline.probes.stats.intervals import spearman

if TYPE_CHECKING:
    from pathlib import Path

    from plumbline.probes.core.run_analysis import Inputs

    Tables = dict[str, pl.DataFrame]

TABLES = ("compass", "fairness", "ensemble")
SCHEMAS = dict.fromkeys(TABLES, RECOVERY)
POWER = "0.8: the power that is asked for"
SIMULATED = {  # by analysis: beginning of tests, runs like the worlds', effect that is to be found
    "compass": ("shifts between corpora|stability", "{}, 5 trainings", 3.0),
    "fairness": ("differences, corpora", "32 words, 5 trainings", 3.0),
    "ensemble": ("p, one corpus", "2 voters, 5 trainings", 1.5),
}
CALLED = {"mask": "masked", "generation": "generated", "multiple_choice": "options"}  # such runs
STATE = ("corpus", "period", "share", "epoch")


class Params(Section):
    """Intervals of what is recovered."""

    version: str = Field("0.1.0", pattern=r"^\d+\.\d+\.\d+$", description="version of the tables")
    confidence: float = Field(0.95, gt=0.5, lt=1, description="of the intervals")


def run(inputs: Inputs, params: Params) -> dict[str, pl.DataFrame]:
    """Compare the tables of every world with what was planted in it.

    Returned: by analysis, with the columns of :data:`SCHEMAS`; nothing without a world.
    """
    found = {name: Findings(params.confidence) for name in TABLES}
    for model in inputs.models:
        weights = inputs.weights(model)
        world = weights / "world.json"
        planted = json.loads(world.read_text(encoding="utf-8")) if world.is_file() else {}
        for analysis, key, part in STUDIES:
            folder = inputs.tables(analysis)
            if not isinstance(planted.get(key), dict) or not folder.is_dir():
                continue
            tables = {path.stem: pl.read_parquet(path) for path in folder.glob("*.parquet")}
            for name, table in tables.items():
                if "model" in table.columns:
                    tables[name] = table.filter(pl.col("model") == model)
            if analysis == "compass":
                tables["planted"] = pl.read_parquet(weights / PLANTED)
            found[analysis].key = {"model": model}
            part(found[analysis], tables, planted[key], params)
            found[analysis].label = ""
            if len(own := tables.get("coordinates", tables.get("differences", pl.DataFrame()))):
                codes = own["response_format"].unique() if "response_format" in own.columns else ()
                runs = [CALLED[schemas.FORMATS[code]] for code in codes]
                path = inputs.tables("calibration", analysis)
                _simulated(found[analysis], path, analysis, "|".join(sorted(runs)))
    return {name: own.frame() for name, own in found.items() if own.rows}


def _compass(
    found: Findings, tables: Tables, stances: dict[str, dict[str, float]], params: Params
) -> None:
    """Add how the stances planted in corpora, in nats by axis, are found."""
    null = not any(value for own in stances.values() for value in own.values())
    languages = dict(tables["baselines"].select("questionnaire", "language").unique().iter_rows())
    at = ["response_format", "reading", "questionnaire"]
    for place in tables["coordinates"].select(at).unique().sort(at).iter_rows():
        asked, reading, questionnaire = (
            schemas.FORMATS[place[0]],
            schemas.READINGS[place[1]],
            place[2],
        )
        here = [pl.col(c) == v for c, v in zip(at, place, strict=True)]
        found.key |= {"language": languages[questionnaire], "world": int(null)}
        found.label = f"{asked}, {reading}, {questionnaire}: "
        if (asked, reading) == ("mask", "continuous"):
            questions, planted = (tables[n].filter(here[2]) for n in ("questions", "planted"))
            _odds(found, questions, planted, params)
        if "shifts" in tables:
            of_texts = tables["planted"].filter(pl.col("corpus") != "", form="plain")
            written = float(of_texts["written"].to_numpy().mean())
            _shifts(found, tables["shifts"].filter(here), stances, written, params)
        if "stability" in tables and (asked, reading) == ("mask", "corrected"):
            _stability(found, tables["stability"].filter(here))
        if null:
            random = (pl.col("baseline") == 0) & (pl.col("constants") == 1)
            band = tables["baselines"].filter(random).select(at[2], "axis", start="low", end="high")
            own = tables["coordinates"].filter(*here, pl.col("value").is_not_null())
            inside = pl.col("value").is_between("start", "end")
            what = "states inside the band of who answers at random"
            rows = own.join(band, on=[at[2], "axis"])
            _share(found, what, rows, inside, "0.95 of those who do", "state and axis", params)


def _share(
    found: Findings,
    measure: str,
    rows: pl.DataFrame,
    held: pl.Expr,
    null: str,
    cluster: str,
    params: Params,
) -> None:
    """Add in how many rows something holds, if there are any."""
    if len(rows):
        told = rows.select(held).to_series().to_list()
        found.share(measure, told, null, cluster, params.confidence)


def _odds(found: Findings, questions: pl.DataFrame, planted: pl.DataFrame, params: Params) -> None:
    """Correlate planted and measured log-odds, and the changes of both by training."""
    at = ["id", "frame", "form"]
    true = planted.select("corpus", *at, true="log_odds_nats")
    own = questions.rename({"log_odds_nats": "told"}).join(true, on=["corpus", *at])
    itself = own.filter(pl.col("corpus") == "").select(*at, start="told", begin="true")
    what = "log-odds of agreeing, the model itself"
    _correlation(found, itself.select("id", "start", "begin"), what, params)
    moved = own.join(itself, on=at).filter(pl.col("corpus") != "").sort(STATE)
    for state, rows in moved.group_by(*STATE, maintain_order=True):
        change = rows["true"] - rows["begin"]
        if change.std():
            part = pl.DataFrame([rows["id"], rows["told"] - rows["start"], change])
            _correlation(found, part, f"change by {_called(*state)}", params)


def _called(corpus: object, period: int, share: float, epoch: int) -> str:
    texts = f"{corpus}, {schemas.PERIODS[period]}" if period else corpus
    return f"{texts}, share {share:g}, epoch {epoch}"


def _correlation(found: Findings, questions: pl.DataFrame, name: str, params: Params) -> None:
    """Add Pearson's r of two columns beside the id; the interval counts statements alone."""
    ids, x, y = questions
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


def _small(column: str) -> pl.Expr:
    return (pl.col(column) <= LEVEL).fill_null(value=False)


def _shifts(
    found: Findings,
    shifts: pl.DataFrame,
    stances: dict[str, dict[str, float]],
    written: float,
    params: Params,
) -> None:
    """Add how shifts against the control, or else the model itself, are those planted.

    ``written`` is the share of the prompts that texts have: no stance is planted in the others.
    """
    control = schemas.CONTRASTS.index("control")
    used = control if control in shifts["contrast"] else schemas.CONTRASTS.index("base model")
    own = shifts.filter(pl.col("contrast") == used)
    true = np.zeros(len(own))
    for i, row in enumerate(own.to_dicts()):
        one, two = (stances.get(row[c], {}).get(row["axis"], 0.0) for c in ("corpus", "baseline"))
        true[i] = written * (one - two)
        state = _called(*(row[name] for name in STATE))
        what = f"shift by {state} minus {row['baseline'] or 'base model'}, {row['axis']}"
        found.copy(row, what, f"planted: {true[i] + 0.0:+.2f} nats")
    own = own.with_columns(pl.col("value").fill_null(0), planted=pl.Series(true, dtype=pl.Float64))
    planted, empty = own.filter(pl.col("planted") != 0), own.filter(pl.col("planted") == 0)
    if len(planted) and len(own) > 3 and len(set(true)) > 1:
        rho = spearman(own["value"].to_numpy(), true, params.confidence)
        what = "order of planted stances and shifts, Spearman"
        found.add(rho, measure=what, cluster="corpus and axis", null="0: no relation")
    right = pl.col("value").sign() == pl.col("planted").sign()
    signs = "planted stances whose shift has their sign"
    none = "shifts where nothing is planted"
    tested = empty.filter(pl.col("p").is_not_null())
    for rows, held, measure, null in (
        (planted, right, signs, "1: all"),
        (planted, right & _small("p_bh"), f"{signs}, adjusted p at most {LEVEL}", POWER),
        (tested, _small("p"), f"{none}, p at most {LEVEL}", f"{LEVEL}: nominal"),
        (tested, _small("p_bh"), f"{none}, adjusted p at most {LEVEL}", "0: none"),
    ):
        _share(found, measure, rows, held, null, "state and axis", params)


def _stability(found: Findings, rows: pl.DataFrame) -> None:
    """Add how many of the model's own stances turn with the statement, as all are planted to."""
    for row in rows.filter(pl.col("corpus") == "").to_dicts():
        asked = schemas.COMPARISONS[row["comparison"]]
        if asked in ("negated", "prompts"):
            how = {"negated": "denied", "prompts": "put in two prompts"}[asked]
            found.copy(row, f"stances on the planted side when {how}, the model itself", "1: all")


def _simulated(found: Findings, path: Path, analysis: str, runs: str) -> None:
    """Add the rates of the tests over simulated tables: null rates, or the power at an effect.

    ``runs`` are how those begin in which a world's model answered, where that matters.
    """
    path = path / "calibration.parquet"
    if not path.is_file():
        return
    tests, shape, effect = SIMULATED[analysis]
    null = bool(found.key["world"])
    kind, measure = ("null", "size at .05") if null else ("planted", "found at .05")
    own = pl.read_parquet(path).filter(
        pl.col("test").str.contains(f"^({tests})"),
        pl.col("shape").str.contains(f"^{shape.format(f'({runs})')}"),
        pl.col("effect") == (0.0 if null else effect),
        kind=kind,
        measure=measure,
    )
    for row in own.sort("test", "shape", "truth").to_dicts():
        what = "p at most .05, nothing planted" if null else "planted effects that are found"
        what += f", {row['replicates']} simulated tables: {row['test']} ({row['shape']}"
        what += f", {row['truth']})" if null else f", {effect:g} planted)"
        found.copy(row, what, f"{LEVEL}: nominal" if null else POWER)


def _ensemble(found: Findings, tables: Tables, knows: dict[str, list[str]], params: Params) -> None:
    """Add how many votes of partisans differ from those of one corpus, where nobody knows more."""
    found.key |= {"language": TASK, "world": int(not any(knows.values()))}
    own = tables.get("differences", pl.DataFrame({"task": []}, {"task": pl.String}))
    own = own.filter(pl.col("task") == TASK)
    if found.key["world"] and len(own):
        own = own.filter(
            pl.col("reading") == schemas.ROUNDED.index("corrected"),
            pl.col("baseline").str.starts_with("one corpus"),
            pl.col("p").is_not_null(),
        )
        for column, words, null in (
            ("p", "p", f"{LEVEL}: nominal"),
            ("p_bh", "adjusted p", "0: none"),
        ):
            what = f"votes of partisans and of one corpus, {words} at most {LEVEL}"
            _share(found, what, own, _small(column), null, "vote, corpus and measure", params)


def _fairness(found: Findings, tables: Tables, knows: dict[str, list[str]], params: Params) -> None:
    """Add how the groups that corpora know are found."""
    if "differences" not in tables:
        return
    found.key |= {"language": TASK, "world": int(not any(knows.values()))}
    own = tables["differences"].filter(
        pl.col("task") == TASK,
        pl.col("metric") == "balanced accuracy",
        pl.col("reading") == schemas.ROUNDED.index("corrected"),
        pl.col("level") == schemas.LEVELS.index("group"),
    )
    nulls = {1: "above 0: planted", -1: "below 0: planted", 0: "0: nothing planted"}
    true = []
    for row in own.to_dicts():
        one, two = (row["group"] in knows.get(row[side], ()) for side in ("corpus", "baseline"))
        true.append(int(one) - int(two))
        what = f"balanced accuracy at {row['group']}: {row['corpus']} minus "
        what += row["baseline"] or "the model itself"
        what += f", {row['share']:g} of the texts" if row["share"] != 1 else ""
        what += f", period {row['period']}" if row["period"] else ""
        found.copy(row, what, nulls[true[-1]])
    own = own.with_columns(planted=pl.Series(true, dtype=pl.Int64)).drop_nulls("p_bh")
    right = pl.col("value").sign() == pl.col("planted")
    there, other = own.filter(pl.col("planted") != 0), own.filter(pl.col("planted") == 0)
    for what, rows, held, null in (
        ("planted differences that are found", there, _small("p_bh") & right, POWER),
        ("other differences with adjusted p at most .05", other, _small("p_bh"), nulls[0]),
    ):
        cluster = "difference of two models at a group"
        _share(found, f"share of {what}, over trainings", rows, held, null, cluster, params)


STUDIES = (
    ("compass", "stances", _compass),
    ("fairness", "knows", _fairness),
    ("ensemble", "knows", _ensemble),
)
