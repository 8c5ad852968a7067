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
UNIT = "recall above chance"
READING, KIND = "corrected", KINDS[0]  # of the headline: single words
LEAST = 2  # groups of a category


def read(inputs: Inputs, model: str, _: Params) -> dict[tuple[str, str], pl.DataFrame]:
    """Return what a model has of the attributes of each group, by language and dataset of them."""
    how, known = section("analysis.recall", recall.Params), inputs.datasets["stereotypes"]
    folder, found = inputs.outputs(PROBE, model), {}
    for language in typicality.languages(folder):
        answered = typicality.answers(folder / language).filter(~pl.col("rewritten"))
        lists = Lists.of(answered, READING)
        for config, every in attributes(known, language).items():
            found[language, config] = _groups(lists, every[KIND], min(how.tested))
    return found


def apart(
    place: tuple[str, str], one: pl.DataFrame, other: pl.DataFrame, params: Params
) -> Iterator[Difference]:
    """Yield a difference for each category of a dataset of attributes."""
    both = one.join(other, on=["category", "group"], suffix="_second").sort("category", "group")
    for (category,), own in both.group_by("category", maintain_order=True):
        if len(own) >= LEAST:
            yield _category((*place, str(category)), own, params)


def _groups(lists: Lists, sought: pl.DataFrame, k: int) -> pl.DataFrame:
    """Return of each group how many attributes it has, and what share of them is above chance."""
    found, groups = lists.find(sought)
    size, row = len(groups), found["row"].to_numpy()
    number = np.bincount(row, minlength=size)
    seen = hits(found["place"].to_numpy(), row, size, k)[:, -1]
    chance = lists.exchange(found, [k], k, 1, 0)[1][:, -1]
    return groups.with_columns(
        number=pl.Series(number), above=pl.Series((seen - chance) / number)
    )


def _category(about: tuple[str, str, str], own: pl.DataFrame, params: Params) -> Difference:
    load: Array = own["number"].to_numpy() / own["number"].sum()
    one, other = own["above"].to_numpy(), own["above_second"].to_numpy()
    value, n = float(load @ (one - other)), len(own)
    left = load * (one - other - value)
    error = float(np.sqrt(n / (n - 1) * (left**2).sum()))
    return of_t(about, float(load @ one), value, error, n - 1.0, n, params)
