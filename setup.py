"""Install the folders builders, probes and validation as subpackages of plumbline."""

import shutil
from pathlib import Path

from setuptools import find_namespace_packages, setup
from setuptools.command.build_py import build_py

FOLDERS = ("builders", "probes", "validation")
INSIDE = [p for f in FOLDERS for p in (f, *(f"{f}.{q}" for q in find_namespace_packages(f)))]


class BuildWithProject(build_py):
    """Copy the default params and the samples from the checkout into the wheel."""

    def run(self) -> None:
        """Build the package, then copy the files."""
        super().run()
        if not self.editable_mode:
            project = Path(self.build_lib, "plumbline/project")
            shutil.copytree("data/samples", project / "data/samples", dirs_exist_ok=True)
            shutil.copy("params.yaml", project)


setup(
    cmdclass={"build_py": BuildWithProject},
    packages=["plumbline", *(f"plumbline.{name}" for name in INSIDE)],
    package_dir={f"plumbline.{folder}": folder for folder in FOLDERS},
)
