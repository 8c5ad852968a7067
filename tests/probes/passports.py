"""Small datasets of names, and of texts with other names put in, written as files."""

import json

import numpy as np
import polars as pl

from builders.counterfactuals import GENDERS, READINGS
from builders.counterfactuals import SCHEMA as ROWS
from builders.lib import store
from builders.names import KINDS
from builders.names import SCHEMA as NAMES

CONFIG = "sentiment-en"
COUNTRIES = ("aa", "bb", "cc", "dd", "ee", "ff")
EACH = 8  # names of a country and kind
SYLLABLES = ("ba", "ke", "li", "mo", "nu", "ra", "se", "ti", "vo", "zu")


def datasets(data, countries=COUNTRIES, sentences=24, draws=4, placebos=4, seed=1):
    """Write both datasets under ``data``, validated, and return the rows of the counterfactuals."""
    rng = np.random.default_rng(seed)
    known = {}
    for i, country in enumerate(countries):
        rows = []
        for kind in KINDS:
            own = [f"{country.title()}{kind[0]}{SYLLABLES[k]}{SYLLABLES[i]}" for k in range(EACH)]
            known[country, kind] = own
            rows += [
                {"name": name, "kind": KINDS.index(kind), "rank": k + 1, "count": None, "bearer": 0}
                | {"sources": ["made"], "flags": ["word"] if name == own[-1] else []}
                for k, name in enumerate(own)
            ]
        write(data / f"datasets/names/{country}.parquet", rows, NAMES, ("kind", "name"))
    rows = []
    for s in range(sentences):
        target, original = f"t{s:03d}", "Ada Smith" if s % 2 else "Ada"
        words = f"we saw {{}} at the {SYLLABLES[s % 10]}{SYLLABLES[s // 10]} again"
        first = {"id": target, "target": target, "of": "", "country": "", "draw": 0}
        first |= {"reading": 0, "gender": GENDERS.index("unknown"), "entity": "", "name": ""}
        rows.append(first | {"text": words.format(original), "label": "neutral"})
        for country in countries:
            for reading, number in (
                ("faithful", draws),
                ("corrected", draws),
                ("placebo", placebos),
            ):
                for draw in range(number):
                    gender = GENDERS[draw % 2] if reading == "faithful" else "female"
                    name = rng.choice(known[country, gender][:-1])
                    if s % 2 and reading != "faithful":
                        name = f"{name} {rng.choice(known[country, 'last'][:-1])}"
                    base = f"{target}-{country}-{draw}"
                    of = f"corrected-{base}" if reading == "placebo" else target
                    rows.append(
                        {"id": f"{reading}-{base}", "target": target, "of": of, "draw": draw}
                        | {"country": country, "reading": READINGS.index(reading)}
                        | {"gender": GENDERS.index(gender), "entity": original, "name": str(name)}
                        | {"text": words.format(name), "label": "neutral"}
                    )
    rows = [row | {"redistributable": True} for row in rows]
    write(data / f"datasets/counterfactuals/{CONFIG}.parquet", rows, ROWS, ("id",))
    for name in ("names", "counterfactuals"):
        told = {"success": True, "fingerprint": store.fingerprint(data / "datasets" / name)}
        (data / "validation").mkdir(exist_ok=True)
        (data / f"validation/{name}.json").write_text(json.dumps(told))
    return pl.read_parquet(data / f"datasets/counterfactuals/{CONFIG}.parquet")


def write(path, rows, schema, key):
    """Write rows as a dataset has them."""
    path.parent.mkdir(parents=True, exist_ok=True)
    frame = pl.DataFrame(rows, infer_schema_length=None).sort(*key)
    store.write_table(frame, schema.arrow(), path)
