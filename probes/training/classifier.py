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
from plumbline.probes.training import distributed
from plumbline.probes.training.mlm import moved, padded, seed
from plumbline.probes.training.rows import Batch, cut, stored
from plumbline.probes.training.train import (
    DONE,
    Trained,
    Tuning,
    finished,
    train_and_save,
)

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
    if (into / DONE).is_dir():
        return finished(into)
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
    rows = stored(cut(tokens, texts, room), into, labels)
    mixed = tuning.precision == "bfloat16"

    def loss(net: Any, some: Batch) -> Iterator[tuple[torch.Tensor, float]]:
        number, index = distributed.number(), distributed.index()
        if index:  # dropout differs
            seed(torch.initial_seed() + (index << 40))
        every = distributed.passes([len(ids) for ids in some.ids], tuning.room, number, index)
        for n, own in enumerate(every, 1):
            at = own or [0]
            assert some.labels is not None
            given = (*padded(tokens, [some.ids[i] for i in at]), torch.from_numpy(some.labels[at]))
            ids, there, true = moved(given, model.device)
            with distributed.exchange(net, last=n == len(every)):
                with torch.autocast(model.device.type, torch.bfloat16, enabled=mixed):
                    logits = net(input_ids=ids, attention_mask=there).logits
                mean = torch.nn.functional.cross_entropy(logits, true)
                yield mean, len(own) * number / len(some.ids)

    return train_and_save(model, tokens, where, rows, tuning, into, loss)
