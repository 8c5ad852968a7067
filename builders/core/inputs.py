"""What a parquet file was made of, in its own metadata: it stays with the file wherever that goes.

The key ``plumbline`` of the file's schema metadata holds JSON: ``inputs`` maps the path of
everything that was read (from the project's root) to its sha256; of a folder of parquet files that
is ``parquet.fingerprint``, which also stands on its card, of a snapshot that of its
manifest, which has those of its files. Each input has such metadata too: the chain ends with
snapshots and models.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.snapshot import MANIFEST, Snapshot, digest

if TYPE_CHECKING:
    import pyarrow as pa

KEY = b"plumbline"


def of_snapshots(snapshots: Iterable[Snapshot]) -> dict[str, str]:
    """Return path and sha256 of the manifest of each snapshot."""
    manifests = [snapshot.folder / MANIFEST for snapshot in snapshots]
    return {path.as_posix(): digest(path) for path in manifests}


def carrying(schema: pa.Schema, inputs: Mapping[str, str]) -> pa.Schema:
    """Return a schema that files carry their inputs in; without inputs, the schema as it is."""
    if not inputs:
        return schema
    told = json.dumps({"inputs": dict(inputs)}, ensure_ascii=False, sort_keys=True)
    return schema.with_metadata({**(schema.metadata or {}), KEY: told.encode()})


def inputs_of(path: Path) -> dict[str, str]:
    """Return what a parquet file carries: the sha256 of each input by its path, sorted.

    Raises UserError if it is no parquet file, or carries nothing.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        metadata = pq.read_schema(path).metadata or {}
    except (OSError, pa.ArrowInvalid) as error:
        raise UserError(f"{path}: not a parquet file that can be read ({error})") from error
    if KEY not in metadata:
        raise UserError(
            f"{path}: does not say what it was made of; build it anew, or name a file "
            "of a dataset, outputs or tables"
        )
    return dict(json.loads(metadata[KEY])["inputs"])
