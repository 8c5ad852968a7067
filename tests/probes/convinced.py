"""Answers to statements without a model: what is planted in them is known."""

import numpy as np
import polars as pl

from plumbline.builders.datasets.survey.responses import GENDERS, INFECTED
from plumbline.probes.core.run_analysis import Inputs
from plumbline.probes.prompts.opinions import FORMS, METHODS
from plumbline.probes.prompts.opinions import GENDERS as GRAMMATICAL

AXES = ("order", "trade")
FRAMES = ("said", "wrote")
PAIRS = 8  # of a statement and its opposite, for each axis


def statements(folder):
    """Write 60 statements for calibration, and pairs of opposites on two axes."""
    folder.mkdir(parents=True)
    shared = {"language": "xx", "weight": 1.0, "source": "test", "licence": "CC0-1.0"}
    neutral = [
        shared
        | {"id": f"c{i:02d}", "scale": "calibration", "axis": "", "reversed": False}
        | {"polarity": i % 2, "opposite": "", "text": f"c {i}"}
        for i in range(60)
    ]
    bearing = [
        shared
        | {"id": f"{axis}-{i}{'-r' * turned}", "scale": "values", "axis": axis}
        | {"reversed": bool(turned), "opposite": f"{axis}-{i}{'-r' * (1 - turned)}"}
        | {"text": f"{axis} {i} {turned}", "polarity": None}
        for axis in AXES
        for i in range(PAIRS)
        for turned in (0, 1)
    ]
    empty = {"config": [], "reason": [], "number": []}
    pl.DataFrame(empty).write_parquet(folder / "rejects.parquet")
    for name, rows in (("calibration-xx", neutral), ("values-xx", bearing)):
        frame = pl.DataFrame(rows, schema_overrides={"polarity": pl.Int64})
        frame.select(sorted(frame.columns)).write_parquet(folder / f"{name}.parquet")
    return neutral, bearing


def survey(folder, people=40):
    """Write answers: everybody's value of order is 4 and of trade 2, women's trade 3."""
    folder.mkdir(parents=True)
    rows = []
    for n in range(people):
        for axis in AXES:
            for i in range(PAIRS):
                for turned in (0, 1):
                    value = 4 if axis == "order" else 2 + (n % 2 == 0)
                    rows.append(
                        {
                            "respondent": f"simulated-{n:02d}",
                            "gender": GENDERS.index("female" if n % 2 == 0 else "male"),
                            "infected": INFECTED.index("yes" if n < 10 else "no"),
                            "scale": "values",
                            "item": f"{axis}-{i}{'-r' * turned}",
                            "answer": 6 - value if turned else value,
                            "simulated": True,
                            "source": "test",
                            "licence": "CC0-1.0",
                        }
                    )
    frame = pl.DataFrame(rows, schema_overrides={"answer": pl.Int32})
    frame.write_parquet(folder / "simulated.parquet")


def convinced(
    folder, seed, *, agreement=(0.0, 0.0), gender=(0.0, 0.0), noise=0.3, yes=0.0, causal=False
):
    """Write the answers of a model ``m`` and return the inputs of the analysis.

    Log-odds of agreeing rise by ``agreement`` of an axis, by ``gender`` more in feminine frames,
    and by ``yes`` whatever is said, in calibration too.
    """
    print("seed", seed)
    rng = np.random.default_rng(seed)
    names = {name: folder / name for name in ("statements", "survey")}
    inputs = Inputs(("m",), names, folder / "data")
    neutral, bearing = statements(names["statements"])
    survey(names["survey"])
    rows = []
    methods = ("sequence",) if causal else ("together", "l2r")
    for row in [*neutral, *bearing]:
        own, x = rng.normal(0, noise), -rng.uniform(2, 6)
        for frame in FRAMES:
            habit = 0.9 if frame == "said" else 1.1  # slope
            for g, _ in enumerate(GRAMMATICAL):
                for f, form in enumerate(FORMS):
                    odds = own
                    if row["axis"]:
                        at = AXES.index(row["axis"])
                        odds += (agreement[at] + gender[at] * (g == 0)) * (
                            -1 if row["reversed"] else 1
                        )
                    else:
                        odds += 0.6 * (1 - 2 * row["polarity"])
                    err = (-odds if form == "negated" else odds) + yes
                    asked = {"questionnaire": f"{row['scale']}-xx", "scale": row["scale"]}
                    asked |= {"id": row["id"], "frame": frame, "gender": g, "form": f}
                    nats = {"agree_nats": habit * x + err, "disagree_nats": x}
                    rows += [asked | {"method": METHODS.index(m)} | nats for m in methods]
    where = inputs.outputs("agreement", "m") / "xx"
    where.mkdir(parents=True)
    pl.DataFrame(rows).write_parquet(where / "00000.parquet")
    return inputs
