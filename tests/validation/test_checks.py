"""Checks across the rows of a dataset: sound rows hold them all, a spoilt one fails its own."""

from datetime import date

import building
import polars as pl
import pytest

from plumbline.builders.core.parquet import Row
from plumbline.builders.datasets.corpora import build as corpora
from plumbline.builders.datasets.labelled_texts.build import LABELS, SPLITS
from plumbline.builders.datasets.lexica.build import AXES
from plumbline.builders.datasets.supersenses.build import CODES
from plumbline.builders.readers.articles import LEANINGS


def check(folder, name, rows, floors) -> set[str]:
    """Return the names of the checks that some row of some frame does not hold."""
    return set(building.failing(name, building.written(folder / name, name, rows), floors))


# labelled texts

TEXTS = {"rows_min": {"en": 6}, "label_min": 1}


def text(body: str, label: str, split: str, **changes) -> Row:
    values = {"text": body, "label": LABELS.index(label), "split": SPLITS.index(split)}
    return Row("en", values | {"source": "mine", "redistributable": True} | changes)


LABELLED = [text(f"{label} {split}", label, split) for split in SPLITS for label in LABELS]


def without(label: str) -> list[Row]:
    return [row for row in LABELLED if row.values["label"] != LABELS.index(label)]


@pytest.mark.parametrize(
    ("rows", "fails"),
    [
        (LABELLED, set()),
        ([*LABELLED, text("two  spaces", "neutral", "testing")], {"single_spaces"}),
        (
            [*LABELLED, text("a", "neutral", "testing", redistributable=False)],
            {"one_term_a_corpus"},
        ),
        (LABELLED[:-1], {"over_floor"}),
        (without("neutral"), set()),
    ],
)
def test_labelled_texts(tmp_path, rows, fails):
    assert check(tmp_path, "labelled_texts", rows, TEXTS) == fails


# lexica


def word(name: str, beta: list[float], scores: list[float], **changes) -> Row:
    values = {
        "word": name,
        "pos": [],
        **{f"beta_{a}": b for a, b in zip(AXES, beta, strict=True)},
        **{f"q_{a}": b / sum(beta) for a, b in zip(AXES, beta, strict=True)},
        "views": len(scores),
        "score": sum(scores) / len(scores),
        "seed_sd": 0.01,
        "leave_out_change": None,
        "view_names": [f"v{i}" for i in range(len(scores))],
        "view_values": [str(s) for s in scores],
        "view_scores": scores,
        "redistributable": True,
    }
    return Row("en", values | changes)


UP, DOWN, GOOD = [2.75, 1.0, 1.25], [1.0, 2.75, 1.25], [1.0, 0.5]
BAD = word("bad", [1.0, 1.75, 1.25], [-1.0])


@pytest.mark.parametrize(
    ("spoilt", "fails"),
    [
        (word("good", UP, GOOD), None),
        (word("good", [2.75, 1.0, 1.5], GOOD), "mass_is_three_and_views"),
        (word("good", UP, GOOD, q_neutral=0.5), "shares_sum_to_one"),
        (word("good", DOWN, GOOD), "praise_is_positive"),
        (word("good", UP, GOOD, seed_sd=0.4), "seeds_agree"),
        (word("good", [1.0, 1.25, 1.75], [0.2]), "over_floor"),
    ],
)
def test_lexica(tmp_path, spoilt, fails):
    floors = {"rows_min": {"en": 2}, "axis_min_share": 0.4}
    found = check(tmp_path, "lexica", [BAD, spoilt], floors)
    assert (fails in found) if fails else not found


# outlets


def piece(outlet: str, number: int, **changes) -> Row:
    values = {
        "outlet": outlet,
        "leaning": LEANINGS.index("left"),
        "date": None if number else date(2020, 1, 2),
        "topic": "",
        "text": f"Text {number} of {outlet}.\nAnd more.",
        "article": f"mine/{outlet}{number}",
        "redistributable": True,
    }
    return Row("en", values | changes)


PIECES = [piece(outlet, n) for outlet in ("control", "one", "two") for n in range(2)]
ARTICLES = {"rows_min": {"en": 6}, "articles_min": 2, "dated_min_share": 0.5}


@pytest.mark.parametrize(
    ("rows", "fails"),
    [
        (PIECES, set()),
        ([*PIECES[:5], piece("two", 1, text="A  text.")], {"single_spaces"}),
        ([*PIECES[:5], piece("two", 1, text="Text 0 of one.\nAnd more.")], {"once"}),
        ([*PIECES[:4], piece("two", 1), piece("two", 2)], {"dated"}),
        (PIECES[2:], {"over_floor", "as_many_as_others"}),
    ],
)
def test_outlets(tmp_path, rows, fails):
    assert check(tmp_path, "outlets", rows, ARTICLES) == fails


# stereotypes and social groups

SUGGESTED = {
    "category": "age",
    "group": "kids",
    "language": "en",
    "template": "why are {group} so",
    "query": "why are kids so",
    "attribute": "sad",
    "single_word": True,
    "engines": ["google", "yahoo"],
    "ranks": [1, 2],
    "wave": "2026-11-21",
    "flags": [],
    "source_row": 0,
}
GROUP = {"category": "age", "group": "kids", "name": "kids", "kind": 0}
TEEN = GROUP | {"group": "teens", "name": "teens"}


@pytest.mark.parametrize(
    ("changes", "fails"),
    [
        ({}, None),
        ({"query": "why are Kids so"}, "query_is_normal"),
        ({"template": "why is {group} so"}, "query_fits_template"),
        ({"ranks": [1]}, "a_rank_for_each_engine"),
        ({"flags": ["trend"]}, "clean"),
        ({"query": "why are teens so"}, "group_of_its_query"),
        ({"wave": "last week"}, "wave_is_a_day"),
        ({"engines": ["bing"], "ranks": [1]}, "over_floor"),
    ],
)
def test_stereotypes(tmp_path, changes, fails):
    floors = {"rows_min": {"en": 1}, "engine_min": {"google": 1}, "flagged_max_share": 0.4}
    paper = SUGGESTED | {"engines": ["multiple"], "ranks": [], "source_row": 3, "wave": "2021"}
    rows = [Row("en", SUGGESTED | changes), Row("paper", paper)]
    found = check(tmp_path, "stereotypes", rows, floors)
    assert (fails in found) if fails else not found


@pytest.mark.parametrize(
    ("rows", "fails"),
    [
        ([GROUP, TEEN], None),
        ([GROUP | {"name": "children"}, TEEN], "one_spelling"),
        ([GROUP, TEEN | {"kind": 1}], "one_kind_a_category"),
        ([GROUP], "over_floor"),
    ],
)
def test_social_groups(tmp_path, rows, fails):
    floors = {"rows_min": {"en": 1}, "category_min": 2}
    found = check(tmp_path, "social_groups", [Row("en", row) for row in rows], floors)
    assert (fails in found) if fails else not found


# supersenses and emotions: the sample, spoilt


def spoilt(sample, tmp_path, name, change) -> dict[str, list]:
    frame = change(pl.read_parquet(sample(name) / "en.parquet"))
    (tmp_path / name).mkdir(exist_ok=True)
    frame.write_parquet(tmp_path / name / "en.parquet")
    return building.failing(name, tmp_path / name)


def of(lemma, value, column):
    return pl.when(pl.col("lemma") == lemma).then(value).otherwise(column).alias(column)


CALM = (pl.col("lemma") == "calm") & pl.col("best")
TO_VERB = pl.when(CALM).then(CODES["verb.weather"]).otherwise("supersense").alias("supersense")


@pytest.mark.parametrize(
    ("change", "fails"),
    [
        (of("yawn", 0.5, "weight"), "weights_sum_to_one"),
        (of("calm", pl.lit(value=True), "best"), "adjective_has_all_classes_and_one_choice"),
        (TO_VERB, "classes_of_its_part_of_speech"),
    ],
)
def test_supersenses(sample, tmp_path, change, fails):
    found = spoilt(sample, tmp_path, "supersenses", lambda f: f.with_columns(change))
    assert [key[0] for key in found[fails]] in (["yawn"], ["calm"])


def test_a_class_or_an_affect_that_lost_its_words_is_told(sample, tmp_path):
    weather = pl.col("supersense") != CODES["verb.weather"]
    found = spoilt(sample, tmp_path, "supersenses", lambda f: f.filter(weather))
    assert ("verb.weather", 0, 2) in found["over_floor"]
    found = spoilt(sample, tmp_path, "emotions", lambda f: f.with_columns(joy=pl.lit(value=False)))
    assert ("en", "joy", 0, 25) in found["over_floor"]


def test_words_of_both_signs_and_judgements_that_differ_between_languages_are_told(
    sample, tmp_path
):
    both = pl.lit(value=True)
    found = spoilt(
        sample, tmp_path, "emotions", lambda f: f.with_columns(positive=both, negative=both)
    )
    assert "of_one_sign" in found
    assert "same_judgement_in_all_languages" not in found
    frame = pl.read_parquet(tmp_path / "emotions/en.parquet")
    frame.with_columns(anger=~pl.col("anger")).write_parquet(tmp_path / "emotions/es.parquet")
    assert "same_judgement_in_all_languages" in building.failing("emotions", tmp_path / "emotions")


# corpora

CORPORA = {"rows_min": {}, "dated_min_share": 0.5, "words_max_ratio": 1.5}
CORPORA["period_min"] = {"before": 1, "from": 1}


def entry(config: str, number: int, **changes) -> Row:
    kind, _, leaning = config.partition("-")
    values = {
        "id": f"{config}/{number}",
        "text": f"Text {number} of {config}.\nAnd more.",
        "kind": corpora.KINDS.index(kind),
        "leaning": corpora.LEANINGS.index(leaning),
        "outlet": f"Paper of the {leaning}" if kind == "news" else f"r/{leaning}",
        "date": ("2017-01-19", "2017-01-20", "")[number % 3],
        "period": number % 3,
        "hate_score": None,
        "flags": ["date"] if number % 3 == 2 else [],
        "words": 6,
    }
    return Row(config, values | changes)


def sound(**changed) -> list[Row]:
    """Return two dated and an undated text of every corpus, the first of the left changed."""
    rows = [entry(config, n) for config in corpora.CONFIGS for n in range(3)]
    return [entry("news-left", 0, **changed), *rows[1:]]


@pytest.mark.parametrize(
    ("changes", "fails"),
    [
        ({}, set()),
        ({"text": "as /u/[user] said, it was so"}, set()),
        ({"text": "Text 0  of news-left. And so more."}, {"single_spaces", "as_many_words"}),
        ({"words": 7}, {"as_many_words"}),
        ({"date": "2017-01-20"}, {"in_its_period"}),
        ({"date": "19 January"}, {"in_its_period", "date_or_empty", "flagged_if_undated", "dated"}),
        ({"kind": 1}, {"of_the_kind"}),
        ({"text": "as /u/some_body said, it is so"}, {"no_names_of_users"}),
        ({"id": "social-right/1"}, {"id_once"}),
        ({"text": "a b c d " * 5 + "e f", "words": 22}, {"comparable"}),
    ],
)
def test_corpora(tmp_path, changes, fails):
    assert check(tmp_path, "corpora", sound(**changes), CORPORA) == fails


def test_a_corpus_that_is_missing_or_of_no_known_name_is_told(tmp_path):
    rows = [r for r in sound() if r.config != "social-center"]
    assert check(tmp_path, "corpora", rows, CORPORA) == {
        "comparable",
        "enough_of_each_period",
        "there",
    }
    odd = [r._replace(config="news-far") if r.config == "news-left" else r for r in sound()]
    wrong = check(tmp_path / "b", "corpora", odd, CORPORA)
    assert {"of_the_leaning", "there"} <= wrong
