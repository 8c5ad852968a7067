import pytest
from samples import DAY, POLITE

from plumbline.builders.core.parquet import Reject
from plumbline.builders.core.snapshot import Snapshot
from plumbline.builders.datasets.names import build as dataset
from plumbline.builders.datasets.names import fetch as names
from sources.test_wikidata import triples

# name, gender, given name, family name, citizenship, year of birth
PEOPLE = [
    *[("Q6581097", "Q101", "Q201", "Q142", 1950 + i) for i in range(5)],  # Jean Martin, French
    *[("Q6581097", "Q102", "Q201", "Q142", 1960 + i) for i in range(4)],  # Luc Martin
    *[("Q6581072", "Q103", "Q202", "Q142", 1970 + i) for i in range(6)],  # Léa Petit
    *[("Q1052281", "Q103", "Q203", "Q142", 1990) for _ in range(3)],  # trans women, Léa Go
    *[("Q48270", "Q103", "Q203", "Q142", 1991) for _ in range(2)],  # non-binary, Léa Go
    *[("Q6581097", "Q101", "Q201", "Q30", 1980) for _ in range(7)],  # Jean Martin, American
    *[("Q6581097", "Q102", "Q203", "Q142", 1890) for _ in range(9)],  # born before the range
]
NAMES = {"Q101": "Jean", "Q102": "Luc", "Q103": "Léa", "Q201": "Martin", "Q202": "Petit"}


def turtle() -> str:
    lines = []
    for number, (gender, given, family, country, year) in enumerate(PEOPLE, start=1000):
        lines.append(
            f"wd:Q{number} wdt:P31 wd:Q5 ; wdt:P21 wd:{gender} ; wdt:P735 wd:{given} ; "
            f"wdt:P734 wd:{family} ; wdt:P27 wd:{country} ; "
            f'wdt:P569 "{year}-05-01T00:00:00Z"^^xsd:dateTime .'
        )
    lines += [f'wd:{qid} rdfs:label "{label}"@en .' for qid, label in NAMES.items()]
    lines += ['wd:Q203 rdfs:label "Go"@mul .', 'wd:Q201 rdfs:label "Мартин"@ru .']
    lines += ['wd:Q203 rdfs:label "戈"@zh-tw, "戈简"@zh-hans .']
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def counting(tmp_path_factory):
    """A real SPARQL engine over a few invented people."""
    with triples(tmp_path_factory.mktemp("people"), turtle()) as address:
        yield address


def params(address: str, **changes) -> names.Params:
    wikidata = {"endpoint": address, "countries": {"fr": "Q142", "us": "Q30"}} | changes
    return names.Params(lists=[], wikidata=wikidata)


def test_names_of_people_are_counted_by_citizenship_and_gender(counting, tmp_path):
    names.fetch(params(counting, range_days=7000, batch_size=2), POLITE, tmp_path / DAY)
    found = Snapshot.open(tmp_path / DAY)
    assert found.manifest["counts"] == {"wikidata": 6}
    wanted = dataset.Params(version="0.1.0", snapshot="x", countries=["fr", "us"], words=["go"])
    items = list(dataset.build(found, wanted))
    rows = [
        (i.config, dataset.KINDS[i.values["kind"]], i.values["name"], i.values["count"])
        for i in items
        if not isinstance(i, Reject)
    ]
    assert rows == [
        ("fr", "male", "Jean", 5),
        ("fr", "male", "Luc", 4),
        ("fr", "female", "Léa", 9),  # with the trans women, without the non-binary people
        ("fr", "last", "Martin", 9),
        ("fr", "last", "Petit", 6),
        ("fr", "last", "Go", 5),
        ("us", "male", "Jean", 7),
        ("us", "last", "Martin", 7),
    ]
    flagged = [i.values["name"] for i in items if not isinstance(i, Reject) and i.values["flags"]]
    assert flagged == ["Go"]


def test_labels_of_names_in_variants_of_the_language(counting, tmp_path):
    names.fetch(params(counting, range_days=30000, language="zh"), POLITE, tmp_path / DAY)
    wanted = dataset.Params(version="0.1.0", snapshot="x", countries=["fr"])
    items = dataset.build(Snapshot.open(tmp_path / DAY), wanted)
    assert [i.values["name"] for i in items if not isinstance(i, Reject)] == ["戈简"]


def test_a_name_of_few_people_is_left_out_and_counted(counting, tmp_path, monkeypatch):
    monkeypatch.setattr(dataset, "PEOPLE_MIN", 6)
    names.fetch(params(counting, range_days=30000), POLITE, tmp_path / DAY)
    wanted = dataset.Params(version="0.1.0", snapshot="x", countries=["fr"])
    items = list(dataset.build(Snapshot.open(tmp_path / DAY), wanted))
    few = {i.key for i in items if isinstance(i, Reject) and i.reason.startswith("of fewer people")}
    assert few == {"fr/male/Jean", "fr/male/Luc", "fr/last/Go"}
