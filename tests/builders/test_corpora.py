from __future__ import annotations

import random
import re
from collections import Counter
from pathlib import Path

import polars as pl
import pytest
from small_corpora import PARAMS, article, base, post, snapshots, words

from plumbline.builders.core.build import build
from plumbline.builders.core.parquet import Reject, Row
from plumbline.builders.datasets.corpora import build as corpora
from plumbline.builders.datasets.corpora import near_duplicates
from plumbline.builders.datasets.corpora.sample import CONFIGS
from plumbline.builders.release.card import render

REAL = Path(__file__).parents[3] / "shared/data/news/allsides_articles.parquet"


def built(folder: Path, articles=(), posts=(), params=None, *, without_base=False):
    """Return rows by id, rejects by id or outlet, and all in order."""
    own = base()
    articles, posts = list(articles), list(posts)
    if not without_base:
        articles, posts = articles + own[0], posts + own[1]
    chosen = corpora.Params(**(PARAMS | (params or {})))
    items = list(corpora.build(snapshots(folder, articles, posts), chosen))
    rows = {i.values["id"]: i for i in items if isinstance(i, Row)}
    assert len(rows) == sum(isinstance(i, Row) for i in items)
    rejects = {(i.config, i.key): i for i in items if isinstance(i, Reject)}
    number = len(rows) + sum(i.number for i in items if isinstance(i, Reject))
    assert number == len(articles) + len(posts)  # every input row is somewhere
    return rows, rejects, items


def test_build_article_row(tmp_path):
    text = "  Is it  true?\r\n\r\nIt is, cafe\u0301 and all. "
    rows, _, _ = built(
        tmp_path, [article("7", "right", text=text, date="9/16/17", outlet="The Ledger")]
    )
    row = rows["mine/7"]
    assert row.config == "news-right"
    assert row.values == {
        "id": "mine/7",
        "text": "Is it true?\nIt is, café and all.",
        "kind": 0,
        "leaning": 2,
        "outlet": "The Ledger",
        "date": "2017-09-16",
        "period": 1,
        "hate_score": None,
        "flags": [],
        "words": 8,
    }


@pytest.mark.parametrize(
    ("day", "seconds", "told", "period"),
    [
        ("2017-01-19", 1484870399, "2017-01-19", "before"),
        ("1/20/17", 1484870400, "2017-01-20", "from"),  # in UTC
        ("1899-12-31", None, "", "unknown"),
    ],
)
def test_build_dates_of_articles_and_posts(tmp_path, day, seconds, told, period):
    rows = built(tmp_path, [article("7", date=day)], [post("7", created_utc=seconds)])[0]
    for row in (rows["mine/7"].values, rows["reddit/t1_7"].values):
        assert (row["date"], corpora.PERIODS[row["period"]]) == (told, period)
        assert row["flags"] == ([] if told else ["date"])


def test_build_rejects_by_outlet_and_reason(tmp_path):
    entries = [
        post("1", body="[deleted]"),
        post("2", body=" [Removed] "),
        post("3", author="[deleted]"),
        post("4", author="AutoModerator"),
        post("5", author="PriceBot"),
        post("6", body=f"{words(5)}. I am a bot, and so on."),
        post("7", body="too short"),
        post("8", body=""),
    ]
    articles = [article("1", "satire"), article("2", text="much too"), article("3", "", text="")]
    rows, _, items = built(tmp_path, articles, entries)
    out = Counter()
    for i in items:
        if isinstance(i, Reject):
            out[i.config, i.key, i.reason] += i.number
    assert out == {
        ("social-left", "r/LeftOnes", "deleted"): 2,
        ("social-left", "r/LeftOnes", "bot"): 3,
        ("social-left", "r/LeftOnes", "too short"): 2,
        ("*", "Paper", "not of the lists"): 2,
        ("news-left", "Paper", "too short"): 1,
    }
    assert "reddit/t1_3" in rows  # its author left, its text stands


def test_build_rejects_near_duplicates(tmp_path, monkeypatch):
    # one-word shingles: 9 of 10 words shared is 9/11, 4 of 5 is 4/6, 8 of 9 and one is 8/10
    monkeypatch.setattr(near_duplicates, "WORDS", 1)
    ten, five, nine = words(10), words(5), words(9)
    found = [
        article("a1", text=ten),
        article("a2", text=" ".join([*ten.split()[:9], "other"])),  # 0.818
        article("b1", text=five),
        article("b2", text=" ".join([*five.split()[:4], "other"])),  # 0.667
        article("c1", text=nine),
        article("c2", text=" ".join([*nine.split()[:8], "last"])),  # 8 of 10: just 0.8
        article("d1", text="Just one SENTENCE, said loudly."),
        article("d2", text="just one sentence said - loudly"),
    ]
    rows, rejects, _ = built(tmp_path, found)
    left = {own.partition("/")[2] for own in rows if own.startswith("mine/") and "base" not in own}
    assert {name[0] for name in left} == set("abcd")
    assert Counter(name[0] for name in left) == {"a": 1, "b": 2, "c": 1, "d": 1}
    for own in ("a", "c", "d"):
        (gone,) = {f"mine/{own}1", f"mine/{own}2"} - set(rows)
        (stays,) = {f"mine/{own}1", f"mine/{own}2"} - {gone}
        assert rejects["news-left", gone][2:4] == ("duplicate", stays)


def test_build_rejects_texts_of_two_corpora(tmp_path):
    text = words(30)
    near = " ".join([*text.split()[:29], "last"])
    articles = [article("1", "left", text=text), article("2", "right", text=near)]
    rows, rejects, _ = built(tmp_path, articles, [post("4", "right", body=text.upper())])
    assert all("base" in name for name in rows)  # nothing but one text for each corpus
    found = {key: item.detail for (_, key), item in rejects.items() if item.reason == "leak"}
    assert set(found) == {"mine/1", "mine/2", "reddit/t1_4"}
    for key, detail in found.items():  # the others
        assert set(re.findall(r"(?:news|social)-\w+ ([^;]+)", detail)) <= set(found) - {key}


def test_build_draw_in_any_order(tmp_path):
    rng = random.Random(3)
    print("seed 3")
    articles = [article(str(n), rng.choice(corpora.LEANINGS)) for n in range(300)]
    posts = [post(str(n), rng.choice(corpora.LEANINGS)) for n in range(300)]
    articles += [article(f"again{n}", text=articles[n]["text"]) for n in range(0, 60, 3)]
    articles += [article("5", text=words(12))]
    own = base()
    params = {"sizes": dict.fromkeys(CONFIGS, 30), "oversample": 2}
    first = built(tmp_path / "a", articles + own[0], posts + own[1], params, without_base=True)
    for found in (articles, posts):
        rng.shuffle(found)
    second = built(tmp_path / "b", own[0] + articles, own[1] + posts, params, without_base=True)
    assert first[2] == second[2]
    assert Counter(row.config for row in first[0].values()) == dict.fromkeys(CONFIGS, 30)


def test_build_balances_sizes_in_words(tmp_path):
    articles = [article(f"{s}{n}", s) for s in corpora.LEANINGS for n in range(50)]
    posts = [post(f"{s}{n}", s) for s in ("left", "right") for n in range(50)]
    posts += [post(f"center{n}", "center") for n in range(9)]  # and one of the base: 120 words
    sizes = dict.fromkeys(CONFIGS, 240) | {"news-left": 480}
    given = {"unit": "words", "sizes": sizes, "balance": True, "oversample": 10}
    rows, _, _ = built(tmp_path / "a", articles, posts, given)
    assert Counter(r.config for r in rows.values()) == dict.fromkeys(CONFIGS, 10) | {
        "news-left": 20
    }
    rows, _, _ = built(tmp_path / "b", articles, posts, given | {"balance": False})
    assert Counter(r.config for r in rows.values()) == dict.fromkeys(CONFIGS, 20) | {
        "news-left": 40,
        "social-center": 10,
    }


def test_build_sample_corpora_and_card(project):
    build("corpora", corpora)
    folder = project / "data/datasets/corpora"
    left = pl.read_parquet(folder / "social-left.parquet")
    assert set(left["outlet"]) == {"r/FairShareTown", "r/PublicGoods"}
    card = render(Path("data/datasets/corpora"))["README.md"].decode()
    assert "- Hate: no filter." in card
    assert "| social-left | social | left | from |" in card
    rejects = pl.read_parquet(folder / "rejects.parquet")
    by_reason = dict(rejects.group_by("reason").agg(pl.col("number").sum()).iter_rows())
    left_out = by_reason.pop("not sampled")
    known = {"deleted": 3, "bot": 3, "leak": 4, "not of the lists": 1}
    assert by_reason == known | {"duplicate": 3, "too short": 2}
    rows = sum(len(pl.read_parquet(folder / f"{name}.parquet")) for name in CONFIGS)
    texts = 151 + 77 + 81  # articles, comments and submissions, as the manifests count them
    assert left_out == texts - rows - sum(by_reason.values())
