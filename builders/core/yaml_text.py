"""YAML that the project or DVC wrote: cards, locks, pipelines; params.yaml has its own reader."""

from __future__ import annotations

from typing import Any

import yaml

from plumbline.builders.core.params import LOADER


def parse(text: str | bytes) -> Any:
    """Return what a text holds; tags that would make objects of classes are an error.

    Raises
    ------
    yaml.YAMLError
        If it is not YAML.
    """
    return yaml.load(text, Loader=LOADER)  # noqa: S506 - LOADER is a safe one
