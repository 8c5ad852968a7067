import pytest
from samples import DAY, POLITE, SAMPLES, files

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.snapshot import MANIFEST
from plumbline.builders.datasets.words import fetch as ud
from sources.misbehaving import always, misbehaving, says

KEPT = SAMPLES / "ud" / DAY
FILE = "en/en_sample-ud-test.conllu"
TEXT = (KEPT / FILE).read_text("utf-8")
FIRST, REST = TEXT.split("\n\n", 1)


@pytest.mark.parametrize("body", [TEXT[:-40], FIRST.rpartition("\t")[0] + "\n\n" + REST])
def test_fetch_ud_refuses_half_a_file_and_a_missing_column(tmp_path, body):
    bank = {"name": "en", "tag": DAY, "files": [FILE.split("/")[1]], "licence": "CC0-1.0"}
    with (
        files(KEPT) as real,
        misbehaving(real, always(says(body.encode(), "text/plain"))) as server,
    ):
        params = ud.Params(
            address=server.address + "/{treebank}/{file}", treebanks={"en": [ud.Treebank(**bank)]}
        )
        with pytest.raises(UserError) as caught:
            ud.fetch(params, POLITE, tmp_path / DAY)
        assert str(caught.value).startswith(f"{server.address}/{FILE}: ")
    assert "\n" not in str(caught.value)
    assert not list((tmp_path / DAY).rglob("*.conllu"))
    assert not (tmp_path / DAY / MANIFEST).exists()
