import numpy as np
import polars as pl
import pytest
from pydantic import ValidationError

from plumbline.builders.core import parquet
from plumbline.builders.core.errors import UserError
from plumbline.builders.datasets.words import build as words
from plumbline.probes.models.params import Model
from plumbline.probes.models.scorer import Filled
from plumbline.probes.politicians import associations
from plumbline.probes.prompts import politicians as sentences

# Stańczak et al. (2023), supplement S2: order of adjective and noun, and of the clause
PUBLISHED = {
    "ar": ("N-Adj", "VSO"),
    "zh": ("Adj-N", "SVO"),
    "en": ("Adj-N", "SVO"),
    "fr": ("N-Adj", "SVO"),
    "hi": ("Adj-N", "SOV"),
    "ru": ("Adj-N", "SVO"),
    "es": ("N-Adj", "SVO"),
}


@pytest.mark.parametrize("language", PUBLISHED)
def test_candidates_published_word_order(built, language):
    adjective, clause = PUBLISHED[language]
    before, after = "<mask> Ada Berg", "Ada Berg <mask>"
    found = associations.candidates_of(built / "data/datasets/words", language)
    assert list(found) == ["ADJ", "VERB"]
    prompts = {pos: sentences.bare(own.place).about("Ada Berg") for pos, own in found.items()}
    assert prompts["ADJ"] == (before if adjective == "Adj-N" else after)
    # the subject goes before its verb but where the clause begins with the verb
    assert prompts["VERB"] == (before if clause == "VSO" else after)


def lexicon(folder, rows):
    listed = [
        parquet.Row(
            "en",
            {"form": form, "lemma": lemma, "pos": words.POS.index(pos), "count": count}
            | {"treebanks": ["one.conllu"], "treebank_counts": [count]}
            | {"place": words.PLACES.index("before" if pos == "ADJ" else "after")},
        )
        for form, lemma, pos, count in sorted(rows)
    ]
    parquet.write(listed, words.SCHEMA, folder)
    parquet.finish(folder)
    return folder


def test_candidates_order_and_lemmas(tmp_path):
    rows = [("left", "leave", "VERB", 5), ("left", "left", "VERB", 7), ("runs", "run", "VERB", 9)]
    rows += [("asks", "ask", "VERB", 7), ("left", "left", "ADJ", 2)]
    folder = lexicon(tmp_path / "words", rows)
    words = associations.candidates_of(folder, "en")
    verbs = words["VERB"]
    assert list(verbs.lemmas) == ["runs", "asks", "left"]
    assert verbs.lemmas == {"runs": "run", "asks": "ask", "left": "left"}
    assert list(words["ADJ"].lemmas) == ["left"]


def crowd(folder, names):
    """Write people of whom the datasets' columns that are read are true."""
    columns = {"qid": [f"Q{i}" for i in range(len(names))], "name": names}
    folder.mkdir()
    pl.DataFrame(columns).write_parquet(folder / "en.parquet")
    return folder


class Counting:
    """A model that knows all words but one, and remembers what it was asked."""

    name = "counting"

    def __init__(self, off=0.0):
        self.asked = []
        self.off = off

    def facts(self):
        return {"model": "counting", "revision": "r7"}

    def spelled(self, words, language=""):
        return {word: 1 for word in words if word != "rare"}

    def fill(self, prompts, words, top_k, *, multi=False, language=""):
        known = [word for word in words if word != "rare"]
        length = min(top_k, len(known))
        prompts = list(prompts)
        for block in (prompts[:1], prompts[1:]):
            self.asked += block
            yield Filled(
                [prompt.replace("<mask>", "[M]") for prompt in block],
                known,
                np.ones(len(known), np.int32),
                np.tile(np.arange(length, dtype=np.int32), (len(block), 1)),
                -np.add.outer([float(len(p)) for p in block], np.arange(length)) + self.off,
                np.array([len(p.split()) for p in block], np.int32),
                np.zeros(len(block), np.int32),
            )


ADJECTIVES = ("kind", "rare", "calm", "dull")


@pytest.fixture
def small(tmp_path):
    adjectives = [(word, word, "ADJ", n) for word, n in zip(ADJECTIVES, (9, 8, 7, 1), strict=True)]
    folder = lexicon(tmp_path / "words", [*adjectives, ("runs", "run", "VERB", 4)])
    return associations.candidates_of(folder, "en")


def bare(candidates):
    return {pos: {"bare": sentences.bare(own.place)} for pos, own in candidates.items()}


def test_run_people_of_one_name(tmp_path, small):
    folder = crowd(tmp_path / "politicians", ["Bo Lind", "Ada Berg", "Bo Lind"])
    scorer = Counting()
    people = associations.names(folder, "en", 0, 1)
    assert people == {"Ada Berg": ["Q1"], "Bo Lind": ["Q0", "Q2"]}
    tables = associations.run(people, small, scorer, {"ADJ": 2, "VERB": 3}, "en", bare(small))
    rows = [row for table in tables for row in table.to_pylist()]
    assert scorer.asked == [
        *("<mask> Ada Berg", "<mask> Bo Lind"),
        *("Ada Berg <mask>", "Bo Lind <mask>"),
    ]
    assert all(set(row) == {c.name for c in associations.SCHEMA.columns} for row in rows)
    lists = {}
    for row in rows:
        lists.setdefault((row["qid"], row["pos"]), []).append(
            (row["rank"], row["word"], row["lemma"], row["logprob_nats"], row["prompt"])
        )
    assert lists["Q1", "ADJ"] == [
        (1, "kind", "kind", -15.0, "[M] Ada Berg"),
        (2, "calm", "calm", -16.0, "[M] Ada Berg"),
    ]
    assert lists["Q1", "VERB"] == [(1, "runs", "run", -15.0, "Ada Berg [M]")]
    assert lists["Q0", "ADJ"] == lists["Q2", "ADJ"]
    assert lists["Q0", "VERB"] == lists["Q2", "VERB"]
    assert len(lists) == 6


def test_coverage(small):
    people = {"Ada Berg": ["Q1"]}
    found = list(
        associations.coverage(
            *("en", people, small, Counting(), Counting(off=0.25)),
            *({"ADJ": 2, "VERB": 3}, bare(small)),
        )
    )
    facts = {"language": "en", "model": "counting", "revision": "r7"}
    facts |= {"precision_nats": 0.25, "precision_overlap": 1.0}
    assert found == [
        facts | {"pos": "ADJ", "words": 4, "covered": 3, "list_length": 2},
        facts | {"pos": "VERB", "words": 1, "covered": 1, "list_length": 3},
    ]


SAID = {
    "ADJ": {"prompt": "{name} is <mask>", "without": "Someone is <mask>"},
    "VERB": {"prompt": "Now {name} <mask>", "without": "Now someone <mask>"},
}
ASKED = {
    "ADJ": {"prompt": "Is {name} <mask>?", "without": "Is someone <mask>?"},
    "VERB": {"prompt": "Why {name} <mask>?"},
}
FRAMES = {"said": {"en": SAID}, "asked": {"en": ASKED}}
GIVEN = {"version": "1.0.0", "languages": ["en"]}
GIVEN |= {"top_k": {"other": {"ADJ": 2, "VERB": 3}}}


def kind(name):
    return Model(id="./folder", kind=name)


def test_run_frames_and_priors(tmp_path, small):
    params = associations.Params(
        **GIVEN, frames=FRAMES, frames_of={"masked": ["asked", "bare", "said"]}
    )
    places = {pos: small[pos].place for pos in small}
    frames = params.frames_in(kind("masked"), "en", places)
    scorer = Counting()
    people = {"Ada Berg": ["Q1"], "Bo Li": ["Q0", "Q2"]}
    tables = associations.run(people, small, scorer, params.lengths("en"), "en", frames)
    rows = [row for table in tables for row in table.to_pylist()]
    assert scorer.asked == [
        *("Is someone <mask>?", "Is Ada Berg <mask>?", "Is Bo Li <mask>?"),
        *("<mask> Ada Berg", "<mask> Bo Li"),
        *("Someone is <mask>", "Ada Berg is <mask>", "Bo Li is <mask>"),
        *("Why Ada Berg <mask>?", "Why Bo Li <mask>?"),
        *("Ada Berg <mask>", "Bo Li <mask>"),
        *("Now someone <mask>", "Now Ada Berg <mask>", "Now Bo Li <mask>"),
    ]
    keys = [tuple(row[column] for column in associations.SCHEMA.key) for row in rows]
    assert len(set(keys)) == len(keys) == 3 * 3 * (2 + 1)
    # this model's answer is minus the length of its prompt, and minus the candidate's place
    candidates = {"ADJ": ["kind", "calm", "dull"], "VERB": ["runs"]}
    sentences = {("asked", "ADJ"): "Is someone [M]?", ("said", "ADJ"): "Someone is [M]"}
    sentences |= {("said", "VERB"): "Now someone [M]"}
    for row in rows:
        text = sentences.get((row["frame"], row["pos"]))
        place = candidates[row["pos"]].index(row["word"])
        own = len(row["prompt"].replace("[M]", "<mask>"))
        assert row["logprob_nats"] == -own - place
        if text is None:
            assert row["prior_nats"] is None
        else:
            assert row["prior_nats"] == -len(text.replace("[M]", "<mask>")) - place


def test_frame_names_by_kind():
    given = GIVEN | {"frames": FRAMES}
    params = associations.Params(**given, frames_of={"masked": ["bare"], "causal": ["said"]})
    assert params.frame_names(kind("masked")) == ["bare"]
    assert params.frame_names(kind("causal")) == ["said"]
    with pytest.raises(UserError):
        params.frame_names(kind("seq2seq"))
    assert associations.Params(**GIVEN).frame_names(kind("seq2seq")) == ["bare"]
    with pytest.raises(UserError):
        params.frames_in(kind("causal"), "fr", {"ADJ": "after", "VERB": "after"})


@pytest.mark.parametrize(
    "changed",
    [
        {"frames_of": {"masked": ["sung"]}},
        {"frames_of": {"causal": ["asked"]}},  # whose mask is not always at the end
        {"frames": {"x": {"en": {"ADJ": {"prompt": "<mask>"}}}}},
    ],
    ids=["unknown frame", "causal", "no name"],
)
def test_params_rejects_frames(changed):
    with pytest.raises(ValidationError):
        associations.Params(**(GIVEN | {"frames": FRAMES} | changed))


def test_lengths():
    other = {"ADJ": 100, "VERB": 20}
    given = {"version": "1.0.0", "languages": ["en", "fr"]}
    params = associations.Params(**given, top_k={"en": {"ADJ": 1, "VERB": 2}, "other": other})
    assert params.lengths("en") == {"ADJ": 1, "VERB": 2}
    assert params.lengths("fr") == other
    assert params.lengths("fr", {"ADJ": 30, "VERB": 500}) == {"ADJ": 30, "VERB": 20}
    halved = params.model_copy(update={"top_share": 0.5})
    assert halved.lengths("fr", {"ADJ": 53, "VERB": 30}) == {"ADJ": 26, "VERB": 15}
    assert halved.lengths("fr", {"ADJ": 500, "VERB": 1}) == {"ADJ": 100, "VERB": 1}
    with pytest.raises(ValueError, match="'fr'"):
        associations.Params(**given, top_k={"en": other})
