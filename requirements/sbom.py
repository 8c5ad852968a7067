"""Write a software bill of materials of the locks beside this file: CycloneDX 1.6, as JSON.

The same locks give the same bytes; it needs neither a network nor an installed package.
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
import uuid
from pathlib import Path

HERE = Path(__file__).parent
ENTRY = re.compile(
    r"^(?P<name>[\w.-]+)==(?P<version>[^\s;]+)(?P<rest>.*(?:\n[ ].*)*)", re.MULTILINE
)


def components() -> list[dict[str, object]]:
    """Return every package of every lock, with its hashes and the locks that it is in."""
    found: dict[str, dict[str, set[str]]] = {}
    for path in sorted(HERE.glob("*.txt")):
        for entry in ENTRY.finditer(path.read_text("utf-8")):
            name = re.sub(r"[-_.]+", "-", entry["name"]).lower()
            own = found.setdefault(
                f"pkg:pypi/{name}@{entry['version']}", {"locks": set(), "hashes": set()}
            )
            own["locks"].add(path.stem)
            own["hashes"] |= set(re.findall(r"--hash=sha256:([0-9a-f]{64})", entry["rest"]))
    return [
        {
            "type": "library",
            "bom-ref": purl,
            "name": purl.removeprefix("pkg:pypi/").partition("@")[0],
            "version": purl.partition("@")[2],
            "scope": "required" if "main" in own["locks"] else "optional",
            "purl": purl,
            # a file of each platform has one of these: no package has a hash of its own
            "properties": [
                *({"name": "plumbline:lock", "value": lock} for lock in sorted(own["locks"])),
                *({"name": "plumbline:sha256", "value": one} for one in sorted(own["hashes"])),
            ],
        }
        for purl, own in sorted(found.items())
    ]


def main() -> None:
    """Write the file that is named, or print it."""
    project = tomllib.loads((HERE.parent / "pyproject.toml").read_text("utf-8"))["project"]
    listed = components()
    top = f"pkg:pypi/{project['name']}@{project['version']}"
    own = {"type": "application", "bom-ref": top, "name": project["name"]}
    own |= {"version": project["version"], "purl": top}
    own["licenses"] = [{"license": {"id": project["license"]}}]
    bill = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(listed))}",
        "version": 1,
        "metadata": {"component": own},
        "components": listed,
        "dependencies": [{"ref": top, "dependsOn": [one["bom-ref"] for one in listed]}],
    }
    text = json.dumps(bill, indent=1) + "\n"
    for path in map(Path, sys.argv[1:]):
        path.write_text(text, "utf-8")
    if not sys.argv[1:]:
        sys.stdout.write(text)


if __name__ == "__main__":
    main()
