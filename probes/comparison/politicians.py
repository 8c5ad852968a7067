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
from plumbline.probes.politicians.words.columns import FEMALE, MALE
from plumbline.probes.politicians.words.word_counts import Lists, by_name, languages

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from plumbline.probes.comparison.difference import Difference, Params
    from plumbline.probes.core.run_analysis import Inputs
    from plumbline.probes.politicians.words.word_counts import Named

    Array = NDArray[np.float64]

PROBE = "associations"
CLUSTER = "name"
NULL = "0: the word goes with a gender alike in both models"
UNIT = "points, share of women's lists less of men's"
LEAST = 2  # names of each gender
WORDS = 500  # at once: bounds memory


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
    named, on = (one, other), ["name", "gender"]
    of = [n.names.select(on).with_row_index(i) for n, i in zip(named, "ab", strict=True)]
    names = of[0].join(of[1], on=on, maintain_order="left")
    rows = [names[index].to_numpy().astype(np.int64) for index in "ab"]
    gender = names["gender"].cast(int).to_numpy()
    women, men = gender == FEMALE, gender == MALE
    if min(women.sum(), men.sum()) < LEAST:
        return
    matrices = [n.matrix[own].tocsc() for n, own in zip(named, rows, strict=True)]
    at = [{word: i for i, word in enumerate(n.words["word"])} for n in named]
    words = sorted({*at[0], *at[1]})
    for start in range(0, len(words), WORDS):
        some = words[start : start + WORDS]
        lists = [_dense(m, [a.get(w, -1) for w in some]) for m, a in zip(matrices, at, strict=True)]
        common = np.flatnonzero(sum(own.sum(axis=0) for own in lists) >= params.min_count)
        had, change = lists[0][:, common], (lists[0] - lists[1])[:, common]
        sides = [100 * change[women], 100 * change[men]]
        value = sides[0].mean(axis=0) - sides[1].mean(axis=0)
        first = 100 * (had[women].mean(axis=0) - had[men].mean(axis=0))
        parts = np.array([side.var(axis=0, ddof=1) / len(side) for side in sides])
        free = np.array([len(side) - 1 for side in sides])
        total, spent = parts.sum(axis=0), (parts**2 / free[:, None]).sum(axis=0)
        freedom = np.where(spent > 0, total**2 / np.where(spent > 0, spent, 1.0), free.sum())
        number = int(women.sum() + men.sum())
        for i, w in enumerate(common):
            told = float(first[i]), float(value[i]), float(total[i] ** 0.5), float(freedom[i])
            yield of_t((*place, some[w]), *told, number, params)


def _dense(matrix: object, columns: list[int]) -> Array:
    """Return columns of a sparse matrix, 0 for those that it lacks."""
    at = np.array(columns)
    found = np.zeros((matrix.shape[0], len(at)))  # type: ignore[attr-defined]
    found[:, at >= 0] = matrix[:, at[at >= 0]].toarray()  # type: ignore[index]
    return found
