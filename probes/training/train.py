"""Training: the loop that all share, and the further training of language models on texts.

One seed gives one order of texts and one choice of masks, drawn anew at every step from seed and
step: so a training that was stopped goes on from its last checkpoint as if it had not been.
"""

from __future__ import annotations

import hashlib
import json
import math
import shutil
from contextlib import contextmanager
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import torch
from transformers import AutoModelForCausalLM, AutoModelForMaskedLM
from transformers.utils.logging import set_verbosity_error

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.progress import Bar
from plumbline.builders.core.snapshot import write_bytes
from plumbline.probes.models.batching import cores
from plumbline.probes.models.forward import pretrained
from plumbline.probes.models.tokenizer import Tokens, longest
from plumbline.probes.training import distributed
from plumbline.probes.training.mlm import MASKED, parts, seed
from plumbline.probes.training.rows import Batch, Rows, pieces, remove, stored

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    LossOf = Callable[[Any, Batch], Iterable[tuple[torch.Tensor, float]]]

CHECKPOINT = "checkpoint.pt"
CODE = ("classifier.py", "mlm.py", "rows.py", "train.py")  # that a training depends on
DONE = "model"
LOSSES = "losses.json"
EVERY = 200  # steps between checkpoints
TOKENIZERS = ("*.txt", "*.model", "*.codes", "vocab.json", "merges.txt", "tokenizer*.json")
CLIP = 1.0  # largest norm of a gradient
SMALL = 10_000_000  # parameters of a model that one thread trains as fast as several
OPTIMIZERS: dict[str, Any] = {
    "adamw": partial(torch.optim.AdamW, fused=True),  # of a tiny model, else half of a step's time
    "adam": partial(torch.optim.Adam, fused=True),
    "radam": torch.optim.RAdam,
}

# It warns of every weight that a new head lacks, which is what training it is for.
set_verbosity_error()  # type: ignore[no-untyped-call]


class Loss(NamedTuple):
    """What one step came to."""

    loss: float  # mean cross-entropy in nats of the tokens that were predicted, before the step
    learning_rate: float


class Trained(NamedTuple):
    """A model that was trained further."""

    folder: Path  # with its files
    losses: list[Loss]  # of all steps

    @property
    def steps(self) -> int:
        """Return the number of steps."""
        return len(self.losses)


class Tuning(NamedTuple):
    """How a model is trained."""

    learning_rate: float  # highest of the optimizer; falls to 0 along a line
    epochs: int
    batch: int  # texts in a step
    length: int  # tokens of a text at most, special ones included: longer texts become several
    seed: int
    warmup: float = 0.0  # share of the steps in which the learning rate rises along a line
    weight_decay: float = 0.0  # of matrices; biases and what scales a layer have none
    betas: tuple[float, float] = (0.9, 0.999)
    epsilon: float = 1e-8
    precision: str = "float32"  # of products (GPU: TF32); bfloat16: mixed, weights as they are
    at_once: int = 0  # texts of this length that a process puts through together; 0: all its own
    masked: float = MASKED  # share of the tokens that masked models predict
    optimizer: str = "adamw"
    batch_tokens: int = 0  # tokens in a step, where `batch` is not to count; at least two lengths

    @property
    def room(self) -> int:
        """Return the positions that go through the model together at most; 0: no limit."""
        return self.at_once * self.length


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
    if (into / DONE).is_dir():
        return finished(into)
    tokens = Tokens(where, name)
    if kind == "masked" and tokens.mask_id is None:
        raise UserError(f"models.{name}: has no mask token, so it is not a masked model")
    seed(tuning.seed)
    auto = AutoModelForMaskedLM if kind == "masked" else AutoModelForCausalLM
    model: Any = pretrained(where, name, "float32", auto, pickles=pickles).train()
    room = min(tuning.length, longest(tokens.tokenizer, model))
    rows = stored(pieces(tokens, texts, room), into)
    if not len(rows.ends):
        raise UserError(f"models.{name}: nothing to train on; the texts are empty")
    loss = partial(
        parts,
        tokens,
        masked=kind == "masked",
        room=tuning.room,
        share=tuning.masked,
        mixed=tuning.precision == "bfloat16",
    )
    return train_and_save(model, tokens, where, rows, tuning, into, loss, each=each)


def train_and_save(
    model: Any,
    tokens: Tokens,
    where: Path,
    rows: Rows,
    tuning: Tuning,
    into: Path,
    loss_of: LossOf,
    *,
    each: bool = False,
) -> Trained:
    """Train a model that is loaded, and save it with the tokenizer of the folder it came from.

    See :func:`finetune` for ``into`` and ``each``, :func:`fit` for ``loss_of``.
    """

    def keep(epochs: int) -> None:
        folder = epoch(into, epochs) if epochs else into / DONE
        if distributed.first() and not folder.is_dir() and (each or not epochs):
            save(model, tokens, where, folder)
        model.train()
        distributed.wait()

    threads = torch.get_num_threads()
    torch.set_num_threads(threads_for(model))
    try:
        with _tensor_cores():
            losses = fit(model, tokens.name, rows, tuning, into / CHECKPOINT, loss_of, keep)
    finally:
        torch.set_num_threads(threads)
    if distributed.first():
        write_bytes(into / LOSSES, json.dumps(losses).encode())
    keep(0)
    if distributed.first():
        (into / CHECKPOINT).unlink(missing_ok=True)
        remove(into)
    return finished(into)


@contextmanager
def _tensor_cores() -> Iterator[None]:
    """Let a GPU compute products of float32 in TF32; those of a model that is asked stay exact."""
    kinds: tuple[Any, ...] = (torch.backends.cuda.matmul, torch.backends.cudnn)
    before = [kind.fp32_precision for kind in kinds]
    try:
        for kind in kinds:
            kind.fp32_precision = "tf32"
        yield
    finally:
        for kind, own in zip(kinds, before, strict=True):
            kind.fp32_precision = own


def epoch(into: Path, number: int) -> Path:
    """Return where :func:`finetune` saves a model after an epoch that is not the last."""
    return into / f"epoch-{number}"


def finished(into: Path) -> Trained:
    """Return a training that is done."""
    losses = json.loads((into / LOSSES).read_text("utf-8"))
    return Trained(into / DONE, [Loss(*step) for step in losses])


def recipe(texts: Iterable[str], *told: object) -> str:
    """Return a hash that stands for a training: another one, or other code, never continues it."""
    found = hashlib.sha256()
    for text in texts:
        found.update(hashlib.sha256(text.encode()).digest())
    code = [path.read_text("utf-8") for path in map(Path(__file__).with_name, CODE)]
    libraries = version("torch").partition("+")[0]
    found.update(json.dumps([told, code, libraries], sort_keys=True).encode())
    return found.hexdigest()


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
    rows: Rows,
    tuning: Tuning,
    checkpoint: Path,
    loss_of: LossOf,
    after: Callable[[int], None] | None = None,
) -> list[Loss]:
    """Train in place, from the checkpoint on if there is one; return the loss of every step.

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
    each = steps_of(rows.lengths, tuning)
    total = each * tuning.epochs
    losses = _resumed(checkpoint, model, optimizer)
    together, net = distributed.accelerator(), model
    if together is not None:
        net, optimizer = together.prepare(model, optimizer)
    quiet = None if distributed.first() else True
    done = len(losses)
    bar = Bar(total=total, initial=done, desc=f"tuning {name}", unit="step", disable=quiet)
    with bar:
        for step, some in _steps(rows, tuning, done):
            rate = tuning.learning_rate * _rising(step, total, round(total * tuning.warmup))
            for group in optimizer.param_groups:
                group["lr"] = rate
            optimizer.zero_grad(set_to_none=True)
            mean = _backward(together, loss_of(net, some))
            if not math.isfinite(mean):
                raise UserError(
                    f"models.{name}: the loss is not finite at step {step}; lower the learning rate"
                )
            torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
            optimizer.step()
            losses.append(Loss(mean, rate))
            bar.update()
            epochs, within = divmod(step + 1, each)
            if after is not None and not within and step + 1 < total:
                after(epochs)
            if (step + 1) % EVERY == 0 and step + 1 < total and distributed.first():
                _keep(checkpoint, model, optimizer, losses)
    return losses


def _steps(rows: Rows, tuning: Tuning, done: int) -> Iterator[tuple[int, Batch]]:
    """Yield the rows of every step from one on, torch's generator being seeded for it."""
    lengths = rows.lengths
    each = steps_of(lengths, tuning)
    for number in range(done // each, tuning.epochs):
        order, ends = ordered(lengths, tuning, number)
        for within in range(max(0, done - number * each), each):
            step = number * each + within
            seed(tuning.seed * 1_000_003 + step)  # of masks, and of dropout
            yield step, rows.some(order[ends[within] : ends[within + 1]])


def _rising(step: int, total: int, warm: int) -> float:
    """Return the share of the highest learning rate."""
    return (step + 1) / warm if step < warm else 1 - (step - warm) / (total - warm)


def _resumed(checkpoint: Path, model: Any, optimizer: Any) -> list[Loss]:
    """Set a model and its optimizer to a checkpoint, if there is one; return its losses."""
    if not checkpoint.is_file():
        return []
    kept = torch.load(checkpoint, weights_only=True, map_location="cpu")
    model.load_state_dict(kept["model"])
    optimizer.load_state_dict(kept["optimizer"])
    return [Loss(*step) for step in kept["losses"]]


def steps_of(lengths: NDArray[np.int64], tuning: Tuning) -> int:
    """Return the steps of an epoch."""
    if tuning.batch_tokens:
        return max(1, math.ceil(int(lengths.sum()) / tuning.batch_tokens))
    return math.ceil(len(lengths) / tuning.batch)


def ordered(
    lengths: NDArray[np.int64], tuning: Tuning, epoch: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the order of the rows in an epoch, and where in it each step begins, and the end."""
    order = np.random.default_rng([tuning.seed, epoch]).permutation(len(lengths))
    steps = steps_of(lengths, tuning)
    if not tuning.batch_tokens:
        return order, np.minimum(np.arange(steps + 1) * tuning.batch, len(order))
    own = lengths[order]
    middle = np.cumsum(own) - own / 2
    inner = np.searchsorted(middle, np.arange(1, steps) * own.sum() / steps)
    return order, np.concatenate([[0], inner, [len(order)]])


def _optimizer(model: Any, tuning: Tuning) -> torch.optim.Optimizer:
    groups: Any = model.parameters()
    if tuning.weight_decay:
        every = list(model.parameters())
        matrices, others = (
            [p for p in every if (p.ndim > 1) == is_one] for is_one in (True, False)
        )
        groups = [{"params": matrices}, {"params": others, "weight_decay": 0.0}]
    found: torch.optim.Optimizer = OPTIMIZERS[tuning.optimizer](
        groups,
        lr=tuning.learning_rate,
        betas=tuning.betas,
        eps=tuning.epsilon,
        weight_decay=tuning.weight_decay,
    )
    return found


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


def _keep(checkpoint: Path, model: Any, optimizer: Any, losses: list[Loss]) -> None:
    """Write a checkpoint whole or not at all."""
    partial = checkpoint.with_suffix(".partial")
    state = {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "losses": [tuple(loss) for loss in losses],
    }
    with partial.open("wb") as file:  # torch itself does not tell that a disk is full
        torch.save(state, file)
    partial.replace(checkpoint)
