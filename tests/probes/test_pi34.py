"""PI34 as a user brings it: 34 items, unbalanced and without opposites, with a survey's answers."""

import random

import building
import polars as pl
import pytest
import whole
from samples import DAY, POLITE, SAMPLES

from plumbline.builders.core.snapshot import Snapshot
from plumbline.builders.datasets.statements import build as statements
from plumbline.builders.datasets.statements import fetch as statements_fetch
from plumbline.builders.datasets.statements.read import VALUES
from plumbline.builders.datasets.survey import build as survey
from plumbline.builders.datasets.survey import fetch as survey_fetch
from plumbline.probes.core.run_analysis import Inputs
from plumbline.probes.prompts.opinions import questions
from plumbline.probes.site.headlines import HEADLINES
from plumbline.probes.values import values
from plumbline.probes.values.agreement import Params
from plumbline.probes.values.schemas import READINGS, SCHEMAS
from plumbline.result import Result

ITEMS = dict(zip(VALUES, (11, 9, 7, 7), strict=True))
HELD = dict(zip(VALUES, (1.5, 0.0, 0.0, -1.5), strict=True))  # log-odds of the value, nats
FACTS = {"licence": "as its authors state", "source": "made up"}
REVERSED = 3  # of each value
PEOPLE = 120


def written(folder, name, module, fetched, params):
    """Build a dataset from the files of a user, and hold it to the floors of the default run."""
    into = folder / "raw" / name
    module.fetch(module.Params(**fetched), POLITE, into)
    rows, _ = building.parted(building.builder(name).build(Snapshot.open(into), params))
    made = building.written(folder / name, name, rows)
    assert building.failing(name, made) == {}
    return made


def brought(folder):
    """Write the files that a user brings, and return the items: id, value, reversed."""
    items = [
        (f"pi-{axis}-{i}", axis, i < REVERSED)
        for axis, number in ITEMS.items()
        for i in range(number)
    ]
    texts = [f"Česká republika by měla mít pravidlo číslo {n}" for n in range(len(items))]
    said = "id,text,axis,weight,reversed,polarity,opposite\n" + "".join(
        f"{name},{text},{axis},1,{'yes' if turned else 'no'},,\n"
        for (name, axis, turned), text in zip(items, texts, strict=True)
    )
    (folder / "pi34.csv").write_text(said, encoding="utf-8")
    people = "respondent,gender,infected," + ",".join(name for name, *_ in items) + "\n"
    for n in range(PEOPLE):  # women are at 3, 4 or 5, men at 1, 2 or 3
        own = [2 * (n % 2) + 1 + k % 3 for k in range(len(items))]
        told = ",".join(
            str(6 - x if turned else x) for x, (*_, turned) in zip(own, items, strict=True)
        )
        people += f"r{n},{'female' if n % 2 else 'male'},{'yes' if n < 10 else 'no'},{told}\n"
    (folder / "answers.csv").write_text(people, encoding="utf-8")
    return items


@pytest.fixture
def inputs(tmp_path):
    """Return what the analysis reads: datasets by the recipe of the page, and a model's words."""
    items = brought(tmp_path)
    neutral = f"{SAMPLES}/statements/{DAY}/calibration-cs.csv"
    files = {
        "calibration-cs": {"file": neutral, "language": "cs", "scale": "calibration"} | FACTS,
        "pi34": {"file": f"{tmp_path}/pi34.csv", "language": "cs", "scale": "PI34"} | FACTS,
    }
    kopecky = {"file": f"{tmp_path}/answers.csv", "scale": "PI34", "simulated": False} | FACTS
    kopecky["items"] = ["pi-*"]
    own = {"version": "0.1.0", "snapshot": "x"}
    folders = {
        "statements": written(
            *(tmp_path, "statements", statements_fetch, {"questionnaires": files}),
            statements.Params(**own, configs=["calibration-cs", "pi34"]),
        ),
        "survey": written(
            *(tmp_path, "survey", survey_fetch, {"surveys": {"kopecky2022": kopecky}}),
            survey.Params(**own, configs=["kopecky2022"]),
        ),
    }
    found = Inputs(("m",), folders, tmp_path / "data")
    answered(found, {name: -HELD[axis] if turned else HELD[axis] for name, axis, turned in items})
    return found


def answered(inputs, held):
    """Write what a model of these values says, with noise, to all that the probe asks."""
    seed = 7
    print("seed", seed)
    rng = random.Random(seed)
    asking = Params(**whole.tree()["probes"]["agreement"])
    rows = []
    for q in questions(asking, inputs.datasets["statements"], "cs"):
        for method in ("together", "l2r"):
            x = rng.uniform(-6, -2)
            odds = held.get(q.id, rng.gauss(0, 0.5)) * (-1 if q.form == "negated" else 1)
            row = q._asdict() | {"disagree_nats": x, "agree_nats": x + odds + rng.gauss(0, 0.3)}
            rows.append(row | {"method": method})
    where = inputs.outputs("agreement", "m") / "cs"
    where.mkdir(parents=True)
    pl.DataFrame(rows).write_parquet(where / "00000.parquet")


def test_pi34_from_files_to_tables(inputs):
    analysis = whole.tree()["analysis"]["values"] | {"n_bootstrap": 200, "n_permutations": 99}
    tables = values.run(inputs, values.Params(**analysis))
    assert set(tables) == set(SCHEMAS)
    own = tables["values"].filter(scale="PI34", fitted="by gender", gender="both")
    for reading in READINGS:
        found = {row["axis"]: row for row in own.filter(reading=reading).to_dicts()}
        assert set(found) == set(ITEMS)
        for axis, row in found.items():  # reversed items are turned round
            assert (row["low"] > 3, row["high"] < 3) == (HELD[axis] > 0, HELD[axis] < 0)
            assert row["p"] is None  # the scale is not balanced
    gender = tables["gender"].filter(pl.col("scale") == "PI34", pl.col("axis") != "calibration")
    for measure, tested in (("value", False), ("agreement", True)):
        p = gender.filter(measure=measure)["p"]
        assert len(p) >= len(ITEMS)
        assert p.is_not_null().all() if tested else p.is_null().all()
    assert set(tables["standing"]["gender"]) == {"feminine", "masculine"}
    told = HEADLINES["values"]  # without the calibration, which is random here
    headline = told.rows(tables | {"calibration": tables["calibration"].clear()})
    assert headline["void"].str.starts_with("cs, PI34: ").all()
    means = own.filter(reading="corrected")["value"]
    assert set(headline.filter(pl.col("p_bh").is_null())["value"]) == set(means)
    result = Result(
        "values", "m", told.kind, headline, tables, "values", inputs.data, {}, 0.95, dict
    )
    assert result.void in result.summary
