"""Commands: build, fetch, compare versions, judge finders, clear, publish, trace."""

from __future__ import annotations

import argparse
import importlib
import re
import sys
from collections import Counter
from datetime import UTC, date, datetime
from pathlib import Path

from plumbline.builders import DATASETS, SOURCES, client_of
from plumbline.builders.core import cli

NAMES = DATASETS


def build(name: str) -> None:
    """Build one dataset from the snapshot that params.yaml names."""
    from plumbline.builders.core.build import build as build_dataset
    from plumbline.builders.core.progress import warn

    counts = build_dataset(
        name, importlib.import_module(f"plumbline.builders.datasets.{name}.build")
    )
    rejected: Counter[str] = Counter()
    for (config, reason), number in sorted(counts.rejects.items()):
        rejected[config] += number
        if ": " in reason:  # a value that the builder does not know is told by name
            warn(f"{name}/{config}: {number:,} rejected, {reason}")
    for config in sorted({*counts.rows, *rejected}):
        print(f"{name}/{config}: {counts.rows[config]:,} rows, {rejected[config]:,} rejected")


def fetch(source: str, day: str) -> None:
    """Fetch a snapshot of one source and put it under DVC, with its provenance."""
    from plumbline.builders.core.errors import Problem
    from plumbline.builders.core.params import check
    from plumbline.builders.dvc.track import track
    from plumbline.builders.fetch.http import Politeness

    if not re.fullmatch(r"\d{4}-\d\d-\d\d", day) or not _is_date(day):
        raise Problem(f"--date {day}: not a date; write it as YYYY-MM-DD")
    client = importlib.import_module(client_of(source))
    found = check({"sources.politeness": Politeness, f"sources.{source}": client.Params})
    into = Path("data/raw") / source / day
    client.fetch(found[f"sources.{source}"], found["sources.politeness"], into)
    track(into)
    print(f"{into}: whole. To use it, put this line under the dataset in params.yaml:")
    print(f"    snapshot: {into}")


def people(file: Path, language: str) -> None:
    """Print precision and recall of what finds people, on texts with the people marked."""
    from plumbline.builders.core.params import section
    from plumbline.builders.core.parquet import require_validated
    from plumbline.builders.datasets.counterfactuals import build as counterfactuals
    from plumbline.builders.datasets.counterfactuals.evaluate import measured, read, table
    from plumbline.builders.datasets.counterfactuals.find_people import finder, small_words
    from plumbline.builders.readers import gazetteer

    params = section("derived.counterfactuals", counterfactuals.Params)
    known = gazetteer.load(require_validated("names"))
    texts = read(file)
    small = small_words((text.text for text in texts), params.people.capital_min_share)
    find = finder(params.people, known, language, small)
    print(table(measured(texts, find)))


def _is_date(day: str) -> bool:
    try:
        date.fromisoformat(day)
    except ValueError:
        return False
    return True


def prune(*, really: bool) -> None:
    """List, or remove, results under data/ that no stage makes any more."""
    from plumbline.builders.dvc.track import remove, stale

    for path in stale():
        print(("removed " if really else "stale: ") + str(path))
        if really:
            remove(path)


def publish(folder: str, repo: str, version: str, *, dry: bool) -> None:
    """Publish a folder on the Hugging Face Hub, or print what would be published."""
    from plumbline.builders.release.publish import publish as publish_folder

    publish_folder(folder, repo, version, dry=dry)


def cards(names: list[str]) -> None:
    """Write the cards of datasets, of all that are built where none are named."""
    from plumbline.builders.release.card import write_all

    write_all(names)


def trace(named: str, revision: str | None, *, whole: bool, svg: Path | None) -> None:
    """Print where a file or a row comes from, and draw it if a file for that is named."""
    import json

    from plumbline.builders.core.snapshot import write_bytes
    from plumbline.builders.versions import render
    from plumbline.builders.versions.trace import as_json
    from plumbline.builders.versions.trace import trace as traced

    found = traced(named, revision)
    if svg:
        write_bytes(svg, render.picture(found).encode())
    if whole:
        text = json.dumps(as_json(found), ensure_ascii=False, indent=1, default=str)
    else:
        text = render.text(found)
    print(text)


def diff(given: argparse.Namespace) -> int:
    """Print what differs between two versions of a folder; 1 if that is asked for and any does."""
    from plumbline.builders.versions.diff import LIMIT, as_json, as_text, folder_of
    from plumbline.builders.versions.diff import diff as differences

    _, kind, name, *_ = folder_of(given.name).parts
    known = kind == "datasets" and name in NAMES
    module = f"plumbline.builders.datasets.{name}.build"
    schema = importlib.import_module(module).SCHEMA if known else None
    only = tuple(given.config)
    found = differences(given.name, given.rev1, given.rev2, schema=schema, only=only)
    if given.json:
        sys.stdout.write(as_json(found))
    else:
        print("\n".join(as_text(found, None if given.all else LIMIT)))
    return int(given.exit_code and found.any)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m plumbline.builders", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name in NAMES:
        commands.add_parser(name, help=f"build the dataset {name} (a stage of dvc.yaml)")
    fetching = commands.add_parser("fetch", help="fetch a dated snapshot of a source")
    fetching.add_argument("source", choices=SOURCES)
    fetching.add_argument(
        "--date",
        default=datetime.now(UTC).date().isoformat(),
        help="name of the snapshot; give the same date again to continue (default: today)",
    )
    finding = commands.add_parser("people", help="precision and recall of finding people")
    finding.add_argument("file", type=Path, help="a text a line, people as [[First Last]]")
    finding.add_argument("--language", default="en", help="of the texts (default: en)")
    pruning = commands.add_parser("prune", help="list results that no stage makes any more")
    pruning.add_argument("--remove", action="store_true", help="remove them")
    publishing = commands.add_parser("publish", help="publish a folder on the Hugging Face Hub")
    publishing.add_argument("folder", help="name of a dataset, or a folder under data/")
    publishing.add_argument("--repo", required=True, help="where to, as OWNER/NAME")
    publishing.add_argument("--version", required=True, help="three numbers, as 1.2.0: the tag")
    publishing.add_argument("--dry-run", action="store_true", help="print the plan, send nothing")
    carding = commands.add_parser("cards", help="write the cards of datasets that are built")
    carding.add_argument("names", nargs="*", metavar="DATASET", help="default: all that are built")
    tracing = commands.add_parser("trace", help="where a file, or one row of it, comes from")
    tracing.add_argument(
        "named",
        metavar="FILE[#ROW]",
        help="a file or folder under data/; a row by its number, from 0, or by its values: "
        "'data/tables/pmi/world-planted/pmi.parquet#word=kind,gender=female,reading=smoothed'",
    )
    tracing.add_argument("--rev", metavar="REV", help="of the locks of this commit or tag")
    tracing.add_argument("--json", action="store_true", help="print all that is known, as JSON")
    tracing.add_argument("--svg", type=Path, metavar="FILE", help="draw it into this file")
    _comparing(commands.add_parser("diff", help="compare two versions of a dataset or of results"))
    cli.options(parser, commands)
    return parser


def _comparing(parser: argparse.ArgumentParser) -> None:
    parser.epilog = (
        "Status 0 whether anything differs or not, unless --exit-code is given; 1 where a version "
        "cannot be read."
    )
    parser.add_argument("name", help="a dataset, outputs/PROBE/MODEL or tables/ANALYSIS[/MODEL]")
    for rev, when in (("rev1", "earlier"), ("rev2", "later")):
        parser.add_argument(
            rev,
            metavar=rev.upper(),
            help=f"the {when} version: `workspace`, a commit, tag or branch, OWNER/NAME@TAG on the "
            "Hub, or a folder",
        )
    parser.add_argument("--json", action="store_true", help="print all that differs as JSON")
    parser.add_argument("--all", action="store_true", help="print lists to their ends")
    parser.add_argument(
        "--config", action="append", default=[], help="compare this config; again for more"
    )
    parser.add_argument(
        "--exit-code", action="store_true", help="end with status 1 if anything differs"
    )


def _run(given: argparse.Namespace) -> int:
    """Run the command that was given."""
    if given.command == "fetch":
        fetch(given.source, given.date)
    elif given.command == "people":
        people(given.file, given.language)
    elif given.command == "prune":
        prune(really=given.remove)
    elif given.command == "publish":
        publish(given.folder, given.repo, given.version, dry=given.dry_run)
    elif given.command == "cards":
        cards(given.names)
    elif given.command == "trace":
        trace(given.named, given.rev, whole=given.json, svg=given.svg)
    elif given.command == "diff":
        return diff(given)
    else:
        build(given.command)
    return 0


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit status (:data:`plumbline.builders.core.cli.STATUSES`)."""
    given = _parser().parse_args(arguments)
    return cli.run(given, "builders", lambda: _run(given))


if __name__ == "__main__":
    sys.exit(main())
