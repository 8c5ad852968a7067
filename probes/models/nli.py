"""Models of natural-language inference: how far one text follows from another."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from plumbline.builders.core.errors import Problem
from plumbline.probes.models.classifier import Labelled
from plumbline.probes.models.forward import enough
from plumbline.probes.models.load import brought
from plumbline.probes.models.scorer import DECIMALS

if TYPE_CHECKING:
    from collections.abc import Sequence

    import torch

FOLLOWS = "entail"  # how the label begins, in any case: entailment, ENTAILMENT


class Entailment(Labelled):
    """A classifier of pairs, loaded under its name in params.yaml."""

    def __init__(self, name: str) -> None:
        """Load the model.

        Raises
        ------
        Problem
            If it was not brought, is no classifier, or no label of it is entailment.
        """
        where, params, facts = brought(name)
        if params.kind != "classifier":
            raise Problem(f"models.{name}: of kind {params.kind}; stances need a classifier")
        revision = str(facts["revision"])
        super().__init__(where, name, revision, dtype=params.dtype, pickles=params.pickles)
        labels = {str(v).casefold(): int(k) for k, v in self.model.config.id2label.items()}
        own = [place for label, place in labels.items() if label.startswith(FOLLOWS)]
        if len(own) != 1:
            raise Problem(
                f"models.{name}: none of its labels ({', '.join(sorted(labels))}) is entailment; "
                "name a model of natural-language inference under probes.leaning.written.stance"
            )
        self.place = own[0]

    def logits(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """Return the logit of entailment of each pair of premise and hypothesis.

        Pairs of one length are computed together, so none is padded, and an answer does not depend
        on the others.

        Raises
        ------
        Problem
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
            return self.finite(self.model(**given).logits[: len(some), self.place].double())

        lengths = [len(ids) for ids in rows]
        found = self.batches.collect(lengths, lengths, launch, np.zeros(len(pairs)))
        return [round(value, DECIMALS) + 0.0 for value in found.tolist()]
