"""Text files as spreadsheets, editors and other systems save them, through the readers."""

from __future__ import annotations

import building
import pytest

from plumbline.builders.core.errors import UserError
from plumbline.builders.datasets.lexica import build as lexica
from plumbline.builders.datasets.lexica.formats import View
from plumbline.builders.datasets.social_groups.read import Group, queries
from plumbline.builders.datasets.words import build as words
from plumbline.builders.readers.name_lists import List, entries
from plumbline.builders.readers.spelling import decimal, lowered, straight, whole
from plumbline.builders.readers.table import decoded, parsed, records
from plumbline.probes.politicians.lexicon_evaluation import words as split_words

TERMS = {"licence": "CC0-1.0", "citation": "test"}
HEAD = "country,kind,rank,name,count\n"
NAMES = List(name="x", address="x", columns={n: n for n in HEAD.strip().split(",")}, **TERMS)
VIEW = {"format": "table", "delimiter": ",", "scale": "binary"}
VIEW |= {"labels": {"positive": 1, "negative": -1}}
TABLE = 'a;b\n1;"x;y"\n2;z\n'
TABS = TABLE.replace(";", "\t").replace("x\t", "x;")


def lexicon(tmp_path, files: dict[str, str], language: str = "en", **view):
    declared = {"name": "v", "files": {key: f"x/{key}" for key in files}, **TERMS, **view}
    bodies = {f"{language}/v/{key}": text for key, text in files.items()}
    snapshot = building.snapshot(tmp_path / "snapshot", "lexica", bodies)
    read, refused = lexica.read(snapshot, View(**declared), language)
    return read.values, dict(refused), {k: v for k, v in read.refused.items() if v}


@pytest.mark.parametrize(
    "body",
    [
        TABLE.encode(),
        TABLE.replace("\n", "\r\n").encode("utf-8-sig"),
        TABLE.replace("\n", "\r").encode(),
        f"sep=;\n{TABLE}".encode(),
        b'\n a ;b;\n1;"x;y";\n;;\n2;z;\n\n',
        TABS.encode("utf-16"),
        TABS.encode("utf-32"),
        b'a|b\n1|x;y\n\n2|"z"\n\n',
        b'"a","b"\n1,x;y\n2,z\n',
    ],
)
def test_records_of_one_table_in_any_dialect(body):
    rows = [row for _, row in records(decoded(body), {"a": "a", "b": "b"})]
    assert rows == [{"a": "1", "b": "x;y"}, {"a": "2", "b": "z"}]


def test_records_quotes_and_line_numbers():
    def read(text: str, **more):
        return [(n, row["t"]) for n, row in records(text, {"t": "t", "n": "n"}, **more)]

    assert read('t,n\n"two\nlines",1\nb,2\n') == [(2, "two\nlines"), (4, "b")]
    # if all lines have equally many tabs, each is a row, and the quotes of a text are part of it
    body = 't\tn\n"Go" he said\t1\n"And then\t2\n"all"\t3\nend"\t4\n'
    wanted = enumerate(['"Go" he said', '"And then', "all", 'end"'], start=2)
    assert read(body, delimiter="\t") == list(wanted)
    for text, line in (
        ('t,n\na,1\n"b,2\nc,3\n', 3),
        ('t,n\n"a,1\n"b,2\n', 2),
        ("t,n,t\na,1,b\n", 1),
    ):
        with pytest.raises(ValueError, match=f"line {line}"):
            read(text)
    for text in ('"Jo\nde,male,2,Al",5\n', '"Jo,5\nde,male,2,Al,5\n'):
        with pytest.raises(ValueError, match="line 2"):
            entries(NAMES, f"{HEAD}de,male,1,{text}".encode())
    with pytest.raises(ValueError, match="line 2"):
        decoded("a\nnaïve\n".encode("cp1252"))
    with pytest.raises(ValueError, match="'b'"):
        parsed('\ufeff{"a": {"b": 1, "b": 2}}', unique=True)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lines_end_only_at_line_breaks(tmp_path, end):
    token = "1\tx\u2028y\tgood\tADJ\t_\t_\t0\troot\t_\t_\n\n"
    assert list(words.words(token.replace("\n", end).encode())) == [("x\u2028y", "good", "ADJ", "")]
    positive = "; head\n;;;;\n\ngood\nwell\u2028done\n;)\n;-)\n;D\n#1\n"
    files = {"positive": positive.replace("\n", end), "negative": f"bad{end}"}
    values, refused, _ = lexicon(tmp_path, files, **VIEW | {"format": "list"})
    assert (set(values), refused) == ({"good", "well done", ";)", ";-)", ";d", "#1", "bad"}, {})


def test_lexicon_refuses_open_quotes_and_lists_each_lost_line(tmp_path):
    for text in ('a,negative\n"b,positive\nc,positive\n', 'a,negative\n"b,\nc",positive\n'):
        with pytest.raises(UserError, match="line 2"):
            lexicon(tmp_path, {"f": text}, **VIEW)
    text = "good,positive\nodd\nbad,negative\ngood,positive\nlong,none\n"
    _, _, places = lexicon(tmp_path, {"f": text}, **VIEW)
    assert sorted(places.values()) == [["f, line 2"], ["f, line 4"], ["f, line 5"]]
    signs = (("positive", 1), ("negative", 0), ("positive", 0), ("negative", 1), ("positive", 1))
    text = "".join(f"bank\t{sign}\t{value}\n" for sign, value in signs)
    values, _, places = lexicon(tmp_path, {"f": text}, format="emolex", scale="pairs")
    assert (values, [*places.values()]) == ({"bank": (0.5, 0.5)}, [["f, line 5"], ["f, line 4"]])


def test_numbers_as_people_write_them(tmp_path):
    written = {"3,5": 3.5, "−2": -2, "1.234,5": 1234.5, "1,234.5": 1234.5, "12,34,567": 1234567}
    written |= {"0,125": 0.125, "1e-3": 0.001, " 7\u00a0": 7, "-0,5": -0.5, "1\u202f234": 1234}
    assert {text: decimal(text) for text in written} == written
    for text in ("1,234", "1_0", "nan", "inf", "5%", "5²", "1,2,3", "1e999", ""):
        assert decimal(text) is None
    view = {"format": "table", "scale": "continuous", "low": -4, "high": 4}
    values, refused, _ = lexicon(tmp_path, {"f": "a\t3,5\nb\t−2\nc\t1,234\nd\tNaN\n"}, **view)
    assert (values, refused) == ({"a": (0.875,), "b": (-0.5,)}, {"not a number": 2})
    assert {whole(t) for t in ("1234", "1,234", "1234.0", "1 234", "1'234", "1.234e3")} == {1234}
    for count, number in (('"1,234"', 1234), ("", None), ("n/a", None), ("0", None)):
        (entry,) = entries(NAMES, f"{HEAD}de,male,1.0,Jo,{count}\n".encode())
        assert (entry.rank, entry.number) == (1, number)


@pytest.mark.parametrize("count", ["1234.5", "-3", "1.234", "<5", '"5'])
def test_names_refuse_odd_counts_and_open_quotes(count):
    with pytest.raises(ValueError, match="line 3"):
        entries(NAMES, f"{HEAD}de,male,1,Jo,5\nde,male,2,Al,{count}\n".encode())
    body = f"{HEAD}de,male,1,Jo,5\nde,other,many,Kim,6\n".encode()
    assert [(e.kind, e.position) for e in entries(NAMES, body)][1] == (None, "line 3")


def test_apostrophes_and_capitals(tmp_path):
    assert straight("isn’t isn´t O‘Neil c＇est ‘so") == "isn't isn't O'Neil c'est ‘so"
    assert [lowered("I IŞIK İYİ I\u0307Z", code) for code in ("az-latn", "")] == [
        *("ı ışık iyi iz", "i işik iyi iz")
    ]
    assert split_words("It isn’t GOOD", "en") == ["it", "isn't", "good"]
    assert words.normalise("Işık", "ışık", "tr") == ("ışık", "ışık")
    assert words.normalise("İstanbul", "İstanbul", "tr") == ("İstanbul", "İstanbul")
    group = Group("country", "Iraklılar", "Iraklılar", "country")
    assert list(queries([group], {"country": ["{group}"]}, "paper", "tr")) == ["ıraklılar"]
    files = {"f": "Isn’t\t1\nisn't\t0\nIŞIK\t1\n"}
    values, _, _ = lexicon(tmp_path, files, format="table", scale="continuous")
    assert values == {"isn't": (0.5,), "işik": (1,)}
    values, _, _ = lexicon(tmp_path / "tr", files, "tr", format="table", scale="continuous")
    assert values == {"ısn't": (1,), "isn't": (0,), "ışık": (1,)}
