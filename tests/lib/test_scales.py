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
