"""Writing ``data/report/index.html`` from what is on disk: one file, no requests to anywhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from builders.lib import store
from builders.lib.params import read
from builders.lib.problem import Problem
from builders.politicians import GENDERS
from builders.words import POS
from probes.report import figures, sentiments

REPORT = Path("data/report")
TABLES = Path("data/tables/pmi")
SENTIMENTS = Path("data/tables/sentiment")
OUTPUTS = Path("data/outputs/associations")
TOP = 10
UNDRAWN = {"ar", "zh", "hi"}  # scripts that the figures' font lacks: tables only


def write() -> Path:
    """Write the report page and return its path.

    Raises
    ------
    Problem
        If there are no tables yet.
    """
    models = [name for name in sorted(read()["models"]) if (TABLES / name).is_dir()]
    if not models:
        raise Problem(f"{TABLES}: no tables; run `make repro`")
    page = {
        "controls": [c for name in models if (c := _control(name))],
        "models": [_model(name) for name in models],
        "sentiments": sentiments.blocks(SENTIMENTS),
        "datasets": [_dataset(p.stem) for p in sorted(store.VALIDATION.glob("*.json"))],
    }
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    text = environment.get_template("page.html").render(page)
    partial = store.fresh(REPORT)
    (partial / "index.html").write_text(text, encoding="utf-8")
    store.finish(REPORT)
    return REPORT / "index.html"


def _control(name: str) -> dict[str, Any] | None:
    path = TABLES / name / "recovery.parquet"
    if not path.is_file():
        return None
    recovery = pl.read_parquet(path)
    planted = int(recovery["world"][0]) == 0
    return {
        "name": name,
        "planted": planted,
        "rows": recovery.to_dicts(),
        "figure": _recovery_figure(name) if planted else "",
    }


def _recovery_figure(name: str) -> str:
    weights = Path("data/models") / name
    truth = pl.read_parquet(weights / "planted.parquet").with_columns(
        pl.col("pos").replace_strict({pos: i for i, pos in enumerate(POS)}, return_dtype=pl.Int64)
    )
    language = json.loads((weights / "world.json").read_text(encoding="utf-8"))["language"]
    table = pl.read_parquet(TABLES / name / "pmi.parquet").filter(
        (pl.col("reading") == 1) & (pl.col("language") == language)
    )
    by_gender = {
        g: table.filter(pl.col("gender") == GENDERS.index(g)).select(
            "word", "pos", pl.col("value").alias(g)
        )
        for g in ("male", "female")
    }
    frame = (
        by_gender["male"]
        .join(by_gender["female"], on=["word", "pos"])
        .join(
            truth.select("word", "pos", "sentiment", planted="log_ratio_nats"), on=["word", "pos"]
        )
        .with_columns(contrast=pl.col("female") - pl.col("male"))
        .sort("word")
    )
    return figures.recovery(frame)


def _model(name: str) -> dict[str, Any]:
    table = pl.read_parquet(TABLES / name / "pmi.parquet")
    coverage = pl.read_parquet(OUTPUTS / name / "coverage" / "*.parquet")
    blocks = []
    for language in table["language"].unique().sort():
        for pos, part in enumerate(POS):
            here = table.filter((pl.col("language") == language) & (pl.col("pos") == pos))
            rankings = []
            for g, gender in enumerate(GENDERS):
                chosen = here.filter((pl.col("gender") == g) & pl.col("value").is_not_null())
                faithful = chosen.filter(pl.col("reading") == 0)
                corrected = chosen.filter(pl.col("reading") == 1)
                if faithful.is_empty():
                    continue
                best = _best(corrected)
                title = f"{name}, {language}, {part}, {gender}: {TOP} highest"
                rankings.append(
                    {
                        "gender": gender,
                        "people": int(faithful["people"][0]),
                        "faithful": _best(faithful),
                        "corrected": best,
                        "figure": "" if language in UNDRAWN else figures.words(best, title),
                    }
                )
            blocks.append({"language": language, "pos": part, "rankings": rankings})
    rows = [row | {"pos": POS[row["pos"]]} for row in coverage.to_dicts()]
    return {"name": name, "coverage": rows, "blocks": blocks}


def _best(table: pl.DataFrame) -> list[dict[str, Any]]:
    return table.sort(["value", "word"], descending=[True, False]).head(TOP).to_dicts()


def _dataset(name: str) -> dict[str, Any]:
    report = json.loads((store.VALIDATION / f"{name}.json").read_text(encoding="utf-8"))
    folder = store.DATASETS / name
    rows = {
        c: pl.scan_parquet(folder / f"{c}.parquet").select(pl.len()).collect().item()
        for c in store.configs(folder)
    }
    rejects = (
        pl.read_parquet(folder / store.REJECTS)
        .group_by("config", "reason")
        .agg(pl.col("number").sum())
        .sort("config", "reason")
    )
    params = read()["datasets"][name]
    return {
        "name": name,
        "version": params["version"],
        "snapshot": params["snapshot"],
        "rows": rows,
        "rejects": rejects.to_dicts(),
        "expectations": sum(len(t["expectations"]) for t in report["tables"].values()),
        "warnings": [
            f"{table}: {e['expectation_type']} {e['kwargs'].get('column', '')}"
            for table, t in report["tables"].items()
            for e in t["expectations"]
            if not e["success"]
        ],
        "fingerprint": report["fingerprint"][:16],
    }
