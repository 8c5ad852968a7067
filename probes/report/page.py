"""Writing ``data/report/index.html`` from what is on disk: one file, no requests to anywhere."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from builders.lib import store
from builders.lib.problem import Problem
from probes.report import (
    anova,
    clusters,
    compass,
    controls,
    datasets,
    emotions,
    fairness,
    latent,
    nationality,
    pooled,
    recall,
    robustness,
    rsa,
    sentiment_lexica,
    sentiments,
    shift,
    subgroups,
    supersenses,
    values,
    words,
)
from probes.report.blocks import files

if TYPE_CHECKING:
    from probes.report.blocks import Section

DATA = Path("data")
REPORT = DATA / "report"
ORDER = (  # controls, then the steps of the study, then what they were made of
    controls,
    words,
    latent,
    supersenses,
    sentiments,
    anova,
    clusters,
    subgroups,
    pooled,
    robustness,
    recall,
    emotions,
    rsa,
    shift,
    values,
    nationality,
    compass,
    fairness,
    sentiment_lexica,
    datasets,
)


def write() -> Path:
    """Write the report page and return its path.

    Raises
    ------
    Problem
        If there are no tables yet.
    """
    if not list(files(DATA, "pmi", "pmi")):
        raise Problem(f"{DATA / 'tables/pmi'}: no tables; run `make repro`")
    text = render([module.section(DATA) for module in ORDER])
    partial = store.fresh(REPORT)
    (partial / "index.html").write_text(text, encoding="utf-8")
    store.finish(REPORT)
    return REPORT / "index.html"


def render(sections: list[Section]) -> str:
    """Return the page of some sections."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("page.html").render(sections=sections)
