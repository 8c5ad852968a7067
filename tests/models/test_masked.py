from functools import partial

import pytest
import torch
from models import tiny
from models.tiny import answers, bert, save, shared, wordpiece

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


def test_answers_keep_the_order_of_the_prompts_whoever_shares_the_batch(folder, monkeypatch):
    scorer = loaded(folder)
    prompts = (PROMPTS * 2)[::-1]
    alone = [answers(scorer.fill([prompt], WORDS, 4))[0] for prompt in prompts]
    assert [fill.prompt for fill in alone] == [p.replace("<mask>", "[MASK]") for p in prompts]
    assert len({fill.words for fill in alone}) > 6
    for rows, block in ((1, 4096), (7, 4096), (64, 5)):
        shared(monkeypatch, scorer, rows=rows, block=block)
        assert answers(scorer.fill(iter(prompts), WORDS, 4)) == alone


def test_no_prompt_no_answer_and_a_list_is_never_longer_than_the_candidates(folder):
    scorer = loaded(folder)
    assert list(scorer.fill([], WORDS, 3)) == []
    (fill,) = answers(scorer.fill(PROMPTS[:1], ["kind", "unheard", "calm"], 100))
    assert sorted(fill.words) == ["calm", "kind"]


def test_ties_go_to_the_earlier_candidate(tmp_path):
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
def test_a_prompt_without_exactly_one_mask_is_refused_and_named(folder, wrong):
    shown = repr(wrong.replace("<mask>", "[MASK]"))
    with pytest.raises(UserError, match="not exactly one mask") as caught:
        list(loaded(folder).fill([PROMPTS[0], wrong], WORDS, 3))
    assert shown in str(caught.value)
    assert "models.tiny" in str(caught.value)


def test_a_model_without_mask_is_refused(tmp_path):
    tokenizer = wordpiece(SENTENCES, mask=None)
    with pytest.raises(UserError, match=r"models\.tiny: has no mask token"):
        loaded(save(tmp_path, bert(tokenizer), tokenizer))


def test_a_folder_without_a_model_is_told(tmp_path):
    with pytest.raises(UserError, match="check id and revision"):
        loaded(tmp_path)


def test_what_is_no_word_is_no_candidate(folder):
    asked = ["", " ", " kind", "kind", "[SEP]", "[MASK]", "calm\n"]
    found = loaded(folder).vocabulary(asked)
    assert list(found.ids) == ["kind"]
    assert found.missing == ("", " ", " kind", "[SEP]", "[MASK]", "calm\n")
