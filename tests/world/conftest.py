"""Fixtures of the tests of the planted world."""

import pytest
from world.country import ADJECTIVES, FIRST, LAST, VERBS, classes, lexicon, people, put, sentiments

from plumbline.builders.datasets.lexica import build as lexica
from plumbline.builders.datasets.politicians import build as politicians
from plumbline.builders.datasets.supersenses import build as supersenses
from plumbline.builders.datasets.words import build as words


@pytest.fixture
def country(tmp_path, monkeypatch):
    """Change to a folder with the small datasets, and return it."""
    monkeypatch.chdir(tmp_path)
    names = [f"{first} {last}" for first in FIRST for last in LAST]
    put("politicians", politicians, list(people(names)))
    put("words", words, lexicon(ADJ=ADJECTIVES, VERB=VERBS))
    put("lexica", lexica, list(sentiments()))
    put("supersenses", supersenses, list(classes()))
    return tmp_path


@pytest.fixture
def settings():
    """Params of a world so small that it trains in a second."""
    return {
        "seed": 5,
        "word_effect": 0.8,
        "supersense_effect": 0,
        "sentiment_effect": 1.6,
        "name_noise": 0.8,
        "words_max": 10,
        "sentences": 200,
        "hidden": 32,
        "steps": 4,
        "learning_rate": 0.01,
    }
