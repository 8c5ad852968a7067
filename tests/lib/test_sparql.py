import json

import pytest

from plumbline.builders.readers.table import bindings, by_item

WD = "http://www.wikidata.org/entity/"
RESULT = {
    "head": {"vars": ["item", "label"]},
    "results": {
        "bindings": [
            {
                "item": {"type": "uri", "value": WD + q},
                "label": {"type": "literal", "value": name, "xml:lang": "ru"},
            }
            for q, name in [("Q2", "Анна"), ("Q1", "Борис"), ("Q2", "Аня")]
        ]
    },
}
BODY = json.dumps(RESULT, ensure_ascii=False).encode()


def test_rows_of_a_result_come_grouped_by_item_in_their_order():
    rows = bindings(BODY)
    assert rows == RESULT["results"]["bindings"]
    grouped = [(qid, [row["label"]["value"] for row in group]) for qid, group in by_item(rows)]
    assert grouped == [("Q2", ["Анна", "Аня"]), ("Q1", ["Борис"])]


def test_a_body_cut_anywhere_is_never_taken_for_a_result():
    for end in range(len(BODY)):
        with pytest.raises(ValueError):
            bindings(BODY[:end])


@pytest.mark.parametrize(
    "body",
    [
        b"<!DOCTYPE html><html></html>",
        b'{"head": {}, "boolean": true}',
        BODY + b"java.util.concurrent.TimeoutException",
    ],
)
def test_what_is_not_one_whole_result_is_refused(body):
    with pytest.raises(ValueError):
        bindings(body)
