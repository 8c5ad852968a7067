"""Plain scorers of single respondents, after the scripts of the two sites, for the compass."""

import numpy as np

from plumbline.probes.leaning.scoring import CONSTANTS, DIVISORS, UNCLEAR

AXES = ("economic", "social")


def coordinates(answers, *points, reading="corrected", missing="zero"):
    """Return both coordinates of answers, (..., items): sum / 8 + 3 / 8, sum / 19.5 + 47 / 19.5.

    ``points``, (items, 4) of each axis; ``missing``: what a missing answer adds, ``zero`` as in the
    script, which is agreeing, or ``middle``, the mean of the four answers.
    """
    answers, both = np.asarray(answers), {}
    for axis, table in zip(AXES, map(np.asarray, points), strict=True):
        chosen = table[np.arange(len(table)), np.where(answers == UNCLEAR, 0, answers)]
        instead = table.mean(axis=1) if missing == "middle" else 0.0
        total = np.where(answers == UNCLEAR, instead, chosen).sum(axis=-1)
        both[axis] = total / DIVISORS[axis] + CONSTANTS[reading][axis]
    return both


def chance(*points, reading="corrected"):
    """Return mean and SD of both coordinates of who answers every item uniformly at random."""
    tables = zip(AXES, map(np.asarray, points), strict=True)
    return {
        axis: (
            table.mean(axis=1).sum() / DIVISORS[axis] + CONSTANTS[reading][axis],
            np.sqrt(table.var(axis=1).sum()) / DIVISORS[axis],
        )
        for axis, table in tables
    }


def percents(stances, effects):
    """Return 100 (max + score) / (2 max) on every axis of a linear scale, (..., axes)."""
    most = np.abs(effects).sum(axis=0)
    return 100 * (most + np.asarray(stances) @ effects) / (2 * most)
