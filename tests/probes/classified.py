"""Outputs of classifiers that are right as often as one says; the seed is printed."""

import numpy as np

from calibration.leaning.classified import GROUPS, write

__all__ = ["GROUPS", "KNOWS", "outputs"]
KNOWS = {"news-left": ["left-known", "both-known"], "news-right": ["right-known", "both-known"]}


def outputs(folder, accuracy, *, seed=1, **design):
    print("seed", seed)
    return write(folder, accuracy, np.random.default_rng(seed), **design)
