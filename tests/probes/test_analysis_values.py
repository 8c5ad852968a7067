"""Analysis ``values``: planted agreement is found, gender tested both ways, baselines exact."""

import shutil

import numpy as np
import polars as pl
import pytest
from convinced import AXES, PAIRS, convinced
from recovering import write_tables
from scipy.stats import norm

from plumbline.builders.core.errors import UserError
from plumbline.builders.datasets.survey.responses import INFECTED
from plumbline.probes.controls.measures import NO, SILENT, YES
from plumbline.probes.site.controls import judged
from plumbline.probes.values import recovery, values
from plumbline.probes.values.schemas import COMPARISONS, FITTED, READINGS, SCHEMAS, WHO

PARAMS = values.Params(
    version="0.1.0", frame="said", equivalence_margin=0.3, n_bootstrap=300, n_permutations=199
)


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("planted")
    inputs = convinced(folder, 4, agreement=(0.8, -0.5), gender=(0.0, 0.9))
    return inputs, values.run(inputs, PARAMS)


@pytest.fixture
def copy(planted, tmp_path):
    """Return inputs like those planted, which a test may spoil."""
    inputs, folder = planted[0], tmp_path / "copy"
    shutil.copytree(inputs.data.parent, folder)
    folders = {name: folder / name for name in inputs.datasets}
    return inputs._replace(datasets=folders, data=folder / "data")


def value(table, reading, axis, who="both"):
    where = {"reading": reading, "axis": axis, "gender": who}
    return table.filter(fitted="by gender", **where).to_dicts()[0]


def test_tables_have_their_columns_and_keys(planted):
    _, found = planted
    assert set(found) == set(SCHEMAS)
    for name, table in found.items():
        schema = SCHEMAS[name]
        assert table.columns == [c.name for c in schema.columns]
        assert not table.select(schema.key).is_duplicated().any(), name
        for column in schema.columns:
            if not column.nullable:
                assert table[column.name].null_count() == 0, (name, column.name)


def by_hand(inputs, fitted):
    """Return slopes, sigmas, r and ratings of trade in feminine and masculine frames."""
    answers = pl.read_parquet(inputs.outputs("agreement", "m") / "xx/*.parquet")
    own = answers.filter(frame="said", form="plain", method="together").sort("id")
    neutral = own.filter(scale="calibration")
    if fitted == "by gender, likely half":
        likely = pl.read_parquet(inputs.datasets["statements"] / "calibration-xx.parquet")
        neutral = neutral.join(likely.filter(polarity=0).select("id"), on="id")
    found = []
    for gender in ("feminine", "masculine"):
        line = neutral if fitted == "pooled" else neutral.filter(gender=gender)
        x, y = line["disagree_nats"].to_numpy(), line["agree_nats"].to_numpy()
        a = (x * y).sum() / (x * x).sum()
        sigma = np.sqrt(((y - a * x) ** 2).sum() / (len(x) - 1))
        part = own.filter(pl.col("id").str.starts_with("trade"), gender=gender)
        err = part["agree_nats"].to_numpy() - a * part["disagree_nats"].to_numpy()
        rated = 4 * norm.cdf(err / sigma) + 1
        against = part["id"].str.ends_with("-r").to_numpy()
        r = np.corrcoef(x, y)[0, 1]
        found.append((a, sigma, r, np.where(against, 6 - rated, rated)))
    return found


@pytest.mark.parametrize("fitted", FITTED)
def test_values_are_those_of_the_formulas_by_hand_for_each_gender(planted, fitted):
    inputs, found = planted
    where = {"reading": "faithful", "fitted": fitted}
    table = found["values"].filter(axis="trade", **where)
    lines = found["calibration"].filter(**where)
    means = []
    for gender, (a, sigma, r, rated) in zip(WHO, by_hand(inputs, fitted), strict=False):
        (row,) = table.filter(gender=gender).to_dicts()
        means.append(rated.mean())
        assert row["value"] == pytest.approx(rated.mean(), abs=1e-6)
        assert row["sd"] == pytest.approx(rated.std(ddof=1), abs=1e-6)
        who = "both" if fitted == "pooled" else gender
        told = dict(lines.filter(gender=who).select("measure", "value").iter_rows())
        assert told["slope"] == pytest.approx(a, abs=1e-6)
        assert told["sigma"] == pytest.approx(sigma, abs=1e-6)
        if fitted == "by gender":
            assert told["correlation"] == pytest.approx(r, abs=1e-6)
    assert table.filter(gender="both")["value"].item() == pytest.approx(np.mean(means), abs=1e-6)
    assert (table["p"].null_count() == 0) == (fitted == "by gender")


@pytest.mark.parametrize("reading", READINGS)
def test_planted_values_have_their_sign_and_random_answers_are_rejected(planted, reading):
    _, found = planted
    order, trade = (value(found["values"], reading, axis) for axis in AXES)
    assert order["low"] > 3
    assert order["p_bh"] < 0.05
    masculine = value(found["values"], reading, "trade", "masculine")
    assert masculine["high"] < 3
    assert trade["n"] == PAIRS


@pytest.fixture(scope="module")
def varied(tmp_path_factory):
    """Return tables like those planted, of responses in which the genders vary a little."""
    folder = tmp_path_factory.mktemp("varied")
    return values.run(
        convinced(folder, 4, agreement=(0.8, -0.5), gender=(0.0, 0.9), apart=0.1), PARAMS
    )


def apart(table, reading):
    """Return the rows of values, and that of calibration, by name."""
    own = table.filter(
        (pl.col("measure") == "value") | (pl.col("axis") == "calibration"),
        reading=reading,
        fitted="by gender",
    )
    return {row["axis"]: row for row in own.to_dicts()}


@pytest.mark.parametrize("reading", READINGS)
def test_gender_is_found_where_it_is_and_equivalence_where_it_is_not(planted, varied, reading):
    told = apart(varied["gender"], reading)
    assert told["trade"]["verdict"] == "different"
    assert told["trade"]["low"] > 0.5
    for axis in ("order", "calibration"):
        assert told[axis]["verdict"] == "equivalent"
        assert told[axis]["value"] == pytest.approx(0, abs=0.1)
    # as they are, a statement and its opposite cancel
    _, found = planted
    agreement = found["gender"].filter(measure="agreement", axis="trade")
    assert agreement["value"].abs().max() < 0.3


@pytest.mark.parametrize("reading", READINGS)
def test_a_difference_that_does_not_vary_is_no_evidence_of_equivalence(planted, reading):
    _, found = planted  # both genders say the same of order, and of what is not political
    told = apart(found["gender"], reading)
    for axis in ("order", "calibration"):
        assert told[axis]["value"] == pytest.approx(0, abs=1e-6)
        assert told[axis]["p_equivalence_bh"] is None
        assert told[axis]["verdict"] == "undecided"
    for table in found.values():
        assert not any(table[n].is_nan().any() for n in table.columns if table[n].dtype.is_float())


FEW = {  # what is left of the statements for calibration, and of those that bear on a value
    "two for calibration": (2, None),
    "a statement": (60, ["order-0"]),
    "a pair": (60, ["order-0", "order-0-r"]),
}


@pytest.mark.parametrize("left", FEW)
def test_of_few_statements_there_are_tables_without_verdicts(tmp_path, left):
    inputs, (number, ids) = convinced(tmp_path, 5, apart=0.1), FEW[left]
    for name, kept in (
        ("calibration", pl.int_range(pl.len()) < number),
        ("values", pl.col("id").is_in(ids) if ids else pl.lit(value=True)),
    ):
        path = inputs.datasets["statements"] / f"{name}-xx.parquet"
        pl.read_parquet(path).filter(kept).write_parquet(path)
    found = values.run(inputs, PARAMS)
    for table in found.values():
        assert not any(table[n].is_nan().any() for n in table.columns if table[n].dtype.is_float())
    if ids:
        alone = found["gender"].filter(pl.col("axis").is_in(AXES))
        assert alone.select("p", "p_equivalence_bh").count().row(0) == (0, 0)
        assert set(alone["verdict"]) == {"undecided"}


def test_calibration_by_gender_takes_out_what_is_the_same_for_all(tmp_path):
    inputs = convinced(tmp_path, 8, gender=(0.0, 0.0))
    path = inputs.outputs("agreement", "m") / "xx/00000.parquet"
    woman = pl.when(pl.col("gender") == "feminine").then(0.25).otherwise(0.0)
    frame = pl.read_parquet(path)
    frame.with_columns(agree_nats=pl.col("agree_nats") * (1 - woman)).write_parquet(path)
    table = values.run(inputs, PARAMS)["gender"].filter(axis="all")
    for reading in READINGS:  # women agree more with everything, and value nothing more
        for measure, shown in (("agreement", True), ("value", False)):
            apart, pooled = table.filter(reading=reading, measure=measure).sort("fitted")["value"]
            assert (pooled > 0.5) == shown
            assert abs(apart) < 0.1


def test_one_who_always_agrees_is_told_by_denials_and_opposites(tmp_path):
    inputs = convinced(tmp_path, 6, agreement=(0.0, 0.0))
    path = inputs.outputs("agreement", "m") / "xx/00000.parquet"
    bearing = pl.when(pl.col("scale") == "values").then(1.5).otherwise(0.0)
    frame = pl.read_parquet(path)  # says yes to politics, whatever is said
    frame.with_columns(agree_nats=pl.col("agree_nats") + bearing).write_parquet(path)
    found = values.run(inputs, PARAMS)
    rated = found["answers"].filter(pl.col("axis") != "")
    means = dict(rated.group_by("reading").agg(pl.col("rating").mean()).iter_rows())
    assert means["faithful"] > 4.2
    # 60 statements tell the line of each form up to a slope of 0.03, times 4 nats
    assert means["corrected"] == pytest.approx(3, abs=0.5)
    for axis in AXES:  # a balanced scale has the same value either way
        for reading in READINGS:
            assert value(found["values"], reading, axis)["value"] == pytest.approx(3, abs=0.35)


def test_a_model_with_values_agrees_with_itself(planted):
    _, found = planted
    table = found["consistency"].filter(scale="values")
    by = table.group_by("comparison").agg(pl.col("value").min(), pl.col("p_bh").max())
    told = {c: (value, p) for c, value, p in by.iter_rows()}
    assert set(told) == set(COMPARISONS)
    for name in ("frames", "denied", "methods"):
        assert told[name][0] > 0.8, name
        assert told[name][1] < 0.05, name
    assert told["opposites"][0] > 0.5
    neutral = found["consistency"].filter(scale="calibration")
    assert "opposites" not in neutral["comparison"].to_list()


def test_a_statement_and_its_opposite_are_one_pair(planted):
    inputs, found = planted
    answers = pl.read_parquet(inputs.outputs("agreement", "m") / "xx/*.parquet")
    own = answers.filter(form="plain", method="together")
    parts = []
    for _, cell in own.group_by("frame", "gender"):
        neutral = cell.filter(scale="calibration")
        slope = (neutral["disagree_nats"] * neutral["agree_nats"]).sum()
        slope /= (neutral["disagree_nats"] ** 2).sum()
        err = pl.col("agree_nats") - slope * pl.col("disagree_nats")
        parts.append(cell.filter(scale="values").select("id", err=err))
    whole = dict(pl.concat(parts).group_by("id").mean().iter_rows())
    sides = [(whole[i], -whole[f"{i}-r"]) for i in sorted(whole) if not i.endswith("-r")]
    assert 2 * len(sides) == len(whole)
    opposites = {"scale": "values", "comparison": "opposites"}
    (row,) = found["consistency"].filter(**opposites).to_dicts()
    assert row["value"] == pytest.approx(np.corrcoef(np.transpose(sides))[0, 1], abs=1e-6)


def test_likely_statements_are_agreed_with_more_and_shuffled_labels_are_not(planted, copy):
    _, found = planted
    told = found["calibration"].filter(measure="likely above unlikely")
    assert told["low"].min() > 0.5
    assert told["p"].max() < 0.05
    path = copy.datasets["statements"] / "calibration-xx.parquet"
    about = pl.read_parquet(path)
    about.with_columns(pl.col("polarity").shuffle(seed=1)).write_parquet(path)
    told = values.run(copy, PARAMS)["calibration"].filter(measure="likely above unlikely")
    assert told["low"].max() < 0.5 < told["high"].min()
    assert told["p"].min() > 0.05


def test_standing_is_the_papers_percentile_among_those_of_the_gender_who_are_not_infected(planted):
    _, found = planted
    table = found["standing"]
    assert set(table["gender"]) == {"feminine", "masculine"}
    assert table.filter(axis="trade")["percentile"].max() == 0  # everybody says the same
    people = found["respondents"].filter(gender="all", infected="all", axis="order")
    assert people.select("value", "sd", "n").rows() == [(4.0, 0.0, 40)]


@pytest.mark.parametrize("status", ["no", "unknown"])
def test_standing_counts_strictly_and_takes_all_where_infection_is_not_known(tmp_path, status):
    """Five women answer 1 to 5; where infection is known, three infected ones answer 1."""
    inputs = convinced(tmp_path, 3)
    path = inputs.datasets["survey"] / "simulated.parquet"
    answers = [*range(1, 6), *[1] * (3 if status == "no" else 0)]
    infected = [INFECTED.index(status if i < 5 else "yes") for i in range(len(answers))]
    frame = pl.read_parquet(path).filter(item="order-0").head(len(answers))
    columns = {"answer": pl.Series(answers, dtype=pl.Int32), "infected": pl.Series(infected)}
    columns["respondent"] = pl.Series([f"w{i}" for i in range(len(answers))])
    frame.with_columns(gender=pl.lit(0, pl.Int64), **columns).write_parquet(path)
    table = values.run(inputs, PARAMS)["standing"]
    (row,) = table.filter(axis="order", gender="feminine", reading="faithful").to_dicts()
    below = sum(answer < row["value"] for answer in range(1, 6))
    assert 0 < below < 5
    assert row["percentile"] == pytest.approx(2 * min(below, 5 - below) / 5)
    assert table.filter(gender="masculine").is_empty()  # no man answered


def test_run_constant_model_has_no_rating_and_no_percentile(copy):
    path = copy.outputs("agreement", "m") / "xx/00000.parquet"
    constant = {"agree_nats": pl.lit(-2.0), "disagree_nats": pl.lit(-3.0)}
    pl.read_parquet(path).with_columns(**constant).write_parquet(path)
    found = values.run(copy, PARAMS)
    for name, table in found.items():  # the tables can be written
        table.to_arrow().cast(SCHEMAS[name].arrow())
    for name, column in (("values", "value"), ("standing", "percentile"), ("answers", "rating")):
        faithful = found[name].filter(reading="faithful")
        assert faithful[column].null_count() == len(faithful) > 0, name


def test_standing_among_single_answers_differs_from_that_among_means(tmp_path):
    inputs = convinced(tmp_path, 3)
    path = inputs.datasets["survey"] / "simulated.parquet"
    frame = pl.read_parquet(path).filter(pl.col("item").is_in(["order-0", "order-0-r"]))
    extreme = pl.when(pl.col("respondent").rank("dense") % 2 == 0).then(5).otherwise(1)
    # 5 twice is 5 and 1 in the direction of the value, of which the mean is 3
    frame.with_columns(answer=extreme.cast(pl.Int32)).write_parquet(path)
    for row in values.run(inputs, PARAMS)["standing"].to_dicts():
        assert (row["percentile"], row["percentile_answers"]) == (0, 1)


def test_respondents_count_by_their_weights(tmp_path):
    """Weights of a survey have the effect of repeated respondents on means and shares."""
    inputs = convinced(tmp_path, 3)
    frame = pl.read_parquet(inputs.datasets["survey"] / "simulated.parquet").filter(item="order-0")
    answers, weights = [1, 2, 5], [1.0, 3.0, 2.0]
    frame = frame.head(3).with_columns(
        gender=pl.lit(0, pl.Int64),
        infected=pl.lit(INFECTED.index("no"), pl.Int64),
        answer=pl.Series(answers, dtype=pl.Int32),
        weight=pl.Series(weights),
    )
    frame.write_parquet(inputs.datasets["survey"] / "simulated.parquet")
    tables = values.run(inputs, PARAMS)
    people = tables["respondents"].filter(gender="female", infected="no", axis="order")
    repeated = np.repeat(answers, [1, 3, 2])
    (row,) = people.to_dicts()
    assert (row["value"], row["n"]) == (pytest.approx(repeated.mean(), abs=1e-6), 3)
    assert row["sd"] == pytest.approx(repeated.std() * (3 / 2) ** 0.5, abs=1e-6)
    standing = tables["standing"].filter(axis="order", gender="feminine", reading="faithful")
    for row in standing.to_dicts():
        share = min((repeated < row["value"]).mean(), (repeated > row["value"]).mean())
        assert row["percentile"] == pytest.approx(2 * share, abs=1e-6)
    assert len(standing) == 1


def test_baselines_are_those_of_arithmetic(planted):
    _, found = planted
    table = found["baselines"].filter(axis="order")
    told = {row["baseline"]: row for row in table.to_dicts()}
    random = told["random answers"]
    assert random["value"] == 3
    reach = 1.96 * np.sqrt(16 / 12 / (2 * PAIRS))  # a uniform rating has variance 16 / 12
    assert random["low"] == pytest.approx(3 - reach, abs=0.2)
    assert random["high"] == pytest.approx(3 + reach, abs=0.2)
    assert {told[name]["value"] for name in ("always agrees", "always disagrees")} == {3}


def test_models_without_a_mask_have_whole_texts_in_both_readings(tmp_path):
    found = values.run(convinced(tmp_path, 2, agreement=(1.0, 0.0), causal=True), PARAMS)
    for reading in READINGS:
        assert value(found["values"], reading, "order")["low"] > 3
    assert "methods" not in found["consistency"]["comparison"].to_list()


def test_a_scale_that_is_not_balanced_has_no_p(planted, copy):
    _, found = planted
    path = copy.datasets["statements"] / "values-xx.parquet"
    alone = pl.col("id") == "order-0-r"  # the other speaks for the value as it does
    about = pl.read_parquet(path)
    about.with_columns(reversed=pl.col("reversed") & ~alone).write_parquet(path)
    tables = values.run(copy, PARAMS)
    again, order = tables["values"], tables["gender"].filter(axis="order")
    untested = order.filter(measure="value").select("p", "p_equivalence_bh")
    assert untested.count().row(0) == (0, 0)
    assert order.filter(measure="agreement")["p"].null_count() == 0
    for axis in AXES:
        own = again.filter(axis=axis)
        assert (own["p"].count() == 0) == (axis == "order")
        assert own["low"].count() == len(own)
    trade = pl.col("axis") == "trade"
    assert again.filter(trade)["p"].equals(found["values"].filter(trade)["p"])


def test_a_frame_that_was_not_asked_and_lost_answers_are_told(copy):
    with pytest.raises(UserError, match="sung"):
        values.run(copy, PARAMS.model_copy(update={"frame": "sung"}))
    path = copy.outputs("agreement", "m") / "xx/00000.parquet"
    pl.read_parquet(path).filter(pl.col("id") != "trade-3").write_parquet(path)
    with pytest.raises(UserError):
        values.run(copy, PARAMS)
    (copy.datasets["statements"] / "calibration-xx.parquet").unlink()
    with pytest.raises(UserError):
        values.run(copy, PARAMS)


def test_an_item_that_bears_on_nothing_is_in_no_calibration_and_no_value(planted, copy):
    _, found = planted
    path = copy.datasets["statements"] / "values-xx.parquet"
    about = pl.read_parquet(path)
    still = about.head(1).with_columns(id=pl.lit("still"), axis=pl.lit(""), weight=pl.lit(0.0))
    pl.concat([about, still]).write_parquet(path)
    path = copy.outputs("agreement", "m") / "xx/00000.parquet"
    answers = pl.read_parquet(path)
    said = answers.filter(id=about["id"][0]).with_columns(
        id=pl.lit("still"), agree_nats=pl.lit(-0.01), disagree_nats=pl.lit(-9.0)
    )
    pl.concat([answers, said]).write_parquet(path)
    again = values.run(copy, PARAMS)
    for name in ("values", "gender", "calibration"):
        assert again[name].equals(found[name])


@pytest.fixture
def world(planted, copy):
    """Return the planted truth, which the responses are, and what returns rows of recovery."""
    answers = pl.read_parquet(copy.outputs("agreement", "m") / "xx/*.parquet")
    axis = pl.col("id").str.replace(r"-.*|c\d+", "")
    truth = answers.filter(method="l2r").with_columns(axis=axis, planted_nats=pl.lit(1.0))

    def recovered(truth, tables=planted[1]):
        copy.weights("m").mkdir(parents=True, exist_ok=True)
        truth.write_parquet(copy.weights("m") / "planted.parquet")
        write_tables(copy, "values", tables)
        rows = recovery.run(copy)["values"].to_dicts()
        return {(row["reading"], row["measure"], row["item"]): row for row in rows}

    return truth, recovered


@pytest.mark.parametrize("swapped", [False, True])
def test_recovery_planted_and_swapped(world, swapped):
    truth, recovered = world
    if swapped:
        truth = truth.rename({"agree_nats": "disagree_nats", "disagree_nats": "agree_nats"})
    rows = recovered(truth)
    assert {row["world"] for row in rows.values()} == {"planted"}
    for reading in READINGS:
        error, correlation = (rows[reading, n, "values"] for n in ("error", "correlation"))
        assert judged("values", error)["verdict"] == (NO if swapped else YES)
        assert correlation["value"] < 0 if swapped else correlation["value"] == pytest.approx(1)
        if not swapped:
            assert error["value"] == pytest.approx(0, abs=1e-6)
            trade = rows[reading, "estimate", "feminine minus masculine, trade"]
            assert trade["expected"] == pytest.approx(trade["value"], abs=1e-6)
            beyond = rows[reading, "beyond_margin", "values"]
            assert (beyond["value"], beyond["expected"]) == (0.5, 0.5)  # trade, and not order


@pytest.mark.parametrize("bias", [0.0, 0.19])
def test_recovery_null_world_and_a_bias_within_the_margin(world, tmp_path, bias):
    truth, recovered = world
    # E Phi(e + m) = Phi(m / sd): sigma has the likelihood of .6 nats in it, e the noise of .3
    nats = 2 * np.sqrt(0.6**2 + 2 * 0.3**2) * norm.ppf(0.5 + bias / 8)
    inputs = convinced(tmp_path / "biased", 6, gender=(nats, nats), apart=0.1)
    rows = recovered(truth.with_columns(planted_nats=0.0), values.run(inputs, PARAMS))
    assert {row["world"] for row in rows.values()} == {"null"}
    for reading in READINGS:
        false = rows[reading, "false_discoveries_bh", "values"]
        assert (false["value"] > 0) == (bias > 0)
        check = judged("values", false)
        assert (check["question"], check["verdict"]) == (SILENT, NO if bias else YES)
