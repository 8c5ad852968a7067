from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path

import building
import polars as pl
import pytest
import whole
from samples import DAY, POLITE, downstream_params

from plumbline.builders.core.snapshot import Snapshot
from plumbline.builders.datasets.downstream import build as downstream
from plumbline.builders.datasets.downstream import fetch as client
from plumbline.builders.datasets.downstream.build import SPLITS
from plumbline.builders.readers.declared import declared

TOP = Path(__file__).parents[2]
SHARED = building.REAL
PARAMS = whole.tree()
OWN = PARAMS["datasets"]["downstream"]
TABLES = {key: OWN[key] for key in ("labels", "groups")}
TERMS = {"language": "en", "licence": "CC0-1.0", "citation": "the project"}
COLUMNS = {"id": "id", "text": "text", "label": "label", "groups": "about"}
HEAD = "id,text,label,about\n"


def made(folder: Path, texts: str | dict[str, str], config: str = "hate-x", **changes):
    """Build one config from files of the user's; return rows and rejects."""
    own = {key: changes.pop(key) for key in list(changes) if key in client.Corpus.model_fields}
    parts = texts if isinstance(texts, dict) else {"all": texts}
    for part, text in parts.items():
        (folder / f"{part}.csv").write_text(text, "utf-8")
    entry = {
        "format": "csv",
        "columns": COLUMNS,
        "parts": {part: str(folder / f"{part}.csv") for part in parts},
    }
    client.fetch(client.Params(corpora={config: TERMS | entry | own}), POLITE, folder / "raw" / DAY)
    return rows_of(folder / "raw" / DAY, config, **changes)


def rows_of(snapshot: Path, config: str, **changes):
    params = downstream.Params(version="0.1.0", snapshot="x", configs=[config], **changes)
    rows, rejects = building.parted(downstream.build(Snapshot.open(snapshot), params))
    return [row.values for row in rows], rejects


def test_build_sample_splits_and_rejects(sample):
    folder = sample("downstream")
    frames = {name: pl.read_parquet(folder / f"{name}.parquet") for name in OWN["configs"]}
    assert [len(frame) for frame in frames.values()] == [414, 360]
    rejects = pl.read_parquet(folder / "rejects.parquet")
    assert set(rejects.select("config", "reason", "number").rows()) == {
        ("hate-en", "label left out by the table", 1),
        ("hate-en", "no text", 1),
        ("hate-en", "the same text in another split", 1),
        ("misinformation-en", "the same text in another split", 1),
    }
    claims = frames["misinformation-en"]
    assert Counter(claims["split"]) == {0: 252, 1: 36, 2: 72}
    assert set(claims["group"]) == {"Left", "Center", "Right"}
    assert claims["redistributable"].all()


def test_build_maps_labels_and_groups(tmp_path):
    text = (
        HEAD
        + "1,a,bad_rude,cooks\n2,b,rude,poets\n3,c,rude_bad,nobody\n"
        + "4,d,odd,\n5,e,new,\n6,f,,\n7, ,bad,\n"
    )
    rows, rejects = made(
        tmp_path,
        text,
        label_separator="_",
        labels={"hate-x": {"bad": "hate", "rude": "not-hate", "odd": ""}},
        groups={"hate-x": {"cooks": "Cooks", "poets": ""}},
    )
    assert [(r["id"], r["label"], r["source_label"], r["group"], r["groups"]) for r in rows] == [
        ("1", "hate", "bad_rude", "Cooks", ["cooks"]),
        ("2", "not-hate", "rude", "", ["poets"]),
        ("3", "hate", "rude_bad", "", ["nobody"]),
    ]
    assert [(r.key, r.reason) for r in rejects] == [
        ("4", "label left out by the table"),
        ("5", "label in no table: new"),
        ("6", "no label"),
        ("7", "no text"),
    ]
    assert {r["source"] for r in rows} == {"x"}
    assert not any(r["redistributable"] for r in rows)  # unless its terms let them


def test_build_keeps_splits_of_the_source(tmp_path):
    parts = {
        "train": HEAD + "1,a,bad,\n2,b,bad,\n3,C,bad,\n3b,c,good,\n",
        "validation": HEAD + "4,d,bad,\n5,b,good,\n",
        "test": HEAD + "6,A,good,\n7,e,bad,\n8,e,bad,\n9,e,good,\n",
    }
    rows, rejects = made(tmp_path, parts)
    kept = {"train": ["3", "3b"], "validation": ["4", "5"], "test": ["6", "7", "9"]}
    assert {s: [r["id"] for r in rows if SPLITS[r["split"]] == s] for s in SPLITS} == kept
    assert sorted((r.key, r.reason) for r in rejects) == [
        ("1", "the same text in another split"),
        ("2", "the same text in another split"),
        ("8", "the same text again"),
    ]


def test_build_holds_out_validation_texts(tmp_path):
    lines = [f"{n},text {n},{'good' if n % 2 else 'bad'},\n" for n in range(200)]
    parts = {"train": HEAD + "".join(lines[:160]), "test": HEAD + "".join(lines[160:])}
    rows, _ = made(tmp_path, parts)
    assert Counter(SPLITS[r["split"]] for r in rows) == {"train": 144, "validation": 16, "test": 40}
    assert all(SPLITS[r["split"]] == "test" for r in rows if int(r["id"]) >= 160)


def test_build_draws_stratified_splits(tmp_path):
    lines = [f"{n},text {n},{'good' if n % 2 else 'bad'},g{n % 3}\n" for n in range(600)]
    rows, _ = made(tmp_path, HEAD + "".join(lines))
    by = Counter((SPLITS[r["split"]], r["label"], r["groups"][0]) for r in rows)
    for label in ("good", "bad"):
        for group in ("g0", "g1", "g2"):
            assert abs(by["train", label, group] - 70) <= 1
            assert abs(by["test", label, group] - 20) <= 1
    again, _ = rows_of(tmp_path / "raw" / DAY, "hate-x", seed=2)
    assert [r["split"] for r in again] != [r["split"] for r in rows]
    (tmp_path / "b").mkdir()
    turned, _ = made(tmp_path / "b", HEAD + "".join(reversed(lines)))
    assert turned == rows
    (tmp_path / "c").mkdir()
    tied, _ = made(tmp_path / "c", HEAD + "".join(lines), columns=COLUMNS | {"together": "about"})
    assert len({(r["groups"][0], r["split"]) for r in tied}) == 3


REAL = {
    "hate-hatecheck": {"all": "hate/hatecheck_cases.csv"},
    **{
        f"hate-mlma-{code}": {"all": f"hate/mlma.zip#hate_speech_mlma/{code}_dataset.csv"}
        for code in ("en", "fr", "ar")
    },
    "misinformation-liar": {
        part: f"misinformation/liar/{name}.tsv"
        for part, name in (("train", "train"), ("validation", "valid"), ("test", "test"))
    },
}


@pytest.fixture(scope="module")
def real(tmp_path_factory):
    """A snapshot of the real files, declared as params.yaml has them."""
    into = tmp_path_factory.mktemp("downstream") / DAY
    declared = PARAMS["sources"]["downstream"]["corpora"]
    corpora = {
        config: declared[config] | {"parts": {p: str(SHARED / place) for p, place in own.items()}}
        for config, own in REAL.items()
    }
    client.fetch(downstream_params("", **corpora), POLITE, into)
    return into


@pytest.mark.slow
@building.reads("")
@pytest.mark.parametrize(
    ("config", "number", "different", "hate"),
    [  # rows of the file, and the different texts among them, counted with csv and a set
        ("hate-hatecheck", 3728, 3728, 2563),
        ("hate-mlma-en", 5647, 5647 - 61, None),
        ("hate-mlma-fr", 4014, 4014 - 8, None),
        ("hate-mlma-ar", 3353, 3353 - 3, None),
        ("misinformation-liar", 10_269 + 1_284 + 1_283, 12_810, None),
    ],
)
def test_build_real_corpora_counts(real, config, number, different, hate):
    rows, rejects = rows_of(real, config, **TABLES)
    assert len(rows) + len(rejects) == number
    assert len({(row["text"].casefold(), row["label"]) for row in rows}) == len(rows)
    assert {r.reason.partition(" in ")[0].partition(" again")[0] for r in rejects} <= {
        "the same text"
    }
    if hate:
        assert Counter(row["label"] for row in rows)["hate"] == hate
    texts = defaultdict(set)
    for row in rows:
        texts[row["text"].casefold()].add(row["split"])
    assert len(texts) == different
    assert max(map(len, texts.values())) == 1
    assert {row["redistributable"] for row in rows} == {config != "misinformation-liar"}


@pytest.mark.slow
@building.reads("")
def test_read_liar_has_the_published_splits_and_verdicts(real):
    snapshot = Snapshot.open(real)
    (corpus,) = declared(snapshot, downstream.Corpus, "corpora", "misinformation-liar")
    texts = list(downstream._texts(snapshot, "misinformation-liar", corpus))
    assert Counter(t.split for t in texts) == {"train": 10_269, "validation": 1_284, "test": 1_283}
    # the six verdicts of the three files, counted with cut and uniq
    six = {"half-true": 2638, "false": 2511, "mostly-true": 2466, "true": 2063}
    assert Counter(t.label for t in texts) == six | {"barely-true": 2108, "pants-fire": 1050}
    assert sum(t.text.count('"') % 2 for t in texts) > 10  # single quotes are text
