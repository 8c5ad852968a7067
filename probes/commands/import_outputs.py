"""Import other people's completions and profiles, and analyse them as in ``stereotypes``.

A file of lists is either a JSON object that maps each query to its words and scores, best first, as
released by Choenni et al. (2021), or CSV with the columns query, word and score. A file of profiles
is CSV with the columns category and group and one column of percentages for each affect. Outputs
and the tables of :mod:`recall`, :mod:`emotions` and :mod:`rsa` are written to a separate folder.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import polars as pl

from plumbline.builders.core import front_matter, parquet
from plumbline.builders.core.errors import UserError
from plumbline.builders.core.params import section
from plumbline.builders.datasets.emotions.build import AFFECTS
from plumbline.probes.core.run_analysis import Inputs, write_tables
from plumbline.probes.prompts.groups import suggestions
from plumbline.probes.stats.estimate import Table, typed
from plumbline.probes.stereotypes import completions, emotions, recall, rsa
from plumbline.probes.stereotypes.typicality import sort_by_key

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

Score = Literal["typicality", "probability", "logprob"]
LANGUAGE = "en"
VERSION = "0.1.0"
WORDS = 10_000  # assumed number of words for a profile without the column words


def run(
    lists: Mapping[str, Path], profiles: Mapping[str, Path], into: Path, score: Score = "typicality"
) -> Iterator[Path]:
    """Write outputs and tables under ``into``, and yield the folders of the tables.

    ``lists``, ``profiles``: files, by the name of the model that produced them.

    Raises
    ------
    UserError
        If no file is given, a file is malformed, or a query contains no known group.
    """
    if not lists and not profiles:
        raise UserError("nothing to import; give at least one file of lists or profiles")
    datasets = {name: parquet.require_validated(name) for name in ("stereotypes", "emotions")}
    groups = _queries(datasets["stereotypes"])
    rows = {name: _completions(path, score, groups) for name, path in lists.items()}
    tables = [_profiles(path, name) for name, path in profiles.items()]
    inputs = Inputs(tuple(sorted(rows)), datasets, into)
    for name, outputs in rows.items():
        path = inputs.outputs("completions", name) / LANGUAGE / "00000.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        outputs.write_parquet(path)
    if rows:
        estimates = recall.run(inputs, section("analysis.recall", recall.Params))
        yield _save("recall", recall, estimates, inputs)
        params = section("analysis.emotions", emotions.Params)
        reading = "faithful" if score == "typicality" else "probability"
        top_k = {"top_k": {reading: params.top_k.get("probability", 200)}}
        tables.append(emotions.run(inputs, params.model_copy(update=top_k))["emotions"])
    table = pl.concat([Table(emotions.EMOTIONS, None).frame(), *tables], how="diagonal_relaxed")
    yield _save("emotions", emotions, {"emotions": typed(table, emotions.EMOTIONS, None)}, inputs)
    yield _save("rsa", rsa, rsa.run(inputs, section("analysis.rsa", rsa.Params)), inputs)


def _save(name: str, module: Any, tables: dict[str, pl.DataFrame], inputs: Inputs) -> Path:
    hashes = {folder: parquet.fingerprint(folder) for folder in inputs.datasets.values()}
    sources = [front_matter.source(f, f"dataset {n}") for n, f in inputs.datasets.items()]
    origin = front_matter.Origin(sources, "python -m plumbline.probes import", VERSION)
    return write_tables(inputs.tables(name), tables, module.SCHEMAS, hashes, origin)


def _queries(stereotypes: Path) -> pl.DataFrame:
    """Return the category, group and template of all known queries."""
    params = section("probes.completions", completions.Params)
    templates = params.frames[LANGUAGE].templates.values()
    usual = {template.lower() for texts in templates for template in texts}
    queries = suggestions(stereotypes, LANGUAGE, "category", "group", "template", "query").unique()
    return queries.sort(queries.columns).with_columns(rewritten=~pl.col("template").is_in(usual))


def _completions(path: Path, score: Score, groups: pl.DataFrame) -> pl.DataFrame:
    """Convert a file of lists to outputs of the probe ``completions``."""
    rows = _read(path).with_columns(rank=pl.int_range(1, pl.len() + 1).over("query"))
    if unknown := sorted(set(rows["query"]) - set(groups["query"])):
        raise UserError(
            f"{path}: {len(unknown)} queries name no group in the dataset stereotypes "
            f"({unknown[0]!r}); build the config with them (datasets.stereotypes)"
        )
    nats = pl.col("score").log() if score == "probability" else pl.col("score")
    none, typicality = pl.lit(None, pl.Float64), score == "typicality"
    rows = rows.with_columns(
        logprob_nats=none if typicality else nats,
        logprob_top_nats=nats,
        prior_released_nats=pl.lit(0.0) if typicality else none,
        prior_nats=none,
        prior_one_nats=none,
    )
    _refuse(path, rows.filter(~pl.col("logprob_top_nats").is_finite()), "a score of 0")
    word, groups = pl.col("word").str.strip_chars(), rows.join(groups, on="query").drop("score")
    return groups.with_columns(token=pl.col("word"), word=word, starts_word=True)


def _read(path: Path) -> pl.DataFrame:
    """Read the query, word and score of each entry of a file of lists."""
    schema = {"query": pl.String, "word": pl.String, "score": pl.Float64}
    try:
        if path.suffix == ".json":
            lists = json.loads(path.read_text("utf-8"))
            items = [(q, w, float(s)) for q, pairs in lists.items() for w, s in pairs]
            rows = pl.DataFrame(items, schema=schema, orient="row")
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


def _refuse(path: Path, rows: pl.DataFrame, problem: str) -> None:
    if len(rows):
        query, word = rows.select("query", "word").row(0)
        raise UserError(f"{path}: {problem}: {word!r} in {query!r}; correct the file")


def _profiles(path: Path, name: str) -> pl.DataFrame:
    """Read a file of profiles as rows of the table ``emotions``, one per group and affect."""
    needed = ["category", "group", *AFFECTS]
    try:
        table = pl.read_csv(path)
        table = table if "words" in table.columns else table.with_columns(words=pl.lit(WORDS))
        rows = table.select(*needed, n="words").unpivot(
            AFFECTS, index=["category", "group", "n"], variable_name="affect"
        )
        rows = rows.with_columns(pl.col("value").cast(pl.Float64) / 100, pl.col("n").cast(pl.Int64))
    except (OSError, pl.exceptions.PolarsError) as error:
        raise UserError(f"{path}: not a CSV file with the columns {', '.join(needed)}") from error
    if not rows["value"].is_between(0, 1).fill_null(value=False).all():
        raise UserError(f"{path}: percentages must be between 0 and 100")
    if not (rows["n"] > 0).fill_null(value=False).all():
        raise UserError(f"{path}: words must be numbers above 0; correct the file")
    key = {"model": name, "language": LANGUAGE, "reading": "faithful", "level": "group"}
    rows = rows.with_columns(top_k=pl.lit(200), **{k: pl.lit(value) for k, value in key.items()})
    return sort_by_key(rows, emotions.EMOTIONS, "category", "group", "affect")
