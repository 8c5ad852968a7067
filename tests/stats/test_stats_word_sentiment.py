from __future__ import annotations

import numpy as np
import pytest

from plumbline.probes.politicians.lexicon_evaluation import (
    classify,
    cuts,
    evaluate,
    majority,
    mean_scores,
)

LEXICON = {"good": 1.0, "fine": 0.5, "bad": -1.0, "well-made": 1.0, "table": 0.0}


def test_only_words_of_the_lexicon_count_in_any_case_and_punctuation():
    texts = ["GOOD food, fine table!", "A well-made bad one", "nothing here", ""]
    found = mean_scores(texts, LEXICON)
    assert found[:2].tolist() == [0.5, 0.0]
    assert np.isnan(found[2:]).all()


def test_texts_without_a_known_word_are_neutral():
    assert classify(np.array([np.nan, -0.5, 0.5, 0.0]), -0.1, 0.1).tolist() == [1, 0, 2, 1]


def test_cuts_part_what_can_be_parted():
    scores = np.array([-0.9, -0.8, -0.7, -0.1, 0.0, 0.2, 0.7, 0.8, 0.9])
    labels = np.repeat([0, 1, 2], 3)
    assert classify(scores, *cuts(scores, labels)).tolist() == labels.tolist()


def texts(seed: int, number: int):
    draw = np.random.default_rng(seed)
    labels = draw.integers(0, 3, number)
    words = [["bad", "awful"], ["table", "chair"], ["good", "lovely"]]
    chosen = [" ".join(draw.choice([*words[label], "the", "of"], 6)) for label in labels]
    return chosen, labels


def test_a_lexicon_that_knows_more_does_better_and_the_difference_says_so():
    whole = {"bad": -1, "awful": -1, "table": 0, "chair": 0, "good": 1, "lovely": 1}
    half = {"bad": -1, "good": 1}
    whole_one, half_one = evaluate(
        texts(1, 200), texts(2, 400), {"whole": whole, "half": half}, bootstrap=200
    )
    assert whole_one.agreement.accuracy.value > 0.95
    assert whole_one.covered > half_one.covered
    assert half_one.first_less_this.accuracy.low > 0
    assert half_one.first_less_this.p < 0.001
    assert whole_one.first_less_this is None
    assert whole_one.less_majority.accuracy.low > 0.5
    assert whole_one.chance.accuracy == pytest.approx(1 / 3, abs=0.03)


def test_the_majority_is_the_first_of_equally_frequent_labels():
    assert majority(np.array([2, 1, 1, 2, 0])) == 1
    assert majority(np.array([2, 2, 0])) == 2


def test_a_lexicon_without_any_word_of_the_texts_is_told():
    with pytest.raises(ValueError, match="no text has a word"):
        evaluate(texts(1, 5), texts(2, 5), {"other": {"xyzzy": 1.0}})
