"""Files in the layouts of published questionnaires, with statements about nothing."""

from __future__ import annotations

import json


def compass(**changes) -> str:
    """Return 62 propositions, of which the first moves one axis and the second the other."""
    entries = [
        {"id": n, "text": f"Tea {n} is dear.", "economic": [0, 0, 0, 0], "social": [0, 0, 0, 0]}
        for n in range(1, 63)
    ]
    entries[0]["economic"] = [77, 5, 0, -83]
    entries[1]["social"] = [-242, -1.5, 0, 148]
    entries[0] |= changes
    return json.dumps({"about": "tea", "propositions": entries})


def eight(number: int = 70, **changes) -> str:
    """Return questions with effects; the first moves two axes."""
    still = {"econ": 0, "dipl": 0, "govt": 0, "scty": 0}
    entries = [
        {"question": f"Tea {n} is dear.", "effect": still | {"dipl": 10, "scty": -10}}
        for n in range(1, number + 1)
    ]
    entries[0] = {"question": "I drink tea.", "effect": still | {"econ": 10, "govt": -5}} | changes
    return f"questions = {json.dumps(entries, indent=4)};\n"
