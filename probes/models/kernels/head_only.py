"""The head and the last layer at the requested positions only.

The vocabulary is many times wider than the hidden states; and of the last layer only what the head
reads is needed: behind its attention, which all tokens feed, other positions are skipped.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import torch

from plumbline.probes.models.kernels.packed_linear import FAULTS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch import nn

# where an encoder has its layers, and in a layer the first part behind the attention that takes
# each token by itself, together with what it adds to: BERT and its kin; DistilBERT
LAST = (("encoder.layer", "attention.output"), ("transformer.layer", "sa_layer_norm"))
TRIAL = (16, 5)  # texts and tokens on which the shortened layer must agree with the whole one


def close(difference: torch.Tensor, logits: torch.Tensor) -> bool:
    """Tell whether logits agree: up to a small share of their standard deviation over rows."""
    share = 1e-3 if logits.dtype in (torch.float32, torch.float64) else 0.2
    return bool(difference < share * logits.float().std(0).mean())


class HeadOnly:
    """Hands only the requested last states of a model's body to its head.

    The head is the model's own code, whatever the architecture: it gets a tensor
    (positions, 1, width) in place of (texts, tokens, width).
    """

    def __init__(self, body: nn.Module) -> None:
        self.body = body
        self._request = threading.local()  # batches run in several threads
        body.register_forward_hook(self._after_body)

    @contextmanager
    def at(self, rows: torch.Tensor, positions: torch.Tensor) -> Iterator[None]:
        """Select the states at these rows and positions, both of shape (n,)."""
        self._request.where = (rows, positions)
        try:
            yield
        finally:
            self._request.where = None

    def _take(self, states: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...] | None:
        where = getattr(self._request, "where", None)
        return where and tuple(part[where].unsqueeze(1) for part in states)

    def _after_body(self, _: nn.Module, __: Any, out: Any) -> None:
        if selected := self._take((out[0],)):
            out["last_hidden_state"] = selected[0]

    def _in_last_layer(self, _: nn.Module, states: tuple[torch.Tensor, ...]) -> Any:
        selected = self._take(states)
        self._request.where = None  # the body's output is selected already
        return selected

    @torch.inference_mode()
    def shorten(self, model: Any, position: int) -> bool:
        """Shorten the last layer if it is a known one; return whether that was done.

        Tried on random tokens first: where the logits at ``position`` are not those of the whole
        model, the layer is left as it was.
        """
        part = self._last_part()
        if part is None:
            return False
        size = model.config.vocab_size
        draw = torch.Generator().manual_seed(0)  # from the upper half: padding has a low number
        ids = torch.randint(size // 2, size, TRIAL, generator=draw).to(model.device)
        plain = model(input_ids=ids).logits
        plain = plain[:, position] if plain.dim() == 3 else plain
        hook = part.register_forward_pre_hook(self._in_last_layer)
        rows = torch.arange(TRIAL[0], device=ids.device)
        with suppress(*FAULTS), self.at(rows, torch.full_like(rows, position)):
            short = model(input_ids=ids).logits.view_as(plain)
            if close((short.float() - plain.float()).abs().max(), plain):
                return True
        hook.remove()
        return False

    def _last_part(self) -> nn.Module | None:
        """Return the part of the last layer from which on each token is computed by itself."""
        for layers, part in LAST:
            with suppress(AttributeError):
                inner: Any = self.body.get_submodule(layers)
                found: nn.Module = inner[-1].get_submodule(part)
                return found
        return None
