"""The forward passes of models with a mask: what stands at single places of texts."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForMaskedLM

from plumbline.builders.core.errors import UserError
from plumbline.probes.models.forward import Representing, enough
from plumbline.probes.models.kernels.head_only import gated, narrow

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path


class MaskedForward(Representing):
    """One model with a mask, whatever its architecture: the forward passes."""

    def __init__(self, where: Path, name: str, revision: str, **options: Any) -> None:
        super().__init__(where, name, revision, **options)
        self.tokenizer = self.tokens.tokenizer
        self.mask_id = int(self.tokens.mask_id or 0)
        self.mask_token = str(self.tokenizer.mask_token)
        if self.kind != "xlnet":
            self.gate = gated(self.model, self.model.base_model_prefix)
            self.narrow = narrow(self.model, self.gate, place=1)

    def load(self, where: Path, *, pickles: bool) -> Any:
        """Return the model from a folder."""
        if self.tokens.mask_id is None:
            raise UserError(
                f"models.{self.name}: has no mask token, so it is not a masked model; check its "
                "kind"
            )
        try:
            self.kind: str = AutoConfig.from_pretrained(where, trust_remote_code=False).model_type
        except (OSError, ValueError) as error:
            said = " ".join(str(error).split())[:300]
            raise UserError(
                f"models.{self.name}: could not be loaded from {where} ({said}); check id and "
                "revision in params.yaml, and the network if it was not fetched yet"
            ) from error
        self.auto = AutoModelForCausalLM if self.kind == "xlnet" else AutoModelForMaskedLM
        model = super().load(where, pickles=pickles)
        if self.kind == "xlnet":
            _one_dtype(model, getattr(torch, self.dtype))
        return model

    def at(
        self,
        ids: torch.Tensor,
        places: torch.Tensor,
        language: str = "",
        hidden: Sequence[Sequence[int]] | None = None,
    ) -> torch.Tensor:
        """Return the logits (texts, vocabulary) at one place of each text.

        Parameters
        ----------
        ids
            Tokens (texts, length) with masks in them.
        places
            Where to look, (texts,).
        hidden
            The positions of each text that no other may attend to; only XLNet needs them.
        """
        texts, length = ids.shape
        looked = enough(self.fewest, texts).to(ids.device)
        if self.kind == "xlnet":
            blind = [hidden[i] for i in looked.tolist()] if hidden is not None else None
            return self._permuted(ids[looked], places[looked], blind)[:texts]
        ids = ids[enough(self.fewest, texts, length).to(ids.device)]
        with self.gate.at(looked, places[looked]):
            logits: torch.Tensor = self.model(input_ids=ids, **self._options(ids, language)).logits
        return logits[:texts].reshape(texts, -1)

    def all(
        self, ids: torch.Tensor, language: str = "", *, attention: bool = False
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Return logits (texts, length, vocabulary), and the attention (texts, length) tokens get.

        The attention is averaged over layers, heads and the tokens that pay it.
        """
        texts, length = ids.shape
        if not attention:  # else every text is a batch of its own
            ids = ids[enough(self.fewest, texts, length).to(ids.device)]
        options = self._options(ids, language)
        out = self.model(input_ids=ids, output_attentions=attention, **options)
        if not attention:
            return out.logits[:texts], None
        received = torch.stack([layer.mean(dim=(1, 2)) for layer in out.attentions]).mean(0)
        return out.logits[:texts], received[:texts]

    def states(self, ids: torch.Tensor, language: str = "") -> torch.Tensor:
        """Return the last hidden states (texts, length, width), those that a head would read.

        BART's and mBART's are the encoder's: their decoder's stand for the token to come.
        """
        texts, length = ids.shape
        ids = ids[enough(self.fewest, texts, length).to(ids.device)]
        if self.kind == "xlnet":
            kinds = torch.where(ids == self.tokenizer.cls_token_id, 2, 0)
            out = self.model.transformer(input_ids=ids, token_type_ids=kinds)
        else:
            out = self.gate.inner(input_ids=ids, **self._options(ids, language))
        last = out.get("encoder_last_hidden_state")
        found: torch.Tensor = out[0] if last is None else last
        return found[:texts]

    @contextmanager
    def attentive(self, wanted: bool) -> Iterator[None]:
        """Use eager attention where wanted: the fast kernels do not return attention weights."""
        before = self.model.config._attn_implementation  # noqa: SLF001 no public way to read it
        if wanted:
            self.model.set_attn_implementation("eager")
        try:
            yield
        finally:
            if wanted:
                self.model.set_attn_implementation(before)

    def _options(self, ids: torch.Tensor, language: str) -> dict[str, torch.Tensor]:
        """Return further inputs of an architecture: for XLM the language of every token."""
        config = self.model.config
        if hasattr(self.tokenizer, "src_lang") and not language:
            raise UserError(f"models.{self.name}: needs the language of its texts")
        if self.kind != "xlm" or not config.use_lang_emb or config.n_langs < 2:
            return {}
        numbers = getattr(config, "lang2id", None) or {}
        if language not in numbers:
            known = ", ".join(sorted(numbers))
            raise UserError(
                f"models.{self.name}: knows no language {language!r}, only {known}; set languages"
            )
        return {"langs": torch.full_like(ids, numbers[language])}

    def _permuted(
        self, ids: torch.Tensor, places: torch.Tensor, hidden: Sequence[Sequence[int]] | None
    ) -> torch.Tensor:
        """Ask XLNet: nobody sees the hidden places, one of which is the target of the query.

        Yang et al. 2019, section 2.3: the permutation mask hides a token from all others, the
        target mapping asks for one place's prediction from the query stream.
        """
        texts, length = ids.shape
        blind = torch.zeros(texts, length, length, device=ids.device, dtype=self.model.dtype)
        if hidden is None:
            blind[torch.arange(texts, device=ids.device), :, places] = 1
        else:
            for row, out_of_sight in enumerate(hidden):
                blind[row, :, list(out_of_sight)] = 1
        target = torch.zeros(texts, 1, length, device=ids.device, dtype=self.model.dtype)
        target[torch.arange(texts, device=ids.device), 0, places] = 1
        kinds = torch.where(ids == self.tokenizer.cls_token_id, 2, 0)
        logits: torch.Tensor = self.model(
            input_ids=ids, perm_mask=blind, target_mapping=target, token_type_ids=kinds
        ).logits
        return logits.reshape(texts, -1)


def _one_dtype(xlnet: Any, dtype: torch.dtype) -> None:
    """Bring all of XLNet to its dtype: transformers leaves attention and positions in float32."""
    xlnet.to(dtype)
    plain = xlnet.transformer.relative_positional_encoding

    def cast(*given: Any, **options: Any) -> torch.Tensor:
        positions: torch.Tensor = plain(*given, **options).to(dtype)
        return positions

    xlnet.transformer.relative_positional_encoding = cast
