"""The writer of Parquet files: the same bytes however the rows come."""

import pyarrow as pa
import pytest

from plumbline.builders.core import parquet

SCHEMA = pa.schema([pa.field("x", pa.int64(), nullable=False)])


def written(path, *parts):
    writer = parquet.Writer(path, SCHEMA)
    for part in parts:
        if isinstance(part, list):
            for x in part:
                writer.add({"x": x})
        else:
            writer.extend(part)
    writer.close()
    return path.read_bytes()


@pytest.mark.parametrize("rows", [0, 1, parquet.GROUP, parquet.GROUP + 1, 2 * parquet.GROUP])
def test_small_tables_rows_and_one_large_table_are_the_same_file(tmp_path, rows):
    numbers = list(range(rows))
    table = pa.table({"x": numbers}, SCHEMA)
    whole = written(tmp_path / "whole", table)
    pieces = [table.slice(start, 700) for start in range(0, rows, 700)]
    assert written(tmp_path / "pieces", *pieces) == whole
    assert written(tmp_path / "rows", numbers) == whole
