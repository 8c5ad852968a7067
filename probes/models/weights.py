"""Bringing a model to the pipeline: training a world, or pinning what the Hub has.

``data/models/NAME`` holds the weights of a trained world, or for a model of the Hub only
``model.json`` with the hashes of its files: the weights stay in the Hub's own cache.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any, TypeVar

from builders.lib import store
from builders.lib.params import Params, entry
from builders.lib.snapshot import digest, write_bytes
from probes import opinions, positions
from probes.models import teach
from probes.models.files import MODELS, POINTER, download, wanted
from probes.models.params import model
from probes.questions import Asking
from probes.world import groups, partisans, passports, spokesmen, values
from probes.world.train import train

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
    partial = store.fresh(folder)
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
            take_sides = {"causal": spokesmen.train, "classifier": spokesmen.judge}
            asking = _asking("leaning", positions.Asking)
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
        from probes.models.remote import identify

        known = identify(params.endpoint)
        facts = {"id": params.endpoint.model, "revision": _hash(known), "files": {}, **known}
    else:
        where = download(name, params)
        paths = sorted({p for pattern in wanted(params) for p in where.glob(pattern)})
        files = {p.name: digest(p) for p in paths}
        facts = {"id": params.id, "revision": params.revision or _hash(files), "files": files}
    text = json.dumps(facts, indent=1, sort_keys=True) + "\n"
    write_bytes(partial / POINTER, text.encode())
    store.finish(folder)
    return folder


def _asking(probe: str, asking: type[P]) -> P:
    """Return how a probe asks, without what it keeps of the answers."""
    given = entry(f"probes.{probe}")
    return asking.model_validate({key: given[key] for key in asking.model_fields if key in given})


def _hash(files: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(files, sort_keys=True).encode()).hexdigest()[:40]
