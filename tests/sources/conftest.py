import os

import pytest
from samples import FACTS, make, oxigraph


@pytest.fixture(scope="session", autouse=True)
def _no_waiting_for_the_disk():
    """Files of tests need not outlive a power cut; half of the time went into that."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        yield


@pytest.fixture(scope="session")
def endpoint():
    """A real SPARQL engine over the sample facts."""
    with oxigraph(*FACTS) as address:
        yield address


@pytest.fixture(scope="session")
def made(once):
    """All samples, made anew by the real clients; not to be changed."""
    return once("samples", make)
