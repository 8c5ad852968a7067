"""Classes of words: known answers, planted classes, intervals over names."""

import numpy as np
import polars as pl
import pytest
from scipy.stats import spearmanr

from plumbline.builders.core.errors import UserError
from plumbline.builders.datasets.politicians.person import GENDERS
from plumbline.builders.datasets.supersenses.build import ADJECTIVES, CLASSES, CODES
from plumbline.builders.datasets.words.build import POS
from plumbline.probes.core.run_analysis import Inputs
from plumbline.probes.politicians import latent, pmi, supersenses
from plumbline.probes.politicians.supersenses import PAIRS, by_class, within

SEED = 1789
PARAMS = supersenses.Params(version="1.0.0", top_k=100, n_bootstrap=400, n_permutations=199)
PMI = pmi.Params(version="1.0.0", smoothing=0.5, min_count=3, n_bootstrap=100)


def dataset(**lemmas):
    """Make rows of the dataset from the best classes of each lemma."""
    rows = [
        (lemma, int(name.startswith("verb")), CODES[name], 1 / len(names.split()), True)
        for lemma, names in lemmas.items()
        for name in names.split()
    ]
    return pl.DataFrame(rows, schema=["lemma", "pos", "supersense", "weight", "best"], orient="row")


def labelled(classes):
    return classes.with_columns(
        pl.col("pos").replace_strict([0, 1], POS, return_dtype=pl.String),
        pl.col("supersense").replace_strict(range(len(CLASSES)), CLASSES),
    )


def deviating(rows, pos="ADJ"):
    """Make deviations from (lemma, gender, value)."""
    table = pl.DataFrame(rows, schema=["word", "gender", "value"], orient="row")
    return table.with_columns(pos=pl.lit(pos))


def compared(rows, classes, source="pmi", sentiment="all", **changed):
    pos = "VERB" if classes["pos"][0] else "ADJ"
    table = deviating(rows, pos) if isinstance(rows, list) else rows
    params = PARAMS.model_copy(update=changed)
    return by_class(table, labelled(classes), params, source, sentiment)


def cells(table, **chosen):
    """Return the rows of one comparison by supersense."""
    wanted = {"first": "female", "second": "male"} | chosen
    return {row["supersense"]: row for row in table.filter(**wanted).iter_rows(named=True)}


def test_by_class_30_of_100_against_15_of_100():
    classes, rows = {}, []
    for gender, other, body in (("female", "male", 30), ("male", "female", 15)):
        for i in range(100):
            word = f"{gender}{i:03d}"
            classes[word] = "adj.body" if i < body else "adj.mind"
            rows += [(word, gender, 2.0 + i / 100), (word, other, -1.0)]
    found = cells(compared(rows, dataset(**classes)))
    assert sorted(found) == sorted(f"adj.{name}" for name in ADJECTIVES)
    body = found["adj.body"]
    assert (body["words_first"], body["n"]) == (100, 200)
    assert body["value"] == pytest.approx(0.15)
    assert body["p"] == pytest.approx(0.017149, abs=5e-7)
    assert body["p_bonferroni"] == pytest.approx(13 * 0.017149, abs=7e-6)
    assert found["adj.weather"]["p"] == 1
    assert found["adj.weather"]["low"] < 0 < found["adj.weather"]["high"]


def test_by_class_takes_the_largest_above_zero_among_classified_words():
    rows = [("a", "female", 3.0), ("b", "female", 2.0), ("c", "female", 1.0), ("d", "female", -1.0)]
    rows += [("nowhere", "female", 9.0), ("d", "male", 1.0)]
    classes = dataset(a="adj.body", b="adj.mind", c="adj.mind", d="adj.mind")
    body = cells(compared(rows, classes, top_k=2))["adj.body"]
    assert (body["value"], body["words_first"], body["words_second"]) == (0.5, 2, 1)
    assert cells(compared(rows, classes))["adj.body"]["words_first"] == 3


def test_by_class_word_of_several_classes_counts_in_parts():
    rows = [("run", "female", 1.0), ("Say", "male", 1.0)]
    classes = dataset(run="verb.motion verb.social", say="verb.communication")  # in small letters
    shares = {name: row["value"] for name, row in cells(compared(rows, classes)).items()}
    parts = {"verb.motion": 0.5, "verb.social": 0.5, "verb.communication": -1}
    assert {name: share for name, share in shares.items() if share} == parts


def test_by_class_compares_genders_that_have_words():
    rows = [(gender, gender, 1.0) for gender in GENDERS]
    classes = dataset(**dict.fromkeys(GENDERS, "adj.mind"))
    pairs = compared(rows, classes).select("first", "second").unique()
    assert set(pairs.rows()) == set(PAIRS)
    pairs = compared(rows[:2], classes).select("first", "second").unique()
    assert pairs.rows() == [("female", "male")]


def test_within_ranks_by_order():
    """Women's deviations are all below 0, by the level of their sentiment alone."""
    women = {"calm": -1.0, "wise": -2.0, "glad": -3.0, "tall": -4.0, "rainy": -0.5}
    men = {"calm": 3.0, "wise": 1.0, "glad": 0.5, "tall": -0.5, "rainy": -9.0}
    kinds = {"calm": "feeling", "wise": "mind", "glad": "feeling", "tall": "body"}
    kinds["rainy"] = "weather"
    rows = [(w, g, v) for g, of in (("female", women), ("male", men)) for w, v in of.items()]
    classes = dataset(**{word: f"adj.{kind}" for word, kind in kinds.items()})
    eta = deviating(rows).with_columns(sentiment=pl.lit("negative"))
    ranked = within(eta, "negative")
    found = cells(compared(ranked, classes, "latent", "negative", top_k=2), deviation="latent")
    shares = {c.removeprefix("adj."): row["value"] for c, row in found.items() if row["value"]}
    # of women rainy and calm lead, of men calm and wise
    assert shares == {"mind": -0.5, "weather": 0.5}


def write_study(folder, lists, genders):
    """Write outputs, people and the table of PMI; ``lists`` has the words of each person."""
    inputs = Inputs(("m",), {"supersenses": folder, "politicians": folder / "people"}, folder)
    rows = [
        {"qid": f"Q{i}", "word": word, "lemma": word, "pos": "ADJ", "rank": rank}
        for i, listed in enumerate(lists)
        for rank, word in enumerate(listed, 1)
    ]
    for place in (inputs.outputs("associations", "m") / "en", inputs.tables("pmi", "m")):
        place.mkdir(parents=True)
    pl.DataFrame(rows).write_parquet(inputs.outputs("associations", "m") / "en" / "0.parquet")
    people = {"qid": [f"Q{i}" for i in range(len(lists))], "gender": genders}
    (folder / "people").mkdir()
    table = pl.DataFrame(people).with_columns(name=pl.col("qid"))
    table.write_parquet(folder / "people" / "en.parquet")
    pmi.run(inputs, PMI)["pmi"].write_parquet(inputs.tables("pmi", "m") / "pmi.parquet")
    return inputs


def test_run_planted_classes_are_found(tmp_path):
    """Classes lean to either gender, words of a class by chance."""
    print("seed", SEED)
    rng = np.random.default_rng(SEED)
    words, names, length = 130, 160, 30
    kind = np.arange(words) % 13
    lean = rng.permutation(np.linspace(-1.5, 1.5, 13))
    ratio = lean[kind] + rng.normal(0, 0.4, words)
    texts = tuple(f"w{i:04d}" for i in rng.permutation(words))
    frequency = rng.normal(0, 0.3, words)
    genders = np.arange(names) % 2
    taste = frequency + (genders[:, None] - 0.5) * ratio + rng.normal(0, 1, (names, words))
    best = np.argsort(-taste, axis=1)[:, :length]
    inputs = write_study(tmp_path, [[texts[w] for w in row] for row in best], genders)
    classes = {w: f"adj.{ADJECTIVES[c]}" for w, c in zip(texts, kind.tolist(), strict=True)}
    dataset(**classes).write_parquet(tmp_path / "en.parquet")
    eta = [
        {"model": "m", "language": "en", "pos": "ADJ", "word": w, "gender": GENDERS[g]}
        | {"sentiment": s, "value": v * (s == "negative"), "q": 0.8 if s == "negative" else 0.1}
        for w, r in zip(texts, ratio.tolist(), strict=True)
        for g, v in ((0, -r / 2), (1, r / 2))
        for s in ("positive", "negative", "neutral")
    ]
    inputs.tables("latent", "m").mkdir(parents=True)
    schema = pl.from_arrow(latent.SCHEMAS["latent"].arrow().empty_table()).schema
    path = inputs.tables("latent", "m") / "latent.parquet"
    pl.DataFrame(eta, schema=schema).write_parquet(path)
    found = supersenses.run(inputs, PARAMS.model_copy(update={"top_k": 30}))
    table = found["supersenses"]
    strong = np.abs(lean) >= 0.9
    rows = cells(table, deviation="pmi", sentiment="all")
    value = np.array([rows[f"adj.{name}"]["value"] for name in ADJECTIVES])
    assert spearmanr(lean, value).statistic > 0.85
    assert (np.sign(value[strong]) == np.sign(lean[strong])).all()
    assert rows[f"adj.{ADJECTIVES[int(lean.argmax())]}"]["p_bonferroni"] <= 0.05
    assert {row["n"] for row in cells(table, deviation="pmi").values()} == {names}
    assert table.filter(deviation="latent")["p"].count() == 0
    assert found["words"]["share"].to_list() == [1] * words
    assert supersenses.run(inputs, PARAMS.model_copy(update={"top_k": 30}))["supersenses"].equals(
        table
    )
    with pytest.raises(UserError, match="smoothing"):
        supersenses.run(inputs, PARAMS.model_copy(update={"smoothing": 2.0}))


def test_run_without_english_is_empty(tmp_path):
    inputs = Inputs(("m",), {"supersenses": tmp_path}, tmp_path)
    inputs.tables("pmi", "m").mkdir(parents=True)
    empty = pl.from_arrow(pmi.SCHEMAS["pmi"].arrow().empty_table())
    empty.write_parquet(inputs.tables("pmi", "m") / "pmi.parquet")
    dataset(calm="adj.feeling").write_parquet(tmp_path / "en.parquet")
    found = supersenses.run(inputs, PARAMS)["supersenses"]
    assert found.is_empty()
    assert found.columns == [c.name for c in supersenses.SUPERSENSES.columns]
