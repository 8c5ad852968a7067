from __future__ import annotations

import pytest
from samples import FACTS, make, oxigraph


@pytest.fixture(scope="session")
def endpoint():
    """A real SPARQL engine over the sample facts."""
    with oxigraph(*FACTS) as address:
        yield address


@pytest.fixture(scope="session")
def made(once):
    """All samples, made anew by the real clients; not to be changed."""
    return once("samples", make)
