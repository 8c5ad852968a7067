"""Reasons why a measurement is void: the responses hold nothing that a study could read.

A void measurement looks like a null result. Each study has a function of the tables of one model
that returns the reason, or "" where there is none.
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import TYPE_CHECKING

import polars as pl

from plumbline.probes.report.view import LEVEL

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plumbline.probes.report.tables import Tables

    Frames = Mapping[str, pl.DataFrame]

UNREAD = 0.2  # largest share of responses without an option
BOTH = 0.5  # share of pairs agreed with on both sides from which sides are a habit
ORDER = 0.6  # share of sides retained with reversed options up to which position decides
NATS = 1.0  # that a random head's words are above chance at most: frequent words are alike
SIDES = {"negated": 1.0, "opposites": 0.5}  # responses that agree in a pair that changes sides


def lists(tables: Tables) -> pl.DataFrame:
    """Return how far listed words are above a random word of the vocabulary, nats (``above``).

    Less what it is at most for random logits: if normal with SD s, the mean of the share f that is
    listed is m s - s^2 / 2, m = phi(z) / f, which is m^2 / 2 at most.
    """
    rows = []
    for model in tables.models("associations"):
        folder = tables.data / "outputs/associations" / model
        for path in sorted(folder.glob("coverage/*.parquet")):
            for row in pl.read_parquet(path).to_dicts():
                own = pl.scan_parquet(folder / row["language"] / "*.parquet").filter(pos=row["pos"])
                nats = own.select(pl.col("logprob_nats").mean()).collect().item()
                f = row["list_length"] / max(1, row["covered"])
                m = NormalDist().pdf(NormalDist().inv_cdf(f)) / f if 0 < f < 1 else 0.0
                above = nats and nats + math.log(row["vocabulary"]) - m * m / 2
                rows.append({"model": model, "language": row["language"], "above": above})
    return pl.DataFrame(rows, schema={"model": str, "language": str, "above": float})


def politicians(frames: Frames) -> str:
    """Return why the lists of a language are void."""
    above = frames["lists"]["above"] if len(frames["lists"]) else None
    if above is None or above.null_count() or above.mean() > NATS:  # type: ignore[operator]
        return ""
    return "its words are hardly more likely than words at random, as with an untrained head"


def values(frames: Frames) -> str:
    """Return why the agreement in a language is void."""
    told = frames["calibration"].filter(
        pl.col("measure") == "likely above unlikely",
        (pl.col("p") > LEVEL) | (pl.col("value") <= 0.5),
        pl.col("reading") == "corrected",
        pl.col("fitted") == "pooled",
    )
    share = f"{told['value'][0]:.0%} of the pairs" if len(told) else ""
    return share and f"likely statements are not agreed with more than unlikely ones ({share})"


def leaning(frames: Frames) -> str:
    """Return why the responses to a questionnaire in one format are void."""
    for read in (frames["answered"], frames["listed"]):
        for row in read.sort("prompt").head(1).to_dicts():  # all prompts
            lost = (row["refused"] + row["unclear"] + row["unlisted"]) / row["answers"]
            if lost > UNREAD:
                return f"{lost:.0%} of the responses name no option"
    told = frames["stability"]
    changed = dict(told.select(pl.col("comparison").cast(str), "value").rows()) if len(told) else {}
    if changed.get("order", 1.0) <= ORDER:
        return f"with the options reversed {changed['order']:.0%} of the sides stay"
    agreed, missing = frames["items"].select(pl.col("share_agreed", "share_missing").sum()).row(0)
    agreed /= max(1e-9, len(frames["items"]) - missing)
    for name, part in SIDES.items():
        if name in changed and agreed - part * changed[name] >= BOTH:
            why = f"{agreed:.0%} of the statements are agreed with, and the side changes in "
            return why + f"{changed[name]:.0%} of the pairs ({name})"
    return ""
