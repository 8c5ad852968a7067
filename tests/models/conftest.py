"""Fixtures of the tests of models."""

import pytest
import torch
from models.tiny import save
from models.tiny_encoders import ENCODERS, build


@pytest.fixture(autouse=True, scope="session")
def one_thread():
    """Use one thread: models as small as these lose more by waiting than they gain."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session", params=ENCODERS)
def encoder(request):
    """Return one architecture after the other."""
    return ENCODERS[request.param]


@pytest.fixture(scope="session")
def saved(encoder, tmp_path_factory):
    """Return a folder with a model of that architecture, with random weights."""
    return save(tmp_path_factory.mktemp(encoder.name), *build(encoder))
