"""Models of entailment: logits are those of transformers, whatever else is asked."""

import json
import random
from pathlib import Path

import pytest
import torch
from models.tiny import save, wordpiece
from models.tiny_causal import (
    NAMES,
    SENTENCES,
    WORDS,
    bart_tokenizer,
    bert_classifier,
    gpt2_tokenizer,
)
from tokenizers import processors
from transformers import (
    AutoModelForSequenceClassification,
    AutoTokenizer,
    BertConfig,
    BertForSequenceClassification,
    GPT2Config,
    GPT2ForSequenceClassification,
    RobertaConfig,
    RobertaForSequenceClassification,
    pipeline,
)

from plumbline.builders.core.errors import Problem
from plumbline.probes.models import batching
from plumbline.probes.models.files import pin
from plumbline.probes.models.load import brought, load
from plumbline.probes.models.nli import Entailment

LABELS = ("CONTRADICTION", "NEUTRAL", "Entailment")
SIZES = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 48,
    "initializer_range": 0.3,
}
HYPOTHESES = [f"{name} is {word}." for name in NAMES[:2] for word in WORDS[:2]]
PAIRS = [(f"{name} was {word}", h) for name in NAMES for word in WORDS for h in HYPOTHESES]
PAIRS += [("", HYPOTHESES[0]), (SENTENCES[-1], HYPOTHESES[1])]


def pair_tokenizer(**options):
    tokenizer = wordpiece(SENTENCES, **options)
    tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    return tokenizer


def named(labels):
    return {
        "id2label": dict(enumerate(labels)),
        "label2id": {name: number for number, name in enumerate(labels)},
    }


def judge(labels=LABELS, positions=48):
    tokenizer = pair_tokenizer(longest=positions)
    torch.manual_seed(1)
    sizes = SIZES | {"max_position_embeddings": positions, "vocab_size": len(tokenizer)}
    return BertForSequenceClassification(BertConfig(**sizes, **named(labels))), tokenizer


def roberta(labels=LABELS):
    """Return a judge without kinds of tokens, whose vocabulary marks spaces."""
    tokenizer = bart_tokenizer()
    torch.manual_seed(2)
    config = RobertaConfig(
        vocab_size=len(tokenizer),
        max_position_embeddings=60,
        type_vocab_size=1,
        pad_token_id=1,
        bos_token_id=0,
        eos_token_id=2,
        **SIZES,
        **named(labels),
    )
    return RobertaForSequenceClassification(config), tokenizer


def gpt2(labels=LABELS):
    """Return a judge that reads from left to right, and knows of no padding."""
    tokenizer = gpt2_tokenizer()
    torch.manual_seed(3)
    config = GPT2Config(
        vocab_size=len(tokenizer), n_positions=64, n_embd=32, n_layer=2, n_head=2, **named(labels)
    )
    config.initializer_range = 0.3
    return GPT2ForSequenceClassification(config), tokenizer


MADE = {"bert": judge, "roberta": roberta, "gpt2": gpt2}


@pytest.fixture
def given(tmp_path, monkeypatch):
    """Change to a folder, and return what brings a model there under a name."""
    monkeypatch.chdir(tmp_path)
    models = {}

    def put(name, made, **changes):
        save(tmp_path / name, *made)
        own = {"id": f"./{name}", "kind": "classifier", "dtype": "float64"}
        models[name] = own | changes
        Path("params.yaml").write_text(json.dumps({"models": models}), encoding="utf-8")
        pin(name)
        return name

    return put


@pytest.mark.parametrize("kind", MADE)
def test_logits_are_those_of_a_plain_forward_of_each_pair_alone(given, kind):
    found = Entailment(given(kind, MADE[kind]())).logits(PAIRS)
    net = AutoModelForSequenceClassification.from_pretrained(kind).double().eval()
    tokenizer = AutoTokenizer.from_pretrained(kind)
    for (premise, hypothesis), logit in zip(PAIRS, found, strict=True):
        with torch.inference_mode():
            own = tokenizer(premise, hypothesis, return_tensors="pt")
            true = net(**own).logits[0, 2].item()
        assert logit == pytest.approx(true, abs=2e-6)
    assert len(set(found)) > 0.9 * len(PAIRS)  # a mix-up would be seen


@pytest.mark.parametrize("kind", MADE)
@pytest.mark.parametrize("first", [0, 2])
def test_softmax_of_two_hypotheses_is_the_zero_shot_pipelines(given, kind, first):
    labels = (*LABELS[2 - first :], *LABELS[: 2 - first])
    judged = Entailment(given(kind, MADE[kind](labels)))
    assert judged.place == labels.index("Entailment") == first
    net = AutoModelForSequenceClassification.from_pretrained(kind).double().eval()
    tokenizer = AutoTokenizer.from_pretrained(kind)
    told = pipeline("zero-shot-classification", model=net, tokenizer=tokenizer, device="cpu")
    for premise in SENTENCES[:6]:
        answer = told(premise, ["calm", "tall"], hypothesis_template="Ada is {}.")
        shares = dict(zip(answer["labels"], answer["scores"], strict=True))
        logits = judged.logits([(premise, f"Ada is {word}.") for word in ("calm", "tall")])
        both = torch.tensor(logits, dtype=torch.float64).softmax(0).tolist()
        assert both == pytest.approx([shares["calm"], shares["tall"]], abs=1e-5)


@pytest.mark.parametrize("kind", MADE)
def test_answers_are_the_same_to_the_last_bit_in_any_company_and_order(given, kind, monkeypatch):
    judged = Entailment(given(kind, MADE[kind](), dtype="float32"))
    together = judged.logits(PAIRS)
    order = list(range(len(PAIRS)))
    random.Random(1).shuffle(order)
    assert judged.logits([PAIRS[i] for i in order]) == [together[i] for i in order]
    assert judged.logits([*PAIRS, *PAIRS]) == together * 2
    for tokens, cores in ((1, 2), (70, 1), (1 << 20, 2)):
        monkeypatch.setattr(batching, "TOKENS", tokens)
        monkeypatch.setenv("PLUMBLINE_CORES", str(cores))
        assert Entailment(kind).logits(PAIRS) == together
    assert [judged.logits([pair])[0] for pair in PAIRS] == together
    assert judged.logits([]) == []


def test_a_pair_too_long_for_the_model_is_refused_and_not_cut(given):
    judged = Entailment(given("short", judge(positions=20)))
    fits = " ".join(["calm"] * 15), "kind kind"
    assert len(judged.logits([fits])) == 1  # with three special tokens 20
    with pytest.raises(Problem, match=r"models\.short: .* has 21 tokens, the model takes 20"):
        judged.logits([PAIRS[0], (fits[0] + " calm", fits[1])])


@pytest.mark.parametrize("labels", [("no", "maybe", "yes"), ("entailment", "Entails", "none")])
def test_a_classifier_that_knows_no_entailment_is_refused(given, labels):
    with pytest.raises(
        Problem, match=r"models\.odd: .* name a model of natural-language inference"
    ):
        Entailment(given("odd", judge(labels)))


def test_what_is_no_classifier_or_not_there_is_told(given):
    name = given("judge", judge())
    path = Path("judge/model.safetensors")
    kept = path.read_bytes()
    path.write_bytes(kept[:-1] + b"x")
    with pytest.raises(Problem, match="make that anew with"):
        Entailment(name)
    path.write_bytes(kept)
    Entailment(name)
    Path("data/models/judge/model.json").unlink()
    with pytest.raises(Problem, match=r"STAGE=weights@judge` first"):
        Entailment(name)
    given("masked", (bert_classifier(pair_tokenizer()), pair_tokenizer()), kind="masked")
    with pytest.raises(Problem, match="of kind masked; stances need a classifier"):
        Entailment("masked")


def test_what_was_brought_tells_folder_params_and_facts(given):
    name = given("judge", judge())
    where, params, facts = brought(name)
    assert where.resolve() == Path("judge").resolve()
    assert params.kind == "classifier"
    assert facts == json.loads(Path("data/models/judge/model.json").read_text("utf-8"))
    assert Entailment(name).revision == load(name).facts()["revision"] == facts["revision"]
    Path("judge/pytorch_model.safetensors").write_bytes(b"")
    with pytest.raises(Problem, match=r"not in .*model\.json, and would be read"):
        brought(name)
