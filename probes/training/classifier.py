"""Fine-tuning a masked model as a classifier of labelled texts.

A run that was stopped continues from its last checkpoint; the loop is that of ``training.train``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from transformers import AutoConfig, AutoModelForSequenceClassification

from plumbline.builders.core.errors import UserError
from plumbline.probes.models.batching import device
from plumbline.probes.models.tokenizer import Tokens, longest
from plumbline.probes.training.mlm import padded, seed
from plumbline.probes.training.train import Trained, Tuning, train_and_save

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path


def finetune_classifier(
    where: Path,
    name: str,
    texts: Sequence[str],
    labels: Sequence[int],
    classes: Sequence[str],
    tuning: Tuning,
    into: Path,
) -> Trained:
    """Train a classifier, from the masked model in a folder on, and save it in another.

    Texts longer than ``tuning.length`` are cut for the training. The layer on top begins at random
    from the seed. Weights are float32, whose last bits differ between kinds of processors. A model
    that cannot be loaded so, no text, or a loss that is not finite is a UserError.
    """
    if not texts:
        raise UserError(f"models.{name}: nothing to train on; there are no texts")
    tokens = Tokens(where, name)
    seed(tuning.seed)
    names = {
        "id2label": dict(enumerate(classes)),
        "label2id": {c: i for i, c in enumerate(classes)},
    }
    config = AutoConfig.from_pretrained(where, trust_remote_code=False, **names)
    auto: Any = AutoModelForSequenceClassification
    options = {"config": config, "dtype": torch.float32, "use_safetensors": True}
    model = auto.from_pretrained(where, **options).train().to(device())
    room = min(tuning.length, longest(tokens.tokenizer, model))
    rows = [
        (ids if len(ids) <= room else [*ids[: room - 1], ids[-1]], label)
        for ids, label in zip(tokens.encode(list(texts)), labels, strict=True)
    ]

    def loss(net: Any, some: list[tuple[list[int], int]]) -> Iterator[tuple[torch.Tensor, float]]:
        ids, there = padded(tokens, [ids for ids, _ in some])
        true = torch.tensor([label for _, label in some])
        ids, there, true = (x.to(model.device) for x in (ids, there, true))
        logits = net(input_ids=ids, attention_mask=there).logits
        yield torch.nn.functional.cross_entropy(logits, true), 1.0

    return train_and_save(model, tokens, where, rows, tuning, into, loss)
