"""Load models: check their configs, pin the hashes of their files, and select the adapter.

A model's kind and missing files are determined from ``config.json`` and the file names, before any
weights are read.
"""

from __future__ import annotations

import hashlib
import json
import re
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plumbline.builders.core import parquet
from plumbline.builders.core.errors import UserError, reading, wrong_hub
from plumbline.builders.core.snapshot import digest, write_bytes
from plumbline.probes.models.params import (
    MANIFEST,
    MODELS,
    POINTER,
    Model,
    model,
    pointer,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from plumbline.probes.models.scorer import Scorer

WANTED = ("*.json", "*.txt", "*.model", "*.codes", "*.jinja", "*.safetensors")
PICKLES = ("*.bin",)  # used only if the params allow it
ADAPTERS = {  # class for each kind of model; its module is named after the kind
    "masked": "Masked",
    "causal": "Causal",
    "seq2seq": "Seq2Seq",
    "classifier": "Classifier",
}


def pin(name: str) -> Path:
    """Write a model's id, revision and sha256 by file to ``data/models/NAME/model.json``.

    Raises UserError if the params are invalid, the Hub is unreachable, or the id or revision is
    unknown.
    """
    params = model(name)
    if pointer(name).name == MANIFEST:
        raise UserError(f"{pointer(name).parent}: this is a control model, which is already pinned")
    partial = parquet.fresh(MODELS / name)
    if params.endpoint:
        from plumbline.probes.models.remote import identify

        entry = identify(params.endpoint)
        facts = {"id": params.endpoint.model, "files": {}, **entry, "revision": revision(entry)}
    else:
        files = {path.name: digest(path) for path in _files(download(name, params), params)}
        facts = {"id": params.id, "revision": params.revision or revision(files), "files": files}
    text = json.dumps(facts, indent=1, sort_keys=True) + "\n"
    write_bytes(partial / POINTER, text.encode())
    parquet.finish(MODELS / name)
    return MODELS / name


def load(name: str, *, exact: bool = False) -> Scorer:
    """Load a model; if ``exact``, in double precision instead of the dtype in its params.

    Raises UserError if the model is not pinned, if its files differ from the pinned ones, or if it
    cannot be loaded.
    """
    params = model(name)
    if params.endpoint:
        from plumbline.probes.models.remote import Remote

        if params.context:
            raise UserError(f"models.{name}.context: unsupported for remote models; remove it")
        return Remote(name, params.endpoint, _facts(name)["revision"])
    where, params, facts = pinned(name)
    dtype = "float64" if exact else params.dtype
    options = {"dtype": dtype, "context": params.context, "pickles": params.pickles}
    scorer: Scorer = adapter(params.kind)(where, name, facts["revision"], **options)
    return scorer


def adapter(kind: str) -> Any:
    """Return the class for a kind of model, importing only the module of that class."""
    return getattr(import_module(f"plumbline.probes.models.{kind}"), ADAPTERS[kind])


def pinned(name: str) -> tuple[Path, Model, dict[str, Any]]:
    """Return the folder of a model's files, its params, and its pinned facts.

    Raises UserError if the model is not pinned, or if a file differs from the pinned one.
    """
    params, facts = model(name), _facts(name)
    where = download(name, params)
    wrong = changed(where, facts["files"])
    unknown = (p for p in _files(where, params) if p.name not in {MANIFEST, *facts["files"]})
    if path := wrong or next(unknown, None):
        world = pointer(name).name == MANIFEST
        again = (
            f"python -m worlds {name}" if world else f"make repro STAGE='--force weights@{name}'"
        )
        raise UserError(f"{path}: differs from {pointer(name)}; pin it again with `{again}`")
    return where, params, facts


def _facts(name: str) -> dict[str, Any]:
    path = pointer(name)
    if not path.is_file():
        raise UserError(f"{path}: missing; run `make repro STAGE=weights@{name}` first")
    facts: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return facts


def revision(files: dict[str, Any]) -> str:
    """Return a 40-digit hash, like that of a commit, computed from the sha256 of files."""
    return hashlib.sha256(json.dumps(files, sort_keys=True).encode()).hexdigest()[:40]


def _files(folder: Path, params: Model) -> list[Path]:
    patterns = WANTED + PICKLES * params.pickles
    return sorted({path for pattern in patterns for path in folder.glob(pattern)})


def changed(folder: Path, files: dict[str, str]) -> Path | None:
    """Return the first file that is missing or has a different sha256, or None."""
    paths = ((folder / name, sha256) for name, sha256 in files.items())
    return next((path for path, sha in paths if not path.is_file() or digest(path) != sha), None)


def download(name: str, params: Model) -> Path:
    """Return the folder of a model's files, downloaded to the Hub's cache if necessary.

    Raises UserError if the folder, id or revision does not exist, or the Hub is unreachable.
    """
    assert params.id is not None
    if params.revision is None:
        folder = Path(params.id)
        if not folder.is_dir():
            raise UserError(f"models.{name}.id: the folder {folder} does not exist")
        return folder
    from huggingface_hub import snapshot_download

    try:
        with admitted(params.id, f"models.{name}: "):
            patterns = [*WANTED, *PICKLES * params.pickles]
            where = snapshot_download(params.id, revision=params.revision, allow_patterns=patterns)
    except (OSError, ValueError) as error:  # base classes of all Hub errors
        reason = " ".join(str(error).split())[:200]
        raise UserError(
            f"models.{name}: {params.id} at {params.revision} could not be downloaded ({reason}); "
            "check id, revision and network"
        ) from error
    return Path(where)


CONFIG, ADAPTER = "config.json", "adapter_config.json"
TOKENIZERS = {"tokenizer.json", "tokenizer.model", "vocab.txt", "vocab.json", "spiece.model"}
TOKENIZERS |= {"sentencepiece.bpe.model", "source.spm", "bpe.codes"}
# Canine, Perceiver and ByT5 read characters or bytes and save no vocabulary
UNWRITTEN = ("byt5", "canine", "perceiver")
KINDS = {  # by class name in a config; the first matching pattern applies
    r"(XLNet|XLM|Flaubert)(LMHeadModel|WithLMHeadModel)": "masked",
    r"(Bart|MBart|Mvp)ForConditionalGeneration": "masked",  # the decoder reads one mask
    r"(Bart|MBart)Model": "masked",  # saved without the head, whose weights are the embeddings
    r"\w*ForMaskedLM": "masked",
    r"(Bert|Albert|MegatronBert|MobileBert|BigBird|Ernie|FNet|Nezha)ForPreTraining": "masked",
    r"\w*ForSequenceClassification": "classifier",
    r"\w*ForConditionalGeneration": "seq2seq",
    r"\w*(ForCausalLM|LMHeadModel)": "causal",
}


def kind_of(config: dict[str, Any]) -> str | None:
    """Return the kind of a model according to its config, or None if its head is unknown.

    Examples
    --------
    >>> kind_of({"architectures": ["BertForMaskedLM"]})
    'masked'
    >>> kind_of({"architectures": ["BertModel"]}) is None
    True
    """
    names = _architectures(config)
    matches = (kind for n in names for pattern, kind in KINDS.items() if re.fullmatch(pattern, n))
    return next(matches, None)


def _architectures(config: dict[str, Any]) -> list[str]:
    listed = config.get("architectures") or []
    return [str(name) for name in (listed if isinstance(listed, list) else [listed])]


def read_config(path: Path) -> dict[str, Any]:
    """Return the content of a ``config.json``; raise UserError if it is not a JSON object."""
    with reading(path, "save the model again with model.save_pretrained"):
        config = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(config, dict):
            raise ValueError("not a JSON object")  # noqa: TRY004 - an error in the file
        return config


def problem(files: Collection[str], config: dict[str, Any] | None, kind: str = "") -> str:
    """Return the problem with a model as a clause for a message, or "" if there is none.

    ``files``: names of its files.
    ``config``: the content of its ``config.json``, if it was read.
    ``kind``: its kind in the params, if given there.
    """
    if ADAPTER in files:
        return f"it is an adapter ({ADAPTER}); merge it into its base model, and name that folder"
    if CONFIG not in files or config is None:
        return f"it has no {CONFIG}; save the model there with model.save_pretrained"
    actual = kind_of(config)
    named = ", ".join(_architectures(config))
    if actual is None and (named or not kind):
        return (
            f"its head ({named or 'no architecture'}) is not supported; use a checkpoint with the "
            "head of a pretrained language model or of a text classifier"
        )
    if kind and actual and kind != actual and (kind, actual) != ("seq2seq", "masked"):
        return f"{named} is of kind {actual}; write `kind: {actual}`"
    missing = []
    if config.get("model_type") not in UNWRITTEN and not TOKENIZERS & set(files):
        missing.append("tokenizer")
    if not any(name.endswith((".safetensors", ".bin")) for name in files):
        missing.append("weights")
    return f"it has no {' and no '.join(missing)}; add the missing files" if missing else ""


@contextmanager
def admitted(name: str, where: str = "") -> Iterator[None]:
    """Raise UserError if a model on the Hub is gated or private, or if the token is invalid.

    ``name``: its id on the Hub.
    ``where``: prefix of the message, such as ``models.NAME: ``.
    """
    from huggingface_hub import constants, get_token
    from huggingface_hub.errors import EntryNotFoundError, HfHubHTTPError, RevisionNotFoundError

    absent = (EntryNotFoundError, RevisionNotFoundError)
    if wrong := wrong_hub(get_token()):
        raise UserError(f"{where}{wrong}")
    try:
        yield
    except OSError as error:
        cause = error if isinstance(error, HfHubHTTPError) else error.__cause__
        status = getattr(getattr(cause, "response", None), "status_code", 0)
        if isinstance(cause, absent) or status not in (401, 403, 404):
            raise
        raise UserError(
            f"{where}{name} is gated, private or not on the Hub: request access at "
            f"{constants.ENDPOINT}/{name}, and set HF_TOKEN to a token of the account with access"
        ) from error


def look(folder: Path, name: str, kind: str = "") -> str:
    """Return the kind of the model in a folder.

    Raises UserError if the folder does not exist or no probe supports the model.
    """
    if not folder.is_dir():
        raise UserError(f"{name}: the folder does not exist")
    files = {path.name for path in folder.iterdir()}
    config = read_config(folder / CONFIG) if CONFIG in files else None
    if wrong := problem(files, config, kind):
        raise UserError(f"{name}: {wrong}")
    return kind or str(kind_of(config or {}))
