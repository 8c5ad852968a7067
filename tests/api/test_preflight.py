"""Mistakes with models that are told before anything is built, by names of files and a config."""

import json

import pytest

from plumbline.builders.core.errors import UserError
from plumbline.models import find
from plumbline.probes.models import preflight
from plumbline.studies import fitting

from .conftest import WORLDS, imported

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
        ("BertForPreTraining", "masked"),
        ("XLNetLMHeadModel", "masked"),
        ("XLMWithLMHeadModel", "masked"),
        ("BartModel", "masked"),
        ("GPT2LMHeadModel", "causal"),
        ("GPTNeoXForCausalLM", "causal"),
        ("T5ForConditionalGeneration", "seq2seq"),
        ("RobertaForSequenceClassification", "classifier"),
    ],
)
def test_the_kind_is_that_of_the_head(tmp_path, architecture, kind):
    found = find(folder(tmp_path / "m", architecture))
    assert found.kind == kind
    assert found.entry == {"id": (tmp_path / "m").as_posix(), "kind": kind}


def test_studies_fit_the_kinds_that_their_probes_can_ask():
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
        ({"architecture": "ElectraForPreTraining"}, "ElectraForPreTraining"),
        ({"architecture": "BertForTokenClassification"}, "BertForTokenClassification"),
        ({"architecture": "BertForMaskedLM", "files": WHOLE[::2]}, "tokenizer"),
        ({"architecture": "BertForMaskedLM", "files": ("config.json", "vocab.txt")}, "weights"),
        ({}, "architecture"),
    ],
)
def test_find_rejects_a_folder_that_no_study_can_use(tmp_path, made, named):
    with pytest.raises(UserError, match=named) as caught:
        find(folder(tmp_path / "m", **made))
    assert str(caught.value).startswith(str(tmp_path / "m"))


def test_a_kind_that_is_not_the_heads_is_refused_with_the_right_one(tmp_path):
    with pytest.raises(UserError, match="causal"):
        find(folder(tmp_path / "m", "GPT2LMHeadModel"), kind="masked")


def test_a_model_that_reads_bytes_needs_no_tokenizer_files(tmp_path):
    files = ("config.json", "model.safetensors")
    where = folder(tmp_path / "m", "T5ForConditionalGeneration", files, model_type="byt5")
    assert preflight.look(where, "m") == "seq2seq"


@pytest.mark.parametrize("wrong", ["./nowhere", "/nowhere", "~/nowhere-at-all"])
def test_a_folder_that_is_not_there_is_no_id_of_the_hub(wrong):
    with pytest.raises(UserError, match=wrong):
        find(wrong)


def test_names_are_such_as_params_take(tmp_path):
    found = find(folder(tmp_path / "7b.v2", "BertForMaskedLM"))
    assert found.name == "m7b-v2"


def test_a_folder_that_is_called_as_a_control_is_another_model(tmp_path):
    found = find(folder(tmp_path / "world-planted", "BertForMaskedLM"))
    assert found.name == "my-world-planted"
    assert found.entry is not None
    assert find("world-planted").entry is None


def test_a_look_reads_no_weights_and_imports_no_framework():
    code = f"from plumbline.models import find; find('{WORLDS}/world-planted')"
    assert imported(code, "torch", "transformers", "polars", "dvc") == ([], [])
