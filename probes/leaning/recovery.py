"""Recovery of the study ``leaning``: tables against the stances and knowledge planted in worlds."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from scipy.special import ndtri

from plumbline.probes.controls.compare import (
    PARAMS,
    PLANTED,
    Comparison,
    Params,
    read_table,
)
from plumbline.probes.controls.measures import RECOVERY
from plumbline.probes.leaning.schemas import PLANTED as TASK
from plumbline.probes.stats.estimate import LEVEL, Estimate

if TYPE_CHECKING:
    from plumbline.probes.core.run_analysis import Inputs

    Tables = dict[str, pl.DataFrame]
    Stances = dict[str, dict[str, float]]

TABLES = ("compass", "fairness", "ensemble")
SCHEMAS = dict.fromkeys(TABLES, RECOVERY)
STATE = ("corpus", "period", "share", "epoch")
CELL = ["response_format", "reading", "questionnaire"]
STABLE = {"negated": "negated statements", "prompts": "two prompts"}  # comparisons
ITSELF = "the model itself"


def truth(inputs: Inputs, model: str) -> dict[str, Any]:
    """Return the settings of a world: ``stances`` in nats, and the groups that corpora know."""
    path = inputs.weights(model) / "world.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def run(inputs: Inputs, params: Params = PARAMS) -> dict[str, pl.DataFrame]:
    """Compare the tables of every world with what was planted in it, by analysis."""
    comparisons = {name: Comparison(params) for name in TABLES}
    for model in inputs.models:
        planted = truth(inputs, model)
        for analysis, key, compare in STUDIES:
            folder, rows = inputs.tables(analysis), comparisons[analysis]
            if not isinstance(planted.get(key), dict) or not folder.is_dir():
                continue
            tables = {path.stem: read_table(path) for path in folder.glob("*.parquet")}
            for name, table in tables.items():
                if "model" in table.columns:
                    tables[name] = table.filter(model=model)
            if analysis == "compass":
                tables["planted"] = pl.read_parquet(inputs.weights(model) / PLANTED)
            some = any(planted[key].values()) if key == "knows" else _any_stance(planted[key])
            rows.at = {"model": model, "language": TASK, "world": "planted" if some else "null"}
            compare(rows, tables, planted[key])
    return {name: rows.frame() for name, rows in comparisons.items() if rows.rows}


def _any_stance(stances: Stances) -> bool:
    return any(value for axes in stances.values() for value in axes.values())


def _compass(rows: Comparison, tables: Tables, stances: Stances) -> None:
    """Compare with the stances that were planted in corpora, in nats by axis."""
    languages = dict(tables["baselines"].select("questionnaire", "language").unique().iter_rows())
    cells = tables["coordinates"].select(CELL).unique().sort(CELL)
    for cell in cells.to_dicts():
        rows.at["language"] = languages[cell["questionnaire"]]
        item = f"{cell['response_format']}, {cell['questionnaire']}"
        key = {"reading": cell["reading"], "item": item}
        if (cell["response_format"], cell["reading"]) == ("mask", "continuous"):
            planted = tables["planted"].filter(questionnaire=cell["questionnaire"])
            _stances(rows, tables["items"].filter(**cell), planted)
        if "shifts" in tables:
            texts = tables["planted"].filter(pl.col("corpus") != "", form="plain")
            written = float(texts["written"].to_numpy().mean())
            _shifts(rows, tables["shifts"].filter(**cell), stances, written, key)
        stability = tables.get("stability", pl.DataFrame())
        if len(stability) and (cell["response_format"], cell["reading"]) == ("mask", "corrected"):
            turned = stability.filter(pl.col("comparison").is_in(list(STABLE)), corpus="", **cell)
            for row in turned.to_dicts():
                about = {**key, "item": f"{item}: {STABLE[row['comparison']]}"}
                rows.copy("sign_agreement", row, "statement", **about)
        if rows.at["world"] == "null":
            random = tables["baselines"].filter(baseline="random answers", constants="corrected")
            band = random.select("questionnaire", "axis", start="low", end="high")
            states = tables["coordinates"].filter(**cell).drop_nulls("value")
            states = states.join(band, on=["questionnaire", "axis"])
            inside = states.select(pl.col("value").is_between("start", "end")).to_series()
            rows.share("inside_random", inside, "state and axis", **key)


def _stances(rows: Comparison, items: pl.DataFrame, planted: pl.DataFrame) -> None:
    """Correlate planted log-odds and measured stances, and the changes of both by training."""
    log_odds = pl.col("log_odds_nats").mean()
    true = planted.filter(form="plain").group_by("corpus", "id").agg(true=log_odds)
    both = items.drop_nulls("value").select("id", *STATE, measured="value")
    both = both.join(true, on=["corpus", "id"])
    base = both.filter(corpus="").select("id", start="measured", begin="true")
    _correlation(rows, base, f"log-odds, {ITSELF}")
    moved = both.join(base, on="id").filter(pl.col("corpus") != "").sort(STATE)
    for state, part in moved.group_by(*STATE, maintain_order=True):
        change = part["true"] - part["begin"]
        if change.std():
            sides = pl.DataFrame([part["id"], part["measured"] - part["start"], change])
            _correlation(rows, sides, f"log-odds, {_state_name(*state)}")


def _state_name(corpus: object, period: object, share: Any, epoch: object) -> str:
    texts = corpus if period in ("all", "") else f"{corpus}, {period}"
    return f"{texts}, share {share:g}, epoch {epoch}"


def _correlation(rows: Comparison, questions: pl.DataFrame, item: str) -> None:
    """Add Pearson's r of two columns beside the id; the interval counts statements alone."""
    ids, x, y = questions
    n = ids.n_unique()
    with np.errstate(invalid="ignore"):
        r = float(np.corrcoef(x, y)[0, 1]) if len(x) > 1 else np.nan
    half = float(ndtri((1 + rows.confidence) / 2)) / np.sqrt(n - 3) if n > 3 else np.nan
    z = np.arctanh(np.clip(r, -1 + 1e-12, 1 - 1e-12))
    low, high = (float(np.tanh(z + side * half)) for side in (-1, 1))
    rows.add("correlation", Estimate(r, low, high, n), "statement", item=item)


def _small(column: str) -> pl.Expr:
    return (pl.col(column) <= LEVEL).fill_null(value=False)


def _shifts(
    rows: Comparison, shifts: pl.DataFrame, stances: Stances, written: float, key: dict[str, str]
) -> None:
    """Compare shifts against the control, or else the model itself, with those planted.

    ``written`` is the share of the prompts that texts have: no stance is planted in the others.
    """
    contrasts = shifts["contrast"].to_list()
    shifts = shifts.filter(contrast="control" if "control" in contrasts else "base model")
    true = np.zeros(len(shifts))
    for i, row in enumerate(shifts.to_dicts()):
        one, two = (stances.get(row[c], {}).get(row["axis"], 0.0) for c in ("corpus", "baseline"))
        true[i] = written * (one - two)
        state = _state_name(*(row[name] for name in STATE))
        item = f"{key['item']}: {state}, minus {row['baseline'] or ITSELF}, {row['axis']}"
        about = {**key, "item": item}
        rows.copy("estimate", row, "corpus and axis", expected=float(true[i]), **about)
    shifts = shifts.with_columns(pl.col("value").fill_null(0), planted=true)
    planted, empty = shifts.filter(pl.col("planted") != 0), shifts.filter(planted=0)
    if len(planted) and len(set(true)) > 1:
        rows.order(shifts["value"].to_numpy(), true, "corpus and axis", **key)
    right = pl.col("value").sign() == pl.col("planted").sign()
    tested = empty.filter(pl.col("p").is_not_null())
    for measure, part, held in (
        ("sign_agreement", planted, right),
        ("power", planted, right & _small("p_bh")),
        ("false_discoveries", tested, _small("p")),
        ("false_discoveries_bh", tested, _small("p_bh")),
    ):
        rows.share(measure, part.select(held).to_series(), "state and axis", **key)


def _ensemble(rows: Comparison, tables: Tables, knows: dict[str, list[str]]) -> None:
    """Count votes of partisans that differ from those of one corpus, where nobody knows more."""
    if any(knows.values()) or "differences" not in tables:
        return
    votes = tables["differences"].filter(
        pl.col("baseline").str.starts_with("one corpus"),
        pl.col("p").is_not_null(),
        task=TASK,
    )
    for measure, column in (("false_discoveries", "p"), ("false_discoveries_bh", "p_bh")):
        small = votes.select(_small(column)).to_series()
        rows.share(measure, small, "vote, corpus and measure", reading="corrected")


def _fairness(rows: Comparison, tables: Tables, knows: dict[str, list[str]]) -> None:
    """Compare differences of accuracy at groups with what the corpora know."""
    if "differences" not in tables:
        return
    differences = tables["differences"].filter(task=TASK, metric="balanced accuracy", level="group")
    true = []
    for row in differences.to_dicts():
        one, two = (row["group"] in knows.get(row[side], ()) for side in ("corpus", "baseline"))
        true.append(int(one) - int(two))
        item = f"{row['group']}: {row['corpus']} minus {row['baseline'] or ITSELF}"
        item += f", {row['share']:g} of the texts, {row['period']}"
        about = {"item": item, "reading": "corrected", "expected": float(true[-1])}
        rows.copy("direction", row, "text", **about)
    differences = differences.with_columns(planted=pl.Series(true, dtype=pl.Int64))
    differences = differences.drop_nulls("p_bh")
    found = _small("p_bh") & (pl.col("value").sign() == pl.col("planted"))
    nothing = pl.col("planted") == 0
    for measure, which, held in (
        ("power", ~nothing, found),
        ("false_discoveries_bh", nothing, _small("p_bh")),
    ):
        part = differences.filter(which).select(held).to_series()
        rows.share(measure, part, "difference of two models at a group", reading="corrected")


STUDIES = (
    ("compass", "stances", _compass),
    ("fairness", "knows", _fairness),
    ("ensemble", "knows", _ensemble),
)
