import os
import subprocess
import sys
from pathlib import Path

import datasets
import polars as pl
import pytest
from placed import hashes, validated
from transformers import AutoTokenizer

from plumbline.builders.core import parquet
from plumbline.builders.core.errors import UserError
from plumbline.builders.datasets.words.build import POS
from plumbline.probes.core.run_probe import probe
from plumbline.probes.models.load import pin
from plumbline.probes.politicians import associations

TOP = Path(__file__).parents[2]
TINY = Path("data/outputs/associations/tiny")
CARD = ("README.md", "build.json")


@pytest.fixture
def asked(finished):
    return finished / TINY


@pytest.mark.parametrize(
    ("language", "lengths"), [("en", {"ADJ": 10, "VERB": 9}), ("fr", {"ADJ": 6, "VERB": 5})]
)
def test_probe_lists(asked, finished, language, lengths):
    rows = pl.read_parquet(asked / language / "*.parquet")
    people = pl.read_parquet(finished / f"data/datasets/politicians/{language}.parquet")
    lists = rows.group_by("qid", "pos", maintain_order=True).agg("rank", "logprob_nats", "word")
    assert len(lists) == 2 * len(people)
    for row in lists.iter_rows(named=True):
        assert row["rank"] == list(range(1, lengths[row["pos"]] + 1))
        assert row["logprob_nats"] == sorted(row["logprob_nats"], reverse=True)
        assert max(row["logprob_nats"]) < 0
        assert len(set(row["word"])) == len(row["word"])
    named = rows.select("qid", "name").unique().join(people, on=["qid", "name"])
    assert len(named) == len(people)


def test_probe_prompts_and_pieces(asked, finished):
    tokenizer = AutoTokenizer.from_pretrained(finished / "tiny")
    rows = pl.read_parquet(asked / "en/*.parquet")
    rows = rows.select("pos", "name", "prompt", "prompt_pieces").unique()
    assert rows["prompt_pieces"].n_unique() > 1
    for pos, name, prompt, pieces in rows.iter_rows():
        assert prompt == (f"[MASK] {name}" if pos == "ADJ" else f"{name} [MASK]")
        assert pieces == len(tokenizer.tokenize(name)) + 3  # mask, beginning, end


def test_outputs_load_as_a_dataset(asked, tmp_path):
    cache = str(tmp_path / "cache")
    rows = datasets.load_dataset(str(asked), "en", split="train", cache_dir=cache)
    text, whole, nats = map(datasets.Value, ("string", "int32", "float64"))
    texts = ("qid", "name", "word", "lemma", "pos", "frame", "prompt", "model", "revision")
    wanted = dict.fromkeys(texts, text)
    wanted |= dict.fromkeys(("rank", "prompt_pieces", "unknown_pieces"), whole)
    assert rows.features == wanted | {"logprob_nats": nats, "prior_nats": nats}
    stored = pl.read_parquet(asked / "en/*.parquet")
    assert rows.num_rows == len(stored)
    assert rows[0]["word"] == stored["word"][0]
    assert datasets.get_dataset_config_names(str(asked)) == ["coverage", "en", "fr"]
    coverage = datasets.load_dataset(str(asked), "coverage", split="train", cache_dir=cache)
    assert coverage.num_rows == 4


def test_coverage(asked, finished):
    tokenizer = AutoTokenizer.from_pretrained(finished / "tiny")
    for row in pl.read_parquet(asked / "coverage/*.parquet").iter_rows(named=True):
        lexicon = pl.read_parquet(finished / f"data/datasets/words/{row['language']}.parquet")
        part = lexicon.filter(pl.col("pos") == POS.index(row["pos"]))
        whole = part.filter([tokenizer.tokenize(form) == [form] for form in part["form"]])
        assert row["words"] == part["form"].n_unique()
        assert row["covered"] == whole["form"].n_unique()
        assert 0 < row["covered"] < row["words"]


DYING = """
import os, sys
from plumbline.probes.politicians import associations
from plumbline.probes.core import run_probe as outputs
from plumbline.builders.core import snapshot

associations.SHARD = 40
left = int(sys.argv[1])
replace = outputs.write_bytes

def dying(path, body):
    global left
    left -= 1
    if left < 0:
        path.parent.mkdir(parents=True, exist_ok=True)
        (path.parent / ".writing-half").write_bytes(body[:9])
        os._exit(9)
    replace(path, body)

outputs.write_bytes = dying
outputs.probe("associations", "tiny")
"""


@pytest.mark.slow
def test_probe_resumes_after_a_kill(place, monkeypatch):
    monkeypatch.setattr(associations, "SHARD", 40)
    pin("tiny")
    whole = hashes(probe("associations", "tiny"))
    assert len([name for name in whole if name.startswith("en/")]) == 5
    TINY.rename("elsewhere")
    killed = subprocess.run(
        [sys.executable, "-c", DYING, "3"],
        env=os.environ | {"PYTHONPATH": str(TOP)},
        capture_output=True,
        check=False,
    )
    assert killed.returncode == 9, killed.stderr.decode()
    assert not TINY.exists()
    partial = TINY.with_name(".tiny.partial")
    done = {p.name: p.stat().st_ino for p in partial.glob("en/*.parquet")}
    assert len(done) == 3
    assert (partial / "en" / ".writing-half").exists()  # and the one it died in
    assert hashes(probe("associations", "tiny")) == whole
    again = {name: (TINY / "en" / name).stat().st_ino for name in done}
    assert again == done  # what was written was not asked again
    assert not partial.exists()


def test_probe_shards_change_no_row(asked, place, monkeypatch):
    monkeypatch.setattr(associations, "SHARD", 25)
    pin("tiny")
    folder = probe("associations", "tiny")
    assert len(list((folder / "fr").iterdir())) == 8
    key = ["qid", "pos", "rank"]
    for language in ("en", "fr"):
        sharded = pl.read_parquet(folder / language / "*.parquet").sort(key)
        assert sharded.equals(pl.read_parquet(asked / language / "*.parquet").sort(key))


def test_probe_data_changed_after_validation(place):
    pin("tiny")
    path = parquet.DATASETS / "politicians/fr.parquet"
    pl.read_parquet(path).head(150).write_parquet(path)
    with pytest.raises(UserError):
        probe("associations", "tiny")
    (parquet.VALIDATION / "words.json").unlink()
    with pytest.raises(UserError):
        parquet.require_validated("words")
    assert not TINY.exists()


def test_probe_name_too_long(place, change):
    pin("tiny")
    name = " ".join(["Ada"] * 90)
    path = parquet.DATASETS / "politicians/en.parquet"
    people = pl.read_parquet(path)
    people = people.with_columns(
        name=pl.when(pl.int_range(pl.len()) == 7).then(pl.lit(name)).otherwise("name")
    )
    people.write_parquet(path)
    validated("politicians")
    with pytest.raises(UserError) as caught:
        probe("associations", "tiny")
    assert name in str(caught.value)
    assert not TINY.exists()
