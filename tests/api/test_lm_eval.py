"""Our scorers as models of lm-evaluation-harness: sums by hand, and the harness itself."""

import json
import subprocess
import sys
from importlib.util import find_spec
from typing import NamedTuple

import pytest
import torch
import transformers as hf
from imports import TOP
from models.tiny import bert, opened, save, wordpiece
from models.tiny_causal import NAMES, SENTENCES, WORDS, gpt2, gpt2_tokenizer

from plumbline.builders.core.errors import UserError
from plumbline.lm_eval import CausalBridge, MaskedBridge, main

PAIRS = [
    ("Ada is", " kind, and Ada was honesttall."),  # the last word has several pieces
    ("Bo Falk is calm, and ", "Bo Falk was brave."),  # the space is the continuation's
    ("", "Cleo is tall."),
]
WORLD = TOP / "data/samples/worlds"


class Request(NamedTuple):
    """What is read of an instance of the harness."""

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
    """Mask each token of a continuation, all of the text in sight; return sum and greediness."""
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


RUN = """
import json, sys
from lm_eval import simple_evaluate
from lm_eval.tasks import TaskManager
from plumbline.lm_eval import register

register()
tasks = ["invented_pairs", "invented_endings", "invented_texts"]
manager = TaskManager(include_path=sys.argv[2], include_defaults=False)
found = {}
for model, where in json.loads(sys.argv[1]).items():
    options = {"pretrained": where, "dtype": "float64"}
    told = simple_evaluate(
        model=model, model_args=options, tasks=tasks, task_manager=manager, device="cpu",
        bootstrap_iters=0)
    found[model] = {
        task: {
            "metrics": {
                k: v for k, v in told["results"][task].items()
                if k.endswith(",none") and "stderr" not in k
            },
            "answers": [s["filtered_resps"] for s in told["samples"][task]],
        } for task in tasks
    }
print(json.dumps(found, default=str))
"""
HEAD = "test_split: test\ndataset_path: json\n"
CHOICE = "output_type: multiple_choice\ndoc_to_target: 0\n"
TASKS = {  # the first one as crows_pairs_english of the harness is
    "invented_pairs": CHOICE + 'doc_to_text: ""\ntarget_delimiter: ""\n'
    'doc_to_choice: "{{[sent_more, sent_less]}}"\nmetric_list: [{metric: acc}]\n',
    "invented_endings": CHOICE + 'doc_to_text: "{{context}}"\n'
    'doc_to_choice: "{{[one, other]}}"\nmetric_list: [{metric: acc}, {metric: exact_match}]\n',
    "invented_texts": 'output_type: loglikelihood_rolling\ndoc_to_text: ""\n'
    'doc_to_target: "{{sent_more}}"\nmetric_list: [{metric: word_perplexity}]\n',
}


@pytest.mark.slow
@pytest.mark.skipif(not find_spec("lm_eval"), reason="lm-eval is not installed (an extra of users)")
def test_the_harness_gives_the_same_with_our_causal_scorer_as_with_its_own(
    masked, causal, tmp_path
):
    rows = [
        {
            "sent_more": f"{name} is {word}, and {name} was kind.",
            "sent_less": f"{NAMES[n - 1]} is {word}, and {NAMES[n - 1]} was kind.",
            "context": f"{name} is {word}, and",
            "one": f"{name} was {WORDS[w - 1]}.",
            "other": f"{name} was {WORDS[w - 2]}.",
        }
        for n, name in enumerate(NAMES[:4])
        for w, word in enumerate(WORDS)
    ]
    data = tmp_path / "rows.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    for name, text in TASKS.items():
        files = f"task: {name}\ndataset_kwargs: {{data_files: {{test: {data}}}}}\n"
        (tmp_path / f"{name}.yaml").write_text(files + HEAD + text)
    asked = {"hf": str(causal), "plumbline-causal": str(causal), "plumbline-mlm": str(masked)}
    done = subprocess.run(
        [sys.executable, "-c", RUN, json.dumps(asked), str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
        cwd=TOP,
    )
    found = json.loads(done.stdout.splitlines()[-1])
    its, ours, mlm = (found[model] for model in asked)
    for task in TASKS:
        assert ours[task]["metrics"] == pytest.approx(its[task]["metrics"], rel=1e-4)
        for one, other in zip(ours[task]["answers"], its[task]["answers"], strict=True):
            if task == "invented_texts":
                assert list(map(float, one)) == pytest.approx(list(map(float, other)), abs=1e-4)
                continue
            for (mine, greedy), (true, best) in zip(one, other, strict=True):
                assert float(mine) == pytest.approx(float(true), abs=1e-4)
                assert greedy == best
    assert 0 < its["invented_pairs"]["metrics"]["acc,none"] < 1
    value, _ = one_by_one(masked, "", rows[0]["sent_more"], within=True)
    assert float(mlm["invented_pairs"]["answers"][0][0][0]) == pytest.approx(value, abs=2e-6)
