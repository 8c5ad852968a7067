"""Candidates of several pieces: as many masks as pieces, from left to right or all at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from plumbline.probes.models.forward import logsoftmax

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from plumbline.probes.models.masked import Masked

Step = tuple[int, tuple[int, ...]]  # pieces of the word, and those of them already in place


def sums(
    scorer: Masked,
    encoded: Sequence[list[int]],
    places: Sequence[int],
    tails: Sequence[tuple[int, ...]],
    language: str,
) -> NDArray[np.float64]:
    """Return the log-probability (prompts, words) of words of several pieces at the mask.

    The mask becomes as many masks as the word has pieces; each piece is scored with the ones
    before it in place and the ones behind it masked, and the sum is taken.

    Parameters
    ----------
    encoded, places
        The tokens of each prompt, and where its mask is.
    tails
        The pieces of each word.

    Raises
    ------
    Problem
        If a prompt is too long for the model with the masks put in, or an answer is not finite.
    """
    # words that begin alike share their first passes
    steps: list[Step] = sorted({(len(t), t[:n]) for t in tails for n in range(len(t))})
    number = {step: i for i, step in enumerate(steps)}
    wanted = {(number[len(t), t[:n]], t[n]) for t in tails for n in range(len(t))}
    asked = [sorted(piece for step, piece in wanted if step == s) for s in range(len(steps))]
    found = [np.zeros((len(encoded), len(pieces))) for pieces in asked]
    jobs = [(i, s) for i in range(len(encoded)) for s in range(len(steps))]
    mask = int(scorer.tokens.mask_id or 0)
    _fit(scorer, encoded, tails)

    def written(prompt: int, step: Step) -> list[int]:
        ids, place = encoded[prompt], places[prompt]
        return [*ids[:place], *step[1], *[mask] * (step[0] - len(step[1])), *ids[place + 1 :]]

    def launch(rows: list[int]) -> list[torch.Tensor]:
        chosen = [(jobs[r][0], steps[jobs[r][1]]) for r in rows]
        ids = scorer.batches.move([written(*job) for job in chosen])
        at = [places[prompt] + len(begun) for prompt, (_, begun) in chosen]
        hidden = [
            range(places[prompt] + len(begun), places[prompt] + length)
            for prompt, (length, begun) in chosen
        ]
        logits = scorer.body.at(ids, scorer.batches.move(at), language, hidden)
        scores = logsoftmax(scorer.name, logits, scorer.dtype).double()
        return [scores[n, asked[jobs[r][1]]] for n, r in enumerate(rows)]

    def finish(rows: list[int], done: list[torch.Tensor]) -> None:
        for r, values in zip(rows, done, strict=True):
            found[jobs[r][1]][jobs[r][0]] = values.cpu().numpy()

    lengths = [len(encoded[i]) + steps[s][0] - 1 for i, s in jobs]
    scorer.batches.run(lengths, lengths, torch.inference_mode()(launch), finish)
    whole = np.zeros((len(encoded), len(tails)))
    for column, tail in enumerate(tails):
        for n, piece in enumerate(tail):
            step = number[len(tail), tail[:n]]
            whole[:, column] += found[step][:, asked[step].index(piece)]
    return whole


def together(
    scorer: Masked,
    encoded: Sequence[list[int]],
    places: Sequence[int],
    tails: Sequence[tuple[int, ...]],
    language: str,
) -> NDArray[np.float64]:
    """Return the same sums with all pieces of a word masked while each of them is scored.

    So no piece is given the others, and words of which only all pieces together make sense get
    less than :func:`sums` gives them.

    Raises
    ------
    Problem
        As :func:`sums`.
    """
    _fit(scorer, encoded, tails)
    steps = sorted({(len(t), n) for t in tails for n in range(len(t))})
    asked = [sorted({t[n] for t in tails if len(t) == length}) for length, n in steps]
    found = [np.zeros((len(encoded), len(pieces))) for pieces in asked]
    jobs = [(i, s) for i in range(len(encoded)) for s in range(len(steps))]
    mask = int(scorer.tokens.mask_id or 0)

    def launch(rows: list[int]) -> list[torch.Tensor]:
        chosen = [(jobs[r][0], *steps[jobs[r][1]]) for r in rows]
        texts = [
            [*encoded[i][: places[i]], *[mask] * length, *encoded[i][places[i] + 1 :]]
            for i, length, _ in chosen
        ]
        at = scorer.batches.move([places[i] + n for i, _, n in chosen])
        hidden = [range(places[i], places[i] + length) for i, length, _ in chosen]
        logits = scorer.body.at(scorer.batches.move(texts), at, language, hidden)
        scores = logsoftmax(scorer.name, logits, scorer.dtype).double()
        return [scores[n, asked[jobs[r][1]]] for n, r in enumerate(rows)]

    def finish(rows: list[int], done: list[torch.Tensor]) -> None:
        for r, values in zip(rows, done, strict=True):
            found[jobs[r][1]][jobs[r][0]] = values.cpu().numpy()

    lengths = [len(encoded[i]) + steps[s][0] - 1 for i, s in jobs]
    scorer.batches.run(lengths, lengths, torch.inference_mode()(launch), finish)
    whole = np.zeros((len(encoded), len(tails)))
    for column, tail in enumerate(tails):
        for n, piece in enumerate(tail):
            step = steps.index((len(tail), n))
            whole[:, column] += found[step][:, asked[step].index(piece)]
    return whole


def _fit(scorer: Masked, encoded: Sequence[list[int]], tails: Sequence[tuple[int, ...]]) -> None:
    """Refuse a prompt that is too long with the masks of the longest word put in."""
    worst = max(range(len(encoded)), key=lambda i: len(encoded[i]))
    longer = range(len(encoded[worst]) + max(map(len, tails)) - 1)
    scorer.tokens.fits(scorer.tokens.tokenizer.decode(encoded[worst]), longer, scorer.body.longest)
