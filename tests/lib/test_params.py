import subprocess
import sys

import pytest
from pydantic import Field, ValidationError

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.params import Params, check, read, section
from plumbline.builders.datasets.supersenses.build import synsets


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


BOMB = "a0: &a0 {x: 1}\n"
BOMB += "".join(f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}]}}\n" for n in range(1, 9))


@pytest.mark.parametrize("text", [BOMB, f"a: {'[' * 100_000}", "a:\n  " + "- " * 100_000 + "1\n"])
def test_yaml_that_copies_or_nests_too_much_is_refused_at_once(written, text):
    code = "import sys; from plumbline.builders.core.params import *\n"
    code += "try: parse(Path(sys.argv[1]))\nexcept UserError: print('refused')"
    command = [sys.executable, "-c", code, str(written(text))]  # libyaml may overflow the stack
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (0, "refused\n")
    with pytest.raises(ValueError, match="YAML"):
        list(synsets(f"{text.rstrip()}\n".encode()))
