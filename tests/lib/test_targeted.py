import io
import zipfile

import pytest

from plumbline.builders.datasets.downstream.read import Corpus, read

TERMS = {"language": "en", "licence": "CC0-1.0", "citation": "the project"}
COLUMNS = {"id": "id", "text": "text", "label": "label", "groups": "about"}


def corpus(**changes) -> Corpus:
    return Corpus(
        **({"format": "csv", "parts": {"all": "x.csv"}, "columns": COLUMNS, **TERMS} | changes)
    )


def test_rows_of_one_text_are_one_with_the_groups_of_all():
    body = b"id,text,label,about\n1,tea,a,cooks\n2,milk,a,\n1,tea,a,poets\n1,tea,a,cooks\n"
    first, second = read(corpus(), "all", body)
    assert (first.id, first.groups) == ("1", ("cooks", "poets"))
    assert (second.id, second.groups) == ("2", ())
    with pytest.raises(ValueError, match="line 3: id '1' a second time, with other text"):
        read(corpus(), "all", b"id,text,label,about\n1,tea,a,cooks\n1,tea,b,cooks\n")


@pytest.mark.parametrize(
    ("written", "separator", "groups"),
    [
        ("cooks", "", ("cooks",)),
        ("cooks; poets;", ";", ("cooks", "poets")),
        ("\"['cooks', 'poets']\"", "", ("cooks", "poets")),
        ('"[""cooks""]"', ";", ("cooks",)),
        ("[]", "", ()),
    ],
)
def test_groups_are_read_from_lists_and_from_fields(written, separator, groups):
    body = f"id,text,label,about\n1,tea,a,{written}\n".encode()
    assert read(corpus(group_separator=separator), "all", body)[0].groups == groups


def test_quotes_are_text_where_a_file_does_not_quote():
    body = b'1\tsay "tea\ta\tx\n2\t"milk\ta\tx\n3\trice"\ta\tx\n'
    own = corpus(format="tsv", head=["id", "text", "label", "about"], quoted=False)
    assert [text.text for text in read(own, "all", body)] == ['say "tea', '"milk', 'rice"']
    quoted = own.model_copy(update={"quoted": True})
    assert len(read(quoted, "all", body)) < 3  # what happens to them elsewhere


def test_json_lines_have_lists_and_splits_of_their_own():
    body = (
        b'{"id": 1, "text": "tea \\u2028 x", "label": true, "about": ["cooks"], "fold": "dev"}\n'
        b'{"id": 2, "text": "milk", "label": null, "about": null, "fold": "test"}'
    )
    own = corpus(format="jsonl", columns=COLUMNS | {"split": "fold"}, splits={"dev": "validation"})
    first, second = read(own, "all", body)
    assert (first.text, first.label, first.groups, first.split) == (
        "tea x",
        "True",
        ("cooks",),
        "validation",
    )
    assert (second.label, second.groups, second.split) == ("", (), "test")


def test_a_member_of_an_archive_is_read_and_a_damaged_one_told():
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("in/a.csv", "id,text,label,about\n1,tea,a,\n")
    own = corpus(parts={"all": "https://x.org/y/texts.zip#in/a.csv"})
    assert own.path("hate-x", "all") == "hate-x/texts.zip"
    assert len(read(own, "all", packed.getvalue())) == 1
    with pytest.raises(ValueError, match="not a whole zip archive"):
        read(own, "all", packed.getvalue()[:40])
    lost = corpus(parts={"all": "texts.zip#b.csv"})
    with pytest.raises(ValueError, match=r"no 'b.csv' in the archive"):
        read(lost, "all", packed.getvalue())


@pytest.mark.parametrize(
    ("changes", "body", "wrong"),
    [
        ({}, "id,text\n", "line 1: no column about, label"),
        ({}, "id,text,label,about\n1,tea\n", "line 2: 2 fields, not 4"),
        ({}, 'id,text,label,about\n1,"tea,a,\n', "line 2: unexpected end of data"),
        ({}, "id,text,label,about\n", "all: no text in it"),
        ({}, "id,text,label,about\n1,é,a,\n", "all: not UTF-8"),
        ({}, "<html>", "a web page in place of the file"),
        ({}, "id,text,label,about\n1,tea,a,[x\n", "line 2: groups: '\\[x' is not a list"),
        ({"format": "jsonl"}, '{"id": 1}\n', "line 1: no object with a text 'text'"),
        ({"format": "jsonl"}, "[1\n", "line 1: not JSON"),
        (
            {"columns": COLUMNS | {"split": "about"}},
            "id,text,label,about\n1,tea,a,dev\n",
            "split 'dev' is none of train, validation, test",
        ),
    ],
)
def test_a_file_that_is_none_is_refused_with_the_line(changes, body, wrong):
    with pytest.raises(ValueError, match=wrong):
        read(corpus(**changes), "all", body.encode("latin-1"))


@pytest.mark.parametrize(
    ("changes", "wrong"),
    [
        ({"columns": {"text": "t"}}, "those of text and label"),
        ({"parts": {"all": "x", "test": "y"}}, "a file of all splits stands alone"),
        ({"parts": {"test": "y"}, "columns": COLUMNS | {"split": "s"}}, "split is for a file of"),
        ({"head": ["id", "text"]}, "head: has no column about, label"),
        ({"parts": {"dev": "y"}}, "Input should be 'train'"),
    ],
)
def test_a_corpus_that_cannot_be_read_is_refused_before_it_is_fetched(changes, wrong):
    with pytest.raises(ValueError, match=wrong):
        corpus(**changes)
