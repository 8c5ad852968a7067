"""Training a tiny model on the planted world.

Arithmetic is float64 and the weights are rounded to a grid of 2^-12 at the end: the last bits,
which depend on processor and thread count (about 1e-13), are far below that grid, so the files do
not.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers
from tqdm import tqdm
from transformers import (
    AlbertConfig,
    AlbertForMaskedLM,
    BertConfig,
    BertForMaskedLM,
    PreTrainedTokenizerFast,
)

from builders import politicians
from builders import words as words_dataset
from builders.lib.problem import Problem
from builders.lib.store import require_validated
from probes.models.scorer import MASK
from probes.world.language import SENTIMENTS, Planted, World, allot, plant, tastes
from probes.world.meaning import meaning

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
INIT = 0.05  # spread of the initial weights; BERT's 0.02 learns more slowly at this size
GRID = 2.0**-12  # weights are whole multiples of it
PLANTED = "planted.parquet"
CORPUS = "corpus.parquet"


def train(world: World, into: Path) -> None:
    """Plant a world, write its corpus, and train its model and tokenizer into a folder.

    Besides the model, the folder gets ``planted.parquet`` (what is true of every word),
    ``world.json`` (its params) and ``corpus.parquet`` (every sentence with its count).
    """
    rng = np.random.default_rng(world.seed)
    people, vocabulary, places = _inputs(world)
    genders = people["gender"].to_list()
    planted: dict[str, Planted] = {}
    counts: dict[str, np.ndarray] = {}
    for pos, lemmas in vocabulary.items():
        words = list(lemmas)
        meant = meaning(words, list(lemmas.values()), world.language, pos)
        planted[pos] = plant(words, meant.sentiment, meant.supersense, world, rng)
        probabilities = tastes(planted[pos], genders, world.name_noise, rng)
        counts[pos] = allot(probabilities, world.sentences)
    corpus = _corpus(people["name"].to_list(), planted, counts, places)
    corpus.write_parquet(into / CORPUS, compression="zstd", statistics=False)
    _table(planted).write_parquet(into / PLANTED, compression="zstd", statistics=False)
    facts = json.dumps(world.model_dump(mode="json", exclude_none=True), indent=1, sort_keys=True)
    (into / "world.json").write_text(facts + "\n", encoding="utf-8")

    tokenizer = _tokenizer(corpus)
    tokenizer.save_pretrained(into)
    prompts = [prompt(name, places[pos]) for pos in planted for name in people["name"]]
    targets = [(pos, row) for pos in planted for row in range(len(genders))]
    threads = torch.get_num_threads()
    torch.set_num_threads(
        1
    )  # so small a model gains little from more, and loses much on a busy CPU
    try:
        _fit(world, tokenizer, prompts, targets, planted, counts).save_pretrained(into)
    finally:
        torch.set_num_threads(threads)


def prompt(name: str, place: str) -> str:
    """Return the frame of the paper: the mask before or after the bare name."""
    return f"{MASK} {name}" if place == "before" else f"{name} {MASK}"


def _inputs(world: World) -> tuple[pl.DataFrame, dict[str, dict[str, str]], dict[str, str]]:
    """Return the people, the words of each part of speech with lemmas, and where those stand."""
    people = pl.read_parquet(
        require_validated("politicians") / f"{world.language}.parquet", columns=["name", "gender"]
    )
    people = people.unique("name", keep="first", maintain_order=True)
    label = dict(enumerate(politicians.GENDERS))
    people = people.with_columns(pl.col("gender").replace_strict(label, return_dtype=pl.String))
    frame = pl.read_parquet(require_validated("words") / f"{world.language}.parquet")
    ambiguous = (
        frame.group_by("form").agg(pl.col("pos").n_unique().alias("n")).filter(pl.col("n") > 1)
    )
    frame = frame.filter(~pl.col("form").is_in(ambiguous["form"].to_list()))
    frame = frame.sort(["count", "form"], descending=[True, False])
    vocabulary: dict[str, dict[str, str]] = {}
    places: dict[str, str] = {}
    for code, pos in enumerate(words_dataset.POS):
        part = frame.filter(pl.col("pos") == code).unique("form", keep="first", maintain_order=True)
        part = part.head(world.words_max)
        if len(part) < 10:
            raise Problem(
                f"world in {world.language!r}: only {len(part)} {pos} in words; it needs 10"
            )
        vocabulary[pos] = dict(zip(part["form"], part["lemma"], strict=True))
        places[pos] = words_dataset.PLACES[part["place"][0]]
    return people, vocabulary, places


def _corpus(
    names: list[str],
    planted: dict[str, Planted],
    counts: dict[str, np.ndarray],
    places: dict[str, str],
) -> pl.DataFrame:
    def rows() -> Iterator[tuple[str, str, str, str, int]]:
        for pos, truth in planted.items():
            for row, name in enumerate(names):
                frame = prompt(name, places[pos])
                for column, word in enumerate(truth.words):
                    if count := int(counts[pos][row, column]):
                        yield name, pos, word, frame.replace(MASK, word), count

    columns = {
        "name": pl.String,
        "pos": pl.String,
        "word": pl.String,
        "sentence": pl.String,
        "count": pl.Int64,
    }
    return pl.DataFrame(list(rows()), schema=columns, orient="row")


def _table(planted: dict[str, Planted]) -> pl.DataFrame:
    return pl.concat(
        pl.DataFrame(
            {
                "word": truth.words,
                "pos": [pos] * len(truth.words),
                "sentiment": [SENTIMENTS[i] for i in truth.sentiment],
                "supersense": truth.supersense,
                "frequency_nats": truth.frequency,
                "log_ratio_nats": truth.log_ratio,
            }
        )
        for pos, truth in planted.items()
    )


def _tokenizer(corpus: pl.DataFrame) -> PreTrainedTokenizerFast:
    """Train a cased WordPiece tokenizer on the corpus, each distinct sentence once.

    The trainer numbers the pieces of one character in an order that changes from run to run; they
    are handed to it in a fixed order as if they were special, and the vocabulary that comes out is
    put into a plain tokenizer.
    """
    sentences = corpus["sentence"].to_list()
    characters = sorted({c for sentence in sentences for c in sentence if not c.isspace()})
    fixed = [*SPECIAL, *characters, *(f"##{c}" for c in characters)]
    trained = _wordpiece({piece: i for i, piece in enumerate(SPECIAL)})
    trainer = trainers.WordPieceTrainer(
        vocab_size=30_000, min_frequency=1, special_tokens=fixed, show_progress=False
    )
    trained.train_from_iterator(sentences, trainer)
    tokenizer = _wordpiece(trained.get_vocab())
    ids = [("[CLS]", tokenizer.token_to_id("[CLS]")), ("[SEP]", tokenizer.token_to_id("[SEP]"))]
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=ids
    )
    wrap: Any = PreTrainedTokenizerFast
    wrapped: PreTrainedTokenizerFast = wrap(
        tokenizer_object=tokenizer,
        model_max_length=64,
        unk_token="[UNK]",
        pad_token="[PAD]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
    )
    return wrapped


def _wordpiece(vocabulary: dict[str, int]) -> Tokenizer:
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=False, strip_accents=False)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return tokenizer


def _fit(
    world: World,
    tokenizer: PreTrainedTokenizerFast,
    prompts: list[str],
    targets: list[tuple[str, int]],
    planted: dict[str, Planted],
    counts: dict[str, np.ndarray],
) -> BertForMaskedLM | AlbertForMaskedLM:
    """Minimise the corpus's cross-entropy, every sentence masked at its adjective or verb.

    Sentences that are alike once masked are computed once and weighted by their counts, which
    gives the gradient of the whole corpus in every step.
    """
    torch.manual_seed(world.seed if world.training_seed is None else world.training_seed)
    model = _model(world, tokenizer)
    head = model.predictions if world.architecture == "albert" else model.cls
    groups = _by_length(tokenizer, prompts)
    wanted = torch.zeros(len(prompts), len(tokenizer), dtype=torch.float64)
    for i, (pos, row) in enumerate(targets):
        pieces: Any = tokenizer.convert_tokens_to_ids(list(planted[pos].words))
        if tokenizer.unk_token_id in pieces:
            raise Problem("world: a word of the language is not one piece of its tokenizer")
        wanted[i, pieces] = torch.from_numpy(counts[pos][row] / counts[pos][row].sum())
    optimizer = torch.optim.Adam(model.parameters(), lr=world.learning_rate)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=world.learning_rate, total_steps=world.steps, pct_start=0.1
    )
    bar = tqdm(range(world.steps), desc="training", unit="step", disable=None)
    for _ in bar:
        optimizer.zero_grad()
        total = 0.0
        for ids, rows in groups:
            hidden = model.base_model(input_ids=ids, attention_mask=torch.ones_like(ids))[0]
            logits = head(hidden[ids == tokenizer.mask_token_id])
            loss = -(wanted[rows] * torch.log_softmax(logits, dim=-1)).sum() / len(prompts)
            loss.backward()  # type: ignore[no-untyped-call]
            total += loss.item()
        optimizer.step()
        schedule.step()
        bar.set_postfix(loss=f"{total:.4f}", refresh=False)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.round(parameter / GRID) * GRID + 0.0)  # no -0.0
    trained: BertForMaskedLM | AlbertForMaskedLM = model.float().eval()
    return trained


def _model(world: World, tokenizer: PreTrainedTokenizerFast) -> Any:
    """Return the model with its first weights, in double precision."""
    shape: dict[str, Any] = {
        "vocab_size": len(tokenizer),
        "hidden_size": world.hidden,
        "num_hidden_layers": world.layers,
        "num_attention_heads": max(1, world.hidden // 32),
        "intermediate_size": 2 * world.hidden,
        "max_position_embeddings": 64,
        "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0,
        "pad_token_id": tokenizer.pad_token_id,
        "initializer_range": INIT,
    }
    if world.architecture == "albert":
        config = AlbertConfig(**shape, embedding_size=world.hidden // 2)
        return AlbertForMaskedLM(config).double()
    return BertForMaskedLM(BertConfig(**shape)).double()


def _by_length(
    tokenizer: PreTrainedTokenizerFast, prompts: list[str]
) -> list[tuple[torch.Tensor, torch.Tensor]]:
    encoded = tokenizer([p.replace(MASK, "[MASK]") for p in prompts])["input_ids"]
    rows: dict[int, list[int]] = {}
    for i, ids in enumerate(encoded):
        rows.setdefault(len(ids), []).append(i)
    return [
        (torch.tensor([encoded[i] for i in rows[n]]), torch.tensor(rows[n])) for n in sorted(rows)
    ]
