"""Attributes of social groups: how much more of them one model has among its first words.

Of each category: recall of the groups' own attributes above that with the lists of other groups,
of one model less the same of the other, groups as often as they have attributes; t over groups.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from plumbline.builders.core.params import section
from plumbline.probes.comparison.difference import of_t
from plumbline.probes.stereotypes import recall, typicality
from plumbline.probes.stereotypes.match_attributes import KINDS, Lists, attributes, hits

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from plumbline.probes.comparison.difference import Difference, Params
    from plumbline.probes.core.run_analysis import Inputs

    Array = NDArray[np.float64]

PROBE = "completions"
CLUSTER = "group"
NULL = "0: attributes are as far above chance in both models"
UNIT = "recall above chance"
READING, KIND = "corrected", KINDS[0]  # of the headline: single words
LEAST = 2  # groups of a category


def apart(inputs: Inputs, first: str, second: str, params: Params) -> Iterator[Difference]:
    """Yield a difference for each category of a dataset of attributes."""
    how, known = section("analysis.recall", recall.Params), inputs.datasets["stereotypes"]
    folders = [inputs.outputs(PROBE, model) for model in (first, second)]
    there = [set(typicality.languages(folder)) for folder in folders]
    for language in sorted(there[0] & there[1]):
        answered = (typicality.answers(folder / language) for folder in folders)
        lists = [Lists.of(own.filter(~pl.col("rewritten")), READING) for own in answered]
        of_config = attributes(known, language, flagged=how.flagged)
        for config, every in of_config.items():
            sides = [_groups(own, every[KIND], min(how.tested)) for own in lists]
            both = sides[0].join(sides[1], on=["category", "group"], suffix="_second")
            for (category,), own in both.sort("category", "group").group_by(
                "category", maintain_order=True
            ):
                if len(own) >= LEAST:
                    yield _category((language, config, str(category)), own, params)


def _groups(lists: Lists, sought: pl.DataFrame, k: int) -> pl.DataFrame:
    """Return of each group how many attributes it has, and what share of them is above chance."""
    found = lists.find(sought)
    size, row = len(found.groups), found.column("row")
    number = np.bincount(row, minlength=size)
    seen = hits(found.column("place"), row, size, k)[:, -1]
    chance = np.zeros(size)
    for category in found.groups["category"].unique().sort():
        chance += lists.exchanged(found, category, [k], k, 1, 0)[1][:, -1]
    return found.groups.with_columns(
        number=pl.Series(number), above=pl.Series((seen - chance) / number)
    )


def _category(about: tuple[str, str, str], own: pl.DataFrame, params: Params) -> Difference:
    load: Array = own["number"].to_numpy() / own["number"].sum()
    one, other = own["above"].to_numpy(), own["above_second"].to_numpy()
    value, n = float(load @ (one - other)), len(own)
    left = load * (one - other - value)
    error = float(np.sqrt(n / (n - 1) * (left**2).sum()))
    return of_t(about, float(load @ one), value, error, n - 1.0, n, params)
