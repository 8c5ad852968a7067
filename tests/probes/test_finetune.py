"""The probe `finetune`: one training a state, task and seed, resumed without a trace."""

import json
import shutil
from pathlib import Path

import polars as pl
import pytest
import whole
import yaml
from models.tiny import bert, save, wordpiece
from placed import validated

from plumbline.builders.core import parquet
from plumbline.builders.core.errors import UserError
from plumbline.builders.core.snapshot import digest
from plumbline.builders.datasets.downstream.build import SCHEMA
from plumbline.probes.commands.cost import plan
from plumbline.probes.core.run_analysis import analyse
from plumbline.probes.core.run_probe import Task, probe
from plumbline.probes.leaning import finetuned_classifiers
from plumbline.probes.models.load import pin
from plumbline.probes.training import checkpoints

TOP = Path(__file__).parents[2]
SPLITS = ("train", "validation", "test")
FOUL, FINE = "we dread the {}", "we greet the {}"
GROUPS = ("rowers", "bakers", "weavers", "divers")
STATES = ("", "news-left", "news-right")
SEEDS = (4, 7)


def texts(whom, *, number=6):
    """Return rows of a task in which two verbs tell the classes; `whom` is in the test texts."""
    rows = []
    for split, name in enumerate(SPLITS):
        for i in range(number):
            for label, words in (("hate", FOUL), ("not-hate", FINE)):
                group = GROUPS[i % 3] if name == "train" else whom
                said = f"{words.format(group)} {'again ' * (i % 3)}".strip()
                rows.append(
                    {"id": f"{name}-{i}-{label}", "text": said, "label": label}
                    | {"task": 0, "split": split, "group": group, "groups": [group]}
                    | {"mapped": [group], "source": "en", "language": "en", "source_label": label}
                    | {"redistributable": True}
                )
    return rows


def write(rows, name):
    path = Path(f"data/datasets/downstream/{name}.parquet")
    path.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(pl.DataFrame(rows).sort("id"), SCHEMA.arrow(), path)
    validated("downstream")


def pretrained(where, tokenizer):
    """Keep three states: an early one, and the ends of two trainings."""
    known = []
    for seed, (corpus, last) in enumerate(
        (("news-left", False), ("news-left", True), ("news-right", True)), start=1
    ):
        name = f"{corpus}-{seed}"
        folder = save(where / name, bert(tokenizer, seed=seed, spread=0.1).double(), tokenizer)
        files = {p.name: digest(p) for p in sorted(folder.iterdir())}
        state = checkpoints.Checkpoint(
            name, corpus, "all", 1.0, 1, 1 + last, 10, 10 * (1 + last), last, files
        )
        known.append(state._asdict())
    (where / checkpoints.LIST).write_text(json.dumps(known))


@pytest.fixture(scope="module")
def ready(tmp_path_factory):
    folder = tmp_path_factory.mktemp("finetune")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        (folder / "docs").symlink_to(TOP / "docs")
        (folder / "data").mkdir()
        write(texts("divers"), "hate-en")
        tree = whole.tree()
        tree["models"] = {"m": {"id": "./m", "dtype": "float64", "languages": ["en"]}}
        own = {"tasks": ["hate-en"], "seeds": list(SEEDS), "epochs": 10, "batch": 4}
        own |= {"learning_rate": {"other": 5e-3}}
        tree["assignments"]["finetuned_classifiers"] = ["m"]
        tree["analysis"]["fairness"] |= {"n_bootstrap": 100, "n_permutations": 99}
        tree["analysis"]["ensemble"] |= {"n_bootstrap": 100}
        needed = {k: tree[k] for k in ("models", "assignments", "controls", "analysis")}
        needed["probes"] = {"finetuned_classifiers": tree["probes"]["finetuned_classifiers"] | own}
        Path("params.yaml").write_text(yaml.safe_dump(needed), encoding="utf-8")
        tokenizer = wordpiece([row["text"] for row in texts("divers")])
        save(folder / "m", bert(tokenizer, spread=0.1).double(), tokenizer)
        pin("m")
        pretrained(folder / "data/pretrained/m", tokenizer)
        probe("finetuned_classifiers", "m")
        yield folder


@pytest.fixture(autouse=True)
def there(ready, monkeypatch):
    monkeypatch.chdir(ready)


def shards_of(seed):
    """Return the bytes of the outputs of a fine-tuning seed."""
    folder = Path("data/outputs/finetuned_classifiers/m/hate-en")
    return {path.name: path.read_bytes() for path in folder.glob(f"*-{seed}.parquet")}


def answers():
    return pl.read_parquet("data/outputs/finetuned_classifiers/m/hate-en/*.parquet")


def test_probe_writes_each_state_and_seed():
    found = answers()
    runs = set(found.select("corpus", "epoch", "finetuning_seed").unique().iter_rows())
    epochs = {"": 0, "news-left": 2, "news-right": 2}  # the early state is left out
    assert runs == {(c, epochs[c], 1000 + s) for c in STATES for s in SEEDS}
    asked = {row["id"] for row in texts("divers") if row["split"] == 2}
    for _, own in found.group_by("corpus", "finetuning_seed"):
        assert set(own["id"]) == asked
        assert len(own) == 2 * len(asked)
    assert len(list(Path("data/outputs/finetuned_classifiers/m/hate-en").iterdir())) == 6
    assert not list(Path("data/tuning").iterdir())  # no weights are kept


def test_probe_classifiers_learn():
    found = answers().with_columns(p=pl.col("logprob_nats").exp())
    key = ["corpus", "finetuning_seed", "id"]
    assert (found.group_by(key).agg(pl.col("p").sum())["p"] - 1).abs().max() < 1e-5
    right = found.filter(pl.col("class") == pl.col("label"))
    by = right.group_by("corpus").agg((pl.col("p") > 0.5).mean())
    assert by["p"].min() > 0.8


def test_analyses():
    for name in ("fairness", "ensemble"):
        analyse(name)
    overall = pl.read_parquet("data/tables/fairness/overall.parquet")
    assert set(overall["corpus"]) == set(STATES)
    right = answers().filter(pl.col("class") == pl.col("label"))
    known = dict(
        right.group_by("corpus").agg((pl.col("logprob_nats").exp() > 0.5).mean()).iter_rows()
    )
    rows = overall.filter(metric="accuracy", reading="corrected")
    assert dict(rows.select("corpus", "value").iter_rows()) == pytest.approx(known, abs=1e-6)
    votes = pl.read_parquet("data/tables/ensemble/scores.parquet")
    assert {"partisan", "the model itself, by seed"} <= set(votes["ensemble"])


def test_shards_of_a_world():
    own = Path("data/models/m") / finetuned_classifiers.OWN
    rows = [
        {k: str(row[k]) for k in ("id", "text", "label", "group")}
        | {"task": "hate", "split": SPLITS[row["split"]]}
        for row in texts("bakers")
    ]
    try:
        pl.DataFrame(rows).write_parquet(own)
        shards = Task("finetuned_classifiers", "m").shards()
        assert [s.config for s in shards] == ["hate-en"] * 6 + ["planted"] * 6
        assert plan("finetuned_classifiers", "m", 0.1).prompts == 2 * 6 * 12
        train, test = finetuned_classifiers.examples(own, None)
        assert (len(train), set(train["label"]), len(test)) == (12, {"hate", "not-hate"}, 12)
        assert all("bakers" in text for text in test["text"])
    finally:
        own.unlink(missing_ok=True)


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"tasks": ["hate-none"]}, "hate-none is not in downstream"),
        ({"learning_rate": {"elsewhere": 1e-3}}, "learning_rate: no entry for m"),
    ],
)
def test_probe_rejects(changed, told, tmp_path, monkeypatch, ready):
    for name in ("data", "docs", "m"):
        (tmp_path / name).symlink_to(ready / name)
    shutil.rmtree("data/outputs/finetuned_classifiers/.m.partial", ignore_errors=True)
    tree = yaml.safe_load(Path("params.yaml").read_text())
    tree["probes"]["finetuned_classifiers"] |= changed
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(tree))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=told):
        probe("finetuned_classifiers", "m")
    shutil.rmtree("data/outputs/finetuned_classifiers/.m.partial", ignore_errors=True)
