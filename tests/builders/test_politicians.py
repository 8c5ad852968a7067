from __future__ import annotations

import gzip
import io
import json
import zipfile
from datetime import date
from itertools import count

import building
import polars as pl
import pytest
from samples import DAY, SAMPLES

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.parquet import Reject, Row
from plumbline.builders.core.snapshot import Snapshot
from plumbline.builders.datasets.politicians import build as politicians
from plumbline.builders.datasets.politicians import person as stated

ENTITY = "http://www.wikidata.org/entity/"
MALE, FEMALE, TRANS_WOMAN, NON_BINARY = "Q6581097", "Q6581072", "Q1052281", "Q48270"
PROPERTIES = {
    "P21": "http://www.wikidata.org/prop/direct/P21",
    "P27": "http://www.wikidata.org/prop/direct/P27",
    "P569": "http://www.wikidata.org/prop/direct/P569",
    "links": "http://wikiba.se/ontology#sitelinks",
}


def uri(value: str) -> dict[str, str]:
    return {"type": "uri", "value": ENTITY + value}


def literal(value: str, **more: str) -> dict[str, str]:
    return {"type": "literal", "value": value, **more}


def snapshot(folder, people, iso=(), languages=("en", "fr", "es", "hi", "ru")):
    """Write a snapshot of people given as {qid: {P21: [..], P569: [..], labels: {..}}}."""
    files = {}

    def save(name, rows):
        body = json.dumps({"results": {"bindings": rows}}).encode()
        files[f"{name}.json.gz"] = gzip.compress(body)

    facts, dates, labels = [], [], []
    for qid, person in people.items():
        for name, address in PROPERTIES.items():
            for value in person.get(name, []):
                term = value if isinstance(value, dict) else uri(value)
                term = literal(value) if name in ("P569", "links") else term
                prop = {"type": "uri", "value": address}
                facts.append({"item": uri(qid), "property": prop, "value": term})
        for value, precision in person.get("precision", {}).items():
            row = {"item": uri(qid), "value": literal(value), "precision": literal(precision)}
            dates.append(row)
        for code, label in person.get("labels", {"en": "Ada Example"}).items():
            labels.append({"item": uri(qid), "label": literal(label, **{"xml:lang": code})})
    save("facts/00000", facts)
    save("dates/00000", dates)
    save("labels/00000", labels)
    save("countries/00000", [{"item": uri(q), "iso": literal(c)} for q, c in iso])
    files["ids.txt.gz"] = gzip.compress("\n".join(people).encode())
    request = {"batch_size": 400, "languages": list(languages)}
    return building.snapshot(folder, "wikidata", files, request)


def built_from(source, languages=("en",), **changed):
    changed |= {"version": "0.1.0", "snapshot": "unused", "languages": list(languages)}
    return list(politicians.build(source, politicians.Params(**changed)))


MISSING = [f"{kind} {name}" for kind, names in politicians.VARIABLES.items() for name in names]


@pytest.mark.parametrize("missing", sorted(MISSING))
def test_build_refuses_a_row_without_a_variable(tmp_path, missing):
    kind, name = missing.split()
    person = BASE | {"precision": {"1950-05-05T00:00:00Z": "11"}}
    source = snapshot(tmp_path, {"Q5": person}, [("Q30", "us")])
    path = source.folder / f"{kind}/00000.json.gz"
    body = gzip.decompress(path.read_bytes()).replace(f'"{name}": {{'.encode(), b'"other": {')
    path.write_bytes(gzip.compress(body))
    with pytest.raises(UserError, match=name):
        built_from(source)


BASE = {"P21": [FEMALE], "P569": ["1950-05-05T00:00:00Z"], "links": ["3"]}


def result(tmp_path, person, iso=(), languages=("en",), **changed):
    return built_from(snapshot(tmp_path / "s", {"Q5": BASE | person}, iso), languages, **changed)


PAPER = {  # the paper's grouping, as the issue of the dataset lists it
    "male": ["Q6581097"],
    "female": ["Q6581072", "Q15145779"],
    "non-binary": [
        *("Q18116794", "Q12964198", "Q48270", "Q48279", "Q27679684", "Q1052281", "Q2449503")
    ],
}


def test_gender_of_one_and_of_several_values():
    for group, qids in PAPER.items():
        assert {stated.gender_of([qid])[0] for qid in qids} == {group}
    for qids, group in (
        ([FEMALE, "Q15145779"], "female"),
        ([FEMALE, TRANS_WOMAN], "non-binary"),
        ([MALE, FEMALE], None),
        ([MALE, "Q44148"], "male"),
        ([], None),
        ([FEMALE, "Q99999"], None),
    ):
        assert stated.gender_of(qids)[0] == group, qids


def test_build_rejects_an_unknown_gender(tmp_path):
    (item,) = result(tmp_path, {"P21": [{"type": "bnode", "value": "b0"}]})
    assert item.reason == "gender unknown"


@pytest.mark.parametrize(
    ("dates", "born", "exactness"),
    [
        ({"1950-01-01": "9"}, date(1950, 1, 1), "year"),
        ({"1949-01-01": "9", "1950-05-05": "11"}, date(1950, 5, 5), "day"),  # the more exact one
        ({"1950-05-06": "11", "1950-05-05": "11"}, date(1950, 5, 5), "day"),  # the earliest
    ],
)
def test_dates_of_birth(tmp_path, dates, born, exactness):
    precision = {f"{day}T00:00:00Z": code for day, code in dates.items()}
    (row,) = result(tmp_path, {"P569": list(precision), "precision": precision})
    assert (row.values["birth_date"], row.values["birth_year"]) == (born, born.year)
    label = politicians.SCHEMA["birth_precision"].labels[row.values["birth_precision"]]
    assert label == exactness


def test_build_falls_back_to_mul_labels(tmp_path):
    person, both = {"labels": {"mul": "Ada Example", "ru": "Ада Пример"}}, ("en", "ru")
    told = ("name", "name_language", "name_fallback")
    found = result(tmp_path / "a", person, languages=both)
    russian = ("Ада Пример", "ru", False)
    assert [tuple(item.values[column] for column in told) for item in found] == [
        ("Ada Example", "mul", True),
        russian,
    ]
    none, other = result(tmp_path / "b", person, languages=both, fallback=False)
    assert (none.config, none.reason) == ("en", "no label")
    assert tuple(other.values[column] for column in told) == russian


def test_build_labels_in_variants_of_the_language(tmp_path):
    han = {"zh-tw": "歐巴馬", "zh-Hans": "奥巴马", "mul": "Barack Obama"}  # WDQS and BCP 47 casing
    serbian = {"sr-el": "Ana Primer", "sr-ec": "Ана Пример", "mul": "Ana Primer"}
    for labels, language, name, code in (
        (han, "zh", "奥巴马", "zh-hans"),
        ({"zh": "欧巴马"} | han, "zh", "欧巴马", "zh"),
        ({"zh-hk": "奧巴馬", "zh-yue": "奧巴馬士", "en": "Obama"}, "zh", "奧巴馬", "zh-hk"),
        (serbian, "sr", "Ана Пример", "sr-ec"),
        ({"pt-br": "Ana Exemplo"}, "pt", "Ana Exemplo", "pt-br"),
    ):
        for fallback in (True, False):  # a variant is a label in the language
            folder, people = tmp_path / f"{name}{fallback}", {"Q5": BASE | {"labels": labels}}
            source = snapshot(folder, people, languages=["zh", "sr", "pt"])
            (row,) = built_from(source, [language], fallback=fallback)
            assert (row.values["name"], row.values["name_language"]) == (name, code)
            assert not row.values["name_fallback"]
    # a variety of German is no label that Wikidata would show for German
    source = snapshot(
        tmp_path / "de", {"Q5": BASE | {"labels": {"de-at": "Ada"}}}, languages=["de"]
    )
    (reject,) = built_from(source, ["de"])
    assert (reject.config, reject.reason) == ("de", "no label")


def test_build_native_by_official_languages(tmp_path):
    iso = [("Q31", "BE"), ("Q30", "US"), ("Q15180", "SU")]
    labels = dict.fromkeys(("en", "fr", "es"), "Ada")
    place = count()

    def native(*countries):
        folder = tmp_path / str(next(place))
        found = result(folder, {"P27": list(countries), "labels": labels}, iso, labels)
        return [item.values["native"] for item in found]

    assert native("Q31") == [False, True, False]  # Belgium: Dutch, French, German
    assert native("Q30") == [True, False, False]  # United States: English in fact
    assert native("Q30", "Q31") == [True, True, False]
    assert native("Q15180") == [None, None, None]  # a code that CLDR does not know any more
    assert native() == [None, None, None]


def test_build_each_person_is_a_row_or_a_reject(sample):
    folder = sample("politicians")
    given = Snapshot.open(SAMPLES / "wikidata" / DAY)
    people = given.read("ids.txt.gz").decode().split()
    rejects = pl.read_parquet(folder / "rejects.parquet")
    everywhere = set(rejects.filter(pl.col("config") == "*")["key"])
    for language in ("ar", "zh", "en", "fr", "hi", "ru", "es"):
        rows = pl.read_parquet(folder / f"{language}.parquet")["qid"].to_list()
        own = rejects.filter(pl.col("config") == language)["key"].to_list()
        assert sorted([*rows, *own, *everywhere]) == sorted(people)
        assert rows == sorted(rows, key=lambda q: int(q[1:]))


MENTIONED, NAMED = "language,qid,mentions\n", "language,name,gender\n"


def brought(folder, people, **files):
    """Write a snapshot of people, with files that a user brought."""
    made = snapshot(folder, people)
    request = made.manifest["request"] | {kind: {} for kind in files}
    stored = {path: (made.folder / path).read_bytes() for path in made.manifest["files"]}
    texts = {politicians.FILES[kind]: text.encode() for kind, text in files.items()}
    return building.snapshot(
        folder.with_name(f"{folder.name}-more"), "wikidata", stored | texts, request
    )


TWO = {
    qid: {"P21": [FEMALE], "P569": ["1950-05-05T00:00:00Z"], "links": ["3"], "labels": labels}
    for qid, labels in (
        ("Q5", {"en": "Ada Example", "fr": "Ada Exemple"}),
        ("Q7", {"en": "Bo Example", "fr": "Bo Exemple"}),
    )
}


def test_build_popularity_from_mentions(tmp_path):
    text = f"{MENTIONED}en,Q5,120\nfr,Q5,4\nfr,Q7,90\nen,Q99,1\n"
    source = brought(tmp_path / "s", TWO, mentions=text)
    rows = built_from(source, ("en", "fr"))
    found = {(row.config, row.values["qid"]): row.values["popularity"] for row in rows}
    # who is not counted in a language is not known there, whatever the sitelinks
    assert found == {("en", "Q5"): 120, ("fr", "Q5"): 4, ("en", "Q7"): None, ("fr", "Q7"): 90}


def test_build_keeps_listed_names_only(tmp_path):
    text = f"{NAMED}en,Ada  Example,female\nfr,Bo Exemple,female\nen,Bo Example,male\n"
    source = brought(tmp_path / "s", TWO, names=text)
    rows, gone = building.parted(built_from(source, ("en", "fr")))
    assert {(row.config, row.values["qid"]) for row in rows} == {("en", "Q5"), ("fr", "Q7")}
    assert {(item.config, item.key) for item in gone} == {("en", "Q7"), ("fr", "Q5")}


def test_build_published_names(tmp_path):
    lines = ["en,Ada Example,female", "en,Ada Example,female", "en,Bo  Example,male"]
    lines += ["en,!,male", "ru,Анна Мартен,female"]
    text = NAMED + "".join(f"{line}\n" for line in lines)
    source = brought(tmp_path / "s", TWO, published=text)
    people = built_from(source)
    assert len(people) == 2
    ended = built_from(source, published=True)
    assert [item for item in ended if item.config != "published"] == people
    released = [item for item in ended if item.config == "published"]
    assert [tuple(item.values.values()) for item in released if isinstance(item, Row)] == [
        ("en", ADA, stated.GENDERS.index("female"), "female", 2),
        ("en", BO, stated.GENDERS.index("male"), "male", 1),
        ("ru", ANNA, stated.GENDERS.index("female"), "female", 1),
    ]
    assert [item.detail for item in released if isinstance(item, Reject)] == ["!"]
    other = snapshot(tmp_path / "t", TWO)
    with pytest.raises(UserError):
        built_from(other, published=True)


ADA, ANNA, BO = "Ada Example", "Анна Мартен", "Bo Example"
FOUND = [("en", ADA, "female"), ("en", BO, "male"), ("ru", ANNA, "female")]
WOMAN = ENTITY + FEMALE
LAYOUTS = {
    "language, gender": {"en": {"female": [ADA], "male": [BO]}, "ru": {"female": [ANNA]}},
    "records": [
        {"lang": "en", "itemLabel": ADA, "genderLabel": "female", "native language": "French"},
        {"lang": "en", "itemLabel": BO, "genderLabel": "male", "born": "1950-05-05"},
        {"lang": "ru", "itemLabel": ANNA, "genderLabel": WOMAN},
    ],
    "people": {
        "Q5": {"gender": [WOMAN], "labels": {"en": ADA, "ru": ANNA}, "occupation": "politician"},
        "Q7": {"gender": "M", "labels": {"en": BO}},
    },
    "columns": {
        "language": ["en", "en", "ru"],
        "name": [ADA, BO, ANNA],
        "gender": ["female", "male", "female"],
    },
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_names_of_nested_json(layout):
    body = json.dumps(LAYOUTS[layout]).encode()
    assert sorted(of[:3] for of in politicians.names(body)) == FOUND
    with zipfile.ZipFile(packed := io.BytesIO(), "w") as archive:
        archive.writestr("data.json", body)
        archive.writestr("__MACOSX/._data.json", "of the system that packed it")
    assert sorted(of[:3] for of in politicians.names(packed.getvalue())) == FOUND
