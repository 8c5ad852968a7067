"""Training of the tiny models of worlds (control models), and their files.

A world is an input of the pipeline, like a snapshot. It is made once, by a separate command, and
stored in ``data/samples/worlds`` with its planted effects and a manifest, which is written last.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
import polars.selectors as cs
from pydantic import ValidationError

from plumbline.builders.core import parquet
from plumbline.builders.core.errors import UserError
from plumbline.builders.core.params import Params, entry, read
from plumbline.builders.core.snapshot import digest, write_bytes
from plumbline.probes.models.load import revision
from plumbline.probes.models.params import MANIFEST, NAME, WORLDS, Model
from plumbline.probes.prompts import groups as stereotypes
from plumbline.probes.prompts import leaning, opinions
from worlds import groups, nations, partisans, politicians, values
from worlds.partisans_generative import judge, train


class World(NamedTuple):
    """A kind of world: its settings, its training functions, and its inputs."""

    settings: type[Params]
    train: Mapping[str, Callable[..., None]]  # training function for each kind of model
    datasets: tuple[str, ...] = ()  # datasets from which it is made
    prompts: tuple[str, type[Params]] | None = None  # probe whose prompts it is trained on


FILE = Path(__file__).with_name("params.yaml")
OF_MODELS = ("kind", "dtype", "languages", "family", "size")  # the others belong to the world
WRITING = {"causal": train, "classifier": judge}
NAMING = {kind: partial(nations.train, kind=kind) for kind in ("masked", "classifier")}
KINDS = {
    "politicians": World(politicians.World, {"masked": politicians.train}, politicians.DATASETS),
    "groups": World(
        *(groups.Society, {"masked": groups.train}, (*stereotypes.DATASETS, "emotions")),
        ("completions", stereotypes.Asking),
    ),
    "values": World(
        *(values.Convictions, {"masked": values.train}, ("statements",)),
        ("agreement", opinions.Asking),
    ),
    "nations": World(nations.Nations, NAMING, ("counterfactuals", "names")),
    "partisans": World(
        *(partisans.Partisanship, {"masked": partisans.train, **WRITING}, ("statements",)),
        ("stances", leaning.Asking),
    ),
}
SETTINGS = {name: world.settings for name, world in KINDS.items()}
DECIMALS = 10  # for planted numbers: the last bits of exp and log depend on the processor
LIBRARIES = ("numpy", "polars", "tokenizers", "torch", "transformers")


def entries(path: Path = FILE) -> dict[str, dict[str, Any]]:
    """Return the settings of all worlds, including those that ``like`` copies from other worlds."""
    written = read(path)

    def whole(name: str) -> dict[str, Any]:
        settings = dict(written[name])
        like = settings.pop("like", None)
        if like is not None and like not in written:
            raise UserError(f"{path.name}: {name}.like: unknown world {like!r}")
        return (whole(like) if like else {}) | settings

    return {name: whole(name) for name in written}


def checked(name: str, settings: Mapping[str, Any]) -> tuple[str, Params, dict[str, Any]]:
    """Return the kind of a world, its settings, and the params of its model.

    Raises UserError if a setting is unknown or invalid.
    """
    world = str(settings.get("world"))
    rest = {key: value for key, value in settings.items() if key not in (*OF_MODELS, "world")}
    if world not in SETTINGS:
        raise UserError(f"{name}.world: unknown world {world!r}; available: {', '.join(SETTINGS)}")
    if (kind := settings.get("kind", "masked")) not in (may := KINDS[world].train):
        raise UserError(f"{name}.kind: {world} has no {kind} models; available: {', '.join(may)}")
    try:
        params: Any = SETTINGS[world].model_validate(rest)
        facts = {key: settings[key] for key in OF_MODELS if key in settings}
        facts = {"dtype": "float64", "languages": [getattr(params, "language", "en")]} | facts
        facts["control"] = "negative" if params.null else "positive"
        Model.model_validate({"id": f"{WORLDS}/{name}", **facts})
    except ValidationError as error:
        wrong = [(".".join(map(str, e["loc"])), e["msg"]) for e in error.errors()]
        raise UserError("\n".join(f"{name}.{key}: {message}" for key, message in wrong)) from error
    return world, params, facts


def plant(name: str, settings: Mapping[str, Any] | None = None, into: Path = WORLDS) -> Path:
    """Train a world, write it into ``into/NAME``, and return this folder.

    By default, its settings are those in ``params.yaml`` next to this module. Raises UserError if
    the world is unknown, a setting is invalid, or a dataset has not been validated.
    """
    if settings is None:
        worlds = entries()
        if name not in worlds or not NAME.fullmatch(name):
            raise UserError(
                f"worlds/{FILE.name}: unknown world {name!r}; available: {', '.join(worlds)}"
            )
        settings = worlds[name]
    world, params, facts = checked(name, settings)
    folder = into / name
    new = parquet.fresh(folder)
    kind = KINDS[world]
    asking = []
    if kind.prompts:  # settings for the responses are left out
        probe, model = kind.prompts
        params_of = entry(f"probes.{probe}")
        asking = [
            model.model_validate({k: params_of[k] for k in model.model_fields if k in params_of})
        ]
    kind.train[str(facts.get("kind", "masked"))](params, *asking, into=new)
    for path in new.glob("*.parquet"):
        planted = pl.read_parquet(path).with_columns(cs.float().round(DECIMALS) + 0.0)
        planted.write_parquet(path, compression="zstd", statistics=False)
    made_of = [d for d in KINDS[world].datasets if (parquet.DATASETS / d).is_dir()]
    for path in new.iterdir():
        path.chmod(0o644)
    files = {path.name: digest(path) for path in sorted(new.iterdir())}
    manifest = {
        "model": facts,
        "world": world,
        "parameters": params.model_dump(mode="json", exclude_none=True),
        "datasets": {d: parquet.fingerprint(parquet.DATASETS / d) for d in made_of},
        "libraries": {library: version(library).partition("+")[0] for library in LIBRARIES},
        "files": files,
        "id": folder.as_posix(),
        "revision": revision(files),
    }
    text = json.dumps(manifest, indent=1, sort_keys=True) + "\n"
    write_bytes(new / MANIFEST, text.encode())
    parquet.finish(folder)
    return folder
