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
    assert str(len(lines)) in head
    return lines


def test_check_reports_problems_of_all_sections_at_once(project):
    def spoil(params):
        params["analysis"]["pmi"]["sede"] = 1
        params["analysis"]["pim"] = {}
        params["sources"]["hn"] = {}
        params["datasets"]["words"] |= {"langauges": ["en"], "snapshot": "data/raw/ud/2020-01-01"}
        params["datasets"]["politicians"]["born_to"] = "1800-01-01"
        params["derived"]["corpora"]["snapshots"]["reddit"] = "data/raw/reddit/2020-01-01"
        params["validation"]["politicians"]["counts_min"] = {"*": {"gender": 3}}
        params["models"]["mine"] = {"id": "a/b", "revison": "c"}
        names = ("bert-v1.0", 1, "a/b", "pooled")  # none can be a folder and a key
        params["models"] |= {name: {"id": "a/b", "revision": "f" * 40} for name in names}
        params["models"]["world-planted"] = {"id": "a/b", "revision": "f" * 40}
        far = {"url": "http://169.254.169.254/v1", "model": "m", "key": "MY_KEY"}
        params["models"]["far"] = {"kind": "remote", "endpoint": far}
        params["sources"]["politeness"]["contact"] = "j\u00fcrgen@example.org"
        params["modles"] = {}

    message = "\n".join(problems(project, spoil))
    for problem in (
        "analysis.pmi.sede: unknown key",
        "analysis.pim: unknown section; did you mean analysis.pmi?",
        "sources.hn: unknown section; docs/params.md lists all sections",
        "datasets.words.langauges: unknown key",
        "datasets.words.snapshot: no whole snapshot in data/raw/ud/2020-01-01",
        "born_from is after born_to",
        "derived.corpora.snapshots.reddit: no whole snapshot in data/raw/reddit/2020-01-01",
        "validation.politicians.counts_min.*.gender",
        "models.mine.revison: unknown key",
        *(f"models.{n}: a name has" for n in ("bert-v1.0", 1, "a/b", "pooled")),
        *("models.world-planted: ", "models.far.endpoint: ", "sources.politeness.contact: "),
        "modles: unknown section; did you mean models?",
    ):
        assert problem in message


def test_check_refuses_permutations_with_which_no_test_can_be_significant(project):
    # two languages, parts of speech, nine contrasts, three sentiments: .05 / 108 is 1 / 2160
    def spoil(params):
        model = {"id": "a/b", "revision": "f" * 40, "languages": ["en", "es", "cs"]}
        params["models"] = {"mine": model}
        for probe in ("associations", "subgroups"):
            params["assignments"][probe].append("mine")
        params["analysis"]["subgroups"]["n_permutations"] = 2158

    (problem,) = problems(project, spoil)
    assert "analysis.subgroups.n_permutations" in problem
    assert {"2158", "2159", "108"} <= {word.strip(";") for word in problem.split()}
    changed(project, lambda params: params["analysis"]["subgroups"].update(n_permutations=2159))
    check()


def test_check_models_of_wrong_shape_are_one_problem(project):
    (problem,) = problems(project, lambda params: params.update(models=[{"id": "x"}]))
    assert "models: needs entries" in problem


def test_check_accepts_worlds_alone(project):
    changed(project, lambda params: params.update(models=None))
    check()


def test_check_model_missing_in_list_above(project):
    def spoil(params):
        params["assignments"] |= {"words": ["world-planted"], "associations": ["world-null"]}
        params["assignments"] |= {"representations": ["world-null"]}
        params["assignments"] |= {"subgroups": []}

    assert sorted(problems(project, spoil)) == [
        "  assignments.representations: world-null must be in assignments.words too",
        "  assignments.words: world-planted must be in assignments.associations too",
    ]


def test_check_control_assigned_again_is_a_problem(project):
    def spoil(params):
        params["controls"] = {"sets": ["sample"], "associations": ["world-null"]}
        params["assignments"]["associations"] = ["world-null"]

    (problem, *_) = [p for p in problems(project, spoil) if "assignments.associations" in p]
    assert "world-null" in problem


def test_check_missing_judge(project):
    def away(params):
        params["probes"]["stances"]["generation"]["nli_model"] = "nowhere"

    (problem,) = problems(project, away)
    assert "probes.stances.generation.nli_model: no 'nowhere' under models" in problem


def test_check_looks_into_folders_of_models(project, tmp_path):
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
        }

    lines = problems(project, change)
    for part in ("models.gone", "models.lora", "`kind: causal`", "`kind: classifier`"):
        assert sum(part in line for line in lines) == 1, (part, lines)
