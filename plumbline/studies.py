"""Run the five studies with functions that take a model and return a :class:`Result`.

Neither YAML nor DVC is needed, but the code of the pipeline runs: in the ``folder`` of the result,
datasets are built and validated, the files of the model are pinned, the probe writes outputs, and
the analysis reads them.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import shutil
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import polars as pl

from plumbline.builders.core import front_matter
from plumbline.builders.core.errors import UserError, optional_library
from plumbline.builders.core.params import parse, section
from plumbline.models import Target, find, save_loaded
from plumbline.probes import EACH, module_of
from plumbline.probes.site.headlines import HEADLINES
from plumbline.result import Result
from plumbline.workspace import FOLDERS, WORLDS, Workspace, entered, home

STUDIES = HEADLINES  # subject, probe, analysis and control models of each study
LIBRARIES = ("plumbline", "torch", "transformers", "tokenizers", "polars", "pyarrow")
COVERAGE = "coverage"  # folder in the outputs of ``politicians``, next to one folder per language
FEW = 0.1  # a note is given if the vocabulary contains a smaller share of a language's words
JUDGE = "probes.stances.generation.nli_model"
Datasets = dict[str, str | Path] | None
Settings = dict[str, Any] | None


def ask(
    study: str,
    model: Any,
    *,
    tokenizer: Any = None,
    name: str = "",
    kind: str = "",
    revision: str = "",
    language: str | None = None,
    dtype: str = "float32",
    datasets: Datasets = None,
    settings: Settings = None,
    into: str | Path | None = None,
) -> Result:
    """Run a study on a model.

    Parameters
    ----------
    study
        One of :data:`STUDIES`.
    model
        A folder with a saved model and its tokenizer; a Hugging Face Hub id, whose commit is looked
        up and pinned; the name of a control model; or a loaded transformers model.
    tokenizer
        Tokenizer of a loaded model. The model and its tokenizer are saved into ``into`` and loaded
        from there, so that every response comes from files with a known sha256.
    name
        Name of the model in tables; by default, the last part of the folder or id.
    kind
        ``masked``, ``causal``, ``seq2seq`` or ``classifier``; by default, inferred from
        ``config.json``.
    revision
        Branch, tag or commit on the Hub; by default, ``main``.
    language
        The only language to run; by default, all languages of the study. The study, and the model
        if it is a control model, must include this language. The controls of a result run in this
        language if they were trained on it; otherwise, they run in their own language, and their
        results have a note.
    dtype
        float32, float64 or bfloat16.
    datasets
        Folders of built datasets, or ids of published ones, by the name of the dataset; they
        replace the bundled samples.
    settings
        Params that differ from the defaults, by dotted key, such as ``{"analysis.pmi.min_count":
        3}``; docs/params.md lists them.
    into
        Folder for outputs and tables; by default, one in PLUMBLINE_HOME or in the user's cache.
        Responses there, or in a sibling folder, are reused while their inputs are unchanged.

    Raises
    ------
    UserError
        If the model is missing, does not suit the study, or lacks the language.
    """
    if study not in STUDIES:
        raise UserError(f"unknown study {study!r}; available: {', '.join(STUDIES)}")
    folder = Path(into).absolute() if into else None
    if not isinstance(model, str | Path):
        model, name = save_loaded(model, tokenizer, name, folder or home() / "handed-over")
    target = find(model, name=name, kind=kind, revision=revision)
    _require_fit(study, target, language, settings)
    options = [study, target.entry, language, dtype, datasets or {}, settings or {}]
    key = json.dumps(options, default=str, sort_keys=True)
    digest = hashlib.sha256(key.encode()).hexdigest()[:8]
    folder = folder or home() / "results" / f"{target.name}-{digest}"
    changes = _changes(study, target, language, dtype) | (settings or {})
    workspace = Workspace(folder, changes, datasets)
    try:
        with optional_library():
            facts = _run(workspace, study, target.name, settings)
    except UserError as error:
        raise UserError(f"{study}: {error}") from error

    def controls() -> dict[str, Result]:
        results = {}
        for control in STUDIES[study].controls:
            own_language, notes = control_language(study, control, language, settings)
            result = ask(
                study,
                control,
                language=own_language,
                datasets=datasets,
                settings=settings,
                into=folder.with_name(f"{folder.name}-{control}") if into else None,
            )
            results[control] = replace(result, notes=(*result.notes, *notes))
        return results

    named = language or target.entry is None or "languages" in target.entry
    outputs = folder / "data/outputs" / STUDIES[study].probe / target.name
    return Result(
        study=study,
        model=target.name,
        kind=STUDIES[study].kind,
        main=STUDIES[study].tables[0],
        folder=folder,
        _controls=controls,
        notes=() if named else language_notes(outputs),
        **facts,
    )


def politicians(model: Any, **options: Any) -> Result:
    """Measure which words a model ranks first next to women's and men's names.

    The measure is the pointwise mutual information of word and gender, with an exact test for each
    word (Stańczak et al. 2023). Options are those of :func:`ask`.
    """
    return ask("politicians", model, **options)


def stereotypes(model: Any, **options: Any) -> Result:
    """Measure recall of the group attributes that search engines suggest; see :func:`ask`.

    The baseline is the recall obtained with other groups' lists (Choenni et al. 2021).
    """
    return ask("stereotypes", model, **options)


def values(model: Any, **options: Any) -> Result:
    """Measure agreement with statements and their opposites, by value; see :func:`ask`.

    The study is that of Al Ali and Libovický (2024).
    """
    return ask("values", model, **options)


def nationality(model: Any, **options: Any) -> Result:
    """Measure how the predictions of a classifier change with the country of the names in a text.

    The study is that of Barriere and Cifuentes (2024). Options are those of :func:`ask`.
    """
    return ask("nationality", model, **options)


def leaning(model: Any, **options: Any) -> Result:
    """Measure agreement with statements on political axes, in percent; see :func:`ask`.

    The study is that of Feng et al. (2023).
    """
    return ask("leaning", model, **options)


def fitting(kind: str) -> list[str]:
    """Return the studies in which a kind of model can be used."""
    from plumbline.probes.models.params import VERBS, verbs

    modules = {name: importlib.import_module(module_of(s.probe)) for name, s in STUDIES.items()}
    return [name for name, module in modules.items() if VERBS[kind] & verbs(module.VERB)]


def _require_fit(study: str, target: Target, language: str | None, settings: Settings) -> None:
    """Raise UserError for an unsupported kind of model, a missing language or a missing judge."""
    if study not in (fits := fitting(target.kind)):
        raise UserError(
            f"{study}: {target.name} is of kind {target.kind}, which this study does not support; "
            f"use it in {', '.join(fits)}"
        )
    if language and language not in (languages := _languages(study, target, settings)):
        listed = ", ".join(languages) or "none of this study"
        raise UserError(f"{study}: {target.name} lacks language {language!r}; available: {listed}")
    writes = study == "leaning" and target.kind != "masked" and target.entry is not None
    if writes and JUDGE not in (settings or {}):  # the sample's judge supports one language only
        raise UserError(
            f"leaning: {target.name} responds with text, judged by an entailment model; set one: "
            f"settings={{'models.judge': {{'id': ..., 'kind': 'classifier'}}, '{JUDGE}': 'judge'}}"
        )


def _languages(study: str, target: Target, settings: Settings) -> list[str]:
    """Return the languages of a study; for a control model, only those it was trained on."""
    probe, fields = STUDIES[study].probe, dict[str, Any]()
    probes = FOLDERS["probes"]
    for path in (*probes.glob("*/params.yaml"), *probes.glob("prompts/*.yaml")):
        fields |= parse(path).get("probes", {}).get(probe, {})
    fields |= {k.removeprefix(f"probes.{probe}."): value for k, value in (settings or {}).items()}
    params: Any = importlib.import_module(module_of(probe)).Params
    languages: list[str] = params.model_construct(**fields).languages
    if target.entry is not None:
        return languages
    facts = json.loads((WORLDS / target.name / "manifest.json").read_text("utf-8"))
    return [code for code in facts["model"]["languages"] if code in languages]


def control_language(
    study: str, name: str, language: str | None, settings: Settings
) -> tuple[str | None, tuple[str, ...]]:
    """Return the language in which a control model runs, and a note if it was not requested."""
    languages = _languages(study, find(name), settings)
    if language in (None, *languages):
        return language, ()
    return None, (
        f"run in {', '.join(languages)}, the language of this control, not in {language}",
    )


def _changes(study: str, target: Target, language: str | None, dtype: str) -> dict[str, Any]:
    """Return the params that select one model in one study."""
    probe, name = STUDIES[study].probe, target.name
    changes: dict[str, Any] = {"controls.sets": [], f"assignments.{probe}": [name]}
    if target.entry is not None:
        languages = {"languages": [language]} if language else {}
        changes[f"models.{name}"] = target.entry | languages | {"dtype": dtype}
    if study == "politicians":
        changes["assignments.words"] = [name]
    elif study == "leaning":  # the model is not trained further
        changes[f"training.pretrain.corpora.{name}"] = []
    elif study == "nationality":  # correlations with masked models are not computed
        changes["analysis.nationality.underlying"] = {}
    return changes


def _run(workspace: Workspace, study: str, name: str, settings: Settings) -> dict[str, Any]:
    """Run the probe and the analysis in a workspace, and return fields of :class:`Result`."""
    headline = STUDIES[study]
    probe, analysis = headline.probe, headline.analysis
    prober: Any = importlib.import_module(module_of(probe))
    analyser: Any = importlib.import_module(module_of(analysis))
    datasets = dict.fromkeys([*prober.INPUTS, *getattr(analyser, "DATASETS", ())])
    workspace.prepare(tuple(datasets))
    others = [key.partition(".")[2] for key in settings or {} if key.startswith("models.")]
    with entered(workspace.folder):
        from plumbline.probes.core.run_analysis import analyse
        from plumbline.probes.core.run_probe import Task
        from plumbline.probes.models.load import pin
        from plumbline.probes.models.params import MODELS, pointer
        from plumbline.probes.report.tables import Tables

        for model in (name, *others):
            if pointer(model).parent.parent == MODELS or not pointer(model).is_file():
                pin(model)
        if getattr(prober, "PRETRAINED", False):
            from plumbline.probes.training.pretrain import pretrain

            pretrain(name)
        task = Task(probe, name)
        _respond(task)
        analyse(analysis, name if analysis in EACH else "")
        tables = Tables(Path("data"))
        frames = {table: tables.read(f"{analysis}/{table}") for table in analyser.SCHEMAS}
        facts = json.loads(pointer(name).read_text("utf-8"))
        return {
            "headline": headline.rows(headline.frames(tables)),
            "tables": {  # a single model has no tables that compare groups of models
                table: frame.with_columns(pl.selectors.enum().cast(pl.String))
                for table, frame in frames.items()
                if frame.width
            },
            "provenance": {
                "model": {"id": facts.get("id"), "revision": facts.get("revision")},
                "inputs": task.inputs(),
                "libraries": {library: version(library) for library in LIBRARIES},
            },
            "confidence": section(f"analysis.{analysis}", analyser.Params).confidence,
        }


def _respond(task: Any) -> None:
    """Run a probe unless its responses exist in this or a sibling folder."""
    from plumbline.probes.core.run_probe import OUTPUTS, probe, request

    outputs = OUTPUTS / task.probe / task.name
    note = outputs.with_name(f".{task.name}.asked.json")
    requested = json.dumps(request(task), sort_keys=True)

    def is_complete(path: Path) -> bool:
        stored = path.is_file() and (path.parent / task.name / front_matter.CARD).is_file()
        return stored and path.read_text("utf-8") == requested

    if is_complete(note):
        return
    # copy the responses of a run that differs only in the settings of its analysis
    if source := next(filter(is_complete, Path("..").glob(f"*/{note}")), None):
        shutil.rmtree(outputs, ignore_errors=True)
        shutil.copytree(source.parent / task.name, outputs)
    else:
        probe(task.probe, task.name)
    note.write_text(requested, encoding="utf-8")


def language_notes(outputs: Path) -> tuple[str, ...]:
    """Return a note on the languages of a run in several languages, none of which was requested.

    Parameters
    ----------
    outputs
        Folder of responses, with one subfolder per language and, for politicians, one for coverage.
    """
    names = {path.name for path in outputs.iterdir() if path.is_dir()} - {COVERAGE}
    if outputs.parent.name not in ("associations", "agreement") or len(names) == 1:
        return ()
    note = f"run in {', '.join(sorted(names))}, since no language was named"
    if not (outputs / COVERAGE).is_dir():
        return (f"{note}; name one (language=) if the model knows fewer",)
    coverage = (
        pl.read_parquet(outputs / COVERAGE / "*.parquet")
        .group_by("language")
        .agg(share=pl.col("covered").sum() / pl.col("words").sum())
    )
    few = coverage.filter(pl.col("share") < FEW).sort("language").rows()
    shares = ", ".join(f"{share:.0%} of the words in {language}" for language, share in few)
    return (f"{note}; the vocabulary has {shares}; name one (language=)",) if few else ()
