"""What ``params.yaml`` says, parsed once for as long as it stays as it is."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from plumbline.builders.core import params
from plumbline.probes.core import assignments as lists


def tree() -> dict[str, Any]:
    """Return all of it."""
    return _tree(params.FILE.read_bytes())


def asked(name: str) -> tuple[str, ...]:
    """Return the models of a probe, or of an analysis of single models, sorted."""
    return _asked(params.FILE.read_bytes(), name)


@lru_cache(maxsize=1)
def _tree(_: bytes) -> dict[str, Any]:
    return params.read()


@lru_cache(maxsize=64)
def _asked(_: bytes, name: str) -> tuple[str, ...]:
    return lists.asked(name)
