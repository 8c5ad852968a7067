"""A simulated survey: answers drawn at random, so that nobody takes them for people's."""

from __future__ import annotations

import csv
import io

import numpy as np

from plumbline.builders.datasets.statements.read import VALUES, statements
from plumbline.builders.datasets.survey.responses import FIRST

SEED = 20261121
PEOPLE = 120
INFECTED = 0.3  # share that is
MISSING = 0.01  # share of answers that are lacking
CENTRES = dict(zip(VALUES, (0.6, 0.3, 0.5, -0.2), strict=True))
WOMEN = dict(zip(VALUES, (0.0, 0.2, 0.2, -0.2), strict=True))  # their mean less men's
SPREAD, TASTE = 0.6, 0.9  # SD between people, and of a person's answers about their opinion


def survey_file(questionnaire: bytes) -> bytes:
    """Return answers to every statement of a questionnaire, in the layout of ``survey``."""
    rng = np.random.default_rng(SEED)
    found = statements(questionnaire)
    out = io.StringIO()
    lines = csv.writer(out, lineterminator="\n")
    lines.writerow([*FIRST, *(s.id for s in found)])
    for number in range(PEOPLE):
        woman = number % 2 == 0
        opinion = {
            axis: CENTRES[axis] + (woman - 0.5) * WOMEN[axis] + SPREAD * rng.standard_normal()
            for axis in VALUES
        }
        infected = "yes" if rng.random() < INFECTED else "no"
        answers = []
        for s in found:
            taste = (-1 if s.reversed else 1) * opinion[s.axis] + TASTE * rng.standard_normal()
            lacking = rng.random() < MISSING
            answers.append("" if lacking else int(np.clip(np.rint(3 + taste), 1, 5)))
        gender = "female" if woman else "male"
        lines.writerow([f"simulated-{number + 1:03d}", gender, infected, *answers])
    return out.getvalue().encode()
