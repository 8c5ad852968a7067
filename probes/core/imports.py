"""Fast start: transformers without the imports that loading a model does not need.

Where transformers finds accelerate and SciPy it imports them, for distributed models and for the
losses of object detection; torch imports its compiler and SymPy to decorate a function or to check
a condition. That took half of the time in which a small model was loaded. No output depends on it.
"""

from __future__ import annotations

import logging
import operator
import sys
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import torch


def _as_it_is(function: Any = None, *_: object, **__: object) -> Any:
    """Stand in for a decorator of the compiler, and for a check whose outcome is known."""
    return _as_it_is if function is None else function


STAND_INS: dict[str, dict[str, Any]] = {  # of what is read while a model loads and is trained
    "torch._dynamo": dict.fromkeys(
        ("disable", "allow_in_graph", "assume_constant_result", "graph_break"), _as_it_is
    ),
    "torch.fx.experimental.symbolic_shapes": {  # imports SymPy
        **dict.fromkeys(
            ("expect_true", "guard_or_false", "guard_or_true", "guard_size_oblivious"), _as_it_is
        ),
        "sym_eq": operator.eq,
        "is_nested_int": lambda size: isinstance(size, torch.SymInt) and size.node.is_nested_int(),
    },
}


class Later(ModuleType):
    """A module that is executed at the first access to an attribute that has no stand-in."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or self.__spec__ is None or self.__spec__.loader is None:
            raise AttributeError(name)
        for stand_in in STAND_INS[self.__name__]:
            delattr(self, stand_in)
        self.__class__ = ModuleType  # type: ignore[assignment]  # from now on the module itself
        self.__spec__.loader.exec_module(self)
        return getattr(self, name)


def lean() -> None:
    """Import transformers, unless it is imported already, without its optional dependencies.

    For commands: it changes what transformers does in the whole process. Where it fails, as with
    a version of torch or transformers that is built otherwise, all is put back, and transformers
    is imported as a whole when it is needed.
    """
    if "transformers" in sys.modules:
        return
    draw = torch.nn.Embedding.reset_parameters
    try:
        _stand_in()
        _without_optional()
    except Exception:  # whatever it is: this only saves time
        logging.getLogger(__name__).debug("the fast start failed", exc_info=True)
        torch.nn.Embedding.reset_parameters = draw  # type: ignore[method-assign]
        for name, module in list(sys.modules.items()):
            if isinstance(module, Later):
                _take_out(name)
            elif name.partition(".")[0] == "transformers":
                del sys.modules[name]


def _take_out(name: str) -> None:
    """Take a module out that was never executed, so that it is imported anew."""
    del sys.modules[name]
    parent, _, own = name.rpartition(".")
    if parent in sys.modules:
        vars(sys.modules[parent]).pop(own, None)


def _stand_in() -> None:
    """Put modules of torch off until more is read of them than the stand-ins."""
    draw = torch.nn.Embedding.reset_parameters  # on the meta device it only imports SymPy

    def reset(own: torch.nn.Embedding) -> None:
        if not own.weight.is_meta:
            draw(own)

    torch.nn.Embedding.reset_parameters = reset  # type: ignore[method-assign,assignment]
    for name, stand_ins in STAND_INS.items():
        if name not in sys.modules and (spec := find_spec(name)) is not None:
            module = Later(name)
            module.__spec__, module.__path__ = spec, spec.submodule_search_locations or []
            vars(module).update(stand_ins)
            sys.modules[name] = module
            parent, _, own = name.rpartition(".")
            if parent:
                setattr(sys.modules[parent], own, module)


def _without_optional() -> None:
    """Import transformers as it is where its optional dependencies are not installed."""
    from transformers.utils import import_utils

    plain = import_utils.is_torch_available, import_utils._is_package_available  # noqa: SLF001
    import_utils.is_torch_available = lambda: False  # for these four alone, which cache it
    import_utils._is_package_available = lambda *_, **__: (False, "N/A")  # noqa: SLF001
    for available in (
        import_utils.is_accelerate_available,
        import_utils.is_scipy_available,
        import_utils.is_torch_distributed_available,
        import_utils.is_torch_flex_attn_available,
    ):
        available.cache_clear()
        available()
    import_utils.is_torch_available, import_utils._is_package_available = plain  # noqa: SLF001
