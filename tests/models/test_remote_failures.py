from __future__ import annotations

import pytest
from models.far import PROMPTS, SHORT, ask, asked, at, refused, until
from models.served import served
from sources.misbehaving import always, at_first, half, misbehaving, reset, says, stall, status

from plumbline.probes.models.scorer import Sampling


@pytest.mark.parametrize("behaviour", [status(500), status(429), reset, stall(5)])
def test_generate_retries_what_passes(site, behaviour):
    wanted = ask(site)
    with misbehaving(site, at_first(1, behaviour)) as server:
        assert ask(server.address, timeout_s=1) == wanted
    assert len(server.asked) == 2


@pytest.mark.parametrize(
    ("behaviour", "value"),
    [(status(500, "no\nmemory"), "no memory"), (half, "JSON"), (says(b"[]"), "JSON")],
)
def test_generate_failure_names_model_and_row(site, behaviour, value):
    def script(number, body):
        return behaviour if PROMPTS[2] in body else None

    with misbehaving(site, script) as server:
        far = at(server.address, tries=2)
        got, problem = until(far.generate(PROMPTS, range(6), SHORT))
    assert str(problem).startswith(f"models.far: row 2 ('{PROMPTS[2]}')")
    assert value in str(problem)
    assert "\n" not in str(problem)
    assert [text.prompt for text in got] == PROMPTS[:2], "earlier rows are returned"
    tries = 2 if value == "no memory" else 1
    assert len([body for body in asked(server) if body["prompt"] == PROMPTS[2]]) == tries


def test_generate_server_that_is_not_there():
    refused("http://127.0.0.1:9", "models.far: row 0", tries=2)


@pytest.mark.parametrize(
    ("code", "value"), [(400, "too long"), (401, "TEST_KEY"), (404, r"endpoint\.url")]
)
def test_generate_refusal_is_not_retried(site, monkeypatch, code, value):
    monkeypatch.setenv("TEST_KEY", "key-for-tests")
    with misbehaving(site, always(status(code, '{"detail": "too long"}'))) as server:
        refused(server.address, rf"models\.far: row 0 .* HTTP {code}.*{value}", key="TEST_KEY")
    assert len(server.asked) == 1


@pytest.mark.parametrize("concurrency", [1, 4])
def test_budget_stops_before_it_is_exceeded(site, concurrency):
    with misbehaving(site) as server:
        far = at(server.address, token_budget=400, concurrency=concurrency)
        got, problem = until(far.generate(PROMPTS * 20, range(120), SHORT))
    assert "token_budget" in str(problem)
    assert "400" in str(problem)
    assert 0 < len(got) <= len(server.asked)
    assert far.budget.spent <= 400
    nothing, _ = until(far.generate(PROMPTS * 20, range(120), SHORT))
    assert len(nothing) < 2, "the budget is the model's, not the call's"


def test_budget_without_usage_counts_the_most(model):
    prompt = "he is kind 🙂 ."
    most = len(prompt.encode()) + 64 + 10
    with served(model, "tiny", usage=False) as address:
        far = at(address, token_budget=3 * most - 1, concurrency=1)
        got, _ = until(far.generate([prompt] * 9, range(9), Sampling(tokens=10)))
    assert [text.tokens for text in got] == [0, 0]
    assert far.budget.spent == 2 * most


def test_budget_smaller_than_one_request_sends_nothing(site):
    with misbehaving(site) as server:
        refused(server.address, "token_budget", token_budget=50)
    assert not server.asked
