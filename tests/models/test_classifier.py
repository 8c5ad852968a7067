import json
from functools import partial

import pytest
import torch
from models import tiny
from models.tiny import save, wordpiece
from models.tiny_causal import (
    LABELS,
    NAMES,
    SENTENCES,
    WORDS,
    bert_classifier,
)
from transformers import AutoModelForSequenceClassification

from plumbline.builders.core.errors import UserError
from plumbline.probes.models.classifier import Classifier

KINDS = ("bert", "roberta", "gpt2-labels")
TEXTS = [f"{name} is {word}." for name in NAMES for word in WORDS]
TEXTS += ["Ada", "Cleo was calm, and Bo Falk was tall, and Ada was brave.", SENTENCES[-1]]
SEVERAL = "multi_label_classification"


loaded = partial(tiny.loaded, Classifier)


def logits(where, text, dtype):
    """Compute the full forward of one text alone."""
    tokenizer, model = tiny.opened(AutoModelForSequenceClassification, where, dtype)
    with torch.no_grad():
        return model(**tokenizer(text, return_tensors="pt")).logits[0].double()


@pytest.mark.parametrize(
    ("kind", "problem", "dtype", "apart"),
    [
        *((kind, None, "float64", 1e-6) for kind in KINDS),
        ("roberta", "single_label_classification", "float64", 1e-6),
        ("bert", SEVERAL, "float64", 1e-6),
        ("gpt2-labels", SEVERAL, "float32", 2e-5),
    ],
)
def test_classify_is_a_plain_forward(folder, kind, problem, dtype, apart):
    where = folder(kind, problem=problem)
    answers = list(loaded(where, dtype).classify(TEXTS))
    assert [answer.text for answer in answers] == TEXTS
    for answer in answers:
        assert answer.labels == LABELS  # in the order of the numbers, whatever their names
        found = logits(where, answer.text, dtype)
        true = found.sigmoid() if problem == SEVERAL else found.softmax(0)
        assert answer.probabilities == pytest.approx(true.tolist(), abs=apart, rel=0)
    # so that a mix-up of texts or labels would be seen
    assert len({p for answer in answers for p in answer.probabilities}) > 2 * len(TEXTS)


@pytest.mark.parametrize(
    "change",
    [{"problem_type": "regression"}, {"id2label": {"0": "toxicity"}, "label2id": {"toxicity": 0}}],
)
def test_load_regression(tmp_path, change):
    tokenizer = wordpiece(SENTENCES)
    model = bert_classifier(tokenizer)
    if "id2label" in change:
        model.classifier = torch.nn.Linear(32, 1)
    where = save(tmp_path, model, tokenizer)
    config = json.loads((where / "config.json").read_text())
    (where / "config.json").write_text(json.dumps(config | change))
    with pytest.raises(UserError, match="labels"):
        loaded(where)


def test_load_repeated_label(tmp_path):
    tokenizer = wordpiece(SENTENCES)
    where = save(tmp_path, bert_classifier(tokenizer), tokenizer)
    config = json.loads((where / "config.json").read_text())
    config["id2label"] |= {"0": "neg", "1": "neg"}
    (where / "config.json").write_text(json.dumps(config))
    with pytest.raises(UserError, match="neg"):
        loaded(where)


@pytest.mark.parametrize(
    # RoBERTa's first two of 40 positions belong to the padding; all but GPT-2's have two specials
    ("kind", "words", "takes"),
    [("bert", 38, 40), ("roberta", 36, 38), ("gpt2-labels", 40, 40)],
)
def test_classify_too_long(folder, kind, words, takes):
    scorer = loaded(folder(kind))
    fits = "Ada" + " is" * (words - 1)
    (answer,) = scorer.classify([fits])
    assert answer.text == fits
    with pytest.raises(UserError, match=f"{takes + 1} tokens"):
        list(scorer.classify([*TEXTS, fits + " kind"]))


def test_load_with_a_context(folder):
    with pytest.raises(UserError, match="context"):
        Classifier(folder("bert"), "tiny", "r1", dtype="float64", context="Ada")
