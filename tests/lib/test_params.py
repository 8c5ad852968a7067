import pytest
from pydantic import Field, ValidationError

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.params import Params, check, read, section


class Words(Params):
    version: str
    top: int = Field(10, ge=1)


class People(Params):
    born: dict[str, int]


BOTH = {"datasets.words": Words, "datasets.people": People}


@pytest.fixture
def written(tmp_path):
    def write(text: str):
        path = tmp_path / "params.yaml"
        path.write_text(text, "utf-8")
        return path

    return write


def test_check_returns_frozen_sections(written):
    path = written("datasets:\n  words: {version: 1.0.0}\n  people: {born: {from: 1900}}\n")
    sections = check(BOTH, path)
    assert sections["datasets.words"] == Words(version="1.0.0", top=10)
    assert sections["datasets.people"] == People(born={"from": 1900})
    with pytest.raises(ValidationError):
        sections["datasets.words"].top = 3


def test_check_reports_all_problems_with_dotted_names(written):
    path = written(
        "datasets:\n  words: {version: 1, top: 0, colour: red}\n  people: {born: {from: early}}\n"
    )
    with pytest.raises(UserError) as caught:
        check(BOTH | {"probes.pmi": Words}, path)
    _, *lines = str(caught.value).splitlines()
    assert sorted(line.split(":")[0].strip() for line in lines) == [
        "datasets.people.born.from",
        "datasets.words.colour",
        "datasets.words.top",
        "datasets.words.version",
        "probes.pmi",
    ]
    assert all(value in "\n".join(lines) for value in ("(found 0)", "(found 'early')"))


@pytest.mark.parametrize("text", ["datasets:\n", "datasets:\n  words:\n", "datasets: 3\n"])
def test_section_empty_or_wrong(written, text):
    with pytest.raises(UserError):
        section("datasets.words", Words, written(text))


@pytest.mark.parametrize("text", ["a: [1, 2\nb: 3\n", "a: 1\nb: 2\na: 3\n", "[1]"])
def test_read_no_yaml_and_a_key_twice(written, text):
    with pytest.raises(UserError, match=r"params\.yaml"):
        read(written(text))


def test_read_words_that_an_older_yaml_took_for_truth_values(written):
    path = written("languages: [no, on, off, yes, n]\nlast: true\nfirst: False\n")
    words = ["no", "on", "off", "yes", "n"]
    assert read(path) == {"languages": words, "last": True, "first": False}
