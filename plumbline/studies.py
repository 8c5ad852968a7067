"""The five studies, each as one call: a model in, a :class:`Result` out; no YAML, no DVC.

The code is that of the pipeline: datasets are built and validated, the model's files are pinned,
the probe's outputs are written, and the analysis reads them, all in ``folder`` of the result.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import shutil
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from plumbline.builders.core import front_matter
from plumbline.builders.core.errors import UserError, optional_library
from plumbline.builders.core.params import parse
from plumbline.models import Found, find, hand_over
from plumbline.probes import EACH, module_of
from plumbline.probes.site.headlines import HEADLINES, Headline
from plumbline.result import Result
from plumbline.workspace import FOLDERS, PROJECT, Workspace, entered, home

LIBRARIES = ("plumbline", "torch", "transformers", "tokenizers", "polars", "pyarrow")
COVERED = "coverage"  # folder next to the languages of the outputs of politicians
FEW = 0.1  # share of words below which a vocabulary lacks a language
JUDGE = "probes.stances.generation.nli_model"
Datasets = dict[str, str | Path] | None
Settings = dict[str, Any] | None


class Study(NamedTuple):
    """A study of one model; its headline is in ``HEADLINES``."""

    about: str
    probe: str
    controls: tuple[str, str]  # positive, negative
    lists: tuple[str, ...] = ()  # of `assignments`, besides the probe's


STUDIES: dict[str, Study] = {
    "politicians": Study(
        "which words a model puts beside the names of women and men (Stańczak et al. 2023)",
        *("associations", ("world-planted", "world-null")),
        lists=("words",),
    ),
    "stereotypes": Study(
        "whether a model completes as search engines do about social groups (Choenni et al. 2021)",
        *("completions", ("world-groups", "world-groups-null")),
    ),
    "values": Study(
        "which values a model agrees with (Al Ali and Libovický 2024)",
        *("agreement", ("world-values", "world-values-null")),
    ),
    "nationality": Study(
        "what a classifier changes its mind about with a name of another country (Barriere and "
        "Cifuentes 2024)",
        *("classification", ("world-names", "world-names-null")),
    ),
    "leaning": Study(
        "where a model stands on political axes (Feng et al. 2023)",
        *("stances", ("world-partisan", "world-leaning-null")),
    ),
}


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
        A folder with a saved model and its tokenizer; an id of the Hugging Face Hub, whose commit
        is looked up and pinned; a control model by name; or a loaded model of transformers.
    tokenizer
        Of a loaded model. Both are saved into ``into`` and read again, so that every response is
        from files with a known sha256.
    name
        Name of the model in tables; by default the last part of folder or id.
    kind
        masked, causal, seq2seq or classifier; by default as ``config.json`` says.
    revision
        Branch, tag or commit on the Hub; by default ``main``.
    language
        The only language to run; by default all of the study. A language that the study or a
        control model lacks is an error. The controls of a result run in this language if they were
        trained on it, else in their own, with a note.
    dtype
        float32, float64 or bfloat16.
    datasets
        Folders of built datasets, or ids of published ones, by the name of the dataset, in place of
        the bundled sample.
    settings
        Params other than the defaults, by dotted key, such as ``{"analysis.pmi.min_count": 3}``;
        docs/params.md has all.
    into
        Folder for outputs and tables; by default one of the user's cache, or of PLUMBLINE_HOME.
        Responses there, or in a folder next to it, are reused as long as nothing changed that they
        depend on.

    Raises
    ------
    UserError
        If the model is missing, does not fit the study, or lacks the language.
    """
    if study not in STUDIES:
        raise UserError(f"no study {study!r}; there are {', '.join(STUDIES)}")
    own, headline, folder = (
        STUDIES[study],
        HEADLINES[study],
        Path(into).absolute() if into else None,
    )
    if not isinstance(model, str | Path):
        model, name = hand_over(model, tokenizer, name, folder or home() / "handed-over")
    found = find(model, name=name, kind=kind, revision=revision)
    _require_fit(study, found, language, settings)
    options = [study, found.entry, language, dtype, datasets or {}, settings or {}]
    key = json.dumps(options, default=str, sort_keys=True)
    digest = hashlib.sha256(key.encode()).hexdigest()[:8]
    folder = folder or home() / "results" / f"{found.name}-{digest}"
    changes = _changes(own, found, language, dtype) | (settings or {})
    workspace = Workspace(folder, changes, datasets)
    try:
        with optional_library():
            others = [key.partition(".")[2] for key in settings or {} if key.startswith("models.")]
            run = _run(workspace, own.probe, headline, found.name, others)
    except UserError as error:
        raise UserError(f"{study}: {error}") from error
    chosen = language or found.entry is None or "languages" in found.entry
    notes = () if chosen else asked_in(folder / "data/outputs" / own.probe / found.name)

    def controls() -> dict[str, Result]:
        results = {}
        for name in own.controls:
            known, notes = control_language(study, name, language, settings)
            at = folder.with_name(f"{folder.name}-{name}") if into else None
            same = {"language": known, "datasets": datasets, "settings": settings, "into": at}
            result = ask(study, name, **same)  # type: ignore[arg-type]
            results[name] = replace(result, notes=(*result.notes, *notes))
        return results

    main = headline.tables[0]
    facts = (run.headline, run.tables, main, folder, run.provenance, run.confidence)
    return Result(study, found.name, headline.kind, *facts, controls, notes)


def _require_fit(study: str, found: Found, language: str | None, settings: Settings) -> None:
    """Refuse a model of another kind, without the language, or without a judge of its text."""
    if study not in (fits := fitting(found.kind)):
        raise UserError(
            f"{study}: {found.name} is of kind {found.kind}, which this study does not support; "
            f"it fits {', '.join(fits)}"
        )
    if language and language not in (languages := _languages(study, found, settings)):
        known = ", ".join(languages) or "none of this study"
        raise UserError(f"{study}: {found.name} has no language {language!r}; it has {known}")
    writes = study == "leaning" and found.kind != "masked" and found.entry is not None
    if writes and JUDGE not in (settings or {}):  # the sample's judge knows its language alone
        raise UserError(
            f"leaning: {found.name} responds with text, judged by an entailment model; name one: "
            f"settings={{'models.judge': {{'id': ..., 'kind': 'classifier'}}, '{JUDGE}': 'judge'}}"
        )


def politicians(model: Any, **options: Any) -> Result:
    """Measure which words a model prefers beside names of women and of men.

    Stańczak et al. (2023): the words that a model ranks first beside each politician's name,
    pointwise mutual information of word and gender, and an exact test for each word. Options as of
    :func:`ask`.
    """
    return ask("politicians", model, **options)


def stereotypes(model: Any, **options: Any) -> Result:
    """Measure whether a model completes prompts about social groups as search engines do.

    Choenni et al. (2021): recall of suggested attributes among the model's first words, against
    the lists of other groups of the category. Options as of :func:`ask`.
    """
    return ask("stereotypes", model, **options)


def values(model: Any, **options: Any) -> Result:
    """Measure the values that a model agrees with; options as of :func:`ask`.

    Al Ali and Libovický (2024): agreement with statements and their opposites, by value.
    """
    return ask("values", model, **options)


def nationality(model: Any, **options: Any) -> Result:
    """Measure how predictions of a classifier change with names of other countries.

    Barriere and Cifuentes (2024): texts with the same names of another country's, and the change
    of predictions. Options as of :func:`ask`.
    """
    return ask("nationality", model, **options)


def leaning(model: Any, **options: Any) -> Result:
    """Measure the place of a model on the axes of a political questionnaire.

    Feng et al. (2023): agreement with statements of each axis, from 0 to 100 percent. Options as of
    :func:`ask`.
    """
    return ask("leaning", model, **options)


def _languages(study: str, found: Found, settings: Settings) -> list[str]:
    """Return the languages of a study; for a control model, those that it was trained on."""
    probe, known = STUDIES[study].probe, dict[str, Any]()
    probes = FOLDERS["probes"]
    for path in (*probes.glob("*/params.yaml"), *probes.glob("prompts/*.yaml")):
        known |= parse(path).get("probes", {}).get(probe, {})
    known |= {k.removeprefix(f"probes.{probe}."): value for k, value in (settings or {}).items()}
    params: Any = importlib.import_module(module_of(probe)).Params
    languages: list[str] = params.model_construct(**known).languages
    if found.entry is not None:
        return languages
    text = (PROJECT / f"data/samples/worlds/{found.name}/manifest.json").read_text("utf-8")
    return [code for code in json.loads(text)["model"]["languages"] if code in languages]


def control_language(
    study: str, name: str, language: str | None, settings: Settings
) -> tuple[str | None, tuple[str, ...]]:
    """Return the language in which a control model runs, and a note if it is another one."""
    known = _languages(study, find(name), settings)
    if language in (None, *known):
        return language, ()
    return None, (f"run in {', '.join(known)}, the language of this control, not in {language}",)


def _changes(own: Study, found: Found, language: str | None, dtype: str) -> dict[str, Any]:
    """Return the params of one model in one study alone."""
    changes: dict[str, Any] = {"controls.sets": []}
    for name in (own.probe, *own.lists):
        changes[f"assignments.{name}"] = [found.name]
    if found.entry is not None:
        languages = {"languages": [language]} if language else {}
        changes[f"models.{found.name}"] = found.entry | languages | {"dtype": dtype}
    if own.probe == "stances":  # nothing is trained further
        changes[f"training.pretrain.corpora.{found.name}"] = []
    if own.probe == "classification":  # no masked model beside it: no correlations
        changes["analysis.nationality.underlying"] = {}
    return changes


class Run(NamedTuple):
    """Tables and facts of a run."""

    headline: pl.DataFrame
    tables: dict[str, pl.DataFrame]  # labels as strings
    provenance: dict[str, Any]
    confidence: float  # of the intervals


def _run(workspace: Workspace, probe: str, headline: Headline, name: str, others: list[str]) -> Run:
    """Run probe and analysis in a workspace."""
    analysis = headline.analysis
    asking: Any = importlib.import_module(module_of(probe))
    telling: Any = importlib.import_module(module_of(analysis))
    workspace.prepare(tuple(dict.fromkeys([*asking.INPUTS, *getattr(telling, "DATASETS", ())])))
    with entered(workspace.folder):
        from plumbline.builders.core.params import section
        from plumbline.probes.core.run_analysis import analyse
        from plumbline.probes.core.shards import Task
        from plumbline.probes.models.load import pin
        from plumbline.probes.models.params import MODELS, pointer
        from plumbline.probes.report.tables import Tables

        for one in (name, *others):
            if pointer(one).parent.parent == MODELS or not pointer(one).is_file():
                pin(one)
        if getattr(asking, "PRETRAINED", False):
            from plumbline.probes.training.pretrain import pretrain

            pretrain(name)
        _respond(probe, name)
        analyse(analysis, name if analysis in EACH else "")
        data = Tables(Path("data"))
        read = {table: data.read(f"{analysis}/{table}") for table in telling.SCHEMAS}
        tables = {  # without those of groups of models: here is one
            table: frame.with_columns(pl.selectors.enum().cast(pl.String))
            for table, frame in read.items()
            if frame.width
        }
        rows = headline.rows(headline.frames(data))
        facts = json.loads(pointer(name).read_text("utf-8"))
        inputs = Task(probe, name).inputs()
        confidence = section(f"analysis.{analysis}", telling.Params).confidence
    libraries = {library: version(library) for library in LIBRARIES}
    model = {"id": facts.get("id"), "revision": facts.get("revision")}
    return Run(rows, tables, {"model": model, "inputs": inputs, "libraries": libraries}, confidence)


def _respond(probe: str, name: str) -> None:
    """Run a probe, unless its responses are here, or in a folder next to this one."""
    from plumbline.probes.core.run_probe import OUTPUTS, request
    from plumbline.probes.core.run_probe import probe as run_probe
    from plumbline.probes.core.shards import Task

    note, outputs = OUTPUTS / probe / f".{name}.asked.json", OUTPUTS / probe / name
    wanted = json.dumps(request(Task(probe, name)), sort_keys=True)

    def complete(path: Path) -> bool:
        there = path.is_file() and (path.parent / name / front_matter.CARD).is_file()
        return there and path.read_text("utf-8") == wanted

    if complete(note):
        return
    # run before, with other settings of the analysis
    if source := next(filter(complete, Path("..").glob(f"*/{note}")), None):
        shutil.rmtree(outputs, ignore_errors=True)
        shutil.copytree(source.parent / name, outputs)
    else:
        run_probe(probe, name)
    note.write_text(wanted, encoding="utf-8")


def asked_in(outputs: Path) -> tuple[str, ...]:
    """Return a note on the languages of a model for which none was named, if there are several.

    Parameters
    ----------
    outputs
        Its responses, a folder for each language, of politicians with the coverage next to them.
    """
    names = {path.name for path in outputs.iterdir() if path.is_dir()} - {COVERED}
    if outputs.parent.name not in ("associations", "agreement") or len(names) == 1:
        return ()
    note = f"run in {', '.join(sorted(names))}, since no language was named"
    if not (outputs / COVERED).is_dir():
        return (f"{note}; name one (language=) if the model knows fewer",)
    coverage = (
        pl.read_parquet(outputs / COVERED / "*.parquet")
        .group_by("language")
        .agg(share=pl.col("covered").sum() / pl.col("words").sum())
    )
    few = coverage.filter(pl.col("share") < FEW).sort("language").rows()
    shares = ", ".join(f"{share:.0%} of the words in {language}" for language, share in few)
    return (f"{note}; the vocabulary has {shares}; name one (language=)",) if few else ()


def control_models() -> list[str]:
    """Return the names of the control models that come with the package."""
    return sorted(path.parent.name for path in PROJECT.glob("data/samples/worlds/*/manifest.json"))


def fitting(kind: str) -> list[str]:
    """Return the studies that a kind of model fits."""
    from plumbline.probes.models.params import VERBS, verbs

    return [
        name
        for name, study in STUDIES.items()
        if VERBS[kind] & verbs(importlib.import_module(module_of(study.probe)).VERB)
    ]
