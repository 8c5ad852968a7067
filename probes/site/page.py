"""From sections to the text of a page: HTML that asks nothing of anybody, with style and script."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from plumbline.probes.report.embed import Figures
from plumbline.probes.site.downloads import LARGEST

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jinja2 import Template

    from plumbline.probes.report.view import Section, Table
    from plumbline.probes.site.downloads import Download

HERE = Path(__file__).parent
TITLE = "Bias in language models"


class Link(NamedTuple):
    """An entry of the navigation."""

    name: str  # of the page
    title: str
    about: str = ""


class Page(NamedTuple):
    """What a page has besides its sections."""

    name: str = "index"
    title: str = TITLE
    about: str = ""
    pages: Sequence[Link] = ()  # of the site
    studies: Sequence[Link] = ()  # that the page leads to
    downloads: Sequence[Download] = ()
    versions: Sequence[Table] = ()


def render(sections: list[Section], page: Page | None = None) -> str:
    """Return the page of some sections."""
    figures, script = Figures(), (HERE / "page.js").read_text(encoding="utf-8")
    body = _template("sections.html").render(sections=sections, embedded=figures.embedded)
    digest = hashlib.sha256(script.encode()).digest()
    return _template("page.html").render(
        page=page or Page(),
        site=TITLE,
        largest=LARGEST // 1024,
        sections=sections,
        body=body,
        style=(HERE / "page.css").read_text(encoding="utf-8") + figures.css(),
        script=script,
        digest=base64.b64encode(digest).decode(),
    )


@cache
def _template(name: str) -> Template:
    environment = Environment(
        loader=FileSystemLoader(HERE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(name)
