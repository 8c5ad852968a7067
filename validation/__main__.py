"""Commands that validate datasets, accept versions and render the Data Docs."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from plumbline.builders.core import cli
from plumbline.builders.core.errors import during

NAMES = sorted(p.stem for p in (Path(__file__).parent / "datasets").glob("[a-z]*.py"))


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit status (see ``docs/failures.md``)."""
    parser = argparse.ArgumentParser(prog="python -m plumbline.validation", description=__doc__)
    parser.add_argument(
        "command",
        nargs="+",
        choices=[*NAMES, "docs"],
        metavar="NAME",
        help="datasets to validate (a stage of dvc.yaml), or `docs`, which renders the Data Docs "
        f"of all datasets under data/docs. Datasets: {', '.join(NAMES)}",
    )
    parser.add_argument(
        "--accept",
        action="store_true",
        help="record the datasets as accepted versions in validation/accepted.json, once you "
        "have read their validation reports",
    )
    cli.options(parser)
    parsed = parser.parse_args(arguments)
    return cli.run(parsed, lambda: _run(parsed.command, accept=parsed.accept))


def _run(names: list[str], *, accept: bool) -> None:
    if accept:
        from plumbline.validation import accepted

        for name in names:
            print(accepted.accept(name))
        return
    from plumbline.validation import run

    if "docs" in names:
        with during("validation docs"):
            print(run.render(NAMES))
    else:
        run.validate_all(names)


if __name__ == "__main__":
    sys.exit(main())
