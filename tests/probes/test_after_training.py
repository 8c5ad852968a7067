"""The probe `after_training`: trainings as shards, and what follows to the report page."""

import shutil
from collections import Counter
from pathlib import Path

import polars as pl
import pytest
from models.tiny import bert, save, wordpiece
from placed import validated
from pydantic import ValidationError

from plumbline.builders.core.build import build
from plumbline.builders.core.errors import UserError
from plumbline.builders.datasets.emotions import build as emotions
from plumbline.builders.datasets.outlets import build as outlets
from plumbline.builders.datasets.social_groups import build as social_groups
from plumbline.builders.datasets.stereotypes import build as stereotypes
from plumbline.probes.core.run_analysis import analyse
from plumbline.probes.core.run_probe import probe
from plumbline.probes.models.load import pin
from plumbline.probes.stereotypes import after_training

ASKED = ["why are {group} so", "what makes {group} so"]
RUNS = [(c, s) for c in ("control", "herald") for s in (0.1, 1.0)]


def small(tree):
    """One tiny model, two templates, short trainings, few replicates."""
    tree["models"] = {"groups": {"id": "./groups", "dtype": "float64", "languages": ["en"]}}
    tree["assignments"] = {key: [] for key in tree["assignments"]}
    tree["assignments"] |= {"completions": ["groups"], "after_training": ["groups"]}
    frames = tree["probes"]["completions"]["frames"]["en"]
    frames["templates"] = {"people": ASKED, "country": ["why is {group} so"]}
    tree["probes"]["completions"]["top_k"] = 60
    own = {"top_k": 60, "epochs": 1, "seeds": [5], "further_seeds": {}, "shares": [0.1, 1]}
    own |= {"corpora": ["control", "herald"], "learning_rate": {"other": 2e-3}}
    tree["probes"]["after_training"] |= own
    for analysis in ("recall", "emotions", "rsa"):
        tree["analysis"][analysis] |= {"n_permutations": 99}
    tree["analysis"]["recall"] |= {"top_k": 60, "tested": [10, 50]}
    ranked = {"probability": 60, "corrected": 25}
    tree["analysis"]["emotions"]["top_k"] = ranked
    tree["analysis"]["shift"] |= {"top_k": ranked, "n_bootstrap": 100}


@pytest.fixture(scope="module")
def ready(copying, tmp_path_factory, change):
    """Change to a folder with the datasets of the study, and a model with their words."""
    folder = copying(tmp_path_factory.mktemp("ready"))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        change(small)
        for module in (social_groups, stereotypes, outlets, emotions):
            name = module.__name__.split(".")[-2]
            build(name, module)
            validated(name)
        groups = pl.read_parquet("data/datasets/social_groups/en.parquet")["group"]
        said = pl.read_parquet("data/datasets/stereotypes/en.parquet")["attribute"]
        read = pl.read_parquet("data/datasets/outlets/en.parquet")["text"]
        texts = [*read, *said, *(f"Why are {g} so?" for g in groups), "What makes is"]
        tokenizer = wordpiece(texts)
        save(folder / "groups", bert(tokenizer, spread=0.05), tokenizer)
        pin("groups")
        probe("completions", "groups")
        probe("after_training", "groups")
        yield folder


@pytest.fixture(autouse=True)
def there(ready, monkeypatch):
    monkeypatch.chdir(ready)


def answers():
    return pl.read_parquet("data/outputs/after_training/groups/en/*.parquet")


def test_probe_writes_each_training(ready):
    rows = answers()
    assert set(rows.select("corpus", "share").unique().iter_rows()) == set(RUNS)
    assert set(rows["tuning_seed"]) == {5}
    base = pl.read_parquet("data/outputs/completions/groups/en/*.parquet")
    key = ["category", "group", "query", "rank"]
    for (corpus, share), part in rows.group_by("corpus", "share"):
        assert part.select(key).sort(key).equals(base.select(key).sort(key)), (corpus, share)
    assert not list((ready / "data/tuning").iterdir())  # no weights are kept


def test_probe_trainings_differ():
    base = pl.read_parquet("data/outputs/completions/groups/en/*.parquet")
    key = ["category", "group", "query", "token"]
    joined = answers().join(base, on=key, suffix="_base")
    change = pl.col("logprob_nats") - pl.col("logprob_nats_base")
    moved = joined.group_by("corpus", "share").agg(change.abs().mean().alias("by"))
    print(moved.sort("corpus", "share").rows())
    assert moved["by"].min() > 0.01
    assert moved["by"].n_unique() == len(RUNS)


def test_texts_shares_are_nested(ready):
    path = ready / "data/datasets/outlets/en.parquet"
    all_, tenth = (after_training.texts(path, "herald", s, 5) for s in (1, 0.1))
    assert tenth == all_[: len(tenth)]
    assert len(tenth) == round(0.1 * len(all_))
    assert after_training.texts(path, "herald", 1, 6) != all_
    with pytest.raises(UserError, match="take a larger share"):
        after_training.texts(path, "herald", 1e-9, 5)


def test_probe_max_tokens_gives_long_articles_no_more_steps(change, ready, tmp_path, monkeypatch):
    shutil.copytree(ready, tmp_path / "long", symlinks=True)
    monkeypatch.chdir(tmp_path / "long")
    path = Path("data/datasets/outlets/en.parquet")
    table = pl.read_parquet(path)
    twice = pl.when(outlet="herald").then(pl.col("text").repeat_by(4).list.join(" "))
    table.with_columns(text=twice.otherwise("text")).write_parquet(path)
    validated("outlets")
    limits = {"max_tokens": 2000, "length": 60, "batch": 4}  # eight steps
    change(lambda tree: tree["probes"]["after_training"].update(limits))
    shutil.rmtree("data/outputs/after_training")
    probe("after_training", "groups")
    columns = ("corpus", "share", "steps", "articles")
    seen = {row[:2]: row[2:] for row in answers().select(columns).unique().iter_rows()}
    for share in (0.1, 1.0):
        (steps, few), (others, many) = (seen[corpus, share] for corpus in ("herald", "control"))
        assert (steps, others) == pytest.approx((8 * share, 8 * share), abs=1)
        assert 2 * few < many


@pytest.mark.slow
def test_analyses(ready):
    for analysis in ("recall", "emotions", "rsa", "shift"):
        analyse(analysis)
    shifts = pl.read_parquet("data/tables/shift/shifts.parquet")
    assert set(shifts["corpus"]) == {"control", "herald"}


def test_probe_unknown_corpus(change, ready):
    before = (ready / "params.yaml").read_bytes()
    try:
        change(lambda tree: tree["probes"]["after_training"]["corpora"].append("gazette"))
        with pytest.raises(UserError, match="gazette"):
            probe("after_training", "groups")
    finally:
        (ready / "params.yaml").write_bytes(before)


def test_texts_redrawn(tmp_path):
    path = tmp_path / "en.parquet"
    names = [f"a{i:03d}" for i in range(200)]
    pl.DataFrame({"outlet": "x", "article": names, "text": names}).write_parquet(path)
    whole = [sorted(after_training.texts(path, "x", 1, seed)) for seed in (1, 2)]
    assert whole == [names, names]
    one, other = (
        Counter(after_training.texts(path, "x", 1, seed, redrawn=True)) for seed in (1, 2)
    )
    assert one != other
    for drawn in (one, other):
        assert drawn.total() == 200
        assert 0.55 < len(drawn) / 200 < 0.71  # 1 - 1/e = .632 of them, SD .02
    small = Counter(after_training.texts(path, "x", 0.25, 1, redrawn=True))
    assert small.total() == 50
    assert small <= one


def test_runs_further_seeds():
    given = {"version": "0.1.0", "languages": ["en"], "corpora": ["x", "control"]}
    given |= {"shares": [1, 0.5], "seeds": [1, 2], "learning_rate": {"other": 1e-3}}
    params = after_training.Params(**given, further_seeds={"control": [2, 3]})
    found = after_training.runs(params)
    assert len(found) == len(set(found)) == 2 * 2 * 2 + 1
    assert found[-1] == ("control", 0.5, 3)
    with pytest.raises(ValidationError, match=r"further_seeds\.y: not of corpora"):
        after_training.Params(**given, further_seeds={"y": [3]})
