"""Models with a mask: encoders (BERT and similar), XLNet, and BART's decoder at the mask.

``fill`` and ``predict`` read log-probabilities at the mask, ``pseudo_logprobs`` scores sentences,
and ``represent`` returns hidden states of words. Every result equals that of a plain forward pass
of the model's class; padding, ineffective attention masks and the head at unused positions are
omitted.
"""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from functools import partial
from itertools import repeat
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForMaskedLM

from plumbline.builders.core.errors import UserError
from plumbline.probes.models import batching
from plumbline.probes.models.batching import blocks
from plumbline.probes.models.forward import Candidates, Prompts, Reader
from plumbline.probes.models.kernels import HeadOnly
from plumbline.probes.models.scorer import MASK, METHODS, Method, Score

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

# their decoder predicts a single mask at its position and attends only to previous tokens
DECODERS = ("bart", "mbart", "mvp")
Copy = tuple[tuple[int, ...], tuple[int, ...], str]  # tokens of a text, masked positions, language


class _Auto:
    """Selects the transformers class of a model with a mask."""

    @staticmethod
    def from_pretrained(where: Path, **options: Any) -> Any:
        kind = AutoConfig.from_pretrained(where, trust_remote_code=False).model_type
        auto: Any = AutoModelForCausalLM if kind == "xlnet" else AutoModelForMaskedLM
        return auto.from_pretrained(where, **options)


class Masked(Reader):
    """A model with a mask, and its tokenizer."""

    auto = _Auto

    def __init__(self, where: Path, name: str, revision: str, **options: Any) -> None:
        super().__init__(where, name, revision, **options)
        self.mask_token = str(self.tokens.tokenizer.mask_token)
        self.scored: dict[Copy, complex] = {}  # scores of masked copies of the last block
        self.body = self.model.get_submodule(self.model.base_model_prefix)
        if self.kind != "xlnet":
            self.head = HeadOnly(self.body)
            self.narrow = self.head.shorten(self.model)

    def load(self, where: Path, *, pickles: bool) -> Any:
        """Load the model from a folder."""
        if self.tokens.mask_id is None:
            raise UserError(
                f"models.{self.name}: has no mask token, so it is not a masked model; check its "
                "kind"
            )
        self.mask_id = self.tokens.mask_id
        model = super().load(where, pickles=pickles)
        self.kind: str = model.config.model_type
        if self.kind == "xlnet":
            _one_dtype(model, getattr(torch, self.dtype))
        return model

    def at(
        self, ids: Any, positions: Any, language: str = "", hidden: Sequence[Sequence[int]] = ()
    ) -> torch.Tensor:
        """Return logits of shape (texts, vocabulary) at one position of each row of ``ids``.

        Only XLNet uses the ``hidden`` positions of each text: its permutation mask hides these
        tokens from all others, and its target mapping selects the position that the query stream
        predicts (Yang et al. 2019, section 2.3).
        """
        ids, positions = self.batches.move(ids), self.batches.move(positions)
        if self.kind != "xlnet":
            return self.look(ids, positions, language)
        rows = self.enough(torch.arange(len(ids), device=ids.device))
        texts, length = len(rows), ids.shape[1]
        new = partial(torch.zeros, device=ids.device, dtype=self.model.dtype)
        blind, target = new(texts, length, length), new(texts, 1, length)
        for n, row in enumerate(rows.tolist()):
            blind[n, :, list(hidden[row])] = 1
        target[torch.arange(texts, device=ids.device), 0, positions[rows]] = 1
        options = self.options(ids[rows], language)
        out = self.model(input_ids=ids[rows], perm_mask=blind, target_mapping=target, **options)
        logits: torch.Tensor = out.logits[: len(ids)]
        return logits.reshape(len(ids), -1)

    def all(
        self, ids: torch.Tensor, language: str = "", *, attention: bool = False
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Return logits of shape (texts, length, vocabulary) and the attention that tokens receive.

        The attention, of shape (texts, length), is averaged over layers, heads and query tokens.
        """
        if attention:  # each text is a separate batch
            out = self.model(input_ids=ids, output_attentions=True, **self.options(ids, language))
            received = torch.stack([layer.mean(dim=(1, 2)) for layer in out.attentions])
            return out.logits, received.mean(0)
        again = self.enough(ids, ids.shape[1])
        out = self.model(input_ids=again, **self.options(again, language))
        return out.logits[: len(ids)], None

    def options(self, ids: torch.Tensor, language: str) -> dict[str, Any]:
        """Return architecture-specific inputs, such as the language of every token for XLM."""
        config, tokenizer = self.model.config, self.tokens.tokenizer
        if self.kind == "xlnet":
            return {"token_type_ids": torch.where(ids == tokenizer.cls_token_id, 2, 0)}
        self.tokens.require_language(language)
        if self.kind != "xlm" or not config.use_lang_emb or config.n_langs < 2:
            return {}
        numbers = getattr(config, "lang2id", None) or {}
        if language not in numbers:
            raise self.tokens.foreign(language, numbers)
        return {"langs": torch.full_like(ids, numbers[language])}

    def prepare(
        self,
        prompts: list[str],
        language: str,
        candidates: Candidates | None = None,
        *,
        together: bool = False,
    ) -> Prompts:
        """Prepare the prediction of words at a prompt's only mask, or of tokens at its last mask.

        A word of several tokens is scored by the sum of its tokens' log-probabilities, each given
        the word's previous tokens while its following ones are masked (within-word left-to-right).
        With ``together``, all tokens of the word are masked. Raises UserError if a prompt is too
        long for the model or has no mask, or if candidates are given and it has several masks.
        """
        written = [(self.context + prompt).replace(MASK, self.mask_token) for prompt in prompts]
        encoded = self.encode(written, language)
        masks = [[i for i, token in enumerate(ids) if token == self.mask_id] for ids in encoded]
        for text, places in zip(written, masks, strict=True):
            if not places or (candidates is not None and len(places) > 1):
                wrong = "no mask" if candidates is None else "not exactly one mask"
                raise UserError(f"models.{self.name}: {wrong} in {text!r}")

        def score(rows: list[int]) -> torch.Tensor:
            hidden = [masks[i] for i in rows]
            last = [places[-1] for places in hidden]
            return self.nats(self.at([encoded[i] for i in rows], last, language, hidden))

        tails = [tail for tail in (candidates or {}).values() if len(tail) > 1]
        sums = partial(self._sums, encoded, masks, tails, language, together)
        return Prompts(written, encoded, score, sums)

    def _sums(
        self,
        encoded: list[list[int]],
        masks: list[list[int]],
        tails: list[tuple[int, ...]],
        language: str,
        together: bool,
    ) -> NDArray[np.float64]:
        """Return log-probabilities, of shape (prompts, words), for words of several tokens."""
        worst = max(encoded, key=len)
        length = len(worst) + max(map(len, tails)) - 1
        self.tokens.fits(self.tokens.tokenizer.decode(worst), length, self.longest)
        sums = [np.zeros((0, len(tails)))]
        for rows in blocks(range(len(encoded)), max(1, batching.BLOCK // sum(map(len, tails)))):
            texts, hidden = [], []
            for ids, (start,) in ((encoded[i], masks[i]) for i in rows):
                for tail in tails:
                    texts.append([*ids[:start], *tail, *ids[start + 1 :]])
                    inner = range(start, start + len(tail))
                    hidden.append(
                        [(p, *(q for q in inner if q > p or (together and q != p))) for p in inner]
                    )
            scores = self._masked(texts, hidden, language)[:, 0]
            sums.append(scores.reshape(len(rows), -1))
        return np.concatenate(sums)

    def pseudo_logprobs(
        self,
        sentences: Iterable[str],
        method: Method = "original",
        *,
        language: str = "",
        prefixes: Iterable[str] | None = None,
    ) -> Iterator[Score]:
        """Score complete sentences, or the text after their ``prefixes``, in order.

        The tokens of a prefix are visible, but neither masked nor counted. Spaces at the end of a
        prefix belong to the sentence. A prefix must have the same tokens alone and in its text.

        ``original``: the sum of the tokens' log-probabilities, with each token masked alone
        (Salazar et al. 2020, eq. 1). ``within_word_l2r``: the same, with the following tokens of
        the same word masked too (Kauf & Ivanova 2023, section 3). ``aul``: the sum of the tokens'
        log-probabilities in the unmasked sentence. ``aula``: the same, weighted by the attention
        that each token receives, averaged over layers, heads and tokens (Kaneko & Bollegala 2022,
        eqs. 3 and 4; their mean over tokens is this sum divided by ``tokens``).

        Raises UserError if a sentence is too long or empty, if the method is unknown or not
        supported by the model, or if an output is not finite.
        """
        if method not in METHODS:
            raise UserError(f"{method!r}: no such method; available: {', '.join(METHODS)}")
        if self.kind in DECODERS or (self.kind == "xlnet" and method in METHODS[2:]):
            raise UserError(
                f"models.{self.name}: {self.architecture} has no pseudo-log-likelihood "
                f"({method}); remove it from this probe"
            )
        before = repeat("") if prefixes is None else prefixes
        for block in blocks(zip(before, sentences, strict=prefixes is not None)):
            with self._eager() if method == "aula" else nullcontext():  # closed before yielding
                scores = self._score(block, method, language)
            yield from scores

    @contextmanager
    def _eager(self) -> Iterator[None]:
        """Use eager attention, since the fast kernels do not return attention weights."""
        before = self.model.config._attn_implementation  # noqa: SLF001 no public way to read it
        self.model.set_attn_implementation("eager")
        try:
            yield
        finally:
            self.model.set_attn_implementation(before)

    def _score(self, pairs: list[tuple[str, str]], method: Method, language: str) -> list[Score]:
        """Score one block of sentences after their prefixes."""
        before = [(self.context + prefix).rstrip() for prefix, _ in pairs]
        sentences = [self.context + prefix + sentence for prefix, sentence in pairs]
        encoded = self.encode(sentences, language)
        heads = self.tokens.encode(before, language, special=False)
        counted: list[list[int]] = []
        for prefix, head, text, ids in zip(before, heads, sentences, encoded, strict=True):
            places = self.tokens.counted(text, ids)
            if prefix:
                self.tokens.after(prefix, text, [ids[i] for i in places], head)
                places = places[len(head) :]
            if not places:
                raise UserError(f"models.{self.name}: nothing to score in {text!r}")
            counted.append(places)
        if method in METHODS[2:]:
            sums = self._unmasked(encoded, counted, language, weighted=method == "aula")
        else:
            hidden: list[list[tuple[int, ...]]] = [[(p,) for p in places] for places in counted]
            if method == "within_word_l2r":
                for i, places in enumerate(counted):
                    word = self.tokens.words(sentences[i], encoded[i], language)
                    hidden[i] = [
                        (p, *(q for q in places if q > p and word[q] == word[p])) for p in places
                    ]
            sums = self._masked(encoded, hidden, language)
        inner = [[ids[i] for i in places] for ids, places in zip(encoded, counted, strict=True)]
        return self.scores(sentences, sums[:, 0], inner, sums[:, 1])

    def _masked(
        self, texts: list[list[int]], hidden: list[list[tuple[int, ...]]], language: str
    ) -> NDArray[np.float64]:
        """Return sums of :meth:`chosen` over the masked copies of each text, of shape (texts, 2).

        ``hidden``: the masked positions of each copy of a text; the first position is scored. A
        copy that two methods share is scored once.
        """
        copies = [
            (tuple(ids), positions, language)
            for ids, masked in zip(texts, hidden, strict=True)
            for positions in masked
        ]
        new = [copy for copy in dict.fromkeys(copies) if copy not in self.scored]

        def launch(rows: list[int]) -> torch.Tensor:
            ids = torch.tensor([new[r][0] for r in rows])
            masked = [new[r][1] for r in rows]
            places = torch.tensor([first for first, *_ in masked])
            true = ids.gather(1, places[:, None]).squeeze(1)
            where = [(n, q) for n, positions in enumerate(masked) for q in positions]
            ids[tuple(torch.tensor(where).t())] = self.mask_id
            chosen = self.chosen(self.at(ids, places, language, masked), self.batches.move(true))
            return torch.view_as_complex(chosen)  # a complex number, since small arrays are slow

        lengths = [len(ids) for ids, *_ in new]
        scores = self.batches.each(lengths, lengths, launch)
        results = self.scored | dict(zip(new, scores, strict=True))
        self.scored = {copy: results[copy] for copy in copies}  # only the current block is retained
        starts = np.cumsum([0, *(len(masked) for masked in hidden[:-1])])
        values = np.array([results[copy] for copy in copies])
        return np.stack([np.add.reduceat(part, starts) for part in (values.real, values.imag)], 1)

    def _unmasked(
        self, encoded: list[list[int]], counted: list[list[int]], language: str, *, weighted: bool
    ) -> NDArray[np.float64]:
        """Return sums of :meth:`chosen` over unmasked sentences, of shape (sentences, 2)."""

        def launch(rows: list[int]) -> torch.Tensor:
            ids = self.batches.move([encoded[i] for i in rows])
            logits, attention = self.all(ids, language, attention=weighted)
            chosen = self.chosen(logits, ids)
            if attention is not None:
                chosen[..., 0] *= attention.double()
            weights = torch.zeros_like(chosen)
            for n, i in enumerate(rows):
                weights[n, counted[i]] = 1
            return (chosen * weights).sum(1)

        lengths = [len(ids) for ids in encoded]
        # the last digits of eager attention depend on a text's position in its batch
        alone = weighted and self.batches.where.type == "cpu"
        shapes = range(len(encoded)) if alone else lengths
        return np.array(self.batches.each(shapes, lengths, launch))


def _one_dtype(xlnet: Any, dtype: torch.dtype) -> None:
    """Cast all of XLNet to a dtype; transformers leaves attention and positions in float32."""
    xlnet.to(dtype)
    plain = xlnet.transformer.relative_positional_encoding

    def cast(*arguments: Any, **options: Any) -> torch.Tensor:
        positions: torch.Tensor = plain(*arguments, **options).to(dtype)
        return positions

    xlnet.transformer.relative_positional_encoding = cast
