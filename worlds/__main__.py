"""Train a world (a tiny control model) and write it into data/samples/worlds."""

from __future__ import annotations

import argparse
import sys

from plumbline.builders.core import cli
from worlds.plant import plant


def parser() -> argparse.ArgumentParser:
    """Return the command-line parser."""
    result = argparse.ArgumentParser(prog="python -m worlds", description=__doc__)
    result.set_defaults(command="plant")
    result.add_argument("world", help="name in worlds/params.yaml")
    cli.options(result)
    return result


def main(arguments: list[str] | None = None) -> int:
    """Run the command and return its exit status (``docs/failures.md``)."""
    options = parser().parse_args(arguments)
    return cli.run(options, lambda: print(plant(options.world)))


if __name__ == "__main__":
    sys.exit(main())
