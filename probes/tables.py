"""Running an analysis over a model's outputs, into loadable tables."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from builders.lib import card, store
from builders.lib.params import section
from builders.lib.problem import Problem
from probes.analysis import pmi

OUTPUTS = Path("data/outputs")
MODELS = Path("data/models")
TABLES = Path("data/tables")
PAGES = Path("docs/analyses")


def analyse(name: str) -> Path:
    """Run the analysis ``pmi`` for one model and return the folder of its tables.

    Raises
    ------
    Problem
        If the outputs are not there, or the params are wrong.
    """
    params = section("analysis.pmi", pmi.Params)
    outputs = OUTPUTS / "associations" / name
    if not (outputs / "README.md").is_file():
        raise Problem(f"{outputs}: no outputs; run `make repro STAGE=associations@{name}` first")
    people = store.require_validated("politicians")
    final = TABLES / "pmi" / name
    found = pmi.run(outputs, people, MODELS / name, params)
    partial = store.fresh(final)
    counts = store.Counts(Counter())
    for table, frame in found.items():
        store.write_table(frame, pmi.SCHEMAS[table].arrow(), partial / f"{table}.parquet")
        counts.rows[table] = len(frame)
    origin = card.Origin(
        [
            {
                "source": "outputs of the probe associations",
                "address": str(outputs),
                "retrieved": f"with sha256 {store.fingerprint(outputs)[:16]}",
                "licence": "as their card states",
                "citation": "their card",
            }
        ],
        f"make repro STAGE=pmi@{name}",
        params.version,
    )
    schemas = {table: pmi.SCHEMAS[table] for table in found}
    card.write(partial, PAGES / "pmi.md", schemas, counts, origin)
    store.finish(final)
    return final
