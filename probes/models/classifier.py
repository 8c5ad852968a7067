"""Text classifiers: probabilities of labels and natural language inference (NLI)."""

from __future__ import annotations

from contextlib import nullcontext
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from transformers import AutoModelForSequenceClassification

from plumbline.builders.core.errors import UserError
from plumbline.probes.models.batching import blocks
from plumbline.probes.models.forward import Adapter
from plumbline.probes.models.kernels import HeadOnly
from plumbline.probes.models.load import pinned
from plumbline.probes.models.scorer import DECIMALS, Classes
from plumbline.probes.models.tokenizer import HEAD

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

SIDES = ("entail", "contradict")  # case-insensitive prefixes of the labels, such as ENTAILMENT


class Classifier(Adapter):
    """A model that classifies texts."""

    auto = AutoModelForSequenceClassification

    def __init__(
        self, where: Path, name: str, revision: str, *, context: str = "", **options: Any
    ) -> None:
        if context:
            raise UserError(f"models.{name}.context: unsupported for classifiers; remove the line")
        super().__init__(where, name, revision, **options)
        self.mask_token = str(self.tokens.tokenizer.mask_token or "")
        config = self.model.config
        if config.problem_type == "regression" or config.num_labels < 2:
            raise UserError(f"models.{name}: unsupported, since it predicts a score, not labels")
        self.several = config.problem_type == "multi_label_classification"
        self.labels = tuple(str(config.id2label[i]) for i in range(config.num_labels))
        if len({*self.labels}) < config.num_labels:
            raise UserError(
                f"models.{name}: several classes have the same label ({', '.join(self.labels)}); "
                "correct id2label in its config.json"
            )
        self.head = HeadOnly(self.model.get_submodule(self.model.base_model_prefix))
        self.narrow = self.head.shorten(self.model)  # True if the head reads only one token

    def load(self, where: Path, *, pickles: bool) -> Any:
        """Load the model from a folder."""
        model = super().load(where, pickles=pickles)
        if model.config.pad_token_id is None:  # decoders read the last token before padding
            model.config.pad_token_id = -1  # matches no token: batches have no padding
        return model

    def classify(self, texts: Iterable[str]) -> Iterator[Classes]:
        """Yield the probability of every label for each text, in the order of the texts.

        Probabilities are a softmax over the labels, or a sigmoid for each label in multi-label
        models (``problem_type``); they and their logarithms are rounded to six decimals. Raises
        UserError if a text is too long for the model or an output is not finite.
        """
        read = torch.nn.functional.logsigmoid if self.several else partial(torch.log_softmax, dim=1)
        for block in blocks(texts):
            encoded = self.encode(block)
            nats = self._read({"input_ids": encoded}, read)
            probabilities, logprobs = (x.round(DECIMALS) + 0.0 for x in (np.exp(nats), nats))
            answers = zip(block, probabilities.tolist(), logprobs.tolist(), encoded, strict=True)
            for text, p, log, ids in answers:
                yield Classes(text, self.labels, tuple(p), tuple(log), len(ids))

    def lengths(self, words: Sequence[str], language: str = "") -> list[int]:
        """Return the number of tokens of each word when it follows another word."""
        texts = [HEAD, *(f"{HEAD} {word}" for word in words)]
        head, *behind = map(len, self.tokens.encode(texts, language, special=False))
        return [length - head for length in behind]

    def _read(
        self, inputs: dict[str, list[list[int]]], read: Callable[[torch.Tensor], torch.Tensor]
    ) -> NDArray[np.float64]:
        """Apply ``read`` to the logits, which have shape (texts, labels).

        Each batch has texts of equal length and a minimum number of rows, so that no text is padded
        and no output depends on other texts.
        """

        def launch(rows: list[int]) -> torch.Tensor:
            tensors = {
                name: self.enough(self.batches.move([column[i] for i in rows]))
                for name, column in inputs.items()
            }
            texts = torch.arange(len(tensors["input_ids"]), device=self.batches.where)
            first = self.head.at(texts, torch.zeros_like(texts))
            with first if self.narrow else nullcontext():
                logits = self.model(**tensors).logits
            return read(self.finite(logits[: len(rows)].double()))

        lengths = [len(ids) for ids in inputs["input_ids"]]
        most = self.batches.tokens // self.fewest  # each batch has at least `fewest` rows
        costs = [min(length, most) for length in lengths]
        return np.array(self.batches.each(lengths, costs, launch))


class Entailment(Classifier):
    """A classifier of text pairs that is listed in params.yaml."""

    def __init__(self, name: str) -> None:
        """Load the model.

        Raises UserError if the model is not pinned, is not a classifier, or has no label for
        entailment.
        """
        where, params, facts = pinned(name)
        if params.kind != "classifier":
            raise UserError(f"models.{name}: is of kind {params.kind}; stances need a classifier")
        revision = str(facts["revision"])
        super().__init__(where, name, revision, dtype=params.dtype, pickles=params.pickles)
        labels = [label.casefold() for label in self.labels]
        sides = [[i for i, x in enumerate(labels) if x.startswith(side)] for side in SIDES]
        if any(len(side) != 1 for side in sides):
            raise UserError(
                f"models.{name}: its labels ({', '.join(sorted(labels))}) are not entailment and "
                "contradiction; name an NLI model under probes.stances.generation.nli_model"
            )
        (self.follows,), (self.contradicts,) = sides

    def logits(self, pairs: Sequence[tuple[str, str]]) -> list[list[float]]:
        """Return the logit of each label for each pair of premise and hypothesis.

        Pairs are not truncated. Raises UserError if a pair is too long for the model or an output
        is not finite.
        """
        if not pairs:
            return []
        self.tokens.refuse_special(chain.from_iterable(pairs))
        encoded = self.tokens.tokenizer(*map(list, zip(*pairs, strict=True)), verbose=False)
        inputs = {k: encoded[k] for k in ("input_ids", "token_type_ids") if k in encoded}
        for (premise, _), ids in zip(pairs, inputs["input_ids"], strict=True):
            self.tokens.fits(premise, len(ids), self.longest)
        logits: NDArray[np.float64] = self._read(inputs, lambda x: x).round(DECIMALS)
        rows: list[list[float]] = (logits + 0.0).tolist()
        return rows
