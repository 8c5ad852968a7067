"""``python -m plumbline.probes check``: the whole of params.yaml, all problems at once."""

import pytest
import yaml

from plumbline.builders.core.errors import UserError
from plumbline.probes.commands.check_params import check


def changed(project, change) -> None:
    params = yaml.safe_load((project / "params.yaml").read_text(encoding="utf-8"))
    change(params)
    (project / "params.yaml").write_text(yaml.safe_dump(params), encoding="utf-8")


def problems(project, change) -> list[str]:
    """Return the problems of changed params, whose number stands in the first line."""
    changed(project, change)
    with pytest.raises(UserError) as caught:
        check()
    head, *lines = str(caught.value).splitlines()
    assert head == f"params.yaml: {len(lines)} problem(s) to mend:"
    return lines


def test_problems_of_all_sections_are_reported_at_once(project):
    def spoil(params):
        params["analysis"]["pmi"]["sede"] = 1
        params["analysis"]["pim"] = {}
        params["datasets"]["words"] |= {"langauges": ["en"], "snapshot": "data/raw/ud/2020-01-01"}
        params["datasets"]["politicians"]["born_to"] = "1800-01-01"
        params["derived"]["corpora"]["snapshots"]["reddit"] = "data/raw/reddit/2020-01-01"
        params["validation"]["politicians"]["gender_min"] = {"nonbinary": 3}
        params["models"]["mine"] = {"id": "a/b", "revison": "c"}
        names = ("bert-v1.0", 1, "a/b")  # none can be a folder and a key
        params["models"] |= {name: {"id": "a/b", "revision": "f" * 40} for name in names}
        params["modles"] = {}

    message = "\n".join(problems(project, spoil))
    for problem in (
        "analysis.pmi.sede: unknown key",
        "analysis.pim: unknown; did you mean pmi? there are ",
        "datasets.words.langauges: unknown key",
        "datasets.words.snapshot: no whole snapshot in data/raw/ud/2020-01-01",
        "born_from is after born_to",
        "derived.corpora.snapshots.reddit: no whole snapshot in data/raw/reddit/2020-01-01",
        "validation.politicians.gender_min.nonbinary",
        "models.mine.revison: unknown key",
        *(f"models.{n}: a name has letters, digits, - and _ only" for n in ("bert-v1.0", 1, "a/b")),
        "modles: unknown section; did you mean models?",
    ):
        assert problem in message


@pytest.mark.parametrize("models", ["bert", [{"id": "x"}]])
def test_models_of_a_wrong_shape_are_one_problem(project, models):
    (problem,) = problems(project, lambda params: params.update(models=models))
    assert "models: needs entries" in problem


@pytest.mark.parametrize("models", [None, {}])
def test_worlds_alone_are_models_enough(project, models):
    changed(project, lambda params: params.update(models=models))
    check()


def test_a_model_must_be_in_the_lists_that_its_tables_are_made_from(project):
    def spoil(params):
        params["assignments"] |= {"words": ["world-planted"], "associations": ["world-null"]}
        params["assignments"] |= {"representations": ["world-null"]}
        params["assignments"] |= {"subgroups": [], "robustness": []}

    assert sorted(problems(project, spoil)) == [
        "  assignments.representations: world-null must be in assignments.words too",
        "  assignments.words: world-planted must be in assignments.associations too",
    ]


def test_a_world_that_is_a_control_already_is_not_assigned_again(project):
    def spoil(params):
        params["controls"] = {"sets": ["sample"], "associations": ["world-null"]}
        params["assignments"]["associations"] = ["world-null"]

    said = "  assignments.associations: world-null is one of its controls; name it in one list only"
    assert said in problems(project, spoil)


def test_a_section_in_a_file_that_its_stages_do_not_read_is_named(project):
    own = project / "probes/politicians/params.yaml"
    own.parent.mkdir(parents=True)

    def part(params):
        pmi = params["analysis"]["pmi"]
        key = next(iter(pmi))
        own.write_text(yaml.safe_dump({"analysis": {"pmi": {key: pmi.pop(key)}}}), "utf-8")

    said = f"stands in params.yaml, and its stages read {own.relative_to(project)} alone"
    lines = problems(project, part)
    assert f"  analysis.pmi: {said}; move it there" in lines
    assert not [line for line in lines if "analysis.recall" in line]  # another study's


def test_a_section_that_another_has_taken_in_is_named_with_it(project):
    def older(params):
        own = params["analysis"]["pmi"]
        params["analysis"]["pooled_pmi"] = {"groups": own.pop("groups")}

    said = "part of analysis.pmi; move `groups` and `n_permutations` there"
    assert problems(project, older) == [f"  analysis.pooled_pmi: {said}"]


def test_a_model_is_not_called_as_the_tables_of_pooled_models_are(project):
    def called(params):
        params["models"]["pooled"] = {"id": "a/b", "revision": "c" * 40}

    (problem,) = problems(project, called)
    assert problem.startswith("  models.pooled: the tables of pooled models are called that")


def test_the_model_that_judges_stances_must_be_there(project):
    def away(params):
        params["probes"]["stances"]["generation"]["nli_model"] = "nowhere"

    (problem,) = problems(project, away)
    assert "probes.stances.generation.nli_model: no 'nowhere' under models" in problem


def test_folders_of_models_are_looked_into_before_anything_is_built(project, tmp_path):
    adapter = tmp_path / "lora"
    adapter.mkdir()
    (adapter / "adapter_config.json").write_text("{}")
    world = (project / "data/samples/worlds").resolve()

    def change(params):
        params["models"] = {
            "gone": {"id": "./nowhere"},
            "lora": {"id": adapter.as_posix()},
            "writer": {"id": (world / "world-writing").as_posix()},
            "names": {"id": (world / "world-names").as_posix()},
            "english": {"id": (world / "world-planted").as_posix(), "languages": ["english"]},
        }
        params["assignments"]["associations"] = ["english"]

    told = problems(project, change)
    for said in (
        "models.gone: ./nowhere: no such folder",
        "models.lora: " + adapter.as_posix() + ": it is an adapter",
        "write `kind: causal`",
        "write `kind: classifier`",
        "models.english.languages: english: not asked in by associations; there are ar, en",
    ):
        assert sum(said in line for line in told) == 1, (said, told)
