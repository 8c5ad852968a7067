"""Probe ``agreement``: what is asked, and that answers are those of a plain forward pass."""

from collections import Counter

import polars as pl
import pytest
import torch
from models.tiny import bert, byte_level, save, wordpiece
from pydantic import ValidationError
from transformers import (
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoTokenizer,
    LlamaConfig,
    LlamaForCausalLM,
)

from plumbline.builders.core.errors import UserError
from plumbline.probes.core.run_probe import Shard
from plumbline.probes.models.causal import Causal
from plumbline.probes.models.masked import Masked
from plumbline.probes.models.params import Model
from plumbline.probes.prompts.opinions import Frame, questions
from plumbline.probes.values.agreement import Params, masked, shards, whole

TEXTS = {"a": "tea is good", "b": "war is peace"}
SAID = {
    "text": "{gendered} said that they <mask> that {statement}.",
    "feminine": "She",
    "masculine": "He",
    "agree": "agree",
    "disagree": "disagree",
}
WROTE = SAID | {"text": "In a letter {gendered} <mask> that {statement}.", "feminine": "she"}
FRAMES = {
    "en": {"negated": "it is false that {statement}", "frames": {"said": SAID, "wrote": WROTE}}
}


def params(**frames):
    return Params.model_validate({"version": "0.1.0", "frames": frames or FRAMES})


@pytest.fixture
def folder(tmp_path):
    rows = [
        {"id": name, "language": "en", "text": text, "scale": "values", "axis": axis}
        for name, text in TEXTS.items()
        for axis in ("x", "y")  # a statement on two axes is asked once
    ]
    into = tmp_path / "statements"
    into.mkdir()
    pl.DataFrame(rows).write_parquet(into / "values-en.parquet")
    other = pl.DataFrame(rows[:1]).with_columns(language=pl.lit("cs"))
    other.write_parquet(into / "values-cs.parquet")
    return into


def test_questions(folder):
    found = questions(params(), folder, "en")
    assert len(found) == 2 * 2 * 2 * 2
    assert len({q.text for q in found}) == 16
    (one,) = [q for q in found if q[2:6] == ("a", "said", "feminine", "negated")]
    assert one.text == "She said that they <mask> that it is false that tea is good."
    pairs = Counter((q.id, q.frame, q.form) for q in found)
    assert set(pairs.values()) == {2}  # women and men
    for q in found:  # one word differs
        (twin,) = [t for t in found if t[:4] == q[:4] and t.form == q.form and t.gender != q.gender]
        apart = [a != b for a, b in zip(q.text.split(), twin.text.split(), strict=True)]
        assert sum(apart) == 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"text": "{gendered} <mask> this."},
        {"text": "{gendered} <mask> <mask> {statement}"},
        {"text": "She <mask> that {statement}"},
    ],
)
def test_frame_rejects(wrong):
    with pytest.raises(ValidationError):
        Frame.model_validate(SAID | wrong)


def test_shards_by_kind(folder):
    model = Model(id="./x", kind="seq2seq")
    with pytest.raises(UserError, match=r"assignments\.agreement: a model of kind seq2seq"):
        shards(params(), model, {"statements": folder})
    assert shards(params(), Model(id="./x"), {"statements": folder}) == [Shard("en", "00000", 0, 1)]


def sentences(asked):
    return [q.text.replace("<mask>", "") for q in asked]


def test_masked_is_a_plain_forward(folder, tmp_path):
    asked = questions(params(), folder, "en")
    # "agree" is one piece, "disagree" three
    tokenizer = wordpiece([*sentences(asked), "agree", "dis", "a##g"])
    where = save(tmp_path / "m", bert(tokenizer), tokenizer)
    scorer = Masked(where, "m", "r1", dtype="float64")
    model = AutoModelForMaskedLM.from_pretrained(where).double().eval()
    tokenizer = AutoTokenizer.from_pretrained(where)
    tails = {
        word: tokenizer(f"a {word}", add_special_tokens=False)["input_ids"][
            len(tokenizer("a", add_special_tokens=False)["input_ids"]) :
        ]
        for word in ("agree", "disagree")
    }
    assert len(tails["disagree"]) > 2

    def by_hand(text, tail, known):
        ids = tokenizer(text)["input_ids"]
        (place,) = [i for i, t in enumerate(ids) if t == mask]
        total = 0.0
        for n, piece in enumerate(tail):
            inside = [t if known and i < n else mask for i, t in enumerate(tail)]
            given = torch.tensor([[*ids[:place], *inside, *ids[place + 1 :]]])
            with torch.inference_mode():
                scores = model(input_ids=given).logits[0, place + n].log_softmax(-1)
            total += scores[piece].item()
        return total

    mask = tokenizer.mask_token_id
    found = {}
    both = masked(asked, scorer, "en")
    for together, table in zip((True, False), both, strict=True):
        rows = table.to_pylist()
        assert [tuple(r[k] for k in ("questionnaire", "id")) for r in rows] == sorted(
            (r["questionnaire"], r["id"]) for r in rows
        )
        found[together] = rows
        assert {row["text"] for row in rows} == {q.text for q in asked}
        for row in rows:
            assert row["method"] == ("together" if together else "l2r")
            text = row["text"].replace("<mask>", "[MASK]")
            for side in ("agree", "disagree"):
                true = by_hand(text, tails[side], known=not together)
                assert row[f"{side}_nats"] == pytest.approx(true, abs=2e-6)
                assert row[f"{side}_pieces"] == len(tails[side])
    # one piece has no others; several differ
    for a, b in zip(found[True], found[False], strict=True):
        assert (a["agree_nats"] == b["agree_nats"]) == (a["agree_pieces"] == 1)
        assert a["disagree_nats"] != b["disagree_nats"]


def test_whole_is_a_plain_forward(folder, tmp_path):
    asked = questions(params(), folder, "en")
    tokenizer = byte_level([*sentences(asked), "agree disagree"])
    torch.manual_seed(1)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=1,
        num_attention_heads=2,
        max_position_embeddings=256,
        initializer_range=0.3,
        bos_token_id=0,
    )
    where = save(tmp_path / "c", LlamaForCausalLM(config), tokenizer)
    rows = whole(asked, Causal(where, "c", "r1", dtype="float64")).to_pylist()
    model = AutoModelForCausalLM.from_pretrained(where).double().eval()
    tokenizer = AutoTokenizer.from_pretrained(where)
    for row in rows[::5]:
        assert row["method"] == "sequence"
        for side in ("agree", "disagree"):
            text = row["text"].replace("<mask>", row[side])
            ids = tokenizer(text, add_special_tokens=False)["input_ids"]
            given = torch.tensor([[0, *ids]])
            with torch.inference_mode():
                scores = model(input_ids=given).logits[0].log_softmax(-1)
            true = sum(scores[i, token].item() for i, token in enumerate(ids))
            assert row[f"{side}_nats"] == pytest.approx(true, abs=2e-5)
            assert row[f"{side}_pieces"] == len(ids)


def test_masked_unknown_word(folder, tmp_path):
    frames = {"en": FRAMES["en"] | {"frames": {"said": SAID | {"disagree": "不同意ж"}}}}
    asked = questions(params(**frames), folder, "en")
    tokenizer = wordpiece([*sentences(asked), "agree"])
    scorer = Masked(save(tmp_path / "m", bert(tokenizer), tokenizer), "m", "r1", dtype="float64")
    with pytest.raises(UserError, match="'不同意ж'"):
        masked(asked, scorer, "en")
