"""Analysis ``waves``: changes between two snapshots (waves) of suggestions.

Queries that were sent to an engine in both snapshots are compared by their original completions,
whether flagged or not. The measure is the Jaccard index: the number of completions in both
snapshots divided by that in either, each summed over the queries of a group, category or engine.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from pydantic import Field

from plumbline.builders.core import parquet
from plumbline.builders.core.errors import UserError
from plumbline.builders.core.front_matter import Origin
from plumbline.builders.core.schema import Column, Schema
from plumbline.builders.core.snapshot import Snapshot, manifest_digests
from plumbline.builders.datasets.stereotypes import build as stereotypes
from plumbline.builders.datasets.stereotypes.clean import Cleaning
from plumbline.probes.core.run_analysis import write_tables
from plumbline.probes.stats.bootstrap import keys
from plumbline.probes.stats.estimate import Bootstrap, Estimate, Table, estimates, finite, typed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from plumbline.probes.core.run_analysis import Inputs

FOLDER = Path("data/tables/waves")
SOURCE = "autocomplete"
LONGEST_DAYS = 7  # maximum number of days from the first response in a snapshot to the last
CHANGES = ("appeared", "vanished", "retained")
ALL = parquet.EVERY
COUNTS = ("earlier", "later", "retained", "shared", "either")
WHERE = (
    Column("language", "string", "locale of the snapshots"),
    Column("engine", "string", "search engine"),
    Column("category", "string", "category of the group; `*` for all categories"),
    Column("group", "string", "social group; `*` for all groups of the category"),
)
SCHEMAS = {
    "waves": Schema.keyed(
        WHERE,
        *estimates(
            cluster="query for rows of a group, otherwise group",
            method="bootstrap percentile; value: Jaccard index, retained / all suggestions",
        ),
        Column("appeared", "int32", "suggestions only in the later snapshot", minimum=0),
        Column("vanished", "int32", "suggestions only in the earlier snapshot", minimum=0),
        Column("retained", "int32", "suggestions in both snapshots", minimum=0),
        Column(
            "other_groups",
            "float64",
            "Jaccard index between each query's earlier suggestions and the later ones for other "
            "groups of its category in the same template",
            nullable=True,
        ),
    ),
    "suggestions": Schema(
        columns=(
            *WHERE,
            Column("query", "string", "the query"),
            Column("attribute", "string", "completion suggested by the engine"),
            Column("change", "category", "change between the snapshots", labels=CHANGES),
        ),
        key=("language", "engine", "group", "query", "attribute"),
    ),
}


class Params(Bootstrap):
    """Snapshots to compare, and settings of intervals."""

    earlier: str = Field(description="folder of the earlier snapshot")
    later: str = Field(description="folder of the later snapshot")


def run(_inputs: Inputs | None, params: Params) -> dict[str, pl.DataFrame]:
    """Compare two snapshots in their common locales.

    Raises UserError if a snapshot is invalid, or if the snapshots are not in order, have no queries
    in common, or differ in the settings of a locale or engine.
    """
    waves = open_waves(params)
    names = f"{params.earlier} and {params.later}"
    old, new = (wave.manifest["request"] for wave in waves)
    absent = {name.split("/")[0] for part in (old, new) for name in part.get("absent", {})}
    locales = sorted(old["locales"].keys() & new["locales"].keys())
    engines = sorted((old["engines"].keys() & new["engines"].keys()) - absent)
    for part, common in (("locales", locales), ("engines", engines)):
        if changed := [name for name in common if old[part][name] != new[part][name]]:
            raise UserError(
                f"{names}: {part}.{changed[0]} differs; compare snapshots of the same requests"
            )
    queries, suggestions = [], []
    for language in locales:
        shared = _queries(waves, language)
        if shared.is_empty() or not engines:
            raise UserError(
                f"{names}: no engine has a query in both ({language}); compare snapshots of the "
                "same groups and templates"
            )
        queries.append(pl.DataFrame({"engine": engines}).join(shared, how="cross"))
        first, second = (_completions(wave, language) for wave in waves)
        key = ["engine", "query", "attribute"]
        completions = first.with_columns(earlier=True).join(
            second.with_columns(later=True), on=key, how="full", coalesce=True
        )
        suggestions.append(completions.join(queries[-1], on=["engine", "query"]))
    table = pl.concat(suggestions).with_columns(pl.col("earlier", "later").fill_null(value=False))
    appeared, vanished, retained = map(pl.lit, CHANGES)
    change = pl.when("earlier", "later").then(retained).when("later").then(appeared)
    schema, rows = SCHEMAS["suggestions"], Table(SCHEMAS["waves"], params.confidence)
    _add_levels(rows, table, pl.concat(queries), params)
    table = typed(table.with_columns(change=change.otherwise(vanished)), schema, None)
    return {"waves": rows.frame().sort(rows.schema.key), "suggestions": table.sort(schema.key)}


def open_waves(params: Params) -> list[Snapshot]:
    """Return both snapshots; raise UserError if a source, a duration or their order is wrong."""
    waves, times = [Snapshot.open(Path(folder)) for folder in (params.earlier, params.later)], []
    for wave in waves:
        source, day = wave.manifest["source"], f"{wave.manifest['retrieved']}T00:00:00Z"
        if source != SOURCE:
            raise UserError(f"{wave.folder}: a snapshot of {SOURCE} was expected, not of {source}")
        answered = wave.manifest["request"].get("answered", {"first": day, "last": day})
        first, last = (datetime.fromisoformat(answered[end]) for end in ("first", "last"))
        if (last - first).total_seconds() > LONGEST_DAYS * 86400:
            raise UserError(
                f"{wave.folder}: responses from {first:%Y-%m-%d} to {last:%Y-%m-%d}; compare "
                f"snapshots of at most {LONGEST_DAYS} days"
            )
        times += [first, last]
    if times[1] >= times[2]:
        raise UserError(
            f"{params.earlier}: does not end before {params.later}; name the earlier snapshot first"
        )
    return waves


def write(tables: dict[str, pl.DataFrame], params: Params, into: Path = FOLDER) -> None:
    """Write the tables as one atomic operation."""
    waves = open_waves(params)
    hashes = {Path(path): sha256 for path, sha256 in manifest_digests(waves).items()}
    sources = [w.manifest | {"source": f"{w.manifest['source']}, a wave"} for w in waves]
    command = f"python -m plumbline.probes waves {params.earlier} {params.later}"
    write_tables(into, tables, SCHEMAS, hashes, Origin(sources, command, params.version))


def short(table: pl.DataFrame) -> Iterator[str]:
    """Yield a line of text for each engine and category."""
    for row in table.filter(group=ALL).to_dicts():
        where = f"{row['language']} {row['engine']}"
        where += "" if row["category"] == ALL else f" {row['category']}"
        if row["value"] is None:
            yield f"{where}: no suggestion in either wave"
            continue
        interval = "" if row["low"] is None else f" ({row['low']:.2f} to {row['high']:.2f})"
        similarity, counts = row["other_groups"], ", ".join(f"{row[x]:,} {x}" for x in CHANGES)
        others = "" if similarity is None else f", of other groups {similarity:.2f}"
        yield f"{where}: {counts}; Jaccard {row['value']:.2f}{interval}{others}"


def jaccard_interval(
    retained: NDArray[np.int64], either: NDArray[np.int64], params: Params, key: str
) -> tuple[float, float]:
    """Return the percentile interval of a ratio of sums over clusters; nan if there is only one.

    ``retained``, ``either``: number of completions in both snapshots, and in either, by cluster.
    ``key``: name of the estimate; the draws depend on it and on the seed. Efron and Tibshirani
    (1993), An introduction to the bootstrap, chapter 13.
    """
    if len(retained) < 2 or not either.sum():
        return np.nan, np.nan
    rng = np.random.default_rng([params.seed, int(keys([key])[0])])
    draws = rng.integers(0, len(retained), (params.n_bootstrap, len(retained)))
    below = either[draws].sum(axis=1)
    ratios = retained[draws].sum(axis=1)[below > 0] / below[below > 0]
    tail = (1 - params.confidence) / 2
    low, high = np.quantile(ratios, [tail, 1 - tail])
    return float(low), float(high)


def _queries(waves: list[Snapshot], language: str) -> pl.DataFrame:
    """Return the queries in both snapshots, with their language, sorted by group and query."""
    first, second = (stereotypes.queries_of(wave, language) for wave in waves)
    rows = [
        (query, language, q.category, q.group, q.template)
        for query, q in first.items()
        if query in second
    ]
    columns = dict.fromkeys(("query", "language", "category", "group", "template"), pl.String)
    return pl.DataFrame(rows, columns, orient="row").sort("group", "query")


def _completions(wave: Snapshot, language: str) -> pl.DataFrame:
    """Return the engine, query and attribute of each completion, without cleaning attributes."""
    untouched = Cleaning(**{name: [] for name in Cleaning.model_fields})
    params = stereotypes.Params(
        version="0.0.0",
        snapshot=str(wave.folder),
        languages=[language],
        cleaning={wave.manifest["request"]["locales"][language]["language"]: untouched},
    )
    rows = [
        (engine, item.values["query"], item.values["attribute"])
        for item in stereotypes.build(wave, params)
        if isinstance(item, parquet.Row)
        for engine in item.values["engines"]
    ]
    columns = dict.fromkeys(("engine", "query", "attribute"), pl.String)
    return pl.DataFrame(rows, schema=columns, orient="row")


def _add_levels(
    rows: Table, suggestions: pl.DataFrame, queries: pl.DataFrame, params: Params
) -> None:
    """Add rows for groups, for categories, and for all groups together."""
    source = ["language", "engine"]
    template = [*source, "category", "template"]
    counted = suggestions.group_by(*source, "query").agg(
        pl.col("earlier", "later").sum(), retained=pl.all_horizontal("earlier", "later").sum()
    )
    # count earlier completions that occur later for other groups in the same template
    answers = suggestions.filter("later").select(*template, "attribute", other="group")
    crossed = suggestions.filter("earlier").join(answers, on=[*template, "attribute"])
    crossed = crossed.filter(pl.col("other") != pl.col("group"))
    table = queries
    for part in (counted, crossed.group_by(*source, "query").agg(shared=pl.len())):
        table = table.join(part, on=[*source, "query"], how="left", maintain_order="left")
    table = table.with_columns(pl.col(*COUNTS[:-1]).fill_null(0).cast(pl.Int64))
    # count the queries for other groups, and their later completions
    number, completions = (
        x.over(template) - x.over(*template, "group") for x in (pl.len(), pl.col("later").sum())
    )
    either = number.cast(pl.Int64) * pl.col("earlier") + completions - pl.col("shared")
    table = table.with_columns(either=either)
    for by in (["category", "group"], ["category"], []):
        units = ["query"] if "group" in by else ["category", "group"]
        for names, part in table.group_by(*source, *by, maintain_order=True):
            where = (*map(str, names), ALL, ALL)[:4]
            sums = part.group_by(units, maintain_order=True).agg(pl.col(COUNTS).sum())
            retained = sums["retained"].to_numpy()
            union = (sums["earlier"] + sums["later"] - sums["retained"]).to_numpy()
            ends = jaccard_interval(retained, union, params, "/".join(where))
            total = sums.sum().row(0, named=True)
            rows.add(
                Estimate(_ratio(total["retained"], int(union.sum())), *ends, len(sums)),
                **dict[str, Any](zip(rows.schema.key, where, strict=True)),
                appeared=total["later"] - total["retained"],
                vanished=total["earlier"] - total["retained"],
                retained=total["retained"],
                other_groups=finite(_ratio(total["shared"], total["either"])),
            )


def _ratio(part: int, total: int) -> float:
    return part / total if total else float("nan")
