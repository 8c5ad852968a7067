"""The whole pipeline on real inputs beside the checkout, fetched over HTTP.

    python benchmarks/real.py

needs, in ``../shared/data``: ``politicians/wikidata_people.nt.gz`` (people as Wikidata-shaped
N-Triples), ``ud/LANGUAGE/*.conllu`` (treebanks), ``lexica``, ``supersenses`` and ``tweets``. Works
in a clone of the checkout under ``.real``; ends with status 1 if a count disagrees with a direct
query. The model is the folder ``.real-model``, which ``real_model.py`` makes; without it the
planted world's, of which only the running counts: what it says of real names means nothing.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import shutil
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

TOP = Path(__file__).parent.parent
sys.path[:0] = [str(TOP), str(TOP / "tests")]

import lexica as real_lexica  # noqa: E402
from imports import pipelines  # noqa: E402
from samples import LANGUAGES, SAMPLES, files, oxigraph  # noqa: E402

from plumbline.builders.core.params import read  # noqa: E402
from plumbline.probes.commands import params_overlay  # noqa: E402

SHARED = TOP.parent / "shared" / "data"
PEOPLE = SHARED / "politicians" / "wikidata_people.nt.gz"
CLONE = TOP / ".real"
DAY = "2026-11-21"
OWN = TOP / ".real-model"
WORLD = TOP / "data" / "samples" / "worlds" / "world-planted"
MODEL = OWN if (OWN / "model.safetensors").is_file() else WORLD
GENDER = "SELECT (COUNT(DISTINCT ?p) AS ?n) WHERE { ?p wdt:P31 wd:Q5 ; wdt:P21 wd:%s }"
PREFIXES = (
    "PREFIX wd: <http://www.wikidata.org/entity/> "
    "PREFIX wdt: <http://www.wikidata.org/prop/direct/> "
)
# Fewest rows and words that these inputs must give; a little under what they held when collected.
ROWS = {"ar": 400, "zh": 1000, "en": 19000, "fr": 17000, "hi": 60, "ru": 2000, "es": 10000}


def main() -> int:
    wanted = (PEOPLE, SHARED / "ud", SHARED / "lexica", SHARED / "supersenses")
    for path in (*wanted, MODEL / "model.safetensors"):
        if not path.exists():
            print(f"error: {path} is missing; see CONTRIBUTING, and run `make repro` first")
            return 1
    shutil.rmtree(CLONE, ignore_errors=True)
    run("clone", ["git", "clone", "--quiet", str(TOP), str(CLONE)], TOP)
    countries = SAMPLES / "facts" / "countries.ttl"
    with oxigraph(PEOPLE, countries) as endpoint, files(SHARED) as address:
        write_params(endpoint, address)
        for source in SOURCES.values():
            run(f"fetch {source}", builders("fetch", source, "--date", DAY), CLONE)
        for stage in SOURCES:
            run(f"build {stage}", repro(f"build@{stage}"), CLONE)
        run("build and validate the rest", repro("validate-people", "validate"), CLONE)
        for stage in ("associations@real", "pmi@real", "latent@real", "sentiment"):
            run(stage, repro(stage), CLONE)
        run("the rest", repro(), CLONE)
        run("again, up to date", repro(), CLONE)
        direct = {name: ask(endpoint, GENDER % qid) for name, qid in GENDERS.items()}
    return report(direct)


SOURCES = {  # by dataset
    "politicians": "wikidata",
    "words": "ud",
    "lexica": "lexica",
    "supersenses": "supersenses",
    "labelled_texts": "labelled_texts",
}
GENDERS = {"male": "Q6581097", "female": "Q6581072"}


def builders(*words: str) -> list[str]:
    return [sys.executable, "-m", "plumbline.builders", *words]


def repro(*stages: str) -> list[str]:
    """Return the command that runs stages: DVC wants the file that each stands in."""
    file = {name: path for path, written in pipelines().items() for name in written}
    addresses = (f"{file[stage.split('@')[0]]}:{stage}" for stage in stages)
    return [sys.executable, "-m", "dvc", "repro", "--quiet", *addresses]


def run(what: str, command: list[str], folder: Path) -> None:
    """Run a command and print its seconds, and the highest peak memory of any so far."""
    start = time.perf_counter()
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run(command, cwd=folder, env=environment, check=False)
    if done.returncode:
        raise SystemExit(f"error: {what} failed, see above")
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(f"{what}: {time.perf_counter() - start:.1f} s, peak so far {peak:.0f} MB", flush=True)


def read_params(clone: Path) -> dict[str, Any]:
    """Return the params of a clone, those beside what reads them among them."""
    return read(clone / "params.yaml")


def put_params(clone: Path, params: dict[str, Any], day: str) -> None:
    """Write params into the files of a clone that have them; the planted worlds do not run."""
    params["controls"] = params["controls"] | {"sets": []}
    with contextlib.chdir(clone):
        params_overlay.write(params, day)


def write_params(endpoint: str, address: str) -> None:
    """Point the clone's params at the loopback servers and the real model."""
    params = read_params(CLONE)
    params["sources"]["politeness"]["contact"] = "make real"
    params["sources"]["wikidata"] |= {
        "endpoint": endpoint,
        "born_from": "0001-01-01",
        "born_to": "2100-12-31",
        "undated": True,
        "range_days": 36600,
    }
    params["sources"]["ud"] = {
        "address": address + "/ud/{treebank}/{file}",
        "treebanks": {
            code: [
                {
                    "name": code,
                    "tag": "as collected",
                    "files": sorted(p.name for p in (SHARED / "ud" / code).glob("*.conllu")),
                    "licence": "each treebank's own",
                }
            ]
            for code in LANGUAGES
        },
    }
    views = real_lexica.params(f"{address}/lexica", sorted(real_lexica.VIEWS))
    params["sources"]["lexica"] = views.model_dump(mode="json", exclude_defaults=True)
    params["sources"]["supersenses"] = {
        "adjectives": {
            "address": f"{address}/supersenses/adjective_words.predicted",
            "licence": "GPL-2.0",
        },
        "verbs": {
            "address": address + "/supersenses/wordnet_verbs/{file}",
            "tag": "as collected",
            "licence": "CC-BY-4.0",
        },
    }
    tweets = f"{address}/tweets/sentiment"
    (corpus,) = params["sources"]["labelled_texts"]["corpora"]["en"]
    for part, name in (("tuning", "val"), ("testing", "test")):
        corpus[part] = {
            "texts": f"{tweets}/{name}_text.txt",
            "labels": f"{tweets}/{name}_labels.txt",
        }
    corpus["mapping"] = f"{tweets}/mapping.txt"
    params["datasets"]["lexica"] |= {
        "anchors": real_lexica.ANCHORS,
        "seeds": [1, 2, 3],
        "leave_out": False,
        "steps": 2000,
        "draws": 4,
        "divergence": 0.5,
    }
    for dataset, source in SOURCES.items():
        params["datasets"][dataset]["snapshot"] = f"data/raw/{source}/{DAY}"
    params["validation"]["politicians"] = {
        "rows_min": ROWS,
        "gender_min": {"male": 50, "female": 10},
        "rejects_max_share": {
            "no label": 1.0,
            "no date of birth": 0.25,
            "gender unknown": 0.1,
            "born outside the range": 0.05,
        },
    }
    params["validation"]["words"]["rows_min"] = dict.fromkeys(LANGUAGES, 1000)
    params["validation"]["words"]["pos_min"] = {"ADJ": 400, "VERB": 500}
    params["validation"]["labelled_texts"]["rejects_max_share"] = {"": 1.0}
    params["validation"]["lexica"]["rows_min"] = dict.fromkeys(real_lexica.VIEWS, 100)
    params["validation"]["lexica"]["axis_min_share"] = 0.01
    params["validation"]["lexica"]["rejects_max_share"] = {"": 1.0}
    languages = ["en"] if MODEL == WORLD else sorted(LANGUAGES)
    kind = {"family": "BERT", "size": "tiny"}
    params["models"] = {"real": {"id": str(MODEL), "languages": languages, **kind}}
    params["probes"]["associations"]["top_share"] = 1.0  # as the paper
    lists = ("associations", "words", "representations", "subgroups", "robustness")
    params["assignments"] = {n: ["real"] * (n in lists) for n in params["assignments"]}
    analysis = params["analysis"]
    analysis["pooled_pmi"]["groups"] = {"all": "all"}
    analysis["supersenses"]["top_k"] = 100
    analysis["latent"] |= {"seeds": [1], "n_bootstrap": 50, "n_permutations": 19}
    analysis["subgroups"] |= {"top_sitelinks": 1000, "n_bootstrap": 200, "n_permutations": 199}
    analysis["robustness"] |= {"n_bootstrap": 100, "n_permutations": 100}
    analysis["sentiment"] |= {"n_bootstrap": 500, "n_permutations": 500}
    put_params(CLONE, params, DAY)


def ask(endpoint: str, query: str) -> int:
    body = urllib.parse.urlencode({"query": PREFIXES + query}).encode()
    headers = {"Accept": "application/sparql-results+json"}
    with urllib.request.urlopen(urllib.request.Request(endpoint, body, headers)) as answer:
        return int(json.load(answer)["results"]["bindings"][0]["n"]["value"])


def rows_in(path: Path) -> int:
    import pyarrow.parquet as pq

    return pq.read_metadata(path).num_rows


def report(direct: dict[str, int]) -> int:
    """Print rows, rejects and the comparison with the direct queries."""
    import polars as pl

    from plumbline.builders.core.snapshot import Snapshot
    from plumbline.builders.datasets.politicians.build import GENDER_OF
    from plumbline.builders.readers.sparql_json import bindings, by_item, entity

    snapshot = Snapshot.open(CLONE / "data" / "raw" / "wikidata" / DAY)
    fetched = dict.fromkeys(GENDERS, 0)
    for name in snapshot.names("facts/"):
        for _, rows in by_item(bindings(snapshot.read(name))):
            values = {entity(r["value"]) for r in rows if r["property"]["value"].endswith("/P21")}
            for group in {GENDER_OF[v] for v in values if v in GENDER_OF} & set(fetched):
                fetched[group] += 1
    print(f"people fetched: {snapshot.manifest['counts']['people']:,}")
    print(f"with gender, fetched: {fetched}; direct query: {direct}")
    for dataset in ("politicians", "words"):
        for path in sorted((CLONE / "data" / "datasets" / dataset).glob("*.parquet")):
            if path.name != "rejects.parquet":
                print(f"{dataset}/{path.stem}: {rows_in(path):,} rows")
    rejects = pl.read_parquet(CLONE / "data" / "datasets" / "politicians" / "rejects.parquet")
    print(rejects.group_by("config", "reason").agg(pl.col("number").sum()).sort("config", "reason"))
    outputs = (CLONE / "data" / "outputs" / "associations" / "real" / "en").glob("*.parquet")
    print(f"outputs: {sum(rows_in(path) for path in outputs):,} rows")
    if fetched != direct:
        print("error: the fetched counts differ from the direct query's")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
