"""Answers to statements without a model: what is planted in them is known."""

import numpy as np
import polars as pl

from calibration.values import answers
from calibration.values.answers import AnswersShape
from plumbline.builders.datasets.survey.responses import GENDERS, INFECTED

AXES = answers.AXES[:2]
PAIRS = 8  # of a statement and its opposite, for each axis


def survey(folder, people=40):
    """Write answers: everybody's value of order is 4 and of trade 2, women's trade 3."""
    rows = []
    for n in range(people):
        who = {"respondent": f"simulated-{n:02d}", "scale": "values", "simulated": True}
        who |= {"weight": 1.0}
        who |= {"gender": GENDERS.index("female" if n % 2 == 0 else "male")}
        who |= {"infected": INFECTED.index("yes" if n < 10 else "no")}
        who |= {"source": "test", "licence": "CC0-1.0"}
        for axis in AXES:
            for i in range(PAIRS):
                for turned in (0, 1):
                    value = 4 if axis == "order" else 2 + (n % 2 == 0)
                    told = 6 - value if turned else value
                    rows.append(who | {"item": f"{axis}-{i}{'-r' * turned}", "answer": told})
    frame = pl.DataFrame(rows, schema_overrides={"answer": pl.Int32})
    frame.write_parquet(folder / "simulated.parquet")


def convinced(
    folder,
    seed,
    *,
    agreement=(0.0, 0.0),
    gender=(0.0, 0.0),
    noise=0.3,
    apart=0.0,
    causal=False,
    **shape,
):
    """Write the answers of a model ``m`` and return the inputs of the analysis.

    Log-odds of agreeing rise by ``agreement`` of an axis and by ``gender`` more in feminine frames;
    but for that, every frame, denial, gender and method says the same. ``apart`` is the SD of what
    a statement has in the frames of one gender alone, in that of all.
    """
    print("seed", seed)
    same = {"opposite": 0, "frame": 1, "denied": -1, "method": 1, "gender": apart}
    own = {"axes": 2, "pairs": PAIRS, "neutral": 60, "frames": 2, "noise": noise}
    made = AnswersShape.model_validate(own | same | shape)
    of = answers.convictions(made)._replace(
        values=np.tile(np.array(agreement) + np.array(gender) / 2, (2, 1)),
        gender=np.tile(gender, (2, 1)),
        likely=np.full(2, 0.6),
    )
    inputs = answers.write(folder, made, of, np.random.default_rng(seed), causal=causal)
    survey(inputs.datasets["survey"])
    return inputs
