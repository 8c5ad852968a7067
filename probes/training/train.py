"""The training loop, and the fine-tuning of language models and classifiers.

The seed determines the order of texts; masks are sampled with a seed that depends on the step. A
training run that is resumed from a checkpoint therefore gives the same result as an uninterrupted
one.
"""

from __future__ import annotations

import hashlib
import json
import math
import shutil
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import torch
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoModelForSequenceClassification,
)
from transformers.utils.logging import set_verbosity_error

from plumbline.builders.core.errors import Bar, UserError
from plumbline.builders.core.snapshot import write_bytes
from plumbline.probes.models.batching import cores, device
from plumbline.probes.models.forward import pretrained
from plumbline.probes.models.tokenizer import Tokens, longest
from plumbline.probes.training import distributed
from plumbline.probes.training.batches import (
    MASKED,
    Rows,
    class_losses,
    cut,
    losses_of,
    pieces,
    seed,
    tokenised,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    LossOf = Callable[[Any, Rows], Iterable[tuple[torch.Tensor, float]]]

CHECKPOINT = "checkpoint.pt"
CODE = ("batches.py", "train.py")  # source files that determine the result of a training run
DONE = "model"
LOSSES = "losses.json"
EVERY = 200  # number of steps between checkpoints
TOKENIZERS = ("*.txt", "*.model", "*.codes", "vocab.json", "merges.txt", "tokenizer*.json")
CLIP = 1.0  # maximum norm of a gradient
SMALL = 10_000_000  # model size up to which products are too small for several threads
OPTIMIZERS: dict[str, Any] = {
    "adamw": partial(torch.optim.AdamW, fused=True),  # halves the training time of tiny models
    "adam": partial(torch.optim.Adam, fused=True),
    "radam": torch.optim.RAdam,
}

# transformers warns about every new weight in a head, although these weights are then trained.
set_verbosity_error()  # type: ignore[no-untyped-call]


class Loss(NamedTuple):
    """The loss of one step."""

    loss: float  # mean cross-entropy of the predicted tokens before the step, in nats
    learning_rate: float


class Trained(NamedTuple):
    """A trained model."""

    folder: Path  # contains the files of the model
    losses: list[Loss]  # one per step


class Tuning(NamedTuple):
    """Settings of a training run."""

    learning_rate: float  # maximum; afterwards it decays linearly to 0
    epochs: int
    batch: int  # texts per step
    length: int  # maximum tokens in a text, including special ones; longer texts are split
    seed: int
    warmup: float = 0.0  # share of steps with a linearly rising learning rate
    weight_decay: float = 0.0  # applied to weight matrices, not to biases or layer norms
    betas: tuple[float, float] = (0.9, 0.999)
    epsilon: float = 1e-8
    precision: str = "float32"  # for matrix products (TF32 on GPUs); bfloat16: mixed precision
    at_once: int = 0  # texts of `length` tokens in one pass of a process; 0: all texts
    masked: float = MASKED  # share of tokens that masked models predict
    optimizer: str = "adamw"
    batch_tokens: int = 0  # tokens per step, instead of `batch`; at least twice `length`

    @property
    def options(self) -> dict[str, Any]:
        """Return the options of the loss: maximum positions per pass (0: all), mixed precision."""
        return {"room": self.at_once * self.length, "mixed": self.precision == "bfloat16"}


def finetune(
    where: Path,
    name: str,
    kind: Literal["masked", "causal"],
    texts: Sequence[str],
    tuning: Tuning,
    into: Path,
    *,
    pickles: bool = False,
    every_epoch: bool = False,
) -> Trained:
    """Train the model in one folder on texts, and save it with its tokenizer in another folder.

    Masked models are trained by masked language modelling, with the same forward pass as in probes
    (BART's decoder also reads the masked text); causal models are trained by next-token prediction.
    Weights are float32, since small steps vanish in bfloat16; their last bits differ between
    processors.

    Parameters
    ----------
    into
        Folder that contains a checkpoint during training and the model afterwards; both are reused.
        The caller must ensure that they belong to the same model, texts and settings.
    every_epoch
        Whether to save the model after every epoch too, in ``epoch-N``; see :func:`epoch`.

    Raises
    ------
    UserError
        If the model cannot be trained, there is no text, or a loss is not finite.
    """
    if (into / DONE).is_dir():
        return finished(into)
    tokens = Tokens(where, name)
    if kind == "masked" and tokens.mask_id is None:
        raise UserError(f"models.{name}: has no mask token, so it is not a masked model")
    seed(tuning.seed)
    auto = AutoModelForMaskedLM if kind == "masked" else AutoModelForCausalLM
    model: Any = pretrained(where, name, "float32", auto, pickles=pickles).train()
    room = min(tuning.length, longest(tokens.tokenizer, model))
    rows = tokenised(pieces(tokens, texts, room))
    share = tuning.masked if kind == "masked" else 0.0
    losses = partial(losses_of, tokens, share=share, **tuning.options)
    options = {"every_epoch": every_epoch}
    return _train_and_save(model, tokens, where, rows, tuning, into, losses, **options)


def finetune_classifier(
    where: Path,
    name: str,
    texts: Sequence[str],
    labels: Sequence[int],
    classes: Sequence[str],
    tuning: Tuning,
    into: Path,
) -> Trained:
    """Fine-tune the masked model in one folder as a classifier, and save it in another folder.

    Texts longer than ``tuning.length`` are truncated. The classification head is initialised from
    the seed. Weights are float32; their last bits differ between processors. Raises UserError if
    the model is unsuitable, there is no text, or the loss is not finite.
    """
    if (into / DONE).is_dir():
        return finished(into)
    tokens = Tokens(where, name)
    seed(tuning.seed)
    names = dict(enumerate(classes))
    config = AutoConfig.from_pretrained(
        where, trust_remote_code=False, id2label=names, label2id={c: i for i, c in names.items()}
    )
    auto: Any = AutoModelForSequenceClassification
    options = {"config": config, "dtype": torch.float32, "use_safetensors": True}
    model = auto.from_pretrained(where, **options).train().to(device())
    room = min(tuning.length, longest(tokens.tokenizer, model))
    rows = tokenised(cut(tokens, texts, room), labels)
    losses = partial(class_losses, tokens, **tuning.options)
    return _train_and_save(model, tokens, where, rows, tuning, into, losses)


def _train_and_save(
    model: Any,
    tokens: Tokens,
    where: Path,
    rows: Rows,
    tuning: Tuning,
    into: Path,
    losses_of: LossOf,
    *,
    every_epoch: bool = False,
) -> Trained:
    """Train a loaded model, and save it with the tokenizer from its original folder.

    See :func:`finetune` for ``into`` and ``every_epoch``, and :func:`fit` for ``losses_of``.
    """
    if not rows.ids:
        raise UserError(f"models.{tokens.name}: nothing to train on; provide at least one text")
    into.mkdir(parents=True, exist_ok=True)

    def keep(epochs: int) -> None:
        folder = epoch(into, epochs) if epochs else into / DONE
        if distributed.first() and not folder.is_dir() and (every_epoch or not epochs):
            save(model, tokens, where, folder)
        model.train()
        distributed.wait()

    matmul: Any = torch.backends.cuda.matmul
    threads, precision = torch.get_num_threads(), matmul.fp32_precision
    tiny = sum(parameter.numel() for parameter in model.parameters()) < SMALL
    torch.set_num_threads(1 if tiny else max(1, cores() // distributed.number()))
    matmul.fp32_precision = "tf32"  # only while training; probes use exact float32
    try:
        losses = fit(model, tokens.name, rows, tuning, into / CHECKPOINT, losses_of, keep)
    finally:
        torch.set_num_threads(threads)
        matmul.fp32_precision = precision
    if distributed.first():
        write_bytes(into / LOSSES, json.dumps(losses).encode())
    keep(0)
    if distributed.first():
        (into / CHECKPOINT).unlink(missing_ok=True)
    return finished(into)


def epoch(into: Path, number: int) -> Path:
    """Return the folder in which :func:`finetune` saves a model after any epoch but the last."""
    return into / f"epoch-{number}"


def finished(into: Path) -> Trained:
    """Return the result of a finished training run."""
    losses = json.loads((into / LOSSES).read_text("utf-8"))
    return Trained(into / DONE, [Loss(*step) for step in losses])


def recipe(texts: Iterable[str], *facts: object) -> str:
    """Return the hash of a training run; a run is resumed only if its hash has not changed."""
    total = hashlib.sha256()
    for text in texts:
        total.update(hashlib.sha256(text.encode()).digest())
    code = [Path(__file__).with_name(name).read_text("utf-8") for name in CODE]
    libraries = version("torch").partition("+")[0]
    total.update(json.dumps([facts, code, libraries], sort_keys=True).encode())
    return total.hexdigest()


def save(model: Any, tokens: Tokens, where: Path, into: Path) -> None:
    """Save a trained model and its original tokenizer to a folder atomically."""
    unfinished = into.with_name(f"{into.name}.partial")
    shutil.rmtree(unfinished, ignore_errors=True)
    model.eval().save_pretrained(unfinished)
    tokens.tokenizer.save_pretrained(unfinished)
    saved = {path.name for path in unfinished.iterdir()}
    for path in {path for pattern in TOKENIZERS for path in where.glob(pattern)}:
        if path.name not in saved:  # a tokenizer file that save_pretrained omits
            shutil.copyfile(path, unfinished / path.name)
    unfinished.rename(into)


def fit(
    model: Any,
    name: str,
    rows: Rows,
    tuning: Tuning,
    checkpoint: Path,
    losses_of: LossOf,
    after: Callable[[int], None] | None = None,
) -> list[Loss]:
    """Train a model in place, resuming from a checkpoint if there is one; return all losses.

    Parameters
    ----------
    losses_of
        Function of a model and a step's rows that returns the mean loss and the weight of each part
        in this process; the sum of the weights averages 1 over processes. The model may be wrapped
        for several processes.
    after
        Function that is called after every epoch but the last, with the number of the epoch.

    Raises
    ------
    UserError
        If a loss is not finite.
    """
    optimizer: Any = _optimizer(model, tuning)
    epoch_steps = steps_of(rows.lengths, tuning)
    total = epoch_steps * tuning.epochs
    warm = round(total * tuning.warmup)
    losses = _resumed(checkpoint, model, optimizer)
    together, net = distributed.accelerator(), model
    if together is not None:
        net, optimizer = together.prepare(model, optimizer)
    quiet = None if distributed.first() else True
    done = len(losses)
    with Bar(total=total, initial=done, desc=f"tuning {name}", unit="step", disable=quiet) as bar:
        for step, batch in _steps(rows, tuning, done):
            share = (step + 1) / warm if step < warm else 1 - (step - warm) / (total - warm)
            rate = tuning.learning_rate * share
            for group in optimizer.param_groups:
                group["lr"] = rate
            optimizer.zero_grad(set_to_none=True)
            mean = _backward(together, losses_of(net, batch))
            if not math.isfinite(mean):
                raise UserError(
                    f"models.{name}: the loss is not finite at step {step}; lower the learning rate"
                )
            torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
            optimizer.step()
            losses.append(Loss(mean, rate))
            bar.update()
            epochs, within = divmod(step + 1, epoch_steps)
            if step + 1 == total:
                break
            if after is not None and not within:
                after(epochs)
            if (step + 1) % EVERY == 0 and distributed.first():
                _keep(checkpoint, model, optimizer, losses)
    return losses


def _steps(rows: Rows, tuning: Tuning, done: int) -> Iterator[tuple[int, Rows]]:
    """Yield the rows of every step, starting from step ``done``, and seed torch's generator."""
    lengths = rows.lengths
    epoch_steps = steps_of(lengths, tuning)
    for number in range(done // epoch_steps, tuning.epochs):
        order, ends = ordered(lengths, tuning, number)
        for within in range(max(0, done - number * epoch_steps), epoch_steps):
            step = number * epoch_steps + within
            seed(tuning.seed * 1_000_003 + step)  # for masks and dropout
            yield step, rows.select(order[ends[within] : ends[within + 1]])


def steps_of(lengths: NDArray[np.int64], tuning: Tuning) -> int:
    """Return the number of steps in an epoch."""
    if tuning.batch_tokens:
        return max(1, math.ceil(int(lengths.sum()) / tuning.batch_tokens))
    return math.ceil(len(lengths) / tuning.batch)


def ordered(
    lengths: NDArray[np.int64], tuning: Tuning, epoch: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the order of the rows in an epoch, and the boundaries of steps in that order."""
    order = np.random.default_rng([tuning.seed, epoch]).permutation(len(lengths))
    steps = steps_of(lengths, tuning)
    if not tuning.batch_tokens:
        return order, np.minimum(np.arange(steps + 1) * tuning.batch, len(order))
    sizes = lengths[order]
    middle = np.cumsum(sizes) - sizes / 2
    inner = np.searchsorted(middle, np.arange(1, steps) * sizes.sum() / steps)
    return order, np.concatenate([[0], inner, [len(order)]])


def _optimizer(model: Any, tuning: Tuning) -> torch.optim.Optimizer:
    matrices = {"params": [p for p in model.parameters() if p.ndim > 1]}
    vectors = {"params": [p for p in model.parameters() if p.ndim < 2], "weight_decay": 0.0}
    optimizer: torch.optim.Optimizer = OPTIMIZERS[tuning.optimizer](
        [matrices, vectors],
        lr=tuning.learning_rate,
        betas=tuning.betas,
        eps=tuning.epsilon,
        weight_decay=tuning.weight_decay,
    )
    return optimizer


def _backward(together: Any, parts: Iterable[tuple[torch.Tensor, float]]) -> float:
    """Accumulate the gradients of all parts and processes; return the mean loss."""
    total: Any = 0.0
    for mean, weight in parts:
        loss = mean * weight
        if together is None:
            loss.backward()  # type: ignore[no-untyped-call]
        else:
            together.backward(loss)
        total = total + loss.detach()
    return float(total if together is None else together.reduce(total, "mean"))


def _resumed(checkpoint: Path, model: Any, optimizer: Any) -> list[Loss]:
    """Restore a model and its optimizer from a checkpoint if there is one; return its losses."""
    if not checkpoint.is_file():
        return []
    state = torch.load(checkpoint, weights_only=True, map_location="cpu")
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    return [Loss(*step) for step in state["losses"]]


def _keep(checkpoint: Path, model: Any, optimizer: Any, losses: list[Loss]) -> None:
    """Write a checkpoint to a file atomically."""
    partial = checkpoint.with_suffix(".partial")
    steps = [tuple(loss) for loss in losses]
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "losses": steps}
    with partial.open("wb") as file:  # if given a path, torch does not report a full disk
        torch.save(state, file)
    partial.replace(checkpoint)
