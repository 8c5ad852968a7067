"""Words beside names of women and men: how much more one model's differ by gender than another's.

Of each word: the share of women's lists that have it less that of men's, of one model less the
same of the other. A name has a list of each, so that it adds 1, 0 or -1; Welch's test (1947,
Biometrika 34(1-2)) compares women's names with men's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from plumbline.builders.datasets.words.build import POS
from plumbline.probes.comparison.difference import of_t
from plumbline.probes.politicians.words.word_counts import FEMALE, MALE, Lists, by_name, languages

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from plumbline.probes.comparison.difference import Difference, Params
    from plumbline.probes.core.run_analysis import Inputs
    from plumbline.probes.politicians.words.word_counts import Named

    Array = NDArray[np.float64]

PROBE = "associations"
UNIT = "points, share of women's lists less of men's"
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


def apart(place: tuple[str, str], one: Named, other: Named, params: Params) -> Iterator[Difference]:
    """Yield a difference for each word that enough lists have, in points of a hundred."""
    on = ["name", "gender"]
    sides = [n.names.select(on).with_row_index(i) for n, i in zip((one, other), "ab", strict=True)]
    names = sides[0].join(sides[1], on=on, maintain_order="left")
    gender = names["gender"].cast(int).to_numpy()
    women, men = gender == FEMALE, gender == MALE
    if min(women.sum(), men.sum()) < LEAST:
        return
    words = sorted({*one.words["word"], *other.words["word"]})
    lists = [_lists(n, names[i].to_numpy(), words) for n, i in zip((one, other), "ab", strict=True)]
    common = np.flatnonzero(sum(own.sum(axis=0) for own in lists) >= params.min_count)
    had, change = 100 * lists[0][:, common], 100 * (lists[0] - lists[1])[:, common]
    first, value = (own[women].mean(axis=0) - own[men].mean(axis=0) for own in (had, change))
    parts = np.array([change[own].var(axis=0, ddof=1) / own.sum() for own in (women, men)])
    free = np.array([women.sum() - 1, men.sum() - 1])
    total, spent = parts.sum(axis=0), (parts**2 / free[:, None]).sum(axis=0)
    freedom = np.where(spent > 0, total**2 / np.where(spent > 0, spent, 1.0), free.sum())
    number = int(women.sum() + men.sum())
    for i, w in enumerate(common):
        numbers = float(first[i]), float(value[i]), float(total[i] ** 0.5), float(freedom[i])
        yield of_t((*place, words[w]), *numbers, number, params)


def _lists(named: Named, rows: NDArray[np.uint32], words: list[str]) -> Array:
    """Return whether the list of a name has a word, (names, words)."""
    column = {word: i for i, word in enumerate(named.words["word"])}
    at = np.array([column.get(word, -1) for word in words])
    lists = np.zeros((len(rows), len(words)))
    lists[:, at >= 0] = named.matrix[rows.astype(np.int64)].tocsc()[:, at[at >= 0]].toarray()
    return lists
