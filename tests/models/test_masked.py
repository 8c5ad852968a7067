from functools import partial

import pytest
import torch
from models import tiny
from models.tiny import answers, bert, save, wordpiece

from plumbline.builders.core.errors import UserError
from plumbline.probes.models.masked import Masked

NAMES = ["Ada", "Ada Berg", "Bo", "Bo Falk Lind", "Cleo Lind", "Dag Ada Bo Cleo Berg"]
WORDS = ["kind", "brave", "calm", "dull", "eager", "fair", "grim", "honest", "idle", "just"]
SENTENCES = [f"a {word} {name}" for word in WORDS for name in NAMES]
PROMPTS = [f"<mask> {name}" for name in NAMES] + [f"{name} <mask>" for name in NAMES]


loaded = partial(tiny.loaded, Masked)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    tokenizer = wordpiece(SENTENCES)
    return save(tmp_path_factory.mktemp("bert"), bert(tokenizer), tokenizer)


def test_fill_no_prompts_and_few_candidates(folder):
    scorer = loaded(folder)
    assert list(scorer.fill([], WORDS, 3)) == []
    (fill,) = answers(scorer.fill(PROMPTS[:1], ["kind", "unheard", "calm"], 100))
    assert sorted(fill.words) == ["calm", "kind"]


def test_fill_ties(tmp_path):
    tokenizer = wordpiece(SENTENCES)
    model = bert(tokenizer)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    scorer = loaded(save(tmp_path, model, tokenizer))
    candidates = WORDS[::-1]
    (fill,) = answers(scorer.fill(PROMPTS[:1], candidates, 6))
    assert list(fill.words) == candidates[:6]
    # all pieces are equally likely
    (value,) = set(fill.logprobs_nats)
    assert 2.718281828459045**value == pytest.approx(1 / len(tokenizer), rel=1e-5)


@pytest.mark.parametrize("wrong", ["<mask> Ada <mask>", "Ada Berg", "<mask> Ada [MASK] Berg", ""])
def test_fill_not_one_mask(folder, wrong):
    shown = repr(wrong.replace("<mask>", "[MASK]"))
    with pytest.raises(UserError, match="not exactly one mask") as caught:
        list(loaded(folder).fill([PROMPTS[0], wrong], WORDS, 3))
    assert shown in str(caught.value)
    assert "models.tiny" in str(caught.value)


def test_load_without_a_mask(tmp_path):
    tokenizer = wordpiece(SENTENCES, mask=None)
    with pytest.raises(UserError, match="mask"):
        loaded(save(tmp_path, bert(tokenizer), tokenizer))


def test_load_empty_folder(tmp_path):
    with pytest.raises(UserError, match="revision"):
        loaded(tmp_path)


def test_spelled_non_words(folder):
    asked = ["", " ", " kind", "kind", "[SEP]", "[MASK]", "calm\n"]
    assert loaded(folder).spelled(asked) == {"kind": 1}
