"""Checks of a model by its small files, before a weight is read or anything is built.

``config.json`` and the names of the files tell the kind of a model and what it lacks. No weights
are opened and no framework is imported.
"""

from __future__ import annotations

import json
import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from plumbline.builders.core.errors import UserError, wrong_hub

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path

CONFIG, ADAPTER = "config.json", "adapter_config.json"
TOKENIZERS = {"tokenizer.json", "tokenizer.model", "vocab.txt", "vocab.json", "spiece.model"}
TOKENIZERS |= {"sentencepiece.bpe.model", "source.spm", "bpe.codes"}
# Canine and Perceiver read characters and bytes, ByT5 too: they have no vocabulary to save
UNWRITTEN = ("byt5", "canine", "perceiver")
KINDS = {  # by the end of the class that a config names; the first that fits
    r"(XLNet|XLM|Flaubert)(LMHeadModel|WithLMHeadModel)": "masked",
    r"(Bart|MBart|Mvp)ForConditionalGeneration": "masked",  # the decoder reads one mask
    r"(Bart|MBart)Model": "masked",  # as published: the head is the embeddings
    r"\w*ForMaskedLM": "masked",
    r"(Bert|Albert|MegatronBert|MobileBert|BigBird|Ernie|FNet|Nezha)ForPreTraining": "masked",
    r"\w*ForSequenceClassification": "classifier",
    r"\w*ForConditionalGeneration": "seq2seq",
    r"\w*(ForCausalLM|LMHeadModel)": "causal",
}


def kind_of(config: dict[str, Any]) -> str | None:
    """Return the kind of a model by its config, or None where no head is known.

    Examples
    --------
    >>> kind_of({"architectures": ["BertForMaskedLM"]})
    'masked'
    >>> kind_of({"architectures": ["BertModel"]}) is None
    True
    """
    names = map(str, config.get("architectures") or ())
    matches = (kind for n in names for pattern, kind in KINDS.items() if re.fullmatch(pattern, n))
    return next(matches, None)


def problem(files: Collection[str], config: dict[str, Any] | None, kind: str = "") -> str:
    """Return the problem of a model as the end of a sentence, "" where there is none.

    ``files``: names of its files.
    ``config``: its ``config.json``, if it was read.
    ``kind``: the kind that params state, if they do.
    """
    if ADAPTER in files:
        return f"it is an adapter ({ADAPTER}); merge it into its base model, and name that folder"
    if CONFIG not in files or config is None:
        return f"it has no {CONFIG}; save the model there with model.save_pretrained"
    known = kind_of(config)
    named = ", ".join(map(str, config.get("architectures") or ()))
    if known is None and (named or not kind):
        return (
            f"its head ({named or 'no architecture'}) is not supported; take a checkpoint with a "
            "pretrained language model's or a text classifier's head"
        )
    if kind and known and kind != known and (kind, known) != ("seq2seq", "masked"):
        return f"{named} is of kind {known}; write `kind: {known}`"
    missing = []
    if config.get("model_type") not in UNWRITTEN and not TOKENIZERS & set(files):
        missing.append("tokenizer")
    if not any(name.endswith((".safetensors", ".bin")) for name in files):
        missing.append("weights")
    return f"it has no {' and no '.join(missing)}; save both there" if missing else ""


@contextmanager
def admitted(name: str, where: str = "") -> Iterator[None]:
    """Raise a UserError where the Hub refuses a model: gated, private, or with a wrong token.

    ``name``: its id on the Hub.
    ``where``: beginning of the message, such as ``models.NAME: ``.
    """
    from huggingface_hub import constants, get_token
    from huggingface_hub.errors import HfHubHTTPError

    if wrong := wrong_hub(get_token()):
        raise UserError(f"{where}{wrong}")
    try:
        yield
    except (OSError, ValueError, RuntimeError) as error:
        cause: BaseException | None = error
        while cause is not None and not isinstance(cause, HfHubHTTPError):
            cause = cause.__cause__
        if cause is None or cause.response.status_code not in (401, 403, 404):
            raise
        if cause.response.headers.get("X-Error-Code") in ("RevisionNotFound", "EntryNotFound"):
            raise
        raise UserError(
            f"{where}{name} is gated, private or not on the Hub: request access on "
            f"{constants.ENDPOINT}/{name}, and set HF_TOKEN to a token of that account"
        ) from error


def look(folder: Path, name: str, kind: str = "") -> str:
    """Return the kind of the model in a folder.

    A UserError if there is no such folder, or it is not a model that a probe can run on.
    """
    if not folder.is_dir():
        raise UserError(f"{name}: no such folder")
    files = {path.name for path in folder.iterdir()}
    config = None
    if CONFIG in files:
        try:
            config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
        except ValueError as error:
            raise UserError(f"{folder / CONFIG}: not JSON ({error})") from error
    if wrong := problem(files, config, kind):
        raise UserError(f"{name}: {wrong}")
    return kind or str(kind_of(config or {}))
