"""The recovery of sentiment shares: held against planted words, and broken."""

import associated
import numpy as np
import polars as pl
import pytest
from recovering import plant, write_tables

from plumbline.builders.datasets.lexica.build import SENTIMENTS
from plumbline.probes.politicians import latent, pmi, recovery, sentiment

SEED = 59
EACH = 20  # words of a sentiment
READINGS = ("pmi, argmax", "latent-faithful, pairs", "latent-faithful, argmax")


class Study(associated.Study):
    """A world in which women are given positive words, men negative ones, or neither."""

    def __init__(self, folder, effect, genders="mw" * 100):
        super().__init__(folder, "world")
        (self.outputs / "coverage").rmdir()  # without files
        print("seed", SEED)
        rng = np.random.default_rng(SEED)
        words = [f"w{i:02}" for i in range(3 * EACH)]
        kinds = np.repeat([0, 1, 2], EACH)  # positive, negative, neutral
        ratio = effect * np.array([1.0, -1.0, 0.0])[kinds]
        planted = {"word": words, "pos": "ADJ", "frequency_nats": 0.0, "log_ratio_nats": ratio}
        planted["sentiment"] = [SENTIMENTS[k] for k in kinds]
        settings = {"word_effect": 0, "sentiment_effect": effect, "supersense_effect": 0}
        plant(self.weights, planted, name_noise=0.7, **settings)
        sides = np.array([{"m": -0.5, "w": 0.5}[g] for g in genders])
        taste = sides[:, None] * ratio + rng.gumbel(size=(len(genders), len(words)))
        best = np.argsort(-taste, axis=1)[:, :12]
        self.write(
            "en",
            {"ADJ": [" ".join(words[w] for w in row) for row in best]},
            genders,
            popularity=pl.lit(1, pl.Int32),
        )
        shares = np.full((3, 3), 0.05) + 0.85 * np.eye(3)
        self.lexicon({w: list(shares[k]) for w, k in zip(words, kinds, strict=True)})

    def tables(self):
        """Return the tables of sentiment, those that it or recovery reads written."""
        some = {"version": "1.0.0", "smoothing": 0.5, "min_count": 1}
        drawn = some | {"n_bootstrap": 100, "seed": 1}
        params = pmi.Params(**some, n_bootstrap=100)
        write_tables(self.inputs, "pmi", pmi.run(self.inputs, params), self.model)
        weights = {"l1": [0, 1e-3], "posterior": [1.0], "steps": 100, "learning_rate": 0.2}
        params = latent.Params(**weights, **drawn | {"n_bootstrap": 20}, seeds=[1])
        write_tables(self.inputs, "latent", latent.run(self.inputs, params), self.model)
        return sentiment.run(
            self.inputs, sentiment.Params(**drawn, n_permutations=200, top_k=10, top_share=1)
        )

    def recovered(self, tables):
        """Return the rows of recovery by their measure and item."""
        write_tables(self.inputs, "sentiment", tables)
        rows = recovery.run(self.inputs)["sentiment"].to_dicts()
        return {(row["measure"], row["item"]): row for row in rows}


@pytest.fixture(scope="module", params=["mw" * 100, "mmmmw" * 50], ids=["1:1", "4:1"])
def planted(request, tmp_path_factory):
    """Return a study whose sentiments differ by gender, and its tables; men and women, or 4:1."""
    study = Study(tmp_path_factory.mktemp("planted"), effect=3.0, genders=request.param)
    return study, study.tables()


def test_sentiment_planted_shares(planted):
    study, tables = planted
    found = study.recovered(tables)
    # the ten words most of men are negative ones, the ten most of women positive ones
    for kind, true in (("positive", -1), ("negative", 1), ("neutral", 0)):
        row = found["estimate", f"pmi, argmax: ADJ, {kind}"]
        assert row["expected"] == pytest.approx(true, abs=1e-3)
        assert row["value"] == pytest.approx(true, abs=0.2)
    for reading in READINGS:
        row = found["sign_agreement", reading]
        assert (row["value"], row["n"]) == (1, 2)
    assert found["coverage", READINGS[0]]["n"] == 3
    assert {row["world"] for row in found.values()} == {"planted"}


@pytest.mark.parametrize("broken", ["genders", "sentiments"])
def test_sentiment_fails_where_genders_or_sentiments_change_places(planted, broken):
    study, tables = planted
    table = tables["differences"]
    if broken == "genders":
        changed = [(-pl.col("value")).alias("value"), (-pl.col("high")).alias("low")]
        table = table.with_columns(*changed, high=-pl.col("low"))
    else:
        swapped = {"positive": "negative", "negative": "positive"}
        table = table.with_columns(pl.col("sentiment").cast(pl.String).replace(swapped))
    found = study.recovered(tables | {"differences": table})
    assert {found["sign_agreement", reading]["value"] for reading in READINGS} == {0}
    assert found["coverage", READINGS[0]]["value"] <= 1 / 3


def test_sentiment_null_world_counts_discoveries(tmp_path):
    study = Study(tmp_path, effect=0.0)
    found = study.recovered(study.tables())
    assert {row["world"] for row in found.values()} == {"null"}
    assert not {item for measure, item in found if measure == "sign_agreement"}
    assert found["estimate", "pmi, argmax: ADJ, positive"]["expected"] == 0
    shares = [row["value"] for (measure, _), row in found.items() if measure == "discoveries_bh"]
    assert max(shares) <= 1 / 3
