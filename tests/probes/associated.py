"""Outputs of ``associations``, people and lexica, written by hand."""

import polars as pl

from plumbline.builders.datasets.lexica.build import SENTIMENTS
from plumbline.probes.core.run_analysis import Inputs
from plumbline.probes.politicians import associations

GENDERS = {"m": 0, "w": 1, "x": 2}


def write_people(path, genders, names=None, **columns):
    """Write people Q0, Q1, ... with genders by letter, and names, ``Name 0`` and so on if none."""
    names = names or [f"Name {i}" for i in range(len(genders))]
    frame = pl.DataFrame({"qid": [f"Q{i}" for i in range(len(names))], "name": names})
    codes = pl.Series([GENDERS[g] for g in genders], dtype=pl.Int64)
    frame.with_columns(gender=codes, **columns).write_parquet(path)


def write_lexicon(path, shares):
    """Write the shares of sentiments of each word, in the order of the labels."""
    rows = [(word, *map(float, q)) for word, q in shares.items()]
    columns = ["word", *(f"q_{s}" for s in SENTIMENTS)]
    pl.DataFrame(rows, schema=columns, orient="row").write_parquet(path)


class Study:
    """What one model answered, or several, and about whom."""

    lemma = "{}"

    def __init__(self, folder, model="by-hand"):
        self.folder, self.model = folder, model
        self.people, self.lexica = folder / "people", folder / "lexica"
        self.inputs = self.of(model)
        self.outputs = self.inputs.outputs("associations", model)
        self.weights = self.inputs.weights(model)
        for path in (self.outputs / "coverage", self.people, self.lexica, self.weights):
            path.mkdir(parents=True, exist_ok=True)

    def of(self, *models):
        """Return the inputs of an analysis of some models."""
        return Inputs(models, {"politicians": self.people, "lexica": self.lexica}, self.folder)

    def write(
        self, language, lists, genders, names=None, files=1, shuffle=None, model=None, **columns
    ):
        """``lists`` has for each part of speech the words of each person."""
        model = model or self.model
        names = names or [f"Name {i}" for i in range(len(genders))]
        rows = [
            {"qid": f"Q{i}", "name": names[i], "word": word, "lemma": self.lemma.format(word)}
            | {"pos": pos, "rank": rank, "logprob_nats": -float(rank), "prompt": ""}
            | {"model": model, "revision": ""}
            for pos, per_person in lists.items()
            for i, listed in enumerate(per_person)
            for rank, word in enumerate(listed.split(), 1)
        ]
        if shuffle is not None:
            shuffle.shuffle(rows)
        schema = pl.from_arrow(associations.SCHEMA.arrow().empty_table()).schema
        folder = self.inputs.outputs("associations", model) / language
        folder.mkdir(parents=True, exist_ok=True)
        for n in range(files):
            pl.DataFrame(rows[n::files], schema=schema).write_parquet(folder / f"{n:05d}.parquet")
        write_people(self.people / f"{language}.parquet", genders, names, **columns)

    def lexicon(self, shares, language="en"):
        """Write a lexicon, see :func:`write_lexicon`."""
        write_lexicon(self.lexica / f"{language}.parquet", shares)
