"""The examples in the docstrings of the studies of social groups and of names, and of views."""

import doctest
import importlib

import pytest


@pytest.mark.parametrize(
    ("name", "least"),
    [
        ("stereotypes.emotions", 4),
        ("stereotypes.match_attributes", 2),
        ("stereotypes.shift_rows", 4),
        ("stereotypes.similarity", 10),
        ("nationality.texts", 1),
        ("report.view", 3),
    ],
)
def test_examples_of_the_docstrings(name, least):
    found = doctest.testmod(importlib.import_module(f"plumbline.probes.{name}"))
    assert (found.failed, found.attempted >= least) == (0, True)
