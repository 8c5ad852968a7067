"""Training a model a little further on texts, so that it can be asked again.

One seed gives one order of texts and one choice of masks, drawn anew at every step from seed and
step: so a training that was stopped goes on from its last checkpoint as if it had not been.
"""

from __future__ import annotations

import math
import shutil
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

import numpy as np
import torch
from tqdm import tqdm
from transformers import AutoModelForCausalLM, AutoModelForMaskedLM

from builders.lib.problem import Problem
from probes.models.batches import cores
from probes.models.body import pretrained
from probes.models.tokens import HEAD, Tokens, longest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

CHECKPOINT = "checkpoint.pt"
DONE = "model"
EVERY = 200  # steps between checkpoints
MASKED = 0.15  # share of the tokens that are predicted (Devlin et al. 2019, section 3.1)
HIDDEN, RANDOM = 0.8, 0.1  # of those: shares that become the mask, and any other token
CLIP = 1.0  # largest norm of a gradient
IGNORED = -100
GRID = 2.0**-18  # of weights in float64: last bits, that differ between processors, are far below

Row = TypeVar("Row")  # what a model is trained on: tokens, or tokens and a label


class Tuned(NamedTuple):
    """A model that was trained further."""

    folder: Path  # with its files
    steps: int  # of the training


class Tuning(NamedTuple):
    """How a model is trained."""

    learning_rate: float  # of AdamW without weight decay; falls to 0 along a line
    epochs: int
    batch: int  # texts in a step
    length: int  # tokens of a text at most, special ones included: longer texts become several
    seed: int


def tuned(
    where: Path,
    name: str,
    kind: Literal["masked", "causal"],
    dtype: str,
    texts: Sequence[str],
    tuning: Tuning,
    into: Path,
    *,
    pickles: bool = False,
) -> Tuned:
    """Train the model in one folder on texts, and save it with its tokenizer in another.

    Masked models learn by masked language modelling, in the same forward as they are asked (the
    decoder of BART too sees the masked text), causal ones by the next token.

    Parameters
    ----------
    dtype
        The arithmetic that the model is asked in; it is trained in float32 at least.
    into
        Holds a checkpoint while the training is under way, and the model once it is done: what
        is there is not done again. The caller makes sure that it is of the same model, texts and
        settings.

    Raises
    ------
    Problem
        If the model cannot be trained so, or there is no text, or a loss is not finite.
    """
    tokens = Tokens(where, name)
    if kind == "masked" and tokens.mask_id is None:
        raise Problem(f"models.{name}: has no mask token, so it is not a masked model")
    torch.manual_seed(tuning.seed)
    exact = "float64" if dtype == "float64" else "float32"  # small steps vanish in bfloat16
    auto = AutoModelForMaskedLM if kind == "masked" else AutoModelForCausalLM
    model: Any = pretrained(where, name, exact, auto, pickles=pickles).train()
    rows = pieces(tokens, texts, min(tuning.length, longest(tokens.tokenizer, model)))
    if not rows:
        raise Problem(f"models.{name}: nothing to train on; the texts are empty")
    found = Tuned(into / DONE, math.ceil(len(rows) / tuning.batch) * tuning.epochs)
    if found.folder.is_dir():
        return found
    into.mkdir(parents=True, exist_ok=True)
    threads = torch.get_num_threads()
    # in double precision one thread, so that the last bits do not depend on their number
    torch.set_num_threads(1 if exact == "float64" else cores())
    try:
        loss = partial(_loss, model, tokens, masked=kind == "masked")
        fit(model, name, rows, tuning, into / CHECKPOINT, loss)
    finally:
        torch.set_num_threads(threads)
    if exact == "float64":
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.copy_(torch.round(parameter / GRID) * GRID + 0.0)  # no -0.0
    save(model, tokens, where, into)
    return found


def save(model: Any, tokens: Tokens, where: Path, into: Path) -> None:
    """Save a trained model with the tokenizer of the one it was made of, whole or not at all."""
    unfinished = into / f"{DONE}.partial"
    shutil.rmtree(unfinished, ignore_errors=True)
    model.eval().save_pretrained(unfinished)
    tokens.tokenizer.save_pretrained(unfinished)
    _like(where, unfinished)
    unfinished.rename(into / DONE)
    (into / CHECKPOINT).unlink(missing_ok=True)


def pieces(tokens: Tokens, texts: Sequence[str], length: int) -> list[list[int]]:
    """Return the texts as tokens, those too long in parts, each with its special tokens."""
    (whole,), (bare,) = tokens.encode([HEAD]), tokens.encode([HEAD], special=False)
    before = tokens.opening()
    after = whole[len(before) + len(bare) :]
    room = length - len(before) - len(after)
    return [
        [*before, *ids[i : i + room], *after]
        for ids in tokens.encode(texts, special=False)
        for i in range(0, len(ids), room)
    ]


def fit(
    model: Any,
    name: str,
    rows: Sequence[Row],
    tuning: Tuning,
    checkpoint: Path,
    loss_of: Callable[[list[Row]], torch.Tensor],
) -> None:
    """Train in place, from the checkpoint on if there is one.

    Parameters
    ----------
    loss_of
        Gives the mean loss of some rows.

    Raises
    ------
    Problem
        If a loss is not finite.
    """
    optimizer = torch.optim.AdamW(model.parameters(), lr=tuning.learning_rate, weight_decay=0.0)
    each = math.ceil(len(rows) / tuning.batch)
    total = each * tuning.epochs
    done = 0
    if checkpoint.is_file():
        held = torch.load(checkpoint, weights_only=True, map_location="cpu")
        model.load_state_dict(held["model"])
        optimizer.load_state_dict(held["optimizer"])
        done = held["step"]
        del held  # as large as the model three times
    bar = tqdm(total=total, initial=done, desc=f"tuning {name}", unit="step", disable=None)
    with bar:
        for step in range(done, total):
            epoch, within = divmod(step, each)
            order = _order(len(rows), tuning.seed, epoch)
            some = [rows[i] for i in order[within * tuning.batch : (within + 1) * tuning.batch]]
            torch.manual_seed(tuning.seed * 1_000_003 + step)  # of masks, and of dropout
            for group in optimizer.param_groups:
                group["lr"] = tuning.learning_rate * (1 - step / total)
            loss = loss_of(some)
            if not torch.isfinite(loss):
                raise Problem(
                    f"models.{name}: the loss is not finite at step {step}; lower the learning rate"
                )
            optimizer.zero_grad(set_to_none=True)
            loss.backward()  # type: ignore[no-untyped-call]
            torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
            optimizer.step()
            bar.update()
            if (step + 1) % EVERY == 0 and step + 1 < total:
                _keep(checkpoint, model, optimizer, step + 1)


def _order(rows: int, seed: int, epoch: int) -> list[int]:
    """Return the order of the texts in an epoch."""
    found: list[int] = np.random.default_rng([seed, epoch]).permutation(rows).tolist()
    return found


def _loss(model: Any, tokens: Tokens, rows: list[list[int]], *, masked: bool) -> torch.Tensor:
    """Return the mean cross-entropy of the tokens that are predicted."""
    width = max(map(len, rows))
    pad = tokens.tokenizer.pad_token_id or 0
    ids = torch.tensor([row + [pad] * (width - len(row)) for row in rows])
    there = torch.tensor([[1] * len(row) + [0] * (width - len(row)) for row in rows])
    if not masked:
        labels = torch.where(there == 1, ids, IGNORED)
        options = {"input_ids": ids, "attention_mask": there, "labels": labels}
        loss: torch.Tensor = model(**{k: v.to(model.device) for k, v in options.items()})[0]
        return loss
    ids, labels = (x.to(model.device) for x in hide(tokens, ids, there, len(tokens)))
    chosen = labels != IGNORED
    # without labels: from them BART would make up another input for its decoder than when asked
    with _only(model, chosen):
        logits = model(input_ids=ids, attention_mask=there.to(model.device)).logits
    if logits.dim() == 3:  # the output layer is no module of its own, so all places are there
        logits = logits[chosen]
    return torch.nn.functional.cross_entropy(logits, labels[chosen])


@contextmanager
def _only(model: Any, chosen: torch.Tensor) -> Iterator[None]:
    """Put only some places through the output layer: with its vocabulary it costs the most."""

    def pick(_: Any, given: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
        return (given[0][chosen], *given[1:])

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
    tokens: Tokens, ids: torch.Tensor, there: torch.Tensor, vocabulary: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return inputs with hidden tokens, and labels that are the ids at those and -100 elsewhere.

    Of each text at least one token is predicted. Draws from torch's own generator.
    """
    special = torch.isin(ids, torch.tensor(tokens.tokenizer.all_special_ids))
    free = (there == 1) & ~special
    chance = torch.rand(ids.shape).masked_fill(~free, 2.0)
    chosen = chance < MASKED
    first = chance.argmin(dim=1)
    rows = torch.arange(len(ids))
    chosen[rows, first] |= free[rows, first]
    kind, other = torch.rand(ids.shape), torch.randint(vocabulary, ids.shape)
    given = torch.where(chosen & (kind < HIDDEN), torch.tensor(tokens.mask_id), ids)
    swapped = chosen & (kind >= HIDDEN) & (kind < HIDDEN + RANDOM)
    return torch.where(swapped, other, given), torch.where(chosen, ids, IGNORED)


def _keep(checkpoint: Path, model: Any, optimizer: Any, step: int) -> None:
    """Write a checkpoint whole or not at all."""
    partial = checkpoint.with_suffix(".partial")
    held = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}
    torch.save(held, partial)
    partial.replace(checkpoint)


def _like(where: Path, into: Path) -> None:
    """Bring along what belongs to a tokenizer and is not saved with it."""
    known = {path.name for path in into.iterdir()}
    for path in _tokenizer_files(where):
        if path.name not in known:
            shutil.copyfile(path, into / path.name)


def _tokenizer_files(where: Path) -> Iterator[Path]:
    for pattern in ("*.txt", "*.model", "*.codes", "vocab.json", "merges.txt", "tokenizer*.json"):
        yield from where.glob(pattern)
