"""Activations over whole SIMD vectors: results do not depend on how many numbers there are.

torch computes the remainder after the last full vector in another way: SiLU, the approximate GELU
and the sigmoid differ there in the last digit. In layers whose width is no multiple of a vector,
that remainder falls on one text or another.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from transformers import activations

LANES = 64  # numbers that torch takes at once at most: two vectors of AVX-512, in bfloat16
# of torch's own, those that take each number by itself; all of transformers' do
SINGLE = {nn.ELU, nn.GELU, nn.Hardswish, nn.Mish, nn.Sigmoid, nn.SiLU, nn.Softplus, nn.Tanh}
# the approximate GELU in eight steps, as GPT-2 and ALBERT have it: torch does it in one
SPELT_OUT = (activations.FastGELUActivation, activations.NewGELUActivation)


class Whole(nn.Module):
    """An activation that is given whole vectors."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        """Return the activation of each number."""
        flat = states.reshape(-1)
        lacking = -len(flat) % LANES
        found: torch.Tensor = self.inner(nn.functional.pad(flat, (0, lacking)) if lacking else flat)
        return found[: len(flat)].view(states.shape)


def whole(model: Any) -> None:
    """Give all activations of a model whole vectors."""
    for parent in list(model.modules()):
        if isinstance(parent, Whole):
            continue
        for name, child in list(parent._modules.items()):  # noqa: SLF001 two names of one count
            if isinstance(child, SPELT_OUT):
                setattr(parent, name, Whole(nn.GELU(approximate="tanh")))
            elif type(child).__module__ == activations.__name__ or type(child) in SINGLE:
                setattr(parent, name, Whole(child))
