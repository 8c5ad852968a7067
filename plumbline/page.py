"""A page of results: what was found first, models by studies, then a figure for each."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from plumbline.builders.core.snapshot import write_bytes
from plumbline.result import interval, number, shown_p

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from plumbline.result import Result

STYLE = """
:root { color-scheme: light; --ink: #222; --faint: #6b6b6b; --line: #ddd; --found: #0072B2; }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); margin: 0 auto; max-width: 60rem;
  padding: 1.5rem 1rem 4rem; }
h1 { font-size: 1.5rem; margin: 0 0 .3rem; } h2 { font-size: 1.15rem; margin: 2.5rem 0 .3rem; }
p { margin: .3rem 0 1rem; } .faint { color: var(--faint); font-size: .875rem; }
.wide { overflow-x: auto; } table { border-collapse: collapse; width: 100%; font-size: .9rem; }
th, td { text-align: left; padding: .35rem .8rem .35rem 0; border-bottom: 1px solid var(--line);
  vertical-align: top; } td.n { text-align: right; white-space: nowrap; }
.yes { color: var(--found); font-weight: 600; } svg { max-width: 100%; height: auto; }
svg text { fill: #000; }
summary { cursor: pointer; }
"""


def write(results: Sequence[Result], path: Path, before: str = "", title: str = "Results") -> Path:
    """Write a page of results, whole or not at all, and return its path.

    Parameters
    ----------
    before
        HTML that stands above the table of all results.
    """
    rows = [_row(result) for result in results]
    parts = [_part(result) for result in results]
    page = f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><style>{STYLE}</style></head>
<body><h1>{escape(title)}</h1>{before}
<p class="faint">Found: adjusted p ≤ .05 (Benjamini and Hochberg, over the family of the analysis).
“Would be found”: the distance from the null that half of the tests find with power .8. They
describe models, not people.</p>
<div class="wide"><table><thead><tr><th>study</th><th>model</th><th>found</th><th>clearest, with
95% interval</th><th>adjusted p</th><th>would be found</th></tr></thead>
<tbody>{"".join(rows)}</tbody></table></div>{"".join(parts)}</body></html>
"""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_bytes(path, page.encode())
    return path


def _row(result: Result) -> str:
    tested = result.headline.drop_nulls("p_bh")
    found = len(result.found)
    first = result.headline.row(0, named=True) if len(result.headline) else None
    told = f"{first['what']}: {interval(first)}" if first else "–"
    least = number(tested["detectable_bh"].median())  # type: ignore[arg-type]
    share = f'<span class="{"yes" if found else ""}">{found} of {len(tested)}</span>'
    cells = [
        f'<td><a href="#{_key(result)}">{escape(result.study)}</a></td>',
        f"<td>{escape(result.model)}</td>",
        f"<td>{share} {escape(result.kind.things)}</td>",
        f"<td>{escape(told)} {escape(result.kind.unit)}</td>",
        f'<td class="n">{shown_p(first["p_bh"]) if first else "–"}</td>',
        f'<td class="n">± {least}</td>' if least != "–" else '<td class="n">–</td>',
    ]
    return f"<tr>{''.join(cells)}</tr>"


def _part(result: Result) -> str:
    known = result.provenance["model"]
    tables = "".join(
        f"<li>{escape(name)}: {len(table):,} rows</li>" for name, table in result.tables.items()
    )
    return (
        f'<h2 id="{_key(result)}">{escape(result.study)}: {escape(result.model)}</h2>'
        f"<p>{escape(result.summary)}</p>{result.svg()}"
        f"<details><summary>tables and model</summary><ul>{tables}</ul>"
        f"<p>CSV, parquet, LaTeX and figures: <code>plumbline export {escape(result.study)} "
        f"--model {escape(result.model)} --to FOLDER</code></p>"
        f'<p class="faint">{escape(str(known["id"]))}, {escape(str(known["revision"]))}</p>'
        "</details>"
    )


def _key(result: Result) -> str:
    return f"{result.study}-{result.model}"
