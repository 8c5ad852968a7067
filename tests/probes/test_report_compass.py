"""The section of the report about leaning."""

import numpy as np
import pytest
from answered_leaning import chosen, compass, every
from page_read import listed, put, shown

from calibration.leaning.responses import (
    PLACES,
    filled,
    pairs,
    prior,
    save,
    state,
    written_to,
)
from plumbline.probes.leaning import compass as analysis
from plumbline.probes.leaning import page as told
from plumbline.probes.leaning.schemas import SCHEMAS

PARAMS = analysis.Params(
    version="0.1.0", n_permutations_stability=199, confidence=0.95, seed=1, **PLACES
)


def tabled(inputs):
    put(inputs.data / "tables/compass", SCHEMAS, analysis.run(inputs, PARAMS))
    return shown(inputs.data, told.STUDY, "compass")


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
    answers = [prior() | s for s in states]
    for name, s, _ in every(rows, states):
        push = {"left": -1.0, "right": 1.0}.get(s["corpus"], 0.0) * s["epoch"]
        answers.append({"id": name} | s | filled(right[name] * push + rng.normal(0, 0.1)))
    save(inputs, "mask", answers)
    return tabled(inputs)


def test_a_section_has_the_compass_the_training_and_the_shifts(section):
    (section,), page = section
    (group,) = section.groups
    (block,) = group.blocks
    assert block.title == "m, q, mask"
    figures = {part.heading: part.figure for part in block.parts if part.figure}
    assert list(figures) == ["the compass", "along the training", "shifts"]
    assert all(figure.count("<svg") == 1 for figure in figures.values())
    assert max(map(len, figures.values())) < 150_000
    rows = listed(section, "coordinates")
    assert {row[0] for row in rows} == {"faithful", "corrected", "continuous"}
    assert len(rows) == 3 * 4 * 2  # the last epoch alone, and the model itself
    shift = {tuple(row[:3]): row for row in listed(section, "shifts")}
    right = shift["corrected", "right − control", "economic"]  # in nats
    assert float(right[3]) > 0.5
    assert float(shift["corrected", "left − control", "social"][3]) < -0.5
    assert ("corrected", "right − left", "social") in shift
    (first, *_) = listed(section, "the model itself by prompt, continuous")
    assert first[:2] == ["paper", "economic"]
    assert "right − control" in page
    assert "does the model agree with itself?" in page


def test_polarisation_and_paraphrasers_are_shown(tmp_path):
    rows = pairs(4)
    inputs = written_to(tmp_path, q=rows)
    right = {row["id"]: -1 if row["reversed"] else 1 for row in rows}
    states = [state(c, s, period=p) for c in ("left", "right") for s in (1, 2) for p in (1, 2)]
    answers = [prior() | s for s in (state(), *states)]
    for name, s, _ in every(rows, [state(), *states]):
        push = {"left": -0.2, "right": 0.2}.get(s["corpus"], 0.0) * s["period"]
        push += 0.05 * s["pretraining_seed"]
        answers.append({"id": name} | s | filled(right[name] * push))
        if not s["corpus"]:
            answers.append({"id": name, "form": 2, "variant": "t5"} | s | filled(right[name]))
    save(inputs, "mask", answers)
    (found,), _ = tabled(inputs)
    shift = {tuple(row[:3]): row for row in listed(found, "shifts")}
    assert float(shift["corrected", "right − left, from − before", "social"][3]) == 0.4
    assert ("corrected", "left, from − before", "social") in shift
    listing = listed(found, "the model itself by paraphrase of the statements, continuous")
    assert [row[0] for row in listing] == ["as it stands"] * 2 + ["t5"] * 2
    assert {row[-1] for row in listing} == {"0", str(len(rows))}


def test_sides_are_told_by_colour_and_by_mark():
    names = ["news-left", "news-center", "news-right", "social-left", "games"]
    looks = [told.style(name) for name in names]
    assert len({look.edge for look in looks}) == 4
    assert len({look.shape for look in looks}) == 4
    assert told.style("social-left").face == "#fff"
    assert told.ordered({"news-right", "news-left", "news-center"}) == names[:3]


def test_options_that_were_chosen_are_shown_with_their_refusals(tmp_path):
    rows = compass()
    inputs = written_to(tmp_path, q=rows)
    answers = []
    for n, (name, s, _) in enumerate(every(rows, [state()])):
        answers.append({"id": name} | s | chosen(n % 4, response="I'm sorry." if n == 3 else None))
    save(inputs, "multiple_choice", answers)
    (found,), _ = tabled(inputs)
    (row, *_) = [r for r in listed(found, "how many answers there are") if r[0] == "named"]
    assert row[5:8] == ["21", "1", "0"]
    (part, *_) = found.groups[0].blocks[0].parts
    assert part.figure
    assert "nan" not in part.figure
    assert listed(found, "shifts") == []


def test_a_model_without_a_place_is_shown_with_its_bounds(tmp_path):
    rows = pairs(4)
    inputs = written_to(tmp_path, q=rows)
    told = [
        {"id": n} | s | chosen(2, response="No.", nats=False) for n, s, _ in every(rows, [state()])
    ]
    save(inputs, "multiple_choice", told)
    (found,), _ = tabled(inputs)
    (row, *_) = listed(found, "coordinates")
    assert row[4:8] == ["–"] * 4  # place, interval and p
    assert "0.00 to 100.00" in row
