"""A small country of its own: validated datasets of a few dozen people and words."""

import json
from collections import Counter
from datetime import date

from plumbline.builders.core import parquet
from plumbline.builders.datasets.lexica import build as lexica
from plumbline.builders.datasets.supersenses import build as supersenses
from plumbline.builders.datasets.words import build as words

SENTIMENT = {"brave": 0, "calm": 0, "dull": 1, "grim": 1, "fair": 2, "helps": 0, "fails": 1}
SUPERSENSE = {"brave": "adj.mind", "calm": "adj.feeling", "dull": "adj.mind"}
SUPERSENSE |= {"gives": "verb.social"}
FIRST = ["Ada", "Bo", "Cleo", "Dag", "Eva", "Finn", "Gro", "Hal"]
LAST = ["Berg", "Falk", "Lind"]
ADJECTIVES = [
    *("brave", "calm", "dull", "eager", "fair", "grim"),
    *("honest", "idle", "just", "keen", "loyal", "mild"),
]
VERBS = [
    *("acts", "bends", "cares", "dares", "errs", "fails"),
    *("gives", "helps", "irks", "jokes", "keeps", "leads"),
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


def sentiments():
    """Return rows of ``lexica`` for some of the words; all else in them is of no account here."""
    for word, place in sorted(SENTIMENT.items()):
        own = {"word": word, "q_positive": 0.1, "q_negative": 0.1, "q_neutral": 0.1}
        yield filled(lexica.SCHEMA) | own | {("q_positive", "q_negative", "q_neutral")[place]: 0.8}


def classes():
    """Return rows of ``supersenses`` for some of the words."""
    for lemma, name in sorted(SUPERSENSE.items()):
        own = {"lemma": lemma, "pos": 0 if name.startswith("adj.") else 1, "weight": 1.0}
        own |= {"supersense": supersenses.CLASSES.index(name), "best": True}
        yield filled(supersenses.SCHEMA) | own


def filled(schema):
    """Return a row with something of its type in every column."""
    plain = {"string": "", "bool": False, "float64": 0.0, "label": 0}
    empty = {"strings": [], "integers": [], "floats": []}
    return {c.name: (plain | empty).get(c.kind, 1) for c in schema.columns}


def put(name, module, rows):
    """Write a dataset of one config that counts as validated."""
    folder = parquet.DATASETS / name
    counts = parquet.write((parquet.Row("en", row) for row in rows), module.SCHEMA, folder)
    assert counts.rows == Counter(en=len(rows))
    parquet.finish(folder)
    vouch(name)


def vouch(name):
    """Write a report that vouches for the bytes of a dataset."""
    report = {"success": True, "fingerprint": parquet.fingerprint(parquet.DATASETS / name)}
    parquet.VALIDATION.mkdir(parents=True, exist_ok=True)
    (parquet.VALIDATION / f"{name}.json").write_text(json.dumps(report), encoding="utf-8")
