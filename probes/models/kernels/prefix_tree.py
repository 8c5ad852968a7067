"""Texts with common prefixes: every prefix is computed once.

The texts of a batch form a tree: a token is a node below the one before it, and texts branch where
they differ. All nodes are one row of input. What a model does to each token by itself (products,
norms, positions) needs no more; its attention is computed here, in spans of fixed positions: the
tokens from 16 to 31 of a text together, say, with all before them, padded behind the end of the
text. So the result for a text depends on that text alone, to the last bit, whichever others share
its prefix.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from transformers import AttentionInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward

from plumbline.probes.models.kernels.packed_linear import FEWEST, PAIR

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

NAME = "plumbline"  # of the attention, among those of transformers
SPAN = 16  # tokens, of the first spans; later ones grow with what stands before them
_reading = threading.local()  # batches run in several threads


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
    found: list[list[int]] = []
    nodes, before = 0, None
    for row in sorted(range(len(texts)), key=lambda row: list(texts[row])):
        more = len(texts[row]) - _common(before or (), texts[row])
        if not found or nodes + more > most:
            found.append([])
            nodes, more = 0, len(texts[row])
        found[-1].append(row)
        nodes, before = nodes + more, texts[row]
    return found


def grow(texts: Sequence[Sequence[int]], move: Callable[[Any], torch.Tensor]) -> Tree:
    """Make a tree of texts, none empty; shared beginnings are found if they are sorted.

    ``move`` makes a tensor of numbers.
    """
    tokens: list[int] = []
    places: list[int] = []
    paths: list[list[int]] = []
    asked: dict[tuple[int, int], list[list[int]]] = {}  # the path of each text in a span
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
                rows = asked.setdefault((first, last), [])
                stands += [((first, last), len(rows) * (last - first) + p - first) for p in new]
                rows.append([*path[:last], *path[-1:] * (last - len(path))])
        paths.append(path)
        before = text
    begins, spans, start = {}, [], 0
    for (first, last), rows in sorted(asked.items()):
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
    found = []
    for span in tree.spans:
        given = _pick(rows, span.queries), _pick(keys, span.keys), _pick(values, span.keys)
        out, _ = sdpa_attention_forward(module, *given, span.seen[None, None], **options)
        found.append(out.flatten(0, 1))
    return torch.cat(found).index_select(0, tree.order).unsqueeze(0), None


def _pick(states: torch.Tensor, nodes: torch.Tensor) -> torch.Tensor:
    """Return the states (texts, heads, tokens, width) of nodes (texts, tokens)."""
    chosen = states.index_select(0, nodes.flatten())
    return chosen.view(*nodes.shape, *states.shape[1:]).transpose(1, 2)


def _spans(length: int) -> Iterable[tuple[int, int]]:
    """Yield first place and end of the spans that a text has: 0-16, 16-32, ..., 64-96, ..."""
    first = 0
    while first < length:
        # at most half of what stands before: few spans for long texts, and few places too many
        last = first + max(SPAN, 1 << first.bit_length() >> 2)
        yield first, last
        first = last


def _common(one: Sequence[int], other: Sequence[int]) -> int:
    """Return how many first tokens two texts share."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(one), len(other)))
