"""Making a classifier of a masked model: a small layer on top, and training on labelled texts.

Resumable as ``training.train``, whose loop it shares: a training that was stopped goes on
from its last checkpoint as if it had not been.
"""

from __future__ import annotations

import math
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import torch
from transformers import AutoConfig, AutoModelForSequenceClassification

from plumbline.builders.core.errors import Problem
from plumbline.probes.models.batching import cores, device
from plumbline.probes.models.tokenizer import Tokens, longest
from plumbline.probes.training.train import CHECKPOINT, DONE, Tuned, Tuning, fit, rounded, save

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path


def taught(
    where: Path,
    name: str,
    texts: Sequence[str],
    labels: Sequence[int],
    classes: Sequence[str],
    tuning: Tuning,
    into: Path,
    *,
    dtype: str = "float32",
) -> Tuned:
    """Train a classifier, from the masked model in a folder on, and save it in another.

    Texts longer than ``tuning.length`` are cut for the training. The layer on top begins at random
    from the seed.

    Parameters
    ----------
    dtype
        The arithmetic that the classifier is asked in; it is trained in float32 at least, whose
        last bits may differ between processors. In float64 the weights are rounded to a grid
        (:data:`plumbline.probes.training.train.GRID`), so that few do.

    Raises
    ------
    Problem
        If the model cannot be loaded so, there is no text, or a loss is not finite.
    """
    if not texts:
        raise Problem(f"models.{name}: nothing to train on; there are no texts")
    tokens = Tokens(where, name)
    torch.manual_seed(tuning.seed)
    names = {
        "id2label": dict(enumerate(classes)),
        "label2id": {c: i for i, c in enumerate(classes)},
    }
    config = AutoConfig.from_pretrained(where, trust_remote_code=False, **names)
    auto: Any = AutoModelForSequenceClassification
    exact = dtype == "float64"
    options = {"dtype": torch.float64 if exact else torch.float32, "use_safetensors": True}
    model = auto.from_pretrained(where, config=config, **options).train().to(device())
    room = min(tuning.length, longest(tokens.tokenizer, model))
    rows = [
        (ids if len(ids) <= room else [*ids[: room - 1], ids[-1]], label)
        for ids, label in zip(tokens.encode(list(texts)), labels, strict=True)
    ]
    found = Tuned(into / DONE, math.ceil(len(rows) / tuning.batch) * tuning.epochs)
    if found.folder.is_dir():
        return found
    into.mkdir(parents=True, exist_ok=True)
    pad = int(tokens.tokenizer.pad_token_id or 0)

    def loss(net: Any, some: list[tuple[list[int], int]]) -> Iterator[tuple[torch.Tensor, float]]:
        width = max(len(ids) for ids, _ in some)
        ids = torch.tensor([ids + [pad] * (width - len(ids)) for ids, _ in some])
        there = torch.tensor([[1] * len(ids) + [0] * (width - len(ids)) for ids, _ in some])
        ids, there, true = (
            x.to(model.device) for x in (ids, there, torch.tensor([y for _, y in some]))
        )
        logits = net(input_ids=ids, attention_mask=there).logits
        yield torch.nn.functional.cross_entropy(logits, true), 1.0

    threads = torch.get_num_threads()
    torch.set_num_threads(1 if exact else cores())
    try:
        fit(model, name, rows, tuning, into / CHECKPOINT, loss)
    finally:
        torch.set_num_threads(threads)
    with rounded(model) if exact else nullcontext():
        save(model, tokens, where, found.folder)
    (into / CHECKPOINT).unlink(missing_ok=True)
    return found
