from __future__ import annotations

import json
import logging
import traceback

import pytest
from models.far import KEY, ONE, SHORT, ask, at, endpoint, refused
from sources.misbehaving import always, cut, misbehaving, reset, says, stall, status

from plumbline.builders.core.errors import UserError
from plumbline.probes.models.params import Endpoint
from plumbline.probes.models.remote import identify


def everything(error):
    """Return all that an exception and those behind it show or hold."""
    parts = ["".join(traceback.format_exception(error))]
    while error:
        parts += [str(error), repr(error), repr(vars(error)), repr(error.args)]
        assert "requests" not in type(error).__module__, "it holds the request, and so the key"
        error = error.__cause__ or error.__context__
    return "\n".join(parts)


def both_refused(address, words):
    """Ask with the key for a text, and for what models there are; see both refused."""
    refused(address, words, key="TEST_KEY")
    with pytest.raises(UserError, match=words):
        identify(endpoint(address, key="TEST_KEY"))


TEXT = {"choices": [{"text": f"is {KEY}", "finish_reason": "stop"}]}


@pytest.mark.parametrize(
    "behaviour",
    [
        status(401, f'{{"error": {{"message": "wrong key {KEY} (Bearer {KEY})"}}}}'),
        status(400, json.dumps({"headers": {"Authorization": f"Bearer {KEY}"}})),
        status(500, KEY),
        status(429, "x" * 190 + KEY),
        status(302, Location=f"http://127.0.0.1:9/{KEY}"),
        says(json.dumps(TEXT).encode()),
        says(json.dumps({"error": KEY}).replace("/", "\\/").encode()),
        says(KEY.encode()),
        cut,
        reset,
        stall(0.3),
    ],
)
def test_the_key_stands_in_no_message_log_or_answer(site, monkeypatch, caplog, capfd, behaviour):
    monkeypatch.setenv("TEST_KEY", KEY)
    caplog.set_level(logging.DEBUG)
    with misbehaving(site, always(behaviour)) as server:
        far = at(server.address, key="TEST_KEY", tries=2, timeout_s=0.2)
        with pytest.raises(UserError) as asking:
            list(far.generate([ONE], [1], SHORT))
        with pytest.raises(UserError) as listing:
            identify(far.endpoint)
    assert server.asked[0].headers["Authorization"] == f"Bearer {KEY}"
    held = repr(far) + repr(vars(far)) + str(far.facts()) + repr(far.endpoint)
    shown = "".join([caplog.text, *capfd.readouterr(), held])
    shown += everything(asking.value) + everything(listing.value)
    assert KEY not in shown.replace("\\/", "/")


def test_short_keys_of_local_servers_may_stand_in_a_text_but_not_in_a_message(site, monkeypatch):
    monkeypatch.setenv("TEST_KEY", "kind")
    (score,) = at(site, key="TEST_KEY").logprobs([("he is", " kind")])
    assert score.text == "he is kind"
    with misbehaving(site, always(status(401, "wrong key: kind"))) as server:
        refused(server.address, r"says: wrong key: \[secret\]$", key="TEST_KEY")


@pytest.mark.parametrize("value", [None, "", " \n"])
def test_a_key_that_is_not_there_is_told_by_its_variable(site, monkeypatch, value):
    monkeypatch.delenv("TEST_KEY", raising=False)
    if value is not None:
        monkeypatch.setenv("TEST_KEY", value)
    far = at(site, key="TEST_KEY")
    assert far.facts()["model"] == "far", "needs no key"
    both_refused(site, r"^TEST_KEY: not set; ")
    with pytest.raises(UserError, match=r"^TEST_KEY: not set; "):
        list(far.logprobs([("he is", " kind")]))


def test_what_cannot_be_a_key_is_told_without_it(site, monkeypatch):
    monkeypatch.setenv("TEST_KEY", "two words\nand lines")
    told = refused(site, r"^TEST_KEY: what stands in it cannot be a key", key="TEST_KEY")
    assert "words" not in everything(told)


@pytest.mark.parametrize("host", ["models.example", "10.0.0.1", "127.0.0.1.example", "0x7f.1"])
def test_a_key_does_not_go_out_in_the_open(monkeypatch, host):
    monkeypatch.setenv("TEST_KEY", KEY)
    told = f"http://{host} would send the key in TEST_KEY .* use https"
    both_refused(f"http://{host}", told)


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("https://models.example/v1?api_key=secret", "has more to it than an address"),
        ("https://[::1/v1", "is no address"),
        ("https:///v1", "is no address"),
        ("https://models.example:99999/v1", "is no address"),
    ],
)
def test_an_address_is_an_address(url, words):
    with pytest.raises(UserError, match=rf"^endpoint\.url: .*{words}") as caught:
        identify(Endpoint(url=url, model="tiny"))
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("code", [302, 308])  # to be followed by GET, and by POST
def test_no_redirect_is_followed(site, monkeypatch, code):
    monkeypatch.setenv("TEST_KEY", KEY)
    with misbehaving(site) as other:
        away = status(code, Location=f"{other.address}/v1/completions?x=1")
        told = rf"it sends on to {other.address}/v1/completions; write the right endpoint\.url"
        with misbehaving(site, always(away)) as server:
            both_refused(server.address, told)
    assert not other.asked


def test_only_the_named_key_is_sent_and_only_there(site, tmp_path, monkeypatch):
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login me password other\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("TEST_KEY", f"{KEY}\n")
    with misbehaving(site) as server:
        ask(server.address)
        ask(server.address, key="TEST_KEY")
    sent = [request.headers.get("Authorization") for request in server.asked]
    assert sent == [None, f"Bearer {KEY}"]
