"""Files for papers and other programs: CSV, parquet, LaTeX, figures, Every Eval Ever."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plumbline import drawing, every_eval
from plumbline.builders.core.errors import UserError

if TYPE_CHECKING:
    from plumbline.result import Result

FIGURES = ("svg", "pdf", "png")


def export(result: Result, folder: str | Path, width: float) -> list[Path]:
    """Write what is described at :meth:`plumbline.Result.export`.

    Raises
    ------
    UserError
        If the folder cannot be written, or the width is no width.
    """
    drawing.check(width)
    into, found = Path(folder).expanduser(), []
    try:
        into.mkdir(parents=True, exist_ok=True)
        for name, table in {"headline": result.headline, **result.tables}.items():
            for path in (into / f"{name}.csv", into / f"{name}.parquet"):
                getattr(table, f"write_{path.suffix[1:]}")(path)
                found.append(path)
        texts = {
            "headline.tex": result.to_latex(),
            "summary.txt": result.summary + "\n",
            "provenance.json": _json(result.provenance),
        }
        if "model" in result.provenance:  # such a record is of one model: of no comparison
            texts[every_eval.FILE] = _json(every_eval.record(result))
        for name, text in texts.items():
            (into / name).write_text(text, encoding="utf-8")
            found.append(into / name)
        for kind in FIGURES:
            path = into / f"headline.{kind}"
            path.write_bytes(drawing.written(result.svg(), width, kind))
            found.append(path)
    except OSError as error:
        raise UserError(f"{into}: cannot be written ({error.strerror}); name another") from error
    return found


def _json(facts: Any) -> str:
    return json.dumps(facts, indent=1, sort_keys=True, allow_nan=False) + "\n"
