"""Figures inside a page: without what repeats, and with ids of their own."""

from __future__ import annotations

import re

GROUP = re.compile(r'(<g) id="[^"]*"')
IDS = re.compile(r'(?<= id=")([^"]+)(?=")|(?<=href="#)([^"]+)(?=")|(?<=url\(#)([^)]+)(?=\))')
STYLE = re.compile(r' style="([^"]*)"')


class Figures:
    """The figures of one page, which share their styles."""

    def __init__(self) -> None:
        self._styles: dict[str, str] = {}
        self._count = 0

    def embedded(self, svg: str) -> str:
        """Return a figure as it stands in the page."""
        self._count += 1
        names: dict[str, str] = {}

        def own(found: re.Match[str]) -> str:
            return names.setdefault(found[0], f"f{self._count}-{len(names)}")

        def styled(found: re.Match[str]) -> str:
            return f' class="{self._styles.setdefault(found[1], f"s{len(self._styles)}")}"'

        svg = GROUP.sub(r"\1", svg)
        return STYLE.sub(styled, IDS.sub(own, svg))

    def css(self) -> str:
        """Return the rules of all styles."""
        return "\n".join(f"svg .{name}{{{style}}}" for style, name in self._styles.items())
