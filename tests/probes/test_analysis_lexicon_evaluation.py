"""Lexica against labelled texts: known answers, planted words, and texts that say nothing."""

import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import false_discovery_control

from plumbline.builders.core import parquet
from plumbline.builders.core.errors import UserError
from plumbline.builders.datasets.labelled_texts import build as labelled_texts
from plumbline.builders.datasets.labelled_texts.build import LABELS, SPLITS
from plumbline.builders.datasets.lexica import build as lexica
from plumbline.probes.core.run_analysis import Inputs
from plumbline.probes.politicians import lexicon_evaluation
from plumbline.probes.politicians.lexicon_evaluation import (
    MEASURES,
    classify,
    cuts,
    mean_scores,
    predict,
    scores,
    words,
)

SEED = 23
PARAMS = lexicon_evaluation.Params(version="1.0.0", n_bootstrap=200, n_permutations=999)
# word: q of positive and negative, and what the views say
WORDS = {
    "good": (0.7, 0.1, {"a": 0.6, "b": 1.0}),
    "bad": (0.1, 0.7, {"a": -0.6, "b": -1.0}),
    "green": (0.2, 0.2, {"a": 0.0}),
    "odd": (0.5, 0.2, {"b": 0.4}),
    "zebra": (0.3, 0.3, {"c": 0.1}),
}
TUNING = {
    "positive": ["good 1", "good 2", "good 3"],
    "negative": ["bad 1", "bad 2", "bad 3"],
    "neutral": ["green 1", "green 2", "green 3", "green 4"],
}
TESTING = {
    "positive": ["good 5", "good 6", "odd 1", "green 5"],
    "negative": ["bad 5", "bad 6", "nothing 1", "good 7"],
    "neutral": ["green 6", "something 1"],
}


def write_lexica(words, folder=Path("data/datasets/lexica"), language="en"):
    rows = []
    for word, (positive, negative, views) in sorted(words.items()):
        q = (positive, negative, 1 - positive - negative)
        mass = 3 + len(views)
        values = {
            "word": word,
            "pos": [],
            **{f"beta_{a}": mass * x for a, x in zip(lexica.AXES, q, strict=True)},
            **{f"q_{a}": x for a, x in zip(lexica.AXES, q, strict=True)},
            "views": len(views),
            "score": sum(views.values()) / max(1, len(views)),
            "seed_sd": None,
            "leave_out_change": None,
            "view_names": sorted(views),
            "view_values": [str(views[name]) for name in sorted(views)],
            "view_scores": [views[name] for name in sorted(views)],
            "redistributable": True,
        }
        rows.append(parquet.Row(language, values))
    parquet.write(rows, lexica.SCHEMA, folder)
    parquet.finish(folder)
    return folder


def write_texts(tuning, testing, folder=Path("data/datasets/labelled_texts"), **changes):
    rows = []
    for split, texts in (("tuning", tuning), ("testing", testing)):
        for label, found in texts.items():
            for text in found:
                values = {"text": text, "label": LABELS.index(label), "source": "mine"}
                values |= {"split": SPLITS.index(split), "redistributable": True}
                rows.append(parquet.Row("en", values | changes))
    parquet.write(rows, labelled_texts.SCHEMA, folder)
    parquet.finish(folder)
    return folder


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(words=WORDS, tuning=TUNING, testing=TESTING, params=PARAMS):
    folders = {"lexica": write_lexica(words), "labelled_texts": write_texts(tuning, testing)}
    return lexicon_evaluation.run(Inputs((), folders), params)


def row(table, lexicon, measure):
    (found,) = table.filter(lexicon=lexicon, measure=measure).iter_rows(named=True)
    return found


def test_scores_combination_plain_mean_and_views(place):
    found = scores(write_lexica(WORDS), "en")
    assert list(found) == ["combination", "plain mean", "a", "b", "c"]
    assert found["combination"] == pytest.approx(
        {"good": 0.6, "bad": -0.6, "green": 0, "odd": 0.3, "zebra": 0}
    )
    assert found["plain mean"] == pytest.approx(
        {"good": 0.8, "bad": -0.8, "green": 0, "odd": 0.4, "zebra": 0.1}
    )
    assert found["a"] == {"good": 0.6, "bad": -0.6, "green": 0}
    assert found["b"] == {"good": 1, "bad": -1, "odd": 0.4}
    assert found["c"] == {"zebra": 0.1}


def test_run_published_combination(place):
    texts = write_texts(TUNING, TESTING)
    theirs = {"good": (0.6, 0.2, {}), "bad": (0.1, 0.8, {}), "nothing": (0.8, 0.1, {})}
    other = write_lexica(theirs, Path("other"), "published")
    folder = write_lexica(WORDS)
    (other / "published.parquet").rename(folder / "published.parquet")
    found = lexicon_evaluation.run(Inputs((), {"lexica": folder, "labelled_texts": texts}), PARAMS)
    # right: good 5 and 6, bad 5 and 6, green 6 and something 1; nothing 1 is known to it alone
    own = row(found["agreement"], "published", "accuracy")
    assert own["value"] == 0.6
    less = row(found["differences"], "published", "accuracy")
    ours = row(found["agreement"], "combination", "accuracy")
    assert less["value"] == pytest.approx(ours["value"] - 0.6)


def test_run_ten_texts_worked_by_hand(place):
    # view a knows good, bad and green: it calls `odd 1` neutral, with both texts of no word.
    # Right: 2 of 4 positive, 2 of 4 negative, both neutral; given: 3, 2 and 5
    found = run()["agreement"]
    accuracy, f1 = (row(found, "a", measure) for measure in MEASURES)
    assert accuracy["value"] == pytest.approx(6 / 10)
    assert f1["value"] == pytest.approx((4 / 7 + 4 / 6 + 4 / 7) / 3, abs=1e-6)
    assert accuracy["chance"] == pytest.approx((4 * 3 + 4 * 2 + 2 * 5) / 100)
    assert f1["chance"] == pytest.approx((2.4 / 7 + 1.6 / 6 + 2 / 7) / 3, abs=1e-6)
    assert accuracy["n"] == 10
    assert -0.6 < accuracy["negative_below"] <= 0 <= accuracy["positive_above"] < 0.6
    assert accuracy["low"] < 0.6 < accuracy["high"]
    # 4 texts are right with it alone, none with `neutral` for all: 2 / 2^4
    assert accuracy["p"] == pytest.approx(0.125)
    assert accuracy["detectable"] > 0
    whole = row(found, "combination", "macro-F1")
    assert whole["value"] == pytest.approx((6 / 8 + 4 / 6 + 4 / 6) / 3, abs=1e-6)
    tested = found.drop_nulls("p")
    assert len(tested) == 8
    adjusted = false_discovery_control(tested["p"].to_numpy())
    assert tested["p_bh"].to_numpy() == pytest.approx(adjusted)


def test_run_baseline_is_the_majority_of_tuning_texts(place):
    found = run()["agreement"]
    accuracy, f1 = (row(found, "majority class", m) for m in MEASURES)
    assert (accuracy["value"], f1["value"]) == (0.2, pytest.approx(4 / 12 / 3, abs=1e-6))
    assert (accuracy["chance"], f1["chance"]) == (accuracy["value"], f1["value"])
    assert (accuracy["p"], accuracy["p_bh"]) == (None, None)


def test_run_differences_are_on_the_same_texts(place):
    found = run()["differences"]
    assert set(found["lexicon"]) == {"plain mean", "a", "b"}
    # it has one text more than a, and none more than b, which knows the same but green
    accuracy, f1 = (row(found, "a", measure) for measure in MEASURES)
    assert accuracy["value"] == pytest.approx(0.1)
    assert f1["value"] == pytest.approx(0.75 / 3 + 4 / 9 - (8 / 7 + 2 / 3) / 3, abs=1e-6)
    assert (accuracy["p"], f1["p"]) == (1, 1)
    assert row(found, "b", "macro-F1")["value"] == 0


def test_run_view_without_words_in_tuning_texts(place):
    found = run()
    for measure in MEASURES:
        one = row(found["agreement"], "c", measure)
        assert (one["value"], one["p"], one["chance"]) == (None, None, None)
    assert "c" not in set(found["differences"]["lexicon"])


@pytest.mark.parametrize("changed", [{"words": {"zebra": WORDS["zebra"]}}, {"testing": {}}])
def test_run_refuses(place, changed):
    with pytest.raises(UserError):
        run(**changed)


def test_run_language_without_lexica(place):
    folders = {"lexica": write_lexica(WORDS, language="fr")}
    folders["labelled_texts"] = write_texts(TUNING, TESTING)
    with pytest.raises(UserError, match="'en'"):
        lexicon_evaluation.run(Inputs((), folders), PARAMS)


def test_run_sample_sentences_beat_the_majority(built):
    folders = {name: built / "data/datasets" / name for name in lexicon_evaluation.DATASETS}
    table = lexicon_evaluation.run(Inputs((), folders), PARAMS)["agreement"]
    dealt, table = table.filter(source="sentences-null"), table.filter(source="sentences")
    assert dealt["p_bh"].min() > 0.05
    assert {"classes", "degrees", "poles", "shares"} < set(table["lexicon"])
    base = table.filter(lexicon="majority class")
    assert base["value"].to_list() == pytest.approx([1 / 3, 1 / 6], abs=1e-6)
    assert (table.filter(lexicon="combination")["low"] > base["high"]).all()


LEXICON = {"good": 1.0, "fine": 0.5, "bad": -1.0, "well-made": 1.0, "table": 0.0}


def test_mean_scores_any_case_and_punctuation():
    texts = ["GOOD food, fine table!", "A well-made bad one", "nothing here", ""]
    found = mean_scores([words(text, "en") for text in texts], LEXICON)
    assert found[:2].tolist() == [0.5, 0.0]
    assert np.isnan(found[2:]).all()


def test_cuts_part_what_can_be_parted():
    values = np.array([-0.9, -0.8, -0.7, -0.1, 0.0, 0.2, 0.7, 0.8, 0.9])
    labels = np.repeat([0, 1, 2], 3)
    assert classify(values, *cuts(values, labels)).tolist() == labels.tolist()
    assert classify(np.array([np.nan, -0.5, 0.5, 0.0]), -0.1, 0.1).tolist() == [1, 0, 2, 1]


def test_predict_corpus_without_neutral_texts():
    known, others = [["good"], ["good"], ["bad"]], [["table"], [], ["good"], ["bad"]]
    labels = np.array([2, 2, 0])
    # both texts without praise or blame get the more frequent label
    assert predict((known, labels), others, LEXICON)[1].tolist() == [2, 2, 2, 0]
    mixed = ([*known, ["table"]], np.array([2, 2, 0, 1]))
    assert predict(mixed, others, LEXICON)[1].tolist() == [1, 1, 2, 0]


CHINESE = "今天天气很好，他好像不太高兴。"


@pytest.mark.parametrize(
    ("language", "text", "wanted"),
    [
        # vowel signs, a nukta and a joiner are parts of their words
        ("hi", "मुझे यह फ़िल्म बहुत अच्छी लगी।", "मुझे यह फ़िल्म बहुत अच्छी लगी"),
        ("hi", "क्‍या किताब ज़रूरी है?", "क्‍या किताब ज़रूरी है"),
        ("ar", "الفندقُ جميلٌ جدًّا، شكرًا!", "الفندقُ جميلٌ جدًّا شكرًا"),
        ("ru", "Кто-то ОЧЕНЬ рад: ёлка!", "кто-то очень рад ёлка"),
        ("es", "¿Qué tal? Muy bien-hecho…", "qué tal muy bien-hecho"),
        ("fr", "Aujourd'hui j’ai vu l'île qu'il aime.", "aujourd'hui j ai vu l île qu il aime"),
        ("en", "It's a well-made film - isn't it? :)", "it's a well-made film isn't it"),
    ],
)
def test_words_of_languages_with_spaces(language, text, wanted):
    assert words(text, language) == wanted.split()


def test_words_of_chinese_are_those_of_a_dictionary():
    # 好 (good) is in 好像 (seem), and is no word there
    assert words(CHINESE, "zh") == ["今天", "天气", "很好", "他", "好像", "不太", "高兴"]
    # what is cut already stays cut
    assert words("AP 好 任性", "zh") == ["ap", "好", "任性"]


def test_without_the_cutter_chinese_is_refused_with_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "icu4py.breakers", None)
    with pytest.raises(UserError, match=r"'zh'.*pip install 'plumbline\[segmentation\]'"):
        words(CHINESE, "zh")
