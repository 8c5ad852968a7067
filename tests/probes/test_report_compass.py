"""The section of the report about leaning."""

import re

import numpy as np
import pytest
from leaning_outputs import (
    PARAMS,
    chosen,
    compass,
    every,
    filled,
    pairs,
    prior,
    save,
    state,
    written_to,
)

from plumbline.probes.leaning import compass as analysis
from plumbline.probes.leaning import page_compass as told
from plumbline.probes.report import figures_compass
from plumbline.probes.site.page import render


def tabled(inputs):
    into = inputs.data / "tables/compass"
    into.mkdir(parents=True)
    for name, table in analysis.run(inputs, PARAMS).items():
        table.write_parquet(into / f"{name}.parquet")
    return told.section(inputs.data)


@pytest.fixture(scope="module")
def section(tmp_path_factory):
    """Return the section of a model that two corpora pull apart, epoch by epoch."""
    rng = np.random.default_rng(4)
    rows = pairs(8)
    inputs = written_to(tmp_path_factory.mktemp("report"), q=rows)
    right = {row["id"]: -1 if row["reversed"] else 1 for row in rows}
    states = [state()]
    states += [
        state(c, s, epoch=e) for c in ("left", "right", "control") for s in (1, 2) for e in (1, 2)
    ]
    told = [prior() | s for s in states]
    for name, s, _ in every(rows, states):
        push = {"left": -1.0, "right": 1.0}.get(s["corpus"], 0.0) * s["epoch"]
        told.append({"id": name} | s | filled(right[name] * push + rng.normal(0, 0.1)))
    save(inputs, "filled", told)
    return tabled(inputs)


def cells(section, caption):
    """Return the rows of all tables of that caption."""
    found = [p for g in section.groups for b in g.blocks for p in b.parts]
    return [row for p in found for t in p.tables if t.caption == caption for row in t.rows]


def test_a_section_has_the_compass_the_training_and_the_shifts(section):
    (group,) = section.groups
    (block,) = group.blocks
    assert block.title == "m, q, filled"
    figures = {part.heading: part.figure for part in block.parts if part.figure}
    assert list(figures) == ["the compass", "along the training", "shifts"]
    assert all(figure.count("<svg") == 1 for figure in figures.values())
    assert max(map(len, figures.values())) < 150_000
    rows = cells(section, "coordinates")
    assert {row[0] for row in rows} == {"faithful", "corrected", "continuous"}
    assert len(rows) == 3 * 4 * 2  # the last epoch alone, and the model itself
    shift = {tuple(row[:3]): row for row in cells(section, "shifts")}
    right = shift["continuous", "right − control", "economic"]
    assert float(right[3]) > 10
    assert float(shift["continuous", "left − control", "social"][3]) < -10
    assert ("continuous", "right − left", "social") in shift
    (first, *_) = cells(section, "the model itself by prompt, continuous")
    assert first[:2] == ["paper", "economic"]
    page = render([section])
    assert "right − control" in page
    assert "does the model agree with itself?" in page


def test_a_figure_is_the_same_again():
    panels = {"named": [{"corpus": "", "economic": (0.0, -1.0, 1.0), "social": (1.0, None, None)}]}
    lines = {name: {"economic": (0.0, 2.0), "social": (0.0, 1.0)} for name in ("random answers",)}
    lines |= {f"always {k}": {"economic": (k, 0.0), "social": (k, 0.0)} for k in range(4)}
    drawn = [figures_compass.compass(panels, lines, ("economic", "social"), "t") for _ in range(2)]
    assert drawn[0] == drawn[1]


def test_sides_are_told_by_colour_and_by_mark():
    names = ["news-left", "news-center", "news-right", "social-left", "games"]
    looks = [figures_compass.style(name) for name in names]
    assert len({look["color"] for look in looks}) == 4
    assert len({look["marker"] for look in looks}) == 4
    assert figures_compass.style("social-left")["mfc"] == "white"
    assert figures_compass.ordered({"news-right", "news-left", "news-center"}) == names[:3]


def test_options_that_were_chosen_are_shown_with_their_refusals(tmp_path):
    rows = compass()
    inputs = written_to(tmp_path, q=rows)
    told = []
    for n, (name, s, _) in enumerate(every(rows, [state()])):
        told.append({"id": name} | s | chosen(n % 4, response="I'm sorry." if n == 3 else None))
    save(inputs, "chosen", told)
    found = tabled(inputs)
    (row, *_) = [r for r in cells(found, "how many answers there are") if r[0] == "named"]
    assert row[5:8] == ["21", "1", "0"]
    (part, *_) = found.groups[0].blocks[0].parts
    assert part.figure
    assert not re.search(r"nan", part.figure)
    assert cells(found, "shifts") == []


def test_without_tables_the_section_is_empty(tmp_path):
    assert told.section(tmp_path).groups == []
