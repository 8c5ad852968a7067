"""Products and activations whose numbers do not depend on how many are computed together."""

import pytest
import torch
from torch import nn
from transformers import BertConfig
from transformers.activations import ACT2FN

from plumbline.probes.models.kernels import packed_linear

SEED = 5
ROWS = 400
WIDTHS = [(768, 768), (768, 3072), (3072, 768), (1024, 4096), (4096, 1024), (172, 64), (768, 3)]
OWN = {"linear", "prelu", "xielu"}  # nothing to compute, or weights of their own
pytestmark = pytest.mark.skipif(
    not packed_linear.works(torch.float32), reason="torch has no packed products here"
)


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    monkeypatch.setenv("PLUMBLINE_DEVICE", "cpu")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize(("width", "out"), WIDTHS)
def test_packed_product_of_any_number_of_rows(width, out):
    draw = torch.Generator().manual_seed(SEED)
    weight = torch.randn(out, width, generator=draw) / width**0.5
    states = torch.randn(ROWS, width, generator=draw)
    bias = torch.randn(out, generator=draw)
    layer = packed_linear.Packed(weight, bias)
    with torch.inference_mode():
        every = layer(states)
        for rows in (packed_linear.PAIR, 3, 7, 15, 16, 33, 100, 200, 384):
            assert torch.equal(layer(states[:rows].clone()), every[:rows]), rows
            assert torch.equal(layer(states[-rows:].clone()), every[-rows:]), rows
        exact = states.double() @ weight.double().t() + bias.double()
    assert (every - exact).abs().max() < 1e-4


@pytest.mark.parametrize("name", sorted(set(ACT2FN) - OWN))
def test_activation_of_any_number_of_rows(name):
    inner = ACT2FN[name]
    model = nn.Sequential(inner)
    packed_linear.pad_activations(model)
    draw = torch.Generator().manual_seed(SEED)
    states = torch.randn(10, 37, generator=draw)
    every = model(states)
    assert torch.allclose(every, inner(states), atol=1e-6)
    turned = states.t()
    for rows in range(1, 37):  # laid out the other way
        assert torch.equal(model(turned[:rows]), model(turned)[:rows])
    for rows in range(1, 10):
        assert torch.equal(model(states[:rows].clone()), every[:rows]), rows


def test_pack_model_that_cannot_be_tried():
    class Odd(nn.Module):
        dtype = torch.float32
        config = BertConfig()

        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 4)

        def forward(self, **given):
            raise ValueError("needs pictures too")

    model = Odd()
    assert packed_linear.pack(model) == packed_linear.FEWEST
    assert type(model.layer) is nn.Linear
