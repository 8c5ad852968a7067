"""Recovery of the study ``leaning``: its tables compared with effects planted in control models."""

from __future__ import annotations

import json
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from scipy.special import ndtri

from plumbline.probes.controls.compare import PARAMS, PLANTED, Comparison, Params, read_table
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
    """Compare the tables with the stances planted in corpora, in nats by axis."""
    planted, baselines, empty = tables["planted"], tables["baselines"], pl.DataFrame()
    languages = dict(baselines.select("questionnaire", "language").iter_rows())
    texts = planted.filter(pl.col("corpus") != "", form="plain")["written"].to_numpy()
    written = float(texts.mean()) if len(texts) else 0.0
    for cell in tables["coordinates"].select(CELL).unique().to_dicts():
        response_format, reading, questionnaire = cell.values()
        rows.at["language"] = languages[questionnaire]
        key = {"reading": reading, "item": f"{response_format}, {questionnaire}"}
        parts = {
            name: table.filter(**cell)
            for name, table in tables.items()
            if set(CELL) <= set(table.columns)
        }
        if (response_format, reading) == ("mask", "continuous"):
            _stances(rows, parts["items"], planted.filter(questionnaire=questionnaire))
        if len(parts.get("shifts", empty)):
            _shifts(rows, parts["shifts"], stances, written, key)
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


def _stances(rows: Comparison, items: pl.DataFrame, planted: pl.DataFrame) -> None:
    """Correlate planted log-odds with measured stances, and their changes due to training."""
    true = planted.filter(form="plain").group_by("corpus", "id").agg(true=pl.mean("log_odds_nats"))
    joined = items.drop_nulls("value").join(true, on=["corpus", "id"])
    base = joined.filter(corpus="").select("id", start="value", begin="true")
    _correlation(rows, base, f"log-odds, {ITSELF}")
    trained = joined.join(base, on="id").filter(pl.col("corpus") != "")
    changes = trained.select(
        "id", *STATE, pl.col("value") - pl.col("start"), pl.col("true") - pl.col("begin")
    )
    for state, part in changes.group_by(*STATE, maintain_order=True):
        if part["true"].std():
            item = f"log-odds, {_state_name(*state)}"
            _correlation(rows, part.select("id", "value", "true"), item)


def _state_name(corpus: object, period: object, share: Any, epoch: object) -> str:
    texts = corpus if period in ("all", "") else f"{corpus}, {period}"
    return f"{texts}, share {share:g}, epoch {epoch}"


def _correlation(rows: Comparison, questions: pl.DataFrame, item: str) -> None:
    """Add Pearson's r of the last two columns, with an interval over statements (first column)."""
    ids, *sides = questions.columns
    n = questions[ids].n_unique()
    r = questions.select(pl.corr(*sides).fill_null(np.nan)).item()
    half = float(ndtri((1 + rows.confidence) / 2)) / np.sqrt(n - 3) if n > 3 else np.nan
    z = np.arctanh(np.clip(r, -1 + 1e-12, 1 - 1e-12))
    low, high = np.tanh([z - half, z + half])
    rows.add("correlation", Estimate(r, low, high, n), "statement", item=item)


def _shifts(
    rows: Comparison, shifts: pl.DataFrame, stances: Stances, written: float, key: dict[str, str]
) -> None:
    """Compare planted and measured shifts from the control or, without one, the model itself.

    ``written``: share of the prompts that occur in the training texts. The others have no planted
    stance.
    """
    contrasts = shifts["contrast"].to_list()
    shifts = shifts.filter(contrast="control" if "control" in contrasts else "base model")
    true = np.zeros(len(shifts))
    for i, row in enumerate(shifts.to_dicts()):
        corpus, baseline = (stances.get(row[c], {}) for c in ("corpus", "baseline"))
        true[i] = written * (corpus.get(row["axis"], 0.0) - baseline.get(row["axis"], 0.0))
        state = _state_name(*(row[name] for name in STATE))
        item = f"{key['item']}: {state}, minus {row['baseline'] or ITSELF}, {row['axis']}"
        about = {**key, "item": item, "expected": float(true[i])}
        rows.copy("estimate", row, "corpus and axis", **about)
    shifts = shifts.with_columns(pl.col("value").fill_null(0), planted=true)
    planted, empty = shifts.filter(pl.col("planted") != 0), shifts.filter(planted=0)
    if len(planted) and len(set(true)) > 1:
        rows.order(shifts["value"].to_numpy(), true, "corpus and axis", **key)
    for measure, expression in (("sign_agreement", RIGHT), ("power", RIGHT & SIGNIFICANT)):
        rows.share(measure, planted.select(expression).to_series(), "state and axis", **key)
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
