"""Shares of sentiments: known answers, tests of words and of names, lookup in lexica."""

import associated
import numpy as np
import polars as pl
import pytest
from scipy.stats import false_discovery_control, fisher_exact

from plumbline.builders.core.errors import UserError
from plumbline.builders.datasets.lexica.build import SENTIMENTS
from plumbline.builders.datasets.politicians.person import GENDERS
from plumbline.probes.politicians import latent, sentiment
from plumbline.probes.politicians.words.sentiment_shares import DEVIATIONS, Lexicon, by_latent

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
POSITIVE, NEGATIVE, NEUTRAL = range(3)
FAITHFUL = DEVIATIONS[1]


class Study(associated.Study):
    """Outputs, people and lexica written by hand, and the tables made of them."""

    lemma = "lemma of {}"

    def write(self, model, language, lists, genders, names=None):
        own = lists if isinstance(lists, dict) else {"ADJ": lists}
        super().write(language, own, genders, names, model=model, popularity=pl.lit(1, pl.Int32))
        self.latent(model, [])

    def latent(self, model, rows):
        """Write the table that the latent-variable model has; what is not given is null."""
        schema = pl.from_arrow(latent.SCHEMAS["latent"].arrow().empty_table()).schema
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


def test_run_worked_by_hand(study):
    eight_people(study)
    found = study.run("one")
    shares = {(r["gender"], r["sentiment"]): r for r in found["shares"].iter_rows(named=True)}
    # men: kind, then calm; women: dull (4 of 4), then grim (2 of 2)
    assert [shares["male", s]["value"] for s in SENTIMENTS] == [0.5, 0, 0.5]
    assert [shares["female", s]["value"] for s in SENTIMENTS] == [0, 1, 0]
    assert [shares["male", s]["base"] for s in SENTIMENTS] == [0.25, 0.5, 0.25]
    for row in shares.values():
        assert (row["top_k"], row["candidates"], row["n"]) == (2, 4, 4)
        assert row["low"] <= row["value"] <= row["high"]
    rows = {(r["sentiment"], r["test"]): r for r in found["differences"].iter_rows(named=True)}
    assert [rows[s, "words"]["value"] for s in SENTIMENTS] == [0.5, -1, 0.5]
    # none of 2 against both: 2 of 6 ways to divide four words; 1 of 2 against none: always
    assert rows["negative", "words"]["p"] == pytest.approx(2 / 6, abs=1e-5)
    assert rows["positive", "words"]["p"] == 1
    assert [rows[s, "words"]["n"] for s in SENTIMENTS] == [4] * 3
    assert [rows[s, "names"]["n"] for s in SENTIMENTS] == [8] * 3


@pytest.mark.parametrize(
    ("kinds", "shown", "tested"),
    [
        (["good", "bad"], {"positive", "negative"}, {"positive"}),  # as in the published lexicon
        (["bad"], {"negative"}, set()),
        (["good", "bad", "plain"], set(SENTIMENTS), set(SENTIMENTS)),
    ],
)
def test_run_two_sentiments_are_tested_once(study, kinds, shown, tested):
    rng = np.random.default_rng(SEED)
    words = [f"w{i}" for i in range(30)]
    lists = [" ".join(rng.choice(words, 6, replace=False)) for _ in range(40)]
    study.write("one", "en", lists, "mw" * 20)
    study.feel("en", **dict(zip(words, kinds * (30 // len(kinds)), strict=True)))
    found = study.run("one", top_k=10)
    assert set(found["shares"]["sentiment"]) == set(found["differences"]["sentiment"]) == shown
    for test in ("words", "names"):
        rows = found["differences"].filter(test=test)
        assert set(rows.drop_nulls("p")["sentiment"]) == tested
    # where all words are taken for either gender there is nothing to test
    every = study.run("one", top_k=30)["differences"]
    assert set(every["value"]) == {0}
    assert every["p"].count() == 0


def test_run_families_are_real_models_and_each_world(study):
    rng = np.random.default_rng(SEED)
    words = [f"w{i}" for i in range(30)]
    for model in ("one", "two", "world"):
        lists = {
            pos: [" ".join(rng.choice(words, 6, replace=False)) for _ in range(40)]
            for pos in ("ADJ", "VERB")
        }
        study.write(model, "en", lists, "mw" * 20)
    study.feel("en", **dict(zip(words, ["good", "bad", "plain"] * 10, strict=True)))
    study.inputs.weights("world").mkdir(parents=True)
    (study.inputs.weights("world") / "world.json").write_text("{}", "utf-8")
    table = study.run("one", "two", "world", top_k=10)["differences"]
    for test in ("words", "names"):
        for model, number in (("one two", 12), ("world", 6)):
            rows = table.filter(pl.col("model").is_in(model.split()), test=test)
            p = rows["p"].to_numpy()
            assert len(rows) == number
            adjusted = false_discovery_control(p, method="bh")
            assert rows["p_bh"].to_numpy() == pytest.approx(adjusted, rel=1e-4)
    assert table["detectable"].count()


def test_run_test_of_words_is_fishers(study):
    rng = np.random.default_rng(SEED)
    words = [f"w{i}" for i in range(60)]
    lists = [" ".join(rng.choice(words[5 * (i % 2) :], 12, replace=False)) for i in range(60)]
    study.write("one", "en", lists, "mw" * 30)
    study.feel("en", **dict(zip(words, ["good", "bad", "plain"] * 20, strict=True)))
    found = study.run("one", top_k=20)
    for row in found["differences"].filter(test="words").iter_rows(named=True):
        part = found["shares"].filter(sentiment=row["sentiment"])
        a, b = (part.filter(gender=gender)["value"][0] * 20 for gender in ("male", "female"))
        assert row["value"] == pytest.approx((a - b) / 20)
        assert row["p"] == pytest.approx(
            fisher_exact(np.rint([[a, b], [20 - a, 20 - b]])).pvalue, rel=1e-4
        )


def test_run_published_lexicon_has_neutral_words(study):
    # in the released file, positive or negative is the largest q of every word
    released = {"good": (0.676, 0.1575, 0.1665), "new": (0.4289, 0.2786, 0.2925)}
    released["bad"] = (0.2845, 0.5035, 0.212)
    study.write("one", "en", ["good new"] * 4 + ["bad new"] * 4, "mmmmwwww")
    for config, lexicon, base in (
        ("en", "combined", {"positive": 0.666667, "negative": 0.333333}),
        ("published", "published", dict.fromkeys(SENTIMENTS, 0.333333)),
    ):
        study.lexicon(released, config)
        shares = study.run("one", lexicon=lexicon)["shares"].filter(gender="male")
        assert dict(shares.select("sentiment", "base").rows()) == base


def eta(values, q):
    """``values`` has for each word and gender three deviations."""
    return pl.DataFrame(
        [
            {"word": w, "gender": GENDERS[g], "sentiment": s, "value": value, "q": share}
            for (w, g), three in values.items()
            for s, value, share in zip(SENTIMENTS, three, q[w], strict=True)
        ]
    )


def test_by_latent_faithful_pairs_and_argmax():
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
    pairs = by_latent(eta(values, q), "pairs", PARAMS, {}, "en")
    # of men the pairs a negative and b positive; of women c positive and b neutral
    assert pairs.hits.tolist() == [[1, 1, 0], [1, 0, 1]]
    assert pairs.candidates == 9
    words = by_latent(eta(values, q), "argmax", PARAMS, {}, "en")
    # men: a, positive, and b, negative; women: c, neutral, and b, negative
    assert words.hits.tolist() == [[1, 1, 0], [0, 1, 1]]
    assert words.candidates == 3


def test_run_latent_rankings_have_no_test(study):
    eight_people(study)
    q = {"kind": (0.8, 0.1, 0.1), "dull": (0.1, 0.8, 0.1), "odd": (None,) * 3}
    rows = []
    for word, gender in ((w, g) for w in q for g in range(2)):
        best = {"kind": 0, "dull": 1, "odd": gender}[word] == gender
        row = {"model": "one", "language": "en", "pos": "ADJ", "word": word}
        row |= {"gender": GENDERS[gender], "value": 2.0 * best}
        rows += [row | {"sentiment": s, "q": x} for s, x in zip(SENTIMENTS, q[word], strict=True)]
    study.latent("one", rows)
    found = study.run("one", top_k=1)
    shares = (
        found["shares"]
        .filter(deviation=FAITHFUL, reading="argmax")
        .filter(pl.col("value") * pl.col("top_k") == 1)
    )
    assert set(shares.select("gender", "sentiment").rows()) == {
        ("male", "positive"),
        ("female", "negative"),
    }
    table = found["differences"]
    assert set(table.filter(deviation="pmi")["test"]) == {"words", "names"}
    part = table.filter(deviation=FAITHFUL)
    assert (set(part["test"]), set(part["reading"])) == ({"words"}, {"pairs", "argmax"})
    for column in ("p", "p_bh", "detectable", "low", "high"):
        assert part[column].is_null().all()
    (study.inputs.tables("latent", "one") / "latent.parquet").unlink()
    found = study.run("one")
    assert set(found["shares"]["deviation"]) == set(found["differences"]["deviation"]) == {"pmi"}


def spelt(*texts):
    return pl.DataFrame(dict(zip(("word", "lemma", "form"), texts, strict=True)))


def test_sentiments_looks_up_words_then_lemmas_then_forms(tmp_path):
    study = Study(tmp_path)
    study.feel("en", Good="good", bad="bad", plain="plain")
    words = spelt(
        ["Good", "Bad", "plains", "x", "lost"],
        ["bad", "", "plain", "", ""],
        ["", "", "", "", "bad"],
    )
    q = Lexicon().sentiments(study.lexica, "en", words)
    assert q[:3].argmax(axis=1).tolist() == [POSITIVE, NEGATIVE, NEUTRAL]
    assert np.isnan(q[3]).all()
    assert q[4].argmax() == NEGATIVE  # by the form
    assert np.isnan(Lexicon().sentiments(study.lexica, "cs", words)).all()
    row = {"word": ["us"], "q_positive": [0.2], "q_negative": [0.2], "q_neutral": [0.5]}
    pl.DataFrame(row).write_parquet(tmp_path / "en.parquet")
    q = Lexicon().sentiments(tmp_path, "en", spelt(["us"], ["us"], ["us"]))
    assert q.sum() == pytest.approx(1)


@pytest.mark.parametrize(
    ("language", "form", "lemma", "listed"),
    [  # a form and its lemma as the language's treebank writes them, the lemma as a lexicon does
        (
            "ar",  # the treebank has short vowels
            "\u0643\u0631\u064a\u0645\u0629",
            "\u0643\u064e\u0631\u0650\u064a\u0645",
            "\u0643\u0631\u064a\u0645",
        ),
        ("es", "buenas", "bueno", "bueno"),
        ("ru", "т\u0451мные", "темный", "т\u0451мный"),
    ],
)
def test_sentiments_form_has_the_sentiment_of_its_lemma(tmp_path, language, form, lemma, listed):
    study = Study(tmp_path)
    study.feel(language, **{listed: "good", "other": "bad"})
    words = spelt([form, lemma], [lemma, lemma], [form, form])
    q = Lexicon().sentiments(study.lexica, language, words)
    assert q.argmax(axis=1).tolist() == [POSITIVE, POSITIVE]


def test_run_no_known_sentiment(study):
    eight_people(study)
    study.feel("en", other="good")
    with pytest.raises(UserError, match="known sentiment"):
        study.run("one")
