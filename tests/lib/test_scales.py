import json

import pytest
from published import compass, eight

from plumbline.builders.datasets.statements.formats import scale


def test_a_proposition_is_on_the_axis_that_its_answers_move():
    rows = scale(compass().encode(), "political-compass")
    assert len(rows) == 62
    first, second, third = rows[:3]
    assert (first.id, first.axis, first.weight, first.reversed) == ("pc-01", "economic", 80, True)
    assert (second.axis, second.weight, second.reversed) == ("social", 195, False)
    assert second.points == (-242, -1.5, 0, 148)
    assert (third.axis, third.weight, third.points) == ("", 0, (0, 0, 0, 0))
    both = scale(compass(social=[0, 0, 1, 0]).replace("148", "147").encode(), "political-compass")
    assert [(row.id, row.axis) for row in both[:2]] == [("pc-01", "economic"), ("pc-01", "social")]


def test_a_question_has_a_row_for_each_axis_that_it_moves():
    rows = scale(eight().encode(), "8values")
    assert [(r.id, r.axis, r.weight, r.reversed) for r in rows[:4]] == [
        ("8v-01", "econ", 10, False),
        ("8v-01", "govt", 5, True),
        ("8v-02", "dipl", 10, False),
        ("8v-02", "scty", 10, True),
    ]
    assert (rows[0].text, rows[2].text) == ("I drink tea", "tea 2 is dear")
    assert len(rows) == 140


def dropped() -> str:
    found = json.loads(compass())
    del found["propositions"][7]
    return json.dumps(found)


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("{", "not JSON"),
        ("[]", "not an object with a list of 62 'propositions'"),
        (dropped(), "list of 62"),
        (compass(id=2), "proposition 1: has not the id 1"),
        (compass(text=" "), "proposition 1: no text"),
        (compass(text="Tea 9 is dear."), "pc-09: the same text as pc-01"),
        (compass(economic=[1, 2, 3]), "proposition 1, economic: not 4 numbers"),
        (compass(economic=[1, 2, 3, "4"]), "not 4 numbers"),
        (compass(economic=[1, 2, 3, float("nan")]), "not 4 numbers"),
        (compass(economic=[78, 5, 0, -83]), "economic: the answers add up to -83 to 78"),
    ],
)
def test_a_file_that_is_no_compass_is_refused_with_the_place(text, wrong):
    with pytest.raises(ValueError, match=wrong):
        scale(text.encode(), "political-compass")


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        (eight() + "alert(1);", "and nothing else"),
        ("fetch('x');" + eight(), "and nothing else"),
        (eight().replace("10", "f(10)", 1), "not JSON"),
        (eight(69), "69 questions, and 8values has 70"),
        (eight(effect={"econ": 1}), "question 1: has no effect on just econ, dipl, govt, scty"),
        (eight(effect=dict.fromkeys(("econ", "dipl", "govt", "scty"), "x")), "'x' is not a number"),
        (eight(question=""), "question 1: no text"),
    ],
)
def test_a_file_that_is_no_list_of_questions_is_refused_and_never_run(text, wrong):
    with pytest.raises(ValueError, match=wrong):
        scale(text.encode(), "8values")


def test_javascript_is_read_with_and_without_a_declaration():
    for head in ("questions", "var questions", "const questions"):
        assert len(scale(eight().replace("questions", head, 1).encode(), "8values")) == 140
