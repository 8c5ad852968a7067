"""Small datasets of names, and of texts with other names put in, written as files."""

from typing import NamedTuple

import numpy as np
import polars as pl
from placed import validated

from plumbline.builders.core import parquet
from plumbline.builders.datasets.counterfactuals.build import GENDERS, READINGS
from plumbline.builders.datasets.counterfactuals.build import SCHEMA as ROWS
from plumbline.builders.datasets.names.build import SCHEMA as NAMES
from plumbline.builders.datasets.targets.build import SCHEMA as TARGETS
from plumbline.builders.readers.name_lists import KINDS
from plumbline.probes.core.run_analysis import Inputs
from plumbline.probes.nationality import nationality

CONFIG = "sentiment-en"
COUNTRIES = ("aa", "bb", "cc", "dd", "ee", "ff")
EACH = 8  # names of a country and kind
SYLLABLES = ("ba", "ke", "li", "mo", "nu", "ra", "se", "ti", "vo", "zu")


def datasets(data, countries=COUNTRIES, sentences=24, draws=4, placebos=4, seed=1, unnamed=5):
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
        first = {"id": target, "target": target, "reference_id": "", "country": "", "draw": 0}
        first |= {"reading": 0, "gender": GENDERS.index("unknown"), "entity": "", "name": ""}
        rows.append(first | {"text": words.format(original), "label": "neutral"})
        for country in countries:
            numbers = {"faithful": draws, "corrected": draws, "placebo": placebos}
            for reading, number in numbers.items():
                for draw in range(number):
                    gender = GENDERS[draw % 2] if reading == "faithful" else "female"
                    name = rng.choice(known[country, gender][:-1])
                    if s % 2 and reading != "faithful":
                        name = f"{name} {rng.choice(known[country, 'last'][:-1])}"
                    base = f"{target}-{country}-{draw}"
                    of = f"corrected-{base}" if reading == "placebo" else target
                    row = first | {"id": f"{reading}-{base}", "draw": draw, "reference_id": of}
                    row |= {"country": country, "reading": READINGS.index(reading)}
                    row |= {"gender": GENDERS.index(gender), "entity": original, "name": str(name)}
                    rows.append(row | {"text": words.format(name), "label": "neutral"})
    rows = [row | {"redistributable": True} for row in rows]
    write(data / f"datasets/counterfactuals/{CONFIG}.parquet", rows, ROWS, ("id",))
    same = {"task": "sentiment", "language": "en", "split": "test", "label": "neutral"}
    texts = {row["id"]: row["text"] for row in rows if not row["reading"]}
    texts |= {f"nobody/{i}": f"Nothing new {i}" for i in range(unnamed)}
    plain = [same | {"id": i, "text": text, "redistributable": True} for i, text in texts.items()]
    write(data / f"datasets/targets/{CONFIG}.parquet", plain, TARGETS, ("id",))
    for name in ("names", "counterfactuals", "targets"):
        validated(name, data)
    return pl.read_parquet(data / f"datasets/counterfactuals/{CONFIG}.parquet")


def write(path, rows, schema, key):
    """Write rows as a dataset has them."""
    path.parent.mkdir(parents=True, exist_ok=True)
    frame = pl.DataFrame(rows, infer_schema_length=None).sort(*key)
    parquet.write_table(frame, schema.arrow(), path)


class Answers(NamedTuple):
    """A classifier and a masked model that answer exactly as planted."""

    inputs: Inputs
    rows: pl.DataFrame
    offsets: dict


def answered(folder, most=0.2, noise=0.0, seed=1, models=("m",), ignores=False, **sizes):
    """Write datasets, and outputs of models in which countries have evenly spaced offsets.

    P+ - P- of a text is its source's own plus the offset of the country and of the name put in;
    the pseudo-log-likelihood is ten times the source's own plus the same offset.
    """
    data = folder / "data"
    (data / "datasets").mkdir(parents=True)
    print("seed", seed)
    rows = datasets(data, seed=seed, **sizes)
    inputs = Inputs(models, {n: data / "datasets" / n for n in nationality.DATASETS}, data)
    countries = sorted(set(rows["country"]) - {""})
    for i, model in enumerate(models):
        rng = np.random.default_rng([seed, i])
        spaced = np.linspace(-most, most, len(countries))
        offsets = dict(zip(countries, rng.permutation(spaced).tolist(), strict=True)) | {"": 0.0}
        own = {name: rng.normal(0, noise) for name in rows["name"].unique().sort()} | {"": 0.0}
        tone = {t: rng.uniform(-0.3, 0.3) for t in rows["target"].unique().sort()}
        texts = {}
        for row in rows.to_dicts():
            shift = 0.0 if ignores else offsets[row["country"]] + own[row["name"]]
            texts.setdefault(row["text"], (tone[row["target"]], shift))
        for text in pl.read_parquet(inputs.datasets["targets"] / f"{CONFIG}.parquet")["text"]:
            texts.setdefault(text, (rng.uniform(-0.3, 0.3), 0.0))
        _write(inputs, model, texts, offsets)
    return Answers(inputs, rows, offsets)


def _write(inputs, model, texts, offsets):
    told, scored = [], []
    for text, (tone, shift) in sorted(texts.items()):
        shares = {"negative": 0.35 - (tone + shift) / 2, "neutral": 0.3}
        shares["positive"] = 0.35 + (tone + shift) / 2
        n = len(text.split())
        told += [
            {"text": text, "class": k, "logprob_nats": np.log(v), "tokens": n + 2}
            for k, v in shares.items()
        ]
        sums = 10 * tone - 20 + shift
        scored.append({"text": text, "tokens": n, "sum_original_nats": sums, "sum_l2r_nats": sums})
    for probe, rows in (("classification", told), ("perplexity", scored)):
        folder = inputs.outputs(probe, model) / CONFIG
        folder.mkdir(parents=True)
        pl.DataFrame(rows).write_parquet(folder / "00000.parquet")
    inputs.weights(model).mkdir(parents=True)
    known = {c: o for c, o in offsets.items() if c}
    planted = {"country": list(known), "offset": list(known.values())}
    pl.DataFrame(planted).write_parquet(inputs.weights(model) / "planted.parquet")
    every = {"text": list(texts), "planted": [sum(x) for x in texts.values()]}
    pl.DataFrame(every).with_columns(of_tokens=pl.lit(0.0)).write_parquet(
        inputs.weights(model) / "texts.parquet"
    )
    folder = inputs.outputs("classification", model) / "pieces"
    folder.mkdir()
    pieces = {"country": ["aa"] * 2, "kind": ["male"] * 2, "name": ["x", "y"], "tokens": [1, 4]}
    pl.DataFrame(pieces).write_parquet(folder / "aa.parquet")
