"""The filter of hate, by a classifier whose weights are set by hand: its scores are known.

A GPT-2 without layers sees the last word of a window alone. Words are one of two vectors, which
the layer norm leaves as they are, and the head makes log-odds of them: a window that ends with
`bad` has log 9, so a probability of 0.9, any other -log 9, so 0.1.
"""

import hashlib
import math

import pytest
import torch
from small_corpora import PARAMS, base, post, snapshots
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import GPT2Config, GPT2ForSequenceClassification, PreTrainedTokenizerFast

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.parquet import Reject, Row
from plumbline.builders.datasets.corpora import build as corpora
from plumbline.builders.datasets.corpora import hate_filter, near_duplicates
from plumbline.builders.datasets.corpora.sample import CONFIGS

WORDS = {"[PAD]": 0, "[UNK]": 1, "bad": 2}
LOG_9 = math.log(9)
PLACES = 8  # longest window


def saved(folder, problem="single_label_classification", odds=LOG_9, **options):
    words = Tokenizer(models.WordLevel(WORDS, unk_token="[UNK]"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=words, pad_token="[PAD]", unk_token="[UNK]", model_max_length=PLACES
    )
    labels = {0: "kind", 1: "unkind"}
    config = GPT2Config(
        vocab_size=len(WORDS),
        n_positions=PLACES,
        n_embd=2,
        n_layer=0,
        n_head=1,
        layer_norm_epsilon=0.0,
        pad_token_id=0,
        id2label=labels,
        label2id={name: i for i, name in labels.items()},
        problem_type=problem,
    )
    model = GPT2ForSequenceClassification(config)
    with torch.no_grad():
        model.transformer.wte.weight.copy_(torch.tensor([[-1.0, 1], [-1, 1], [1, -1]]))
        model.transformer.wpe.weight.zero_()
        model.score.weight.copy_(torch.tensor([[0.0, 0], [odds / 2, -odds / 2]]))
    model.save_pretrained(folder, **options)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return saved(tmp_path_factory.mktemp("classifier"))


def params(folder, **changes) -> hate_filter.Params:
    sha256 = hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()
    wanted = {"model": str(folder), "revision": sha256, "label": "unkind", "batch": 3}
    return hate_filter.Params(**(wanted | changes))


TEXTS = {
    "this is bad": 0.9,
    "bad this is": 0.1,
    "fine": 0.1,
    "a b c d e f g bad": 0.9,  # eight words: one window
    "a b c d e f g h bad": 0.9,  # the last word is a window of its own
    "a b c d e f g bad and fine again": 0.9,  # the first window is
    "a b bad c d e f g fine": 0.1,  # bad is in no window's last place
}


def test_scores_of_windows_count_by_their_highest(folder, tmp_path):
    scores = hate_filter.scores(params(folder), list(TEXTS))
    assert dict(zip(TEXTS, scores, strict=True)) == TEXTS
    many = saved(tmp_path, "multi_label_classification", odds=math.log(4))
    assert hate_filter.scores(params(many), ["bad", "fine"]) == [0.8, 0.2]


def test_pickled_weights_are_refused(folder, tmp_path):
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    torch.save({}, tmp_path / "pytorch_model.bin")
    given = params(folder).model_copy(update={"model": str(tmp_path)})
    with pytest.raises(UserError):
        hate_filter.scores(given, ["bad"])


def test_build_rejects_hate_with_its_score(folder, tmp_path):
    mean = [post(str(n), body=f"one two three {n} bad") for n in range(5)]
    articles, posts = base()
    inputs = snapshots(tmp_path, articles, posts + mean)
    for threshold, out in ((0.9, 5), (0.91, 0)):
        hate = params(folder).model_dump() | {"threshold": threshold}
        items = list(corpora.build(inputs, corpora.Params(**(PARAMS | {"hate": hate}))))
        rejects = [item for item in items if isinstance(item, Reject)]
        scores = [item.values["hate_score"] for item in items if isinstance(item, Row)]
        assert {r.key for r in rejects} == ({f"reddit/t1_{n}" for n in range(5)} if out else set())
        assert {(r.reason, r.detail) for r in rejects} <= {
            ("hate", f"0.9 for unkind, threshold {threshold:g}")
        }
        assert (len(scores), set(scores)) == (11 - out, {0.1} if out else {0.1, 0.9})


def test_the_draw_goes_on_until_there_is_enough_that_is_not_hate(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(near_duplicates, "THRESHOLD", 1)
    mean = [post(str(n), body=f"one two three {n} {'bad' if n % 3 else 'fine'}") for n in range(90)]
    articles, posts = base()
    own = snapshots(tmp_path, articles, posts + mean)
    sizes = dict.fromkeys(CONFIGS, 1) | {"social-left": 20}
    chosen = PARAMS | {"sizes": sizes, "oversample": 5}
    items = list(corpora.build(own, corpora.Params(**(chosen | {"hate": params(folder)}))))
    rows = [i for i in items if isinstance(i, Row) and i.config == "social-left"]
    assert len(rows) == 20
    assert all(row.values["text"].endswith("fine") for row in rows if "three" in row.values["text"])
