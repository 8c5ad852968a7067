"""Probe ``stances``: what is asked, and that answers are those of plain forward passes."""

import json
import math
import shutil
from collections import Counter
from functools import cache
from pathlib import Path

import polars as pl
import pytest
import torch
import whole
from asked_leaning import CONFIG, LEANING, OTHERS, SAID, judge, little, make, paraphrases, sentence
from models.tiny import save
from pydantic import ValidationError
from transformers import (
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoModelForSequenceClassification,
    AutoTokenizer,
    pipeline,
)

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.params import section
from plumbline.probes.core import run_probe
from plumbline.probes.core.run_probe import probe
from plumbline.probes.core.shards import Task
from plumbline.probes.leaning import stances as statements
from plumbline.probes.leaning.scoring import OPTIONS
from plumbline.probes.models.files import pin
from plumbline.probes.models.load import load
from plumbline.probes.prompts.leaning import FORMS, Question
from plumbline.probes.training import checkpoints

STATES = ("", "news-left", "news-right")
CARD = ("README.md", "build.json")
OPEN, VIEW = ("open/none", "open/must"), ("view/none", "view/must")


@pytest.fixture(scope="module")
def ready(tmp_path_factory, change):
    """Return a folder in which both models were probed; only to be read."""
    folder = tmp_path_factory.mktemp("ready")
    whole.write(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        change(little)
        make()
        for name in ("masked", "causal"):
            probe("stances", name)
    return folder


@pytest.fixture
def asked(ready, monkeypatch):
    """Change to the folder, and return what reads a config of the outputs."""
    monkeypatch.chdir(ready)

    def read(config):
        name = "masked" if config == "mask" else "causal"
        return pl.read_parquet(f"data/outputs/stances/{name}/{config}/*.parquet")

    return read


@pytest.fixture
def place(ready, tmp_path, monkeypatch, change):
    """Change to a copy that one may spoil; return what sets params of the probe."""
    folder = tmp_path / "place"
    shutil.copytree(ready, folder)
    shutil.rmtree(folder / "data/outputs")
    monkeypatch.chdir(folder)

    def setting(**values):
        change(lambda tree: tree["probes"]["stances"].update(values))

    return setting


@cache
def plain(folder, auto):
    """Return a model as transformers has it, in double precision, and its tokenizer."""
    found = auto.from_pretrained(folder).double().eval()
    return found, AutoTokenizer.from_pretrained(folder)


def loaded(name, corpus, auto):
    state = checkpoints.FOLDER / name / f"state{STATES.index(corpus) - 1}"
    return plain((state if corpus else Path(name)).resolve(), auto)


def at_mask(net, tokenizer, text):
    """Return the log-probabilities of the whole vocabulary at the mask of a text."""
    given = tokenizer(text.replace("<mask>", tokenizer.mask_token), return_tensors="pt")
    place = (given["input_ids"][0] == tokenizer.mask_token_id).nonzero().item()
    with torch.inference_mode():
        return net(input_ids=given["input_ids"]).logits[0, place].log_softmax(-1)


def mass(scores, tokenizer, words):
    known = tokenizer.get_vocab()
    own = [known[w] for w in words if w in known]
    return scores[own].exp().sum().log().item(), len(own)


def test_mask_rows(asked):
    rows = asked("mask")
    assert len(rows) == 3 * (2 * (3 * 2 + 2) + len(OTHERS))
    key = [*checkpoints.KEY, "questionnaire", "id", "frame", "form", "variant"]
    assert not rows.select(key).is_duplicated().any()
    forms = Counter(FORMS[form] for form in rows["form"])
    assert forms == {"plain": 18, "negated": 18, "paraphrase": 6, "prior": 12}
    (first,) = set(rows.filter(pl.col("form") == FORMS.index("paraphrase"))["frame"])
    frame = LEANING["mask"]["frames"][first]
    texts = set(rows.filter(pl.col("frame") == first)["text"])
    said = {sentence(text) for text in SAID.values()}
    said |= {f"It is not true that {text}." for text in SAID.values()}
    said |= {text for *_, text in OTHERS} | {"N/A", "This."}
    assert texts == {frame.replace("{statement}", text) for text in said}
    priors = rows.filter(pl.col("form") == FORMS.index("prior"))
    assert set(priors["id"]) == set(priors["questionnaire"]) == {""}
    assert set(priors["variant"]) == {"N/A", "This."}
    assert set(rows.filter(pl.col("variant") == "two")["id"]) == {"a-tea"}
    assert rows["unknown"].max() == 0


def test_states(asked):
    for config in ("mask", "generation", "multiple_choice"):
        rows = asked(config)
        told = set(rows.select(column.name for column in checkpoints.COLUMNS).unique().rows())
        before = checkpoints.PERIODS.index("before")
        corpora = STATES[1:] if config == "mask" else STATES[1:2]
        own = {(corpus, before, 0.5, 9, 3, 40, 60) for corpus in corpora}
        assert told == {("", 0, 0.0, 0, 0, 0, 0)} | own
        revisions = rows.group_by("corpus").agg(pl.col("revision").unique())
        assert all(len(own) == 1 for own in revisions["revision"])
        assert len({own[0] for own in revisions["revision"]}) == 1 + len(corpora)
        name = "masked" if config == "mask" else "causal"
        assert rows["model"].unique().to_list() == [name]
        (itself,) = revisions.filter(pl.col("corpus") == "")["revision"].item()
        assert itself == json.loads(Path(f"data/models/{name}/model.json").read_text())["revision"]


@pytest.mark.parametrize("corpus", STATES)
def test_mask_is_a_plain_forward(asked, corpus):
    net, tokenizer = loaded("masked", corpus, AutoModelForMaskedLM)
    rows = asked("mask").filter(pl.col("corpus") == corpus)
    for row in rows.iter_rows(named=True):
        scores = at_mask(net, tokenizer, row["text"])
        for side, words in (("agree", LEANING["positive"]), ("disagree", LEANING["negative"])):
            true, number = mass(scores, tokenizer, words)
            assert row[f"{side}_nats"] == pytest.approx(true, abs=2e-6)
            assert row[f"{side}_words"] == number == 2  # "endorsing" is of several pieces
    assert rows["agree_nats"].n_unique() > 15


def stances(premises):
    """Return what the zero-shot pipeline of transformers makes of each premise, in nats."""
    net, tokenizer = plain(Path("stance").resolve(), AutoModelForSequenceClassification)
    told = pipeline("zero-shot-classification", model=net, tokenizer=tokenizer, device="cpu")
    found = {}
    for premise in premises:
        answer = told(premise, ["agree", "disagree"], hypothesis_template="This example is {}.")
        share = dict(zip(answer["labels"], answer["scores"], strict=True))
        found[premise] = [math.log(share[label]) for label in ("agree", "disagree")]
    return found


def test_generation_is_the_zero_shot_pipeline(asked):
    rows = asked("generation").to_dicts()[::3]
    said = {row["text"]: row for row in rows}
    wordings = {}
    for name, frame in LEANING["generation"]["frames"].items():
        head, tail = frame.split("{statement}")
        for text, row in said.items():
            if row["frame"] == name:
                wordings[text] = text.removeprefix(head).removesuffix(tail)
    behind = {f"{wordings[row['text']]} {row['response']}" for row in rows}
    true = stances(sorted(behind))
    net, tokenizer = plain(Path("stance").resolve(), AutoModelForSequenceClassification)
    place = {label.casefold()[:6]: i for i, label in net.config.id2label.items()}
    shares = []
    for row in rows:
        premise = f"{wordings[row['text']]} {row['response']}"
        both = [row["agree_nats"], row["disagree_nats"]]
        assert both == pytest.approx(true[premise], abs=1e-5)
        assert math.exp(both[0]) + math.exp(both[1]) == pytest.approx(1, abs=1e-5)
        if row["response"]:
            given = tokenizer(row["response"], wordings[row["text"]], return_tensors="pt")
            with torch.inference_mode():
                nats = net(**given).logits[0].double().log_softmax(0)
            own = [row["entailed_nats"], row["contradicted_nats"]]
            expected = [nats[place[label]].item() for label in ("entail", "contra")]
            assert own == pytest.approx(expected, abs=1e-5)
        shares.append(row["agree_nats"])
    assert max(shares) - min(shares) > 0.1  # a mix-up of answers would be seen
    pointer = json.loads(Path("data/models/stance/model.json").read_text())
    judges = asked("generation").select("stance_model", "stance_revision").unique().rows()
    assert judges == [("stance", pointer["revision"])]


def test_generation_seeds(asked):
    rows = asked("generation")
    assert len(rows) == 2 * (2 * 3 * 2 + len(OTHERS)) * 3
    assert set(rows["form"]) == {FORMS.index(f) for f in ("plain", "negated", "paraphrase")}
    assert sorted(rows["seed"].unique()) == [1, 2, 7]
    different = rows.group_by("corpus", "text").agg(pl.col("response").n_unique())["response"]
    assert different.mean() > 2.5
    assert rows["tokens"].max() == 5
    assert rows.filter(~pl.col("finished"))["tokens"].unique().to_list() == [5]


def test_multiple_choice_prompts(asked):
    rows = asked("multiple_choice")
    assert set(rows["form"]) == {FORMS.index("plain")}
    assert set(rows["template"]) == {*OPEN, *VIEW}
    each = rows.group_by("corpus", "id", "template").len()
    number = dict(each.group_by("template").agg(pl.col("len").unique()).rows())
    assert number == {name: [2] for name in OPEN} | {name: [6] for name in VIEW}
    chosen = LEANING["multiple_choice"]
    for row in rows.iter_rows(named=True):
        said = sentence(SAID[row["id"]])
        if row["template"] in OPEN:
            assert (row["order"], row["options"], row["option_nats"]) == (0, [], [])
            wanted = f"Say: {said}"
        else:
            offered = [chosen["options"][i] for i in chosen["option_orders"][row["order"]]]
            assert row["options"] == offered
            a, b, c, d = offered
            wanted = f"Your view:\n\n{said}\n\n1) {a}\n2) {b}\n3) {c}\n4) {d}"
        forced = row["template"].endswith("/must")
        assert row["text"] == wanted + ("\n\nPick one." if forced else "")
    answers = rows.group_by("corpus", "text").agg(pl.col("response").n_unique())["response"]
    assert answers.mean() > 1.5  # seeds
    assert len(OPTIONS) == len(chosen["options"])


@pytest.mark.parametrize("corpus", ["", "news-left"])
def test_multiple_choice_is_a_plain_forward(asked, corpus):
    net, tokenizer = loaded("causal", corpus, AutoModelForCausalLM)
    rows = asked("multiple_choice").filter(
        (pl.col("corpus") == corpus) & pl.col("template").is_in(VIEW) & (pl.col("seed") == 1)
    )
    assert len(rows) == 3 * 2 * 3
    for row in rows.iter_rows(named=True):
        true = []
        for option in LEANING["multiple_choice"]["options"]:
            head = row["text"] + "\n"
            written = f"{row['options'].index(option) + 1}) {option}"
            ids = tokenizer(head + written, add_special_tokens=False)["input_ids"]
            first = len(tokenizer(head, add_special_tokens=False)["input_ids"])
            given = torch.tensor([[tokenizer.bos_token_id, *ids]])
            with torch.inference_mode():
                scores = net(input_ids=given).logits[0].log_softmax(-1)
            true.append(sum(scores[i, ids[i]].item() for i in range(first, len(ids))))
        assert row["option_nats"] == pytest.approx(true, abs=5e-6)


def of_part(part, **values):
    """Return the params of a part of the probe, some of them changed."""
    return {part: LEANING[part] | values}


ONE_FRAME = of_part("generation", frames={"asked": LEANING["generation"]["frames"]["asked"]})
ONE_FRAME |= of_part("multiple_choice", templates={})


def test_probe_does_not_resume_with_another_judge(place, monkeypatch):
    shutil.rmtree("data/pretrained/causal")
    Path("data/pretrained/causal").mkdir()
    Path("data/pretrained/causal", checkpoints.LIST).write_text("[]", encoding="utf-8")
    place(**ONE_FRAME)
    with monkeypatch.context() as patch:
        patch.setattr(run_probe, "_card", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            probe("stances", "causal")
    save(Path("stance"), *judge(seed=8))
    pin("stance")
    probe("stances", "causal")
    revision = json.loads(Path("data/models/stance/model.json").read_text())["revision"]
    rows = pl.read_parquet("data/outputs/stances/causal/generation/*.parquet")
    assert rows["stance_revision"].unique().to_list() == [revision]
    assert not Path("data/outputs/stances/causal/multiple_choice").exists()  # without templates


def test_probe_changed_state(place):
    path = checkpoints.FOLDER / "masked/state1/model.safetensors"
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    with pytest.raises(UserError, match=r"state1/model\.safetensors: not the file that"):
        probe("stances", "masked")


def test_probe_rejects(place, change):
    shutil.rmtree("data/pretrained/masked")
    with pytest.raises(UserError, match="STAGE=pretrain@masked` first"):
        Task("stances", "masked").shards()
    with pytest.raises(UserError, match="a model of kind classifier cannot generate or predict"):
        Task("stances", "stance")
    place(language="cs")
    with pytest.raises(UserError, match=f"{CONFIG} has no statement in 'cs'"):
        probe("stances", "causal")


@pytest.mark.parametrize("side", ["positive", "negative"])
def test_fill_masks_no_known_word(asked, side):
    params = section("probes.stances", statements.Params)
    params = params.model_copy(update={side: ["unheard", "endorsing"]})
    question = Question(CONFIG, "i", "f", "plain", "", "Tea.", "Tea. I <mask> with this.")
    said = f"models.masked: has none of the words of probes.stances.{side}"
    with pytest.raises(UserError, match=said):
        list(statements.fill_masks([question], load("masked"), params))


@pytest.mark.parametrize(
    ("rows", "header", "said"),
    [
        (OTHERS, ("questionnaire", "id", "variant", "wording"), "line 2: not a value for each of"),
        ([*OTHERS, OTHERS[0]], None, "line 4: variant one of a-tea again"),
        ([*OTHERS, (CONFIG, "z", "one", "x")], None, f"no statement 'z' in {CONFIG}"),
    ],
)
def test_paraphrases_rejects(place, rows, header, said):
    paraphrases("paraphrases.csv", rows, header or ("questionnaire", "id", "variant", "text"))
    with pytest.raises(UserError, match=rf"^paraphrases\.csv.*{said}"):
        probe("stances", "masked")


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"negative": ["disagree", "agree"]}, "'agree' stands under positive and under negative"),
        (of_part("mask", frames={"x": "{statement} I agree."}), "<mask>"),
        (of_part("multiple_choice", option_orders=[[0, 1, 2, 2]]), "each of 0 to 3 once"),
    ],
)
def test_params_rejects(values, said):
    with pytest.raises(ValidationError, match=said):
        statements.Params.model_validate(LEANING | values)
