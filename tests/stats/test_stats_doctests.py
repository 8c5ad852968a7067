import doctest
import importlib
import pkgutil

import pytest

import plumbline.probes.stats

MODULES = sorted(module.name for module in pkgutil.iter_modules(plumbline.probes.stats.__path__))


@pytest.mark.parametrize("name", MODULES)
def test_examples_of_the_docstrings(name):
    assert doctest.testmod(importlib.import_module(f"plumbline.probes.stats.{name}")).failed == 0


def test_there_are_examples():
    found = doctest.DocTestFinder().find
    modules = [importlib.import_module(f"plumbline.probes.stats.{name}") for name in MODULES]
    assert sum(len(test.examples) for module in modules for test in found(module)) >= 3
