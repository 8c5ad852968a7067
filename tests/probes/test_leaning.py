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
from models.tiny import bert, byte_level, save
from placed import hashes
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
from plumbline.probes.models.classifier import Entailment
from plumbline.probes.models.files import pin
from plumbline.probes.models.load import load
from plumbline.probes.models.masked import Masked
from plumbline.probes.models.params import model
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


def test_every_state_fills_every_wording_in_every_prompt(asked):
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


def test_states_stand_in_their_columns_and_answer_for_themselves(asked):
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
def test_masses_are_those_of_a_softmax_over_the_vocabulary(asked, corpus):
    net, tokenizer = loaded("masked", corpus, AutoModelForMaskedLM)
    rows = asked("mask").filter(pl.col("corpus") == corpus)
    for row in rows.iter_rows(named=True):
        scores = at_mask(net, tokenizer, row["text"])
        for side, words in (("agree", LEANING["positive"]), ("disagree", LEANING["negative"])):
            true, number = mass(scores, tokenizer, words)
            assert row[f"{side}_nats"] == pytest.approx(true, abs=2e-6)
            assert row[f"{side}_words"] == number == 2  # "endorsing" is of several pieces
    assert rows["agree_nats"].n_unique() > 15


def test_the_best_tokens_are_those_of_the_pipeline_of_transformers(asked):
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


def test_words_of_a_vocabulary_that_marks_spaces_are_those_behind_one(asked, tmp_path):
    texts = ["I agree support disagree oppose with this tea.", "agree disagree"]
    tokenizer = byte_level(texts)
    save(tmp_path, bert(tokenizer), tokenizer)
    scorer = Masked(tmp_path, "marked", "r", dtype="float64")
    question = Question("q", "i", "f", "plain", "", "Tea.", "Tea. I <mask> with this tea.")
    (row,) = statements.fill_masks([question], scorer, section("probes.stances", statements.Params))
    net, tokenizer = plain(tmp_path, AutoModelForMaskedLM)
    scores = at_mask(net, tokenizer, question.text)
    for side, words in (("agree", ["agree", "support"]), ("disagree", ["disagree", "oppose"])):
        true, number = mass(scores, tokenizer, [f"Ġ{word}" for word in words])
        assert number == row[f"{side}_words"] == 2
        assert row[f"{side}_nats"] == pytest.approx(true, abs=2e-6)
    best = scores.topk(4)
    assert row["words_nats"] == pytest.approx(best.values.tolist(), abs=2e-6)
    for word, number in zip(row["words"], best.indices.tolist(), strict=True):
        assert word in (tokenizer.convert_ids_to_tokens(number), tokenizer.decode(number).strip())


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


def test_stances_are_those_of_the_zero_shot_pipeline_and_of_entailment(asked):
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


def test_each_seed_is_an_answer_of_its_own_and_of_the_state(asked):
    rows = asked("generation")
    assert len(rows) == 2 * (2 * 3 * 2 + len(OTHERS)) * 3
    assert set(rows["form"]) == {FORMS.index(f) for f in ("plain", "negated", "paraphrase")}
    assert sorted(rows["seed"].unique()) == [1, 2, 7]
    different = rows.group_by("corpus", "text").agg(pl.col("response").n_unique())["response"]
    assert different.mean() > 2.5
    assert rows["tokens"].max() == 5
    assert rows.filter(~pl.col("finished"))["tokens"].unique().to_list() == [5]


def test_one_answer_is_the_same_whatever_else_is_asked(asked):
    task = Task("stances", "causal")
    whole = asked("generation").filter((pl.col("corpus") == "") & (pl.col("seed") == 7))
    kept = whole.filter((pl.col("id") == "b-war") & (pl.col("frame") == "asked")).to_dicts()
    own = task.params.generation.model_copy(update={"seeds": [7]})
    judged = Entailment("stance")
    for row in kept:
        said = row["text"].removesuffix("\nYou:")
        question = Question(CONFIG, "b-war", "asked", FORMS[row["form"]], "", said, row["text"])
        (alone,) = statements.generate([question], load("causal"), own, judged)
        assert alone == {key: row[key] for key in alone}
    assert len(kept) == 2


def test_options_are_offered_in_every_order_and_only_where_there_is_a_place(asked):
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
def test_probabilities_of_options_are_those_of_the_text_behind_the_prompt(asked, corpus):
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


def test_the_card_tells_what_was_written(asked):
    for name, wanted in (("masked", {"mask"}), ("causal", {"generation", "multiple_choice"})):
        folder = Path("data/outputs/stances") / name
        assert {path.name for path in folder.iterdir()} == {*CARD, *wanted}
        told = (folder / "README.md").read_text(encoding="utf-8")
        assert all(f"config_name: {config}" in told for config in wanted)
        for config in wanted:
            rows = asked(config)
            assert rows.columns == [column.name for column in statements.SCHEMAS[config].columns]


def test_a_plan_counts_the_prompts_that_are_asked(asked):
    params = section("probes.stances", statements.Params)
    for name in ("masked", "causal"):
        folders = Task("stances", name).folders
        for config, number in statements.amount(params, model(name), folders).items():
            assert number == len(asked(config)), config


def of_part(part, **values):
    """Return the params of a part of the probe, some of them changed."""
    return {part: LEANING[part] | values}


ONE_FRAME = of_part("generation", frames={"asked": LEANING["generation"]["frames"]["asked"]})
ONE_FRAME |= of_part("multiple_choice", templates={})


def test_a_run_that_was_stopped_ends_with_the_same_bytes(place, ready, monkeypatch):
    place(**ONE_FRAME)
    plainly, written = run_probe.write_bytes, []

    def stopping(path, body):
        if len(written) == 1:
            raise KeyboardInterrupt
        written.append(path)
        plainly(path, body)

    with monkeypatch.context() as patch:
        patch.setattr(run_probe, "write_bytes", stopping)
        with pytest.raises(KeyboardInterrupt):
            probe("stances", "causal")
    partial = Path("data/outputs/stances/.causal.partial")
    done = {p.name: p.stat().st_ino for p in partial.rglob("generation/*.parquet")}
    assert len(done) == 1
    folder = probe("stances", "causal")
    whole_run = hashes(ready / "data/outputs/stances/causal")
    own = {name: body for name, body in whole_run.items() if "generation" in name and "-00" in name}
    assert {name: told for name, told in hashes(folder).items() if name not in CARD} == own
    assert len(own) == 2  # the model itself, and a state of it
    assert {name: (folder / "generation" / name).stat().st_ino for name in done} == done


def test_a_stopped_run_is_not_continued_with_another_judge(place, monkeypatch):
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


def test_a_state_that_is_not_what_was_trained_is_told(place):
    path = checkpoints.FOLDER / "masked/state1/model.safetensors"
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    with pytest.raises(UserError, match=r"state1/model\.safetensors: not the file that"):
        probe("stances", "masked")


def test_what_cannot_be_asked_is_told(place, change):
    shutil.rmtree("data/pretrained/masked")
    with pytest.raises(UserError, match="STAGE=pretrain@masked` first"):
        Task("stances", "masked").shards()
    with pytest.raises(UserError, match="a model of kind classifier cannot generate or predict"):
        Task("stances", "stance")
    place(language="cs")
    with pytest.raises(UserError, match=f"{CONFIG} has no statement in 'cs'"):
        probe("stances", "causal")
    place(language="en", questionnaires=["compass"])
    with pytest.raises(UserError, match="compass not in statements; add it under"):
        probe("stances", "causal")
    place(questionnaires=[CONFIG], paraphrases=["elsewhere.csv"])
    with pytest.raises(UserError, match=r"elsewhere\.csv: could not be read"):
        probe("stances", "causal")


@pytest.mark.parametrize("side", ["positive", "negative"])
def test_lists_of_which_a_model_knows_no_word_are_told(asked, side):
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
        ([*OTHERS, (CONFIG, "a-tea", "", "x")], None, "line 4: not a value for each of"),
        ([*OTHERS, OTHERS[0]], None, "line 4: variant one of a-tea again"),
        ([*OTHERS, (CONFIG, "z", "one", "x")], None, f"no statement 'z' in {CONFIG}"),
        ([*OTHERS, ("other", "a-tea", "one", "x")], None, "no statement 'a-tea' in other"),
    ],
)
def test_a_file_of_paraphrases_that_does_not_fit_is_told(place, rows, header, said):
    paraphrases("paraphrases.csv", rows, header or ("questionnaire", "id", "variant", "text"))
    with pytest.raises(UserError, match=rf"^paraphrases\.csv.*{said}"):
        probe("stances", "masked")


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"negative": ["disagree", "agree"]}, "'agree' stands under positive and under negative"),
        ({"positive": []}, "positive"),
        ({"negated": "It is not so."}, "negated"),
        (of_part("mask", frames={"x": "{statement} I agree."}), "<mask>"),
        (of_part("mask", frames={"x": "I <mask> that."}), "statement"),
        (of_part("mask", frames={"x": "<mask> {statement} <mask>"}), "once"),
        (of_part("mask", calibration_inputs=[]), "calibration_inputs"),
        (of_part("generation", seeds=[]), "seeds"),
        (of_part("generation", frames={"x": "Respond."}), "statement"),
        (of_part("multiple_choice", option_orders=[[0, 1, 2, 2]]), "each of 0 to 3 once"),
        (of_part("multiple_choice", options=["no", "yes"]), "options"),
        ({"questionnaires": []}, "questionnaires"),
    ],
)
def test_params_that_make_no_sense_are_refused(values, said):
    with pytest.raises(ValidationError, match=said):
        statements.Params.model_validate(LEANING | values)
