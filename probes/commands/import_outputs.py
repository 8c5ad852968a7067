"""Completions and profiles that others made, put through the study's analyses.

Lists are a JSON object of queries, each with its words and their scores, best first, as Choenni et
al. (2021) released theirs, or CSV with the columns query, word and score. Profiles are CSV with the
columns category, group, and the percent of each affect. They become outputs and tables in a folder
of their own, with which :mod:`recall`, :mod:`emotions`, :mod:`rsa` and :mod:`shift` run as always.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import polars as pl

from plumbline.builders.core import front_matter, parquet
from plumbline.builders.core.errors import UserError
from plumbline.builders.core.params import section
from plumbline.builders.datasets.emotions.build import AFFECTS
from plumbline.probes.core.run_analysis import Inputs, write_tables
from plumbline.probes.prompts.groups import suggestions
from plumbline.probes.stats.estimate import Table, typed
from plumbline.probes.stereotypes import completions, emotions, recall, rsa, shift
from plumbline.probes.stereotypes.typicality import SCORES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Score = Literal["typicality", "probability", "logprob"]
LANGUAGE = "en"
PRIORS = {name: pl.lit(None, pl.Float64) for name in ("prior_nats", "prior_one_nats")}
VERSION = "0.1.0"
WHOLE = 10_000  # words that a profile of percents is taken to be of, where it has no counts


def read_arguments(
    lists: list[str], priors: list[str], profiles: list[str], after: list[str]
) -> list[Files]:
    """Return what to import, of arguments NAME=FILE, and NAME:CORPUS:SHARE:SEED=FILE of ``after``.

    Examples
    --------
    >>> (own,) = read_arguments(["bert=a.json"], [], [], ["bert:fox:1:2=b.json"])
    >>> own.name, own.lists.name, own.after[("fox", 1.0, 2)].name
    ('bert', 'a.json', 'b.json')
    """
    found: dict[str, dict[str, Any]] = {}
    given = {"lists": lists, "priors": priors, "profiles": profiles}
    try:
        for field, values in given.items():
            for value in values:
                name, file = value.split("=", 1)
                found.setdefault(name, {})[field] = Path(file)
        for value in after:
            place, file = value.split("=", 1)
            name, corpus, share, seed = place.split(":")
            own = found.setdefault(name, {}).setdefault("after", {})
            own[corpus, float(share), int(seed)] = Path(file)
    except ValueError as error:
        raise UserError(
            f"{value}: write NAME=FILE, or NAME:CORPUS:SHARE:SEED=FILE with --after"
        ) from error
    return [Files(name, **own) for name, own in sorted(found.items())]


class Files(NamedTuple):
    """What is imported of one model."""

    name: str
    lists: Path | None = None  # before training
    priors: Path | None = None  # JSON: the prior probability of each word
    profiles: Path | None = None
    after: Mapping[tuple[str, float, int], Path] = {}  # by corpus, share of articles, seed


def run(every: list[Files], into: Path, score: Score = "typicality") -> list[Path]:
    """Write outputs and tables under ``into``, and return the folders of the tables.

    A UserError if a file is not as it should be, a query is of no group, or there is nothing to
    analyse.
    """
    datasets = {name: parquet.require_validated(name) for name in ("stereotypes", "emotions")}
    places = _places(datasets["stereotypes"])
    inputs = Inputs(tuple(sorted(own.name for own in every)), datasets, into)
    listed, trained, profiled = [], [], []
    for own in every:
        if own.lists:
            rows = _lists(own.lists, own.priors, score, places)
            _write(rows, inputs.outputs("completions", own.name) / LANGUAGE / "00000.parquet")
            listed.append(own.name)
        for (corpus, share, seed), path in own.after.items():
            further = {"corpus": corpus, "share": share, "tuning_seed": seed}
            rows = _lists(path, own.priors, score, places).with_columns(
                **{name: pl.lit(value) for name, value in further.items()},
                articles=pl.lit(1),
                steps=pl.lit(1),
            )
            folder = inputs.outputs("after_training", own.name) / LANGUAGE
            _write(rows, folder / f"{corpus}-{share:g}-{seed}.parquet")
        trained += [own.name] * bool(own.after)
        profiled += [_profiles(own.profiles, own.name)] if own.profiles else []
    some = inputs._replace(models=tuple(sorted(listed)))
    return list(_analyses(some, profiled, tuple(sorted(trained)), score, inputs))


def _analyses(
    listed: Inputs,
    profiled: list[pl.DataFrame],
    trained: tuple[str, ...],
    score: Score,
    inputs: Inputs,
) -> Iterator[Path]:
    """Run what there are inputs for, and write the tables."""
    reading = "faithful" if score == "typicality" else "probability"
    tables = list(profiled)
    if listed.models:
        yield _told("recall", recall, listed, section("analysis.recall", recall.Params))
        feelings = section("analysis.emotions", emotions.Params)
        words = {"top_k": {reading: feelings.top_k.get("probability", 200)}}
        tables.append(emotions.run(listed, feelings.model_copy(update=words))["emotions"])
    if not tables:
        raise UserError("nothing to import: name lists or profiles")
    table = pl.concat([Table(emotions.EMOTIONS, None).frame(), *tables], how="diagonal_relaxed")
    own = {"emotions": typed(table, emotions.EMOTIONS, None)}
    yield _save("emotions", emotions, own, inputs)
    yield _told("rsa", rsa, inputs, section("analysis.rsa", rsa.Params))
    if trained:
        moved = section("analysis.shift", shift.Params)
        words = {"top_k": {reading: moved.top_k.get("probability", 200)}}
        of = inputs._replace(models=trained)
        yield _told("shift", shift, of, moved.model_copy(update=words))


def _told(name: str, module: Any, inputs: Inputs, params: Any) -> Path:
    return _save(name, module, module.run(inputs, params), inputs)


def _save(name: str, module: Any, tables: dict[str, pl.DataFrame], inputs: Inputs) -> Path:
    hashes = {folder: parquet.fingerprint(folder) for folder in inputs.datasets.values()}
    sources = [front_matter.source(f, f"dataset {n}") for n, f in inputs.datasets.items()]
    origin = front_matter.Origin(sources, "python -m plumbline.probes import", VERSION)
    return write_tables(inputs.tables(name), tables, module.SCHEMAS, hashes, origin)


def _places(stereotypes: Path) -> pl.DataFrame:
    """Return category, group, template and query of all queries that are known."""
    asking = section("probes.completions", completions.Params)
    usual = {t.lower() for own in asking.frames[LANGUAGE].templates.values() for t in own}
    known = suggestions(stereotypes, LANGUAGE, "category", "group", "template", "query").unique()
    return known.sort(known.columns).with_columns(rewritten=~pl.col("template").is_in(usual))


def _lists(path: Path, priors: Path | None, score: Score, places: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of outputs of one file."""
    rows = _read(path)
    rows = rows.with_columns(rank=pl.int_range(1, pl.len() + 1).over("query"))
    if lacking := sorted(set(rows["query"]) - set(places["query"])):
        raise UserError(
            f"{path}: {len(lacking)} queries are about no group of the dataset stereotypes, the "
            f"first {lacking[0]!r}; build the config that they are of (datasets.stereotypes)"
        )
    value = pl.col("score").log() if score == "probability" else pl.col("score")
    nothing = pl.lit(None, pl.Float64)
    columns = {"logprob_nats": value, "logprob_top_nats": value, "prior_released_nats": nothing}
    if score == "typicality":
        columns = {"logprob_nats": nothing, "logprob_top_nats": value}
        columns["prior_released_nats"] = pl.lit(0.0)
    if priors:
        prior = json.loads(priors.read_text("utf-8"))
        if unknown := sorted(set(rows["word"].str.strip_chars()) - set(prior)):
            raise UserError(f"{priors}: no prior of {len(unknown)} words, such as {unknown[0]!r}")
        own = pl.col("word").str.strip_chars().replace_strict(prior, return_dtype=pl.Float64).log()
        kept = value + own if score == "typicality" else value
        columns = {"logprob_nats": kept, "logprob_top_nats": kept, "prior_released_nats": own}
    _refuse(path, rows.filter(~columns["logprob_top_nats"].is_finite()), "a score or prior of 0")
    made = rows.join(places, on="query").with_columns(**columns, **PRIORS)
    whole = pl.col("word").str.strip_chars()
    return made.with_columns(token=pl.col("word"), word=whole, starts_word=True).drop("score")


def _refuse(path: Path, rows: pl.DataFrame, problem: str) -> None:
    if len(rows):
        query, word = rows.select("query", "word").row(0)
        raise UserError(f"{path}: {problem}: {word!r} in {query!r}; correct the file")


def _read(path: Path) -> pl.DataFrame:
    """Return query, word and score of a file of lists, in its order."""
    schema = {"query": pl.String, "word": pl.String, "score": pl.Float64}
    try:
        if path.suffix == ".json":
            found = json.loads(path.read_text("utf-8"))
            given = [(q, w, float(s)) for q, own in found.items() for w, s in own]
            rows = pl.DataFrame(given, schema=schema, orient="row")
        else:
            table = pl.read_csv(path, schema_overrides=schema).select(*schema)
            rows = table.sort("query", "score", descending=[False, True], maintain_order=True)
    except (OSError, ValueError, TypeError, AttributeError, pl.exceptions.PolarsError) as error:
        raise UserError(
            f"{path}: not lists of words (JSON: {{query: [[word, score], ...]}}; CSV: query, word, "
            f"score): {str(error).splitlines()[0]}"
        ) from error
    rows = rows.with_columns(query=pl.col("query").str.strip_chars().str.to_lowercase())
    _refuse(path, rows.filter(~pl.col("score").fill_null(np.nan).is_finite()), "no finite score")
    _refuse(path, rows.filter(pl.struct("query", "word").is_duplicated()), "a word twice")
    return rows


def _profiles(path: Path, name: str) -> pl.DataFrame:
    """Return rows of the table ``emotions`` for groups, from a CSV of percents."""
    needed = ["category", "group", *AFFECTS]
    try:
        table = pl.read_csv(path)
        shares = table.select(AFFECTS).cast(pl.Float64).to_numpy() / 100
    except (OSError, pl.exceptions.PolarsError) as error:
        raise UserError(f"{path}: not a CSV with the columns {', '.join(needed)}") from error
    if lacking := sorted(set(needed) - set(table.columns)):
        raise UserError(f"{path}: no column {', '.join(lacking)}")
    if not ((shares >= 0) & (shares <= 1)).all():
        raise UserError(f"{path}: a profile is in percent, from 0 to 100")
    n = len(table)
    words = table["words"].to_numpy() if "words" in table.columns else np.full(n, WHOLE)
    place = {"model": name, "language": LANGUAGE, "level": 0, "cluster": "word"}
    place |= {"reading": list(SCORES).index("faithful"), "top_k": 200, "family": 0}
    place |= {"method": "imported", "null": "none: imported"}
    rows = table.select(pl.col("category", "group").repeat_by(len(AFFECTS)).explode())
    affect = np.tile(np.arange(len(AFFECTS)), n)
    covered = np.repeat(words, len(AFFECTS))
    return rows.with_columns(
        affect=pl.Series(affect),
        value=pl.Series(shares.ravel()),
        covered=pl.Series(covered),
        n=pl.Series(covered),
        words=pl.Series(covered),
        carrying=pl.Series(np.rint(shares.ravel() * covered).astype(np.int64)),
        **{key: pl.lit(value) for key, value in place.items()},
    )


def _write(rows: pl.DataFrame, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    rows.write_parquet(path)
