"""The audit of the locks: what is known, and that nothing was looked up where nobody answers."""

import subprocess
import sys

import pytest
from imports import TOP

FOUND = "Found 1 known vulnerability in 1 package"


@pytest.mark.parametrize(
    ("status", "said", "told"),
    [
        (0, "No known vulnerabilities found", ""),
        (1, FOUND, FOUND),
        (1, "Traceback ...\nrequests.exceptions.ProxyError: x", "does not answer"),
        (
            1,
            "ERROR: Dependency not found on PyPI and could not be audited: six (1.16.0)",
            "it does not know six",
        ),
        (1, "ERROR: a lock is torn", "a lock is torn"),
    ],
)
def test_the_audit_fails_by_what_is_found_or_says_that_nothing_was_looked_up(
    tmp_path, status, said, told
):
    program = tmp_path / "pip-audit"  # stands for the real one, which needs a network
    program.write_text(
        f"#!{sys.executable}\nimport sys\n"
        f"assert sum(word.endswith('.txt') for word in sys.argv) > 3\n"
        f"sys.stderr.write({said!r})\nsys.exit({status})\n"
    )
    program.chmod(0o755)
    done = subprocess.run(
        [sys.executable, TOP / "requirements/audit.py", program],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == status
    assert told in done.stderr
    assert "Traceback" not in done.stderr
    assert ("nothing is known yet" in done.stderr) is ("does not" in told)
