"""SentiVAE: sentiment lexica on different scales combined into one Dirichlet per word.

Hoyle, Wolf-Sonkin, Wallach, Cotterell and Augenstein (2019), "Combining Sentiment Lexica with a
Multi-View Variational Autoencoder", NAACL. A word has a latent sentiment z in the simplex of
positive, negative and neutral; each view (lexicon) that lists the word emits its value by decoding
z. The approximate posterior is Dir(beta) with beta = 1 + the sum of the views' encoder outputs,
each of which is a softmax and so adds one unit of mass.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import permutations
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from plumbline.builders.datasets.lexica.formats import AXES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Integers = NDArray[np.int64]

SIGMA = 0.1  # standard deviation of the Normal emissions
HIDDEN = 32


class View(NamedTuple):
    """The observations of one lexicon.

    Emissions are ``bernoulli`` (one column, 0 or 1), ``multinomial`` (one column of counts for each
    class; a single label is a count of one) or ``normal`` (any columns, each with sigma 0.1).
    """

    emission: Literal["bernoulli", "multinomial", "normal"]
    words: Integers  # unique indices of its words, of shape (n,)
    values: Floats  # of shape (n, columns)


class Fits(NamedTuple):
    """Posteriors of all fits: ``beta`` has shape (fits, words, 3), where the 3 are :data:`AXES`."""

    beta: Floats
    left_out: tuple[int | None, ...]  # the view excluded from each fit, or None


def fit(
    views: Sequence[View],
    anchors: Integers,
    *,
    seeds: Sequence[int],
    leave_out: bool = True,
    steps: int = 2000,
    learning_rate: float = 5e-4,
    draws: int = 16,
    divergence: float = 1.0,
) -> Fits:
    """Fit all views with each seed and, with the first, all but one view at a time, in one program.

    Words with equal values in all views have the same posterior: they are fitted as one, weighted
    by their number, with at most ``draws`` Monte Carlo draws per step. The expected gradient is
    that of the full batch. One thread and float64 make the result deterministic.

    Among the six orders of the axes, the one in which the anchors have the largest mass on their
    own axes is returned; :func:`misplaced` checks whether that is sufficient.

    ``anchors``: for each word, the index into :data:`AXES` of the axis on which its prior
    Dir(1, 1, 1) is raised by the number of views in the fit, or -1; array of shape (words,).
    ``seeds``: seeds of the weights; the first also seeds the draws and the fits without a view.
    ``steps``, ``learning_rate``: parameters of Adam over the full batch; the paper's rate is 5e-4.
    ``divergence``: weight of the Kullback-Leibler term; 1 gives the paper's bound, with which a
    word with a single binary view gains 0.193 nats by leaving the middle, less than the cost
    (0.265 - 0.049), so that single lists have no influence; with 0.5, they have some.
    """
    import torch

    out: list[int | None] = [None] * len(seeds)
    if leave_out and len(views) > 1:
        out += range(len(views))
    starts = [*seeds, *[seeds[0]] * (len(out) - len(seeds))]
    keep = np.array([[v != o for v in range(len(views))] for o in out], dtype=float)
    # words with the same anchor and equal values in all views form one pattern
    inputs, codes = [], np.full((len(views), len(anchors)), -1)
    for view, row in zip(views, codes, strict=True):
        distinct, code = np.unique(view.values, axis=0, return_inverse=True)
        row[view.words] = code.reshape(-1)
        inputs.append(distinct)
    patterns, pattern, count = np.unique(
        np.stack([anchors, *codes], axis=1), axis=0, return_inverse=True, return_counts=True
    )
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seeds[0])
            emissions = [view.emission for view in views]
            weights = _initial([i.shape[1] for i in inputs], starts)
            pieces = (patterns, count, inputs)
            loss, posterior = _bound(*pieces, emissions, keep, weights, draws, divergence)
            optimiser = torch.optim.Adam(weights, lr=learning_rate, fused=True)
            for _ in range(steps):
                optimiser.zero_grad()
                loss().backward()
                optimiser.step()
            with torch.no_grad():
                beta = posterior().numpy()
    finally:
        torch.set_num_threads(threads)
    named = np.stack([_named(b, patterns[:, 0]) for b in beta])
    return Fits(named[:, pattern.reshape(-1)], tuple(out))


def _bound(
    patterns: Integers,
    words: Integers,
    distinct: Sequence[Floats],
    emissions: Sequence[str],
    keep: Floats,
    weights: list[Any],
    draws: int,
    divergence: float,
) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """Return a function for the loss of a step, and one for beta of shape (fits, patterns, 3).

    ``patterns``: anchor, and index into each view's distinct values (-1 if a view lacks the word);
    array of shape (patterns, 1 + views).
    ``words``: number of words with each pattern, of shape (patterns,).
    """
    import torch
    from torch.distributions import Dirichlet
    from torch.nn.functional import elu, log_softmax, logsigmoid, softmax

    codes = patterns[:, 1:].T
    nets = [weights[8 * v : 8 * v + 8] for v in range(len(emissions))]  # encoder and decoder
    inputs = [torch.tensor(i) for i in distinct]
    present = torch.tensor(keep)
    times = np.minimum(words, draws)
    drawn_of = np.repeat(np.arange(len(words)), times)  # pattern of each Monte Carlo draw
    rows, number = torch.tensor(drawn_of), float(words.sum())
    weight = torch.tensor(np.repeat(words / times, times) / number)
    count = torch.tensor(words / number)
    having = [torch.tensor(np.flatnonzero(c >= 0)) for c in codes]
    code = [torch.tensor(c[c >= 0]) for c in codes]
    codes_drawn = [c[drawn_of] for c in codes]
    draws_of = [torch.tensor(np.flatnonzero(c >= 0)) for c in codes_drawn]
    target = [i[torch.tensor(c[c >= 0])] for i, c in zip(inputs, codes_drawn, strict=True)]
    raised = torch.tensor(np.eye(4)[patterns[:, 0]][:, :3])  # -1 selects the last row: no axis
    prior = 1 + raised * present.sum(1)[:, None, None]

    def layers(x: Any, net: list[Any]) -> Any:
        hidden = elu(torch.baddbmm(net[1], x, net[0]))
        return torch.baddbmm(net[3], hidden, net[2])

    def posterior() -> Any:
        beta = torch.ones(len(keep), len(words), 3, dtype=torch.float64)
        for v, net in enumerate(nets):
            share = softmax(layers(inputs[v].expand(len(keep), -1, -1), net[:4]), -1)
            share = share * present[:, v, None, None]
            beta = beta.index_add(1, having[v], share.index_select(1, code[v]))
        return beta

    def loss() -> Any:
        beta = posterior()
        mass = beta.detach().sum(-1, keepdim=True)  # constant, since each view adds 1
        # Kullback-Leibler divergence from the prior, without constant terms
        cost = (beta - prior) * (torch.digamma(beta) - torch.digamma(mass)) - torch.lgamma(beta)
        z = Dirichlet(beta.index_select(1, rows), validate_args=False).rsample()
        total = divergence * (cost.sum(-1) * count).sum()
        for v, emission in enumerate(emissions):
            decoded = layers(z.index_select(1, draws_of[v]), nets[v][4:])
            x = target[v]
            if emission == "bernoulli":
                likely = logsigmoid(decoded * (2 * x - 1))
            elif emission == "multinomial":
                likely = log_softmax(decoded, -1) * x
            else:
                likely = -0.5 * ((x - decoded) / SIGMA) ** 2
            total = total - (likely.sum(-1) * weight[draws_of[v]] * present[:, v, None]).sum()
        return total

    return loss, posterior


def _initial(columns: Sequence[int], starts: Sequence[int]) -> list[Any]:
    """Draw weights and biases uniformly, at most 1 / sqrt(inputs) in absolute value, per seed."""
    import torch

    fits = []
    for seed in starts:
        draw = np.random.default_rng(seed)
        arrays = []
        for size in columns:  # encoder and decoder, each of two layers
            for width, out in ((size, HIDDEN), (HIDDEN, 3), (3, HIDDEN), (HIDDEN, size)):
                limit = width**-0.5
                arrays += [draw.uniform(-limit, limit, (n, out)) for n in (width, 1)]
        fits.append(arrays)
    return [torch.tensor(np.stack(w), requires_grad=True) for w in zip(*fits, strict=True)]


def _named(beta: Floats, anchor: Integers) -> Floats:
    """Permute the axes of one fit to the order of :data:`AXES`, by the anchors' shares."""
    q = beta / beta.sum(-1, keepdims=True)
    axes = [a for a in range(3) if (anchor == a).any()]
    shares = np.stack([q[anchor == a].mean(0) for a in axes])  # (anchored axes, axes of the fit)
    order = max(
        permutations(range(3)), key=lambda p: sum(shares[i, p[a]] for i, a in enumerate(axes))
    )
    return beta[..., order]


def misplaced(fits: Fits, anchors: Integers) -> list[str]:
    """Return the axes whose anchors have a larger mean share on another axis.

    Only fits of all views are averaged, since an axis may be unidentified if a view is left out.
    """
    full = [i for i, view in enumerate(fits.left_out) if view is None]
    beta = fits.beta[full].mean(0)
    q = beta / beta.sum(-1, keepdims=True)
    anchored = [a for a in range(3) if (anchors == a).any()]
    return [AXES[a] for a in anchored if q[anchors == a].mean(0).argmax() != a]
