"""Numbers with one thing done otherwise: planted causes go where names are matched."""

import associated
import numpy as np
import polars as pl
import pytest

from plumbline.builders.core.errors import UserError
from plumbline.probes.core.run_analysis import Inputs
from plumbline.probes.politicians import robustness

SEED = 61
PARAMS = robustness.Params(
    version="1.0.0",
    top_k=[10, 5],
    top_share=[0.5, 0.2],
    smoothing=[0.5, 2],
    min_count=[1, 4],
    lengths=[2],
    bins=3,
    halves=1,
    n_permutations=100,
    n_bootstrap=100,
)


class Study:
    """Outputs, people and a lexicon, for words w00 to w29 of three sentiments in turn."""

    def __init__(self, folder):
        self.folder = folder
        for part in ("people", "lexica"):
            (folder / part).mkdir()
        shares = {f"w{i:02}": [i % 3 == s for s in range(3)] for i in range(30)}
        associated.write_lexicon(folder / "lexica/en.parquet", shares)

    def write(
        self, lists, genders, names, frame=None, popularity=1, unknown=0, pieces=None, lemmas=()
    ):
        lemmas = dict(lemmas)
        rows = [
            {"qid": f"Q{i}", "word": word, "lemma": lemmas.get(word, word), "pos": "ADJ", "rank": r}
            | {"unknown_pieces": unknown if i == 0 else 0}
            | {"prompt_pieces": len(names[i].split()) + 2 if pieces is None else pieces[i]}
            | ({"frame": frame} if frame else {})
            for i, listed in enumerate(lists)
            for r, word in enumerate(listed, 1)
        ]
        folder = self.folder / "outputs/associations/one/en"
        folder.mkdir(parents=True, exist_ok=True)
        path, table = folder / "00000.parquet", pl.DataFrame(rows)
        there = [pl.read_parquet(path)] if path.is_file() else []
        pl.concat([*there, table]).write_parquet(path)
        path = self.folder / "people/en.parquet"
        associated.write_people(path, genders, names, popularity=popularity)

    def run(self, **changed):
        datasets = {"politicians": self.folder / "people", "lexica": self.folder / "lexica"}
        inputs = Inputs(("one",), datasets, self.folder)
        return robustness.run(inputs, PARAMS.model_copy(update=changed))["robustness"]


@pytest.fixture
def study(tmp_path):
    return Study(tmp_path)


def drawn(rng, tilt, length=6):
    """Return for each name a list; ``tilt`` is its liking for positive words (nats)."""
    side = np.array([1.0, -1.0, 0.0])[np.arange(30) % 3]
    taste = rng.gumbel(size=(len(tilt), 30)) + np.asarray(tilt)[:, None] * side
    best = np.argsort(-taste, axis=1)[:, :length]
    return [[f"w{i:02}" for i in row] for row in best]


def rows(table, kind, variation=None, number="male minus female", sentiment="positive"):
    found = table.filter(kind=kind, number=number, sentiment=sentiment)
    if variation is not None:
        found = found.filter(variation=variation)
    return found.to_dicts()


def test_run_effect_of_length_goes_when_matched(study):
    """Long names get positive words; women have long names more often; gender does nothing."""
    rng = np.random.default_rng(SEED)
    genders = ["mw"[i % 2] for i in range(400)]
    long = [rng.random() < (0.85 if g == "w" else 0.15) for g in genders]
    names = [
        ("Abcdefgh Ijklmnop" if x else "Ab Cd") + "abcdefghij"[i % 10] for i, x in enumerate(long)
    ]
    names = [f"{name}{chr(97 + i // 10 % 26)}{chr(97 + i // 260)}" for i, name in enumerate(names)]
    study.write(drawn(rng, np.where(long, 1.2, -1.2)), genders, names)
    table = study.run()
    (default,) = rows(table, "default")
    assert default["value"] <= -0.5
    assert default["p"] < 0.02
    (length,) = rows(table, "matched", "length")
    assert length["men"] == length["women"] < default["men"]
    assert abs(length["value"]) < 0.35
    assert length["p"] > 0.05
    (fame,) = rows(table, "matched", "popularity")  # all are equally popular: all are matched
    assert fame["men"] == 200


def test_run_effect_of_pieces_goes_when_matched(study):
    """Names look alike, but women's fall into more pieces, and those get positive words."""
    rng = np.random.default_rng(SEED)
    genders = ["mw"[i % 2] for i in range(400)]
    many = [rng.random() < (0.85 if g == "w" else 0.15) for g in genders]
    names = [f"Ab {chr(97 + i % 26)}{chr(97 + i // 26)}" for i in range(400)]
    pieces = [5 + 4 * x for x in many]
    study.write(drawn(rng, np.where(many, 1.2, -1.2)), genders, names, pieces=pieces)
    table = study.run()
    (default,) = rows(table, "default")
    assert default["value"] <= -0.5
    (length,) = rows(table, "matched", "length")  # all are equally long: all are matched
    assert length["men"] == 200
    for variation in ("pieces", "pieces and popularity"):
        (matched,) = rows(table, "matched", variation)
        assert matched["men"] == matched["women"] < 100
        assert abs(matched["value"]) < 0.35


def test_run_effect_of_gender_stays(study):
    rng = np.random.default_rng(SEED)
    genders = ["mw"[i % 2] for i in range(200)]
    names = [f"{'AB'[i % 3 == 0] * (i % 7 + 1)} {i}" for i in range(200)]
    popularity = pl.Series(rng.integers(1, 50, 200), dtype=pl.Int32)
    tilt = [1.2 if g == "w" else -1.2 for g in genders]
    study.write(drawn(rng, tilt), genders, names, popularity=popularity)
    table = study.run()
    found = [r for kind in robustness.KINDS for r in rows(table, kind) if r["value"] is not None]
    assert {r["kind"] for r in found} == set(robustness.KINDS) - {"frame"}
    assert all(r["value"] < -0.3 for r in found)
    assert all(r["high"] < 0 for r in found)


def test_run_each_variation(study):
    rng = np.random.default_rng(SEED)
    names = ["Ада", *(f"Name {i}" for i in range(39))]
    lists = [["w00", *listed] for listed in drawn(rng, np.zeros(40), 4)]
    lists = [list(dict.fromkeys(listed)) for listed in lists]
    study.write(lists, "mw" * 20, names, unknown=2, lemmas={"w03": "w00"})
    table = study.run()
    (default,) = rows(table, "default")
    assert default["top_k"] == min(10, default["candidates"] // 2)
    assert rows(table, "top_k", "5")[0]["top_k"] == 5
    share = rows(table, "top_share", "0.2")[0]
    assert share["top_k"] == int(0.2 * share["candidates"])
    assert rows(table, "min_count", "4")[0]["candidates"] < default["candidates"]
    forms = {word for part in lists for word in part}
    assert "w03" in forms
    assert default["candidates"] == len(forms) - 1
    assert rows(table, "unit", "form")[0]["candidates"] == len(forms)
    listed = rows(table, "list length", "2")[0]
    assert listed["candidates"] == len({word for part in lists for word in part[:2]} - {"w03"})
    assert rows(table, "names", "native script alone")[0]["men"] == 19
    assert rows(table, "names", "all pieces known to the model")[0]["men"] == 19
    halves = [rows(table, "half", half)[0] for half in ("1a", "1b")]
    assert sum(h["men"] for h in halves) == sum(h["women"] for h in halves) == 20


def test_run_other_frames(study):
    rng = np.random.default_rng(SEED)
    names = [f"Name {i}" for i in range(60)]
    genders, tilt = "mw" * 30, np.tile([-1.5, 1.5], 30)
    study.write(drawn(rng, tilt), genders, names, frame="bare")
    study.write(drawn(rng, -tilt), genders, names, frame="turned")
    table = study.run()
    assert rows(table, "default")[0]["value"] < -0.3
    (turned,) = rows(table, "frame")
    assert turned["variation"] == "turned"
    assert turned["value"] > 0.3


def test_run_non_binary_people_are_few_or_none(study):
    rng = np.random.default_rng(SEED)
    names = [f"Name {i}" for i in range(41)]
    study.write(drawn(rng, np.zeros(41)), "mw" * 20 + "x", names)
    table = study.run()
    (one,) = rows(table, "default", number="non-binary")
    assert (one["n"], one["non_binary"]) == (1, 1)
    assert one["high"] - one["low"] > 0.1
    halves = [rows(table, "half", half, number="non-binary")[0] for half in ("1a", "1b")]
    assert [(h["value"], h["n"]) for h in halves if h["non_binary"] == 0] == [(None, 0)]


def test_run_without_known_words_has_no_numbers(study):
    study.write([["x", "y"]] * 4, "mwmw", list("abcd"))
    table = study.run()
    assert len(table)
    assert table["value"].count() == 0


def test_run_without_lists(study):
    study.write([["w00"]] * 4, "mwmw", list("abcd"))
    people = pl.read_parquet(study.folder / "people/en.parquet")
    people.with_columns(qid=pl.lit("Q9")).write_parquet(study.folder / "people/en.parquet")
    with pytest.raises(UserError, match="no lists there"):
        study.run()


def test_coarsened():
    assert robustness.coarsened(np.arange(8.0), 4).tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert robustness.coarsened(np.array([5.0, 5, 5, 5, 9]), 4).tolist() == [0, 0, 0, 0, 1]
    assert robustness.coarsened(np.array([1.0, np.nan, 2]), 2).tolist() == [0, -1, 1]
    assert robustness.coarsened(np.full(3, np.nan), 2).tolist() == [-1] * 3


def test_matched_by_hand():
    strata = np.array([[0], [0], [0], [1], [1], [2], [2]])
    groups = np.array([0, 0, 1, 0, 1, 1, 2])
    kept = robustness.matched(strata, groups, (0, 1), 1)
    assert kept[:3].sum() == 2  # one of two men, the one woman
    assert kept[2:5].all()
    assert kept[5:].tolist() == [False, True]  # a woman without a man; the third group stays
