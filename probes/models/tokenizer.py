"""Tokenizers: encoding without truncation, candidate words, masks and length limits.

A candidate is the token of a word that follows another word: with the leading space in byte-level
and SentencePiece vocabularies, without ``##`` in WordPiece, and without ``@@`` or with ``</w>`` in
older BPE. The first sub-token of a longer word, or a token without its marker, represents another
word to the model and is not a candidate.
"""

from __future__ import annotations

import re
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import regex

from plumbline.builders.core.errors import UserError
from plumbline.probes.models.scorer import Pieces

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

HEAD = "a"  # the word before a candidate
UNSPACED = ("zh", "ja", "th", "km", "lo", "my")  # written without spaces, so tokens have no marker
LETTER = regex.compile(
    r"(?=\p{L})[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Khmer}\p{Lao}\p{Mymr}]"
)
GAP = "<extra_id_0>"  # T5's first sentinel, used as a mask
BEFORE = ("▁", "Ġ")  # prefix of a word's first token: SentencePiece, byte-level
INNER = "##"  # prefix of a word's later tokens
OPEN, END = "@@", "</w>"  # suffix of a word's tokens but the last, suffix of the last


class Tokens:
    """One model's tokenizer."""

    def __init__(self, where: Path, name: str) -> None:
        from transformers import AutoTokenizer
        from transformers.models.bertweet.tokenization_bertweet import BertweetTokenizer
        from transformers.models.xlm.tokenization_xlm import XLMTokenizer

        try:
            self.tokenizer: Any = AutoTokenizer.from_pretrained(where, trust_remote_code=False)
        except Exception as error:  # for invalid files, tokenizers raises Exception itself
            reason = " ".join(f"{type(error).__name__}: {error}".split())[:300]
            raise UserError(
                f"models.{name}: its tokenizer could not be loaded from {where} ({reason}); check "
                "id and revision in params.yaml"
            ) from error
        files = {*self.tokenizer.vocab_files_names.values()}  # empty for models that read bytes
        others = ("tokenizer.json", "tokenizer.model")
        if files and not any(Path(where, file).is_file() for file in (*files, *others)):
            raise UserError(  # otherwise transformers 5 creates a tokenizer without words
                f"models.{name}: {where} has no tokenizer ({' or '.join(sorted(files))}); save "
                "it there with tokenizer.save_pretrained"
            )
        if isinstance(self.tokenizer, BertweetTokenizer):
            self.tokenizer.normalization = True  # normalise user names and links as in training
            if any(len(pair) != 2 for pair in self.tokenizer.bpe_ranks):
                raise UserError(  # transformers 5.23 writes such files, which are misread
                    f"models.{name}: {where}/bpe.codes lacks merge counts, so words "
                    "would be split into letters; replace it with the original model's file"
                )
        self.name = name
        self.moses = isinstance(self.tokenizer, XLMTokenizer)
        self.mask_id: int | None = self.tokenizer.mask_token_id
        self.unknown_id: int | None = self.tokenizer.unk_token_id
        outside = {*self.tokenizer.all_special_tokens} - {"", self.tokenizer.mask_token, GAP}
        self.outside = re.compile("|".join(map(re.escape, sorted(outside))) or r"(?!)")
        if self.mask_id is not None and self.tokenizer.is_fast:
            self._close_up()
        self._known: dict[tuple[tuple[str, ...], str], dict[str, tuple[int, ...]]] = {}
        self._pieces: dict[str, Pieces] = {}

    def __len__(self) -> int:
        return len(self.tokenizer)

    def _close_up(self) -> None:
        """Make the mask include the space before it, as a word does.

        transformers 5 omits this for RoBERTa and BART if the folder has no tokenizer.json.
        """
        from tokenizers import AddedToken

        mask = str(self.tokenizer.mask_token)
        head, pair = self.encode([HEAD, f"{HEAD} {mask}"], special=False)
        if pair != [*head, self.mask_id]:
            token = AddedToken(mask, lstrip=True, special=True)
            self.tokenizer.add_tokens(token, special_tokens=True)

    def encode(
        self, texts: Sequence[str], language: str = "", *, special: bool = True
    ) -> list[list[int]]:
        """Return the token ids of each text, with or without the model's special tokens.

        Raises UserError if the model was not trained on the language, or if a text contains a
        special token other than a mask.
        """
        if not texts:
            return []
        self.refuse_special(texts)
        self._set_language(language)
        ids: list[list[int]] = self.tokenizer(
            list(texts),
            add_special_tokens=special,
            return_attention_mask=False,
            return_token_type_ids=False,
            verbose=False,  # no warning, since `fits` raises an error
        )["input_ids"]
        return ids

    def refuse_special(self, texts: Iterable[str], *, masks: bool = True) -> None:
        """Raise UserError if a text contains a special token, or a mask unless ``masks``."""
        for text in texts:
            match = self.outside.search(text)
            mask = "" if masks else self.tokenizer.mask_token or ""
            if token := match[0] if match else mask * (mask in text):
                raise UserError(
                    f"models.{self.name}: {text!r} contains the special token {token!r}, which the "
                    "model does not read as text; remove the token or the row"
                )

    def _set_language(self, language: str) -> None:
        """Set the language of the next texts if the tokenizer distinguishes languages."""
        if self.moses:
            languages = self.tokenizer.lang2id
            if language and languages and language not in languages:
                raise self.foreign(language, languages)
            # transformers 5 ignores `lang=` and would read every text as English
            split = partial(type(self.tokenizer)._tokenize, self.tokenizer)  # noqa: SLF001
            self.tokenizer._tokenize = partial(split, lang=language or "en")  # noqa: SLF001
        elif language and hasattr(self.tokenizer, "src_lang"):
            self.tokenizer.src_lang = self.code(language)

    def require_language(self, language: str) -> None:
        """Raise UserError if a required language is missing, as the previous one would be used."""
        if not language and hasattr(self.tokenizer, "src_lang"):
            raise UserError(f"models.{self.name}: the language of the texts is missing")

    def foreign(self, language: str, languages: Iterable[str]) -> UserError:
        """Return the error for an unsupported language."""
        return UserError(
            f"models.{self.name}: does not support {language!r}, only "
            f"{', '.join(sorted(languages))}; set languages"
        )

    def code(self, language: str) -> str:
        """Return the tokenizer's code for a language, such as ``en_XX`` for ``en``.

        Raises UserError if the model has no code or several codes for the language.
        """
        tokens = [token for token in self.tokenizer.get_added_vocab() if "_" in token]
        codes = [token for token in tokens if token.split("_")[0] == language]
        if len(codes) != 1:
            raise self.foreign(language, tokens)
        return str(codes[0])

    def counted(self, text: str, ids: Sequence[int]) -> list[int]:
        """Return the positions of a text's tokens, excluding those that the tokenizer adds.

        Raises UserError if the text contains a mask, which would not be counted.
        """
        self.refuse_special([text], masks=False)
        special = self.tokenizer.get_special_tokens_mask(list(ids), already_has_special_tokens=True)
        unknown = self.unknown_id  # special, but represents a part of the text
        return [i for i, no in enumerate(special) if not no or ids[i] == unknown]

    @cached_property
    def marker(self) -> str:
        """The vocabulary's most frequent marker of words, or "" if it has none."""
        tokens = self.tokenizer.get_vocab()
        counts = {m: sum(token.startswith(m) for token in tokens) for m in (*BEFORE, INNER)}
        counts |= {m: sum(token.endswith(m) for token in tokens) for m in (OPEN, END)}
        return max(counts, key=counts.__getitem__) if any(counts.values()) else ""

    def words(self, text: str, ids: Sequence[int], language: str = "") -> list[int | None]:
        """Return the index of each token's word; None for special tokens.

        A word begins where the vocabulary's marker says so, and where the tokenizer splits texts
        before it looks up tokens, such as at punctuation. If only spaces are marked, a token that
        begins with a letter of a script without spaces also begins a word.
        """
        self._set_language(language)
        numbers: list[int | None] = [None] * len(ids)
        if not self.tokenizer.is_fast:
            pieces = self.tokenizer.tokenize(text)  # ids of unknown tokens do not mark words
            known = self.tokenizer.convert_tokens_to_ids(pieces)
            start = next(i for i in range(len(ids)) if list(ids[i : i + len(known)]) == known)
            begins = [self._begins(piece, pieces[i - 1]) for i, piece in enumerate(pieces)]
            numbers[start : start + len(pieces)] = (np.cumsum(begins) - begins[0]).tolist()
            return numbers
        encoded = self.tokenizer(text)
        assert encoded["input_ids"] == list(ids)
        parts, word, previous, end = encoded.word_ids(), -1, "", 0
        pieces, spans = encoded.tokens(), encoded[0].offsets
        for i in (i for i, part in enumerate(parts) if part is not None):
            piece, (left, right) = pieces[i], spans[i]
            own, before = text[left:right], text[max(left - 1, 0)]
            new = word < 0 or parts[i] != parts[i - 1] or own[:1].isspace()  # such as a line break
            new |= ids[i] == self.unknown_id and before.isspace() and previous != self.marker
            if self.marker and left >= end:  # else a later byte of the same character
                new |= self._begins(piece, previous, own)
            word, previous, end = word + new, piece, right
            numbers[i] = word
        return numbers

    def _begins(self, piece: str, previous: str, text: str = "") -> bool:
        """Return True if the vocabulary's marker shows that a token begins a word."""
        if self.marker in BEFORE:
            unspaced = LETTER.match(text or piece) and previous != self.marker
            return piece.startswith(self.marker) or bool(unspaced)
        if self.marker == INNER:
            return not piece.startswith(INNER)
        return previous.endswith(END) if self.marker == END else not previous.endswith(OPEN)

    def candidates(self, words: Sequence[str], language: str = "") -> dict[str, tuple[int, ...]]:
        """Return the tokens (one or several) of each word that the tokenizer can encode.

        Words are omitted if the tokenizer changes them (as an uncased one changes capitals), if
        they contain an unknown symbol, or if an earlier word has the same tokens.
        """
        key = (tuple(words), language)
        if key in self._known:
            return self._known[key]
        special = set(self.tokenizer.all_special_ids)  # including the unknown token
        words = [word for word in words if not self.outside.search(word)]
        first: dict[tuple[int, ...], str] = {}
        texts = [HEAD, *(f"{HEAD}{self.gap(language)}{word}" for word in words)]
        head, *encoded = self.encode(texts, language, special=False)
        for word, ids in zip(words, encoded, strict=True):
            tail = tuple(ids[len(head) :])
            usable = ids[: len(head)] == head and tail and word == word.strip()
            if not usable or tail in first or special & set(tail):
                continue
            if _closed(self.tokenizer.decode(list(tail))) == _closed(word):
                first[tail] = word
        self._known = {key: {word: tail for tail, word in first.items()}}
        return self._known[key]

    def gap(self, language: str = "") -> str:
        """Return the separator of two words: a space, or "" in languages without spaces.

        A space is also returned if tokens have no space marker, since it then has no effect.
        """
        return "" if language in UNSPACED and self.marker in BEFORE else " "

    def spelled(self, words: Sequence[str], language: str = "") -> dict[str, int]:
        """Return the number of tokens of each word that the tokenizer can encode."""
        return {word: len(tail) for word, tail in self.candidates(words, language).items()}

    def pieces(self, language: str = "") -> Pieces:
        """Return the tokens of the vocabulary, in the order of their ids."""
        if language not in self._pieces:
            ids = range(len(self))
            words = [text.strip() for text in self.tokenizer.batch_decode([[i] for i in ids])]
            # the token represents the word only if the word has this token after another word
            alone = self.candidates(list(dict.fromkeys(filter(None, words))), language)
            first = {word: tail[0] for word, tail in alone.items() if len(tail) == 1}
            vocabulary = self.tokenizer.get_vocab()
            self._pieces[language] = Pieces(
                self.tokenizer.convert_ids_to_tokens(list(ids)),
                words,
                np.array([first.get(word) == i for i, word in enumerate(words)]),
                np.array([vocabulary.get(word, -1) for word in words], np.int32),
                -1 if self.unknown_id is None else self.unknown_id,
            )
        return self._pieces[language]

    def fits(self, text: str, length: int, longest: int) -> None:
        """Raise UserError if a text is too long for the model.

        ``length``: number of tokens of the text, including tokens to be generated.
        """
        if length > longest:
            raise UserError(
                f"models.{self.name}: the prompt {text!r} has {length} tokens, the model takes "
                f"{longest}; remove the row, since texts are never truncated"
            )

    def opening(self) -> list[int]:
        """Return the special tokens that the tokenizer puts before a text."""
        (encoded,), (bare,) = self.encode([HEAD]), self.encode([HEAD], special=False)
        starts = (n for n in range(len(encoded)) if encoded[n : n + len(bare)] == bare)
        return encoded[: next(starts, 0)]

    def unknown(self, ids: Sequence[int]) -> int:
        """Return the number of unknown tokens among some ids."""
        return 0 if self.unknown_id is None else list(ids).count(self.unknown_id)

    def after(self, prefix: str, text: str, ids: Sequence[int], head: Sequence[int]) -> int:
        """Return the number of tokens of a text (``ids``) that belong to its prefix (``head``).

        Raises UserError if the tokens of the prefix are not the first tokens of the text. Without a
        token boundary after the prefix, the score would belong to another text.
        """
        if list(ids[: len(head)]) != list(head):
            raise UserError(
                f"models.{self.name}: {prefix!r} has different tokens alone and at the beginning "
                f"of {text!r}; put the space at the beginning of the continuation"
            )
        return len(head)


def _closed(text: str) -> str:
    """Return a text without spaces; some decoders add them at hyphens and Chinese characters."""
    return "".join(text.split())


def longest(tokenizer: Any, model: Any) -> int:
    """Return the maximum input length of a model, in tokens."""
    padding = (
        getattr(part, "padding_idx", None)
        for path, part in model.named_modules()
        if path.endswith("position_embeddings")
    )
    # in RoBERTa and similar models, the first positions are reserved for padding
    offset = max((index + 1 for index in padding if index is not None), default=0)
    positions = getattr(model.config, "max_position_embeddings", None) or 0
    limit = positions - offset if positions > 0 else 1 << 30  # -1 in XLNet means no limit
    return int(min(tokenizer.model_max_length, limit))
