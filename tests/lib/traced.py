"""A small project for tests of trace: snapshot, dataset, outputs and table, under DVC."""

import os
import subprocess
import sys
from pathlib import Path

import yaml

from plumbline.builders.core.snapshot import write_manifest

SNAPSHOT = "data/samples/toy/2026-01-02"
DATASET = "data/datasets/toy"
OUTPUTS = "data/outputs/probe/model"
TABLE = "data/tables/counts/model"
MANIFEST = {
    "source": "toy",
    "address": "https://example.org/words.csv",
    "retrieved": "2026-01-02",
    "licence": "CC0-1.0",
    "citation": "the tests",
    "request": {"query": "SELECT ?word"},
    "counts": {"words": 3},
}
# What a word is asked: a three times, b twice, c once. The table counts that, times a factor.
MAKE = """
import sys
from pathlib import Path

import polars as pl
import pyarrow.parquet as pq
import yaml

from plumbline.builders.core import front_matter
from plumbline.builders.core.parquet import carrying
from plumbline.builders.core.parquet import fingerprint
from plumbline.builders.core.schema import Column, Schema
from plumbline.builders.core.snapshot import digest


def write(folder, rows, keys, inputs, path="{config}.parquet"):
    where = Path(folder) / path.format(config="en").replace("*", "0")
    where.parent.mkdir(parents=True, exist_ok=True)
    table = pl.DataFrame(rows).to_arrow()
    metadata = carrying(table.schema, inputs).metadata
    pq.write_table(table.replace_schema_metadata(metadata), where)
    columns = [Column(key, "string", "x") for key in keys if key != "kind"]
    columns.append(Column("kind", "label", "x", labels=("noun", "verb")))
    origin = front_matter.Origin([], "make it", "1.2.0")
    front_matter.write(Path(folder), {"en": Schema(tuple(columns), tuple(keys))}, origin, path)


dataset, outputs = "data/datasets/toy", "data/outputs/probe/model"
if sys.argv[1] == "dataset":
    manifest = "data/samples/toy/2026-01-02/manifest.json"
    words = Path(manifest).with_name("words.csv").read_text().split()
    words = words[: yaml.safe_load(Path("params.yaml").read_text())["datasets"]["toy"]["words"]]
    rows = {"word": words, "kind": [1] * len(words)}
    write(dataset, rows, ["word", "kind"], {manifest: digest(Path(manifest))})
elif sys.argv[1] == "outputs":
    words = pl.read_parquet("data/datasets/toy/en.parquet")["word"].to_list()
    asked = [w for i, w in enumerate(words) for _ in range(3 - i)]
    rows = {"word": asked, "kind": [1] * len(asked), "nats": [-1.5] * len(asked)}
    write(outputs, rows, ["word"], {dataset: fingerprint(Path(dataset))}, "{config}/*.parquet")
else:
    factor = yaml.safe_load(Path("params.yaml").read_text())["analysis"]["counts"]["factor"]
    found = pl.read_parquet("data/outputs/probe/model/en/0.parquet").group_by("word").len()
    found = found.sort("word").with_columns(
        value=pl.col("len") * float(factor), kind=1, language=pl.lit("en"), model=pl.lit("model")
    )
    inputs = {outputs: fingerprint(Path(outputs))}
    write("data/tables/counts/model", found, ["language", "kind", "word"], inputs)
"""


def stage(argument: str, deps: list[str], out: str, params: list[str], up: str) -> dict:
    return {
        **({"wdir": up} if up else {}),
        "cmd": f"{sys.executable} builders/make.py {argument}",
        "params": params,
        "deps": ["builders/make.py", *deps],
        "outs": [out],
    }


def run(*command: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    who = {f"GIT_{w}_{k}": "tests" for w in ("AUTHOR", "COMMITTER") for k in ("NAME", "EMAIL")}
    top = Path(__file__).parent.parent.parent
    environment = os.environ | who | {"DVC_NO_ANALYTICS": "1", "PYTHONPATH": str(top)}
    environment.pop("PLUMBLINE_TRACEBACK", None)
    return subprocess.run(command, env=environment, check=check, capture_output=True, text=True)


def dvc(*arguments: str) -> None:
    run(sys.executable, "-m", "dvc", *arguments)


def commit(message: str) -> str:
    run("git", "add", "--all")
    run("git", "commit", "--quiet", "--message", message)
    return run("git", "rev-parse", "HEAD").stdout.strip()


def params(factor: int, words: int = 3) -> None:
    tree = {
        "datasets": {"toy": {"version": "1.2.0", "words": words}},
        "analysis": {"counts": {"version": "0.3.0", "factor": factor}},
    }
    Path("params.yaml").write_text(yaml.safe_dump(tree), encoding="utf-8")


def start() -> None:
    """Write the project into the working folder, under git and DVC; nothing is made yet."""
    run("git", "init", "--quiet")
    dvc("init", "--quiet")
    snapshot = Path(SNAPSHOT)
    snapshot.mkdir(parents=True)
    (snapshot / "words.csv").write_text("a\nb\nc\n", encoding="utf-8")
    write_manifest(snapshot, dict(MANIFEST))
    for folder in ("builders", "probes/analysis"):
        Path(folder).mkdir(parents=True)
    Path("builders/make.py").write_text(MAKE, encoding="utf-8")
    written = {
        "builders/dvc.yaml": {
            "build": {
                "foreach": {"toy": None},
                "do": stage("dataset", [SNAPSHOT], DATASET, ["datasets.toy"], ".."),
            }
        },
        "probes/analysis/dvc.yaml": {
            "counts": stage("table", [OUTPUTS], TABLE, ["analysis.counts"], "../..")
        },
        "dvc.yaml": {"probe": stage("outputs", [DATASET], OUTPUTS, [], "")},
    }
    for path, stages in written.items():
        Path(path).write_text(yaml.safe_dump({"stages": stages}), encoding="utf-8")
    params(1)


def repro(*stages: str) -> None:
    # by the last stage, and what it needs: it stands in another folder
    dvc("repro", "--quiet", *(stages or ["probes/analysis/dvc.yaml"]))
