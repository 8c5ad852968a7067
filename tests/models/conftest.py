"""Fixtures of the tests of models."""

from functools import cache

import pytest
import torch
from models import tiny_special
from models.tiny import save
from models.tiny_causal import MADE
from models.tiny_encoders import ENCODERS, build


@pytest.fixture(autouse=True, scope="session")
def one_thread():
    """Use one thread: models as small as these lose more by waiting than they gain."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """Return a function that makes the folder of a causal model, encoder-decoder or classifier."""

    @cache
    def make(kind, **options):
        build, tokenizer = MADE[kind]
        own = tokenizer()
        return save(tmp_path_factory.mktemp(kind), build(own, **options), own)

    return make


@pytest.fixture(scope="session")
def special(tmp_path_factory):
    """Return a function that makes the folder of a model that must be told more than the tokens."""
    return cache(lambda name: tiny_special.saved(name, tmp_path_factory.mktemp(name)))


@pytest.fixture(scope="session", params=ENCODERS)
def encoder(request):
    """Return one architecture after the other."""
    return ENCODERS[request.param]


@pytest.fixture(scope="session")
def saved(encoder, tmp_path_factory):
    """Return a folder with a model of that architecture, with random weights."""
    return save(tmp_path_factory.mktemp(encoder.name), *build(encoder))
