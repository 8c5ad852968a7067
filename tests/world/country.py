"""A small country of its own: validated datasets of a few dozen people and words."""

import json
from collections import Counter
from datetime import date

from builders import words
from builders.lib import store

FIRST = ["Ada", "Bo", "Cleo", "Dag", "Eva", "Finn", "Gro", "Hal"]
LAST = ["Berg", "Falk", "Lind"]
ADJECTIVES = [
    "brave",
    "calm",
    "dull",
    "eager",
    "fair",
    "grim",
    "honest",
    "idle",
    "just",
    "keen",
    "loyal",
    "mild",
]
VERBS = [
    "acts",
    "bends",
    "cares",
    "dares",
    "errs",
    "fails",
    "gives",
    "helps",
    "irks",
    "jokes",
    "keeps",
    "leads",
]


def people(names):
    """Return rows of ``politicians``; genders take turns, every eighth is non-binary."""
    for i, name in enumerate(names):
        gender = 2 if i % 8 == 7 else i % 2
        yield {
            "qid": f"Q{i + 1}",
            "name": name,
            "name_language": "en",
            "name_fallback": False,
            "gender": gender,
            "gender_qids": ["Q6581097"],
            "birth_date": date(1950, 1, 1),
            "birth_precision": 0,
            "birth_year": 1950,
            "countries": ["GB"],
            "country_qids": ["Q145"],
            "native": True,
            "popularity": 1,
        }


def lexicon(**forms):
    """Return rows of ``words``: the first word of a part of speech is the most frequent."""
    found = [
        {
            "form": form,
            "lemma": form,
            "pos": words.POS.index(pos),
            "count": len(listed) - i,
            "treebanks": ["small.conllu"],
            "treebank_counts": [len(listed) - i],
            "place": words.PLACES.index("before" if pos == "ADJ" else "after"),
        }
        for pos, listed in forms.items()
        for i, form in enumerate(listed)
    ]
    return sorted(found, key=lambda row: (row["form"], row["lemma"], row["pos"]))


def put(name, module, rows):
    """Write a dataset of one config, and a report that vouches for its bytes."""
    folder = store.DATASETS / name
    counts = store.write((store.Row("en", row) for row in rows), module.SCHEMA, folder)
    assert counts.rows == Counter(en=len(rows))
    store.finish(folder)
    report = {"success": True, "fingerprint": store.fingerprint(folder)}
    store.VALIDATION.mkdir(parents=True, exist_ok=True)
    (store.VALIDATION / f"{name}.json").write_text(json.dumps(report), encoding="utf-8")
