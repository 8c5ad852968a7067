"""The recovery of sentiment shares: held against planted words, and broken."""

import associated
import numpy as np
import polars as pl
import pytest
from recovering import plant, recovered

from plumbline.probes.politicians import latent, pmi, sentiment
from plumbline.probes.politicians.recovery import control

SEED = 59
EACH = 20  # words of a sentiment
SHARE = "ADJ, {}: share, male minus female"
SIGNS = "share of planted differences of at least 0.1 whose sign is found"
COVERED = "share of 95% intervals with the planted difference"
LATENT = ("latent-faithful, pairs: ", "latent-faithful, argmax: ", "latent-corrected, argmax: ")


class Study(associated.Study):
    """A world in which women are given positive words, men negative ones, or neither."""

    def __init__(self, folder, effect, genders="mw" * 100):
        super().__init__(folder, "world")
        print("seed", SEED)
        rng = np.random.default_rng(SEED)
        words = [f"w{i:02}" for i in range(3 * EACH)]
        kinds = np.repeat([0, 1, 2], EACH)  # positive, negative, neutral
        ratio = effect * np.array([1.0, -1.0, 0.0])[kinds]
        planted = {"word": words, "pos": "ADJ", "frequency_nats": 0.0, "log_ratio_nats": ratio}
        planted["sentiment"] = [control.SENTIMENTS[k] for k in kinds]
        settings = {"word_effect": 0, "sentiment_effect": effect, "supersense_effect": 0}
        plant(self.weights, planted, words_max=len(words), name_noise=0.7, **settings)
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
        """Return the tables of sentiment, those of PMI written where recovery reads them."""
        own = pmi.Params(version="1.0.0", smoothing=0.5, min_count=1, n_bootstrap=100)
        folder = self.inputs.tables("pmi", self.model)
        folder.mkdir(parents=True, exist_ok=True)
        pmi.run(self.inputs, own)["pmi"].write_parquet(folder / "pmi.parquet")
        weights = {"l1": [0, 1e-3], "posterior": [1.0], "steps": 100, "learning_rate": 0.2}
        latent_params = {"n_bootstrap": 20, "n_permutations": 19, "seeds": [1], "seed": 1}
        fitted = latent.Params(
            version="1.0.0", min_count=1, smoothing=0.5, **weights, **latent_params
        )
        deviations = self.inputs.tables("latent", self.model)
        deviations.mkdir(parents=True, exist_ok=True)
        for name, table in latent.run(self.inputs, fitted).items():
            table.write_parquet(deviations / f"{name}.parquet")
        params = {"version": "1.0.0", "top_k": 10, "top_share": 1, "smoothing": 0.5}
        params |= {"min_count": 1, "n_permutations": 200, "n_bootstrap": 100, "seed": 1}
        return sentiment.run(self.inputs, sentiment.Params(**params))

    def recovered(self, tables):
        """Return the rows of recovery by their measure."""
        folder = self.inputs.tables("sentiment")
        folder.mkdir(parents=True, exist_ok=True)
        found = recovered(self.inputs, "sentiment", tables, model="")
        return {row["measure"]: row for row in found.iter_rows(named=True)}


@pytest.fixture(scope="module", params=["mw" * 100, "mmmmw" * 50], ids=["1:1", "4:1"])
def planted(request, tmp_path_factory):
    """Return a study whose sentiments differ by gender, and its tables; men and women, or 4:1."""
    study = Study(tmp_path_factory.mktemp("planted"), effect=3.0, genders=request.param)
    return study, study.tables()


def test_shares_that_were_planted_are_found_with_their_signs(planted):
    study, tables = planted
    found = study.recovered(tables)
    # the ten words most of men are negative ones, the ten most of women positive ones
    for kind, true in (("positive", -1), ("negative", 1), ("neutral", 0)):
        row = found[SHARE.format(kind)]
        assert row["null"] == f"{true:.3f}: planted"
        assert row["value"] == pytest.approx(true, abs=0.2)
    for of in ("", *LATENT):
        assert (found[of + SIGNS]["value"], found[of + SIGNS]["n"]) == (1, 2)
    corrected = LATENT[-1]
    assert found[corrected + SHARE.format("negative")]["value"] == pytest.approx(1, abs=0.2)
    assert found[COVERED]["n"] == 3
    # by the latent-variable model there is neither an interval nor a p
    assert not {measure for measure in found if "intervals" in measure and "latent" in measure}
    assert not {measure for measure in found if "tests (latent" in measure}
    assert {row["world"] for row in found.values()} == {0}


@pytest.mark.parametrize("broken", ["genders", "sentiments"])
def test_it_fails_where_genders_or_sentiments_change_places(planted, broken):
    study, tables = planted
    table = tables["differences"]
    if broken == "genders":
        changed = [(-pl.col("value")).alias("value"), (-pl.col("high")).alias("low")]
        table = table.with_columns(*changed, high=-pl.col("low"))
    else:
        swapped = pl.col("sentiment").replace({0: 1, 1: 0})
        table = table.with_columns(swapped.alias("sentiment"))
    found = study.recovered(tables | {"differences": table})
    assert {found[of + SIGNS]["value"] for of in ("", *LATENT)} == {0}
    assert found[COVERED]["value"] <= 1 / 3


@pytest.mark.parametrize("genders", ["mw" * 100, "mmmmw" * 50], ids=["1:1", "4:1"])
def test_of_a_null_world_nothing_is_true_and_discoveries_are_told(tmp_path, genders):
    study = Study(tmp_path, effect=0.0, genders=genders)
    found = study.recovered(study.tables())
    assert {row["world"] for row in found.values()} == {1}
    assert SIGNS not in found
    assert found[SHARE.format("positive")]["null"] == "0.000: planted"
    discoveries = [row for measure, row in found.items() if measure.startswith("share of tests")]
    assert [row["null"] for row in discoveries] == ["0: no discovery is true"] * 2
    assert max(row["value"] for row in discoveries) <= 1 / 3
