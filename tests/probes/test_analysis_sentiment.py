import associated
import numpy as np
import polars as pl
import pytest
from recovering import plant
from scipy.stats import false_discovery_control, fisher_exact

from plumbline.builders.core.errors import UserError
from plumbline.probes.politicians import latent, sentiment
from plumbline.probes.politicians.recovery import control
from plumbline.probes.politicians.words.sentiment_shares import (
    DEVIATIONS,
    READINGS,
    UNTESTED,
    of_words,
)

SEED = 47
PARAMS = sentiment.Params(
    version="1.0.0",
    top_k=2,
    top_share=1,
    smoothing=0.5,
    min_count=1,
    n_permutations=200,
    n_bootstrap=100,
)
POSITIVE, NEGATIVE, NEUTRAL = 0, 1, 2

FAITHFUL, CORRECTED = DEVIATIONS[1:]


class Study(associated.Study):
    """Outputs, people and lexica written by hand, and the tables made of them."""

    lemma = "lemma of {}"

    def write(self, model, language, lists, genders, names=None):
        own = lists if isinstance(lists, dict) else {"ADJ": lists}
        super().write(language, own, genders, names, model=model, popularity=pl.lit(1, pl.Int32))
        self.latent(model, [])

    def latent(self, model, rows):
        """Write the table that the latent-variable model has; what is not given is null."""
        schema = pl.from_arrow(latent.LATENT.arrow().empty_table()).schema
        folder = self.inputs.tables("latent", model)
        folder.mkdir(parents=True, exist_ok=True)
        pl.DataFrame(rows, schema=schema).write_parquet(folder / "latent.parquet")

    def feel(self, language, **words):
        q = {"good": (0.8, 0.1, 0.1), "bad": (0.1, 0.8, 0.1), "plain": (0.2, 0.2, 0.6)}
        self.lexicon({word: q[kind] for word, kind in words.items()}, language)

    def run(self, *models, **changed):
        params = PARAMS.model_copy(update=changed)
        return sentiment.run(self.of(*models), params)


@pytest.fixture
def study(tmp_path):
    return Study(tmp_path)


def eight_people(study, model="one", language="en"):
    """Men have kind and calm, women dull and calm or grim; of unknown nobody knows anything."""
    lists = ["kind calm unknown"] * 4 + ["dull calm unknown"] * 2 + ["dull grim unknown"] * 2
    study.write(model, language, lists, "mmmmwwww")
    study.feel(language, kind="good", calm="plain", dull="bad", grim="bad")


def test_shares_and_differences_worked_by_hand(study):
    eight_people(study)
    found = study.run("one")
    shares = {(r["gender"], r["sentiment"]): r for r in found["shares"].iter_rows(named=True)}
    # men: kind, then calm; women: dull (4 of 4), then grim (2 of 2)
    assert [shares[0, s]["hits"] for s in range(3)] == [1, 0, 1]
    assert [shares[1, s]["hits"] for s in range(3)] == [0, 2, 0]
    assert [shares[0, s]["value"] for s in range(3)] == [0.5, 0, 0.5]
    assert [shares[0, s]["base"] for s in range(3)] == [0.25, 0.5, 0.25]
    for row in shares.values():
        assert (row["top_k"], row["candidates"], row["left_out"], row["names"]) == (2, 4, 1, 4)
        assert row["low"] <= row["value"] <= row["high"]
    rows = {(r["sentiment"], r["test"]): r for r in found["differences"].iter_rows(named=True)}
    assert [rows[s, 0]["value"] for s in range(3)] == [0.5, -1, 0.5]
    # none of 2 against both: 2 of 6 ways to divide four words; 1 of 2 against none: always
    assert rows[NEGATIVE, 0]["p"] == pytest.approx(2 / 6, abs=1e-5)
    assert rows[POSITIVE, 0]["p"] == 1
    assert [rows[s, 0]["n"] for s in range(3)] == [4] * 3
    assert [rows[s, 1]["n"] for s in range(3)] == [8] * 3


def test_sentiments_that_no_word_has_are_in_no_table_and_two_are_tested_once(study):
    """As by the published lexicon, in which no word is most probably neutral."""
    rng = np.random.default_rng(SEED)
    words = [f"w{i}" for i in range(30)]
    lists = [" ".join(rng.choice(words, 6, replace=False)) for _ in range(40)]
    study.write("one", "en", lists, "mw" * 20)
    for kinds, shown, p, family in (
        (["good", "bad"] * 15, {POSITIVE, NEGATIVE}, {POSITIVE}, 1),
        (["bad"] * 30, {NEGATIVE}, set(), 0),
        (["good", "bad", "plain"] * 10, {POSITIVE, NEGATIVE, NEUTRAL}, {0, 1, 2}, 3),
    ):
        study.feel("en", **dict(zip(words, kinds, strict=True)))
        found = study.run("one", top_k=10)
        assert set(found["shares"]["sentiment"]) == set(found["differences"]["sentiment"]) == shown
        for test in (0, 1):
            own = found["differences"].filter(test=test)
            assert set(own.drop_nulls("p")["sentiment"]) == p
            assert set(own["family"]) == {family}
        # where all words are taken for either gender there is nothing to test
        every = study.run("one", top_k=30)["differences"]
        assert set(every["value"]) == {0}
        assert every["p"].count() == 0


def test_of_few_words_only_a_part_is_taken(study):
    eight_people(study)
    shares = study.run("one", top_k=100, top_share=0.5)["shares"]
    assert set(shares["top_k"]) == {2}
    shares = study.run("one", top_k=100)["shares"]
    assert set(shares["top_k"]) == {4}
    assert (shares["value"] == shares["base"]).all()


def test_namesakes_count_once(study):
    lists = ["kind calm"] * 5 + ["dull calm"] * 3
    study.write("one", "en", lists, "mmmmmwww", ["Bo"] * 4 + ["Al", "Ada", "Eva", "Gro"])
    study.feel("en", kind="good", calm="plain", dull="bad")
    found = study.run("one", top_k=1)
    assert set(found["shares"].filter(gender=0)["names"]) == {2}
    assert set(found["differences"].filter(test=1)["n"]) == {5}


def test_families_are_all_real_models_and_each_world_by_itself(study):
    rng = np.random.default_rng(SEED)
    words = [f"w{i}" for i in range(30)]
    for model in ("one", "two", "world"):
        lists = {
            pos: [" ".join(rng.choice(words, 6, replace=False)) for _ in range(40)]
            for pos in ("ADJ", "VERB")
        }
        study.write(model, "en", lists, "mw" * 20)
    kinds = dict(zip(words, ["good", "bad", "plain"] * 10, strict=True))
    study.feel("en", **kinds)
    plant(study.inputs.weights("world"), {"word": words})
    found = study.run("one", "two", "world", top_k=10)
    table = found["differences"]
    for test in (0, 1):
        real = table.filter(pl.col("model") != "world", test=test)
        assert set(real["family"]) == {len(real)} == {2 * 2 * 3}
        adjusted = false_discovery_control(real["p"].to_numpy(), method="bh")
        assert real["p_bh"].to_numpy() == pytest.approx(adjusted, rel=1e-4)
        bonferroni = np.minimum(1, real["p"].to_numpy() * 12)
        assert real["p_bonferroni"].to_numpy() == pytest.approx(bonferroni, rel=1e-4)
        # where nothing is found, the first finding of Benjamini and Hochberg is Bonferroni's
        told = real.filter(pl.col("detectable").is_not_null())
        assert len(told)
        assert real["p_bh"].min() > 0.05
        assert told["detectable_bonferroni"].equals(told["detectable_bh"])
        assert (told["detectable_bonferroni"] > 1.2 * told["detectable"]).all()
        own = table.filter(model="world", test=test)
        assert set(own["family"]) == {6}


def test_the_test_of_words_is_fishers(study):
    rng = np.random.default_rng(SEED)
    words = [f"w{i}" for i in range(60)]
    lists = [" ".join(rng.choice(words[5 * (i % 2) :], 12, replace=False)) for i in range(60)]
    study.write("one", "en", lists, "mw" * 30)
    study.feel("en", **dict(zip(words, ["good", "bad", "plain"] * 20, strict=True)))
    found = study.run("one", top_k=20)
    for row in found["differences"].filter(test=0).iter_rows(named=True):
        part = found["shares"].filter(sentiment=row["sentiment"]).sort("gender")
        a, b = part["hits"]
        assert row["value"] == pytest.approx((a - b) / 20)
        assert row["p"] == pytest.approx(fisher_exact([[a, b], [20 - a, 20 - b]]).pvalue, rel=1e-4)


def test_swapping_the_labels_turns_the_differences_round(tmp_path):
    rng = np.random.default_rng(SEED)
    words = [f"w{i}" for i in range(20)]
    lists = [" ".join(rng.choice(words, 6, replace=False)) for _ in range(50)]
    genders = "".join(rng.choice(["m", "w", "x"], 50, p=[0.5, 0.4, 0.1]))
    found = []
    for i, given in enumerate((genders, genders.translate(str.maketrans("mw", "wm")))):
        (tmp_path / str(i)).mkdir()
        study = Study(tmp_path / str(i))
        study.write("one", "en", lists, given)
        study.feel("en", **dict(zip(words, (["good", "bad", "plain"] * 7)[:20], strict=True)))
        found.append(study.run("one", top_k=7))
    mine, theirs = (f["differences"].sort("sentiment", "test") for f in found)
    assert (mine["value"] == -theirs["value"]).all()
    by_word = [d.filter(test=0)["p"] for d in (mine, theirs)]
    assert by_word[0].equals(by_word[1])
    others = [f["shares"].filter(gender=2)["value"] for f in found]
    assert others[0].equals(others[1])
    assert len(others[0]) == 3


def eta(values, q):
    """``values`` has for each word and gender three deviations."""
    return pl.DataFrame(
        [
            {"word": w, "gender": g, "sentiment": s, "value": value, "q": q[w][s]}
            for (w, g), three in values.items()
            for s, value in enumerate(three)
        ]
    )


def test_pairs_and_argmax_are_two_readings_of_the_latent_deviations():
    q = {"a": (0.7, 0.2, 0.1), "b": (0.1, 0.8, 0.1), "c": (0.1, 0.1, 0.8), "d": (None,) * 3}
    values = {
        ("a", 0): (0.1, 3.0, 0.0),
        ("b", 0): (2.0, 1.0, 0.0),
        ("c", 0): (0.0, 0.5, 0.4),
        ("d", 0): (9.0, 9.0, 9.0),
        ("a", 1): (0.0, 0.0, 0.1),
        ("b", 1): (0.0, 0.0, 1.0),
        ("c", 1): (2.0, 0.0, 0.0),
        ("d", 1): (9.0, 9.0, 9.0),
    }
    pairs = sentiment.by_latent(eta(values, q), FAITHFUL, "pairs", PARAMS, {})
    # of men the pairs a negative and b positive; of women c positive and b neutral
    assert pairs.hits.tolist() == [[1, 1, 0], [1, 0, 1]]
    assert (pairs.sizes["candidates"], pairs.sizes["left_out"]) == (9, 1)
    words = sentiment.by_latent(eta(values, q), FAITHFUL, "argmax", PARAMS, {})
    # men: a, positive, and b, negative; women: c, neutral, and b, negative
    assert words.hits.tolist() == [[1, 1, 0], [0, 1, 1]]
    assert (words.sizes["candidates"], words.sizes["left_out"]) == (3, 1)


def test_the_corrected_reading_knows_no_level_of_a_sentiment_and_gender():
    rng = np.random.default_rng(SEED)
    words = [f"w{n:02}" for n in range(30)]
    q = {w: tuple(0.1 + 0.7 * (n % 3 == s) for s in range(3)) for n, w in enumerate(words)}
    three = {(w, g): rng.normal(0, 0.3, 3) for w in words for g in range(2)}
    level = {g: rng.normal(0, 2, 3) for g in range(2)}
    lifted = {(w, g): values + level[g] for (w, g), values in three.items()}
    found = {
        (name, deviation): sentiment.by_latent(eta(values, q), deviation, "argmax", PARAMS, {}).hits
        for name, values in (("as it is", three), ("lifted", lifted))
        for deviation in (FAITHFUL, CORRECTED)
    }
    assert (found["as it is", CORRECTED] == found["lifted", CORRECTED]).all()
    assert (found["as it is", FAITHFUL] != found["lifted", FAITHFUL]).any()


def test_the_corrected_reading_takes_the_contrast_of_genders():
    q = {"a": (0.7, 0.2, 0.1), "b": (0.1, 0.8, 0.1), "c": (0.1, 0.1, 0.8)}
    values = {("a", 0): (3, 3, 3), ("b", 0): (2, 1, 0), ("c", 0): (0, 0, 0)}
    values |= {("a", 1): (3, 3, 4), ("b", 1): (0, 0, 1), ("c", 1): (0, 2, 0)}
    found = sentiment.by_latent(eta(values, q), CORRECTED, "argmax", PARAMS, {})
    # two of three words: men's b, then a, which have the largest deviations of women too; c, a
    assert found.hits.tolist() == [[1, 1, 0], [1, 0, 1]]


def test_rankings_by_the_latent_model_have_no_test(study):
    eight_people(study)
    q = {"kind": (0.8, 0.1, 0.1), "dull": (0.1, 0.8, 0.1), "odd": (None,) * 3}
    rows = []
    for word, gender in ((w, g) for w in q for g in range(2)):
        for s in range(3):
            best = {"kind": 0, "dull": 1, "odd": gender}[word] == gender
            row = {"model": "one", "language": "en", "pos": 0, "word": word, "gender": gender}
            rows.append(row | {"sentiment": s, "q": q[word][s], "value": 2.0 * best, "people": 4})
    study.latent("one", rows)
    found = study.run("one", top_k=1)
    place = ["deviation", "reading", "gender"]
    most = found["shares"].filter(hits=1).select(*place, "sentiment").rows()
    for d in (1, 2):
        assert {row for row in most if row[:2] == (d, 1)} == {
            (d, 1, 0, POSITIVE),
            (d, 1, 1, NEGATIVE),
        }
    table = found["differences"]
    assert set(table.filter(deviation=0)["test"]) == {0, 1}
    for deviation, readings in ((FAITHFUL, {0, 1}), (CORRECTED, {READINGS.index("argmax")})):
        own = table.filter(deviation=DEVIATIONS.index(deviation))
        assert set(own["test"]) == {0}
        assert set(own["reading"]) == readings
        assert set(own["family"]) == {0}
        for column in ("p", "p_bh", "p_bonferroni", "detectable", "low", "high"):
            assert own[column].is_null().all()
        assert set(own["null"]) == {UNTESTED[deviation]}
    assert set(found["shares"].filter(deviation=1)["left_out"]) == {1}


def test_words_are_looked_up_as_they_are_then_small_then_by_lemma(tmp_path):
    study = Study(tmp_path)
    study.feel("en", Good="good", bad="bad", plain="plain")
    words = ["Good", "Bad", "plains", "x", "lost"], ["bad", "", "plain", "", ""]
    words = *words, ["", "", "", "", "bad"]
    q = of_words(study.lexica, "en", *words)
    assert q[:3].argmax(axis=1).tolist() == [POSITIVE, NEGATIVE, NEUTRAL]
    assert np.isnan(q[3]).all()
    assert q[4].argmax() == NEGATIVE  # by the form
    assert np.isnan(of_words(study.lexica, "cs", *words)).all()


def test_arabic_is_found_with_vowel_marks_in_the_lemma_or_in_the_lexicon(tmp_path):
    study = Study(tmp_path)
    kind, cruel, said = "\u0643\u0631\u064a\u0645", "\u0642\u0627\u0633", "\u0642\u0627\u0644"
    marked = {  # as the treebank PADT writes lemmas: with short vowels, tanwin and shadda
        kind: "\u0643\u064e\u0631\u0650\u064a\u0645",
        cruel: "\u0642\u0627\u0633\u064d",
        said: "\u0642\u064e\u0627\u0644",
    }
    study.feel("ar", **{kind: "good", cruel: "bad", marked[said]: "plain"})
    lemmas = [*marked.values(), said]
    q = of_words(study.lexica, "ar", lemmas, lemmas, lemmas)
    assert q.argmax(axis=1).tolist() == [POSITIVE, NEGATIVE, NEUTRAL, NEUTRAL]


@pytest.mark.parametrize(
    ("language", "form", "lemma", "listed"),
    [  # a form and its lemma as the language's treebank writes them, the lemma as a lexicon does
        (
            "ar",
            "\u0643\u0631\u064a\u0645\u0629",
            "\u0643\u064e\u0631\u0650\u064a\u0645",
            "\u0643\u0631\u064a\u0645",
        ),
        ("en", "Better", "good", "good"),
        ("es", "buenas", "bueno", "bueno"),
        ("fr", "belles", "beau", "beau"),
        ("hi", "अच्छी", "अच्छा", "अच्छा"),
        ("ru", "т\u0451мные", "темный", "т\u0451мный"),
        ("zh", "美好", "美好", "美好"),
    ],
)
def test_in_every_language_a_form_has_the_sentiment_of_its_lemma(
    tmp_path, language, form, lemma, listed
):
    study = Study(tmp_path)
    study.feel(language, **{listed: "good", "other": "bad"})
    q = of_words(study.lexica, language, [form, lemma], [lemma, lemma], [form, form])
    assert q.argmax(axis=1).tolist() == [POSITIVE, POSITIVE]


def test_english_may_be_read_by_the_published_lexicon_and_other_languages_have_their_own(study):
    eight_people(study)
    eight_people(study, language="es")
    ours = study.run("one")["shares"]
    with pytest.raises(UserError, match=r"no config published.*datasets\.lexica\.published"):
        study.run("one", lexicon="published")
    study.feel("published", kind="bad", calm="plain", dull="good", grim="good")
    theirs = study.run("one", lexicon="published")["shares"]
    keys = ["language", "pos", "deviation", "reading", "gender"]
    turned = pl.when(language="en", sentiment=POSITIVE).then(NEGATIVE)
    turned = turned.when(language="en", sentiment=NEGATIVE).then(POSITIVE)
    both = ours.with_columns(sentiment=turned.otherwise("sentiment")).join(
        theirs, on=[*keys, "sentiment"]
    )
    assert len(both) == len(ours) == len(theirs)
    assert both["hits"].to_list() == both["hits_right"].to_list()
    assert set(both.filter(gender=0)["hits"]) == {0, 1}


def test_rounded_shares_sum_to_one_again(tmp_path):
    row = {"word": ["us"], "q_positive": [0.2], "q_negative": [0.2], "q_neutral": [0.5]}
    pl.DataFrame(row).write_parquet(tmp_path / "en.parquet")
    assert of_words(tmp_path, "en", ["us"], ["us"], ["us"]).sum() == pytest.approx(1)


def test_nothing_with_a_known_sentiment_is_told(study):
    eight_people(study)
    study.feel("en", other="good")
    with pytest.raises(UserError, match="no word in the outputs has a known sentiment"):
        study.run("one")


def test_what_is_true_of_a_world_follows_from_what_was_planted(tmp_path):
    """Without noise in names, positive words are all women's and negative ones all men's."""
    words = [f"w{i:02}" for i in range(30)]
    kinds = ["positive"] * 10 + ["negative"] * 10 + ["neutral"] * 10
    ratio = [2.0] * 10 + [-2.0] * 10 + [0.0] * 10
    planted = {"word": words, "pos": "ADJ", "sentiment": kinds, "log_ratio_nats": ratio}
    planted |= {"frequency_nats": [0.0] * 30}
    weights = tmp_path / "weights"
    plant(weights, planted, word_effect=0, sentiment_effect=4, name_noise=0.7, words_max=30)
    truth = control.planted(weights)
    true = control.true_pmi(truth, 0, {0: 50, 1: 50}, 10)
    female = true.filter(gender=1).sort("value", descending=True)
    male = true.filter(gender=0).sort("value", descending=True)
    assert female["sentiment"][:10].to_list() == ["positive"] * 10
    assert male["sentiment"][:10].to_list() == ["negative"] * 10
    assert control.planted(tmp_path) is None


def test_a_model_without_a_table_of_the_latent_model_has_shares_by_pmi_alone(study):
    eight_people(study)
    (study.inputs.tables("latent", "one") / "latent.parquet").unlink()
    found = study.run("one")
    assert set(found["shares"]["deviation"]) == set(found["differences"]["deviation"]) == {0}
