"""Analysis ``robustness``: which headline numbers move, and with what.

The differences of ``sentiment`` between men and women, and the shares of non-binary people, are
computed anew with other settings and among other names: hyper-parameters, lists cut shorter, names
matched on length and popularity, names in the language's own script, other frames, halves of the
names. Those by the latent-variable model are computed for single values of its two weights and
for single starts, in place of the mean over all of them. Stańczak et al. (2023) have nothing of it.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl
from pydantic import Field

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.schema import Column, Schema
from plumbline.builders.datasets.lexica.build import SENTIMENTS
from plumbline.builders.datasets.politicians.build import GENDERS
from plumbline.builders.datasets.politicians.script import script_of
from plumbline.builders.datasets.words.build import POS
from plumbline.probes.politicians.words import columns
from plumbline.probes.politicians.words.columns import FEMALE, MALE
from plumbline.probes.politicians.words.columns import NON_BINARY as OTHER
from plumbline.probes.politicians.words.sentiment_shares import (
    DEVIATIONS,
    Ranking,
    Settings,
    by_latent,
    by_pmi,
    difference_rows,
    of_words,
    share_rows,
)
from plumbline.probes.politicians.words.word_counts import Lists, Named, by_name, frames, languages
from plumbline.probes.stats.estimate import ESTIMATE, Estimate, Resampling, adjusted, typed
from plumbline.probes.stats.matching import coarsened, matched

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from plumbline.probes.core.run_analysis import Inputs

EACH = True
DATASETS = ("politicians", "lexica")
OUTPUTS = ("associations",)
TABLES = ("latent",)
NUMBERS = ("male minus female", "non-binary")
KINDS = (
    "default",
    "top_k",
    "top_share",
    "smoothing",
    "min_count",
    "list length",
    "matched",
    "names",
    "half",
    "frame",
    "l1",
    "posterior",
    "seed",
)
FITS = {"l1": "grid", "posterior": "grid", "seed": "seeds"}  # of `latent`: setting and its table
ROBUSTNESS = Schema(
    columns=(
        *columns.PLACE,
        Column("deviation", "label", "as in `sentiment`", labels=DEVIATIONS),
        Column(
            "number",
            "label",
            "headline number: difference of shares, or share among the words of non-binary people",
            labels=NUMBERS,
        ),
        Column("sentiment", "label", "of which sentiment", labels=SENTIMENTS),
        Column("kind", "label", "what is varied", labels=KINDS),
        Column("variation", "string", "how it is varied; empty for the default"),
        Column("men", "int64", "distinct names of men", minimum=0),
        Column("women", "int64", "distinct names of women", minimum=0),
        Column("others", "int64", "distinct names of non-binary people", minimum=0),
        columns.TOP_K,
        columns.CANDIDATES,
        *ESTIMATE,
        Column("change", "float64", "value minus that of the default", nullable=True),
        Column("holds_default", "bool", "whether low to high has the default", nullable=True),
        columns.REASON,
    ),
    key=("language", "pos", "deviation", "number", "sentiment", "kind", "variation"),
)
SCHEMAS = {"robustness": ROBUSTNESS}
NAN = float("nan")
NOTHING = Estimate(NAN, NAN, NAN, 0, "none").row(cluster="name", null="none")


class Params(Resampling):
    """The default, and what is varied, one thing at a time."""

    top_k: list[int] = Field(min_length=1, description="words taken; the first is the default")
    top_share: list[float] = Field(
        min_length=1, description="most of all candidates; the first is the default"
    )
    smoothing: list[float] = Field(min_length=1, description="the first is the default")
    min_count: list[int] = Field(
        min_length=1, description="names in whose list a word must be; the first is the default"
    )
    lengths: list[int] = Field(description="lists cut to so many words")
    bins: int = Field(ge=2, description="bins of name length and popularity, for matching")
    halves: int = Field(ge=0, description="random halvings of the names, two rows each")

    def settings(self) -> Settings:
        """Return the default settings."""
        varied = {name: getattr(self, name)[0] for name in ("top_k", "top_share", "smoothing")}
        rest = set(Settings._fields) - set(varied)
        return Settings(**varied, **{name: getattr(self, name) for name in rest})


class Variation(NamedTuple):
    """One thing done otherwise."""

    kind: str
    name: str
    lists: Named | None
    settings: Settings


def run(inputs: Inputs, params: Params) -> dict[str, pl.DataFrame]:
    """Compute the table of one model.

    Returns
    -------
    dict
        ``robustness``; columns as in :data:`SCHEMAS`. Where no word has a known sentiment its
        numbers are null.

    Raises
    ------
    UserError
        If there are no lists.
    """
    (model,) = inputs.models
    outputs = inputs.outputs("associations", model)
    people, lexica = inputs.datasets["politicians"], inputs.datasets["lexica"]
    rows: list[dict[str, Any]] = []
    latent = inputs.tables("latent", model)
    for language in languages(outputs):
        for pos in range(len(POS)):
            place = {"model": model, "language": language, "pos": pos, "deviation": 0}
            source = Lists((outputs / language,), pos, pieces=True)
            whole = by_name(source, people / f"{language}.parquet", 1)
            if whole is None:
                continue
            for varied in _variations(inputs, params, whole, language, source):
                rows += [place | row for row in _rows(varied, lexica, language)]
            place |= {"deviation": DEVIATIONS.index("latent")}
            rows += [place | row for row in _latent_rows(latent, whole, params, language, pos)]
    if not rows:
        raise UserError(f"{outputs}: no lists there; see the config coverage for what is missing")
    return {
        "robustness": typed(_compared(pl.DataFrame(rows, infer_schema_length=None)), ROBUSTNESS)
    }


def _latent_rows(
    latent: Path, whole: Named, params: Params, language: str, pos: int
) -> Iterator[dict[str, Any]]:
    """Yield the numbers by the latent-variable model: all fits, single weights, single starts.

    Words are ranked by the largest of their deviations over sentiments.
    """
    here = (pl.col("language") == language) & (pl.col("pos") == pos)
    table = pl.scan_parquet(latent / "latent.parquet").filter(here).collect()
    if table.is_empty():
        return
    of = whole.of_gender()
    keys = ["word", "sentiment", "gender"]
    known = table.select(*keys, "q")
    settings = params.settings()
    varied = [("default", "", table)]
    for setting, config in FITS.items():
        fits = pl.scan_parquet(latent / f"{config}.parquet").filter(here).collect()
        for (value,), part in fits.sort(setting).group_by(setting, maintain_order=True):
            mean = part.group_by(keys).agg(pl.col("value").mean())
            varied.append((setting, f"{value:g}", mean.join(known, on=keys)))
    for kind, name, part in varied:
        ranking = by_latent(part, "argmax", settings, of)
        yield from _numbers(kind, name, ranking, of, settings, "word")


def _variations(
    inputs: Inputs, params: Params, whole: Named, language: str, source: Lists
) -> Iterator[Variation]:
    """Yield the default, then one change of it at a time."""
    least, settings = params.min_count[0], params.settings()
    everybody = np.ones(len(whole.names), dtype=np.bool_)
    default = _only(whole, everybody, least)
    yield Variation("default", "", default, settings)
    for setting in ("top_k", "top_share", "smoothing"):
        for value in getattr(params, setting)[1:]:
            changed = settings._replace(**{setting: value})
            yield Variation(setting, f"{value:g}", default, changed)
    for count in params.min_count[1:]:
        yield Variation("min_count", str(count), _only(whole, everybody, count), settings)
    people = inputs.datasets["politicians"] / f"{language}.parquet"

    def part(**changed: Any) -> Named | None:
        return by_name(source._replace(**changed), people, least)

    for length in params.lengths:
        yield Variation("list length", str(length), part(most=(("rank", length),)), settings)
    for name, kept in _names(whole, params, language):
        kind = name.partition(": ")[0]
        yield Variation(kind, name.partition(": ")[2], _only(whole, kept, least), settings)
    clean = part(most=(("unknown_pieces", 0),))
    yield Variation("names", "all pieces known to the model", clean, settings)
    for frame in frames(source.folders[0])[1:]:
        yield Variation("frame", frame, part(frame=frame), settings)


def _names(whole: Named, params: Params, language: str) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    """Yield subsets of the names: matched, in native script, halves."""
    genders = np.array(whole.labels)[whole.genders]
    length = whole.names["name"].str.len_chars().to_numpy().astype(np.float64)
    words = whole.names["name"].str.split(" ").list.len().to_numpy().astype(np.int64)
    spelt = whole.names["pieces"].to_numpy()[:, None]
    popular = whole.names["popularity"].cast(pl.Float64).fill_null(float("nan")).to_numpy()
    size = np.stack([words, coarsened(length, params.bins)], axis=1)
    fame = coarsened(popular, params.bins)[:, None]
    for name, strata in (
        ("length", size),
        ("pieces", spelt),
        ("popularity", fame),
        ("pieces and popularity", np.hstack([spelt, fame])),
        ("length and popularity", np.hstack([size, fame])),
    ):
        yield f"matched: {name}", matched(strata, genders, (MALE, FEMALE), params.seed)
    if script := script_of(language):
        foreign = whole.names["name"].str.contains(rf"[\p{{L}}--\p{{{script}}}]")
        yield "names: native script alone", ~foreign.to_numpy()
    rng = np.random.default_rng(params.seed)
    for half in range(params.halves):
        first = rng.random(len(genders)) < 0.5
        yield f"half: {half + 1}a", first
        yield f"half: {half + 1}b", ~first


def _only(whole: Named, kept: NDArray[np.bool_], least: int) -> Named | None:
    if not kept.any():
        return None
    part = whole.only(kept, least)
    return part if len(part.words) else None


def _rows(varied: Variation, lexica: Path, language: str) -> Iterator[dict[str, Any]]:
    """Yield the headline numbers of one variation; without a number where there is none."""
    of: dict[int, int] = {}
    ranking = None
    if varied.lists is not None:
        of, words = varied.lists.of_gender(), varied.lists.words
        q = of_words(words["word"].to_list(), words["lemma"].to_list(), lexica, language)
        ranking = by_pmi(varied.lists, q, varied.settings)
    yield from _numbers(varied.kind, varied.name, ranking, of, varied.settings, "name")


def _numbers(
    kind: str,
    name: str,
    ranking: Ranking | None,
    of: dict[int, int],
    settings: Settings,
    cluster: str,
) -> Iterator[dict[str, Any]]:
    """Yield the headline numbers of a ranking.

    Parameters
    ----------
    of
        Distinct names of each gender.
    cluster
        Which of the intervals and tests there are is taken, by its unit.
    """
    of = dict.fromkeys(range(len(GENDERS)), 0) | of
    base: dict[str, Any] = {"kind": KINDS.index(kind), "variation": name}
    base |= {"men": of[MALE], "women": of[FEMALE], "others": of[OTHER]}
    base |= {"top_k": 0, "candidates": 0, "reason": None}
    found: dict[tuple[int, int], dict[str, Any]] = {}
    if ranking is not None:
        base |= {"top_k": ranking.size, "candidates": ranking.candidates}
        for row in difference_rows(ranking, settings):
            if row["cluster"] == cluster:
                found[0, row["sentiment"]] = row
        for row in share_rows(ranking, settings):
            if row["gender"] == OTHER:
                found[1, row["sentiment"]] = row
    for number, s in product(range(len(NUMBERS)), range(len(SENTIMENTS))):
        what = base | {"number": number, "sentiment": s}
        if (number, s) in found:
            yield what | {k: found[number, s][k] for k in NOTHING}
            continue
        there = of[OTHER] if number else min(of[MALE], of[FEMALE])
        reason = "too few words with a known sentiment" if there else "no names"
        if ranking is not None and number and OTHER not in ranking.genders and there:
            reason = "not in the latent-variable model"
        yield what | NOTHING | {"reason": reason}


def _compared(rows: pl.DataFrame) -> pl.DataFrame:
    """Add the change from the default, and p adjusted over languages, parts of speech, sentiments.

    A variation is one analysis of everything, and its tests one family.
    """
    rows = rows.with_columns(
        pl.col("value", "low", "high", "p").cast(pl.Float64)
    )  # may be all null
    keys = ["language", "pos", "deviation", "number", "sentiment"]
    default = rows.filter(pl.col("kind") == 0).select(*keys, default="value")
    table = rows.join(default, on=keys, how="left", maintain_order="left")
    return (
        adjusted(table, over=["deviation", "kind", "variation"])
        .with_columns(
            change=(pl.col("value") - pl.col("default")).round(6),
            holds_default=(pl.col("low") <= pl.col("default"))
            & (pl.col("default") <= pl.col("high")),
        )
        .sort(*ROBUSTNESS.key)
    )
