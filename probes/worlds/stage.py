"""Bringing a model to the pipeline: training a world, or pinning what the Hub has.

``data/models/NAME`` holds the weights of a trained world, or for a model of the Hub only
``model.json`` with the hashes of its files: the weights stay in the Hub's own cache.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any, TypeVar

from plumbline.builders.core import parquet
from plumbline.builders.core.params import Params, entry
from plumbline.builders.core.snapshot import digest, write_bytes
from plumbline.probes.models.files import MODELS, POINTER, download, wanted
from plumbline.probes.models.params import model
from plumbline.probes.prompts import leaning, opinions
from plumbline.probes.prompts.groups import Asking
from plumbline.probes.training import classifier as teach
from plumbline.probes.worlds import (
    groups,
    partisans,
    partisans_generative,
    values,
)
from plumbline.probes.worlds import (
    nations as passports,
)
from plumbline.probes.worlds.politicians import train

if TYPE_CHECKING:
    from pathlib import Path

P = TypeVar("P", bound=Params)


def bring(name: str) -> Path:
    """Make ``data/models/NAME``, and return it.

    Raises
    ------
    Problem
        If the params are wrong, the Hub is out of reach, or the id or revision does not exist.
    """
    params = model(name)
    folder = MODELS / name
    partial = parquet.fresh(folder)
    if params.planted:
        if params.world:
            train(params.world, partial)
        elif params.society:
            groups.train(params.society, _asking("stereotypes", Asking), partial)
        elif params.convictions:
            values.train(params.convictions, _asking("agreement", opinions.Asking), partial)
        elif params.nations:
            passports.train(params.nations, params.kind, partial)
        elif params.partisanship:
            take_sides = {
                "causal": partisans_generative.train,
                "classifier": partisans_generative.judge,
            }
            asking = _asking("leaning", leaning.Asking)
            take_sides.get(params.kind, partisans.train)(params.partisanship, asking, partial)
        elif params.taught:
            teach.bring(name, params.taught, partial)
        files = {p.name: digest(p) for p in sorted(partial.iterdir())}
        whole = hashlib.sha256(json.dumps(files, sort_keys=True).encode()).hexdigest()
        facts: dict[str, Any] = {
            "id": f"data/models/{name}",
            "revision": whole[:40],
            "files": files,
        }
    elif params.endpoint:
        from plumbline.probes.models.remote import identify

        known = identify(params.endpoint)
        facts = {"id": params.endpoint.model, "revision": _hash(known), "files": {}, **known}
    else:
        where = download(name, params)
        paths = sorted({p for pattern in wanted(params) for p in where.glob(pattern)})
        files = {p.name: digest(p) for p in paths}
        facts = {"id": params.id, "revision": params.revision or _hash(files), "files": files}
    text = json.dumps(facts, indent=1, sort_keys=True) + "\n"
    write_bytes(partial / POINTER, text.encode())
    parquet.finish(folder)
    return folder


def _asking(probe: str, asking: type[P]) -> P:
    """Return how a probe asks, without what it keeps of the answers."""
    given = entry(f"probes.{probe}")
    return asking.model_validate({key: given[key] for key in asking.model_fields if key in given})


def _hash(files: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(files, sort_keys=True).encode()).hexdigest()[:40]
