"""The stereotypes study on real inputs beside the checkout, fetched over HTTP.

    python benchmarks/real_groups.py

needs, in ``../shared/data``: ``stereotypes`` (the published suggestions), ``lexica/en`` (NRC),
``news/allsides_articles.parquet`` and ``models/stories260k``; and the folder ``.real-model``, which
``real_model.py`` makes. Works in a clone of the checkout under ``.real-groups``. The engines are
answered by the server of the samples, whose suggestions are made up; the published ones are real.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

TOP = Path(__file__).parent.parent
sys.path[:0] = [str(TOP), str(TOP / "tests"), str(TOP / "benchmarks")]

import real  # noqa: E402
from samples import files  # noqa: E402
from suggesting import suggesting, suggestions  # noqa: E402

SHARED = TOP.parent / "shared" / "data"
CLONE = TOP / ".real-groups"
OWN = TOP / ".real-model"
STORIES = SHARED / "models" / "stories260k"
LEXICON = SHARED / "lexica" / "en" / "nrc_emolex_wordlevel_v0.92.txt"
NEWS = SHARED / "news" / "allsides_articles.parquet"
PUBLISHED = SHARED / "stereotypes"
DAY = "2026-11-21"
IN_ARCHIVE = "NRC-Emotion-Lexicon/NRC-Emotion-Lexicon-Wordlevel-v0.92.txt"
FETCHED = {  # source by dataset; social_groups are the checkout's own
    "stereotypes": "autocomplete",
    "emotions": "emotions",
    "outlets": "news",
}
OTHERS = ("politicians", "words", "lexica", "supersenses")  # what every model waits for; samples
OUTLETS = {  # docs/datasets/outlets.md; of the New Yorker there are 21 articles
    "breitbart": ["Breitbart News"],
    "guardian": ["The Guardian"],
    "fox": ["Fox Online News", "Fox News", "Fox News (Online)", "Fox News Opinion"],
    "reuters": ["Reuters"],
}
TOPICS = [
    "agriculture",
    "animal_welfare",
    "arts_and_entertainment",
    "business",
    "disaster",
    "food",
    "holidays",
    "obesity_and_malnutrition",
    "science",
    "sports",
    "technology",
    "transportation",
]
BERT = {"id": str(OWN), "languages": ["en"]}
MODELS = {
    "real": BERT,
    "real-faster": BERT,  # the same, trained at ten times the learning rate
    "stories": {"id": str(STORIES), "kind": "causal", "languages": ["en"]},
}
TUNED = {"real": 5e-5, "real-faster": 5e-4}  # learning rates
CORPORA = ["control", "breitbart", "fox", "guardian", "reuters"]
SHARES = [0.25]  # of the articles
SEEDS = [1, 2]


def main() -> int:
    for path in (PUBLISHED, LEXICON, NEWS, STORIES, OWN / "model.safetensors"):
        if not path.exists():
            print(f"error: {path} is missing; see CONTRIBUTING")
            return 1
    shutil.rmtree(CLONE, ignore_errors=True)
    real.run("clone", ["git", "clone", "--quiet", str(TOP), str(CLONE)], TOP)
    dvc = [sys.executable, "-m", "dvc"]
    asked = subprocess.run([*dvc, "cache", "dir"], cwd=TOP, capture_output=True, check=True)
    cache = (TOP / asked.stdout.decode().strip()).resolve()  # read as a remote, never added to
    remote = [*dvc, "remote", "add", "--quiet", "--local", "--default", "checkout", str(cache)]
    real.run("remote", remote, CLONE)
    outs = [f"data/{out}" for d in OTHERS for out in (f"datasets/{d}", f"validation/{d}.json")]
    real.run("pull samples", [*dvc, "pull", "--quiet", *outs], CLONE)
    with (
        files(SHARED) as address,
        tempfile.TemporaryDirectory() as folder,
        files(Path(folder)) as archives,
        suggesting(suggestions(later=True)) as engines,
    ):
        with zipfile.ZipFile(Path(folder) / "nrc.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            archive.write(LEXICON, IN_ARCHIVE)
        write_params(address, archives, engines)
        for source in FETCHED.values():
            real.run(f"fetch {source}", real.builders("fetch", source, "--date", DAY), CLONE)
    for what, stages in {
        "build and validate": ["validate"],
        "ask": [f"completions@{name}" for name in MODELS],
        "recall, emotions, rsa": ["recall", "emotions", "rsa"],
        "train and ask": [f"after_training@{name}" for name in TUNED],
        "shift": ["shift"],
    }.items():
        real.run(what, real.repro(*stages), CLONE)
    report()
    return 0


def write_params(address: str, archives: str, engines: str) -> None:
    """Point the clone's params at the loopback servers and the models."""
    params = real.read_params(CLONE)
    sources = params["sources"]
    sources["politeness"]["contact"] = "make real-groups"
    sources["autocomplete"]["pause_s"] = 0
    for name, engine in sources["autocomplete"]["engines"].items():
        engine["address"] = f"{engines}/{name}?q={{query}}"
    sources["autocomplete"]["published"]["choenni2021"] |= {
        "address": f"{address}/stereotypes/stereo_dataset.csv",
        "single_words": f"{address}/stereotypes/single_word_stereo_dataset.csv",
    }
    sources["emotions"] |= {"address": f"{archives}/nrc.zip", "files": {"en": IN_ARCHIVE}}
    (corpus,) = sources["news"]["corpora"]["en"]
    corpus |= {
        "address": f"{address}/news/allsides_articles.parquet",
        "format": "parquet",
        "columns": {
            "article": "id",
            "outlet": "outlet",
            "leaning": "leaning",
            "date": "date",
            "topic": "topic",
            "text": "text",
        },
    }
    datasets = params["datasets"]
    for dataset, source in FETCHED.items():
        datasets[dataset]["snapshot"] = f"data/raw/{source}/{DAY}"
    datasets["outlets"]["words_min"] = 20  # the sample's articles are a sentence each
    datasets["outlets"] |= {
        "outlets": OUTLETS,
        "control": {"topics": TOPICS},
        "articles": 465,
    }
    params["validation"]["stereotypes"]["rows_min"]["choenni2021"] = 2099
    params["validation"]["emotions"] |= {"rows_min": {"en": 14000}, "affect_min": 500}
    params["validation"]["outlets"] |= {
        "rows_min": {"en": 465 * (len(OUTLETS) + 1)},
        "articles_min": 465,
        "rejects_max_share": {"": 1.0},
    }
    params["models"] = MODELS
    params["assignments"] = {name: [] for name in params["assignments"]}
    params["assignments"] |= {"completions": sorted(MODELS), "after_training": sorted(TUNED)}
    params["probes"]["completions"]["groups"] = "all"
    params["probes"]["after_training"] |= {
        "corpora": CORPORA,
        "shares": SHARES,
        "seeds": SEEDS,
        "epochs": 1,
        "length": 128,
        "learning_rate": TUNED,
    }
    for name in ("recall", "emotions", "rsa"):
        params["analysis"][name] |= {"n_permutations": 999, "n_bootstrap": 500}
    params["analysis"]["shift"] |= {"n_permutations": 1999, "n_bootstrap": 300}
    real.put_params(CLONE, params, DAY)


def report() -> None:
    """Print how much there is of each dataset, output and table."""
    for kind in ("datasets", "outputs", "tables"):
        for folder in sorted((CLONE / "data" / kind).iterdir()):
            paths = [p for p in sorted(folder.rglob("*.parquet")) if p.name != "rejects.parquet"]
            if folder.name not in OTHERS:
                total = sum(real.rows_in(path) for path in paths)
                print(f"{kind}/{folder.name}: {total:,} rows")


if __name__ == "__main__":
    sys.exit(main())
