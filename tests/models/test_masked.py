import json
import shutil
from functools import cache

import pytest
import torch
from models.tiny import bert, byte_level, roberta, save, wordpiece
from transformers import AutoModelForMaskedLM, AutoTokenizer

from builders.lib.problem import Problem
from probes.models import masked
from probes.models.masked import Masked

NAMES = ["Ada", "Ada Berg", "Bo", "Bo Falk Lind", "Cleo Lind", "Dag Ada Bo Cleo Berg"]
WORDS = ["kind", "brave", "calm", "dull", "eager", "fair", "grim", "honest", "idle", "just"]
SENTENCES = [f"a {word} {name}" for word in WORDS for name in NAMES]
PROMPTS = [f"<mask> {name}" for name in NAMES] + [f"{name} <mask>" for name in NAMES]


def loaded(folder, dtype="float64"):
    return Masked(folder, "tiny", "r1", dtype=dtype)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    tokenizer = wordpiece(SENTENCES)
    return save(tmp_path_factory.mktemp("bert"), bert(tokenizer), tokenizer)


@cache
def parts(folder, dtype):
    model = AutoModelForMaskedLM.from_pretrained(folder, dtype=dtype)
    return AutoTokenizer.from_pretrained(folder), model.eval()


def by_hand(folder, prompt, dtype):
    """Compute the full forward of one prompt alone; return a log-probability for each piece."""
    tokenizer, model = parts(folder, dtype)
    ids = tokenizer(prompt, return_tensors="pt")["input_ids"]
    with torch.no_grad():
        logits = model(input_ids=ids).logits
    assert logits.shape == (1, ids.shape[1], len(tokenizer))
    (place,) = (ids[0] == tokenizer.mask_token_id).nonzero().flatten().tolist()
    values = torch.log_softmax(logits[0, place].double(), 0).tolist()
    return dict(zip(tokenizer.convert_ids_to_tokens(range(len(values))), values, strict=True))


@pytest.mark.parametrize(("dtype", "apart"), [("float64", 1e-6), ("float32", 2e-5)])
def test_logprobs_are_those_of_a_plain_forward_over_the_full_vocabulary(folder, dtype, apart):
    fills = list(loaded(folder, dtype).fill(PROMPTS, WORDS, len(WORDS)))
    assert [fill.prompt for fill in fills] == [p.replace("<mask>", "[MASK]") for p in PROMPTS]
    for fill in fills:
        assert sorted(fill.words) == sorted(WORDS)
        assert list(fill.logprobs_nats) == sorted(fill.logprobs_nats, reverse=True)
        true = by_hand(folder, fill.prompt, getattr(torch, dtype))
        assert sum(2.718281828459045**x for x in true.values()) == pytest.approx(1)
        for word, said in zip(fill.words, fill.logprobs_nats, strict=True):
            assert abs(said - true[word]) < apart
        assert sum(2.718281828**x for x in fill.logprobs_nats) < 0.9  # not over candidates


def test_answers_keep_the_order_of_the_prompts_whoever_shares_the_batch(folder, monkeypatch):
    scorer = loaded(folder)
    prompts = (PROMPTS * 7)[::-1]
    alone = [next(scorer.fill([prompt], WORDS, 4)) for prompt in prompts]
    assert [fill.prompt for fill in alone] == [p.replace("<mask>", "[MASK]") for p in prompts]
    assert len({fill.words for fill in alone}) > 6
    for batch in (1, 7, 64):
        monkeypatch.setattr(masked, "BATCH", batch)
        assert list(scorer.fill(iter(prompts), WORDS, 4)) == alone
    monkeypatch.setattr(masked, "BLOCK", 5)
    assert list(scorer.fill(iter(prompts), WORDS, 4)) == alone


def test_float32_moves_by_no_more_than_its_last_digits_with_the_batch(folder, monkeypatch):
    scorer = loaded(folder, "float32")
    prompts = PROMPTS * 7
    monkeypatch.setattr(masked, "BATCH", 1)
    alone = list(scorer.fill(prompts, WORDS, len(WORDS)))
    monkeypatch.setattr(masked, "BATCH", 64)
    for one, shared in zip(alone, scorer.fill(prompts, WORDS, len(WORDS)), strict=True):
        values = dict(zip(shared.words, shared.logprobs_nats, strict=True))
        for word, said in zip(one.words, one.logprobs_nats, strict=True):
            assert values[word] == pytest.approx(said, abs=2e-5)


def test_no_prompt_no_answer_and_a_list_is_never_longer_than_the_candidates(folder):
    scorer = loaded(folder)
    assert list(scorer.fill([], WORDS, 3)) == []
    (fill,) = scorer.fill(PROMPTS[:1], ["kind", "unheard", "calm"], 100)
    assert sorted(fill.words) == ["calm", "kind"]


def test_ties_go_to_the_earlier_candidate(tmp_path):
    tokenizer = wordpiece(SENTENCES)
    model = bert(tokenizer)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    scorer = loaded(save(tmp_path, model, tokenizer))
    candidates = WORDS[::-1]
    (fill,) = scorer.fill(PROMPTS[:1], candidates, 6)
    assert list(fill.words) == candidates[:6]
    # all pieces are equally likely
    (value,) = set(fill.logprobs_nats)
    assert 2.718281828459045**value == pytest.approx(1 / len(tokenizer), rel=1e-5)


@pytest.mark.parametrize("wrong", ["<mask> Ada <mask>", "Ada Berg", "<mask> Ada [MASK] Berg", ""])
def test_a_prompt_without_exactly_one_mask_is_refused_and_named(folder, wrong):
    shown = repr(wrong.replace("<mask>", "[MASK]"))
    with pytest.raises(Problem, match="not exactly one mask") as caught:
        list(loaded(folder).fill([PROMPTS[0], wrong], WORDS, 3))
    assert shown in str(caught.value)
    assert "models.tiny" in str(caught.value)


def test_a_prompt_longer_than_the_model_is_refused_never_cut(folder):
    scorer = loaded(folder)
    fits = " ".join(["Ada"] * 61)  # and [CLS], the mask, [SEP]
    (fill,) = scorer.fill([f"<mask> {fits}"], WORDS, 3)
    assert fill.prompt == f"[MASK] {fits}"
    with pytest.raises(Problem, match="has 65 tokens, the model takes 64") as caught:
        list(scorer.fill([f"<mask> {fits} Bo"], WORDS, 3))
    assert f"{fits} Bo" in str(caught.value)
    endless = " ".join(["A" + "da" * 45] * 9)  # one name, hundreds of pieces
    with pytest.raises(Problem, match=endless):
        list(scorer.fill([f"{endless} <mask>"], WORDS, 3))


def test_weights_that_are_not_numbers_are_told(tmp_path):
    tokenizer = wordpiece(SENTENCES)
    model = bert(tokenizer)
    with torch.no_grad():
        model.bert.encoder.layer[0].output.dense.weight[0, 0] = float("nan")
    scorer = loaded(save(tmp_path, model, tokenizer))
    with pytest.raises(Problem, match=r"models\.tiny: answers are not finite in float64"):
        list(scorer.fill(PROMPTS, WORDS, 3))


def test_a_model_without_mask_is_refused(tmp_path):
    tokenizer = wordpiece(SENTENCES, mask=None)
    with pytest.raises(Problem, match=r"models\.tiny: has no mask token"):
        loaded(save(tmp_path, bert(tokenizer), tokenizer))


def test_pickled_weights_are_refused(folder, tmp_path):
    there = tmp_path / "pickled"
    shutil.copytree(folder, there)
    model = AutoModelForMaskedLM.from_pretrained(there)
    (there / "model.safetensors").unlink()
    torch.save(model.state_dict(), there / "pytorch_model.bin")
    with pytest.raises(Problem, match=r"models\.tiny: could not be loaded"):
        loaded(there)


def test_a_folder_without_a_model_is_told(tmp_path):
    with pytest.raises(Problem, match="check id and revision"):
        loaded(tmp_path)


def test_missing_words_are_told_one_by_one(folder):
    asked = ["kind", "kindly", "добрый", "Kind", "calm", "kind", "well-known", "grim"]
    found = loaded(folder).vocabulary(asked)
    assert list(found.ids) == ["kind", "calm", "grim"]
    # split, unknown script, other case, one that another word has already, three pieces
    assert found.missing == ("kindly", "добрый", "Kind", "kind", "well-known")
    tokenizer = AutoTokenizer.from_pretrained(folder)
    for word, piece in found.ids.items():
        assert tokenizer.convert_ids_to_tokens(piece) == word


def test_an_uncased_tokenizer_lacks_what_it_would_change(tmp_path):
    tokenizer = wordpiece(["a Kind Élan american American elan"], lowercase=True)
    scorer = loaded(save(tmp_path, bert(tokenizer), tokenizer))
    found = scorer.vocabulary(["American", "american", "kind", "élan", "elan"])
    assert list(found.ids) == ["american", "kind", "elan"]
    assert found.missing == ("American", "élan")


def test_facts_name_model_revision_and_vocabulary(folder):
    facts = loaded(folder).facts()
    entries = json.loads((folder / "tokenizer.json").read_text())["model"]["vocab"]
    assert facts == {
        "model": "tiny",
        "revision": "r1",
        "architecture": "BertForMaskedLM",
        "vocabulary": len(entries),
        "mask_token": "[MASK]",
        "dtype": "float64",
    }


SPACED = [*["kind Ada is kind to a kind Bo, a calm one"] * 9, *["Zed", "Zed,"] * 9]


def test_byte_level_candidates_are_the_pieces_with_the_leading_space(tmp_path):
    tokenizer = byte_level(SPACED, model_max_length=30)
    vocabulary = tokenizer.get_vocab()
    assert {"kind", "Ġkind", "Zed", "Ġcalm"} <= set(vocabulary)
    assert "ĠZed" not in vocabulary
    scorer = loaded(save(tmp_path, roberta(tokenizer), tokenizer))
    found = scorer.vocabulary(["kind", "calm", "Zed"])
    assert dict(found.ids) == {"kind": vocabulary["Ġkind"], "calm": vocabulary["Ġcalm"]}
    assert found.missing == ("Zed",)
    (fill,) = scorer.fill(["<mask> Ada"], ["kind", "calm"], 2)
    true = by_hand(tmp_path, "<mask> Ada", torch.float64)
    for word, said in zip(fill.words, fill.logprobs_nats, strict=True):
        assert abs(said - true[f"Ġ{word}"]) < 1e-6


def test_positions_that_roberta_keeps_for_the_padding_are_not_promised(tmp_path):
    tokenizer = byte_level(SPACED)  # says nothing of its longest input
    scorer = loaded(save(tmp_path, roberta(tokenizer, positions=12), tokenizer))
    # 12 positions, of which 0 and 1 belong to the padding: 10 tokens
    fits = "kind" + " a" * 6
    (fill,) = scorer.fill([f"{fits}<mask>"], ["kind"], 1)
    assert fill.words == ("kind",)
    with pytest.raises(Problem, match="has 11 tokens, the model takes 10"):
        list(scorer.fill([f"{fits} a<mask>"], ["kind"], 1))
