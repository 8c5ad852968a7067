"""``plumbline.compare`` estimates differences between two models."""

import json

import pytest

import plumbline
from plumbline.builders.core.errors import UserError
from plumbline.console import main

from .conftest import WORLDS, copied

PLANTED = json.loads((WORLDS / "world-values/world.json").read_text("utf-8"))["agreement"]


@pytest.fixture(scope="module")
def apart(tmp_path_factory, own_home):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PLUMBLINE_HOME", str(own_home))
        patch.chdir(tmp_path_factory.mktemp("work"))
        return plumbline.compare("values", "world-values", "world-values-null", language="cs")


@pytest.mark.slow
def test_compare_is_difference_of_single_results(apart):
    rows = apart.table
    assert set(rows["first"]) == {"world-values"}
    assert set(rows["second"]) == {"world-values-null"}
    gap = rows["value_first"] - rows["value_second"] - rows["value"]
    assert gap.abs().max() < 1e-5
    for model, column in (("world-values", "value_first"), ("world-values-null", "value_second")):
        alone = plumbline.values(model, language="cs").table.filter(
            reading="corrected", fitted="by gender", gender="both"
        )
        both = rows.join(alone, left_on="what", right_on="axis", suffix="_alone")
        assert len(both) == len(rows)
        assert (both[column] - both["value_alone"]).abs().max() < 1e-5


@pytest.mark.slow
def test_compare_finds_planted_signs(apart):
    found = apart.found
    assert apart.summary.startswith("world-values minus world-values-null: ")
    assert 2 <= len(found) <= len(apart.headline)
    signs = {row["what"]: (row["value"] > 0) - (row["value"] < 0) for row in apart.table.to_dicts()}
    for name in found["what"]:
        assert signs[name] == (PLANTED[name] > 0) - (PLANTED[name] < 0), name


@pytest.mark.slow
def test_compare_model_and_its_copy(tmp_path):
    copy = copied("world-values", tmp_path / "copy")
    same = plumbline.compare("values", "world-values", copy, language="cs")
    assert same.table["value"].abs().max() == 0
    assert len(same.found) == 0
    assert "none of" in same.summary


@pytest.mark.slow
def test_compare_export(apart, tmp_path):
    files = {path.name for path in apart.export(tmp_path / "paper")}
    assert {"comparison.csv", "headline.tex", "headline.svg"} <= files


@pytest.mark.parametrize(
    ("models", "options"),
    [
        (("world-values",), {}),
        (("world-values", "world-values"), {}),
        (("world-values", "world-values-null"), {"names": ["a"]}),
        (("world-values", "world-values-null"), {"name": "a"}),
        (("world-values", "world-values-null"), {"model": "a"}),
    ],
)
def test_compare_rejects_wrong_models(models, options):
    with pytest.raises(UserError, match="compare"):
        plumbline.compare("values", *models, language="cs", **options)


def test_compare_command_needs_two_models(capsys):
    assert main(["compare", "values", "world-values"]) == 1
    assert capsys.readouterr().err.startswith("error: compare")
