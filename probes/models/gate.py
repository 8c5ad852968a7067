"""Heads only where they are wanted: the vocabulary is many times wider than a model's states."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from torch import nn

if TYPE_CHECKING:
    from collections.abc import Iterator

    import torch


class Gate(nn.Module):
    """Stands around a model's body, and lets only some of its last states through to the head.

    The head is the model's own code, whatever the architecture: it gets a tensor
    (places, 1, width) in place of (texts, tokens, width).
    """

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner
        self._wanted = threading.local()  # batches run in several threads

    @contextmanager
    def at(self, rows: torch.Tensor, places: torch.Tensor) -> Iterator[None]:
        """Let through the states at these rows and places, both of shape (n,)."""
        self._wanted.where = (rows, places)
        try:
            yield
        finally:
            self._wanted.where = None

    def forward(self, *given: Any, **options: Any) -> Any:
        """Run the body; keep what is wanted of its last states."""
        out = self.inner(*given, **options)
        where = getattr(self._wanted, "where", None)
        if where is not None:
            out["last_hidden_state"] = out[0][where].unsqueeze(1)
        return out

    def __getattr__(self, name: str) -> Any:
        """Return what heads ask of the body, such as its embeddings."""
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__("inner"), name)


def gated(model: nn.Module, path: str) -> Gate:
    """Put a gate around the part of a model at ``path``, and return it."""
    gate = Gate(model.get_submodule(path))
    parent, _, name = path.rpartition(".")
    setattr(model.get_submodule(parent), name, gate)
    return gate
