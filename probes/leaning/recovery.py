"""Recovery of the study ``leaning``: its tables compared with effects planted in control models."""

from __future__ import annotations

import json
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from scipy.special import stdtrit
from scipy.stats import linregress

from plumbline.probes.controls.compare import LEAST, PARAMS, PLANTED, Comparison, Params, read_table
from plumbline.probes.leaning.schemas import PLANTED as TASK
from plumbline.probes.stats.estimate import LEVEL, Estimate

if TYPE_CHECKING:
    from plumbline.probes.core.run_analysis import Inputs

    Tables = dict[str, pl.DataFrame]
    Stances = dict[str, dict[str, float]]

TABLES = ("compass", "fairness", "ensemble")
STATE = ("corpus", "period", "share", "epoch")
CELL = ("response_format", "reading", "questionnaire")
STABLE = {"negated": "negated statements", "prompts": "two prompts"}  # comparisons
ITSELF = "the model itself"
# readings whose stances are expected values; others are only compared with the planted sign
GRADED = {("mask", "continuous"), ("generation", "continuous"), ("multiple_choice", "expected")}
CHOICE = 0.6  # mean size of a planted choice: four fifths are mild (.5), a fifth is strong (1)
RIGHT = pl.col("value").sign() == pl.col("planted").sign()
SIGNIFICANT = (pl.col("p_bh") <= LEVEL).fill_null(value=False)


def truth(inputs: Inputs, model: str) -> dict[str, Any]:
    """Return a control model's settings: ``stances``, in nats, and ``knows``, groups by corpus."""
    path = inputs.weights(model) / "world.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def run(inputs: Inputs, params: Params = PARAMS) -> dict[str, pl.DataFrame]:
    """Compare the tables of each analysis with the effects planted in every control model."""
    comparisons = {name: Comparison(params) for name in TABLES}
    keys: Any = (("stances", _compass), ("knows", _fairness), ("knows", _ensemble))
    studies = zip(TABLES, keys, strict=True)
    for model, (analysis, (key, compare)) in product(inputs.models, studies):
        planted, folder = truth(inputs, model).get(key), inputs.tables(analysis)
        if not isinstance(planted, dict) or not folder.is_dir():
            continue
        tables = {path.stem: read_table(path) for path in folder.glob("*.parquet")}
        for name, table in tables.items():
            if "model" in table.columns:
                tables[name] = table.filter(model=model)
        if analysis == "compass":
            tables["planted"] = pl.read_parquet(inputs.weights(model) / PLANTED)
        values = (v.values() if isinstance(v, dict) else v for v in planted.values())
        world = "planted" if any(map(any, values)) else "null"
        comparisons[analysis].at = {"model": model, "language": TASK, "world": world}
        compare(comparisons[analysis], tables, planted)
    return {name: rows.frame() for name, rows in comparisons.items() if rows.rows}


def _compass(rows: Comparison, tables: Tables, stances: Stances) -> None:
    """Compare the tables with the stances planted in the model itself and in corpora."""
    baselines, empty = tables["baselines"], pl.DataFrame()
    languages = dict(baselines.select("questionnaire", "language").iter_rows())
    for cell in tables["coordinates"].select(CELL).unique().to_dicts():
        response_format, reading, questionnaire = cell.values()
        parts = {
            name: table.filter(**cell)
            for name, table in tables.items()
            if set(CELL) <= set(table.columns)
        }
        prompts = {prompt.partition("/")[0] for prompt in parts["runs"]["prompt"]}
        frame = pl.col("frame").is_in(prompts)
        planted = tables["planted"].filter(frame, questionnaire=questionnaire)
        if planted.is_empty():
            continue  # the model was trained on other prompts
        true = _true_stances(planted, response_format, stances)
        rows.at["language"] = languages[questionnaire]
        key = {"reading": reading, "item": f"{response_format}, {questionnaire}"}
        itself = parts["coordinates"].filter(corpus="").drop_nulls("value")
        graded, places = (response_format, reading) in GRADED, "" in stances and len(itself)
        if graded and (places or response_format == "mask"):  # others have hardly any stances
            _slope(rows, parts["items"], true, response_format)
        if places:
            middle = pl.col("value", "low", "high") - 50  # percent
            _shifts(rows, itself.with_columns(middle, baseline=pl.lit("")), true, key, graded)
        elif len(parts.get("shifts", empty)):
            contrasts = parts["shifts"]["contrast"].to_list()
            contrast = "control" if "control" in contrasts else "base model"
            _shifts(rows, parts["shifts"].filter(contrast=contrast), true, key, graded)
        if (response_format, reading) == ("mask", "corrected"):
            for row in parts.get("stability", empty).to_dicts():
                if row["comparison"] in STABLE and not row["corpus"]:
                    item = f"{key['item']}: {STABLE[row['comparison']]}"
                    rows.copy("sign_agreement", row, "statement", reading=reading, item=item)
        if rows.at["world"] == "null":
            random = baselines.filter(baseline="random answers", constants="corrected")
            band = random.select("questionnaire", "axis", start="low", end="high")
            states = parts["coordinates"].drop_nulls("value").join(band, ["questionnaire", "axis"])
            inside = states.select(pl.col("value").is_between("start", "end")).to_series()
            rows.share("inside_random", inside, "state and axis", **key)


def _true_stances(planted: pl.DataFrame, response_format: str, stances: Stances) -> pl.DataFrame:
    """Return the mean planted stance of each corpus on each statement, over prompts.

    The columns are ``stance``, the expected stance from -1 to 1, ``nats``, its planted log-odds,
    and ``side``, 1 or -1 for statements in favour of or against an axis (0 without any stance).

    The analysis divides the answers of masked models by those to content-free texts, so the habit
    of agreeing in a prompt, the mean log-odds over statements and negations, is subtracted.
    """
    odds, plain = pl.col("log_odds_nats"), planted.filter(form="plain")
    if response_format == "mask":
        habits = planted.filter(corpus="").group_by("frame").agg(habit=odds.mean())
        plain = plain.join(habits, on="frame").with_columns(odds - pl.col("habit"))
    strength = CHOICE if response_format == "multiple_choice" else 1.0
    mean = {"nats": pl.mean("stance_nats"), "stance": strength * (odds / 2).tanh().mean()}
    known = [(c, axis, nats) for c, axes in stances.items() for axis, nats in axes.items()]
    axes = pl.DataFrame(known, {"corpus": str, "axis": str, "leaning": float}, orient="row")
    true = plain.group_by("corpus", "axis", "id").agg(**mean)
    true = true.join(axes, on=["corpus", "axis"], how="left")
    side = (pl.col("nats") * pl.col("leaning").fill_null(0)).sum().over("id").sign()
    return true.with_columns(side=side)


def _slope(rows: Comparison, items: pl.DataFrame, true: pl.DataFrame, response_format: str) -> None:
    """Add the slope of measured on planted stances of the model itself, over statements."""
    both = items.filter(corpus="").drop_nulls("value").join(true.filter(corpus=""), on="id")
    if len(both) >= LEAST:
        fitted = linregress(both["stance"].to_numpy(), both["value"].to_numpy())
        reach = float(stdtrit(len(both) - 2, (1 + rows.confidence) / 2)) * fitted.stderr
        estimate = Estimate(fitted.slope, fitted.slope - reach, fitted.slope + reach, len(both))
        rows.add("slope", estimate, "statement", item=f"stances in {response_format}, {ITSELF}")


def _state_name(corpus: object, period: object, share: Any, epoch: object) -> str:
    texts = corpus if period in ("all", "") else f"{corpus}, {period}"
    return f"{texts}, share {share:g}, epoch {epoch}" if corpus else ITSELF


def _shifts(
    rows: Comparison, shifts: pl.DataFrame, true: pl.DataFrame, key: dict[str, str], graded: bool
) -> None:
    """Compare planted and measured shifts, or coordinates of the model itself minus the middle.

    Planted shifts have the unit of the measured ones. Prompts that no text contains have no planted
    stance, which reduces the means.
    """
    nats = shifts["unit"].str.ends_with("nats").all()
    mean = pl.col("nats" if nats else "stance") * pl.col("side") * (1 if nats else 50)
    means = true.group_by("corpus", "axis").agg(mean.mean()).rows_by_key(["corpus", "axis"])
    effects = np.zeros(len(shifts))
    for i, row in enumerate(shifts.to_dicts()):
        corpora = [row["corpus"], row["baseline"]] if row["corpus"] else [""]
        sides = [means[corpus, row["axis"]][0][0] for corpus in corpora]
        effects[i] = sides[0] - sum(sides[1:])
        minus = f", minus {row['baseline'] or ITSELF}" if row["corpus"] else ""
        state = _state_name(*(row[name] for name in STATE))
        about = {**key, "item": f"{key['item']}: {state}{minus}, {row['axis']}"}
        measure = "estimate" if nats or graded else "direction"
        rows.copy(measure, row, "corpus and axis", **about, expected=float(effects[i]))
    if nats or graded:
        rows.size(shifts, effects, "corpus and axis", **key)
    shifts = shifts.with_columns(pl.col("value").fill_null(0), planted=effects)
    planted, empty = shifts.filter(pl.col("planted") != 0), shifts.filter(planted=0)
    if len(planted) and len(set(effects)) > 1:
        rows.order(shifts["value"].to_numpy(), effects, "corpus and axis", **key)
    rows.share("sign_agreement", planted.select(RIGHT).to_series(), "state and axis", **key)
    tested = planted.drop_nulls("low")  # some faithful readings have neither interval nor test
    rows.share("power", tested.select(RIGHT & SIGNIFICANT).to_series(), "state and axis", **key)
    rows.discoveries(empty["p"], "false_discoveries", "state and axis", **key)
    rows.discoveries(empty["p_bh"], "false_discoveries_bh", "state and axis", **key)


def _ensemble(rows: Comparison, tables: Tables, knows: dict[str, list[str]]) -> None:
    """Count false discoveries between partisan and one-corpus votes, if no corpus knows a group."""
    if any(knows.values()) or "differences" not in tables:
        return
    votes = tables["differences"].filter(
        pl.col("baseline").str.starts_with("one corpus"), task=TASK
    )
    cluster = "vote, corpus and measure"
    rows.discoveries(votes["p"], "false_discoveries", cluster, reading="corrected")
    rows.discoveries(votes["p_bh"], "false_discoveries_bh", cluster, reading="corrected")


def _fairness(rows: Comparison, tables: Tables, knows: dict[str, list[str]]) -> None:
    """Compare differences in accuracy on a group with the corpora's knowledge of that group."""
    if "differences" not in tables:
        return
    differences = tables["differences"].filter(task=TASK, metric="balanced accuracy", level="group")
    true = []
    for row in differences.to_dicts():
        sides = [row["group"] in knows.get(row[side], ()) for side in ("corpus", "baseline")]
        true.append(sides[0] - sides[1])
        item = f"{row['group']}: {row['corpus']} minus {row['baseline'] or ITSELF}"
        item += f", {row['share']:g} of the texts, {row['period']}"
        about = {"item": item, "reading": "corrected", "expected": float(true[-1])}
        rows.copy("direction", row, "text", **about)
    differences = differences.with_columns(planted=pl.Series(true, dtype=pl.Int64))
    differences = differences.drop_nulls("p_bh")
    planted, empty = differences.filter(pl.col("planted") != 0), differences.filter(planted=0)
    cluster = "difference of two models at a group"
    significant = planted.select(RIGHT & SIGNIFICANT).to_series()
    rows.share("power", significant, cluster, reading="corrected")
    rows.discoveries(empty["p_bh"], "false_discoveries_bh", cluster, reading="corrected")
