"""Fixtures of the tests of models."""

import pytest
import torch


@pytest.fixture(autouse=True, scope="session")
def one_thread():
    """Use one thread: models as small as these lose more by waiting than they gain."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
