"""The lists of a model as a matrix of distinct names by words."""

import polars as pl
import pytest

from plumbline.probes.politicians.words.word_counts import Lists, by_name


@pytest.fixture
def folders(tmp_path):
    """Two men of one name, a woman of the same, a woman; a verb, two frames."""
    outputs, people = tmp_path / "outputs", tmp_path / "people"
    for folder in (outputs / "en", outputs / "coverage", people):
        folder.mkdir(parents=True)
    heard = {(qid, "bare"): "kind calm" for qid in ("Q1", "Q2", "Q3")}
    heard |= {("Q4", "bare"): "kind grim"}
    heard |= {("Q1", "said"): "loud calm", ("Q4", "said"): "loud grim"}
    rows = [
        {"qid": qid, "word": word, "lemma": word.upper(), "pos": 0, "rank": r, "frame": frame}
        for (qid, frame), words in heard.items()
        for r, word in enumerate(words.split(), 1)
    ]
    rows.append({"qid": "Q1", "word": "runs", "lemma": "run", "pos": 1, "rank": 1, "frame": "bare"})
    for part in range(2):
        pl.DataFrame(rows[part::2]).write_parquet(outputs / "en" / f"{part}.parquet")
    frame = pl.DataFrame(
        {
            "qid": ["Q1", "Q2", "Q3", "Q4", "Q5"],
            "name": ["Bo", "Bo", "Bo", "Ada", "Nobody asked"],
            "gender": [0, 0, 1, 1, 2],
        }
    )
    frame.write_parquet(people / "en.parquet")
    return outputs, people


def lists(outputs, people, language, pos, least, unit="form"):
    source = Lists((outputs / language,), pos, unit)
    return by_name(source, people / f"{language}.parquet", least)


def table(found):
    names = [f"{row['name']} {row['gender']}" for row in found.names.iter_rows(named=True)]
    cells = found.matrix.toarray()
    return {
        name: {w for w, there in zip(found.words["word"], row, strict=True) if there}
        for name, row in zip(names, cells, strict=True)
    }


def test_a_name_is_there_once_for_each_gender_that_has_it(folders):
    found = lists(*folders, "en", 0, 1)
    assert table(found) == {
        "Ada 1": {"kind", "grim"},
        "Bo 0": {"kind", "calm"},
        "Bo 1": {"kind", "calm"},
    }
    assert set(found.matrix.data) == {1}
    assert found.labels == (0, 1)
    assert found.names.filter(pl.col("gender") == 0)["name"].to_list() == ["Bo"]
    of = [("kind", 3), ("calm", 2), ("grim", 1)]
    assert found.words.rows() == [(w, w, w.upper(), n) for w, n in of]


def test_parts_of_speech(folders):
    assert table(lists(*folders, "en", 1, 1)) == {"Bo 0": {"runs"}}
    assert table(lists(*folders, "en", 1, 1, unit="lemma")) == {"Bo 0": {"run"}}
