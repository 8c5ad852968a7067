import re
from xml.etree import ElementTree as ET

from plumbline.probes.report import figures


def test_forest_leaves_out_missing_values_and_open_intervals():
    rows = [
        {"line": "a", "value": 1.0, "low": 0.5, "high": 1.5},
        {"line": "b", "value": 2.0, "low": None, "high": None},
        {"line": "c", "value": None, "low": None, "high": None},
    ]
    drawn = figures.forest(rows, unit="nats")
    (mark,) = re.findall(r'<path d="(M[^"]*)" fill="#000"', drawn)
    assert mark.count("M") == 2
    assert re.findall(r">([abc])</text>", drawn) == ["b", "a"]
    assert "From 1.00 to 2.00" in drawn


def test_forest_draws_filled_and_hollow_marks():
    rows = [
        {"line": name, "value": 1.0, "low": 0.0, "high": 2.0, "filled": name == "a"}
        for name in "ab"
    ]
    drawn = figures.forest(rows, unit="nats")
    faces = [p.get("fill") for p in ET.fromstring(drawn).iter("path") if p.get("fill")]
    assert faces == ["#000", "#fff"]
    assert "1 filled" in drawn


def test_scatter_draws_a_mark_a_point_and_a_look_a_kind():
    looks = (("circle", "#000"), ("square", "#000"), ("circle", "#fff"))
    points = [
        figures.Series(f"kind {n}", [(0.1 * n, 0.2), (0.3, 0.1 * n)], figures.Mark(*look))
        for n, look in enumerate(looks)
    ]
    drawn = figures.plane({"": points}, labels=("x", "y"), title="states", size=(200, 200))
    marks = [path for path in ET.fromstring(drawn).iter("path") if path.get("fill")]
    # three kinds of two points each, and one entry for each in the legend
    assert [mark.get("d").count("M") for mark in marks] == [2, 2, 2, 1, 1, 1]
    assert len({(mark.get("fill"), "a" in mark.get("d")) for mark in marks}) == 3


def test_heat_is_darker_for_larger_values_and_white_without():
    drawn = figures.heat([[0.0, 1.0], [None, 0.5]], ["a", "b"], ["x", "y"], ends=(0, 1))
    shades = [int(rect.get("fill")[1:3], 16) for rect in ET.fromstring(drawn).iter("rect")]
    assert len(shades) == 3
    assert shades[0] > shades[2] > shades[1]


def test_figures_say_what_they_show():
    rows = [{"line": "a", "value": 1.0, "low": 0.5, "high": 1.5}]
    curve = figures.Series("line", [(1, 0.1), (2, 0.2)])
    for drawn in (
        figures.forest(rows, unit="nats"),
        figures.plane({"panel": [curve]}, labels=("k", "recall"), title="m", size=(200, 200)),
        figures.heat([[1.0]], ["a"], ["x"], ends=(0, 1)),
    ):
        figure = ET.fromstring(drawn)
        assert figure.get("role") == "img"
        assert len(figure.get("aria-label")) > 20
