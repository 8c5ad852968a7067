"""Two or more models in one study, and the differences of their estimates."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from plumbline.builders.core.errors import UserError
from plumbline.probes.site.headlines import HEADLINES, Kind, headline
from plumbline.result import Result
from plumbline.studies import STUDIES, ask, control_language

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

FEWEST = 2
SEPARATOR = " minus "
DATASETS = "data/datasets/"
KEPT = ("language", "datasets", "settings")  # for control models too


def compare(
    study: str,
    *models: Any,
    names: Sequence[str] = (),
    into: str | Path | None = None,
    **options: Any,
) -> Result:
    """Run a study on models, and compare them: the first minus the second, over the same items.

    Differences are taken within a politician's name, a social group, a statement with its opposite,
    or a text, so that effects of an item on both models cancel out; see
    :mod:`plumbline.probes.comparison`. p is adjusted (Benjamini and Hochberg) over all differences
    of all pairs of models.

    Parameters
    ----------
    study
        One of :data:`plumbline.studies.STUDIES`.
    models
        Two or more, as of :func:`plumbline.studies.ask`.
    names
        Names in tables, in order; by default the last part of folder or id.
    into
        Folder, in which each model has one of its own.
    options
        Others of :func:`plumbline.studies.ask`; the same for all models.

    Raises
    ------
    UserError
        If there are fewer than two models, two of one name, or datasets differ.
    """
    if len(models) < FEWEST:
        raise UserError("compare: name two models or more; the others are compared with the first")
    called = [str(m) for m in names or models if isinstance(m, str | Path)]
    if len({*called}) < len(called):
        raise UserError("compare: two models have the same name; give different `names`")
    if {"name", "model"} & set(options) or (names and len(names) != len(models)):
        raise UserError("compare: give one of `names` for each model")
    results = []
    for number, model in enumerate(models):
        one: dict[str, Any] = {"name": names[number]} if names else {}
        if into:
            one["into"] = Path(into) / (names[number] if names else f"model-{number + 1}")
        results.append(ask(study, model, **one, **options))
    return between(study, results, options)


def between(study: str, results: Sequence[Result], options: dict[str, Any]) -> Result:
    """Compare results of one study.

    Raises
    ------
    UserError
        If two models have the same name, or were run on different datasets.
    """
    called = [result.model for result in results]
    if len(set(called)) < len(called):
        raise UserError("compare: two models have the same name; give different `names`")
    _require_same_datasets(study, results)
    table, confidence = _table(study, results)
    kind = Kind(HEADLINES[study].kind.things, "differ")
    pair = len(called) == FEWEST
    title = SEPARATOR.join(called) if pair else ", ".join(called)
    first = ("what",) if pair else ("first", "second", "what")
    several = [name for name in ("scale", "language") if table[name].n_unique() > 1]
    void = "; ".join(f"{result.model}, {result.void}" for result in results if result.void)
    table = table.with_columns(void=pl.lit(void))
    facts = {result.model: result.provenance for result in results}

    def controls() -> dict[str, Result]:
        of = STUDIES[study].controls
        same = {key: options[key] for key in KEPT if key in options}
        wanted = (same.get("language"), same.get("settings"))
        same["language"], notes = control_language(study, of[0], *wanted)
        return {SEPARATOR.join(of): replace(compare(study, *of, **same), notes=notes)}

    tables = {"comparison": table.drop("unit", "void")}
    rows = headline(table, (*first, *several), 0, "unit")
    return Result(
        *(study, title, kind, rows, tables, "comparison", results[0].folder, facts),
        *(confidence, controls),
    )


def _require_same_datasets(study: str, results: Sequence[Result]) -> None:
    for one in results[1:]:
        for path, digest in results[0].provenance["inputs"].items():
            if path.startswith(DATASETS) and one.provenance["inputs"].get(path, digest) != digest:
                raise UserError(
                    f"compare: {results[0].model} and {one.model} were run on different versions "
                    f"of {path.removeprefix(DATASETS)}; run {study} of both with one dataset"
                )


def _table(study: str, results: Iterable[Result]) -> tuple[pl.DataFrame, float]:
    """Run the analysis on the outputs of all, which stay where they are.

    Returned: the table, and the confidence of its intervals.
    """
    from plumbline.builders.core.params import section
    from plumbline.probes.comparison import comparison
    from plumbline.probes.core.run_analysis import Inputs
    from plumbline.workspace import entered

    results = list(results)
    first, probe = results[0], STUDIES[study].probe
    with tempfile.TemporaryDirectory() as folder:
        for result in results:
            at = Path(folder) / "outputs" / probe / result.model
            at.parent.mkdir(parents=True, exist_ok=True)
            at.symlink_to(result.folder / "data/outputs" / probe / result.model)
        with entered(first.folder):
            datasets = {p.name: p.absolute() for p in Path("data/datasets").iterdir() if p.is_dir()}
            inputs = Inputs(tuple(result.model for result in results), datasets, Path(folder))
            params = section("analysis.comparison", comparison.Params)
            return comparison.run(inputs, params)["comparison"], params.confidence
