"""Commands that build datasets, fetch snapshots, compare versions, publish and trace results."""

from __future__ import annotations

import argparse
import importlib
import sys
from argparse import Namespace
from collections import Counter
from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path
from types import ModuleType

from plumbline.builders import DATASETS, SOURCES, client_of
from plumbline.builders.core import cli


def _builder(dataset: str) -> ModuleType:
    return importlib.import_module(f"plumbline.builders.datasets.{dataset}.build")


def build(options: Namespace) -> None:
    """Build one dataset from the snapshot that params.yaml names."""
    from plumbline.builders.core.build import build as build_dataset
    from plumbline.builders.core.errors import warn

    name = options.command
    counts = build_dataset(name, _builder(name))
    rejected: Counter[str] = Counter()
    for (config, reason), number in sorted(counts.rejects.items()):
        rejected[config] += number
        if ": " in reason:  # a reason with a colon states an unknown value
            warn(f"{name}/{config}: {number:,} rejected, {reason}")
    for config in sorted({*counts.rows, *rejected}):
        print(f"{name}/{config}: {counts.rows[config]:,} rows, {rejected[config]:,} rejected")


def fetch(options: Namespace) -> None:
    """Fetch a snapshot of one source, and add it to DVC with its provenance."""
    from plumbline.builders.core.errors import UserError
    from plumbline.builders.core.params import check
    from plumbline.builders.core.snapshot import lock_folder
    from plumbline.builders.dvc.track import track
    from plumbline.builders.fetch.http import Politeness, Reading

    source = options.source
    client = importlib.import_module(client_of(source))
    sections = check({f"sources.{source}": client.Params, "sources.politeness": Politeness})
    politeness = sections.pop("sources.politeness")
    if options.mirror:
        if not options.mirror.is_dir():
            raise UserError(f"--mirror {options.mirror}: no such folder")
        politeness = Reading(mirror=options.mirror)
    into = Path("data/raw") / source / options.date.isoformat()
    with lock_folder(into):
        client.fetch(*sections.values(), politeness, into)
        track(into)
    print(f"{into}: complete. To use it, put this line under the dataset in params.yaml:")
    print(f"    snapshot: {into}")


def prune(options: Namespace) -> None:
    """List or remove the results under data/ that no stage produces any more."""
    from plumbline.builders.dvc.track import remove, stale

    for path in stale():
        print(("removed " if options.remove else "stale: ") + str(path))
        if options.remove:
            remove(path)


def removed(_: Namespace) -> None:
    """List the stages that `make repro` must rerun because their datasets contain removed rows.

    A dataset that is built from one of them is not listed, because DVC then rebuilds it too.
    """
    from plumbline.builders.core import parquet, private

    gone = private.removed()
    listed = [name for name in DATASETS if private.held(parquet.DATASETS / name, gone)]
    for name in listed:
        if not {*getattr(_builder(name), "INPUTS", ())} & {*listed}:
            print(parquet.stage_of(name))
    private.note_matched(gone)


def publish(options: Namespace) -> None:
    """Publish a folder on the Hugging Face Hub, or print what would be published."""
    from plumbline.builders.release.publish import publish as publish_folder

    publish_folder(options.folder, options.repo, options.version, dry=options.dry_run)


def cards(options: Namespace) -> None:
    """Write the cards of the named datasets, or of all datasets that are built."""
    from plumbline.builders.release.card import write_all

    write_all(options.names)


def trace(options: Namespace) -> None:
    """Print the provenance of a file or a row."""
    from plumbline.builders.versions.trace import as_json, as_text
    from plumbline.builders.versions.trace import trace as traced

    chain = traced(options.named)
    print(as_json(chain) if options.json else "\n".join(as_text(chain)))


def diff(options: Namespace) -> int:
    """Print the differences between two versions; with --exit-code, return 1 if they differ."""
    from plumbline.builders.versions.diff import LIMIT, as_json, as_text
    from plumbline.builders.versions.diff import diff as differences

    tree = differences(options.name, options.rev1, options.rev2, tuple(options.config))
    if options.json:
        print(as_json(tree))
    else:
        print("\n".join(as_text(tree, None if options.all else LIMIT)))
    return int(options.exit_code and tree["differs"])


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m plumbline.builders", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def command(
        run: Callable[[Namespace], int | None], about: str, name: str = ""
    ) -> argparse.ArgumentParser:
        made = commands.add_parser(name or run.__name__, help=about)
        made.set_defaults(run=run)
        return made

    for name in DATASETS:
        command(build, f"build the dataset {name} (a stage of dvc.yaml)", name)
    fetching = command(fetch, "fetch a dated snapshot of a source")
    fetching.add_argument("source", choices=SOURCES)
    fetching.add_argument(
        "--date",
        type=date.fromisoformat,
        default=datetime.now(UTC).date(),
        help="date that names the snapshot; give the same date to continue it (default: today)",
    )
    fetching.add_argument(
        "--mirror",
        type=Path,
        metavar="DIR",
        help="read the files DIR/HOST/PATH, as written by `wget -x`, instead of the network",
    )
    pruning = command(prune, "list results that no stage makes any more")
    pruning.add_argument("--remove", action="store_true", help="remove these results")
    command(removed, "list stages whose datasets have rows on the removal list")
    publishing = command(publish, "publish a folder on the Hugging Face Hub")
    publishing.add_argument("folder", help="name of a dataset, or a folder under data/")
    publishing.add_argument("--repo", required=True, help="target repository, as OWNER/NAME")
    publishing.add_argument(
        "--version", required=True, help="three numbers, such as 1.2.0, for the tag"
    )
    publishing.add_argument("--dry-run", action="store_true", help="only print the plan")
    carding = command(cards, "write the cards of datasets that are built")
    carding.add_argument("names", nargs="*", metavar="DATASET", help="default: all that are built")
    tracing = command(trace, "print the provenance of a file, or of one of its rows")
    tracing.add_argument(
        "named",
        metavar="FILE[#ROW]",
        help="a file or folder under data/, and optionally one row: its number (from 0) or values: "
        "'data/tables/pmi/world-planted/pmi.parquet#unit=lemma,word=kind,gender=female,reading=smoothed'",
    )
    tracing.add_argument("--json", action="store_true", help="print the complete trace as JSON")
    comparing = command(diff, "compare two versions of a dataset or of results")
    comparing.epilog = (
        "The exit status is 0 even if the versions differ, unless --exit-code is given. It is 1 if "
        "a version cannot be read."
    )
    comparing.add_argument("name", help="a dataset, outputs/PROBE/MODEL or tables/ANALYSIS[/MODEL]")
    about = "version: `workspace`, a commit, tag or branch, OWNER/NAME@TAG on the Hub, or a folder"
    comparing.add_argument("rev1", metavar="REV1", help=f"the earlier {about}")
    comparing.add_argument("rev2", metavar="REV2", help=f"the later {about}")
    comparing.add_argument("--json", action="store_true", help="print all differences as JSON")
    comparing.add_argument("--all", action="store_true", help="print complete lists")
    comparing.add_argument(
        "--config", action="append", default=[], help="compare this config; may be repeated"
    )
    comparing.add_argument(
        "--exit-code", action="store_true", help="exit with status 1 if the versions differ"
    )
    cli.options(parser, commands)
    return parser


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit status (see ``docs/failures.md``)."""
    options = _parser().parse_args(arguments)
    return cli.run(options, lambda: options.run(options))


if __name__ == "__main__":
    sys.exit(main())
