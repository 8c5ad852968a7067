"""Shifts of ``compass``: how far apart two states of a model are, and two tests of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from plumbline.probes.leaning.answers import ITSELF, Answers, State
from plumbline.probes.leaning.coordinates import Axis, Reading, Rows, adjust, estimate, moved, sd_of
from plumbline.probes.leaning.schemas import CONTRASTS, PERIODS
from plumbline.probes.stats.crossed import two_sided_p
from plumbline.probes.stats.estimate import significant
from plumbline.probes.stats.tests import sign_flip_p

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plumbline.probes.leaning.compass import Params

UNEQUAL = "no test: trained on {own:g} texts, the other side on {other:g}"
FLIPPED = "these trainings: sides exchanged in statements, {flips} sign patterns or all"


def shifts(reading: Reading, params: Params) -> Rows:
    """Return how far apart states are, over the same statements and prompts."""
    rows: Rows = []
    own, scale = reading.answers, reading.answers.scale
    for state, other, contrast, against in contrasts(own, params):
        one, two = own.added(state), own.added(other)
        unequal = _unequal(own.texts[state], own.texts[other], params) if other != ITSELF else ""
        for a, axis in enumerate(scale.axes):
            found = moved(scale, a, one[:, :, a], two[:, :, a])
            flipped = sign_flip_p(found.totals[:, None], params.flips, params.seed)
            rows.append(
                reading.about(state)
                | {"contrast": CONTRASTS.index(contrast), "against": against}
                | {"axis": axis, "unit": scale.unit}
                | estimate(found.value, found, params.confidence)
                | {
                    "null": unequal or FLIPPED.format(flips=params.flips),
                    "p": None if unequal else significant(float(flipped[0])),
                    "seed_sd": sd_of(found.seeds),
                    "p_seeds": None if unequal else seeds_p(found, itself=other == ITSELF),
                    "seeds": len(found.seeds),
                    "texts": own.texts[state],
                    "texts_against": own.texts[other],
                }
            )
    adjust(rows, "p")
    adjust(rows, "p_seeds")
    return rows


def _unequal(texts: float, others: float, params: Params) -> str:
    """Say so where the numbers of texts are too far apart; '' where they are not.

    Who reads more takes more steps, and moves further whatever the texts say.
    """
    far = abs(texts - others) > params.apart * max(texts, others)
    return UNEQUAL.format(own=texts, other=others) if far else ""


def contrasts(own: Answers, params: Params) -> Iterator[tuple[State, State, str, str]]:
    """Yield two states that are compared, how, and the name of the second."""
    before, later = PERIODS.index("before"), PERIODS.index("from")
    for state in own.weights:
        if state == ITSELF:
            continue
        others = [(ITSELF, "itself", "")]
        control = params.control.get(state.corpus, params.control.get("other", ""))
        if control != state.corpus:
            others.append((state._replace(corpus=control), "control", control))
        if state.period == later:
            others.append((state._replace(period=before), "period", PERIODS[before]))
        if other := params.compared.get(state.corpus):
            others.append((state._replace(corpus=other), "corpora", other))
        for second, contrast, against in others:
            if second in own.weights:
                yield state, second, contrast, against


def seeds_p(found: Axis, *, itself: bool) -> float | None:
    """Return the two-sided p of a shift with the trainings as the sample; None with too few."""
    sides = found.parts[2:3] if itself else found.parts[2:]
    if not all(part.df for part in sides):
        return None
    p = two_sided_p(found.value, sides)
    return significant(p) if np.isfinite(p) else None
