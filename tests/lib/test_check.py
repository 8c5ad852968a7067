"""``python -m plumbline.probes check``: the whole of params.yaml, all problems at once."""

from __future__ import annotations

import pytest
import yaml

from plumbline.builders.core.errors import Problem
from plumbline.probes.commands.check_params import check


def told(project, change) -> str:
    params = yaml.safe_load((project / "params.yaml").read_text(encoding="utf-8"))
    change(params)
    (project / "params.yaml").write_text(yaml.safe_dump(params), encoding="utf-8")
    with pytest.raises(Problem) as caught:
        check()
    return str(caught.value)


def test_problems_of_all_sections_are_told_at_once(project):
    def spoil(params):
        params["analysis"]["pmi"]["sede"] = 1
        params["datasets"]["words"]["langauges"] = ["en"]
        params["validation"]["politicians"]["gender_min"] = {"nonbinary": 3}
        params["models"]["mine"] = {"id": "a/b", "revison": "c"}
        params["modles"] = {}

    message = told(project, spoil)
    for key in (
        "analysis.pmi.sede: unknown key",
        "datasets.words.langauges: unknown key",
        "validation.politicians.gender_min.nonbinary",
        "models.mine.revison: unknown key",
        "modles: unknown section",
    ):
        assert key in message


@pytest.mark.parametrize("models", ["bert", [{"id": "x"}]])
def test_models_of_a_wrong_shape_are_one_problem(project, models):
    message = told(project, lambda params: params.update(models=models))
    assert "models: needs entries" in message
    assert message.startswith("params.yaml: 1 problem")


@pytest.mark.parametrize("models", [None, {}])
def test_worlds_alone_are_models_enough(project, models):
    params = yaml.safe_load((project / "params.yaml").read_text(encoding="utf-8"))
    params["models"] = models
    (project / "params.yaml").write_text(yaml.safe_dump(params), encoding="utf-8")
    check()


@pytest.mark.parametrize("name", ["bert-v1.0", 1, "a/b"])
def test_a_model_name_that_cannot_be_a_folder_and_a_key_is_refused(project, name):
    entry = {"id": "a/b", "revision": "f" * 40}
    message = told(project, lambda params: params["models"].update({name: entry}))
    assert f"models.{name}: a name has letters, digits, - and _ only" in message


def test_a_snapshot_that_is_not_there_is_told_before_dvc_is_asked(project):
    def spoil(params):
        params["datasets"]["words"]["snapshot"] = "data/raw/ud/2020-01-01"

    message = told(project, spoil)
    assert "datasets.words.snapshot: no whole snapshot in data/raw/ud/2020-01-01" in message


def test_dates_out_of_order_are_told(project):
    message = told(project, lambda p: p["datasets"]["politicians"].update(born_to="1800-01-01"))
    assert "born_from is after born_to" in message


def test_a_model_must_be_in_the_lists_that_its_tables_are_made_from(project):
    def spoil(params):
        params["assignments"] |= {"words": ["world-planted"], "associations": ["world-null"]}
        params["assignments"] |= {
            "representations": ["world-null"],
            "subgroups": [],
            "robustness": [],
        }

    message = told(project, spoil)
    assert "assignments.words: world-planted must be in assignments.associations too" in message
    assert "assignments.representations: world-null must be in assignments.words too" in message
    assert message.startswith("params.yaml: 2 problem")


def test_so_is_one_of_several_snapshots_of_a_dataset(project):
    def spoil(params):
        params["derived"]["corpora"]["snapshots"]["reddit"] = "data/raw/reddit/2020-01-01"

    message = told(project, spoil)
    where = "derived.corpora.snapshots.reddit: no whole snapshot in data/raw/reddit/2020-01-01"
    assert where in message
