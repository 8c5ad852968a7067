from __future__ import annotations

from pathlib import Path

import building
import polars as pl
import pytest

from plumbline.builders.core.parquet import Reject, Row
from plumbline.builders.datasets.emotions import build as emotions
from plumbline.builders.datasets.emotions.build import AFFECTS

REAL = building.REAL / "lexica/en/nrc_emolex_wordlevel_v0.92.txt"
ORDER = sorted(AFFECTS)  # as in the files


def judged(word: str, *affects: str, end: str = "\n") -> str:
    return "".join(f"{word}\t{name}\t{int(name in affects)}{end}" for name in ORDER)


def translated(*rows: tuple[str, str, str]) -> str:
    """Return a file of (English word, its one affect, translation)."""
    lines = ["\t".join(["English Word", *ORDER, "Spanish Word"])]
    for english, affect, word in rows:
        lines.append("\t".join([english, *(str(int(a == affect)) for a in ORDER), word]))
    return "\n".join(lines) + "\n"


def built_from(folder: Path, **texts: str) -> list[Row | Reject]:
    files = {f"{code}/emolex.txt": text for code, text in texts.items()}
    params = emotions.Params(version="0.1.0", snapshot="x", languages=sorted(texts))
    return list(emotions.build(building.snapshot(folder, "emotions", files), params))


def affects(row: Row) -> set[str]:
    return {name for name in AFFECTS if row.values[name]}


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_build_gathers_ten_lines_a_word(tmp_path, end):
    text = end + judged("war", "fear", "negative", end=end) + judged("chair", end=end)
    chair, war = built_from(tmp_path, en=text)
    assert (chair.values["word"], affects(chair)) == ("chair", set())
    assert (war.values["word"], war.values["english"]) == ("war", "war")
    assert affects(war) == {"fear", "negative"}


def test_build_words_that_share_a_translation(tmp_path):
    text = translated(("brave", "trust", "valiente"), ("bold", "anger", "valiente"))
    bold, brave = built_from(tmp_path, es=text)
    assert bold.values["word"] == brave.values["word"] == "valiente"
    assert (bold.values["english"], affects(bold)) == ("bold", {"anger"})
    assert (brave.values["english"], affects(brave)) == ("brave", {"trust"})


def test_build_rejects_words_without_translation(tmp_path):
    rows = (("oak", "joy", "NO TRANSLATION"), ("ash", "joy", ""), ("elm", "joy", "olmo"))
    text = translated(*rows, ("elm", "joy", "olmo"))
    kept, rejects = building.parted(built_from(tmp_path, es=text))
    assert rejects == [
        Reject("es", "oak", "no translation"),
        Reject("es", "ash", "no translation"),
        Reject("es", "elm", "a second time"),
    ]
    assert [row.values["word"] for row in kept] == ["olmo"]


@pytest.mark.slow
@building.reads("lexica/en/nrc_emolex_wordlevel_v0.92.txt")
def test_build_real_emolex_has_the_published_counts(tmp_path):
    rows, _ = building.parted(built_from(tmp_path, en=REAL.read_text("utf-8")))
    frame = pl.DataFrame([row.values for row in rows])
    assert len(frame) == 14182  # the lexicon's page: 14,182 unigrams
    # words by affect as other packages that read the same version count them
    assert {name: frame[name].sum() for name in AFFECTS} == {
        "anger": 1247,
        "anticipation": 839,
        "disgust": 1058,
        "fear": 1476,
        "joy": 689,
        "sadness": 1191,
        "surprise": 534,
        "trust": 1231,
        "positive": 2312,
        "negative": 3324,
    }
