import json
from pathlib import Path

import pytest

from plumbline.builders.core.errors import UserError
from plumbline.probes.models.load import load, pointer
from plumbline.probes.models.params import WORLDS, Model, model, worlds

COMMIT = "0123456789abcdef0123456789abcdef01234567"
WORLD = {"model": {"dtype": "float64", "languages": ["en"], "control": "negative"}}


@pytest.fixture
def entry(tmp_path, monkeypatch):
    """Return what reads a model whose entry is given."""
    monkeypatch.chdir(tmp_path)

    def read(text):
        Path("params.yaml").write_text(f"models:\n  mine: {text}\n", encoding="utf-8")
        return model("mine")

    return read


def test_model_from_three_lines(entry):
    found = entry(f"{{id: someone/something, revision: {COMMIT}}}")
    assert isinstance(found, Model)
    assert (found.kind, found.dtype, found.languages) == ("masked", "float32", None)


def test_model_world(tmp_path, entry):
    folder = tmp_path / WORLDS / "world"
    folder.mkdir(parents=True)
    (folder / "manifest.json").write_text(json.dumps(WORLD), encoding="utf-8")
    entry("{id: ./folder}")
    found = model("world")
    assert (found.id, found.control) == ("data/samples/worlds/world", "negative")
    assert (found.kind, found.dtype, found.languages) == ("masked", "float64", ["en"])
    assert worlds() == {"world": found}
    assert pointer("world").parent == WORLDS / "world"
    assert pointer("mine").parent == Path("data/models/mine")
    (tmp_path / "params.yaml").write_text("models: {world: {id: ./folder}}\n", encoding="utf-8")
    with pytest.raises(UserError, match="world"):
        model("world")


ORIGIN = "give id and revision, or endpoint: one of them"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{id: someone/something}", "someone/something needs a pinned revision"),
        ("{id: someone/something, revision: main}", "models.mine.revision"),
        ("{}", ORIGIN),
        ("{id: ./folder, endpoint: {url: 'http://x/v1', model: m}}", ORIGIN),
        ("{id: ./folder, dtyp: float32}", "models.mine.dtyp: unknown key"),
        ("{id: ./folder, dtype: int8}", "models.mine.dtype"),
        ("{id: ./folder, endpoint: {url: x, model: m}}", "models.mine.endpoint.url"),
    ],
)
def test_model_wrong_entries(entry, text, said):
    with pytest.raises(UserError) as caught:
        entry(text)
    assert said in str(caught.value)
    assert "params.yaml" in str(caught.value)


def test_model_unknown_name(entry):
    entry("{id: ./folder}")
    with pytest.raises(UserError, match=r"yours.*mine"):
        model("yours")


def test_load_model_that_is_not_pinned(entry):
    entry("{id: ./folder}")
    with pytest.raises(UserError, match="weights@mine"):
        load("mine")


@pytest.mark.parametrize(
    "endpoint",
    [
        {"url": "http://127.0.0.1:1/v1", "model": "m", "key": "sk-SECRETSECRET123"},
        {"url": "http://me:SECRETSECRET@127.0.0.1:1/v1", "model": "m"},
        {"url": "http://127.0.0.1@SECRET.example/v1", "model": "m"},
    ],
)
def test_model_secret_in_params(entry, endpoint):
    with pytest.raises(UserError, match=r"models\.mine|params\.yaml, line 2") as caught:
        entry(json.dumps({"kind": "remote", "endpoint": endpoint}))
    assert "SECRET" not in str(caught.value)
