import hashlib

import pytest
from samples import DAY, POLITE, SAMPLES, archive, archived, emotions_params

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.snapshot import MANIFEST, Snapshot
from plumbline.builders.datasets.emotions import fetch as emotions
from sources.misbehaving import always, misbehaving, says

TEXT = (SAMPLES / "emotions" / DAY / "en" / "emolex.txt").read_bytes()
PACKED = archive(en=TEXT, xx=b"war\tjoy\n")


@pytest.fixture(scope="module")
def address():
    with archived(PACKED) as found:
        yield found


def test_fetch_emotions_keeps_the_member(address, tmp_path):
    emotions.fetch(emotions_params(address), POLITE, tmp_path / DAY)
    assert (tmp_path / DAY / "en" / "emolex.txt").read_bytes() == TEXT
    digest = (tmp_path / DAY / "archive.sha256").read_text("ascii")
    assert digest == hashlib.sha256(PACKED).hexdigest() + "\n"
    Snapshot.open(tmp_path / DAY)


@pytest.mark.parametrize(
    "body",
    [
        PACKED[:-30],
        archive(fr=TEXT),
    ],
    ids=["cut short", "another archive"],
)
def test_fetch_emotions_refuses_other_archives(address, tmp_path, body):
    both = {"en": "lexicon/en.txt", "xx": "lexicon/xx.txt"}
    with (
        misbehaving(address, always(says(body, "application/zip"))) as server,
        pytest.raises(UserError),
    ):
        emotions.fetch(emotions_params(server.address, files=both), POLITE, tmp_path / DAY)
    assert not list((tmp_path / DAY).rglob("*.txt"))
    assert not (tmp_path / DAY / MANIFEST).exists()
