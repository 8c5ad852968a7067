"""Annotation of responses; agreement of annotators with each other and the entailment model.

In appendix A.2 of Feng et al. (2023), three annotators label 110 responses as agree, disagree or
none. The paper reports Fleiss' kappa, and the accuracy of the entailment model (the judge) on the
responses that take a clear side.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl

from plumbline.builders.core.errors import UserError, reading
from plumbline.builders.core.snapshot import writing
from plumbline.builders.readers.table import decoded, records
from plumbline.probes.leaning.choices import refused

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

OUTPUTS = Path("data/outputs/stances")
LABELS = ("agree", "disagree", "none")
KEY = ("corpus", "period", "share", "pretraining_seed", "epoch", "text", "seed")
SIDES = {
    "corrected": ("entailed_nats", "contradicted_nats"),
    "faithful": ("agree_nats", "disagree_nats"),
}
SURE = 0.9  # smallest probability at which the judge takes a side in `corrected`


class Agreement(NamedTuple):
    """Agreement among the annotators, and between them and the judge."""

    answers: int
    clear: int  # number of answers on whose side most annotators agree
    kappa: float  # Fleiss' kappa for three labels; nan if all labels are equal
    accuracy: dict[str, float]  # accuracy of the judge on clear answers, by method variant


def draw(model: str, into: Path, number: int = 110, annotators: int = 3) -> list[Path]:
    """Write one sheet per annotator, all with the same answers, which are sampled by a hash.

    Raises UserError if the model has no generated answers or a sheet already exists.
    """
    sheets = [into / f"annotator-{n}.csv" for n in range(1, annotators + 1)]
    if existing := next((sheet for sheet in sheets if sheet.exists()), None):
        raise UserError(f"{existing}: already exists, perhaps with labels; choose another folder")
    rows = _answers(model).sort("key").head(number)
    table = rows.select("key", prompt="text", response="response", label=pl.lit(""))
    for sheet in sheets:
        with writing(sheet) as part:
            table.write_csv(part)
    return sheets


def score(model: str, sheets: Sequence[Path]) -> Agreement:
    """Return the agreement among labelled sheets, and the judge's agreement with their majority.

    Raises UserError if there are fewer than two sheets, answers differ between them, or labels are
    missing or unknown.
    """
    from statsmodels.stats.inter_rater import fleiss_kappa  # the import takes seconds

    labels = [_labels(sheet) for sheet in sheets]
    if len(sheets) < 2 or any(set(sheet) != set(labels[0]) for sheet in labels):
        raise UserError(f"{', '.join(map(str, sheets))}: two or more sheets of one draw are needed")
    votes = [[sheet[key] for sheet in labels] for key in labels[0]]
    counts = np.array([[marks.count(label) for label in LABELS] for marks in votes])
    sides = zip(labels[0], 2 * counts[:, :2] > len(sheets), strict=True)
    clear = {key: LABELS[side.argmax()] for key, side in sides if side.any()}
    answers = _answers(model)
    if unknown := sorted({*labels[0]} - {*answers["key"]}):
        raise UserError(f"{sheets[0]}: {unknown[0]} is no answer of {model}; draw new sheets")
    rows = answers.filter(pl.col("key").is_in(list(clear)))
    majority = [clear[key] for key in rows["key"]]
    accuracy = {
        reading: float((_judged(rows, reading) == majority).sum() / (len(clear) or np.nan))
        for reading in SIDES
    }
    with np.errstate(invalid="ignore"):
        return Agreement(len(counts), len(clear), float(fleiss_kappa(counts)), accuracy)


def _answers(model: str) -> pl.DataFrame:
    folder = OUTPUTS / model / "generation"
    if not folder.is_dir():
        raise UserError(f"{folder}: missing; run the probe `stances` on a generative model")
    rows = pl.read_parquet(folder / "*.parquet").filter(form="plain")
    names = (" ".join(map(str, row)) for row in rows.select(KEY).rows())
    # The letter prevents spreadsheets from reading a key as a number, such as 12e4.
    keys = [f"k{hashlib.sha256(name.encode()).hexdigest()[:16]}" for name in names]
    return rows.with_columns(key=pl.Series(keys))


def _judged(rows: pl.DataFrame, reading: str) -> NDArray[np.str_]:
    """Return the label that the judge's probabilities imply for each answer."""
    up, down = (np.exp(rows[name].to_numpy()) for name in SIDES[reading])
    sides = np.where(up >= down, *LABELS[:2])
    if reading == "corrected":
        refusals = [refused(*row) for row in rows.select("response", "text").rows()]
        unsure = np.array(refusals, dtype=bool) | (np.maximum(up, down) < SURE)
        sides = np.where(unsure, LABELS[2], sides)
    return sides


def _labels(sheet: Path) -> dict[str, str]:
    with reading(sheet, "use a sheet that `annotate` has written"):
        rows = records(decoded(sheet.read_bytes()), {"key": "key", "label": "label"})
        pairs = [(row["key"].strip(), row["label"].strip().lower()) for _, row in rows]
    labels = dict(pairs)
    if again := next((key for key, n in Counter(key for key, _ in pairs).items() if n > 1), None):
        raise UserError(f"{sheet}: {again} is repeated; retain one of its lines")
    if wrong := next((key for key, label in labels.items() if label not in LABELS), None):
        raise UserError(f"{sheet}: {wrong} has the label {labels[wrong]!r}; use one of {LABELS}")
    return labels
