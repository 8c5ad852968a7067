"""Errors as one sentence, where they came from on request, and exit statuses."""

import argparse
import re

import pytest

from plumbline.builders.core.cli import run
from plumbline.builders.core.errors import UserError

GIVEN = argparse.Namespace(command="words")


@pytest.fixture(autouse=True)
def plain(monkeypatch):
    monkeypatch.setenv("PLUMBLINE_TRACEBACK", "")  # and back to what it was


def fails(error):
    def do():
        raise error

    return do


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        (UserError("x.csv: empty; bring another"), 1, r"error: x\.csv: empty; bring another"),
        (KeyboardInterrupt(), 130, r"stopped; .*"),
        (KeyError("gender"), 70, r"error: .*KeyError: 'gender' \(test_messages\.py:\d+\).*"),
    ],
)
def test_run_error_is_one_line(capsys, error, status, said):
    assert run(GIVEN, fails(error)) == status
    out, err = capsys.readouterr()
    assert (out, bool(re.fullmatch(said + "\n", err))) == ("", True)


@pytest.mark.parametrize("error", [UserError("x.csv: empty"), KeyError("gender")])
def test_run_traceback_on_request(capsys, monkeypatch, error):
    monkeypatch.setenv("PLUMBLINE_TRACEBACK", "1")
    assert run(GIVEN, fails(error)) in (1, 70)
    said = capsys.readouterr().err
    assert said.startswith("Traceback (most recent call last):\n")
    assert "in do\n    raise error\n" in said
    assert said.splitlines()[-1].startswith("error: ")
