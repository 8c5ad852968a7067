"""What a clone ends with: the same after kills, and wherever it stands."""

from __future__ import annotations

import subprocess
import sys

import killing
import pytest
from cloned import clone, ended, repro

pytestmark = pytest.mark.slow
STAGES = [  # with all above them: names and words of people, their checks, models, statistics
    f"probes/politicians/dvc.yaml:{name}"
    for name in ("pmi-controls", "representations-controls", "pmi-pooled")
]
ELSEWHERE = {
    "USER": "somebody",
    "LC_ALL": "POSIX",
    "LANG": "tr_TR.UTF-8",
    "TZ": "Pacific/Kiritimati",
    "PYTHONHASHSEED": "7",
    "OMP_NUM_THREADS": "1",
    "POLARS_MAX_THREADS": "1",
    "PLUMBLINE_CORES": "1",
    "ATEN_CPU_CAPABILITY": "avx2",
    "MKL_ENABLE_INSTRUCTIONS": "AVX2",
    "ONEDNN_MAX_CPU_ISA": "AVX2",
    "OPENBLAS_CORETYPE": "Haswell",
    "NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR",
}
MOVED = "import sys; sys.path.insert(0, '.ci'); import locks; print(*locks.moved(), sep='\\n')"


def test_kills_within_dvc_leave_nothing_to_be_seen(tmp_path):
    seen = killing.run(tmp_path, 3, 1, ["build@words"])
    assert seen["kills"] == 3
    assert seen["rounds that ended with the same files alone"] >= 1


def moved(here, home):
    """Run stages in a clone of a clone, as another; return what .ci/locks.py sees to differ."""
    (home / "else where").mkdir(parents=True)
    there = clone(home / "else where/clone", here)
    ended(repro(there, STAGES, ELSEWHERE | {"HOME": str(home)}))
    command = [sys.executable, "-c", MOVED]
    told = subprocess.run(command, cwd=there, capture_output=True, check=True, text=True)
    return told.stdout.strip().splitlines()


def test_another_user_elsewhere_with_another_processor_makes_the_same_bytes(tmp_path):
    here = clone(tmp_path / "clone")
    ended(repro(here, STAGES))
    names = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
    subprocess.run(["git", *names, "commit", "-aqm", "Locks"], cwd=here, check=False)
    assert moved(here, tmp_path / "home") == []
