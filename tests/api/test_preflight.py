"""Problems with models that their config and file names reveal before anything is built."""

import json
from types import SimpleNamespace

import pytest

from plumbline.builders.core.errors import UserError
from plumbline.models import find, save_loaded
from plumbline.probes.models import load
from plumbline.studies import fitting

WHOLE = ("config.json", "tokenizer.json", "model.safetensors")


def folder(at, architecture=None, files=WHOLE, **config):
    at.mkdir()
    for name in files:
        (at / name).write_text("{}")
    if "config.json" in files:
        if architecture:
            config["architectures"] = [architecture]
        (at / "config.json").write_text(json.dumps(config))
    return at


@pytest.mark.parametrize(
    ("architecture", "kind"),
    [
        ("BertForMaskedLM", "masked"),
        ("XLNetLMHeadModel", "masked"),
        ("GPT2LMHeadModel", "causal"),
        ("T5ForConditionalGeneration", "seq2seq"),
        ("RobertaForSequenceClassification", "classifier"),
    ],
)
def test_find_kind_is_that_of_the_head(tmp_path, architecture, kind):
    found = find(folder(tmp_path / "m", architecture))
    assert found.kind == kind
    assert found.entry == {"id": (tmp_path / "m").as_posix(), "kind": kind}


def test_fitting_studies_by_kind():
    most = {"politicians", "values", "leaning"}
    assert {kind: set(fitting(kind)) for kind in ("masked", "causal", "seq2seq", "classifier")} == {
        "masked": most | {"stereotypes"},
        "causal": most | {"stereotypes"},
        "seq2seq": most,
        "classifier": {"nationality"},
    }


@pytest.mark.parametrize(
    ("made", "named"),
    [
        ({"files": ()}, "config.json"),
        ({"files": ("adapter_config.json",)}, "adapter_config.json"),
        ({"architecture": "BertModel"}, "BertModel"),
        ({"architecture": "BertForMaskedLM", "files": WHOLE[::2]}, "tokenizer"),
        ({"architecture": "BertForMaskedLM", "files": ("config.json", "vocab.txt")}, "weights"),
        ({}, "architecture"),
    ],
)
def test_find_rejects_a_folder_that_no_study_can_use(tmp_path, made, named):
    with pytest.raises(UserError, match=named) as caught:
        find(folder(tmp_path / "m", **made))
    assert str(caught.value).startswith(str(tmp_path / "m"))


def test_look_byte_model_needs_no_tokenizer(tmp_path):
    files = ("config.json", "model.safetensors")
    where = folder(tmp_path / "m", "T5ForConditionalGeneration", files, model_type="byt5")
    assert load.look(where, "m") == "seq2seq"


def test_find_folder_named_like_a_control(tmp_path):
    assert find(folder(tmp_path / "7b.v2", "BertForMaskedLM")).name == "m7b-v2"
    found = find(folder(tmp_path / "world-planted", "BertForMaskedLM"))
    assert found.name == "my-world-planted"
    assert found.entry is not None
    assert find("world-planted").entry is None


def test_failed_save_of_loaded_model_keeps_the_last_one(tmp_path):
    def saved(name, text):
        def save(folder):
            folder.mkdir(exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")

        return SimpleNamespace(save_pretrained=save, config=SimpleNamespace(_name_or_path="a/b.1"))

    def fails(_):
        raise OSError(28, "No space left on device")

    folder, name = save_loaded(saved("model", "1"), saved("tokenizer", "1"), "", tmp_path)
    assert name == "b-1"
    with pytest.raises(OSError, match="No space"):
        save_loaded(saved("model", "2"), SimpleNamespace(save_pretrained=fails), "", tmp_path)
    assert {path.name: path.read_text() for path in folder.iterdir()} == {
        "model": "1",
        "tokenizer": "1",
    }
    assert list(folder.parent.iterdir()) == [folder]
