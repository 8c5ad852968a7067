"""The lexica dataset from real lexica beside the checkout, fetched over HTTP by the real client.

    python benchmarks/lexica.py [LANGUAGE ...]

needs ``../shared/data/lexica``, and ``../shared/data/tweets/sentiment`` for the evaluation. Works
in ``.real-lexica``: snapshot and rows. The environment may give STEPS and DIVERGENCE of the fit.
Prints words, rejects, seconds and peak memory for each language, where good and bad fall, and how
well the English words classify tweets.
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
        # Hindi UniSent shares 35 of its 730 words with the other view: too few to tell its sides.
        chosen = VIEWS[code] if code == "hi" else [*VIEWS[code], ("unisent.txt", UNISENT)]
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
    from plumbline.builders.core.errors import UserError
    from plumbline.builders.core.parquet import Row
    from plumbline.builders.core.snapshot import Snapshot
    from plumbline.builders.datasets.lexica import build as dataset

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
        except UserError as problem:
            print(f"{code}: {problem}")
            continue
        seconds = time.perf_counter() - start
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(
            f"{code}: {len(rows):,} words, {seconds:.0f} s, peak so far {peak:.0f} MB", flush=True
        )
        report(code, rows, rejects)
        if code == "en" and (SHARED / "tweets" / "sentiment").is_dir():
            evaluation(rows)
        path = WORK / f"{code}.json"
        path.write_text(json.dumps(rows, ensure_ascii=False), encoding="utf-8")
    return 0


def tweets(part: str) -> tuple[list[str], Any]:
    import numpy as np

    folder = SHARED / "tweets" / "sentiment"
    texts = (folder / f"{part}_text.txt").read_text(encoding="utf-8").splitlines()
    labels = np.loadtxt(folder / f"{part}_labels.txt", dtype=np.int64)
    assert len(texts) == len(labels)
    return texts, labels


def evaluation(rows: list[dict[str, Any]]) -> None:
    """Classify TweetEval's test tweets by each lexicon, cut on the validation tweets."""
    from plumbline.probes.politicians.lexicon_evaluation import Params, evaluate

    names = sorted({name for row in rows for name in row["view_names"]})
    compared = {
        "combination": {r["word"]: r["q_positive"] - r["q_negative"] for r in rows},
        "plain mean": {r["word"]: r["score"] for r in rows},
    } | {
        name: {
            r["word"]: r["view_scores"][r["view_names"].index(name)]
            for r in rows
            if name in r["view_names"]
        }
        for name in names
    }
    params = Params(version="1.0.0", n_permutations=2000)
    for one in evaluate(tweets("val"), tweets("test"), compared, params):
        a, f = one.agreement
        line = f"  {one.lexicon}: {one.words:,} words, covers {one.covered:.3f}, "
        line += f"accuracy {a.value:.3f} [{a.low:.3f}, {a.high:.3f}], "
        line += f"macro-F1 {f.value:.3f} [{f.low:.3f}, {f.high:.3f}]"
        if one.first_less_this:
            d = one.first_less_this.macro_f1
            line += f", combination better by {d.value:.3f} [{d.low:.3f}, {d.high:.3f}]"
            line += f", McNemar p {one.first_less_this.p:.2g}"
        print(line)


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
