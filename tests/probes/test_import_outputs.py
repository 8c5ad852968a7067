"""The command that analyses lists and profiles of others."""

import gzip
import json
import shutil
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from placed import validated

from plumbline.builders.core.build import build
from plumbline.builders.core.errors import UserError
from plumbline.builders.datasets.emotions import build as emotions
from plumbline.builders.datasets.emotions.build import AFFECTS
from plumbline.builders.datasets.stereotypes import build as stereotypes
from plumbline.probes.__main__ import main
from plumbline.probes.commands.import_outputs import _profiles, _read
from plumbline.probes.stereotypes.rsa import similarity

SHARED = Path(__file__).parents[3] / "shared/data"
LISTS = SHARED / "published/stereotypes/bert-base-uncased-corrected.json.gz"
SCORES = SHARED / "published/stereotypes/emotion_scores_bert-base-uncased.parquet"
KNOWN = SHARED / "stereotypes/single_word_stereo_dataset.csv"
SEED = 20
QUERY = "how come artists are so"


@pytest.fixture(scope="module")
def made(copying, tmp_path_factory):
    """Return a project that contains the two datasets needed by the command."""
    folder = copying(tmp_path_factory.mktemp("made"))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for module in (stereotypes, emotions):
            name = module.__name__.split(".")[-2]
            build(name, module)
            validated(name)
    return folder


@pytest.fixture
def ready(made, tmp_path, monkeypatch):
    """Change to a copy of the project."""
    shutil.copytree(made, tmp_path / "ready", symlinks=True)
    monkeypatch.chdir(tmp_path / "ready")


def invented(rng, words):
    """Return a list of 60 words for every query of the sample."""
    queries = pl.read_parquet("data/datasets/stereotypes/en.parquet")["query"].unique().sort()
    return {q: [[w, 9 - i / 9] for i, w in enumerate(rng.permutation(words)[:60])] for q in queries}


def row(table, **wanted):
    (found,) = table.filter(**wanted).iter_rows(named=True)
    return found


@pytest.mark.slow
def test_import_lists_gives_recall_and_similarity(ready):
    rng = np.random.default_rng(SEED)
    attributes = pl.read_parquet("data/datasets/stereotypes/en.parquet")
    words = pl.read_parquet("data/datasets/emotions/en.parquet")["word"].to_list()[:200]
    words += attributes.filter("single_word")["attribute"].unique().sort().to_list()
    words = [*dict.fromkeys(words)]
    lists = {name: invented(rng, words) for name in ("one", "two")}
    Path("one.json").write_text(json.dumps(lists["one"]))
    rows = [(q, w, s) for q, own in lists["two"].items() for w, s in own]
    pl.DataFrame(rows, schema=["query", "word", "score"], orient="row").write_csv("two.csv")
    assert main(["import", "one=one.json", "two=two.csv", "--into", "mine"]) == 0
    recall = pl.read_parquet("mine/tables/recall/recall.parquet")
    tested = attributes.filter(pl.col("single_word"), pl.col("flags").list.len() == 0)
    for name in ("one", "two"):
        hits = [
            a in [w for w, _ in lists[name][q][:50]]
            for q, a in tested.select("query", "attribute").iter_rows()
        ]
        key = {"model": name, "dataset": "en", "reading": "faithful", "attributes": "single word"}
        seen = row(recall, **key, category="all", k=50)
        assert seen["n_attributes"] == len(hits)
        assert seen["value"] == pytest.approx(np.mean(hits), abs=1e-6)
    assert set(recall["reading"]) == {"faithful"}
    assert len(pl.read_parquet("mine/tables/rsa/rsa.parquet")) > 0


@pytest.mark.parametrize(
    ("text", "arguments", "problem"),
    [
        ("[1]", ["m=a.json"], "a.json: not lists of words"),
        ('{"why are cats so": [["soft", 1]]}', ["m=a.json"], "why are cats so"),
        (f'{{"{QUERY}": [["soft", NaN]]}}', ["m=a.json"], "'soft' in 'how come"),
        (f'{{"{QUERY}": [["soft", -Infinity]]}}', ["m=a.json"], "'soft' in 'how come"),
        (f'{{"{QUERY}": [["soft", 2], ["soft", 1]]}}', ["m=a.json"], "'soft' in 'how come"),
        (f"query,word,score\n{QUERY},soft,inf\n", ["m=a.csv"], "'soft' in 'how come"),
        (f"query,word,score\n{QUERY},soft,2\n{QUERY},soft,1\n", ["m=a.csv"], "'soft' in 'how come"),
        ("{}", [], "nothing to import"),
        ("category,group\nage,kids\n", ["--profiles", "m=a.json"], "columns category, group"),
    ],
)
def test_import_malformed_is_one_error(ready, capsys, text, arguments, problem):
    for name in ("a.json", "a.csv"):
        Path(name).write_text(text)
    assert main(["import", *arguments, "--into", "mine"]) == 1
    assert problem in capsys.readouterr().err
    assert not Path("mine/tables").exists()


LIST = "query,word,score\nq,good,-3.5\nq,1984,-2\nq,null,-1,5\n"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (LIST.replace(",", ";").replace("-1;5", "-1,5"), ""),
        (LIST.replace(",", "\t").replace("-1\t5", "−1.5").replace("\n", "\r"), ""),
        ('{"q": [["good", -1]], "q": [["null", -1]]}', "'q'"),
        ("query,word,score\nq,good,-1\nq,odd,inf\n", "'odd' in 'q'"),
        ('query,word,score\nq,"good,-1\nq,odd,-2\n', "line 2"),
        ("query,word,score\nq,,-1\n", "'' in 'q'"),
    ],
)
def test_read_lists_of_others(tmp_path, text, problem):
    path = tmp_path / f"a.{'json' if text[0] == '{' else 'csv'}"
    path.write_text(f"\ufeff{text}", "utf-8")
    if problem:
        with pytest.raises(UserError, match=problem):
            _read(path)
    else:
        assert _read(path).rows() == [("q", "null", -1.5), ("q", "1984", -2), ("q", "good", -3.5)]


def test_profiles_of_others(tmp_path):
    path = tmp_path / "a.csv"
    head, row = ";".join(["category", "group", *AFFECTS, "words"]), "age;kids;" + "12,5;" * 10
    path.write_text(f"{head}\n{row}1,234\n", "utf-8-sig")
    assert _profiles(path, "m").select("value", "n").unique().rows() == [(0.125, 1234)]
    path.write_text(f"{head}\n{row}9\n{row}9\n")
    with pytest.raises(UserError):
        _profiles(path, "m")


@pytest.mark.parametrize(
    ("words", "share"),
    [("nan", "1"), ("inf", "1"), ("", "1"), ("0", "1"), ("9", "nan"), ("9", "inf")],
)
def test_profiles_refuse_what_is_no_number(tmp_path, words, share):
    path = tmp_path / "p.csv"
    shares = [share, *["1"] * (len(AFFECTS) - 1)]
    rows = ["category", "group", "words", *AFFECTS], ["age", "kids", words, *shares]
    path.write_text("".join(f"{','.join(row)}\n" for row in rows))
    with pytest.raises(UserError, match=r"p\.csv"):
        _profiles(path, "m")


@pytest.mark.slow
@pytest.mark.shared
def test_import_released_files_gives_published_numbers(ready):
    for path in (LISTS, SCORES, KNOWN):
        if not path.is_file():
            pytest.skip(f"{path} is not there")
    known = pl.read_csv(KNOWN, separator="\t").select(
        category=pl.col("target_category").str.strip_chars(),
        group=pl.col("target_group").str.strip_chars(),
        query=pl.col("input").str.strip_chars(),
        attribute=pl.col("completion").str.strip_chars(),
    )
    empty = pl.read_parquet("data/datasets/stereotypes/choenni2021.parquet").head(0)
    template = pl.struct("query", "group").map_elements(
        lambda r: r["query"].replace(r["group"], "{group}"), return_dtype=pl.String
    )
    known = known.with_columns(
        template=template, language=pl.lit("en"), single_word=True, source_row=pl.lit(1)
    )
    table = pl.concat([empty, known], how="diagonal_relaxed")
    table = table.with_columns(pl.col("flags", "engines", "ranks").fill_null([]))
    table.write_parquet("data/datasets/stereotypes/choenni2021.parquet")
    validated("stereotypes")
    Path("bert.json").write_bytes(gzip.decompress(LISTS.read_bytes()))
    order = ["negative", "positive", "disgust", "anger", "sadness", "fear"]
    order += ["trust", "joy", "surprise", "anticipation"]
    scores = pl.read_parquet(SCORES)
    arrays = {}
    for name, source in (("before", "bert-base-uncased"), ("fox", "fox")):
        own = scores.filter(source=source).sort("category", "group")
        wide = own.select(
            *("category", "group"),
            *(pl.col("scores").list.get(order.index(a)).alias(a) for a in AFFECTS),
            words=pl.col("words").list.len(),
        )
        wide.write_csv(f"{name}.csv")
        arrays[name] = wide
    profiles = [x for n in arrays for x in ("--profiles", f"{n}={n}.csv")]
    assert main(["import", "bert=bert.json", *profiles, "--into", "mine"]) == 0
    recall = pl.read_parquet("mine/tables/recall/recall.parquet")
    for category, value in (("country", 0.534), ("race", 0.257)):
        key = {"dataset": "choenni2021", "category": category, "attributes": "single word"}
        seen = row(recall, **key, k=50, reading="faithful")
        assert round(seen["value"], 3) == value
    imported = pl.read_parquet("mine/tables/emotions/emotions.parquet").filter(model="fox")
    assert imported["level"].unique().to_list() == ["group"]
    joy = arrays["fox"].filter(group="christians")["joy"].item() / 100
    assert row(imported, group="christians", affect="joy")["value"] == pytest.approx(joy, abs=1e-6)
    found = pl.read_parquet("mine/tables/rsa/rsa.parquet")
    seen = row(found, first="before", second="fox", category="religion", reading="faithful")
    both = arrays["before"].join(arrays["fox"], on=["category", "group"], suffix="_fox")
    both = both.filter(category="religion").sort("group")
    nine = [a for a in AFFECTS if a != "fear"]
    wanted = similarity(
        both.select(nine).to_numpy(),
        both.select(f"{a}_fox" for a in nine).to_numpy(),
        diagonal=True,
    )
    assert seen["value"] == pytest.approx(wanted, abs=1e-6)
    assert round(seen["value"], 2) - 1 == pytest.approx(-0.46)  # Table 4
