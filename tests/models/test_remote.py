from __future__ import annotations

import json

import pytest
import torch
from models.far import PROMPTS, SHORT, asked, at, endpoint, refused
from models.served import CREATED
from sources.misbehaving import always, misbehaving, says, stall, status

from plumbline.builders.core.errors import UserError
from plumbline.probes.models.remote import continuation, identify
from plumbline.probes.models.scorer import Generates, Sampling, Score, ScoresContinuations, Text

PAIRS = [
    ("the nurse", " says that she is kind"),
    ("the doctor was born in", " Łódź"),
    ("the doctor was born in", " Köln today"),
    ("he is 🙂", " today"),
    ("he is", " 🙂 ."),
    ("", "the nurse"),
]


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


def same(scores, wanted):
    assert [score._replace(logprob_nats=0) for score in scores] == [
        want._replace(logprob_nats=0) for want in wanted
    ]
    for score, want in zip(scores, wanted, strict=True):
        assert score.logprob_nats == pytest.approx(want.logprob_nats, abs=1e-6)


def test_a_remote_model_has_the_verbs_of_a_causal_one_and_the_same_facts(site):
    far = at(site)
    assert isinstance(far, Generates)
    assert isinstance(far, ScoresContinuations)
    assert far.facts() == {
        "model": "far",
        "revision": "r1",
        "architecture": "remote: tiny",
        "vocabulary": 0,
        "mask_token": "",
        "dtype": "unknown",
    }


# Scores


def test_continuations_get_the_models_own_scores(site, model):
    same(list(at(site).logprobs(PAIRS)), [exactly(model, *pair) for pair in PAIRS])


@pytest.mark.parametrize(
    ("tokens", "offsets"),
    [
        (["a", "é", "", " b"], [0, 1, 2, 2]),  # the rest of a character behind it
        (["a", "é", "", "ü", "", " b"], [0, 1, 2, 2, 3, 3]),
        (["a", "é", "", "", " b"], [0, 1, 2, 2, 2]),
    ],
)
def test_parts_of_a_character_behind_it_are_not_taken_for_the_next_one(tokens, offsets):
    values = [None, *[-1.0] * (len(tokens) - 1)]
    told = {"tokens": tokens, "text_offset": offsets, "token_logprobs": values}
    text = "".join(tokens)
    with pytest.raises(UserError, match="the prefix ends within a token"):
        continuation("row 0", {"text": text, "logprobs": told}, "aé", text.removeprefix("aé"))


@pytest.mark.parametrize(
    ("pair", "words"),
    [
        (("the nur", "se is kind"), "the prefix ends within a token"),
        (("the nurse ", "is kind"), "the prefix ends within a token"),
        (("the nurse", ""), "nothing to score after the prefix"),
    ],
)
def test_a_prefix_that_ends_within_a_token_or_the_text_is_told(site, pair, words):
    with pytest.raises(UserError, match=rf"^models\.far: row 1 .*: {words}"):
        list(at(site).logprobs([PAIRS[0], pair]))


def test_a_chat_has_no_scores(site):
    with pytest.raises(UserError, match=r"^models\.far: a chat tells nothing of a given text; "):
        at(site, api="chat").logprobs(PAIRS)


@pytest.fixture(scope="module")
def told(model):
    """What the server says of ``the nurse`` and `` is kind``."""
    request = {"prompt": "the nurse is kind", "echo": True, "logprobs": 1}
    answer = model.answer("", request | {"max_tokens": 1, "temperature": 0}, usage=True)
    assert answer["choices"][0]["logprobs"]["text_offset"] == [0, 3, 9, 12, 17]
    return answer["choices"][0]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"tokens": None}, "tokens, text_offset and token_logprobs are not of one length"),
        ({"token_logprobs": [-1.0]}, "are not of one length"),
        ({"token_logprobs": [None, -1, None, -1, -1]}, "None as the log-probability of .* ' is'"),
        ({"token_logprobs": [None, -1, -1, float("nan"), -1]}, "nan as the .* token ' kind'"),
        ({"token_logprobs": [None, -1, -1, float("-inf"), -1]}, "-inf as the log-prob"),
        ({"token_logprobs": [None, -1, -1, -9999.0, -1]}, r"-9999\.0 as the log-prob"),
        ({"token_logprobs": [None, -1, -1, 0.5, -1]}, r"0\.5 as the log-prob"),
        ({"token_logprobs": [None, -1, "-1", -1, -1]}, "'-1' as the log-prob"),
        ({"text_offset": [0, 3, 8, 12, 17]}, "do not add up to the text"),
        ({"text_offset": [-1] * 5}, "do not add up to the text"),
        ({"text_offset": [0, 3, 9, 12, None]}, "do not add up to the text"),
        ({"tokens": ["the", " nurse", " is", " kind", 7]}, "do not add up to the text"),
        ({"tokens": ["", "", "", "", ""]}, "do not add up to the text"),
    ],
)
def test_scores_that_are_wrong_are_told_with_model_and_row(site, told, change, words):
    answer = {"choices": [told | {"logprobs": told["logprobs"] | change}]}
    matched = rf"^models\.far: row 0 \('the nurse is kind'\): .*{words}"
    with (
        misbehaving(site, always(says(json.dumps(answer).encode()))) as server,
        pytest.raises(UserError, match=matched),
    ):
        list(at(server.address).logprobs([("the nurse", " is kind")]))


def test_a_server_that_leaves_scores_out_is_told(site, told):
    def answered(change):
        return says(json.dumps({"choices": [told | change]}).encode())

    for answer, words in (
        (answered({"logprobs": None}), "it sends none"),
        (answered({"text": " ."}), "it does not echo the prompt"),
        (status(400, "Only no echo is supported"), "it says: Only no echo is supported"),
    ):
        matched = f"row 0 .*{words}; scores need one that takes echo"
        with misbehaving(site, always(answer)) as server, pytest.raises(UserError, match=matched):
            list(at(server.address).logprobs([("the nurse", " is kind")]))
        assert len(server.asked) == 1


# Texts


def test_texts_are_those_that_the_model_writes_for_each_seed(site, model):
    def by_hand(prompt, seed, temperature):
        _, drawn = model.write(prompt, 4, temperature, seed)
        text = model.tokenizer.decode(drawn, skip_special_tokens=True)
        return Text(prompt, seed, text, len(drawn), drawn[-1] == model.tokenizer.eos_token_id)

    seeds = range(7, 7 + len(PROMPTS))
    for temperature in (0, 1.5):
        sampling = Sampling(tokens=4, temperature=temperature)
        wanted = [by_hand(p, s, temperature) for p, s in zip(PROMPTS, seeds, strict=True)]
        assert list(at(site).generate(PROMPTS, seeds, sampling)) == wanted
        turned = at(site, concurrency=1).generate(PROMPTS[::-1], reversed(seeds), sampling)
        assert list(turned) == wanted[::-1]


@pytest.mark.parametrize("api", ["chat", "completions"])
def test_what_is_sent_is_what_was_asked_for_and_no_more(site, api):
    with misbehaving(site) as server:
        far = at(server.address, api=api)
        (text,) = far.generate(["he is kind"], [3], Sampling(4, 0.5, 0, 0.9))
        list(far.generate(["he is kind"], [3], Sampling(4, 0.5, 7, 0.9)))
    assert (text.prompt, text.seed, text.tokens) == ("he is kind", 3, 4)
    own = {"messages": [{"role": "user", "content": "he is kind"}]}
    own = own if api == "chat" else {"prompt": "he is kind"}
    own |= {"model": "tiny", "seed": 3, "max_tokens": 4, "temperature": 0.5, "top_p": 0.9}
    assert asked(server) == [own, own | {"top_k": 7}]
    path = "/v1/chat/completions" if api == "chat" else "/v1/completions"
    assert {request.path for request in server.asked} == {path}


def test_an_openai_model_that_knows_no_max_tokens_is_asked_in_its_own_words(site):
    words = "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."

    def script(number, body):
        if "max_completion_tokens" in body:
            answer = {"choices": [{"message": {"content": "yes"}, "finish_reason": "stop"}]}
            return says(json.dumps(answer).encode())
        return status(400, json.dumps({"error": {"message": words}}))

    with misbehaving(site, script) as server:
        far = at(server.address, api="chat", concurrency=1)
        texts = list(far.generate(PROMPTS, range(6), SHORT))
    assert [(t.text, t.tokens, t.finished) for t in texts] == [("yes", 0, True)] * 6
    assert len(server.asked) == 7


@pytest.mark.parametrize(
    "choice",
    [
        {"text": "bad", "finish_reason": "content_filter"},
        {"finish_reason": "stop"},
        {"text": None, "finish_reason": "length"},
    ],
)
def test_an_answer_without_a_text_is_not_an_empty_text(site, choice):
    answer = json.dumps({"choices": [choice]}).encode()
    told = rf"row 0 .*: no text, but an answer that ended with '{choice['finish_reason']}'"
    with misbehaving(site, always(says(answer))) as server:
        refused(server.address, told)


def test_an_answer_in_another_format_is_told(site):
    told = r"row 0 .*: an answer without choices; is the server OpenAI-compatible\?"
    with misbehaving(site, always(says(b'{"output": "hello"}'))) as server:
        refused(server.address, told)


def test_an_answer_that_is_all_thoughts_is_empty_and_not_finished(site):
    answer = {"choices": [{"message": {"content": None}, "finish_reason": "length"}]}
    with misbehaving(site, always(says(json.dumps(answer).encode()))) as server:
        (text,) = at(server.address, api="chat").generate(PROMPTS[:1], [1], SHORT)
    assert (text.text, text.finished) == ("", False)


# Order, and how much at once


def test_answers_come_in_the_order_of_the_prompts_however_slow_some_are(site):
    prompts, seeds = PROMPTS * 4, range(24)

    def script(number, body):
        return stall(0.3) if json.loads(body)["seed"] in (0, 7) else None

    with misbehaving(site, script) as server:
        texts = list(at(server.address).generate(prompts, seeds, SHORT))
    assert [(t.prompt, t.seed) for t in texts] == list(zip(prompts, seeds, strict=True))
    assert [body["seed"] for body in asked(server)].index(10) < 14, "others went on meanwhile"


def test_no_more_is_on_its_way_than_allowed(site):
    with misbehaving(site, delay_s=0.05) as server:
        texts = at(server.address, concurrency=3).generate(PROMPTS, range(6), SHORT)
        assert [t.seed for t in texts] == list(range(6))
    assert 1 < server.most_at_once <= 3


# What a model is


def test_a_model_is_what_the_server_says_of_it_twice(site):
    wanted = {"id": "tiny", "created": CREATED, "owned_by": "tests", "max_model_len": 64}
    with misbehaving(site) as server:
        assert identify(endpoint(server.address)) == wanted
    assert [request.path for request in server.asked] == ["/v1/models"] * 2
    del wanted["created"]  # here it is the time of the answer
    assert identify(endpoint(site, model="other")) == wanted | {"id": "other"}


def test_a_model_that_is_not_listed_is_told_with_those_that_are(site):
    with pytest.raises(UserError, match=r"^endpoint\.model: .* has no 'huge'; .*: other, tiny$"):
        identify(endpoint(site, model="huge"))
    for answer, words in (
        (b'{"data": []}', r"it lists: none$"),
        (b'{"models": {}}', r"not a list of models; check endpoint\.url"),
    ):
        with (
            misbehaving(site, always(says(answer))) as server,
            pytest.raises(UserError, match=words),
        ):
            identify(endpoint(server.address))


def test_a_server_without_a_list_of_models_leaves_the_name(site):
    with misbehaving(site, always(status(404))) as server:
        assert identify(endpoint(server.address)) == {"id": "tiny"}
    with (
        misbehaving(site, always(status(403))) as server,
        pytest.raises(UserError, match="HTTP 403"),
    ):
        identify(endpoint(server.address))
