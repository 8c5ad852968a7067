"""A difference between two versions as JSON: complete, in one order, a row a line."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plumbline.builders.versions.compare import Compared
    from plumbline.builders.versions.diff import Difference
    from plumbline.builders.versions.movement import Moved
    from plumbline.builders.versions.resolve import Version
    from plumbline.builders.versions.roles import Meaning


def written(difference: Difference) -> Iterator[str]:
    """Yield the pieces of the JSON; docs/comparing.md says what each key holds."""
    across = difference.across
    tree = {
        "name": difference.name,
        "before": _version(difference.versions[0]),
        "after": _version(difference.versions[1]),
        "differs": difference.any,
        "configs_added": difference.added,
        "configs_removed": difference.removed,
        "rejects": [one._asdict() for one in difference.rejects],
        "across_configs": across
        and {"added": across.added, "removed": across.removed, "changes": across.changes},
        "configs": {
            name: _config(found, difference.moved[name], difference.meaning)
            for name, found in difference.configs.items()
        },
    }
    yield from _pieces(tree, "")
    yield "\n"


def _version(version: Version) -> dict[str, Any]:
    return {"named": version.named, "told": version.told, "version": version.stated}


def _config(found: Compared, moved: Moved, meaning: Meaning) -> dict[str, Any]:
    tree: dict[str, Any] = {
        "rows": list(found.rows),
        "added": len(found.added),
        "removed": len(found.removed),
        "changed": found.changed,
        "key": list(found.key.columns),
        "key_from": found.key.source,
        "repeated_keys": found.repeated,
        "columns_added": found.new_columns,
        "columns_removed": found.lost_columns,
        "columns_retyped": {name: list(kinds) for name, kinds in found.retyped.items()},
        "changed_by_column": {name: len(rows) for name, rows in found.changes.items()},
        "rows_added": found.added,
        "rows_removed": found.removed,
        "changes": found.changes,
    }
    if moved.sentiment is not None and meaning.sentiment:
        tree["sentiment"] = {"of": meaning.sentiment.told, "moved": moved.sentiment}
    if moved.suggested:
        tree["suggestions"] = {"kept": moved.kept, **moved.suggested}
    if moved.estimates:
        tree["estimates"] = {
            name: {
                "changed": len(rows),
                "judged": moved.judged[name],
                "beyond": int(rows["beyond"].sum()),
                "disjoint": int(rows["disjoint"].sum()),
                "rows": rows,
            }
            for name, rows in moved.estimates.items()
        }
    if moved.crossed:
        tree["adjusted_p_crossed"] = moved.crossed
    if moved.nats:
        tree["nats"] = {name: spread._asdict() for name, spread in moved.nats.items()}
    return tree


def _pieces(value: Any, indent: str) -> Iterator[str]:
    """Yield JSON; of a frame a row at a time, so that no more than the frame is held."""
    inner = indent + " "
    if isinstance(value, dict):
        yield "{"
        for number, (name, part) in enumerate(value.items()):
            yield f"{',' if number else ''}\n{inner}{json.dumps(name, ensure_ascii=False)}: "
            yield from _pieces(part, inner)
        yield f"\n{indent}}}" if value else "}"
    elif hasattr(value, "iter_rows"):
        yield "["
        for number, row in enumerate(value.iter_rows(named=True)):
            yield f"{',' if number else ''}\n{inner}{_dumped(row)}"
        yield f"\n{indent}]" if len(value) else "]"
    else:
        yield _dumped(value)


def _dumped(value: Any) -> str:
    return json.dumps(_plain(value), ensure_ascii=False, default=str, allow_nan=False)


def _plain(value: Any) -> Any:
    """Return a value with null for what is no number in JSON."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items()}
    return [_plain(part) for part in value] if isinstance(value, (list, tuple)) else value
