"""Clusters of words: planted structure is found with its genders, none is found where none is."""

import associated
import numpy as np
import polars as pl
import pytest
from scipy.stats import fisher_exact

from plumbline.builders.core.errors import UserError
from plumbline.probes.core.run_analysis import Inputs, analyse
from plumbline.probes.core.run_probe import probe
from plumbline.probes.models.files import pin
from plumbline.probes.politicians import clusters, pmi
from plumbline.probes.politicians.words import cluster_rows
from plumbline.probes.stats.estimate import CRITICAL, with_detectable

PARAMS = clusters.Params(
    version="1.0.0",
    genders=["male", "female"],
    top_k=30,
    clusters=[2, 3, 4],
    seeds=[1, 2, 3],
    n_simulations=19,
    n_bootstrap=200,
)
JOINT = cluster_rows.GROUPS.index("together")
SILHOUETTE = cluster_rows.MEASURES.index("silhouette")


def written(folder, words, model="by-hand"):
    """Write tables and outputs: ``words`` are word, deviations by gender, state, language, pos."""
    inputs = Inputs((model,), {"politicians": folder / "people"}, folder)
    inputs.outputs("associations", model).mkdir(parents=True)  # without lists
    rows, states = [], {}
    for word, deviations, state, language, pos in words:
        for gender, value in enumerate(deviations):
            for reading in (0, 1):  # the plug-in is there to be left alone
                own = {"language": language, "pos": pos, "word": word, "lemma": word, "form": word}
                own |= {"unit": 0, "gender": gender, "reading": reading, "model": model}
                rows.append(own | {"value": value if reading else -value})
        states.setdefault(language, {})[word] = [float(x) for x in state]
    schema = pl.from_arrow(pmi.PMI.arrow().empty_table()).schema
    tables, outputs = inputs.tables("pmi", model), inputs.outputs("representations", model)
    tables.mkdir(parents=True)
    pl.DataFrame(rows, schema=schema).write_parquet(tables / "pmi.parquet")
    for language, found in states.items():
        (outputs / language).mkdir(parents=True)
        frame = pl.DataFrame({"word": list(found), "state": list(found.values())})
        for n in range(2):  # shards
            frame[n::2].write_parquet(outputs / language / f"{n:05d}.parquet")
    return inputs


def test_a_lemma_has_the_state_of_its_form_in_most_lists(tmp_path):
    inputs = written(tmp_path, crowd(np.random.default_rng(1), 25, apart=20.0))
    before = clusters.run(inputs, PARAMS)["words"]
    path = inputs.tables("pmi", "by-hand") / "pmi.parquet"
    table = pl.read_parquet(path)
    lemmas = table.with_columns(word=pl.col("word") + " (lemma)")
    forms = table.with_columns(unit=1, value=-pl.col("value"))
    pl.concat([lemmas, forms], how="vertical_relaxed").write_parquet(path)
    after = clusters.run(inputs, PARAMS)["words"]
    assert after["word"].str.ends_with(" (lemma)").all()
    assert after.with_columns(pl.col("word").str.strip_suffix(" (lemma)")).equals(before)


def crowd(rng, n, language="en", pos=0, apart=0.0, stems=("m", "w"), width=20):
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


def test_words_of_genders_that_lie_apart_are_told_apart_to_the_last_word(tmp_path):
    inputs = written(tmp_path, crowd(np.random.default_rng(1), 25, apart=20.0))
    found = clusters.run(inputs, PARAMS)
    assert {*found["words"]["reading"]} == {cluster_rows.LARGEST}
    together = found["words"].filter(group=JOINT)
    assert len(together) == 50
    assert together.select("cluster_id", "gender").n_unique() == 2
    assert together["gender"].to_list() == [0] * 25 + [1] * 25
    shares = {(r["cluster_id"], r["gender"]): r for r in found["shares"].iter_rows(named=True)}
    assert sorted(r["value"] for r in shares.values()) == [0, 0, 1, 1]
    # by Fisher's exact test 17 of 25 are too many for either gender, and 16 are not
    assert fisher_exact([[17, 8], [8, 17]])[1] < 0.05 < fisher_exact([[16, 9], [9, 16]])[1]
    for row in shares.values():  # with half of all words in a part, a share varies less
        error = (row["high"] - row["low"]) / 2 / 1.959964 * 0.5**0.5
        assert row["detectable"] == pytest.approx(16.5 / 25 - 0.5 + 0.841621 * error, abs=1e-5)
    true = fisher_exact([[25, 0], [0, 25]]).pvalue
    for row in shares.values():
        assert row["p"] == pytest.approx(true, rel=1e-5)
        assert (row["expected"], row["words"], row["n"]) == (0.5, 25, 25)
        assert row["count"] in (0, 25)
        assert row["family"] == 4
        assert row["low"] <= row["value"] <= row["high"]
    fits = found["fits"].filter(pl.col("chosen"), group=JOINT)
    assert set(fits["clusters"]) == {2}
    values = dict(zip(fits["measure"], fits["value"], strict=True))
    assert values[cluster_rows.MEASURES.index("stability")] == 1
    assert values[SILHOUETTE] > 0.5
    assert values[cluster_rows.MEASURES.index("gap")] > 0
    # each gender by itself is one cloud
    alone = found["fits"].filter(pl.col("group") != JOINT, measure=1)
    assert alone["p_bh"].min() > 0.1
    assert fits.filter(measure=1)["p"][0] == 0.1  # 2 / 20, the least of 19 draws


@pytest.mark.parametrize(("women", "far"), [(6, 17 / 6), (0, 13 / 6)])
def test_a_share_is_judged_by_what_its_own_side_needs(women, far):
    # of 60 words, 20 of women, 8 are in a part: 8 / 3 of women are expected. By Fisher's exact test
    # six are too many and five are not, none is too few and one is not; of men it is the reverse
    p = [fisher_exact([[n, 20 - n], [8 - n, 32 + n]])[1] <= 0.05 for n in range(9)]
    assert p == [True, *[False] * 5, True, True, True]
    parts = np.repeat([0, 1], [8, 52])
    female = np.r_[np.arange(8) < women, np.arange(52) < 20 - women]
    members = np.stack([~female, female], axis=1)
    rows = list(cluster_rows.share_rows(members, ["male", "female"], parts, PARAMS))
    table = with_detectable(pl.DataFrame(rows, infer_schema_length=None), 0.95)
    assert len(table) == 4
    for row in table.to_dicts():
        words = 52 if row["cluster_id"] else 8
        half = (row["high"] - row["low"]) / 2 / 1.959964 * (1 - words / 60) ** 0.5
        assert row[CRITICAL] == pytest.approx(far / words)  # half a word before the least found
        assert row["detectable"] == pytest.approx(far / words + 0.841621 * half, abs=3e-6)


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
    pl.from_arrow(pmi.PMI.arrow().empty_table()).write_parquet(tables / "pmi.parquet")
    return study.inputs


def test_all_generated_words_are_in_five_clusters_and_count_for_whom_they_were_generated(tmp_path):
    sizes = {"a": 9, "b": 8, "c": 7, "d": 6, "e": 5}
    topics = [[f"{letter}{n}" for n in range(size)] for letter, size in sizes.items()]
    men = [w for i in (0, 1, 2, 3) for w in topics[i]]  # the fifth topic is for women alone
    women = [w for i in (0, 1, 4) for w in topics[i]] + topics[2][:1]
    lists = [("m", " ".join(men)), ("m", "a0"), ("w", " ".join(women)), ("x", "f0")]
    found = clusters.run(by_topic(tmp_path, lists, [*topics, ["f0"]]), PARAMS)
    assert {*found["fits"]["clusters"]} == {5}
    assert found["fits"]["p"].null_count() == len(found["fits"])
    assert "f0" not in found["words"]["word"]
    shares = {(r["cluster_id"], r["gender"]): r for r in found["shares"].iter_rows(named=True)}
    counts = {key: (row["count"], row["words"]) for key, row in shares.items()}
    here = [(9, 9), (9, 9), (8, 8), (8, 8), (7, 7), (1, 7), (6, 6), (0, 6), (0, 5), (5, 5)]
    assert [counts[part, gender] for part in range(5) for gender in (0, 1)] == here
    # nine words of either gender, counted once for each; of seven and one there are eight
    values = [shares[part, 0]["value"] for part in range(5)]
    assert values == [0.5, 0.5, 0.875, 1, 0]
    assert {row["expected"] for row in shares.values()} == {round(30 / 53, 6), round(23 / 53, 6)}
    assert all(row["low"] <= row["value"] <= row["high"] for row in shares.values())
    # of 35 words 5 are women's alone: all of them in the cluster of five, by chance never
    assert shares[4, 1]["p"] == 1 / (1 + PARAMS.n_permutations)
    words = found["words"].filter(group=JOINT)
    of = {row["word"]: (row["gender"], row["lists"]) for row in words.iter_rows(named=True)}
    assert (of["a0"], of["c1"], of["e0"], of["c0"]) == ((None, 3), (0, 1), (1, 1), (None, 2))
    alone = found["words"].filter(group=0)  # men's words, each with their lists
    assert dict(alone.select("word", "lists").iter_rows())["a0"] == 2
    assert len(alone) == 30


@pytest.mark.slow
def test_where_states_know_nothing_of_gender_shares_are_at_their_level(tmp_path):
    rng = np.random.default_rng(7)
    words = [
        word
        for number in range(20)  # languages of their own: a test each
        for word in crowd(rng, 20, language=f"l{number:02d}", width=6)
    ]
    params = PARAMS.model_copy(update={"clusters": [2], "n_bootstrap": 100, "seeds": [1, 2]})
    found = clusters.run(written(tmp_path, words), params)
    p = found["shares"].filter(cluster_id=0, gender=0)["p"]
    assert len(p) == 20
    assert (p <= 0.05).sum() <= 4, "seed 7"  # binomial of 20 at 0.05: 5 or more in 3 of 1000
    assert p.mean() > 0.3
    silhouettes = found["fits"].filter(measure=1)
    assert (silhouettes["p"] <= 0.1).mean() < 0.2


def test_words_are_those_of_the_largest_smoothed_deviation_of_one_gender(tmp_path):
    state = np.random.default_rng(2).normal(size=(9, 4))
    deviations = {
        "a": (3, -1),
        "b": (2, -1),
        "c": (1, -9),  # third of the men's, two are taken
        "d": (0.5, 2.5),  # of both: more a women's word
        "e": (-1, 4),
        "f": (-1, 1),
        "g": (0, 0),
        "h": (-1, -2),
    }
    rows = [(w, (*d, 8.0), state[i], "en", 0) for i, (w, d) in enumerate(deviations.items())]
    inputs = written(tmp_path, rows)
    table = pl.read_parquet(inputs.tables("pmi", "by-hand") / "pmi.parquet")
    two = PARAMS.model_copy(update={"top_k": 3})
    assert clusters.deviating(table, two).drop("form").rows() == [
        *(("a", 0, 3.0), ("b", 0, 2.0), ("c", 0, 1.0)),
        *(("d", 1, 2.5), ("e", 1, 4.0), ("f", 1, 1.0)),
    ]
    one = PARAMS.model_copy(update={"top_k": 2, "genders": ["female"]})
    assert clusters.deviating(table, one)["word"].to_list() == ["d", "e"]
    third = PARAMS.model_copy(update={"genders": ["non-binary"], "top_k": 3})
    assert clusters.deviating(table, third)["word"].to_list() == ["a", "b", "c"]


@pytest.mark.slow
def test_the_same_bytes_come_out_whatever_the_order_and_other_languages(tmp_path):
    rng = np.random.default_rng(3)
    english, french = crowd(rng, 12), crowd(rng, 12, language="fr", pos=1)
    params = PARAMS.model_copy(update={"clusters": [2, 3]})
    one = clusters.run(written(tmp_path / "one", english + french), params)
    other = clusters.run(written(tmp_path / "other", french[::-1] + english[::-1]), params)
    alone = clusters.run(written(tmp_path / "alone", english), params)
    for name in clusters.SCHEMAS:
        assert one[name].equals(other[name])
        part = one[name].filter(language="en").drop("p_bh", "family", "detectable_bh", strict=False)
        assert part.equals(alone[name].drop("p_bh", "family", "detectable_bh", strict=False))
        key = list(clusters.SCHEMAS[name].key)
        assert one[name].select(key).is_duplicated().sum() == 0


def test_what_cannot_be_clustered_is_told(tmp_path):
    words = crowd(np.random.default_rng(4), 2)
    inputs, five = written(tmp_path / "few", words), PARAMS.model_copy(update={"clusters": [5]})
    with pytest.raises(UserError, match="deviate for 5 clusters"):
        clusters.run(inputs, five)
    inputs = written(tmp_path / "lack", words)
    path = inputs.outputs("representations", "by-hand") / "en" / "00000.parquet"
    path.unlink()
    with pytest.raises(UserError, match="no state of m000, w000"):
        clusters.run(inputs, PARAMS)
    with pytest.raises(UserError, match="no 'women'"):
        clusters.run(inputs, PARAMS.model_copy(update={"genders": ["women"]}))


@pytest.mark.slow
def test_tables_of_a_model_are_made_from_its_outputs(place, change):
    def quick(tree):
        tree["analysis"]["clusters"] |= {
            "n_simulations": 19,
            "n_bootstrap": 100,
            "clusters": [2, 3],
        }
        tree["analysis"]["pmi"]["min_count"] = 1
        tree["models"]["tiny"]["languages"] = ["en"]

    change(quick)
    pin("tiny")
    with pytest.raises(UserError, match="run `make repro STAGE=representations@tiny` first"):
        analyse("clusters", "tiny")
    for name in ("associations", "representations"):
        probe(name, "tiny")
    analyse("pmi", "tiny")
    folder = analyse("clusters", "tiny")
    assert {p.name for p in folder.glob("*.parquet")} == {
        *("fits.parquet", "shares.parquet", "words.parquet")
    }
    first = {p.name: p.read_bytes() for p in folder.iterdir()}
    assert first == {p.name: p.read_bytes() for p in analyse("clusters", "tiny").iterdir()}
    words = pl.read_parquet(folder / "words.parquet")
    assert words.select("pos", "group").n_unique() == 6
    assert set(words["model"]) == {"tiny"}
