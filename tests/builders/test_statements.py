from __future__ import annotations

from collections import Counter

import polars as pl
import pytest
import yaml
from samples import DAY, SAMPLES

from builders import statements
from builders.lib.dataset import build
from builders.lib.problem import Problem
from builders.lib.questionnaire import VALUES
from builders.lib.questionnaire import statements as read
from builders.lib.snapshot import Snapshot
from validation.run import validate

HEAD = "id,text,axis,weight,reversed,polarity,opposite\n"
ONE = "a,tea is good,tribalism,1,no,,\n"


def test_the_default_questionnaires_are_built_and_hold_their_checks(project):
    counts = build("statements", statements)
    assert counts.rows == {
        f"{scale}-{code}": number
        for scale, number in (("calibration", 100), ("values", 48))
        for code in ("cs", "en", "es", "ru")
    }
    assert validate("statements")["success"]


def test_calibration_is_balanced_and_values_are_half_reversed(project):
    build("statements", statements)
    for code in ("cs", "en", "es", "ru"):
        neutral = pl.read_parquet(f"data/datasets/statements/calibration-{code}.parquet")
        assert Counter(neutral["polarity"]) == {0: 50, 1: 50}
        assert neutral["text"].n_unique() == 100
        own = pl.read_parquet(f"data/datasets/statements/values-{code}.parquet")
        counts = own.group_by("axis").agg(pl.len(), pl.col("reversed").sum().alias("turned"))
        assert {axis: (n, t) for axis, n, t in counts.iter_rows()} == dict.fromkeys(VALUES, (12, 6))
        reversal = dict(own.select("id", "reversed").iter_rows())
        for name, other in own.select("id", "opposite").iter_rows():
            assert reversal[name] != reversal[other]


# Letters and endings that would tell the gender of whoever says the sentence.
GENDERED = {
    "cs": (r"\bjsem\b", r"\bbych\b", r"\brád[a]?\b"),
    "es": (r"\bestoy\b", r"\bsoy\b", r"\bdescalz[oa]\b"),
    "ru": (r"\bя\b", r"\bрада?\b"),
    "en": (r"\bI\b", r"\bmy\b", r"\bhe\b", r"\bshe\b"),
}


@pytest.mark.parametrize("code", sorted(GENDERED))
def test_no_statement_speaks_in_the_first_person(code):
    folder = SAMPLES / "statements" / DAY
    texts = [
        s.text
        for scale in ("calibration", "values")
        for s in read((folder / f"{scale}-{code}.csv").read_bytes())
    ]
    frame = pl.DataFrame({"text": texts})
    for pattern in GENDERED[code]:
        assert frame.filter(pl.col("text").str.contains(pattern)).is_empty(), pattern


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("id,text\na,b\n", "line 1: not the columns"),
        (HEAD, "no statement in it"),
        (HEAD + ONE.rstrip(), "cut short"),
        (HEAD + "a,tea\n", "line 2 has 2 columns, not 7"),
        (HEAD + "a,tea is good.,tribalism,1,no,,\n", "must have no final stop"),
        (HEAD + "a,tea is {good},tribalism,1,no,,\n", "brace or mask"),
        (HEAD + "a,tea  is good,tribalism,1,no,,\n", "line 2: id or text is empty, or a field"),
        (HEAD + "a,tea is good,tribalism,1,maybe,,\n", "neither yes nor no"),
        (HEAD + "a,tea is good,tribalism,one,no,,\n", "weight 'one' is not a number"),
        (HEAD + "a,tea is good,tribalism,0,no,,\n", "is 0 or not finite"),
        (HEAD + "a,tea is good,,1,no,maybe,\n", "'maybe' is neither likely nor unlikely"),
        (HEAD + "a,tea is good,,1,no,,\n", "needs an axis, or a polarity, and not both"),
        (HEAD + ONE * 2, "line 3: 'a' a second time on 'tribalism'"),
        (HEAD + ONE + "a,tea is bad,equity,1,no,,\n", "line 3: 'a' has another text than before"),
        (HEAD + "a,tea is good,tribalism,1,no,,b\n", "opposite: no statement 'b'"),
    ],
)
def test_a_file_that_is_no_questionnaire_is_refused_with_the_line(text, wrong):
    with pytest.raises(ValueError, match=wrong):
        read(text.encode())


def test_a_statement_may_load_on_several_axes():
    found = read((HEAD + ONE + "a,tea is good,equity,-0.5,no,,\n").encode())
    assert [(s.axis, s.weight) for s in found] == [("tribalism", 1.0), ("equity", -0.5)]


def pi34(number, axis="tribalism"):
    return (HEAD + "".join(f"i{i},tea {i} is good,{axis},1,no,,\n" for i in range(number))).encode()


def test_a_file_of_pi34_has_34_items_on_the_four_values():
    assert len(read(pi34(34), "PI34")) == 34
    with pytest.raises(ValueError, match="33 statements, and PI34 has 34"):
        read(pi34(33), "PI34")
    with pytest.raises(ValueError, match="axis 'equity' is none of PI34"):
        read(pi34(34, "equity"), "PI34")


def test_pi34_is_asked_for_where_it_is_absent():
    params = statements.Params(version="0.1.0", snapshot="x", configs=["pi34"])
    with pytest.raises(
        Problem, match=r"no questionnaire 'pi34'.*not shipped.*statements\.md"
    ) as told:
        list(statements.build(Snapshot.open(SAMPLES / "statements" / DAY), params))
    assert "10.1177/14747049221112657" in str(told.value)


def test_an_uneven_questionnaire_and_a_lost_statement_fail_validation(project):
    def spoil(edit):
        build("statements", statements)
        path = project / "data/datasets/statements/values-cs.parquet"
        schema = pl.read_parquet_schema(path)
        edit(pl.read_parquet(path)).select(list(schema)).write_parquet(path)
        with pytest.raises(Problem) as told:
            validate("statements")
        return str(told.value)

    params = yaml.safe_load((project / "params.yaml").read_text("utf-8"))
    assert params["validation"]["statements"]["half_tolerance"] == 0
    turned = pl.col("reversed") & (pl.col("id") != "tribalism-1-opposite")
    said = spoil(lambda frame: frame.with_columns(reversed=turned))
    assert "even" in said
    assert "opposites_are_mutual" in said
    assert "same_ids" in said
    capital = pl.col("text").str.to_titlecase()
    assert "begins_small" in spoil(lambda frame: frame.with_columns(text=capital))
