"""The lexica dataset from real lexica beside the checkout, fetched over HTTP by the real client.

    python benchmarks/lexica.py [LANGUAGE ...]

needs ``../shared/data/lexica``, and ``../shared/data/tweets/sentiment`` to evaluate. Works in
``.real-lexica``: snapshot, dataset, card. Prints words, rejects, seconds and peak memory for each
language, where good and bad fall, and how well the English words classify tweets.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import sys
import time
from pathlib import Path
from typing import Any

TOP = Path(__file__).parent.parent
sys.path[:0] = [str(TOP), str(TOP / "tests")]

from samples import DAY, POLITE, files, lexica  # noqa: E402

SHARED = TOP.parent / "shared" / "data"
WORK = TOP / ".real-lexica"
SIGNS = {"positive": 1, "negative": -1}
TABLE = {"format": "table", "scale": "binary"}
UNISENT = TABLE | {"name": "unisent", "labels": {"+1": 1, "-1": -1}, "redistribute": False}
BABEL = {"name": "babelsenticnet", "format": "senticnet", "scale": "continuous"}
LIST = {"format": "list", "scale": "binary", "labels": SIGNS}
# name of the shared file, or of the files by label, and how it is read
VIEWS: dict[str, list[tuple[str | dict[str, str], dict[str, Any]]]] = {
    "ar": [
        (
            "elsahar_all_lex.csv",
            TABLE
            | {"name": "elsahar", "delimiter": ",", "header": True, "labels": {"1": 1, "-1": -1}},
        ),
    ],
    "cs": [],
    "en": [
        (
            "vader_lexicon.zip#vader_lexicon.txt",
            {"name": "vader", "format": "vader", "scale": "counts"},
        ),
        (
            {"positive": "hu_liu_positive.txt", "negative": "hu_liu_negative.txt"},
            LIST | {"name": "hu-liu"},
        ),
        (
            "mpqa_subjclues.tff",
            {
                "name": "mpqa",
                "format": "mpqa",
                "scale": "classes",
                "labels": SIGNS | {"neutral": 0, "both": 0},
            },
        ),
        (
            "nrc_emolex_wordlevel_v0.92.txt",
            {"name": "nrc", "format": "emolex", "scale": "pairs", "redistribute": False},
        ),
        # nrclex_en.json is the same lexicon again, no second opinion
    ],
    "es": [
        ("babelsenticnet_es.py.txt", BABEL),
        ("elhpolar.csv", TABLE | {"name": "elhpolar", "labels": SIGNS}),
        (
            "subjectivity.csv",
            TABLE
            | {
                "name": "subjectivity",
                "delimiter": ",",
                "header": True,
                "value": [2],
                "labels": SIGNS,
            },
        ),
    ],
    "fr": [
        ("babelsenticnet_fr.py.txt", BABEL),
        (
            "tomdesmedt_adjectives.csv",
            {"name": "adjectives", "format": "forms", "scale": "none"},
        ),
    ],
    "hi": [
        ("hswn.txt", {"name": "sentiwordnet", "format": "sentiwordnet", "scale": "pairs"}),
    ],
    "ru": [],
    "zh": [
        ("babelsenticnet_cn.py.txt", BABEL),
        (
            {"positive": "fannix_positive.txt", "negative": "fannix_negative.txt"},
            LIST | {"name": "fannix"},
        ),
    ],
}
# Words that these files have; those of the samples are not all in them.
ANCHORS = {
    "ar": {"positive": ["ممتاز", "رائع", "المحبة"], "negative": ["سيئ", "سيء", "الموت"]},
    "cs": {"positive": ["dobrý", "láska", "radost"], "negative": ["špatný", "smrt", "nenávidět"]},
    "en": {
        "positive": ["good", "excellent", "wonderful"],
        "negative": ["bad", "terrible", "horrible"],
    },
    "es": {"positive": ["bueno", "excelente", "amor"], "negative": ["malo", "terrible", "odio"]},
    "fr": {"positive": ["bon", "joie", "amour"], "negative": ["mauvais", "terrible", "haine"]},
    "hi": {"positive": ["सौभाग्यशाली", "भाग्यवान"], "negative": ["अभागा", "मनहूस"]},
    "ru": {"positive": ["любовь", "радость", "добро"], "negative": ["зло", "ненавидеть", "смерть"]},
    "zh": {"positive": ["优秀", "美好", "快乐"], "negative": ["可怕", "痛苦", "邪恶"]},
}


def params(address: str, languages: list[str]) -> Any:
    """Declare the shared files as views, under the address that serves them."""
    views = {}
    for code in languages:
        chosen = [*VIEWS[code], ("unisent.txt", UNISENT)]
        views[code] = [
            view
            | {
                "files": {
                    key: f"{address}/{code}/{name}"
                    for key, name in (
                        found if isinstance(found, dict) else {"lexicon": found}
                    ).items()
                },
                "licence": "its author's",
                "citation": "its author",
            }
            for found, view in chosen
        ]
    return lexica.Params(views=views)


def main(languages: list[str]) -> int:
    if not (SHARED / "lexica").is_dir():
        print(f"error: {SHARED / 'lexica'} is missing; see CONTRIBUTING")
        return 1
    from builders import lexica as dataset
    from builders.lib.problem import Problem
    from builders.lib.snapshot import Snapshot
    from builders.lib.store import Row

    shutil.rmtree(WORK, ignore_errors=True)
    snapshot = WORK / "raw" / DAY
    with files(SHARED / "lexica") as address:
        lexica.fetch(params(address, languages), POLITE, snapshot)
    steps = int(os.environ.get("STEPS", "2000"))
    for code in languages:
        start = time.perf_counter()
        asked = dataset.Params(
            version="0.1.0",
            snapshot=str(snapshot),
            languages=[code],
            anchors={code: ANCHORS[code]},
            seeds=[1, 2, 3],
            steps=steps,
            draws=4,
            divergence=float(os.environ.get("DIVERGENCE", "1")),
        )
        rows: list[dict[str, Any]] = []
        rejects = []
        try:
            for item in dataset.build(Snapshot.open(snapshot), asked):
                rows.append(item.values) if isinstance(item, Row) else rejects.append(item)
        except Problem as problem:
            print(f"{code}: {problem}")
            continue
        seconds = time.perf_counter() - start
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(
            f"{code}: {len(rows):,} words, {seconds:.0f} s, peak so far {peak:.0f} MB", flush=True
        )
        report(code, rows, rejects)
        path = WORK / f"{code}.json"
        path.write_text(json.dumps(rows, ensure_ascii=False), encoding="utf-8")
    return 0


def report(code: str, rows: list[dict[str, Any]], rejects: list[Any]) -> None:
    for reject in rejects:
        print(f"  rejected: {reject.key}: {reject.reason}: {reject.number:,}")
    for size in sorted({row["views"] for row in rows}):
        print(f"  in {size} views: {sum(row['views'] == size for row in rows):,}")
    by_word = {row["word"]: row for row in rows}
    for axis, words in ANCHORS[code].items():
        for word in words:
            shares = [
                round(by_word[word][f"q_{a}"], 3) for a in ("positive", "negative", "neutral")
            ]
            print(f"  {axis}: {word} {shares}")
    spread = [row["seed_sd"] for row in rows]
    print(f"  mean seed_sd {sum(spread) / len(spread):.4f}, largest {max(spread):.4f}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or sorted(VIEWS)))
