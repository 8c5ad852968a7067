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
    with pytest.raises(ValueError, match=r"line 3"):
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
