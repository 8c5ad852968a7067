"""Simulated outputs of the probe ``stances``, with known responses and no model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from plumbline.probes.core.run_analysis import Inputs
from plumbline.probes.leaning.stances import SCHEMAS

Row = dict[str, Any]

FRAME = "paper"
PLACES: dict[str, Any] = {  # settings of the analysis that match the names used here
    "frames": {"mask": FRAME, "generation": FRAME},
    "control": {"other": "control"},
    "contrasts": {"right": "left"},
    "positive": ["agree", "agrees", "support"],
    "negative": ["disagree", "oppose", "opposes"],
}
AXES = ("economic", "social")
POINTS = (-7.0, -5.0, 0.0, 2.0)  # of a typical statement of the political compass
TURNED = "-r"  # suffix of the id of a statement's opposite


def statement(
    name: str,
    axis: str,
    *,
    reverse: bool = False,
    opposite: str = "",
    points: Sequence[float] = (),
    weight: float = 1.0,
) -> Row:
    """Return a row of the dataset ``statements``."""
    return {
        "id": name,
        "language": "en",
        "text": name,
        "scale": "test",
        "axis": axis,
        "weight": weight,
        "reversed": reverse,
        "polarity": None,
        "opposite": opposite,
        "points": list(points),
    }


def pairs(number: int = 10, *, compass: bool = False) -> list[Row]:
    """Return a questionnaire with ``number`` pairs of opposites on each of two axes, sorted by id.

    ``compass``: if True, statements have points and no opposites, and three quarters of those on
    the social axis favour the same side, as 31 of the 43 in the political compass do.
    """
    rows = []
    for axis, i, second in product(AXES, range(number), (False, True)):
        name, other = (f"{axis}-{i:02d}{TURNED * side}" for side in (second, not second))
        turned = second and not (compass and axis == AXES[1] and i < number // 2)
        more = {"points": [-p if turned else p for p in POINTS]} if compass else {"opposite": other}
        rows.append(statement(name, axis, reverse=turned) | more)
    return rows


def written_to(folder: Path, models: Sequence[str] = ("m",), **questionnaires: list[Row]) -> Inputs:
    """Write the dataset ``statements`` and return the inputs of the analysis."""
    into = folder / "statements"
    empty: dict[str, list[Any]] = {"config": [], "reason": [], "number": []}
    pl.DataFrame(empty).write_parquet(into / "rejects.parquet", mkdir=True)
    for name, rows in questionnaires.items():
        types: dict[str, Any] = {"polarity": pl.Int64, "points": pl.List(pl.Float64)}
        (pl.DataFrame(rows, schema_overrides=types)).write_parquet(
            into / f"{name}.parquet", mkdir=True
        )
    return Inputs(tuple(models), {"statements": into}, folder / "data")


def state(
    corpus: str = "",
    seed: int = 0,
    *,
    period: int | str = "all",
    share: float = 1.0,
    epoch: int = 1,
    texts: int = 100,
) -> Row:
    """Return the columns that identify a checkpoint or, without a corpus, the pretrained model."""
    if not corpus:
        period, share, seed, epoch, texts = "all", 0.0, 0, 0, 0
    return {
        "corpus": corpus,
        "period": period,
        "share": share,
        "pretraining_seed": seed,
        "epoch": epoch,
        "texts": texts,
        "steps": texts * epoch,
    }


def save(inputs: Inputs, kind: str, rows: Iterable[Row] | pl.DataFrame, model: str = "m") -> None:
    """Write rows of outputs, completed with the columns that all rows share."""
    shared = {"questionnaire": "q", "frame": FRAME, "form": "plain", "variant": "", "text": ""}
    always = {"model": model, "revision": "0"}
    schema = SCHEMAS[kind]
    empty = pl.DataFrame(pl.from_arrow(schema.arrow().empty_table()))
    types = pl.Schema({k: v for k, v in empty.schema.items() if not schema[k].labels})
    if isinstance(rows, pl.DataFrame):
        missing = {k: v for k, v in (shared | always).items() if k not in rows.columns}
        table = rows.with_columns(**{k: pl.lit(v) for k, v in missing.items()})
    else:
        table = pl.DataFrame([shared | row | always for row in rows], schema_overrides=types)
    table = table.select(empty.columns).cast(types)
    table.write_parquet(inputs.outputs("stances", model) / kind / "00000.parquet", mkdir=True)


def filled(logit: float, *, mass: float = 0.4, top: bool = True) -> Row:
    """Return the columns of a filled mask, given the log-odds of agreement."""
    up = float(1 / (1 + np.exp(-logit)))
    words = [" agree", "Support", "disagree", "the"] if top else ["of", "the"]
    masses = [0.7 * up * mass, 0.3 * up * mass, (1 - up) * mass, 0.1] if top else [0.3, 0.2]
    return {
        "words": words,
        "words_nats": [float(np.log(m)) for m in masses],
        "agree_nats": float(np.log(up * mass)),
        "disagree_nats": float(np.log((1 - up) * mass)),
        "agree_words": 3,
        "disagree_words": 3,
        "unknown": 0,
    }


def prior(logit: float = 0.0, **key: Any) -> Row:
    """Return the row of a prompt with a content-free text."""
    return {"id": "", "form": "prior", "variant": "N/A"} | key | filled(logit)
