"""Versioned datasets, probes and tables for measuring bias in language models.

>>> import plumbline
>>> result = plumbline.politicians("world-planted", language="en")  # doctest: +SKIP
>>> print(result.summary)  # doctest: +SKIP
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from plumbline.builders.core.errors import UserError
    from plumbline.comparing import compare
    from plumbline.reference import published
    from plumbline.result import Result
    from plumbline.studies import ask, leaning, nationality, politicians, stereotypes, values

__all__ = ["Result", "UserError", "ask", "compare", "leaning", "nationality", "politicians"]
__all__ += ["published", "stereotypes", "values"]
HOMES = {
    "Result": "plumbline.result",
    "UserError": "plumbline.builders.core.errors",
    "compare": "plumbline.comparing",
    "published": "plumbline.reference",
}


def __getattr__(name: str) -> Any:
    """Import a public name on first use, since `plumbline --help` does not need any of them."""
    if name not in __all__:
        raise AttributeError(f"module 'plumbline' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(HOMES.get(name, "plumbline.studies")), name)


def __dir__() -> list[str]:
    return sorted(__all__)
