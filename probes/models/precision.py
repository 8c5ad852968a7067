"""How far a model's answers are from those in double precision."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plumbline.probes.models.scorer import DECIMALS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plumbline.probes.models.scorer import Fills

BEST = 20  # words of each list that are compared as a set


def agreement(
    scorer: Fills, double: Fills, prompts: Sequence[str], words: Sequence[str], language: str
) -> tuple[float, float]:
    """Compare a model's answers with those of the same model in double precision.

    Returns
    -------
    The largest difference of a candidate's log-probability in nats over all prompts, and the mean
    share of the 20 best words that are among the 20 best in double precision. (0.0, 1.0) where
    there is nothing to compare.
    """
    apart, shares = 0.0, []
    asked = (
        model.fill(prompts, words, len(words), language=language) for model in (scorer, double)
    )
    for one, other in zip(*asked, strict=True):
        for mine, true in zip(one.each(), other.each(), strict=True):
            exact = dict(zip(true.words, true.logprobs_nats, strict=True))
            differences = (
                abs(exact[word] - value)
                for word, value in zip(mine.words, mine.logprobs_nats, strict=True)
            )
            apart = max(apart, *differences, 0.0)
            best = set(true.words[:BEST])
            shares.append(len(best & set(mine.words[:BEST])) / max(1, len(best)))
    share = sum(shares) / len(shares) if shares and words else 1.0
    return round(apart, DECIMALS), round(share, DECIMALS)
