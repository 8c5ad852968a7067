"""Tables in LaTeX, for the packages booktabs and longtable."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

SPECIAL = {sign: f"\\{sign}" for sign in "&%$#_{}"}
SPECIAL |= {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
SPECIAL |= {"<": r"\textless{}", ">": r"\textgreater{}"}
SPECIAL["\n"] = " "
SIGNS = str.maketrans(SPECIAL)


def text(words: str) -> str:
    r"""Return words as LaTeX prints them.

    Examples
    --------
    >>> print(text("R&D_1 {50%}"))
    R\&D\_1 \{50\%\}
    """
    return words.translate(SIGNS)


def number(cell: str) -> str:
    r"""Return a cell of numbers with signs, powers of ten and infinity as in mathematics.

    Examples
    --------
    >>> print(number("-0.75 [-∞, 2e-05]"))
    $-$0.75 [$-\infty$, 2$\cdot10^{-5}$]
    """
    powers = re.sub(r"(\d)e-0?(\d+)", r"\1$\\cdot10^{-\2}$", cell)
    infinite = powers.replace("-∞", r"$-\infty$").replace("∞", r"$\infty$")
    return re.sub(r"(?<![{\w$])-", "$-$", infinite)


def table(
    words: Sequence[str],
    numbers: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    note: str = "",
    long: bool = False,
) -> str:
    """Return a table, its columns of words to the left and of numbers to the right.

    Parameters
    ----------
    words, numbers
        Heads, as LaTeX.
    rows
        Cells as LaTeX, those of words first.
    note
        A line below the table, as LaTeX.
    long
        Whether it may go over several pages, in place of standing on one.
    """
    heads = [*words, *numbers]
    columns = "l" * len(words) + "r" * len(numbers)
    below = [r"\bottomrule"]
    if note:
        width = rf"\multicolumn{{{len(heads)}}}{{p{{0.9\linewidth}}}}"
        below.append(rf"{width}{{\footnotesize {note}}} \\")
    first = [r"\toprule", " & ".join(heads) + r" \\", r"\midrule"]
    lines = [" & ".join([_guarded(row[0]), *row[1:]]) + r" \\" for row in rows]
    if long:
        top = [rf"\begin{{longtable}}{{{columns}}}", *first, r"\endhead", *below, r"\endlastfoot"]
        return "\n".join([*top, *lines, r"\end{longtable}", ""])
    top = [rf"\begin{{tabular}}{{{columns}}}", *first]
    return "\n".join([*top, *lines, *below, r"\end{tabular}", ""])


def _guarded(cell: str) -> str:
    """Keep LaTeX from reading a cell as an argument of the line before it."""
    return f"{{{cell[0]}}}{cell[1:]}" if cell[:1] in ("[", "*") else cell
