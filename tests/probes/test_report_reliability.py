"""The page of the report about reliability: sentences, figures, and reasons."""

import polars as pl
from page_read import listed, put, shown

from plumbline.probes.reliability import page
from plumbline.probes.reliability.schemas import SCHEMAS

SEED = 11
CAPTION = "Study by study: medians over n models, languages and scales"
NONE = {"n": 4, "cluster": "level", "method": "by hand", "null": "0", "reason": ""}
WHERE = {"probe": "agreement", "measure": "agreement", "scale": "one", "language": "cs"}


def table(name, rows):
    schema = SCHEMAS[name]
    lacking = {column.name: None for column in schema.columns}
    return pl.DataFrame([lacking | NONE | WHERE | row for row in rows]).select(list(lacking))


def written(folder, parts):
    put(folder / "data/tables/reliability", SCHEMAS, {"parts": table("parts", parts)})
    return shown(folder / "data", page.STUDY, "reliability")


def part(term, share, model="m", **more):
    return {"model": model, "term": term, "share": share, "value": share, "levels": 4} | more


def test_a_study_is_told_of_by_its_largest_parts(tmp_path):
    parts = [part("statement", 0.6), part("rest", 0.3), part("template", 0.1)]
    parts += [part("statement", 0.2, "n"), part("rest", 0.7, "n"), part("template", 0.1, "n")]
    parts += [part("model", 1.0, "")]  # of all models together: not of single ones
    (section,), _ = written(tmp_path, parts)
    ((study, varies),) = listed(section, CAPTION)
    assert study == "values"
    assert "with rest 50%, statement 40%, template 10% of the variance (n = 2)." in varies


def test_without_a_number_the_reason_is_said_and_nothing_drawn(tmp_path):
    few = "1 level of template: 3 are needed"
    lacking = {"share": None, "value": None, "reason": few}
    (section,), text = written(tmp_path, [part("template", None) | lacking])
    ((_, varies),) = listed(section, CAPTION)
    assert varies == f"No number: {few}."
    assert ["values", "parts", "template", few, "1"] in listed(section, "")
    assert "<svg" not in text


def test_no_tables_are_a_section_that_says_so(tmp_path):
    (section,), text = shown(tmp_path, page.STUDY, "reliability")
    assert section.groups == []
    assert "make repro STAGE=reliability" in text
