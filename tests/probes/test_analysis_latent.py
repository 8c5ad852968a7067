from itertools import product
from math import log

import associated
import numpy as np
import polars as pl
import pytest
from recovering import plant, recovered

from plumbline.builders.core.errors import UserError
from plumbline.probes.politicians import latent, latent_model
from plumbline.probes.politicians.words import word_counts
from plumbline.probes.politicians.words.resample_counts import by_gender

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
    n_permutations=39,
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


def test_a_planted_difference_is_found_with_its_sign(study):
    sixty(study)
    table = study.run()["latent"]
    cells = {(r["word"], r["sentiment"], "mw"[r["gender"]]): r for r in table.iter_rows(named=True)}
    assert len(cells) == 4 * 3 * 2
    for word, s, more, less in (("kind", 0, "w", "m"), ("cruel", 1, "m", "w")):
        assert cells[word, s, more]["value"] > cells[word, s, less]["value"]
        assert cells[word, s, more]["p"] == cells[word, s, less]["p"] == 1 / 40
    assert cells["kind", 0, "w"]["rank"] == 1
    assert cells["cruel", 1, "m"]["rank"] == 1
    for (word, s, _), row in cells.items():
        # of what p tests, the difference of both genders, which is one whoever is named
        assert row["detectable"] == cells[word, s, "m"]["detectable"] > 0
        assert row["low"] <= row["high"]
        assert row["n"] == 60
        assert row["people"] == 30
        assert row["family"] == 24
        assert row["q"] == (None if word == "odd" else Q[word][s])


def test_what_is_detectable_follows_the_spread_of_replicates_and_permutations(study, monkeypatch):
    sixty(study)
    fits, refit = [], latent_model.refit
    monkeypatch.setattr(latent_model, "refit", lambda *of: fits.append(refit(*of)) or fits[-1])
    table = study.run()["latent"]
    # women less men, (tables, sentiments, words): of 40 replicates, and of 39 permutations
    drawn, permuted = (found.eta[:, :, 1] - found.eta[:, :, 0] for found in fits)
    words, errors = sorted(set(table["word"])), set()
    for (word, s), own in table.group_by("word", "sentiment"):
        value = dict(own.select("gender", "value").iter_rows())
        seen, w = value[1] - value[0], words.index(word)
        error = np.mean((drawn[:, s, w] - seen) ** 2) ** 0.5
        far = np.sort(np.abs(permuted[:, s, w]))[::-1]
        critical = (far[0] + far[1]) / 2  # beyond all but itself p is 2 / 40 at most
        told = critical + 0.841621 * error
        assert own["detectable"].to_list() == pytest.approx([told] * 2, abs=1e-5)
        errors.add(round(error, 3))
    assert len(errors) == 12


def test_deviations_as_small_as_rounding_elsewhere_are_judged_by_permutations_too(study):
    sixty(study)  # beside 10^11 of every cell they are of 10^-10 nats
    small = study.run(smoothing=1e11, l1=[0.0])["latent"]
    assert set(small.filter(word="kind", sentiment=0)["p"]) == {1 / 40}
    assert small["p"].max() == 1


def test_sentiments_tilt_as_planted(study):
    sixty(study)
    shares = study.run()["shares"]
    found = {(r["sentiment"], "mw"[r["gender"]]): r for r in shares.iter_rows(named=True)}
    for g in "mw":
        assert sum(found[s, g]["value"] for s in range(3)) == pytest.approx(1, abs=1e-5)
    assert found[0, "w"]["low"] > found[0, "m"]["high"]
    assert found[1, "m"]["low"] > found[1, "w"]["high"]


def test_fits_have_a_row_for_each_pair_of_weights(study):
    sixty(study)
    fits = study.run()["fits"]
    pairs = fits.select("l1", "posterior").rows()
    assert pairs == list(product((0.0, 1e-3), (0.01, 1.0)))
    assert fits["words"].to_list() == [4] * 4
    assert fits["words_q"].to_list() == [3] * 4
    rows = dict(zip(pairs, fits.iter_rows(named=True), strict=True))
    assert rows[1e-3, 1.0]["kl"] < rows[1e-3, 0.01]["kl"]
    assert rows[1e-3, 0.01]["kl_word"] == pytest.approx(rows[1e-3, 0.01]["kl"] / 3, abs=1e-6)
    # without L1 both terms are at their least, from any start
    for posterior in (0.01, 1.0):
        bare, sparse = rows[0.0, posterior], rows[1e-3, posterior]
        assert [bare[name] for name in ("excess", "kl", "gap")] == [0, 0, 0]
        assert bare["converged"]
        assert 0 < sparse["excess"] < 0.05
    assert (fits["converged"] == (fits["gap"] <= 1e-2)).all()


@pytest.mark.parametrize("jitter", [0.0, 1.0])
def test_a_fit_that_did_not_get_far_is_not_called_converged(study, jitter):
    sixty(study)  # where all starts are one, they agree wherever they got to
    few = study.run(steps=3, posterior=[100.0], l1=[0.0, 1e-2], jitter=jitter)["fits"]
    assert few.sort("l1")["converged"].to_list() == [True, False]


def test_the_published_lexicon_is_read_where_it_is_asked_for(study):
    sixty(study)
    study.lexicon({word: (q[1], q[0], q[2]) for word, q in Q.items()}, "published")
    said = [study.run(lexicon=of)["latent"].filter(word="kind") for of in ("combined", "published")]
    assert [set(table.filter(sentiment=0)["q"]) for table in said] == [{0.8}, {0.1}]


def test_a_third_gender_is_in_the_model_only_if_named(study):
    sixty(study)
    study.write(["kind", "cruel calm", "kind odd", "cruel"] * 3, "mwxx" * 3)
    assert study.run()["latent"]["gender"].unique().sort().to_list() == [0, 1]
    three = study.run(genders=["male", "female", "non-binary"])["latent"]
    assert three["gender"].unique().sort().to_list() == [0, 1, 2]
    assert three.filter(gender=2)["people"].unique().to_list() == [6]


def test_the_largest_deviation_has_the_first_rank(study):
    sixty(study)
    table = study.run()["latent"].sort("gender", "sentiment", "rank")
    first = table.filter(pl.col("rank") <= 2)
    assert len(first) == 2 * 3 * 2
    for _, part in first.group_by("gender", "sentiment", maintain_order=True):
        assert part["rank"].to_list() == [1, 2]
        assert part["value"][0] >= part["value"][1]


def test_the_same_bytes_twice(study):
    sixty(study)
    first, second = study.run(), study.run()
    assert all(first[name].equals(second[name]) for name in first)


def test_a_language_without_a_lexicon_is_left_out_and_none_is_a_problem(study):
    sixty(study)
    study.write(["bon"] * 6, "mwmwmw", language="fr")
    assert study.run()["latent"]["language"].unique().to_list() == ["en"]
    (study.folder / "lexica/en.parquet").unlink()
    with pytest.raises(UserError, match=r"no language has both a lexicon .* datasets.lexica"):
        study.run()


def test_counts_weigh_and_permute_names_with_all_their_people(study):
    # two men and a woman are called Ann; their list is one
    listed = ["kind", "kind", "kind", "cruel", "kind", "calm"]
    study.write(listed, "mmwmwx", names=["Ann", "Ann", "Ann", "Bob", "Cat", "Dot"])
    people = word_counts.read_people(study.folder / "people/en.parquet")
    source = word_counts.Lists((study.outputs / "en",), 0)
    found = by_gender(source, people, [0, 1], 1, 2000, 2000, 5)
    assert found.words == ["cruel", "kind"]
    assert found.seen.tolist() == [[1, 0], [2, 2]]
    assert found.people.tolist() == [3, 2]
    assert found.names == 3
    # who has Ann's labels is each of three names equally often
    outcomes = {tuple(map(tuple, table.tolist())) for table in found.permuted}
    assert outcomes == {((1, 0), (2, 2)), ((0, 1), (3, 1)), ((2, 1), (1, 1))}
    ann = (found.permuted[:, 0] == (2, 1)).all(axis=1).mean()
    assert ann == pytest.approx(1 / 3, abs=0.04)
    # exponential weights: mean 1, Ann's one weight for all three of her people
    assert found.drawn.mean(axis=0) == pytest.approx(found.seen, abs=0.15)
    assert found.drawn[:, 1, 0].var() == pytest.approx(4, rel=0.25)


WORDS = [f"word{i:02}" for i in range(12)]
RATIO = np.linspace(-2, 2, 12)
MEANT = [latent.SENTIMENTS[1 if r < -0.7 else 0 if r > 0.7 else 2] for r in RATIO]
SHARES = {s: [0.9 if s == t else 0.05 for t in latent.SENTIMENTS] for s in latent.SENTIMENTS}


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
    plant(study.weights, planted, sentiment_effect=1, name_noise=1.5, words_max=12)


@pytest.mark.parametrize("genders", ["mw" * 40, "mmmmw" * 40], ids=["1:1", "4:1"])
def test_recovery_holds_tables_against_what_was_planted(study, genders):
    planted_study(study, genders=genders)
    rows = recovered(study.inputs, "latent", study.run(), study.model).to_dicts()
    measures = {row["measure"].partition(" ")[0]: row for row in rows}
    assert measures["Spearman"]["value"] > 0.8
    assert measures["ADJ:"]["low"] > log(2)  # women are put beside positive words
    assert measures["ADJ:"]["null"] == "1.000: planted in the words"
    assert {row["world"] for row in rows} == {0}
    shares = [row for row in rows if row["measure"].startswith("share of")]
    assert [row["n"] for row in shares] == [12, 12, 2, 72, 72]
    assert shares[0]["value"] > 0.8  # signs


def swapped(counts, q, l1, posterior, *rest):
    return FIT(counts, q, posterior, l1, *rest)


def without_posterior(counts, q, l1, posterior, *rest):
    even = np.full_like(q, 1 / q.shape[1])  # where nothing says what sentiments are
    found = FIT(counts, even, l1, 0 * posterior, *rest)
    return found._replace(divergence=np.full(len(l1), (q * np.log(q / even)).sum()))


FIT = latent_model.fit
POLES = {"positive": "negative", "negative": "positive", "neutral": "neutral"}
OTHER = [MEANT[(i + 4) % 12] for i in range(12)]
SENSE, SIGNS, APART = "share of words whose most", "share of differences of p(s|g)", "most KL"
BROKEN = {  # what is broken, by what it is told
    "posterior term": ({"fit": without_posterior}, MEANT, {SENSE, SIGNS, APART}),
    "lexicon": ({}, OTHER, {SENSE, SIGNS}),
    "weights": ({"fit": swapped}, MEANT, {SENSE, SIGNS, APART}),
    "poles": ({}, [POLES[s] for s in MEANT], {SENSE, SIGNS}),
    "nothing": ({}, MEANT, set()),
}


@pytest.mark.parametrize("what", BROKEN)
def test_recovery_tells_what_is_broken_of_sentiments(study, monkeypatch, what):
    """The order of words by gender is the same in all; the other rows are not."""
    instead, lexicon, told = BROKEN[what]
    planted_study(study, lexicon, "mmmmw" * 40)
    for name, function in instead.items():
        monkeypatch.setattr(latent_model, name, function)
    found = recovered(study.inputs, "latent", study.run(), study.model).to_dicts()

    def value(start):
        (row,) = [row for row in found if row["measure"].startswith(start)]
        return row["value"]

    wrong = {SENSE: value(SENSE) < 0.7, SIGNS: value(SIGNS) < 0.7, APART: value(APART) > 0.1}
    assert {name for name, off in wrong.items() if off} == told
    if what != "weights":
        assert value("Spearman") > 0.8


def test_other_starts_show_what_the_data_leave_open(study):
    study.lexicon(Q)
    study.write(["kind calm"] * 8 + ["cruel calm"] * 4 + ["kind cruel"] * 6, "m" * 9 + "w" * 9)
    found = study.run(seeds=[3, 5], jitter=0.5)
    keys = ["word", "sentiment", "gender"]
    starts = found["seeds"].group_by(keys).agg(sd=pl.col("value").std(ddof=0), seeds="seed")
    both = found["latent"].join(starts, on=keys)
    assert {tuple(sorted(seeds)) for seeds in both["seeds"]} == {(3, 5)}
    assert both["sd"].to_numpy() == pytest.approx(both["seed_sd"].to_numpy(), abs=2e-6)
    assert both["seed_sd"].mean() > 0.05, "half the fits are without L1: each keeps its start"
    same = study.run(seeds=[3, 5], jitter=0.0)["latent"]
    assert same["seed_sd"].to_list() == [0] * 18
    assert same["value"].equals(found["latent"]["value"]), "values come of the even start alone"


def test_the_grid_holds_the_deviations_whose_mean_is_told(study):
    study.lexicon(Q)
    study.write(["kind calm"] * 8 + ["cruel calm"] * 4 + ["kind cruel"] * 6, "m" * 9 + "w" * 9)
    found = study.run()
    keys = ["word", "sentiment", "gender"]
    mean = found["grid"].group_by(keys).agg(pl.col("value").mean(), fits=pl.len())
    both = found["latent"].join(mean, on=keys, suffix="_grid")
    assert len(both) == 3 * 3 * 2
    assert set(both["fits"]) == {4}  # two values of each weight
    assert both["value_grid"].to_numpy() == pytest.approx(both["value"].to_numpy(), abs=2e-6)
    pairs = set(found["fits"].select("l1", "posterior").rows())
    assert set(found["grid"].select("l1", "posterior").rows()) == pairs
