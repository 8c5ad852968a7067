"""A demonstration: what the studies find in models with a known bias, on a page for newcomers.

The data are the bundled samples: real politicians with their gender, the groups of a published
study, common first and last names of countries. The models are the control models of each study,
and a small public one where the Hub can be reached.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from plumbline import page
from plumbline.builders.core.errors import UserError
from plumbline.builders.datasets.politicians.person import GENDERS
from plumbline.probes.report.figures import forest
from plumbline.probes.report.view import sure
from plumbline.studies import STUDIES, ask, fitting

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from plumbline.result import Result

LANGUAGE = "en"
EACH = 6  # words of either end in the picture
PUBLIC = {  # 47 MB; asked about its own, by the commit of params/full.yaml
    "model": "albert/albert-base-v2",
    "revision": "8e2f239c5f8a2c0f253781ca60135db913e5c80c",
}
ASKED = ("politicians", "stereotypes", "nationality")
HEAD = "A demonstration: can a bias be found where there is one, and none where there is none?"
SIDES = ("female", "male")
TITLES = ("trained with a bias", "trained without it")


class Demo(NamedTuple):
    """Where the page is, and what is said of the model that is no control."""

    page: Path
    public: str


def write(folder: Path, model: str = "", studies: Sequence[str] = ASKED) -> Demo:
    """Put studies to their control models, and to one model more; write a page of it.

    Parameters
    ----------
    folder
        Where outputs, tables and ``index.html`` go.
    model
        Folder or id of the model that is asked besides; by default a small public one. If it cannot
        be had the page says why, and has the control models alone.
    studies
        Which; the first has to be politicians, which the picture is of.
    """
    results = [
        ask(study, control, language=LANGUAGE, into=folder / control)
        for study in studies
        for control in STUDIES[study].controls
    ]
    others, said = _others(folder, {"model": model} if model else PUBLIC, studies)
    path = page.write(
        [*others, *results], folder / "index.html", _before(results[0], results[1], said), HEAD
    )
    return Demo(path, said)


def _others(
    folder: Path, model: dict[str, str], studies: Sequence[str]
) -> tuple[list[Result], str]:
    """Put the studies that fit to a model that may be out of reach; return what is said of it."""
    from plumbline.models import find

    name = model["model"]
    try:
        kind = find(name, revision=model.get("revision", "")).kind
        into = folder / "besides"
        fits = [study for study in studies if study in fitting(kind)]
        found = [
            ask(study, name, revision=model.get("revision", ""), language=LANGUAGE, into=into)
            for study in fits
        ]
    except UserError as problem:
        return [], f"Not run: {problem}."
    return found, " ".join(result.summary for result in found)


def _before(planted: Result, null: Result, said: str) -> str:
    """Return what the page begins with: the question, the answer, the picture and what it is of."""
    frame = pl.read_parquet(planted.folder / f"data/datasets/politicians/{LANGUAGE}.parquet")
    men, women, others = (
        int((frame["gender"] == GENDERS.index(g)).sum()) for g in ("male", "female", "non-binary")
    )
    share = [f"{len(r.found)} of {len(r.headline.drop_nulls('p_bh'))}" for r in (planted, null)]
    return f"""<p><b>The question.</b> Does a language model put other words beside the names of
women than beside those of men? Here the question is put to two tiny models that were trained for
this purpose, on made-up sentences. In those of the first, some words stand beside women's names and
others beside men's; those of the second have no such difference. A method that can be trusted finds
the bias of the first, and nothing in the second.</p>
<p><b>The answer.</b> In the first model {share[0]} words go with a gender, in the second
{share[1]}.</p>
<figure class="wide">{picture(planted, null)}</figure>
<p><b>How to read it.</b> Each line is a word, the same on both sides: the {EACH} that go most
surely with women's names in the first model, and the {EACH} that go most surely with men's. The
further a point is from the grey line, the more often the model puts the word beside those names
than chance would (pointwise mutual information, in nats: 0.7 is twice as often). The bar is the 95%
interval: where the point might be, had other names been drawn. A filled point is a difference that
chance does not explain; of those that are found, one in twenty may be false.</p>
<p><b>The names are real.</b> They are those of {len(frame)} politicians: {women} women, {men} men
and {others} non-binary people, with their gender as Wikidata has it. The other studies below take
the social groups of a published study, and common first and last names of countries. <b>The two
models are not:</b> they have read made-up sentences, and what they say is nothing about these
people, nor about any model in use.</p>
<p><b>One model more.</b> {escape(said)}</p>
<p><b>Yours:</b> <code>plumbline run politicians --model FOLDER</code>, or an id of the Hugging
Face Hub.</p>"""


def picture(planted: Result, null: Result) -> str:
    """Return a forest plot of the surest words, one model beside the other, on one scale, as SVG.

    To the right is pointwise mutual information with women's names, to the left that with men's.
    """
    own = {f"{t} ({r.model})": _by_side(r) for t, r in zip(TITLES, (planted, null), strict=True)}
    sure = next(iter(own.values())).filter("found", pl.col("size") > 0)
    chosen = pl.concat(sure.filter(pl.col("gender") == side).head(EACH) for side in SIDES)
    words = chosen.sort("value", descending=True).select("word", "gender")
    rows = [
        row | {"of": title}
        for title, frame in own.items()
        for row in words.join(frame, on=words.columns, maintain_order="left").to_dicts()
    ]
    unit = "← beside men's names          beside women's names →"
    return forest(rows, line="word", unit=unit, panel="of", panels=list(own), filled="found")


def _by_side(result: Result) -> pl.DataFrame:
    """Return a row for each word and side, the surest first; values of men's names are negative."""
    rows = result.table.filter(pl.col("reading") == "smoothed", pl.col("gender").is_in(SIDES))
    rows = rows.unique(["word", "gender"], keep="first", maintain_order=True)
    size, low, high = (pl.col(name) for name in ("value", "low", "high"))
    right = pl.col("gender") == "female"
    return rows.sort("p_bh", "p", "word", nulls_last=True).select(
        *("word", "gender"),
        found=sure(),
        size=size,
        value=pl.when(right).then(size).otherwise(-size),
        low=pl.when(right).then(low).otherwise(-high),
        high=pl.when(right).then(high).otherwise(-low),
    )
