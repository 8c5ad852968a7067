"""Write data/samples/validated.json: the datasets of the samples that `make repro` validated.

A workspace that builds the same bytes need not validate them again. Run it after `make repro`
where `tests/lib/test_studies.py` says that they changed.
"""

from __future__ import annotations

import json
from pathlib import Path

from plumbline.builders import DATASETS
from plumbline.builders.core import parquet


def validated() -> dict[str, str]:
    """Return the sha256 of every dataset that stands validated under data."""
    return {name: parquet.fingerprint(parquet.require_validated(name)) for name in sorted(DATASETS)}


if __name__ == "__main__":
    from plumbline.workspace import VALIDATED

    VALIDATED.write_text(json.dumps(validated(), indent=1) + "\n", encoding="utf-8")
    print(Path(VALIDATED))
