from __future__ import annotations

import re
import shutil
from collections import Counter
from pathlib import Path

import building
import polars as pl
import pytest
from published import compass, eight
from samples import DAY, POLITE, SAMPLES

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.snapshot import Snapshot
from plumbline.builders.datasets.statements import build as statements
from plumbline.builders.datasets.statements import fetch as client
from plumbline.builders.datasets.statements.read import VALUES
from plumbline.builders.datasets.statements.read import statements as read

SHARED = Path(__file__).parents[3] / "shared/data/statements"
HEAD = "id,text,axis,weight,reversed,polarity,opposite\n"
FLOORS = {"rows_min": {}, "axis_min": 1}
ONE = "a,tea is good,tribalism,1,no,,\n"


def test_calibration_is_balanced_and_values_are_half_reversed(sample):
    folder = sample("statements")
    for code in ("cs", "en", "es", "ru"):
        neutral = pl.read_parquet(folder / f"calibration-{code}.parquet")
        assert Counter(neutral["polarity"]) == {0: 50, 1: 50}
        assert neutral["text"].n_unique() == 100
        own = pl.read_parquet(folder / f"values-{code}.parquet")
        counts = own.group_by("axis").agg(pl.len(), pl.col("reversed").sum().alias("turned"))
        assert {axis: (n, t) for axis, n, t in counts.iter_rows()} == dict.fromkeys(VALUES, (12, 6))
        reversal = dict(own.select("id", "reversed").iter_rows())
        for name, other in own.select("id", "opposite").iter_rows():
            assert reversal[name] != reversal[other]


def test_the_axes_are_half_reversed_and_every_statement_has_its_opposite(sample):
    own = pl.read_parquet(sample("statements") / "axes-en.parquet")
    counts = own.group_by("axis").agg(pl.len(), pl.col("reversed").sum().alias("turned"))
    assert sorted(counts.iter_rows()) == [("economic", 20, 10), ("social", 20, 10)]
    assert set(own["weight"]) == {1.0}
    assert own["redistributable"].all()
    assert own["text"].n_unique() == own["sentence"].n_unique() == 40
    assert all(row["points"] == [] for row in own.iter_rows(named=True))
    turned = dict(own.select("id", "reversed").iter_rows())
    assert all(turned[a] != turned[b] for a, b in own.select("id", "opposite").iter_rows())
    assert "Rents should be left to supply and demand." in own["sentence"].to_list()


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
    texts = [s.text for path in folder.glob(f"*-{code}.csv") for s in read(path.read_bytes())]
    assert len(texts) >= 148
    for pattern in GENDERED[code]:
        assert not [text for text in texts if re.search(pattern, text)], pattern


# Words that make a sentence a norm, not a report of what is.
NORMS = {
    "cs": r"\b(by|smí|smějí|může|mohou|dá|třeba|v pořádku|potřebuje)\b",
    "en": r"\b(should|may|must|can|needs?)\b",
    "es": r"\b(deben?|hay que|pueden?|necesita|está bien)\b",
    "ru": r"\b(надо|долж\w+|можно|может|могут|нуж\w+|нормально)\b",
}


@pytest.mark.parametrize("code", sorted(NORMS))
def test_apolitical_statements_are_of_the_same_kind_as_political_ones(code):
    """A line fitted to reports of facts says little about norms; nor do long about short ones."""
    told = {}
    for scale in ("calibration", "values"):
        content = (SAMPLES / "statements" / DAY / f"{scale}-{code}.csv").read_bytes()
        told[scale] = pl.DataFrame({"text": [s.text for s in read(content)]}).select(
            norm=pl.col("text").str.contains(NORMS[code]),
            words=pl.col("text").str.split(" ").list.len(),
        )
    for of in told.values():
        assert of["norm"].mean() >= 0.9
    calibration, values = (told[scale]["words"].mean() for scale in ("calibration", "values"))
    assert abs(calibration - values) < 1


def test_no_czech_statement_reads_as_a_report_of_a_plan():
    """``má`` with an infinitive is first of all "is due to"; a norm is in the conditional."""
    for scale in ("calibration", "values"):
        content = (SAMPLES / "statements" / DAY / f"{scale}-cs.csv").read_bytes()
        assert not [s.text for s in read(content) if re.search(r"\b(ne)?(má|mají)\b", s.text)]


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


@pytest.mark.parametrize(
    ("config", "source"),
    [
        ("pi34", r"10\.1177/14747049221112657"),
        ("political-compass", "politicalcompass"),
        ("8values", "8values"),
    ],
)
def test_published_scales_are_asked_for_where_they_are_absent(config, source):
    params = statements.Params(version="0.1.0", snapshot="x", configs=[config])
    asked = rf"no questionnaire '{config}'.*{source}.*not shipped.*statements\.md"
    with pytest.raises(UserError, match=asked):
        list(statements.build(Snapshot.open(SAMPLES / "statements" / DAY), params))


def fetched(folder, **published):
    """Build and check the questionnaires of others, from files of the user's."""
    declared = {
        name: {"file": str(path), "format": name, "scale": name, "language": "en"}
        | {"licence": "its authors'", "source": "its authors"}
        for name, path in published.items()
    }
    client.fetch(client.Params(questionnaires=declared), POLITE, folder / "theirs" / DAY)
    params = statements.Params(version="0.1.0", snapshot="x", configs=[*published])
    found = statements.build(Snapshot.open(folder / "theirs" / DAY), params)
    made = building.written(folder / "statements", "statements", found)
    assert not building.failing("statements", made, FLOORS)
    return [pl.read_parquet(made / f"{name}.parquet") for name in published]


def test_points_of_published_scales_reach_the_dataset(tmp_path):
    (tmp_path / "compass.json").write_text(compass(), "utf-8")
    (tmp_path / "eight.js").write_text(eight(), "utf-8")
    files = {"political-compass": tmp_path / "compass.json", "8values": tmp_path / "eight.js"}
    own, linear = fetched(tmp_path, **files)
    rows = {row["id"]: row for row in own.iter_rows(named=True)}
    assert len(rows) == len(own) == 62
    first = rows["pc-01"]
    assert first["points"] == [77, 5, 0, -83]
    assert (first["axis"], first["weight"], first["reversed"]) == ("economic", 80, True)
    assert (rows["pc-62"]["axis"], rows["pc-62"]["weight"]) == ("", 0)
    assert (first["text"], first["sentence"]) == ("tea 1 is dear", "Tea 1 is dear.")
    assert not own["redistributable"].any()  # unless the user says so
    for points, fit in (([77.0, 5, 0, -83], True), ([-83.0, 0, 5, 77], False), ([77.0], False)):
        told = own.head(1).with_columns(points=pl.lit(points))
        (tmp_path / "odd/statements").mkdir(parents=True, exist_ok=True)
        told.write_parquet(tmp_path / "odd/statements/political-compass.parquet")
        failing = building.failing("statements", tmp_path / "odd/statements", FLOORS)
        assert ("points_fit_weight" in failing) is not fit
    moved = linear.filter(pl.col("id") == "8v-01").select("axis", "weight", "reversed").rows()
    assert moved == [("econ", 10.0, False), ("govt", 5.0, True)]


@pytest.mark.shared
@pytest.mark.skipif(not SHARED.is_dir(), reason="no shared data beside the checkout")
def test_the_real_compass_and_8values_are_read_whole(tmp_path):
    files = {"political-compass": SHARED / "political_compass.json"}
    files |= {"8values": SHARED / "8values_questions.js.txt"}
    own, linear = fetched(tmp_path, **files)
    assert Counter(own["axis"]) == {"economic": 18, "social": 43, "": 1}
    assert own.filter(axis="")["id"].to_list() == ["pc-21"]
    words = dict(own.select("id", "sentence").iter_rows())
    assert words["pc-23"] == "All authority should be questioned."
    assert linear["id"].n_unique() == 70
    assert Counter(linear["axis"]) == {"econ": 22, "dipl": 24, "govt": 37, "scty": 33}
    totals = dict(linear.group_by("axis").agg(pl.col("weight").sum()).iter_rows())
    assert totals == {"econ": 195, "dipl": 225, "govt": 320, "scty": 292}


def test_an_uneven_questionnaire_and_a_lost_statement_fail_the_checks(sample, tmp_path):
    folder = shutil.copytree(sample("statements"), tmp_path / "statements")
    path = folder / "values-cs.parquet"
    turned = pl.col("reversed") & (pl.col("id") != "tribalism-1-opposite")
    title = pl.col("text").str.to_titlecase()
    pl.read_parquet(path).with_columns(reversed=turned, text=title).write_parquet(path)
    failing = building.failing("statements", folder)
    assert {"even", "opposites_are_mutual", "same_ids", "begins_small"} <= set(failing)
