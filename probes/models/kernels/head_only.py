"""The head and the last layer at the requested positions only.

The vocabulary is many times wider than the hidden states; and of the last layer only what the head
reads is needed: behind its attention, which all tokens feed, other positions are skipped.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from plumbline.probes.models.kernels.packed_linear import FAULTS

if TYPE_CHECKING:
    from collections.abc import Iterator

# where an encoder has its layers, and in a layer the first part behind the attention that takes
# each token by itself, together with what it adds to: BERT and its kin; DistilBERT
LAST = (("encoder.layer", "attention.output"), ("transformer.layer", "sa_layer_norm"))
TRIAL = (16, 5)  # texts and tokens on which the shortened layer must agree with the whole one
CLOSE = {torch.float64: 1e-3, torch.float32: 1e-3}  # largest difference, in standard deviations
CLOSE_ELSE = 0.2  # in less precision


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
        self._wanted.where, self._wanted.done = (rows, places), False
        try:
            yield
        finally:
            self._wanted.where = None

    def forward(self, *given: Any, **options: Any) -> Any:
        """Run the body; keep what is wanted of its last states."""
        out = self.inner(*given, **options)
        where = getattr(self._wanted, "where", None)
        if where is not None and not self._wanted.done:
            out["last_hidden_state"] = out[0][where].unsqueeze(1)
        return out

    def select(self, _: nn.Module, given: tuple[torch.Tensor, ...]) -> Any:
        """Let a part of the last layer see only what is wanted; a hook before its forward."""
        where = getattr(self._wanted, "where", None)
        if where is None:
            return None
        self._wanted.done = True
        return tuple(states[where].unsqueeze(1) for states in given)

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


@torch.inference_mode()
def narrow(model: Any, gate: Gate, place: int) -> bool:
    """Shorten the last layer if it is one that is known; tell whether that was done.

    Tried on random tokens first: where the answers at ``place`` are not those of the whole model,
    it is left as it was.
    """
    part = _last(gate.inner)
    if part is None:
        return False
    size = model.config.vocab_size
    draw = torch.Generator().manual_seed(0)  # of the upper half: padding has a low number
    ids = torch.randint(size // 2, size, TRIAL, generator=draw).to(model.device)
    plain = model(input_ids=ids).logits.float()
    plain = plain[:, place] if plain.dim() == 3 else plain
    hook = part.register_forward_pre_hook(gate.select)
    rows = torch.arange(TRIAL[0], device=ids.device)
    apart = torch.tensor(torch.inf)
    with suppress(*FAULTS), gate.at(rows, torch.full_like(rows, place)):
        apart = (model(input_ids=ids).logits.float().view_as(plain) - plain).abs().max()
    fine = bool(apart < CLOSE.get(model.dtype, CLOSE_ELSE) * plain.std(0).mean())
    if not fine:
        hook.remove()
    return fine


def _last(body: nn.Module) -> nn.Module | None:
    """Return the part of the last layer from which on each token is computed by itself."""
    for layers, part in LAST:
        with suppress(AttributeError, IndexError, TypeError):
            inner: Any = body.get_submodule(layers)
            found: nn.Module = inner[-1].get_submodule(part)
            return found
    return None
