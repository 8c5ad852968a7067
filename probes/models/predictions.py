"""The best tokens of the whole vocabulary at one place of each text."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from plumbline.probes.models.scorer import DECIMALS, Predicted

if TYPE_CHECKING:
    from collections.abc import Callable

    from plumbline.probes.models.batching import Batches
    from plumbline.probes.models.tokenizer import Tokens


def block(
    tokens: Tokens,
    batches: Batches,
    prompts: list[str],
    encoded: list[list[int]],
    ask: Callable[[list[int]], torch.Tensor],
    top_k: int,
) -> Predicted:
    """Rank the tokens for one block of n prompts.

    Parameters
    ----------
    ask
        Returns log-probabilities (rows, vocabulary) of some of the prompts.
    top_k
        Tokens kept; all, where the vocabulary is smaller.
    """
    names = len(tokens)  # a head may be wider: its last columns are of no token
    top_k = min(top_k, names)
    ids = np.zeros((len(prompts), top_k), np.int32)
    values = np.zeros((len(prompts), top_k))

    def launch(rows: list[int]) -> tuple[torch.Tensor, torch.Tensor]:
        scores = torch.round(ask(rows)[:, :names].double(), decimals=DECIMALS)
        order = leading(scores, top_k)
        return order, scores.gather(1, order)

    def finish(rows: list[int], done: tuple[torch.Tensor, torch.Tensor]) -> None:
        ids[rows] = done[0].cpu().numpy()
        values[rows] = done[1].cpu().numpy()

    lengths = [len(text) for text in encoded]
    batches.run(lengths, lengths, torch.inference_mode()(launch), finish)
    unknown = [tokens.unknown(text) for text in encoded]
    return Predicted(
        prompts, np.array(lengths, np.int32), ids, values + 0.0, np.array(unknown, np.int32)
    )


def leading(scores: torch.Tensor, top_k: int) -> torch.Tensor:
    """Return the places (rows, top_k) of the highest scores, of equal ones the first.

    ``torch.topk`` alone leaves it open which of equal ones it takes, and a stable sort of a whole
    vocabulary takes longer than a small model.
    """
    width = scores.shape[1]
    if 4 * top_k > width:
        return torch.sort(-scores, dim=1, stable=True).indices[:, :top_k]
    last = torch.topk(scores, top_k, dim=1).values[:, -1:]
    wanted = int((scores >= last).sum(1).max())  # with all that equal the last one
    chosen = torch.topk(scores, wanted, dim=1).indices.sort(dim=1).values
    order = torch.sort(-scores.gather(1, chosen), dim=1, stable=True).indices[:, :top_k]
    return chosen.gather(1, order)
