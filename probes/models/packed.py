"""Matrix products through oneDNN's packed weights, on processors where torch's own are slow.

torch sends float32 products to MKL, which reaches less than half of an AMD processor's rate once
that has AVX-512; oneDNN reaches it. The operators are private to torch: they are tried on a small
product first, and left alone if they are missing or answer otherwise.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import nn
from transformers.pytorch_utils import Conv1D

CLOSE = 1e-3  # largest difference between the two products of the trial


class Packed(nn.Module):
    """A linear layer whose weights are laid out for oneDNN."""

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None) -> None:
        """Pack a weight (out, in)."""
        super().__init__()
        ops: Any = torch.ops.mkldnn
        self.packed = ops._reorder_linear_weight(weight.detach().contiguous())  # noqa: SLF001
        self.bias = bias
        self.weight = weight.new_empty(0)  # T5 asks for its dtype; nothing can be computed with it

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        """Return ``states`` (..., in) times the weights, plus bias: (..., out)."""
        ops: Any = torch.ops.mkldnn
        product: torch.Tensor = ops._linear_pointwise(  # noqa: SLF001
            states, self.packed, self.bias, "none", [], ""
        )
        return product


def pays(dtype: torch.dtype) -> bool:
    """Tell whether this processor gains: a matter of its kind alone, so that bytes agree."""
    if torch.backends.cpu.get_cpu_capability() != "AVX512":
        return False
    if dtype == torch.bfloat16:
        return works(dtype)
    return dtype == torch.float32 and _vendor() == "AuthenticAMD" and works(dtype)


@cache
def works(dtype: torch.dtype) -> bool:
    """Tell whether the private operators are there and answer as the public one does."""
    generator = torch.Generator().manual_seed(0)
    linear = nn.Linear(32, 48)
    with torch.no_grad():
        linear.weight.copy_(torch.randn(48, 32, generator=generator))
        linear.bias.copy_(torch.randn(48, generator=generator))
    linear = linear.to(dtype)
    states = torch.randn(5, 32, generator=generator).to(dtype)
    try:
        with torch.inference_mode():
            apart = (Packed(linear.weight, linear.bias)(states) - linear(states)).abs().max().item()
    except (AttributeError, RuntimeError, TypeError):
        return False
    return bool(apart < (CLOSE if dtype == torch.float32 else 0.25))


def pack(model: nn.Module) -> int:
    """Swap every linear layer of a model, and return how many."""
    swapped = 0
    for parent in list(model.modules()):
        for name, child in list(parent.named_children()):
            if type(child) is nn.Linear:
                setattr(parent, name, Packed(child.weight, child.bias))
            elif type(child) is Conv1D:  # GPT-2's linear layer, its weight the other way round
                setattr(parent, name, Packed(child.weight.t(), child.bias))
            else:
                continue
            swapped += 1
    return swapped


@cache
def _vendor() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return ""
    lines = (line.split(":", 1)[1].strip() for line in text.splitlines() if "vendor_id" in line)
    return next(lines, "")
