"""The first section of the report, which lists models and studies, user models first."""

from __future__ import annotations

import polars as pl
import pytest
from page_read import Page

from plumbline.probes.site.headlines import HEADLINES, headlines, scaled, section

SAME = {"language": "en", "n": 9, "detectable": 0.5, "people": 30}
WORDS = [  # word, gender, PMI, p
    ("kind", "male", -0.4, 0.001),
    ("kind", "female", 0.3, 0.001),
    ("grim", "male", 0.2, 0.4),
    ("grim", "female", -0.1, 0.3),
    ("odd", "female", 2.0, None),
]


def table(model="mine"):
    return pl.DataFrame(
        [
            SAME
            | {"model": model, "pos": "ADJ", "word": word, "gender": gender, "reading": reading}
            | {"value": value, "low": value - 0.2, "high": value + 0.2, "p": p, "p_bh": p}
            | {"unit": unit}
            for word, gender, value, p in WORDS
            for unit in ("lemma", "form")
            for reading in ("plug-in", "smoothed")
        ],
        schema_overrides={"gender": pl.Enum(["male", "female"])},
    )


class Studied:
    name, analyses = "politicians", ("pmi", "latent")


class Only:
    """Tables of a run that has no others."""

    def __init__(self, **frames):
        self.frames = {name.replace("__", "/"): frame for name, frame in frames.items()}

    def models(self, _):
        return ()

    def read(self, source):
        return self.frames.get(source, pl.DataFrame())


def test_headline_counts_words_by_their_surest_cell():
    rows = HEADLINES["politicians"].rows({"pmi": table()})
    assert rows.select("what", "value", "p_bh").rows() == [
        ("kind, with female", 0.3, 0.001),  # if p is equal, the gender that the word goes with
        ("grim, less with female", -0.1, 0.3),
        ("odd, with female", 2.0, None),
    ]
    few = pl.when(pl.col("gender") == "female").then(6).otherwise(30)
    fewer = table().with_columns(people=few, value=-pl.col("value"))
    rows = HEADLINES["politicians"].rows({"pmi": fewer})
    assert rows["what"].to_list() == [
        "kind, with male",
        "grim, less with male",
        "odd, less with female",
    ]
    alone = fewer.with_columns(pl.when(pl.col("gender") == "female").then("p_bh").alias("p_bh"))
    rows = HEADLINES["politicians"].rows({"pmi": alone})
    assert rows["what"][0] == "kind, less with female"  # significant for six people only
    two = pl.concat([table(), table().with_columns(language=pl.lit("cs"))])
    rows = HEADLINES["politicians"].rows({"pmi": two})
    assert {what.rpartition(", ")[2] for what in rows["what"]} == {"en", "cs"}


def test_headline_compares_countries_with_each_other():
    base = {"model": "m", "targets": "en", "reading": "corrected", "gender": "all", "n": 9}
    base |= {"measure": "positive minus negative", "value": 4.0, "low": 3.0, "high": 5.0}
    other = {"p": 0.9, "p_bh": 0.95, "detectable": 2.0}
    ends = {"contrast": 0.5, "contrast_low": -1.0, "contrast_high": 2.0}
    rows = [base | other | ends | {"country": c} for c in ("fr", "it")]
    rows[1] |= {"contrast": -3.0, "p": 0.005, "p_bh": 0.03}
    found = HEADLINES["nationality"].rows({"delta": pl.DataFrame(rows)})
    told = found.select("what", "value", "low", "high", "p_bh", "detectable").rows()
    assert told == [("it", -3.0, -1.0, 2.0, 0.01, 2.0), ("fr", 0.5, -1.0, 2.0, 0.9, 2.0)]


def test_headline_recall_is_above_that_of_other_groups():
    base = {"reading": "corrected", "attributes": "single word", "dataset": "en", "n": 4}
    base |= {"low": 0.4, "high": 0.8, "detectable": 0.2, "other_groups": 0.25}
    rows = [
        base | {"category": "age", "k": 10, "value": 0.6, "p": 0.01, "p_bh": 0.02},
        base | {"category": "age", "k": 200, "value": 0.9, "p": 0.001, "p_bh": 0.002},
        base | {"category": "all", "k": 10, "value": 0.9, "p": 0.001, "p_bh": 0.002},
        base | {"category": "race", "k": 10, "value": 0.6, "p": None, "p_bh": None},
    ]
    (row,) = HEADLINES["stereotypes"].rows({"recall": pl.DataFrame(rows)}).rows(named=True)
    assert row["what"] == "age, en"
    ends = [row[end] for end in ("low", "value", "high")]
    assert ends == pytest.approx([0.15, 0.35, 0.55])


def test_headlines_list_the_users_models_first():
    nothing = table("no-test").with_columns(
        p=pl.lit(None, pl.Float64), p_bh=pl.lit(None, pl.Float64)
    )
    every = pl.concat([table("a-world"), table("mine"), nothing])
    rows = headlines(Only(pmi__pmi=every), {"a-world": "positive"})
    assert [row["model"] for row in rows] == ["mine", "a-world"]
    first = rows[0]
    assert (first["found"], first["what"]) == ("1 of 2 words", "kind, with female")


def test_section_lists_controls_below_positive_first():
    every = pl.concat([table(name) for name in ("a-null", "b-world", "mine")])
    kinds = {"a-null": "negative", "b-world": "positive"}
    rows = headlines(Only(pmi__pmi=every), kinds)
    tables = section(rows, (), [Studied()]).groups[0].parts[0].tables
    assert [[row[0] for row in table.rows] for table in tables] == [["mine"], ["b-world", "a-null"]]
    for row in tables[1].rows:
        assert any(cell.startswith(kinds[row[0]]) for cell in row)
    alone = section([rows[0]], (), [Studied()]).groups[0].parts[0].tables
    assert len(alone) == 1


def test_scaled_by_the_detectable_distance_of_the_test_itself():
    own = pl.when(word="kind").then(1.5).when(word="grim").then(0.1)
    (row,) = headlines(Only(pmi__pmi=table().with_columns(detectable=own)), {})
    assert (row["what"], row["value"], row["detectable"]) == ("kind, with female", 0.3, 1.5)
    (line,) = scaled([row])
    assert [line[end] for end in ("low", "value", "high")] == pytest.approx([0.1 / 1.5, 0.2, 1 / 3])
    (listing,) = section([row], (), [Studied()]).groups[0].parts[0].tables
    assert listing.rows[0][-1] == "1.50"  # not the median, 0.8
    unknown = row | {"detectable": None}
    made = section([unknown], (), [Studied()]).groups[0].parts
    assert made[0].tables[0].rows[0][-1] == "–"
    assert len(made) == 1  # no figure
    assert scaled([unknown]) == []


def test_section_has_a_row_a_line_and_the_controls_that_pass():
    rows = headlines(Only(pmi__pmi=table()), {})
    checks = [{"analysis": a, "verdict": v} for a, v in (("pmi", "yes"), ("latent", "no"))]
    checks.append({"analysis": "values", "verdict": "no"})
    made = section(rows, checks, [Studied()])
    first, second = made.groups[0].parts
    (listing,) = first.tables
    (row,) = listing.rows
    assert row[:3] == ["mine", "politicians", "1 of 2 words"]
    assert "1 of 2" in row
    assert "0.300" in row
    figure = second.figure
    assert "politicians: mine" in figure
    assert Page(f"<main>{figure}</main>").open == []
