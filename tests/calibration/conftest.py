"""Of the breakages that were tried, the share that was seen."""

TRIED = "test_a_broken_analysis_is_seen"


def pytest_terminal_summary(terminalreporter):
    seen, all_of = (
        sum(
            TRIED in report.nodeid
            for kind in kinds
            for report in terminalreporter.stats.get(kind, ())
        )
        for kinds in (("passed",), ("passed", "failed"))
    )
    if all_of:
        terminalreporter.write_line(f"breakages seen: {seen} of {all_of}")
