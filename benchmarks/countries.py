"""Measure memory and time of the analysis `nationality`, at the size of the full study.

    python benchmarks/countries.py [TEXTS [COUNTRIES [NAMES [TABLES]]]]

The script generates counterfactuals of 1,630 texts with 50 names from each of 55 countries (the
full study has 17), in all three method variants (`faithful` for 43% of the texts and for both
genders), with the responses of a classifier with three classes and of a masked model. It then makes
all tables, in its own process. A country has 250 first names of each gender and 250 last names;
half of the texts have full names. Names differ in their effects, countries do not. It prints rows,
seconds and peak resident memory including libraries.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TOP = Path(__file__).parent.parent
sys.path.insert(0, str(TOP))

import numpy as np  # noqa: E402
import polars as pl  # noqa: E402

from plumbline.builders.datasets.counterfactuals.build import READINGS  # noqa: E402

DEFAULT = (1630, 55, 50)
LISTED = 250  # number of names of each country and kind
REPLACED = 0.43  # share of the texts whose names are in the lists of the released code
CONFIG, MODEL = "sentiment-en", "m"
CLASSES = ("negative", "neutral", "positive")
AT_ONCE = 20  # texts
GOAL = 2000  # MB


def main() -> None:
    if sys.argv[1:2] == ["--made"]:
        make(Path(sys.argv[2]), *map(int, sys.argv[3:]))
    elif sys.argv[1:2] == ["--analysed"]:
        analyse(Path(sys.argv[2]))
    else:
        sizes = [int(word) for word in sys.argv[1:]]
        sizes += DEFAULT[len(sizes) :]
        with tempfile.TemporaryDirectory() as folder:
            for words in (["--made", folder, *map(str, sizes)], ["--analysed", folder]):
                subprocess.run([sys.executable, __file__, *words], check=True)


def analyse(folder: Path) -> None:
    """Make the tables, and print their time and memory."""
    from plumbline.probes.core.run_analysis import Inputs
    from plumbline.probes.nationality import nationality

    sets = {name: folder / "datasets" / name for name in nationality.DATASETS}
    params = nationality.Params(version="0.1.0", underlying={MODEL: MODEL})
    begun = time.perf_counter()
    tables = nationality.run(Inputs((MODEL,), sets, folder), params)
    took = time.perf_counter() - begun
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    delta = tables["delta"].filter(pl.col("gender") == 0)
    rows = delta.filter(measure=delta["measure"][0]).group_by("reading").agg(pl.col("rows").sum())
    p = delta.filter(pl.col("reading") < READINGS.index("placebo") - 1)["p"].drop_nulls()
    print(f"p at most .05, of countries that are alike: {(p <= 0.05).mean():.3f}")
    print("| rows of a reading | rows of all | seconds | peak MB | goal, MB |")
    print("|---:|---:|---:|---:|---:|")
    print(f"| {rows['rows'].max():,} | {rows['rows'].sum():,} | {took:.0f} | {peak:.0f} | {GOAL} |")


def make(folder: Path, texts: int, countries: int, names: int) -> None:
    """Write the datasets and outputs, in blocks of texts."""
    rng = np.random.default_rng(1)
    effect = rng.normal(0, 0.3, (countries, 2, LISTED))
    sets = {name: folder / "datasets" / name for name in ("counterfactuals", "names", "targets")}
    said, scores = (folder / "outputs" / name / MODEL for name in ("classification", "perplexity"))
    for place in (*sets.values(), said / CONFIG, said / "pieces", scores / CONFIG):
        place.mkdir(parents=True)
    parts = []
    for start in range(0, texts, AT_ONCE):
        some = np.arange(start, min(start + AT_ONCE, texts))
        rows = pl.concat(_rows(rng, some, effect, countries, names))
        parts.append(folder / f"{start:06d}.parquet")
        rows.drop("value").write_parquet(parts[-1])
        _said(
            rng,
            rows.unique("text", maintain_order=True),
            f"{start:06d}.parquet",
            said / CONFIG,
            scores / CONFIG,
        )
    whole = pl.scan_parquet(parts)
    whole.sink_parquet(sets["counterfactuals"] / f"{CONFIG}.parquet", row_group_size=100_000)
    original = whole.filter(reading=0).select("text")
    original.sink_parquet(sets["targets"] / f"{CONFIG}.parquet")
    for part in parts:
        part.unlink()
    for country in range(countries):
        kind, rank = (each.ravel() for each in np.indices((3, LISTED)))
        listed = pl.DataFrame({"kind": kind, "rank": rank + 1}).with_columns(
            name=pl.format("{}{}x{}", pl.col("kind").replace_strict(WORDS), country, "rank"),
            country=pl.lit(code(country)),
            tokens=pl.lit(2, dtype=pl.Int32),
        )
        listed.write_parquet(sets["names"] / f"{code(country)}.parquet")
        listed.drop("rank").write_parquet(said / "pieces" / f"{code(country)}.parquet")


WORDS = {0: "Man", 1: "Woman", 2: "Last"}


def code(country: int) -> str:
    """Return the code of the country with a given number."""
    return f"c{country:02d}"


def _rows(rng, texts, effect, countries, names):
    """Yield the rows of some texts by method variant, with P+ - P- without the text's own
    effect."""
    plain = _frame(texts, np.zeros_like(texts), 0, 0, texts * 0 + 2, 0 * texts, 0 * texts, 0.0)
    plain = plain.with_columns(
        country=pl.lit(""), name=pl.lit(""), id="target", reference_id=pl.lit("")
    )
    yield plain.with_columns(text=pl.format("{} said so at last, and nobody listened", "target"))
    used = {}
    for reading, genders in (("corrected", 1), ("faithful", 2), ("placebo", 1)):
        own = texts[texts % 100 < 100 * REPLACED] if reading == "faithful" else texts
        shape = len(own), countries, names * genders
        text, country, draw = (each.ravel() for each in np.indices(shape))
        gender = draw % 2 if genders == 2 else own[text] % 2
        place = (rng.integers(0, LISTED, shape[:2])[..., None] + np.arange(shape[2])).ravel()
        if reading == "placebo":  # a different name from that of `corrected`
            place = used["corrected"] + names
        first, last = used[reading] = place % LISTED, rng.integers(0, LISTED, len(place))
        used[reading] = place
        yield _frame(
            *(own[text], country, READINGS.index(reading), draw, gender, first, last),
            effect[country, gender, first],
        )


def _frame(text, country, reading, draw, gender, first, last, value):
    table = {"t": text, "c": country, "draw": draw, "gender": gender, "f": first + 1, "l": last + 1}
    each = {k: np.broadcast_to(v, text.shape).astype(np.int64) for k, v in table.items()}
    frame = pl.DataFrame(each).with_columns(
        target=pl.format("tweets/test/{}", "t"),
        reading=pl.lit(reading, dtype=pl.Int64),
        country=pl.format("c{}", pl.col("c").cast(pl.String).str.zfill(2)),
        first=pl.format("{}{}x{}", pl.col("gender").replace_strict({**WORDS, 2: ""}), "c", "f"),
        last=pl.format(" Last{}x{}", "c", "l"),
        value=pl.Series(np.broadcast_to(value, text.shape)),
    )
    where = pl.format("{}#{}-{}-{}", "target", pl.lit(READINGS[reading]), "country", "draw")
    of = pl.col("target")
    if READINGS[reading] == "placebo":
        of = pl.format("{}#corrected-{}-{}", "target", "country", "draw")
    frame = frame.with_columns(
        id=where,
        reference_id=of,
        name=pl.when(pl.col("t") % 4 < 2).then(pl.col("first") + pl.col("last")).otherwise("first"),
    )
    said = pl.format("{}: {} said so at last, and nobody listened", "target", "name")
    kept = ("id", "target", "reading", "reference_id", "country", "gender", "draw", "name")
    return frame.select(*kept, said.alias("text"), "value")


def _said(rng, rows, name, said, scores):
    """Write the responses of the models to some texts."""
    n = len(rows)
    neutral = rng.uniform(0.2, 0.5, n)
    apart = (0.05 * (rows["value"].to_numpy() + rng.normal(size=n))).clip(-0.4, 0.4)
    shares = ((1 - neutral - apart) / 2, neutral, (1 - neutral + apart) / 2)
    tokens = rng.integers(10, 40, n)
    told = [
        pl.DataFrame({"text": rows["text"], "class": [label] * n, "logprob_nats": np.log(share)})
        for label, share in zip(CLASSES, shares, strict=True)
    ]
    counted = pl.Series("tokens", tokens, dtype=pl.Int32)
    pl.concat(one.with_columns(counted) for one in told).write_parquet(said / name)
    nats = -rng.normal(3, 0.3, (2, n)) * tokens
    own = {"sum_original_nats": nats[0], "sum_l2r_nats": nats[1]}
    kept = rows.select("text", "reading").with_columns(
        counted, **{k: pl.Series(v) for k, v in own.items()}
    )
    kept.filter(pl.col("reading") != READINGS.index("placebo")).drop("reading").write_parquet(
        scores / name
    )


if __name__ == "__main__":
    main()
