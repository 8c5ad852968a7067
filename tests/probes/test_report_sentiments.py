from xml.etree import ElementTree as ET

import polars as pl
import pytest
from page_read import put, shown

from plumbline.probes.politicians import page, sentiment
from plumbline.probes.report import figures
from plumbline.probes.stats.estimate import typed

BASE = {"pos": 0, "deviation": 0, "reading": 1, "top_k": 100, "candidates": 300, "left_out": 0}
BASE |= {"n": 10, "cluster": "", "method": "", "null": "", "p_bh": None, "p": None}


def write(folder, places, p_bh):
    """``places`` are models and languages; ``p_bh`` has a value for each test."""
    shares, apart = [], []
    for model, language in places:
        for s in range(3):
            place = BASE | {"model": model, "language": language, "sentiment": s}
            for gender in range(2):
                row = {"gender": gender, "hits": 30, "base": 0.3, "names": 10}
                row |= {"value": 0.3 + 0.1 * gender, "low": 0.2, "high": 0.5}
                shares.append(place | row)
            for test, p in enumerate(p_bh):
                row = {"test": test, "value": -0.1, "low": -0.2, "high": 0.1, "p": p, "p_bh": p}
                row |= {"p_bonferroni": 1.0, "detectable_bonferroni": 0.3, "family": 3}
                apart.append(place | row)
    tables = {
        name: typed(pl.DataFrame(rows), sentiment.SCHEMAS[name], 0.95)
        for name, rows in (("shares", shares), ("differences", apart))
    }
    put(folder / "tables/sentiment", sentiment.SCHEMAS, tables)


def blocks(folder):
    (section,), _ = shown(folder, page.STUDY, "sentiments")
    return [block for group in section.groups for block in group.blocks]


@pytest.fixture
def drawn(monkeypatch):
    """Return what was to be drawn, in place of pictures."""
    seen = []

    def forest(rows, *, title, **_):
        seen.append((title, rows))
        return "<svg/>"

    monkeypatch.setattr(figures, "forest", forest)
    return seen


def test_models_in_each_language_and_languages_of_each_model_of_several(tmp_path, drawn):
    write(tmp_path, [("a", "en"), ("b", "en"), ("b", "fr")], [0.5, 0.01])
    (block,) = blocks(tmp_path)
    assert block.title == "ADJ, pmi, argmax"
    assert [part.figure for part in block.parts] == ["<svg/>"] * 3 + [""]
    (table,) = block.parts[-1].tables
    assert table.caption == "Men and women, difference of the shares"
    assert "miss" in table.note
    (names,) = block.parts[0].tables
    assert names.rows == [["a", "10", "10", "–"], ["b", "10", "10", "–"]]
    labels = {title.split(":")[0]: {r["label"] for r in rows} for title, rows in drawn}
    assert labels == {"en": {"a", "b"}, "fr": {"b"}, "b": {"en", "fr"}}
    assert [len(rows) for _, rows in drawn] == [12, 6, 12]


@pytest.mark.parametrize(
    ("p_bh", "starred"), [([0.5, 0.01], True), ([0.01, 0.5], False), ([0.01], True)]
)
def test_the_star_is_that_of_names_where_there_is_one(tmp_path, drawn, p_bh, starred):
    write(tmp_path, [("a", "en")], p_bh)
    blocks(tmp_path)
    men = [r["significant"] for _, rows in drawn for r in rows if r["gender"] == "male"]
    assert set(men) == {starred}


def test_the_figure_marks_every_share_and_each_line_once(tmp_path):
    write(tmp_path, [("a", "en"), ("b", "en")], [0.01])
    (block,) = blocks(tmp_path)
    (figure,) = (part.figure for part in block.parts if part.figure)
    ET.fromstring(figure)
    assert figure.count('font-size="16">*<') == 6  # a star for each model and sentiment
    assert figure.count('fill="#fff" stroke="#000"') == 3 + 1  # women: in panels, in the legend
    assert [figure.count(f">{name}</text>") for name in "ab"] == [1, 1]


def test_the_page_has_them_between_results_and_lexica(finished):
    text = (finished / "data/report/politicians.html").read_text(encoding="utf-8")
    at = [text.index(f'id="{name}"') for name in ("results", "sentiments", "lexicon_evaluation")]
    assert at == sorted(at)
    assert "<summary>ADJ, pmi, argmax (" in text
    assert "<summary>VERB, pmi, argmax (" in text
