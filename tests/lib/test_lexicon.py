import io
import zipfile

from plumbline.builders.datasets.lexica.formats import Entry, View, entries

SIGNS = {"positive": 1, "negative": -1}
TERMS = {"licence": "CC0-1.0", "citation": "test"}


def view(**changes) -> View:
    wanted = {"name": "one", "files": {"lexicon": "http://x/a.txt"}, "format": "table"}
    return View(**(wanted | {"scale": "continuous"} | TERMS | changes))


def read(declared: View, text: str | bytes):
    body = text if isinstance(text, bytes) else text.encode()
    found = [entry for _, entry in entries(declared, {"http://x/a.txt": body})]
    good = [e for e in found if isinstance(e, Entry)]
    return {e.word: e.value for e in good}, [r for r in found if isinstance(r, str)]


def test_a_table_is_brought_to_its_scale_and_its_bad_lines_are_counted():
    declared = view(low=-5, high=5)
    text = "\ufeffGood\t4\ncan_not\t-5\nno value\nx\tmany\ny\t9\nz\tnan\n \t1\n"
    found, refused = read(declared, text)
    assert found == {"good": (0.8,), "can not": (-1.0,)}
    assert refused == ["too few columns", "not a number", "out of range", "not a number", "no word"]


def test_quoted_columns_header_pairs_and_parts_of_speech():
    declared = view(scale="pairs", delimiter=",", header=True, word=1, value=[2, 3], pos=0)
    body = b'pos,word,p,n\nadj,"well, well",0.5,0\nv,go,0.5,1.5\n'
    found = [entry for _, entry in entries(declared, {"http://x/a.txt": body})]
    assert found[0] == Entry("well, well", (0.5, 0.0), "ADJ")
    assert found[1] == "out of range"


def test_labels_that_are_not_declared_are_refused():
    declared = view(scale="binary", labels={"+1": 1, "-1": -1})
    assert read(declared, "faith\t+1\nexile\t-1\nodd\t0\n") == (
        {"faith": "+1", "exile": "-1"},
        ["label that the view does not declare"],
    )


def test_word_lists_in_an_archive_are_labelled_by_their_file():
    sent = io.BytesIO()
    with zipfile.ZipFile(sent, "w") as archive:
        archive.writestr("list/good.txt", "; a comment\n\nkind\n")
        archive.writestr("list/bad.txt", "na\xefve\n".encode("latin-1"))
        archive.writestr("__MACOSX/list/bad.txt", "junk")
    files = {"positive": "http://x/l.zip#good.txt", "negative": "http://x/l.zip#bad.txt"}
    declared = view(files=files, format="list", scale="binary", labels=SIGNS, encoding="latin-1")
    found = [entry for _, entry in entries(declared, {"http://x/l.zip": sent.getvalue()})]
    assert [(e.word, e.value) for e in found] == [("naïve", "negative"), ("kind", "positive")]
    assert declared.paths("en") == {"http://x/l.zip": "en/one/l.zip"}


def test_vader_is_counts_of_ten_ratings():
    text = (
        "calm\t1.3\t0.78\t[1, 1, 3, 1, 2, 1, 0, 2, 1, 1]\n"
        "nine\t1\t0\t[1, 1, 1, 1, 1, 1, 1, 1, 1]\n"
        "five\t1\t0\t[5, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n"
    )
    found, refused = read(view(format="vader", scale="counts"), text)
    assert found == {"calm": (0, 0, 0, 0, 1, 6, 2, 1, 0)}
    assert refused == ["not ten ratings from -4 to 4"] * 2


def test_clues_with_a_misspelt_key_are_refused():
    text = (
        "type=weaksubj len=1 word1=able pos1=adj stemmed1=n priorpolarity=positive\n"
        "type=weaksubj len=1 word1=odd pos1=adj stemmed1=n mpqapolarity=strongneg\n"
        "type=weaksubj len=1 word1=mild pos1=anypos stemmed1=n priorpolarity=weakneg\n"
    )
    found, refused = read(view(format="mpqa", scale="classes", labels=SIGNS), text)
    assert found == {"able": "positive"}
    assert refused == ["no word1 or priorpolarity", "label that the view does not declare"]


def test_emolex_gives_pairs_from_lines_and_from_json():
    lines = "able\tjoy\t1\nable\tpositive\t1\nable\tnegative\t0\nhalf\tpositive\t1\nbad line\n"
    found, refused = read(view(format="emolex", scale="pairs"), lines)
    assert found == {"able": (1, 0)}
    assert sorted(refused) == [
        "emotion other than positive and negative",
        "not word, emotion and 0 or 1",
        "only one of positive and negative",
    ]


def test_a_python_dump_is_parsed_and_never_executed(tmp_path):
    flag = tmp_path / "executed"
    evil = f'senticnet[open({str(flag)!r}, "w").write("x")] = [1]\n'
    text = (
        "senticnet = {}\n"
        'senticnet["a_b"] = [0.9, 0, 0, 0.1, "#joy", "#hope", 0.903, "12", "c"]\n'
        "senticnet['c'] = ['0', '0', '0', '0', '#x', '#y', 'negative', '-0.87', 'd']\n"
        'senticnet["nan"] = [0, 0, 0, 0, "#x", "#y", "nan", "0.5", "d"]\n'
        'senticnet["short"] = [0.1, 0.2]\n' + evil
    )
    found, refused = read(view(format="senticnet"), text)
    assert found == {"a b": (0.903,), "c": (-0.87,)}
    assert refused == ["not a number", "no polarity in the list", "not an assignment of a list"]
    assert not flag.exists()


def test_each_word_of_a_synset_has_its_pair_and_part_of_speech():
    declared = view(format="sentiwordnet", scale="pairs")
    body = "a 28106 0.25 0.375 अच्छा,बढ़िया\nv 1 x 0 y\n".encode()
    found = [entry for _, entry in entries(declared, {"http://x/a.txt": body})]
    assert [(e.word, e.value, e.pos) for e in found[:2]] == [
        ("अच्छा", (0.25, 0.375), "ADJ"),
        ("बढ़िया", (0.25, 0.375), "ADJ"),
    ]
    assert found[2] == "not five columns"
