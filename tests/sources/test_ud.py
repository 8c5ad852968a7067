import pytest
from samples import DAY, POLITE, SAMPLES, files

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
    "body",
    [
        TEXT.encode()[:-40],
        third(columns(9)),
        third(lambda s: s.replace("\n2\t", "\n3\t", 1)),
    ],
)
def test_fetch_ud_refuses_other_files(address, tmp_path, body):
    with misbehaving(address, always(says(body, "text/plain"))) as server:
        with pytest.raises(UserError) as caught:
            ud.fetch(only_english(server.address), POLITE, tmp_path / DAY)
        assert str(caught.value).startswith(f"{server.address}/{FILE}: ")
    assert "\n" not in str(caught.value)
    assert not list((tmp_path / DAY).rglob("*.conllu"))
    assert not (tmp_path / DAY / MANIFEST).exists()
