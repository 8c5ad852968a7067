"""What a model is, from its small files: known before a weight is read or anything is built.

``config.json`` and the names of the files tell the kind of a model, what it lacks, and which
studies it can be put to. No weights are opened and no framework is imported.
"""

from __future__ import annotations

import json
import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.masking import wrong_hub

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
    r"\w*ForMaskedLM": "masked",
    r"(Bert|Albert|MegatronBert|MobileBert|BigBird|Ernie|FNet|Nezha)ForPreTraining": "masked",
    r"\w*ForSequenceClassification": "classifier",
    r"\w*ForConditionalGeneration": "seq2seq",
    r"\w*(ForCausalLM|LMHeadModel)": "causal",
}
NEEDS = {  # what a study needs instead, where a model's head does not fit
    "ForSequenceClassification": "its head classifies texts: it fits the study nationality alone",
    "ForTokenClassification": "its head labels tokens; take the checkpoint before fine-tuning",
    "ForQuestionAnswering": "its head answers questions; take the checkpoint before fine-tuning",
    "ForMultipleChoice": "its head chooses answers; take the checkpoint before fine-tuning",
    "ElectraForPreTraining": "a discriminator; take the generator of the same model",
    "Model": "it was saved without a head, and a class such as AutoModelForMaskedLM would add a "
    "random one; take the checkpoint with its pretrained head",
}


def kind_of(config: dict[str, Any]) -> str | None:
    """Return the kind of a model by its config, or None where no head is known.

    Examples
    --------
    >>> kind_of({"architectures": ["BertForMaskedLM"]})
    'masked'
    >>> kind_of({"architectures": ["GPT2LMHeadModel"]})
    'causal'
    >>> kind_of({"architectures": ["BertModel"]}) is None
    True
    """
    for name in config.get("architectures") or ():
        if name in ("BartModel", "MBartModel"):  # as published: the head is the embeddings
            return "masked"
        for pattern, kind in KINDS.items():
            if re.fullmatch(pattern, str(name)):
                return kind
    return None


def problem(files: Collection[str], config: dict[str, Any] | None, kind: str = "") -> str:
    """Return what is wrong with a model, as the end of a sentence; "" where nothing is.

    ``files``: names of its files.
    ``config``: its ``config.json``, if it was read.
    ``kind``: the kind that params state, if they do.
    """
    if ADAPTER in files:
        return (
            f"it is an adapter ({ADAPTER}), not a model; merge it into its base model "
            "(peft: model.merge_and_unload(), then save_pretrained), and name that folder"
        )
    if CONFIG not in files or config is None:
        return f"it has no {CONFIG}; save the model there with model.save_pretrained"
    if said := _head(config, kind):
        return said
    if config.get("model_type") not in UNWRITTEN and not TOKENIZERS & set(files):
        return "it has no tokenizer; save it there with tokenizer.save_pretrained"
    if not any(name.endswith((".safetensors", ".bin")) for name in files):
        return "it has no weights, no *.safetensors; save them there with model.save_pretrained"
    return ""


def _head(config: dict[str, Any], kind: str) -> str:
    """Return why a model with such a head cannot be used as this kind, or ""."""
    known = kind_of(config)
    named = ", ".join(map(str, config.get("architectures") or ()))
    if known is None and not named:
        return "" if kind else f"its {CONFIG} names no architecture; say which with `kind`"
    if known is None:
        said = next((need for end, need in NEEDS.items() if named.endswith(end)), "")
        return f"{named} is not supported{': ' if said else ''}{said}"
    if kind and kind != known and (kind, known) != ("seq2seq", "masked"):
        return f"{named} is of kind {known}, and `kind` says {kind}; write `kind: {known}`"
    return ""


@contextmanager
def admitted(name: str, where: str = "") -> Iterator[None]:
    """Say what to do where the Hub keeps a model to itself: gated, private, or a token it refuses.

    A UserError if it does; other errors of the Hub's client go on as they are.

    ``name``: its id on the Hub.
    ``where``: what the message begins with, such as ``models.NAME: ``.
    """
    from huggingface_hub import constants, get_token
    from huggingface_hub.errors import GatedRepoError, HfHubHTTPError, RepositoryNotFoundError

    if said := wrong_hub(get_token()):
        raise UserError(f"{where}{said}")
    try:
        yield
    except (OSError, ValueError, RuntimeError) as error:
        cause: BaseException | None = error
        while cause is not None and not isinstance(cause, HfHubHTTPError):
            cause = cause.__cause__
        if cause is None:
            raise
        page, token = f"{constants.ENDPOINT}/{name}", get_token()
        log_in = "set HF_TOKEN to a token of that account, or run `hf auth login`"
        if isinstance(cause, GatedRepoError) and not token:
            said = f"is gated: request access on {page}, then {log_in}"
        elif isinstance(cause, GatedRepoError):
            said = (
                f"is gated, and the account of your token has no access: request it on {page}, and "
                "let a fine-grained token read gated repositories"
            )
        elif isinstance(cause, RepositoryNotFoundError):
            whose = "its owner has to let the account of your token in" if token else log_in
            said = f"is not on the Hub, or it is private: check the id; if it is private, {whose}"
        elif cause.response.status_code == 401 and token:
            said = "cannot be read: the Hub refuses your token; set HF_TOKEN to a valid one"
        else:
            raise
        raise UserError(f"{where}{name} {said}") from error


def look(folder: Path, name: str, kind: str = "") -> str:
    """Return the kind of the model in a folder.

    A UserError if there is no such folder, or it is not a model that can be asked.
    """
    if not folder.is_dir():
        raise UserError(f"{name}: no such folder")
    files = {path.name for path in folder.iterdir()}
    config = None
    if CONFIG in files:
        try:
            config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
        except ValueError as error:
            raise UserError(f"{folder / CONFIG}: not JSON ({error}); save it anew") from error
    if said := problem(files, config if isinstance(config, dict) else None, kind):
        raise UserError(f"{name}: {said}")
    assert isinstance(config, dict)
    return kind or str(kind_of(config))
