"""Loading a model that was brought to the pipeline."""

from __future__ import annotations

import json
from importlib import import_module
from typing import TYPE_CHECKING, Any

from plumbline.builders.core.errors import Problem
from plumbline.builders.core.snapshot import digest
from plumbline.probes.models.files import download, refresh, wanted
from plumbline.probes.models.params import MANIFEST, model, pointer

if TYPE_CHECKING:
    from pathlib import Path

    from plumbline.probes.models.params import Model
    from plumbline.probes.models.scorer import Scorer

ADAPTERS = {  # module and class, by kind
    "masked": ("masked", "Masked"),
    "causal": ("causal", "Causal"),
    "seq2seq": ("seq2seq", "Seq2Seq"),
    "classifier": ("classifier", "Classifier"),
}


def load(name: str, *, exact: bool = False) -> Scorer:
    """Load a model that was brought.

    Parameters
    ----------
    exact
        In double precision, whatever its params say.

    Raises
    ------
    Problem
        If it was not brought yet, is not what was brought, or cannot be loaded.
    """
    params = model(name)
    if params.endpoint:
        from plumbline.probes.models.remote import Remote

        if params.context:
            raise Problem(f"models.{name}.context: not for remote models; take the line out")
        return Remote(name, params.endpoint, _facts(name)["revision"])
    where, params, facts = brought(name)
    dtype = "float64" if exact else params.dtype
    options = {"dtype": dtype, "context": params.context, "pickles": params.pickles}
    scorer: Scorer = adapter(params.kind)(where, name, facts["revision"], **options)
    return scorer


def brought(name: str) -> tuple[Path, Model, dict[str, Any]]:
    """Return the folder of a model's files, its params, and what was told when it was brought.

    Raises
    ------
    Problem
        If it was not brought yet, or a file is not what was brought.
    """
    params, facts = model(name), _facts(name)
    where = download(name, params)
    for file, sha256 in facts["files"].items():
        path = where / file
        if not path.is_file() or digest(path) != sha256:
            raise Problem(
                f"{path}: not the file that {pointer(name)} names; make that anew with "
                f"`{refresh(name)}`"
            )
    there = {path.name for pattern in wanted(params) for path in where.glob(pattern)}
    if new := sorted(there - {MANIFEST, *facts["files"]}):
        raise Problem(
            f"{where / new[0]}: not in {pointer(name)}, and would be read; make that anew with "
            f"`{refresh(name)}`, or remove the file"
        )
    return where, params, facts


def _facts(name: str) -> dict[str, Any]:
    path = pointer(name)
    if not path.is_file():
        raise Problem(
            f"{path}: the model is not there; run `make repro STAGE=weights@{name}` first"
        )
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def adapter(kind: str) -> Any:
    """Return the class for a kind of model; only its own module is loaded."""
    module, name = ADAPTERS[kind]
    return getattr(import_module(f"plumbline.probes.models.{module}"), name)
