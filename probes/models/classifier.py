"""Text classifiers: probabilities of labels, and how far one text follows from another."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from transformers import AutoModelForSequenceClassification

from plumbline.builders.core.errors import UserError
from plumbline.probes.models.batching import blocks
from plumbline.probes.models.forward import Adapter, enough, finite
from plumbline.probes.models.kernels.head_only import gated, narrow
from plumbline.probes.models.load import pinned
from plumbline.probes.models.scorer import DECIMALS, Classes
from plumbline.probes.models.tokenizer import HEAD

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

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
        to six decimals.

        Raises
        ------
        UserError
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
        encoded = self.encode(texts)

        def launch(rows: list[int]) -> torch.Tensor:
            ids = self.batches.move([encoded[i] for i in rows])[enough(self.fewest, len(rows))]
            first = torch.zeros(len(ids), dtype=torch.long, device=ids.device)
            wanted = self.gate.at(torch.arange(len(ids), device=ids.device), first)
            with wanted if self.narrow else nullcontext():
                logits = self.model(input_ids=ids).logits[: len(rows)].double()
            finite(self.name, logits, self.dtype)
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

        Pairs of one length are computed together, so none is padded, and an answer does not depend
        on the others.

        Raises
        ------
        UserError
            If a pair is too long for the model, since nothing is cut, or an answer is not finite.
        """
        if not pairs:
            return []
        premises, hypotheses = ([pair[i] for pair in pairs] for i in (0, 1))
        encoded = self.tokens.tokenizer(premises, hypotheses, verbose=False)
        rows, kinds = encoded["input_ids"], encoded.get("token_type_ids")
        for (premise, _), ids in zip(pairs, rows, strict=True):
            self.tokens.fits(premise, ids, self.longest)

        def launch(some: list[int]) -> torch.Tensor:
            again = enough(self.fewest, len(some))  # rows enough that the batch changes no digit
            given = {"input_ids": self.batches.move([rows[i] for i in some])[again]}
            if kinds is not None:
                given["token_type_ids"] = self.batches.move([kinds[i] for i in some])[again]
            logits = self.model(**given).logits[: len(some), self.place].double()
            return finite(self.name, logits, self.dtype)

        lengths = [len(ids) for ids in rows]
        found = self.batches.collect(lengths, lengths, launch, np.zeros(len(pairs)))
        return [round(value, DECIMALS) + 0.0 for value in found.tolist()]
