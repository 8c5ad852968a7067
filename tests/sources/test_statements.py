from __future__ import annotations

import pytest
from published import eight
from samples import DAY, POLITE, SAMPLES, files, statements_params

from plumbline.builders.core.errors import Problem
from plumbline.builders.core.snapshot import MANIFEST, Snapshot
from plumbline.builders.datasets.statements import build as dataset
from plumbline.builders.datasets.statements import fetch as statements
from sources.misbehaving import always, half, misbehaving, web_page

FILE = SAMPLES / "statements" / DAY / "values-cs.csv"
TERMS = {"language": "cs", "licence": "CC0-1.0", "source": "the project"}


def one(place, scale="values"):
    return statements.Params(questionnaires={"mine": TERMS | {"file": str(place), "scale": scale}})


def test_files_of_the_checkout_and_from_afar_are_kept_as_they_are(tmp_path):
    with files(FILE.parent) as address:
        far = TERMS | {"file": f"{address}/values-cs.csv", "scale": "values"}
        statements.fetch(statements_params(far=far), POLITE, tmp_path / DAY)
    for name in ("values-cs.csv", "far.csv"):
        assert (tmp_path / DAY / name).read_bytes() == FILE.read_bytes()
    found = Snapshot.open(tmp_path / DAY)
    assert found.manifest["counts"] == {"questionnaires": 10, "statements": 4 * 148 + 40 + 48}
    params = dataset.Params(version="0.1.0", snapshot="x", configs=["far"])
    rows = [row.values for row in dataset.build(found, params)]
    assert {row["scale"] for row in rows} == {"values"}
    assert len(rows) == 48


def test_a_missing_pi34_is_told_with_where_its_layout_stands(tmp_path):
    with pytest.raises(Problem, match=r"pi34\.csv: no such file of statements for the scale PI34"):
        statements.fetch(one("pi34.csv", "PI34"), POLITE, tmp_path / DAY)
    assert not (tmp_path / DAY / MANIFEST).exists()


def test_a_pi34_of_other_length_is_refused(tmp_path):
    with pytest.raises(Problem, match="48 statements, and PI34 has 34"):
        statements.fetch(one(FILE, "PI34"), POLITE, tmp_path / DAY)


def test_web_pages_and_halves_are_refused(tmp_path):
    with files(FILE.parent) as address:
        for number, (wrong, told) in enumerate(
            ((web_page, "a web page in place of the file"), (half, r"cut short|columns"))
        ):
            with misbehaving(address, always(wrong)) as server:
                params = one(f"{server.address}/values-cs.csv")
                with pytest.raises(Problem, match=told):
                    statements.fetch(params, POLITE, tmp_path / str(number))


def test_a_published_file_is_kept_in_its_own_layout_and_a_web_page_is_not(tmp_path):
    terms = {"language": "en", "scale": "8values", "licence": "MIT", "source": "8values"}
    (tmp_path / "questions.js").write_text(eight(), "utf-8")
    with files(tmp_path) as address:
        far = terms | {"file": f"{address}/questions.js", "layout": "8values"}
        params = statements.Params(questionnaires={"8values": far})
        statements.fetch(params, POLITE, tmp_path / "a" / DAY)
        with misbehaving(address, always(half)) as server:
            cut = far | {"file": f"{server.address}/questions.js"}
            params = statements.Params(questionnaires={"8values": cut})
            with pytest.raises(Problem, match=r"not 'questions = \[...\];' and nothing else"):
                statements.fetch(params, POLITE, tmp_path / "b" / DAY)
    kept = tmp_path / "a" / DAY / "8values.js"
    assert kept.read_text("utf-8") == eight()
    assert Snapshot.open(kept.parent).manifest["counts"]["statements"] == 70


def test_other_parameters_are_refused_when_a_fetch_is_continued(tmp_path):
    statements.fetch(one(FILE), POLITE, tmp_path / DAY)
    with pytest.raises(Problem, match="begun with other parameters"):
        statements.fetch(one(FILE.with_name("values-es.csv")), POLITE, tmp_path / DAY)


def test_a_name_that_is_no_name_of_a_file_is_refused():
    with pytest.raises(ValueError, match="a name has small letters"):
        statements.Params(questionnaires={"../x": TERMS | {"file": "x", "scale": "values"}})
