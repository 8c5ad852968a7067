"""Training a little further: what is learnt, what is kept, and what a stopped training loses."""

import hashlib

import pytest
import torch
from models.tiny import bert, byte_level, save, wordpiece
from models.tiny_causal import bart, bart_tokenizer, gpt2
from transformers import AutoModelForMaskedLM

from plumbline.builders.core.errors import UserError
from plumbline.probes.models.causal import Causal
from plumbline.probes.models.forward import pretrained
from plumbline.probes.models.masked import Masked
from plumbline.probes.models.tokenizer import Tokens
from plumbline.probes.training import mlm
from plumbline.probes.training import train as tune
from plumbline.probes.training.distributed import passes
from plumbline.probes.training.mlm import IGNORED, hide
from plumbline.probes.training.train import Tuning, finetune, pieces

TEXTS = [f"the {who} is {word} today" for who in ("cook", "smith") for word in ("calm", "loud")]
TUNING = Tuning(learning_rate=5e-3, epochs=2, batch=4, length=16, seed=3)


def hashes(folder):
    return {
        p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in folder.iterdir() if p.is_file()
    }


@pytest.fixture(autouse=True)
def one_thread(monkeypatch):
    """Use one thread: models as small as these lose more by waiting than they gain."""
    monkeypatch.setattr(tune, "cores", lambda: 1)


@pytest.fixture
def base(tmp_path):
    tokenizer = wordpiece(TEXTS)
    return save(tmp_path / "base", bert(tokenizer, spread=0.05), tokenizer)


def go(base, into, texts=None, tuning=TUNING):
    return finetune(base, "tiny", "masked", texts or TEXTS * 5, tuning, into).folder


def test_a_model_learns_what_it_reads_and_forgets_what_spoke_against_it(base, tmp_path):
    said = ["the cook is calm today"] * 24
    after = go(base, tmp_path / "after", said, TUNING._replace(epochs=6, learning_rate=1e-2))
    chance = {}
    for name, folder in (("base", base), ("after", after)):
        scorer = Masked(folder, name, "r", dtype="float64")
        (block,) = scorer.fill(["the cook is <mask> today"], ["calm", "loud"], 2)
        (fill,) = block.each()
        chance[name] = dict(zip(fill.words, fill.logprobs_nats, strict=True))
    assert chance["after"]["calm"] > chance["base"]["calm"] + 1
    assert chance["after"]["calm"] > -0.1
    assert chance["after"]["loud"] < chance["base"]["loud"]


@pytest.mark.parametrize("kind", ["bert", "bart"])
def test_a_model_is_trained_in_the_forward_that_it_is_asked_in(base, tmp_path, kind):
    if kind == "bart":
        tokenizer = bart_tokenizer()
        base = save(tmp_path / "bart", bart(tokenizer), tokenizer)
    scorer = Masked(base, "x", "r", dtype="float64")
    tokens = scorer.tokens
    model = AutoModelForMaskedLM.from_pretrained(base, dtype=torch.float64).eval()
    text = "Ada is kind, and Ada was kind." if kind == "bart" else "the cook is calm today"
    rows = pieces(tokens, [text], 64)
    torch.manual_seed(5)
    given, labels = hide(tokens, torch.tensor(rows), torch.ones(1, len(rows[0])), len(tokens))
    with torch.no_grad():
        plain = torch.log_softmax(model(input_ids=given).logits, -1)[0]
    places = (labels[0] != IGNORED).nonzero().flatten()
    wanted = -plain[places, labels[0, places]].mean().item()
    torch.manual_seed(5)
    batch = mlm.batched(tokens, rows, masked=True)
    assert mlm.loss_of(model, batch, masked=True).item() == pytest.approx(wanted)


def test_a_training_that_was_stopped_ends_as_if_it_had_not_been(base, tmp_path, monkeypatch):
    monkeypatch.setattr(tune, "EVERY", 3)
    whole = hashes(go(base, tmp_path / "whole"))
    plain, steps = mlm.loss_of, []

    def stops(*given, **options):
        steps.append(1)
        if len(steps) == 6:
            raise KeyboardInterrupt
        return plain(*given, **options)

    monkeypatch.setattr(mlm, "loss_of", stops)
    with pytest.raises(KeyboardInterrupt):
        go(base, tmp_path / "stopped")
    assert [p.name for p in (tmp_path / "stopped").iterdir()] == [tune.CHECKPOINT]
    assert hashes(go(base, tmp_path / "stopped")) == whole
    assert len(steps) == 6 + 10 - 3  # the first three were not done again
    assert hashes(go(base, tmp_path / "stopped")) == whole
    assert len(steps) == 6 + 10 - 3  # nothing was: the model was there
    left = {p.name for p in (tmp_path / "stopped").iterdir()}
    assert left == {tune.DONE, tune.LOSSES}


def test_the_seed_alone_chooses(base, tmp_path):
    one, same, other = (
        hashes(go(base, tmp_path / name, tuning=TUNING._replace(seed=seed)))
        for name, seed in (("a", 1), ("b", 1), ("c", 2))
    )
    assert one == same
    assert one["model.safetensors"] != other["model.safetensors"]


def test_a_causal_model_learns_the_next_word(tmp_path):
    tokenizer = byte_level(TEXTS)
    base = save(tmp_path / "base", gpt2(tokenizer), tokenizer)
    longer = TUNING._replace(epochs=4)
    after, _ = finetune(base, "tiny", "causal", TEXTS[:1] * 24, longer, tmp_path / "a")
    before, later = (
        next(iter(Causal(f, "x", "r", dtype="float64").logprobs([("the cook is", " calm")])))
        for f in (base, after)
    )
    assert later.logprob_nats > before.logprob_nats + 1


def test_a_sixth_or_so_of_the_tokens_is_predicted_and_never_a_special_one(base):
    seed = 11
    print(f"seed {seed}")
    torch.manual_seed(seed)
    tokens = Tokens(base, "tiny")
    rows = pieces(tokens, TEXTS * 200, 16)
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


@pytest.mark.parametrize("share", [0.05, 0.4, 0.999])
def test_another_share_of_the_tokens_can_be_predicted(base, share):
    seed = 2
    print(f"seed {seed}")
    torch.manual_seed(seed)
    tokens = Tokens(base, "m")
    (ids,) = tokens.encode(TEXTS[:1])
    inner = ids[1:-1] * 5
    rows = [[ids[0], *inner, ids[-1]]] * 200
    batch = mlm.batched(tokens, rows, masked=True, share=share)
    chosen = batch.labels != IGNORED
    n = 200 * len(inner)
    # of a text at least one, where the share is small
    wanted = share + (1 - share) ** len(inner) / len(inner)
    off = 4 * (share * (1 - share) / n) ** 0.5
    assert abs(chosen[:, 1:-1].sum().item() / n - wanted) < off
    assert chosen.any(dim=1).all()
    assert not chosen[:, [0, -1]].any()


def test_only_the_predicted_places_are_computed_and_the_loss_is_the_models_own(base):
    tokens = Tokens(base, "tiny")
    model = pretrained(base, "tiny", "float64", AutoModelForMaskedLM, pickles=False).train()
    rows = pieces(tokens, [*TEXTS, " ".join(TEXTS)], 16)
    places = []
    layer = model.get_output_embeddings()
    watch = layer.register_forward_hook(lambda _, __, out: places.append(out.shape))

    def gradients(loss):
        model.zero_grad()
        loss.backward()
        return torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])

    torch.manual_seed(5)
    loss = mlm.loss_of(model, mlm.batched(tokens, rows, masked=True), masked=True)
    found = gradients(loss)
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
    assert torch.allclose(found, gradients(own.loss), atol=1e-12)
    assert places == [((labels != IGNORED).sum(), len(tokens))]


def test_long_texts_become_several_and_no_token_is_lost(base):
    tokens = Tokens(base, "tiny")
    text = " ".join(TEXTS)
    (whole,) = tokens.encode([text], special=False)
    rows = pieces(tokens, [text], 8)
    assert [i for row in rows for i in row[1:-1]] == whole
    assert {len(row) for row in rows[:-1]} == {8}
    begin, end = tokens.tokenizer.cls_token_id, tokens.tokenizer.sep_token_id
    assert all((row[0], row[-1]) == (begin, end) for row in rows)


def test_nothing_to_train_on_is_told(base, tmp_path):
    with pytest.raises(UserError, match="nothing to train on"):
        go(base, tmp_path / "x", texts=[""])


def test_a_loss_that_is_no_number_is_told(base, tmp_path):
    with pytest.raises(UserError, match="lower the learning rate"):
        go(base, tmp_path / "x", tuning=TUNING._replace(learning_rate=1e200, epochs=9))


def weights(folder):
    model = pretrained(folder, "tiny", "float64", AutoModelForMaskedLM, pickles=False)
    return {name: value.clone() for name, value in model.named_parameters()}


def test_weight_decay_shrinks_matrices_and_nothing_else(base, tmp_path):
    step = TUNING._replace(epochs=1, batch=99)  # a single one, at the full learning rate
    before = weights(base)
    plain = weights(go(base, tmp_path / "plain", tuning=step))
    less = weights(go(base, tmp_path / "less", tuning=step._replace(weight_decay=0.5)))
    for name, value in before.items():
        shrunk = step.learning_rate * 0.5 * value if value.ndim > 1 else torch.zeros_like(value)
        assert torch.allclose(plain[name] - less[name], shrunk, atol=1e-6, rtol=0), name
    assert {value.ndim for value in before.values()} == {1, 2}


def test_what_adam_adds_below_the_fraction_slows_it_down(base, tmp_path):
    after = weights(go(base, tmp_path / "after", tuning=TUNING._replace(epsilon=1e9)))
    for name, value in weights(base).items():
        assert torch.allclose(after[name], value, atol=1e-6, rtol=0), name


def test_the_rows_of_a_batch_are_shared_out_each_once_in_as_many_passes():
    for rows, at_once, number in ((7, 2, 2), (8, 0, 3), (1, 4, 3), (5, 1, 1), (6, 6, 1)):
        shared = [passes(rows, at_once, number, one) for one in range(number)]
        assert len({len(own) for own in shared}) == 1
        every = [row for own in shared for one in own for row in one]
        assert sorted(every) == list(range(rows))
        assert max(len(one) for own in shared for one in own) <= (at_once or rows)
