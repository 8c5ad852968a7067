"""What trainings do to a world's model where it is known which way they must."""

from __future__ import annotations

import re
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from plumbline.builders.datasets.emotions.build import AFFECTS
from plumbline.probes.stats.estimate import Estimate
from plumbline.probes.stereotypes.shift_rows import Corpus, Rival, judged
from plumbline.probes.stereotypes.training_effects import EMOTION
from plumbline.probes.stereotypes.typicality import folded
from plumbline.probes.worlds.recovery import recovery_row

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from plumbline.probes.stereotypes.shift import Shifted
    from plumbline.probes.stereotypes.shift_rows import Resampled
    from plumbline.probes.worlds.recovery import Planted, Resampling

    Array = NDArray[np.float64]

LEVEL = 0.05
POSITIVE, NEGATIVE = AFFECTS.index("positive"), AFFECTS.index("negative")


def recovery(
    place: tuple[str, str, str],
    world: Planted,
    found: Shifted,
    tones: dict[str, Array],
    control: str,
    resampling: Resampling,
    by: Resampled,
) -> list[dict[str, Any]]:
    """Return the rows of one model and ranking, at the largest share of each corpus.

    Parameters
    ----------
    place
        Model, language and ranking.
    tones
        See :func:`spoken`.
    """
    model, language, ranking = place
    told = []
    for corpus, tone in tones.items():
        value = _beside(found, corpus, control) * tone
        if corpus != control and not np.isnan(value).all():
            what = f"{corpus}: positive minus negative words, the way it speaks of a group"
            estimate = resampling.mean(value, found.groups["group"].to_list())
            told.append((what, estimate, "0: as the control shifts them"))
    told += _seeds(found, control, by)
    return [
        recovery_row(model, language, world, f"{ranking}: {what}", estimate, null)
        for what, estimate, null in told
    ]


def spoken(path: Path, groups: Sequence[str], lexicon: pl.DataFrame) -> dict[str, Array]:
    """Return how every corpus speaks of every group.

    Parameters
    ----------
    path
        A config of the dataset ``outlets``.
    lexicon
        As :func:`plumbline.probes.stereotypes.affects.lexicon` returns it.

    Returns
    -------
    dict
        By corpus, a (groups,) array: 1 where the articles that name the group have more positive
        words than negative ones, -1 where fewer; nan where none name it, or they have as many.
    """
    texts = pl.read_parquet(path, columns=["outlet", "text"]).with_columns(key=folded("text"))
    names = pl.DataFrame({"group": groups}).select(folded("group"))["group"]
    colour = {
        key: int(good) - int(bad)
        for key, good, bad in lexicon.select("key", "positive", "negative").iter_rows()
    }
    found: dict[str, Array] = {}
    for (outlet,), part in texts.sort("outlet", "key").group_by("outlet", maintain_order=True):
        tone = np.zeros(len(groups))
        for i, name in enumerate(names):
            whole = re.compile(rf"\b{re.escape(name)}\b")
            for text in part["key"]:
                if whole.search(text):
                    tone[i] += sum(colour.get(w, 0) for w in re.findall(r"\w+", text))
        found[str(outlet)] = np.where(tone == 0, np.nan, np.sign(tone))
    return found


def _beside(found: Shifted, corpus: str, control: str) -> Array:
    """Return positive minus negative shares after a corpus, minus after the control, (groups,)."""
    shares = {t.share for t in found.after if t.corpus == corpus}
    shares &= {t.share for t in found.after if t.corpus == control}
    if not shares:
        return np.full(len(found.groups), np.nan)
    own, other = (
        np.mean([found.after[t].values[EMOTION] for t in _of(found, name, max(shares))], axis=0)
        for name in (corpus, control)
    )
    gap: Array = own - other
    return gap[:, POSITIVE] - gap[:, NEGATIVE]


def _seeds(found: Shifted, control: str, by: Resampled) -> Iterator[tuple[str, Estimate, str]]:
    """Judge every training on the control against those with another seed, as if other corpora."""
    values, sizes = found.base.values[EMOTION], found.base.sizes[EMOTION]
    category = found.groups["category"].to_numpy()
    parts = [category == name for name in np.unique(category)] + [
        np.ones(len(category), dtype=np.bool_)
    ]
    parts = [x for x in parts if 2 / 2 ** float(x.sum()) <= LEVEL]  # the others never tell
    p = []
    for share in sorted({t.share for t in found.after if t.corpus == control}):
        for one, two in combinations(_of(found, control, share), 2):
            for inside in parts:
                own, other = (
                    Corpus([1], found.after[t].values[EMOTION][None, inside]) for t in (one, two)
                )
                some = by._replace(weights=by.weights[inside])
                rows = judged(values[inside], own, Rival(other, ""), sizes[inside], some)
                p += [row["p"] for row in rows if row["p"] is not None]
    if p:
        nothing = float("nan")
        share = float(np.mean(np.array(p) <= LEVEL))
        method = f"none; {len(p)} tests of affects, in all groups and categories of six or more"
        yield (
            f"{control}, one seed against another: share of tests with p <= {LEVEL}",
            Estimate(share, nothing, nothing, len(category), method),
            f"{LEVEL}: nominal; above it p tells trainings apart, not what they were on",
        )


def _of(found: Shifted, corpus: str, share: float) -> list[Any]:
    return [t for t in found.after if (t.corpus, t.share) == (corpus, share)]
