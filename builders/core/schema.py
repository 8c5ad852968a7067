"""Schemas of datasets.

Parquet types, Hub features, expectations, the card's table and the reference docs are derived from
one :class:`Schema`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import pyarrow as pa

Lists = Literal["strings", "integers", "floats"]
Kind = Literal["string", "bool", "int32", "int64", "float64", "date32", "label", "category", Lists]
Prose = Literal["name", "word", "text", "lines"]
LISTS = {"strings": "string", "integers": "int32", "floats": "float64"}  # element types
CHECKED = ("prose", "empty")  # attributes that are not written to any file


@dataclass(frozen=True)
class Column:
    """A column: its type, and constraints on its values.

    ``kind``: ``label`` is a ClassLabel of the Hub, stored as int64; ``category`` is a string, one
    of ``labels``; ``strings``, ``integers`` and ``floats`` are lists.

    ``role``: the column with the role ``label`` is shown next to the key when versions are
    compared.

    ``prose``: kind of natural language in a string: a ``name``, a ``word``, a ``text`` of one line,
    or several ``lines``. ``empty``: whether the string may be empty. Only validation uses
    ``prose`` and ``empty``.
    """

    name: str
    kind: Kind
    description: str
    nullable: bool = False
    labels: tuple[str, ...] = ()
    minimum: float | None = None
    maximum: float | None = None
    pattern: str | None = None
    role: Literal["label"] | None = None
    prose: Prose | None = None
    empty: bool = False

    def code(self, label: str) -> int:
        """Return the integer code of a label of this column."""
        return self.labels.index(label)


@dataclass(frozen=True)
class Schema:
    """The columns and the key of a dataset; some configs may have schemas of their own."""

    columns: tuple[Column, ...]
    key: tuple[str, ...]
    others: tuple[tuple[str, Schema], ...] = ()  # (config, schema) of configs whose schema differs

    @classmethod
    def keyed(cls, key: Iterable[Column], *others: Column) -> Schema:
        """Return a schema whose first columns are its key."""
        first = tuple(key)
        return cls((*first, *others), tuple(column.name for column in first))

    @classmethod
    def of(cls, tree: dict[str, Any]) -> Schema:
        """Rebuild a schema from the output of :meth:`plain`."""
        columns = (c | {"labels": tuple(c.get("labels", ()))} for c in tree["columns"])
        return cls(tuple(Column(**column) for column in columns), tuple(tree["key"]))

    def plain(self) -> dict[str, Any]:
        """Return the columns and the key as plain Python values; default values are omitted."""
        columns = [
            {
                k: v
                for k, v in asdict(c).items()
                if k not in CHECKED and v is not None and v is not False and v != ()
            }
            for c in self.columns
        ]
        return {"key": list(self.key), "columns": columns}

    def config(self, name: str) -> Schema:
        """Return the schema of a config."""
        return dict(self.others).get(name, self)

    def __getitem__(self, name: str) -> Column:
        """Return the column with this name."""
        return next(column for column in self.columns if column.name == name)

    def arrow(self) -> pa.Schema:
        """Return the Arrow schema of the parquet files."""
        import pyarrow as pa

        def kind(name: str) -> pa.DataType:
            if name in LISTS:
                return pa.list_(pa.field("element", kind(LISTS[name])))
            return pa.type_for_alias({"label": "int64", "category": "string"}.get(name, name))

        return pa.schema(pa.field(c.name, kind(c.kind), nullable=c.nullable) for c in self.columns)

    def features(self) -> list[dict[str, Any]]:
        """Return the features of the columns, for the YAML block of a card on the Hub."""
        entries: list[dict[str, Any]] = []
        for column in self.columns:
            names = {str(code): label for code, label in enumerate(column.labels)}
            kind: Any = "string" if column.kind == "category" else column.kind
            kind = {"class_label": {"names": names}} if column.kind == "label" else kind
            listed = column.kind in LISTS
            typed = {"list": LISTS[column.kind]} if listed else {"dtype": kind}
            entries.append({"name": column.name, **typed})
        return entries

    def table(self) -> str:
        """Return the columns as a Markdown table."""
        lines = ["| column | type | description |", "|---|---|---|"]
        for c in self.columns:
            kind = f"list of {LISTS[c.kind]}" if c.kind in LISTS else c.kind
            kind += f": {', '.join(c.labels)}" if c.labels else ""
            kind += "; may be null" if c.nullable else ""
            description = c.description.replace("|", "\\|")
            lines.append(f"| `{c.name}` | {kind} | {description} |")
        return "\n".join(lines)
