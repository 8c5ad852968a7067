"""Asking a server on loopback, as the tests of remote models do."""

from __future__ import annotations

import json
from contextlib import contextmanager

import pytest
from models.served import served
from openai import _base_client

from plumbline.builders.core.errors import UserError
from plumbline.probes.models import remote
from plumbline.probes.models.params import Endpoint
from plumbline.probes.models.remote import Remote
from plumbline.probes.models.scorer import Sampling

KEY = "sk-tests/0123456789abcdefGHIJ"
PROMPTS = [f"the {who} says {what}" for who in ("nurse", "doctor") for what in ("he", "she", "or")]
ONE = "the nurse says he"
SHORT = Sampling(tokens=4)


@contextmanager
def site(model):
    """Serve the tiny model with waits that a test can spare; yield the address."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_base_client, "INITIAL_RETRY_DELAY", 0.01)
        patch.setattr(remote, "PAUSE_S", 0.01)
        with served(model, "tiny") as address:
            yield address


def endpoint(address, **more):
    options = {"model": "tiny", "api": "completions", "timeout_s": 5, "tries": 3} | more
    return Endpoint(url=f"{address}/v1", **options)


def at(address, **more):
    return Remote("far", endpoint(address, **more), "r1")


def ask(address, **more):
    """Ask for one text."""
    (text,) = at(address, **more).generate([ONE], [5], SHORT)
    return text


def refused(address, words, **more):
    """Ask for one text, and return the problem that comes instead."""
    with pytest.raises(UserError, match=words) as caught:
        ask(address, **more)
    return caught.value


def until(answers):
    """Return the answers up to the problem, and the problem."""
    got = []
    try:
        for answer in answers:
            got.append(answer)  # noqa: PERF402 - what came before the problem is wanted too
    except UserError as problem:
        return got, problem
    raise AssertionError("no problem came")


def asked(server):
    """Return the bodies of the requests that a server got."""
    return [json.loads(request.body) for request in server.asked if request.body]
