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
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from plumbline.probes.nationality.cases import Case

    Ranks = dict[tuple[str, str], dict[str, int]]  # (country, kind): name in lower case: rank


def halved(ranks: Ranks, case: Case) -> Case:
    """Return placebo swaps as names of odd ranks minus names of even ranks of the same country.

    The halves of a country's names are the same in all texts, so that other halves might differ,
    as names do. Swaps within a half are left out.
    """

    def odd(country: str, gender: str, name: str) -> int | None:
        rank = rank_of(ranks, country, gender, name.split(" ", 1)[0])
        return None if rank is None else rank % 2

    after, before = case.by_name("", odd), case.by_name("_other", odd)
    kept = np.abs(after - before) == 1
    case, swapped = case.where(kept), (after == 0)[kept]
    sides = ("first", "first_other"), ("rest", "rest_other")
    names = case.names.with_columns(
        pl.when(pl.lit(pl.Series(swapped))).then(other).otherwise(own).alias(own)
        for one, two in sides
        for own, other in ((one, two), (two, one))
    )
    return case._replace(
        names=names,
        row=np.where(swapped, case.compared, case.row),
        compared=np.where(swapped, case.row, case.compared),
    )


def frequency(ranks: Ranks, case: Case) -> NDArray[np.float64]:
    """Return the mean logarithm of the rank of the words of each name, (n,); nan where none is.

    A complete name is looked up before its words; gendered first names before last names.
    """
    return case.by_name("", partial(log_rank, ranks))


def read_ranks(folder: Path, countries: Sequence[str]) -> Ranks:
    """Return the ranks of the names of countries in the dataset ``names``."""
    ranks: Ranks = {}
    for country in set(countries) & set(parquet.configs(folder)):
        table = pl.read_parquet(folder / f"{country}.parquet", columns=["kind", "name", "rank"])
        for kind, name, rank in table.sort("kind", "name").iter_rows():
            ranks.setdefault((country, KINDS[kind]), {})[name.casefold()] = rank
    return ranks


def rank_of(ranks: Ranks, country: str, gender: str, part: str, last: bool = False) -> int | None:
    """Return the rank of a part of a name: of a first name of the gender, or a last one, first."""
    kinds = sorted(KINDS, key=lambda kind: (kind != gender, kind == "last"))
    order = kinds[::-1] if last else kinds
    return next((t[part] for k in order if part in (t := ranks.get((country, k), {}))), None)


def log_rank(ranks: Ranks, country: str, gender: str, name: str) -> float | None:
    """Return the logarithm of the rank of a name, or the mean of those of its two parts."""
    if complete := rank_of(ranks, country, gender, name):
        return float(np.log(complete))
    words = [word for word in re.split(r"\s+", name) if word]
    for cut in range(1, len(words)):
        first = rank_of(ranks, country, gender, " ".join(words[:cut]))
        last = rank_of(ranks, country, gender, " ".join(words[cut:]), last=True)
        if first and last:
            return float(np.log(first) + np.log(last)) / 2
    return None
