"""Versions of datasets, outputs and tables as builds write them, for tests of comparing."""

import json
from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from imports import TOP

from plumbline.builders.__main__ import main
from plumbline.builders.core import front_matter
from plumbline.builders.core import parquet as store
from plumbline.builders.core.schema import Column, Schema
from plumbline.builders.datasets.lexica import build as lexica
from plumbline.builders.datasets.politicians import build as politicians
from plumbline.builders.release import card

MADE = {m.__name__.split(".")[-2]: m.SCHEMA for m in (lexica, politicians)}
ESTIMATE = Schema(
    columns=(
        Column("language", "string", "its language"),
        Column("word", "string", "the word"),
        Column("model", "string", "the model"),
        Column("value", "float64", "the estimate", nullable=True),
        Column("low", "float64", "lower end", nullable=True),
        Column("high", "float64", "upper end", nullable=True),
        Column("p_bh", "float64", "adjusted p", nullable=True),
    ),
    key=("language", "word"),
)
BORN = date(1950, 1, 1)
EMPTY = {"string": "", "bool": False, "label": 0, "date32": BORN}


def write(folder, schemas, rows, *, rejects=(), version="1.0.0", page="datasets/words"):
    """Write a version: rows by config, what they leave out filled with what is least."""
    folder = Path(folder)
    partial = store.fresh(folder)
    by_config = schemas if isinstance(schemas, dict) else dict.fromkeys(rows, schemas)
    for config, some in rows.items():
        schema = by_config[config]
        whole = [{c.name: empty(c) for c in schema.columns} | row for row in some]
        table = pa.Table.from_pylist(whole, schema=schema.arrow())
        pq.write_table(table, partial / f"{config}.parquet")
    listed = [store.Reject(*reject)._asdict() for reject in rejects]
    table = pa.Table.from_pylist(listed, schema=store.REJECTED.arrow())
    pq.write_table(table, partial / store.REJECTS)
    about = dict.fromkeys(("source", "address", "retrieved", "licence", "citation"), "x")
    origin = front_matter.Origin([about], "make it", version)
    front_matter.write(partial, {c: by_config[c] for c in rows}, origin)
    for name, body in card.render(partial, TOP / f"docs/{page}.md").items():
        (partial / name).write_bytes(body)
    store.finish(folder)
    return folder


def empty(column):
    if column.nullable:
        return None
    return EMPTY.get(column.kind, [] if column.kind in ("strings", "integers", "floats") else 0)


def person(qid, name, gender="male", **more):
    code = politicians.SCHEMA["gender"].code(gender)
    return {"qid": qid, "name": name, "gender": code} | more


def word(text, positive=0.0, negative=0.0, **more):
    return {"word": text, "q_positive": positive, "q_negative": negative} | more


def estimate(text, value=0.0, low=-1.0, high=1.0, p_bh=1.0, **more):
    facts = {"language": "en", "word": text, "value": value, "low": low, "high": high}
    return facts | {"p_bh": p_bh, "model": "m"} | more


def compared(capsys, name, *words, first="./a", second="./b"):
    """Return what is told of two versions, as JSON or as lines."""
    status = main(["diff", name, first, second, *words])
    said = capsys.readouterr()
    assert status == 0, said.err
    return json.loads(said.out) if "--json" in words else said.out.splitlines()


def failed(capsys, *words) -> str:
    """Return the one sentence that a comparison ends with, and no word besides."""
    assert main(["diff", *words]) == 1
    said = capsys.readouterr()
    assert not said.out
    assert said.err.startswith("error: ")
    assert said.err.count("\n") == 1
    return said.err
