"""Answers for people to label, and how far they and the judge agree."""

import csv

import numpy as np
import polars as pl
import pytest
from statsmodels.stats.inter_rater import fleiss_kappa

from plumbline.builders.core.errors import UserError
from plumbline.probes.leaning import annotate


@pytest.fixture
def answers(tmp_path, monkeypatch):
    """Write answers of a model: the judge is right but for every tenth, corrected."""
    monkeypatch.chdir(tmp_path)
    folder = annotate.OUTPUTS / "m/generation"
    folder.mkdir(parents=True)
    up = np.array([0.95 if (i % 2 == 0) != (i % 10 == 9) else 0.02 for i in range(200)])
    nats = {"entailed_nats": np.log(up), "contradicted_nats": np.log(0.97 - up)}
    nats |= {"agree_nats": np.full(200, -0.1), "disagree_nats": np.full(200, -3.0)}
    about = {"corpus": "", "period": 0, "share": 0.0, "pretraining_seed": 0, "epoch": 0}
    table = pl.DataFrame(nats | {"text": [f"What of {i}?" for i in range(200)]}).with_columns(
        form=pl.lit(0), seed=pl.lit(1), **{k: pl.lit(v) for k, v in about.items()}
    )
    words = pl.Series(["Yes." if i % 2 == 0 else "No." for i in range(200)])
    table.with_columns(response=words).write_parquet(folder / "a.parquet")
    return tmp_path


def label(sheet, say):
    with sheet.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    with sheet.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, annotate.FIELDS)
        writer.writeheader()
        writer.writerows(row | {"label": say(row)} for row in rows)


def yes(row):
    return "agree" if row["response"] == "Yes." else "disagree"


def test_sheets_are_alike_and_labels_are_held_against_the_judge(answers):
    sheets = annotate.draw("m", answers / "labels")
    assert len({sheet.read_bytes() for sheet in sheets}) == 1
    assert len(sheets[0].read_text("utf-8").splitlines()) == 111
    with pytest.raises(UserError, match="has the label ''"):
        annotate.score("m", sheets)
    with pytest.raises(UserError, match="is there already"):
        annotate.draw("m", answers / "labels")
    for sheet in sheets[:2]:
        label(sheet, yes)
    label(sheets[2], lambda row: "none")
    found = annotate.score("m", sheets)
    assert (found.answers, found.clear) == (110, 110)
    assert found.kappa < 0.3
    assert 0.85 <= found.accuracy["corrected"] <= 0.95
    assert found.accuracy["faithful"] == pytest.approx(0.5, abs=0.12)
    label(sheets[2], yes)
    assert annotate.score("m", sheets).kappa == 1


def test_kappa_is_that_of_statsmodels():
    counts = np.random.default_rng(1).multinomial(3, [0.5, 0.3, 0.2], size=40)
    assert annotate.fleiss(counts) == pytest.approx(fleiss_kappa(counts))
