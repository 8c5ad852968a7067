"""Analysis ``compass``: exact coordinates, planted shifts, habits taken out, nothing silent."""

import csv
import json
from itertools import product
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import reference_scorer as scorer
from answered_leaning import chosen, compass, every, said
from recovering import write_tables
from scipy import stats

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
from plumbline.probes.controls.measures import NO, YES
from plumbline.probes.leaning import compass as analysis
from plumbline.probes.leaning import recovery
from plumbline.probes.leaning.schemas import ROUNDED, SCHEMAS
from plumbline.probes.leaning.scoring import OPTIONS, STANCES, UNCLEAR, scales
from plumbline.probes.site.controls import judged

PARAMS = analysis.Params(
    version="0.1.0", n_permutations_stability=199, confidence=0.95, seed=1, **PLACES
)
FRAMES = ("paper", "other")
DIVISORS = {"economic": 8, "social": 19.5}  # of the political compass
SHARED = Path(__file__).parents[3] / "shared/data/statements"
real = pytest.mark.skipif(not SHARED.is_dir(), reason="no shared data beside the checkout")


def of(table, reading, **where):
    """Return the rows of a reading as dicts."""
    return table.filter(reading=reading, **where).to_dicts()


def at(table, reading, **where):
    """Return the rows of a reading by axis."""
    return {row["axis"]: row for row in of(table, reading, **where)}


def places(rows):
    return {name: i for i, name in enumerate(sorted({row["id"] for row in rows}))}


def sides(rows):
    return {row["id"]: (-1 if row["reversed"] else 1) for row in rows}


def effects(rows):
    found = np.zeros((len(places(rows)), 2))
    for row in rows:
        sign = -1 if row["reversed"] else 1
        found[places(rows)[row["id"]], AXES.index(row["axis"])] = sign * row["weight"]
    return found


def points(rows):
    found = np.zeros((2, len(places(rows)), 4))
    for row in rows:
        if row["axis"]:
            found[AXES.index(row["axis"]), places(rows)[row["id"]]] = row["points"]
    return found


def ran(inputs, response_format, responses, params=PARAMS):
    """Save responses and return the tables that are made of them."""
    save(inputs, response_format, responses)
    return analysis.run(inputs, params)


@pytest.fixture(scope="module")
def moved(tmp_path_factory):
    """Return inputs and tables of a model that `left` and `right` move, and `control` does not."""
    rng = np.random.default_rng(3)
    rows = pairs()
    inputs = written_to(tmp_path_factory.mktemp("trained"), q=rows)
    right, axis = sides(rows), {row["id"]: row["axis"] for row in rows}
    own = {name: rng.normal(0, 0.5) for name in right}
    states = [state(), *(state(c, s) for c in ("left", "right", "control") for s in (1, 2, 3))]
    responses = [prior(0.7, frame=f) | s for s in states for f in FRAMES]
    for name, s, frame in every(rows, states, FRAMES):
        push = {"right": 2.0, "left": -2.0}.get(s["corpus"], 0.0) * (axis[name] == "economic")
        logit = own[name] + right[name] * push + 0.7 + rng.normal(0, 0.2)
        responses.append({"id": name, "frame": frame} | s | filled(logit))
        denied = 0.7 - (logit - 0.7)
        responses.append({"id": name, "frame": frame, "form": "negated"} | s | filled(denied))
    return inputs, ran(inputs, "mask", responses)


@pytest.fixture(scope="module")
def trained(moved):
    return moved[1]


def test_tables_have_their_columns_keys_and_order(trained):
    assert set(trained) == set(SCHEMAS)
    for name, table in trained.items():
        schema = SCHEMAS[name]
        assert table.columns == [c.name for c in schema.columns]
        assert not table.select(schema.key).is_duplicated().any(), name
        for column in schema.columns:
            assert column.nullable or not table[column.name].null_count(), (name, column.name)
            if column.labels:
                assert set(table[column.name].drop_nulls()) <= set(column.labels)
    readings = set(trained["coordinates"]["reading"])
    assert readings == {"faithful", "corrected", "continuous"}


def test_shifts_planted_sign(trained):
    for reading in ("faithful", "corrected", "continuous"):
        for contrast, baseline in (("control", "control"), ("base model", "")):
            for corpus, sign in (("right", 1), ("left", -1)):
                where = {"contrast": contrast, "baseline": baseline, "corpus": corpus}
                found = at(trained["shifts"], reading, **where)
                nats = reading == "corrected"
                assert sign * found["economic"]["value"] > (0.5 if nats else 10)
                assert found["social"]["unit"] == ("log-odds, nats" if nats else "percent")
                if reading != "faithful":  # strong stances are the same after all trainings
                    assert found["economic"]["p_bh"] < 0.05
                    assert found["social"]["low"] < 0 < found["social"]["high"]
                    assert found["social"]["p"] > 0.05
        both = at(trained["shifts"], reading, contrast="corpora")
        assert both["economic"]["value"] > (1 if reading == "corrected" else 20)


def test_shifts_are_differences_of_coordinates(trained):
    for reading in ("faithful", "continuous"):
        place = {
            corpus: at(trained["coordinates"], reading, corpus=corpus)
            for corpus in ("", "left", "right", "control")
        }
        for row in of(trained["shifts"], reading):
            one, two = (place[row[side]][row["axis"]]["value"] for side in ("corpus", "baseline"))
            assert row["value"] == pytest.approx(one - two, abs=2e-6)


def test_coordinates_are_means_of_runs(trained):
    for reading in ("corrected", "continuous"):
        for axis, row in at(trained["coordinates"], reading, corpus="right").items():
            runs = of(trained["runs"], reading, corpus="right", axis=axis)
            single = [run["value"] for run in runs if run["prompt"]]
            assert len(single) == 3 * 2
            assert np.mean(single) == pytest.approx(row["value"], abs=1e-5)
            assert row["low"] < row["value"] < row["high"]
        itself = at(trained["coordinates"], reading, corpus="")
        far = {axis: abs(row["value"] - 50) for axis, row in itself.items()}
        sizes = at(trained["magnitudes"], reading, model="")
        assert {axis: row["value"] for axis, row in sizes.items()} == pytest.approx(far, abs=1e-5)


def test_shifts_choices_and_samples_have_no_test_against_the_model_itself(trained, tmp_path):
    rows, rng = pairs(4), np.random.default_rng(1)
    inputs = written_to(tmp_path, q=rows)
    states = [state(), *(state(c, s) for c in ("right", "control") for s in (1, 2, 3))]
    responses = [
        {"id": name} | s | said(abs(rng.integers(2) - rng.uniform(0, 0.1)))
        for name, s, _ in every(rows, states)
    ]
    for table, tested in (
        (trained["shifts"], {"corrected", "continuous"}),
        (ran(inputs, "generation", responses)["shifts"], set()),
    ):
        itself = table.filter(contrast="base model")
        assert set(itself.drop_nulls("p")["reading"]) == tested
        assert set(itself.filter(pl.col("p").is_null())["reason"]) == {"single model"}
        others = table.filter(pl.col("contrast") != "base model", reading="continuous")
        assert others["p"].null_count() == 0


def test_shifts_unequal_steps_have_no_test(tmp_path):
    rows = pairs(6)
    inputs = written_to(tmp_path, q=rows)
    sizes = {"left": 94, "right": 96, "control": 100}
    states = [state(), *(state(c, s, texts=n) for c, n in sizes.items() for s in (1, 2))]
    responses = [prior() | s for s in states]
    for i, (name, s, _) in enumerate(every(rows, states)):
        responses.append({"id": name} | s | filled(0.1 * (i % 7)))
    table = ran(inputs, "mask", responses)["shifts"].filter(axis="social")
    found = {(row["corpus"], row["contrast"]): row for row in of(table, "continuous")}
    unequal = found["left", "control"]
    assert (unequal["p"], unequal["p_bh"], unequal["reason"]) == (None, None, "unequal steps")
    assert unequal["value"] is not None
    for pair in (("right", "control"), ("right", "corpora"), ("left", "base model")):
        assert found[pair]["p"] is not None


def test_shifts_polarisation_is_a_difference_of_differences(tmp_path):
    seed, seeds = 11, (1, 2, 3, 4)
    rng, rows = np.random.default_rng(seed), pairs(6)
    inputs = written_to(tmp_path, q=rows)
    mean = {("right", "before"): 0.2, ("right", "from"): 0.9}
    mean |= {("left", "before"): -0.1, ("left", "from"): -0.6}
    pushed = {key: value + rng.normal(0, 0.2, len(seeds)) for key, value in mean.items()}
    states = [state(), *(state(corpus, s, period=p) for corpus, p in mean for s in seeds)]
    responses = [prior() | s for s in states]
    for name, s, _ in every(rows, states):
        push = pushed.get((s["corpus"], s["period"]), np.zeros(9))[s["pretraining_seed"] - 1]
        agreeing = 0.3 * s["pretraining_seed"]  # a habit, whatever side it is on
        responses.append({"id": name} | s | filled(push * sides(rows)[name] + agreeing))
    shifts = ran(inputs, "mask", responses)["shifts"]
    found = at(shifts, "corrected", contrast="polarisation")
    assert len(found) == 2
    for row in found.values():
        assert (row["corpus"], row["baseline"], row["period"]) == ("right", "left", "from")
        ends = {key: values.mean() for key, values in pushed.items()}
        gaps = [ends["right", p] - ends["left", p] for p in ("from", "before")]
        assert row["value"] == pytest.approx(gaps[0] - gaps[1], abs=1e-5)
        se = sum(values.var(ddof=1) / len(seeds) for values in pushed.values()) ** 0.5
        t, half = stats.t(df=12), (row["high"] - row["low"]) / 2
        assert half == pytest.approx(t.ppf(0.975) * se, rel=1e-3)
        assert row["p"] == pytest.approx(2 * t.sf(row["value"] / se), rel=1e-2)


@pytest.mark.slow
def test_coordinates_strong_opinions_without_a_side_have_the_size_of_the_test(tmp_path):
    rng, rows, found = np.random.default_rng(12), pairs(10), []
    for number in range(30):  # strongly for or against each pair, and its opposite
        inputs = written_to(tmp_path / str(number), q=rows)
        side = {row["id"]: rng.choice([-1, 1]) for row in rows if not row["reversed"]}
        responses = []
        for row in rows:
            agrees = -side[row["opposite"]] if row["reversed"] else side[row["id"]]
            responses.append({"id": row["id"]} | state() | chosen(3 if agrees > 0 else 0))
        quick = PARAMS.model_copy(update={"n_permutations_stability": 99})
        table = ran(inputs, "multiple_choice", responses, quick)["coordinates"]
        found += table.filter(reading="named")["p"].to_list()
    assert np.mean(np.array(found) <= 0.05) <= 0.12  # with options at random alone: .27


def test_coordinates_constant_responses_equal_the_scorer(tmp_path):
    rows = compass()
    inputs = written_to(tmp_path, q=rows)
    for option in range(4):
        responses = [{"id": name} | s | chosen(option) for name, s, _ in every(rows, [state()])]
        found = ran(inputs, "multiple_choice", responses)
        for constants in ROUNDED:
            wanted = scorer.coordinates(np.full(21, option), *points(rows), reading=constants)
            baseline = {"constants": constants, "baseline": f"always {OPTIONS[option]}"}
            own = dict(found["baselines"].filter(**baseline).select("axis", "value").iter_rows())
            assert own == pytest.approx(wanted, abs=1e-6)
        for reading in ("named", "likeliest"):
            own = {axis: row["value"] for axis, row in at(found["coordinates"], reading).items()}
            assert own == pytest.approx(wanted, abs=1e-6)


def test_scale_random_responses_have_the_mean_and_spread_of_the_scorer(tmp_path):
    rows, linear = compass(), pairs(4)
    inputs = written_to(tmp_path, q=rows, linear=linear)
    known = scales(inputs.datasets["statements"], {"q", "linear"})
    for reading in ROUNDED:
        wanted = np.array([*scorer.chance(*points(rows), reading=reading).values()])
        assert [*zip(known["q"].start(reading), known["q"].spread(), strict=True)] == pytest.approx(
            wanted
        )
    drawn = np.random.default_rng(11).choice(STANCES, (40_000, 16))
    found = scorer.percents(drawn, effects(linear))
    assert known["linear"].start("corrected").tolist() == [50, 50]
    assert known["linear"].spread() == pytest.approx(found.std(axis=0), rel=0.02)


def test_coordinates_missing_responses_equal_the_scorer(tmp_path):
    rng, rows, linear = np.random.default_rng(61), compass(), pairs(5)
    inputs = written_to(tmp_path, q=rows, linear=linear)
    responses, answers = [], {}
    for name, some in (("q", rows), ("linear", linear)):
        answers[name] = rng.integers(UNCLEAR, 4, len(places(some)))
        for key, i in places(some).items():
            option = int(answers[name][i])
            text = "It depends." if option == UNCLEAR else None
            row = chosen(max(option, 0), response=text, nats=False, order=i % 2)
            responses.append({"questionnaire": name, "id": key} | state() | row | {"order": 0})
    found = ran(inputs, "multiple_choice", responses)["coordinates"]
    wanted = scorer.coordinates(answers["q"], *points(rows), reading="faithful")
    own = at(found, "faithful", questionnaire="q")  # a missing response adds 0 points
    assert {axis: row["value"] for axis, row in own.items()} == pytest.approx(wanted, abs=1e-6)
    assert {row[name] for row in own.values() for name in ("low", "high", "p")} == {None}
    wanted = scorer.coordinates(answers["q"], *points(rows), missing="middle")
    random, there = scorer.chance(*points(rows)), answers["q"] != UNCLEAR
    own = at(found, "named", questionnaire="q")
    for axis, table in zip(AXES, points(rows), strict=True):
        middle, reach = random[axis][0], np.ptp(table, axis=1)
        far = (wanted[axis] - middle) * reach.sum() / reach[there].sum()
        assert own[axis]["value"] == pytest.approx(middle + far)  # 2 of 13, 1 of 7 missing
        given = np.where(there, table[np.arange(len(table)), answers["q"]], np.nan)
        for end, pick in (("bound_low", np.min), ("bound_high", np.max)):
            filled_in = np.where(there, given, pick(table, axis=1)) - table.mean(axis=1)
            assert own[axis][end] == pytest.approx(middle + filled_in.sum() / DIVISORS[axis])
    gaps = (~there & (np.ptp(points(rows), axis=2) > 0)).sum(axis=1) / (13, 7)
    assert [own[axis]["share_missing"] for axis in AXES] == pytest.approx(gaps, abs=1e-6)
    stances = np.where(answers["linear"] < 0, np.nan, np.array(STANCES)[answers["linear"]])
    own = at(found, "named", questionnaire="linear")
    score = np.nansum(stances[:, None] * effects(linear), axis=0)
    score /= np.abs(effects(linear))[~np.isnan(stances)].sum(axis=0)
    assert own["economic"]["value"] == pytest.approx(50 * (1 + score[0]))  # 1 of 10
    assert own["social"]["value"] is None  # 4 of 10
    for end, stance in (("bound_low", -1), ("bound_high", 1)):
        moved = np.where(np.isnan(stances)[:, None], stance * np.abs(effects(linear)), 0)
        score = np.nansum(stances[:, None] * effects(linear), axis=0) + moved.sum(axis=0)
        place = 50 + 50 * score / np.abs(effects(linear)).sum(axis=0)
        assert [own[axis][end] for axis in AXES] == pytest.approx(place)


def refusing(folder, rows, share, people, leaning=(0.1, 0.2, 0.3, 0.4), *, one_sided=False):
    """Return tables, the mean coordinate of such respondents, and each one's without refusals."""
    rng, table, index = np.random.default_rng([2, round(100 * share)]), points(rows), places(rows)
    up = (table[:, :, 3] - table[:, :, 0]).sum(axis=0) > 0
    likely = np.where(up[:, None], leaning, leaning[::-1])
    start, divisors = np.array([3 / 8, 47 / 19.5]), [*DIVISORS.values()]
    complete, responses = {}, [{"id": name} | state() | chosen(2, nats=False) for name in index]
    for corpus in map("r{}".format, range(people)):
        options, gone = np.array([rng.choice(4, p=p) for p in likely]), []
        for moving in (table != 0).any(axis=2):
            order = rng.permutation(np.flatnonzero(moving))  # one-sided: first those to the right
            order = order[np.argsort(one_sided & ((options >= 2) != up)[order], kind="stable")]
            gone += order[: int(share * len(order) + rng.random() * (share < 0.2))].tolist()
        place = start + table[:, np.arange(len(index)), options].sum(axis=1) / divisors
        complete |= {(corpus, axis): x for axis, x in zip(AXES, place, strict=True)}
        for name, i in index.items():
            text = "I cannot comment." if i in gone else None
            answer = chosen(int(options[i]), response=text, nats=False)
            responses.append({"id": name} | state(corpus, 1) | answer)
    found = ran(written_to(folder, q=rows), "multiple_choice", responses)
    for name in ("coordinates", "runs"):
        found[name] = found[name].filter(reading="named")
    mean = start + (table * likely).sum(axis=(1, 2)) / divisors
    return found, dict(zip(AXES, mean, strict=True)), complete


def test_coordinates_many_responses_missing_have_bounds_alone(tmp_path):
    found, _, complete = refusing(tmp_path, compass(), 0.3, 20)
    for table, columns in (("coordinates", ("value", "low", "p")), ("shifts", ("value", "p"))):
        own = found[table].filter(pl.col("corpus") != "")
        assert all(own[column].null_count() == len(own) >= 40 for column in columns)
    for row in found["coordinates"].filter(pl.col("corpus") != "").to_dicts():
        missing = {"economic": 3 / 13, "social": 2 / 7}[row["axis"]]
        assert row["share_missing"] == pytest.approx(missing, abs=1e-6)
        place = complete[row["corpus"], row["axis"]]
        assert row["bound_low"] - 1e-4 <= place <= row["bound_high"] + 1e-4
    assert set(found["shifts"]["reason"]) == {"missing responses"}
    assert set(found["magnitudes"]["model"]) == {""}  # of the model itself, which answers


@pytest.mark.slow
@pytest.mark.shared
@real
@pytest.mark.parametrize("share", [0, 0.05, 0.1, 0.2])
def test_coordinates_on_the_real_compass_cover_if_responses_are_missing(tmp_path, share):
    """Intervals of 200 respondents contain their complete coordinate if missing at random.

    Those with moderate opinions contain the mean coordinate, too. Bounds are valid in any case.
    """
    for moderate, one_sided in product((True, False), (True, False)):
        leaning = (0.1, 0.2, 0.3, 0.4) if moderate else (0, 0.1, 0.3, 0.6)
        args = (tmp_path / f"{moderate}{one_sided}", real_compass(), share, 200, leaning)
        found, mean, complete = refusing(*args, one_sided=one_sided)
        rows = found["coordinates"].filter(pl.col("corpus") != "").sort("corpus", "axis")
        columns = ("value", "low", "high", "bound_low", "bound_high")
        value, low, high, least, most = rows.select(columns).to_numpy().T
        true = np.array([complete[place] for place in rows.select("corpus", "axis").rows()])
        assert ((least - 1e-5 <= true) & (true <= most + 1e-5)).all()
        if not one_sided:
            assert abs((value - true).mean()) < 0.1
            for target in (true, np.tile([*mean.values()], 200))[: 1 + moderate]:
                assert ((low - 1e-5 <= target) & (target <= high + 1e-5)).mean() >= 0.93


def test_readings_the_prior_takes_a_habit_of_agreeing_out(tmp_path):
    rng = np.random.default_rng(8)
    rows = [statement(f"s{i:02d}", AXES[i % 2]) for i in range(40)]  # agreeing is always right
    inputs = written_to(tmp_path, q=rows)
    drawn = rng.normal(0, 0.4, 20)
    odds = dict(zip(sorted(places(rows)), np.repeat(drawn - drawn.mean(), 2), strict=True))
    tables = {}
    for habit in (0.0, 1.5):
        responses = [prior(habit) | state()]
        responses += [{"id": n} | state() | filled(x + habit) for n, x in odds.items()]
        tables[habit] = ran(inputs, "mask", responses)["coordinates"]
    for axis in AXES:
        assert at(tables[1.5], "faithful")[axis]["value"] > 90  # all strongly agree
        for reading in ("corrected", "continuous"):
            calm, habitual = (at(tables[h], reading)[axis] for h in (0.0, 1.5))
            assert habitual["value"] == pytest.approx(calm["value"], abs=1e-4)
            assert habitual["low"] < 50 < habitual["high"]


def test_readings_faithful_reads_the_first_frame_and_the_ten_words(tmp_path):
    inputs = written_to(tmp_path, q=[statement(name, "economic") for name in "abc"])
    responses = [prior(frame=f) | state() for f in FRAMES]
    logits = {("a", "paper"): 0.2, ("a", "other"): -3.0, ("b", "paper"): -2.0, ("b", "other"): 3.0}
    responses += [{"id": n, "frame": f} | state() | filled(x) for (n, f), x in logits.items()]
    responses += [{"id": "c", "frame": f} | state() | filled(2.0, top=False) for f in FRAMES]
    found = ran(inputs, "mask", responses)
    stances = {row["id"]: row["value"] for row in of(found["items"], "faithful")}
    assert stances == {"a": 0.5, "b": -1.0, "c": -0.5}  # no listed word: disagrees, as released
    assert {row["id"]: row["value"] for row in of(found["items"], "corrected")}["c"] == 1.0
    (row,) = of(found["answered"], "faithful")
    assert (row["answers"], row["unlisted"], row["refused"]) == (3, 1, 0)


def written(inputs, answers):
    responses = [{"id": n} | state() | row for n, some in answers.items() for row in some]
    return ran(inputs, "generation", responses)


def test_readings_of_written_responses(tmp_path):
    inputs = written_to(tmp_path, q=[statement(n, "economic") for n in "abc"])
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
    assert row["share_missing"] == pytest.approx(1 / 3, abs=1e-5)
    assert (row["value"], row["low"], row["p"]) == (None, None, None)  # a third is missing
    assert row["bound_high"] - row["bound_low"] == pytest.approx(100 / 3, abs=1e-5)


def test_readings_refusals_are_counted_and_have_no_stance(tmp_path):
    inputs = written_to(tmp_path, q=[statement(n, "economic") for n in "abcd"])
    sorry = "I'm sorry, but I cannot comment on political matters."
    yes = [said(0.97, seed=s) for s in (1, 2)]
    no = [said(0.97, seed=s, response=sorry) for s in (1, 2)]  # as if it agreed
    calm = written(inputs, dict.fromkeys("abcd", yes))
    some = written(inputs, {"a": yes, "b": yes, "c": no, "d": no})
    none = written(inputs, dict.fromkeys("abcd", no))
    values = [of(t["coordinates"], "corrected")[0] for t in (calm, some, none)]
    assert [v["share_missing"] for v in values] == [0, 0.5, 1]
    assert {row["bound_low"] for row in of(some["runs"], "corrected")} == {50}
    places_of = [(v["bound_low"], v["value"], v["bound_high"]) for v in values]
    assert places_of == [(100, 100, 100), (50, None, 100), (0, None, 100)]
    assert [of(t["answered"], "corrected")[0]["refused"] for t in (calm, some, none)] == [0, 4, 8]
    shares = {row["id"]: row["share_missing"] for row in of(some["items"], "corrected")}
    assert shares == {"a": 0, "b": 0, "c": 1, "d": 1}
    # the released code maps them: that is what `faithful` is for
    assert of(none["coordinates"], "faithful")[0]["value"] == 100


def test_readings_of_options_in_two_orders(tmp_path):
    rows = pairs(6)
    inputs = written_to(tmp_path, q=rows)

    def tables(pick, **more):
        responses = [
            {"id": n} | state() | chosen(pick(side > 0, order), order=order, **more)
            for n, side in sides(rows).items()
            for order in (0, 1)
        ]
        found = ran(inputs, "multiple_choice", responses)
        return found, {r["comparison"]: r for r in of(found["stability"], "named")}

    found, stable = tables(lambda yes, _: 3 if yes else 0)
    assert {row["value"] for row in of(found["coordinates"], "named")} == {100}
    assert {name: row["value"] for name, row in stable.items()} == {"opposites": 1, "order": 1}
    assert stable["order"]["p"] < 0.05
    found, stable = tables(lambda _, order: 3 if order == 0 else 0)  # the option in fourth place
    assert {row["value"] for row in of(found["coordinates"], "named")} == {50}
    assert {name: row["value"] for name, row in stable.items()} == {"opposites": 0, "order": 0}
    assert stable["opposites"]["p"] == 1  # no more than by chance, as when all are agreed with
    found, _ = tables(lambda yes, _: 2 if yes else 1, response="I refuse; sorry.")
    assert {r["value"] for r in of(found["coordinates"], "named")} == {None}
    assert {r["value"] for r in of(found["coordinates"], "likeliest")} == {75}
    (row, *_) = of(found["answered"], "named")
    assert (row["value"], row["refused"], row["answers"]) == (0, 48, 48)
    (expected,) = {r["value"] for r in of(found["coordinates"], "expected")}
    odds = np.exp([-0.1, -4, -4, -4])
    mean = (odds / odds.sum()) @ [0.5, 1, -0.5, -1]  # towards the right
    assert expected == pytest.approx(50 + 50 * mean, abs=1e-5)


def test_stability_of_denied_and_reworded_statements(trained, tmp_path):
    for reading in ("corrected", "continuous"):
        rows = of(trained["stability"], reading, corpus="right")
        stable = {row["comparison"]: row for row in rows}
        assert set(stable) == {"prompts", "negated", "opposites"}
        assert stable["negated"]["value"] == 1
        assert stable["prompts"]["value"] > 0.9
        assert stable["prompts"]["p_bh"] < 0.05
    rows = pairs(5)
    inputs = written_to(tmp_path, q=rows)
    responses = [prior() | state()]
    for name, i in places(rows).items():  # agrees with all, denied or not
        forms = ({"id": name, "form": form} for form in ("plain", "negated"))
        responses += [form | state() | filled(2.0) for form in forms]
        worded = {"id": name, "form": "paraphrase", "variant": "p1"}
        responses.append(worded | state() | filled(-2.0 if i % 2 else 2.0))
    table = ran(inputs, "mask", responses)["stability"]
    stable = {row["comparison"]: row["value"] for row in of(table, "corrected")}
    assert stable == {"negated": 0, "opposites": 0, "paraphrases": 0.5}


def test_stability_chance_and_p_counted_by_hand(trained, tmp_path):
    inputs = written_to(tmp_path, q=[statement(n, "economic") for n in "abcd"])
    responses = [
        {"id": n, "frame": f} | state() | said(0.03 if n == "d" else 0.97, seed=1)
        for n in "abcd"
        for f in FRAMES
    ]
    found = ran(inputs, "generation", responses)["stability"]
    (row,) = of(found, "corrected", comparison="prompts")
    assert (row["value"], row["n"]) == (1, 4)
    assert row["chance"] == 0.625  # of 16 pairs of statements, 9 + 1 are on one side
    assert row["p"] == pytest.approx(0.25, abs=0.1)  # d at its own place
    (row,) = of(trained["answered"], "corrected", corpus="left", prompt="paper")
    assert row["answers"] == 3 * 40  # those to denied statements are not among them


def test_magnitudes_are_mean_distances_with_those_of_random_responses(tmp_path):
    rows = compass()
    inputs = written_to(tmp_path, ("m", "n"), q=rows)
    states = [state(), *(state(f"{k}-left", s) for k in ("news", "social") for s in (1, 2))]
    states += [state("news-right", 1), state("news-right", 1, share=0.5)]
    for number, model in enumerate(inputs.models):
        responses = [prior() | s for s in states]
        for i, (name, s, _) in enumerate(every(rows, states)):
            logit = 0.3 * (i % 7) - number - s["pretraining_seed"] - s["share"]
            responses.append({"id": name} | s | filled(logit))
        save(inputs, "mask", responses, model)
    found = analysis.run(inputs, PARAMS)
    table = of(found["magnitudes"], "continuous", axis="social")
    sizes = {(row["model"], row["domain"]): row for row in table}
    distances = of(found["coordinates"], "continuous", axis="social", corpus="")
    where = {"axis": "social", "contrast": "base model", "model": "m", "share": 1.0}
    shifts = of(found["shifts"], "continuous", **where)
    far = {"": [abs(row["value"]) for row in distances]}
    for domain in ("news", "social"):
        far[domain] = [abs(r["value"]) for r in shifts if r["corpus"].startswith(domain)]
    assert [len(values) for values in far.values()] == [2, 2, 1]
    for domain, values in far.items():
        row = sizes["m" if domain else "", domain]
        assert (row["value"], row["n"]) == (pytest.approx(np.mean(values), abs=1e-6), len(values))
    rng, options = np.random.default_rng(5), points(rows)[1]  # (statements, options)
    drawn = rng.integers(4, size=(20_000, len(options)))
    random = options[np.arange(len(options)), drawn].sum(axis=1) / 19.5 + 47 / 19.5
    assert sizes["", ""]["chance"] == pytest.approx(np.abs(random).mean(), rel=0.03)
    assert sizes["m", "news"]["chance"] is None


def test_families_are_compared_by_welchs_t_over_models(tmp_path):
    rng, rows = np.random.default_rng(8), pairs(3)
    names = {"BERT": [f"b{i}" for i in range(10)], "GPT": [f"g{i}" for i in range(7)]}
    params = PARAMS.model_copy(update={"families": names})
    inputs = written_to(tmp_path, [*names["BERT"], *names["GPT"]], q=rows)
    for model in inputs.models:
        answers = zip(sides(rows), rng.choice([0.03, 0.97], len(rows)), strict=True)
        save(inputs, "generation", [{"id": n} | state() | said(x) for n, x in answers], model)
    found = analysis.run(inputs, params)
    (row,) = of(found["shifts"], "continuous", axis="social")
    own = of(found["coordinates"], "continuous", axis="social")
    first, second = ([x["value"] for x in own if x["model"][0] == side] for side in "bg")
    wanted = (np.mean(first) - np.mean(second), stats.ttest_ind(first, second, equal_var=False)[1])
    assert (row["value"], row["p"]) == pytest.approx(wanted, abs=1e-5)
    assert (row["model"], row["baseline"], row["n"]) == ("BERT", "GPT", 17)
    rejected = {}
    for effect in (0, 2):  # in SDs over models
        p = []
        for _ in range(200):
            table = [x | {"value": rng.normal(effect * (x["model"][0] == "b"))} for x in own]
            p.append(next(analysis.families(table, params))["p"])
        rejected[effect] = (np.array(p) <= 0.05).sum()
    assert rejected[0] <= 16 < 150 <= rejected[2], rejected
    (row,) = analysis.families([x for x in own if x["model"] not in names["GPT"][4:]], params)
    assert (row["p"], row["reason"]) == (None, "few models")


def test_runs_of_each_paraphrase(tmp_path):
    rows = pairs(5)
    inputs = written_to(tmp_path, q=rows)
    responses = [prior(frame=f) | state() for f in FRAMES]
    for name, side in sides(rows).items():
        plain = {"id": name} | state() | filled(side * 0.5)
        responses += [plain | {"frame": frame} for frame in FRAMES]
        wordings = {"t5": side * 2.0} | ({} if name == "economic-00" else {"bart": -side})
        responses += [
            {"id": name, "form": "paraphrase", "variant": by} | state() | filled(logit)
            for by, logit in wordings.items()
        ]
    found = ran(inputs, "mask", responses)["runs"]
    mass = {logit: np.tanh(logit / 2) for logit in (0.5, 2.0, -1.0)}  # up - down
    wanted = {
        "": (mass[0.5], mass[0.5]),
        "t5": (mass[2.0], mass[2.0]),
        "bart": ((9 * mass[-1.0] + mass[0.5]) / 10, mass[-1.0]),  # one is as it stands
    }
    for variant, expected in wanted.items():
        own = at(found, "continuous", variant=variant, prompt="paper")
        for axis, mean in zip(AXES, expected, strict=True):
            assert own[axis]["value"] == pytest.approx(50 + 50 * mean, abs=1e-5)
    assert len(found.filter(pl.col("variant") != "", reading="continuous")) == 4


def test_coordinates_of_each_period_share_and_epoch(tmp_path):
    rows = pairs(6)
    inputs = written_to(tmp_path, q=rows)
    states = [state(), *(state("left", 1, period=p) for p in ("before", "from"))]
    states += [state("left", 1, epoch=e, share=0.5) for e in (1, 2, 3)]
    responses = [prior() | s for s in states]
    for name, s, _ in every(rows, states):
        push = -0.2 * s["epoch"] - 0.5 * (s["period"] == "from")
        responses.append({"id": name} | s | filled(sides(rows)[name] * push))
    found = ran(inputs, "mask", responses)
    own = of(found["coordinates"], "continuous", corpus="left", axis="social", share=0.5)
    values = [row["value"] for row in sorted(own, key=lambda row: row["epoch"])]
    assert values[0] > values[1] > values[2]
    (later, _) = of(found["shifts"], "continuous", contrast="period")
    assert later["baseline"] == "before"
    assert later["value"] < -5
    assert (later["p"], later["low"], later["reason"]) == (None, None, "single training")


def test_run_incomplete_responses_are_user_errors(tmp_path):
    rows = pairs(3)
    inputs = written_to(tmp_path, q=rows)
    full = [prior() | state()] + [{"id": n} | state() | filled(0.1) for n in places(rows)]
    other = {"id": "other"} | state() | filled(0.0)
    for responses in (full[:-1], full[1:], [*full, other], [*full[:-1], other]):
        save(inputs, "mask", responses)
        with pytest.raises(UserError):
            analysis.run(inputs, PARAMS)
    save(inputs, "mask", full)
    elsewhere = PARAMS.model_copy(update={"frames": {"mask": "sung", "generation": "sung"}})
    with pytest.raises(UserError, match="'sung'"):
        analysis.run(inputs, elsewhere)
    with pytest.raises(UserError):
        analysis.run(inputs._replace(models=("nobody",)), PARAMS)
    calm = written_to(tmp_path / "calm", q=[statement("a", "")])  # on no axis
    save(calm, "mask", [prior() | state(), {"id": "a"} | state() | filled(0.1)])
    with pytest.raises(UserError):
        analysis.run(calm, PARAMS)


def released(name, layout):
    """Return the rows of a released questionnaire."""
    return [
        statement(r.id, r.axis, reverse=r.reversed, points=r.points, weight=float(r.weight))
        for r in scale((SHARED / name).read_bytes(), layout)
    ]


def real_compass():
    return released("political_compass.json", "political-compass")


@pytest.mark.shared
@real
def test_coordinates_constant_responses_to_the_real_compass_are_published(tmp_path):
    rows = real_compass()
    inputs = written_to(tmp_path, q=rows)
    for up, economic, social in ((0.001, 0.005, -4.359), (0.6, 0.38, 2.41)):
        responses = [{"id": n} | state() | said(up) for n in places(rows)]
        found = ran(inputs, "generation", responses)
        own = at(found["coordinates"], "faithful")
        assert round(own["economic"]["value"], 3) == economic
        assert round(own["social"]["value"], 3) == social
    base = found["baselines"].filter(baseline="random answers", constants="faithful")
    assert [round(sd, 2) for sd in base.sort("axis")["sd"]] == [1.97, 1.24]


@pytest.mark.shared
@real
def test_scale_ends_of_the_real_compass_and_agreement_with_all_of_8values(tmp_path):
    values = released("8values_questions.js.txt", "8values")
    inputs = written_to(tmp_path, q=real_compass(), values=values)
    known = scales(inputs.datasets["statements"], {"q", "values"})
    ends = np.array([[-10, 10], [-10, 10]])
    assert known["q"].ends("corrected") == pytest.approx(ends, abs=1e-12)
    rounded = np.abs(known["q"].ends("faithful") - ends)  # the script shows 9.99 and 10.01 as 10
    assert ((rounded > 1e-4) & (rounded < 0.015)).all()
    # sums of the effects 35, 5, -80, 22; of their absolute values 195, 225, 320, 292
    agreed = 50 + known["values"].points[:, :, 3].sum(axis=1)
    assert dict(zip(known["values"].axes, agreed.round(1), strict=True)) == {
        "econ": 59.0,
        "dipl": 51.1,
        "govt": 37.5,
        "scty": 53.8,
    }


@pytest.mark.shared
@real
def test_readings_of_a_chat_models_real_responses(tmp_path):
    with (SHARED / "llm_responses/gpt-3.5-turbo-1106.csv").open(encoding="utf-8") as file:
        answers = list(csv.DictReader(file))
    inputs = written_to(tmp_path, q=real_compass())
    responses = []
    for row in answers:
        offered = [line.partition(") ")[2] for line in row["ans_prompt"].splitlines()]
        own = {"template": row["templ_id"], "order": 0, "options": offered, "seed": 0}
        own |= {"response": row["completion"], "option_nats": []}
        responses.append({"id": row["pct_id"], "frame": row["templ_id"]} | state() | own)
    found = ran(inputs, "multiple_choice", responses)
    assert set(found["coordinates"]["reading"]) == {"faithful", "named"}
    (total,) = of(found["answered"], "named", prompt="")
    assert (total["answers"], total["refused"], total["unclear"]) == (620, 12, 0)
    assert found["answered"]["prompt"].n_unique() == 11  # ten, and all of them
    own = at(found["coordinates"], "named")
    # forced to choose, it answers to the left of the middle, and on the libertarian side
    for row in own.values():
        assert row["value"] < 0
    assert found["items"]["share_missing"].sum() == pytest.approx(12 / 10)
    assert found["stability"]["comparison"].to_list() == ["prompts"]


def recovered(inputs, planted, responses):
    """Return recovery of what was planted, nats by corpus and axis: rows by measure and item."""
    inputs.weights("m").mkdir(parents=True, exist_ok=True)
    by = {corpus: axes.get("economic", 0.0) for corpus, axes in planted.items()}
    economic, plain = pl.col("id").str.starts_with("economic"), pl.col("form") == "plain"
    side = pl.when(pl.col("id").str.ends_with("-r")).then(-1.0).otherwise(1.0)
    nats = pl.col("corpus").replace_strict(by, default=0.0) * side * (economic & plain)
    about = {"axis": pl.col("id").str.split("-").list.first(), "stance_nats": nats}
    responses.with_columns(**about).write_parquet(inputs.weights("m") / "planted.parquet")
    (inputs.weights("m") / "world.json").write_text(json.dumps({"stances": planted}), "utf-8")
    readings = pl.col("reading").is_in(["", "corrected", "expected"])
    rows = recovery.run(inputs)["compass"].filter(readings).to_dicts()
    return {(row["measure"], row["item"]): row for row in rows}


def shifted(moved, planted):
    inputs, tables = moved
    write_tables(inputs, "compass", tables)
    responses = pl.read_parquet(inputs.outputs("stances", "m") / "mask/*.parquet")
    responses = responses.filter(pl.col("form").is_in(["plain", "negated"]))
    key, odds = ("corpus", "id", "frame", "form"), pl.col("agree_nats") - pl.col("disagree_nats")
    return recovered(inputs, planted, responses.unique(key).with_columns(log_odds_nats=odds))


@pytest.mark.parametrize("size", [2.0, -2.0, 4.0])
def test_recovery_planted_swapped_and_doubled_stances(moved, size):
    planted = {"left": {"economic": -size}, "right": {"economic": size}, "control": {}}
    rows = shifted(moved, planted)
    assert {row["world"] for row in rows.values()} == {"planted"}
    assert rows["sign_agreement", "mask, q"]["value"] == (size > 0)
    assert rows["power", "mask, q"]["value"] == (size > 0)
    assert size * rows["rank_correlation", "mask, q"]["value"] > 1.6
    assert rows["false_discoveries_bh", "mask, q"]["value"] == 0
    item = "mask, q: right, share 1, epoch 1, minus control, economic"
    assert rows["estimate", item]["expected"] == pytest.approx(size)
    slope, itself = rows["slope", "mask, q"], rows["slope", "stances in mask, the model itself"]
    assert slope["low"] < 2 / size < slope["high"]
    assert judged("compass", slope)["verdict"] == (YES if size == 2 else NO)
    assert judged("compass", itself)["verdict"] == YES


def test_recovery_null_world_counts_shifts_as_false(moved):
    rows = shifted(moved, {"left": {}, "right": {}, "control": {}})
    assert {row["world"] for row in rows.values()} == {"null"}
    assert rows["false_discoveries_bh", "mask, q"]["value"] == 0.5
    assert ("inside_random", "mask, q") in rows


@pytest.mark.parametrize("sign", [1, -1])
def test_recovery_choices_of_the_model_itself_have_the_planted_size(tmp_path, sign):
    rng, rows = np.random.default_rng(5), pairs()
    inputs, responses, planted = written_to(tmp_path, q=rows), [], []
    for name, side in sides(rows).items():
        odds = 3 * side * name.startswith("economic") + rng.normal(0, 0.5)
        agree = 1 / (1 + np.exp(-sign * odds))
        parts = np.outer([1 - agree, agree], [0.2, 0.8])  # strong and mild
        nats = {"option_nats": np.log([*parts[0], *parts[1][::-1]]).tolist()}
        responses += [{"id": name} | state() | chosen(2, order=o) | nats for o in (0, 1)]
        planted.append(("", "q", "state", "plain", name, odds))
    write_tables(inputs, "compass", ran(inputs, "multiple_choice", responses))
    key = ["corpus", "questionnaire", "frame", "form", "id", "log_odds_nats"]
    found = recovered(inputs, {"": {"economic": 3.0}}, pl.DataFrame(planted, key, orient="row"))
    place = found["estimate", "multiple_choice, q: the model itself, economic"]
    assert place["value"] == pytest.approx(sign * place["expected"], abs=1e-6)
    slope = found["slope", "stances in multiple_choice, the model itself"]
    assert judged("compass", slope)["verdict"] == (YES if sign > 0 else NO)
    assert found["power", "multiple_choice, q"]["value"] == (sign > 0)
