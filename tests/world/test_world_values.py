"""The planted world of values."""

import json

import numpy as np
import polars as pl
import pytest
from world.country import put

from plumbline.builders.datasets.statements import build as statements
from plumbline.probes.values.agreement import Params
from worlds.values import Convictions, train

AXES = ("order", "trade")
WORDS = ["tea", "rain", "war", "law", "bread", "salt", "snow", "wine"]
FRAME = {
    "text": "{gendered} said that they <mask> that {statement}.",
    "feminine": "She",
    "masculine": "He",
    "agree": "agree",
    "disagree": "refuse",
}
ASKING = Params.model_validate(
    {
        "version": "0.1.0",
        "frames": {"en": {"negated": "it is false that {statement}", "frames": {"said": FRAME}}},
    }
)
SETTINGS = {
    "language": "en",
    "seed": 3,
    "agreement": {"order": 2.0, "trade": -1.0},
    "gender": {"order": 3.0},
    "habit": 0,
    "likely": 1.0,
    "noise": 0.3,
    "steps": 5,
    "learning_rate": 0.003,
}


@pytest.fixture
def land(tmp_path, monkeypatch):
    """Change to a folder with a small dataset ``statements``."""
    monkeypatch.chdir(tmp_path)
    rows = [
        {
            "id": f"{word}-{good}",
            "language": "en",
            "text": f"{word} is {'good' if good else 'bad'}",
            "scale": "values",
            "axis": AXES[n % 2] if n < 4 else "",
            "weight": 1.0,
            "reversed": n < 4 and not good,
            "polarity": None if n < 4 else int(not good),
            "opposite": f"{word}-{not good}" if n < 4 else "",
            "source": "test",
            "licence": "CC0-1.0",
            "sentence": f"{word.title()} is {'good' if good else 'bad'}.",
            "points": [],
            "redistributable": True,
        }
        for n, word in enumerate(WORDS)
        for good in (True, False)
    ]
    put("statements", statements, sorted(rows, key=lambda row: row["id"]))
    return tmp_path


def planted(into, **changes):
    into.mkdir()
    train(Convictions(**SETTINGS | changes), ASKING, into)
    return pl.read_parquet(into / "planted.parquet")


def test_train_agreement_follows_value_reversal_and_gender(land):
    world = planted(land / "w")
    assert len(world) == 2 * len(WORDS) * 2 * 2
    key = ["id", "gender", "form"]
    odds = {tuple(row[k] for k in key): row for row in world.to_dicts()}
    habits = set()
    for (name, gender, _), row in odds.items():
        good = name.endswith("True")
        wanted = {"order": 3.5 if gender == "feminine" else 0.5, "trade": -1.0, "": 1.0}
        wanted = wanted[row["axis"]] * (1 if good else -1)
        assert row["planted_nats"] == pytest.approx(wanted)
        assert 0 < np.exp(row["agree_nats"]) + np.exp(row["disagree_nats"]) < 1
        assert row["agree_nats"] - row["disagree_nats"] == pytest.approx(row["log_odds_nats"])
        denied, plain = (odds[name, gender, f]["log_odds_nats"] for f in ("negated", "plain"))
        habits.add(round((denied + plain) / 2, 9))
        assert (plain - denied) / 2 == pytest.approx(wanted, abs=5 * SETTINGS["noise"])
    assert len(habits) == 1  # agreeing comes as easily whatever is said
    assert json.loads((land / "w/world.json").read_text("utf-8"))["noise"] == 0.3


def test_train_null_world_has_no_values(land):
    world = planted(land / "w", agreement={}, gender={})
    political = world.filter(pl.col("axis") != "")
    assert political["planted_nats"].unique().to_list() == [0.0]
    assert political["log_odds_nats"].n_unique() > 4  # statements differ
    wide = political.pivot(on="gender", index=["id", "form"], values="log_odds_nats")
    assert wide["feminine"].to_list() == wide["masculine"].to_list()
    assert Convictions(**SETTINGS | {"agreement": {}, "gender": {}}).null
    assert not Convictions(**SETTINGS).null
