"""Every reader of files of others, and bytes to read: whole ones, damaged by what Hypothesis draws.

    python tests/fuzzing.py [--runs 100000] [READER ...]

A reader may refuse a file, with a ValueError or a UserError, or give texts that can be written as
UTF-8. Everything else is a fault. What was found so is kept in ``tests/lib/test_hostile.py``.
"""

from __future__ import annotations

import argparse
import gzip
import io
import json
import tempfile
import time
import zipfile
from collections import Counter
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import zstandard
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from plumbline.builders.core import limits, params
from plumbline.builders.core.errors import UserError
from plumbline.builders.datasets.corpora import reddit_dump
from plumbline.builders.datasets.downstream import read as downstream
from plumbline.builders.datasets.emotions.build import AFFECTS, lexicon
from plumbline.builders.datasets.labelled_texts import build as labelled
from plumbline.builders.datasets.lexica import formats, published
from plumbline.builders.datasets.politicians.build import mentions, names
from plumbline.builders.datasets.social_groups.read import groups
from plumbline.builders.datasets.statements import formats as statements
from plumbline.builders.datasets.stereotypes import choenni2021, engines
from plumbline.builders.datasets.supersenses.build import ADJECTIVES, adjectives, synsets
from plumbline.builders.datasets.survey.responses import respondents
from plumbline.builders.datasets.targets import build as targets
from plumbline.builders.datasets.words.conllu import words
from plumbline.builders.readers import archives, name_lists, sparql_json, tweeteval

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    Reader = Callable[[bytes], Iterable[Any]]

TOP = Path(__file__).parents[1]
CHANGE, CHANGES = 6, 8  # bytes that say one, and how many are drawn at once
APART = b"\x1e"  # between files that are read together
TERMS = {"licence": "CC0-1.0", "citation": "nobody"}
ODD = (  # what has stopped readers somewhere
    *(b"\0", b"\r", b"\r\n", b"\n\n", b'"', b"'", b"\\", b"\t", b",", b";", b"#", b"[", b"{", b"}"),
    *(b"]", b":", b"-1", b"nan", b"1e999", b"\xef\xbb\xbf", b"\xff\xfe", b"\xed\xa0\xbd", b"null"),
    *(b"\\ud83d", b"\\ude00", b"\xf0\x9f\x98\x80", b"<html>", b"9" * 30, b"9" * 5000, b"true"),
    *(b"\xc2\x85", b"\xe2\x80\xa8", b"\xd9\xa3", b"2000-02-30", b"!!python/object:os.system"),
    *(b"[" * 2000, b'{"a":' * 2000, b"(" * 300, b"x" * 140_000, b"&a [*a, *a]", b"&#xD800;"),
    *(b"[{[]:1}]", b"? {a: b}\n: c\n", b"0b_", b"0x_", b"\x1f\x8b", b"# global.columns = id\n"),
)


def view(form: str, scale: str = "binary", **more: Any) -> formats.View:
    labels = {"positive": 1, "negative": -1} if scale == "binary" else {}
    own = {"name": "v", "files": {"positive": "https://x/y"}, "format": form, "scale": scale}
    return formats.View(**own, labels=labels, **TERMS, **more)


def lexical(of: formats.View) -> Reader:
    return lambda body: formats.entries(of, {"https://x/y": body})


def on_disk(reader: Callable[[Path], Iterable[Any]]) -> Reader:
    def read(body: bytes) -> Iterable[Any]:
        FILE.write_bytes(body)
        return reader(FILE)

    return read


def corpus(**more: Any) -> downstream.Corpus:
    own = {"language": "en", "parts": {"all": "x"}, "columns": {"text": "t", "label": "l"}}
    own["columns"] |= {"groups": "g", "split": "s"}
    return downstream.Corpus(**(own | TERMS | more))


def listed(form: str, **more: Any) -> Reader:
    return partial(
        name_lists.entries, name_lists.List(name="l", address="x", format=form, **TERMS, **more)
    )


def tables() -> labelled.Corpus:
    part = {"texts": "x"}
    return labelled.Corpus(
        name="c", format="csv", testing=part, columns={"text": "t", "label": "l"}, **TERMS
    )


def zipped(**members: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, body in members.items():
            archive.writestr(name.replace("_", "."), body)
    return out.getvalue()


def parquet() -> bytes:
    out = io.BytesIO()
    pq.write_table(pa.table({"t": ["one", "two", None], "l": ["a", "b", "c"]}), out)
    return out.getvalue()


def sample(path: str, most: int = 3000) -> bytes:
    body = (TOP / "data/samples" / path).read_bytes()
    return body if len(body) <= most else body[: body.rindex(b"\n", 0, most) + 1]


def answered(form: str) -> Reader:
    return lambda body: engines.read(form, body.decode(engines.encoding(body, "text/json")), "why")


RECORD = {
    "id": "a1",
    "subreddit": "here",
    "author": "x",
    "created_utc": 1,
    "title": "T",
    "selftext": "u/abc \ud83d",
}
COMMUNITIES = {"here": "here"}
DUMP = json.dumps(RECORD).encode() + b"\n"
MOVES = {"economic": [-83, -9, 9, 77], "social": [-242, -9, 9, 148]}
PROPOSITIONS = [
    {"id": number, "text": f"It is {number}."}
    | {a: MOVES[a] if number == 1 else [0] * 4 for a in MOVES}
    for number in range(1, 63)
]
EFFECT = {"econ": 1, "dipl": 0, "govt": 0, "scty": -5}
QUESTIONS = [{"question": f"It is {number}.", "effect": EFFECT} for number in range(70)]
RESULT = {
    "results": {
        "bindings": [{"item": {"type": "uri", "value": "http://www.wikidata.org/entity/Q1"}}]
    }
}
EMOTION = "".join(f"good\t{affect}\t1\n" for affect in AFFECTS).encode()
CHOSEN = next(iter(ADJECTIVES))
SHARE = {name: float(name == CHOSEN) for name in ADJECTIVES}
LISTS = b"name,rank,kind,country\nAnna,1,female,Germany\n"
LAST = ("params", "communities")  # nobody makes a UserError of what they raise
MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
FILE = Path(tempfile.mkdtemp(prefix="fuzzing-", dir=MEMORY)) / "file"
BOTH = {"t": "t", "l": "l"}
TABLE = b"t,l,g,s\nIt is so.,positive,\"['a', 'b']\",train\n\"two\nlines\",negative,,test\n"
LINES = b'{"t": "It is so \\ud83d", "l": "positive", "g": ["a"], "s": "train"}\n'
READERS: dict[str, tuple[Reader, bytes]] = {
    "table": (
        choenni2021.published,
        sample("autocomplete/2026-11-21/published/choenni2021.csv", 600),
    ),
    "groups": (groups, sample("autocomplete/2026-11-21/groups/en.csv", 600)),
    "respondents": (
        respondents,
        b"respondent,gender,infected,q1,q2\nr1,female,no,1,5\nr2,male,yes,,3\n",
    ),
    "mentions": (mentions, b"language,qid,mentions\nen,Q1,5\n"),
    "names-to-keep": (names, b"language,name,gender\nen,Anna,female\n"),
    "names-to-keep-nested": (
        names,
        b'{"columns": ["lang", "name", "sex"], "data": [["en", "Anna", "f"]], "en": {"m": ["Bo"]}}',
    ),
    "conllu": (words, sample("ud/2026-11-21/en/en_sample-ud-test.conllu", 1500) + b"\n"),
    "sparql": (
        lambda body: list(sparql_json.by_item(sparql_json.bindings(body))),
        json.dumps(RESULT).encode(),
    ),
    "engine-firefox": (answered("firefox"), b'["why", ["why not", "why so"]]'),
    "engine-chrome": (
        answered("chrome"),
        b'["why", ["why not"], {"google:suggesttype": ["Q"], "google:suggestrelevance": [600]}]',
    ),
    "engine-gossip": (
        answered("gossip"),
        b'{"gossip": {"qry": "why", "results": [{"key": "why not"}]}}',
    ),
    "engine-phrases": (answered("phrases"), b'[{"phrase": "why not"}]'),
    "lexicon-table": (
        lexical(view("table", "continuous")),
        sample("lexica/2026-11-21/en/degrees/degrees.tsv", 500),
    ),
    "lexicon-csv": (
        lexical(view("table", "continuous", delimiter=",", header=True, value=[1])),
        b"word,value\ngood,1\n",
    ),
    "lexicon-list": (lexical(view("list")), sample("lexica/2026-11-21/en/poles/positive.txt", 300)),
    "lexicon-vader": (
        lexical(view("vader", "counts")),
        b"good\t1.9\t0.5\t[2, 1, 2, 3, 2, 1, 2, 2, 2, 2]\n",
    ),
    "lexicon-mpqa": (
        lexical(view("mpqa")),
        b"type=weaksubj len=1 word1=good pos1=adj stemmed1=n priorpolarity=positive\n",
    ),
    "lexicon-emolex": (lexical(view("emolex", "pairs")), b"good\tpositive\t1\ngood\tnegative\t0\n"),
    "lexicon-emolex-json": (
        lexical(view("emolex-json", "pairs")),
        b'{"good": ["positive", "joy"]}',
    ),
    "lexicon-senticnet": (
        lexical(view("senticnet", "continuous")),
        b"senticnet['good'] = ['0.1', '0', '0.2', '0', '#joy', '#x', 'positive', '0.5', 'a']\n",
    ),
    "lexicon-sentiwordnet": (
        lexical(view("sentiwordnet", "pairs")),
        b"# head\na 00001740 0.125 0 able,capable\n",
    ),
    "lexicon-forms": (lexical(view("forms", "none")), b'beau,"beau,belle,beaux"\n'),
    "lexicon-zip": (
        lambda body: formats.entries(
            view("list").model_copy(update={"files": {"positive": "https://x/y#a.txt"}}),
            {"https://x/y": body},
        ),
        zipped(a_txt=b"good\nfine\n"),
    ),
    "lexicon-published": (
        published.Published(
            lexicon="x", word="w", betas={k: k for k in published.AXES}, **TERMS
        ).read,
        b"w,positive,negative,neutral\ngood,3.5,1.2,1.3\n",
    ),
    "emotions": (lexicon, EMOTION),
    "adjectives": (adjectives, f"kind\t{CHOSEN}\t{json.dumps(SHARE)}\n".encode()),
    "synsets": (
        synsets,
        b"00001740-v:\n  definition:\n  - act\n  members:\n  - act\n  - move\n  partOfSpeech: v\n",
    ),
    "statements-csv": (
        partial(statements.scale, form="csv"),
        b"id,text,axis,weight,reversed,polarity,opposite\ns1,the law is the law,order,1,no,,\n",
    ),
    "statements-compass": (
        partial(statements.scale, form="political-compass"),
        json.dumps({"propositions": PROPOSITIONS}).encode(),
    ),
    "statements-8values": (
        partial(statements.scale, form="8values"),
        b"questions = " + json.dumps(QUESTIONS).encode() + b";",
    ),
    "downstream-csv": (partial(downstream.read, corpus(format="csv"), "all"), TABLE),
    "downstream-jsonl": (partial(downstream.read, corpus(format="jsonl"), "all"), LINES),
    "targets-tsv": (
        partial(
            targets.texts,
            targets.Corpus(
                name="c",
                task="t",
                language="en",
                format="tsv",
                parts={"all": "x"},
                columns={"text": "t", "label": "l"},
                **TERMS,
            ),
            "all",
        ),
        b"t\tl\nIt is so\tpositive\n",
    ),
    "tweeteval": (
        lambda body: tweeteval.tweeteval(*(body.split(APART) + [b""] * 3)[:3]),
        APART.join([b"one &amp; \\u2019\ntwo\n", b"0\n1\n", b"0\tno\n1\tyes\n"]),
    ),
    "labelled-csv": (partial(tables().read, "testing"), b"t,l\nIt is so,positive\n"),
    "labelled-parquet": (
        partial(tables().model_copy(update={"format": "parquet"}).read, "testing"),
        parquet(),
    ),
    "articles-csv": (on_disk(partial(archives.records, kind="csv", columns=BOTH)), TABLE),
    "articles-jsonl": (on_disk(partial(archives.records, kind="jsonl", columns=BOTH)), LINES),
    "articles-zip": (
        on_disk(partial(archives.records, kind="jsons", columns=BOTH)),
        zipped(a_json=LINES, b_json=LINES),
    ),
    "articles-parquet": (
        on_disk(partial(archives.records, kind="parquet", columns=BOTH)),
        parquet(),
    ),
    "names-table": (listed("table"), LISTS),
    "names-nested": (
        listed("nested", kinds={"male": "male", "female": "female"}),
        b'{"Germany": {"male": ["Max"], "female": ["Anna"]}}',
    ),
    "names-by-kind": (
        listed("by-kind"),
        b'{"male": {"Germany": ["Max"]}, "last": {"de": ["Huber"]}}',
    ),
    "names-flat": (listed("flat", country="de"), b'{"male": ["Max"], "last": ["Huber"]}'),
    "reddit-lines": (
        lambda body: reddit_dump.posts(
            iter(body.split(b"\n")), COMMUNITIES, reddit_dump.Bots(), Counter()
        ),
        DUMP * 2,
    ),
    "reddit-dump": (on_disk(reddit_dump.records), zstandard.compress(DUMP * 3)),
    "communities": (
        lambda body: reddit_dump.communities(body, "x"),
        b"community,leaning\nhere,left\n",
    ),
    "gzip": (lambda body: [limits.unzipped(body)], gzip.compress(b"one\ntwo\n")),
    "params": (
        lambda body: [on_disk(params.parse)(body)],
        b"sources:\n  born_to: 2000-02-03\n  list: [a, no, 1.5]\n",
    ),
}


def damaged(body: bytes, drawn: bytes) -> bytes:
    """Change a body as drawn bytes say."""
    for at in range(0, len(drawn), CHANGE):
        what, high, low, size, odd, byte = drawn[at : at + CHANGE]
        place = (high << 8 | low) * (len(body) + 1) >> 16
        end = place + (size if size < 128 else (size - 127) ** 2)
        if what < 100:
            body = body[:place] + ODD[odd % len(ODD)] + body[place + size % 4 :]
        elif what < 150:
            body = body[:place] + bytes([byte]) + body[place + 1 :]
        elif what < 190:
            body = body[:place] + body[end:]
        elif what < 230:
            body = body[:end] + body[place:]
        else:
            body = body[:place]
    return body


def ways(drawn: bytes) -> Iterator[bytes]:
    """Yield each change of some alone, then the first two, three and so on together."""
    yield from (drawn[at : at + CHANGE] for at in range(0, len(drawn), CHANGE))
    yield from (drawn[:end] for end in range(2 * CHANGE, len(drawn) + 1, CHANGE))


def check(name: str, body: bytes) -> None:
    """Read a body, and hold what happens to what may."""
    reader, _ = READERS[name]
    try:
        for found in reader(body):
            repr(found).encode() if name == "params" else _sound(found)
    except (ValueError, UserError) as error:
        if isinstance(error, UnicodeEncodeError) or (
            name in LAST and not isinstance(error, UserError)
        ):
            raise AssertionError(f"not told in a sentence: {error!r}") from error


def _sound(found: Any) -> None:
    if isinstance(found, str):
        found.encode()
    elif isinstance(found, dict):
        for each in found.items():
            _sound(each)
    elif isinstance(found, list | tuple):
        for each in found:
            _sound(each)


def fuzz(name: str, runs: int, *, fixed: bool = False) -> int:
    """Read so many damaged bodies; return how many were read, and raise what is wrong with one."""
    count = 0

    @settings(
        max_examples=-(-runs // (2 * CHANGES - 1)),
        deadline=None,
        database=None,
        derandomize=fixed,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.binary(min_size=CHANGES * CHANGE, max_size=CHANGES * CHANGE))
    def run(drawn: bytes) -> None:
        nonlocal count
        for way in ways(drawn):
            count += 1
            check(name, damaged(READERS[name][1], way))

    run()
    return count


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("readers", nargs="*", metavar="READER", help=f"of {', '.join(READERS)}")
    parser.add_argument("--runs", type=int, default=100_000, help="executions of each")
    given_ = parser.parse_args()
    failed = 0
    for name in given_.readers or READERS:
        begun = time.monotonic()
        try:
            said = f"{fuzz(name, given_.runs):,} executions"
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            failed += 1
            said = f"FAILED: {type(error).__name__}: {' '.join(str(error).split())[:200]}"
            said += f" {getattr(error, '__notes__', '')}"[:300]
        print(f"{name}: {said}, {time.monotonic() - begun:.0f} s", flush=True)
    return bool(failed)


if __name__ == "__main__":
    raise SystemExit(main())
