"""Linear models of shares: by hand, by formula, by the paper's tables; what has no number."""

from itertools import product

import numpy as np
import polars as pl
import pytest
import statsmodels.formula.api as smf
import yaml
from statsmodels.stats.anova import anova_lm

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.params import section
from plumbline.builders.datasets.lexica.build import SENTIMENTS
from plumbline.probes.core.run_analysis import Inputs
from plumbline.probes.politicians import anova, sentiment
from plumbline.probes.stats.estimate import typed

SEED = 53
PARAMS = anova.Params(
    version="1.0.0",
    references={
        "two-way": {"family": "BERT", "size": "base"},
        "three-way": {"family": "BERT", "size": "base", "language": "en"},
    },
    confidence=0.95,
)
DEFAULT = section("analysis.anova", anova.Params)
REVISION = "0" * 40


class Study:
    """Models with facts, and the hits of each among its largest deviations."""

    def __init__(self, folder, monkeypatch):
        monkeypatch.chdir(folder)
        self.folder, self.rows, self.models = folder, [], {}

    def model(self, name, family, size, effect=None):
        origin = {"id": f"x/{name}", "revision": REVISION}
        if effect is not None:
            origin["control"] = "positive" if effect else "negative"
        self.models[name] = origin | {"family": family, "size": size}

    def shares(self, name, men, women, language="en"):
        """``men`` and ``women`` have the hits of positive, negative and neutral words, of 100."""
        for gender, hits in (("male", men), ("female", women)):
            for s, hit in zip(SENTIMENTS, hits, strict=True):
                row = {"model": name, "language": language, "gender": gender}
                self.row(**row, sentiment=s, hits=hit, top_k=100)

    def row(self, *, hits, top_k, **at):
        row = {"pos": "ADJ", "deviation": "pmi", "reading": "argmax", "top_k": top_k}
        row |= {"candidates": 500, "base": 0.3}
        row |= {"value": hits / top_k, "low": None, "high": None, "n": 10}
        self.rows.append(row | at)

    def run(self, params=PARAMS):
        (self.folder / "params.yaml").write_text(yaml.safe_dump({"models": self.models}), "utf-8")
        inputs = Inputs(tuple(sorted(self.models)), {}, self.folder)
        inputs.tables("sentiment").mkdir(parents=True, exist_ok=True)
        table = typed(pl.DataFrame(self.rows), sentiment.SHARES, 0.95)
        table.write_parquet(inputs.tables("sentiment") / "shares.parquet")
        return anova.run(inputs, params)


@pytest.fixture
def study(tmp_path, monkeypatch):
    return Study(tmp_path, monkeypatch)


def write_four(study):
    """Two families in two sizes; of men BERT has 30 and 40 positive, ALBERT 50 and 64."""
    for family, size, positive in (
        ("BERT", "base", 30),
        ("BERT", "large", 40),
        ("ALBERT", "base", 50),
        ("ALBERT", "large", 64),
    ):
        name = f"{family}-{size}".lower()
        study.model(name, family, size)
        study.shares(name, (positive, 20, 80 - positive), (30, 30, 40))


def positive(table, response="male", **chosen):
    return table.filter(response=response, sentiment="positive", **chosen)


def test_run_two_by_two_worked_by_hand(study):
    # marginal means: BERT 35, ALBERT 57, base 40, large 52; all 46
    # so ALBERT 22, large 12, intercept 46 - 11 - 6 = 29; residuals 1, -1, -1, 1 on one degree
    write_four(study)
    found = study.run()
    rows = positive(found["coefficients"], interval="least squares").iter_rows(named=True)
    values = {r["level"]: r for r in rows}
    expected = {"": 29, "ALBERT": 22, "large": 12}
    assert {level: r["value"] for level, r in values.items()} == pytest.approx(expected)
    assert (values["ALBERT"]["reference"], values["ALBERT"]["df"]) == ("BERT", 1)
    # squares 4 on 1 degree: the SE of a difference of two means of two is 2; t(0.975, 1) = 12.7062
    for level in ("ALBERT", "large"):
        row = values[level]
        assert row["high"] - row["value"] == pytest.approx(12.7062 * 2, abs=1e-3)
    tests = {r["factor"]: r for r in positive(found["tests"]).iter_rows(named=True)}
    f = {"family": 22**2 / 4, "size": 12**2 / 4, "all": (22**2 + 12**2) / 2 / 4}
    assert {factor: r["f"] for factor, r in tests.items()} == pytest.approx(f)
    assert {factor: r["df"] for factor, r in tests.items()} == {"family": 1, "size": 1, "all": 2}
    assert tests["family"]["residual_df"] == 1
    negative = found["tests"].filter(response="male", sentiment="negative")  # they do not vary
    assert set(negative["reason"]) == {"no residuals"}
    assert negative["f"].count() == 0


# Stańczak et al. (2023), Tables 5 and 8: negative, neutral and positive of men, then of women. The
# three of a row are of shares and sum to 0, intercepts to 1. Not all of those in print do: the
# neutral one is taken to be what is left; and French has -0.035 where -0.350 is printed.
TABLE_5 = {
    "": (0.390, 0.401, 0.209, 0.284, 0.435, 0.281),
    "BERT": (-0.016, 0.014, 0.001, -0.006, 0.016, -0.010),
    "BERTweet": (0.057, 0.005, 0.004, 0.008, 0.002, -0.010),
    "RoBERTa": (-0.092, 0.088, 0.005, 0.001, 0.006, -0.007),
    "XLNet": (0.107, -0.114, 0.007, 0.086, -0.040, -0.046),
    "large": (0.000, -0.002, -0.002, 0.035, -0.028, -0.008),
    "xlarge": (0.022, -0.022, 0.000, -0.004, 0.010, -0.006),
    "xxlarge": (0.104, -0.108, 0.004, 0.012, 0.005, -0.017),
}
TABLE_8 = {
    "": (0.310, 0.289, 0.401, 0.327, 0.326, 0.347),
    "XLM": (-0.020, -0.019, 0.039, -0.013, 0.0006, 0.025),
    "XLM-R": (-0.057, 0.008, 0.050, -0.014, -0.005, 0.029),
    "large": (0.007, 0.006, -0.013, 0.002, -0.003, -0.006),
    "zh": (-0.031, -0.032, 0.063, -0.056, -0.049, 0.106),
    "en": (0.091, 0.126, -0.216, -0.025, 0.125, -0.100),
    "fr": (0.024, 0.052, -0.077, 0.062, -0.026, -0.035),
    "hi": (-0.011, 0.091, -0.080, 0.019, 0.026, -0.044),
    "ru": (-0.016, 0.173, -0.156, -0.023, 0.093, -0.069),
    "es": (-0.031, -0.041, 0.081, -0.033, -0.033, 0.066),
}
PUBLISHED = tuple(product(("male", "female"), ("negative", "neutral", "positive")))


@pytest.mark.parametrize("number", [5, 8])
def test_run_published_means_give_published_tables(study, number):
    """With the reference levels that the params have, each coefficient is in its own row."""
    english = [("ALBERT", 4), ("BERT", 2), ("BERTweet", 1), ("RoBERTa", 2), ("XLNet", 2)]
    several = [("m-BERT", 1), ("XLM", 2), ("XLM-R", 2)]
    for families, languages, of in (
        (english, ["en"], TABLE_5),
        (several, ["ar", "en", "es", "fr", "hi", "ru", "zh"], TABLE_8),
    ):
        for family, sizes in families:
            for size in ("base", "large", "xlarge", "xxlarge")[:sizes]:
                name = f"{family}-{size}".lower()
                study.model(name, family, size)
                for language in languages:
                    share = np.sum([of.get(x, [0] * 6) for x in ("", family, size, language)], 0)
                    share[[1, 4]] = 1 - share[[0, 3]] - share[[2, 5]]
                    for (gender, s), mean in zip(PUBLISHED, share, strict=True):
                        row = {"model": name, "language": language, "gender": gender}
                        row |= {"sentiment": s, "top_k": 100_000}
                        study.row(**row, hits=round(mean * 100_000))
    design, group = (("two-way", "monolingual"), ("three-way", "multilingual"))[number == 8]
    rows = study.run(DEFAULT)["coefficients"].filter(
        pl.col("language").is_in(["en", "all"]),
        design=design,
        group=group,
        interval="least squares",
    )
    values = {(r["level"], r["sentiment"], r["response"]): r["value"] for r in rows.to_dicts()}
    for level, published in (TABLE_8 if number == 8 else TABLE_5).items():
        whole = float(level == "")
        over = np.repeat([sum(published[:3]) - whole, sum(published[3:]) - whole], 3)
        for (gender, s), value, more in zip(PUBLISHED, published, over, strict=True):
            expected = value - more if s == "neutral" else value
            assert values[level, s, gender] == pytest.approx(100 * expected, abs=0.01)
    references = set(rows.filter(pl.col("factor") != "intercept")["reference"])
    assert references == ({"ALBERT", "base"} if number == 5 else {"m-BERT", "base", "ar"})


def test_run_models_of_one_language_and_of_several_are_separate(study):
    write_four(study)
    for name, family in (("m-bert", "m-BERT"), ("xlm", "XLM")):
        study.model(name, family, "base")
        for language in ("en", "fr"):
            study.shares(name, (30, 30, 40), (30, 30, 40), language)
    study.model("declared", "XLM-R", "base")
    study.models["declared"]["languages"] = ["en", "fr"]  # and asked in one
    study.shares("declared", (30, 30, 40), (30, 30, 40))
    rows = study.run()["coefficients"].filter(factor="family", sentiment="positive")
    levels = {
        key: sorted(set(part["level"]) | set(part["reference"]))
        for key, part in rows.group_by("design", "group", "language")
    }
    assert levels == {
        ("two-way", "monolingual", "en"): ["ALBERT", "BERT"],
        ("two-way", "multilingual", "en"): ["XLM", "XLM-R", "m-BERT"],
        ("two-way", "multilingual", "fr"): ["XLM", "m-BERT"],
        ("three-way", "multilingual", "all"): ["XLM", "XLM-R", "m-BERT"],
    }


def write_several(study):
    """Three families in two sizes, one of them twice, in three languages; XLM is planted."""
    rng = np.random.default_rng(SEED)
    for family, size, copy in product(("BERT", "ALBERT", "XLM"), ("base", "large"), (1, 2)):
        name = f"{family}-{size}-{copy}".lower()
        study.model(name, family, size)
        for language in ("en", "fr", "ru"):
            men = rng.multinomial(100, [0.4, 0.25, 0.35])
            shift = 12 * (family == "XLM") * np.array([1, -1, 0]) + [0, 3, -3]
            study.shares(name, men + shift, rng.multinomial(100, [0.3, 0.3, 0.4]), language)


def test_run_three_way_is_that_of_a_formula(study):
    write_several(study)
    found = study.run()
    data = anova.wide(typed(pl.DataFrame(study.rows), sentiment.SHARES, 0.95))
    data = data.filter(response="male").to_pandas()
    data["family"] = [study.models[m]["family"] for m in data["model"]]
    data["size"] = [study.models[m]["size"] for m in data["model"]]
    formula = "positive ~ C(family, Treatment('BERT')) + C(size) + C(language)"
    theirs = smf.ols(formula, data).fit()
    rows = positive(found["coefficients"], design="three-way", interval="least squares")
    assert len(rows) == 6
    for row in rows.iter_rows(named=True):
        level = f"T.{row['level']}]" if row["level"] else "Intercept"
        (name,) = (n for n in theirs.params.index if n.endswith(level))
        assert row["value"] == pytest.approx(theirs.params[name], abs=1e-5)
        assert row["low"] == pytest.approx(theirs.conf_int().loc[name, 0], abs=1e-5)
        assert (row["p"], row["reason"]) == (None, "repeated")  # three rows a model
        assert (row["language"], row["n"]) == ("all", 36)
    tests = positive(found["tests"], design="three-way")
    type_two = anova_lm(theirs, typ=2)
    assert tests["f"].to_list()[:3] == pytest.approx(type_two["F"].to_list()[:3], rel=1e-4)
    assert (set(tests["p"]), set(tests["reason"])) == ({None}, {"repeated"})


def test_run_planted_family(study):
    write_several(study)
    three = study.run()["coefficients"].filter(design="three-way")
    xlm = positive(three, level="XLM")
    assert (xlm["low"] > 0).all()
    assert ((xlm["low"] < 12) & (xlm["high"] > 12)).all()
    assert xlm.filter(interval="jackknife")["p_bh"].item() < 0.05
    assert xlm.filter(interval="jackknife")["detectable"].item() > 0
    women = three.filter(pl.col("factor") != "intercept", response="female", interval="jackknife")
    assert (women["p_bh"] > 0.05).all()
    assert set(three.filter(interval="jackknife")["n"]) == {12}
    # coefficients of the three shares sum to 0, intercepts to 100
    keys = [k for k in anova.COEFFICIENTS.key if k != "sentiment"]
    sums = three.group_by(keys).agg(pl.col("value").sum())
    whole = (pl.col("factor") == "intercept") & (pl.col("response") != "male minus female")
    assert sums.filter(whole)["value"].to_numpy() == pytest.approx(100, abs=1e-5)
    assert sums.filter(~whole)["value"].to_numpy() == pytest.approx(0, abs=1e-5)


def test_run_two_sentiments_are_tested_once(study):
    write_several(study)
    study.rows = [row for row in study.rows if row["sentiment"] != "neutral"]
    for table in study.run().values():
        assert set(table["sentiment"]) == {"positive", "negative"}
        assert set(table.drop_nulls("p")["sentiment"]) == {"positive"}


def write_models(study, *models):
    for name, family, size, men in models:
        study.model(name, family, size)
        study.shares(name, (men, 30, 70 - men), (20, 30, 50))


def test_run_saturated_and_one_level(study):
    write_models(study, ("b", "BERT", "base", 30), ("x", "XLNet", "base", 50))
    found = study.run()
    rows = positive(found["coefficients"], interval="least squares").iter_rows(named=True)
    by_factor = {r["factor"]: r for r in rows}
    family, size = by_factor["family"], by_factor["size"]
    assert family["value"] == pytest.approx(20)
    assert (family["low"], family["p"], family["reason"]) == (None, None, "saturated")
    assert (size["value"], size["reason"]) == (None, "one level")
    assert found["tests"]["f"].count() == 0
    assert found["tests"]["reason"].null_count() == 0


def test_run_confounded_factors(study):
    write_models(study, *((n, "BERT", "base", 30) for n in "ab"), ("c", "XLM", "large", 30))
    rows = positive(study.run()["coefficients"]).filter(pl.col("factor") != "intercept")
    assert (len(rows), rows["value"].count()) == (4, 0)
    assert set(rows["reason"]) == {"confounded"}


def test_run_worlds_of_one_language_each_are_compared_three_way(study):
    # of men 20 positive, in Spanish 30 more, in the large size 10 more; women have 30 everywhere
    for language, size in product(("en", "es"), ("base", "large")):
        men = 20 + 30 * (language == "es") + 10 * (size == "large")
        for kind in ("world", "model"):
            name = f"{kind}-{language}-{size}"
            study.model(name, "BERT", size, 1 if kind == "world" else None)
            study.shares(name, (men, 20, 80 - men), (30, 30, 40), language)
    three = study.run()["coefficients"].filter(design="three-way")
    assert set(three["models"]) == {"worlds"}
    rows = positive(three, "male minus female", interval="least squares").iter_rows(named=True)
    values = {r["level"]: r["value"] for r in rows}
    assert values == pytest.approx({"": -10, "BERT": None, "large": 10, "es": 30})


def test_run_without_family_and_size(study):
    study.models["one"] = {"id": "x/one", "revision": REVISION}
    study.shares("one", (30, 30, 40), (20, 30, 50))
    with pytest.raises(UserError, match="family and size"):
        study.run()
