"""Weights from anywhere: nothing that comes with them is ever run."""

import contextlib
import json
import sys
from functools import cache
from pathlib import Path

import pytest
import torch
from models.tiny import answers, bert, save, wordpiece
from models.tiny_causal import SENTENCES, bert_classifier, gpt2, gpt2_tokenizer, t5, t5_tokenizer
from transformers import AutoConfig, dynamic_module_utils

from plumbline.builders.core.errors import UserError
from plumbline.probes.models.causal import Causal
from plumbline.probes.models.classifier import Classifier
from plumbline.probes.models.load import look
from plumbline.probes.models.masked import Masked
from plumbline.probes.models.seq2seq import Seq2Seq

KINDS = {
    "masked": (Masked, bert, "AutoModelForMaskedLM"),
    "causal": (Causal, gpt2, "AutoModelForCausalLM"),
    "seq2seq": (Seq2Seq, t5, "AutoModelForSeq2SeqLM"),
    "classifier": (Classifier, bert_classifier, "AutoModelForSequenceClassification"),
}
TOKENIZERS = {gpt2: gpt2_tokenizer, t5: t5_tokenizer}


@cache
def made(kind):
    """Return a model and its tokenizer."""
    build = KINDS[kind][1]
    tokenizer = TOKENIZERS.get(build, lambda: wordpiece(SENTENCES))()
    return build(tokenizer), tokenizer


@pytest.fixture
def where(tmp_path, kind):
    return save(tmp_path / "model", *made(kind))


@pytest.fixture
def mark(tmp_path):
    """The file that the foreign code would write."""
    return tmp_path / "the code was run"


def loaded(kind, where, **options):
    return KINDS[kind][0](where, "tiny", "r1", dtype="float32", **options)


def answer(kind, scorer):
    if kind == "classifier":
        return list(scorer.classify(["Ada is kind."]))
    if kind == "masked":
        return answers(scorer.fill(["Ada is <mask>."], ["kind"], 1))
    return list(scorer.logprobs([("Ada is", " kind")]))


class Writes:
    """What a pickle calls when it is read."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self):
        return Path.touch, (self.mark,)


@pytest.mark.parametrize("kind", KINDS)
def test_load_pickles_runs_no_code(where, kind, mark):
    true = answer(kind, loaded(kind, where))
    (where / "model.safetensors").unlink()
    torch.save(made(kind)[0].state_dict(), where / "pytorch_model.bin")
    with pytest.raises(UserError, match="safetensors"):
        loaded(kind, where)
    assert answer(kind, loaded(kind, where, pickles=True)) == true
    torch.save({"weight": Writes(mark)}, where / "pytorch_model.bin")
    with pytest.raises(UserError, match="tiny"):
        loaded(kind, where, pickles=True)
    assert not mark.exists()
    with (where / "pytorch_model.bin").open("rb") as file:
        torch.load(file, weights_only=False)
    assert mark.exists()  # so it would have been written


def plant(where, kind, mark):
    """Put a module into the folder that writes a file when it is imported; return its map."""
    (where / "mine.py").write_text(
        f"""from pathlib import Path
from transformers import AutoConfig, {KINDS[kind][2]} as Model, PreTrainedTokenizerFast

Path({str(mark)!r}).touch()


class Config(AutoConfig):
    model_type = "mine"


class Tokenizer(PreTrainedTokenizerFast):
    pass
"""
    )
    return {"AutoConfig": "mine.Config", KINDS[kind][2]: "mine.Model"}


def change(file, **entries):
    file.write_text(json.dumps(json.loads(file.read_text()) | entries))


@pytest.mark.parametrize("kind", KINDS)
def test_load_runs_no_code_of_a_model(where, kind, mark):
    change(where / "config.json", model_type="mine", auto_map=plant(where, kind, mark))
    with pytest.raises(UserError, match="tiny"):
        loaded(kind, where)
    assert not mark.exists()


def test_planted_code_runs_where_trusted(tmp_path, mark, monkeypatch):
    where = save(tmp_path / "model", *made("causal"))
    change(where / "config.json", model_type="mine", auto_map=plant(where, "causal", mark))
    monkeypatch.setattr(dynamic_module_utils, "HF_MODULES_CACHE", str(tmp_path / "modules"))
    monkeypatch.setattr(sys, "path", list(sys.path))
    with contextlib.suppress(OSError, ValueError, AttributeError):  # it is no true model
        AutoConfig.from_pretrained(where, trust_remote_code=True)
    assert mark.exists()


@pytest.mark.parametrize("kind", KINDS)
def test_facts(where, kind):
    model, tokenizer = made(kind)
    masks = {"masked": "[MASK]", "classifier": "[MASK]", "seq2seq": "<extra_id_0>"}
    assert loaded(kind, where).facts() == {
        "model": "tiny",
        "revision": "r1",
        "architecture": type(model).__name__,
        "vocabulary": len(tokenizer),
        "mask_token": masks.get(kind, ""),
        "dtype": "float32",
    }


@pytest.mark.parametrize("kind", KINDS)
def test_load_broken_weights(where, kind):
    file = where / "model.safetensors"
    whole = file.read_bytes()
    for broken in (whole[:-100], b""):
        file.write_bytes(broken)
        with pytest.raises(UserError, match="tiny"):
            loaded(kind, where)


ODD = ["[]", "null", "3", '"x"', "[" * 100_000, "\xff", '{"added_tokens": 3}', "{", "{}"]


@pytest.mark.parametrize("body", [*ODD, '{"added_tokens": [], "architectures": {"a": [3]}}'])
def test_odd_json_of_a_model_is_an_error_in_the_input(tmp_path, body):
    where = save(tmp_path / "model", *made("masked"))
    for name, read in (
        ("tokenizer", lambda: loaded("masked", where)),
        ("config", lambda: look(where, "tiny")),
    ):
        (where / f"{name}.json").write_text(body, "latin-1")
        with pytest.raises(UserError, match=r"tiny|model"):
            read()
