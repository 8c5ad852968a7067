"""Analysis ``waves``: what changed between two waves of suggestions.

Compared are the queries that both waves put to an engine; each completion as the engine gave it,
whatever its flags. The measure is Jaccard's: completions of both waves over those of either,
summed over the queries of a group, a category or an engine.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from pydantic import Field

from plumbline.builders.core import front_matter, parquet
from plumbline.builders.core import inputs as contents
from plumbline.builders.core.errors import UserError
from plumbline.builders.core.schema import Column, Schema
from plumbline.builders.core.snapshot import Snapshot
from plumbline.builders.datasets.stereotypes import build as stereotypes
from plumbline.builders.datasets.stereotypes.clean import Cleaning
from plumbline.probes.stats.bootstrap import keys
from plumbline.probes.stats.estimate import Bootstrap, typed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from plumbline.probes.core.run_analysis import Inputs

FOLDER = Path("data/tables/waves")
SOURCE = "autocomplete"
CHANGES = ("appeared", "vanished", "retained")
DIGITS = 6
ALL = parquet.EVERY
COUNTS = ("earlier", "later", "retained", "moved", "shared", "either")
WHERE = (
    Column("language", "string", "locale of the waves"),
    Column("engine", "string", "search engine"),
    Column("category", "string", "category of the group; `*`: all"),
    Column("group", "string", "the group; `*`: all of the category"),
)
SCHEMAS = {
    "waves": Schema.keyed(
        WHERE,
        Column("n_queries", "int32", "queries that both waves put to the engine", minimum=0),
        Column("n_earlier", "int32", "suggestions in the earlier wave", minimum=0),
        Column("n_later", "int32", "suggestions in the later wave", minimum=0),
        Column("n_appeared", "int32", "only in the later wave", minimum=0),
        Column("n_vanished", "int32", "only in the earlier wave", minimum=0),
        Column("n_retained", "int32", "in both", minimum=0),
        Column(
            "rank_change",
            "float64",
            "mean distance between the ranks of what is in both, in places",
            nullable=True,
            minimum=0,
        ),
        Column(
            "jaccard",
            "float64",
            "retained over retained, appeared and vanished, summed over queries; null: none",
            nullable=True,
            minimum=0,
            maximum=1,
        ),
        Column("jaccard_low", "float64", "lower end of its interval", nullable=True),
        Column("jaccard_high", "float64", "upper end of its interval", nullable=True),
        Column("cluster", "string", "what was resampled: query (of one group) or group"),
        Column("clusters", "int32", "how many of them; no interval from fewer than two"),
        Column(
            "jaccard_null",
            "float64",
            "the same between each query's earlier suggestions and the later ones of every "
            "other group of the category under the same template",
            nullable=True,
        ),
    ),
    "suggestions": Schema(
        columns=(
            *WHERE,
            Column("query", "string", "the query"),
            Column("attribute", "string", "how the engine went on"),
            Column("change", "label", "what became of it", labels=CHANGES),
            Column("rank_earlier", "int32", "place in the earlier answer", nullable=True),
            Column("rank_later", "int32", "place in the later answer", nullable=True),
        ),
        key=("language", "engine", "group", "query", "attribute"),
    ),
}


class Params(Bootstrap):
    """Which waves are compared, and how."""

    earlier: str = Field(description="folder of the snapshot of a wave")
    later: str = Field(description="folder of the snapshot of a later one")
    longest_days: int = Field(
        7, ge=1, description="most days from a wave's first answer to its last"
    )


def run(_inputs: Inputs | None, params: Params) -> dict[str, pl.DataFrame]:
    """Compare two waves, in all locales that both have.

    Returned: a table for each of :data:`SCHEMAS`, sorted.

    Raises UserError if a wave cannot be used, they are not in order, they have nothing in common,
    or they put their queries in another locale or to another address of an engine.
    """
    waves = opened(params)
    requests = [wave.manifest["request"] for wave in waves]
    locales, engines = (
        sorted(set(requests[0][part]) & set(requests[1][part])) for part in ("locales", "engines")
    )
    gone = {place.split("/")[0] for request in requests for place in request.get("absent", {})}
    engines = [engine for engine in engines if engine not in gone]
    asked, found = [], []
    for language in locales:
        queries = _queries(waves, language)
        if queries.is_empty() or not engines:
            raise UserError(
                f"{params.earlier} and {params.later}: no engine got the same query in both "
                f"({language}); compare waves of the same groups and templates"
            )
        for part, name in (("locales", language), *(("engines", engine) for engine in engines)):
            one, other = (request[part][name] for request in requests)
            for field in sorted({*one, *other}):  # what differs is then not due to time alone
                if one.get(field) != other.get(field):
                    raise UserError(
                        f"{waves[0].folder} has {part}.{name}.{field} {one.get(field)!r}, "
                        f"{waves[1].folder} has {other.get(field)!r}: time is not all that "
                        "changed; compare waves of the same requests"
                    )
        first, second = (_completions(wave, language) for wave in waves)
        both = first.join(second, on=["engine", "query", "attribute"], how="full", coalesce=True)
        asked.append(pl.DataFrame({"engine": engines}).join(queries, how="cross"))
        found.append(both.join(asked[-1], on=["engine", "query"]))
    suggestions = pl.concat(found).rename({"rank": "rank_earlier", "rank_right": "rank_later"})
    ranked = [pl.col(f"rank_{name}").is_not_null() for name in ("earlier", "later")]
    changes = pl.when(~ranked[0]).then(0).when(~ranked[1]).then(1).otherwise(2)  # of CHANGES
    rows = pl.DataFrame(_levels(suggestions, pl.concat(asked), params), infer_schema_length=None)
    tables = {"waves": rows, "suggestions": suggestions.with_columns(change=changes)}
    return {
        name: typed(tables[name], of, params.confidence).sort(of.key)
        for name, of in SCHEMAS.items()
    }


def opened(params: Params) -> list[Snapshot]:
    """Return the two waves.

    Raises UserError if one is no wave, took too long, or they are not in order, or overlap.
    """
    waves = [Snapshot.open(Path(folder)) for folder in (params.earlier, params.later)]
    for wave in waves:
        if wave.manifest["source"] != SOURCE:
            raise UserError(
                f"{wave.folder}: a snapshot of {wave.manifest['source']}, not a wave of {SOURCE}"
            )
    times = [_answered(wave) for wave in waves]
    for wave, (first, last) in zip(waves, times, strict=True):
        if (last - first).total_seconds() > params.longest_days * 86400:
            raise UserError(
                f"{wave.folder}: its answers came from {first:%Y-%m-%d} to {last:%Y-%m-%d}, which "
                f"is no point in time; compare others, or raise waves.longest_days"
            )
    days = [wave.manifest["retrieved"] for wave in waves]
    if days[0] >= days[1]:
        raise UserError(
            f"{params.earlier} is of {days[0]}, {params.later} of {days[1]}: name the earlier wave "
            "first"
        )
    if times[0][1] >= times[1][0]:
        raise UserError(
            f"{params.earlier} was still being answered on {times[0][1]:%Y-%m-%d %H:%M}, when "
            f"{params.later} had begun ({times[1][0]:%Y-%m-%d %H:%M}); compare waves that do not "
            "overlap"
        )
    return waves


def _answered(wave: Snapshot) -> tuple[datetime, datetime]:
    """Return when the first and the last answer of a wave came; its day where that is not told."""
    day = f"{wave.manifest['retrieved']}T00:00:00Z"
    told = wave.manifest["request"].get("answered", {"first": day, "last": day})
    return datetime.fromisoformat(told["first"]), datetime.fromisoformat(told["last"])


def write(tables: dict[str, pl.DataFrame], params: Params, into: Path = FOLDER) -> None:
    """Write the tables, whole or not at all."""
    waves = opened(params)
    partial = parquet.fresh(into)
    for name, table in tables.items():
        schema = contents.carrying(SCHEMAS[name].arrow(), contents.of_snapshots(waves))
        parquet.write_table(table, schema, partial / f"{name}.parquet")
    sources = [w.manifest | {"source": f"{w.manifest['source']}, a wave"} for w in waves]
    command = f"python -m plumbline.probes waves {params.earlier} {params.later}"
    origin = front_matter.Origin(sources, command, params.version)
    front_matter.write(partial, {name: SCHEMAS[name] for name in tables}, origin)
    parquet.finish(into)


def short(table: pl.DataFrame) -> Iterator[str]:
    """Yield a line for each engine and category."""
    for row in table.filter(group=ALL).to_dicts():
        where = f"{row['language']} {row['engine']}"
        where += "" if row["category"] == ALL else f" {row['category']}"
        if row["jaccard"] is None:
            yield f"{where}: no suggestion in either wave"
            continue
        low, high, null, moved = (
            row[name] for name in ("jaccard_low", "jaccard_high", "jaccard_null", "rank_change")
        )
        interval = "" if None in (low, high) else f" ({low:.2f} to {high:.2f})"
        other = "" if null is None else f", of other groups {null:.2f}"
        apart = "" if moved is None else f", {moved:.1f} places apart"
        counts = (f"{row[f'n_{name}']:,} {name}" for name in ("queries", *CHANGES))
        yield f"{where}: {', '.join(counts)}{apart}; Jaccard {row['jaccard']:.2f}{interval}{other}"


def jaccard_interval(
    retained: NDArray[np.int64], either: NDArray[np.int64], params: Params, key: str
) -> tuple[float, float] | None:
    """Return the percentile interval of a ratio of sums over clusters, or None.

    ``retained``, ``either``: for each cluster, completions in both waves and in any of them; arrays
    (clusters,).
    ``key``: names the estimate: its draws follow from that and the seed, whatever else is computed.

    References
    ----------
    Efron and Tibshirani (1993), An introduction to the bootstrap, chapter 13.
    """
    if len(retained) < 2 or not either.sum():
        return None
    rng = np.random.default_rng([params.seed, int(keys([key])[0])])
    drawn = rng.integers(0, len(retained), (params.n_bootstrap, len(retained)))
    below = either[drawn].sum(axis=1)
    ratios = retained[drawn].sum(axis=1)[below > 0] / below[below > 0]
    tail = (1 - params.confidence) / 2
    low, high = np.quantile(ratios, [tail, 1 - tail])
    return float(low), float(high)


def _queries(waves: list[Snapshot], language: str) -> pl.DataFrame:
    """Return the queries of both waves, with their language, sorted by group and query."""
    first, second = (stereotypes.queries_of(wave, language) for wave in waves)
    rows = [
        (query, q.category, q.group, q.template) for query, q in first.items() if query in second
    ]
    columns = dict.fromkeys(("query", "category", "group", "template"), pl.String)
    found = pl.DataFrame(rows, columns, orient="row").sort("group", "query")
    return found.with_columns(language=pl.lit(language))


def _completions(wave: Snapshot, language: str) -> pl.DataFrame:
    """Return engine, query, attribute and rank of each completion, without any cleaning."""
    untouched = Cleaning(**{name: [] for name in Cleaning.model_fields})
    params = stereotypes.Params(
        version="0.0.0",
        snapshot=str(wave.folder),
        languages=[language],
        cleaning={wave.manifest["request"]["locales"][language]["language"]: untouched},
    )
    rows = [
        (engine, item.values["query"], item.values["attribute"], rank)
        for item in stereotypes.build(wave, params)
        if isinstance(item, parquet.Row)
        for engine, rank in zip(item.values["engines"], item.values["ranks"], strict=True)
    ]
    columns = dict.fromkeys(("engine", "query", "attribute"), pl.String) | {"rank": pl.Int64}
    return pl.DataFrame(rows, schema=columns, orient="row")


def _levels(own: pl.DataFrame, asked: pl.DataFrame, params: Params) -> Iterator[dict[str, Any]]:
    """Yield the rows of the groups, of the categories, and of all together."""
    at = ["language", "engine"]
    place, group = [*at, "category", "template"], [*at, "category", "template", "group"]
    earlier, later = (pl.col(f"rank_{name}").is_not_null() for name in ("earlier", "later"))
    counted = own.group_by(*at, "query").agg(
        earlier=earlier.sum(),
        later=later.sum(),
        retained=(earlier & later).sum(),
        moved=(pl.col("rank_later") - pl.col("rank_earlier")).abs().sum(),
    )
    # completions shared with the later answers to other groups under the template
    answers = own.filter(later).select(*place, "attribute", other="group")
    crossed = own.filter(earlier).join(answers, on=[*place, "attribute"])
    crossed = crossed.filter(pl.col("other") != pl.col("group"))
    table = asked
    for part in (counted, crossed.group_by(*at, "query").agg(shared=pl.len())):
        table = table.join(part, on=[*at, "query"], how="left", maintain_order="left")
    table = table.with_columns(pl.col(*COUNTS[:-1]).fill_null(0).cast(pl.Int64))
    # of those answers: how many groups, and completions
    others = pl.len().over(place) - pl.len().over(group)
    said = pl.col("later").sum().over(place) - pl.col("later").sum().over(group)
    table = table.with_columns(
        either=others.cast(pl.Int64) * pl.col("earlier") + said - pl.col("shared")
    )

    def share(part: float | None, whole: int) -> float | None:
        return None if part is None or not whole else round(part / whole, DIGITS)

    for by in (["category", "group"], ["category"], []):
        cluster, units = ("query", ["query"]) if "group" in by else ("group", ["category", "group"])
        for names, part in table.group_by(*at, *by, maintain_order=True):
            where = (*map(str, names), ALL, ALL)[:4]
            sums = part.group_by(units, maintain_order=True).agg(pl.col(COUNTS).sum())
            either = (sums["earlier"] + sums["later"] - sums["retained"]).to_numpy()
            kept = sums["retained"].to_numpy()
            low, high = jaccard_interval(kept, either, params, "/".join(where)) or (None, None)
            total = part.select(pl.col(COUNTS).sum()).row(0, named=True)
            yield dict(zip(SCHEMAS["waves"].key, where, strict=True)) | {
                "n_queries": len(part),
                **{f"n_{name}": total[name] for name in ("earlier", "later", "retained")},
                "n_appeared": total["later"] - total["retained"],
                "n_vanished": total["earlier"] - total["retained"],
                "rank_change": share(total["moved"], total["retained"]),
                "jaccard": share(total["retained"], int(either.sum())),
                "jaccard_low": share(low, 1),
                "jaccard_high": share(high, 1),
                "cluster": cluster,
                "clusters": len(sums),
                "jaccard_null": share(total["shared"], total["either"]),
            }
