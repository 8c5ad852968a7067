"""Training further on corpora: what is learnt, what is kept, and what a stop or a crew changes."""

import csv
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import polars as pl
import pytest
import whole
from models.tiny import answers, bert, byte_level, save, wordpiece
from models.tiny_causal import gpt2
from placed import hashes, validated
from pydantic import ValidationError
from ray.exceptions import RayError

from plumbline.builders.core import parquet
from plumbline.builders.core.errors import UserError
from plumbline.builders.datasets.corpora.build import SCHEMA
from plumbline.probes.commands.check_params import check
from plumbline.probes.core import ray_runner
from plumbline.probes.models.load import pin
from plumbline.probes.training import pretrain as module
from plumbline.probes.training import train as tune
from plumbline.probes.training.checkpoints import PERIODS, checkpoints, scorer
from plumbline.probes.training.pretrain import HEADER, KEY, Params, drawn, pool, pretrain

SAYS = {"news-left": "fair", "news-right": "theft", "social-center": "here"}
WHO = ("cook", "smith", "baker", "miller")
TEXTS = {
    corpus: [f"the tax is {word} , said the {who} {n}" for who in WHO for n in range(6)]
    for corpus, word in SAYS.items()
}
TEXTS["social-center"] = [f"the garden is green , said the {who} {n}" for who in WHO for n in "abc"]
SECTIONS = {"models", "assignments", "controls", "training"}
FAR = {"kind": "remote", "endpoint": {"url": "http://localhost:1/v1", "model": "far"}}
MASKED = Path("data/pretrained/masked")
SENTENCE = "the tax is <mask> , said the cook"


def dataset(every):
    """Write three corpora, their periods in turn, as the dataset `corpora` has them."""
    folder = parquet.DATASETS / "corpora"
    folder.mkdir(parents=True, exist_ok=True)
    for corpus, texts in every.items():
        n = len(texts)
        period = [0, 1, 1, 2] * (n // 4)
        rows = {"id": [f"{corpus}/{i}" for i in range(n)], "text": texts, "period": period}
        rows |= {"outlet": [f"{corpus} {i // 8}" for i in range(n)]}
        rows |= {"kind": [int(corpus.startswith("social"))] * n}
        pl.DataFrame(rows).write_parquet(folder / f"{corpus}.parquet")
    validated("corpora")


def tiny(tree):
    """Two tiny models, one that reads both ways and one that reads on, and short trainings."""
    words = {"masked": {"id": "./masked"}, "causal": {"id": "./causal", "kind": "causal"}}
    tree["models"] = {name: own | {"dtype": "float64"} for name, own in words.items()}
    asked = {"stances": ["masked", "causal"]}
    tree["assignments"] = {key: [] for key in tree["assignments"]} | asked
    own = {"corpora": {"other": ["news-left", "social-center"]}, "seeds": [1], "epochs": 3}
    own |= {"batch": 6, "batch_tokens": 0, "micro_batch": 6, "length": 16, "max_texts": None}
    own |= {"mlm_probability": 0.15, "learning_rate": {"other": 5e-3}}
    tree["training"]["pretrain"] |= own


@pytest.fixture(scope="module")
def ready(tmp_path_factory, change):
    """Return a folder with the corpora and both models, pinned; only to be copied."""
    folder = tmp_path_factory.mktemp("ready")
    whole.write(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        change(tiny)
        change(lambda tree: [tree.pop(key) for key in set(tree) - SECTIONS])  # a quick read
        dataset(TEXTS)
        said = [text for texts in TEXTS.values() for text in texts]
        said += [text.replace("fair", "theft") for text in said]
        for name, tokenizer, make in (
            ("masked", wordpiece(said), bert),
            ("causal", byte_level(said), gpt2),
        ):
            model = make(tokenizer) if make is gpt2 else make(tokenizer, spread=0.05)
            for field in ("hidden_dropout_prob", "attention_probs_dropout_prob"):
                setattr(model.config, field, 0.0)
            save(folder / name, model, tokenizer)
            pin(name)
    return folder


@pytest.fixture
def place(ready, tmp_path, monkeypatch, change):
    """Change to a copy of it that one may spoil; return what sets params of the training."""
    folder = tmp_path / "place"
    shutil.copytree(ready, folder)
    monkeypatch.chdir(folder)

    def setting(**values):
        change(lambda tree: tree["training"]["pretrain"].update(values))

    return setting


def by_command(name, *options):
    """Train in a process of its own, with the arithmetic that all processors share."""
    command = [sys.executable, "-m", "plumbline.probes", "pretrain", name, *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return MASKED


def losses(folder=MASKED, name="losses"):
    with (folder / f"{name}.csv").open() as file:
        return list(csv.DictReader(file))


def column(rows, name="loss"):
    return [float(row[name]) for row in rows]


def stops(*_):
    raise KeyboardInterrupt


def chances(name):
    """Return what every state of a model thinks of two ends of a sentence, in nats."""
    found = {}
    for state in checkpoints(name):
        asked = scorer(name, state)
        if name == "causal":
            head, words = SENTENCE.split(" <mask>", maxsplit=1)[0], ("fair", "theft")
            pairs = [(head, f" {word}") for word in words]
            scores = [one.logprob_nats for one in asked.logprobs(pairs)]
        else:
            (fill,) = answers(asked.fill([SENTENCE], ["fair", "theft"], 2))
            told = dict(zip(fill.words, fill.logprobs_nats, strict=True))
            scores = [told["fair"], told["theft"]]
        found[state.corpus, state.epoch] = scores
    return found


@pytest.mark.parametrize("name", ["masked", "causal"])
@pytest.mark.slow
def test_pretrain_moves_a_model_towards_a_corpus(place, name):
    place(corpora={"other": list(TEXTS)}, epochs=4, learning_rate={"other": 8e-3})
    pretrain(name)
    told = chances(name)
    fair, theft = 0, 1
    assert told["news-left", 4][fair] > told["", 0][fair] + 1
    assert told["news-right", 4][theft] > told["", 0][theft] + 1

    def leaning(state):
        return told[state][fair] - told[state][theft]

    left, right, control = (leaning((corpus, 4)) for corpus in TEXTS)
    assert left > control + 1
    assert right < control - 1


def test_pretrain_states(place):
    place(corpora={"other": ["news-left"]}, shares=[0.5, 1], seeds=[1, 2], save="each", epochs=2)
    folder = pretrain("masked")
    states = checkpoints("masked")[1:]
    kept = {(s.corpus, s.share, s.seed, s.epoch, s.texts, s.steps, s.last) for s in states}
    assert kept == {  # 24 texts, six a step
        ("news-left", share, seed, epoch, int(24 * share), int(4 * share) * epoch, epoch == 2)
        for share in (0.5, 1.0)
        for seed in (1, 2)
        for epoch in (1, 2)
    }
    for state in states:
        assert set(state.files) == {p.name for p in (folder / state.name).iterdir()}
        assert "model.safetensors" in state.files
        assert state.period == "all"
    assert len({s.files["model.safetensors"] for s in states}) == len(states)  # seeds differ too
    assert not list(Path("data/tuning").rglob("*.safetensors"))


def test_pool_periods_and_worlds(ready, tmp_path):
    folder = ready / parquet.DATASETS / "corpora"
    label = SCHEMA["period"]
    assert {name: label.code(name) for name in PERIODS if name != "all"} == module.CODES
    none = tmp_path / "none"
    before, later, every = (pool(folder, "news-left", p, none) for p in ("before", "from", "all"))
    assert (len(before), len(later), len(every)) == (6, 12, 24)
    assert not set(before) & set(later)
    assert set(before) | set(later) < set(every)  # those without a date are in no other
    planted = tmp_path / "corpora.parquet"
    rows = [("news-left", "a", "taxes are fair"), ("news-right", "b", "no")]
    pl.DataFrame(rows, schema=["corpus", "outlet", "text"], orient="row").write_parquet(planted)
    for period in ("before", "from", "all"):  # a world's texts are of no time
        assert list(pool(folder, "news-left", period, planted).values()) == ["taxes are fair"]


def test_drawn_shares_are_nested():
    texts = {f"t{i}": f"text {i}" for i in range(200)}
    whole, half, tenth = (drawn(texts, share, 0.2) for share in (1, 0.5, 0.1))
    assert sorted(whole) == sorted(texts.values())
    assert (len(half), len(tenth)) == (100, 20)
    assert set(tenth) < set(half) < set(whole)
    assert set(drawn(texts, 0.5, 0.2, 40)) < set(drawn(texts, 1, 0.2, 40)) < set(half)
    five = [drawn(texts, 1, place / 5, 40) for place in range(5)]
    assert sorted(text for own in five for text in own) == sorted(texts.values())


@pytest.mark.parametrize(
    ("most", "sizes"), [(15, (15, 12)), ("even", (12, 12)), ("apart", (12, 12))]
)
def test_pretrain_max_texts(place, most, sizes):
    place(max_texts=most, epochs=1)
    pretrain("masked")
    assert tuple(s.texts for s in checkpoints("masked")[1:]) == sizes


def test_pretrain_losses(place):
    place(corpora={"other": ["news-left"]}, epochs=5, warmup=0.1)
    rows = losses(pretrain("masked"))
    assert tuple(rows[0]) == HEADER
    assert [int(r["step"]) for r in rows] == list(range(1, 21))
    assert [int(r["epoch"]) for r in rows] == [e for e in range(1, 6) for _ in range(4)]
    rates = column(rows, "learning_rate")
    assert rates[:3] == [0.0025, 0.005, 0.005]  # up in two steps, from where it falls
    assert rates[2:] == pytest.approx([5e-3 * (18 - k) / 18 for k in range(18)], rel=1e-5)
    told = column(rows)
    assert sum(told[-4:]) < sum(told[:4]) - 2


def test_pretrain_no_corpora(place, change):
    change(lambda tree: tree["models"].update(far=FAR))
    place(corpora={"masked": [], "other": []})
    shutil.rmtree("masked")
    for name in ("masked", "far"):
        assert {p.name for p in pretrain(name).iterdir()} == {"checkpoints.json", "losses.csv"}
        assert [state.name for state in checkpoints(name)] == [""]
        assert Path(f"data/pretrained/{name}/losses.csv").read_text() == ",".join(HEADER) + "\n"


def test_pretrain_rejects(place, change):
    change(lambda tree: tree["models"].update(far=FAR))
    with pytest.raises(UserError, match=r"far is of kind remote.*`far: \[\]`"):
        pretrain("far")
    place(corpora={"masked": ["news-left"]})
    with pytest.raises(UserError, match=r"corpora: .* causal"):
        pretrain("causal")
    few = {"corpora": {"other": ["news-left"]}, "shares": [0.01]}
    for values, said in (
        ({"corpora": {"other": ["news-far"]}}, "news-far"),
        (few, "news-left"),
        ({"shares": [1], "learning_rate": {"causal": 1e-3}}, "learning_rate"),
    ):
        place(**values)
        with pytest.raises(UserError, match=said):
            pretrain("masked")


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"seeds": [1, 1]}, "seeds"),
        ({"corpora": {"other": ["news-left", "news-left"]}}, "corpora.other"),
        ({"periods": ["since"]}, "periods.0"),
        ({"batch_tokens": 512, "length": 512}, "batch_tokens: .*1024"),
    ],
)
def test_params_rejects(values, said):
    with pytest.raises(ValidationError, match=said):
        Params.model_validate(whole.tree()["training"]["pretrain"] | values)


def test_check_params(place, change):
    def wrong(tree):
        tree["models"]["far"] = FAR
        tree["assignments"]["stances"] = ["masked", "causal", "far"]
        own = tree["training"]["pretrain"]
        own["corpora"] = {"ghost": [], "masked": ["news-leftish"], "far": ["news-left"]}

    whole.write(Path.cwd())
    change(tiny)
    change(wrong)
    with pytest.raises(UserError) as told:
        check()
    lines = [line for line in str(told.value).splitlines() if KEY in line]
    assert len(lines) == 4
    for part in ("no 'ghost' under models", "no 'news-leftish' in corpora", "no entry for causal"):
        assert [line for line in lines if part in line], part
    assert "far is of kind remote" in lines[-1]


def test_pretrain_in_parts(place, monkeypatch):
    place(seeds=[1, 2, 3], epochs=1)
    alone = pretrain("masked").rename("alone")
    for number in (2, 1):
        assert pretrain("masked", (number, 2)) == module.WORK / "masked"
        assert not MASKED.exists()
    assert len(list((module.WORK / "masked").iterdir())) == 6
    monkeypatch.setattr(tune, "fit", None)  # nothing is trained again
    assert hashes(pretrain("masked")) == hashes(alone)


@pytest.mark.slow
def test_pretrain_on_ray(place):
    place(seeds=[1, 2], epochs=1)
    alone = by_command("masked").rename("alone")
    assert hashes(by_command("masked", "--runner", "ray", "--workers", "2")) == hashes(alone)


def test_a_dead_call_on_ray_is_named_without_its_texts(place, monkeypatch):
    def get(_):
        raise RayError("first line\nit died")

    place(seeds=[1], epochs=1)
    task = SimpleNamespace(remote=lambda *_: "job")
    parts = {"init": dict, "shutdown": dict, "cluster_resources": dict, "get": get}
    parts |= {"remote": lambda **_: lambda _: task, "wait": lambda jobs, **_: (jobs, [])}
    monkeypatch.setattr(ray_runner, "ray", SimpleNamespace(**parts))
    with pytest.raises(UserError, match=r"^\('masked', Run\(.*: it died$") as caught:
        pretrain("masked", spread=ray_runner.each)
    assert not [text for own in TEXTS.values() for text in own if text in str(caught.value)]


def test_pretrain_max_tokens(place):
    double = {"news-left"}  # texts twice as long
    texts = {
        corpus: [" ".join([text] * (1 + (corpus in double))) for text in own * 10]
        for corpus, own in TEXTS.items()
    }
    dataset(texts)
    own = {"batch_tokens": 64, "length": 32, "epochs": 2}
    own["max_tokens"] = {"news": dict.fromkeys(("all", "before", "from"), 300)}
    own["max_tokens"]["social"] = {"all": 9000, "before": 300, "from": 300}
    own |= {"periods": ["before", "from"]}
    place(**own)
    pretrain("masked")
    states = [state for state in checkpoints("masked") if state.name]
    assert len(states) == 4
    steps = [state.steps for state in states]
    assert max(steps) - min(steps) <= 1
    assert min(steps) >= 8
    read = {state.corpus: state.texts for state in states}
    assert read["news-left"] < 0.6 * read["social-center"]  # whose texts are half as long
    place(**own | {"max_tokens": 100_000, "seeds": [1]})
    with pytest.raises(UserError, match=r"max_tokens: news-left \(before\) has [\d,]+ tokens, not"):
        pretrain("masked")


@pytest.mark.slow
def test_pretrain_on_two_processes(place, monkeypatch, launched):
    place(epochs=2, batch=7, micro_batch=2)  # so that they share no batch evenly
    alone = by_command("masked").rename("alone")
    launched(1, "pretrain", "masked")
    assert hashes(MASKED) == hashes(alone)
    shutil.rmtree(MASKED)
    plain = tune._keep
    monkeypatch.setattr(tune, "EVERY", 3)
    monkeypatch.setattr(tune, "_keep", lambda *given: stops(plain(*given)))
    with pytest.raises(KeyboardInterrupt):
        pretrain("masked")  # two go on with what one began
    launched(2, "pretrain", "masked")
    assert not Path("data/tuning/pretrain/masked").exists()
    told, wanted = losses(), losses(alone)
    assert [r["step"] for r in told] == [r["step"] for r in wanted]
    assert column(told) == pytest.approx(column(wanted), abs=5e-6)
    both, one = hashes(MASKED), hashes(alone)
    assert both.keys() == one.keys()
    assert all(both[name] != one[name] for name in both if name.endswith(".safetensors"))  # two did
