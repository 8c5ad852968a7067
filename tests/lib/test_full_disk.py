"""A full disk: no file that any step writes is left in part, and one sentence says what to do.

A limit on the size of files stands for it: the system refuses the same calls, with other words.
"""

import re
import resource
from contextlib import contextmanager

import numpy as np
import polars as pl
import pytest

from plumbline.builders.core import parquet
from plumbline.builders.core.errors import unwritten
from plumbline.builders.core.snapshot import write_bytes

TOLD = r"could not be written \(.*\); free some space and run the same command again"
NUMBERS = np.random.default_rng(1).random(50_000)
FRAME = pl.DataFrame({"a": NUMBERS})


@contextmanager
def full(most: int):
    """Let no file of this process grow above so many bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


WRITES = {
    "file": lambda folder: write_bytes(folder / "a", NUMBERS.tobytes()),
    "table": lambda folder: parquet.write_table(
        FRAME, FRAME.to_arrow().schema, parquet.fresh(folder / "a") / "a.parquet"
    ),
}


@pytest.mark.parametrize(
    "most",
    [
        5000,
    ],
)
@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_each_kind_of_file_is_told_and_gets_no_name(tmp_path, write, most):
    with full(most), pytest.raises(Exception) as caught:
        write(tmp_path)
    assert re.search(TOLD, unwritten(caught.value) or str(caught.value))
    left = [path.name for path in tmp_path.iterdir()]
    assert {name for name in left if not name.endswith(".partial")} == set()
    write(tmp_path)
