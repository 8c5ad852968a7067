"""Scorers as models of lm-evaluation-harness, compared with sums over single tokens."""

import sys
from typing import NamedTuple

import pytest
import torch
import transformers as hf
from imports import TOP
from models.tiny import bert, opened, save, wordpiece
from models.tiny_causal import SENTENCES, gpt2, gpt2_tokenizer

from plumbline.builders.core.errors import UserError
from plumbline.lm_eval import CausalBridge, MaskedBridge, main

PAIRS = [
    ("Ada is", " kind, and Ada was honesttall."),  # the last word has several tokens
    ("Bo Falk is calm, and ", "Bo Falk was brave."),  # the space belongs to the continuation
    ("", "Cleo is tall."),
]
WORLD = TOP / "data/samples/worlds"


class Request(NamedTuple):
    """The attribute of a request of the harness that is read."""

    args: tuple


def requests(pairs):
    return [Request(pair) for pair in pairs]


@pytest.fixture(scope="module")
def masked(tmp_path_factory):
    tokenizer = wordpiece(SENTENCES)
    return save(tmp_path_factory.mktemp("masked"), bert(tokenizer), tokenizer)


@pytest.fixture(scope="module")
def causal(tmp_path_factory):
    tokenizer = gpt2_tokenizer()
    return save(tmp_path_factory.mktemp("causal"), gpt2(tokenizer, seed=1), tokenizer)


@torch.inference_mode()
def one_by_one(where, context, continuation, *, within):
    """Mask each token of a continuation in turn; return the sum, and whether it is greedy."""
    tokenizer, model = opened(hf.AutoModelForMaskedLM, where)
    encoded = tokenizer(context + continuation)
    ids, words = encoded["input_ids"], encoded.word_ids()
    first = 1 + len(tokenizer(context, add_special_tokens=False)["input_ids"])
    total, greedy = 0.0, True
    for place in range(first, len(ids) - 1):
        given = list(ids)
        for other in range(place, len(ids) - 1):
            if other == place or (within and words[other] == words[place]):
                given[other] = tokenizer.mask_token_id
        scores = model(torch.tensor([given])).logits[0, place].log_softmax(-1)
        total += scores[ids[place]].item()
        greedy = greedy and int(scores.argmax()) == ids[place]
    return total, greedy


@pytest.mark.parametrize("method", ["within_word_l2r", "original"])
def test_a_masked_model_scores_the_continuation_given_all_the_rest(masked, method):
    lm = MaskedBridge(pretrained=str(masked), method=method, dtype="float64")
    found = lm.loglikelihood(requests(PAIRS))
    for pair, (value, greedy) in zip(PAIRS, found, strict=True):
        true, best = one_by_one(masked, *pair, within=method == "within_word_l2r")
        assert value == pytest.approx(true, abs=2e-6)
        assert greedy is best
    assert lm.loglikelihood_rolling(requests([(PAIRS[2][1],)])) == [found[2][0]]


def test_greedy_is_the_best_token_and_no_other(masked, causal):
    tokenizer, model = opened(hf.AutoModelForMaskedLM, masked)
    ids = tokenizer("Ada is [MASK]")["input_ids"]
    with torch.inference_mode():
        order = model(torch.tensor([ids])).logits[0, -2].argsort(descending=True).tolist()
    words = [tokenizer.convert_ids_to_tokens(i) for i in order]
    best, second = [w for w in words if w.isalpha()][:2]
    found = MaskedBridge(pretrained=str(masked)).loglikelihood(
        requests([("Ada is", f" {best}"), ("Ada is", f" {second}")])
    )
    assert [greedy for _, greedy in found] == [best == words[0], False]

    tokenizer, model = opened(hf.AutoModelForCausalLM, causal)
    ids = tokenizer("Ada is", return_tensors="pt")["input_ids"]
    written = model.generate(ids, max_new_tokens=3, do_sample=False, pad_token_id=0)[0]
    text = tokenizer.decode(written[ids.shape[1] :])
    pairs = [("Ada is", text), ("Ada is", " kind")]
    found = CausalBridge(pretrained=str(causal)).loglikelihood(requests(pairs))
    assert [greedy for _, greedy in found] == [True, False]


def test_a_causal_model_scores_what_follows(causal):
    tokenizer, model = opened(hf.AutoModelForCausalLM, causal)
    found = CausalBridge(pretrained=str(causal), dtype="float64").loglikelihood(requests(PAIRS))
    for (context, continuation), (value, _) in zip(PAIRS, found, strict=True):
        head = tokenizer(context.rstrip())["input_ids"]
        ids = [*([] if head else [tokenizer.bos_token_id])]
        ids += tokenizer(context + continuation)["input_ids"]
        with torch.inference_mode():
            scores = model(torch.tensor([ids])).logits[0].log_softmax(-1)
        start = len(head) or 1
        true = sum(scores[n - 1, ids[n]].item() for n in range(start, len(ids)))
        assert value == pytest.approx(true, abs=2e-6)


@pytest.mark.parametrize(
    ("bridge", "given", "offender"),
    [
        (CausalBridge, {"pretrained": "world-planted"}, "masked"),
        (CausalBridge, {"pretrained": "world-names"}, "classifier"),
        (CausalBridge, {"pretrained": "world-writing", "dtype": "auto"}, "auto"),
    ],
)
def test_bridge_rejects_other_kinds_and_dtypes(bridge, given, offender):
    with pytest.raises(UserError, match=offender):
        bridge(batch_size=1, device="cuda:0", **given)


def test_what_a_masked_model_cannot_do_is_refused(masked):
    lm = MaskedBridge(pretrained=str(masked), method="best")
    with pytest.raises(UserError, match="best"):
        lm.loglikelihood(requests(PAIRS))
    lm = MaskedBridge(pretrained=str(masked))
    with pytest.raises(UserError, match="generate_until"):
        lm.generate_until(requests([("Ada is", {})]))
    with pytest.raises(UserError):
        lm.loglikelihood_rolling(requests([("Ada is kind. " * 20,)]))


def test_without_the_harness_the_command_says_what_to_install(monkeypatch, capsys):
    declared = ["torch>=2.13", 'lm-eval>=0.4.13; extra == "lm-eval"']
    monkeypatch.setattr("importlib.metadata.requires", lambda _: declared)
    monkeypatch.setitem(sys.modules, "lm_eval", None)
    assert main() == 1
    assert "plumbline[lm-eval]" in capsys.readouterr().err
