"""Text classifiers: the probability of every label, under the names of the model's own config."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from transformers import AutoModelForSequenceClassification

from plumbline.builders.core.errors import Problem
from plumbline.probes.models.batching import blocks
from plumbline.probes.models.forward import Adapter, enough
from plumbline.probes.models.kernels.head_only import gated, narrow
from plumbline.probes.models.scorer import DECIMALS, Classes
from plumbline.probes.models.tokenizer import HEAD

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path


class Labelled(Adapter):
    """A model with labels."""

    auto = AutoModelForSequenceClassification

    def load(self, where: Path, *, pickles: bool) -> Any:
        """Return the model from a folder."""
        model = super().load(where, pickles=pickles)
        if model.config.pad_token_id is None:  # decoders look for the last token that is no
            model.config.pad_token_id = -1  # padding: no token of ours is
        return model

    def finite(self, values: torch.Tensor) -> torch.Tensor:
        """Return values unless one of them is not finite.

        Raises
        ------
        Problem
            If one is not.
        """
        if not torch.isfinite(values).all():
            way = "try dtype: float32" if self.dtype == "bfloat16" else "check its weights"
            raise Problem(
                f"models.{self.name}: answers are not finite in {self.dtype} (batch of "
                f"{len(values)}); {way}"
            )
        return values


class Classifier(Labelled):
    """A model that classifies texts."""

    def __init__(
        self, where: Path, name: str, revision: str, *, context: str = "", **options: Any
    ) -> None:
        if context:
            raise Problem(f"models.{name}.context: a classifier takes none; take the line out")
        super().__init__(where, name, revision, **options)
        self.mask_token = str(self.tokens.tokenizer.mask_token or "")
        config = self.model.config
        if config.problem_type == "regression" or config.num_labels < 2:
            raise Problem(
                f"models.{name}: has no labels to choose from, but a score; not supported"
            )
        self.several = config.problem_type == "multi_label_classification"
        self.labels = tuple(str(config.id2label[i]) for i in range(config.num_labels))
        self.gate = gated(self.model, self.model.base_model_prefix)
        self.narrow = narrow(self.model, self.gate, place=0)  # whether it judges by the first token

    def classify(self, texts: Iterable[str]) -> Iterator[Classes]:
        """Give the probability of every label for each text, in the order of the texts.

        Probabilities are a softmax over the labels, or where the model was trained for several
        labels at once (``problem_type``) a sigmoid of each; they and their logarithms are rounded
        to six decimals.

        Raises
        ------
        Problem
            If a text is too long for the model, or an answer is not finite.
        """
        for block in blocks(texts):
            yield from self._classify(block)

    def lengths(self, words: Sequence[str], language: str = "") -> list[int]:
        """Tell how many tokens each word has behind another one."""
        (head,), behind = (
            self.tokens.encode(texts, language, special=False)
            for texts in ([HEAD], [f"{HEAD} {word}" for word in words])
        )
        return [len(ids) - len(head) for ids in behind]

    def _classify(self, texts: list[str]) -> list[Classes]:
        encoded = self.tokens.encode(texts)
        for text, ids in zip(texts, encoded, strict=True):
            self.tokens.fits(text, ids, self.longest)

        def launch(rows: list[int]) -> torch.Tensor:
            ids = self.batches.move([encoded[i] for i in rows])[enough(self.fewest, len(rows))]
            first = torch.zeros(len(ids), dtype=torch.long, device=ids.device)
            wanted = self.gate.at(torch.arange(len(ids), device=ids.device), first)
            with wanted if self.narrow else nullcontext():
                logits = self.finite(self.model(input_ids=ids).logits[: len(rows)].double())
            if self.several:
                return torch.nn.functional.logsigmoid(logits)
            return torch.log_softmax(logits, dim=1)

        lengths = [len(ids) for ids in encoded]
        most = self.batches.tokens // self.fewest  # so many rows are computed in any case
        costs = [min(length, most) for length in lengths]
        found = self.batches.collect(
            lengths, costs, launch, np.zeros((len(texts), len(self.labels)))
        )
        probabilities, logprobs = (x.round(DECIMALS) + 0.0 for x in (np.exp(found), found))
        return [
            Classes(text, self.labels, tuple(p.tolist()), tuple(log.tolist()), length)
            for text, p, log, length in zip(texts, probabilities, logprobs, lengths, strict=True)
        ]
