import pytest
import yaml

from plumbline.builders.core.errors import Problem
from plumbline.probes.models.load import load
from plumbline.probes.models.params import Model, model

COMMIT = "0123456789abcdef0123456789abcdef01234567"
WORLD = (
    "seed: 1, word_effect: 1, sentiment_effect: 1, name_noise: 1, words_max: 10, "
    "sentences: 100, steps: 1, learning_rate: 0.1"
)


def entry(tmp_path, monkeypatch, text):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "params.yaml").write_text(f"models:\n  mine: {text}\n", encoding="utf-8")
    return model("mine")


def test_three_lines_are_a_model(tmp_path, monkeypatch):
    found = entry(tmp_path, monkeypatch, f"{{id: someone/something, revision: {COMMIT}}}")
    assert isinstance(found, Model)
    assert (found.kind, found.dtype, found.languages) == ("masked", "float32", None)


def test_a_local_folder_and_a_world_need_no_revision(tmp_path, monkeypatch):
    assert entry(tmp_path, monkeypatch, "{id: ./folder}").revision is None
    assert entry(tmp_path, monkeypatch, f"{{world: {{{WORLD}}}}}").world.seed == 1


ORIGIN = (
    "give id and revision, or world, society, convictions, nations, partisanship, taught or "
    "endpoint: one of"
)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{id: someone/something}", "someone/something needs a pinned revision"),
        ("{id: someone/something, revision: main}", "models.mine.revision"),
        ("{}", ORIGIN),
        (
            f"{{id: ./folder, world: {{{WORLD}}}}}",
            ORIGIN,
        ),
        ("{id: ./folder, dtyp: float32}", "models.mine.dtyp: unknown key"),
        ("{id: ./folder, dtype: int8}", "models.mine.dtype"),
        (f"{{world: {{{WORLD}, name_noise: -1}}}}", "models.mine.world.name_noise"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(tmp_path, monkeypatch, text, said):
    with pytest.raises(Problem) as caught:
        entry(tmp_path, monkeypatch, text)
    assert said in str(caught.value)
    assert "params.yaml" in str(caught.value)


def test_an_unknown_name_is_told_with_those_that_exist(tmp_path, monkeypatch):
    entry(tmp_path, monkeypatch, "{id: ./folder}")
    with pytest.raises(Problem, match="no model 'yours' under models; there are: mine"):
        model("yours")


def test_a_model_that_was_not_brought_is_told_with_the_command(tmp_path, monkeypatch):
    entry(tmp_path, monkeypatch, "{id: ./folder}")
    with pytest.raises(Problem, match="not there; run `make repro STAGE=weights@mine` first"):
        load("mine")


@pytest.mark.parametrize(
    "endpoint",
    [
        {"url": "http://127.0.0.1:1/v1", "model": "m", "key": "sk-SECRETSECRET123"},
        {"url": "http://me:SECRETSECRET@127.0.0.1:1/v1", "model": "m"},
        {"url": "http://127.0.0.1@SECRET.example/v1", "model": "m"},
    ],
)
def test_a_secret_in_the_params_is_refused_and_not_repeated(project, endpoint):
    params = yaml.safe_load((project / "params.yaml").read_text(encoding="utf-8"))
    params["models"]["mine"] = {"kind": "remote", "endpoint": endpoint}
    (project / "params.yaml").write_text(yaml.safe_dump(params), encoding="utf-8")
    with pytest.raises(Problem, match=r"models\.mine") as caught:
        model("mine")
    assert "SECRET" not in str(caught.value)
