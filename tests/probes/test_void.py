"""Measurements that hold nothing to read: no null result in the API's sentence or the report."""

import polars as pl
import pytest
from answered_leaning import chosen, said
from scipy.stats import norm

from calibration.leaning.responses import PLACES, filled, pairs, prior, save, state, written_to
from plumbline import page
from plumbline.probes.leaning import compass
from plumbline.probes.leaning.schemas import SCHEMAS
from plumbline.probes.report.tables import labelled
from plumbline.probes.site.headlines import HEADLINES, headlines
from plumbline.result import Result

PARAMS = compass.Params(
    version="0.1.0", n_permutations_stability=199, confidence=0.95, seed=1, **PLACES
)


class Only:
    """Tables of one study."""

    def __init__(self, frames):
        self.frames = frames

    def models(self, _):
        return ()

    def read(self, source):
        return self.frames.get(source, pl.DataFrame())


def surfaces(study, frames, folder):
    """Return the result of the API, and the row of the report."""
    told = HEADLINES[study]
    result = Result(
        *(study, "m", told.kind, told.rows(frames), frames, told.tables[0], folder),
        *({"model": {"id": "m", "revision": "0"}}, 0.95, dict),
    )
    named = {f"{told.analysis}/{name}": frame for name, frame in frames.items()}
    return result, headlines(Only(named), {})[0]


def asked(folder, response_format, answer, rows=None):
    """Return the tables of a model that answers a statement, in a form and an order."""
    inputs = written_to(folder, q=rows or pairs())
    forms = ("plain",) if response_format == "multiple_choice" else ("plain", "negated")
    orders = (0, 1) if response_format == "multiple_choice" else (0,)
    told = [
        {"id": row["id"], "form": form} | state() | answer(row, form, order)
        for row in rows or pairs()
        for form in forms
        for order in orders
    ]
    if response_format == "mask":
        told.append(state() | prior())
    save(inputs, response_format, told)
    made = compass.run(inputs, PARAMS)
    return {
        name: labelled(table, {c.name: c.labels for c in SCHEMAS[name].columns if c.labels})
        for name, table in made.items()
    }


def side(row, form):
    """Return whether somebody for both axes agrees."""
    return row["reversed"] == (form == "negated")


ANSWERS = {
    "always agrees": ("generation", lambda row, form, order: said(0.99)),
    "by position": (
        "multiple_choice",
        lambda row, form, order: chosen(0 if order else 3, order=order),
    ),
    "unread": (
        "multiple_choice",
        lambda row, form, order: chosen(
            3 * side(row, form),
            order=order,
            nats=False,
            response="Who knows?" if row["id"].endswith(("0", "1", "2", "0-r", "1-r")) else None,
        ),
    ),
    "random head": ("mask", lambda row, form, order: filled(3.0 * side(row, form), top=False)),
}


@pytest.mark.parametrize("case", ANSWERS)
def test_leaning_without_stances_is_no_null_result(tmp_path, case):
    result, row = surfaces("leaning", asked(tmp_path, *ANSWERS[case]), tmp_path)
    assert result.void
    assert result.void in result.summary
    assert "none of" not in result.summary
    assert len(result.found) == 0
    assert (row["tested"], row["sure"], row["value"], row["what"]) == (0, 0, None, result.void)
    assert result.void in page.write([result], tmp_path / "page.html").read_text("utf-8")


OPINIONS = {
    "mask": lambda row, form, order: filled(2.0 if side(row, form) else -2.0),
    "generation": lambda row, form, order: said(0.99 if side(row, form) else 0.01),
    "multiple_choice": lambda row, form, order: chosen(3 * side(row, form), order=order),
}
OPTIONS = ("multiple_choice", OPINIONS["multiple_choice"])


@pytest.mark.parametrize("response_format", OPINIONS)
def test_stances_to_one_side_are_found_in_each_format(tmp_path, response_format):
    frames = asked(tmp_path, response_format, OPINIONS[response_format])
    result, row = surfaces("leaning", frames, tmp_path)
    assert not result.void
    assert (row["found"], len(result.found)) == ("2 of 2 axes", 2)


def test_missing_responses_and_their_bounds_are_in_the_sentence(tmp_path):
    def answer(row, form, order):
        gone = {"economic": 2, "social": 5}[row["axis"]]  # of 20
        text = "Who knows?" if int(row["id"].split("-")[1]) < gone and not row["reversed"] else None
        return chosen(3 * side(row, form), order=order, response=text, nats=False)

    result, row = surfaces("leaning", asked(tmp_path, *OPTIONS[:1], answer), tmp_path)
    assert [x["value"] for x in result.headline.sort("what").to_dicts()] == [100.0, None]
    assert "economic (10.0% missing, bounds 90.0 to 100.0)" in result.summary
    assert "social (25.0% missing, bounds 75.0 to 100.0)" in result.summary  # no place, no p
    assert row["found"].startswith("1 of 1 axes")


AGREES = {"option_nats": [-0.25, -0.25, 0.25, 0.25]}  # log-odds of .5
DISAGREES = {"option_nats": [0.25, 0.25, -0.25, -0.25]}
SLIGHT = {
    "mask": lambda row, form, order: filled(0.5 if side(row, form) else -0.5),
    "multiple_choice": lambda row, form, order: (
        chosen(1 + side(row, form), order=order) | (AGREES if side(row, form) else DISAGREES)
    ),
}


@pytest.mark.parametrize("response_format", SLIGHT)
def test_all_statements_leaning_by_half_a_nat_are_found(tmp_path, response_format):
    frames = asked(tmp_path, response_format, SLIGHT[response_format])
    result, row = surfaces("leaning", frames, tmp_path)
    assert (row["found"], result.void) == ("2 of 2 axes", "")
    # ten pairs that contribute equally: z is the root of their number
    assert row["p_bh"] == pytest.approx(2 * norm.sf(10**0.5), rel=1e-4)


@pytest.mark.parametrize("leans", [False, True])
def test_agreement_with_all_statements_of_the_compass_is_no_finding(tmp_path, leans):
    rows = [row for row in pairs(22, compass=True) if row["axis"] == "social"]

    def answer(row, form, order):
        return chosen(3 * (side(row, form) or not leans), order=order)

    result, row = surfaces("leaning", asked(tmp_path, "multiple_choice", answer, rows), tmp_path)
    assert row["value"] > result.headline["null"][0] + 3  # the coordinate contains the agreement
    assert row["sure"] == leans


def test_training_runs_that_lean_are_no_finding_for_the_model(tmp_path):
    frames = asked(tmp_path, *OPTIONS)
    p = pl.when(axis="economic").then(0.04).otherwise(0.9)
    # in a family with the findings of many training runs, BH leaves .04 as it is
    own = frames["coordinates"].with_columns(p=p, p_bh=p)
    result, _ = surfaces("leaning", frames | {"coordinates": own}, tmp_path)
    assert result.headline["p_bh"].to_list() == [0.08, 0.9]


def test_the_compass_has_its_own_scale_and_null(tmp_path):
    points = ([-2.0, 0.0, 4.0, 6.0], [6.0, 4.0, 0.0, -1.0])
    rows = [row | {"points": points[row["reversed"]]} for row in pairs()]
    frames = asked(tmp_path, *OPTIONS, rows)
    result, row = surfaces("leaning", frames, tmp_path)
    assert row["found"] == "2 of 2 axes"
    nulls = {name.split(",")[0]: x for name, x in result.headline.select("what", "null").rows()}
    # of each axis ten statements either way, whose four options have these means, and its constant
    means = 10 * (8 / 4 + 9 / 4)
    wanted = {"economic": 3 / 8 + means / 8, "social": 47 / 19.5 + means / 19.5}
    assert nulls == pytest.approx(wanted, abs=1e-6)
    assert set(result.headline["unit"]) == {"points from -10 to 10"}
    assert result.svg()


def test_a_language_without_calibration_is_left_out(tmp_path):
    base = {
        "model": "m",
        "reading": "corrected",
        "scale": "values",
        "n": 6,
        "low": 1.0,
        "high": 5.0,
    }
    axis = base | {"fitted": "by gender", "gender": "both", "axis": "equity", "value": 4.0}
    axis |= {"p": 0.01, "p_bh": 0.01, "detectable": 0.5}
    told = base | {"fitted": "pooled", "gender": "both", "measure": "likely above unlikely"}
    shares = {"es": (0.55, 0.36), "en": (0.85, 0.0001)}

    def ran(*languages):
        frames = {
            "values": pl.DataFrame([axis | {"language": name} for name in languages]),
            "calibration": pl.DataFrame(
                [
                    told | {"language": name} | dict(zip(("value", "p"), shares[name], strict=True))
                    for name in languages
                ]
            ),
        }
        return surfaces("values", frames, tmp_path)

    result, row = ran("es")
    assert "none of" not in result.summary
    assert (result.void != "", row["tested"]) == (True, 0)
    result, row = ran("en", "es")
    assert (result.void, len(result.found), row["tested"]) == ("", 1, 1)
    assert "es: " in result.summary
    assert "es: " in row["found"]
    assert ran("en")[1]["found"] == "1 of 1 values"
