"""Build and check a release: python requirements/release.py [--upload].

Writes the source distribution, the wheel built from it, and the release notes to ``dist``. The
wheel is installed into an empty environment and answers README's first command there. Only
``--upload`` sends anything to PyPI.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

TOP = Path(__file__).parent.parent
ANSWER = ("run", "politicians", "--model", "world-planted", "--language", "en")


def notes(top: Path) -> str:
    """Return the changelog's section of the version in pyproject.toml.

    Raises
    ------
    SystemExit
        If CHANGELOG.md has no dated section of that version, or CITATION.cff another version.
    """
    version = tomllib.loads((top / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    heading = rf"^## \[{re.escape(version)}\] - \d{{4}}-\d{{2}}-\d{{2}}\n(.*?)(?=^## |\Z)"
    section = re.search(
        heading, (top / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE | re.DOTALL
    )
    if not section:
        raise SystemExit(f"error: CHANGELOG.md: no dated section '## [{version}]'; add it")
    if f"\nversion: {version}\n" not in (top / "CITATION.cff").read_text("utf-8"):
        raise SystemExit(f"error: CITATION.cff: its version is not {version}; change it")
    return section[1].strip() + "\n"


def build(dist: Path) -> Path:
    """Build the source distribution and, from it, the wheel; return the wheel."""
    sdist = "import sys; from setuptools import build_meta; build_meta.build_sdist(sys.argv[1])"
    run(sys.executable, "-c", sdist, str(dist))
    (source,) = dist.glob("*.tar.gz")
    pip = (sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation")
    run(*pip, str(source), "--wheel-dir", str(dist))
    (wheel,) = dist.glob("*.whl")
    return wheel


def check(wheel: Path) -> None:
    """Install the wheel with what it requires into an empty environment, and run a command."""
    with tempfile.TemporaryDirectory() as folder:
        run(sys.executable, "-m", "venv", folder)
        run(f"{folder}/bin/python", "-m", "pip", "install", "--quiet", str(wheel), cwd=folder)
        run(f"{folder}/bin/plumbline", *ANSWER, cwd=folder)


def run(*command: str, cwd: str | Path = TOP) -> None:
    """Run a command; end if it fails."""
    if subprocess.run(command, check=False, cwd=cwd).returncode:  # noqa: S603
        raise SystemExit(f"error: {' '.join(command)} failed; nothing was uploaded")


def main() -> None:
    """Build, check, write the notes, and upload if told."""
    text, dist = notes(TOP), TOP / "dist"
    dist.mkdir(exist_ok=True)
    for old in dist.iterdir():
        old.unlink()
    check(build(dist))
    files = sorted(str(path) for path in dist.iterdir())
    (dist / "NOTES.md").write_text(text, encoding="utf-8")
    if "--upload" in sys.argv:
        run(sys.executable, "-m", "pip", "install", "--quiet", "twine")
        run(sys.executable, "-m", "twine", "upload", *files)
    print(*files, dist / "NOTES.md", sep="\n")


if __name__ == "__main__":
    main()
