import json
from itertools import product
from pathlib import Path

import datasets
import numpy as np
import polars as pl
import pytest
import whole
from recovering import recovered
from scipy.stats import false_discovery_control

from plumbline.builders.core import parquet
from plumbline.builders.core.errors import UserError
from plumbline.builders.datasets.labelled_texts import build as labelled_texts
from plumbline.builders.datasets.labelled_texts.build import LABELS, SPLITS
from plumbline.builders.datasets.lexica import build as lexica
from plumbline.probes.__main__ import main
from plumbline.probes.core import run_analysis
from plumbline.probes.core.run_analysis import Inputs
from plumbline.probes.politicians import lexicon_evaluation
from plumbline.probes.politicians.lexicon_evaluation import (
    KINDS,
    MEASURES,
    classify,
    cuts,
    evaluate,
    majority,
    mean_scores,
    scores,
)
from plumbline.probes.politicians.words.segmentation import known_words
from plumbline.probes.stats.intervals import sign_detectable

TOP = Path(__file__).parents[2]
SEED = 23
PARAMS = lexicon_evaluation.Params(version="1.0.0", n_bootstrap=200, n_permutations=999)
# word: q of positive and negative, and what the views say
WORDS = {
    "good": (0.7, 0.1, {"a": 0.6, "b": 1.0}),
    "bad": (0.1, 0.7, {"a": -0.6, "b": -1.0}),
    "green": (0.2, 0.2, {"a": 0.0}),
    "odd": (0.5, 0.2, {"b": 0.4}),
    "zebra": (0.3, 0.3, {"c": 0.1}),
}
TUNING = {
    "positive": ["good 1", "good 2", "good 3"],
    "negative": ["bad 1", "bad 2", "bad 3"],
    "neutral": ["green 1", "green 2", "green 3", "green 4"],
}
TESTING = {
    "positive": ["good 5", "good 6", "odd 1", "green 5"],
    "negative": ["bad 5", "bad 6", "nothing 1", "good 7"],
    "neutral": ["green 6", "something 1"],
}


def write_lexica(words, folder=Path("data/datasets/lexica"), language="en"):
    rows = []
    for word, (positive, negative, views) in sorted(words.items()):
        q = (positive, negative, 1 - positive - negative)
        mass = 3 + len(views)
        values = {
            "word": word,
            "pos": [],
            **{f"beta_{a}": mass * x for a, x in zip(lexica.AXES, q, strict=True)},
            **{f"q_{a}": x for a, x in zip(lexica.AXES, q, strict=True)},
            "views": len(views),
            "score": sum(views.values()) / max(1, len(views)),
            "seed_sd": None,
            "leave_out_change": None,
            "view_names": sorted(views),
            "view_values": [str(views[name]) for name in sorted(views)],
            "view_scores": [views[name] for name in sorted(views)],
            "redistributable": True,
        }
        rows.append(parquet.Row(language, values))
    parquet.write(rows, lexica.SCHEMA, folder)
    parquet.finish(folder)
    return folder


def write_texts(tuning, testing, folder=Path("data/datasets/labelled_texts"), **changes):
    rows = []
    for split, texts in (("tuning", tuning), ("testing", testing)):
        for label, found in texts.items():
            for text in found:
                values = {"text": text, "label": LABELS.index(label), "source": "mine"}
                values |= {"split": SPLITS.index(split), "redistributable": True}
                rows.append(parquet.Row("en", values | changes))
    parquet.write(rows, labelled_texts.SCHEMA, folder)
    parquet.finish(folder)
    return folder


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(words=WORDS, tuning=TUNING, testing=TESTING, params=PARAMS):
    folders = {"lexica": write_lexica(words), "labelled_texts": write_texts(tuning, testing)}
    return lexicon_evaluation.run(Inputs((), folders), params)


def row(table, kind, lexicon, measure):
    found = table.filter(kind=KINDS.index(kind), lexicon=lexicon, measure=MEASURES.index(measure))
    return found.row(0, named=True)


def test_scores_are_the_side_of_q_the_plain_mean_and_each_view_by_its_name(place):
    found = scores(write_lexica(WORDS), "en")
    assert list(found) == [
        ("combination", "combination"),
        ("plain mean", "plain mean"),
        ("view", "a"),
        ("view", "b"),
        ("view", "c"),
    ]
    assert found["combination", "combination"] == pytest.approx(
        {"good": 0.6, "bad": -0.6, "green": 0, "odd": 0.3, "zebra": 0}
    )
    assert found["plain mean", "plain mean"] == pytest.approx(
        {"good": 0.8, "bad": -0.8, "green": 0, "odd": 0.4, "zebra": 0.1}
    )
    assert found["view", "a"] == {"good": 0.6, "bad": -0.6, "green": 0}
    assert found["view", "b"] == {"good": 1, "bad": -1, "odd": 0.4}
    assert found["view", "c"] == {"zebra": 0.1}


def test_the_published_combination_is_held_against_ours(place):
    texts = write_texts(TUNING, TESTING)
    theirs = {"good": (0.6, 0.2, {}), "bad": (0.1, 0.8, {}), "nothing": (0.8, 0.1, {})}
    other = write_lexica(theirs, Path("other"), "published")
    folder = write_lexica(WORDS)
    (other / "published.parquet").rename(folder / "published.parquet")
    found = lexicon_evaluation.run(Inputs((), {"lexica": folder, "labelled_texts": texts}), PARAMS)
    # right: good 5 and 6, bad 5 and 6, green 6 and something 1; nothing 1 is known to it alone
    own = row(found["agreement"], "published", "published", "accuracy")
    assert (own["words"], own["value"], own["unknown"]) == (3, 0.6, 0.4)
    less = row(found["differences"], "published", "published", "accuracy")
    ours = row(found["agreement"], "combination", "combination", "accuracy")
    assert less["value"] == pytest.approx(ours["value"] - 0.6)


def test_ten_texts_worked_by_hand(place):
    # view a knows good, bad and green: it calls `odd 1` neutral, with both texts of no word.
    # Right: 2 of 4 positive, 2 of 4 negative, both neutral; given: 3, 2 and 5
    found = run()["agreement"]
    accuracy, f1 = (row(found, "view", "a", measure) for measure in MEASURES)
    assert accuracy["value"] == pytest.approx(6 / 10)
    assert f1["value"] == pytest.approx((4 / 7 + 4 / 6 + 4 / 7) / 3, abs=1e-6)
    assert accuracy["chance"] == pytest.approx((4 * 3 + 4 * 2 + 2 * 5) / 100)
    assert f1["chance"] == pytest.approx((2.4 / 7 + 1.6 / 6 + 2 / 7) / 3, abs=1e-6)
    assert (accuracy["words"], accuracy["unknown"], accuracy["n"]) == (3, 0.3, 10)
    assert -0.6 < accuracy["negative_below"] <= 0 <= accuracy["positive_above"] < 0.6
    assert accuracy["low"] < 0.6 < accuracy["high"]
    # 4 texts are right with it alone, none with `neutral` for all: 2 / 2^4
    assert accuracy["p"] == pytest.approx(0.125)
    assert (accuracy["cluster"], accuracy["tested"]) == ("text", 8)
    assert accuracy["detectable"] == pytest.approx(sign_detectable(4, 0, 10), abs=1e-6)
    assert accuracy["detectable_bh"] > accuracy["detectable"]
    whole = row(found, "combination", "combination", "macro-F1")
    assert whole["value"] == pytest.approx((6 / 8 + 4 / 6 + 4 / 6) / 3, abs=1e-6)


def test_all_neutral_is_the_baseline_since_most_tuning_texts_are(place):
    found = run()["agreement"]
    accuracy, f1 = (row(found, "majority class", "majority class", m) for m in MEASURES)
    assert (accuracy["value"], f1["value"]) == (0.2, pytest.approx(4 / 12 / 3, abs=1e-6))
    assert (accuracy["chance"], f1["chance"]) == (accuracy["value"], f1["value"])
    assert (accuracy["p"], accuracy["p_bh"], accuracy["tested"]) == (None, None, 0)


def test_the_combination_less_a_view_on_the_same_texts(place):
    found = run()["differences"]
    assert set(found["kind"]) == {KINDS.index("plain mean"), KINDS.index("view")}
    # it has one text more than a, and none more than b, which knows the same but green
    accuracy, f1 = (row(found, "view", "a", measure) for measure in MEASURES)
    assert accuracy["value"] == pytest.approx(0.1)
    assert f1["value"] == pytest.approx(0.75 / 3 + 4 / 9 - (8 / 7 + 2 / 3) / 3, abs=1e-6)
    assert (accuracy["p"], f1["p"]) == (1, 1)
    assert row(found, "view", "b", "macro-F1")["value"] == 0
    assert set(found["tested"]) == {6}


def test_adjusted_p_are_taken_over_all_tests_of_a_table(place):
    found = run()["agreement"].filter(pl.col("p").is_not_null())
    assert len(found) == 8
    assert found["p_bh"].to_numpy() == pytest.approx(false_discovery_control(found["p"].to_numpy()))


def test_a_view_that_no_tuning_text_speaks_of_has_a_reason_in_place_of_numbers(place):
    found = run()
    for measure in MEASURES:
        one = row(found["agreement"], "view", "c", measure)
        assert (one["value"], one["p"], one["unknown"], one["words"]) == (None, None, 1, 1)
        assert one["reason"] == "no tuning text has a word of it"
    assert "c" not in set(found["differences"]["lexicon"])


def test_rows_are_named_by_their_key(place):
    for name, table in run().items():
        key = list(lexicon_evaluation.SCHEMAS[name].key)
        assert table.select(key).is_duplicated().sum() == 0


def world(seed, effect):
    """Draw texts whose words depend on the label, and views that know all or an eighth of them."""
    draw = np.random.default_rng(seed)
    words = {label: [f"{label}{c}" for c in "abcdefgh"] for label in LABELS}
    every = [word for found in words.values() for word in found]
    texts = []
    for number in (150, 300):
        part = {label: [] for label in LABELS}
        for i in range(number):
            label = LABELS[draw.integers(3)]
            own = [
                str(draw.choice(words[label] if draw.random() < effect else every))
                for _ in range(4)
            ]
            part[label].append(f"{' '.join(own)} {i}")
        texts.append(part)
    sides = dict(zip(LABELS, (1.0, -1.0, 0.0), strict=True))
    lexicon = {}
    for label, found in words.items():
        for i, word in enumerate(found):
            side = sides[label]
            views = {"whole": side, "noise": float(draw.uniform(-1, 1))}
            views |= {"few": side} if i == 0 else {}
            lexicon[word] = (0.4 + 0.3 * side, 0.4 - 0.3 * side, views)
    return lexicon, *texts


def test_planted_words_are_found_and_noise_and_ignorance_do_worse(place):
    found = run(*world(5, 0.5))
    for measure in MEASURES:
        whole = row(found["agreement"], "view", "whole", measure)
        assert whole["low"] > whole["chance"] + 0.1
        assert whole["p_bh"] < 0.01
        noise = row(found["differences"], "view", "noise", measure)
        assert noise["low"] > 0.1
        assert noise["p_bh"] < 0.01
        assert row(found["differences"], "view", "few", measure)["low"] > 0
        same = row(found["differences"], "view", "whole", measure)
        assert (same["value"], same["low"], same["high"], same["p"]) == (0, 0, 0, 1)


@pytest.mark.slow
def test_where_words_say_nothing_intervals_hold_chance_at_their_rate(place):
    few = PARAMS.model_copy(update={"n_bootstrap": 100, "n_permutations": 99})
    held = []
    for seed in range(100, 120):
        lexicon, tuning, testing = world(seed, 0.0)
        alone = {word: (*q, {"whole": views["whole"]}) for word, (*q, views) in lexicon.items()}
        table = run(alone, tuning, testing, few)["agreement"]
        table = table.filter(lexicon="combination")
        held += ((table["low"] <= table["chance"]) & (table["chance"] <= table["high"])).to_list()
    assert np.mean(held) > 0.85


def test_what_cannot_be_compared_is_told(place):
    with pytest.raises(UserError, match="en/mine: no tuning text has a word of lexica"):
        run(words={"zebra": WORDS["zebra"]})
    with pytest.raises(UserError, match="en/mine: no testing text is left"):
        run(testing={})
    write_texts(TUNING, TESTING)
    folders = {"lexica": write_lexica(WORDS, language="fr")}
    folders["labelled_texts"] = Path("data/datasets/labelled_texts")
    with pytest.raises(UserError, match="no lexica for the labelled texts in 'en'"):
        lexicon_evaluation.run(Inputs((), folders), PARAMS)


def test_the_command_writes_tables_that_name_their_datasets_and_load(place, capsys):
    whole.write(place)
    (place / "docs").symlink_to(TOP / "docs")
    for folder in (write_lexica(WORDS), write_texts(TUNING, TESTING)):
        (folder / "README.md").write_text("a card", "utf-8")
        said = {"success": True, "fingerprint": parquet.fingerprint(folder)}
        Path("data/validation").mkdir(exist_ok=True)
        Path(f"data/validation/{folder.name}.json").write_text(json.dumps(said), "utf-8")
    assert run_analysis._all(lexicon_evaluation) == ()
    assert main(["lexicon_evaluation"]) == 0, capsys.readouterr().err
    folder = place / "data/tables/lexicon_evaluation"
    facts = json.loads((folder / "build.json").read_text("utf-8"))
    read = {(source["source"], source["address"]) for source in facts["sources"]}
    assert read == {("made by build", f"data/datasets/{n}") for n in ("lexica", "labelled_texts")}
    found = datasets.load_dataset(
        str(folder), "agreement", split="train", cache_dir=str(place / "cache")
    )
    assert found.features["kind"] == datasets.ClassLabel(names=list(KINDS))
    assert len(found) == 2 * 6
    before = {p.name: p.read_bytes() for p in folder.iterdir()}
    assert main(["lexicon_evaluation"]) == 0
    assert {p.name: p.read_bytes() for p in folder.iterdir()} == before


def test_of_the_sample_sentences_lexica_tell_more_than_the_majority(built):
    folders = {name: built / "data/datasets" / name for name in lexicon_evaluation.DATASETS}
    table = lexicon_evaluation.run(Inputs((), folders), PARAMS)["agreement"]
    dealt, table = table.filter(source="sentences-null"), table.filter(source="sentences")
    assert dealt["p_bh"].min() > 0.05
    views = table.filter(kind=KINDS.index("view"))
    assert set(views["lexicon"]) == {"classes", "degrees", "poles", "shares"}
    base = table.filter(kind=KINDS.index("majority class"))
    assert base["value"].to_list() == pytest.approx([1 / 3, 1 / 6], abs=1e-6)
    combination = table.filter(kind=KINDS.index("combination"))
    assert (combination["low"] > base["high"]).all()


LEXICON = {"good": 1.0, "fine": 0.5, "bad": -1.0, "well-made": 1.0, "table": 0.0}
SOME = lexicon_evaluation.Params(version="1.0.0", n_bootstrap=200, n_permutations=1999)


def test_only_words_of_the_lexicon_count_in_any_case_and_punctuation():
    texts = ["GOOD food, fine table!", "A well-made bad one", "nothing here", ""]
    found = mean_scores(known_words(texts, LEXICON, "en"), LEXICON)
    assert found[:2].tolist() == [0.5, 0.0]
    assert np.isnan(found[2:]).all()


def test_texts_without_a_known_word_are_neutral():
    assert classify(np.array([np.nan, -0.5, 0.5, 0.0]), -0.1, 0.1).tolist() == [1, 0, 2, 1]


def test_of_a_corpus_without_neutral_texts_no_text_is_called_neutral():
    known, others = [["good"], ["good"], ["bad"]], [["table"], [], ["good"], ["bad"]]
    labels = np.array([2, 2, 0])
    (found,) = evaluate((known, labels), (others, np.array([2, 2, 2, 0])), {"all": LEXICON}, SOME)
    # both texts without praise or blame get the more frequent label
    assert found.agreement.accuracy.value == 1
    mixed = ([*known, ["table"]], np.array([2, 2, 0, 1]))
    (found,) = evaluate(mixed, (others, np.array([1, 1, 2, 0])), {"all": LEXICON}, SOME)
    assert found.agreement.accuracy.value == 1


def test_cuts_part_what_can_be_parted():
    scores = np.array([-0.9, -0.8, -0.7, -0.1, 0.0, 0.2, 0.7, 0.8, 0.9])
    labels = np.repeat([0, 1, 2], 3)
    assert classify(scores, *cuts(scores, labels)).tolist() == labels.tolist()


def test_the_majority_is_the_first_of_equally_frequent_labels():
    assert majority(np.array([2, 1, 1, 2, 0])) == 1
    assert majority(np.array([2, 2, 0])) == 2


def test_a_lexicon_without_any_word_of_the_texts_is_told():
    with pytest.raises(ValueError, match="no text has a word"):
        evaluate(*[([["good"]], np.array([2]))] * 2, {"other": {"xyzzy": 1.0}}, SOME)


@pytest.mark.slow
@pytest.mark.parametrize("broken", ["nothing", "poles", "words"])
def test_recovery_tells_a_lexicon_that_is_broken(broken, tmp_path):
    """Texts say what they are meant to; their labels dealt out go with no word."""
    rng = np.random.default_rng(SEED)
    kinds = dict(zip(LABELS, ((0.8, 0.1), (0.1, 0.8), (0.1, 0.1)), strict=True))
    words = {f"{kind}{n}": (*q, {"a": q[0] - q[1]}) for kind, q in kinds.items() for n in range(12)}
    rows = []
    for split, label, number in product(range(2), LABELS, range(20)):
        own = [f"{label}{n}" for n in rng.integers(0, 12, 2)]
        text = " ".join([*own, rng.choice(list(words)), f"{split}{label[:3]}{number}"])
        rows.append({"text": text, "label": LABELS.index(label), "split": split})
    meant = pl.DataFrame(rows).with_columns(source=pl.lit("mine"))
    dealt = pl.col("label").shuffle(seed=SEED).over("split")
    every = pl.concat([meant, meant.with_columns(dealt, source=pl.lit("mine-null"))])
    (tmp_path / "texts").mkdir()
    every.write_parquet(tmp_path / "texts/en.parquet")
    if broken == "poles":
        words = {word: (q[1], q[0], {"a": q[1] - q[0]}) for word, q in words.items()}
    elif broken == "words":
        others = rng.permutation(list(words))
        words = dict(zip(others, words.values(), strict=True))
    folders = {"lexica": write_lexica(words, tmp_path / "lexica")}
    folders["labelled_texts"] = tmp_path / "texts"
    inputs = Inputs((), folders, tmp_path)
    found = recovered(inputs, "lexicon_evaluation", lexicon_evaluation.run(inputs, PARAMS), "")
    of = {(row["model"], row["measure"].partition(" ")[2]): row for row in found.to_dicts()}
    above = of["mine", "of measures with the sign of what was planted: above chance"]
    tests = of["mine", "of tests with p_bh at or below 0.05"]
    assert (above["value"] == 1 and tests["value"] == 1) == (broken == "nothing")
    assert of["mine-null", "of tests with p_bh at or below 0.05"]["value"] == 0
    held = of["mine-null", "of 95% intervals of accuracy with what labels that are dealt out give"]
    assert held["value"] == 1
    assert {row["world"] for row in found.to_dicts()} == {0, 1}
