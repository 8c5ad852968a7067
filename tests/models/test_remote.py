"""Models on a server, against a real one on loopback."""

import openai
import pytest
import torch
from models.served import TEMPLATE, Model, served, tiny
from models.tiny import save
from models.tiny_causal import llama, llama_tokenizer
from openai import _base_client

from plumbline.builders.core.errors import UserError
from plumbline.probes.models import remote as client
from plumbline.probes.models.params import Endpoint
from plumbline.probes.models.remote import Remote, continuation, identify
from plumbline.probes.models.scorer import Sampling, Score, Text

KEY = "sk-tests/0123456789abcdefGHIJ"
PROMPTS = [f"the {who} says {what}" for who in ("nurse", "doctor") for what in ("he", "she", "or")]
SHORT = Sampling(tokens=4)
PAIRS = [
    ("the nurse", " says that she is kind"),
    ("the doctor was born in", " Łódź"),
    ("he is 🙂", " today"),
    ("he is", " 🙂 ."),
    ("", "the nurse"),
    # characters of several tokens on both sides of the border
    ("he is 🚀", "🚀 today"),
    ("доб", "рый"),
    ("", "語 is kind"),
]


@pytest.fixture(autouse=True)
def hurry(monkeypatch):
    monkeypatch.setattr(_base_client, "INITIAL_RETRY_DELAY", 0.01)
    monkeypatch.setattr(client, "RETRIES", 2)
    monkeypatch.setattr(client, "TIMEOUT_S", 5)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return Model(tiny(tmp_path_factory.mktemp("served")))


@pytest.fixture(scope="module")
def site(model):
    with served(model) as server:
        yield server.address


def remote(address, **options):
    options = {"model": "tiny", "api": "completions"} | options
    return Remote("far", Endpoint(url=f"{address}/v1", **options), "r1")


def generated(address, prompts=PROMPTS[:1], **options):
    return list(remote(address, **options).generate(prompts, range(len(prompts)), SHORT))


def exactly(model, prefix, text):
    """Compute the log-probability of a continuation as a training loss would."""
    encoded = model.tokenizer(prefix + text, return_offsets_mapping=True, return_tensors="pt")
    starts = encoded.pop("offset_mapping")[0, :, 0]
    labels = encoded["input_ids"][0].clone()
    labels[(starts < len(prefix)) | (torch.arange(len(starts)) == 0)] = -100
    with torch.inference_mode():
        logits = model.model(**encoded).logits[0]
    loss = torch.nn.functional.cross_entropy(logits[:-1], labels[1:], reduction="sum")
    return Score(prefix + text, -float(loss), int((labels != -100).sum()))


def test_logprobs_are_the_models_own(site, model):
    scores = list(remote(site).logprobs(PAIRS))
    for score, pair in zip(scores, PAIRS, strict=True):
        true = exactly(model, *pair)
        assert (score.text, score.tokens) == (true.text, true.tokens)
        assert score.logprob_nats == pytest.approx(true.logprob_nats, abs=1e-6)


def test_logprobs_of_sentencepiece(tmp_path):
    tokenizer = llama_tokenizer(pad_token="<unk>")
    tokenizer.chat_template = TEMPLATE
    pieces = Model(save(tmp_path, llama(tokenizer), tokenizer))
    pairs = [("Ada is", " kind, and Cleo was tall."), ("Bo Falk", " is calm."), ("", "Ada is kind")]
    with served(pieces) as server:
        scores = list(remote(server.address).logprobs(pairs))
    for (prefix, text), score in zip(pairs, scores, strict=True):
        ids = tokenizer(prefix + text).input_ids
        start, rows = len(tokenizer(prefix).input_ids), pieces.nats(ids)
        true = sum(rows[n - 1, ids[n]].item() for n in range(start, len(ids)))
        assert score.logprob_nats == pytest.approx(true, abs=1e-6)
        assert score.tokens == len(ids) - start


@pytest.mark.parametrize("pair", [("the nur", "se is kind"), ("the nurse ", "is"), ("the", "")])
def test_logprobs_prefix_within_a_token(site, pair):
    with pytest.raises(UserError, match=r"models\.far: row 1"):
        list(remote(site).logprobs([PAIRS[0], pair]))


@pytest.mark.parametrize(
    "change",
    [
        {"token_logprobs": [-1.0]},
        {"token_logprobs": [None, -1, -1, None, -1]},
        {"token_logprobs": [None, -1, -1, float("nan"), -1]},
        {"token_logprobs": [None, -1, -1, 0.5, -1]},
        {"tokens": ["<s>", "the", " nurses", " is", "!"]},
        {"tokens": ["<s>", "the", " nurse", " is kind", 7]},
    ],
)
def test_continuation_rejects_wrong_scores(change):
    scores = {"tokens": ["<s>", "the", " nurse", " is", "!"]}
    scores |= {"token_logprobs": [None, -1, -1, -2, -1]}
    choice = {"text": "the nurse is!", "logprobs": scores}
    assert continuation("row 0", choice, "the nurse", " is") == [-2]
    with pytest.raises(UserError, match="row 0"):
        continuation("row 0", {**choice, "logprobs": scores | change}, "the nurse", " is")


@pytest.mark.parametrize(
    "answer",
    [
        (200, {"choices": [{"text": "the nurse is", "logprobs": None}]}),
        (200, {"choices": [{"text": " .", "logprobs": {}}]}),
        (400, {"detail": "Only no echo is supported"}),
    ],
)
def test_logprobs_server_without_scores(model, answer):
    with served(model, lambda *_: answer) as server:
        with pytest.raises(UserError, match="no log-probabilities"):
            list(remote(server.address).logprobs([("the nurse", " is")]))
        with pytest.raises(UserError, match="completions"):
            remote(server.address, api="chat").logprobs(PAIRS)
    assert len(server.requests) == 1


@pytest.mark.parametrize("temperature", [0, 1.5])
def test_generate_is_what_the_model_writes_for_each_seed(site, model, temperature):
    seeds = range(7, 7 + len(PROMPTS))
    wanted = []
    for prompt, seed in zip(PROMPTS, seeds, strict=True):
        _, drawn = model.write(prompt, 4, temperature, seed)
        text = model.tokenizer.decode(drawn, skip_special_tokens=True)
        finished = drawn[-1] == model.tokenizer.eos_token_id
        wanted.append(Text(prompt, seed, text, len(drawn), finished))
    sampling = Sampling(tokens=4, temperature=temperature)
    assert list(remote(site).generate(PROMPTS, seeds, sampling)) == wanted
    turned = remote(site, concurrency=1).generate(PROMPTS[::-1], reversed(seeds), sampling)
    assert list(turned) == wanted[::-1]


@pytest.mark.parametrize("api", ["chat", "completions"])
def test_generate_requests(model, api):
    with served(model) as server:
        far = remote(server.address, api=api)
        (text,) = far.generate(["he is kind"], [3], Sampling(4, 0.5, 0, 0.9))
        list(far.generate(["he is kind"], [3], Sampling(4, 0.5, 7, 0.9)))
    assert (text.prompt, text.seed, text.tokens) == ("he is kind", 3, 4)
    own = {"messages": [{"role": "user", "content": "he is kind"}]}
    own = own if api == "chat" else {"prompt": "he is kind"}
    own |= {"model": "tiny", "seed": 3, "max_tokens": 4, "temperature": 0.5, "top_p": 0.9}
    assert [body for _, _, body in server.requests] == [own, own | {"top_k": 7}]
    path = "/v1/chat/completions" if api == "chat" else "/v1/completions"
    assert {path for path, _, _ in server.requests} == {path}


def test_generate_max_completion_tokens(model):
    def script(number, body):
        if "max_completion_tokens" in body:
            choice = {"message": {"content": "yes"}, "finish_reason": "stop"}
            return 200, {"choices": [choice]}
        return 400, {"error": {"message": "Use 'max_completion_tokens' instead."}}

    with served(model, script) as server:
        texts = generated(server.address, PROMPTS, api="chat", concurrency=1)
    assert [(t.text, t.tokens, t.finished) for t in texts] == [("yes", 0, True)] * 6
    assert len(server.requests) == 7


@pytest.mark.parametrize(
    "response",
    [
        {"choices": [{"text": "bad", "finish_reason": "content_filter"}]},
        {"choices": [{"text": None, "finish_reason": "length"}]},
        {"output": "hello"},
        b"{",
        {
            "choices": [{"text": "a", "finish_reason": "stop"}],
            "system_fingerprint": "fp_ollama",  # puts its chat template around completions
        },
    ],
)
def test_generate_response_without_a_text(model, response):
    with (
        served(model, lambda *_: (200, response)) as server,
        pytest.raises(UserError, match=r"models\.far: row 0"),
    ):
        generated(server.address)


@pytest.mark.parametrize("status", [429, 500])
def test_generate_retries(model, site, status):
    with served(model, lambda number, _: (status, {}) if number == 1 else None) as server:
        assert generated(server.address) == generated(site)
    assert len(server.requests) == 2


@pytest.mark.parametrize(("status", "requests"), [(400, 1), (401, 1), (500, 3)])
def test_generate_failure_names_model_and_row(model, status, requests):
    def script(number, body):
        return (status, {"detail": "no\nroom"}) if body["prompt"] == PROMPTS[2] else None

    texts = []
    with (
        served(model, script) as server,
        pytest.raises(UserError, match=rf"models\.far: row 2.* {status}.*no room"),
    ):
        texts.extend(remote(server.address).generate(PROMPTS, range(6), SHORT))
    assert len([body for *_, body in server.requests if body["prompt"] == PROMPTS[2]]) == requests


def test_generate_server_that_is_not_there():
    with pytest.raises(UserError, match=r"models\.far: row 0"):
        generated("http://127.0.0.1:9")


def test_generate_token_budget(site):
    far = remote(site, token_budget=40, concurrency=1)
    for _ in range(2):  # the budget is the model's, not the call's
        with pytest.raises(UserError, match="token_budget"):
            list(far.generate(PROMPTS * 9, range(54), SHORT))
    assert 40 <= far.spent < 60


def test_key_is_sent_and_in_no_error(model, monkeypatch):
    monkeypatch.setenv("TEST_KEY", f"{KEY}\n")
    monkeypatch.setenv("OPENAI_ORG_ID", "org-another")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-another")
    answer = 401, {"error": {"message": f"wrong key {KEY}"}}
    with served(model, lambda *_: answer) as server, pytest.raises(UserError) as caught:
        generated(server.address, key="TEST_KEY")
    headers = server.requests[0][1]
    assert headers["authorization"] == f"Bearer {KEY}"
    assert not any("another" in value for value in headers.values())
    assert KEY not in str(caught.value)
    assert not isinstance(caught.value.__context__, openai.OpenAIError)  # which has the request


@pytest.mark.parametrize(("url", "value"), [("http://127.0.0.1:9", " "), ("http://a.b", KEY)])
def test_key_missing_or_sent_unencrypted(monkeypatch, url, value):
    monkeypatch.setenv("TEST_KEY", value)
    with pytest.raises((UserError, ValueError), match="TEST_KEY"):
        generated(url, key="TEST_KEY")


def test_identify(site):
    wanted = {"id": "tiny", "owned_by": "vllm", "parent": None, "max_model_len": 64}
    assert identify(remote(site).endpoint) == wanted
    with pytest.raises(UserError, match=r"'huge'.*tiny"):
        identify(remote(site, model="huge").endpoint)
    assert identify(Endpoint(url=f"{site}/nowhere", model="tiny")) == {"id": "tiny"}
