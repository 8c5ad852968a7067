"""Measure building and validating ``politicians`` at the size of the paper and beyond.

    python benchmarks/scale.py [PEOPLE]

The script writes a snapshot of invented people in the format of the client (by default, 300,000
people with labels in seven languages). Then it runs, each in its own process, the builder, the
usual way (all responses in one pandas frame) and the validation, and prints seconds, peak memory
and ratios.
"""

from __future__ import annotations

import gzip
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import yaml

TOP = Path(__file__).parent.parent
LANGUAGES = ("ar", "zh", "en", "fr", "hi", "ru", "es")
ENTITY = "http://www.wikidata.org/entity/"
BATCH = 400
NAIVE = """
import gzip, json, pathlib, pandas as pd
def rows(kind):
    for path in sorted(pathlib.Path("snapshot").glob(kind + "/*.json.gz")):
        yield from json.loads(gzip.decompress(path.read_bytes()))["results"]["bindings"]
facts = pd.json_normalize(list(rows("facts")))
labels = pd.json_normalize(list(rows("labels")))
wide = facts.pivot_table(index="item.value", columns="property.value", values="value.value",
                         aggfunc="first")
table = labels.merge(wide, left_on="item.value", right_index=True)
for language, part in table.groupby("label.xml:lang"):
    part.to_parquet(f"naive-{language}.parquet")
"""


def main() -> None:
    people = int(sys.argv[1]) if len(sys.argv) > 1 else 300_000
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        invent(folder / "snapshot", people)
        project(folder, people)
        built = measure([sys.executable, "-m", "plumbline.builders", "politicians"], folder)
        naive = measure([sys.executable, "-c", NAIVE], folder)
        checked = measure([sys.executable, "-m", "plumbline.validation", "politicians"], folder)
    print(f"{people:,} people, {len(LANGUAGES)} languages")
    print("| work | seconds | peak MB | seconds against pandas | memory against pandas |")
    print("|---|---:|---:|---:|---:|")
    for what, (seconds, peak) in {"build": built, "pandas": naive, "validate": checked}.items():
        ratios = f"{seconds / naive[0]:.2f} | {peak / naive[1]:.2f}" if what == "build" else " | "
        print(f"| {what} | {seconds:.1f} | {peak:.0f} | {ratios} |")


def measure(command: list[str], folder: Path) -> tuple[float, float]:
    """Return the wall-clock seconds and peak resident megabytes of a command."""
    code = (
        "import resource, subprocess, sys; "
        "done = subprocess.run(sys.argv[1:]); "
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss); sys.exit(done.returncode)"
    )
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", code, *command],
        cwd=folder,
        env={"PYTHONPATH": str(TOP), "PATH": "/usr/bin:/bin"},
        check=False,
        capture_output=True,
        text=True,
    )
    seconds = time.perf_counter() - start
    if done.returncode:
        raise SystemExit(done.stderr)
    return seconds, int(done.stdout.split()[-1]) / 1024


def invent(snapshot: Path, people: int) -> None:
    """Write a snapshot of invented people."""
    rng = random.Random(1)
    qids = [f"Q{n}" for n in range(1_000, 1_000 + people)]
    alphabets = ("ابتثجحخد", "安布查德恩夫", "abdegik", "abdegik", "कखगघचछज", "абвгдеж", "abdegik")

    def uri(qid: str) -> dict[str, str]:
        return {"type": "uri", "value": ENTITY + qid}

    for i in range(0, people, BATCH):
        facts, labels = [], []
        for qid in qids[i : i + BATCH]:
            born = f"{rng.randint(1900, 2000)}-{rng.randint(1, 12):02d}-{rng.randint(1, 28):02d}"
            gender = "Q6581072" if rng.random() < 0.18 else "Q6581097"
            for prop, value in (
                ("prop/direct/P21", uri(gender)),
                ("prop/direct/P27", uri("Q142")),
                ("prop/direct/P569", {"type": "literal", "value": f"{born}T00:00:00Z"}),
            ):
                asked = {"type": "uri", "value": f"http://www.wikidata.org/{prop}"}
                facts.append({"item": uri(qid), "property": asked, "value": value})
            links = {"type": "literal", "value": str(rng.randint(0, 50))}
            prop = {"type": "uri", "value": "http://wikiba.se/ontology#sitelinks"}
            facts.append({"item": uri(qid), "property": prop, "value": links})
            for language, letters in zip(LANGUAGES, alphabets, strict=True):
                words = ["".join(rng.choices(letters, k=7)) for _ in range(2)]
                label = {"type": "literal", "value": " ".join(words), "xml:lang": language}
                labels.append({"item": uri(qid), "label": label})
        save(snapshot / f"facts/{i // BATCH:05d}.json.gz", facts)
        save(snapshot / f"labels/{i // BATCH:05d}.json.gz", labels)
    iso = [{"item": uri("Q142"), "iso": {"type": "literal", "value": "FR"}}]
    save(snapshot / "countries/00000.json.gz", iso)
    (snapshot / "ids.txt.gz").write_bytes(gzip.compress("\n".join(qids).encode(), 1))


def save(path: Path, rows: list[dict[str, object]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    body = json.dumps({"results": {"bindings": rows}}).encode()
    path.write_bytes(gzip.compress(body, 1))


def project(folder: Path, people: int) -> None:
    """Write the params and the page that the builder needs, and close the snapshot."""
    sys.path.insert(0, str(TOP))
    from plumbline.builders.core.snapshot import write_manifest

    write_manifest(
        folder / "snapshot",
        {
            "source": "wikidata",
            "address": "invented",
            "retrieved": "2026-01-01",
            "licence": "CC0-1.0",
            "citation": "none",
            "request": {"batch_size": BATCH, "languages": LANGUAGES},
            "counts": {"people": people},
        },
    )
    params = yaml.safe_load((TOP / "params.yaml").read_text(encoding="utf-8"))
    params["datasets"]["politicians"]["snapshot"] = "snapshot"
    floors = dict.fromkeys(LANGUAGES, people)
    (folder / "params.yaml").write_text(yaml.safe_dump(params), encoding="utf-8")
    beside = Path("validation/params.yaml")
    checks = yaml.safe_load((TOP / beside).read_text(encoding="utf-8"))
    checks["validation"]["politicians"] |= {
        "rows_min": floors,
        "counts_min": {"*": {"gender": {"female": 1}}},
    }
    (folder / beside).parent.mkdir(parents=True)
    (folder / beside).write_text(yaml.safe_dump(checks), encoding="utf-8")
    page = Path("docs/datasets/politicians.md")
    (folder / page).parent.mkdir(parents=True)
    (folder / page).write_text((TOP / page).read_text(encoding="utf-8"), encoding="utf-8")


if __name__ == "__main__":
    main()
