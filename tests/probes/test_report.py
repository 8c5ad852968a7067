import base64
import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import polars as pl
import pytest
from page_read import Page, put, shown

from plumbline.builders.core.errors import UserError
from plumbline.probes.politicians import anova, subgroups
from plumbline.probes.politicians import page as politicians
from plumbline.probes.report import figures
from plumbline.probes.site.build import PAGES, write

TOP = Path(__file__).parents[2]
STEPS = ["results", "pooled", "latent", "supersenses", "sentiments", "averages", "anova"]
STEPS += ["clusters", "subgroups", "robustness", "lexicon_evaluation"]
FIRST, LAST = ["headlines", "controls", "readings"], ["downloads", "versions"]
WORLDS = ("world-planted", "world-null")
SECTIONS = {  # of every page, in their order
    "index": ["results", "controls", "contents", "versions", "studies"],
    "politicians": [*FIRST, *STEPS, *LAST],
    "stereotypes": [*FIRST, "recall", "emotions", "rsa", "shift", *LAST],
    "values": [*FIRST, "values", *LAST],
    "nationality": [*FIRST, "nationality", *LAST],
    "leaning": [*FIRST, "compass", "fairness", *LAST],
    "reliability": ["reliability", *LAST],
    "datasets": ["datasets", "versions"],
}
SECTIONS |= {  # of models
    f"models/{name}": ["headlines", "politicians"] for name in ("tiny", *WORLDS)
}
STUDIED = {"politicians"}  # what this small run has tables of


@pytest.fixture(scope="module")
def site(finished):
    """Return the text of every page."""
    folder = finished / "data/report"
    pages = {path.relative_to(folder).with_suffix(""): path for path in folder.rglob("*.html")}
    return {name.as_posix(): path.read_text(encoding="utf-8") for name, path in pages.items()}


@pytest.fixture(scope="module")
def pages(site):
    return {name: Page(text) for name, text in site.items()}


@pytest.fixture(scope="module")
def text(site):
    """Return the page of a model, where the tables and figures of single models are."""
    return site["models/tiny"]


@pytest.fixture(scope="module")
def page(pages):
    return pages["models/tiny"]


def parted(text):
    """Return each section by its id."""
    found = re.findall(r'<section id="(\w+)"[^>]*>(.*?)</section>', text, re.DOTALL)
    return {name: Page(body) for name, body in found}


def stepped(text):
    """Return what each step of the study has of a model, by its name."""
    found = re.findall(r'<h3 id="politicians-(\w+)">(.*?)(?=<h3 id|</section>)', text, re.DOTALL)
    return {name: Page(body[body.index("</h3>") + 5 :]) for name, body in found}


@pytest.fixture(scope="module")
def sections(site, text):
    """Return the steps of the study, those of single models as their page has them."""
    return parted(site["politicians"]) | stepped(text)


def shown_as(value, digits=2):
    if value is None:
        return "–"
    written = f"{value:.{digits}f}"
    return written if float(written) else f"{0:.{digits}f}"


def limits(row, digits=2, side=""):
    low, high = row[f"low{side}"], row[f"high{side}"]
    return f"{shown_as(low, digits)} to {shown_as(high, digits)}"


def test_every_element_is_closed(pages):
    assert [name for name, page in pages.items() if page.open] == []


def test_a_page_has_controls_first_then_readings_then_the_steps_of_the_study(pages):
    for name, sections in SECTIONS.items():
        empty = name not in STUDIED and not name.startswith("models/")
        lacking = {"downloads", "headlines"} if empty else set()
        wanted = [section for section in sections if section not in lacking]
        read = pages[name]
        assert [i for i in read.ids if i in wanted] == wanted
        inside = [target[1:] for target in read.requests if target.startswith("#")]
        assert inside[: len(wanted) + 1] == ["main", *wanted]


def test_a_model_adds_a_row_and_links_to_the_page_of_a_study_and_no_table(pages, site):
    links = re.findall(r'<p class="note">Model by model: (.*?)</p>', site["politicians"])
    assert len(links) == 6  # steps of single models
    first = '<a href="models/{0}.html#politicians-results">{0}</a>'
    assert links[0] == ", ".join(map(first.format, ("tiny", "world-null", "world-planted")))
    own, controls = parted(site["politicians"])["headlines"].tables  # positive before null
    assert [row[0] for row in (*own[1:], *controls[1:])] == ["tiny", "world-planted", "world-null"]
    (table,) = parted(site["politicians"])["readings"].tables
    assert [row[0] for row in table[1:]] == ["tiny", "world-null", "world-planted"]


@pytest.mark.parametrize("analysis", ["pmi", "latent", "supersenses", "sentiment"])
def test_controls_show_the_numbers_of_the_recovery_tables(site, finished, analysis):
    worlds = {world: stepped(site[f"models/{world}"])["controls"].rows for world in WORLDS}
    rows = pl.read_parquet(finished / f"data/tables/recovery/politicians/{analysis}.parquet")
    rows = rows.filter(pl.col("model").is_in(WORLDS))
    assert set(rows["model"]) == set(WORLDS)
    for row in rows.to_dicts():
        shown = worlds[row["model"]]
        words = [row["measure"], row["cluster"], row["null"]]
        interval = "–" if row["low"] is None else limits(row, 3)
        numbers = [shown_as(row["value"], 3), interval, str(row["n"])]
        assert words + numbers in shown, row["measure"]


def test_downloads_are_parquet_as_it_is_and_csv_with_labels_as_words(site, finished):
    links = re.findall(r'href="(tables/[^"]+)"', site["politicians"])
    report, data = finished / "data/report", finished / "data"
    assert {Path(link).suffix for link in links} == {".parquet", ".csv"}
    for link in links:
        if link.endswith(".parquet"):
            assert (report / link).read_bytes() == (data / link).read_bytes()
    stored = pl.read_parquet(data / "tables/subgroups/tiny/differences.parquet")
    read = pl.read_csv(report / "tables/subgroups/tiny/differences.csv")
    assert read["value"].to_list() == stored["value"].to_list()
    assert set(read["sentiment"]) == {"negative", "neutral", "positive"}


def test_results_show_the_highest_words_of_both_readings(page, finished):
    table = pl.read_parquet(finished / "data/tables/pmi/tiny/pmi.parquet").filter(unit=0)
    shown = page.rows
    for reading in (0, 1):
        part = table.filter(language="en", pos=0, gender=1, reading=reading).drop_nulls("value")
        best = part.sort(["value", "word"], descending=[True, False]).head(3)
        for row in best.to_dicts():
            first = [row["word"], f"{row['value']:.2f}"]
            lists = f"{row['count']} of {row['people']}"
            found = [cells for cells in shown if cells[:2] == first and cells[3] == lists]
            assert found, row["word"]
            p = [f"{row['p']:.4f}", f"{row['p_bh']:.3f}"] if reading else []
            assert found[0][4:] == p


def test_latent_shows_the_ten_words_of_largest_deviation(sections, finished):
    table = pl.read_parquet(finished / "data/tables/latent/tiny/latent.parquet")
    for gender, sentiment in ((0, 0), (1, 1), (1, 2)):
        part = table.filter(language="en", pos=0, gender=gender, sentiment=sentiment)
        rows = [
            [
                *(r["word"], shown_as(r["value"]), limits(r), f"{r['count']} of {r['people']}"),
                *(shown_as(r["p"], 4), shown_as(r["p_bh"], 3)),
            ]
            for r in part.sort("rank").head(10).to_dicts()
        ]
        assert len(rows) == 10
        assert [body[1:] for body in sections["latent"].tables if body[1:] == rows]


def test_supersenses_show_every_class_of_a_pair_of_genders_with_its_people(
    sections, text, finished
):
    table = pl.read_parquet(finished / "data/tables/supersenses/tiny/supersenses.parquet")
    here = table.filter(unit=0, counting=0)
    shown = [row[1:] for row in sections["supersenses"].rows]
    within = here.filter(pl.col("deviation") > 0)  # a sentiment, by latent deviations
    assert within["sentiment"].n_unique() == 3
    within = within.filter(pl.col("share_first") + pl.col("share_second") > 0)
    for r in within.to_dicts():
        cells = [shown_as(r[name]) for name in ("share_first", "share_second", "value")]
        tested = [shown_as(r[p], 3) for p in ("p_bonferroni", "p_bh")]
        assert [*cells, limits(r), *(tested if r["deviation"] > 1 else [str(r["both"])])] in shown
    here = here.filter(deviation=0)
    assert len(here) > 20
    for r in here.to_dicts():
        cells = [shown_as(r["share_first"]), limits(r, side="_first"), shown_as(r["share_second"])]
        cells += [limits(r, side="_second"), shown_as(r["value"]), limits(r), shown_as(r["p"], 4)]
        assert [*cells, shown_as(r["p_bonferroni"], 3), shown_as(r["p_bh"], 3)] in shown
    names = {row[0] for row in sections["supersenses"].rows if row[0] != "class"}
    drawn = "".join(re.findall(r"<svg.*?</svg>", text, re.DOTALL))
    assert [name for name in names if f">{name}</text>" not in drawn] == []
    one = here.filter(first=2, second=0).to_dicts()[0]
    assert f"non-binary ({one['words_first']} words, {one['people_first']} people) and" in text


def test_tables_without_a_number_are_one_line_that_says_why(sections, finished):
    table = pl.read_parquet(finished / "data/tables/anova/coefficients.parquet")
    assert table["low"].is_null().all()  # of so few models
    reasons = table.drop_nulls("reason")["reason"].unique().to_list()
    assert reasons
    shown = sections["anova"]
    assert shown.tables == []
    assert shown.words.count("Without a number, and left out: ") == table["models"].n_unique()
    assert [reason for reason in reasons if f"{reason} (" not in shown.words] == []


def test_coefficients_have_intervals_of_both_kinds_and_why_there_is_none(tmp_path):
    codes = ("models", "design", "group", "pos", "deviation", "reading", "response", "factor")
    place = dict.fromkeys(codes, 0) | {"language": "en", "level": "", "reference": ""}
    place |= {"rows": 9, "df": 4}
    place |= {"n": 9, "cluster": "model", "method": "least squares", "null": "0", "tested": 1}
    known = {"value": 2.0, "low": 1.0, "high": 3.0, "p": 0.01, "p_bh": 0.04, "reason": ""}
    none = dict.fromkeys(("value", "low", "high", "p", "p_bh")) | {"reason": "one level"}
    rows = [
        place | {"sentiment": s, "interval": kind} | (none if s == 2 else known)
        for s in range(3)
        for kind in range(2)
    ]
    names = list(anova.COEFFICIENTS.arrow().names)
    frame = pl.DataFrame([dict.fromkeys(names) | row for row in rows])
    put(tmp_path / "tables/anova", {"coefficients": anova.COEFFICIENTS}, {"coefficients": frame})
    (section,), _ = shown(tmp_path, politicians.STUDY, "anova")
    (table,) = section.groups[0].blocks[0].parts[0].tables
    cells = "2.00 (1.00 to 3.00)*"
    kinds = anova.COEFFICIENTS["interval"].labels
    assert table.rows == [["intercept", kind, "one level", cells, cells, "–"] for kind in kinds]


def test_lexica_stand_beside_the_majority_class_and_what_the_combination_is_better_by(
    sections, finished
):
    folder = finished / "data/tables/lexicon_evaluation"
    _, macro = sections["lexicon_evaluation"].tables  # accuracy comes first
    shown = {row[0]: row for row in macro}
    own = {"measure": 1, "source": "sentences"}
    table, apart = (
        pl.read_parquet(folder / f"{name}.parquet").filter(**own)
        for name in ("agreement", "differences")
    )
    better = {row["lexicon"]: row["value"] for row in apart.iter_rows(named=True)}
    assert len(table) > 4
    for row in table.iter_rows(named=True):
        cells = shown[f"view: {row['lexicon']}" if row["kind"] == 2 else row["lexicon"]]
        assert cells[3:6] == [shown_as(row["value"]), limits(row), shown_as(row["chance"])]
        assert cells[8] == shown_as(better.get(row["lexicon"]))


def test_the_page_is_written_without_what_takes_long_to_import():
    heavy = {"torch", "transformers", "scipy", "statsmodels", "sklearn", "matplotlib"}
    code = f"import sys, plumbline.probes.site; print({heavy} & set(sys.modules))"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=TOP, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_clusters_show_inertia_silhouette_and_stability(sections, finished):
    table = pl.read_parquet(finished / "data/tables/clusters/tiny/fits.parquet")
    shown = sections["clusters"].rows
    for _, part in table.group_by("language", "pos", "reading", "group", "clusters"):
        by = {r["measure"]: r for r in part.to_dicts()}
        star = "*" if by[1]["chosen"] else ""
        measured = [m for m in range(4) if m in by]  # no gap without a reference
        cells = [f"{shown_as(by[m]['value'])} ({limits(by[m])})" for m in measured]
        cells += ["–"] * (4 - len(measured))
        p = [shown_as(by[1]["p"], 3), shown_as(by[1]["p_bh"], 3)]
        assert [f"{by[1]['clusters']}{star}", *cells, *p] in shown
    r, *_ = pl.read_parquet(finished / "data/tables/clusters/tiny/shares.parquet").to_dicts()
    cells = [str(r["cluster_id"]), ("male", "female")[r["gender"]], f"{r['count']} of {r['words']}"]
    assert cells in [row[:3] for row in shown]


def test_means_over_models_and_differences_of_genders_are_shown(sections, finished):
    shown = sections["averages"].rows
    table = pl.read_parquet(finished / "data/tables/averages/averages.parquet")
    table = table.filter(reading=1, response=3)  # men less women
    assert len(table) > 20
    for r in table.to_dicts():
        pos, sentiment = ("ADJ", "VERB")[r["pos"]], ("positive", "negative", "neutral")
        row = [r["language"], pos, sentiment[r["sentiment"]], shown_as(r["value"])]
        row.append("–" if r["low"] is None else limits(r))
        assert [*row, shown_as(r["lowest"]), shown_as(r["highest"]), str(r["n"])] in shown
    pooled = pl.read_parquet(finished / "data/tables/pmi/pooled/differences.parquet")
    pooled = pooled.filter(unit=0).drop_nulls("value")
    for _, part in pooled.group_by("group", "language", "pos", "reading"):
        first = part.sort("rank").row(0, named=True)
        rows = [row for row in sections["pooled"].rows if row[0] == first["word"]]
        cells = [shown_as(first["value"]), str(first["n"])]
        assert cells in [[row[3], row[5]] for row in rows if len(row) > 5]


def test_subgroups_show_people_of_each_gender_and_differences(sections, finished):
    folder = finished / "data/tables/subgroups/tiny"
    shown = sections["subgroups"].rows
    people, apart, alike = (
        pl.read_parquet(folder / f"{name}.parquet")
        for name in ("people", "differences", "agreement")
    )
    assert min(map(len, (people, apart, alike))) > 10
    for (language, subgroup), part in people.group_by("language", "subgroup"):
        row = [f"{r['people']} ({r['names']})" for r in part.sort("gender").to_dicts()]
        assert len(row) == 3
        assert [language, subgroups.SUBGROUPS[subgroup], *row] in shown
    for r in apart.to_dicts():
        what = [r["language"], ("ADJ", "VERB")[r["pos"]], subgroups.CONTRASTS[r["contrast"]]]
        what.append(("positive", "negative", "neutral")[r["sentiment"]])
        numbers = [shown_as(r["value"]), limits(r), str(r["n"])]
        assert [*what, *numbers, shown_as(r["p"], 4), shown_as(r["p_bh"], 3)] in shown
    for r in alike.to_dicts():
        cells = [str(r["words"]), shown_as(r["value"]), limits(r), str(r["n"])]
        assert cells in [row[2:6] for row in shown]


def test_pooled_shows_the_highest_words_of_each_group(sections, finished):
    table = pl.read_parquet(finished / "data/tables/pmi/pooled/pooled.parquet").filter(unit=0)
    shown = sections["pooled"].rows
    keys = ("group", "language", "pos", "gender", "reading")
    for _, part in table.drop_nulls("value").group_by(*keys):
        r = part.sort(["value", "word"], descending=[True, False]).to_dicts()[0]
        cells = [r["word"], shown_as(r["value"])]
        cells += [] if r["low"] is None else [limits(r)]
        found = [row for row in shown if row[: len(cells)] == cells]
        assert f"{r['count']} of {r['people']}" in [row[3] for row in found]


def test_robustness_lists_numbers_that_move_first_by_the_size_of_their_change(
    sections, finished, text
):
    table = pl.read_parquet(finished / "data/tables/robustness/tiny/robustness.parquet")
    table = table.filter(pl.col("kind") != 0)
    moved = table.filter(pl.col("change").abs() > 0)
    still = table.filter(pl.col("change") == 0)
    assert len(moved)
    for rows, what in ((moved, "move"), (still, "stay as they are")):
        title = f"tiny: {len(rows)} numbers that {what} ({len(rows)} rows)"
        assert f"<details><summary>{title}</summary>" in text  # closed
    heads = {(t[0][0], *t[0][5:6]): t for t in reversed(sections["robustness"].tables)}
    changes = [row[6] for row in heads["what is varied", "default held"][1:]]
    expected = sorted(moved["change"].to_list(), key=abs, reverse=True)
    assert [abs(float(c)) for c in changes] == [abs(float(shown_as(c))) for c in expected]
    assert sorted(changes) == sorted(map(shown_as, expected))


def test_non_binary_people_are_shown_with_their_number(sections, text, finished):
    table = pl.read_parquet(finished / "data/tables/pmi/tiny/pmi.parquet")
    people = table.filter(pl.col("gender") == 2)["people"].unique().to_list()
    assert people
    for n in people:
        assert f"<h4>non-binary ({n} people)</h4>" in text
    folk = pl.read_parquet(finished / "data/tables/subgroups/tiny/people.parquet")
    assert (folk["gender"] == 2).any()
    assert "non-binary" in sections["subgroups"].tables[0][0]
    headers = [t[0] for t in sections["robustness"].tables if len(t[0]) > 10]
    assert headers
    assert all(any("non-binary" in cell for cell in header) for header in headers)


def test_content_is_warned_of_before_any_word_is_shown(site):
    for text in site.values():
        assert text.index("Sensitive content") < text.index("<section")


def test_what_is_not_there_is_skipped_and_a_section_of_nothing_says_so(copied):
    tables = copied / "data/tables"
    shutil.rmtree(tables / "latent")
    shutil.rmtree(tables / "anova")
    shutil.rmtree(tables / "supersenses" / "world-null")
    for name in ("tiny", "world-planted"):
        for table in ("shares", "differences"):
            (tables / "subgroups" / name / f"{table}.parquet").unlink()
    steps = ("latent", "anova", "supersenses", "subgroups")
    found, text = shown(copied / "data", politicians.STUDY, *steps)
    *_, supersenses, parts = found
    assert [g.title for g in supersenses.groups] == ["tiny", "world-planted"]
    captions = {
        t.caption for g in parts.groups for b in g.blocks for p in b.parts for t in p.tables
    }
    assert captions == {"People (distinct names)", "Agreement of both parts"}
    body = parted(text)
    assert "make repro" not in body["supersenses"].words
    for name in ("latent", "anova"):
        assert body[name].tables == []
        assert f"make repro STAGE={name}" in body[name].words


def test_a_model_that_is_no_longer_asked_is_not_shown(copied, change):
    def models():
        found, _ = shown(Path("data"), politicians.STUDY, "results", "latent", "supersenses")
        return [{group.title for group in one.groups} for one in found]

    before = models()
    assert all("tiny" in each for each in before)
    change(
        lambda tree: [tree["assignments"][of].remove("tiny") for of in ("associations", "words")]
    )
    assert models() == [each - {"tiny"} for each in before]


def test_datasets_show_their_counts_and_fingerprints(pages, site, finished):
    page, text = pages["datasets"], site["datasets"]
    for name in ("politicians", "words"):
        assert any(heading.startswith(f"{name} ") for heading in page.headings)
        report = pl.read_json(finished / f"data/validation/{name}.json")
        assert report["fingerprint"][0][:16] in text
        rows = pl.read_parquet(finished / f"data/datasets/{name}/hi.parquet")
        assert ["hi", f"{len(rows):,}"] in page.rows
    assert "1 warning(s): en: expect_rows word." in text


@pytest.mark.parametrize("name", SECTIONS)
def test_a_page_asks_nothing_of_anybody(pages, site, finished, name):
    text, page = site[name], pages[name]
    apart = [target.partition("#")[0] for target in page.requests if not target.startswith("#")]
    assert apart.count("data:,") == 1  # the icon, so that no browser looks for one
    # all else is beside it, under whatever path the site stands
    folder = (finished / "data/report" / name).parent
    beside = [target for target in apart if target != "data:,"]
    assert len(beside) >= len(PAGES)  # the navigation
    assert [t for t in beside if t.startswith("/") or not (folder / t).is_file()] == []
    assert not {"iframe", "img", "object", "embed", "form"} & set(page.tags)
    assert page.tags.count("link") == page.tags.count("script") == 1
    assert "@import" not in text
    assert re.findall(r"url\((?!#)", text) == []


def test_the_script_is_the_only_one_that_may_run(site):
    for text in site.values():
        (script,) = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        policy = f"style-src 'unsafe-inline'; script-src 'sha256-{digest}'; base-uri 'none'"
        assert f"content=\"default-src 'none'; img-src data:; {policy}" in text


def test_the_site_is_pages_tables_and_what_experiments_are_compared_by(site, finished):
    assert set(site) == set(SECTIONS)
    folder = finished / "data/report"
    others = {"metrics.json", "models", "plots", "tables"}
    assert {path.name for path in folder.iterdir() if path.suffix != ".html"} == others


def test_references_lead_somewhere_and_to_one_thing(pages, site):
    for name, page in pages.items():
        text = site[name]
        inside = {target[1:] for target in page.requests if target.startswith("#")}
        assert inside | set(re.findall(r"url\(#([^)]+)\)", text)) <= set(page.ids)
        assert len(page.ids) == len(set(page.ids))
    assert site["models/tiny"].count("<svg") > 4
    for name, page in pages.items():  # and into other pages
        for target, _, at in (one.partition("#") for one in page.requests if "#" in one[1:]):
            assert (
                at in pages[os.path.normpath(Path(name).parent / target).removesuffix(".html")].ids
            )


def test_nothing_on_a_page_names_machine_or_clock(site, finished):
    for text in site.values():
        assert str(finished) not in text
        assert str(TOP) not in text
        assert "<dc:date>" not in text


def test_the_site_takes_few_bytes(site, text, finished):
    """With all tables of the project there are over a hundred figures, in at most 6 MB."""
    files = [path for path in (finished / "data/report").rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 6e6
    drawn = re.findall(r"<svg.*?</svg>", text, re.DOTALL)
    assert sum(map(len, drawn)) / len(drawn) < 45e3
    assert "<text" in drawn[0]  # and not the outlines of its letters
    assert not re.search(r"<[^>]*\d\.\d{3,}", "".join(drawn))


@pytest.mark.slow
def test_two_runs_write_the_same_bytes(copied, finished):
    subprocess.run(
        [sys.executable, "-m", "plumbline.probes", "report"],
        env=os.environ | {"PYTHONPATH": str(TOP), "PYTHONHASHSEED": "7"},
        check=True,
        capture_output=True,
    )
    files = {path.relative_to(finished): path for path in (finished / "data/report").rglob("*.*")}
    assert len(files) > len(SECTIONS) + 10
    assert {path: path.read_bytes() for path in Path("data/report").rglob("*.*")} == {
        path: file.read_bytes() for path, file in files.items()
    }


def test_forests_of_a_section_have_one_axis_over_all_models_and_zero_in_it(site):
    axes = []
    for world in WORLDS:
        shown = site[f"models/{world}"]
        section = re.search(r'id="politicians-readings">(.*?)</svg>', shown, re.DOTALL)
        axes.append(re.findall(r'<text x="([\d.]+)"[^>]*>(-?[\d.]+)</text>', section[1]))
    assert axes[0] == axes[1]
    assert "0" in [text for _, text in axes[0]]


def test_what_git_keeps_is_what_the_site_has_of_untrained_models(finished):
    kept, whole = finished / "data/headlines", finished / "data/report"
    files = sorted(path.relative_to(kept) for path in kept.rglob("*.*"))
    assert [path.stem for path in files if path.suffix == ".csv"][:3] == [
        *("controls", "headlines", "nationality")
    ]
    for path in files:
        assert (kept / path).read_bytes() == (whole / path).read_bytes()
    assert not (kept / "plots/leaning.csv").exists()


def test_without_tables_the_command_is_told(place):
    with pytest.raises(UserError, match="no tables; run `make repro`"):
        write()


def test_a_plane_is_drawn_a_mark_a_point_and_a_look_a_kind():
    looks = (("circle", "#000"), ("square", "#000"), ("circle", "#fff"))
    points = [
        figures.Points(f"kind {n}", [(0.1 * n, 0.2), (0.3, 0.1 * n)], figures.Mark(*look))
        for n, look in enumerate(looks)
    ]
    drawn = figures.scatter({"": points}, labels=("x", "y"), title="states")
    marks = [path for path in ET.fromstring(drawn).iter("path") if path.get("fill")]
    # three kinds of two points each, and one of each in the legend
    assert [mark.get("d").count("M") for mark in marks] == [2, 2, 2, 1, 1, 1]
    assert len({(mark.get("fill"), "a" in mark.get("d")) for mark in marks}) == 3


def test_an_interval_without_an_end_and_a_number_that_is_missing_are_not_drawn():
    rows = [
        {"what": "a", "value": 1.0, "low": 0.5, "high": 1.5},
        {"what": "b", "value": 2.0, "low": None, "high": None},
        {"what": "c", "value": None, "low": None, "high": None},
    ]
    drawn = figures.forest(rows, line="what", unit="nats")
    (mark,) = re.findall(r'<path d="(M[^"]*)" fill="#000"', drawn)
    assert mark.count("M") == 2
    assert re.findall(r">([abc])</text>", drawn) == ["b", "a"]
    assert "From 1.00 to 2.00" in drawn
