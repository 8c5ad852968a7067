from __future__ import annotations

import pytest

from plumbline.builders.core import parquet
from plumbline.builders.datasets.labelled_texts import build as labelled_texts
from plumbline.builders.datasets.labelled_texts.build import LABELS, SPLITS
from plumbline.validation.datasets.labelled_texts import Params, tables

FLOORS = Params(rows_min={"en": 6}, label_min=1)


def row(text: str, label: str, split: str, **changes) -> parquet.Row:
    values = {
        "text": text,
        "label": LABELS.index(label),
        "split": SPLITS.index(split),
        "source": "mine",
        "redistributable": True,
    }
    return parquet.Row("en", values | changes)


SOUND = [row(f"{label} {split}", label, split) for split in SPLITS for label in LABELS]


def failing(tmp_path, rows: list[parquet.Row]) -> set[str]:
    """Return the names of the checks that some row of some frame does not hold."""
    parquet.write(rows, labelled_texts.SCHEMA, tmp_path / "texts")
    parquet.finish(tmp_path / "texts")
    found = tables(FLOORS, tmp_path / "texts")
    return {
        check.arguments["column"]
        for table in found
        for check in table.checks
        if not table.frame[check.arguments["column"]].all()
    }


def test_a_sound_dataset_holds_every_check(tmp_path):
    assert failing(tmp_path, SOUND) == set()


@pytest.mark.parametrize(
    ("rows", "check"),
    [
        ([*SOUND, row("two  spaces", "neutral", "testing")], "single_spaces"),
        ([*SOUND, row("cafe\u0301", "neutral", "testing")], "composed"),
        ([*SOUND, row("...", "neutral", "testing")], "has_a_letter"),
        ([*SOUND, row("a", "neutral", "testing", redistributable=False)], "one_term_a_corpus"),
        (SOUND[:-1], "over_floor"),
        ([*SOUND, row("a", "neutral", "testing", source="other")], "over_floor"),
    ],
)
def test_each_kind_of_fault_is_found(tmp_path, rows, check):
    assert failing(tmp_path, rows) == {check}
