from __future__ import annotations

import pytest
from samples import FACTS, oxigraph


@pytest.fixture(scope="session")
def endpoint():
    """A real SPARQL engine over the sample facts."""
    with oxigraph(*FACTS) as address:
        yield address
