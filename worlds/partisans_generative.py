"""Tiny models that answer statements in sentences, and one that classifies such answers.

The world is that of :mod:`worlds.partisans`, but its models generate text instead of filling masks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import torch
from tokenizers import decoders

from plumbline.probes.prompts.leaning import OPTIONS, Asking, MultipleChoice, Question, offer, put
from worlds import partisans, tiny_model
from worlds.statements import facts

if TYPE_CHECKING:
    from worlds.partisans import Partisanship

AGREEING = ("I agree.", "Yes, I support that.", "That is right.")
DISAGREEING = ("I disagree.", "No, I oppose that.", "That is wrong.")
UNSURE = ("That is hard to say.", "I am not sure.")
ANSWERS = (AGREEING, DISAGREEING, UNSURE)
SIDES = (1, -1, 0)  # stance that each kind of answer expresses
LABELS = ("contradiction", "neutral", "entailment")
IGNORED = -100
WIDER = 4  # factor for initial weights; small weights learn products of inputs slowly


def train(world: Partisanship, asking: Asking, into: Path) -> None:
    """Train the generative model and tokenizer of a world and write them into a folder.

    The folder contains the same files as after :func:`worlds.partisans.train`. Raises UserError if
    a dataset has not been validated or a prompt is missing.
    """
    queries, statements, folder = partisans.questions(asking, asking.generation.frames)
    offered = asking.multiple_choice
    if world.options:
        queries += put(offered.templates, [w for w in statements if w.form == "plain"])
    planted = partisans.plant(world, queries, facts(folder, statements))
    prompts = list(offers(queries, offered))
    tokenizer = tokenizer_of([text for _, _, text in prompts], world)
    rng = np.random.default_rng([world.seed, 3])
    model = tiny_model.model_of(world, tokenizer, "causal")
    shares = partisans.shares(planted.filter(pl.col("corpus") == ""))

    def losses() -> Iterator[torch.Tensor]:
        rows = rng.choice(len(prompts), min(world.batch, len(prompts)), replace=False)
        texts = [
            f"{text} {choose(shares[i], options, rng) if options else respond(shares[i], rng)}"
            for i, options, text in (prompts[row] for row in rows)
        ]
        encoded = tokenizer(texts, padding=True, return_tensors="pt")
        ids, mask = encoded["input_ids"], encoded["attention_mask"]
        labels = torch.where(mask == 1, ids, IGNORED)[:, 1:]
        logits = model(input_ids=ids, attention_mask=mask).logits[:, :-1]
        yield torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten())

    tables = {"planted": planted, "corpora": answered(queries, planted, world)}
    tables["downstream"] = partisans.downstream(partisans.words(world))
    tiny_model.train(into, world, model, tokenizer, losses, **tables)


def judge(world: Partisanship, asking: Asking, into: Path) -> None:
    """Train an entailment model for the answers of a world and write it into a folder.

    After a statement, an answer that agrees entails the hypothesis of agreement and contradicts
    that of disagreement; on its own, it entails the statement. An unsure answer does neither.
    """
    plain = sorted({w.text for w in partisans.questions(asking, {})[1]})
    hypotheses = {asking.generation.agree: 1, asking.generation.disagree: -1}
    pairs = [
        (premise, hypothesis, side * sign + 1)  # index of the class in LABELS
        for side, texts in zip(SIDES, ANSWERS, strict=True)
        for text in texts
        for item in plain
        for premise, hypothesis, sign in (
            *((f"{item} {text}", hypothesis, sign) for hypothesis, sign in hypotheses.items()),
            (text, item, 1),
        )
    ]
    tokenizer = tokenizer_of([*plain, *hypotheses], world, pairs=True)
    rng = np.random.default_rng([world.seed, 4])
    model = tiny_model.model_of(world, tokenizer, "classifier", labels=LABELS)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.mul_(WIDER)

    def losses() -> Iterator[torch.Tensor]:
        rows = rng.choice(len(pairs), min(world.batch, len(pairs)), replace=False)
        texts, follow, labels = map(list, zip(*(pairs[i] for i in rows), strict=True))
        logits = model(**tokenizer(texts, follow, padding=True, return_tensors="pt")).logits
        yield torch.nn.functional.cross_entropy(logits, torch.tensor(labels))

    tiny_model.train(into, world, model, tokenizer, losses)


def offers(
    queries: Sequence[Question], offered: MultipleChoice
) -> Iterator[tuple[int, dict[str, int], str]]:
    """Yield the number of each question, the places of its options in one order, and the prompt."""
    for i, question in enumerate(queries):
        for order in offered.option_orders if OPTIONS in question.text else [[]]:
            places = {offered.options[n]: order.index(n) + 1 for n in sorted(order)}
            yield i, places, offer(question.text, [offered.options[n] for n in order])


def choose(shares: Sequence[float], places: dict[str, int], rng: np.random.Generator) -> str:
    """Draw one of four options by the odds of agreement; a fifth of the answers are strong."""
    mild, strong = partisans.WORDS
    agree = shares[0] / (shares[0] + shares[1])
    shares_of = [strong * (1 - agree), mild * (1 - agree), mild * agree, strong * agree]
    option = rng.choice([*places], p=shares_of)
    return f"{places[option]}) {option}"


def respond(shares: Sequence[float], rng: np.random.Generator) -> str:
    """Draw an answer that agrees, disagrees (with the given probabilities) or is unsure."""
    kind = ANSWERS[int(np.searchsorted(np.cumsum(shares), rng.random()))]
    return str(kind[int(rng.integers(len(kind)))])


def answered(
    queries: Sequence[Question], planted: pl.DataFrame, world: Partisanship
) -> pl.DataFrame:
    """Return the texts by corpus and outlet: the world's prompts, with answers."""
    rows = []
    for corpus, outlet, rng in partisans.outlets(world):
        part = planted.filter(pl.col("corpus") == corpus)
        for q, row, has_text in zip(queries, partisans.shares(part), part["written"], strict=True):
            times = world.sentences if has_text else 0
            rows += [(corpus, outlet, f"{q.text} {respond(row, rng)}") for _ in range(times)]
    return pl.DataFrame(rows, partisans.TEXTS, orient="row")


def tokenizer_of(texts: Sequence[str], world: Partisanship, *, pairs: bool = False) -> Any:
    """Return a tokenizer, for the texts and all answers, that joins words when decoding."""
    sentences = [*texts, *(text for kind in ANSWERS for text in kind)]
    result = tiny_model.tokenizer_of(sentences, world.positions, pairs=pairs)
    result.backend_tokenizer.decoder = decoders.WordPiece()
    return result
