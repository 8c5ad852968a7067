"""Train the tiny model of a world (a control model) and write it into data/samples/worlds."""

from __future__ import annotations

import argparse
import sys

from plumbline.builders.core import cli
from worlds.plant import plant


def parser() -> argparse.ArgumentParser:
    """Return the command-line parser."""
    made = argparse.ArgumentParser(prog="python -m worlds", description=__doc__)
    made.set_defaults(command="plant")
    made.add_argument("world", help="name in worlds/params.yaml")
    cli.options(made)
    return made


def main(arguments: list[str] | None = None) -> int:
    """Run the command and return its exit status (``docs/failures.md``)."""
    given = parser().parse_args(arguments)
    return cli.run(given, lambda: print(plant(given.world)))


if __name__ == "__main__":
    sys.exit(main())
