"""Comparing two versions of a dataset, of outputs or of tables, by what they mean.

``diff.txt.j2`` is the report in words; docs/howto/fresh-data.md describes the JSON.
"""

from __future__ import annotations

import filecmp
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import polars as pl
from pydantic_core import to_json

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.parquet import REJECTS
from plumbline.builders.core.schema import Schema
from plumbline.builders.release.terms import MADE, folder_of
from plumbline.builders.versions import resolve
from plumbline.builders.versions.cards import Side
from plumbline.builders.versions.compare import (
    AFTER,
    BEFORE,
    CHANGES,
    MOVES,
    SIGNIFICANT,
    WHEN,
    Key,
    Pair,
    Tree,
    compare,
    described,
    differs,
)
from plumbline.builders.versions.resolve import Version

LIMIT = 10  # of every list, unless --all is given
WIDTH = 60  # of a text
CONFIGS = "configs"
UNITS = {"outputs": ("response", "responses"), "tables": ("estimate", "estimates")}
RANKED = ("word", "token")  # in lists of a model a row is named by what is at a rank
Sides = tuple[Side | None, Side | None]  # None: that version has not got the config


class Difference(NamedTuple):
    """All that differs between two versions."""

    tree: Tree  # of the JSON, with frames where that has lists of rows
    schema: Schema
    cards_differ: bool  # whether both have a card, of different text

    @property
    def any(self) -> bool:
        """Whether anything differs; the text of a card is not looked at."""
        return bool(self.tree["differs"])


def diff(
    named: str, first: str, second: str, *, schema: Schema | None = None, only: tuple[str, ...] = ()
) -> Difference:
    """Compare two versions.

    Raises UserError if a version cannot be read, or a config is in neither.

    ``named``: a dataset's name, or a folder of outputs or tables.
    ``first``, ``second``: the versions, see :func:`plumbline.builders.versions.resolve.find`.
    ``schema``: of a dataset that the project has: its key and roles; else what the versions state.
    ``only``: configs to compare; empty: all.
    """
    folder = folder_of(named, MADE)
    kind = folder.parts[1]
    schema = schema or Schema((), (), UNITS.get(kind, ("row", "rows")))
    with TemporaryDirectory() as scratch:
        both = [resolve.find(revision, folder, Path(scratch)) for revision in (first, second)]
        sides = _sides(both, only)
        come, gone, configs = dict[str, int](), dict[str, int](), dict[str, Tree]()
        for config, (before, after) in sides.items():
            if before and after:
                stated = [version.card.keys.get(config, ()) for version in reversed(both)]
                own = schema.config(config)
                key = _key((before, after), own, stated, kind)
                configs[config] = _config((before, after), key, own, kind)
            elif before:
                gone[config] = before.rows()
            elif after:
                come[config] = after.rows()
        rejects = _rejects(both, only)
        alike = [config for config in sides if schema.config(config) == schema]
        of_these = {config: configs[config] for config in alike if config in configs}
        sides = {config: sides[config] for config in alike}
        across = _across(sides, of_these, schema) if schema.across else None
    turned = any(one[BEFORE] != one[AFTER] for one in rejects)
    versions = {
        when: {"named": v.named, "described": v.described, "version": v.card.version}
        for when, v in zip(WHEN, both, strict=True)
    }
    tree = {
        "name": folder.relative_to("data").as_posix(),
        **versions,
        "differs": bool(come or gone or turned) or any(map(differs, configs.values())),
        "configs_added": come,
        "configs_removed": gone,
        "rejects": rejects,
        "across_configs": across,
        "configs": configs,
    }
    texts = {version.card.text for version in both}
    return Difference(tree, schema, len(texts - {""}) > 1)


def as_json(found: Difference) -> str:
    """Return all that differs as JSON, what is no number there as null."""
    rows = pl.DataFrame.to_dicts
    return to_json(found.tree, indent=1, inf_nan_mode="null", fallback=rows).decode() + "\n"


def _sides(both: list[Version], only: tuple[str, ...]) -> dict[str, Sides]:
    before, after = (version.card.sides(version.files) for version in both)
    names = sorted({*before, *after})
    for config in only:
        if config not in names:
            known = ", ".join(names) or "none"
            raise UserError(f"--config {config}: in neither version; there are {known}")
    return {name: (before.get(name), after.get(name)) for name in names if not only or name in only}


def _key(sides: tuple[Side, Side], schema: Schema, stated: list[tuple[str, ...]], kind: str) -> Key:
    """Return what names a row: by the schema, else by a card, else all columns of text."""
    types = [side.types() for side in sides]
    shared = [column for column in types[1] if column in types[0]]
    for columns, source in [(schema.key, "schema"), *((columns, "card") for columns in stated)]:
        if columns and {*columns} <= {*shared}:
            better = next((c for c in RANKED if c in shared), "")
            if kind == "outputs" and better and better not in columns:
                columns = tuple(better if c == "rank" else c for c in columns)  # noqa: PLW2901
            return Key(columns, source)
    texts = tuple(c for c in shared if all(t[c].startswith(("str", "label")) for t in types))
    return Key(texts, "all columns of text") if texts else Key((), "order of the rows")


def _config(sides: tuple[Side, Side], key: Key, schema: Schema, kind: str) -> Tree:
    one, other = sides
    if (
        one.labels == other.labels
        and len(one.paths) == len(other.paths)
        and all(
            filecmp.cmp(*files, shallow=False) for files in zip(one.paths, other.paths, strict=True)
        )
    ):
        none = one.read(key.columns).clear()
        return described((one.rows(), one.rows()), key, none, none)
    return compare(Pair(sides, key), schema, kind)


def _rejects(both: list[Version], only: tuple[str, ...]) -> list[Tree]:
    """Return the input rows that are in no config, by config and reason, in both versions."""
    kinds = {"config": pl.String, "reason": pl.String, "number": pl.Int64}
    frames = []
    for version, when in zip(both, WHEN, strict=True):
        frame = pl.DataFrame(schema=kinds)
        if REJECTS in version.files:
            frame = Side([version.files[REJECTS]], {}).read(kinds)
        frames.append(frame.rename({"number": when}))
    summed = pl.concat(frames, how="diagonal").group_by("config", "reason").sum()
    rows = summed.select("config", "reason", *WHEN).sort("config", "reason")
    return (rows.filter(pl.col("config").is_in(only)) if only else rows).to_dicts()


def _across(sides: dict[str, Sides], configs: dict[str, Tree], schema: Schema) -> Tree | None:
    """Return once what differs of things that stand in several configs."""
    keys = {one["key"] for one in configs.values()}
    if len(keys) != 1 or any(one["repeated_keys"] for one in configs.values()):
        return None
    by = list(keys.pop())
    shown = [c for c in schema.role("label") if c not in by]
    changes: dict[str, list[pl.DataFrame]] = {}
    order = sorted(sides, key=lambda config: (config != "en", config))
    for config in (config for config in order if config in configs):
        for column, rows in configs[config]["changes"].items():
            changes.setdefault(column, []).append(rows.with_columns(configs=pl.lit(config)))
    changed = {
        column: _once(pl.concat(parts, how="vertical_relaxed"), [*by, BEFORE, AFTER], shown)
        .select(*by, pl.exclude(*by, BEFORE, AFTER, CONFIGS), BEFORE, AFTER, CONFIGS)
        .sort(by, maintain_order=True)
        for column, parts in changes.items()
    }
    came = went = pl.DataFrame(schema=dict.fromkeys([*by, *shown], pl.String))
    some = any(one["added"] or one["removed"] for one in configs.values())
    if some or len(configs) < len(sides):
        before, after = (
            _things({config: sides[config][i] for config in order}, by, shown) for i in (0, 1)
        )
        came, went = after.join(before, on=by, how="anti"), before.join(after, on=by, how="anti")
    return {"added": came, "removed": went, "changes": changed}


def _things(sides: dict[str, Side | None], by: list[str], shown: list[str]) -> pl.DataFrame:
    """Return what a version has in any config, with the configs that it stands in."""
    parts = []
    for config, side in sides.items():
        if side is not None:
            there = [c for c in shown if c in side.types()]
            parts.append(side.read([*by, *there]).with_columns(configs=pl.lit(config)))
    return _once(pl.concat(parts, how="diagonal_relaxed"), by, shown).sort(by)


def _once(rows: pl.DataFrame, by: list[str], shown: list[str]) -> pl.DataFrame:
    """Return each thing once: a person's name is another in each language, the first is shown."""
    first = [pl.col(c).first() for c in shown if c in rows.columns]
    return rows.group_by(by, maintain_order=True).agg(*first, pl.col(CONFIGS).sort())


def as_text(found: Difference, limit: int | None = LIMIT) -> list[str]:
    """Return the report in words, the largest first; ``limit`` None: lists are whole."""
    from jinja2 import Environment, FileSystemLoader

    def listed(rows: pl.DataFrame, how: str, configs: int) -> list[str]:
        items = [_line(row, how, configs) for row in rows[:limit].iter_rows(named=True)]
        more = len(rows) - len(items)
        return [*items, *([f"and {more:,} more"] if more else [])]

    loader = FileSystemLoader(Path(__file__).parent)
    environment = Environment(loader=loader, trim_blocks=True, lstrip_blocks=True, autoescape=False)  # noqa: S701 - text
    tree, (one, several) = found.tree, found.schema.unit
    text = environment.get_template("diff.txt.j2").render(
        tree=tree,
        found=found,
        schema=found.schema,
        first=[*found.schema.role("tracked"), *found.schema.role("label")],
        total=sum(config["rows"][1] for config in tree["configs"].values()),
        rejects=sorted(
            (r for r in tree["rejects"] if r[BEFORE] != r[AFTER]),
            key=lambda r: -abs(r[AFTER] - r[BEFORE]),
        ),
        limit=limit,
        significant=SIGNIFICANT,
        differs=differs,
        moved=lambda config: any(part in config for part in MOVES),
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


def _by_engine(config: Tree) -> Iterator[tuple[str, Tree, int]]:
    """Yield the engines with what appeared, vanished and moved in each, and what it kept."""
    suggested = config.get("suggestions", {})
    kept, none = suggested.get("kept", {}), pl.DataFrame(schema={"engine": pl.String})
    parts = {way: suggested.get(way, none) for way in CHANGES}
    for engine in sorted({*kept, *(e for part in parts.values() for e in part["engine"])}):
        of = {way: part.filter(engine=engine).drop("engine") for way, part in parts.items()}
        yield engine, of, kept.get(engine, 0)


def _shared(rows: pl.DataFrame) -> str:
    """Return the one change that all rows have, or nothing."""
    pairs = rows.select(BEFORE, AFTER).unique()
    return " -> ".join(map(_text, pairs.row(0))) if len(pairs) == 1 else ""


UNNAMED = {  # columns that do not name a row in a list of a kind
    "name": {CONFIGS},
    "move": {BEFORE, AFTER, "moved", "turned", "significant", CONFIGS},
    "interval": {BEFORE, AFTER, "moved", "beyond", "disjoint", CONFIGS}
    | {f"{when}_{end}" for when in WHEN for end in ("low", "high")},
}


def _line(row: dict[str, Any], how: str, configs: int) -> str:
    """Return a row of a list in words: its name, and how it or its interval moved."""
    name = " ".join(_text(value) for column, value in row.items() if column not in UNNAMED[how])
    if where := row.get(CONFIGS):
        name += f" ({'all configs' if len(where) == configs > 1 else ', '.join(where)})"
    if how == "name":
        return name
    was, now = (_text(row[when]) for when in WHEN)
    more = ""
    if how == "interval":
        was, now = (
            f"{text} ({_text(row[f'{when}_low'])} to {_text(row[f'{when}_high'])})"
            for text, when in zip((was, now), WHEN, strict=True)
        )
        more = ", intervals apart" if row["disjoint"] else ""
    elif all(isinstance(row[w], (int, float)) and not isinstance(row[w], bool) for w in WHEN):
        more = f" ({row[AFTER] - row[BEFORE]:+.4g})"
    return f"{name}: {was} -> {now}{more}"


def _text(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_text, value))}]"[:WIDTH]
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "nothing"}[value]
    if isinstance(value, float):
        return f"{value:.4g}"
    text = " ".join(str(value).split()) or '""'
    return text if len(text) <= WIDTH else f"{text[: WIDTH - 1]}…"
