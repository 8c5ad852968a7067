"""The removal list in the forms in which people copy entries: each works, or is an error."""

import re
from base64 import b64encode
from hashlib import sha256
from pathlib import Path
from unicodedata import normalize

import polars as pl
import pytest
from lib.small_folders import make

from plumbline.builders.__main__ import main
from plumbline.builders.core import private
from plumbline.builders.core.errors import UserError
from plumbline.builders.core.parquet import Row
from plumbline.builders.core.private import removed, warn_unmatched
from plumbline.builders.release.terms import locate, release

TEXT = "a caf\u00e9"


def digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()


ADDRESS = "https://www.wikidata.org/wiki/Q76"
ITEMS = [
    "Q76", "q76", "Q076", "wd:Q76", "wikidata:q76", "[[d:Q76]]", "(Q76)", "\u201cQ76\u201d",
    "- Q76", "Q76.", "Q76;asked", "Q76 # a remark", "Q76, asked on a day", '"Q76","asked"',
    "Q\u200b76", "\u2060Q76", "Q\ufe0f76", "Q1\n\ufeffQ76", "Q\uff17\uff16", "\uff3176",
    "\u00a0Q76\t", "Q\x007\x006\x00", "Q76.json", "Q76?uselang=de", "entity/Q76",
    ADDRESS, f"{ADDRESS}?uselang=de", f"{ADDRESS}#sitelinks", f"<{ADDRESS}>",
    "http://www.wikidata.org/entity/q76", "<http://www.wikidata.org/entity/Q76>",
    "https://m.wikidata.org/wiki/Q76", "www.wikidata.org/wiki/Q76/",
    "https://www.wikidata.org/wiki/Special:EntityData/Q76.json",
    "https://www.wikidata.org/w/index.php?title=Q76&action=history",
    "{{Q|76}}", "{{q|Q76}}", "[[Q76|Obama]]", f"[Obama]({ADDRESS})", "Q76!",
    "Q76\\", "_Q76_", "~~Q76~~", "Q76&nbsp;", "&quot;Q76&quot;", "&#8203;Q76", f"{ADDRESS}%20",
    "\u300cQ76\u300d", "\u201aQ76\u2018", "\u2022 Q76", "\u2014 Q76", "wikidata/Q76", "//Q76",
    "https%3A%2F%2Fwww.wikidata.org%2Fwiki%2FQ76",
]  # fmt: skip
TEXTS = [
    digest(TEXT), digest(TEXT).upper(), f"sha256:{digest(TEXT)}", f"{digest(TEXT)}  -",
    f"SHA2-256(stdin)= {digest(TEXT)}", digest(f"{TEXT}\n"), digest(f"{TEXT}\r\n"),
    digest(normalize("NFD", TEXT)), digest(normalize("NFD", f"{TEXT}\n")),
]  # fmt: skip
FILES = ["removed", "Removed.txt", "REMOVED.TXT", "removed.csv", "removed (1).txt", "removed.md"]
FILES += ["removed/a.txt", "Removed people/2026/b"]
ERRORS = [
    "Barack Obama (Q76)", "Q76 asked", "Q76,Q77", "Q76;Q77", "Obama,Q76", f"Obama,{digest(TEXT)}",
    "https://www.wikidata.org/wiki/Property:P39", "https://en.wikipedia.org/wiki/Barack_Obama",
    digest(TEXT)[:-1], f"{digest(TEXT)}0", digest(TEXT)[:40],
    "https://www.wikidata.org/w/api.php?action=wbgetentities&ids=Q5|Q76", "Q76|Q77", "Q76/Q77",
    f"0x{digest(TEXT)}", ":".join(re.findall("..", digest(TEXT))), digest(TEXT) * 2,
    f"sha256-{b64encode(bytes.fromhex(digest(TEXT))).decode()}", f"SHA256   {digest(TEXT)}  t.txt",
    "https://hub.toolforge.org/Q76", "https://reasonator.toolforge.org/?q=Q76", "Q76@en", "Q-76",
    "Q:76", "Q=76", "qid=Q76", "0Q76", "Q76Q77", "Q76\\tasked", "Q76^^xsd:string", "Q76\u3001asked",
]  # fmt: skip


@pytest.fixture(autouse=True)
def toy(tmp_path, monkeypatch):
    """A dataset of three rows; the first two are those of an item and of a text."""
    monkeypatch.chdir(tmp_path)
    Path("params.yaml").write_text("publish: {contact: me@example.org}", "utf-8")
    rows = {"qid": ["Q76", "Q5", "Q7"], "text": ["x", TEXT, "y"]}
    return make("data/datasets/toy", rows=rows)


def write(body: str | bytes, name: str = "removed.txt") -> None:
    path = private.FOLDER / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(body.encode() if isinstance(body, str) else body)


def left() -> list[str]:
    frame = pl.read_parquet("data/datasets/toy/en.parquet")
    stream = private.without((Row("en", row) for row in frame.to_dicts()), removed())
    return [item.values["qid"] for item in stream if isinstance(item, Row)]


CASES = [(e, "removed.txt", "Q76") for e in ITEMS] + [(e, "removed.txt", "Q5") for e in TEXTS]


@pytest.mark.parametrize(("entry", "name", "gone"), CASES + [("Q76", f, "Q76") for f in FILES])
def test_removed_entry_as_copied_is_left_out_and_not_published(entry, name, gone):
    write(entry, name)
    assert left() == [qid for qid in ("Q76", "Q5", "Q7") if qid != gone]
    with pytest.raises(UserError):
        release(locate("toy"), ())


@pytest.mark.parametrize("entry", ERRORS)
def test_removed_unclear_entry_is_an_error_with_its_line(entry):
    write(f"Q1\n{entry}\n", "Removed")
    for use in (left, lambda: release(locate("toy"), ()), warn_unmatched):
        with pytest.raises(UserError, match=r"line 2"):
            use()


def test_removed_list_under_another_name_is_an_error():
    write("qid,mentions\nQ76,3\n", "mentions.csv")
    write("Q76 a note\n", "notes.txt")
    (private.FOLDER / "dump.zst").write_bytes(bytes(range(256)) * 40)
    assert left() == ["Q76", "Q5", "Q7"]
    write(f"# asked\n{ADDRESS}\n", "list.txt")
    with pytest.raises(UserError, match=r"list\.txt"):
        left()


@pytest.mark.parametrize("name", ["Removal list.txt", "to remove.csv", "folder/not-removed"])
def test_removed_list_with_a_similar_name_is_an_error(name):
    write("Obama", ".removed.txt.swp")
    assert left() == ["Q76", "Q5", "Q7"]
    write("abc12", name)
    with pytest.raises(UserError, match=name):
        left()


@pytest.mark.parametrize("number", [3, 1000])
def test_removed_list_under_another_name_is_an_error_if_long_or_utf16(number):
    body = "".join(f"{digest(str(n))} # \u00e4\r\n" for n in range(number))
    write(body if number > 3 else body.encode("utf-16"), "list.txt")
    with pytest.raises(UserError, match=r"list\.txt"):
        left()


def test_removed_lists_a_derived_dataset_unless_its_inputs_are_listed(capsys):
    make("data/datasets/counterfactuals", rows={"text": [TEXT], "qid": ["Q5"]})
    make("data/datasets/targets", rows={"text": ["x"], "qid": ["Q8"]})
    write(digest(TEXT))
    assert (main(["removed"]), capsys.readouterr().out) == (0, "counterfactuals\n")
    write(f"{digest(TEXT)}\nQ8")
    assert (main(["removed"]), capsys.readouterr().out) == (0, "build@targets\n")


def test_warn_unmatched_names_entries_without_rows(toy, capsys):
    write(f"Q76\nQ760 # a typing error\n{digest(TEXT)}\n{digest('else')}\n")

    def named() -> list[str]:
        warn_unmatched()
        return [line.split()[4] for line in capsys.readouterr().err.splitlines()]

    assert sorted(named()) == sorted(["Q760", digest("else")])
    pl.DataFrame({"qid": ["Q7"], "text": ["y"]}).write_parquet(toy / "en.parquet")
    assert sorted(named()) == sorted(["Q760", digest("else")]), "nothing of it is left"
    write("Q8\n")
    assert named() == ["Q8"]
    assert [r.number for r in private.without([Row("en", {"qid": "Q8"})], removed())] == [1]
    assert named() == [], "a build left it out"
