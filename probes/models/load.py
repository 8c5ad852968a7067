"""Loading a model whose files are pinned."""

from __future__ import annotations

import json
from importlib import import_module
from typing import TYPE_CHECKING, Any

from plumbline.builders.core.errors import UserError
from plumbline.probes.models.files import changed, download, files_of, refresh
from plumbline.probes.models.params import MANIFEST, model, pointer

if TYPE_CHECKING:
    from pathlib import Path

    from plumbline.probes.models.params import Model
    from plumbline.probes.models.scorer import Scorer

ADAPTERS = {  # classes by kind, each in the module of that name
    "masked": "Masked",
    "causal": "Causal",
    "seq2seq": "Seq2Seq",
    "classifier": "Classifier",
}


def load(name: str, *, exact: bool = False) -> Scorer:
    """Load a model, ``exact``: in double precision, whatever its params say.

    A UserError if it is not pinned yet, its files are not the pinned ones, or it cannot be loaded.
    """
    params = model(name)
    if params.endpoint:
        from plumbline.probes.models.remote import Remote

        if params.context:
            raise UserError(f"models.{name}.context: not for remote models; take the line out")
        return Remote(name, params.endpoint, _facts(name)["revision"])
    where, params, facts = pinned(name)
    dtype = "float64" if exact else params.dtype
    options = {"dtype": dtype, "context": params.context, "pickles": params.pickles}
    scorer: Scorer = adapter(params.kind)(where, name, facts["revision"], **options)
    return scorer


def pinned(name: str) -> tuple[Path, Model, dict[str, Any]]:
    """Return the folder of a model's files, its params, and what was pinned of it.

    A UserError if it is not pinned yet, or a file is not the pinned one.
    """
    params, facts = model(name), _facts(name)
    where = download(name, params)
    if path := changed(where, facts["files"]):
        raise UserError(
            f"{path}: not the file that {pointer(name)} names; make that anew with "
            f"`{refresh(name)}`"
        )
    there = {path.name for path in files_of(where, params)}
    if new := sorted(there - {MANIFEST, *facts["files"]}):
        raise UserError(
            f"{where / new[0]}: not in {pointer(name)}, and would be read; make that anew with "
            f"`{refresh(name)}`, or remove the file"
        )
    return where, params, facts


def _facts(name: str) -> dict[str, Any]:
    path = pointer(name)
    if not path.is_file():
        raise UserError(
            f"{path}: the model is not there; run `make repro STAGE=weights@{name}` first"
        )
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def adapter(kind: str) -> Any:
    """Return the class for a kind of model; only its own module is loaded."""
    return getattr(import_module(f"plumbline.probes.models.{kind}"), ADAPTERS[kind])
