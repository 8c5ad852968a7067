from __future__ import annotations

import json
import logging
import traceback

import pytest
from models.far import KEY, ONE, SHORT, ask, at, refused
from sources.misbehaving import always, misbehaving, says, status

from plumbline.builders.core.errors import UserError
from plumbline.probes.models.params import Endpoint
from plumbline.probes.models.remote import identify

TEXT = {"choices": [{"text": f"is {KEY}", "finish_reason": "stop"}]}


@pytest.mark.parametrize(
    "behaviour",
    [
        status(401, f'{{"error": {{"message": "wrong key {KEY}"}}}}'),
        status(500, KEY),
        says(json.dumps(TEXT).encode()),
    ],
)
def test_key_is_in_no_error_log_or_text(site, monkeypatch, caplog, behaviour):
    monkeypatch.setenv("TEST_KEY", KEY)
    caplog.set_level(logging.INFO)
    with misbehaving(site, always(behaviour)) as server:
        far = at(server.address, key="TEST_KEY", tries=2)
        with pytest.raises(UserError) as generating:
            list(far.generate([ONE], [1], SHORT))
        with pytest.raises(UserError) as listing:
            identify(far.endpoint)
    assert server.asked[0].headers["authorization"] == f"Bearer {KEY}"
    shown = caplog.text + repr(vars(far)) + str(far.facts())
    for raised in (generating, listing):
        shown += "".join(traceback.format_exception(raised.value))
    assert KEY not in shown.replace("\\/", "/")


@pytest.mark.parametrize("value", [None, " \n", "two words"])
def test_read_key_names_the_variable(site, monkeypatch, value):
    monkeypatch.delenv("TEST_KEY", raising=False)
    if value is not None:
        monkeypatch.setenv("TEST_KEY", value)
    assert at(site, key="TEST_KEY").facts()["model"] == "far", "needs no key"
    problem = refused(site, "TEST_KEY", key="TEST_KEY")
    assert "two words" not in str(problem)


def test_read_key_is_not_sent_unencrypted(monkeypatch):
    monkeypatch.setenv("TEST_KEY", KEY)
    refused("http://10.0.0.1", "TEST_KEY", key="TEST_KEY")


def test_read_key_refuses_a_key_in_the_address():
    with pytest.raises(UserError) as caught:
        identify(Endpoint(url="https://models.example/v1?api_key=secret", model="tiny"))
    assert "secret" not in str(caught.value)


def test_redirects_are_not_followed(site, monkeypatch):
    monkeypatch.setenv("TEST_KEY", KEY)
    with misbehaving(site) as other:
        away = status(308, Location=f"{other.address}/v1/completions")
        with misbehaving(site, always(away)) as server:
            refused(server.address, "HTTP 308", key="TEST_KEY")
    assert not other.asked


def test_only_the_named_key_is_sent(site, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-another-key")
    monkeypatch.setenv("OPENAI_ORG_ID", "org-another")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("TEST_KEY", f"{KEY}\n")
    with misbehaving(site) as server:
        ask(server.address)
        ask(server.address, key="TEST_KEY")
    headers = [request.headers for request in server.asked]
    assert [sent.get("authorization") for sent in headers] == [None, f"Bearer {KEY}"]
    assert not any("another" in value for sent in headers for value in sent.values())
