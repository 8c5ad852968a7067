"""Kernels: the last layer at requested positions only, and rows that no other row changes."""

import pytest
import torch
from models.tiny import bert, save, wordpiece
from models.tiny_causal import SENTENCES
from torch import nn
from transformers.activations import FastGELUActivation, NewGELUActivation

from plumbline.probes.models import kernels
from plumbline.probes.models.masked import Masked

SEED = 5
ROWS = 400
WIDTHS = [(768, 3072), (3072, 768), (172, 64), (768, 3)]
packed = pytest.mark.skipif(
    not kernels.works(torch.float32), reason="torch has no packed products here"
)
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


def test_narrow_computes_only_the_places_read(folder, monkeypatch):
    short = loaded(folder)
    logits, seen = at(short)
    assert seen == [50, 10]  # ten texts of five tokens; then one of each
    monkeypatch.setattr(kernels, "LAST", {})
    whole, all_seen = at(loaded(folder))
    assert all_seen == [50, 50]
    assert torch.equal(logits, whole)
    with torch.inference_mode():
        every, _ = short.all(IDS)  # all places are asked for: nothing is left out
    assert torch.equal(every[torch.arange(10), PLACES], whole)


@packed
@pytest.mark.parametrize(("width", "out"), WIDTHS)
def test_packed_product_of_any_number_of_rows(width, out):
    draw = torch.Generator().manual_seed(SEED)
    weight = torch.randn(out, width, generator=draw) / width**0.5
    states = torch.randn(ROWS, width, generator=draw)
    bias = torch.randn(out, generator=draw)
    layer = kernels.Packed(weight, bias)
    with torch.inference_mode():
        every = layer(states)
        for rows in (kernels.PAIR, 3, 7, 15, 16, 33, 100, 200, 384):
            assert torch.equal(layer(states[:rows].clone()), every[:rows]), rows
            assert torch.equal(layer(states[-rows:].clone()), every[-rows:]), rows
        exact = states.double() @ weight.double().t() + bias.double()
    assert (every - exact).abs().max() < 1e-4


@pytest.mark.parametrize("inner", [FastGELUActivation(), NewGELUActivation()])
def test_fuse_activations(inner):
    model = nn.Sequential(inner)
    kernels.fuse_activations(model)
    states = torch.randn(10, 64, generator=torch.Generator().manual_seed(SEED))
    every = model(states)
    assert torch.allclose(every, inner(states), atol=1e-6)
    for rows in range(1, 10):
        assert torch.equal(model(states[:rows].clone()), every[:rows]), rows
