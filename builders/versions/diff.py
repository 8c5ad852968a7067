"""Comparing two versions of a dataset, of outputs or of tables, in the words of what they hold."""

from __future__ import annotations

import filecmp
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NamedTuple

from plumbline.builders.core.errors import Problem
from plumbline.builders.core.parquet import DATASETS, REJECTS
from plumbline.builders.release.terms import DEPTHS, PRETRAINED
from plumbline.builders.versions import resolve, roles
from plumbline.builders.versions.compare import AFTER, BEFORE, Compared, Key, Side, compare, match
from plumbline.builders.versions.configs import key_of, sides_of
from plumbline.builders.versions.movement import Moved, moved

if TYPE_CHECKING:
    import polars as pl

    from plumbline.builders.versions.configs import Sides
    from plumbline.builders.versions.resolve import Version
    from plumbline.builders.versions.roles import Meaning


class Rejected(NamedTuple):
    """Input rows that are not in the dataset for one reason, in both versions."""

    config: str
    reason: str
    before: int
    after: int


@dataclass
class Across:
    """What differs of things that stand in several configs, each told once."""

    added: pl.DataFrame  # in no config before
    removed: pl.DataFrame  # in no config after
    changes: dict[str, pl.DataFrame]


@dataclass
class Difference:
    """All that differs between two versions."""

    name: str
    kind: str
    meaning: Meaning
    versions: tuple[Version, Version]
    added: dict[str, int] = field(default_factory=dict)  # configs, and their rows
    removed: dict[str, int] = field(default_factory=dict)
    configs: dict[str, Compared] = field(default_factory=dict)
    moved: dict[str, Moved] = field(default_factory=dict)
    rejects: list[Rejected] = field(default_factory=list)
    across: Across | None = None

    @property
    def any(self) -> bool:
        """Whether anything differs; the text of a card is not looked at."""
        rejects = any(one.before != one.after for one in self.rejects)
        return (
            bool(self.added or self.removed) or rejects or any(map(differs, self.configs.values()))
        )


def differs(found: Compared) -> bool:
    """Tell whether anything differs in a config."""
    columns = found.new_columns or found.lost_columns or found.retyped
    return bool(len(found.added) or len(found.removed) or found.changed or columns)


def folder_of(named: str) -> Path:
    """Return the folder under data/ that a name stands for, whether it is there or not.

    Raises
    ------
    Problem
        If it can be nothing that has rows.
    """
    given = Path(named)
    if given.is_absolute() and given.is_relative_to(Path.cwd()):
        given = given.relative_to(Path.cwd())
    if len(given.parts) == 1:
        given = DATASETS / given
    elif given.parts[0] in DEPTHS:
        given = "data" / given
    parts = given.parts
    kind = parts[1] if len(parts) > 1 and parts[0] == "data" else ""
    if kind == PRETRAINED or ".." in parts or len(parts) - 2 not in DEPTHS.get(kind, ()):
        raise Problem(
            f"{named}: nothing that can be compared; name a dataset, outputs/PROBE/MODEL or "
            "tables/ANALYSIS[/MODEL]"
        )
    return given


def diff(
    named: str, first: str, second: str, *, key: tuple[str, ...] = (), only: tuple[str, ...] = ()
) -> Difference:
    """Compare two versions.

    Parameters
    ----------
    named
        A dataset's name, or a folder of outputs or tables.
    first, second
        The versions, see :func:`plumbline.builders.versions.resolve.find`.
    key
        What names a row, as the dataset's schema has it; empty where it has none: the cards say it.
    only
        Configs to compare; empty: all.

    Raises
    ------
    Problem
        If a version cannot be read, or a config is in neither.
    """
    folder = folder_of(named)
    kind, name = folder.parts[1], folder.parts[2]
    meaning = roles.meaning(kind, name)
    with TemporaryDirectory() as scratch:
        both = (
            resolve.find(first, folder, Path(scratch)),
            resolve.find(second, folder, Path(scratch)),
        )
        found = Difference(folder.relative_to("data").as_posix(), kind, meaning, both)
        sides = sides_of(both, only)
        for config, pair in sides.items():
            before, after = pair
            if before is None or after is None:
                one = before or after
                assert one is not None
                (found.added if before is None else found.removed)[config] = one.rows()
                continue
            named_by = key_of(both, config, (before, after), key, meaning)
            found.configs[config], found.moved[config] = _config(
                (before, after), named_by, meaning, kind
            )
        found.rejects = _rejects(both, only)
        if meaning.across:
            found.across = _across(found, sides)
    return found


def _config(
    sides: tuple[Side, Side], key: Key, meaning: Meaning, kind: str
) -> tuple[Compared, Moved]:
    if _same_bytes(*sides):
        rows = sides[0].rows()
        none = sides[0].read(key.columns).clear()
        return Compared((rows, rows), key, none, none), Moved()
    matched = match(sides, key)
    found = compare(sides, matched, meaning.shown)
    return found, moved(sides, matched, found, meaning, kind)


def _same_bytes(one: Side, other: Side) -> bool:
    return (
        one.labels == other.labels
        and len(one.paths) == len(other.paths)
        and all(
            filecmp.cmp(*pair, shallow=False) for pair in zip(one.paths, other.paths, strict=True)
        )
    )


def _rejects(both: tuple[Version, Version], only: tuple[str, ...]) -> list[Rejected]:
    """Return rejects by config and reason, those of no config among them."""
    import polars as pl

    frames = []
    for version in both:
        if REJECTS in version.files:
            frame = Side([version.files[REJECTS]], {}).read(["config", "reason", "number"])
            frames.append(frame.group_by("config", "reason").agg(pl.col("number").sum()))
        else:
            kinds = {"config": pl.String, "reason": pl.String, "number": pl.Int64}
            frames.append(pl.DataFrame(schema=kinds))
    joined = frames[0].join(
        frames[1], on=["config", "reason"], how="full", coalesce=True, suffix="_2"
    )
    rows = joined.fill_null(0).sort("config", "reason").iter_rows()
    return [Rejected(*row) for row in rows if not only or row[0] in only]


def _across(found: Difference, sides: dict[str, Sides]) -> Across | None:
    """Tell once what differs of things that stand in several configs."""
    import polars as pl

    keys = {one.key.columns for one in found.configs.values()}
    if len(keys) != 1 or any(one.repeated for one in found.configs.values()):
        return None
    by = list(keys.pop())
    shown = [c for c in found.meaning.shown if c not in by]
    changes: dict[str, list[pl.DataFrame]] = {}
    for config in sorted(found.configs, key=_english_first):
        one = found.configs[config]
        for column, rows in one.changes.items():
            changes.setdefault(column, []).append(rows.with_columns(configs=pl.lit(config)))
    told = {}
    for column, parts in changes.items():
        whole = pl.concat(parts, how="vertical_relaxed")
        group = [*by, BEFORE, AFTER]
        # A person's name is another in each language: the first of them stands beside the key.
        first = [pl.col(c).first() for c in shown if c in whole.columns]
        once = whole.group_by(group, maintain_order=True).agg(*first, pl.col("configs").sort())
        order = [*by, *(c for c in shown if c in whole.columns), BEFORE, AFTER, "configs"]
        told[column] = once.select(order).sort(by, maintain_order=True)
    came = went = pl.DataFrame(schema=dict.fromkeys([*by, *shown], pl.String))
    if (
        found.added
        or found.removed
        or any(len(one.added) or len(one.removed) for one in found.configs.values())
    ):
        all_before, all_after = (_all(sides, i, by) for i in (0, 1))
        came = _told_once(all_after.join(all_before, on=by, how="anti"), sides, 1, by, shown)
        went = _told_once(all_before.join(all_after, on=by, how="anti"), sides, 0, by, shown)
    return Across(came, went, told)


def _all(sides: dict[str, Sides], i: int, by: list[str]) -> pl.DataFrame:
    import polars as pl

    whole: pl.DataFrame | None = None
    for pair in sides.values():
        side = pair[i]
        if side is not None:
            keys = side.read(by)
            whole = (keys if whole is None else pl.concat([whole, keys])).unique()
    assert whole is not None
    return whole


def _told_once(
    things: pl.DataFrame,
    sides: dict[str, Sides],
    i: int,
    by: list[str],
    shown: list[str],
) -> pl.DataFrame:
    """Return things with what is shown beside their key, and the configs that they stand in."""
    import polars as pl

    parts = []
    for config in sorted(sides, key=_english_first):
        side = sides[config][i]
        if side is not None:
            there = [c for c in shown if c in side.types()]
            rows = side.read([*by, *there]).join(things, on=by, how="semi")
            parts.append(rows.with_columns(configs=pl.lit(config)))
    whole = pl.concat(parts, how="diagonal_relaxed")
    first = [pl.col(c).first() for c in shown if c in whole.columns]
    return whole.group_by(by, maintain_order=True).agg(*first, pl.col("configs").sort()).sort(by)


def _english_first(config: str) -> tuple[bool, str]:
    return config != "en", config
