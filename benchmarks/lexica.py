"""Build the dataset ``lexica`` from the real lexica next to the checkout.

    python benchmarks/lexica.py [LANGUAGE ...]

The script needs ``../shared/data/lexica``, and ``../shared/data/tweets/sentiment`` for the
evaluation. It fetches the files with the real client and works in ``.real-lexica``. The environment
variables STEPS and DIVERGENCE change the fit. It prints words, rejects, seconds and peak memory for
each language, the values of the words good and bad, and how well the English words classify tweets.
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

import yaml  # noqa: E402
from samples import DAY, lexica  # noqa: E402

from plumbline.builders.fetch.http import Reading  # noqa: E402

SHARED = TOP.parent / "shared" / "data"
WORK = TOP / ".real-lexica"
OVER = yaml.safe_load((TOP / "benchmarks" / "shared.yaml").read_text(encoding="utf-8"))
VIEWS = OVER["sources"]["lexica"]["views"]
ANCHORS = OVER["datasets"]["lexica"]["anchors"]


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
    views = {code: VIEWS[code] for code in languages}
    lexica.fetch(lexica.Params(views=views), Reading(mirror=SHARED.parents[1]), snapshot)
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


def tweets(part: str, known: set[str]) -> tuple[list[list[str]], Any]:
    import numpy as np

    from plumbline.probes.politicians.lexicon_evaluation import known_words

    folder = SHARED / "tweets" / "sentiment"
    texts = (folder / f"{part}_text.txt").read_text(encoding="utf-8").splitlines()
    labels = np.loadtxt(folder / f"{part}_labels.txt", dtype=np.int64)
    assert len(texts) == len(labels)
    return known_words(texts, known, "en"), labels


def evaluation(rows: list[dict[str, Any]]) -> None:
    """Classify TweetEval's test tweets by each lexicon, with thresholds from validation tweets."""
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
    known = set(compared["combination"])
    for one in evaluate(tweets("val", known), tweets("test", known), compared, params):
        a, f = one.agreement
        line = f"  {one.lexicon}: accuracy {a.value:.3f} [{a.low:.3f}, {a.high:.3f}], "
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
