"""The five studies, each as one call: a model in, a :class:`Result` out; no YAML, no DVC.

The code is that of the pipeline: datasets are built and validated, the model's files are pinned,
the probe's outputs are written, and the analysis reads them. What stands where is in ``folder`` of
the result.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import re
import shutil
from contextlib import contextmanager
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from plumbline.builders.core import front_matter
from plumbline.builders.core.errors import UserError, optional_library
from plumbline.builders.core.params import parse
from plumbline.models import Found, find, hand_over
from plumbline.probes import EACH, module_of
from plumbline.probes.site.headlines import HEADLINES, Headline
from plumbline.result import Result
from plumbline.workspace import FOLDERS, PROJECT, Workspace, entered, home

if TYPE_CHECKING:
    from collections.abc import Iterator

LIBRARIES = ("plumbline", "torch", "transformers", "tokenizers", "polars", "pyarrow")
COVERED = "coverage"  # what stands beside the languages that politicians were asked in
SEVERAL, FEW = 2, 0.1  # languages; share of words below which a vocabulary lacks one
JUDGE = "probes.stances.generation.nli_model"
Datasets = dict[str, str | Path] | None
Settings = dict[str, Any] | None


class Study(NamedTuple):
    """How a study is put to one model; its headline is in ``HEADLINES``."""

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
    """Put a study to a model.

    Parameters
    ----------
    study
        One of :data:`STUDIES`.
    model
        A folder with a saved model and its tokenizer; an id of the Hugging Face Hub, whose commit
        is looked up and pinned; a control model by name; or a loaded model of transformers.
    tokenizer
        Of a loaded model. It and the model are written into ``into`` and read again, so that every
        response is of files with a known sha256.
    name
        What the model is called in tables; by default the last part of folder or id.
    kind
        masked, causal, seq2seq or classifier; by default as ``config.json`` says.
    revision
        Branch, tag or commit on the Hub; by default ``main``.
    language
        The only language to run; by default all that the study has. A language that the study or a
        control model lacks is an error. The controls of a result (``controls``) run in this
        language if they were trained on it, else in their own, and a note of theirs states which.
    dtype
        float32, float64 or bfloat16.
    datasets
        Folders of built datasets, or ids of published ones, by the name of the dataset in place of
        the bundled sample.
    settings
        Params that are set otherwise than by default, by dotted key, such as
        ``{"analysis.pmi.min_count": 3}``; docs/params.md has all.
    into
        Folder for outputs and tables; by default one of the user's cache, or of PLUMBLINE_HOME.
        Responses there, or in a folder next to it, are not asked for again, as long as nothing
        changed that they depend on.

    Raises
    ------
    UserError
        If the model cannot be had, or cannot be put to this study, or lacks the language.
    """
    if study not in STUDIES:
        raise UserError(f"no study {study!r}; there are {', '.join(STUDIES)}")
    own, folder = STUDIES[study], Path(into).absolute() if into else None
    if not isinstance(model, str | Path):
        model, name = hand_over(model, tokenizer, name, folder or home() / "handed-over")
    found = find(model, name=name, kind=kind, revision=revision)
    if study not in (fits := fitting(found.kind)):
        raise UserError(
            f"{study}: {found.name} is of kind {found.kind}, which this study does not support; "
            f"it fits {', '.join(fits)}"
        )
    if language and language not in (languages := _languages(study, found, settings)):
        known = ", ".join(languages) or "none of this study"
        raise UserError(f"{study}: {found.name} has no language {language!r}; it has {known}")
    writes = study == "leaning" and found.kind != "masked" and found.entry is not None
    if writes and JUDGE not in (settings or {}):  # that of the samples knows their language alone
        raise UserError(
            f"leaning: {found.name} responds with text, judged by an entailment model; name one: "
            f"settings={{'models.judge': {{'id': ..., 'kind': 'classifier'}}, '{JUDGE}': 'judge'}}"
        )
    told = HEADLINES[study]
    changes = _changes(own, found, language, dtype) | (settings or {})
    options = [study, found.entry, language, dtype, datasets or {}, settings or {}]
    key = json.dumps(options, default=str, sort_keys=True)
    digest = hashlib.sha256(key.encode()).hexdigest()[:8]
    folder = folder or home() / "results" / f"{found.name}-{digest}"
    place = Workspace(folder, changes, datasets)
    with _readable(study, found):
        others = [key.partition(".")[2] for key in settings or {} if key.startswith("models.")]
        tables, rows, facts, sure = _run(place, own.probe, told, found.name, others)
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

    main, of = told.tables[0], (folder, facts, sure)
    return Result(study, found.name, told.kind, rows, tables, main, *of, controls, notes)


def politicians(model: Any, **options: Any) -> Result:
    """Ask which words a model puts beside names of women and of men; options as of :func:`ask`.

    Stańczak et al. (2023): the words that a model ranks first beside each politician's name,
    pointwise mutual information of word and gender, and an exact test for each word.
    """
    return ask("politicians", model, **options)


def stereotypes(model: Any, **options: Any) -> Result:
    """Ask whether a model completes prompts about social groups as search engines do.

    Choenni et al. (2021): recall of suggested attributes among the model's first words, against
    the lists of other groups of the category. Options as of :func:`ask`.
    """
    return ask("stereotypes", model, **options)


def values(model: Any, **options: Any) -> Result:
    """Ask which values a model agrees with; options as of :func:`ask`.

    Al Ali and Libovický (2024): agreement with statements and their opposites, by value.
    """
    return ask("values", model, **options)


def nationality(model: Any, **options: Any) -> Result:
    """Ask what a classifier changes its mind about with names of other countries.

    Barriere and Cifuentes (2024): texts with the same names of another country's, and the change
    of predictions. Options as of :func:`ask`.
    """
    return ask("nationality", model, **options)


def leaning(model: Any, **options: Any) -> Result:
    """Ask where a model stands on the axes of a political questionnaire; options as of :func:`ask`.

    Feng et al. (2023): agreement with statements of each axis, from 0 to 100 percent.
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
    """Return what is set for one model: it alone is asked, by this study alone."""
    changes: dict[str, Any] = {"controls.sets": []}
    for name in (own.probe, *own.lists):
        changes[f"assignments.{name}"] = [found.name]
    if found.entry is not None:
        languages = {"languages": [language]} if language else {}
        changes[f"models.{found.name}"] = found.entry | languages | {"dtype": dtype}
    if own.probe == "stances":  # nothing is trained further: it is asked as it is
        changes[f"training.pretrain.corpora.{found.name}"] = []
    if own.probe == "classification":  # no masked model beside it: no correlations
        changes["analysis.nationality.underlying"] = {}
    return changes


def _run(
    place: Workspace, probe: str, told: Headline, name: str, others: list[str]
) -> tuple[dict[str, pl.DataFrame], pl.DataFrame, dict[str, Any], float]:
    """Run probe and analysis in a workspace.

    Returned: the tables, labels as strings; the headline; facts; and the confidence of the
    intervals.
    """
    analysis = told.analysis
    asking: Any = importlib.import_module(module_of(probe))
    telling: Any = importlib.import_module(module_of(analysis))
    place.prepare(tuple(dict.fromkeys([*asking.INPUTS, *getattr(telling, "DATASETS", ())])))
    with entered(place.folder):
        from plumbline.builders.core.params import section
        from plumbline.probes.core.run_analysis import analyse
        from plumbline.probes.core.run_probe import OUTPUTS, request
        from plumbline.probes.core.run_probe import probe as put
        from plumbline.probes.core.shards import Task
        from plumbline.probes.models.files import pin
        from plumbline.probes.models.params import MODELS, pointer
        from plumbline.probes.report.tables import Tables

        for one in (name, *others):
            if pointer(one).parent.parent == MODELS or not pointer(one).is_file():
                pin(one)
        if getattr(asking, "PRETRAINED", False):
            from plumbline.probes.training.pretrain import pretrain

            pretrain(name)
        note = OUTPUTS / probe / f".{name}.asked.json"
        wanted = json.dumps(request(Task(probe, name)), sort_keys=True)
        done = OUTPUTS / probe / name
        if not _answered(done, note, wanted):
            notes = Path("..").glob(f"*/{note}")
            there = (p for p in notes if _answered(p.parent / name, p, wanted))
            if source := next(there, None):  # run before, with other settings of the analysis
                shutil.rmtree(done, ignore_errors=True)
                shutil.copytree(source.parent / name, done)
            else:
                put(probe, name)
            note.write_text(wanted, encoding="utf-8")
        analyse(analysis, name if analysis in EACH else "")
        read = Tables(Path("data"))
        found = {table: read.read(f"{analysis}/{table}") for table in telling.SCHEMAS}
        tables = {  # without those of groups of models: here is one
            table: frame.with_columns(pl.selectors.enum().cast(pl.String))
            for table, frame in found.items()
            if frame.width
        }
        rows = told.rows(told.frames(read))
        facts = json.loads(pointer(name).read_text("utf-8"))
        inputs = Task(probe, name).inputs()
        confidence = section(f"analysis.{analysis}", telling.Params).confidence
    libraries = {library: version(library) for library in LIBRARIES}
    known = {"id": facts.get("id"), "revision": facts.get("revision")}
    return tables, rows, {"model": known, "inputs": inputs, "libraries": libraries}, confidence


def _answered(outputs: Path, note: Path, wanted: str) -> bool:
    """Return whether outputs are complete, and are those of a request."""
    complete = (outputs / front_matter.CARD).is_file() and note.is_file()
    return complete and note.read_text("utf-8") == wanted


def asked_in(outputs: Path) -> tuple[str, ...]:
    """Return what to say of a model of which nobody said what languages it knows, if several.

    Parameters
    ----------
    outputs
        Its responses, a folder for each language, of politicians with the coverage beside them.
    """
    names = {path.name for path in outputs.iterdir() if path.is_dir()} - {COVERED}
    if outputs.parent.name not in ("associations", "agreement") or len(names) < SEVERAL:
        return ()
    told = f"asked in {', '.join(sorted(names))}, since no language was named; name one (language=)"
    if not (outputs / COVERED).is_dir():
        return (f"{told} if the model knows fewer",)
    known = (
        pl.read_parquet(outputs / COVERED / "*.parquet")
        .group_by("language")
        .agg(share=pl.col("covered").sum() / pl.col("words").sum())
    )
    few = known.filter(pl.col("share") < FEW).sort("language").rows()
    said = ", ".join(f"{share:.0%} of the words in {language}" for language, share in few)
    return (f"{told}: the vocabulary has {said}",) if few else ()


@contextmanager
def _readable(study: str, found: Found) -> Iterator[None]:
    """Turn what is said of the project's own files into words about the call."""
    try:
        with optional_library():
            yield
    except UserError as error:
        said = re.sub(
            r"; leave \S+ out of models\.\S+, or the model out of assignments\.\w+",
            "; name one that it has: language=..., or --language",
            str(error),
        ).replace(f"models.{found.name}", found.name)
        raise UserError(f"{study}: {said}") from error


def control_models() -> list[str]:
    """Return the names of the control models that come with the package."""
    return sorted(path.parent.name for path in PROJECT.glob("data/samples/worlds/*/manifest.json"))


def fitting(kind: str) -> list[str]:
    """Return the studies that models of a kind can be put to."""
    from plumbline.probes.models.params import VERBS, verbs

    return [
        name
        for name, study in STUDIES.items()
        if VERBS[kind] & verbs(importlib.import_module(module_of(study.probe)).VERB)
    ]
