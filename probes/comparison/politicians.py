"""Words beside names of women and men: how much more one model's differ by gender than another's.

The share of women's lists that have a word less that of men's, of one model less the same of the
other. A name has a list of each, so that it adds 1, 0 or -1; Welch's test (1947, Biometrika
34(1-2)) compares women's names with men's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from plumbline.builders.datasets.words.build import POS
from plumbline.probes.comparison.difference import Params, Row, t_difference
from plumbline.probes.politicians.words.columns import FEMALE, MALE
from plumbline.probes.politicians.words.word_counts import Lists, Named, by_name, languages

if TYPE_CHECKING:
    from collections.abc import Iterator

    import polars as pl
    from numpy.typing import NDArray

    from plumbline.probes.core.run_analysis import Inputs

    Array = NDArray[np.float64]

PROBE, UNIT = "associations", "points, share of women's lists less of men's"
LEAST = 2  # names of each gender


def read(inputs: Inputs, model: str, _: Params) -> dict[tuple[str, str], Named]:
    """Return a model's lists by language and part of speech."""
    folder, people = inputs.outputs(PROBE, model), inputs.datasets["politicians"]
    return {
        (language, pos): named
        for language in languages(folder)
        for pos in POS
        if (named := by_name(Lists((folder / language,), pos), people / f"{language}.parquet", 1))
    }


def compare(place: tuple[str, str], one: Named, other: Named, params: Params) -> Iterator[Row]:
    """Yield a difference for each word that enough lists have, in points of a hundred."""
    sides = [
        named.names.select("name", "gender").with_row_index(index)
        for named, index in ((one, "one"), (other, "other"))
    ]
    names = sides[0].join(sides[1], on=["name", "gender"], maintain_order="left")
    genders = [names["gender"].cast(int).to_numpy() == gender for gender in (FEMALE, MALE)]
    sizes = np.array([gender.sum() for gender in genders])
    if sizes.min() < LEAST:
        return
    words = sorted({*one.words["word"], *other.words["word"]})
    lists = [_lists(one, names["one"], words), _lists(other, names["other"], words)]
    common = np.flatnonzero((lists[0] + lists[1]).sum(axis=0) >= params.min_count)
    had, change = 100 * lists[0][:, common], 100 * (lists[0] - lists[1])[:, common]
    first, value = (x[genders[0]].mean(axis=0) - x[genders[1]].mean(axis=0) for x in (had, change))
    parts = np.array([change[gender].var(axis=0, ddof=1) / gender.sum() for gender in genders])
    total, spent = parts.sum(axis=0), (parts**2 / (sizes[:, None] - 1)).sum(axis=0)
    flat = spent == 0
    freedom = np.where(flat, sizes.sum() - 2, total**2 / np.where(flat, 1.0, spent))
    numbers = np.stack([first, value, total**0.5, freedom], axis=1).tolist()
    for w, row in zip(common, numbers, strict=True):
        yield t_difference((*place, words[w]), *row, int(sizes.sum()), params)


def _lists(named: Named, rows: pl.Series, words: list[str]) -> Array:
    """Return whether the list of a name has a word, (names, words)."""
    column = {word: i for i, word in enumerate(named.words["word"])}
    at = np.array([column.get(word, -1) for word in words])
    lists = np.zeros((len(rows), len(words)))
    matrix = named.matrix[rows.to_numpy().astype(np.int64)].tocsc()
    lists[:, at >= 0] = matrix[:, at[at >= 0]].toarray()
    return lists
