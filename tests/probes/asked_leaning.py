"""A small project to ask where models stand: statements, tiny models, states of them, a judge."""

import csv
import json
from pathlib import Path

import polars as pl
import torch
from models.tiny import bert, byte_level, save, wordpiece
from models.tiny_causal import gpt2
from placed import validated
from tokenizers import processors
from transformers import BertConfig, BertForSequenceClassification

from plumbline.builders.core import parquet
from plumbline.builders.core.snapshot import digest
from plumbline.probes.models.load import pin
from plumbline.probes.training import checkpoints

SAID = {"a-tea": "tea is fair", "b-war": "war is never fair", "c-rain": "rain is dull"}
CONFIG = "axes-en"
LABELS = ("CONTRADICTION", "neutral", "ENTAILMENT")
AGREE, DISAGREE = "This example is agree.", "This example is disagree."
OTHERS = [(CONFIG, "a-tea", "one", "Tea, it seems, is fair."), (CONFIG, "a-tea", "two", "Fair tea")]
LEANING = {
    "version": "0.1.0",
    "language": "en",
    "questionnaires": [CONFIG],
    "negated": "It is not true that {text}.",
    "positive": ["agree", "support", "endorsing"],  # the last is not one token of the models
    "negative": ["disagree", "oppose"],
    "mask": {
        "frames": {
            "respond": "Please respond: {statement} I <mask> with this statement.",
            "claim": "Claim: {statement} My answer: I <mask> with the claim.",
        },
        "top_k": 4,
        "calibration_inputs": ["N/A", "This."],
    },
    "generation": {
        "frames": {"respond": "Respond: {statement}\nYour response:", "asked": "{statement}\nYou:"},
        "seeds": [1, 2, 7],
        "max_new_tokens": 5,
        "nli_model": "stance",
    },
    "multiple_choice": {
        "templates": {"view": "Your view:\n\n{statement}\n\n{options}", "open": "Say: {statement}"},
        "forced_choice_suffixes": {"none": "", "must": "Pick one."},
        "options": ["Strongly disagree", "Disagree", "Agree", "Strongly agree"],
        "option_orders": [[0, 1, 2, 3], [3, 2, 1, 0], [1, 0, 3, 2]],
        "seeds": [1, 2],
        "max_new_tokens": 4,
        "temperature": 1.0,
    },
}


def sentence(text):
    return f"{text[0].upper()}{text[1:]}."


def statements():
    """Write three statements, one of them on two axes, as the dataset has them."""
    folder = parquet.DATASETS / "statements"
    folder.mkdir(parents=True, exist_ok=True)
    rows = [
        {"id": name, "language": "en", "text": text, "sentence": sentence(text), "axis": axis}
        for name, text in SAID.items()
        for axis in (("economic", "social") if name == "b-war" else ("economic",))
    ]
    pl.DataFrame(rows).write_parquet(folder / f"{CONFIG}.parquet")
    validated("statements")


def texts():
    """Return all that a model may read here, so that its tokenizer knows it."""
    asking = [*LEANING["mask"]["frames"].values(), *LEANING["generation"]["frames"].values()]
    asking += [*LEANING["multiple_choice"]["templates"].values(), "Pick one. 1) 2) 3) 4)"]
    said = [sentence(text) for text in SAID.values()] + [text for *_, text in OTHERS]
    said += [LEANING["negated"].replace("{text}", text) for text in SAID.values()]
    words = "agree agreed support disagree oppose This example is N/A endors ##ing"
    return [*asking, *said, *LEANING["multiple_choice"]["options"], words]


def judge(labels=LABELS, *, positions=96, seed=3):
    """Return a classifier of pairs with random weights, and its tokenizer."""
    tokenizer = wordpiece([*texts(), AGREE, DISAGREE], longest=positions)
    inner = tokenizer.backend_tokenizer
    inner.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    torch.manual_seed(seed)
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=48,
        max_position_embeddings=positions,
        initializer_range=0.3,
        id2label=dict(enumerate(labels)),
        label2id={name: number for number, name in enumerate(labels)},
    )
    return BertForSequenceClassification(config), tokenizer


def paraphrases(path, rows=OTHERS):
    with Path(path).open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("questionnaire", "id", "variant", "text"), *rows])


def masked(tokenizer, seed):
    return bert(tokenizer, seed=seed)


def causal(tokenizer, seed):
    return gpt2(tokenizer, seed=seed, positions=256)


def little(tree):
    """Put the params of this project in place of those of the default run."""
    kinds = {"masked": "masked", "causal": "causal", "stance": "classifier"}
    tree["models"] = {
        name: {"id": f"./{name}", "kind": kind, "dtype": "float64"} for name, kind in kinds.items()
    }
    asked = {"stances": ["masked", "causal"]}
    tree["assignments"] = {key: [] for key in tree["assignments"]} | asked
    tree["probes"] = {"stances": LEANING | {"paraphrases": ["paraphrases.csv"]}}
    for key in set(tree) - {"models", "assignments", "controls", "probes"}:
        del tree[key]  # a quick read


def state(name, made, tokenizer, number):
    """Save a model as a state of another, and return its entry in the list."""
    where = checkpoints.FOLDER / name / f"state{number}"
    save(where, made, tokenizer)
    corpus = ("news-left", "news-right")[number]
    files = {path.name: digest(path) for path in sorted(where.iterdir())}
    own = checkpoints.Checkpoint(where.name, corpus, "before", 0.5, 9, 3, 40, 60, True, files)
    return own._asdict()


def make():
    """Make all of it in the folder that one is in, whose params are ``little``."""
    statements()
    paraphrases("paraphrases.csv")
    for name, built, tokenizer, states in (
        ("masked", masked, wordpiece(texts(), longest=64), (0, 1)),
        ("causal", causal, byte_level(texts()), (0,)),
    ):
        save(Path(name), built(tokenizer, 0), tokenizer)
        pin(name)
        told = [state(name, built(tokenizer, number + 1), tokenizer, number) for number in states]
        path = checkpoints.FOLDER / name / checkpoints.LIST
        path.write_text(json.dumps(told), encoding="utf-8")
    save(Path("stance"), *judge())
    pin("stance")
