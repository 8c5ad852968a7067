"""The corruption suite: of what can be seen in the data, nearly everything is stopped."""

from __future__ import annotations

import contextlib
import random
import shutil
from collections import Counter
from pathlib import Path

import building
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import whole
from corruptions import MAIN, Corruption, corruptions

from plumbline.builders.core import parquet
from plumbline.builders.core.describe import frames
from plumbline.builders.core.errors import UserError
from plumbline.validation import suite
from plumbline.validation.run import plan, validate

SEED = 1
EVERY = 13
STOPPED = ("rule", "drift")
LEAST = 0.95


def written(folder: Path, source: Path, changed: dict[str, pl.DataFrame]) -> None:
    """Write frames as a dataset of their own, that says that it is made of what the source was."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(source, folder)
    schemas = {name: pq.read_schema(folder / f"{name}.parquet") for name in parquet.configs(folder)}
    declared = next(iter(schemas.values()))
    for name in schemas:
        (folder / f"{name}.parquet").unlink()
    for name, frame in changed.items():
        table = frame.to_arrow()
        fields = [
            declared.field(f.name).with_nullable(nullable=True)
            if f.name in declared.names and frame[f.name].dtype != pl.Categorical
            else f
            for f in table.schema
        ]
        whole_schema = pa.schema(fields, metadata=declared.metadata)
        pq.write_table(table.cast(whole_schema), folder / f"{name}.parquet")


def held(check: suite.Check, frame: pl.DataFrame) -> bool:
    """Return whether a frame is as expected, without Great Expectations: hundreds take minutes."""
    of, column = check.arguments, check.arguments.get("column", "")
    kind = check.expectation.removeprefix("Expect").removeprefix("ColumnValuesTo")
    if kind == "TableColumnsToMatchOrderedList":
        return frame.columns == of["column_list"]
    if kind == "TableRowCountToBeBetween":
        return of["min_value"] <= len(frame) <= (of["max_value"] or len(frame))
    if kind == "CompoundColumnsToBeUnique":
        keys = [c for c in of["column_list"] if c in frame]
        return not frame.select(pl.struct(keys).is_duplicated().any()).item()
    if column not in frame:
        return False
    values = frame[column]
    if kind == "NotBeNull":
        return values.null_count() == 0
    known = values.drop_nulls()
    if not len(known):
        return True
    try:
        share = {
            "BeInSet": lambda: known.is_in(of["value_set"]).mean(),
            "BeBetween": lambda: known.is_between(
                of["min_value"] if of["min_value"] is not None else known.min(),
                of["max_value"] if of["max_value"] is not None else known.max(),
            ).mean(),
            "MatchRegex": lambda: known.str.contains(of["regex"]).mean(),
            "BeUnique": lambda: float(not known.is_duplicated().any()),
        }[kind]()
    except pl.exceptions.PolarsError:  # of another type, which a table of types says
        return True
    return share >= of.get("mostly", 1.0)


def failing(dataset: str) -> list[str]:
    """Return the tables of which a check does not hold."""
    found = []
    for table in plan(dataset):
        given = table.frame
        frame = given if isinstance(given, pl.DataFrame) else pl.read_parquet(given)
        if not all(held(check, frame) for check in table.checks if not check.warning):
            found.append(table.name)
    return found


def judged(source: Path, folder: Path, corruption: Corruption) -> str:
    """Return whether a corruption is stopped by a rule, as drift alone, passes, or crashes."""
    before = dict(frames(source))
    now = dict(before)
    corruption.change(now, random.Random(f"{SEED}/{corruption.dataset}/{corruption.name}"))
    if all(name in now and now[name].equals(before[name]) for name in before):
        return "changes nothing"
    written(folder, source, now)
    try:
        found = failing(corruption.dataset)
    except Exception as error:  # noqa: BLE001 - what a crash is
        return f"crash: {type(error).__name__}: {error}"
    if not found:
        return "passes"
    return "drift" if all(name.startswith("accepted") for name in found) else "rule"


@pytest.mark.slow
def test_nearly_all_that_can_be_seen_is_stopped_and_nothing_crashes(sample, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    whole.write(tmp_path)
    found = {}
    for dataset in MAIN:
        folder = tmp_path / parquet.DATASETS / dataset
        for needed in getattr(building.builder(dataset), "INPUTS", ()):
            shutil.copytree(sample(needed), folder.with_name(needed), dirs_exist_ok=True)
        written(folder, sample(dataset), dict(frames(sample(dataset))))
        assert not failing(dataset)  # what is right raises no alarm
        for number, own in enumerate(c for c in corruptions() if c.dataset == dataset):
            found[own] = judged(sample(dataset), folder, own)
            if number % EVERY == 0:  # and Great Expectations says the same
                stopped = found[own] in STOPPED
                with pytest.raises(UserError) if stopped else contextlib.nullcontext():
                    validate(dataset)
    counts = {d: Counter(how for own, how in found.items() if own.dataset == d) for d in MAIN}
    total = sum(counts.values(), Counter())
    for dataset, of in [*sorted(counts.items()), ("all", total)]:
        stopped = of["rule"] + of["drift"]
        print(f"{dataset}: {stopped} of {of.total()} ({of['rule']} by a rule)")
    missed = [f"{o.dataset}: {o.name}: {how}" for o, how in found.items() if how not in STOPPED]
    print(*missed, sep="\n")
    assert total["changes nothing"] == 0
    assert not any(how.startswith("crash") for how in total)
    assert total.total() >= 300
    assert total["rule"] + total["drift"] >= LEAST * total.total(), missed
