"""Look up known vulnerabilities of all locks with pip-audit, whose path is given.

A network that is not there, or in which an index of its own stands for PyPI, is no finding: then
nothing was looked up, and that is said in one sentence.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

OPTIONS = ("--strict", "--disable-pip", "--require-hashes", "--progress-spinner", "off")
UNREAD = re.compile(
    r"ConnectionError|ProxyError|SSLError|Timeout|Max retries|NameResolution"
    r"|Dependency not found on PyPI and could not be audited: (?P<package>\S+)"
)


def main() -> int:
    """Return 0 if all were looked up and nothing is known against any, else 1."""
    locks = sorted(Path(__file__).parent.glob("*.txt"))
    files = [word for lock in locks for word in ("-r", str(lock))]
    command = [sys.argv[1], *OPTIONS, *files]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode and (unread := UNREAD.search(done.stderr)):
        package = unread["package"]
        why = f"it does not know {package}" if package else "it does not answer"
        print(
            f"error: nothing is known yet: pip-audit asks https://pypi.org, and {why}; run make "
            "audit where that can be reached (sbom.json is written all the same)",
            file=sys.stderr,
        )
        return 1
    print(done.stdout, end="")
    print(done.stderr, end="", file=sys.stderr)
    return int(done.returncode != 0)


if __name__ == "__main__":
    sys.exit(main())
