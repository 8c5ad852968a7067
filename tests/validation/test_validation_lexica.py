from __future__ import annotations

import pytest

from plumbline.builders.core import parquet
from plumbline.builders.datasets.lexica import build as lexica
from plumbline.validation.datasets.lexica import Params, tables

FLOORS = Params(rows_min={"en": 2}, axis_min_share=0.4)


def row(word: str, beta: list[float], scores: list[float], **changes) -> parquet.Row:
    values = {
        "word": word,
        "pos": [],
        **{f"beta_{a}": b for a, b in zip(lexica.AXES, beta, strict=True)},
        **{f"q_{a}": b / sum(beta) for a, b in zip(lexica.AXES, beta, strict=True)},
        "views": len(scores),
        "score": sum(scores) / len(scores),
        "seed_sd": 0.01,
        "leave_out_change": None,
        "view_names": [f"v{i}" for i in range(len(scores))],
        "view_values": [str(s) for s in scores],
        "view_scores": scores,
        "redistributable": True,
    }
    return parquet.Row("en", values | changes)


GOOD = row("good", [2.75, 1.0, 1.25], [1.0, 0.5])
BAD = row("bad", [1.0, 1.75, 1.25], [-1.0])


def failing(tmp_path, *rows: parquet.Row) -> set[str]:
    """Return the names of the checks that some row of some frame does not hold."""
    parquet.write(rows, lexica.SCHEMA, tmp_path / "lexica")
    parquet.finish(tmp_path / "lexica")
    found = tables(FLOORS, tmp_path / "lexica")
    names = {check.arguments["column"] for table in found for check in table.checks}
    return {
        name
        for name in names
        for table in found
        if name in table.frame.columns and not table.frame[name].all()
    }


def test_a_sound_dataset_holds_every_check(tmp_path):
    assert failing(tmp_path, BAD, GOOD) == set()


@pytest.mark.parametrize(
    ("spoilt", "check"),
    [
        (row("good", [2.75, 1.0, 1.5], [1.0, 0.5]), "mass_is_three_and_views"),
        (row("good", [3.5, 0.5, 1.0], [1.0, 0.5]), "beta_is_over_prior"),
        (row("good", [2.75, 1.0, 1.25], [1.0, 0.5], q_neutral=0.5), "shares_sum_to_one"),
        (row("good", [2.75, 1.0, 1.25], [1.0, 0.5], view_names=["v"]), "views_counted"),
        (row("good", [2.75, 1.0, 1.25], [1.0, 0.5], score=0.5), "score_is_the_mean"),
        (row("good", [1.0, 2.75, 1.25], [1.0, 0.5]), "praise_is_positive"),
        (row("good", [2.75, 1.0, 1.25], [-1.0, -0.5]), "blame_is_negative"),
        (row("good", [2.75, 1.0, 1.25], [1.0, 0.5], seed_sd=0.4), "seeds_agree"),
        (row("good", [1.0, 1.25, 1.75], [0.2]), "over_floor"),
    ],
)
def test_each_kind_of_fault_is_found(tmp_path, spoilt, check):
    assert check in failing(tmp_path, BAD, spoilt)
