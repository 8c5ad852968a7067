"""Outputs of classifiers that are right as often as one says; the seed is printed."""

import json

import numpy as np

from calibration.leaning.classified import GROUPS, ClassifiersShape, write

__all__ = ["GROUPS", "KNOWS", "outputs"]
KNOWS = {"news-left": ["left-known", "both-known"], "news-right": ["right-known", "both-known"]}
CORPORA = ("news-left", "news-right", "social-center")
ALIKE = {"words": 40, "each": 1, "hard": 0.0, "spread": 0.0, "threshold": 0.0, "by_text": 0.0}


def outputs(folder, accuracy, *, seed=1, corpora=CORPORA, groups=GROUPS, knows=None, **shape):
    print("seed", seed)
    rng = np.random.default_rng(seed)
    made = ClassifiersShape(**ALIKE | shape)
    written = write(folder, made, accuracy, rng, corpora, groups=groups)
    if knows is not None:
        weights = written.inputs.weights("m")
        weights.mkdir(parents=True)
        (weights / "world.json").write_text(json.dumps({"knows": knows}), encoding="utf-8")
    return written
