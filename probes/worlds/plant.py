"""Planting worlds: training their tiny models, and writing them down where models are found.

A world is an input of the pipeline, as a snapshot is: it is made once, by a command of its own, and
stands in ``data/samples/worlds`` with what is planted in it and a manifest, which is written last.
"""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import polars as pl
import polars.selectors as cs
from pydantic import ValidationError

from plumbline.builders.core import parquet
from plumbline.builders.core.errors import UserError
from plumbline.builders.core.params import Params, entry, read
from plumbline.builders.core.snapshot import digest, write_bytes
from plumbline.probes.models.files import revision
from plumbline.probes.models.params import MANIFEST, NAME, WORLDS, Model
from plumbline.probes.worlds.groups import Society
from plumbline.probes.worlds.labelled import Labelled
from plumbline.probes.worlds.nations import Nations
from plumbline.probes.worlds.partisans import Partisanship
from plumbline.probes.worlds.politicians import World
from plumbline.probes.worlds.values import Convictions

if TYPE_CHECKING:
    from collections.abc import Mapping

FILE = Path(__file__).with_name("params.yaml")
OF_MODELS = ("kind", "dtype", "languages", "family", "size")  # the other settings are the world's
SETTINGS: dict[str, type[Params]] = {
    "politicians": World,
    "groups": Society,
    "values": Convictions,
    "nations": Nations,
    "partisans": Partisanship,
    "labelled": Labelled,
}
KINDS = {  # of model, where a world has others than masked ones
    "nations": ("masked", "classifier"),
    "partisans": ("masked", "causal", "classifier"),
    "labelled": ("classifier",),
}
MADE_OF = {  # datasets
    "politicians": ("politicians", "words", "lexica", "supersenses"),
    "groups": ("social_groups", "stereotypes", "emotions"),
    "values": ("statements",),
    "nations": ("counterfactuals", "names"),
    "partisans": ("statements",),
}
DECIMALS = 10  # of planted numbers: the last bits of exp and log differ between processors
LIBRARIES = ("numpy", "polars", "tokenizers", "torch", "transformers")

P = TypeVar("P", bound=Params)


def entries(path: Path = FILE) -> dict[str, dict[str, Any]]:
    """Return the settings of all worlds, with those that they take over from others."""
    given = read(path)

    def whole(name: str) -> dict[str, Any]:
        own = dict(given[name])
        like = own.pop("like", None)
        if like is not None and like not in given:
            raise UserError(f"{path.name}: {name}.like: no world {like!r}")
        return (whole(like) if like else {}) | own

    return {name: whole(name) for name in given}


def checked(name: str, given: Mapping[str, Any]) -> tuple[str, Params, dict[str, Any]]:
    """Return which world an entry is of, its settings, and the entry of its model.

    Raises
    ------
    UserError
        If a setting is unknown or wrong.
    """
    world = str(given.get("world"))
    own = {key: value for key, value in given.items() if key not in (*OF_MODELS, "world")}
    if world not in SETTINGS:
        raise UserError(f"{name}.world: {world!r} is none of {', '.join(SETTINGS)}")
    if (kind := given.get("kind", "masked")) not in (may := KINDS.get(world, ("masked",))):
        raise UserError(f"{name}.kind: a world of {world} is {' or '.join(may)}, not {kind}")
    try:
        params: Any = SETTINGS[world].model_validate(own)
        facts = {key: given[key] for key in OF_MODELS if key in given}
        if world != "labelled":
            language = getattr(params, "language", "en")
            facts = {"dtype": "float64", "languages": [language]} | facts
            facts["control"] = "negative" if params.null else "positive"
        Model.model_validate({"id": f"{WORLDS}/{name}", **facts})
    except ValidationError as error:
        wrong = [(".".join(map(str, e["loc"])), e["msg"]) for e in error.errors()]
        raise UserError("\n".join(f"{name}.{key}: {said}" for key, said in wrong)) from error
    return world, params, facts


def plant(name: str, given: Mapping[str, Any] | None = None, into: Path = WORLDS) -> Path:
    """Train a world and write it into the folder ``into/NAME``, which is returned.

    Parameters
    ----------
    given
        Its settings, in place of those in ``params.yaml`` beside this module.

    Raises
    ------
    UserError
        If there is no such world, a setting is wrong, or a dataset is not validated.
    """
    if given is None:
        known = entries()
        if name not in known or not NAME.fullmatch(name):
            raise UserError(
                f"no world {name!r} in probes/worlds/{FILE.name}; there are {', '.join(known)}"
            )
        given = known[name]
    world, params, facts = checked(name, given)
    folder = into / name
    partial = parquet.fresh(folder)
    _train(name, world, str(facts.get("kind", "masked")), params, partial)
    for path in partial.glob("*.parquet"):
        planted = pl.read_parquet(path).with_columns(cs.float().round(DECIMALS) + 0.0)
        planted.write_parquet(path, compression="zstd", statistics=False)
    made_of = [d for d in MADE_OF.get(world, ()) if (parquet.DATASETS / d).is_dir()]
    describe(
        partial,
        folder.as_posix(),
        {
            "model": facts,
            "world": world,
            "parameters": params.model_dump(mode="json", exclude_none=True),
            "datasets": {d: parquet.fingerprint(parquet.DATASETS / d) for d in made_of},
            "libraries": {library: version(library).partition("+")[0] for library in LIBRARIES},
        },
    )
    parquet.finish(folder)
    return folder


def describe(folder: Path, name: str, facts: Mapping[str, Any]) -> None:
    """Write the manifest of a folder whose other files are there."""
    for path in folder.iterdir():
        path.chmod(0o644)
    files = {path.name: digest(path) for path in sorted(folder.iterdir()) if path.name != MANIFEST}
    known = {**facts, "files": files, "id": name, "revision": revision(files)}
    text = json.dumps(known, indent=1, sort_keys=True) + "\n"
    write_bytes(folder / MANIFEST, text.encode())


def _train(name: str, world: str, kind: str, params: Any, into: Path) -> None:
    """Write the model, its tokenizer and what is planted into a folder."""
    from plumbline.probes.prompts import groups as stereotypes
    from plumbline.probes.prompts import leaning, opinions
    from plumbline.probes.worlds import (
        groups,
        labelled,
        nations,
        partisans,
        partisans_generative,
        politicians,
        values,
    )

    if world == "politicians":
        politicians.train(params, into)
    elif world == "groups":
        groups.train(params, _prompts("completions", stereotypes.Asking), into)
    elif world == "values":
        values.train(params, _prompts("agreement", opinions.Asking), into)
    elif world == "nations":
        nations.train(params, kind, into)
    elif world == "labelled":
        labelled.train(name, params, into)
    else:
        train = {"causal": partisans_generative.train, "classifier": partisans_generative.judge}
        train.get(kind, partisans.train)(params, _prompts("stances", leaning.Asking), into)


def _prompts(probe: str, of: type[P]) -> P:
    """Return the prompts of a probe, without how its responses are written."""
    given = entry(f"probes.{probe}")
    return of.model_validate({key: given[key] for key in of.model_fields if key in given})
