"""Answers for people to label, and how far they and the judge agree.

Feng et al. (2023), appendix A.2: 110 answers, three annotators; Fleiss' kappa of whether an answer
agrees, disagrees or takes no side, and the judge's accuracy on answers with a clear side.
"""

from __future__ import annotations

import csv
import hashlib
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.snapshot import writing
from plumbline.probes.leaning.choices import refused

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

OUTPUTS = Path("data/outputs/stances")
LABELS = ("agree", "disagree", "none")
FIELDS = ("key", "prompt", "response", "label")
KEY = ("corpus", "period", "share", "pretraining_seed", "epoch", "text", "seed")
SIDES = {
    "corrected": ("entailed_nats", "contradicted_nats"),
    "faithful": ("agree_nats", "disagree_nats"),
}
SURE = 0.9  # probability from which the judge takes a side, corrected


class Agreement(NamedTuple):
    """What annotators and the judge make of the same answers."""

    answers: int
    clear: int  # of them, to most annotators
    kappa: float  # Fleiss', of three labels; nan where all labels are one
    accuracy: dict[str, float]  # of the judge by reading, on clear answers


def draw(model: str, into: Path, number: int = 110, annotators: int = 3) -> list[Path]:
    """Write a sheet for each annotator with the same answers, drawn by a hash.

    A UserError if the model has written none, or a sheet is there already.
    """
    sheets = [into / f"annotator-{n}.csv" for n in range(1, annotators + 1)]
    if there := next((sheet for sheet in sheets if sheet.exists()), None):
        raise UserError(f"{there}: is there already, with labels perhaps; name another folder")
    rows = _answers(model).sort("key").head(number)
    into.mkdir(parents=True, exist_ok=True)
    for sheet in sheets:
        with writing(sheet) as part, part.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(FIELDS)
            writer.writerows((*row, "") for row in rows.select("key", "text", "response").rows())
    return sheets


def score(model: str, sheets: Sequence[Path]) -> Agreement:
    """Return how far labelled sheets agree with each other and the judge with most of them.

    A UserError if there are fewer than two, a label is missing or unknown, or answers differ.
    """
    if len(sheets) < 2:
        raise UserError(f"{', '.join(map(str, sheets))}: two sheets at least are compared")
    told = [_labels(sheet) for sheet in sheets]
    if any(set(own) != set(told[0]) for own in told):
        raise UserError(f"{sheets[0].parent}: the sheets have different answers; label one draw")
    keys = sorted(told[0])
    counts = np.array([[sum(o[k] == label for o in told) for label in LABELS] for k in keys])
    most = {k: Counter(o[k] for o in told).most_common(1)[0] for k in keys}
    clear = {k: label for k, (label, n) in most.items() if 2 * n > len(told) and label != "none"}
    own = _answers(model).filter(pl.col("key").is_in(list(clear)))
    right = {}
    for reading in SIDES:
        judged = dict(zip(own["key"], _judged(own, reading), strict=True))
        hits = [judged.get(key) == label for key, label in clear.items()]
        right[reading] = float(np.mean(hits)) if hits else float("nan")
    return Agreement(len(keys), len(clear), fleiss(counts), right)


def fleiss(counts: NDArray[np.int64]) -> float:
    """Return Fleiss' kappa of counts of labels, (answers, labels); nan where all are one label.

    Examples
    --------
    Two annotators who agree on one answer of two: .5 seen, .625 by chance.

    >>> round(fleiss(np.array([[2, 0], [1, 1]])), 4)
    -0.3333
    """
    n = counts.sum(axis=1)[0]
    seen = float(((counts**2).sum(axis=1) - n).mean() / (n * (n - 1)))
    chance = float(((counts.sum(axis=0) / counts.sum()) ** 2).sum())
    return (seen - chance) / (1 - chance) if chance < 1 else float("nan")


def _answers(model: str) -> pl.DataFrame:
    folder = OUTPUTS / model / "generation"
    if not folder.is_dir():
        raise UserError(f"{folder}: not there; run the probe `stances` on a model that writes")
    found = pl.read_parquet(folder / "*.parquet").filter(pl.col("form") == 0)
    named = (" ".join(map(str, row)) for row in found.select(KEY).rows())
    return found.with_columns(
        key=pl.Series([hashlib.sha256(name.encode()).hexdigest()[:16] for name in named])
    )


def _judged(rows: pl.DataFrame, reading: str) -> list[str]:
    """Return the label of each answer that the judge's probabilities stand for."""
    up, down = (np.exp(rows[name].to_numpy()) for name in SIDES[reading])
    sides = np.where(up >= down, *LABELS[:2])
    if reading == "faithful":
        return list(map(str, sides))
    no = np.array([refused(*row) for row in rows.select("response", "text").rows()], dtype=bool)
    return list(map(str, np.where(no | (np.maximum(up, down) < SURE), LABELS[2], sides)))


def _labels(sheet: Path) -> dict[str, str]:
    try:
        with sheet.open(encoding="utf-8", newline="") as file:
            rows = {row["key"]: (row["label"] or "").strip() for row in csv.DictReader(file)}
    except (OSError, UnicodeDecodeError, KeyError) as error:
        raise UserError(f"{sheet}: no sheet that `annotate` has written ({error})") from error
    if lost := next((key for key, label in rows.items() if label not in LABELS), None):
        raise UserError(f"{sheet}: {lost} has the label {rows[lost]!r}; {', '.join(LABELS)} may be")
    return rows
