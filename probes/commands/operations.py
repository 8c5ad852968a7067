"""Counting the floating-point operations of a model without computing anything."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import torch
from torch.utils.flop_counter import FlopCounterMode

from plumbline.probes.models.masked import Masked

if TYPE_CHECKING:
    from collections.abc import Sequence


def operations(scorer: Any, lengths: Sequence[int], verb: str) -> float:
    """Return the operations of matrix products for texts of these lengths, in tokens.

    The head is counted where it is computed: to ``fill`` at one place of each text, to
    ``represent`` nowhere. A copy of the model without weights is asked, on torch's ``meta`` device.
    """
    model = scorer.body.model if isinstance(scorer, Masked) else scorer.model
    bare = _bare(model)
    total = 0.0
    for length, times in Counter(lengths).items():
        ids = torch.zeros(1, length, dtype=torch.long, device="meta")
        body = getattr(bare, bare.base_model_prefix, bare)
        options = {"input_ids": ids}
        if bare.config.is_encoder_decoder:  # two tokens: the start, and T5's sentinel
            options["decoder_input_ids"] = ids[:, :2]
        with FlopCounterMode(display=False) as whole:
            bare(**options)
        with FlopCounterMode(display=False) as inner:
            body(**options)
        head = whole.get_total_flops() - inner.get_total_flops()
        if isinstance(scorer, Masked) or (verb == "fill" and not bare.config.is_encoder_decoder):
            head /= length
        if verb == "represent":
            head = 0
        total += times * (inner.get_total_flops() + head)
    return total


def _bare(model: Any) -> Any:
    """Return a model of the same shape without weights."""
    with torch.device("meta"):
        return type(model)(model.config).eval()
