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
from plumbline.probes.core.run_probe import Task, probe
from plumbline.probes.leaning import stances as statements
from plumbline.probes.leaning.scoring import OPTIONS
from plumbline.probes.models.load import load, pin
from plumbline.probes.models.params import model
from plumbline.probes.prompts.leaning import Question
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


def test_mask_has_every_wording_in_every_prompt_of_every_state(asked):
    rows = asked("mask")
    assert len(rows) == 3 * (2 * (3 * 2 + 2) + len(OTHERS))
    key = [*checkpoints.KEY, "questionnaire", "id", "frame", "form", "variant"]
    assert not rows.select(key).is_duplicated().any()
    assert Counter(rows["form"]) == {"plain": 18, "negated": 18, "paraphrase": 6, "prior": 12}
    (first,) = set(rows.filter(form="paraphrase")["frame"])
    frame = LEANING["mask"]["frames"][first]
    texts = set(rows.filter(pl.col("frame") == first)["text"])
    said = {sentence(text) for text in SAID.values()}
    said |= {f"It is not true that {text}." for text in SAID.values()}
    said |= {text for *_, text in OTHERS} | {"N/A", "This."}
    assert texts == {frame.replace("{statement}", text) for text in said}
    priors = rows.filter(form="prior")
    assert set(priors["id"]) == set(priors["questionnaire"]) == {""}
    assert set(priors["variant"]) == {"N/A", "This."}
    assert set(rows.filter(pl.col("variant") == "two")["id"]) == {"a-tea"}
    assert rows["unknown"].max() == 0


@pytest.mark.parametrize("corpus", STATES)
def test_fill_masks_masses_equal_a_softmax_over_the_vocabulary(asked, corpus):
    net, tokenizer = loaded("masked", corpus, AutoModelForMaskedLM)
    rows = asked("mask").filter(pl.col("corpus") == corpus)
    for row in rows.iter_rows(named=True):
        scores = at_mask(net, tokenizer, row["text"])
        for side, words in (("agree", LEANING["positive"]), ("disagree", LEANING["negative"])):
            true, number = mass(scores, tokenizer, words)
            assert row[f"{side}_nats"] == pytest.approx(true, abs=2e-6)
            assert row[f"{side}_words"] == number == 2  # "endorsing" is of several pieces
    assert rows["agree_nats"].n_unique() > 15


def test_fill_masks_best_tokens_equal_the_pipeline_of_transformers(asked):
    for corpus in STATES:
        net, tokenizer = loaded("masked", corpus, AutoModelForMaskedLM)
        fill = pipeline("fill-mask", model=net, tokenizer=tokenizer, top_k=4, device="cpu")
        rows = asked("mask").filter(pl.col("corpus") == corpus)
        for row in rows.iter_rows(named=True):
            told = fill(row["text"].replace("<mask>", tokenizer.mask_token))
            pieces = [tokenizer.convert_ids_to_tokens(one["token"]) for one in told]
            assert row["words"] == pieces  # words and ##pieces as the vocabulary has them
            assert row["words_nats"] == pytest.approx(
                [math.log(one["score"]) for one in told], abs=2e-5
            )


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


def test_generate_stances_equal_the_zero_shot_pipeline(asked):
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


def test_choose_offers_options_in_every_order(asked):
    rows = asked("multiple_choice")
    assert set(rows["form"]) == {"plain"}
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
def test_choose_log_probabilities_equal_a_forward_pass(asked, corpus):
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


def test_amount_counts_the_prompts(asked):
    params = section("probes.stances", statements.Params)
    for name in ("masked", "causal"):
        folders = Task("stances", name).folders
        for config, number in statements.amount(params, model(name), folders).items():
            assert number == len(asked(config)), config


def of_part(part, **values):
    """Return the params of a part of the probe, some of them changed."""
    return {part: LEANING[part] | values}


ONE_FRAME = of_part("generation", frames={"asked": LEANING["generation"]["frames"]["asked"]})
ONE_FRAME |= of_part("multiple_choice", excluded_models=["causal"])


def test_probe_stopped_run_starts_again_with_another_judge(place, monkeypatch):
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
    assert not Path("data/outputs/stances/causal/multiple_choice").exists()  # excluded


def test_probe_wrong_settings_are_user_errors(place):
    shutil.rmtree("data/pretrained/masked")
    with pytest.raises(UserError, match="pretrain@masked"):
        Task("stances", "masked").shards()
    with pytest.raises(UserError):  # a classifier does not write
        Task("stances", "stance")
    for values in ({"language": "cs"}, {"language": "en", "questionnaires": ["compass"]}):
        place(**values)
        with pytest.raises(UserError):
            probe("stances", "causal")


def test_fill_masks_needs_a_word_of_each_list(asked):
    params = section("probes.stances", statements.Params)
    params = params.model_copy(update={"negative": ["unheard", "endorsing"]})
    question = Question(CONFIG, "i", "f", "plain", "", "Tea.", "Tea. I <mask> with this.")
    with pytest.raises(UserError, match="negative"):
        list(statements.fill_masks([question], load("masked"), params))


@pytest.mark.parametrize(
    "rows", [[*OTHERS, (CONFIG, "a-tea", "", "x")], [*OTHERS, (CONFIG, "z", "one", "x")]]
)
def test_paraphrases_that_fit_no_statement_are_user_errors(place, rows):
    paraphrases("paraphrases.csv", rows)
    with pytest.raises(UserError, match=r"paraphrases\.csv"):
        probe("stances", "masked")


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"negative": ["disagree", "agree"]}, "agree"),
        (of_part("mask", frames={"x": "{statement} I agree."}), "mask"),
        (of_part("multiple_choice", option_orders=[[0, 1, 2, 2]]), "option_orders"),
    ],
)
def test_params_wrong_prompts_are_refused(values, field):
    with pytest.raises(ValidationError, match=field):
        statements.Params.model_validate(LEANING | values)
