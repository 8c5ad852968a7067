"""Models with a mask: encoders (BERT and its kin), XLNet, and BART's decoder at the mask.

``fill`` and ``predict`` read log-probabilities at the mask; ``pseudo_logprobs`` scores sentences;
``represent`` returns hidden states of words. Every result is that of a plain forward pass of the
model's own class; left out are the head at places that nobody reads, padding, and attention masks
that mask nothing.
"""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from functools import partial
from itertools import product, repeat
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForMaskedLM

from plumbline.builders.core.errors import UserError
from plumbline.probes.models.batching import blocks
from plumbline.probes.models.forward import Asked, Known, Reader
from plumbline.probes.models.kernels.head_only import gated, narrow
from plumbline.probes.models.scorer import MASK, METHODS, Method, Score

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

# one mask, read by the decoder at its place: of its own text it sees only what stands before
DECODERS = ("bart", "mbart", "mvp")
Pass = tuple[int, tuple[int, ...]]  # pieces of a word, those already in place
Piece = tuple[int, int]  # which of the word it is, and its number
Copy = tuple[tuple[int, ...], tuple[int, ...], str]  # a text, the scored place and others masked


class _Auto:
    """What transformers loads a model with a mask as."""

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
        self.scored: dict[Copy, complex] = {}  # masked copies of the last sentences
        path = self.model.base_model_prefix
        self.body: Any = self.model.get_submodule(path)
        if self.kind != "xlnet":
            self.gate = gated(self.model, path)
            self.narrow = narrow(self.model, self.gate, place=1)

    def load(self, where: Path, *, pickles: bool) -> Any:
        """Return the model from a folder."""
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
        self,
        ids: Any,
        places: Any,
        language: str = "",
        hidden: Sequence[Sequence[int]] = (),
        of: list[int] | None = None,
    ) -> torch.Tensor:
        """Return the logits (places, vocabulary) of texts (texts, length) at some places.

        One of each text, or of the texts that ``of`` numbers, (places,): a pass for each text, of
        XLNet one for each place. Only XLNet needs the ``hidden`` places of each text: its
        permutation mask hides a token from all others, and the target mapping asks for one place's
        prediction from the query stream (Yang et al. 2019, section 2.3).
        """
        ids, places = self.batches.move(ids), self.batches.move(places)
        own = torch.arange(len(ids)) if of is None else torch.tensor(of)
        if self.kind != "xlnet":
            return self.look(ids, places, language, self.batches.move(own))
        ids, hidden = ids[own.to(ids.device)], [hidden[row] for row in own.tolist()]
        rows = self.enough(torch.arange(len(ids), device=ids.device))
        texts, length = len(rows), ids.shape[1]
        new = partial(torch.zeros, device=ids.device, dtype=self.model.dtype)
        blind, target = new(texts, length, length), new(texts, 1, length)
        for n, row in enumerate(rows.tolist()):
            blind[n, :, list(hidden[row])] = 1
        target[torch.arange(texts, device=ids.device), 0, places[rows]] = 1
        options = self.options(ids[rows], language)
        out = self.model(input_ids=ids[rows], perm_mask=blind, target_mapping=target, **options)
        logits: torch.Tensor = out.logits[: len(ids)]
        return logits.reshape(len(ids), -1)

    def all(
        self, ids: torch.Tensor, language: str = "", *, attention: bool = False
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Return logits (texts, length, vocabulary), and the attention (texts, length) tokens get.

        The attention is averaged over layers, heads and the tokens that pay it.
        """
        if attention:  # every text is a batch of its own
            out = self.model(input_ids=ids, output_attentions=True, **self.options(ids, language))
            received = torch.stack([layer.mean(dim=(1, 2)) for layer in out.attentions])
            return out.logits, received.mean(0)
        again = self.enough(ids, ids.shape[1])
        out = self.model(input_ids=again, **self.options(again, language))
        return out.logits[: len(ids)], None

    def options(self, ids: torch.Tensor, language: str) -> dict[str, Any]:
        """Return further inputs of an architecture: for XLM the language of every token."""
        config, tokenizer = self.model.config, self.tokens.tokenizer
        if self.kind == "xlnet":
            return {"token_type_ids": torch.where(ids == tokenizer.cls_token_id, 2, 0)}
        self.tokens.told(language)
        if self.kind != "xlm" or not config.use_lang_emb or config.n_langs < 2:
            return {}
        numbers = getattr(config, "lang2id", None) or {}
        if language not in numbers:
            raise self.tokens.foreign(language, numbers)
        return {"langs": torch.full_like(ids, numbers[language])}

    def asked(
        self,
        prompts: list[str],
        language: str,
        known: Known | None = None,
        *,
        together: bool = False,
    ) -> Asked:
        """Return how prompts are asked, for words at their one mask, or for tokens at the last.

        A word of several pieces is asked for at as many masks, each piece with the ones before it
        in place and the ones behind it masked, and the sum taken (within-word left-to-right); or
        ``together``, each with all pieces of the word masked. A prompt that is too long for the
        model, or has no mask, or where words are known more than one, is a UserError.
        """
        written = [(self.context + prompt).replace(MASK, self.mask_token) for prompt in prompts]
        encoded = self.encode(written, language)
        masks = [[i for i, token in enumerate(ids) if token == self.mask_id] for ids in encoded]
        for text, places in zip(written, masks, strict=True):
            if not places or (known is not None and len(places) > 1):
                wrong = "no mask" if known is None else "not exactly one mask"
                raise UserError(f"models.{self.name}: {wrong} in {text!r}")
        tails = [tail for tail in (known or {}).values() if len(tail) > 1]
        score = partial(self._at_masks, encoded, masks, language)
        sums = partial(self._sums, encoded, masks, tails, language, together)
        return Asked(written, encoded, score, sums)

    def _at_masks(
        self, encoded: list[list[int]], masks: list[list[int]], language: str, rows: list[int]
    ) -> torch.Tensor:
        """Return log-probabilities (rows, vocabulary) at the last mask of some texts."""
        ids, hidden = [encoded[i] for i in rows], [masks[i] for i in rows]
        return self.nats(self.at(ids, [places[-1] for places in hidden], language, hidden))

    def _sums(
        self,
        encoded: list[list[int]],
        masks: list[list[int]],
        tails: list[tuple[int, ...]],
        language: str,
        together: bool,
    ) -> NDArray[np.float64]:
        """Return the log-probability (prompts, words) of words of several pieces at the mask.

        The mask becomes as many masks as the word has pieces. Each piece is scored with the ones
        before it in place, or where they are masked ``together`` with none, and the sum is taken.
        """
        worst = max(encoded, key=len)
        text = self.tokens.tokenizer.decode(worst)
        self.tokens.fits(text, range(len(worst) + max(map(len, tails)) - 1), self.longest)

        # words that begin alike share their passes
        passes: dict[Pass, set[Piece]] = {}
        for tail in tails:
            for at, piece in enumerate(tail):
                key = len(tail), () if together else tail[:at]
                passes.setdefault(key, set()).add((at, piece))
        wanted = {key: sorted(pieces) for key, pieces in sorted(passes.items())}
        jobs = list(product(range(len(encoded)), wanted))

        def launch(some: list[int]) -> list[torch.Tensor]:
            texts, hidden, line = [], [], {}
            seen: list[tuple[int, int]] = []
            for row, (prompt, (length, begun)) in enumerate(jobs[r] for r in some):
                ids, (place,) = encoded[prompt], masks[prompt]
                blank = [self.mask_id] * (length - len(begun))
                texts.append([*ids[:place], *begun, *blank, *ids[place + 1 :]])
                hidden.append(range(place + len(begun), place + length))
                for n in sorted({n for n, _ in wanted[length, begun]}):
                    line[row, n] = len(seen)
                    seen.append((row, place + n))
            of, places = map(list, zip(*seen, strict=True))
            scores = self.nats(self.at(texts, places, language, hidden, of)).double()
            pieces = [wanted[jobs[r][1]] for r in some]
            return [
                scores[[line[row, n] for n, _ in own], [piece for _, piece in own]]
                for row, own in enumerate(pieces)
            ]

        lengths = [len(encoded[i]) + length - 1 for i, (length, _) in jobs]
        done = self.batches.each(lengths, lengths, launch)
        scores = {}  # of each piece in each pass, a number for each prompt
        for s, (key, own) in enumerate(wanted.items()):
            columns = torch.stack(done[s :: len(wanted)], dim=1).cpu().numpy()
            scores[key] = dict(zip(own, columns, strict=True))
        whole = np.zeros((len(encoded), len(tails)))
        for column, tail in enumerate(tails):
            for at, piece in enumerate(tail):
                whole[:, column] += scores[len(tail), () if together else tail[:at]][at, piece]
        return whole

    def pseudo_logprobs(
        self,
        sentences: Iterable[str],
        method: Method = "original",
        *,
        language: str = "",
        prefixes: Iterable[str] | None = None,
    ) -> Iterator[Score]:
        """Score whole sentences, in their order, or what stands behind the ``prefixes`` of each.

        A prefix is seen, and its tokens are neither masked nor counted; spaces at its end belong to
        the sentence. The prefix of a text must have the tokens that it has alone.

        ``original``: the sum over tokens of the log-probability of each, it alone masked
        (Salazar et al. 2020, eq. 1). ``within_word_l2r``: the same with the pieces behind it
        masked that belong to its word (Kauf & Ivanova 2023, section 3). ``aul``: the
        log-probability of every token in the unmasked sentence; ``aula``: each weighted by the
        attention that it gets, averaged over layers, heads and tokens (Kaneko & Bollegala 2022,
        eqs. 3 and 4, whose mean over tokens is the sum given here over ``tokens``).

        A sentence that is too long or empty, a method that is unknown or that the model cannot
        answer, or an answer that is not finite is a UserError.
        """
        if method not in METHODS:
            raise UserError(f"{method!r}: no such method; there are {', '.join(METHODS)}")
        if self.kind in DECODERS or (self.kind == "xlnet" and method in METHODS[2:]):
            raise UserError(
                f"models.{self.name}: {self.architecture} has no pseudo-log-likelihood "
                f"({method}); leave it out of this probe"
            )
        before = repeat("") if prefixes is None else prefixes
        pairs = zip(before, sentences, strict=prefixes is not None)
        for block in blocks(pairs):
            with self._eager() if method == "aula" else nullcontext():  # not while yielding
                scores = self._score(block, method, language)
            yield from scores

    @contextmanager
    def _eager(self) -> Iterator[None]:
        """Use eager attention: the fast kernels do not return attention weights."""
        before = self.model.config._attn_implementation  # noqa: SLF001 no public way to read it
        self.model.set_attn_implementation("eager")
        try:
            yield
        finally:
            self.model.set_attn_implementation(before)

    def _score(self, pairs: list[tuple[str, str]], method: Method, language: str) -> list[Score]:
        """Score one block of sentences behind their prefixes."""
        given = [(self.context + prefix).rstrip() for prefix, _ in pairs]
        sentences = [self.context + prefix + sentence for prefix, sentence in pairs]
        encoded = self.encode(sentences, language)
        distinct = sorted(set(given))
        every = self.tokens.encode(distinct, language, special=False)
        heads = dict(zip(distinct, every, strict=True))
        counted: list[list[int]] = []
        for prefix, text, ids in zip(given, sentences, encoded, strict=True):
            own = self.tokens.counted(ids)
            if head := heads[prefix]:
                self.tokens.after(prefix, text, [ids[i] for i in own], head)
            counted.append(own[len(head) :])
            if not counted[-1]:
                raise UserError(f"models.{self.name}: nothing to score in {text!r}")
        if method in METHODS[2:]:
            sums = self._unmasked(encoded, counted, language, weighted=method == "aula")
        else:
            words = None
            if method == "within_word_l2r":
                both = zip(sentences, encoded, strict=True)
                words = [self.tokens.words(text, ids, language) for text, ids in both]
            sums = self._masked_copies(encoded, counted, words, language)
        inner = [[ids[i] for i in own] for ids, own in zip(encoded, counted, strict=True)]
        return self.scores(sentences, sums[:, 0], inner, sums[:, 1])

    def _masked_copies(
        self,
        encoded: list[list[int]],
        counted: list[list[int]],
        words: list[list[int | None]] | None,
        language: str,
    ) -> NDArray[np.float64]:
        """Return sums (sentences, 2) over copies of each sentence, one token masked in each.

        They are of what :meth:`chosen` returns.

        With ``words``, the pieces behind it are masked that have its word's number. The last piece
        of a word is masked alone in any case: what one method has scored, the other takes.
        """
        copies: list[Copy] = []
        for i, own in enumerate(counted):
            for place in own:
                behind = (q for q in own if words and q > place and words[i][q] == words[i][place])
                copies.append((tuple(encoded[i]), (place, *behind), language))
        new = [copy for copy in dict.fromkeys(copies) if copy not in self.scored]

        def launch(rows: list[int]) -> torch.Tensor:
            ids = torch.tensor([new[r][0] for r in rows])
            hidden = [new[r][1] for r in rows]
            places = torch.tensor([first for first, *_ in hidden])
            true = ids.gather(1, places[:, None]).squeeze(1)
            where = [(n, q) for n, masked in enumerate(hidden) for q in masked]
            ids[tuple(torch.tensor(where).t())] = self.mask_id
            chosen = self.chosen(self.at(ids, places, language, hidden), self.batches.move(true))
            return torch.view_as_complex(chosen)  # two numbers as one: small arrays are slow

        lengths = [len(ids) for ids, *_ in new]
        found = self.batches.each(lengths, lengths, launch)
        known = self.scored | dict(zip(new, found, strict=True))
        self.scored = {copy: known[copy] for copy in copies}  # no more than a block's
        starts = np.cumsum([0, *(len(own) for own in counted[:-1])])
        every = np.array([known[copy] for copy in copies])
        return np.stack([np.add.reduceat(part, starts) for part in (every.real, every.imag)], 1)

    def _unmasked(
        self, encoded: list[list[int]], counted: list[list[int]], language: str, *, weighted: bool
    ) -> NDArray[np.float64]:
        """Return the same sums (sentences, 2) over all tokens of the unmasked sentences."""

        def launch(rows: list[int]) -> torch.Tensor:
            ids = self.batches.move([encoded[i] for i in rows])
            logits, attention = self.all(ids, language, attention=weighted)
            values, missed = self.chosen(logits, ids).unbind(2)
            if attention is not None:
                values = values * attention.double()
            own = torch.zeros_like(values)
            for n, i in enumerate(rows):
                own[n, counted[i]] = 1
            return torch.stack([(values * own).sum(1), (missed * own).sum(1)], dim=1)

        lengths = [len(ids) for ids in encoded]
        # eager attention differs in its last digits with the position of a text in its batch
        alone = weighted and self.batches.where.type == "cpu"
        shapes = range(len(encoded)) if alone else lengths
        return np.array(self.batches.each(shapes, lengths, launch))


def _one_dtype(xlnet: Any, dtype: torch.dtype) -> None:
    """Bring all of XLNet to its dtype: transformers leaves attention and positions in float32."""
    xlnet.to(dtype)
    plain = xlnet.transformer.relative_positional_encoding

    def cast(*given: Any, **options: Any) -> torch.Tensor:
        positions: torch.Tensor = plain(*given, **options).to(dtype)
        return positions

    xlnet.transformer.relative_positional_encoding = cast
