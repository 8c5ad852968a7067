"""Training: the loop that all share, and the further training of language models on texts.

One seed gives one order of texts and one choice of masks, drawn anew at every step from seed and
step: so a training that was stopped goes on from its last checkpoint as if it had not been.
"""

from __future__ import annotations

import json
import math
import shutil
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

import numpy as np
import torch
from transformers import AutoModelForCausalLM, AutoModelForMaskedLM
from transformers.utils.logging import set_verbosity_error

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.progress import Bar
from plumbline.builders.core.snapshot import write_bytes
from plumbline.probes.models.batching import cores
from plumbline.probes.models.forward import pretrained
from plumbline.probes.models.tokenizer import HEAD, Tokens, longest
from plumbline.probes.training import distributed
from plumbline.probes.training.mlm import MASKED, parts, seed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

CHECKPOINT = "checkpoint.pt"
DONE = "model"
LOSSES = "losses.json"
EVERY = 200  # steps between checkpoints
TOKENIZERS = ("*.txt", "*.model", "*.codes", "vocab.json", "merges.txt", "tokenizer*.json")
CLIP = 1.0  # largest norm of a gradient
SMALL = 10_000_000  # parameters of a model that one thread trains as fast as several

# It warns of every weight that a new head lacks, which is what training it is for.
set_verbosity_error()  # type: ignore[no-untyped-call]

Row = TypeVar("Row")  # what a model is trained on: tokens, or tokens and a label


class Trained(NamedTuple):
    """A model that was trained further."""

    folder: Path  # with its files
    steps: int  # of the training


class Tuning(NamedTuple):
    """How a model is trained."""

    learning_rate: float  # highest of AdamW; falls to 0 along a line
    epochs: int
    batch: int  # texts in a step
    length: int  # tokens of a text at most, special ones included: longer texts become several
    seed: int
    warmup: float = 0.0  # share of the steps in which the learning rate rises along a line
    weight_decay: float = 0.0  # of matrices; biases and what scales a layer have none
    betas: tuple[float, float] = (0.9, 0.999)
    epsilon: float = 1e-8
    precision: str = "float32"  # of products; bfloat16: mixed, the weights stay as they are
    at_once: int = 0  # texts that a process puts through the model together; 0: all of its own
    masked: float = MASKED  # share of the tokens that masked models predict


class Loss(NamedTuple):
    """What one step came to."""

    loss: float  # mean cross-entropy in nats of the tokens that were predicted, before the step
    learning_rate: float


def finetune(
    where: Path,
    name: str,
    kind: Literal["masked", "causal"],
    texts: Sequence[str],
    tuning: Tuning,
    into: Path,
    *,
    pickles: bool = False,
    each: bool = False,
) -> Trained:
    """Train the model in one folder on texts, and save it with its tokenizer in another.

    Masked models learn by masked language modelling, in the same forward as they are asked (the
    decoder of BART too sees the masked text), causal ones by the next token. Weights are float32:
    small steps vanish in bfloat16, and their last bits differ between kinds of processors.

    Parameters
    ----------
    into
        Holds a checkpoint while the training is under way, and the model once it is done: what
        is there is not done again. The caller makes sure that it is of the same model, texts and
        settings.
    each
        Save it after every epoch too, in ``epoch-N`` beside the model; see :func:`epoch`.

    Raises
    ------
    UserError
        If the model cannot be trained so, or there is no text, or a loss is not finite.
    """
    tokens = Tokens(where, name)
    if kind == "masked" and tokens.mask_id is None:
        raise UserError(f"models.{name}: has no mask token, so it is not a masked model")
    seed(tuning.seed)
    auto = AutoModelForMaskedLM if kind == "masked" else AutoModelForCausalLM
    model: Any = pretrained(where, name, "float32", auto, pickles=pickles).train()
    rows = pieces(tokens, texts, min(tuning.length, longest(tokens.tokenizer, model)))
    if not rows:
        raise UserError(f"models.{name}: nothing to train on; the texts are empty")
    loss = partial(
        parts,
        tokens,
        masked=kind == "masked",
        at_once=tuning.at_once,
        share=tuning.masked,
        mixed=tuning.precision == "bfloat16",
    )
    return train_and_save(model, tokens, where, rows, tuning, into, loss, each=each)


def train_and_save(
    model: Any,
    tokens: Tokens,
    where: Path,
    rows: Sequence[Row],
    tuning: Tuning,
    into: Path,
    loss_of: Callable[[Any, list[Row]], Iterable[tuple[torch.Tensor, float]]],
    *,
    each: bool = False,
) -> Trained:
    """Train a model that is loaded, and save it with the tokenizer of the folder it came from.

    See :func:`finetune` for ``into`` and ``each``, :func:`fit` for ``loss_of``.
    """
    found = Trained(into / DONE, math.ceil(len(rows) / tuning.batch) * tuning.epochs)
    if found.folder.is_dir():
        return found
    into.mkdir(parents=True, exist_ok=True)

    def keep(epochs: int) -> None:
        folder = found.folder if epochs == tuning.epochs else epoch(into, epochs)
        if distributed.first() and not folder.is_dir() and (each or epochs == tuning.epochs):
            save(model, tokens, where, folder)
        model.train()
        distributed.wait()

    threads = torch.get_num_threads()
    torch.set_num_threads(threads_for(model))
    try:
        losses = fit(model, tokens.name, rows, tuning, into / CHECKPOINT, loss_of, keep)
    finally:
        torch.set_num_threads(threads)
    if distributed.first():
        write_bytes(into / LOSSES, json.dumps(losses).encode())
    keep(tuning.epochs)
    (into / CHECKPOINT).unlink(missing_ok=True)
    return found


def epoch(into: Path, number: int) -> Path:
    """Return where :func:`finetune` saves a model after an epoch that is not the last."""
    return into / f"epoch-{number}"


def losses(into: Path) -> list[Loss]:
    """Return what every step of a training that is done came to."""
    return [Loss(*step) for step in json.loads((into / LOSSES).read_text("utf-8"))]


def save(model: Any, tokens: Tokens, where: Path, into: Path) -> None:
    """Save a trained model with the tokenizer of the one it was made of, whole or not at all."""
    unfinished = into.with_name(f"{into.name}.partial")
    shutil.rmtree(unfinished, ignore_errors=True)
    model.eval().save_pretrained(unfinished)
    tokens.tokenizer.save_pretrained(unfinished)
    known = {path.name for path in unfinished.iterdir()}
    for pattern in TOKENIZERS:  # what belongs to a tokenizer and is not saved with it
        for path in where.glob(pattern):
            if path.name not in known:
                shutil.copyfile(path, unfinished / path.name)
    unfinished.rename(into)


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


def threads_for(model: Any) -> int:
    """Return the threads that a process trains a model with.

    One for a tiny model, whose products are too small to share: its bytes do not depend on how many
    cores there are then.
    """
    if sum(parameter.numel() for parameter in model.parameters()) < SMALL:
        return 1
    return max(1, cores() // distributed.number())


def fit(
    model: Any,
    name: str,
    rows: Sequence[Row],
    tuning: Tuning,
    checkpoint: Path,
    loss_of: Callable[[Any, list[Row]], Iterable[tuple[torch.Tensor, float]]],
    after: Callable[[int], None] | None = None,
) -> list[Loss]:
    """Train in place, from the checkpoint on if there is one; return what every step came to.

    Parameters
    ----------
    loss_of
        Gives, of a model and the rows of a step, mean losses of this process's parts of them and
        their weights, whose mean over the processes is 1 in sum; the model may be wrapped for
        several processes.
    after
        Is called after every epoch but the last, with its number.

    Raises
    ------
    UserError
        If a loss is not finite.
    """
    optimizer: Any = _optimizer(model, tuning)
    each = math.ceil(len(rows) / tuning.batch)
    total = each * tuning.epochs
    warm = round(total * tuning.warmup)
    done, losses = 0, []
    if checkpoint.is_file():
        held = torch.load(checkpoint, weights_only=True, map_location="cpu")
        model.load_state_dict(held["model"])
        optimizer.load_state_dict(held["optimizer"])
        done, losses = held["step"], [Loss(*step) for step in held.get("losses", ())]
        del held  # as large as the model three times
    together, net = distributed.accelerator(), model
    if together is not None:
        net, optimizer = together.prepare(model, optimizer)
    quiet = None if distributed.first() else True
    bar = Bar(total=total, initial=done, desc=f"tuning {name}", unit="step", disable=quiet)
    with bar:
        for step in range(done, total):
            epochs, within = divmod(step, each)
            order = np.random.default_rng([tuning.seed, epochs]).permutation(len(rows)).tolist()
            some = [rows[i] for i in order[within * tuning.batch : (within + 1) * tuning.batch]]
            seed(tuning.seed * 1_000_003 + step)  # of masks, and of dropout
            rising = (step + 1) / warm if step < warm else 1 - (step - warm) / (total - warm)
            for group in optimizer.param_groups:
                group["lr"] = tuning.learning_rate * rising
            optimizer.zero_grad(set_to_none=True)
            mean = _backward(together, loss_of(net, some))
            if not math.isfinite(mean):
                raise UserError(
                    f"models.{name}: the loss is not finite at step {step}; lower the learning rate"
                )
            torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
            optimizer.step()
            losses.append(Loss(mean, tuning.learning_rate * rising))
            bar.update()
            if after is not None and within + 1 == each and step + 1 < total:
                after(epochs + 1)
            if (step + 1) % EVERY == 0 and step + 1 < total and distributed.first():
                _keep(checkpoint, model, optimizer, step + 1, losses)
    return losses


def _optimizer(model: Any, tuning: Tuning) -> torch.optim.AdamW:
    groups: Any = model.parameters()
    if tuning.weight_decay:
        every = list(model.parameters())
        matrices, others = (
            [p for p in every if (p.ndim > 1) == is_one] for is_one in (True, False)
        )
        groups = [{"params": matrices}, {"params": others, "weight_decay": 0.0}]
    return torch.optim.AdamW(
        groups,
        lr=tuning.learning_rate,
        betas=tuning.betas,
        eps=tuning.epsilon,
        weight_decay=tuning.weight_decay,
        fused=True,  # of a tiny model, a step costs as much as all its products otherwise
    )


def _backward(together: Any, parts: Iterable[tuple[torch.Tensor, float]]) -> float:
    """Add up the gradients of all parts, over all processes; return the mean loss."""
    total: Any = 0.0
    for mean, weight in parts:
        loss = mean * weight
        if together is None:
            loss.backward()  # type: ignore[no-untyped-call]
        else:
            together.backward(loss)
        total = total + loss.detach()
    if together is not None:
        total = together.reduce(total, "mean")
    return float(total)


def _keep(checkpoint: Path, model: Any, optimizer: Any, step: int, losses: list[Loss]) -> None:
    """Write a checkpoint whole or not at all."""
    partial = checkpoint.with_suffix(".partial")
    held = {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "step": step,
        "losses": [tuple(loss) for loss in losses],
    }
    torch.save(held, partial)
    partial.replace(checkpoint)
