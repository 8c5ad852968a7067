"""Check a built site: every link leads somewhere, and nothing is loaded from other servers.

Links must be relative, so that the site can be served under any path or read from a folder.
"""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# Attributes that a browser loads by itself, in contrast to links that a reader may follow.
FETCHED = {
    "script": ("src",),
    "img": ("src", "srcset"),
    "source": ("src", "srcset"),
    "iframe": ("src",),
    "video": ("src", "poster"),
    "audio": ("src",),
    "object": ("data",),
    "embed": ("src",),
    "use": ("href", "xlink:href"),
    "image": ("href", "xlink:href"),
    "form": ("action",),
}
FOLLOWED = {"canonical", "alternate", "author", "license", "next", "prev"}
MARKUP = re.compile(r"(?:^|\n)(?:[-*] |\d+\. |\||#+ )|`|\*\*|\]\(")  # unconverted Markdown
STYLED = re.compile(r"(?:url\(|@import)\s*['\"]?([^'\")\s;]+)")


class Page(HTMLParser):
    """The anchors of a page, its links, the resources it loads, and Markdown left in its text."""

    def __init__(self) -> None:
        super().__init__()
        self.anchors: set[str] = {""}
        self.links: list[str] = []
        self.fetched: list[str] = []
        self.unread: list[str] = []
        self._style = False
        self._code = self._prose = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect the anchors and targets of an element."""
        found = {name: value or "" for name, value in attrs}
        self.anchors |= {found[name] for name in ("id", "name") if name in found}
        self._style = tag == "style"
        self._code += tag in {"code", "pre", "math"}
        self._prose += tag in {"p", "li", "td"}
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        if tag == "link":
            followed = set(found.get("rel", "").split()) & FOLLOWED
            (self.links if followed else self.fetched).append(found.get("href", ""))
        self.fetched += [found[name] for name in FETCHED.get(tag, ()) if name in found]
        self.fetched += STYLED.findall(found.get("style", ""))

    def handle_data(self, data: str) -> None:
        """Collect the targets of a style sheet inside the page."""
        if self._style:
            self.fetched += STYLED.findall(data)
        if self._prose and not self._code and MARKUP.search(data):
            self.unread.append(" ".join(data.split())[:80])

    def handle_endtag(self, tag: str) -> None:
        """Note the end of a style sheet, of code, or of prose."""
        self._code -= tag in {"code", "pre", "math"}
        self._prose -= tag in {"p", "li", "td"}
        self._style = self._style and tag != "style"


def problems(site: Path, wanted: set[str]) -> list[str]:
    """Return the problems of a site, one sentence each.

    Parameters
    ----------
    site
        Folder of the site.
    wanted
        Paths of the pages that must exist and be reachable from index.html.
    """
    pages = {p.relative_to(site).as_posix(): _read(p) for p in sorted(site.rglob("*.html"))}
    found = [f"{name}: was not built" for name in sorted(wanted - set(pages))]
    for name, page in pages.items():
        found += _links(site, name, page, pages)
        found += [f"{name}: fetches {url} from outside" for url in page.fetched if _outside(url)]
        found += [f"{name}: Markdown was not understood at {text!r}" for text in page.unread]
    for sheet in sorted(site.rglob("*.css")):
        urls = STYLED.findall(sheet.read_text(encoding="utf-8"))
        name = sheet.relative_to(site)
        found += [f"{name}: fetches {url} from outside" for url in urls if _outside(url)]
    return found + [f"{name}: no page leads there" for name in sorted(wanted - _reached(pages))]


def _read(path: Path) -> Page:
    page = Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page


def _outside(url: str) -> bool:
    return bool(urlsplit(url).netloc)


def _links(site: Path, name: str, page: Page, pages: dict[str, Page]) -> Iterator[str]:
    for url in [*page.links, *page.fetched]:
        if urlsplit(url).scheme or _outside(url):
            continue
        if url.startswith("/"):
            if name != "404.html":  # is served under any path, so its links cannot be relative
                yield f"{name}: {url} is not relative, and breaks under a sub-path"
            continue
        target, anchor = _target(name, url)
        if target not in pages and not (site / target).is_file():
            yield f"{name}: {url} leads nowhere"
        elif target in pages and unquote(anchor) not in pages[target].anchors:
            yield f"{name}: {url} has no such anchor"


def _target(name: str, url: str) -> tuple[str, str]:
    """Return the file that a link leads to, relative to the site, and the anchor in it."""
    parts = urlsplit(url)
    steps = name.split("/")[:-1] if parts.path else name.split("/")
    for step in unquote(parts.path).split("/"):
        if step == "..":
            steps = steps[:-1] if steps else ["nowhere"]
        elif step not in {"", "."}:
            steps = [*steps, step]
    path = "/".join(steps)
    if parts.path.endswith(("/", ".")) or not path:
        path = f"{path}/index.html".removeprefix("/")
    return path, parts.fragment


def _reached(pages: dict[str, Page]) -> set[str]:
    seen, todo = set(), ["index.html"]
    while todo:
        name = todo.pop()
        if name in seen or name not in pages:
            continue
        seen.add(name)
        links = (u for u in pages[name].links if not urlsplit(u).scheme and u[:1] != "/")
        todo += [_target(name, url)[0] for url in links]
    return seen
