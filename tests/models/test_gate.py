"""The last layer, computed only where somebody looks."""

import pytest
import torch
from models.tiny import bert, save, wordpiece
from models.tiny_causal import SENTENCES

from plumbline.probes.models.kernels import head_only
from plumbline.probes.models.masked import Masked

KNOWN = {"bert", "bert-uncased", "roberta", "electra", "xlmr", "bertweet", "distilbert"}
KNOWN |= {"deberta-v3", "deberta-legacy"}
IDS = torch.tensor([[2, 7, 9, 4, 3], [2, 4, 8, 6, 3]]).repeat(5, 1)
PLACES = torch.tensor([3, 1]).repeat(5)


def at(body):
    """Return the logits at the places, and how many states the feed-forward layers computed."""
    seen = []
    hooks = [
        part.register_forward_hook(lambda _, __, out: seen.append(out.shape[:-1].numel()))
        for path, part in body.model.named_modules()
        if path.endswith("output.dense") and "attention" not in path
    ]
    with torch.inference_mode():
        logits = body.at(IDS, PLACES)
    for hook in hooks:
        hook.remove()
    return logits, seen


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    tokenizer = wordpiece(SENTENCES)
    return save(tmp_path_factory.mktemp("bert"), bert(tokenizer), tokenizer)


def loaded(where):
    return Masked(where, "tiny", "r1", dtype="float32")


def test_narrow_known_architectures(encoder, saved):
    assert getattr(loaded(saved), "narrow", False) == (encoder.name in KNOWN)


def test_narrow_computes_only_the_places_read(folder, monkeypatch):
    short = loaded(folder)
    logits, seen = at(short)
    assert seen == [50, 10]  # ten texts of five tokens; then one of each
    monkeypatch.setattr(head_only, "LAST", ())
    whole, all_seen = at(loaded(folder))
    assert all_seen == [50, 50]
    assert torch.equal(logits, whole)
    with torch.inference_mode():
        every, _ = short.all(IDS)  # all places are asked for: nothing is left out
    assert torch.equal(every[torch.arange(10), PLACES], whole)


@pytest.mark.parametrize("part", ["attention.self.query", "intermediate", "attention"])
def test_narrow_layer_with_other_results(folder, part, monkeypatch):
    true, _ = at(loaded(folder))
    monkeypatch.setattr(head_only, "LAST", (("encoder.layer", part),))
    body = loaded(folder)
    assert not body.narrow
    assert torch.equal(at(body)[0], true)
