"""Comparing two versions of a dataset, of outputs or of tables, by what they mean.

``diff.txt.j2`` is the report in words; docs/howto/versions.md says what each key of the JSON holds.
"""

from __future__ import annotations

import filecmp
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl
from pydantic_core import to_json

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.parquet import REJECTS
from plumbline.builders.core.schema import Schema
from plumbline.builders.release.terms import MADE, folder_of
from plumbline.builders.versions import resolve
from plumbline.builders.versions.compare import (
    AFTER,
    BEFORE,
    CHANGES,
    SIGNIFICANT,
    WHEN,
    Compared,
    Key,
    Side,
    compare,
    match,
    moved,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plumbline.builders.versions.resolve import Version

LIMIT = 10  # of every list, unless --all is given
WIDTH = 60  # of a text
CONFIGS = "configs"
UNITS = {"outputs": ("response", "responses"), "tables": ("estimate", "estimates")}
RANKED = ("word", "token")  # in lists of a model a row is named by what is at a rank
Pair = tuple[Side | None, Side | None]  # None: that version has not got the config


class Rejected(NamedTuple):
    """Input rows that are not in the dataset for one reason, in both versions."""

    config: str
    reason: str
    before: int
    after: int


@dataclass
class Across:
    """What differs of things that stand in several configs, each listed once."""

    added: pl.DataFrame  # in no config before
    removed: pl.DataFrame  # in no config after
    changes: dict[str, pl.DataFrame]


@dataclass
class Difference:
    """All that differs between two versions."""

    name: str
    kind: str
    schema: Schema
    versions: tuple[Version, Version]
    added: dict[str, int] = field(default_factory=dict)  # configs, and their rows
    removed: dict[str, int] = field(default_factory=dict)
    configs: dict[str, Compared] = field(default_factory=dict)
    rejects: list[Rejected] = field(default_factory=list)
    across: Across | None = None

    @property
    def any(self) -> bool:
        """Whether anything differs; the text of a card is not looked at."""
        rejects = any(one.before != one.after for one in self.rejects)
        return bool(self.added or self.removed or rejects) or any(
            found.any for found in self.configs.values()
        )

    @property
    def cards_differ(self) -> bool:
        """Whether both have a card, of different text."""
        texts = {version.card.text for version in self.versions}
        return len(texts - {""}) > 1


def diff(
    named: str, first: str, second: str, *, schema: Schema | None = None, only: tuple[str, ...] = ()
) -> Difference:
    """Compare two versions.

    Parameters
    ----------
    named
        A dataset's name, or a folder of outputs or tables.
    first, second
        The versions, see :func:`plumbline.builders.versions.resolve.find`.
    schema
        Of a dataset that the project has: its key and roles; else what the versions state.
    only
        Configs to compare; empty: all.

    Raises
    ------
    UserError
        If a version cannot be read, or a config is in neither.
    """
    folder = folder_of(named, MADE)
    kind = folder.parts[1]
    schema = schema or Schema((), (), UNITS.get(kind, ("row", "rows")))
    with TemporaryDirectory() as scratch:
        one, other = (resolve.find(rev, folder, Path(scratch)) for rev in (first, second))
        found = Difference(folder.relative_to("data").as_posix(), kind, schema, (one, other))
        sides = _sides(found.versions, only)
        for config, (before, after) in sides.items():
            if before and after:
                key = _key(found, config, (before, after))
                found.configs[config] = _config((before, after), key, schema, kind)
            elif before:
                found.removed[config] = before.rows()
            elif after:
                found.added[config] = after.rows()
        found.rejects = _rejects(found.versions, only)
        if schema.across:
            found.across = _across(found, sides)
    return found


def _sides(both: tuple[Version, Version], only: tuple[str, ...]) -> dict[str, Pair]:
    """Return each config in each version, None where a version has not got it."""
    ways = [_configs(version) for version in both]
    names = sorted({*ways[0], *ways[1]})
    for config in only:
        if config not in names:
            raise UserError(
                f"--config {config}: in neither version; there are {', '.join(names) or 'none'}"
            )
    return {
        name: (ways[0].get(name), ways[1].get(name)) for name in names if not only or name in only
    }


def _configs(version: Version) -> dict[str, Side]:
    """Return the configs of a version, as its card has them, else as its files are called."""
    files: dict[str, list[Path]] = {}
    for name, path in version.files.items():
        config = version.card.config(name) if version.card.files else name.split("/")[0]
        if config and name != REJECTS:
            files.setdefault(config.removesuffix(resolve.PARQUET), []).append(path)
    found = {}
    for name, paths in files.items():
        labels = version.card.labels.get(name, {})
        kinds = Side(paths, {}).types() if labels else {}
        coded = {c: names for c, names in labels.items() if "int" in kinds.get(c, "")}
        found[name] = Side(paths, coded)
    return found


def _key(found: Difference, config: str, sides: tuple[Side, Side]) -> Key:
    """Return what names a row: by the schema, else by a card, else all columns of text."""
    types = [side.types() for side in sides]
    shared = [column for column in types[1] if column in types[0]]
    stated = [(v.card.keys.get(config, ()), "card") for v in reversed(found.versions)]
    for columns, source in [(found.schema.key, "schema"), *stated]:
        if columns and {*columns} <= {*shared}:
            better = next((c for c in RANKED if c in shared), "")
            if found.kind == "outputs" and better and better not in columns:
                columns = tuple(better if c == "rank" else c for c in columns)  # noqa: PLW2901
            return Key(columns, source)
    texts = tuple(c for c in shared if all(t[c].startswith(("str", "label")) for t in types))
    return Key(texts, "all columns of text") if texts else Key((), "order of the rows")


def _config(sides: tuple[Side, Side], key: Key, schema: Schema, kind: str) -> Compared:
    one, other = sides
    if (
        one.labels == other.labels
        and len(one.paths) == len(other.paths)
        and all(map(_same_bytes, one.paths, other.paths))
    ):
        none = one.read(key.columns).clear()
        return Compared((one.rows(), one.rows()), key, none, none)
    matched = match(sides, key)
    found = compare(sides, matched, schema.role("label"))
    found.moved = moved(sides, matched, found, schema, kind)
    return found


def _same_bytes(one: Path, other: Path) -> bool:
    return filecmp.cmp(one, other, shallow=False)


def _rejects(both: tuple[Version, Version], only: tuple[str, ...]) -> list[Rejected]:
    """Return rejects by config and reason, those of no config among them."""
    kinds = {"config": pl.String, "reason": pl.String, "number": pl.Int64}
    frames = []
    for version, when in zip(both, WHEN, strict=True):
        frame = pl.DataFrame(schema=kinds)
        if REJECTS in version.files:
            frame = Side([version.files[REJECTS]], {}).read(kinds)
        frames.append(frame.rename({"number": when}))
    summed = pl.concat(frames, how="diagonal").group_by("config", "reason").sum()
    rows = summed.select(*Rejected._fields).sort("config", "reason").iter_rows()
    return [Rejected(*row) for row in rows if not only or row[0] in only]


def _across(found: Difference, sides: dict[str, Pair]) -> Across | None:
    """Return once what differs of things that stand in several configs."""
    keys = {one.key.columns for one in found.configs.values()}
    if len(keys) != 1 or any(one.repeated for one in found.configs.values()):
        return None
    by = list(keys.pop())
    shown = [c for c in found.schema.role("label") if c not in by]
    changes: dict[str, list[pl.DataFrame]] = {}
    for config in sorted(found.configs, key=_english_first):
        for column, rows in found.configs[config].changes.items():
            changes.setdefault(column, []).append(rows.with_columns(configs=pl.lit(config)))
    changed = {
        column: _once(pl.concat(parts, how="vertical_relaxed"), [*by, BEFORE, AFTER], shown)
        .select(*by, pl.exclude(*by, BEFORE, AFTER, CONFIGS), BEFORE, AFTER, CONFIGS)
        .sort(by, maintain_order=True)
        for column, parts in changes.items()
    }
    came = went = pl.DataFrame(schema=dict.fromkeys([*by, *shown], pl.String))
    some = any(len(one.added) or len(one.removed) for one in found.configs.values())
    if found.added or found.removed or some:
        before, after = (_things(sides, i, by, shown) for i in (0, 1))
        came, went = after.join(before, on=by, how="anti"), before.join(after, on=by, how="anti")
    return Across(came, went, changed)


def _things(sides: dict[str, Pair], i: int, by: list[str], shown: list[str]) -> pl.DataFrame:
    """Return what a version has in any config, with the configs that it stands in."""
    parts = []
    for config in sorted(sides, key=_english_first):
        side = sides[config][i]
        if side is not None:
            there = [c for c in shown if c in side.types()]
            parts.append(side.read([*by, *there]).with_columns(configs=pl.lit(config)))
    return _once(pl.concat(parts, how="diagonal_relaxed"), by, shown).sort(by)


def _once(rows: pl.DataFrame, by: list[str], shown: list[str]) -> pl.DataFrame:
    """Return each thing once: a person's name is another in each language, the first is shown."""
    first = [pl.col(c).first() for c in shown if c in rows.columns]
    return rows.group_by(by, maintain_order=True).agg(*first, pl.col(CONFIGS).sort())


def _english_first(config: str) -> tuple[bool, str]:
    return config != "en", config


def as_json(found: Difference) -> str:
    """Return all that differs as JSON, what is no number there as null."""
    tree = {
        "name": found.name,
        **{
            when: {"named": v.named, "described": v.described, "version": v.card.version}
            for when, v in zip(WHEN, found.versions, strict=True)
        },
        "differs": found.any,
        "configs_added": found.added,
        "configs_removed": found.removed,
        "rejects": [one._asdict() for one in found.rejects],
        "across_configs": found.across,
        "configs": {name: _as_tree(one, found.schema) for name, one in found.configs.items()},
    }
    return (
        to_json(tree, indent=1, inf_nan_mode="null", fallback=pl.DataFrame.to_dicts).decode() + "\n"
    )


def _as_tree(found: Compared, schema: Schema) -> dict[str, Any]:
    moved = found.moved
    estimates = {
        name: {
            "changed": len(rows),
            "judged": moved.judged[name],
            "beyond": rows["beyond"].sum(),
            "disjoint": rows["disjoint"].sum(),
            "rows": rows,
        }
        for name, rows in moved.estimates.items()
    }
    parts: dict[str, Any] = {
        "suggestions": moved.suggested and {"kept": moved.kept, **moved.suggested},
        "estimates": estimates,
        "adjusted_p_crossed": moved.crossed,
        "nats": {name: spread._asdict() for name, spread in moved.nats.items()},
    }
    if moved.sentiment is not None and schema.sentiment:
        parts["sentiment"] = {"of": " - ".join(schema.sentiment), "moved": moved.sentiment}
    return {
        "rows": found.rows,
        "added": len(found.added),
        "removed": len(found.removed),
        "changed": found.changed,
        "key": found.key.columns,
        "key_from": found.key.source,
        "repeated_keys": found.repeated,
        "columns_added": found.new_columns,
        "columns_removed": found.lost_columns,
        "columns_retyped": found.retyped,
        "changed_by_column": {name: len(rows) for name, rows in found.changes.items()},
        "rows_added": found.added,
        "rows_removed": found.removed,
        "changes": found.changes,
        **{name: part for name, part in parts.items() if part},
    }


def as_text(found: Difference, limit: int | None = LIMIT) -> list[str]:
    """Return the report in words, the largest first; ``limit`` None: lists are whole."""
    from jinja2 import Environment, FileSystemLoader

    def listed(rows: pl.DataFrame, how: str, configs: int) -> list[str]:
        items = [WAYS[how](row, configs) for row in rows[:limit].iter_rows(named=True)]
        more = len(rows) - len(items)
        return [*items, *([f"and {more:,} more"] if more else [])]

    loader = FileSystemLoader(Path(__file__).parent)
    environment = Environment(loader=loader, trim_blocks=True, lstrip_blocks=True, autoescape=False)  # noqa: S701 - text
    one, several = found.schema.unit
    text = environment.get_template("diff.txt.j2").render(
        difference=found,
        schema=found.schema,
        first=[*found.schema.role("tracked"), *found.schema.role("label")],
        total=sum(config.rows[1] for config in found.configs.values()),
        rejects=sorted(
            (r for r in found.rejects if r.before != r.after),
            key=lambda r: -abs(r.after - r.before),
        ),
        limit=limit,
        significant=SIGNIFICANT,
        n=lambda of: f"{of if isinstance(of, int) else len(of):,}",
        many=lambda rows: f"{len(rows):,} {one if len(rows) == 1 else several}",
        said=_text,
        listed=listed,
        shared=_shared,
        by_importance=_by_importance,
        by_engine=_by_engine,
        only_here=lambda here, all_, by: here.join(all_, on=by, how="anti") if len(all_) else here,
    )
    return [line for line in text.splitlines() if line.strip()]


def _by_importance(
    changes: dict[str, pl.DataFrame], first: list[str]
) -> Iterator[tuple[str, pl.DataFrame]]:
    """Yield the columns that matter in their order, then others by number; large changes first."""
    others = sorted((c for c in changes if c not in first), key=lambda c: -changes[c].height)
    for column in [*(c for c in first if c in changes), *others]:
        rows = changes[column]
        if rows[BEFORE].dtype.is_numeric() and rows[AFTER].dtype.is_numeric():
            far = (pl.col(AFTER).cast(pl.Float64) - pl.col(BEFORE).cast(pl.Float64)).abs()
            rows = rows.sort(far, descending=True, nulls_last=True, maintain_order=True)
        yield column, rows


def _by_engine(found: Any) -> Iterator[tuple[str, dict[str, Any], int]]:
    parts = found.suggested
    engines = {*found.kept, *(e for part in parts.values() for e in part["engine"].unique())}
    for engine in sorted(engines) if parts else ():
        of = {
            n: parts[n].filter(engine=engine).drop("engine") if n in parts else () for n in CHANGES
        }
        yield engine, of, found.kept.get(engine, 0)


def _shared(rows: pl.DataFrame) -> str:
    """Return the one change that all rows have, or nothing."""
    pairs = rows.select(BEFORE, AFTER).unique()
    return " -> ".join(map(_text, pairs.row(0))) if len(pairs) == 1 else ""


def _move(row: dict[str, Any], configs: int) -> str:
    was, now = row[BEFORE], row[AFTER]
    numbers = all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in (was, now))
    by = f" ({now - was:+.4g})" if numbers else ""
    skipped = (BEFORE, AFTER, "moved", "turned", "significant")
    return f"{_name(row, configs, skipped)}: {_text(was)} -> {_text(now)}{by}"


def _interval(row: dict[str, Any], _: int) -> str:
    ends = [(when, f"{when}_low", f"{when}_high") for when in (BEFORE, AFTER)]
    skipped = (*ends[0], *ends[1], "moved", "beyond", "disjoint")
    was, now = (
        f"{_text(row[v])} ({_text(row[low])} to {_text(row[high])})" for v, low, high in ends
    )
    apart = ", intervals apart" if row["disjoint"] else ""
    return f"{_name(row, 0, skipped)}: {was} -> {now}{apart}"


def _name(row: dict[str, Any], configs: int, skipped: tuple[str, ...] = ()) -> str:
    name = " ".join(_text(v) for c, v in row.items() if c not in skipped and c != CONFIGS)
    where = row.get(CONFIGS) or []
    listed = "all configs" if len(where) == configs > 1 else ", ".join(where)
    return f"{name} ({listed})" if where else name


WAYS = {"name": _name, "move": _move, "interval": _interval}


def _text(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_text, value))}]"[:WIDTH]
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "nothing"}[value]
    if isinstance(value, float):
        return f"{value:.4g}"
    text = " ".join(str(value).split()) or '""'
    return text if len(text) <= WIDTH else f"{text[: WIDTH - 1]}…"
