"""Write results as an HTML page, and run the demonstration on models with a known bias."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

import polars as pl
from markupsafe import Markup

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.snapshot import write_bytes
from plumbline.builders.datasets.politicians.person import GENDERS
from plumbline.models import find
from plumbline.probes.report.view import Group, Part, Section
from plumbline.probes.site import headlines
from plumbline.probes.site.build import STUDIES as PAGES
from plumbline.probes.site.build import render
from plumbline.studies import STUDIES, ask, fitting

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from plumbline.result import Result

LANGUAGE = "en"
PUBLIC = {  # 47 MB; the commit is the same as in params/full.yaml
    "model": "albert/albert-base-v2",
    "revision": "8e2f239c5f8a2c0f253781ca60135db913e5c80c",
}
SHOWN = ("politicians", "stereotypes", "nationality")
TITLE = "Demonstration: results for models with a known bias and without bias"


def write(results: Sequence[Result], path: Path, before: str = "", title: str = "Results") -> Path:
    """Write a page of results, with control models last, and return its path.

    Parameters
    ----------
    before
        HTML to insert above the table of all results.
    """

    def kind_of(result: Result) -> str:
        kinds = dict(zip(STUDIES[result.study].controls, ("positive", "negative"), strict=True))
        return kinds.get(result.model.split()[0], "")  # the options of the run follow the name

    results = sorted(results, key=lambda r: ("", "positive", "negative").index(kind_of(r)))
    rows = [headlines.of_model(r.study, r.model, r.kind, r.headline, kind_of(r)) for r in results]
    sections = [headlines.section(rows, (), PAGES)] if any(rows) else []
    for study in dict.fromkeys(result.study for result in results):
        groups = [_group(result) for result in results if result.study == study]
        sections.append(Section(study, study, "", groups))
    write_bytes(path, render(sections, title=title, before=before).encode())
    return path


def _group(result: Result) -> Group:
    model = result.provenance["model"]
    tables = ", ".join(f"{name} ({len(table):,} rows)" for name, table in result.tables.items())
    command = f"plumbline export {result.study} --model {result.model} --to FOLDER"
    details = Markup("{}. CSV, parquet, LaTeX and figures: <code>{}</code>. Model: {}, {}.").format(
        tables, command, model["id"], model["revision"]
    )
    parts = [Part(caption=result.summary)]
    parts += [Part(caption=f"Note: {note}") for note in result.notes]
    parts += [Part(figure=result.svg()), Part("tables and model", caption=details)]
    return Group(result.model, parts, f"{result.study}-{result.folder.name}")


def write_demo(folder: Path, model: str = "", studies: Sequence[str] = SHOWN) -> tuple[Path, str]:
    """Run studies on their control models and one additional model, and write a page of results.

    Return the path of the page, and the summary of the additional model.

    Parameters
    ----------
    folder
        Folder for outputs, tables and ``index.html``.
    model
        Folder or id of the additional model; by default, a small public one. If it cannot be
        loaded, the page states the reason and shows the control models only.
    studies
        Names of the studies; the first must be ``politicians``.
    """
    results = [
        ask(study, control, language=LANGUAGE, into=folder / control)
        for study in studies
        for control in STUDIES[study].controls
    ]
    options = {"model": model} if model else PUBLIC
    try:
        fits = fitting(find(**options).kind)
        others = [
            ask(study, **options, language=LANGUAGE, into=folder / "besides")  # type: ignore[arg-type]
            for study in studies
            if study in fits
        ]
        public = " ".join(result.summary for result in others)
    except UserError as problem:
        others, public = [], f"Not run: {problem}."
    before = _introduction(results[0], results[1], public)
    return write([*others, *results], folder / "index.html", before, TITLE), public


def _introduction(planted: Result, null: Result, public: str) -> str:
    """Return HTML that contains the question, the answer and a guide to the figures."""
    people = pl.read_parquet(planted.folder / f"data/datasets/politicians/{LANGUAGE}.parquet")
    genders = ("female", "male", "non-binary")
    counts = [people["gender"].eq(GENDERS.index(gender)).sum() for gender in genders]
    share = [f"{len(r.found)} of {len(r.headline.drop_nulls('p_bh'))}" for r in (planted, null)]
    return f"""<p><b>The question.</b> Does a language model put different words next to the
names of women and of men? Two tiny models that were trained on made-up sentences are tested. In the
sentences of the first, {planted.model}, some words go with women's names and others with men's; in
those of the second, {null.model}, there is no such difference. A method that can be trusted detects
the bias of the first model, and nothing in the second.</p>
<p><b>The answer.</b> In the first model {share[0]} words go with a gender, in the second
{share[1]}.</p>
<p><b>How to read the figures.</b> Each line is a word. The further a point is from the grey line,
the more often the model puts the word next to those names than expected by chance (pointwise mutual
information, in nats: 0.7 means twice as often). The bar is the 95% interval, the range in which the
point might lie for another sample of names. A filled point is a statistically significant
difference; about one in twenty of these may be false.</p>
<p><b>The names are real.</b> They belong to {len(people)} politicians: {counts[0]} women,
{counts[1]} men and {counts[2]} non-binary people, whose gender is that given by Wikidata. The other
studies below use the social groups of a published study, and common first and last names of several
countries. <b>The two models are not:</b> their responses say nothing about these people, nor about
any model in use.</p>
<p><b>One more model.</b> {escape(public)}</p>
<p><b>Your own model.</b> Run <code>plumbline run politicians --model FOLDER</code>, or give an id
of the Hugging Face Hub.</p>"""
