from __future__ import annotations

import building
import polars as pl
import pytest
from conllu import parse
from samples import DAY, SAMPLES, TOP

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.parquet import Reject, Row
from plumbline.builders.datasets.words import build as words

UD = TOP.parent / "shared/data/ud"
ORDER = {"en": words.Order(adjective="Adj-N", clause="SVO")}


def sentence(*tokens: tuple[str, str, str]) -> str:
    lines = [
        f"{i}\t{form}\t{lemma}\t{upos}\t_\t_\t{i - 1}\t{'root' if i == 1 else 'dep'}\t_\t_"
        for i, (form, lemma, upos) in enumerate(tokens, start=1)
    ]
    return "\n".join(lines) + "\n\n"


def built_from(tmp_path, **files: str) -> list[Row | Reject]:
    found = {f"en/{name}.conllu": text for name, text in files.items()}
    params = words.Params(version="0.1.0", snapshot="x", languages=["en"], word_order=ORDER)
    return list(words.build(building.snapshot(tmp_path / "snapshot", "ud", found), params))


def rows(found):
    return [item.values for item in found if isinstance(item, Row)]


def test_build_adds_counts_of_treebanks(tmp_path):
    calm = sentence(("calm", "calm", "ADJ"), ("minister", "minister", "NOUN"))
    (row,) = rows(built_from(tmp_path, a=calm + calm, b=calm))
    assert (row["form"], row["count"]) == ("calm", 3)
    assert row["treebanks"] == ["a.conllu", "b.conllu"]
    assert row["treebank_counts"] == [2, 1]


def test_build_rejects_other_tokens(tmp_path):
    text = sentence(("well-known", "well-known", "ADJ"), ("2nd", "2nd", "ADJ"), ("a", "a", "DET"))
    found = built_from(tmp_path, a=text)
    assert {(r.reason, r.number) for r in found} == {
        ("not a plain word", 2),
        ("part of speech DET", 1),
    }


def test_build_skips_ranges_and_empty_nodes(tmp_path):
    text = (
        "1-2\tdámelo\t_\t_\t_\t_\t_\t_\t_\t_\n"
        "1\tda\tdar\tVERB\t_\t_\t0\troot\t_\t_\n"
        "2\tlo\tél\tPRON\t_\t_\t1\tobj\t_\t_\n"
        "2.1\tcalm\tcalm\tADJ\t_\t_\t_\t_\t_\t_\n\n"
    )
    assert [r["form"] for r in rows(built_from(tmp_path, a=text))] == ["da"]


def test_build_reads_windows_line_ends(tmp_path):
    text = "# text = calm ministers rest\n" + sentence(
        ("calm", "calm", "ADJ"), ("ministers", "minister", "NOUN"), ("rest", "rest", "VERB")
    )
    windows = text.replace("\n", "\r\n")
    unix, crlf = built_from(tmp_path / "unix", a=text), built_from(tmp_path / "crlf", a=windows)
    assert crlf == unix
    assert [r["form"] for r in rows(crlf)] == ["calm", "rest"]
    for cut in ("", text[:-1], windows[:-2]):
        with pytest.raises(UserError, match="conllu"):
            built_from(tmp_path / f"cut{len(cut)}", a=cut)


def test_build_rejects_what_is_no_word_of_the_language(tmp_path):
    text = (  # "I under stand the seak, Spanish grande and English calm ones; Typo=Yesterday"
        "1\tunder\tunderstand\tVERB\tGW\tMood=Ind\t0\troot\t_\t_\n"
        "2\tstand\t_\tVERB\tGW\t_\t1\tgoeswith\t_\t_\n"
        "3\tseak\tsick\tADJ\tJJ\tDegree=Pos|Typo=Yes\t1\tobj\t_\tCorrectForm=sick\n"
        "4\tgrande\tgrande\tADJ\tFW\tForeign=Yes\t3\tconj\t_\t_\n"
        "5\tgrandes\tgrande\tADJ\t_\t_\t3\tconj\t_\tSpaceAfter=No|Lang=es\n"
        "6\tcalm\tcalm\tADJ\t_\tTypo=Yesterday\t3\tconj\t_\tLang=en\n\n"
    )
    found = built_from(tmp_path, a=text)
    assert [r["form"] for r in rows(found)] == ["calm"]
    assert sorted(r.number for r in found if isinstance(r, Reject)) == [1, 2, 2]


@pytest.mark.shared
@pytest.mark.skipif(not UD.is_dir(), reason="no shared data beside the checkout")
def test_words_real_treebanks(tmp_path):
    """Compared with the library conllu on a released treebank, here with Windows line ends."""
    path, odd = UD / "ru/ru_gsd-ud-dev.conllu", 0
    for tokens in parse(path.read_text(encoding="utf-8")):
        heads = {t["head"] for t in tokens if t["deprel"] == "goeswith"}
        for token in (t for t in tokens if t["upos"] in words.POS):
            feats, misc = token["feats"] or {}, token["misc"] or {}
            odd += (
                "Yes" in (feats.get("Typo"), feats.get("Foreign"))
                or misc.get("Lang", "ru") != "ru"
                or token["id"] in heads
                or token["deprel"] == "goeswith"
            )
    windows = path.read_bytes().replace(b"\n", b"\r\n")
    found = [word[2:] for word in words.words(windows, "ru")]
    assert sum(upos in words.POS and problem != "" for upos, problem in found) == odd


def test_sample_word_order_of_the_paper(sample):
    order = {"ar": ("after", "before"), "fr": ("after", "after"), "es": ("after", "after")}
    for language in ("ar", "zh", "en", "fr", "hi", "ru", "es"):  # supplement S2 of the paper
        frame = pl.read_parquet(sample("words") / f"{language}.parquet")
        places = dict(frame.select("pos", "place").unique().iter_rows())
        adjective, verb = (words.PLACES[places[words.POS.index(p)]] for p in ("ADJ", "VERB"))
        assert (adjective, verb) == order.get(language, ("before", "after"))


def test_sample_counts_each_token_once(sample):
    folder = sample("words")
    rejects = pl.read_parquet(folder / "rejects.parquet")
    for path in sorted((SAMPLES / "ud" / DAY).glob("*/*.conllu")):
        language = path.parent.name
        kept = pl.read_parquet(folder / f"{language}.parquet")["count"].sum()
        lost = rejects.filter(pl.col("config") == language)["number"].sum()
        tokens = [t for s in parse(path.read_text(encoding="utf-8")) for t in s]
        assert kept + lost == sum(isinstance(t["id"], int) for t in tokens)
