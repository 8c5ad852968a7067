"""Arithmetic with the same last bits on every processor."""

from __future__ import annotations

import os
import sys


def same_arithmetic(*, training: bool = False) -> None:
    """Let a process that has not imported torch compute the same bits on every processor.

    MKL's exp and log differ in last bits between Intel's processors and AMD's; torch's, MKL's and
    oneDNN's own kernels between those with AVX-512 and without. The path that all of them have is
    up to twice as slow on a CPU; on a GPU nothing changes. Once torch is imported it is too late.

    Parameters
    ----------
    training
        Whether weights are trained: their last bits grow over thousands of steps.
    """
    if "torch" in sys.modules:
        return
    os.environ["MKL_CBWR"] = "COMPATIBLE"
    os.environ.pop("ATEN_CPU_CAPABILITY", None)
    if training:
        os.environ |= {"ATEN_CPU_CAPABILITY": "avx2", "ONEDNN_MAX_CPU_ISA": "AVX2"}
