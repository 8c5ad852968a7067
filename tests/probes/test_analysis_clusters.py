"""Clusters of words: planted structure is found with its genders, none is found where none is."""

import associated
import numpy as np
import polars as pl
import pytest
from scipy.stats import fisher_exact

from plumbline.builders.core.errors import UserError
from plumbline.builders.datasets.politicians.person import GENDERS
from plumbline.probes.core.run_analysis import Inputs
from plumbline.probes.politicians import clusters, pmi

PARAMS = clusters.Params(
    version="1.0.0",
    genders=["male", "female"],
    top_k=30,
    clusters=[2, 3, 4],
    seeds=[1, 2, 3],
    n_simulations=19,
    n_bootstrap=200,
)


def written(folder, words, model="by-hand"):
    """Write tables and outputs: ``words`` are word, deviations by gender, state, language, pos."""
    inputs = Inputs((model,), {"politicians": folder / "people"}, folder)
    inputs.outputs("associations", model).mkdir(parents=True)  # without lists
    rows, states = [], {}
    for word, deviations, state, language, pos in words:
        for gender, value in enumerate(deviations):
            for reading, sign in (("plug-in", -1), ("smoothed", 1)):  # the first is not read
                row = {"language": language, "pos": pos, "word": word, "form": word}
                row |= {"unit": "lemma", "gender": GENDERS[gender], "reading": reading}
                rows.append(row | {"model": model, "value": sign * value})
        states.setdefault(language, {})[word] = [float(x) for x in state]
    schema = pl.from_arrow(pmi.SCHEMAS["pmi"].arrow().empty_table()).schema
    tables, outputs = inputs.tables("pmi", model), inputs.outputs("representations", model)
    tables.mkdir(parents=True)
    pl.DataFrame(rows, schema=schema).write_parquet(tables / "pmi.parquet")
    for language, found in states.items():
        (outputs / language).mkdir(parents=True)
        frame = pl.DataFrame({"word": list(found), "state": list(found.values())})
        for n in range(2):  # shards
            frame[n::2].write_parquet(outputs / language / f"{n:05d}.parquet")
    return inputs


def crowd(rng, n, language="en", pos="ADJ", apart=0.0, stems=("m", "w"), width=20):
    """Draw words of two genders, whose states lie apart or not."""
    words = []
    for gender, stem in enumerate(stems):
        for i in range(n):
            state = rng.normal(size=width)
            state[gender] += apart
            deviation = rng.uniform(0.1, 2)
            both = (deviation, -deviation) if gender == 0 else (-deviation, deviation)
            words.append((f"{stem}{i:03d}", (*both, 9.0), state, language, pos))
    return words


def test_run_genders_that_lie_apart(tmp_path):
    inputs = written(tmp_path, crowd(np.random.default_rng(1), 25, apart=20.0))
    found = clusters.run(inputs, PARAMS)
    assert {*found["words"]["reading"]} == {"largest"}
    together = found["words"].filter(group="together")
    assert together.select("cluster_id", "gender").n_unique() == 2
    assert together["gender"].to_list() == ["male"] * 25 + ["female"] * 25
    shares = found["shares"]
    assert sorted(shares["value"]) == [0, 0, 1, 1]
    true = fisher_exact([[25, 0], [0, 25]]).pvalue
    for row in shares.iter_rows(named=True):
        assert row["p"] == pytest.approx(true, rel=1e-5)
        assert (row["expected"], row["words"], row["n"]) == (0.5, 25, 25)
        assert row["low"] <= row["value"] <= row["high"]
    fits = found["fits"].filter(pl.col("chosen"), group="together")
    assert set(fits["clusters"]) == {2}
    values = dict(zip(fits["measure"], fits["value"], strict=True))
    assert values["stability"] == 1
    assert values["silhouette"] > 0.5
    assert values["gap"] > 0
    assert fits.filter(measure="silhouette")["p"][0] == 0.1  # 2 / 20, the least of 19 draws
    # each gender by itself is one cloud
    single = found["fits"].filter(pl.col("group") != "together", measure="silhouette")
    assert single["p_bh"].min() > 0.1


def test_run_lemma_has_the_state_of_its_form(tmp_path):
    inputs = written(tmp_path, crowd(np.random.default_rng(1), 25, apart=20.0))
    before = clusters.run(inputs, PARAMS)["words"]
    path = inputs.tables("pmi", "by-hand") / "pmi.parquet"
    table = pl.read_parquet(path)
    lemmas = table.with_columns(word=pl.col("word") + " (lemma)")
    forms = table.with_columns(unit=pl.lit("form"), value=-pl.col("value"))
    pl.concat([lemmas, forms]).write_parquet(path)
    after = clusters.run(inputs, PARAMS)["words"]
    assert after["word"].str.ends_with(" (lemma)").all()
    assert after.with_columns(pl.col("word").str.strip_suffix(" (lemma)")).equals(before)


def by_topic(folder, lists, topics):
    """Write lists of people, letter and words, and states of words in topics that lie apart."""
    study = associated.Study(folder)
    genders = "".join(letter for letter, _ in lists)
    study.write("en", {"ADJ": [words for _, words in lists]}, genders)
    rng = np.random.default_rng(5)
    centres = 50 * np.eye(len(topics))
    states = [
        (w, centres[i] + rng.normal(size=len(topics))) for i, t in enumerate(topics) for w in t
    ]
    where = study.inputs.outputs("representations", study.model) / "en"
    where.mkdir(parents=True)
    frame = pl.DataFrame({"word": [w for w, _ in states], "state": [[*s] for _, s in states]})
    frame.write_parquet(where / "00000.parquet")
    tables = study.inputs.tables("pmi", study.model)
    tables.mkdir(parents=True)
    pl.from_arrow(pmi.SCHEMAS["pmi"].arrow().empty_table()).write_parquet(tables / "pmi.parquet")
    return study.inputs


def test_run_faithful_words_count_for_whom_they_were_generated(tmp_path):
    sizes = {"a": 9, "b": 8, "c": 7, "d": 6, "e": 5}
    topics = [[f"{letter}{n}" for n in range(size)] for letter, size in sizes.items()]
    men = [w for i in (0, 1, 2, 3) for w in topics[i]]  # the fifth topic is for women alone
    women = [w for i in (0, 1, 4) for w in topics[i]] + topics[2][:1]
    lists = [("m", " ".join(men)), ("m", "a0"), ("w", " ".join(women)), ("x", "f0")]
    found = clusters.run(by_topic(tmp_path, lists, [*topics, ["f0"]]), PARAMS)
    assert {*found["fits"]["clusters"]} == {5}
    assert found["fits"]["p"].count() == 0
    assert "f0" not in found["words"]["word"]
    shares = {(r["cluster_id"], r["gender"]): r for r in found["shares"].iter_rows(named=True)}
    assert [shares[part, "male"]["words"] for part in range(5)] == [9, 8, 7, 6, 5]
    # nine words of either gender, counted once for each; of seven and one there are eight
    assert [shares[part, "male"]["value"] for part in range(5)] == [0.5, 0.5, 0.875, 1, 0]
    assert {row["expected"] for row in shares.values()} == {round(30 / 53, 6), round(23 / 53, 6)}
    assert all(row["low"] <= row["value"] <= row["high"] for row in shares.values())
    # of 35 words 5 are women's alone: all of them in the cluster of five, by chance never
    assert shares[4, "female"]["p"] == 1 / (1 + PARAMS.n_permutations)
    words = found["words"].filter(group="together")
    genders = dict(words.select("word", "gender").iter_rows())
    assert [genders[word] for word in ("a0", "c0", "c1", "e0")] == [None, None, "male", "female"]
    assert len(found["words"].filter(group="male")) == 30


def test_deviating_takes_the_largest_of_one_gender(tmp_path):
    state = np.random.default_rng(2).normal(size=(9, 4))
    deviations = {
        "a": (3, -1),
        "b": (2, -1),
        "c": (1, -9),
        "d": (0.5, 2.5),  # of both: more a women's word
        "e": (-1, 4),
        "f": (-1, 1),
        "g": (0, 0),
        "h": (-1, -2),
    }
    rows = [(w, (*d, 8.0), state[i], "en", "ADJ") for i, (w, d) in enumerate(deviations.items())]
    inputs = written(tmp_path, rows)
    table = pl.read_parquet(inputs.tables("pmi", "by-hand") / "pmi.parquet")

    def words(**changed):
        return clusters.deviating(table, PARAMS.model_copy(update=changed)).drop("form").rows()

    both = words(top_k=3)
    assert both == [*((w, "male") for w in "abc"), *((w, "female") for w in "def")]
    assert [w for w, _ in words(top_k=2, genders=["female"])] == ["d", "e"]
    assert [w for w, _ in words(top_k=3, genders=["non-binary"])] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("changed", "message"),
    [({"clusters": [5]}, "5 clusters"), ({}, "m000, w000"), ({"genders": ["women"]}, "women")],
)
def test_run_refuses(tmp_path, changed, message):
    inputs = written(tmp_path, crowd(np.random.default_rng(4), 2))
    if not changed:
        (inputs.outputs("representations", "by-hand") / "en" / "00000.parquet").unlink()
    with pytest.raises(UserError, match=message):
        clusters.run(inputs, PARAMS.model_copy(update=changed))
