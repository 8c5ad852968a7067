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


def test_sections_that_are_right_are_read_and_cannot_be_changed(written):
    path = written("datasets:\n  words: {version: 1.0.0}\n  people: {born: {from: 1900}}\n")
    found = check(BOTH, path)
    assert found == {
        "datasets.words": Words(version="1.0.0", top=10),
        "datasets.people": People(born={"from": 1900}),
    }
    with pytest.raises(ValidationError):
        found["datasets.words"].top = 3


def test_all_problems_of_all_sections_are_told_at_once_with_dotted_names(written):
    path = written(
        "datasets:\n  words: {version: 1, top: 0, colour: red}\n  people: {born: {from: early}}\n"
    )
    with pytest.raises(UserError) as caught:
        check(BOTH | {"probes.pmi": Words}, path)
    head, *told = str(caught.value).splitlines()
    assert head == f"{path}: {len(told)} problem(s) to mend:"
    places = [line.split(":")[0].strip() for line in told]
    assert sorted(places) == [
        "datasets.people.born.from",
        "datasets.words.colour",
        "datasets.words.top",
        "datasets.words.version",
        "probes.pmi",
    ]
    said = "\n".join(told)
    assert "datasets.words.colour: unknown key; see docs/params.md" in said
    assert "(found 0)" in said
    assert "(found 'early')" in said
    assert "probes.pmi: missing (no key 'probes')" in said


@pytest.mark.parametrize("text", ["datasets:\n", "datasets:\n  words:\n", "datasets: 3\n"])
def test_an_empty_or_wrong_section_is_a_problem_and_no_crash(written, text):
    with pytest.raises(UserError):
        section("datasets.words", Words, written(text))


@pytest.mark.parametrize(
    "text",
    [
        "a: [1, 2\nb: 3\n",
    ],
)
def test_what_is_not_yaml_is_told_with_its_line(written, text):
    with pytest.raises(UserError, match=r"params\.yaml"):
        read(written(text))


def test_words_that_an_older_yaml_took_for_truth_values_stay_words(written):
    path = written("languages: [no, on, off, yes, n]\nlast: true\nfirst: False\n")
    words = ["no", "on", "off", "yes", "n"]
    assert read(path) == {"languages": words, "last": True, "first": False}
