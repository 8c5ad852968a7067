"""The corruption suite: of what can be seen in the data, nearly everything is stopped."""

import json
import random
import re
import shutil
from collections import Counter
from pathlib import Path

import building
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import whole
import yaml
from corruptions import MAIN, Corruption, corruptions

from plumbline.builders.core import parquet
from plumbline.builders.core.build import build
from plumbline.builders.core.errors import UserError
from plumbline.builders.core.front_matter import frames
from plumbline.validation import suite, texts
from plumbline.validation.run import plan, validate

REAL = whole.TOP.parent / "shared" / "data"
SEED = 1
EXPECTATIONS = {
    *("none", "ExpectColumnValuesToBeBetween", "ExpectColumnValuesToBeInSet"),
    *("ExpectColumnValuesToBeUnique", "ExpectColumnValuesToMatchRegex"),
    *("ExpectColumnValuesToNotBeNull", "ExpectCompoundColumnsToBeUnique"),
    *("ExpectTableColumnsToMatchOrderedList", "ExpectTableRowCountToBeBetween"),
}
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


def failing(dataset: str) -> dict[str, set[str]]:
    """Return the tables of which a check does not hold, and which expectations."""
    found = {}
    for table in plan(dataset):
        given = table.frame
        frame = given if isinstance(given, pl.DataFrame) else pl.read_parquet(given)
        judged = [check for check in table.checks if not check.warning]
        if broken := {check.expectation for check in judged if not held(check, frame)}:
            found[table.name] = broken
    return found


def unmet(dataset: str) -> set[str]:
    """Return the expectations that do not hold, as Great Expectations says."""
    try:
        validate(dataset)
    except UserError as error:
        return set(re.findall(r": (expect_\w+)\(", str(error)))
    return set()


def judged(source: Path, folder: Path, corruption: Corruption) -> tuple[str, set[str]]:
    """Return whether a corruption is stopped by a rule, as drift alone, passes, or crashes.

    And the expectations that do not hold.
    """
    before = dict(frames(source))
    now = dict(before)
    corruption.change(now, random.Random(f"{SEED}/{corruption.dataset}/{corruption.name}"))
    if all(name in now and now[name].equals(before[name]) for name in before):
        return "changes nothing", set()
    written(folder, source, now)
    try:
        found = failing(corruption.dataset)
    except Exception as error:  # noqa: BLE001 - what a crash is
        return f"crash: {type(error).__name__}: {error}", set()
    broken = set().union(*found.values())
    if not found:
        return "passes", broken
    return "drift" if all(name.startswith("accepted") for name in found) else "rule", broken


@pytest.mark.slow
def test_nearly_all_that_can_be_seen_is_stopped_and_nothing_crashes(sample, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    whole.write(tmp_path)
    found, agreed = {}, Counter()
    for dataset in MAIN:
        folder = tmp_path / parquet.DATASETS / dataset
        for needed in getattr(building.builder(dataset), "INPUTS", ()):
            shutil.copytree(sample(needed), folder.with_name(needed), dirs_exist_ok=True)
        written(folder, sample(dataset), dict(frames(sample(dataset))))
        assert not failing(dataset)  # what is right raises no alarm
        for own in (c for c in corruptions() if c.dataset == dataset):
            found[own], broken = judged(sample(dataset), folder, own)
            # Great Expectations says the same, of each dataset and of each expectation
            of = broken or {"none"}
            if not agreed[dataset] or not all(agreed[kind] for kind in of):
                agreed.update([dataset, *of])
                assert unmet(dataset) == {re.sub("(?<!^)(?=[A-Z])", "_", n).lower() for n in broken}
    assert not {*EXPECTATIONS, *MAIN} - {*agreed}
    total = Counter(found.values())
    missed = [f"{o.dataset}: {o.name}: {how}" for o, how in found.items() if how not in STOPPED]
    print(*missed, sep="\n")
    assert total["changes nothing"] == 0
    assert not any(how.startswith("crash") for how in total)
    assert total.total() >= 300
    assert total["rule"] + total["drift"] >= LEAST * total.total(), missed


@pytest.mark.slow
@pytest.mark.parametrize(
    ("group", "dataset", "changes"),
    [
        ("datasets", "outlets", {"seed": 5}),
        ("derived", "counterfactuals", {"seed": 5}),
    ],
)
def test_a_version_made_in_another_way_raises_no_alarm(
    sample, linking, tmp_path, monkeypatch, group, dataset, changes
):
    monkeypatch.chdir(tmp_path)
    tree = whole.tree()
    tree[group][dataset] |= changes
    Path("params.yaml").write_text(yaml.safe_dump(tree), "utf-8")
    linking(tmp_path)
    for needed in getattr(building.builder(dataset), "INPUTS", ()):
        made = shutil.copytree(sample(needed), parquet.DATASETS / needed)
        report = {"success": True, "fingerprint": parquet.fingerprint(made)}
        parquet.VALIDATION.mkdir(parents=True, exist_ok=True)
        (parquet.VALIDATION / f"{needed}.json").write_text(json.dumps(report), "utf-8")
    build(dataset, building.builder(dataset))
    assert parquet.fingerprint(parquet.DATASETS / dataset) != parquet.fingerprint(sample(dataset))
    assert not failing(dataset)


LANGUAGES = ("ar", "cs", "en", "es", "fr", "hi", "ru", "zh")


def sentences(language: str) -> pl.DataFrame:
    """Return real sentences of a language, as its treebanks have them."""
    files = sorted((REAL / "ud" / language).glob("*.conllu"))
    lines = (line for file in files for line in file.read_text("utf-8").splitlines())
    return pl.DataFrame({"text": [line[9:] for line in lines if line.startswith("# text = ")]})


@pytest.mark.slow
@pytest.mark.skipif(not REAL.is_dir(), reason="the real sentences are not here")
def test_languages_are_told_apart_on_real_sentences():
    found = {of: sentences(of) for of in LANGUAGES}
    shares = {
        (of, called): frame.select(texts.foreign("text", called).mean()).item()
        for of, frame in found.items()
        for called in LANGUAGES
    }
    for of, frame in found.items():
        row = " ".join(f"{called} {shares[of, called]:.4f}" for called in LANGUAGES)
        print(f"{of}, {len(frame):,} sentences, judged foreign as {row}")
        assert shares[of, of] <= 0.02
    assert min(share for (of, called), share in shares.items() if of != called) > 0.5
