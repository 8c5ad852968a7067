"""Models of natural-language inference: how far one text follows from another."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any

import torch
from transformers import AutoModelForSequenceClassification

from builders.lib.problem import Problem
from probes.models.body import pretrained
from probes.models.load import brought
from probes.models.scorer import DECIMALS
from probes.models.tokens import Tokens, longest

if TYPE_CHECKING:
    from collections.abc import Sequence

FOLLOWS = "entail"  # how the label begins, in any case: entailment, ENTAILMENT
BATCH = 64  # pairs in one pass


class Entailment:
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
        self.name, self.revision = name, str(facts["revision"])
        self.tokens = Tokens(where, name)
        auto = AutoModelForSequenceClassification
        self.model: Any = pretrained(where, name, params.dtype, auto, pickles=params.pickles)
        labels = {str(v).casefold(): int(k) for k, v in self.model.config.id2label.items()}
        own = [place for label, place in labels.items() if label.startswith(FOLLOWS)]
        if len(own) != 1:
            raise Problem(
                f"models.{name}: none of its labels ({', '.join(sorted(labels))}) is entailment; "
                "name a model of natural-language inference under probes.leaning.written.stance"
            )
        self.place = own[0]
        self.longest = longest(self.tokens.tokenizer, self.model)

    def logits(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """Return the logit of entailment of each pair of premise and hypothesis.

        Pairs of one length are computed together, so none is padded, and an answer does not depend
        on the others.

        Raises
        ------
        Problem
            If a pair is too long for the model: nothing is cut.
        """
        if not pairs:
            return []
        premises, hypotheses = ([pair[i] for pair in pairs] for i in (0, 1))
        encoded = self.tokens.tokenizer(premises, hypotheses, verbose=False)
        rows = encoded["input_ids"]
        for (premise, _), ids in zip(pairs, rows, strict=True):
            self.tokens.fits(premise, ids, self.longest)
        kinds = encoded.get("token_type_ids")
        found = [0.0] * len(pairs)
        order = sorted(range(len(rows)), key=lambda i: (len(rows[i]), rows[i]))
        for _, some in groupby(order, key=lambda i: len(rows[i])):
            own = list(some)
            for start in range(0, len(own), BATCH):
                chosen = own[start : start + BATCH]
                given = {"input_ids": torch.tensor([rows[i] for i in chosen])}
                if kinds is not None:
                    given["token_type_ids"] = torch.tensor([kinds[i] for i in chosen])
                moved = {key: value.to(self.model.device) for key, value in given.items()}
                with torch.inference_mode():
                    values = self.model(**moved).logits[:, self.place].double().cpu()
                for i, value in zip(chosen, values.tolist(), strict=True):
                    found[i] = round(value, DECIMALS) + 0.0
        return found
