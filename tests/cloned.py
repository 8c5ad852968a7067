"""A clone of this checkout's commit, and the pipeline run in it as somebody else would."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

TOP = Path(__file__).parents[1]


def clone(where: Path, of: Path = TOP) -> Path:
    subprocess.run(["git", "clone", "--quiet", "--local", of, where], check=True)
    return where


def repro(
    where: Path, stages: Sequence[str], own: Mapping[str, str] = MappingProxyType({})
) -> subprocess.Popen:
    """Begin to run stages, in a process group of their own."""
    return subprocess.Popen(
        [sys.executable, "-m", "dvc", "repro", *stages],
        cwd=where,
        env=os.environ | {"PYTHONPATH": str(where), "DVC_NO_ANALYTICS": "1"} | own,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def ended(running: subprocess.Popen) -> None:
    said, _ = running.communicate()
    assert running.returncode == 0, f"dvc repro ended with {running.returncode}: {said[-800:]}"
