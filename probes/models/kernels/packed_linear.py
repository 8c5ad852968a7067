"""Products and activations of a row that do not depend on the other rows of a batch.

torch sends float32 products to MKL, which picks its way by the number of rows: on processors with
AVX-512 other digits come out below 16 rows, on Intel's with AVX2 for almost any number of rows.
oneDNN's are one row's alone, but for a single row. On AMD's processors with AVX-512 they are also
faster: ``fill`` is 2.1 times as fast with them on BERT base's shape and 2.5 times on XLM-R base's
(medians of 7 interleaved pairs, one thread, float32). The operators are private to torch: they are
tried on a small product first, and left alone if they are missing or answer otherwise (bfloat16
without AVX-512).
"""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from torch import nn
from transformers import activations
from transformers.pytorch_utils import Conv1D

FEWEST = 16  # rows of a product of torch's own
PAIR = 2  # rows of a packed one
CLOSE = {torch.float32: 1e-3, torch.bfloat16: 0.25}  # of the two products of the trial
# GPT-2's has its weight the other way round; Falcon's is a plain one by another name
LAYERS = ("Linear", "Conv1D", "FalconLinear")
FAULTS = (AttributeError, IndexError, RuntimeError, TypeError, ValueError)
LANES = 64  # numbers that torch takes at once at most: two vectors of AVX-512, in bfloat16
# of torch's own, those that take each number by itself; all of transformers' do
SINGLE = {nn.ELU, nn.GELU, nn.Hardswish, nn.Mish, nn.Sigmoid, nn.SiLU, nn.Softplus, nn.Tanh}
# the approximate GELU in eight steps, as GPT-2 and ALBERT have it: torch does it in one
SPELT_OUT = (activations.FastGELUActivation, activations.NewGELUActivation)


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


@cache
def works(dtype: torch.dtype) -> bool:
    """Tell whether the private operators are there and answer as the public one does."""
    if dtype not in CLOSE:
        return False
    draw = torch.Generator().manual_seed(0)
    sizes = (48, 32), (48,), (5, 32)
    weight, bias, states = (torch.randn(size, generator=draw).to(dtype) for size in sizes)
    try:
        with torch.inference_mode():
            difference = Packed(weight, bias)(states) - nn.functional.linear(states, weight, bias)
            return bool(difference.abs().max() < CLOSE[dtype])
    except FAULTS:
        return False


def pack(model: Any) -> int:
    """Swap the linear layers of a model on a CPU; return how many rows its products need at least.

    Layers that are not called themselves when the model is tried are left: Mamba reads the weights
    of some, as does the first DeBERTa.
    """
    if not works(model.dtype):
        return FEWEST
    called = _called_layers(model)
    places = [
        (parent, name)
        for parent in model.modules()
        for name, child in parent._modules.items()  # noqa: SLF001 two names of one layer count
        if id(child) in called
    ]
    for parent, name in places:  # one after the other: the plain weights go as the packed ones come
        layer = getattr(parent, name)
        weight = layer.weight.t() if isinstance(layer, Conv1D) else layer.weight
        setattr(parent, name, Packed(weight, layer.bias))
        del layer, weight
    others = (part for part in model.modules() if not isinstance(part, nn.Embedding))
    weights = (weight for part in others for weight in part.parameters(recurse=False))
    # torch's own products are left; the head of DeBERTa's own multiplies the embeddings
    plain = hasattr(model, "lm_predictions") or any(weight.dim() > 1 for weight in weights)
    return FEWEST if plain else PAIR


@torch.inference_mode()
def _called_layers(model: Any) -> set[int]:
    """Return ids of the linear layers that a forward pass calls, and not only reads as weights."""
    called: set[int] = set()
    hooks = [
        layer.register_forward_pre_hook(lambda layer, _: called.add(id(layer)))
        for layer in model.modules()
        if type(layer).__name__ in LAYERS
    ]
    try:
        model(**model.dummy_inputs)
    except FAULTS:
        called.clear()
    finally:
        for hook in hooks:
            hook.remove()
    return called


class Padded(nn.Module):
    """An activation over whole SIMD vectors.

    torch computes the remainder after the last full vector in another way: SiLU, the approximate
    GELU and the sigmoid differ there in the last digit, and in layers whose width is no multiple of
    a vector, that remainder falls on one text or another.
    """

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        """Return the activation of each number."""
        flat = states.reshape(-1)
        missing = -len(flat) % LANES
        padded = nn.functional.pad(flat, (0, missing)) if missing else flat
        activated: torch.Tensor = self.inner(padded)
        return activated[: len(flat)].view(states.shape)


def pad_activations(model: Any) -> None:
    """Give all activations of a model whole vectors."""
    for parent in list(model.modules()):
        for name, child in list(parent._modules.items()):  # noqa: SLF001 two names of one count
            if isinstance(child, SPELT_OUT):
                setattr(parent, name, Padded(nn.GELU(approximate="tanh")))
            elif type(child).__module__ == activations.__name__ or type(child) in SINGLE:
                setattr(parent, name, Padded(child))
