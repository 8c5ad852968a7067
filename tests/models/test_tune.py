"""Training a little further: what is learnt, what is kept, and what a stopped training loses."""

import numpy as np
import pytest
import torch
from models.tiny import answers, bert, byte_level, save, wordpiece
from models.tiny_causal import gpt2
from transformers import AutoModelForMaskedLM

from plumbline.builders.core.errors import UserError
from plumbline.probes.models.causal import Causal
from plumbline.probes.models.classifier import Classifier
from plumbline.probes.models.forward import pretrained
from plumbline.probes.models.masked import Masked
from plumbline.probes.models.tokenizer import Tokens
from plumbline.probes.training import batches, distributed
from plumbline.probes.training import train as tune
from plumbline.probes.training.batches import IGNORED, Rows, hide, pieces, within
from plumbline.probes.training.train import Tuning, finetune

TEXTS = [f"the {who} is {word} today" for who in ("cook", "smith") for word in ("calm", "loud")]
TUNING = Tuning(learning_rate=5e-3, epochs=2, batch=4, length=16, seed=3)


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


@pytest.fixture(autouse=True)
def one_thread(monkeypatch):
    """Use one thread: models as small as these lose more by waiting than they gain."""
    monkeypatch.setattr(tune, "cores", lambda: 1)


@pytest.fixture
def base(tmp_path):
    tokenizer = wordpiece(TEXTS)
    return save(tmp_path / "base", bert(tokenizer, spread=0.05), tokenizer)


def fresh(folder):
    return pretrained(folder, "tiny", "float64", AutoModelForMaskedLM, pickles=False)


def go(base, into, texts=None, tuning=TUNING):
    return finetune(base, "tiny", "masked", texts or TEXTS * 5, tuning, into).folder


def test_finetune_masked_learns(base, tmp_path):
    said = ["the cook is calm today"] * 24
    after = go(base, tmp_path / "after", said, TUNING._replace(epochs=6, learning_rate=1e-2))
    chance = {}
    for name, folder in (("base", base), ("after", after)):
        scorer = Masked(folder, name, "r", dtype="float64")
        (fill,) = answers(scorer.fill(["the cook is <mask> today"], ["calm", "loud"], 2))
        chance[name] = dict(zip(fill.words, fill.logprobs_nats, strict=True))
    assert chance["after"]["calm"] > chance["base"]["calm"] + 1
    assert chance["after"]["calm"] > -0.1
    assert chance["after"]["loud"] < chance["base"]["loud"]


def test_finetune_resumes(base, tmp_path, monkeypatch):
    monkeypatch.setattr(tune, "EVERY", 3)
    whole = contents(go(base, tmp_path / "whole"))
    plain, steps = batches.loss_of, []

    def stops(*given, **options):
        steps.append(1)
        if len(steps) == 6:
            raise KeyboardInterrupt
        return plain(*given, **options)

    monkeypatch.setattr(batches, "loss_of", stops)
    with pytest.raises(KeyboardInterrupt):
        go(base, tmp_path / "stopped")
    left = {p.name for p in (tmp_path / "stopped").iterdir()}
    assert left == {tune.CHECKPOINT}
    assert contents(go(base, tmp_path / "stopped")) == whole
    assert len(steps) == 6 + 10 - 3  # the first three were not done again
    assert contents(go(base, tmp_path / "stopped")) == whole
    assert len(steps) == 6 + 10 - 3  # nothing was: the model was there
    left = {p.name for p in (tmp_path / "stopped").iterdir()}
    assert left == {tune.DONE, tune.LOSSES}


def test_finetune_causal_learns(tmp_path):
    tokenizer = byte_level(TEXTS)
    base = save(tmp_path / "base", gpt2(tokenizer), tokenizer)
    longer = TUNING._replace(epochs=4)
    after = finetune(base, "tiny", "causal", TEXTS[:1] * 24, longer, tmp_path / "a").folder
    before, later = (
        next(iter(Causal(f, "x", "r", dtype="float64").logprobs([("the cook is", " calm")])))
        for f in (base, after)
    )
    assert later.logprob_nats > before.logprob_nats + 1


def test_hide_share_and_kinds(base):
    seed = 11
    print(f"seed {seed}")
    torch.manual_seed(seed)
    tokens = Tokens(base, "tiny")
    rows = list(pieces(tokens, TEXTS * 200, 16))
    ids, there = torch.tensor(rows), torch.ones(len(rows), len(rows[0]), dtype=torch.long)
    given, labels = hide(tokens, ids, there, len(tokens))
    chosen = labels != IGNORED
    assert (labels[chosen] == ids[chosen]).all()
    assert (given[~chosen] == ids[~chosen]).all()
    special = torch.isin(ids, torch.tensor(tokens.tokenizer.all_special_ids))
    assert not (chosen & special).any()
    assert chosen.any(dim=1).all()  # else a text of few words would often teach nothing
    # of n = 5 words each with probability .15, one more where none was: .15 n + .85^n
    assert chosen.sum().item() / len(rows) == pytest.approx(0.75 + 0.85**5, rel=0.07)
    masked = given[chosen] == tokens.mask_id
    assert masked.double().mean().item() == pytest.approx(0.8, abs=0.04)
    kept = given[chosen] == ids[chosen]
    assert kept.double().mean().item() == pytest.approx(0.1, abs=0.04)


def gradient(model):
    """Return the gradient of all weights, and forget it."""
    found = torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])
    model.zero_grad()
    return found


def test_loss_equals_the_models_own(base):
    tokens = Tokens(base, "tiny")
    model = fresh(base).train()
    rows = list(pieces(tokens, [*TEXTS, " ".join(TEXTS)], 16))
    places = []
    layer = model.get_output_embeddings()
    watch = layer.register_forward_hook(lambda _, __, out: places.append(out.shape))

    torch.manual_seed(5)
    loss = batches.loss_of(model, batches.batched(tokens, rows, batches.MASKED), masked=True)
    loss.backward()
    found = gradient(model)
    watch.remove()
    torch.manual_seed(5)
    width = max(map(len, rows))
    pad = tokens.tokenizer.pad_token_id
    ids = torch.tensor([row + [pad] * (width - len(row)) for row in rows])
    there = torch.tensor([[1] * len(row) + [0] * (width - len(row)) for row in rows])
    given, labels = hide(tokens, ids, there, len(tokens))
    own = model(input_ids=given, attention_mask=there, labels=labels)
    assert own.logits.dim() == 3  # nothing is left behind in the model
    assert loss.item() == pytest.approx(own.loss.item(), abs=1e-12)
    own.loss.backward()
    assert torch.allclose(found, gradient(model), atol=1e-12)
    assert places == [((labels != IGNORED).sum(), len(tokens))]


def test_pieces_of_long_texts(base):
    tokens = Tokens(base, "tiny")
    text = " ".join(TEXTS)
    (whole,) = tokens.encode([text], special=False)
    rows = list(pieces(tokens, [text], 8))
    assert [i for row in rows for i in row[1:-1]] == whole
    assert {len(row) for row in rows[:-1]} == {8}
    begin, end = tokens.tokenizer.cls_token_id, tokens.tokenizer.sep_token_id
    assert all((row[0], row[-1]) == (begin, end) for row in rows)


def test_finetune_no_texts_or_no_finite_loss(base, tmp_path):
    with pytest.raises(UserError, match="nothing to train on"):
        go(base, tmp_path / "x", texts=[""])
    with pytest.raises(UserError, match="lower the learning rate"):
        go(base, tmp_path / "x", tuning=TUNING._replace(learning_rate=1e200, epochs=9))


def weights(folder):
    return dict(fresh(folder).named_parameters())


def test_finetune_weight_decay(base, tmp_path):
    step = TUNING._replace(epochs=1, batch=99)  # a single one, at the full learning rate
    before = weights(base)
    plain = weights(go(base, tmp_path / "plain", tuning=step))
    less = weights(go(base, tmp_path / "less", tuning=step._replace(weight_decay=0.5)))
    for name, value in before.items():
        shrunk = step.learning_rate * 0.5 * value if value.ndim > 1 else torch.zeros_like(value)
        assert torch.allclose(plain[name] - less[name], shrunk, atol=1e-6, rtol=0), name
    assert {value.ndim for value in before.values()} == {1, 2}


def gradients(base, rows, room):
    tokens = Tokens(base, "tiny")
    model = fresh(base)
    torch.manual_seed(5)
    widths = []
    watch = model.register_forward_hook(
        lambda _, __, named, ___: widths.append(named["input_ids"].shape), with_kwargs=True
    )
    for loss, weight in batches.losses_of(
        tokens, model, Rows(rows), share=batches.MASKED, room=room
    ):
        (loss * weight).backward()
    watch.remove()
    return gradient(model), widths


def test_passes_have_the_gradient_of_one(base, monkeypatch):
    monkeypatch.setattr(distributed, "SMALL", 16)
    tokens = Tokens(base, "tiny")
    texts = [*TEXTS, " ".join(TEXTS[:2]), "calm"] * 3
    rows = [np.array(ids, dtype=np.int32) for ids in pieces(tokens, texts, 16)]
    one, whole = gradients(base, rows, 0)
    several, parts = gradients(base, rows, 48)
    assert whole == [(len(rows), 12)]
    assert len({width for _, width in parts}) > 2
    assert sum(n * width for n, width in parts) < 0.8 * len(rows) * 12
    assert torch.allclose(one, several, atol=1e-12)


def test_within_a_token_budget(base):
    tokens = Tokens(base, "tiny")
    (each,) = {len(ids) for ids in tokens.encode(TEXTS)}
    assert within(tokens, TEXTS, 3 * each) == (TEXTS[:3], 3 * each)
    assert within(tokens, TEXTS, 3 * each - 1) == (TEXTS[:2], 2 * each)
    assert within(tokens, TEXTS, 99 * each) == (TEXTS, 4 * each)


def test_finetune_classifier_learns(tmp_path):
    texts = [
        f"what a {word} {what}" for word in ("fine", "foul") for what in ("day", "meal", "car")
    ]
    tokenizer = wordpiece(texts)
    start = save(tmp_path / "start", bert(tokenizer), tokenizer)
    tuning, classes = Tuning(5e-3, 30, 2, 16, 1), ["fine", "foul"]
    labels = [int("foul" in text) for text in texts]
    done = tune.finetune_classifier(start, "m", texts, labels, classes, tuning, tmp_path / "into")
    assert len(done.losses) == 3 * 30
    model = Classifier(done.folder, "m", "r", dtype="float32")
    assert model.labels == ("fine", "foul")
    right = [p.probabilities[i] for p, i in zip(model.classify(texts), labels, strict=True)]
    assert min(right) > 0.9
