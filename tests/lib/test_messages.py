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
        (UserError("x.csv: empty; bring another"), 1, "error: x.csv: empty; bring another\n"),
        (KeyboardInterrupt(), 130, "stopped; run the same command again to continue\n"),
    ],
)
def test_what_ends_a_command_is_told_in_a_line(capsys, error, status, said):
    assert run(GIVEN, fails(error)) == status
    assert capsys.readouterr() == ("", said)


def test_a_fault_of_the_program_is_one_line_too_and_names_its_place(capsys):
    assert run(GIVEN, fails(KeyError("gender"))) == 70
    (line,) = capsys.readouterr().err.splitlines()
    assert re.match(r"error: a fault in the program, KeyError: 'gender' \(test_messages\.py:", line)
    assert line.endswith("please report it with what --traceback shows")


@pytest.mark.parametrize("error", [UserError("x.csv: empty"), KeyError("gender")])
def test_where_it_came_from_is_told_on_request(capsys, monkeypatch, error):
    monkeypatch.setenv("PLUMBLINE_TRACEBACK", "1")
    assert run(GIVEN, fails(error)) in (1, 70)
    said = capsys.readouterr().err
    assert said.startswith("Traceback (most recent call last):\n")
    assert "in do\n    raise error\n" in said
    assert said.splitlines()[-1].startswith("error: ")
