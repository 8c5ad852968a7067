"""The page of the report about reliability: sentences, figures, and reasons."""

import numpy as np
import polars as pl
import pytest
from page_read import listed, put, shown

from calibration.reliability import reliability as simulated
from plumbline.probes.reliability import page
from plumbline.probes.reliability import reliability as analysis
from plumbline.probes.reliability.schemas import RANDOM, SCHEMAS

SEED = 11
CAPTION = "Study by study: medians over n models, languages and scales"
NONE = {"n": 4, "cluster": "level", "method": "by hand", "null": "0", "reason": ""}
WHERE = {"probe": "agreement", "measure": "agreement", "scale": "one", "language": "cs"}


def table(name, rows):
    schema = SCHEMAS[name]
    lacking = {column.name: None for column in schema.columns}
    return pl.DataFrame([lacking | NONE | WHERE | row for row in rows]).select(list(lacking))


def written(folder, parts, designs=()):
    made = {"parts": table("parts", parts)}
    if designs:
        made["designs"] = table("designs", designs)
    put(folder / "data/tables/reliability", SCHEMAS, made)
    return shown(folder / "data", page.STUDY, "reliability")


def part(term, share, model="m", **more):
    return {"model": model, "term": term, "share": share, "value": share, "levels": 4} | more


def design(numbers, value, observed=False, random=1, model="m"):
    sizes = dict(zip(page.DESIGN, numbers, strict=True))
    return sizes | {"model": model, "random_facets": random, "value": value, "observed": observed}


def test_a_study_is_told_of_by_its_largest_parts_and_what_more_would_buy(tmp_path):
    parts = [part("statement", 0.6), part("rest", 0.3), part("template", 0.1)]
    parts += [part("statement", 0.2, "n"), part("rest", 0.7, "n"), part("template", 0.1, "n")]
    parts += [part("model", 1.0, "")]  # of all models together: not of single ones
    designs = [design((5, 10, 1), 0.4, observed=True), design((20, 10, 1), 0.2)]
    designs += [design((5, 60, 1), 0.3), design((1, 10, 1), 0.9), design((20, 60, 1), 0.1)]
    fixed = {"random": 0}
    designs += [design((5, 10, 1), 8.0, observed=True, **fixed), design((20, 10, 1), 8.0, **fixed)]
    (section,), _ = written(tmp_path, parts, designs)
    ((study, varies, buys),) = listed(section, CAPTION)
    assert study == "values"
    assert "with rest 50%, statement 40%, template 10% of the variance (n = 2)." in varies
    assert "0.50 times as wide with 20 templates (5 observed)" in buys
    assert "0.75 times as wide with 60 statements (10 observed)" in buys
    assert "seeds" not in buys


def test_without_a_number_the_reason_is_said_and_nothing_drawn(tmp_path):
    few = "1 level of template: 3 are needed"
    lacking = {"share": None, "value": None, "reason": few}
    (section,), text = written(tmp_path, [part("template", None) | lacking])
    ((_, varies, buys),) = listed(section, CAPTION)
    assert varies == f"No number: {few}."
    assert buys == "No design could be estimated: see the reasons."
    assert ["values", "parts", "template", few, "1"] in listed(section, "")
    assert "<svg" not in text


def test_no_tables_are_a_section_that_says_so(tmp_path):
    (section,), text = shown(tmp_path, page.STUDY, "reliability")
    assert section.groups == []
    assert "make repro STAGE=reliability" in text


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """Return tables of simulated responses, and the section that shows them."""
    print("seed", SEED)
    folder, rng = tmp_path_factory.mktemp("reliability"), np.random.default_rng(SEED)
    truth = simulated.TRUTHS["parts, and items"]
    drawn = simulated.draw(folder, truth, simulated.Shape(statements=12, templates=4), rng)
    params = analysis.Params.model_validate({"version": "0.1.0"} | simulated.PARAMS)
    tables = analysis.run(drawn.inputs, params)
    put(drawn.inputs.data / "tables/reliability", SCHEMAS, tables)
    return tables, *shown(drawn.inputs.data, page.STUDY, "reliability")


def test_what_was_observed_is_one_design_of_each_model(found):
    observed = found[0]["designs"].filter("observed")
    by = ["probe", "language", "model", "random_facets"]
    number = len(found[0]["designs"].group_by(by).len())
    assert len(observed) == observed.select(by).n_unique() == number
    stances = observed.filter(probe="stances").select("templates", "statements", "seeds")
    assert stances.unique().rows() == [(4, 12, 3)]


def test_parts_and_designs_are_drawn_for_each_language_and_long_tables_are_folded(found):
    tables, (section,), text = found
    blocks = {block.title: block for block in section.groups[0].blocks}
    figures = {
        title.partition(":")[0]: [part.figure for part in block.parts]
        for title, block in blocks.items()
        if title.endswith("parts of variance, and designs")
    }
    # values: two languages of which parts are told, and designs of each; leaning: one
    assert {study: len(own) for study, own in figures.items()} == {"values": 4, "leaning": 2}
    assert "statement x template" in figures["leaning"][0]
    assert "other statements" in figures["leaning"][1]
    assert "observed" in figures["leaning"][1]
    shares = tables["valid"].filter(probe="stances")
    (valid,) = blocks["leaning: valid responses"].parts[0].tables
    assert len(valid.rows) == len(shares)
    (items,) = blocks["values: statements that work otherwise in a language"].parts[0].tables
    tested = tables["items"].filter(pl.col("reason") == "")
    assert len(items.rows) == min(page.SHOWN, len(tested))
    smallest = tested.sort("p", "statement")["statement"][0]
    assert items.rows[0][2] == smallest
    assert text.index(CAPTION) < text.index("<details")
    assert page.OTHERS in RANDOM
