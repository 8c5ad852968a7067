"""Filter texts with a classifier from the Hugging Face Hub or a local folder.

A long text is split into windows and receives the highest of their scores: no part is ignored.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import Field, model_validator

from plumbline.builders.core.errors import UserError, wrong_hub
from plumbline.builders.core.params import Params as Section
from plumbline.builders.core.snapshot import digest

WEIGHTS = "model.safetensors"
TOKENS = 512  # maximum tokens per window, special tokens included; a model may allow fewer


class Params(Section):
    """Classifier and threshold of the filter."""

    model: str = Field(min_length=1, description="id on the Hugging Face Hub, or path of a folder")
    revision: str = Field(
        "",
        validate_default=True,
        description="commit on the Hub (40 digits); for a folder, the sha256 of model.safetensors",
    )
    label: str = Field(description="the model's label for hate; case is ignored")
    threshold: float = Field(
        0.5, gt=0, le=1, description="texts with at least this probability of hate are excluded"
    )
    batch: int = Field(32, ge=1, description="number of windows per batch")

    @model_validator(mode="after")
    def _pinned(self) -> Params:
        if not re.fullmatch(r"[0-9a-f]{40}|[0-9a-f]{64}", self.revision):
            raise ValueError(
                f"{self.model} needs a pinned revision: 40 digits of a commit or, for a folder, "
                f"the 64 that `sha256sum {WEIGHTS}` prints"
            )
        return self

    def __str__(self) -> str:
        """Describe the filter for a card."""
        return (
            f"{self.model} at {self.revision}; rows with a probability of {self.threshold} or more "
            f"for the label {self.label!r} are left out (windows of up to {TOKENS} tokens)"
        )


def scores(params: Params, texts: Sequence[str]) -> list[float]:
    """Return the probability of the label for each text, rounded to 4 digits.

    Each batch consists of windows of equal length and needs no padding; on a CPU, one thread is
    used, so that the result does not depend on the number of cores.
    """
    import torch

    tokenizer, model = _loaded(params)
    config, device = model.config, model.device
    labels = {name.casefold(): i for i, name in (config.id2label or {}).items()}
    if (label := params.label.casefold()) not in labels:
        raise UserError(
            f"{params.model}: unknown label {params.label!r} under hate.label; available: "
            f"{', '.join(sorted(labels))}"
        )
    several = config.problem_type == "multi_label_classification" or len(labels) == 1
    longest = getattr(config, "max_position_embeddings", TOKENS)
    cut = {"truncation": True, "max_length": min(TOKENS, tokenizer.model_max_length, longest)}
    windows: defaultdict[int, list[tuple[list[int], int]]] = defaultdict(list)
    for number, text in enumerate(texts):
        for ids in tokenizer(text, return_overflowing_tokens=True, **cut)["input_ids"]:
            windows[len(ids)].append((list(ids), number))
    highest = [0.0] * len(texts)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        for _, group in sorted(windows.items()):
            group.sort()
            for start in range(0, len(group), params.batch):
                batch = group[start : start + params.batch]
                with torch.inference_mode():
                    ids = torch.tensor([window for window, _ in batch], device=device)
                    logits = model(input_ids=ids, attention_mask=torch.ones_like(ids)).logits
                    logits = logits.float()
                    shares = logits.sigmoid() if several else logits.softmax(-1)
                for (_, number), share in zip(batch, shares[:, labels[label]], strict=True):
                    highest[number] = max(highest[number], round(float(share), 4))
    finally:
        torch.set_num_threads(threads)
    return highest


def _loaded(params: Params) -> tuple[Any, Any]:
    """Return the tokenizer and the model."""
    import torch
    from huggingface_hub import get_token
    from transformers import AutoModelForSequenceClassification, AutoTokenizer
    from transformers.utils import logging

    weights = Path(params.model) / WEIGHTS
    if weights.is_file() and (actual := digest(weights)) != params.revision:
        raise UserError(
            f"{weights}: the sha256 is {actual}, which differs from hate.revision; if the model "
            "is right, set hate.revision in params.yaml to this sha256"
        )
    if reason := wrong_hub(None if weights.is_file() else get_token()):
        raise UserError(reason)
    pinned: dict[str, Any] = {"trust_remote_code": False}
    pinned |= {} if weights.is_file() else {"revision": params.revision}
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        tokenizer: Any = AutoTokenizer.from_pretrained(params.model, **pinned)
        model: Any = AutoModelForSequenceClassification.from_pretrained(
            params.model, use_safetensors=True, **pinned
        )
    except (OSError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise UserError(
            f"{params.model}: could not be loaded ({reason}); check hate.model and "
            "hate.revision in params.yaml (safetensors without custom code are required)"
        ) from error
    device = "cuda" if torch.cuda.is_available() else "cpu"
    return tokenizer, model.eval().float().to(os.environ.get("PLUMBLINE_DEVICE") or device)
