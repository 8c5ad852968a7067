"""Analysis ``compass``: exact coordinates, planted shifts, habits taken out, nothing silent."""

import csv
import json
import re
from collections import Counter
from itertools import product
from pathlib import Path
from statistics import stdev

import numpy as np
import polars as pl
import pytest
import reference_scorer as scorer
from answered_leaning import chosen, compass, every, said
from scipy import stats
from scipy.stats import nct, t

from calibration.leaning.responses import (
    AXES,
    PLACES,
    filled,
    pairs,
    prior,
    save,
    state,
    statement,
    written_to,
)
from plumbline.builders.core.errors import UserError
from plumbline.builders.datasets.statements.formats import scale
from plumbline.probes.controls.recovery import Findings
from plumbline.probes.leaning import compass as analysis
from plumbline.probes.leaning import recovery
from plumbline.probes.leaning.schemas import (
    BASELINES,
    COMPARISONS,
    CONTRASTS,
    PERIODS,
    READINGS,
    ROUNDED,
    SCHEMAS,
)
from plumbline.probes.leaning.scoring import OPTIONS, STANCES, UNCLEAR, UNITS, scales
from plumbline.probes.leaning.shifts import moved
from plumbline.probes.leaning.stability import _agreement as agreement
from plumbline.probes.stats.estimate import TESTED_ERROR

PARAMS = analysis.Params(
    version="0.1.0", n_permutations_stability=199, confidence=0.95, seed=1, **PLACES
)
FRAMES = ("paper", "other")
SHARED = Path(__file__).parents[3] / "shared/data/statements"
real = pytest.mark.skipif(not SHARED.is_dir(), reason="no shared data beside the checkout")


def of(table, reading, **where):
    """Return the rows of a reading as dicts."""
    return table.filter(reading=READINGS.index(reading), **where).to_dicts()


def at(table, reading, **where):
    """Return the rows of a reading by axis."""
    return {row["axis"]: row for row in of(table, reading, **where)}


def places(rows):
    return {name: i for i, name in enumerate(sorted({row["id"] for row in rows}))}


def effects(rows):
    place = places(rows)
    found = np.zeros((len(place), 2))
    for row in rows:
        sign = -1 if row["reversed"] else 1
        found[place[row["id"]], AXES.index(row["axis"])] = sign * row["weight"]
    return found


def points(rows):
    place = places(rows)
    found = np.zeros((2, len(place), 4))
    for row in rows:
        if row["axis"]:
            found[AXES.index(row["axis"]), place[row["id"]]] = row["points"]
    return found


def ran(inputs, asked, told, params=PARAMS):
    """Save responses and return the tables that are made of them."""
    save(inputs, asked, told)
    return analysis.run(inputs, params)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Return inputs and tables of a model that `left` and `right` move, and `control` does not."""
    rng = np.random.default_rng(3)
    rows = pairs()
    inputs = written_to(tmp_path_factory.mktemp("trained"), q=rows)
    right = {row["id"]: (-1 if row["reversed"] else 1) for row in rows}
    axis = {row["id"]: row["axis"] for row in rows}
    own = {name: rng.normal(0, 0.5) for name in right}
    states = [state()]
    states += [state(c, s) for c in ("left", "right", "control") for s in (1, 2, 3)]
    told = [prior(0.7, frame=f) | s for s in states for f in FRAMES]
    for name, s, frame in every(rows, states, FRAMES):
        push = {"right": 2.0, "left": -2.0}.get(s["corpus"], 0.0) * (axis[name] == "economic")
        logit = own[name] + right[name] * push + 0.7 + rng.normal(0, 0.2)
        told.append({"id": name, "frame": frame} | s | filled(logit))
        denied = 0.7 - (logit - 0.7)
        told.append({"id": name, "frame": frame, "form": 1} | s | filled(denied))
    return inputs, ran(inputs, "mask", told)


def test_tables_have_their_columns_and_keys(trained):
    _, found = trained
    assert set(found) == set(SCHEMAS) - {"paraphrased"}
    for name, table in found.items():
        schema = SCHEMAS[name]
        assert table.columns == [c.name for c in schema.columns]
        assert not table.select(schema.key).is_duplicated().any(), name
        for column in schema.columns:
            if not column.nullable:
                assert table[column.name].null_count() == 0, (name, column.name)
            if column.labels:
                assert table[column.name].is_between(0, len(column.labels) - 1).all()


def test_a_planted_shift_has_its_sign_and_the_other_axis_has_none(trained):
    _, found = trained
    for reading in ("faithful", "corrected", "continuous"):
        for contrast, against in (("control", "control"), ("base model", "")):
            where = {"contrast": CONTRASTS.index(contrast), "baseline": against}
            for corpus, sign in (("right", 1), ("left", -1)):
                told = at(found["shifts"], reading, corpus=corpus, **where)
                nats = reading == "corrected"
                assert sign * told["economic"]["value"] > (0.5 if nats else 10)
                assert UNITS[told["social"]["unit"]] == ("log-odds, nats" if nats else "percent")
                if reading != "faithful":  # strong stances are the same after all trainings
                    assert told["economic"]["p_bh"] < 0.05
                    assert told["social"]["low"] < 0 < told["social"]["high"]
                    assert told["social"]["p"] > 0.05
        both = at(found["shifts"], reading, contrast=CONTRASTS.index("corpora"))
        assert both["economic"]["value"] > (1 if reading == "corrected" else 20)
        assert both["economic"]["baseline"] == "left"


def test_what_is_detectable_is_of_what_is_tested(trained):
    """A place is tested against a band whatever its interval, and agreement by permutations."""
    whole = pl.col("low").is_between(1, 99) & pl.col("high").is_between(1, 99)  # not cut
    places = trained[1]["coordinates"].drop_nulls("detectable").filter(whole).to_dicts()
    assert len(places) > 10
    parts = []
    for row in places:
        wide = float(re.search(r"SD ([0-9.]+)", row["null"])[1])
        most = (row["high"] - row["low"]) / 2 / 1.959964  # t makes an interval wider than that
        error = (row["detectable"] - 1.959964 * wide) / 0.841621
        assert 0.4 * most < error < most + 0.002
        parts.append(error / most)
    assert np.median(parts) < 0.97  # of t with 40 degrees of freedom .97, and here there are fewer
    # p at or below .05 starts where what is detectable does, but for the .84 errors
    stable = trained[1]["stability"].drop_nulls("detectable").to_dicts()
    assert len(stable) > 5
    for row in stable:
        error = (row["high"] - row["low"]) / 2 / 1.959964  # clusters of one hit each vary more
        far = abs(row["value"] - row["chance"])
        assert far < row["detectable"] + 0.02 or row["p"] <= 0.05
        assert far > row["detectable"] - 0.841621 * error - 0.02 or row["p"] > 0.05


def test_the_error_of_stability_is_that_of_the_shares_of_clusters():
    one, clusters = np.ones((1, 12)), np.repeat(list("abcdef"), 2)
    two = np.array([[1, 1, 1, 0, 1, -1, -1, 1, -1, 0, 1, 1.0]])
    alike, answered = [2, 1, 1, 1, 0, 2], [2, 1, 2, 2, 1, 2]
    row = agreement("seeds", one, two, clusters, PARAMS)
    share = sum(alike) / sum(answered)
    assert row["value"] == pytest.approx(share, abs=1e-6)
    # of a ratio of totals, by deviations of clusters from what their statements would give
    apart = [x - share * n for x, n in zip(alike, answered, strict=True)]
    assert row[TESTED_ERROR] == pytest.approx(stdev(apart) * 6**0.5 / sum(answered))
    # where all agree nothing is known of it, and Wilson's is taken
    assert agreement("seeds", one, one, clusters, PARAMS)[TESTED_ERROR] is None


@pytest.mark.parametrize(("trainings", "df"), [(2, 2), (5, 8)])
def test_a_shift_is_told_as_detectable_by_t(tmp_path, trainings, df):
    rng = np.random.default_rng(5)
    rows = pairs()
    seeds = range(1, trainings + 1)
    states = [state(), *(state(corpus, s) for corpus in ("left", "control") for s in seeds)]
    inputs = written_to(tmp_path, q=rows)
    told = [prior(0.0, frame=f) | s for s in states for f in FRAMES]
    told += [
        {"id": name, "frame": f} | s | filled(rng.normal())
        for name, s, f in every(rows, states, FRAMES)
    ]
    found = ran(inputs, "mask", told)["shifts"]
    shifts = at(found, "corrected", corpus="left", contrast=CONTRASTS.index("control"))
    assert set(shifts) == {"economic", "social"}
    for row in shifts.values():
        assert row["p"] is not None
        if df < 5:
            assert row["detectable"] is None
            continue
        error = (row["high"] - row["low"]) / 2 / t.ppf(0.975, df)
        apart = row["detectable"] / error
        assert nct.sf(t.ppf(0.975, df), df, apart) == pytest.approx(0.8, abs=1e-4)


def test_what_is_detectable_of_a_shift_is_not_of_the_interval_that_ends_with_the_scale(tmp_path):
    rng, rows, seeds = np.random.default_rng(6), pairs(), range(1, 6)
    states = [state(), *(state(corpus, s) for corpus in ("left", "control") for s in seeds)]
    inputs = written_to(tmp_path, q=rows)
    told = [prior(0.0) | s for s in states]
    told += [{"id": name} | s | filled(rng.normal()) for name, s, _ in every(rows, states)]
    found, cut = (
        of(ran(inputs, "mask", told, params)["shifts"], "continuous", corpus="left", axis="social")
        for params in (PARAMS, PARAMS.model_copy(update={"confidence": 1 - 1e-15}))
    )
    control = CONTRASTS.index("control")
    (usual,), (wide,) = ([r for r in rows if r["contrast"] == control] for rows in (found, cut))
    assert usual["high"] < 100
    assert wide["high"] == 100
    assert wide["detectable"] == usual["detectable"] > 0


def test_a_shift_is_the_difference_of_the_coordinates(trained):
    _, found = trained
    for reading in ("faithful", "continuous"):
        own = {
            corpus: at(found["coordinates"], reading, corpus=corpus)
            for corpus in ("", "left", "right", "control")
        }
        for row in of(found["shifts"], reading):
            against = {"base model": "", "corpora": "left"}
            assert row["baseline"] == against.get(CONTRASTS[row["contrast"]], "control")
            one, two = (own[c][row["axis"]]["value"] for c in (row["corpus"], row["baseline"]))
            assert row["value"] == pytest.approx(one - two, abs=2e-6)


def test_a_coordinate_is_the_mean_of_its_trainings_and_prompts(trained):
    _, found = trained
    for reading in ("corrected", "continuous"):
        for axis, row in at(found["coordinates"], reading, corpus="right").items():
            runs = of(found["runs"], reading, corpus="right", axis=axis)
            single = [r["value"] for r in runs if r["prompt"]]
            assert len(single) == row["seeds"] * row["prompts"] == 6
            assert np.mean(single) == pytest.approx(row["value"], abs=1e-5)
            assert row["low"] < row["low_fixed"] <= row["value"] <= row["high_fixed"] < row["high"]
            whole = [r["value"] for r in runs if not r["prompt"]]
            assert row["seed_sd"] == pytest.approx(np.std(whole, ddof=1), abs=1e-5)
            each = [np.mean([r["value"] for r in runs if r["prompt"] == f]) for f in FRAMES]
            assert row["prompt_sd"] == pytest.approx(np.std(each, ddof=1), abs=1e-5)
        itself = at(found["coordinates"], reading, corpus="")
        far = {axis: abs(row["value"] - 50) for axis, row in itself.items()}
        own = at(found["magnitudes"], reading, model="")
        assert {axis: row["value"] for axis, row in own.items()} == pytest.approx(far, abs=1e-5)


def test_choices_and_samples_are_not_tested_against_the_model_itself(trained, tmp_path):
    itself, rows = CONTRASTS.index("base model"), pairs(4)
    inputs = written_to(tmp_path, q=rows)
    states = [state(), *(state(c, s) for c in ("right", "control") for s in (1, 2, 3))]
    rng = np.random.default_rng(1)
    told = every(rows, states)
    sure = lambda: abs(rng.integers(2) - rng.uniform(0, 0.1))  # noqa: E731
    save(inputs, "generation", [{"id": n} | s | said(sure()) for n, s, _ in told])
    for table, with_p in (
        (trained[1]["shifts"], {"corrected", "continuous"}),
        (analysis.run(inputs, PARAMS)["shifts"], set()),
    ):
        own = table.filter(contrast=itself)
        assert {READINGS[r] for r in own.drop_nulls("p")["reading"]} == with_p
        assert own.filter(pl.col("p").is_null())["null"].str.starts_with("no test").all()
        others = table.filter(pl.col("contrast") != itself, reading=READINGS.index("continuous"))
        assert others["p"].null_count() == 0


def test_no_interval_of_a_shift_is_beyond_the_ends_of_the_scale(tmp_path):
    rows = pairs(2)
    inputs = written_to(tmp_path, q=rows)
    turn = {row["id"]: (-1 if row["reversed"] else 1) for row in rows}
    sides = [("left", 0), ("right", 0), *((c, p) for c in ("left", "right") for p in (1, 2))]
    states = [state(), *(state(c, s, period=p) for c, p in sides for s in (1, 2))]
    told = [prior() | s for s in states]
    for name, s, _ in every(rows, states):
        far = {"right": 30.0, "left": -30.0}.get(s["corpus"], 0.0) * (s["pretraining_seed"] == 1)
        far *= -1 if s["period"] == 1 else 1  # once the other way round
        told.append({"id": name} | s | filled(turn[name] * far))
    found = ran(inputs, "mask", told)
    shifts, stances = found["shifts"], found["items"].drop_nulls("low")
    assert (stances["low"].min(), stances["high"].max()) == (-1, 1)
    for contrast, period, end in (("corpora", 0, 100), ("polarisation", 2, 200)):
        for row in of(shifts, "continuous", contrast=CONTRASTS.index(contrast), period=period):
            assert -end <= row["low"] < row["value"] == end / 2 < row["high"] == end
    free = of(shifts, "corrected", contrast=CONTRASTS.index("corpora"), period=0)
    assert all(row["high"] - row["value"] > 50 for row in free)  # of nats there are no ends


@pytest.mark.slow
def test_opinions_without_a_side_are_no_leaning_however_strong(tmp_path):
    rng = np.random.default_rng(12)
    rows = pairs(10)
    found = []
    for number in range(30):  # strongly for or against each pair, and its opposite
        inputs = written_to(tmp_path / str(number), q=rows)
        side = {row["id"]: rng.choice([-1, 1]) for row in rows if not row["reversed"]}
        told = []
        for row in rows:
            agrees = -side[row["opposite"]] if row["reversed"] else side[row["id"]]
            told.append({"id": row["id"]} | state() | chosen(3 if agrees > 0 else 0))
        quick = PARAMS.model_copy(update={"n_permutations_stability": 99})
        own = ran(inputs, "multiple_choice", told, quick)["coordinates"]
        found += own.filter(reading=READINGS.index("named"))["p"].to_list()
    assert np.mean(np.array(found) <= 0.05) <= 0.12  # of options at random alone: .27


def test_constant_answers_are_where_the_scorer_has_them(tmp_path):
    rows = compass()
    inputs = written_to(tmp_path, q=rows)
    for option in range(4):
        told = [{"id": name} | s | chosen(option) for name, s, _ in every(rows, [state()])]
        found = ran(inputs, "multiple_choice", told)
        for constants in ROUNDED:
            wanted = scorer.coordinates(np.full(21, option), *points(rows), reading=constants)
            table = found["baselines"].filter(
                constants=ROUNDED.index(constants),
                baseline=BASELINES.index(f"always {OPTIONS[option]}"),
            )
            base = {row["axis"]: row["value"] for row in table.to_dicts()}
            for axis in AXES:
                assert base[axis] == pytest.approx(float(getattr(wanted, axis)), abs=1e-6)
        for reading in ("named", "likeliest"):
            for axis, row in at(found["coordinates"], reading).items():
                assert row["value"] == pytest.approx(float(getattr(wanted, axis)), abs=1e-6)


def test_random_answers_have_the_mean_and_spread_of_the_scorer(tmp_path):
    rows, linear = compass(), pairs(4)
    inputs = written_to(tmp_path, q=rows, linear=linear)
    known = scales(inputs.datasets["statements"], {"q", "linear"})
    for reading in ROUNDED:
        wanted = scorer.chance(*points(rows), reading=reading)
        start, spread = known["q"].start(reading), known["q"].spread()
        assert start == pytest.approx([wanted.economic_mean, wanted.social_mean])
        assert spread == pytest.approx([wanted.economic_sd, wanted.social_sd])
    seed = 11
    drawn = np.random.default_rng(seed).choice(STANCES, (40_000, 16))
    found = scorer.percents(drawn, effects(linear)).percent
    assert known["linear"].start("corrected").tolist() == [50, 50]
    assert known["linear"].spread() == pytest.approx(found.std(axis=0), rel=0.02)


def test_answers_with_gaps_are_where_the_scorer_has_them(tmp_path):
    rng = np.random.default_rng(61)
    rows, linear = compass(), pairs(5)
    inputs = written_to(tmp_path, q=rows, linear=linear)
    told, answers = [], {}
    for name, own in (("q", rows), ("linear", linear)):
        answers[name] = rng.integers(UNCLEAR, 4, len(places(own)))
        for key, i in places(own).items():
            option = int(answers[name][i])
            response = "It depends." if option == UNCLEAR else None
            row = chosen(max(option, 0), response=response, nats=False, order=i % 2)
            told.append({"questionnaire": name, "id": key} | state() | row | {"order": 0})
    found = ran(inputs, "multiple_choice", told)["coordinates"]
    wanted = scorer.coordinates(answers["q"], *points(rows), lacking="middle")
    start, there = scorer.chance(*points(rows)), answers["q"] != UNCLEAR
    own = at(found, "named", questionnaire="q")
    assert sum(row["missing"] for row in own.values()) == wanted.missing
    for axis, table in zip(AXES, points(rows), strict=True):
        ends = [float(getattr(wanted, axis + end)) for end in ("_low", "_high")]
        assert [own[axis]["bound_low"], own[axis]["bound_high"]] == pytest.approx(ends)
        middle, reach = getattr(start, f"{axis}_mean"), np.ptp(table, axis=1)
        far = (float(getattr(wanted, axis)) - middle) * reach.sum() / reach[there].sum()
        assert own[axis]["value"] == pytest.approx(middle + far)  # 2 of 13, 1 of 7 missing
    given = np.where(answers["linear"] < 0, np.nan, np.array(STANCES)[answers["linear"]])
    percents = scorer.percents(given, effects(linear), lacking="zero")
    own = at(found, "named", questionnaire="linear")
    score = np.nansum(given[:, None] * effects(linear), axis=0)
    score /= np.abs(effects(linear))[~np.isnan(given)].sum(axis=0)
    assert own["economic"]["value"] == pytest.approx(50 * (1 + score[0]))  # 1 of 10
    assert own["social"]["value"] is None  # 4 of 10
    for a, axis in enumerate(AXES):
        assert own[axis]["bound_low"] == pytest.approx(percents.low[a])
        assert own[axis]["bound_high"] == pytest.approx(percents.high[a])


def refusing(inputs, rows, share, people):
    """Return the tables of respondents who lean right but refuse at random, and their places."""
    rng = np.random.default_rng(2)
    right = np.array([-1 if row["reversed"] else 1 for row in rows])
    told = [{"id": row["id"]} | state() | chosen(2, nats=False) for row in rows]
    places = {}
    for corpus in map("r{}".format, range(people)):
        stances = right * rng.choice([1, 0.5, -1], len(rows), p=[0.45, 0.45, 0.1])
        for axis in AXES:
            here = np.flatnonzero([row["axis"] == axis for row in rows])
            places[corpus, axis] = 50 + 50 * float((stances * right)[here].mean())
            gone = set(rng.choice(here, round(share * len(here)), replace=False))
            for i in here:
                answer = {"response": "I cannot comment." if i in gone else None, "nats": False}
                answer = chosen(STANCES.index(stances[i]), **answer)
                told.append({"id": rows[i]["id"]} | state(corpus, 1) | answer)
    return ran(inputs, "multiple_choice", told), places


@pytest.mark.parametrize("share", [0.0, 0.1, 0.2])
def test_coordinates_few_responses_missing_at_random_are_unbiased(tmp_path, share):
    rows = pairs(15)
    found, places = refusing(written_to(tmp_path, q=rows), rows, share, 60)
    table = found["coordinates"].filter(pl.col("corpus") != "").sort("corpus", "axis")
    value, low, high = table.select("value", "low", "high").to_numpy().T
    true = np.array([places[place] for place in table.select("corpus", "axis").rows()])
    assert abs((value - true).mean()) <= 3 * (value - true).std() / len(true) ** 0.5 + 1e-5
    assert ((low <= true) & (true <= high)).mean() >= 0.93
    far = found["shifts"].sort("corpus", "axis")["value"].to_numpy()
    assert far == pytest.approx(value - 50, abs=1e-5)  # the model itself agrees with everything


@pytest.mark.parametrize("share", [0.3, 0.6, 0.9])
def test_coordinates_many_responses_missing_have_bounds_alone(tmp_path, share):
    rows = pairs(5)
    found, places = refusing(written_to(tmp_path, q=rows), rows, share, 20)
    for table in ("coordinates", "runs", "shifts"):
        own = found[table].filter(pl.col("corpus") != "")
        for column in ("value", "low", "high", "p", "p_bh", "detectable"):
            assert own[column].null_count() == len(own) >= 40
    for row in found["coordinates"].filter(pl.col("corpus") != "").to_dicts():
        assert row["missing"] == share * row["statements"]
        place = places[row["corpus"], row["axis"]]
        assert row["bound_low"] - 1e-4 <= place <= row["bound_high"] + 1e-4
    assert set(found["magnitudes"]["model"]) == {""}  # of the model itself, which answers


def test_the_prior_takes_a_habit_of_agreeing_out(tmp_path):
    rng = np.random.default_rng(8)
    rows = [statement(f"s{i:02d}", AXES[i % 2]) for i in range(40)]  # agreeing is always right
    inputs = written_to(tmp_path, q=rows)
    drawn = rng.normal(0, 0.4, 20)
    odds = dict(zip(sorted(places(rows)), np.repeat(drawn - drawn.mean(), 2), strict=True))
    told = {}
    for habit in (0.0, 1.5):
        answers = [prior(habit) | state()]
        answers += [{"id": n} | state() | filled(x + habit) for n, x in odds.items()]
        told[habit] = ran(inputs, "mask", answers)["coordinates"]
    for axis in AXES:
        assert at(told[1.5], "faithful")[axis]["value"] > 90  # all strongly agree
        for reading in ("corrected", "continuous"):
            calm, habitual = (at(told[h], reading)[axis] for h in (0.0, 1.5))
            assert habitual["value"] == pytest.approx(calm["value"], abs=1e-4)
            assert habitual["low"] < 50 < habitual["high"]


def test_the_first_frame_and_the_ten_words_alone_are_faithful(tmp_path):
    rows = [statement("a", "economic"), statement("b", "economic"), statement("c", "economic")]
    inputs = written_to(tmp_path, q=rows)
    frames = ("paper", "other")
    told = [prior(frame=f) | state() for f in frames]
    logits = {("a", "paper"): 0.2, ("a", "other"): -3.0, ("b", "paper"): -2.0, ("b", "other"): 3.0}
    told += [{"id": n, "frame": f} | state() | filled(x) for (n, f), x in logits.items()]
    told += [{"id": "c", "frame": f} | state() | filled(2.0, top=False) for f in frames]
    found = ran(inputs, "mask", told)
    stances = {row["id"]: row["value"] for row in of(found["items"], "faithful")}
    assert stances == {"a": 0.5, "b": -1.0, "c": -0.5}  # no listed word: disagrees, as released
    assert {row["id"]: row["value"] for row in of(found["items"], "corrected")}["c"] == 1.0
    (row,) = of(found["answered"], "faithful")
    assert (row["answers"], row["unlisted"], row["refused"]) == (3, 1, 0)
    assert of(found["coordinates"], "faithful")[0]["prompts"] == 1
    assert of(found["coordinates"], "corrected")[0]["prompts"] == 2


def written(inputs, answers):
    told = [{"id": n} | state() | row for n, own in answers.items() for row in own]
    return ran(inputs, "generation", told)


def test_written_answers_are_read_as_each_reading_has_it(tmp_path):
    rows = [statement(n, "economic") for n in "abc"]
    inputs = written_to(tmp_path, q=rows)
    answers = {
        # sure answers of two sides, the mean of which is weakly for it; and an unsure one
        "a": [said(0.95, seed=3), said(0.95, seed=4), said(0.08, seed=5), said(0.2, seed=2)],
        "b": [said(0.6, seed=s) for s in (2, 3, 4, 5)],  # never sure
        "c": [said(0.02, alone=0.97, seed=s) for s in (2, 3, 4, 5)],
    }
    found = written(inputs, answers)
    stances = {
        name: {row["id"]: row["value"] for row in of(found["items"], name)}
        for name in ("faithful", "paper", "corrected", "continuous")
    }
    assert stances["faithful"] == {"a": -1.0, "b": 0.5, "c": -1.0}  # the first seed alone
    assert stances["paper"] == {"a": 1.0, "b": None, "c": -1.0}
    assert stances["corrected"] == {"a": 1.0, "b": None, "c": 1.0}
    mean = 2 * np.mean([0.95, 0.95, 0.08]) - 1
    assert stances["continuous"]["a"] == pytest.approx(mean, abs=1e-6)
    counts = {n: of(found["answered"], n)[0] for n in ("faithful", "corrected")}
    assert (counts["faithful"]["answers"], counts["faithful"]["unclear"]) == (3, 0)
    assert (counts["corrected"]["answers"], counts["corrected"]["unclear"]) == (12, 5)
    (row,) = of(found["coordinates"], "corrected")
    assert row["missing"] == 1
    assert (row["value"], row["low"], row["p"]) == (None, None, None)  # a third is missing
    assert row["bound_high"] - row["bound_low"] == pytest.approx(100 / 3, abs=1e-5)


def test_refusals_are_counted_and_never_move_a_score_in_silence(tmp_path):
    rows = [statement(n, "economic") for n in "abcd"]
    inputs = written_to(tmp_path, q=rows)
    sorry = "I'm sorry, but I cannot comment on political matters."
    yes = [said(0.97, seed=s) for s in (1, 2)]
    no = [said(0.97, seed=s, response=sorry) for s in (1, 2)]  # as if it agreed
    calm = written(inputs, dict.fromkeys("abcd", yes))
    some = written(inputs, {"a": yes, "b": yes, "c": no, "d": no})
    none = written(inputs, dict.fromkeys("abcd", no))
    values = [of(t["coordinates"], "corrected")[0] for t in (calm, some, none)]
    assert [v["missing"] for v in values] == [0, 2, 4]
    assert values[0]["value"] == values[0]["bound_low"] == values[0]["bound_high"] == 100
    assert (values[1]["bound_low"], values[1]["value"], values[1]["bound_high"]) == (50, None, 100)
    assert (values[2]["bound_low"], values[2]["value"], values[2]["bound_high"]) == (0, None, 100)
    assert [of(t["answered"], "corrected")[0]["refused"] for t in (calm, some, none)] == [0, 4, 8]
    shares = {row["id"]: row["share_missing"] for row in of(some["items"], "corrected")}
    assert shares == {"a": 0, "b": 0, "c": 1, "d": 1}
    # the released code maps them: that is what `faithful` is for
    assert of(none["coordinates"], "faithful")[0]["value"] == 100


def test_options_are_read_in_any_order_and_order_effects_are_told(tmp_path):
    rows = pairs(6)
    inputs = written_to(tmp_path, q=rows)
    right = {row["id"]: not row["reversed"] for row in rows}

    def table(pick, **more):
        told = [
            {"id": n} | state() | chosen(pick(right[n], order), order=order, **more)
            for n in places(rows)
            for order in (0, 1)
        ]
        found = ran(inputs, "multiple_choice", told)
        told = {r["comparison"]: r for r in of(found["stability"], "named")}
        return found, {COMPARISONS[c]: r for c, r in told.items()}

    found, stable = table(lambda yes, _: 3 if yes else 0)
    assert {row["value"] for row in of(found["coordinates"], "named")} == {100}
    assert {name: row["value"] for name, row in stable.items()} == {"opposites": 1, "order": 1}
    assert stable["order"]["p"] < 0.05
    found, stable = table(lambda _, order: 3 if order == 0 else 0)  # whatever stands fourth
    assert {row["value"] for row in of(found["coordinates"], "named")} == {50}
    assert {name: row["value"] for name, row in stable.items()} == {"opposites": 0, "order": 0}
    assert stable["opposites"]["p"] == 1  # as for one who says yes to all: not more than chance
    found, _ = table(lambda yes, _: 2 if yes else 1, response="I refuse; sorry.")
    (row,) = {r["value"] for r in of(found["coordinates"], "named")}
    assert row is None
    assert {r["value"] for r in of(found["coordinates"], "likeliest")} == {75}
    (row, *_) = of(found["answered"], "named")
    assert (row["value"], row["refused"], row["answers"]) == (0, 48, 48)
    (expected,) = {r["value"] for r in of(found["coordinates"], "expected")}
    odds = np.exp([-0.1, -4, -4, -4])
    mean = (odds / odds.sum()) @ [0.5, 1, -0.5, -1]  # towards the right
    assert expected == pytest.approx(50 + 50 * mean, abs=1e-5)


def test_who_denies_and_says_yes_to_all_is_told_from_who_means_it(trained, tmp_path):
    _, found = trained
    for reading in ("corrected", "continuous"):
        told = of(found["stability"], reading, corpus="right")
        stable = {COMPARISONS[row["comparison"]]: row for row in told}
        assert set(stable) == {"prompts", "negated", "opposites"}
        assert stable["negated"]["value"] == 1
        assert stable["prompts"]["value"] > 0.9
        assert stable["prompts"]["p_bh"] < 0.05
    rows = pairs(5)
    inputs = written_to(tmp_path, q=rows)
    told = [prior() | state()]
    told += [{"id": n, "form": f} | state() | filled(2.0) for n in places(rows) for f in (0, 1)]
    told += [
        {"id": n, "form": 2, "variant": "p1"} | state() | filled(-2.0 if i % 2 else 2.0)
        for n, i in places(rows).items()
    ]
    table = ran(inputs, "mask", told)["stability"]
    stable = {COMPARISONS[row["comparison"]]: row["value"] for row in of(table, "corrected")}
    assert stable == {"negated": 0, "opposites": 0, "paraphrases": 0.5}


def test_magnitudes_are_means_of_distances_beside_those_of_random_answers(tmp_path):
    rows = compass()
    inputs = written_to(tmp_path, ("m", "n"), q=rows)
    states = [state(), *(state(f"{k}-left", s) for k in ("news", "social") for s in (1, 2))]
    states.append(state("news-right", 1))
    for number, model in enumerate(inputs.models):
        told = [prior() | s for s in states]
        for i, (name, s, _) in enumerate(every(rows, states)):
            told.append({"id": name} | s | filled(0.3 * (i % 7) - number - s["pretraining_seed"]))
        save(inputs, "mask", told, model)
    found = analysis.run(inputs, PARAMS)
    own = of(found["magnitudes"], "continuous", axis="social")
    table = {(row["model"], row["domain"]): row for row in own}
    places = of(found["coordinates"], "continuous", axis="social", corpus="")
    shifts = of(found["shifts"], "continuous", axis="social", contrast=0, model="m")
    far = {"": [abs(row["value"]) for row in places]}
    for domain in ("news", "social"):
        far[domain] = [abs(r["value"]) for r in shifts if r["corpus"].startswith(domain)]
    assert [len(values) for values in far.values()] == [2, 2, 1]
    for domain, values in far.items():
        row = table["m" if domain else "", domain]
        assert (row["value"], row["n"]) == (pytest.approx(np.mean(values), abs=1e-6), len(values))
    rng, options = np.random.default_rng(5), points(rows)[1]  # (statements, options)
    drawn = rng.integers(4, size=(20_000, len(options)))
    told = options[np.arange(len(options)), drawn].sum(axis=1) / 19.5 + 47 / 19.5
    assert table["", ""]["chance"] == pytest.approx(np.abs(told).mean(), rel=0.03)
    assert table["m", "news"]["chance"] is None


def test_each_paraphraser_has_coordinates_of_its_own(tmp_path):
    rows = pairs(5)
    inputs = written_to(tmp_path, q=rows)
    right = {row["id"]: (-1 if row["reversed"] else 1) for row in rows}
    told = [prior(frame=f) | state() for f in ("paper", "other")]
    for name, side in right.items():
        plain = {"id": name} | state() | filled(side * 0.5)
        told += [plain | {"frame": frame} for frame in ("paper", "other")]
        wordings = (
            {"t5": side * 2.0} if name == "economic-00" else {"t5": 2.0 * side, "bart": -side}
        )
        told += [
            {"id": name, "form": 2, "variant": by} | state() | filled(logit)
            for by, logit in wordings.items()
        ]
    found = ran(inputs, "mask", told)["paraphrased"]
    assert found.columns == [column.name for column in SCHEMAS["paraphrased"].columns]
    mass = {logit: np.tanh(logit / 2) for logit in (0.5, 2.0, -1.0)}  # up - down
    wanted = {
        "": (mass[0.5], mass[0.5]),
        "t5": (mass[2.0], mass[2.0]),
        "bart": ((9 * mass[-1.0] + mass[0.5]) / 10, mass[-1.0]),  # one is as it stands
    }
    number = {"": 0, "t5": len(rows), "bart": len(rows) - 1}
    for variant, places_of in wanted.items():
        own = at(found, "continuous", variant=variant)
        for axis, expected in zip(AXES, places_of, strict=True):
            assert own[axis]["value"] == pytest.approx(50 + 50 * expected, abs=1e-5)
            assert (own[axis]["reworded"], own[axis]["p"]) == (number[variant], None)
    assert len(of(found, "continuous")) == 6
    plain = at(analysis.run(inputs, PARAMS)["runs"], "continuous", prompt="paper")
    assert plain["social"]["value"] == at(found, "continuous", variant="")["social"]["value"]


@pytest.mark.slow
def test_answers_without_a_memory_are_called_stable_at_the_rate_of_the_test(tmp_path):
    rng = np.random.default_rng(12)
    rows = pairs(8)  # a statement and its opposite are answered alike, in both orders anew
    inputs = written_to(tmp_path, q=rows)
    place = places(rows)
    told = []
    for k in range(120):
        for order in (0, 1):
            side = rng.integers(2, size=len(place))
            for name, i in place.items():
                yes = side[place[name.removesuffix("-r")]] == (i != place[name.removesuffix("-r")])
                row = chosen(3 if yes else 0, order=order, nats=False)
                told.append({"id": name} | state(f"c{k}", 1) | row)
    found = ran(inputs, "multiple_choice", told)["stability"]
    own = found.filter(comparison=COMPARISONS.index("order"))
    assert len(own) == 120
    rate = (own["p"] <= 0.05).mean()
    assert 0.01 <= rate <= 0.1
    assert own["chance"].mean() == pytest.approx(0.5, abs=0.03)
    opposite = found.filter(comparison=COMPARISONS.index("opposites"))
    assert set(opposite["value"]) == {1.0}


def test_agreement_by_chance_and_its_p_are_those_counted_by_hand(trained, tmp_path):
    rows = [statement(n, "economic") for n in "abcd"]
    inputs = written_to(tmp_path, q=rows)
    told = [
        {"id": n, "frame": f} | state() | said(0.03 if n == "d" else 0.97, seed=1)
        for n in "abcd"
        for f in FRAMES
    ]
    found = ran(inputs, "generation", told)["stability"]
    (row,) = of(found, "corrected", comparison=COMPARISONS.index("prompts"))
    assert (row["value"], row["n"]) == (1, 4)
    assert row["chance"] == 0.625  # of 16 pairs of statements, 9 + 1 are on one side
    assert row["p"] == pytest.approx(0.25, abs=0.1)  # d at its own place
    own = of(trained[1]["answered"], "corrected", corpus="left", prompt="paper")
    assert [r["answers"] for r in own] == [3 * 40]  # those to denied statements are not among them


def test_random_answers_are_in_their_band_at_its_rate(tmp_path):
    rng = np.random.default_rng(20261122)
    rows = compass()
    inputs = written_to(tmp_path, q=rows)
    told = [
        {"id": name} | s | chosen(int(rng.integers(4)), nats=False)
        for name, s, _ in every(rows, [state("random", k) for k in range(400)])
    ]
    found = ran(inputs, "multiple_choice", told)
    band = found["baselines"].filter(baseline=0, constants=1)
    for row in band.to_dicts():
        values = [r["value"] for r in of(found["runs"], "named", axis=row["axis"])]
        inside = np.mean([row["low"] <= v <= row["high"] for v in values])
        assert len(values) == 400
        assert 0.92 <= inside <= 0.98  # 0.95, two and a half standard errors
        assert np.std(values) == pytest.approx(row["sd"], rel=0.12)


def test_intervals_hold_a_shift_of_more_statements_at_their_rate(tmp_path):
    rng = np.random.default_rng(77)
    rows = pairs(10)
    known = scales(written_to(tmp_path, q=rows).datasets["statements"], {"q"})["q"]
    keep = known.moving()[0]
    names = sorted(set(np.array(known.clusters)[keep]))
    held = []
    for _ in range(600):
        shift = 0.15  # of every pair; pairs and trainings differ
        pair = dict(zip(names, rng.normal(shift, 0.2, len(names)), strict=True))
        own = np.array([pair.get(name, 0.0) for name in known.clusters])
        size = (3, 4, len(own))
        noise = rng.normal(0, 0.15, size) + rng.normal(0, 0.08, (3, 1, 1))
        prompts = rng.normal(0, 0.08, (1, 4, 1))  # which are taken as they are
        added = own + noise + prompts
        where = moved(known, 0, np.where(keep, added, 0.0)).estimate(0.0, 0.95)
        held.append(where.low <= (shift + prompts.mean()) * keep.sum() <= where.high)
    assert 0.93 <= np.mean(held) <= 0.99  # rather wide: what crosses is counted twice


def test_a_state_of_each_period_share_and_epoch_stands_by_itself(tmp_path):
    rows = pairs(6)
    inputs = written_to(tmp_path, q=rows)
    right = {row["id"]: -1 if row["reversed"] else 1 for row in rows}
    states = [state()]
    states += [state("left", 1, period=p) for p in (1, 2)]
    states += [state("left", 1, epoch=e, share=0.5) for e in (1, 2, 3)]
    told = [prior() | s for s in states]
    for name, s, _ in every(rows, states):
        push = -0.2 * s["epoch"] - 0.5 * (s["period"] == 2)
        told.append({"id": name} | s | filled(right[name] * push))
    found = ran(inputs, "mask", told)
    (last,) = of(found["magnitudes"], "continuous", model="m", axis="social")
    (end,) = of(
        found["shifts"],
        "continuous",
        corpus="left",
        axis="social",
        contrast=CONTRASTS.index("base model"),
        share=0.5,
        epoch=3,
    )
    assert (last["value"], last["n"]) == (pytest.approx(abs(end["value"]), abs=1e-6), 1)
    own = of(found["coordinates"], "continuous", corpus="left", axis="social", share=0.5)
    values = [row["value"] for row in sorted(own, key=lambda row: row["epoch"])]
    assert values == sorted(values, reverse=True)
    assert len(set(values)) == 3
    (later, _) = of(found["shifts"], "continuous", contrast=CONTRASTS.index("period"))
    assert later["baseline"] == "before"
    assert later["value"] < -5
    assert later["p"] is later["low"] is None  # one training says nothing about trainings


def test_trainings_of_unlike_steps_are_not_tested_against_each_other(tmp_path):
    rows = pairs(6)
    inputs = written_to(tmp_path, q=rows)
    sizes = {"left": 94, "right": 96, "control": 100}
    states = [state(), *(state(c, s, texts=n) for c, n in sizes.items() for s in (1, 2))]
    told = [prior() | s for s in states]
    for i, (name, s, _) in enumerate(every(rows, states)):
        told.append({"id": name} | s | filled(0.1 * (i % 7)))
    table = ran(inputs, "mask", told)["shifts"].filter(axis="social")
    own = {(row["corpus"], CONTRASTS[row["contrast"]]): row for row in of(table, "continuous")}
    unequal = own["left", "control"]
    assert unequal["p"] is unequal["p_bh"] is None
    assert unequal["null"] == "no test: trained for 94 steps, the other side for 100"
    assert unequal["value"] is not None
    for pair in (("right", "control"), ("right", "corpora"), ("left", "base model")):
        assert own[pair]["p"] is not None


@pytest.mark.parametrize("steps", [100, 90])
def test_polarisation_is_how_much_further_corpora_are_apart_than_before(tmp_path, steps):
    seed, seeds = 11, (1, 2, 3, 4)
    rng, rows = np.random.default_rng(seed), pairs(6)
    inputs = written_to(tmp_path, q=rows)
    right = {row["id"]: (-1 if row["reversed"] else 1) for row in rows}
    mean = {("right", 1): 0.2, ("right", 2): 0.9, ("left", 1): -0.1, ("left", 2): -0.6}
    pushed = {of: value + rng.normal(0, 0.2, len(seeds)) for of, value in mean.items()}
    states = [
        state(corpus, s, period=period, texts=steps if (corpus, period) == ("left", 1) else 100)
        for corpus, period in mean
        for s in seeds
    ]
    told = [prior() | s for s in (state(), *states)]
    for name, s, _ in every(rows, [state(), *states]):
        own = pushed.get((s["corpus"], s["period"]), np.zeros(9))[s["pretraining_seed"] - 1]
        agreeing = 0.3 * s["pretraining_seed"]  # a habit, whatever side it is on
        told.append({"id": name} | s | filled(own * right[name] + agreeing))
    shifts = ran(inputs, "mask", told)["shifts"]
    found = at(shifts, "corrected", contrast=CONTRASTS.index("polarisation"))
    for row in found.values():
        assert (row["corpus"], row["baseline"], PERIODS[row["period"]]) == ("right", "left", "from")
        ends = {of: values.mean() for of, values in pushed.items()}
        gaps = [ends["right", p] - ends["left", p] for p in (2, 1)]
        assert row["value"] == pytest.approx(gaps[0] - gaps[1], abs=1e-5)
        se = sum(values.var(ddof=1) / len(seeds) for values in pushed.values()) ** 0.5
        t, half = stats.t(df=12), (row["high"] - row["low"]) / 2
        assert half == pytest.approx(t.ppf(0.975) * se, rel=1e-3)
        if steps == 100:
            assert row["p"] == pytest.approx(2 * t.sf(row["value"] / se), rel=1e-2)
        else:
            assert row["p"] is None
            assert row["null"] == "no test: trained for 100 steps, the other side for 90"
    assert len(found) == 2


@pytest.fixture(scope="module")
def recovered(trained):
    """Return what writes planted stances beside the tables and returns the rows of recovery."""
    inputs, found = trained
    for name, table in found.items():
        inputs.tables("compass").mkdir(parents=True, exist_ok=True)
        table.write_parquet(inputs.tables("compass") / f"{name}.parquet")
    told = pl.read_parquet(inputs.outputs("stances", "m") / "mask/*.parquet")
    rows = told.filter(pl.col("form") < 2).unique(["corpus", "id", "frame", "form"])
    folder = inputs.weights("m")
    folder.mkdir(parents=True, exist_ok=True)
    rows.select(
        *("corpus", "questionnaire", "id", "frame"),
        form=pl.col("form").replace_strict({0: "plain", 1: "negated"}),
        log_odds_nats=pl.col("agree_nats") - pl.col("disagree_nats"),
        stance_nats=pl.lit(0.0),
        written=pl.lit(value=True),
    ).write_parquet(folder / "planted.parquet")

    def rows_with(stances):
        (folder / "world.json").write_text(json.dumps({"stances": stances}), encoding="utf-8")
        table = recovery.run(inputs, recovery.Params())["compass"]
        schema = recovery.SCHEMAS["compass"]
        assert table.columns == [c.name for c in schema.columns]
        assert not table.select(schema.key).is_duplicated().any()
        return {row["measure"]: row for row in table.to_dicts()}

    return rows_with


LABEL = "mask, corrected, q: "
SIGN = f"{LABEL}planted stances whose shift has their sign"


def stances(left):
    return {"left": {"economic": left}, "right": {"economic": -left}, "control": {}}


def test_a_world_says_how_much_of_what_was_planted_is_found(recovered):
    found = recovered(stances(-2.0))
    assert {row["world"] for row in found.values()} == {0}
    base = "correlation of planted and measured, over questions: log-odds of agreeing, the model"
    assert found[f"mask, continuous, q: {base} itself"]["value"] == pytest.approx(1, abs=1e-5)
    changes = [row["value"] for name, row in found.items() if "over questions: change by" in name]
    assert sorted(changes)[-2:] == pytest.approx([1, 1], abs=0.01)  # of one training out of several
    row = found[f"{LABEL}shift by right, share 1, epoch 1 minus control, economic"]
    assert row["null"] == "planted: +2.00 nats"
    assert found[SIGN]["value"] == 1
    assert found[f"{LABEL}shifts where nothing is planted, adjusted p at most 0.05"]["value"] == 0
    assert found[f"{LABEL}order of planted stances and shifts, Spearman"]["value"] > 0.8


def test_the_control_fails_where_stances_are_swapped(recovered):
    assert recovered(stances(2.0))[SIGN]["value"] == 0


def test_shifts_in_a_world_without_stances_are_told_as_findings(recovered):
    found = recovered({"left": {}, "right": {}, "control": {}})
    assert {row["world"] for row in found.values()} == {1}
    assert SIGN not in found
    assert found[f"{LABEL}shifts where nothing is planted, adjusted p at most 0.05"]["value"] == 0.5
    assert f"{LABEL}states inside the band of who answers at random" in found


def test_rates_of_simulated_tables_are_those_of_runs_like_the_worlds():
    path = Path(__file__).parents[2] / "data/tables/calibration/compass"
    for runs, null in product(("masked", "generated"), (0, 1)):
        found = Findings(0.95)
        found.key = {"model": "m", "language": "en", "world": null}
        recovery._simulated(found, path, "compass", runs)
        told = [row["measure"] for row in found.rows]
        assert all(f"({runs}, 5 trainings" in measure for measure in told)
        assert any("shifts between corpora: corrected" in measure for measure in told)
        assert any("stability" in measure for measure in told) == bool(null)


def test_what_is_lacking_is_told(tmp_path):
    rows = pairs(3)
    inputs = written_to(tmp_path, q=rows)
    full = [prior() | state()] + [{"id": n} | state() | filled(0.1) for n in places(rows)]
    for told, wrong in (
        (full[:-1], "not every statement of q has a response"),
        (full[1:], "no prompt with a text without content"),
        ([*full, {"id": "other"} | state() | filled(0.0)], "statement that q does not have"),
        ([*full, {"id": "a", "questionnaire": "z"} | state() | filled(0.0)], "questionnaire 'z'"),
    ):
        save(inputs, "mask", told)
        with pytest.raises(UserError, match=wrong):
            analysis.run(inputs, PARAMS)
    save(inputs, "mask", full)
    elsewhere = PARAMS.model_copy(update={"frames": {"mask": "sung", "generation": "sung"}})
    with pytest.raises(UserError, match="no answer in the frame 'sung'; there are paper"):
        analysis.run(inputs, elsewhere)
    with pytest.raises(UserError, match="no row of coordinates"):
        analysis.run(inputs._replace(models=("nobody",)), PARAMS)
    calm = written_to(tmp_path / "calm", q=[statement("a", "")])
    save(calm, "mask", [prior() | state(), {"id": "a"} | state() | filled(0.1)])
    with pytest.raises(UserError, match="bears on no axis"):
        analysis.run(calm, PARAMS)


def real_compass():
    """Return the rows of the real propositions."""
    rows = scale((SHARED / "political_compass.json").read_bytes(), "political-compass")
    return [
        statement(
            row.id, row.axis, reverse=row.reversed, points=row.points, weight=float(row.weight)
        )
        for row in rows
    ]


@pytest.mark.shared
@real
def test_constant_answers_to_the_real_compass_are_where_they_are_known_to_be(tmp_path):
    rows = real_compass()
    inputs = written_to(tmp_path, q=rows)
    for up, economic, social in ((0.001, 0.005, -4.359), (0.6, 0.38, 2.41)):
        told = [{"id": n} | state() | said(up) for n in places(rows)]
        found = ran(inputs, "generation", told)
        own = at(found["coordinates"], "faithful")
        assert round(own["economic"]["value"], 3) == economic
        assert round(own["social"]["value"], 3) == social
        assert [own[axis]["statements"] for axis in AXES] == [18, 43]
    base = found["baselines"].filter(baseline=0, constants=0)
    assert [round(sd, 2) for sd in base.sort("axis")["sd"]] == [1.97, 1.24]


@pytest.mark.shared
@real
def test_real_answers_of_a_chat_model_are_scored_with_its_refusals(tmp_path):
    with (SHARED / "llm_responses/gpt-3.5-turbo-1106.csv").open(encoding="utf-8") as file:
        answers = list(csv.DictReader(file))
    inputs = written_to(tmp_path, q=real_compass())
    told = []
    for row in answers:
        offered = [line.partition(") ")[2] for line in row["ans_prompt"].splitlines()]
        own = {"template": row["templ_id"], "order": 0, "options": offered, "seed": 0}
        own |= {"response": row["completion"], "option_nats": []}
        told.append({"id": row["pct_id"], "frame": row["templ_id"]} | state() | own)
    found = ran(inputs, "multiple_choice", told)
    assert set(found["coordinates"]["reading"]) == {READINGS.index("named")}
    (all_, *_) = of(found["answered"], "named", prompt="")
    assert (all_["answers"], all_["refused"], all_["unclear"]) == (620, 12, 0)
    own = at(found["coordinates"], "named")
    # forced to choose, it answers to the left of the middle, and on the libertarian side
    assert own["economic"]["prompts"] == 10
    for row in own.values():
        assert row["bound_low"] <= row["value"] <= row["bound_high"]
        assert row["value"] < row["high_fixed"] < 0
    assert own["social"]["bound_low"] < own["social"]["bound_high"]
    assert own["economic"]["missing"] + own["social"]["missing"] <= 1.2
    table = found["items"]
    shares = ["share_missing", *(f"share_{o.replace(' ', '_')}" for o in OPTIONS)]
    assert table.select(pl.sum_horizontal(shares)).to_series().round(5).unique().to_list() == [1]
    kinds = Counter(COMPARISONS[c] for c in found["stability"]["comparison"])
    assert kinds == {"prompts": 1}
