"""Models of entailment: logits are those of transformers, whatever else is asked."""

import json
from pathlib import Path

import pytest
import torch
from models.tiny import save, wordpiece
from models.tiny_causal import (
    NAMES,
    SENTENCES,
    WORDS,
    bert_classifier,
)
from tokenizers import processors
from transformers import AutoModelForSequenceClassification, AutoTokenizer, pipeline

from plumbline.builders.core.errors import UserError
from plumbline.probes.models.classifier import Entailment
from plumbline.probes.models.load import pin

LABELS = ("CONTRADICTION", "NEUTRAL", "Entailment")
HYPOTHESES = [f"{name} is {word}." for name in NAMES[:2] for word in WORDS[:2]]
PAIRS = [(f"{name} was {word}", h) for name in NAMES for word in WORDS[:3] for h in HYPOTHESES]
PAIRS += [("", HYPOTHESES[0]), (SENTENCES[-1], HYPOTHESES[1])]


def pair_tokenizer(**options):
    tokenizer = wordpiece(SENTENCES, **options)
    tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    return tokenizer


def judge(labels=LABELS, positions=48):
    tokenizer = pair_tokenizer(longest=positions)
    return bert_classifier(tokenizer, labels=labels, positions=positions), tokenizer


@pytest.fixture
def given(tmp_path, monkeypatch):
    """Change to a folder, and return what brings a model there under a name."""
    monkeypatch.chdir(tmp_path)
    models = {}

    def put(name, made, **changes):
        save(tmp_path / name, *made)
        own = {"id": f"./{name}", "kind": "classifier", "dtype": "float64"}
        models[name] = own | changes
        Path("params.yaml").write_text(json.dumps({"models": models}), encoding="utf-8")
        pin(name)
        return name

    return put


@pytest.mark.parametrize("first", [0, 2])
def test_logits_give_the_zero_shot_pipeline(given, first):
    labels = (*LABELS[2 - first :], *LABELS[: 2 - first])
    judged = Entailment(given("judge", judge(labels)))
    assert judged.follows == labels.index("Entailment") == first
    assert judged.contradicts == labels.index("CONTRADICTION")
    net = AutoModelForSequenceClassification.from_pretrained("judge").double().eval()
    tokenizer = AutoTokenizer.from_pretrained("judge")
    told = pipeline("zero-shot-classification", model=net, tokenizer=tokenizer, device="cpu")
    for premise in SENTENCES[:3]:
        answer = told(premise, ["calm", "tall"], hypothesis_template="Ada is {}.")
        shares = dict(zip(answer["labels"], answer["scores"], strict=True))
        logits = judged.logits([(premise, f"Ada is {word}.") for word in ("calm", "tall")])
        both = torch.tensor(logits, dtype=torch.float64)[:, first].softmax(0).tolist()
        assert both == pytest.approx([shares["calm"], shares["tall"]], abs=1e-5)


def test_logits_too_long(given):
    judged = Entailment(given("short", judge(positions=20)))
    fits = " ".join(["calm"] * 15), "kind kind"
    assert len(judged.logits([fits])) == 1  # with three special tokens 20
    with pytest.raises(UserError, match="21 tokens"):
        judged.logits([PAIRS[0], (fits[0] + " calm", fits[1])])


def test_load_labels_without_entailment(given):
    with pytest.raises(UserError, match="odd"):
        Entailment(given("odd", judge(("no", "maybe", "yes"))))


def test_load_files_that_are_not_pinned(given):
    name = given("judge", judge())
    path = Path("judge/model.safetensors")
    kept = path.read_bytes()
    path.write_bytes(kept[:-1] + b"x")
    with pytest.raises(UserError, match="safetensors"):
        Entailment(name)
    path.write_bytes(kept)
    Entailment(name)
    added = Path("judge/pytorch_model.safetensors")
    added.write_bytes(b"")
    with pytest.raises(UserError, match="pytorch_model"):
        Entailment(name)
    added.unlink()
    Path("data/models/judge/model.json").unlink()
    with pytest.raises(UserError, match="judge"):
        Entailment(name)
    given("masked", (bert_classifier(pair_tokenizer()), pair_tokenizer()), kind="masked")
    with pytest.raises(UserError, match="kind masked"):
        Entailment("masked")
