"""Text classifiers: probabilities of labels, and how far one text follows from another."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from transformers import AutoModelForSequenceClassification

from plumbline.builders.core.errors import UserError
from plumbline.probes.models.batching import blocks
from plumbline.probes.models.forward import Adapter
from plumbline.probes.models.kernels.head_only import gated, narrow
from plumbline.probes.models.load import pinned
from plumbline.probes.models.scorer import DECIMALS, Classes
from plumbline.probes.models.tokenizer import HEAD

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

FOLLOWS = "entail"  # how the label begins, in any case: entailment, ENTAILMENT


class Labelled(Adapter):
    """A model with labels."""

    auto = AutoModelForSequenceClassification

    def load(self, where: Path, *, pickles: bool) -> Any:
        """Return the model from a folder."""
        model = super().load(where, pickles=pickles)
        if model.config.pad_token_id is None:  # decoders look for the last token that is no
            model.config.pad_token_id = -1  # padding: no token of ours is
        return model

    def logits_of(self, ids: torch.Tensor, **options: torch.Tensor) -> torch.Tensor:
        """Return the logits (texts, labels) of texts (texts, length).

        Texts of one length are computed together, rows enough: so none is padded, and an answer
        does not depend on the others.
        """
        again = {name: self.enough(given) for name, given in options.items()}
        logits = self.model(input_ids=self.enough(ids), **again).logits
        return self.finite(logits[: len(ids)].double())


class Classifier(Labelled):
    """A model that classifies texts."""

    def __init__(
        self, where: Path, name: str, revision: str, *, context: str = "", **options: Any
    ) -> None:
        if context:
            raise UserError(f"models.{name}.context: a classifier takes none; take the line out")
        super().__init__(where, name, revision, **options)
        self.mask_token = str(self.tokens.tokenizer.mask_token or "")
        config = self.model.config
        if config.problem_type == "regression" or config.num_labels < 2:
            raise UserError(
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
        to six decimals. A text that is too long for the model, or an answer that is not finite, is
        a UserError.
        """
        for block in blocks(texts):
            encoded = self.encode(block)
            found = self._logprobs(encoded)
            probabilities, logprobs = (x.round(DECIMALS) + 0.0 for x in (np.exp(found), found))
            answers = zip(block, probabilities.tolist(), logprobs.tolist(), encoded, strict=True)
            for text, p, log, ids in answers:
                yield Classes(text, self.labels, tuple(p), tuple(log), len(ids))

    def lengths(self, words: Sequence[str], language: str = "") -> list[int]:
        """Tell how many tokens each word has behind another one."""
        texts = [HEAD, *(f"{HEAD} {word}" for word in words)]
        head, *behind = map(len, self.tokens.encode(texts, language, special=False))
        return [length - head for length in behind]

    def _logprobs(self, encoded: list[list[int]]) -> NDArray[np.float64]:
        """Return the log-probabilities (texts, labels) of texts."""

        def launch(rows: list[int]) -> torch.Tensor:
            ids = self.batches.move([encoded[i] for i in rows])
            computed = torch.arange(len(self.enough(ids)), device=ids.device)
            first = self.gate.at(computed, torch.zeros_like(computed))
            with first if self.narrow else nullcontext():
                logits = self.logits_of(ids)
            if self.several:
                return torch.nn.functional.logsigmoid(logits)
            return torch.log_softmax(logits, dim=1)

        lengths = [len(ids) for ids in encoded]
        most = self.batches.tokens // self.fewest  # so many rows are computed in any case
        costs = [min(length, most) for length in lengths]
        into = np.zeros((len(encoded), len(self.labels)))
        return self.batches.collect(lengths, costs, launch, into)


class Entailment(Labelled):
    """A classifier of pairs, loaded under its name in params.yaml."""

    def __init__(self, name: str) -> None:
        """Load the model.

        Raises
        ------
        UserError
            If it is not pinned, is no classifier, or no label of it is entailment.
        """
        where, params, facts = pinned(name)
        if params.kind != "classifier":
            raise UserError(f"models.{name}: of kind {params.kind}; stances need a classifier")
        revision = str(facts["revision"])
        super().__init__(where, name, revision, dtype=params.dtype, pickles=params.pickles)
        labels = {str(v).casefold(): int(k) for k, v in self.model.config.id2label.items()}
        own = [place for label, place in labels.items() if label.startswith(FOLLOWS)]
        if len(own) != 1:
            raise UserError(
                f"models.{name}: none of its labels ({', '.join(sorted(labels))}) is entailment; "
                "name an NLI model under probes.stances.generation.nli_model"
            )
        self.place = own[0]

    def logits(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """Return the logit of entailment of each pair of premise and hypothesis.

        A pair that is too long for the model, since nothing is cut, or an answer that is not finite
        is a UserError.
        """
        if not pairs:
            return []
        encoded = self.tokens.tokenizer(*map(list, zip(*pairs, strict=True)), verbose=False)
        given = {k: encoded[k] for k in ("input_ids", "token_type_ids") if k in encoded}
        for (premise, _), ids in zip(pairs, given["input_ids"], strict=True):
            self.tokens.fits(premise, ids, self.longest)

        def launch(some: list[int]) -> torch.Tensor:
            ids, *kinds = (self.batches.move([rows[i] for i in some]) for rows in given.values())
            options = {"token_type_ids": kinds[0]} if kinds else {}
            return self.logits_of(ids, **options)[:, self.place]

        lengths = [len(ids) for ids in given["input_ids"]]
        found = self.batches.collect(lengths, lengths, launch, np.zeros(len(pairs)))
        return [round(value, DECIMALS) + 0.0 for value in found.tolist()]
