"""What was everything made of? Every file says so itself, down to snapshots and models."""

import hashlib
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datasets import load_dataset

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.parquet import fingerprint, inputs_of


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def chain(top, path):
    """Follow a file to its ends; check each hash; return the ends, the paths of the project."""
    ends = set()
    for name, said in inputs_of(top / path).items():
        made = top / name
        if made.is_dir():
            assert fingerprint(made) == said
            for file in sorted(made.rglob("*.parquet")):
                ends |= chain(top, file.relative_to(top))
        else:
            assert sha256(made) == said
            ends.add(name)
    return ends


def test_from_a_table_one_comes_to_snapshots_and_the_model(finished):
    ends = chain(finished, Path("data/tables/pmi/tiny/pmi.parquet"))
    assert "data/models/tiny/model.json" in ends
    snapshots = {name for name in ends if name.endswith("/manifest.json")}
    assert any(name.startswith("data/samples/wikidata/") for name in snapshots)
    assert any(name.startswith("data/samples/ud/") for name in snapshots)
    assert ends == snapshots | {"data/models/tiny/model.json"}


@pytest.mark.parametrize("kind", ["datasets", "outputs", "tables"])
def test_every_file_of_a_kind_carries_what_it_was_made_of(finished, kind):
    files = sorted((finished / "data" / kind).rglob("*.parquet"))
    assert files
    for path in files:
        for name, said in inputs_of(path).items():
            made = finished / name
            assert (fingerprint(made) if made.is_dir() else sha256(made)) == said


def test_it_stays_with_the_file_and_out_of_the_rows(finished, tmp_path):
    folder = finished / "data/tables/pmi/tiny"
    rows = load_dataset(str(folder), "pmi", split="train", cache_dir=str(tmp_path))
    assert "plumbline" not in rows.column_names
    assert len(rows) == pq.read_metadata(folder / "pmi.parquet").num_rows


def test_a_file_that_carries_nothing_is_told(tmp_path):
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"word": ["a"]}), path)
    with pytest.raises(UserError, match=r"x\.parquet: does not state its inputs; build it"):
        inputs_of(path)
    path.write_text("word\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"x\.parquet: Parquet file size is 5 bytes"):
        inputs_of(path)
