import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree as ET

import polars as pl
import pytest

from builders.lib.problem import Problem
from probes.report import figures, write

TOP = Path(__file__).parents[2]
VOID = {"meta", "br", "hr", "img", "link", "input"}


class Page(HTMLParser):
    """What a browser would make of the page: ids, links, headings, tables."""

    def __init__(self, text):
        super().__init__()
        self.ids, self.tags, self.requests, self.open = [], [], [], []
        self.headings, self.tables = [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.tags.append(tag)
        if tag not in VOID:
            self.open.append(tag)
        if "id" in given:
            self.ids.append(given["id"])
        for name in ("src", "href", "xlink:href", "data", "action", "srcset"):
            if name in given:
                self.requests.append(given[name])
        if tag == "table":
            self.tables.append([])
        elif tag == "tr" and "table" in self.open:
            self.tables[-1].append([])
        elif tag in ("th", "td"):
            self.tables[-1][-1].append("")

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] in ("h2", "h3"):
            self.headings.append(data)
        if self.open and self.open[-1] in ("th", "td"):
            self.tables[-1][-1][-1] += data


@pytest.fixture(scope="module")
def text(finished):
    return (finished / "data/report/index.html").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def page(text):
    return Page(text)


def test_every_element_is_closed(page):
    assert page.open == []


def test_controls_come_before_results(page):
    sections = [name for name in page.ids if name in ("controls", "results", "datasets")]
    assert sections == ["controls", "results", "datasets"]
    at = page.headings.index
    assert at("world-null (negative control: nothing planted)") < at("Words and genders")
    assert at("world-planted (positive control: biases planted)") < at("Words and genders")
    assert page.headings.count("tiny") == 1


def test_controls_show_the_numbers_of_the_recovery_tables(page, finished):
    shown = [row for table in page.tables for row in table]
    for world in ("world-planted", "world-null"):
        for row in pl.read_parquet(
            finished / f"data/tables/pmi/{world}/recovery.parquet"
        ).to_dicts():
            limits = f"{row['low']:.3f} to {row['high']:.3f}"
            cells = [row["measure"], f"{row['value']:.3f}", limits, str(row["n"])]
            assert [*cells, row["cluster"], row["null"]] in shown


def test_results_show_the_highest_words_of_both_readings(page, finished):
    table = pl.read_parquet(finished / "data/tables/pmi/tiny/pmi.parquet")
    shown = [row for rows in page.tables for row in rows]
    for reading in (0, 1):
        part = table.filter(
            (pl.col("language") == "en")
            & (pl.col("pos") == 0)
            & (pl.col("gender") == 1)
            & (pl.col("reading") == reading)
        ).drop_nulls("value")
        best = part.sort(["value", "word"], descending=[True, False]).head(3)
        for row in best.to_dicts():
            first = [row["word"], f"{row['value']:.2f}"]
            lists = f"{row['count']} of {row['people']}"
            found = [cells for cells in shown if cells[:2] == first and cells[3] == lists]
            assert found, row["word"]
            assert found[0][4:] == [f"{row['p']:.4f}", f"{row['p_bh']:.3f}"]


def test_datasets_show_their_counts_and_fingerprints(page, text, finished):
    shown = [row for table in page.tables for row in table]
    for name in ("politicians", "words"):
        assert any(heading.startswith(f"{name} ") for heading in page.headings)
        report = pl.read_json(finished / f"data/validation/{name}.json")
        assert report["fingerprint"][0][:16] in text
        rows = pl.read_parquet(finished / f"data/datasets/{name}/hi.parquet")
        assert ["hi", f"{len(rows):,}"] in shown


def test_the_page_asks_nothing_of_anybody(page, text, finished):
    assert page.requests
    assert [target for target in page.requests if not target.startswith("#")] == []
    assert not {"script", "iframe", "link", "img", "object", "embed", "form"} & set(page.tags)
    assert "@import" not in text
    assert re.findall(r"url\((?!#)", text) == []
    assert [p.name for p in (finished / "data/report").iterdir()] == ["index.html"]


def test_references_lead_somewhere_and_to_one_thing(page, text):
    """Figures share ids, so what one of them refers to must be the same in all."""
    wanted = {target[1:] for target in page.requests} | set(re.findall(r"url\(#([^)]+)\)", text))
    assert wanted <= set(page.ids)
    drawn = re.findall(r"<svg.*?</svg>", text, re.DOTALL)
    assert len(drawn) > 4
    seen = {}
    for figure in drawn:
        for element in ET.fromstring(figure).iter():
            if (name := element.get("id")) in wanted:
                body = ET.tostring(element).strip()
                assert seen.setdefault(name, body) == body, name


def test_nothing_on_the_page_names_machine_or_clock(text, finished):
    assert str(finished) not in text
    assert str(TOP) not in text
    assert "<dc:date>" not in text


def test_two_runs_write_the_same_bytes(copied, text):
    assert write().read_text(encoding="utf-8") == text
    subprocess.run(
        [sys.executable, "-m", "probes", "report"],
        env=os.environ | {"PYTHONPATH": str(TOP), "PYTHONHASHSEED": "7"},
        check=True,
        capture_output=True,
    )
    assert Path("data/report/index.html").read_text(encoding="utf-8") == text


def test_without_tables_the_command_is_told(place):
    with pytest.raises(Problem, match="no tables; run `make repro`"):
        write()


def test_clusters_are_drawn_a_mark_a_word_a_shade_a_cluster_and_a_shape_a_gender():
    rows = [(0, "male"), (0, "male"), (0, "female"), (2, "male"), (2, "non-binary")]
    frame = pl.DataFrame(
        {"x": [0.1 * i for i in range(5)], "y": [0.2, 0.1, 0.5, 0.4, 0.0]}
        | {"part": [part for part, _ in rows], "gender": [gender for _, gender in rows]}
    )
    drawn = figures.clusters(frame, "states")
    assert drawn == figures.clusters(frame, "states")
    space = "{http://www.w3.org/2000/svg}"
    groups = [g for g in ET.fromstring(drawn).iter(f"{space}g") if g.get("id")]
    marks = [list(g.iter(f"{space}use")) for g in groups if g.get("id").startswith("PathCollecti")]
    # four kinds, among the words and in the legend
    assert sorted(map(len, marks)) == [1] * 7 + [2]
    kinds = [
        (use[0].get("{http://www.w3.org/1999/xlink}href"), use[0].get("style")) for use in marks
    ]
    fills = {style.split(";")[0] for _, style in kinds}
    assert len(fills) == 2
    assert len({kind for kind, _ in kinds[:4]}) >= 3
