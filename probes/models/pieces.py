"""Candidates of several pieces: as many masks as pieces, scored from left to right."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from probes.models.body import logsoftmax

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from probes.models.masked import Masked

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
    worst = max(range(len(encoded)), key=lambda i: len(encoded[i]))
    longer = range(len(encoded[worst]) + max(map(len, tails)) - 1)
    scorer.tokens.fits(scorer.tokens.tokenizer.decode(encoded[worst]), longer, scorer.body.longest)
    scorer.batches.run(lengths, lengths, torch.inference_mode()(launch), finish)
    whole = np.zeros((len(encoded), len(tails)))
    for column, tail in enumerate(tails):
        for n, piece in enumerate(tail):
            step = number[len(tail), tail[:n]]
            whole[:, column] += found[step][:, asked[step].index(piece)]
    return whole
