"""Tokenised texts, the batches of training steps, and their losses.

Masks are sampled with torch's generator. If there are several processes, they sample the same masks
and split every batch, so the mean of their gradients equals the gradient of a single process.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from plumbline.probes.models.batching import blocks
from plumbline.probes.models.tokenizer import HEAD
from plumbline.probes.training import distributed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from plumbline.probes.models.tokenizer import Tokens

    Ids = NDArray[np.int32]

MASKED = 0.15  # share of tokens to predict (Devlin et al. 2019, section 3.1)
HIDDEN, RANDOM = 0.8, 0.1  # shares of these tokens replaced with the mask and a random token
IGNORED = -100


class Rows(NamedTuple):
    """Rows of tokens, including special ones, and their labels for classification."""

    ids: list[Ids]
    labels: NDArray[np.int64] | None = None

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Return the number of tokens of each row."""
        return np.array([len(ids) for ids in self.ids])

    def select(self, which: Sequence[int] | NDArray[np.int64]) -> Rows:
        """Return the rows with the given indices."""
        labels = None if self.labels is None else self.labels[which]
        return Rows([self.ids[i] for i in which], labels)


def pieces(tokens: Tokens, texts: Sequence[str], length: int) -> Iterator[list[int]]:
    """Yield texts as tokens, including special ones; long texts are split into several rows."""
    (encoded,), (bare,) = tokens.encode([HEAD]), tokens.encode([HEAD], special=False)
    before = tokens.opening()
    after = encoded[len(before) + len(bare) :]
    room = length - len(before) - len(after)
    for block in blocks(texts):
        for ids in tokens.encode(block, special=False):
            for i in range(0, len(ids), room):
                yield [*before, *ids[i : i + room], *after]


def cut(tokens: Tokens, texts: Sequence[str], length: int) -> Iterator[list[int]]:
    """Yield texts as tokens; long texts are truncated before their last token."""
    for block in blocks(texts):
        for ids in tokens.encode(block):
            yield ids if len(ids) <= length else [*ids[: length - 1], ids[-1]]


def tokenised(rows: Iterable[list[int]], labels: Sequence[int] | None = None) -> Rows:
    """Return rows that are stored with four bytes per token."""
    ids = [np.array(row, dtype=np.int32) for row in rows]
    return Rows(ids, None if labels is None else np.array(labels, dtype=np.int64))


def within(tokens: Tokens, texts: Sequence[str], most: int) -> tuple[list[str], int]:
    """Return the leading texts that have at most ``most`` tokens in total, and that total.

    The list ends before the first text that exceeds the budget.
    """
    total, count = 0, 0
    for block in blocks(texts):
        for ids in tokens.encode(block):
            if total + len(ids) > most:
                return list(texts[:count]), total
            total += len(ids)
            count += 1
    return list(texts), total


class Batch(NamedTuple):
    """Inputs and labels of a step, each of shape (texts, tokens)."""

    ids: Tensor
    attention: Tensor  # 1 for a token, 0 for padding
    labels: Tensor  # -100 for tokens that are not predicted

    def select(self, rows: list[int]) -> Batch:
        """Return the texts with the given indices, trimmed to the length of the longest."""
        width = int(self.attention[rows].sum(dim=1).max())
        return Batch(*(part[rows, :width] for part in self))


def seed(number: int) -> None:
    """Seed torch's generators; ``torch.manual_seed`` is slower than a step of a tiny model."""
    torch.default_generator.manual_seed(number)
    if torch.cuda.is_available():
        torch.cuda.manual_seed_all(number)


def padded(tokens: Tokens, rows: Sequence[Sequence[int] | Ids]) -> tuple[Tensor, Tensor]:
    """Return texts padded to the same length, and their attention mask."""
    lengths = np.array([len(row) for row in rows])
    attention = np.arange(lengths.max()) < lengths[:, None]
    ids = np.full(attention.shape, tokens.tokenizer.pad_token_id or 0, dtype=np.int64)
    ids[attention] = np.concatenate(rows)
    return torch.from_numpy(ids), torch.from_numpy(attention.astype(np.int64))


def batched(tokens: Tokens, rows: Sequence[Sequence[int] | Ids], share: float) -> Batch:
    """Return the batch of a step, sampling masks with torch's generator.

    ``share``: share of tokens that a masked model predicts; 0 for a causal model, which predicts
    all tokens but the first.
    """
    ids, attention = padded(tokens, rows)
    if share:
        hidden, labels = hide(tokens, ids, attention, len(tokens), share)
        return Batch(hidden, attention, labels)
    labels = torch.where(attention == 1, ids, IGNORED)
    labels[:, 0] = IGNORED  # the first token has no context
    return Batch(ids, attention, labels)


def _passes(net: Any, rows: Rows, room: int) -> Iterator[list[int]]:
    """Yield the rows of each pass of this process; gradients are exchanged after the last pass."""
    number, index = distributed.number(), distributed.index()
    if index:  # processes share masks but not dropout
        seed(torch.initial_seed() + (index << 40))
    parts = distributed.passes([len(ids) for ids in rows.ids], room, number, index)
    for n, numbers in enumerate(parts, 1):
        with distributed.exchange(net, last=n == len(parts)):
            yield numbers


def losses_of(
    tokens: Tokens, net: Any, rows: Rows, *, share: float, room: int = 0, mixed: bool = False
) -> Iterator[tuple[Tensor, float]]:
    """Yield each part's mean loss in a step and its weight, proportional to predicted tokens.

    Parameters
    ----------
    share
        Share of tokens that a masked model predicts; 0 for a causal model.
    room
        Maximum number of positions in a part; 0: one part with all texts of this process.
    mixed
        Whether matrix products are computed in bfloat16.
    """
    batch = batched(tokens, rows.ids, share)
    total = int((batch.labels != IGNORED).sum())
    where = getattr(net, "module", net).device.type  # several processes wrap the model
    for numbers in _passes(net, rows, room):
        part = batch.select(numbers or [0])  # every process needs a last pass
        predicted = int((part.labels != IGNORED).sum()) if numbers else 0
        with torch.autocast(where, torch.bfloat16, enabled=mixed):
            loss = loss_of(net, part, masked=share > 0)
        yield loss, predicted * distributed.number() / max(total, 1)


def class_losses(
    tokens: Tokens, net: Any, rows: Rows, *, room: int, mixed: bool
) -> Iterator[tuple[Tensor, float]]:
    """Yield the losses of a classifier as :func:`losses_of` does, weighted by number of texts."""
    assert rows.labels is not None
    device = getattr(net, "module", net).device
    for numbers in _passes(net, rows, room):
        chosen = numbers or [0]
        batch = padded(tokens, [rows.ids[i] for i in chosen])
        parts = (*batch, torch.from_numpy(rows.labels[chosen]))
        ids, attention, labels = (part.to(device) for part in parts)
        with torch.autocast(device.type, torch.bfloat16, enabled=mixed):
            logits = net(input_ids=ids, attention_mask=attention).logits
        loss = torch.nn.functional.cross_entropy(logits, labels)
        yield loss, len(numbers) * distributed.number() / len(rows.ids)


def loss_of(net: Any, batch: Batch, *, masked: bool) -> Tensor:
    """Return the mean cross-entropy of the predicted tokens; 0 if there are none."""
    model = getattr(net, "module", net)
    places = (batch.labels != IGNORED).nonzero(as_tuple=True)  # on the CPU to avoid synchronisation
    nothing = not len(places[0])
    ids, attention, labels, *chosen = (part.to(model.device) for part in (*batch, *places))
    if not masked:
        out = net(input_ids=ids, attention_mask=attention, labels=None if nothing else labels)
        loss: Tensor = out.logits.sum() * 0.0 if nothing else out.loss
        return loss
    # labels are omitted, since BART would derive from them a decoder input unlike that in probes
    with _only(model, tuple(chosen)):
        logits = net(input_ids=ids, attention_mask=attention).logits
    if logits.dim() == 3:  # a model without an output module computes all positions
        logits = logits[tuple(chosen)]
    if nothing:
        zero: Tensor = logits.sum() * 0.0
        return zero
    return torch.nn.functional.cross_entropy(logits, labels[tuple(chosen)])


@contextmanager
def _only(model: Any, chosen: tuple[Tensor, ...]) -> Iterator[None]:
    """Apply the output layer, which is the most expensive one, only at the chosen positions."""

    def pick(_: Any, states: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        return (states[0][chosen], *states[1:])

    layer = model.get_output_embeddings()
    if layer is None:
        yield
        return
    handle = layer.register_forward_pre_hook(pick)
    try:
        yield
    finally:
        handle.remove()


def hide(
    tokens: Tokens, ids: Tensor, attention: Tensor, vocabulary: int, share: float = MASKED
) -> tuple[Tensor, Tensor]:
    """Return inputs with masked tokens, and labels: ids of masked tokens, -100 elsewhere.

    At least one token per text is predicted. Uses torch's default generator.
    """
    special = torch.isin(ids, torch.tensor(tokens.tokenizer.all_special_ids))
    free = (attention == 1) & ~special
    chance = torch.rand(ids.shape).masked_fill(~free, 2.0)
    chosen = chance < share
    first = chance.argmin(dim=1)
    rows = torch.arange(len(ids))
    chosen[rows, first] |= free[rows, first]
    kind, random_ids = torch.rand(ids.shape), torch.randint(vocabulary, ids.shape)
    hidden = torch.where(chosen & (kind < HIDDEN), torch.tensor(tokens.mask_id), ids)
    swapped = chosen & (kind >= HIDDEN) & (kind < HIDDEN + RANDOM)
    return torch.where(swapped, random_ids, hidden), torch.where(chosen, ids, IGNORED)
