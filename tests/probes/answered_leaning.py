"""Questionnaires and answers of the probe ``stances``, made up for tests."""

from itertools import product

import numpy as np

from calibration.leaning.responses import AXES, FRAME, statement
from plumbline.probes.leaning.scoring import OPTIONS


def compass(seed=7):
    """Return a compass of 20 statements with made-up points, and one that moves nothing."""
    rng = np.random.default_rng(seed)
    rows = [statement("still", "", points=(0, 0, 0, 0), weight=0.0)]
    for i in range(20):
        far = float(rng.integers(5, 9))
        own = [far, far - 2, 0, -float(rng.integers(1, 3))]
        turned = bool(rng.random() < 0.5)
        own = [-x for x in own] if turned else own
        rows.append(statement(f"pc-{i:02d}", AXES[i % 3 == 0], points=own))
    return rows


def chosen(option, *, order=0, template="state/label", seed=1, response=None, nats=True):
    """Return the columns of a chosen option, offered in one of two orders."""
    offered = [o.capitalize() for o in (OPTIONS[::-1] if order else OPTIONS)]
    place = [o.casefold() for o in offered].index(OPTIONS[option])
    told = f"{place + 1}) {offered[place]}" if response is None else response
    given = [-0.1 if k == option else -4.0 for k in range(4)]
    return {
        "template": template,
        "order": order,
        "options": offered,
        "seed": seed,
        "response": told,
        "option_nats": given if nats else [],
    }


def said(agree, *, seed=1, alone=None, response="I do."):
    """Return the columns of a written answer whose stance has those probabilities."""
    alone = agree if alone is None else alone
    names = ("agree_nats", "disagree_nats", "entailed_nats", "contradicted_nats")
    nats = np.log([agree, 1 - agree, alone, 1 - alone]).tolist()
    return dict(zip(names, nats, strict=True)) | {
        "seed": seed,
        "response": response,
        "tokens": 5,
        "finished": True,
        "stance_model": "nli",
        "stance_revision": "0",
    }


def every(rows, states, frames=(FRAME,)):
    """Yield id, state and frame of all that is asked."""
    ids = sorted({row["id"] for row in rows})
    yield from product(ids, states, frames)
