import pytest
from published import eight
from samples import DAY, POLITE, SAMPLES, files

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.snapshot import MANIFEST, Snapshot
from plumbline.builders.datasets.statements import fetch as statements
from sources.misbehaving import always, half, misbehaving

FILE = SAMPLES / "statements" / DAY / "values-cs.csv"
TERMS = {"language": "cs", "licence": "CC0-1.0", "source": "the project"}


def one(place, scale="values"):
    return statements.Params(questionnaires={"mine": TERMS | {"file": str(place), "scale": scale}})


def test_a_missing_pi34_is_told_with_where_its_layout_stands(tmp_path):
    with pytest.raises(
        UserError, match=r"pi34\.csv: no such file of statements for the scale PI34"
    ):
        statements.fetch(one("pi34.csv", "PI34"), POLITE, tmp_path / DAY)
    assert not (tmp_path / DAY / MANIFEST).exists()


def test_a_pi34_of_other_length_is_refused(tmp_path):
    with pytest.raises(UserError, match="48 statements, and PI34 has 34"):
        statements.fetch(one(FILE, "PI34"), POLITE, tmp_path / DAY)


def test_a_published_file_is_kept_in_its_own_layout_and_a_web_page_is_not(tmp_path):
    terms = {"language": "en", "scale": "8values", "licence": "MIT", "source": "8values"}
    (tmp_path / "questions.js").write_text(eight(), "utf-8")
    with files(tmp_path) as address:
        far = terms | {"file": f"{address}/questions.js", "format": "8values"}
        params = statements.Params(questionnaires={"8values": far})
        statements.fetch(params, POLITE, tmp_path / "a" / DAY)
        with misbehaving(address, always(half)) as server:
            cut = far | {"file": f"{server.address}/questions.js"}
            params = statements.Params(questionnaires={"8values": cut})
            with pytest.raises(UserError, match=r"not 'questions = \[...\];' and nothing else"):
                statements.fetch(params, POLITE, tmp_path / "b" / DAY)
    kept = tmp_path / "a" / DAY / "8values.js"
    assert kept.read_text("utf-8") == eight()
    assert Snapshot.open(kept.parent).manifest["counts"]["statements"] == 70
