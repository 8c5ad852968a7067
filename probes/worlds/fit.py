"""Training the tiny model of a world: one loop for all of them, in double precision."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import torch

from plumbline.builders.core.errors import Problem
from plumbline.builders.core.progress import Bar
from plumbline.probes.models.scorer import MASK
from plumbline.probes.worlds import tiny_model

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    import polars as pl
    from numpy.typing import NDArray

    from plumbline.builders.core.params import Params
    from plumbline.probes.worlds.tiny import Tiny


def fit(training: Tiny, model: Any, losses: Callable[[], Iterator[torch.Tensor]]) -> Any:
    """Minimise a loss and return the model in single precision, its weights on the grid.

    Parameters
    ----------
    losses
        Called once a step; the gradient is that of the sum of what it yields.
    """
    rate = training.learning_rate
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=rate, total_steps=training.steps, pct_start=0.1
    )
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # so small a model gains little from more, and loses on a busy machine
    try:
        bar = Bar(range(training.steps), desc="training", unit="step")
        for _ in bar:
            optimizer.zero_grad()
            total = 0.0
            for loss in losses():
                loss.backward()  # type: ignore[no-untyped-call]
                total += loss.item()
            optimizer.step()
            schedule.step()
            bar.set_postfix(loss=f"{total:.4f}", refresh=False)
    finally:
        torch.set_num_threads(threads)
    return tiny_model.rounded(model)


def pieces(tokenizer: Any, words: Sequence[str], world: str) -> list[int]:
    """Return the tokens of words.

    Raises
    ------
    Problem
        If a word is not one token.
    """
    found: list[int] = tokenizer.convert_tokens_to_ids(list(words))
    if tokenizer.unk_token_id in found:
        raise Problem(f"world of {world}: a word of it is not one piece of its tokenizer")
    return found


def targets(tokenizer: Any, words: Sequence[str], shares: NDArray[Any], world: str) -> torch.Tensor:
    """Return probabilities of words (n, words) as those of all tokens (n, tokens)."""
    found = torch.zeros(len(shares), len(tokenizer), dtype=torch.float64)
    found[:, pieces(tokenizer, words, world)] = torch.from_numpy(shares)
    return found


def cross_entropy(target: torch.Tensor, logits: torch.Tensor, n: int) -> torch.Tensor:
    """Return the cross-entropy of some rows, summed and divided by ``n``."""
    return -(target * torch.log_softmax(logits, dim=-1)).sum() / n


def begin_with(model: Any, words: Sequence[int], logs: torch.Tensor, other: float) -> None:
    """Let a masked model begin with the mean log-probabilities: much is learnt sooner.

    Parameters
    ----------
    other
        Log-probability of all other tokens, nats.
    """
    with torch.no_grad():
        bias = model.get_output_embeddings().bias
        bias.fill_(other)
        bias[list(words)] = logs


def masked(texts: Sequence[str]) -> list[str]:
    """Return texts with the mask of the worlds' tokenizers."""
    return [text.replace(MASK, "[MASK]") for text in texts]


def save(
    into: Path, model: Any, tokenizer: Any, params: Params | None = None, **tables: pl.DataFrame
) -> None:
    """Write a model, its tokenizer, the params of its world and what is planted into a folder."""
    for name, table in tables.items():
        table.write_parquet(into / f"{name}.parquet", compression="zstd", statistics=False)
    if params is not None:
        known = params.model_dump(mode="json", exclude_none=True)
        facts = json.dumps(known, indent=1, sort_keys=True)
        (into / "world.json").write_text(facts + "\n", encoding="utf-8")
    tokenizer.backend_tokenizer.no_padding()  # which training may have set
    tokenizer.save_pretrained(into)
    model.save_pretrained(into)
