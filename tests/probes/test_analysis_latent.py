from itertools import product
from math import log

import associated
import numpy as np
import pytest
from recovering import plant, write_tables

from plumbline.builders.core.errors import UserError
from plumbline.builders.datasets.lexica.build import SENTIMENTS
from plumbline.probes.politicians import latent, recovery
from plumbline.probes.politicians.words import word_counts
from plumbline.probes.politicians.words.word_counts import bootstrap_counts

SEED = 47
PARAMS = latent.Params(
    version="1.0.0",
    min_count=1,
    smoothing=0.5,
    l1=[0.0, 1e-3],
    posterior=[0.01, 1.0],
    steps=60,
    learning_rate=0.2,
    seeds=[1, 2],
    n_bootstrap=40,
)
Q = {"kind": (0.8, 0.1, 0.1), "cruel": (0.1, 0.8, 0.1), "calm": (0.2, 0.1, 0.7)}


class Study(associated.Study):
    """Adjectives, people and a lexicon written by hand, and the tables made of them."""

    def write(self, per_person, genders, names=None, language="en"):
        super().write(language, {"ADJ": per_person}, genders, names)

    def run(self, **changed):
        return latent.run(self.inputs, PARAMS.model_copy(update=changed))


@pytest.fixture
def study(tmp_path):
    made = Study(tmp_path)
    made.lexicon(Q)
    return made


def sixty(study):
    """Thirty men and thirty women; kind goes with women, cruel with men, calm with neither."""
    rng = np.random.default_rng(SEED)
    genders = "mw" * 30
    listed = []
    for g in genders:
        chances = {"m": (0.15, 0.85), "w": (0.85, 0.15)}[g]
        words = [w for w, p in zip(("kind", "cruel"), chances, strict=True) if rng.random() < p]
        listed.append(" ".join([*words, *(["calm"] if rng.random() < 0.5 else []), "odd"]))
    study.write(listed, genders)


def test_latent_planted_difference(study):
    sixty(study)
    table = study.run()["latent"]
    cells = {(r["word"], r["sentiment"], r["gender"]): r for r in table.to_dicts()}
    assert len(cells) == 4 * 3 * 2
    for word, s, more, less in (
        ("kind", "positive", "female", "male"),
        ("cruel", "negative", "male", "female"),
    ):
        assert cells[word, s, more]["value"] > cells[word, s, less]["value"]
    for (word, s, _), row in cells.items():
        assert row["low"] <= row["high"]
        assert row["n"] == 60
        assert row["q"] == (None if word == "odd" else Q[word][SENTIMENTS.index(s)])


def test_shares_and_tilt_planted(study):
    sixty(study)
    tables = study.run()
    found = {(r["sentiment"], r["gender"]): r for r in tables["shares"].to_dicts()}
    for gender in ("male", "female"):
        assert sum(found[s, gender]["value"] for s in SENTIMENTS) == pytest.approx(1, abs=1e-5)
    assert found["positive", "female"]["low"] > found["positive", "male"]["high"]
    assert found["negative", "male"]["low"] > found["negative", "female"]["high"]
    assert tables["tilt"]["low"].item() > log(2)


def test_fits(study):
    sixty(study)
    fits = study.run()["fits"]
    pairs = fits.select("l1", "posterior").rows()
    assert pairs == list(product((0.0, 1e-3), (0.01, 1.0)))
    rows = dict(zip(pairs, fits.iter_rows(named=True), strict=True))
    assert rows[1e-3, 1.0]["kl_word"] < rows[1e-3, 0.01]["kl_word"]
    # without L1 both terms are at their least, from any start
    for posterior in (0.01, 1.0):
        bare, sparse = rows[0.0, posterior], rows[1e-3, posterior]
        assert [bare[name] for name in ("kl_word", "gap")] == [0, 0]
        assert 0 < sparse["gap"] <= 1e-2


def test_fits_few_steps_have_not_converged(study):
    sixty(study)
    few = study.run(steps=3, posterior=[100.0], l1=[0.0, 1e-2])["fits"]
    assert (few.sort("l1")["gap"] <= 1e-2).to_list() == [True, False]


def test_latent_published_lexicon(study):
    sixty(study)
    study.lexicon({word: (q[1], q[0], q[2]) for word, q in Q.items()}, "published")
    for lexicon, q in (("combined", 0.8), ("published", 0.1)):
        rows = study.run(lexicon=lexicon)["latent"].filter(word="kind", sentiment="positive")
        assert set(rows["q"]) == {q}


def test_latent_third_gender(study):
    study.write(["kind", "cruel calm", "kind odd", "cruel"] * 3, "mwxx" * 3)
    assert set(study.run()["latent"]["gender"]) == {"male", "female"}
    three = ["male", "female", "non-binary"]
    assert set(study.run(genders=three)["latent"]["gender"]) == set(three)


def test_latent_without_a_lexicon(study):
    sixty(study)
    study.write(["bon"] * 6, "mwmwmw", language="fr")
    assert study.run()["latent"]["language"].unique().to_list() == ["en"]
    (study.folder / "lexica/en.parquet").unlink()
    with pytest.raises(UserError):
        study.run()


def test_bootstrap_counts_weights_all_people_with_a_name_equally(study):
    # two men and a woman are called Ann; their list is one
    listed = ["kind", "kind", "kind", "cruel", "kind"]
    study.write(listed, "mmwmw", names=["Ann", "Ann", "Ann", "Bob", "Cat"])
    people = word_counts.read_people(study.folder / "people/en.parquet")
    counts = word_counts.count(word_counts.Lists((study.outputs / "en",), "ADJ"), people)
    assert counts.words["word"].to_list() == ["cruel", "kind"]
    assert counts.lists.tolist() == [[1, 0], [2, 2]]
    # exponential weights: mean 1, Ann's one weight for all three of her people
    drawn = bootstrap_counts(counts, np.arange(2), 2000, 5).bayesian
    assert drawn.mean(axis=2) == pytest.approx(counts.lists, abs=0.15)
    assert drawn[1, 0].var() == pytest.approx(4, rel=0.25)


WORDS = [f"word{i:02}" for i in range(12)]
RATIO = np.linspace(-2, 2, 12)
MEANT = ["negative" if r < -0.7 else "positive" if r > 0.7 else "neutral" for r in RATIO]
SHARES = {s: [0.9 if s == t else 0.05 for t in SENTIMENTS] for s in SENTIMENTS}


def planted_study(study, lexicon=MEANT, genders="mw" * 40):
    """Write lists of a world whose women have the positive words, and what was planted there."""
    rng = np.random.default_rng(SEED)
    sides = np.array([{"m": -0.5, "w": 0.5}[g] for g in genders])
    taste = sides[:, None] * RATIO + rng.normal(0, 1.5, (len(genders), 12))
    top = np.argsort(-taste, axis=1)[:, :4]
    study.write([" ".join(WORDS[w] for w in row) for row in top], genders)
    study.lexicon({w: SHARES[s] for w, s in zip(WORDS, lexicon, strict=True)})
    planted = {"word": WORDS, "pos": ["ADJ"] * 12, "sentiment": MEANT}
    planted |= {"frequency_nats": [0.0] * 12, "log_ratio_nats": RATIO}
    plant(study.weights, planted, sentiment_effect=1, name_noise=1.5)


def recovered(study):
    """Return recovery of the tables, by measure and item."""
    (study.outputs / "coverage").rmdir()  # without files
    write_tables(study.inputs, "latent", study.run(), study.model)
    rows = recovery.run(study.inputs)["latent"].to_dicts()
    return {(row["measure"], row["item"]): row for row in rows}


def test_recovery_planted(study):
    planted_study(study)
    rows = recovered(study)
    assert rows["rank_correlation", ""]["value"] > 0.8
    assert rows["sign_agreement", ""]["value"] > 0.8
    tilt = rows["estimate", "ADJ: tilt"]
    assert tilt["low"] > log(2)  # women are put beside positive words
    assert tilt["expected"] == 1
    assert {row["world"] for row in rows.values()} == {"planted"}
    assert rows["label_agreement", ""]["n"] == 12
