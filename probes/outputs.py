"""Running a probe over a model, shard by shard, into a loadable dataset of raw answers.

A shard that is written is done: a run that was killed continues with the next one, and ends with
the same bytes, as long as the inputs are the same.
"""

from __future__ import annotations

import hashlib
import json
import math
import shutil
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
from tqdm import tqdm

from builders import words
from builders.lib import card, store
from builders.lib.params import section
from builders.lib.problem import Problem
from probes import associations
from probes.models import load as load_module
from probes.models import masked
from probes.models import scorer as scorer_module
from probes.models.load import MODELS, load
from probes.models.params import model

if TYPE_CHECKING:
    from collections.abc import Iterable

    from probes.models.scorer import Scorer

OUTPUTS = Path("data/outputs")
PAGES = Path("docs/probes")
SHARD = 20_000  # names in a shard; part of the layout of the outputs
COVERAGE = "coverage"


def probe(name: str) -> Path:
    """Run the probe ``associations`` over one model and return the folder of its outputs.

    Raises
    ------
    Problem
        If an input is not validated, the model is not there, or no language is left to ask in.
    """
    params = section("probes.associations", associations.Params)
    folders = {dataset: store.require_validated(dataset) for dataset in associations.INPUTS}
    languages = associations.languages_of(params, model(name).languages)
    if not languages:
        raise Problem(f"models.{name}.languages: none of them is in probes.associations.languages")
    there = set(store.configs(folders["politicians"])) & set(store.configs(folders["words"]))
    if missing := sorted(set(languages) - there):
        raise Problem(
            f"probes.associations.languages: {', '.join(missing)} not in politicians and words; "
            "add them under datasets, or take them out"
        )
    final = OUTPUTS / "associations" / name
    scorer = load(name)
    settings = [params.model_dump(mode="json"), model(name).model_dump(mode="json")]
    partial = _resume(final, settings, folders, MODELS / name)
    counts = store.Counts()
    covered: list[dict[str, Any]] = []
    for language in languages:
        _language(language, params, folders, scorer, partial, counts)
        candidates = associations.candidates_of(folders["words"], language)
        covered += associations.coverage(language, candidates, scorer, params.lengths(language))
    _write(partial / COVERAGE / "00000.parquet", covered, associations.COVERAGE.arrow())
    counts.rows[COVERAGE] = len(covered)
    (partial / "request.json").unlink()
    _card(partial, name, params.version, scorer, languages, counts)
    store.finish(final)
    return final


def _language(
    language: str,
    params: associations.Params,
    folders: dict[str, Path],
    scorer: Scorer,
    partial: Path,
    counts: store.Counts,
) -> None:
    """Write the shards of one language that are not there yet."""
    path = folders["politicians"] / f"{language}.parquet"
    shards = max(1, math.ceil(pq.read_metadata(path).num_rows / SHARD))
    candidates = associations.candidates_of(folders["words"], language)
    lengths = params.lengths(language)
    for shard in tqdm(range(shards), desc=f"names ({language})", unit="shard", disable=None):
        target = partial / language / f"{shard:05d}.parquet"
        if not target.exists():
            people = associations.names(folders["politicians"], language, shard, shards)
            rows = associations.run(people, candidates, scorer, lengths)
            _write(target, rows, associations.SCHEMA.arrow())
        counts.rows[language] += pq.read_metadata(target).num_rows


def _write(target: Path, rows: Iterable[dict[str, Any]], schema: Any) -> None:
    """Write one shard whole or not at all."""
    unfinished = target.with_name(f".{target.name}")
    try:
        writer = store.Writer(unfinished, schema)
        for row in rows:
            writer.add(row)
        writer.close()
        unfinished.replace(target)
    except OSError as error:
        unfinished.unlink(missing_ok=True)
        raise Problem(
            f"{target}: could not be written ({error.strerror or error}); free some space and run "
            "the command again, it continues where it stopped"
        ) from error


def _resume(final: Path, params: Any, folders: dict[str, Path], weights: Path) -> Path:
    """Return the working folder: the one a killed run left, if its inputs were the same."""
    modules = (associations, load_module, masked, scorer_module, store, words)
    code = [Path(__file__), *(Path(str(module.__file__)) for module in modules)]
    request = {
        "params": params,
        "inputs": {name: store.fingerprint(folder) for name, folder in folders.items()},
        "model": hashlib.sha256((weights / "model.json").read_bytes()).hexdigest(),
        "code": [hashlib.sha256(path.read_bytes()).hexdigest() for path in code],
    }
    text = json.dumps(request, sort_keys=True)
    partial = final.with_name(f".{final.name}.partial")
    note = partial / "request.json"
    if not note.is_file() or note.read_text(encoding="utf-8") != text:
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        note.write_text(text, encoding="utf-8")
    for unfinished in partial.rglob(".*.parquet"):
        unfinished.unlink()
    return partial


def _card(
    partial: Path,
    name: str,
    version: str,
    scorer: Scorer,
    languages: list[str],
    counts: store.Counts,
) -> None:
    facts = scorer.facts()
    model_source = {
        "source": f"model {name}",
        "address": json.loads((MODELS / name / "model.json").read_text(encoding="utf-8"))["id"],
        "retrieved": f"at revision {facts['revision']}",
        "licence": "as the model's own card states",
        "citation": "the model's own card",
    }
    inputs = [
        {
            "source": f"dataset {dataset}",
            "address": f"data/datasets/{dataset}",
            "retrieved": f"with sha256 {store.fingerprint(store.DATASETS / dataset)[:16]}",
            "licence": "as its card states",
            "citation": "its card",
        }
        for dataset in associations.INPUTS
    ]
    schemas = dict.fromkeys(languages, associations.SCHEMA) | {COVERAGE: associations.COVERAGE}
    counts = store.Counts(rows=Counter(counts.rows))
    command = f"make repro STAGE=associations@{name}"
    origin = card.Origin([model_source, *inputs], command, version)
    card.write(
        partial, PAGES / "associations.md", schemas, counts, origin, files="{config}/*.parquet"
    )
