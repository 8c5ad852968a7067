"""Faster and more reproducible forward passes of transformers models.

*Packed layers.* torch passes float32 products to MKL, and the last digits of MKL's results depend
on the number of rows. oneDNN's result for a row is independent of the other rows (except in
products of a single row), and oneDNN is faster: ``fill`` is 2.1 times as fast for a model as large
as BERT base (one thread, AVX-512). The operators are private in torch.

*The head and the last layer are computed only at the requested positions.* The vocabulary is much
wider than the hidden states, so the head is expensive. In the last layer, only the attention needs
all tokens; after the attention, other positions are skipped.

*Common prefixes of texts are computed once.* The texts of a batch form a tree: each token is a
child node of the previous one, and texts branch where they differ. All nodes together form one
input row. Tokenwise operations of the model (products, norms, positions) are unchanged. Attention
is computed by this module, in spans of fixed positions: for example, tokens 16 to 31 of a text
attend to all tokens up to their own positions, with padding after the end of the text. The result
for a text is thus bitwise independent of the other texts that share its prefix.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from itertools import takewhile
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import nn
from transformers import AttentionInterface, activations
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.pytorch_utils import Conv1D

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

FEWEST = 16  # minimum number of rows of a plain torch product
PAIR = 2  # minimum number of rows of a packed product
# Conv1D is GPT-2's layer with transposed weights; Falcon's layer differs only in its name
LAYERS = ("Linear", "Conv1D", "FalconLinear")
FAULTS = (AttributeError, IndexError, RuntimeError, TypeError, ValueError)
# the approximate GELU that GPT-2 and ALBERT compute in eight steps; torch has one operation for it
SPELT_OUT = (activations.FastGELUActivation, activations.NewGELUActivation)
# for each type of model, the path of the encoder layers and, within a layer, of the first tokenwise
# module after attention, which also receives the residual input
BERT = ("encoder.layer", "attention.output")
LAST = dict.fromkeys(("bert", "camembert", "electra", "roberta", "xlm-roberta"), BERT)
LAST["distilbert"] = ("transformer.layer", "sa_layer_norm")
NAME = "plumbline"  # name under which the attention is registered in transformers
SPAN = 16  # length of the first spans in tokens; later spans are longer
_reading = threading.local()  # batches run in several threads


class Packed(nn.Module):
    """A linear layer whose weights are laid out for oneDNN."""

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None) -> None:
        """Pack a weight matrix of shape (out, in)."""
        super().__init__()
        ops: Any = torch.ops.mkldnn
        self.packed = ops._reorder_linear_weight(weight.detach().contiguous())  # noqa: SLF001
        self.bias = bias
        self.weight = weight.new_empty(0)  # unused in products, but T5 reads its dtype

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        """Apply the layer to ``states`` of shape (..., in); the result has shape (..., out)."""
        ops: Any = torch.ops.mkldnn
        product: torch.Tensor = ops._linear_pointwise(  # noqa: SLF001
            states, self.packed, self.bias, "none", [], ""
        )
        return product


def works(dtype: torch.dtype) -> bool:
    """Return True if torch has the operators and the processor supports the dtype."""
    ops: Any = torch.ops.mkldnn
    if not hasattr(ops, "_linear_pointwise"):
        return False
    supported = dtype == torch.bfloat16 and ops._is_mkldnn_bf16_supported()  # noqa: SLF001
    return dtype == torch.float32 or bool(supported)


def pack(model: Any) -> int:
    """Pack a model's linear layers on a CPU; return the minimum number of rows in a product.

    Layers that a forward pass does not call remain unchanged, because Mamba and the first DeBERTa
    read their weights directly.
    """
    if not works(model.dtype):
        return FEWEST
    called = _called_layers(model)
    places = [
        (parent, name)
        for parent in model.modules()
        for name, child in parent._modules.items()  # noqa: SLF001 includes layers with two names
        if id(child) in called
    ]
    for parent, name in places:  # one layer at a time, to free the plain weights
        layer = getattr(parent, name)
        weight = layer.weight.t() if isinstance(layer, Conv1D) else layer.weight
        setattr(parent, name, Packed(weight, layer.bias))
        del layer, weight
    others = (part for part in model.modules() if not isinstance(part, nn.Embedding))
    weights = (weight for part in others for weight in part.parameters(recurse=False))
    # some products remain plain, as in DeBERTa's original head, which uses the embeddings
    plain = hasattr(model, "lm_predictions") or any(weight.dim() > 1 for weight in weights)
    return FEWEST if plain else PAIR


@torch.inference_mode()
def _called_layers(model: Any) -> set[int]:
    """Return the ids of the linear layers that a forward pass calls."""
    called: set[int] = set()
    hooks = [
        layer.register_forward_pre_hook(lambda layer, _: called.add(id(layer)))
        for layer in model.modules()
        if type(layer).__name__ in LAYERS
    ]
    try:
        model(**model.dummy_inputs)
    except FAULTS:
        called.clear()
    finally:
        for hook in hooks:
            hook.remove()
    return called


def fuse_activations(model: Any) -> None:
    """Replace the eight-step approximation of GELU with a single torch operation."""
    for parent in list(model.modules()):
        for name, child in list(parent._modules.items()):  # noqa: SLF001 includes two names
            if isinstance(child, SPELT_OUT):
                setattr(parent, name, nn.GELU(approximate="tanh"))


def close(difference: torch.Tensor, logits: torch.Tensor) -> bool:
    """Return True if a difference is small relative to the logits' standard deviation over rows."""
    share = 1e-3 if logits.dtype in (torch.float32, torch.float64) else 0.2
    return bool(difference < share * logits.float().std(0).mean())


class HeadOnly:
    """Passes only the requested last hidden states of a model's body to its head.

    The head is computed by the model's own code, for an input of shape (positions, 1, width)
    instead of (texts, tokens, width).
    """

    def __init__(self, body: nn.Module) -> None:
        self.body = body
        self._request = threading.local()  # batches run in several threads
        body.register_forward_hook(self._after_body)

    @contextmanager
    def at(self, rows: torch.Tensor, positions: torch.Tensor) -> Iterator[None]:
        """Select the hidden states at the given rows and positions, two tensors of shape (n,)."""
        self._request.where = (rows, positions)
        try:
            yield
        finally:
            self._request.where = None

    def _take(self, states: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...] | None:
        where = getattr(self._request, "where", None)
        return where and tuple(part[where].unsqueeze(1) for part in states)

    def _after_body(self, _: nn.Module, __: Any, out: Any) -> None:
        if selected := self._take((out[0],)):
            out["last_hidden_state"] = selected[0]

    def _in_last_layer(self, _: nn.Module, states: tuple[torch.Tensor, ...]) -> Any:
        selected = self._take(states)
        self._request.where = None  # the body's output is then already restricted
        return selected

    def shorten(self, model: Any) -> bool:
        """Shorten the last layer if the type of model is supported; return True on success.

        In these types of models, the head of a classifier reads only the first token.
        """
        if model.config.model_type not in LAST:
            return False
        layers, name = LAST[model.config.model_type]
        last: Any = self.body.get_submodule(layers)
        last[-1].get_submodule(name).register_forward_pre_hook(self._in_last_layer)
        return True


class Span(NamedTuple):
    """The attention of nodes that have the same positions in their texts."""

    queries: torch.Tensor  # nodes, of shape (texts, positions in the span)
    keys: torch.Tensor  # nodes, of shape (texts, positions up to the span's end)
    seen: torch.Tensor  # attention mask, of shape (positions in the span, positions up to its end)


class Tree(NamedTuple):
    """Texts as a tree, in which texts with the same prefix share nodes."""

    tokens: torch.Tensor  # token of each node, of shape (1, nodes)
    places: torch.Tensor  # position of each node in its text, of shape (1, nodes)
    paths: list[list[int]]  # nodes of each text
    spans: list[Span]
    order: torch.Tensor  # index of each node among the queries of all spans, of shape (nodes,)


def parts(texts: Sequence[Sequence[int]], most: int) -> list[list[int]]:
    """Split texts into batches of at most ``most`` nodes (more if a single text is longer).

    Returns the indices of the texts in each batch; the texts are sorted by their tokens.
    """
    batches: list[list[int]] = []
    nodes, before = 0, None
    for row in sorted(range(len(texts)), key=lambda row: list(texts[row])):
        more = len(texts[row]) - _common(before or (), texts[row])
        if not batches or nodes + more > most:
            batches.append([])
            nodes, more = 0, len(texts[row])
        batches[-1].append(row)
        nodes, before = nodes + more, texts[row]
    return batches


def grow(texts: Sequence[Sequence[int]], move: Callable[[Any], torch.Tensor]) -> Tree:
    """Build a tree of non-empty texts; if the texts are sorted, they share common prefixes.

    ``move``: function that converts numbers to a tensor.
    """
    tokens: list[int] = []
    places: list[int] = []
    paths: list[list[int]] = []
    read: dict[tuple[int, int], list[list[int]]] = {}  # paths of the texts in each span
    slots: list[tuple[tuple[int, int], int]] = []  # span and offset of each node
    before: Sequence[int] = ()
    for text in texts:
        common = _common(before, text)
        shared = paths[-1][:common] if paths else []
        path = [*shared, *range(len(tokens), len(tokens) + len(text) - common)]
        tokens += text[common:]
        places += range(common, len(text))
        for first, last in _spans(len(text)):
            if new := range(max(first, common), min(last, len(text))):
                rows = read.setdefault((first, last), [])
                slots += [((first, last), len(rows) * (last - first) + p - first) for p in new]
                rows.append([*path[:last], *path[-1:] * (last - len(path))])
        paths.append(path)
        before = text
    begins, spans, start = {}, [], 0
    for (first, last), rows in sorted(read.items()):
        begins[first, last] = start
        keys = move(rows * PAIR if len(rows) < PAIR else rows)
        seen = torch.arange(first, last)[:, None] >= torch.arange(last)
        spans.append(Span(keys[:, first:], keys, seen.to(keys.device)))
        start += len(keys) * (last - first)
    order = [begins[span] + offset for span, offset in slots]
    missing = max(0, FEWEST - len(tokens))
    tokens, places, order = (values + values[:1] * missing for values in (tokens, places, order))
    return Tree(move([tokens]), move([places]), paths, spans, move(order))


@contextmanager
def reading(tree: Tree | None) -> Iterator[None]:
    """Make prepared models read the nodes of a tree instead of texts."""
    _reading.tree = tree
    try:
        yield
    finally:
        _reading.tree = None


def prepare(model: Any) -> bool:
    """Install this module's attention in a model; return False if that is not possible."""
    if model.config._attn_implementation != "sdpa":  # noqa: SLF001 no public getter
        return False
    AttentionInterface.register(NAME, _attention)
    model.set_attn_implementation(NAME)
    return True


def release(model: Any) -> None:
    """Restore the original attention of a model."""
    model.set_attn_implementation("sdpa")


def _attention(
    module: Any,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    mask: torch.Tensor | None,
    **options: Any,
) -> tuple[torch.Tensor, None]:
    """Return attention of shape (texts, tokens, heads, width) over texts or a row of nodes."""
    tree: Tree | None = getattr(_reading, "tree", None)
    if tree is None:
        return sdpa_attention_forward(module, query, key, value, mask, **options)
    rows, keys, values = (states[0].transpose(0, 1) for states in (query, key, value))
    results = []
    for span in tree.spans:
        states = _pick(rows, span.queries), _pick(keys, span.keys), _pick(values, span.keys)
        out, _ = sdpa_attention_forward(module, *states, span.seen[None, None], **options)
        results.append(out.flatten(0, 1))
    return torch.cat(results).index_select(0, tree.order).unsqueeze(0), None


def _pick(states: torch.Tensor, nodes: torch.Tensor) -> torch.Tensor:
    """Return states of shape (texts, heads, tokens, width) for nodes of shape (texts, tokens)."""
    chosen = states.index_select(0, nodes.flatten())
    return chosen.view(*nodes.shape, *states.shape[1:]).transpose(1, 2)


def _spans(length: int) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each span of a text: 0-16, 16-32, ..., 64-96, ..."""
    first = 0
    while first < length:
        # at most half the preceding tokens, so that long texts have few spans and little padding
        last = first + max(SPAN, 1 << first.bit_length() >> 2)
        yield first, last
        first = last


def _common(before: Sequence[int], text: Sequence[int]) -> int:
    """Return the length of the common prefix of two texts."""
    equal = takewhile(lambda pair: pair[0] == pair[1], zip(before, text, strict=False))
    return sum(1 for _ in equal)
