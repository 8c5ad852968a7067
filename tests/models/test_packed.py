"""Products and activations whose numbers do not depend on how many are computed together."""

import pytest
import torch
import transformers as hf
from models.tiny import bert, save, wordpiece
from models.tiny_causal import SENTENCES
from models.tiny_special import saved as special
from torch import nn
from transformers import BertConfig
from transformers.activations import ACT2FN, FastGELUActivation, NewGELUActivation

from plumbline.probes.models.kernels import activations as vectors
from plumbline.probes.models.kernels import packed_linear
from plumbline.probes.models.masked import Masked

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
def test_a_row_has_the_same_product_whatever_other_rows_there_are(width, out):
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
def test_an_activation_is_the_same_however_many_numbers_there_are(name):
    inner = ACT2FN[name]
    model = nn.Sequential(inner)
    vectors.whole(model)
    draw = torch.Generator().manual_seed(SEED)
    states = torch.randn(10, 37, generator=draw)
    every = model(states)
    assert torch.allclose(every, inner(states), atol=1e-6)
    turned = states.t()
    for rows in range(1, 37):  # laid out the other way
        assert torch.equal(model(turned[:rows]), model(turned)[:rows])
    for rows in range(1, 10):
        assert torch.equal(model(states[:rows].clone()), every[:rows]), rows


@pytest.mark.parametrize("spelt_out", [NewGELUActivation, FastGELUActivation])
def test_the_approximate_gelu_is_computed_in_one_step(spelt_out):
    model = nn.Sequential(spelt_out())
    vectors.whole(model)
    states = torch.linspace(-9, 9, 2001, dtype=torch.float64)
    assert (model(states) - spelt_out()(states)).abs().max() < 1e-12
    assert isinstance(model[0].inner, nn.GELU)


def test_all_products_of_an_encoder_are_packed(encoder, saved):
    assert Masked(saved, "tiny", "r1", dtype="float32").fewest == packed_linear.PAIR


def test_rows_are_more_in_double_precision_and_where_weights_are_read(tmp_path):
    tokenizer = wordpiece(SENTENCES)
    own = save(tmp_path / "bert", bert(tokenizer), tokenizer)
    assert Masked(own, "tiny", "r1", dtype="float64").fewest == packed_linear.FEWEST
    xlnet = special("xlnet", tmp_path / "xlnet")
    assert Masked(xlnet, "tiny", "r1", dtype="float32").fewest == packed_linear.FEWEST


SMALL = {"vocab_size": 40, "pad_token_id": 0, "eos_token_id": 2, "decoder_start_token_id": 0}
BART = {f"{side}_{what}": 2 for side in ("encoder", "decoder") for what in ("layers", "ffn_dim")}
BART |= {"encoder_attention_heads": 2, "decoder_attention_heads": 2, "d_model": 16}
T5 = {"d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": 2, "num_heads": 2}
FALCON = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (hf.BartForSequenceClassification, BART),
        (hf.T5ForSequenceClassification, T5),
        (hf.FalconForCausalLM, FALCON),
    ],
)
def test_so_are_those_of_models_that_look_for_an_end_or_call_their_layers_otherwise(kind, options):
    torch.manual_seed(SEED)
    model = kind(kind.config_class(**SMALL, **options)).eval()
    ids = torch.tensor([[7, 9, 30, 2], [8, 3, 21, 2]])
    with torch.inference_mode():
        plain = model(input_ids=ids).logits
        assert packed_linear.pack(model) == packed_linear.PAIR
        assert torch.allclose(model(input_ids=ids).logits, plain, atol=1e-5)
    assert not [part for part in model.modules() if isinstance(part, nn.Linear)]


def test_a_layer_that_has_two_names_is_packed_under_both():
    torch.manual_seed(SEED)
    model = hf.BertForMaskedLM(BertConfig(vocab_size=40, hidden_size=16, num_attention_heads=2))
    first = model.bert.encoder.layer[0].attention.self
    first.key = first.query
    packed_linear.pack(model)
    assert type(first.key) is type(first.query) is packed_linear.Packed


def test_a_model_that_cannot_be_tried_keeps_its_own_layers():
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
