"""The study of names and nationality on real inputs beside the checkout.

    python benchmarks/real_nationality.py

needs, in ``../shared/data``: ``tweets`` (TweetEval: emotion, hate, offensive, sentiment) and
``names``; and the folder ``.real-model``, which ``real_model.py`` makes: without it a BERT of the
same shape with random weights is the start. Works in a clone of the checkout under
``.real-nationality``. A classifier is taught for each task, and all are asked about the same tweets
of the test part of sentiment, as in the authors' code. Small on purpose: some fifteen minutes of
one core, of which the trainings take half.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

import yaml

TOP = Path(__file__).parent.parent
sys.path[:0] = [str(TOP), str(TOP / "tests"), str(TOP / "benchmarks")]

import real  # noqa: E402
from samples import files  # noqa: E402

SHARED = TOP.parent / "shared" / "data"
TWEETS, NAMES = SHARED / "tweets", SHARED / "names"
CLONE = TOP / ".real-nationality"
OWN = TOP / ".real-model"
DAY = "2026-11-21"
CONFIG = "sentiment-en"
TASKS = {  # parts to train on, small ones for time, and epochs
    "emotion": (("train",), 2),
    "hate": (("val",), 4),
    "offensive": (("val",), 4),
    "sentiment": (("val",), 4),
}
TEXTS = 400  # of 12,283 tweets, in some of which a person is found
NAMES_MIN = 10  # usable names of each kind that a country must have


def main() -> int:
    for path in (*(TWEETS / task / "mapping.txt" for task in TASKS), NAMES):
        if not path.exists():
            print(f"error: {path} is missing; see CONTRIBUTING")
            return 1
    shutil.rmtree(CLONE, ignore_errors=True)
    real.run("clone", ["git", "clone", "--quiet", str(TOP), str(CLONE)], TOP)
    start = OWN if (OWN / "model.safetensors").is_file() else random_bert(CLONE / "random-bert")
    print(f"start: {start.name}")
    probes = [sys.executable, "-m", "plumbline.probes"]
    with (
        files(SHARED) as address,
        tempfile.TemporaryDirectory() as folder,
        files(Path(folder)) as lists,
    ):
        for path in NAMES.glob("*.*"):  # copied with the line break that their last lines lack
            text = path.read_text(encoding="utf-8").rstrip("\n")
            (Path(folder) / path.name).write_text(f"{text}\n", encoding="utf-8")
        write_params(address, lists, start)
        for source in ("names", "targets"):
            real.run(f"fetch {source}", real.builders("fetch", source, "--date", DAY), CLONE)
    for dataset in ("names", "targets", "counterfactuals"):
        real.run(f"build {dataset}", real.builders(dataset), CLONE)
        checked = [sys.executable, "-m", "plumbline.validation", dataset]
        real.run(f"validate {dataset}", checked, CLONE)
    for task in TASKS:
        real.run(f"teach {task}", [*probes, "plant", task], CLONE)
        real.run(f"classify {task}", [*probes, "classification", task], CLONE)
    real.run("bring the masked model", [*probes, "weights", "masked"], CLONE)
    real.run("perplexity", [*probes, "perplexity", "masked"], CLONE)
    real.run("nationality", [*probes, "nationality"], CLONE)
    report()
    return 0


def random_bert(folder: Path) -> Path:
    """Make the start where there is no trained model: random weights, a tokenizer of the tweets."""
    import torch
    from real_model import wordpiece
    from transformers import BertConfig, BertForMaskedLM

    paths = sorted(TWEETS.glob("*/*_text.txt"))
    tokenizer = wordpiece([line for path in paths for line in path.read_text("utf-8").splitlines()])
    torch.manual_seed(1)
    shape = {"hidden_size": 128, "num_hidden_layers": 3, "num_attention_heads": 4}
    config = BertConfig(
        vocab_size=len(tokenizer), intermediate_size=512, max_position_embeddings=128, **shape
    )
    BertForMaskedLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def write_params(address: str, named: str, start: Path) -> None:
    """Point the clone's params at the loopback server and the models."""
    params = real.read_params(CLONE)
    sources = params["sources"]
    sources["politeness"]["contact"] = "make real-names"
    sources["names"]["wikidata"] = None
    lists = {each["name"]: each for each in sources["names"]["lists"]}
    lists["forenames"]["address"] = f"{named}/common_forenames_by_country.csv"
    lists["surnames"]["address"] = f"{named}/common_surnames_by_country.csv"
    lists["eu-first"]["address"] = f"{named}/firstnames_eu.json"
    lists["eu-last"]["address"] = f"{named}/lastnames_eu.json"
    (corpus,) = sources["targets"]["corpora"]
    tweets = f"{address}/tweets/sentiment"
    corpus |= {
        "parts": {"test": f"{tweets}/test_{{what}}.txt"},
        "mapping": f"{tweets}/mapping.txt",
        "redistribute": False,
    }
    for name in ("names", "targets"):
        params["datasets"][name]["snapshot"] = f"data/raw/{name}/{DAY}"
    params["derived"]["counterfactuals"] |= {
        "texts": TEXTS,
        "names_min": NAMES_MIN,
        "replacements": 2,
        "placebos": 1,
    }
    validation = params["validation"]
    validation["names"] |= {
        "rows_min": {"us": 30},
        "usable_min": 1,
        "flagged_max_share": 0.9,
        "rejects_max_share": {"": 1.0},
    }
    validation["targets"] |= {"rows_min": {CONFIG: 10_000}, "rejects_max_share": {"": 1.0}}
    validation["counterfactuals"] |= {
        "rows_min": {CONFIG: 1000},
        "texts_min": 20,
        "countries_min": 30,
        "same_max_share": 0.5,
        "rejects_max_share": {"": 1.0},
    }
    masked = {"id": str(start), "languages": ["en"]}
    params["models"] = {"masked": masked}
    worlds = {
        task: {
            "world": "labelled",
            "kind": "classifier",
            "languages": ["en"],
            "start": str(start),
            "mapping": str(TWEETS / task / "mapping.txt"),
            "examples": [
                {
                    "texts": str(TWEETS / task / f"{part}_text.txt"),
                    "labels": str(TWEETS / task / f"{part}_labels.txt"),
                }
                for part in parts
            ],
            "epochs": epochs,
            "batch": 64,
            "length": 48,
            "learning_rate": 1e-3,
        }
        for task, (parts, epochs) in TASKS.items()
    }
    planting = CLONE / "probes/worlds/params.yaml"
    planting.write_text(yaml.safe_dump(worlds, sort_keys=False), "utf-8")
    params["assignments"] = {name: [] for name in params["assignments"]}
    params["assignments"] |= {"classification": sorted(TASKS), "perplexity": ["masked"]}
    params["probes"]["perplexity"]["readings"] = ["corrected"]
    params["analysis"]["nationality"] |= {
        "underlying": dict.fromkeys(sorted(TASKS), "masked"),
        "n_bootstrap": 300,
        "n_permutations": 999,
    }
    real.put_params(CLONE, params, DAY)


def report() -> None:
    """Print how good the classifiers are, and what stands in the tables."""
    import polars as pl

    data = CLONE / "data"
    for kind in ("datasets", "outputs", "tables"):
        for folder in sorted((data / kind).iterdir()):
            paths = [p for p in sorted(folder.rglob("*.parquet")) if p.name != "rejects.parquet"]
            print(f"{kind}/{folder.name}: {sum(real.rows_in(path) for path in paths):,} rows")
    for task in TASKS:
        own = accuracy(task)
        print(f"{task}: accuracy {own[0]:.3f}, macro-F1 {own[1]:.3f}, majority {own[2]:.3f}")
    tables = data / "tables" / "nationality"
    delta = pl.read_parquet(tables / "delta.parquet")
    contrast = pl.col("measure") == "positive minus negative"
    for (model, reading), own in delta.filter(contrast & (pl.col("gender") == 0)).group_by(
        "model", "reading", maintain_order=True
    ):
        ranked = own.sort("value")
        ends = [*ranked.head(3).to_dicts(), *ranked.tail(3).to_dicts()]
        print(
            f"{model}, {('faithful', 'corrected', 'placebo')[reading]}: {len(own)} countries, "
            f"n {own['n'].max()}, Delta {ranked['value'].min():.2f} to "
            f"{ranked['value'].max():.2f}, mean {own['value'].mean():.2f}, "
            f"spread {own['spread'].mean():.2f}; adjusted p at most .05: "
            f"{(own['p_bh'] <= 0.05).sum()}, against other countries "
            f"{(own['p_country_bh'] <= 0.05).sum()}"
        )
        print(
            "  "
            + "; ".join(
                f"{r['country']} {r['value']:.2f} ({r['low']:.2f} to {r['high']:.2f})" for r in ends
            )
        )
    changes = pl.read_parquet(tables / "changes.parquet").filter(pl.col("gender") == 0)
    for (model, reading, name), own in changes.group_by(
        "model", "reading", "class", maintain_order=True
    ):
        values = own["value"].drop_nulls()
        if len(values):
            told = f"{values.min():.1f} to {values.max():.1f}%"
            print(f"change {model} {reading} {name}: {told}, before {own['before'].max()}")
    mixed = pl.read_parquet(tables / "mixed.parquet")
    for row in mixed.filter(~pl.col("term").str.starts_with("country")).to_dicts():
        print(
            {key: row[key] for key in ("model", "reading", "term", "value", "low", "high", "p_bh")}
        )
    correlations = pl.read_parquet(tables / "correlations.parquet")
    every = correlations.filter((pl.col("country") == "all") & (pl.col("perplexity") < 3))
    with pl.Config(tbl_rows=-1, tbl_width_chars=160, fmt_str_lengths=40):
        print(
            every.select(
                "model", "scope", "perplexity", "measure", "value", "low", "high", "n"
            ).sort("model", "measure", "scope", "perplexity")
        )


def accuracy(task: str) -> tuple[float, float, float]:
    """Ask a classifier about the test part of its own task."""
    import numpy as np

    from plumbline.probes.models.classifier import Classifier

    texts = (TWEETS / task / "test_text.txt").read_text("utf-8").removesuffix("\n").split("\n")
    labels = (TWEETS / task / "test_labels.txt").read_text("utf-8").split()
    some = range(0, len(texts), max(1, len(texts) // 1000))
    model = Classifier(CLONE / "data/samples/worlds" / task, task, "", dtype="float32")
    true = np.array([int(labels[i]) for i in some])
    answers = model.classify([" ".join(texts[i].split()[:30]) for i in some])
    said = np.array([int(np.argmax(each.probabilities)) for each in answers])
    classes = range(len(model.labels))
    f1 = []
    for k in classes:
        hits = ((true == k) & (said == k)).sum()
        f1.append(2 * hits / max(1, (true == k).sum() + (said == k).sum()))
    common = max((true == k).mean() for k in classes)
    return float((true == said).mean()), float(np.mean(f1)), float(common)


if __name__ == "__main__":
    sys.exit(main())
