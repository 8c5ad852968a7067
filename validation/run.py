"""Run the suites of a dataset in Great Expectations, and report the results."""

from __future__ import annotations

import importlib
import json
import logging
import os
from pathlib import Path
from typing import Any

import polars as pl

from plumbline.builders.core import parquet
from plumbline.builders.core.errors import UserError, during, each
from plumbline.builders.core.params import section
from plumbline.builders.core.snapshot import write_bytes
from plumbline.validation import accepted, suite, texts

os.environ["GX_ANALYTICS_ENABLED"] = "false"  # no telemetry; this must precede the import

import great_expectations as gx
import great_expectations.expectations as gxe

from plumbline.validation.suite import Table

EXAMPLES = 5
DOCS = Path("data/docs")
COUNTS = ("element_count", "unexpected_count", "unexpected_percent", "observed_value")
logging.getLogger("great_expectations").setLevel(logging.ERROR)


def validate_all(names: list[str]) -> None:
    """Validate datasets, in one process per core, and print a line for each.

    Raises a UserError that lists all failures, after all datasets have been validated.
    """
    processes = min(len(os.sched_getaffinity(0)), len(names))
    one_by_one = ((index, _problem(name)) for index, name in enumerate(names))
    many = each(_problem, [(name,) for name in names], processes, preload=[__name__])
    problems = dict(sorted(many if processes > 1 else one_by_one))
    if failed := "\n".join(filter(None, problems.values())):
        raise UserError(failed)


def _problem(name: str) -> str:
    with during(f"validating {name}"):
        try:
            report = validate(name)
        except UserError as problem:
            return str(problem)
    number = sum(len(table["expectations"]) for table in report["tables"].values())
    print(f"{name}: {number} expectations met, {report['warnings']} warning(s)", flush=True)
    return ""


def validate(name: str) -> dict[str, Any]:
    """Check ``data/datasets/NAME`` and write ``data/validation/NAME.json``.

    Returns the report, which depends only on the dataset's bytes and the params.

    Raises a UserError that lists all expectations that failed.
    """
    context, reports, failures, warnings = _context(), {}, [], 0
    read = parquet.fingerprint(parquet.DATASETS / name)  # computed before the checks
    for table in plan(name):
        batch, suite, parameters = _parts(context, table)
        result = batch.get_batch(parameters).validate(suite, result_format=_format(table))
        entries = [_tidy(outcome, table.key) for outcome in result.results]
        reports[table.name] = {"statistics": result.statistics, "expectations": entries}
        for entry in (entry for entry in entries if not entry["success"]):
            if entry["severity"] == "warning":
                warnings += 1
                print(f"warning: {_sentence(name, table, entry)}")
            else:
                failures.append(_sentence(name, table, entry))
    if failures:
        raise UserError(
            "\n  ".join([f"{name} failed {len(failures)} expectation(s):", *failures])
            + f"\n  Fix the source, or the limits under validation.{name} in validation/params.yaml"
        )
    facts = {"dataset": name, "success": True, "fingerprint": read}
    report = facts | {"warnings": warnings, "tables": reports}
    text = json.dumps(report, ensure_ascii=False, indent=1, sort_keys=True) + "\n"
    write_bytes(parquet.VALIDATION / f"{name}.json", text.encode())
    return report


def render(names: list[str]) -> Path:
    """Render the Data Docs of all suites under ``data/docs``; return the path of the index page."""
    context = _context()
    store = {"class_name": "TupleFilesystemStoreBackend", "base_directory": str(DOCS.resolve())}
    site = {"class_name": "SiteBuilder", "store_backend": store}
    site["site_index_builder"] = {"class_name": "DefaultSiteIndexBuilder"}
    context.add_data_docs_site(site_name="validation", site_config=site)
    for dataset, table in ((name, table) for name in names for table in plan(name)):
        batch, suite, parameters = _parts(context, table, prefix=f"{dataset}-")
        context.suites.add(suite)
        definition = gx.ValidationDefinition(name=suite.name, data=batch, suite=suite)
        definitions = [context.validation_definitions.add(definition)]
        checkpoint = gx.Checkpoint(
            name=suite.name, validation_definitions=definitions, result_format=_format(table)
        )
        context.checkpoints.add(checkpoint).run(batch_parameters=parameters)
    context.build_data_docs(site_names=["validation"])
    return DOCS / "index.html"


def plan(name: str) -> list[Table]:
    """Return all tables to be checked for a dataset, with their checks."""
    module = importlib.import_module(f"plumbline.validation.datasets.{name}")
    schema, folder = suite.schema_of(name), parquet.DATASETS / name
    params = section(f"validation.{name}", module.Params)
    return [
        *suite.tables(schema, params, folder),
        *texts.tables(schema, params, folder),
        *suite.own_tables(module, params, folder),
        *accepted.tables(schema, folder),
    ]


def _context() -> Any:
    context = gx.get_context(mode="ephemeral")
    quiet: Any = {"globally": False, "metric_calculations": False}
    context.variables.progress_bars = quiet
    return context


def _parts(context: Any, table: Table, prefix: str = "") -> tuple[Any, Any, dict[str, Any]]:
    """Return a table's batch definition, its suite, and the parameters of the batch."""
    frame = table.frame if isinstance(table.frame, pl.DataFrame) else pl.read_parquet(table.frame)
    name = prefix + table.name
    asset = context.data_sources.add_pandas(name).add_dataframe_asset(name)
    expectations = [
        getattr(gxe, check.expectation)(
            **check.arguments, severity="warning" if check.warning else "critical"
        )
        for check in table.checks
    ]  # added at once, since each addition stores the suite again
    suite = gx.ExpectationSuite(name=name, expectations=expectations)
    pandas = frame.to_pandas(use_pyarrow_extension_array=True)
    return asset.add_batch_definition_whole_dataframe(name), suite, {"dataframe": pandas}


def _format(table: Table) -> dict[str, Any]:
    return {
        "result_format": "SUMMARY",
        "partial_unexpected_count": EXAMPLES,
        "unexpected_index_column_names": table.key,
    }


def _tidy(outcome: Any, key: list[str]) -> dict[str, Any]:
    """Return the deterministic part of a result, and its severity."""
    config = outcome.expectation_config
    if (outcome.exception_info or {}).get("raised_exception"):
        raise UserError(f"{config.type}: could not run ({outcome.exception_info})")
    rows = outcome.result.get("partial_unexpected_index_list") or []
    named = [{k: _plain(v) for k, v in row.items() if k in key or len(row) <= 2} for row in rows]
    return {
        "expectation_type": config.type,
        "kwargs": {k: v for k, v in config.kwargs.items() if k != "batch_id"},
        "severity": str(config.severity.value),
        "success": outcome.success,
        "result": {k: _plain(v) for k, v in outcome.result.items() if k in COUNTS},
        "offending": named[:EXAMPLES],
    }


def _plain(value: Any) -> Any:
    return value if isinstance(value, (str, int, float, bool, list, type(None))) else str(value)


def _sentence(name: str, table: Table, entry: dict[str, Any]) -> str:
    arguments = ", ".join(f"{k}={v}" for k, v in entry["kwargs"].items() if k != "column_list")
    result = entry["result"]
    how = f"observed {result.get('observed_value')}"
    if "unexpected_count" in result:
        share = result.get("unexpected_percent") or 0.0
        rows = (", ".join(f"{k}={v}" for k, v in row.items()) for row in entry["offending"])
        how = f"{result['unexpected_count']} of {result['element_count']} rows ({share:.3g}%)"
        how += f", e.g. {'; '.join(rows)}" if entry["offending"] else ""
    return f"{name}/{table.name}: {entry['expectation_type']}({arguments}) fails: {how}"
