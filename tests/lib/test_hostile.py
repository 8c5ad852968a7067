"""Files that somebody made to do harm, or that were found to: one sentence about each, no more."""

import gzip
import io
import json
import zipfile

import fuzzing
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fuzzing import READERS, check, fuzz

from plumbline.builders.core import limits, params
from plumbline.builders.core.errors import UserError
from plumbline.builders.datasets.corpora.reddit_dump import lines
from plumbline.builders.readers import archives

DEEP, WIDE = b"[" * 200_000, b'"' + b"x" * 200_000 + b'"'
REFUSED = [  # reader, what it is given, what it says
    ("table", READERS["table"][1] + WIDE + b"\t" * 4 + b"\n", "field larger than field limit"),
    ("respondents", b"respondent,gender,infected,q\n" + WIDE + b",no,yes,1\n", "field larger"),
    ("groups", b"category,group,name,kind\n" + WIDE + b",a,b,people\n", "line 2: field larger"),
    ("mentions", b"language,qid,mentions\n" + WIDE + b",Q1,1\n", "field larger"),
    ("lexicon-csv", b"word,value\n" + WIDE + b",1\n", "field larger"),
    ("lexicon-forms", WIDE + b"," + WIDE, "field larger"),
    ("lexicon-published", b"w,positive,negative,neutral\n" + WIDE + b",1,1,1\n", "field larger"),
    ("targets-tsv", b"t\tl\n" + b"x" * 200_000 + b"\ty\n", "field larger"),
    ("sparql", DEEP, "nested more than 100 deep"),
    ("sparql", b'{"results": {"bindings": [1]}}', "not a SPARQL SELECT result"),
    ("sparql", b'{"results": {"bindings": [{"item": {"value": 1}}]}}', "not a SPARQL"),
    ("sparql", b'{"results": {"bindings": [{}]}}', "a row without an item"),
    ("engine-firefox", DEEP, "not whole JSON"),
    ("engine-phrases", b"[" * 101 + b"]" * 101, "not whole JSON"),
    ("lexicon-emolex-json", DEEP, "nested more than 100 deep"),
    ("downstream-jsonl", b'{"t": ' + DEEP + b"\n", "line 1: not JSON"),
    ("articles-jsonl", DEEP + b"\n", "line 1: not JSON"),
    ("names-flat", DEEP, "not JSON"),
    ("statements-compass", DEEP, "not JSON"),
    ("downstream-csv", b't,l,g,s\na,b,"[{[]:1}]",\n', "is not a list"),
    ("downstream-csv", b"t,l,g,s\na,b,[" + b"(" * 5000 + b",\n", "is not a list"),
    ("conllu", READERS["conllu"][1].replace(b"honest", b"hon\0st", 1), "a NUL character"),
    ("conllu", b"1\ta\n" * 10_001 + b"\n", "more than 10,000 in a sentence"),
    ("lexicon-table", b"good\0\t1\n", "a NUL character in line 1"),
    ("emotions", READERS["emotions"][1].replace(b"good", b"g\0od", 1), "a NUL character"),
    ("synsets", b"? {a: b}\n: c\n", "not YAML"),
    ("synsets", b"a: 2000-02-30\n", "day is out of range"),
    ("labelled-parquet", READERS["labelled-parquet"][1][:-9] + b"\0" * 9, "not a whole parquet"),
]


@pytest.mark.parametrize(("name", "body", "told"), REFUSED)
def test_what_cannot_be_read_is_told_in_a_sentence(name, body, told):
    with pytest.raises(ValueError, match=told) as caught:
        list(READERS[name][0](body))
    assert len(str(caught.value)) < 10_000


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("lexicon-senticnet", b"senticnet['a'] = [{[]: 1}]\n"),
        ("lexicon-senticnet", b"senticnet['a'] = " + b"(" * 5000 + b"\n"),
        ("lexicon-senticnet", b"senticnet['a'] = [0, 0, 0, 0, 0, 0, " + b"9" * 400 + b"]\n"),
        ("lexicon-senticnet", b"senticnet['a'] = [0, 0, 0, 0, 0, 0, " + b"9" * 5000 + b"]\n"),
    ],
)
def test_a_line_that_is_no_entry_is_refused_alone(name, body):
    good = READERS[name][1]
    assert len(list(READERS[name][0](body + good))) == 2


def test_lines_may_end_as_on_old_machines():
    (found,) = READERS["groups"][0](b"category,group,name,kind\ra,b,c,people\r\n")
    assert found.name == "c"


HALF = json.dumps({"t": "so \ud83d it is \ud83d\ude00", "l": "positive", "g": ["\ude00"]}).encode()


@pytest.mark.parametrize("name", ["articles-jsonl", "downstream-jsonl"])
def test_half_of_a_surrogate_pair_is_replaced_and_a_whole_one_is_a_character(name):
    (row,) = READERS[name][0](HALF + b"\n")
    assert (row["t"] if isinstance(row, dict) else row.text) == "so \ufffd it is \U0001f600"


def test_a_backslash_that_is_itself_escaped_is_no_surrogate():
    assert limits.parsed(rb'["\\ud83d"]') == [r"\ud83d"]


def test_groups_written_as_in_python_hold_no_half_of_a_pair():
    (row,) = READERS["downstream-csv"][0](b"t,l,g,s\na,b,\"['\\ud83d']\",\n")
    assert row.groups == ("\ufffd",)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a:\n  born_to: 2000-02-30\n", r"line 2: not valid YAML \('2000-02-30': day is out of"),
        ("n: 0b_\n", r"line 1: not valid YAML \('0b_'"),
        ("t: !!timestamp x\n", "line 1: not valid YAML"),
        ("a: " + "[" * 5000, "not valid YAML"),
    ],
)
def test_params_that_are_no_values_are_told_with_their_line(tmp_path, text, told):
    path = tmp_path / "params.yaml"
    path.write_text(text)
    with pytest.raises(UserError, match=told):
        params.parse(path)


def test_a_member_of_an_archive_is_unpacked_to_a_limit_whatever_its_head_says():
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.txt", bytes(limits.READ + 1))
    packed = out.getvalue().replace((limits.READ + 1).to_bytes(4, "little"), b"\1\0\0\0")
    for body in (out.getvalue(), packed):
        with pytest.raises(ValueError, match=r"larger than 64 MB, unpacked|damaged"):
            archives.unpacked(body, "a.txt")


def test_a_gzip_bomb_and_half_a_gzip_are_refused():
    with pytest.raises(ValueError, match="larger than 64 MB"):
        limits.unzipped(gzip.compress(bytes(limits.READ + 1)))
    with pytest.raises(ValueError, match="not a whole gzip file"):
        limits.unzipped(gzip.compress(bytes(1000))[:-9])


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_a_line_without_end_is_refused(tmp_path, ending):
    (tmp_path / "a").write_bytes(b"x" * (limits.LINE + 2) + b"\n")
    with pytest.raises(ValueError, match="longer than 16 MB"):
        list(archives.records(tmp_path / "a", ending, {"x": "x"}))


def test_a_dump_that_unpacks_to_one_endless_line_is_refused(tmp_path):
    import zstandard

    (tmp_path / "a").write_bytes(zstandard.compress(b"x" * (limits.LINE + 2)))
    with pytest.raises(ValueError, match="a line of more than 16 MB"):
        list(lines(tmp_path / "a"))


def test_parquet_of_other_types_is_read_as_text():
    out = io.BytesIO()
    pq.write_table(pa.table({"t": ["a", None], "l": [True, False]}), out)
    corpus = fuzzing.tables().model_copy(update={"format": "parquet"})
    found = list(corpus.read("testing", out.getvalue()))
    assert found == [("a", "true", 1), ("", "false", 2)]


@pytest.mark.parametrize("name", READERS)
def test_a_whole_file_is_read_and_a_damaged_one_never_ends_otherwise_than_told(name):
    assert list(READERS[name][0](READERS[name][1]))
    assert fuzz(name, 100, fixed=True) >= 90


def test_the_fuzzer_sees_what_it_looks_for(monkeypatch):
    def faulty(body):
        return [body.decode("utf-8", "surrogateescape")]

    monkeypatch.setitem(READERS, "faulty", (faulty, b"good"))
    with pytest.raises(AssertionError, match=r"surrogate|sentence"):
        fuzz("faulty", 2000, fixed=True)
    monkeypatch.setitem(READERS, "faulty", (lambda body: 1 / (b"\0" not in body), b"good"))
    with pytest.raises(ZeroDivisionError):
        check("faulty", b"\0")
