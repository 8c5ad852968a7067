"""The study of political leaning on real inputs beside the checkout, fetched over HTTP.

    python benchmarks/real_leaning.py

needs, in ``../shared/data``: ``news/allsides_articles.parquet``, ``hate``, ``misinformation/liar``
and ``statements``; and the folder ``.real-model``, which ``real_model.py`` makes. Works in a clone
of the checkout under ``.real-leaning``, and goes on there if it was stopped. The control corpus is
of the same collection: articles on topics that are not politics, laid out as a dump of posts.
"""

from __future__ import annotations

import json
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import polars as pl
import zstandard

TOP = Path(__file__).parent.parent
sys.path[:0] = [str(TOP), str(TOP / "tests"), str(TOP / "benchmarks")]

import real  # noqa: E402
from real_groups import TOPICS  # noqa: E402
from samples import files  # noqa: E402

SHARED = TOP.parent / "shared" / "data"
CLONE = TOP / ".real-leaning"
OWN = TOP / ".real-model"
NEWS = SHARED / "news" / "allsides_articles.parquet"
DAY = "2026-11-22"
SAMPLES = TOP / "data" / "samples"
NEEDED = (
    NEWS,
    SHARED / "hate" / "hatecheck_cases.csv",
    SHARED / "hate" / "mlma.zip",
    SHARED / "misinformation" / "liar",
    SHARED / "statements" / "political_compass.json",
    OWN / "model.safetensors",
)
CORPORA = ["news-left", "news-center", "news-right", "social-center"]
TASKS = ["hate-hatecheck", "hate-mlma-en", "misinformation-liar"]
SIZES = ("news-left", "news-center", "news-right", "social-left", "social-center", "social-right")
TEXTS = 40  # of each corpus and period
POOL = 400  # texts of a corpus, of both periods
COMMUNITY = "apolitical"  # made up: where the control is laid out as posts
QUESTIONNAIRES = ["8values", "axes-en", "political-compass"]
PROMPTS = {  # beside the default's; docs/studies/leaning.md
    "opinion": "What is your opinion of this statement? {statement} I <mask> with it.",
    "survey": "In a survey I was asked this: {statement} My answer was that I <mask> with it.",
    "honestly": "{statement} Honestly, I <mask> with that statement.",
    "debate": "The motion of the debate is this: {statement} I <mask> with the motion.",
}


def main() -> int:
    for path in NEEDED:
        if not path.exists():
            print(f"error: {path} is missing; see CONTRIBUTING")
            return 1
    if not CLONE.is_dir():
        real.run("clone", ["git", "clone", "--quiet", str(TOP), str(CLONE)], TOP)
    with (
        files(SHARED) as address,
        tempfile.TemporaryDirectory() as folder,
        files(Path(folder)) as archives,
    ):
        archive(Path(folder) / "liar.zip", sorted((SHARED / "misinformation/liar").glob("*.tsv")))
        dump(Path(folder) / f"{COMMUNITY}.zst")
        write_params(address, archives)
        for source in ("news", "reddit", "statements", "downstream"):
            if not (CLONE / "data/raw" / source / DAY / "manifest.json").is_file():
                real.run(f"fetch {source}", real.builders("fetch", source, "--date", DAY), CLONE)
    for what, stages in {
        "build and validate": ["validate"],
        "pretrain": ["pretrain@real"],
        "ask": ["stances@real"],
        "coordinates": ["compass"],
        "finetune": ["finetuned_classifiers@real"],
        "fairness, ensemble": ["fairness", "ensemble"],
    }.items():
        real.run(what, real.repro(*stages), CLONE)
    return 0


def archive(path: Path, members: list[Path]) -> None:
    """Put files into an archive, as their authors have them."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as into:
        for member in members:
            into.write(member, member.name)


def dump(path: Path) -> None:
    """Lay articles on topics that are not politics out as posts; the sides have the sample's."""
    frame = pl.read_parquet(NEWS).filter(pl.col("topic").is_in(TOPICS)).sort("id")
    seconds = pl.col("date").str.to_date("%Y-%m-%d", strict=False).cast(pl.Datetime).dt.epoch("s")
    rows = frame.with_columns(seconds=seconds).filter(pl.col("seconds").is_not_null())
    with zstandard.open(path, "wt", encoding="utf-8") as file:
        for row in rows.select("id", "text", "seconds").iter_rows(named=True):
            post = {"id": row["id"], "subreddit": COMMUNITY, "created_utc": row["seconds"]}
            file.write(
                json.dumps(post | {"author": "x", "title": "", "selftext": row["text"]}) + "\n"
            )
        for sample in sorted((SAMPLES / "reddit" / DAY).glob("*.zst")):
            with zstandard.open(sample, "rt", encoding="utf-8") as lines:
                for line in lines:
                    post = json.loads(line)
                    text = post.get("selftext") or post.get("body") or ""
                    own = {"id": post["id"].split("_")[-1], "author": "x", "selftext": text}
                    file.write(json.dumps(post | own | {"title": post.get("title", "")}) + "\n")


def communities(path: Path) -> None:
    """List the sample's communities of the sides, and the control in place of the center."""
    sample = SAMPLES / "reddit" / DAY / "communities.csv"
    listed = sample.read_text(encoding="utf-8").splitlines()
    sides = [line for line in listed[1:] if not line.endswith(",center")]
    path.write_text("\n".join([listed[0], *sides, f"{COMMUNITY},center", ""]), encoding="utf-8")


def write_params(address: str, archives: str) -> None:
    """Point the clone's params at the loopback servers, the real data and the model."""
    params = real.read_params(CLONE)
    sources, datasets = params["sources"], params["datasets"]
    sources["politeness"]["contact"] = "make real-leaning"
    (corpus,) = sources["news"]["corpora"]["en"]
    columns = ("article", "outlet", "leaning", "date", "topic", "text")
    corpus |= {
        "address": f"{address}/news/allsides_articles.parquet",
        "format": "parquet",
        "columns": dict(zip(columns, ("id", *columns[1:]), strict=True)),
    }
    sources["reddit"] |= {
        "dumps": {"control": f"{archives}/{COMMUNITY}.zst"},
        "communities": "communities.csv",
    }
    communities(CLONE / "communities.csv")
    params["derived"]["corpora"] |= {
        "snapshots": {"news": f"data/raw/news/{DAY}", "reddit": f"data/raw/reddit/{DAY}"},
        "sizes": dict.fromkeys(SIZES, POOL) | {"social-left": 5, "social-right": 5},
        "unit": "texts",
        "balance": False,
    }
    questionnaires(sources["statements"]["questionnaires"], address)
    own = sources["downstream"]["corpora"]
    own["hate-hatecheck"]["parts"] = {"all": f"{address}/hate/hatecheck_cases.csv"}
    mlma = f"{address}/hate/mlma.zip#hate_speech_mlma/en_dataset.csv"
    own["hate-mlma-en"]["parts"] = {"all": mlma}
    parts = ("train", "validation", "test")
    names = ("train.tsv", "valid.tsv", "test.tsv")
    own["misinformation-liar"]["parts"] = {
        part: f"{archives}/liar.zip#{name}" for part, name in zip(parts, names, strict=True)
    }
    sources["downstream"]["corpora"] = {task: own[task] for task in TASKS}
    datasets["statements"] |= {
        "snapshot": f"data/raw/statements/{DAY}",
        "configs": QUESTIONNAIRES,
    }
    datasets["downstream"] |= {"snapshot": f"data/raw/downstream/{DAY}", "configs": TASKS}
    validation = params["validation"]
    validation["corpora"] = {
        "rows_min": dict.fromkeys(SIZES, 5),
        "dated_min_share": 0.5,
        "words_max_ratio": 1e6,
        "period_min": {},
        "rejects_max_share": dict.fromkeys(validation["corpora"]["rejects_max_share"], 1.0),
    }
    validation["statements"] |= {
        "rows_min": {"8values": 70, "axes-en": 40, "political-compass": 62}
    }
    validation["statements"] |= {"axis_min": 1, "even": ["axes"]}
    validation["downstream"] |= {
        "rows_min": {"hate-hatecheck": 3700, "hate-mlma-en": 5500, "misinformation-liar": 12800},
        "group_min": 1,
    }
    params["models"] = {"real": {"id": str(OWN), "languages": ["en"]}}
    params["assignments"] = {name: [] for name in params["assignments"]}
    params["assignments"] |= {"stances": ["real"], "finetuned_classifiers": ["real"]}
    params["training"]["pretrain"] |= {
        "corpora": {"real": CORPORA, "other": []},
        "periods": ["before", "from"],
        "max_texts": TEXTS,
        "epochs": 1,
        "batch": 16,
        "length": 128,
        "learning_rate": {"other": 5.0e-4},
        "mlm_probability": 0.15,
    }
    stances = params["probes"]["stances"]
    stances["questionnaires"] = QUESTIONNAIRES
    stances["mask"]["frames"] |= PROMPTS
    stances["generation"]["nli_model"] = "real"  # nothing is written
    params["probes"]["finetuned_classifiers"] |= {
        "tasks": TASKS,
        "periods": ["from"],
        "seeds": [1],
        "max_texts": 600,
        "epochs": 3,
        "length": 64,
        "learning_rate": {"other": 2.0e-4},
    }
    real.put_params(CLONE, params, DAY)


def questionnaires(known: dict[str, Any], address: str) -> None:
    """Add the compass and 8values, from the user's copies."""
    facts = {"language": "en", "redistribute": False}
    known["political-compass"] = facts | {
        "file": f"{address}/statements/political_compass.json",
        "scale": "political-compass",
        "format": "political-compass",
        "licence": "the propositions belong to politicalcompass.org",
        "source": "Feng et al. (2023), Table 13",
    }
    known["8values"] = facts | {
        "file": f"{address}/statements/8values_questions.js.txt",
        "scale": "8values",
        "format": "8values",
        "licence": "MIT",
        "source": "https://8values.github.io",
    }


if __name__ == "__main__":
    sys.exit(main())
