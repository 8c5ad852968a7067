"""How frequent names are: their ranks in the gazetteers of their countries."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from plumbline.builders.core import parquet
from plumbline.builders.readers.name_lists import KINDS

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from plumbline.probes.nationality.cases import Case


def halved(folder: Path, case: Case) -> Case:
    """Return placebo swaps as names of odd ranks minus names of even ranks of the same country.

    The halves of a country's names are the same in all texts, so that other halves might differ,
    as names do. Swaps within a half are left out.

    ``folder``: the dataset ``names``.
    """
    ranks = _ranks(folder, case)

    def odd(country: str, gender: str, name: str) -> float:
        rank = rank_of(ranks, country, gender, name.split(" ", 1)[0])
        return -1 if rank is None else rank % 2

    after, before = (case.looked_up(of, odd) for of in (case.name, case.other))
    kept = np.flatnonzero((after >= 0) & (before >= 0) & (after != before))
    case, swapped = case.chosen(kept), (after == 0)[kept]
    sides = ((case.name, case.other), (case.row, case.compared))
    (name, row), (other, compared) = (
        [
            np.where(swapped.reshape(-1, *[1] * (pair[0].ndim - 1)), *pair[:: 1 if back else -1])
            for pair in sides
        ]
        for back in (0, 1)
    )
    return case._replace(name=name, other=other, row=row, compared=compared)


def frequency(folder: Path, case: Case) -> NDArray[np.float64]:
    """Return the mean logarithm of the rank of the words of each name, (n,); nan where none is.

    A whole name is looked up before its words; gendered first names before last names.
    """
    return case.looked_up(case.name, partial(log_rank, _ranks(folder, case)))


def _ranks(folder: Path, case: Case) -> dict[tuple[str, str], dict[str, int]]:
    """Return ranks by country and kind, and by name in small letters."""
    ranks: dict[tuple[str, str], dict[str, int]] = {}
    for country in set(case.countries) & set(parquet.configs(folder)):
        table = pl.read_parquet(folder / f"{country}.parquet", columns=["kind", "name", "rank"])
        for kind, name, rank in table.sort("kind", "name").iter_rows():
            ranks.setdefault((country, KINDS[kind]), {})[name.casefold()] = rank
    return ranks


def rank_of(
    ranks: Mapping[tuple[str, str], Mapping[str, int]],
    country: str,
    gender: str,
    part: str,
    last: bool = False,
) -> int | None:
    """Return the rank of a part of a name: of a first name of the gender, or a last one, first."""
    kinds = sorted(KINDS, key=lambda kind: (kind != gender, kind == "last"))
    order = kinds[::-1] if last else kinds
    return next((t[part] for k in order if part in (t := ranks.get((country, k), {}))), None)


def log_rank(
    ranks: Mapping[tuple[str, str], Mapping[str, int]], country: str, gender: str, name: str
) -> float:
    """Return the logarithm of the rank of a name, or the mean of those of its two parts.

    ``ranks``: by country and kind, and by name in lower case.
    """
    if whole := rank_of(ranks, country, gender, name):
        return float(np.log(whole))
    words = [word for word in re.split(r"\s+", name) if word]
    for cut in range(1, len(words)):
        first = rank_of(ranks, country, gender, " ".join(words[:cut]))
        last = rank_of(ranks, country, gender, " ".join(words[cut:]), last=True)
        if first and last:
            return float(np.log(first) + np.log(last)) / 2
    return float("nan")
