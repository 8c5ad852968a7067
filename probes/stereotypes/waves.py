"""What changed between two waves of suggestions: two tables, and a few lines to read.

Compared are the queries that both waves put to an engine; each completion as the engine gave it,
whatever its flags. The measure is Jaccard's: completions of both waves over those of either,
summed over the queries of a group, a category or an engine.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import Field

from plumbline.builders.core import front_matter, inputs
from plumbline.builders.core import parquet as store
from plumbline.builders.core.errors import Problem
from plumbline.builders.core.params import Params as Section
from plumbline.builders.core.schema import Column, Schema
from plumbline.builders.core.snapshot import Snapshot

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from types import ModuleType

    import numpy as np

TABLES = Path("data/tables/drift")
PAGE = Path("docs/analyses/drift.md")
CHANGES = ("appeared", "vanished", "kept")
DIGITS = 6
_WHERE = (
    Column("language", "string", "locale of the waves"),
    Column("engine", "string", "engine that was asked"),
    Column("category", "string", "category of the group; `*`: all"),
    Column("group", "string", "the group; `*`: all of the category"),
)
SCHEMAS = {
    "drift": Schema(
        columns=(
            *_WHERE,
            Column("queries", "int32", "queries that both waves put to the engine", minimum=0),
            Column("earlier", "int32", "suggestions in the earlier wave", minimum=0),
            Column("later", "int32", "suggestions in the later wave", minimum=0),
            Column("appeared", "int32", "only in the later wave", minimum=0),
            Column("vanished", "int32", "only in the earlier wave", minimum=0),
            Column("kept", "int32", "in both", minimum=0),
            Column(
                "rank_change",
                "float64",
                "mean distance between the ranks of what was kept, in places",
                nullable=True,
                minimum=0,
            ),
            Column(
                "jaccard",
                "float64",
                "kept / (kept + appeared + vanished), summed over queries; null without any",
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
        key=("language", "engine", "category", "group"),
    ),
    "suggestions": Schema(
        columns=(
            *_WHERE,
            Column("query", "string", "what was asked"),
            Column("attribute", "string", "how the engine went on"),
            Column("change", "label", "what became of it", labels=CHANGES),
            Column("rank_earlier", "int32", "place in the earlier answer", nullable=True),
            Column("rank_later", "int32", "place in the later answer", nullable=True),
        ),
        key=("language", "engine", "group", "query", "attribute"),
    ),
}


class Params(Section):
    """Which waves are compared, and how."""

    version: str = Field(pattern=r"^\d+\.\d+\.\d+$", description="version of the tables")
    earlier: str = Field(description="folder of the snapshot of a wave")
    later: str = Field(description="folder of the snapshot of a later one")
    bootstrap: int = Field(2000, ge=100, description="draws for the intervals")
    confidence: float = Field(0.95, gt=0, lt=1, description="of the intervals")
    seed: int = Field(1, ge=0, description="of the draws")


class Asked(NamedTuple):
    """One query that both waves put to an engine, and the rank of each completion in them."""

    category: str
    group: str
    template: str
    query: str
    earlier: dict[str, int]
    later: dict[str, int]


def compare(module: ModuleType, dataset: Any, params: Params) -> dict[str, list[dict[str, Any]]]:
    """Compare two waves, built in memory with the same params.

    Parameters
    ----------
    module
        The dataset's: ``build`` and ``asked``.
    dataset
        Its params.

    Returns
    -------
    dict
        The rows of each of :data:`SCHEMAS`, sorted.

    Raises
    ------
    Problem
        If a wave cannot be used, they are not in order, they have nothing in common, or they put
        their queries in another locale or to another address of an engine.
    """
    waves = [Snapshot.open(Path(folder)) for folder in (params.earlier, params.later)]
    for wave in waves:
        if wave.manifest["source"] != dataset.source:
            raise Problem(
                f"{wave.folder}: a snapshot of {wave.manifest['source']}, not a wave of "
                f"{dataset.source}"
            )
    days = [wave.manifest["retrieved"] for wave in waves]
    if days[0] >= days[1]:
        raise Problem(
            f"{params.earlier} is of {days[0]}, {params.later} of {days[1]}: name the earlier wave "
            "first"
        )
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in SCHEMAS}
    for language in dataset.languages:
        only = dataset.model_copy(update={"languages": [language], "published": []})
        known = [module.asked(wave, language) for wave in waves]
        both = {query: about for query, about in known[0].items() if query in known[1]}
        names = [set(wave.manifest["request"]["engines"]) for wave in waves]
        if not both or not names[0] & names[1]:
            raise Problem(
                f"{params.earlier} and {params.later}: no engine was asked the same query in both "
                f"({language}); compare waves of the same groups and templates"
            )
        _alike(waves, "locales", language)
        for engine in sorted(names[0] & names[1]):
            _alike(waves, "engines", engine)
        said = [
            _completions(module.build(wave, only), queries)
            for wave, queries in zip(waves, known, strict=True)
        ]
        for engine in sorted(names[0] & names[1]):
            asked = [
                Asked(
                    about.category,
                    about.group,
                    about.template,
                    query,
                    *(one.get((engine, query), {}) for one in said),
                )
                for query, about in sorted(both.items(), key=lambda q: (q[1].group, q[0]))
            ]
            found["drift"] += _levels(asked, {"language": language, "engine": engine}, params)
            found["suggestions"] += _suggestions(asked, {"language": language, "engine": engine})
    for name, rows in found.items():
        rows.sort(key=itemgetter(*SCHEMAS[name].key))
    return found


def _alike(waves: list[Snapshot], part: str, name: str) -> None:
    """Refuse waves that asked in different ways: what differs is then not due to time alone."""
    told = [wave.manifest["request"][part][name] for wave in waves]
    for field in sorted({*told[0], *told[1]}):
        values = [one.get(field) for one in told]
        if values[0] != values[1]:
            raise Problem(
                f"{waves[0].folder} has {part}.{name}.{field} {values[0]!r}, {waves[1].folder} has "
                f"{values[1]!r}: time is not all that changed; compare waves that were asked alike"
            )


def write(
    found: dict[str, list[dict[str, Any]]], params: Params, dataset: str, into: Path = TABLES
) -> None:
    """Write the tables with their card, whole or not at all."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    waves = [Snapshot.open(Path(folder)) for folder in (params.earlier, params.later)]
    read = inputs.of_snapshots(waves)
    partial = store.fresh(into)
    for name, rows in found.items():
        table = pa.Table.from_pylist(rows, schema=inputs.carrying(SCHEMAS[name].arrow(), read))
        pq.write_table(table, partial / f"{name}.parquet", compression="zstd", version="2.6")
    origin = front_matter.Origin(
        [wave.manifest | {"source": f"{wave.manifest['source']}, a wave"} for wave in waves],
        f"python -m plumbline.builders drift {dataset} {params.earlier} {params.later}",
        params.version,
    )
    front_matter.write(partial, {name: SCHEMAS[name] for name in found}, origin)
    store.finish(into)


def short(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Yield a line for each engine and category, in words and figures."""
    for row in rows:
        if row["group"] != store.EVERY:
            continue
        where = "" if row["category"] == store.EVERY else f" {row['category']}"
        if row["jaccard"] is None:
            yield f"{row['language']} {row['engine']}{where}: no suggestion in either wave"
            continue
        ends = [row[name] for name in ("jaccard_low", "jaccard_high")]
        interval = "" if None in ends else f" ({ends[0]:.2f} to {ends[1]:.2f})"
        null = row["jaccard_null"]
        other = "" if null is None else f", of other groups {null:.2f}"
        moved = "" if row["rank_change"] is None else f", {row['rank_change']:.1f} places apart"
        yield (
            f"{row['language']} {row['engine']}{where}: {row['queries']:,} queries, "
            f"{row['appeared']:,} appeared, {row['vanished']:,} vanished, {row['kept']:,} kept"
            f"{moved}; Jaccard {row['jaccard']:.2f}{interval}{other}"
        )


def jaccard_interval(
    kept: np.ndarray[Any, Any], either: np.ndarray[Any, Any], params: Params, key: str
) -> tuple[float, float] | None:
    """Return the percentile interval of a ratio of sums over clusters, or None.

    Parameters
    ----------
    kept, either
        For each cluster, completions in both waves and in any of them; arrays (clusters,).
    key
        Names the estimate: its draws follow from that and the seed, whatever else is computed.

    References
    ----------
    Efron and Tibshirani (1993), An introduction to the bootstrap, chapter 13.
    """
    import numpy as np

    if len(kept) < 2 or not either.sum():
        return None
    digest = hashlib.blake2b(key.encode(), digest_size=8).digest()
    rng = np.random.default_rng([params.seed, int.from_bytes(digest, "little")])
    drawn = rng.integers(0, len(kept), (params.bootstrap, len(kept)))
    below = either[drawn].sum(axis=1)
    ratios = kept[drawn].sum(axis=1)[below > 0] / below[below > 0]
    tail = (1 - params.confidence) / 2
    low, high = np.quantile(ratios, [tail, 1 - tail])
    return float(low), float(high)


def _completions(
    items: Iterable[Any], known: Mapping[str, Any]
) -> dict[tuple[str, str], dict[str, int]]:
    """Return the rank of each completion, by engine and query; key terms put back."""
    found: dict[tuple[str, str], dict[str, int]] = defaultdict(dict)
    for item in items:
        if not isinstance(item, store.Row):
            continue
        query, rest = item.values["query"], ""
        while query not in known:
            query, _, word = query.rpartition(" ")
            rest = f"{word} {rest}"
        for engine, rank in zip(item.values["engines"], item.values["ranks"], strict=True):
            found[engine, query][rest + item.values["attribute"]] = rank
    return found


def _levels(asked: list[Asked], where: dict[str, str], params: Params) -> Iterator[dict[str, Any]]:
    """Yield the rows of the groups, of the categories, and of all together."""
    parts: dict[tuple[str, str], list[Asked]] = defaultdict(list)
    for one in asked:
        for key in (
            (one.category, one.group),
            (one.category, store.EVERY),
            (store.EVERY, store.EVERY),
        ):
            parts[key].append(one)
    by_place: dict[tuple[str, str], list[Asked]] = defaultdict(list)
    for one in asked:
        by_place[one.category, one.template].append(one)
    crossed = {one.query: _crossed(one, by_place[one.category, one.template]) for one in asked}
    for (category, group), part in parts.items():
        cluster = "group" if group == store.EVERY else "query"
        yield (
            where
            | {"category": category, "group": group}
            | _estimates(
                part, cluster, crossed, params, "/".join([*where.values(), category, group])
            )
        )


def _estimates(
    part: list[Asked],
    cluster: str,
    crossed: dict[str, tuple[int, int]],
    params: Params,
    key: str,
) -> dict[str, Any]:
    import numpy as np

    units: dict[tuple[str, ...], list[int]] = defaultdict(lambda: [0, 0])
    moved = []
    for one in part:
        unit = units[(one.category, one.group) if cluster == "group" else (one.query,)]
        unit[0] += len(one.earlier.keys() & one.later.keys())
        unit[1] += len(one.earlier.keys() | one.later.keys())
        moved += [abs(one.later[a] - one.earlier[a]) for a in one.earlier.keys() & one.later.keys()]
    counts = np.array(list(units.values()), dtype=np.int64)
    kept, either = (int(n) for n in counts.sum(axis=0))
    earlier, later = (sum(len(one[i]) for one in part) for i in (4, 5))
    ends = jaccard_interval(counts[:, 0], counts[:, 1], params, key)
    by_chance = [sum(crossed[one.query][i] for one in part) for i in (0, 1)]
    return {
        "queries": len(part),
        "earlier": earlier,
        "later": later,
        "appeared": later - kept,
        "vanished": earlier - kept,
        "kept": kept,
        "rank_change": round(sum(moved) / len(moved), DIGITS) if moved else None,
        "jaccard": round(kept / either, DIGITS) if either else None,
        "jaccard_low": round(ends[0], DIGITS) if ends else None,
        "jaccard_high": round(ends[1], DIGITS) if ends else None,
        "cluster": cluster,
        "clusters": len(units),
        "jaccard_null": round(by_chance[0] / by_chance[1], DIGITS) if by_chance[1] else None,
    }


def _crossed(one: Asked, place: list[Asked]) -> tuple[int, int]:
    """Return completions shared with, and in any of, other groups' later answers, summed."""
    shared = either = 0
    for other in place:
        if other.group != one.group:
            shared += len(one.earlier.keys() & other.later.keys())
            either += len(one.earlier.keys() | other.later.keys())
    return shared, either


def _suggestions(asked: list[Asked], where: dict[str, str]) -> Iterator[dict[str, Any]]:
    for one in asked:
        for attribute in sorted(one.earlier.keys() | one.later.keys()):
            ranks = one.earlier.get(attribute), one.later.get(attribute)
            change = "appeared" if ranks[0] is None else "vanished" if ranks[1] is None else "kept"
            yield where | {
                "category": one.category,
                "group": one.group,
                "query": one.query,
                "attribute": attribute,
                "change": CHANGES.index(change),
                "rank_earlier": ranks[0],
                "rank_later": ranks[1],
            }
