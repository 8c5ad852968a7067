"""Arithmetic that is bitwise reproducible across processors."""

from __future__ import annotations

import os
import sys


def same_arithmetic(*, training: bool = False) -> None:
    """Make this process, before it imports torch, compute the same bits on every processor.

    The last bits of MKL's exp and log differ between Intel and AMD processors; those of the torch,
    MKL and oneDNN kernels differ between processors with and without AVX-512. The code path shared
    by all CPUs is up to twice as slow; GPUs are unaffected. Later calls have no effect.

    Parameters
    ----------
    training
        Whether weights are trained; differences in the last bits grow over thousands of steps.
    """
    if "torch" in sys.modules:
        return
    os.environ["MKL_CBWR"] = "COMPATIBLE"
    os.environ.pop("ATEN_CPU_CAPABILITY", None)
    if training:
        os.environ |= {"ATEN_CPU_CAPABILITY": "avx2", "ONEDNN_MAX_CPU_ISA": "AVX2"}
