"""Import other people's completions, profiles and answers, and analyse them as in the studies.

A file of lists is either a JSON object that maps each query to its words and scores, best first, as
released by Choenni et al. (2021), or CSV with the columns query, word and score. A file of profiles
is CSV with the columns category and group and one column of percentages for each affect. A file of
answers to a political questionnaire is CSV or JSON lines with the columns :data:`ANSWER`. Outputs
and the tables of :mod:`recall`, :mod:`emotions`, :mod:`rsa` and :mod:`compass` are written to a
separate folder.
"""

from __future__ import annotations

import gzip
import re
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from plumbline.builders.core import front_matter, parquet
from plumbline.builders.core.errors import UserError
from plumbline.builders.core.params import section
from plumbline.builders.datasets.emotions.build import AFFECTS
from plumbline.builders.readers.spelling import decimal, whole
from plumbline.builders.readers.table import decoded, parsed, records, table_rows
from plumbline.probes.core.run_analysis import Inputs, write_tables
from plumbline.probes.leaning import compass, stances
from plumbline.probes.leaning.scoring import OPTIONS
from plumbline.probes.prompts.groups import suggestions
from plumbline.probes.stats.estimate import Table, typed
from plumbline.probes.stereotypes import completions, emotions, recall, rsa
from plumbline.probes.stereotypes.typicality import sort_by_key
from plumbline.probes.training.checkpoints import ITSELF

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Score = Literal["typicality", "probability", "logprob"]
LANGUAGE = "en"
VERSION = "0.1.0"
WORDS = 10_000  # assumed number of words for a profile without the column words
# columns of a file of answers with their values where the file lacks them; None: required
ANSWER = {"id": None, "response": None, "prompt": "", "template": "imported", "suffix": ""}
ANSWER |= {"options": "\n".join(OPTIONS), "order": "0", "seed": "0"}
LABEL = re.compile(r"^\W*\w[).:]\W*")  # number or letter of an option, such as "1) "


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


def run_answers(
    answers: Mapping[str, Path], questionnaire: str, columns: Mapping[str, str], into: Path
) -> Iterator[Path]:
    """Write answers to a questionnaire and the tables of ``compass`` under ``into``.

    Yields the folder of the tables. ``answers``: files, by the name of the model that produced
    them; ``columns``: their names of columns in :data:`ANSWER`, where these differ.

    Raises
    ------
    UserError
        If a file is malformed, or contains unknown or missing statements or duplicates.
    """
    if unknown := sorted(set(columns) - set(ANSWER)):
        raise UserError(f"--column: unknown name {unknown[0]!r}; use {', '.join(ANSWER)}")
    statements = parquet.require_validated("statements")
    path = statements / f"{questionnaire}.parquet"
    if not path.is_file():
        raise UserError(f"{path}: no such questionnaire; add it to datasets.statements.configs")
    rows = pl.read_parquet(path, columns=["id", "text"]).iter_rows()
    names = {_plain(name): row[0] for row in rows for name in row}
    inputs = Inputs(tuple(sorted(answers)), {"statements": statements}, into)
    shared = ITSELF.facts() | {"questionnaire": questionnaire, "form": "plain", "variant": ""}
    shared |= {"revision": "", "option_nats": []}
    schema = stances.SCHEMAS["multiple_choice"].arrow()
    with tempfile.TemporaryDirectory() as folder:  # nothing is kept if an answer is invalid
        draft = inputs._replace(data=Path(folder))
        for model, file in answers.items():
            table = [shared | {"model": model} | row for row in _answers(file, columns, names)]
            target = draft.outputs("stances", model) / "multiple_choice/00000.parquet"
            target.parent.mkdir(parents=True)
            pq.write_table(pa.Table.from_pylist(table, schema=schema), target)
        tables = compass.run(draft, section("analysis.compass", compass.Params))
        shutil.copytree(draft.data, into, dirs_exist_ok=True)
    yield _save("compass", compass, tables, inputs)


def _answers(path: Path, columns: Mapping[str, str], names: Mapping[str, str]) -> list[Any]:
    """Read a file of answers as rows of the outputs of ``stances`` with options to choose from."""
    try:
        lines, needed = path.suffix in (".jsonl", ".ndjson"), ("id", "response")
        sheet = [columns.get(name, name) for name in needed]
        table = pl.read_ndjson(path) if lines else _sheet(path, sheet)
        table = table.rename({column: name for name, column in columns.items()})
        defaults = {k: v for k, v in ANSWER.items() if v is not None and k not in table.columns}
        table = table.with_columns(**{k: pl.lit(v) for k, v in defaults.items()}).select(*ANSWER)
        if isinstance(table.schema["options"], pl.List):
            table = table.with_columns(pl.col("options").list.join("\n"))
        table = table.with_columns(pl.all().cast(pl.String).fill_null(""))
        table = table.with_columns(pl.col("order", "seed").cast(pl.Int64))
    except (OSError, ValueError, pl.exceptions.PolarsError) as error:
        problem = str(error).splitlines()[0]
        raise UserError(
            f"{path}: not CSV or JSON lines with the columns id and response: {problem}"
        ) from error
    ids = {name: names.get(_plain(name), "") for name in table["id"]}
    if unknown := [name for name, own in ids.items() if not own]:
        raise UserError(f"{path}: unknown statement {unknown[0]!r}; use its id or its text")
    template = pl.concat_str("template", "suffix", separator="/").str.strip_suffix("/")
    table = table.select(
        pl.col("id").replace(ids),
        *("response", "order", "seed", "options"),
        text="prompt",
        frame="template",
        template=template,
    )
    key = table.select("template", "order", "seed", "id")
    if len(again := key.filter(key.is_duplicated())):
        raise UserError(f"{path}: two answers to {again.row(0)}; number them in order or seed")
    for (prompt,), part in key.group_by("template", maintain_order=True):
        if missing := sorted(set(names.values()) - set(part["id"])):
            raise UserError(
                f"{path}: no answer to {missing[0]!r} in {prompt}; add a row without a response"
            )
    options = {text: [LABEL.sub("", o) for o in text.splitlines()] for text in table["options"]}
    return [row | {"options": options[row["options"]]} for row in table.to_dicts()]


def _sheet(path: Path, needed: list[str]) -> pl.DataFrame:
    body = path.read_bytes()
    text = decoded(gzip.decompress(body) if path.suffix == ".gz" else body)
    _, head = next(table_rows(text, ",", needed), (0, needed))
    rows = records(text, {name: name for name in map(str.strip, head)})
    return pl.DataFrame([row for _, row in rows])


def _plain(name: str) -> str:
    """Return an id or text of a statement in lower case, without padding and final stop."""
    return re.sub(r"(?<!\d)0+(?=\d)", "", name.strip().rstrip(".").casefold())


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
        text = decoded(path.read_bytes())
        items: list[tuple[str, str, float | None]]
        if path.suffix == ".json":
            lists = parsed(text, unique=True)
            items = [(q, w, float(s)) for q, pairs in lists.items() for w, s in pairs]
        else:
            listed = records(text, {name: name for name in schema}, multiline=False)
            items = [(row["query"], row["word"], decimal(row["score"])) for _, row in listed]
        rows = pl.DataFrame(items, schema=schema, orient="row")
        if path.suffix != ".json":
            rows = rows.sort("query", "score", descending=[False, True], maintain_order=True)
    except (OSError, ValueError, TypeError, AttributeError, pl.exceptions.PolarsError) as error:
        raise UserError(
            f"{path}: not lists of words (JSON: {{query: [[word, score], ...]}}; CSV: query, word, "
            f"score): {str(error).splitlines()[0]}"
        ) from error
    rows = rows.with_columns(query=pl.col("query").str.strip_chars().str.to_lowercase())
    _refuse(path, rows.filter(~pl.col("score").fill_null(np.nan).is_finite()), "no finite score")
    _refuse(path, rows.filter(pl.struct("query", "word").is_duplicated()), "a word twice")
    _refuse(path, rows.filter(pl.col("word").str.strip_chars() == ""), "no word")
    return rows


def _refuse(path: Path, rows: pl.DataFrame, problem: str) -> None:
    if len(rows):
        query, word = rows.select("query", "word").row(0)
        raise UserError(f"{path}: {problem}: {word!r} in {query!r}; correct the file")


def _profiles(path: Path, name: str) -> pl.DataFrame:
    """Read a file of profiles as rows of the table ``emotions``, one per group and affect."""
    needed = ["category", "group", *AFFECTS]
    lists = []
    try:
        text = decoded(path.read_bytes())
        counted = ["words"] if re.search(r"\bwords\b", text.partition("\n")[0]) else []
        for _, row in records(text, {n: n for n in (*needed, *counted)}, multiline=False):
            n = whole(row["words"]) if counted else WORDS
            lists += [(row["category"], row["group"], n, a, decimal(row[a])) for a in AFFECTS]
    except (OSError, ValueError) as error:
        columns = ", ".join(needed)
        raise UserError(f"{path}: not a CSV file with the columns {columns}: {error}") from error
    schema: dict[str, Any] = {"category": pl.String, "group": pl.String, "n": pl.Int64}
    schema |= {"affect": pl.String, "value": pl.Float64}
    rows = pl.DataFrame(lists, schema, orient="row").with_columns(pl.col("value") / 100)
    if rows.select("category", "group", "affect").is_duplicated().any():
        raise UserError(f"{path}: a group is repeated in its category; retain one of its lines")
    if not (rows["n"] > 0).fill_null(value=False).all():
        raise UserError(f"{path}: words must be whole numbers above 0; correct the file")
    if not rows["value"].is_between(0, 1).fill_null(value=False).all():
        raise UserError(f"{path}: percentages must be between 0 and 100")
    key = {"model": name, "language": LANGUAGE, "reading": "faithful", "level": "group"}
    rows = rows.with_columns(top_k=pl.lit(200), **{k: pl.lit(value) for k, value in key.items()})
    return sort_by_key(rows, emotions.EMOTIONS, "category", "group", "affect")
