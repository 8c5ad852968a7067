import random

import pytest
import torch

from plumbline.probes.models.kernels import prefix_tree
from plumbline.probes.models.kernels.prefix_tree import grow, parts


def trial(seed):
    """Make up texts many of which begin alike, some twice, some longer than several spans."""
    luck = random.Random(seed)
    stems = [[luck.randrange(3) for _ in range(luck.randrange(150))] for _ in range(4)]
    texts = []
    for _ in range(luck.randrange(1, 30)):
        stem = luck.choice(stems)
        text = stem[: luck.randrange(len(stem) + 1)]
        texts.append(text + [luck.randrange(3) for _ in range(luck.randrange(1, 40))])
    return texts


def tree_of(texts):
    return grow(sorted(texts), torch.tensor)


def test_grow_has_every_prefix_once():
    for seed in range(40):
        texts = sorted(trial(seed))
        tree = tree_of(texts)
        tokens, places = tree.tokens[0].tolist(), tree.places[0].tolist()
        for text, path in zip(texts, tree.paths, strict=True):
            assert [tokens[node] for node in path] == text, f"seed {seed}"
            assert [places[node] for node in path] == list(range(len(text))), f"seed {seed}"
        beginnings = {tuple(text[: i + 1]) for text in texts for i in range(len(text))}
        assert len(tokens) == max(len(beginnings), prefix_tree.FEWEST), f"seed {seed}"


def test_grow_spans_see_the_whole_prefix():
    for seed in range(40):
        tree = tree_of(trial(seed))
        above = {path[i]: path[: i + 1] for path in tree.paths for i in range(len(path))}
        asked = [
            (node, keys[seen].tolist(), tuple(span.keys.shape[1:]), place)
            for span in tree.spans
            for row, keys in zip(span.queries, span.keys, strict=True)
            for place, (node, seen) in enumerate(zip(row.tolist(), span.seen, strict=True))
        ]
        shapes = {}
        for node, path in above.items():
            found, keys, *shape = asked[tree.order[node]]
            assert (found, keys) == (node, path), f"seed {seed}"
            assert shapes.setdefault(len(path), shape) == shape, f"seed {seed}"
        assert all(len(span.keys) >= prefix_tree.PAIR for span in tree.spans)


@pytest.mark.parametrize("most", [1, 7, 60, 1 << 20])
def test_parts_are_neighbours(most):
    for seed in range(40):
        texts = trial(seed)
        found = parts(texts, most)
        rows = [row for part in found for row in part]
        assert sorted(rows) == list(range(len(texts))), f"seed {seed}"
        assert [texts[row] for row in rows] == sorted(texts), f"seed {seed}"
        for part in found:
            nodes = {tuple(texts[r][: i + 1]) for r in part for i in range(len(texts[r]))}
            assert len(nodes) <= max(most, len(texts[part[0]])), f"seed {seed}"
    assert parts([], most) == []
