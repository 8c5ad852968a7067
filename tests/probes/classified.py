"""Outputs of classifiers that are right as often as one says; the seed is printed."""

import numpy as np

from plumbline.probes.leaning.simulated.classified import GROUPS, KNOWS, write

__all__ = ["GROUPS", "KNOWS", "outputs"]


def outputs(folder, accuracy, *, seed=1, **design):
    print("seed", seed)
    return write(folder, accuracy, np.random.default_rng(seed), **design)
