"""Tiny models and their tokenizers, trained so that equal settings give equal bytes.

Arithmetic is in float64, and the final weights are rounded to a grid of 2^-12. The last bits depend
on the processor and their differences grow over hundreds of steps. Files written on processors of
the same kind are therefore equal; those written on another kind differ in a few weights (0 to 2.5%
in 8 worlds) by one or two steps of the grid.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from tokenizers import (
    AddedToken,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)
from torch.nn.utils.rnn import pad_sequence
from transformers import (
    AlbertConfig,
    AlbertForMaskedLM,
    BertConfig,
    BertForMaskedLM,
    BertForSequenceClassification,
    GPT2Config,
    GPT2LMHeadModel,
    PreTrainedTokenizerFast,
)

from plumbline.builders.core.errors import Bar, UserError
from plumbline.builders.core.params import Params
from plumbline.probes.models.scorer import MASK

if TYPE_CHECKING:
    import polars as pl

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
Losses = Callable[[], Iterator[torch.Tensor]]

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
INIT = 0.05  # SD of the initial weights; with BERT's 0.02, tiny models learn more slowly
LONGEST = 64  # default maximum number of tokens of a model
GRID = 2.0**-12  # weights are integer multiples of this step
FORMS: dict[str, tuple[Any, Any]] = {
    "bert": (BertConfig, BertForMaskedLM),
    "albert": (AlbertConfig, AlbertForMaskedLM),
    "causal": (GPT2Config, GPT2LMHeadModel),
    "classifier": (BertConfig, BertForSequenceClassification),
}
Hidden = Annotated[int, Field(ge=8, description="width of the model")]
Steps = Annotated[int, Field(ge=1, description="training steps")]
Batch = Annotated[int, Field(ge=2, description="number of prompts or texts per step")]
Rate = Annotated[float, Field(gt=0, description="maximum learning rate of Adam")]


class Tiny(Params):
    """Settings common to all worlds: model size and training."""

    seed: int = Field(1, description="seed of the language and the training")
    architecture: Literal["bert", "albert"] = Field("bert", description="type of masked model")
    layers: int = Field(1, ge=1, description="number of layers")
    hidden: Hidden = 64
    steps: Steps = 300
    learning_rate: Rate = 0.003


def tokenizer_of(
    sentences: Sequence[str],
    longest: int = LONGEST,
    *,
    pairs: bool = False,
    cut: Collection[str] = (),
) -> Any:
    """Train a cased WordPiece tokenizer for at most ``longest`` tokens, optionally with text pairs.

    The words in ``cut`` are split into several tokens.

    The trainer numbers single characters in an order that changes between runs. They are therefore
    passed in a fixed order as special tokens, and the resulting vocabulary is put into a plain
    tokenizer.
    """
    characters = sorted({c for sentence in sentences for c in sentence if not c.isspace()})
    fixed = [*SPECIAL, *characters, *(f"##{c}" for c in characters)]
    trained = _wordpiece({piece: i for i, piece in enumerate(SPECIAL)})
    trainer = trainers.WordPieceTrainer(
        vocab_size=30_000, min_frequency=1, special_tokens=fixed, show_progress=False
    )
    trained.train_from_iterator(sentences, trainer)
    pair = "[CLS] $A [SEP] $B:1 [SEP]:1" if pairs else None
    kept_pieces = sorted((i, piece) for piece, i in trained.get_vocab().items() if piece not in cut)
    vocabulary = {piece: i for i, (_, piece) in enumerate(kept_pieces)}
    return _wrapped(_wordpiece(vocabulary), longest, pair)


def _wrapped(
    tokenizer: Tokenizer, longest: int, pair: str | None = None, mask: Any = SPECIAL[-1]
) -> Any:
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair=pair,
        special_tokens=[(name, tokenizer.token_to_id(name)) for name in ("[CLS]", "[SEP]")],
    )
    named = {f"{name.strip('[]').lower()}_token": name for name in SPECIAL} | {"mask_token": mask}
    wrap: Any = PreTrainedTokenizerFast
    return wrap(tokenizer_object=tokenizer, model_max_length=longest, **named)


def bytes_tokenizer_of(sentences: Sequence[str], bare: Sequence[str]) -> Any:
    """Train a byte-level tokenizer like GPT-2's, with a mask that includes the preceding space.

    Words in ``bare`` are also tokens without a space. Words that are in no sentence are split.
    """
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=30_000,
        min_frequency=1,
        special_tokens=[*SPECIAL[:-1], AddedToken("[MASK]", lstrip=True, special=True)],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator([*sentences, *bare], trainer)
    return _wrapped(tokenizer, LONGEST, mask=AddedToken("[MASK]", lstrip=True, special=True))


def _wordpiece(vocabulary: dict[str, int]) -> Tokenizer:
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=False, strip_accents=False)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return tokenizer


def model_of(world: Tiny, tokenizer: Any, kind: str = "masked", labels: Sequence[str] = ()) -> Any:
    """Seed torch, and return a model with initial weights in double precision.

    ``kind``: ``masked`` (BERT or ALBERT), ``causal`` (GPT-2) or ``classifier`` (BERT, for
    ``labels``).
    """
    torch.manual_seed(world.seed)
    positions = getattr(world, "positions", LONGEST)
    form = world.architecture if kind == "masked" else kind
    settings: dict[str, Any] = {
        "vocab_size": len(tokenizer),
        "pad_token_id": tokenizer.pad_token_id,
        "initializer_range": INIT,
        "hidden_size": world.hidden,
        "num_hidden_layers": world.layers,
        "num_attention_heads": max(1, world.hidden // 32),
    }
    if form == "causal":
        settings |= dict.fromkeys(("resid_pdrop", "embd_pdrop", "attn_pdrop"), 0.0)
        settings |= {"bos_token_id": tokenizer.cls_token_id, "eos_token_id": tokenizer.sep_token_id}
        settings["n_positions"] = positions
    else:
        settings |= dict.fromkeys(("hidden_dropout_prob", "attention_probs_dropout_prob"), 0.0)
        settings |= {"intermediate_size": 2 * world.hidden, "max_position_embeddings": positions}
    if form == "classifier":
        settings |= {"id2label": dict(enumerate(labels)), "classifier_dropout": 0.0}
        settings["label2id"] = {label: i for i, label in enumerate(labels)}
    if form == "albert":
        settings["embedding_size"] = world.hidden // 2
    config, architecture = FORMS[form]
    return architecture(config(**settings)).double()


def head_of(model: Any) -> Any:
    """Return the module that maps hidden states to logits."""
    return model.predictions if hasattr(model, "predictions") else model.cls


def train(
    into: Path, world: Tiny, model: Any, tokenizer: Any, losses: Losses, **planted: pl.DataFrame
) -> None:
    """Minimise a loss, and write the model, tokenizer, settings and planted effects into a folder.

    ``losses``: called in each step; the sum of the losses that it yields is minimised.
    ``planted``: planted effects by file name; if there are none, the settings are not written.
    """
    rate = world.learning_rate
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=rate, total_steps=world.steps, pct_start=0.1
    )
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # more threads help little, and are slower on a busy machine
    try:
        bar = Bar(range(world.steps), desc="training", unit="step")
        for _ in bar:
            optimizer.zero_grad()
            total = 0.0
            for loss in losses():
                loss.backward()  # type: ignore[no-untyped-call]
                total += loss.item()
            optimizer.step()
            schedule.step()
            bar.set_postfix(loss=f"{total:.4f}", refresh=False)
    finally:
        torch.set_num_threads(threads)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.round(parameter / GRID) * GRID + 0.0)  # no -0.0
    for name, table in planted.items():
        table.write_parquet(into / f"{name}.parquet", compression="zstd", statistics=False)
    if planted:
        settings = world.model_dump(mode="json", exclude_none=True)
        text = json.dumps(settings, indent=1, sort_keys=True) + "\n"
        (into / "world.json").write_text(text, encoding="utf-8")
    tokenizer.backend_tokenizer.no_padding()  # set only during training
    tokenizer.save_pretrained(into)
    model.float().eval().save_pretrained(into)


def pieces(tokenizer: Any, words: Sequence[str], world: str) -> list[int]:
    """Return the token of each word; raise UserError if a word is not a single token."""
    result: list[int] = tokenizer.convert_tokens_to_ids(list(words))
    if tokenizer.unk_token_id in result:
        raise UserError(f"world of {world}: a word has several tokens; it must be a single token")
    return result


def targets(tokenizer: Any, words: Sequence[str], shares: NDArray[Any], world: str) -> torch.Tensor:
    """Convert probabilities of words, (n, words), into those of all tokens, (n, tokens)."""
    result = torch.zeros(len(shares), len(tokenizer), dtype=torch.float64)
    result[:, pieces(tokenizer, words, world)] = torch.from_numpy(shares)
    return result


def spread(
    tokenizer: Any, words: Sequence[str], shares: NDArray[Any]
) -> tuple[list[int], torch.Tensor]:
    """Return the number of tokens of each word, and the shares of tokens, of shape (n, tokens).

    ``shares``: shares of words, (n, words). A word's share is divided equally among its tokens.
    """
    encoded = tokenizer([f" {word}" for word in words], add_special_tokens=False)["input_ids"]
    result = torch.zeros(len(shares), len(tokenizer), dtype=torch.float64)
    for column, ids in enumerate(encoded):
        for token in ids:
            result[:, token] += torch.from_numpy(shares[:, column]) / len(ids)
    return [len(ids) for ids in encoded], result


def cross_entropy(target: torch.Tensor, logits: torch.Tensor, n: int) -> torch.Tensor:
    """Return the sum of the rows' cross-entropies, divided by ``n``."""
    return -(target * torch.log_softmax(logits, dim=-1)).sum() / n


def begin_with(model: Any, words: Sequence[int], logs: torch.Tensor, other: float) -> None:
    """Initialise a masked model with mean log-probabilities (nats), which speeds up training."""
    with torch.no_grad():
        bias = model.get_output_embeddings().bias
        bias.fill_(other)
        bias[list(words)] = logs


def masked(texts: Sequence[str]) -> list[str]:
    """Replace the mask in texts with that of the worlds' tokenizers."""
    return [text.replace(MASK, "[MASK]") for text in texts]


def batch(rng: np.random.Generator, n: int, size: int) -> Integers:
    """Draw at most ``size`` of ``n`` rows without replacement, and sort them."""
    return np.sort(rng.choice(n, min(size, n), replace=False))


def padded(rows: Sequence[list[int]], pad: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return padded tokens and their attention mask, both of shape (rows, tokens)."""
    tokens = [torch.tensor(row) for row in rows]
    ids = pad_sequence(tokens, batch_first=True, padding_value=pad)
    return ids, pad_sequence([torch.ones_like(row) for row in tokens], batch_first=True)


def at_masks(
    model: Any,
    tokenizer: Any,
    prompts: Sequence[str],
    target: torch.Tensor,
    draw: Callable[[], Integers],
    *,
    pad: bool = False,
    hide: float = 0,
) -> Losses:
    """Return a function that yields the losses at the last mask of prompts.

    ``target``: probabilities to learn, (prompts, tokens).
    ``draw``: function that returns the rows of a step.
    ``pad``: if True, all rows of a step form one padded batch; otherwise one batch per length.
    ``hide``: share of the tokens before the last mask that are also masked, randomly in each step.
    """
    head = head_of(model)
    encoded = tokenizer(masked(prompts))["input_ids"]
    last = [len(ids) - 1 - ids[::-1].index(tokenizer.mask_token_id) for ids in encoded]

    def losses() -> Iterator[torch.Tensor]:
        step = draw()
        lengths = np.array([len(encoded[i]) for i in step])
        for rows in [step] if pad else [step[lengths == n] for n in np.unique(lengths)]:
            ids, mask = padded([encoded[i] for i in rows], tokenizer.pad_token_id)
            places = torch.tensor([last[i] for i in rows])
            if hide:
                inside = torch.arange(ids.shape[1]) < places[:, None]
                inside[:, 0] = False
                chosen = inside & (torch.rand(ids.shape) < hide)
                ids = torch.where(chosen, tokenizer.mask_token_id, ids)
            states = model.base_model(input_ids=ids, attention_mask=mask)[0]
            logits = head(states[torch.arange(len(rows)), places])
            yield cross_entropy(target[rows], logits, len(step))

    return losses


def hide(
    model: Any, tokenizer: Any, ids: torch.Tensor, mask: torch.Tensor, share: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Mask a share of the tokens; return the mask and the log-probabilities, (masked, tokens)."""
    special = torch.tensor(tokenizer.all_special_ids)
    hidden = (torch.rand(ids.shape) < share) & ~torch.isin(ids, special)
    masked_ids = torch.where(hidden, tokenizer.mask_token_id, ids)
    states = model.base_model(input_ids=masked_ids, attention_mask=mask)[0]
    return hidden, torch.log_softmax(head_of(model)(states[hidden]), dim=-1)
