"""What is counted in streams is what is counted naively, however rows are spread over files."""

from collections import Counter

import numpy as np
import polars as pl
import pytest
from scipy.stats import hypergeom

from plumbline.builders.core.errors import UserError
from plumbline.builders.datasets.words.build import POS
from plumbline.probes.politicians.words import word_counts
from plumbline.probes.stats import bootstrap

SEED = 515


def lemma(form):
    """Two forms of one lemma follow each other."""
    return f"l{int(form[1:]) // 2}"


class Made:
    """People with namesakes, and their lists from some models, drawn at random."""

    def __init__(self, folder, rng, people=60, models=1, length=4, words=12):
        self.folder, self.rng, self.models = folder, rng, models
        names = [f"Name {rng.integers(people * 2 // 3)}" for _ in range(people)]
        genders = rng.choice(3, people, p=[0.5, 0.4, 0.1])
        items = rng.permutation(np.arange(1, 10 * people))[:people]
        self.people = {
            f"Q{item}": (name, int(g)) for item, name, g in zip(items, names, genders, strict=True)
        }
        frame = pl.DataFrame(
            {"qid": list(self.people), "name": names, "gender": genders.astype(np.int64)}
        )
        frame.write_parquet(folder / "people.parquet")
        forms = [f"w{i:02}" for i in range(words)]
        self.rows = [[] for _ in range(models)]
        for rows in self.rows:
            best = {
                (name, pos): rng.choice(forms, length, replace=False)
                for name in sorted(set(names))
                for pos in POS
            }
            for pos in POS:
                for qid, (name, _) in self.people.items():
                    rows += [
                        {"qid": qid, "name": name, "word": w, "lemma": lemma(w), "pos": pos}
                        | {"rank": rank, "prompt": "", "model": "made"}
                        for rank, w in enumerate(best[name, pos], 1)
                    ]

    def write(self, name, files=1, shuffled=False, groups=None, framed=False):
        """Write the lists of each model into so many files, and return the folders."""
        folders = []
        for m, listed in enumerate(self.rows):
            folder = self.folder / name / str(m)
            folder.mkdir(parents=True)
            rows = list(listed)
            if framed:
                rows = [row | {"frame": "bare"} for row in listed]
                rows += [row | {"frame": "other", "word": "x" + row["word"]} for row in listed]
            if shuffled:
                self.rng.shuffle(rows)
            for n in range(files):
                part = pl.DataFrame(rows[n::files])
                part.write_parquet(folder / f"{n:05d}.parquet", row_group_size=groups)
            folders.append(folder)
        return tuple(folders)

    def known(self):
        """Return the people, as they are read."""
        return word_counts.read_people(self.folder / "people.parquet")

    def counted(self, pos="ADJ", unit="form", name="plain", **how):
        """Write the lists, and count them."""
        source = word_counts.Lists(self.write(name, **how), pos, unit=unit)
        return word_counts.count(source, self.known())

    def naive(self, pos, unit="form"):
        """Count in dictionaries: people's lists, and those of distinct names and genders."""
        column = {"form": "word", "lemma": "lemma"}[unit]
        every, distinct = Counter(), Counter()
        for rows in self.rows:
            met = {
                (row[column], row["qid"], *self.people[row["qid"]])
                for row in rows
                if row["pos"] == pos
            }
            every.update((word, gender) for word, _, _, gender in met)
            distinct.update(
                (word, gender) for word, gender, _ in {(w, g, name) for w, _, name, g in met}
            )
        return every, distinct


def by_cell(counts, table):
    return {
        (word, int(g)): int(table[w, i])
        for w, word in enumerate(counts.words["word"])
        for i, g in enumerate(counts.genders)
        if table[w, i]
    }


def equal(one, other):
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


@pytest.fixture
def rng():
    print("seed", SEED)
    return np.random.default_rng(SEED)


@pytest.mark.parametrize("unit", ["form", "lemma"])
@pytest.mark.parametrize("models", [1, 3])
def test_count_naive(tmp_path, rng, models, unit):
    made = Made(tmp_path, rng, models=models)
    for pos in POS:
        counts = made.counted(pos, unit, name=f"lists {pos}")
        every, distinct = made.naive(pos, unit=unit)
        assert by_cell(counts, counts.lists) == every
        assert by_cell(counts, counts.distinct) == distinct
        pairs = set(made.people.values())
        for i, g in enumerate(counts.genders):
            assert counts.people[i] == sum(gender == g for _, gender in made.people.values())
            assert counts.names[i] == sum(gender == g for _, gender in pairs)
        assert counts.clusters == len({name for name, _ in pairs}) < len(made.people)
        assert counts.words["lemma"].to_list() == [lemma(form) for form in counts.words["form"]]
        assert counts.words["word"].equals(counts.words[unit].alias("word"))
        assert counts.rows == 60 * 4 * models
        if unit == "lemma":  # some list has both forms of a lemma
            assert counts.lists.sum() < counts.rows
            lists = Counter(r["word"] for rows in made.rows for r in rows if r["pos"] == pos)
            for word, form in counts.words.select("word", "form").iter_rows():
                own = [f for f in lists if lemma(f) == word]
                assert form == min(own, key=lambda f: (-lists[f], f))


@pytest.mark.parametrize("unit", ["form", "lemma"])
def test_count_is_the_same_however_rows_are_spread(tmp_path, rng, unit):
    made = Made(tmp_path, rng, models=2)
    found = []
    for name, how in {
        "one": {},
        "files": {"files": 11, "shuffled": True, "groups": 13},
        "framed": {"files": 3, "shuffled": True, "framed": True},
    }.items():
        counts = made.counted("VERB", unit, name, **how)
        chosen = counts.common(int(np.median(counts.lists.sum(axis=1))) + 1)
        assert 0 < len(chosen) < len(counts.words)
        draws = word_counts.bootstrap_counts(counts, chosen, 100, 3)
        found.append((counts, draws, word_counts.overlaps(counts, chosen)[0]))
    for counts, draws, overlaps in found[1:]:
        assert counts.words.equals(found[0][0].words)
        assert np.array_equal(counts.lists, found[0][0].lists)
        assert np.array_equal(counts.distinct, found[0][0].distinct)
        assert equal(draws, found[0][1])
        assert np.array_equal(overlaps, found[0][2])


def test_bootstrap_counts_naive(tmp_path, rng):
    made = Made(tmp_path, rng)
    counts = made.counted()
    chosen = np.array([1, 4, 5])
    draws = word_counts.bootstrap_counts(counts, chosen, 100, 9)
    assert draws.merged == len(counts.words) - 3
    labels = [*(counts.words["word"][int(w)] for w in chosen), None]
    expected = {}
    for row in made.rows[0]:
        name, gender = made.people[row["qid"]]
        if row["pos"] == "ADJ":
            bits = bootstrap.bits(bootstrap.keys([name]), 100, 9)[0]
            key = row["word"] if row["word"] in labels else None, gender
            old = expected.get(key, (np.zeros(100), np.zeros(100)))
            exponential = bootstrap.exponential(bits) / bootstrap.GRAIN
            expected[key] = (old[0] + bootstrap.poisson(bits), old[1] + exponential)
    for i, word in enumerate(labels):
        for j, gender in enumerate(counts.genders):
            none = np.zeros(100), np.zeros(100)
            ordinary, bayesian = expected.get((word, int(gender)), none)
            assert np.array_equal(draws.ordinary[i, j], ordinary)
            assert np.array_equal(draws.bayesian[i, j], bayesian)


def test_count_form_of_several_lemmas(tmp_path):
    # "left" is of "leave" in the outputs of one model, and a word of its own in those of another
    people = pl.DataFrame({"qid": ["Q1", "Q2"], "name": ["A", "B"], "gender": [0, 1]})
    people.write_parquet(tmp_path / "people.parquet")
    rows = {
        "one": [("Q1", "left", "leave"), ("Q1", "leaves", "leave"), ("Q2", "left", "leave")],
        "two": [("Q1", "left", "left"), ("Q2", "leaves", "leave"), ("Q2", "left", "left")],
    }
    for model, own in rows.items():
        (tmp_path / model).mkdir()
        table = pl.DataFrame(own, schema=["qid", "word", "lemma"], orient="row")
        table = table.with_columns(pos=pl.lit("ADJ"))
        table.write_parquet(tmp_path / model / "0.parquet")
    folders = (tmp_path / "one", tmp_path / "two")
    known = word_counts.read_people(tmp_path / "people.parquet")
    lemmas = word_counts.count(word_counts.Lists(folders, "ADJ", unit="lemma"), known)
    assert lemmas.words.select("word", "form").rows() == [("leave", "leaves"), ("left", "left")]
    assert lemmas.lists.tolist() == [[1, 2], [1, 1]]  # one list has two forms of leave, once
    forms = word_counts.count(word_counts.Lists(folders, "ADJ", unit="form"), known)
    assert forms.lists.tolist() == [[1, 1], [2, 2]]
    # in as many rows: the first by the alphabet
    assert forms.words.select("word", "lemma").rows() == [("leaves", "leave"), ("left", "leave")]


def test_count_first_frame(tmp_path, rng):
    made = Made(tmp_path, rng)
    (folder,) = made.write("plain")
    path = folder / "00000.parquet"
    plain = pl.read_parquet(path)
    for first, second, expected in (
        ("said", "asked", "first"),
        ("said", "bare", "second"),
        (None, None, "first"),
    ):
        frames = [
            plain.with_columns(frame=pl.lit(frame, pl.String), word=pl.lit(word) + pl.col("word"))
            for frame, word in ((first, "first"), (second, "second"))
        ]
        (pl.concat(frames) if first else frames[0]).write_parquet(path)
        source = word_counts.Lists((folder,), "ADJ", unit="form")
        words = word_counts.count(source, made.known()).words["word"].to_list()
        assert words
        assert all(word.startswith(expected) for word in words)


def test_overlaps_naive(tmp_path, rng):
    made = Made(tmp_path, rng, models=3)
    counts = made.counted(files=2)
    chosen = np.array([0, 3, 7])
    found, sizes = word_counts.overlaps(counts, chosen)
    assert sizes.tolist() == [counts.names.tolist()]  # all lists have one length
    for i, w in enumerate(chosen):
        having = Counter()
        for rows in made.rows:
            here = (
                r for r in rows if (r["pos"], r["word"]) == ("ADJ", counts.words["word"][int(w)])
            )
            having.update({made.people[r["qid"]] for r in here})
        times = Counter(having[pair] for pair in set(made.people.values()))
        assert found[i].tolist() == [[times[j] for j in range(4)]]


def test_count_no_outputs(tmp_path, rng):
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError):
        word_counts.count(
            word_counts.Lists((tmp_path / "empty",), "ADJ"), Made(tmp_path, rng).known()
        )


def test_permute_counts_hypergeometric(tmp_path, rng):
    counts = Made(tmp_path, rng).counted()
    chosen = np.arange(len(counts.words))
    null = word_counts.permute_counts(counts, chosen, (0, 1), 3000, 5)
    names, having = int(counts.names[:2].sum()), counts.distinct[:, :2].sum(axis=1)
    for w, number in enumerate(having):
        exact = hypergeom(names, int(number), int(counts.names[0]))
        error = 5 * exact.std() / 3000**0.5
        assert null[w, 0].mean() == pytest.approx(exact.mean(), abs=error)
        assert null[w, 0].std() == pytest.approx(exact.std(), rel=0.1)
