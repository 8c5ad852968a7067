"""Masked language models with one forward pass per prompt (BERT and its kin)."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

import torch
from transformers import AutoModelForMaskedLM, AutoTokenizer
from transformers.utils.logging import disable_progress_bar

from builders.lib.problem import Problem
from probes.models.scorer import DECIMALS, MASK, Fill, Vocabulary

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

disable_progress_bar()  # type: ignore[no-untyped-call]
BLOCK = 4096  # prompts tokenised and sorted by length at once: bounds memory
BATCH = 64  # prompts in one forward pass, all of exactly the same length


class Masked:
    """A masked language model and its tokenizer.

    Batches hold prompts of exactly one length, so there is no padding, and an answer does not
    depend on who shares the batch: in float64 to the last digit kept, in float32 to about 1e-5.
    """

    def __init__(self, where: Path, name: str, revision: str, *, dtype: str) -> None:
        try:
            self.tokenizer: Any = AutoTokenizer.from_pretrained(where)
            self.model: Any = AutoModelForMaskedLM.from_pretrained(
                where, dtype=getattr(torch, dtype), use_safetensors=True
            )
        except (OSError, ValueError) as error:
            said = " ".join(str(error).split())[:300]
            raise Problem(
                f"models.{name}: could not be loaded from {where} ({said}); check id and revision "
                "in params.yaml, and the network if it was not fetched yet"
            ) from error
        self.model.eval()
        self.name, self.revision, self.dtype = name, revision, dtype
        if self.tokenizer.mask_token is None:
            raise Problem(
                f"models.{name}: has no mask token, so it is not a masked model; check its kind"
            )
        offset = max(  # in RoBERTa and its kin the first positions belong to the padding
            (
                part.padding_idx + 1
                for path, part in self.model.named_modules()
                if path.endswith("position_embeddings")
                and getattr(part, "padding_idx", None) is not None
            ),
            default=0,
        )
        limits = (
            self.tokenizer.model_max_length,
            getattr(self.model.config, "max_position_embeddings", 1 << 30) - offset,
        )
        self.longest = int(min(limits))

    def facts(self) -> dict[str, str | int]:
        """Return model, revision, vocabulary size, mask token, dtype."""
        return {
            "model": self.name,
            "revision": self.revision,
            "architecture": type(self.model).__name__,
            "vocabulary": len(self.tokenizer),
            "mask_token": self.tokenizer.mask_token,
            "dtype": self.dtype,
        }

    def vocabulary(self, words: Sequence[str]) -> Vocabulary:
        """Tell which words are one word-initial piece.

        The piece is the one that stands for the word after another word: with the leading space
        in byte-level and SentencePiece vocabularies, without ``##`` in WordPiece. A word that the
        tokenizer changes (an uncased one does it to capitals) or splits is missing, and so is one
        whose piece another word has already.
        """
        head = self.tokenizer("a", add_special_tokens=False)["input_ids"]
        ids: dict[str, int] = {}
        missing: list[str] = []
        taken: set[int] = set()
        whole = self.tokenizer([f"a {w}" for w in words], add_special_tokens=False)["input_ids"]
        for word, pieces in zip(words, whole, strict=True):
            tail = pieces[len(head) :]
            ok = pieces[: len(head)] == head and len(tail) == 1
            ok = ok and tail[0] != self.tokenizer.unk_token_id and tail[0] not in taken
            if ok and self.tokenizer.decode(tail).strip() == word:
                ids[word] = tail[0]
                taken.add(tail[0])
            else:
                missing.append(word)
        return Vocabulary(ids, tuple(missing))

    def fill(self, prompts: Iterable[str], words: Sequence[str], top_k: int) -> Iterator[Fill]:
        """Rank candidate words at the one mask of each prompt, in the order of the prompts.

        Raises
        ------
        Problem
            If a prompt is too long for the model, or has not exactly one mask, or the model
            answers with numbers that are not finite.
        """
        known = self.vocabulary(words).ids
        names, pieces = tuple(known), torch.tensor(list(known.values()), dtype=torch.long)
        source = iter(prompts)
        while block := [p.replace(MASK, self.tokenizer.mask_token) for p in islice(source, BLOCK)]:
            yield from self._block(block, names, pieces, min(top_k, len(names)))

    def _block(
        self, prompts: list[str], names: tuple[str, ...], pieces: torch.Tensor, top_k: int
    ) -> Iterator[Fill]:
        encoded = self.tokenizer(prompts)["input_ids"]
        by_length: dict[int, list[int]] = {}
        for i, ids in enumerate(encoded):
            if len(ids) > self.longest:
                raise Problem(
                    f"models.{self.name}: the prompt {prompts[i]!r} has {len(ids)} tokens, the "
                    f"model takes {self.longest}; it is never cut, leave the row out"
                )
            if ids.count(self.tokenizer.mask_token_id) != 1:
                raise Problem(f"models.{self.name}: not exactly one mask in {prompts[i]!r}")
            by_length.setdefault(len(ids), []).append(i)
        fills: dict[int, Fill] = {}
        for length in sorted(by_length):
            rows = by_length[length]
            for start in range(0, len(rows), BATCH):
                batch = rows[start : start + BATCH]
                scores = self._scores(torch.tensor([encoded[i] for i in batch]), pieces)
                best = torch.sort(-scores, dim=1, stable=True)
                for row, i in enumerate(batch):
                    order = best.indices[row, :top_k].tolist()
                    values = tuple(scores[row, best.indices[row, :top_k]].tolist())
                    words = tuple(names[j] for j in order)
                    unknown = encoded[i].count(self.tokenizer.unk_token_id)
                    fills[i] = Fill(prompts[i], words, values, unknown)
        for i in range(len(prompts)):
            yield fills[i]

    @torch.inference_mode()
    def _scores(self, ids: torch.Tensor, pieces: torch.Tensor) -> torch.Tensor:
        """Return rounded log-probabilities in nats, a tensor (prompts, candidates)."""
        logits = self.model(input_ids=ids, attention_mask=torch.ones_like(ids)).logits
        at_mask = logits[ids == self.tokenizer.mask_token_id]
        wide = at_mask if at_mask.dtype == torch.float64 else at_mask.float()
        scores = torch.log_softmax(wide, dim=-1)[:, pieces].double()
        if not torch.isfinite(scores).all():
            raise Problem(
                f"models.{self.name}: answers are not finite in {self.dtype} (batch of "
                f"{len(ids)}); try dtype: float32"
            )
        return torch.round(scores, decimals=DECIMALS)
