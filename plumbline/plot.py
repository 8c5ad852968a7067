"""A figure that notebooks show, whatever backend Matplotlib has there."""

from __future__ import annotations

import io

from matplotlib.figure import Figure

DPI = 150  # of a screen


class Plot(Figure):
    """A figure of Matplotlib's, with nothing of pyplot's state behind it."""

    def _repr_png_(self) -> bytes:
        """Return the picture that a notebook shows."""
        drawn = io.BytesIO()
        self.savefig(drawn, format="png", dpi=DPI)
        return drawn.getvalue()
