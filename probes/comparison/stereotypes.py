"""Attributes of social groups: how much more of them one model has among its first words.

Recall of the groups' own attributes above that with the lists of other groups of the category, of
one model less the same of the other, groups as often as they have attributes; t over groups.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from plumbline.builders.core.params import section
from plumbline.probes.comparison.difference import Params, Row, t_difference
from plumbline.probes.stereotypes import recall, typicality
from plumbline.probes.stereotypes.match_attributes import KINDS, Lists, attributes, hits

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plumbline.probes.core.run_analysis import Inputs

PROBE, UNIT = "completions", "recall above chance"
READING, KIND = "corrected", KINDS[0]  # of the headline: single words
LEAST = 2  # groups of a category


def read(inputs: Inputs, model: str, _: Params) -> dict[tuple[str, str], pl.DataFrame]:
    """Return number and share above chance of the attributes of groups, by language and dataset."""
    k = min(section("analysis.recall", recall.Params).tested)
    folder, tables = inputs.outputs(PROBE, model), {}
    for language in typicality.languages(folder):
        answers = typicality.answers(folder / language).filter(~pl.col("rewritten"))
        lists = Lists.of(answers, READING)
        for config, kinds in attributes(inputs.datasets["stereotypes"], language).items():
            found, groups = lists.find(kinds[KIND])
            row, place = found["row"].to_numpy(), found["place"].to_numpy()
            number = np.bincount(row, minlength=len(groups))
            chance = lists.exchange(found, [k], k, 1, 0)[1][:, -1]
            above = (hits(place, row, len(groups), k)[:, -1] - chance) / number
            tables[language, config] = groups.with_columns(number=number, above=above)
    return tables


def compare(
    place: tuple[str, str], one: pl.DataFrame, other: pl.DataFrame, params: Params
) -> Iterator[Row]:
    """Yield a difference for each category of a dataset of attributes."""
    both = one.join(other, on=["category", "group"], suffix="_other").sort("category", "group")
    for (category,), rows in both.group_by("category", maintain_order=True):
        n = len(rows)
        if n >= LEAST:
            load = rows["number"].to_numpy() / rows["number"].sum()
            first, second = rows["above"].to_numpy(), rows["above_other"].to_numpy()
            value = float(load @ (first - second))
            rest = load * (first - second - value)
            error = float(np.sqrt(n / (n - 1) * (rest**2).sum()))
            numbers = (float(load @ first), value, error, n - 1.0, n)
            yield t_difference((*place, str(category)), *numbers, params)
