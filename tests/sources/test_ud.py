import json

import pytest
from pydantic import ValidationError
from samples import DAY, POLITE, SAMPLES, files, ud_params

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.snapshot import MANIFEST
from plumbline.builders.datasets.words import fetch as ud
from sources.misbehaving import always, misbehaving, says

KEPT = SAMPLES / "ud" / DAY
FILE = "en/en_sample-ud-test.conllu"
TEXT = (KEPT / FILE).read_text("utf-8")
SENTENCES = TEXT.split("\n\n")[:-1]


def only_english(address: str, **changes) -> ud.Params:
    bank = {"name": "en", "tag": DAY, "files": [FILE.split("/")[1]], "licence": "CC0-1.0"}
    return ud.Params(
        address=address + "/{treebank}/{file}", treebanks={"en": [ud.Treebank(**(bank | changes))]}
    )


def third(change) -> bytes:
    """Return the treebank with its third sentence changed."""
    sentences = list(SENTENCES)
    sentences[2] = change(sentences[2])
    return ("\n\n".join(sentences) + "\n\n").encode()


def columns(number: int):
    def change(sentence: str) -> str:
        lines = sentence.split("\n")
        lines[-1] = "\t".join(([*lines[-1].split("\t"), "_"])[:number])
        return "\n".join(lines)

    return change


@pytest.fixture(scope="module")
def address():
    with files(KEPT) as found:
        yield found


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (TEXT.encode()[:-40], "cut short"),
        (third(columns(9)), "sentence 3: a token has 9 columns, not ten"),
        (third(columns(11)), "sentence 3: a token has more columns, not ten"),
        (third(lambda s: s.replace("\n1\t", "\none\t")), "sentence 3 .*'one' is not a valid ID"),
        (third(lambda s: s.replace("\n1\t", "\n_\t")), "sentence 3: id _ where 1 belongs"),
        (third(lambda s: s.replace("\n2\t", "\n3\t", 1)), "sentence 3: id 3 where 2 belongs"),
        (b"", "cut short"),
        (b"\n\n", "no sentence in it"),
        (b"# text = nothing\n\n", "sentence 1: no word in it"),
        (TEXT.replace("minister", "minist\u00e8re").encode("latin-1"), "not UTF-8"),
    ],
    ids=[
        *("cut short", "nine columns", "eleven columns", "wrong id", "no id", "lost word"),
        *("empty", "blank", "only a comment", "latin-1"),
    ],
)
def test_a_body_that_is_no_treebank_is_refused_with_its_address(address, tmp_path, body, told):
    with misbehaving(address, always(says(body, "text/plain"))) as server:
        with pytest.raises(UserError, match=told) as caught:
            ud.fetch(only_english(server.address), POLITE, tmp_path / DAY)
        assert str(caught.value).startswith(f"{server.address}/{FILE}: ")
    assert "\n" not in str(caught.value)
    assert not list((tmp_path / DAY).rglob("*.conllu"))
    assert not (tmp_path / DAY / MANIFEST).exists()


def test_the_manifest_names_every_licence_once(address, tmp_path):
    params = ud_params(address).model_dump()
    for code in ("ru", "hi"):
        params["treebanks"][code][0]["licence"] = "CC-BY-4.0"
    ud.fetch(ud.Params(**params), POLITE, tmp_path / DAY)
    manifest = json.loads((tmp_path / DAY / MANIFEST).read_text("utf-8"))
    assert manifest["licence"] == "CC-BY-4.0 AND CC0-1.0"
    assert manifest["retrieved"] == DAY


@pytest.mark.parametrize(
    "wrong",
    ["raw.example.org/{file}", "https://x/{repository}/{file}", "https://x/{0}", "https://x/{"],
)
def test_an_address_that_cannot_be_filled_in_is_refused_before_fetching(wrong):
    with pytest.raises(ValidationError, match="address"):
        ud.Params(address=wrong, treebanks=ud_params("http://x").treebanks)
