"""Compare two or more models in one study."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.params import section
from plumbline.probes.site.headlines import Kind, headline
from plumbline.result import Result
from plumbline.studies import STUDIES, ask, control_language
from plumbline.workspace import entered

if TYPE_CHECKING:
    from collections.abc import Sequence

SEPARATOR = " minus "
DATASETS = "data/datasets/"


def compare(
    study: str,
    *models: Any,
    names: Sequence[str] = (),
    into: str | Path | None = None,
    **options: Any,
) -> Result:
    """Run a study on several models, and estimate their differences (first minus second).

    Differences are computed within items (a politician's name, a social group, a statement with its
    opposite, or a text), so that item effects common to both models cancel; see
    :mod:`plumbline.probes.comparison`. p is adjusted (Benjamini and Hochberg) over all differences
    and all pairs of models.

    Parameters
    ----------
    study
        One of :data:`plumbline.studies.STUDIES`.
    models
        Two or more models, in any form that :func:`plumbline.studies.ask` accepts.
    names
        Names of the models in tables, in the order of the models; by default, the last part of each
        folder or id.
    into
        Folder in which a subfolder is made for each model.
    options
        Other options of :func:`plumbline.studies.ask`, applied to all models.

    Raises
    ------
    UserError
        If fewer than two models are given, two names are equal, or the datasets differ.
    """
    require_models([str(m) for m in names or models if isinstance(m, str | Path)], len(models))
    if {"name", "model"} & {*options} or len(names) not in (0, len(models)):
        raise UserError("compare: `names` must contain one name for each model")
    results = []
    for number, model in enumerate(models):
        name = names[number] if names else ""
        folder = Path(into) / (name or f"model-{number + 1}") if into else None
        results.append(ask(study, model, name=name, into=folder, **options))
    return between(study, results, options)


def require_models(names: Sequence[str], number: int) -> None:
    """Raise UserError if there are fewer than two models or if names are equal."""
    if number < 2:
        raise UserError("compare: name two or more models; the first is compared with the others")
    if len(set(names)) < len(names):
        raise UserError("compare: two models have the same name; give different `names`")


def between(study: str, results: Sequence[Result], options: dict[str, Any]) -> Result:
    """Compare the results of several models in one study.

    Raises
    ------
    UserError
        If two models have the same name, or were run on different datasets.
    """
    names = [result.model for result in results]
    require_models(names, len(results))
    first = results[0].provenance["inputs"]
    for result in results[1:]:
        for path, digest in result.provenance["inputs"].items():
            if path.startswith(DATASETS) and first.get(path, digest) != digest:
                models = f"{names[0]} and {result.model} were run on different versions"
                dataset = path.removeprefix(DATASETS)
                raise UserError(f"compare: {models} of {dataset}; run both on the same dataset")
    table, confidence = _table(study, results)
    pair = ("what",) if len(names) == 2 else ("first", "second", "what")
    varying = [name for name in ("scale", "language") if table[name].n_unique() > 1]
    void = "; ".join(f"{result.model}, {result.void}" for result in results if result.void)

    def controls() -> dict[str, Result]:
        models = STUDIES[study].controls
        shared = {k: options[k] for k in ("language", "datasets", "settings") if k in options}
        language, notes = control_language(
            study, models[0], shared.get("language"), shared.get("settings")
        )
        result = compare(study, *models, **(shared | {"language": language}))
        return {SEPARATOR.join(models): replace(result, notes=notes)}

    return Result(
        study=study,
        model=SEPARATOR.join(names) if len(names) == 2 else ", ".join(names),
        kind=Kind(STUDIES[study].kind.things, "differ"),
        headline=headline(table.with_columns(void=pl.lit(void)), (*pair, *varying), 0, "unit"),
        tables={"comparison": table.drop("unit")},
        main="comparison",
        folder=results[0].folder,
        provenance={result.model: result.provenance for result in results},
        confidence=confidence,
        _controls=controls,
    )


def _table(study: str, results: Sequence[Result]) -> tuple[pl.DataFrame, float]:
    """Run the comparison on the models' outputs; return its table and confidence level."""
    from plumbline.probes.comparison import comparison
    from plumbline.probes.core.run_analysis import Inputs

    with tempfile.TemporaryDirectory() as folder:
        outputs = Path(folder) / "outputs" / STUDIES[study].probe
        outputs.mkdir(parents=True)
        for result in results:
            stored = result.folder / "data/outputs" / outputs.name / result.model
            (outputs / result.model).symlink_to(stored)
        with entered(results[0].folder):
            datasets = {p.name: p.absolute() for p in Path(DATASETS).iterdir() if p.is_dir()}
            models = tuple(result.model for result in results)
            params = section("analysis.comparison", comparison.Params)
            tables = comparison.run(Inputs(models, datasets, Path(folder)), params)
            return tables["comparison"], params.confidence
