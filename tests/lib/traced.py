"""Commands in a project under git and DVC, for tests."""

import os
import subprocess
import sys
from pathlib import Path


def run(*command: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    who = {f"GIT_{w}_{k}": "tests" for w in ("AUTHOR", "COMMITTER") for k in ("NAME", "EMAIL")}
    top = Path(__file__).parent.parent.parent
    environment = os.environ | who | {"DVC_NO_ANALYTICS": "1", "PYTHONPATH": str(top)}
    environment.pop("PLUMBLINE_TRACEBACK", None)
    return subprocess.run(command, env=environment, check=check, capture_output=True, text=True)


def dvc(*arguments: str) -> None:
    run(sys.executable, "-m", "dvc", *arguments)


def commit(message: str) -> None:
    run("git", "add", "--all")
    run("git", "commit", "--quiet", "--message", message)
