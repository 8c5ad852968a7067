"""Faster and more exact forward passes of models of transformers, each tried before it is used.

*Packed layers.* torch sends float32 products to MKL, which picks its way by the number of rows: on
processors with AVX-512 other digits come out below 16 rows, on Intel's with AVX2 for almost any
number of rows. oneDNN's are one row's alone, but for a single row. On AMD's processors with AVX-512
they are also faster: ``fill`` is 2.1 times as fast with them on BERT base's shape and 2.5 times on
XLM-R base's (medians of 7 interleaved pairs, one thread, float32). The operators are private to
torch: they are tried on a small product first, and left alone if they are missing or answer
otherwise (bfloat16 without AVX-512).

*The head and the last layer at the requested positions only.* The vocabulary is many times wider
than the hidden states; and of the last layer only what the head reads is needed: behind its
attention, which all tokens feed, other positions are skipped.

*Texts with common prefixes: every prefix is computed once.* The texts of a batch form a tree: a
token is a node below the one before it, and texts branch where they differ. All nodes are one row
of input. What a model does to each token by itself (products, norms, positions) needs no more; its
attention is computed here, in spans of fixed positions: the tokens from 16 to 31 of a text
together, say, with all before them, padded behind the end of the text. So the result for a text
depends on that text alone, to the last bit, whichever others share its prefix.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager, suppress
from functools import cache
from itertools import takewhile
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import nn
from transformers import AttentionInterface, activations
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.pytorch_utils import Conv1D

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

FEWEST = 16  # rows of a product of torch's own
PAIR = 2  # rows of a packed one
CLOSE = {torch.float32: 1e-3, torch.bfloat16: 0.25}  # of the two products of the trial
# GPT-2's has its weight the other way round; Falcon's is a plain one by another name
LAYERS = ("Linear", "Conv1D", "FalconLinear")
FAULTS = (AttributeError, IndexError, RuntimeError, TypeError, ValueError)
LANES = 64  # numbers that torch takes at once at most: two vectors of AVX-512, in bfloat16
# of torch's own, those that take each number by itself; all of transformers' do
SINGLE = {nn.ELU, nn.GELU, nn.Hardswish, nn.Mish, nn.Sigmoid, nn.SiLU, nn.Softplus, nn.Tanh}
# the approximate GELU in eight steps, as GPT-2 and ALBERT have it: torch does it in one
SPELT_OUT = (activations.FastGELUActivation, activations.NewGELUActivation)
# where an encoder has its layers, and in a layer the first part behind the attention that takes
# each token by itself, together with what it adds to: BERT and its kin; DistilBERT
LAST = (("encoder.layer", "attention.output"), ("transformer.layer", "sa_layer_norm"))
TRIAL = (16, 5)  # texts and tokens on which the shortened layer must agree with the whole one
NAME = "plumbline"  # of the attention, among those of transformers
SPAN = 16  # tokens, of the first spans; later ones grow with what stands before them
_reading = threading.local()  # batches run in several threads


class Packed(nn.Module):
    """A linear layer whose weights are laid out for oneDNN."""

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None) -> None:
        """Pack a weight (out, in)."""
        super().__init__()
        ops: Any = torch.ops.mkldnn
        self.packed = ops._reorder_linear_weight(weight.detach().contiguous())  # noqa: SLF001
        self.bias = bias
        self.weight = weight.new_empty(0)  # T5 asks for its dtype; nothing can be computed with it

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        """Return ``states`` (..., in) times the weights, plus bias: (..., out)."""
        ops: Any = torch.ops.mkldnn
        product: torch.Tensor = ops._linear_pointwise(  # noqa: SLF001
            states, self.packed, self.bias, "none", [], ""
        )
        return product


@cache
def works(dtype: torch.dtype) -> bool:
    """Tell whether the private operators are there and answer as the public one does."""
    if dtype not in CLOSE:
        return False
    draw = torch.Generator().manual_seed(0)
    sizes = (48, 32), (48,), (5, 32)
    weight, bias, states = (torch.randn(size, generator=draw).to(dtype) for size in sizes)
    try:
        with torch.inference_mode():
            difference = Packed(weight, bias)(states) - nn.functional.linear(states, weight, bias)
            return bool(difference.abs().max() < CLOSE[dtype])
    except FAULTS:
        return False


def pack(model: Any) -> int:
    """Swap the linear layers of a model on a CPU; return how many rows its products need at least.

    Layers that are not called themselves when the model is tried are left: Mamba reads the weights
    of some, as does the first DeBERTa.
    """
    if not works(model.dtype):
        return FEWEST
    called = _called_layers(model)
    places = [
        (parent, name)
        for parent in model.modules()
        for name, child in parent._modules.items()  # noqa: SLF001 two names of one layer count
        if id(child) in called
    ]
    for parent, name in places:  # one after the other: the plain weights go as the packed ones come
        layer = getattr(parent, name)
        weight = layer.weight.t() if isinstance(layer, Conv1D) else layer.weight
        setattr(parent, name, Packed(weight, layer.bias))
        del layer, weight
    others = (part for part in model.modules() if not isinstance(part, nn.Embedding))
    weights = (weight for part in others for weight in part.parameters(recurse=False))
    # torch's own products are left; the head of DeBERTa's own multiplies the embeddings
    plain = hasattr(model, "lm_predictions") or any(weight.dim() > 1 for weight in weights)
    return FEWEST if plain else PAIR


@torch.inference_mode()
def _called_layers(model: Any) -> set[int]:
    """Return ids of the linear layers that a forward pass calls, and not only reads as weights."""
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


class Padded(nn.Module):
    """An activation over whole SIMD vectors.

    torch computes the remainder after the last full vector in another way: SiLU, the approximate
    GELU and the sigmoid differ there in the last digit, and in layers whose width is no multiple of
    a vector, that remainder falls on one text or another.
    """

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        """Return the activation of each number."""
        flat = states.reshape(-1)
        missing = -len(flat) % LANES
        padded = nn.functional.pad(flat, (0, missing)) if missing else flat
        activated: torch.Tensor = self.inner(padded)
        return activated[: len(flat)].view(states.shape)


def pad_activations(model: Any) -> None:
    """Give all activations of a model whole vectors."""
    for parent in list(model.modules()):
        for name, child in list(parent._modules.items()):  # noqa: SLF001 two names of one count
            if isinstance(child, SPELT_OUT):
                setattr(parent, name, Padded(nn.GELU(approximate="tanh")))
            elif type(child).__module__ == activations.__name__ or type(child) in SINGLE:
                setattr(parent, name, Padded(child))


def close(difference: torch.Tensor, logits: torch.Tensor) -> bool:
    """Tell whether logits agree: up to a small share of their standard deviation over rows."""
    share = 1e-3 if logits.dtype in (torch.float32, torch.float64) else 0.2
    return bool(difference < share * logits.float().std(0).mean())


class HeadOnly:
    """Hands only the requested last states of a model's body to its head.

    The head is the model's own code, whatever the architecture: it gets a tensor
    (positions, 1, width) in place of (texts, tokens, width).
    """

    def __init__(self, body: nn.Module) -> None:
        self.body = body
        self._request = threading.local()  # batches run in several threads
        body.register_forward_hook(self._after_body)

    @contextmanager
    def at(self, rows: torch.Tensor, positions: torch.Tensor) -> Iterator[None]:
        """Select the states at these rows and positions, both of shape (n,)."""
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
        self._request.where = None  # the body's output is selected already
        return selected

    @torch.inference_mode()
    def shorten(self, model: Any, position: int) -> bool:
        """Shorten the last layer if it is a known one; return whether that was done.

        Tried on random tokens first: where the logits at ``position`` are not those of the whole
        model, the layer is left as it was.
        """
        part = self._last_part()
        if part is None:
            return False
        size = model.config.vocab_size
        draw = torch.Generator().manual_seed(0)  # from the upper half: padding has a low number
        ids = torch.randint(size // 2, size, TRIAL, generator=draw).to(model.device)
        plain = model(input_ids=ids).logits
        plain = plain[:, position] if plain.dim() == 3 else plain
        hook = part.register_forward_pre_hook(self._in_last_layer)
        rows = torch.arange(TRIAL[0], device=ids.device)
        with suppress(*FAULTS), self.at(rows, torch.full_like(rows, position)):
            short = model(input_ids=ids).logits.view_as(plain)
            if close((short.float() - plain.float()).abs().max(), plain):
                return True
        hook.remove()
        return False

    def _last_part(self) -> nn.Module | None:
        """Return the part of the last layer from which on each token is computed by itself."""
        for layers, part in LAST:
            with suppress(AttributeError):
                inner: Any = self.body.get_submodule(layers)
                found: nn.Module = inner[-1].get_submodule(part)
                return found
        return None


class Span(NamedTuple):
    """The attention of some nodes at the same places of their texts."""

    queries: torch.Tensor  # nodes, (texts, places of the span)
    keys: torch.Tensor  # nodes, (texts, places up to its end)
    seen: torch.Tensor  # whether a query sees a key, (places of the span, places up to its end)


class Tree(NamedTuple):
    """Texts that share their beginnings."""

    tokens: torch.Tensor  # of the nodes, (1, nodes)
    places: torch.Tensor  # in their texts, (1, nodes)
    paths: list[list[int]]  # the nodes of each text
    spans: list[Span]
    order: torch.Tensor  # where among the queries of all spans each node stands, (nodes,)


def parts(texts: Sequence[Sequence[int]], most: int) -> list[list[int]]:
    """Part texts into batches of neighbours, of at most so many nodes unless a text has more.

    Returns numbers of the texts, which follow each other in the order of their tokens.
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
    """Make a tree of texts, none empty; shared beginnings are found if they are sorted.

    ``move`` makes a tensor of numbers.
    """
    tokens: list[int] = []
    places: list[int] = []
    paths: list[list[int]] = []
    read: dict[tuple[int, int], list[list[int]]] = {}  # the path of each text in a span
    stands: list[tuple[tuple[int, int], int]] = []  # of each node: its span, its place there
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
                stands += [((first, last), len(rows) * (last - first) + p - first) for p in new]
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
    order = [begins[span] + place for span, place in stands]
    lacking = max(0, FEWEST - len(tokens))
    tokens, places, order = (own + own[:1] * lacking for own in (tokens, places, order))
    return Tree(move([tokens]), move([places]), paths, spans, move(order))


@contextmanager
def reading(tree: Tree | None) -> Iterator[None]:
    """Let models that were prepared see the nodes of a tree, and not a text."""
    _reading.tree = tree
    try:
        yield
    finally:
        _reading.tree = None


def prepare(model: Any) -> bool:
    """Give a model the attention of this module; tell whether it takes one at all."""
    if model.config._attn_implementation != "sdpa":  # noqa: SLF001 no public way to read it
        return False
    AttentionInterface.register(NAME, _attention)
    model.set_attn_implementation(NAME)
    return True


def release(model: Any) -> None:
    """Give a model its own attention back."""
    model.set_attn_implementation("sdpa")


def _attention(
    module: Any,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    mask: torch.Tensor | None,
    **options: Any,
) -> tuple[torch.Tensor, None]:
    """Return attention (texts, tokens, heads, width), the texts being one row of nodes or not."""
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
    """Return the states (texts, heads, tokens, width) of nodes (texts, tokens)."""
    chosen = states.index_select(0, nodes.flatten())
    return chosen.view(*nodes.shape, *states.shape[1:]).transpose(1, 2)


def _spans(length: int) -> Iterator[tuple[int, int]]:
    """Yield first place and end of the spans that a text has: 0-16, 16-32, ..., 64-96, ..."""
    first = 0
    while first < length:
        # at most half of what stands before: few spans for long texts, and few places too many
        last = first + max(SPAN, 1 << first.bit_length() >> 2)
        yield first, last
        first = last


def _common(before: Sequence[int], text: Sequence[int]) -> int:
    """Return the number of first tokens that two texts share."""
    equal = takewhile(lambda pair: pair[0] == pair[1], zip(before, text, strict=False))
    return sum(1 for _ in equal)
