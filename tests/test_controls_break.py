"""The controls of the default run, broken: turned round or replaced, they must say no.

A control that is content whatever the tables say controls nothing. Here the tables that the default
run made are broken, and the stage ``recovery`` judges them by the code of the report. A
positive control must fail where signs, groups or lists are turned round; a negative one where the
tables of a world with biases stand in the place of those of a world without.
"""

from __future__ import annotations

import importlib
import shutil
from pathlib import Path

import polars as pl
import pytest

from plumbline.probes import module_of
from plumbline.probes.controls.measures import FOUND, NO, ORDER, SILENT, YES
from plumbline.probes.core.run_analysis import Inputs
from plumbline.probes.site.build import STUDIES
from plumbline.probes.site.controls import explained, judged

DATA = Path(__file__).parents[1] / "data"
SIGNED = {"value", "change", "difference", "contrast", "log_odds_nats", "rating"}
ENDS = {"low": "high", "disagree_nats": "agree_nats"}
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (DATA / "tables/recovery").is_dir(), reason="make repro makes them"),
]


def signs(table: pl.DataFrame) -> pl.DataFrame:
    """Turn the signs of what is measured round, and the ends of intervals with them."""
    signed = [name for name, kind in table.schema.items() if kind.is_float() and name in SIGNED]
    changed = {name: -pl.col(name) for name in signed}
    for low, high in ENDS.items():
        if {low, high} <= set(table.columns):
            sign = -1 if low == "low" else 1
            changed |= {low: sign * pl.col(high), high: sign * pl.col(low)}
    return table.with_columns(**changed)


def groups(table: pl.DataFrame) -> pl.DataFrame:
    """Give each group what was measured of another, half the alphabet away."""
    if "group" not in table.columns:
        return table
    names = table["group"].unique().sort().to_list()
    half = len(names) // 2
    other = dict(zip(names, names[half:] + names[:half], strict=True))
    return table.with_columns(pl.col("group").replace(other))


def lists(table: pl.DataFrame) -> pl.DataFrame:
    """Give each group another's words, and what of its attributes is in all groups' lists."""
    if {"hits", "other_groups"} <= set(table.columns):
        table = table.with_columns(hits=pl.col("other_groups"), other_groups=pl.col("hits"))
    return groups(table)


def worlds(table: pl.DataFrame) -> pl.DataFrame:
    """Exchange the world that shares words with another and the one that shares none."""
    names = {"world-groups-half": "world-groups-null", "world-groups-null": "world-groups-half"}
    both = [name for name in ("first", "second") if name in table.columns]
    return table.with_columns(pl.col(both).replace(names))


def sexes(table: pl.DataFrame) -> pl.DataFrame:
    """Give men the words and the shares of women, and women those of men."""
    if "gender" not in table.columns:
        return table
    return table.with_columns(pl.col("gender").replace({"male": "female", "female": "male"}))


SIGNED_ALONE = "pmi latent sentiment supersenses subgroups averages anova"
SIGNED_ALONE += " lexicon_evaluation shift values nationality compass fairness"
BREAKS = dict.fromkeys(SIGNED_ALONE.split(), signs)
BREAKS |= {"clusters": sexes, "recall": lists, "emotions": groups, "rsa": worlds}


@pytest.fixture
def data(tmp_path, request):
    """Return a folder as ``data``, with a copy of an analysis's tables that may be changed."""
    analysis = request.getfixturevalue("analysis")
    (tmp_path / "samples").mkdir()
    (tmp_path / "tables").mkdir()
    (tmp_path / "samples/worlds").symlink_to(DATA / "samples/worlds")
    (tmp_path / "datasets").symlink_to(DATA / "datasets")
    (tmp_path / "outputs").symlink_to(DATA / "outputs")
    for folder in (DATA / "tables").iterdir():
        if folder.name != analysis:
            (tmp_path / "tables" / folder.name).symlink_to(folder)
    shutil.copytree(DATA / "tables" / analysis, tmp_path / "tables" / analysis)
    for path in (tmp_path / "tables" / analysis).rglob("*.parquet"):
        path.chmod(0o644)
    return tmp_path


def verdicts(analysis: str, data: Path) -> dict[tuple[str, str, str], str]:
    """Return the verdicts on an analysis by model, question, and measure with what it is of."""
    study = module_of(analysis).split(".")[2]
    module = importlib.import_module(f"plumbline.probes.{study}.recovery")
    datasets = {name: data / "datasets" / name for name in getattr(module, "DATASETS", ())}
    worlds = tuple(sorted(path.name for path in (data / "samples/worlds").iterdir()))
    table = module.run(Inputs(worlds, datasets, data))[analysis]
    checks = [judged(analysis, row) for row in table.drop_nulls("value").to_dicts()]
    about = ("language", "reading", "item", "measure")
    return {
        (row["model"], row["question"], "; ".join(row[name] for name in about)): row["verdict"]
        for row in checks
        if row
    }


@pytest.mark.parametrize("analysis", BREAKS)
def test_a_positive_control_fails_where_what_it_controls_is_turned_round(analysis, data):
    whole = verdicts(analysis, DATA)
    right = {key for key, said in whole.items() if said == YES and key[1] in (FOUND, ORDER)}
    assert right, "no positive control passes"
    for path in (data / "tables" / analysis).rglob("*.parquet"):
        BREAKS[analysis](pl.read_parquet(path)).write_parquet(path)
    broken = verdicts(analysis, data)
    assert [key for key in right if broken[key] == YES] == []


def disguised(table: pl.DataFrame, worlds: set[str]) -> pl.DataFrame:
    """Put what was found in worlds with biases in the place of what was found in null worlds."""
    texts = set(table.select(pl.col(pl.String)).columns)
    for column in {"model", "masked", "source", "first", "second"} & texts:
        nulls = {name.removesuffix("-null"): name for name in worlds if name.endswith("-null")}
        nulls |= {"world-planted": "world-null", "sentences": "sentences-null"}
        biased = table.filter(pl.col(column).is_in(list(nulls)))
        others = table.filter(~pl.col(column).is_in(list(nulls.values())))
        table = pl.concat([others, biased.with_columns(pl.col(column).replace(nulls))])
    return table


WITHOUT_NULL = {"shift", "averages", "anova", "latent"}  # no null world, none of several, or no p


@pytest.mark.parametrize("analysis", sorted({*BREAKS} - WITHOUT_NULL))
def test_a_negative_control_fails_where_a_world_with_biases_takes_its_place(analysis, data):
    whole = verdicts(analysis, DATA)
    silent = {key for key, said in whole.items() if key[1] == SILENT and "null" in key[0]}
    assert any(whole[key] == YES for key in silent), "no negative control passes"
    worlds = {path.name for path in (data / "samples/worlds").iterdir()}
    tables = data / "tables" / analysis
    if (tables / "world-null").is_dir():
        shutil.rmtree(tables / "world-null")
        shutil.copytree(tables / "world-planted", tables / "world-null")
        changed = tables / "world-null"
    else:
        changed = tables
    for path in changed.rglob("*.parquet"):
        table = disguised(pl.read_parquet(path), worlds)
        if "model" in table.columns and changed != tables:  # of the other world alone
            table = table.filter(pl.col("model") != "world-planted")
        table.write_parquet(path)
    broken = verdicts(analysis, data)
    assert any(whole[key] == YES and broken.get(key) == NO for key in silent)


@pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.name)
def test_a_control_that_is_not_as_it_should_be_has_a_known_limit_on_its_page(study):
    failed = []
    table = pl.read_parquet(DATA / "tables/recovery/recovery.parquet").filter(study=study.name)
    for row in table.drop_nulls("value").to_dicts():
        found = judged(row["analysis"], row)
        if found and found["verdict"] == NO:
            failed.append((found["analysis"], found["measure"], explained(found, study, full=True)))
    assert [check for check in failed if check[2] == "not explained"] == []
