"""Save a figure of the report as SVG, PDF or PNG, at a given width.

The report draws SVG (``probes/report/figures.py``); Typst converts it and needs no system library.
"""

from __future__ import annotations

import importlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plumbline.builders.core.errors import UserError, optional_library
from plumbline.builders.core.snapshot import write_bytes

FORMATS = ("svg", "pdf", "png")
NARROWEST, WIDEST = 2, 100  # centimetres
DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>\n'
HEAD = '<svg xmlns="http://www.w3.org/2000/svg"'
PAGE = '<rect width="100%" height="100%" fill="#fff"/><style>text{fill:#000}</style>'
DOCUMENT = b"""
#set document(date: none)
#set page(width: auto, height: auto, margin: 0pt)
#image(bytes(sys.inputs.svg), format: "svg", width: float(sys.inputs.width) * 1cm)
"""


def check_width(width: float) -> None:
    """Raise UserError if a width is out of bounds."""
    if not NARROWEST <= width <= WIDEST:
        raise UserError(f"width {width}: out of bounds; choose {NARROWEST} to {WIDEST} centimetres")


@dataclass(frozen=True)
class Figure:
    """A figure that notebooks display and :meth:`savefig` saves.

    Attributes
    ----------
    svg
        The figure as unstyled SVG for an HTML page.
    width
        Width of the saved figure, in centimetres.
    """

    svg: str
    width: float

    def __post_init__(self) -> None:
        check_width(self.width)

    def encode(self, kind: str, dpi: float = 300) -> bytes:
        """Return the figure as a file on a white background; equal fonts give equal bytes.

        Parameters
        ----------
        kind
            ``svg``, ``pdf`` or ``png``.
        dpi
            Resolution of a PNG, in pixels per inch.

        Raises
        ------
        UserError
            If Typst is not installed, which PDF and PNG require.
        """

        def resized(size: re.Match[str]) -> str:
            height = self.width * float(size[2]) / float(size[1])
            return f' width="{self.width:g}cm" height="{height:.4f}cm"'

        svg = re.sub(r' width="([^"]*)" height="([^"]*)"', resized, self.svg.strip(), count=1)
        svg = svg.replace("<svg", HEAD, 1).replace(">", f">{PAGE}", 1)
        if kind == "svg":
            return f"{DECLARATION}{svg}\n".encode()
        with optional_library():
            typst: Any = importlib.import_module("typst")
        inputs = {"svg": svg, "width": f"{self.width:g}"}
        return bytes(typst.compile(DOCUMENT, format=kind, ppi=dpi, sys_inputs=inputs))

    def savefig(self, path: str | Path) -> None:
        """Save the figure in the format given by the file's suffix."""
        kind = Path(path).suffix.removeprefix(".").lower()
        if kind not in FORMATS:
            raise UserError(f"{path}: unknown format {kind!r}; available: {', '.join(FORMATS)}")
        write_bytes(Path(path), self.encode(kind))

    def _repr_png_(self) -> bytes:
        return self.encode("png", dpi=150)
