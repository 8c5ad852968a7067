"""Texts as tokens in a file that is mapped, the batches of steps, and their losses.

The file has four bytes a token on the disk, in memory only what a step reads; processes on one
machine share it. Masks are drawn from torch's generator. Several processes draw the same masks and
split every batch, so that their gradients are, on average, those of a single process.
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
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from plumbline.probes.models.tokenizer import Tokens

    Ids = NDArray[np.int32]

FILES = ("tokens.bin", "ends.npy")
MASKED = 0.15  # share of the tokens that are predicted (Devlin et al. 2019, section 3.1)
HIDDEN, RANDOM = 0.8, 0.1  # of those: shares that become the mask, and any other token
IGNORED = -100


class Rows(NamedTuple):
    """Rows of tokens, each with its special tokens; a label for each where there are classes."""

    tokens: Ids
    ends: NDArray[np.int64]  # of each row in them
    labels: NDArray[np.int64] | None = None

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Return the number of tokens of each row."""
        return np.diff(self.ends, prepend=0)

    def some(self, which: Sequence[int] | NDArray[np.int64]) -> Step:
        """Return some of the rows."""
        begin = [int(self.ends[i - 1]) if i else 0 for i in which]
        ids = [self.tokens[b : self.ends[i]] for b, i in zip(begin, which, strict=True)]
        return Step(ids, None if self.labels is None else self.labels[which])


class Step(NamedTuple):
    """Rows of a step."""

    ids: list[Ids]
    labels: NDArray[np.int64] | None = None


def pieces(tokens: Tokens, texts: Sequence[str], length: int) -> Iterator[list[int]]:
    """Yield the texts as tokens, those too long in parts, each with its special tokens."""
    (whole,), (bare,) = tokens.encode([HEAD]), tokens.encode([HEAD], special=False)
    before = tokens.opening()
    after = whole[len(before) + len(bare) :]
    room = length - len(before) - len(after)
    for some in blocks(texts):
        for ids in tokens.encode(some, special=False):
            for i in range(0, len(ids), room):
                yield [*before, *ids[i : i + room], *after]


def cut(tokens: Tokens, texts: Sequence[str], length: int) -> Iterator[list[int]]:
    """Yield the texts as tokens, the end of those too long left out but for the last token."""
    for some in blocks(texts):
        for ids in tokens.encode(some):
            yield ids if len(ids) <= length else [*ids[: length - 1], ids[-1]]


def stored(rows: Iterator[list[int]], folder: Path, labels: Sequence[int] | None = None) -> Rows:
    """Write rows into a folder, in the first process, and return them mapped, in all of them."""
    tokens, ends = (folder / name for name in FILES)
    if distributed.first():
        folder.mkdir(parents=True, exist_ok=True)
        lengths = []
        with tokens.open("wb") as file:
            for ids in rows:
                lengths.append(len(ids))
                np.array(ids, dtype=np.int32).tofile(file)
        np.save(ends, np.cumsum(lengths, dtype=np.int64))
    distributed.wait()
    there = np.load(ends)
    mapped = np.memmap(tokens, np.int32, "r") if len(there) else np.zeros(0, np.int32)
    return Rows(mapped, there, None if labels is None else np.array(labels, dtype=np.int64))


def within(tokens: Tokens, texts: Sequence[str], most: int) -> tuple[list[str], int]:
    """Return the first texts that have so many tokens, and how many these have.

    The last that does not fit is left out, so that no training has more.
    """
    total, kept = 0, 0
    for some in blocks(texts):
        for ids in tokens.encode(some):
            if total + len(ids) > most:
                return list(texts[:kept]), total
            total += len(ids)
            kept += 1
    return list(texts), total


class Batch(NamedTuple):
    """Inputs and labels of a step, each (texts, tokens)."""

    ids: Tensor
    there: Tensor  # 1 where there is a token
    labels: Tensor  # -100 where nothing is predicted

    def some(self, rows: list[int]) -> Batch:
        """Return some of the texts, no wider than the longest of them."""
        width = int(self.there[rows].sum(dim=1).max())
        return Batch(*(part[rows, :width] for part in self))


def seed(number: int) -> None:
    """Seed torch's generators; its own ``manual_seed`` takes longer than a step of a tiny model."""
    torch.default_generator.manual_seed(number)
    if torch.cuda.is_available():
        torch.cuda.manual_seed_all(number)


def padded(tokens: Tokens, rows: Sequence[Sequence[int] | Ids]) -> tuple[Tensor, Tensor]:
    """Return texts filled up to one length, and 1 where a token is one of theirs."""
    lengths = np.array([len(row) for row in rows])
    there = np.arange(lengths.max()) < lengths[:, None]
    ids = np.full(there.shape, tokens.tokenizer.pad_token_id or 0, dtype=np.int64)
    ids[there] = np.concatenate(rows)
    return torch.from_numpy(ids), torch.from_numpy(there.astype(np.int64))


def _moved(parts: Sequence[Tensor], device: torch.device) -> list[Tensor]:
    """Return tensors on a device; a GPU copies them while it computes."""
    if device.type != "cuda":
        return [part.to(device) for part in parts]
    return [part.pin_memory().to(device, non_blocking=True) for part in parts]


def batched(tokens: Tokens, rows: Sequence[Sequence[int] | Ids], share: float) -> Batch:
    """Return texts of a step side by side; the tokens to hide are drawn from torch's generator.

    ``share``: part of the tokens that masked models predict; 0: all follow the ones before them.
    """
    ids, there = padded(tokens, rows)
    if share:
        hidden, labels = hide(tokens, ids, there, len(tokens), share)
        return Batch(hidden, there, labels)
    labels = torch.where(there == 1, ids, IGNORED)
    labels[:, 0] = IGNORED  # nothing stands before it
    return Batch(ids, there, labels)


def _passes(net: Any, rows: Step, room: int) -> Iterator[list[int]]:
    """Yield the rows of each of this process's passes; gradients are exchanged after the last."""
    number, index = distributed.number(), distributed.index()
    if index:  # masks are drawn alike, dropout is not
        seed(torch.initial_seed() + (index << 40))
    every = distributed.passes([len(ids) for ids in rows.ids], room, number, index)
    for n, own in enumerate(every, 1):
        with distributed.exchange(net, last=n == len(every)):
            yield own


def losses_of(
    tokens: Tokens, net: Any, rows: Step, *, share: float, room: int = 0, mixed: bool = False
) -> Iterator[tuple[Tensor, float]]:
    """Yield the mean losses of this process's parts of a step, weighed by their predictions.

    Parameters
    ----------
    share
        Part of the tokens that masked models predict; 0: the model is a causal one.
    room
        Positions of a part at most; 0: all texts that this process has are one.
    mixed
        Whether products are computed in bfloat16.
    """
    batch = batched(tokens, rows.ids, share)
    whole = int((batch.labels != IGNORED).sum())
    where = getattr(net, "module", net).device.type  # in several processes it is wrapped
    for own in _passes(net, rows, room):
        part = batch.some(own or [0])  # all processes exchange gradients in their last pass
        predicted = int((part.labels != IGNORED).sum()) if own else 0
        with torch.autocast(where, torch.bfloat16, enabled=mixed):
            loss = loss_of(net, part, masked=share > 0)
        yield loss, predicted * distributed.number() / max(whole, 1)


def class_losses(
    tokens: Tokens, net: Any, rows: Step, *, room: int, mixed: bool
) -> Iterator[tuple[Tensor, float]]:
    """Yield the mean losses of a classifier as :func:`losses_of` does, weighed by their texts."""
    assert rows.labels is not None
    device = getattr(net, "module", net).device
    for own in _passes(net, rows, room):
        at = own or [0]
        parts = (*padded(tokens, [rows.ids[i] for i in at]), torch.from_numpy(rows.labels[at]))
        ids, there, labels = _moved(parts, device)
        with torch.autocast(device.type, torch.bfloat16, enabled=mixed):
            logits = net(input_ids=ids, attention_mask=there).logits
        loss = torch.nn.functional.cross_entropy(logits, labels)
        yield loss, len(own) * distributed.number() / len(rows.ids)


def loss_of(net: Any, batch: Batch, *, masked: bool) -> Tensor:
    """Return the mean cross-entropy of the tokens that are predicted; 0 if none is."""
    model = getattr(net, "module", net)
    places = (batch.labels != IGNORED).nonzero(as_tuple=True)  # here: a GPU need not be waited for
    nothing = not len(places[0])
    ids, there, labels, *chosen = _moved([*batch, *places], model.device)
    if not masked:
        out = net(input_ids=ids, attention_mask=there, labels=None if nothing else labels)
        loss: Tensor = out.logits.sum() * 0.0 if nothing else out.loss
        return loss
    # without labels: from them BART would make up another input for its decoder than when asked
    with _only(model, tuple(chosen)):
        logits = net(input_ids=ids, attention_mask=there).logits
    if logits.dim() == 3:  # the output layer is no module of its own, so all places are there
        logits = logits[tuple(chosen)]
    if nothing:
        zero: Tensor = logits.sum() * 0.0
        return zero
    return torch.nn.functional.cross_entropy(logits, labels[tuple(chosen)])


@contextmanager
def _only(model: Any, chosen: tuple[Tensor, ...]) -> Iterator[None]:
    """Put only some places through the output layer: with its vocabulary it costs the most."""

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
    tokens: Tokens, ids: Tensor, there: Tensor, vocabulary: int, share: float = MASKED
) -> tuple[Tensor, Tensor]:
    """Return inputs with hidden tokens, and labels that are the ids at those and -100 elsewhere.

    In each text at least one token is predicted. Draws from torch's own generator.
    """
    special = torch.isin(ids, torch.tensor(tokens.tokenizer.all_special_ids))
    free = (there == 1) & ~special
    chance = torch.rand(ids.shape).masked_fill(~free, 2.0)
    chosen = chance < share
    first = chance.argmin(dim=1)
    rows = torch.arange(len(ids))
    chosen[rows, first] |= free[rows, first]
    kind, other = torch.rand(ids.shape), torch.randint(vocabulary, ids.shape)
    hidden = torch.where(chosen & (kind < HIDDEN), torch.tensor(tokens.mask_id), ids)
    swapped = chosen & (kind >= HIDDEN) & (kind < HIDDEN + RANDOM)
    return torch.where(swapped, other, hidden), torch.where(chosen, ids, IGNORED)
