from __future__ import annotations

import re
import socket

import pytest
from models.far import ONE, PROMPTS, SHORT, ask, asked, at, refused, until
from models.served import served
from sources.misbehaving import (
    always,
    at_first,
    cut,
    half,
    misbehaving,
    reset,
    says,
    stall,
    status,
    trickle,
    web_page,
)

from plumbline.probes.models.remote import AHEAD
from plumbline.probes.models.scorer import Sampling

SHORTLY = 1.0  # seconds that a client waits; a busy machine may need most of them
SILENCE = stall(5)
WAITS = (SILENCE, trickle(0.02))


@pytest.mark.parametrize(
    "behaviour",
    [
        status(500),
        status(502, "<html>bad gateway</html>"),
        status(429, '{"error": {"message": "slow down"}}'),
        status(408),
        web_page,
        half,
        cut,
        reset,
        *WAITS,
        says(b"[]"),
        says(b""),
        says(b'{"error": {"message": "upstream overloaded"}}'),
    ],
)
def test_a_failure_that_passes_is_asked_again_and_leaves_no_trace(site, behaviour):
    wanted = ask(site)
    times = 1 if behaviour in WAITS else 2
    with misbehaving(site, at_first(times, behaviour)) as server:
        assert ask(server.address, timeout_s=SHORTLY) == wanted
    assert len(server.asked) == times + 1


@pytest.mark.parametrize(
    ("behaviour", "words"),
    [
        (status(500, '{"error": {"message": "no memory\\nleft"}}'), "HTTP 500: no memory left"),
        (status(503), "HTTP 503: "),
        (web_page, "not JSON under HTTP 200 but '<!DOCTYPE html>"),
        (half, "not JSON under HTTP 200 but "),
        (cut, "the connection failed"),
        (SILENCE, "no whole answer within 1 s"),
    ],
)
def test_a_failure_that_stays_is_told_with_model_row_and_prompt(site, behaviour, words):
    def script(number, body):
        return behaviour if PROMPTS[2] in body else None

    with misbehaving(site, script) as server:
        far = at(server.address, timeout_s=SHORTLY, tries=2)
        got, problem = until(far.generate(PROMPTS, range(6), SHORT))
    told = rf"models\.far: row 2 \('{PROMPTS[2]}'\): gave up after 2 attempts \({words}"
    assert re.match(told, str(problem))
    assert "\n" not in str(problem)
    assert [text.prompt for text in got] == PROMPTS[:2], "what came before is handed out"
    assert len([body for body in asked(server) if body["prompt"] == PROMPTS[2]]) == 2


def test_waits_are_as_long_as_the_server_says(site):
    with misbehaving(site, at_first(1, status(429, Retry_After=1))) as server:
        ask(server.address)
    first, second = (request.at for request in server.asked)
    assert second - first >= 1
    with misbehaving(site, always(status(429, "quota", Retry_After=86_400))) as server:
        refused(server.address, "HTTP 429: quota, and asks to wait")
    assert len(server.asked) == 1


def test_a_server_that_is_not_there_is_told():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{taken.getsockname()[1]}"
        refused(address, r"row 0 .*gave up after 2 attempts \(the connection failed", tries=2)


@pytest.mark.parametrize(
    ("code", "advice"),
    [
        (400, "it does not take the request as it is"),
        (401, "check the key in the environment variable TEST_KEY"),
        (403, "check the key in the environment variable TEST_KEY"),
        (404, r"check endpoint\.url \(up to and with /v1\), endpoint\.model and endpoint\.api"),
    ],
)
def test_a_refusal_is_not_asked_for_twice_and_says_what_to_do(site, monkeypatch, code, advice):
    monkeypatch.setenv("TEST_KEY", "key-for-tests")
    with misbehaving(site, always(status(code, '{"detail": "too long"}'))) as server:
        told = (
            rf"^models\.far: row 0 \('{ONE}'\): HTTP {code}, {advice}; the server says: too long$"
        )
        refused(server.address, told, key="TEST_KEY")
    assert len(server.asked) == 1


def test_a_server_that_wants_a_key_is_told_so(site):
    with misbehaving(site, always(status(401))) as server:
        refused(server.address, r"name the environment variable .* in endpoint\.key")


# The budget


@pytest.mark.parametrize("concurrency", [1, 4])
def test_a_run_stops_before_the_request_that_could_go_over_its_budget(site, concurrency):
    prompts, seeds = PROMPTS * 20, range(120)
    with misbehaving(site) as server:
        far = at(server.address, token_budget=300, concurrency=concurrency)
        got, problem = until(far.generate(prompts, seeds, SHORT))
    told = (
        r"models\.far: stopped before endpoint\.token_budget: (\d+) of 300 tokens are used \(0 of "
        r"them assumed, .*\), and the next request may take (\d+); (\d+) rows were done"
    )
    used, most, done = map(int, re.match(told, str(problem)).groups())
    assert done == len(got) > 0
    assert used <= far.budget.spent <= 300 < used + most
    assert len(server.asked) <= done + AHEAD * concurrency, "paid, and not handed on"
    nothing, problem = until(far.generate(prompts, seeds, SHORT))
    assert not nothing, "the budget is the model's, not the call's"
    assert "; 0 rows were done" in str(problem)


def test_a_server_that_does_not_count_is_charged_the_most_that_it_can_have_cost(model):
    prompt = "he is kind 🙂 ."
    most = len(prompt.encode()) + 64 + 10
    with served(model, "tiny", usage=False) as address:
        far = at(address, token_budget=3 * most - 1, concurrency=1)
        got, problem = until(far.generate([prompt] * 9, range(9), Sampling(tokens=10)))
    assert [text.tokens for text in got] == [0, 0], "not known"
    assert f"{2 * most} of {3 * most - 1} tokens are used ({2 * most} of them" in str(problem)


def test_answers_that_are_lost_are_charged_and_refusals_are_not(site):
    most = len(ONE) + 64 + SHORT.tokens
    for behaviour, lost in ((half, 2), (status(500), 0), (status(429), 0)):
        with misbehaving(site, at_first(2, behaviour)) as server:
            far = at(server.address)
            list(far.generate([ONE], [1], SHORT))
        assert far.budget.guessed == lost * most
        assert lost * most < far.budget.spent < lost * most + 30


def test_a_budget_smaller_than_one_request_asks_for_nothing(site):
    with misbehaving(site) as server:
        told = r"0 of 50 tokens are used .*; 0 rows were done"
        refused(server.address, told, token_budget=50)
    assert not server.asked
