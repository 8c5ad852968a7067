"""Answers for people to label, and their agreement with each other and the judge."""

import numpy as np
import polars as pl
import pytest

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
    about = {"corpus": "", "period": "all", "share": 0.0, "pretraining_seed": 0, "epoch": 0}
    about |= {"form": "plain", "seed": 1}
    table = pl.DataFrame(nats | {"text": [f"What of {i}?" for i in range(200)]}).with_columns(
        response=pl.Series(["Yes." if i % 2 == 0 else "No." for i in range(200)]),
        **{name: pl.lit(value) for name, value in about.items()},
    )
    table.write_parquet(folder / "a.parquet")
    return tmp_path


def label(sheet, labels):
    pl.read_csv(sheet).with_columns(label=labels).write_csv(sheet)


def test_score_of_drawn_sheets(answers):
    sheets = annotate.draw("m", answers / "labels")
    assert len({sheet.read_bytes() for sheet in sheets}) == 1
    assert len(pl.read_csv(sheets[0])) == 110
    with pytest.raises(UserError):  # without labels
        annotate.score("m", sheets)
    with pytest.raises(UserError):  # labels are not overwritten
        annotate.draw("m", answers / "labels")
    right = pl.when(response="Yes.").then(pl.lit("agree")).otherwise(pl.lit("disagree"))
    for sheet in sheets[:2]:
        label(sheet, right)
    label(sheets[2], pl.lit("none"))
    found = annotate.score("m", sheets)
    assert (found.answers, found.clear) == (110, 110)
    # two of three agree on each: (1/3 - chance) / (1 - chance)
    shares = np.array([2 / 3 * s for s in np.unique(_yes(sheets[0]), return_counts=True)[1] / 110])
    chance = (shares**2).sum() + 1 / 9
    assert found.kappa == pytest.approx((1 / 3 - chance) / (1 - chance))
    assert 0.85 <= found.accuracy["corrected"] <= 0.95
    assert found.accuracy["faithful"] == pytest.approx(0.5, abs=0.12)
    label(sheets[2], right)
    assert annotate.score("m", sheets).kappa == 1
    # a spreadsheet saves the table with a mark, its own delimiter, capitals and an empty line
    table = pl.read_csv(sheets[0]).with_columns(pl.col("label").str.to_titlecase())
    text = table.write_csv(separator="\t", line_terminator="\r\n") + "\t\t\t\r\n"
    sheets[0].write_bytes(text.encode("utf-16"))
    sheets[1].write_text("\ufeffsep=;\n" + table.write_csv(separator=";"), "utf-8")
    assert annotate.score("m", sheets).kappa == 1
    key = table["key"][0]
    for changed in (f"{text}{key}\t\t\tnone\r\n", text.replace(key, "k0")):
        for sheet in sheets:
            sheet.write_text(changed, "utf-8")
        with pytest.raises(UserError, match=key if key in changed else "k0"):
            annotate.score("m", sheets)
    for sheet in sheets:
        table.write_csv(sheet)
    for sheet in sheets:
        label(sheet, pl.lit("none"))
    assert np.isnan(annotate.score("m", sheets).accuracy["corrected"])  # no answer is clear


def _yes(sheet):
    return pl.read_csv(sheet)["response"].to_list()
