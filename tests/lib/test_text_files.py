"""Text files as spreadsheets, editors and other systems save them, through the readers."""

from __future__ import annotations

import building
import pytest

from plumbline.builders.datasets.downstream import read as downstream
from plumbline.builders.datasets.lexica import build as lexica
from plumbline.builders.datasets.lexica.formats import View
from plumbline.builders.datasets.social_groups.read import groups
from plumbline.builders.datasets.words import build as words
from plumbline.builders.readers.name_lists import List, entries
from plumbline.builders.readers.spelling import decimal, lowered, straight, whole
from plumbline.builders.readers.table import decoded, parsed, records

TERMS = {"licence": "CC0-1.0", "citation": "test"}
SIGNS = {"positive": 1, "negative": -1}
COLUMNS = ("country", "kind", "rank", "name", "count")
NAMES = List(name="x", address="x", columns={name: name for name in COLUMNS}, **TERMS)
TEXTS = downstream.Corpus(
    language="en",
    format="tsv",
    parts={"all": "x"},
    columns={"text": "text", "label": "label"},
    **TERMS,
)


def lexicon(tmp_path, files: dict[str, str], language: str = "en", **view):
    declared = {"name": "v", "files": {key: f"x/{key}" for key in files}, **TERMS, **view}
    bodies = {f"{language}/v/{key}": text for key, text in files.items()}
    snapshot = building.snapshot(tmp_path / "snapshot", "lexica", bodies)
    read, refused = lexica.read(snapshot, View(**declared), language)
    return read, dict(refused)


def named(rows: str) -> list[tuple]:
    body = f"{','.join(COLUMNS)}\n{rows}".encode()
    return [(e.name, e.number) for e in entries(NAMES, body) if e.kind]


TABLE = 'a;b\n1;"x;y"\n2;z\n'
ROWS = [{"a": "1", "b": "x;y"}, {"a": "2", "b": "z"}]


@pytest.mark.parametrize(
    "body",
    [
        TABLE.encode(),
        TABLE.replace("\n", "\r\n").encode("utf-8-sig"),
        TABLE.replace("\n", "\r").encode(),
        f"sep=;\n{TABLE}".encode(),
        TABLE.replace("a;b", "c;b")
        .replace("c;b", " a ;b;")
        .replace("\n2;z", ";\n;;\n2;z;")
        .encode(),
        'a\tb\n1\t"x;y"\n2\tz\n'.encode("utf-16"),
        'a\tb\n1\t"x;y"\n2\tz\n'.encode("utf-32"),
        b'a|b\n1|x;y\n\n2|"z"\n\n',
        b'"a","b"\n1,x;y\n2,z\n',
    ],
)
def test_records_of_one_table_in_any_dialect(body):
    assert [row for _, row in records(decoded(body), {"a": "a", "b": "b"})] == ROWS


def test_records_number_lines_and_know_quotes():
    columns = {"t": "t", "n": "n"}
    read = lambda text, **kw: list(records(text, columns, **kw))  # noqa: E731
    assert read('t,n\n"two\nlines",1\nb,2\n') == [
        (2, {"t": "two\nlines", "n": "1"}),
        (4, {"t": "b", "n": "2"}),
    ]
    # with tabs, each line is a row if all have equally many: the quotes of a text are part of it
    body = 't\tn\n"Go" he said\t1\n"And then\t2\n"whole"\t3\nend"\t4\n'
    assert [row["t"] for _, row in read(body, delimiter="\t")] == [
        '"Go" he said',
        '"And then',
        "whole",
        'end"',
    ]
    assert [
        t.text
        for t in downstream.read(
            TEXTS, "all", body.replace("\tn", "\tlabel").replace("t\t", "text\t", 1).encode()
        )
    ][1] == '"And then'
    for text, line in (('t,n\na,1\n"b,2\nc,3\n', 3), ('t,n\n"a,1\n"b,2\n', 2)):
        with pytest.raises(ValueError, match=f"line {line}"):
            read(text)
    with pytest.raises(ValueError, match="line 2"):
        read('t,n\n"a,1\nb",2\n', multiline=False)
    with pytest.raises(ValueError, match=r"line 1.* t"):
        read("t,n,t\n1,2,3\n")


def test_decoded_and_parsed_name_the_place_of_a_fault():
    with pytest.raises(ValueError, match="line 2"):
        decoded("a\nnaïve\n".encode("cp1252"))
    assert decoded("naïve\n".encode("cp1252"), "cp1252") == "naïve\n"
    assert parsed('\ufeff{"a": {"b": 1}}', unique=True) == {"a": {"b": 1}}
    with pytest.raises(ValueError, match="'b'"):
        parsed('{"a": {"b": 1, "b": 2}}', unique=True)
    with pytest.raises(ValueError, match="line 2"):
        groups(b'category,group,name,kind\nage,"kids,kids,people\nage,teens,teens",people\n')


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lines_end_only_at_line_breaks(tmp_path, end):
    token = "1\tx\u2028y\tgood\tADJ\t_\t_\t0\troot\t_\t_\n\n"
    assert list(words.words(token.replace("\n", end).encode())) == [("x\u2028y", "good", "ADJ")]
    files = {
        "positive": "; head\n;;;;\n\ngood\nwell\u2028done\n;)\n;-)\n;D\n#1\n",
        "negative": "bad\n",
    }
    files = {key: text.replace("\n", end) for key, text in files.items()}
    read, refused = lexicon(tmp_path, files, format="list", scale="binary", labels=SIGNS)
    wanted = {"good", "well done", ";)", ";-)", ";d", "#1", "bad"}
    assert (set(read.values), refused) == (wanted, {})


def test_lexicon_refuses_open_quotes_and_lists_each_lost_line(tmp_path):
    view = {"format": "table", "delimiter": ",", "scale": "binary", "labels": SIGNS}
    for text in ('bad,negative\n"so,positive\nnice,positive\n', 'a,negative\n"b,\nc",positive\n'):
        with pytest.raises(Exception, match="line 2"):
            lexicon(tmp_path, {"f": text}, **view)
    text = "good,positive\nodd\nbad,negative\ngood,positive\nlong,none\n"
    read, refused = lexicon(tmp_path, {"f": text}, **view)
    assert sum(refused.values()) == 3
    assert {place for places in read.refused.values() for place in places} == {
        f"f, line {n}" for n in (2, 4, 5)
    }


def test_emolex_repeated_word_is_averaged_and_counted(tmp_path):
    signs = (("positive", 1), ("negative", 0), ("positive", 0), ("negative", 1), ("positive", 1))
    text = "".join(f"bank\t{sign}\t{value}\n" for sign, value in signs)
    read, _ = lexicon(tmp_path, {"f": text}, format="emolex", scale="pairs")
    assert read.values == {"bank": (0.5, 0.5)}
    assert {k: v for k, v in read.refused.items() if v} == {
        "repeated in its view, merged into one row": ["f, line 4"],
        "only one of positive and negative": ["f, line 5"],
    }


def test_numbers_as_people_write_them(tmp_path):
    written = {"3,5": 3.5, "−2": -2, "1.234,5": 1234.5, "1,234.5": 1234.5, "12,34,567": 1234567}
    written |= {"0,125": 0.125, "1,5e0": None, "1,234": None, "1_0": None, "nan": None, "inf": None}
    written |= {"5%": None, "5²": None, "1e-3": 0.001, " 7\u00a0": 7, "1,2,3": None, "-0,5": -0.5}
    for text, value in written.items():
        if value is None:
            with pytest.raises(ValueError):
                decimal(text)
        else:
            assert decimal(text) == value
    view = {"format": "table", "scale": "continuous", "low": -4, "high": 4}
    read, refused = lexicon(tmp_path, {"f": "a\t3,5\nb\t−2\nc\t1,234\nd\tNaN\n"}, **view)
    assert (read.values, refused) == ({"a": (0.875,), "b": (-0.5,)}, {"not a number": 2})
    counts = {"1234": 1234, '"1,234"': 1234, "1234.0": 1234, "1 234": 1234, "1'234": 1234}
    for text, count in (counts | {"1.234.567": 1234567, "": None, "n/a": None, "0": None}).items():
        assert named(f"de,male,1.0,Hans,{text}\n") == [("Hans", count)]
    for text in ("1234.5", "-3", "1.234", "<5", "some"):
        with pytest.raises(ValueError, match=f"line 3.*{text}"):
            named(f"de,male,1,Hans,5\nde,male,2,Jo,{text}\n")
    assert whole("1e3") == 1000


def test_names_open_quote_and_undeclared_kind():
    for rows in ('de,male,1,"Jo,5\nde,male,2,Uwe,6\n', 'de,male,1,"Jo,5\nde,male,2,Uwe",6\n'):
        with pytest.raises(ValueError, match="line 2"):
            named(rows)
    body = f"{','.join(COLUMNS)}\nde,male,1,Jo,5\nde,other,many,Kim,6\n".encode()
    assert [(e.kind, e.position) for e in entries(NAMES, body)][1] == (None, "line 3")


def test_apostrophes_and_capitals(tmp_path):
    assert [straight(t) for t in ("isn’t", "isn´t", "O‘Neil", "‘so’", "c＇est")] == [
        *("isn't", "isn't", "O'Neil", "‘so'", "c'est")
    ]
    assert [lowered("I IŞIK İYİ I\u0307Z", code) for code in ("tr", "az-latn", "en", "")] == [
        *["ı ışık iyi iz"] * 2,
        *["i işik iyi iz"] * 2,
    ]
    assert words.normalise("Işık", "ışık", "tr") == ("ışık", "ışık")
    assert words.normalise("İstanbul", "İstanbul", "tr") == ("İstanbul", "İstanbul")
    assert words.normalise("İyi", "_", "tr") == ("iyi", "iyi")
    files = {"f": "Isn’t\t1\nisn't\t0\nIŞIK\t1\n"}
    read, _ = lexicon(tmp_path, files, "tr", format="table", scale="continuous")
    assert read.values == {"ısn't": (1,), "isn't": (0,), "ışık": (1,)}
