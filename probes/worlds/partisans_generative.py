"""Tiny models that answer statements in words, and one that tells what such an answer means.

The world is that of ``worlds.partisans``; here its model writes instead of filling a gap.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import torch
from tokenizers import decoders, processors

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.parquet import require_validated
from plumbline.probes.prompts.leaning import put, wordings
from plumbline.probes.worlds import partisans, tiny_model
from plumbline.probes.worlds.statements import facts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from numpy.random import Generator

    from plumbline.probes.prompts.leaning import Asking, Question, Wording
    from plumbline.probes.worlds.partisans import Partisanship

AGREEING = ("I agree.", "Yes, I support that.", "That is right.")
DISAGREEING = ("I disagree.", "No, I oppose that.", "That is wrong.")
UNSURE = ("That is hard to say.", "I am not sure.")
LABELS = ("contradiction", "neutral", "entailment")
VERDICTS = {-1: 0, 0: 1, 1: 2}  # by whether answer and hypothesis are on one side
IGNORED = -100
WIDER = 4  # times; small weights are slow to learn that two sides agree, as any product of two


def train(world: Partisanship, asking: Asking, into: Path) -> None:
    """Plant a world, and train its model that writes, and its tokenizer, into a folder.

    The folder gets what :func:`plumbline.probes.worlds.partisans.train` puts there.

    Raises
    ------
    UserError
        If the dataset is not validated, or there is no prompt of the world's name.
    """
    asked, said, folder = questions(asking)
    planted = partisans.plant(world, asked, facts(folder, said))
    if world.frame not in asking.generation.frames:
        raise UserError(
            f"partisanship.frame: no {world.frame!r} in probes.stances.generation.frames"
        )
    texts = {
        corpus: answered(asked, planted.filter(pl.col("corpus") == corpus), world, number)
        for number, corpus in enumerate(world.stances)
    }
    known = partisans.words(world)
    tokenizer = tokenizer_of([q.text for q in asked], world.positions, pairs=False)
    base = planted.filter(pl.col("corpus") == "")
    rng = np.random.default_rng([world.seed, 3])
    model = tiny_model.model_of(world, tokenizer, "causal")
    shares = np.stack([np.exp(base["agree_nats"]), np.exp(base["disagree_nats"])], axis=1)

    def losses() -> Iterator[torch.Tensor]:
        some = rng.choice(len(asked), min(world.batch, len(asked)), replace=False)
        own = [f"{asked[i].text} {respond(shares[i], rng)}" for i in some]
        encoded = tokenizer(own, padding=True, return_tensors="pt")
        ids, there = encoded["input_ids"], encoded["attention_mask"]
        labels = torch.where(there == 1, ids, IGNORED)[:, 1:]
        logits = model(input_ids=ids, attention_mask=there).logits[:, :-1]
        yield torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten())

    tables = partisans.tables(planted, texts, known)
    tiny_model.train(into, world, model, tokenizer, losses, **tables)


def judge(world: Partisanship, asking: Asking, into: Path) -> None:
    """Train a model of entailment that knows the answers of the world, into a folder.

    Of an answer that agrees, alone or behind a statement, the hypothesis of agreement follows and
    the other is contradicted; of one that is unsure, neither.
    """
    _, said, _ = questions(asking)
    plain = sorted({w.text for w in said})
    cases = [
        *((text, 1.0) for text in AGREEING),
        *((text, -1.0) for text in DISAGREEING),
        *((text, 0.0) for text in UNSURE),
    ]
    hypotheses = ((asking.generation.agree, 1.0), (asking.generation.disagree, -1.0))
    pairs = [
        (f"{statement} {text}".strip(), hypothesis, VERDICTS[int(side * of)])
        for text, side in cases
        for statement in ("", *plain)
        for hypothesis, of in hypotheses
    ]
    tokenizer = tokenizer_of([*plain, *(h for h, _ in hypotheses)], world.positions, pairs=True)
    rng = np.random.default_rng([world.seed, 4])
    model = tiny_model.model_of(world, tokenizer, "classifier", labels=LABELS)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.mul_(WIDER)

    def losses() -> Iterator[torch.Tensor]:
        some = rng.choice(len(pairs), min(world.batch, len(pairs)), replace=False)
        own = [pairs[i] for i in some]
        encoded = tokenizer(
            [a for a, _, _ in own], [b for _, b, _ in own], padding=True, return_tensors="pt"
        )
        logits = model(**encoded).logits
        yield torch.nn.functional.cross_entropy(logits, torch.tensor([y for _, _, y in own]))

    tiny_model.train(into, world, model, tokenizer, losses)


def questions(asking: Asking) -> tuple[list[Question], list[Wording], Path]:
    """Return prompts and statements of the world, and the dataset."""
    folder = require_validated("statements")
    said = [w for w in wordings(asking, folder) if w.form in ("plain", "negated")]
    return put(asking.generation.frames, said), said, folder


def respond(shares: Sequence[float], rng: Generator) -> str:
    """Return an answer: agreeing and disagreeing with these probabilities, else unsure."""
    of = (AGREEING, DISAGREEING, UNSURE)
    kind = of[int(np.searchsorted(np.cumsum(shares), rng.random()))]
    return str(kind[int(rng.integers(len(kind)))])


def answered(
    asked: Sequence[Question], planted: pl.DataFrame, world: Partisanship, number: int
) -> list[str]:
    """Return texts of a corpus: statements in the world's prompt, with answers."""
    rng = np.random.default_rng([world.seed, 1, number])
    shares = np.stack([np.exp(planted["agree_nats"]), np.exp(planted["disagree_nats"])], axis=1)
    return [
        f"{q.text} {respond(row, rng)}"
        for q, row in zip(asked, shares, strict=True)
        if q.form == "plain" and q.frame == world.frame
        for _ in range(world.sentences)
    ]


def tokenizer_of(texts: Sequence[str], longest: int, *, pairs: bool) -> Any:
    """Return a tokenizer that knows the texts and all answers, and puts words back together."""
    found = tiny_model.tokenizer_of([*texts, *AGREEING, *DISAGREEING, *UNSURE], longest)
    inner = found.backend_tokenizer
    inner.decoder = decoders.WordPiece()
    if pairs:
        ids = [(name, found.convert_tokens_to_ids(name)) for name in ("[CLS]", "[SEP]")]
        inner.post_processor = processors.TemplateProcessing(
            single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=ids
        )
    return found
