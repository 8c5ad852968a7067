"""``plumbline export`` writes tables and datasets that equal small tables."""

import json
import re
import shutil
import struct
import subprocess
from xml.etree import ElementTree as ET

import pandas as pd
import polars as pl
import pytest
from documented import blocks
from imports import TOP
from polars.testing import assert_frame_equal

import plumbline
from plumbline.builders.core import front_matter, parquet
from plumbline.builders.core.errors import UserError
from plumbline.builders.core.schema import Column, Schema
from plumbline.checkout import export
from plumbline.console import main
from plumbline.figure import Figure
from plumbline.latex import Selection
from plumbline.probes.report import figures

GENDERS = ("male", "female", "non-binary")
NUMBERS = ("value", "low", "high", "p", "p_bh")
WORDS = Schema.keyed(
    (
        Column("word", "string", "what is said", nullable=True),
        Column("gender", "label", "of the people", nullable=True, labels=GENDERS),
        Column("reading", "label", "of the method", labels=("plug-in", "smoothed")),
    ),
    *(Column(name, "float64", f"the {name}", nullable=True) for name in NUMBERS),
    Column("n", "int64", "people"),
    Column("method", "string", "of the interval"),
)
ROWS = [  # rows of the model "mine"; "other" has the first two
    ("brave", 1, 1, 0.7512, 0.6, 0.9, 1e-9, 2e-5, 193, "bootstrap"),
    ("R&D_50%", 0, 1, -0.25, None, 0.1, 0.2, 0.3, 20, "bootstrap"),
    ("[NA], #{x}\\y", None, 1, 12.34, 11.0, None, 0.01, 0.04, 20, "bootstrap"),
    ('said "no"\n', 2, 0, None, None, None, None, None, 1, "bootstrap"),
    ("", 2, 1, 0.0, None, None, 1.0, 1.0, 2, "bootstrap"),
    (None, 1, 1, 1 / 3, 0.1, 0.5, 0.001, 0.002, 2, "bootstrap"),
    ("vůle", 0, 1, 0.5, -0.5, 1.5, 0.5, 0.6, 3, "bootstrap"),
]
PEOPLE = Schema.keyed(
    (Column("qid", "string", "of Wikidata"),),
    Column("gender", "label", "as stated", labels=GENDERS),
    Column("names", "strings", "all of them", nullable=True),
    Column("years", "integers", "in office"),
    Column("native", "bool", "whether"),
)


def stored(folder, config, schema, rows):
    names = [column.name for column in schema.columns]
    frame = pl.DataFrame(rows, names, orient="row", infer_schema_length=None)
    folder.mkdir(parents=True, exist_ok=True)
    parquet.write_table(frame, schema.arrow(), folder / f"{config}.parquet")
    front_matter.write(folder, {config: schema}, front_matter.Origin([], "make", "1"))


@pytest.fixture
def data(tmp_path):
    folder = tmp_path / "data"
    stored(folder / "tables/pmi/mine", "pmi", WORDS, ROWS)
    stored(folder / "tables/pmi/other", "pmi", WORDS, ROWS[:2])
    stored(folder / "tables/anova", "tests", WORDS, ROWS[:1])
    stored(folder / "tables/recovery/values", "values", WORDS, ROWS[:1])
    people = [("Q1", 1, ["Ada", 'B"c, d'], [1990, 1994], True), ("Q2", 0, None, [], False)]
    stored(folder / "datasets/politicians", "en", PEOPLE, people)
    return folder


def exported(data, into, *names, kind="tables", formats=("csv", "parquet", "tex"), **options):
    made = list(export(kind, names, into, data=data, formats=formats, **options))
    assert all(path.is_file() for path in made)
    return {path.relative_to(into).as_posix() for path in made}


def test_export_tables_labels_are_strings(data, tmp_path):
    made = exported(data, tmp_path / "paper", formats=("csv", "parquet"))
    stems = {"pmi/pmi", "anova/tests", "recovery/values/values"}
    files = {f"{stem}.{kind}" for stem in stems for kind in ("csv", "parquet")}
    assert made == files | {f"{stem.rpartition('/')[0]}/columns.csv" for stem in stems}
    table = pl.read_parquet(tmp_path / "paper/pmi/pmi.parquet")
    assert table["model"].to_list() == ["mine"] * len(ROWS) + ["other"] * 2
    assert table.head(len(ROWS))["gender"].to_list() == [
        *("female", "male", None, "non-binary", "non-binary", "female", "male")
    ]
    assert table["reading"].to_list().count("plug-in") == 1
    for at, name in enumerate(WORDS.key):
        if name not in ("gender", "reading"):
            assert table[name].head(len(ROWS)).to_list() == [row[at] for row in ROWS]


def test_export_csv_equals_parquet(data, tmp_path):
    exported(data, tmp_path / "paper")
    table = pl.read_parquet(tmp_path / "paper/pmi/pmi.parquet")
    read = pl.read_csv(tmp_path / "paper/pmi/pmi.csv", infer_schema_length=None)
    assert_frame_equal(read, table, check_exact=True)
    frame = pd.read_csv(tmp_path / "paper/pmi/pmi.csv", keep_default_na=False, na_values=[""])
    assert frame["gender"].dropna().isin(GENDERS).all()
    assert frame["value"].tolist()[5] == 1 / 3


def test_export_columns_csv(data, tmp_path):
    exported(data, tmp_path / "paper", "pmi", formats=["csv"])
    told = {row[1]: row for row in pl.read_csv(tmp_path / "paper/pmi/columns.csv").iter_rows()}
    assert told["gender"] == ("pmi", "gender", "one of male, female, non-binary", "of the people")
    assert list(told) == pl.read_csv(tmp_path / "paper/pmi/pmi.csv").columns


def test_export_datasets_lists(data, tmp_path):
    made = exported(data, tmp_path / "paper", kind="datasets", formats=())
    stem = "politicians/en"
    assert made == {f"{stem}.csv", f"{stem}.parquet", "politicians/columns.csv"}
    rows = pl.read_csv(tmp_path / f"paper/{stem}.csv").to_dicts()
    assert json.loads(rows[0]["names"]) == ["Ada", 'B"c, d']
    assert [json.loads(row["years"]) for row in rows] == [[1990, 1994], []]
    assert [rows[1]["names"], rows[1]["native"], rows[0]["gender"]] == [None, False, "female"]
    read = pl.read_parquet(tmp_path / f"paper/{stem}.parquet")
    assert read["names"].to_list() == [["Ada", 'B"c, d'], None]


def lines(path):
    text = path.read_text("utf-8")
    opened = re.findall(r"\\begin\{(\w+)\}", text)
    assert opened == re.findall(r"\\end\{(\w+)\}", text)
    head = text.split("\\toprule\n")[1].splitlines()[0]
    rows = [line for line in text.splitlines() if " & " in line and line != head]
    columns = len(re.search(r"\{([lr]+)\}", text)[1])
    assert {len(re.split(r"(?<!\\)&", line)) for line in (head, *rows)} == {columns}
    return opened, head, rows, text


def test_export_latex(data, tmp_path):
    chosen = Selection(where={"model": ["mine"], "reading": ["smoothed"]}, rows=5)
    exported(data, tmp_path / "paper", "pmi", formats=["tex"], selection=chosen)
    opened, head, rows, text = lines(tmp_path / "paper/pmi/pmi.tex")
    assert opened == ["tabular"]
    assert head == r"word & gender & value [low, high] & $n$ & adjusted $p$ \\"
    assert rows == [
        r"brave & female & $0.751\ [0.600, 0.900]$ & $193$ & $2\cdot10^{-5}$ \\",
        r"– & female & $0.333\ [0.100, 0.500]$ & $2$ & $0.002$ \\",
        r"{[}NA], \#\{x\}\textbackslash{}y & – & $12.3\ [11.0, \infty]$ & $20$ & $0.040$ \\",
        r"R\&D\_50\% & male & $-0.250\ [-\infty, 0.100]$ & $20$ & $0.300$ \\",
        r"vůle & male & $0.500\ [-0.500, 1.50]$ & $3$ & $0.600$ \\",
    ]
    note = text.split(r"\end{tabular}")[1]
    assert all(words in note for words in ("5 of 6 rows", "model: mine.", "reading: smoothed."))


@pytest.mark.parametrize(
    ("words", "offender"),
    [
        (["tables", "pmmi"], "pmmi"),
        (["tables", "--width", "nan"], "nan"),
        (["datasets", "--formats", "tex"], "tex"),
        (["tables", "--columns", "wrd"], "wrd"),
        (["tables", "--where", "word=no"], "'no'"),
        (["tables", "--rows", "0"], "0"),
        (["datasets", "--to", "file/paper"], "file/paper"),
    ],
)
def test_export_wrong_arguments_write_nothing(data, words, offender, elsewhere, capsys):
    (elsewhere / "file").touch()
    given = ["export", *words, "--data", str(data), *(() if "--to" in words else ("--to", "out"))]
    assert main(given) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert offender in line
    assert [path.name for path in elsewhere.iterdir()] == ["file"]


def test_figure_encode_has_the_width_in_every_format(tmp_path):
    rows = [
        {"line": "a & <b>", "value": 0.5, "low": 0.1, "high": 0.7},
        {"line": "b", "value": -0.2, "low": None, "high": 0.7},
    ]
    width = 8.5
    figure = Figure(figures.forest(rows, unit="nats of $x$", title="PMI"), width)
    page = ET.fromstring(figure.svg)
    ratio = float(page.get("height")) / float(page.get("width"))
    root = ET.fromstring(figure.encode("svg"))
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert root.get("width") == f"{width:g}cm"
    assert float(root.get("height").removesuffix("cm")) == pytest.approx(width * ratio, abs=1e-3)
    pdf = figure.encode("pdf")
    box = [float(n) for n in re.search(rb"/MediaBox ?\[([^]]*)\]", pdf)[1].split()]
    assert box[2] / 72 * 2.54 == pytest.approx(width, abs=0.01)
    assert box[3] / 72 * 2.54 == pytest.approx(width * ratio, abs=0.01)
    assert figure.encode("pdf") == pdf
    figure.savefig(tmp_path / "figure.png")
    across, down = struct.unpack(">II", (tmp_path / "figure.png").read_bytes()[16:24])
    assert across / 300 * 2.54 == pytest.approx(width, abs=0.01)
    assert down / across == pytest.approx(ratio, abs=0.01)
    with pytest.raises(UserError, match="bmp"):
        figure.savefig(tmp_path / "figure.bmp")


@pytest.mark.slow
def test_export_figures_are_those_of_the_report(tmp_path, monkeypatch):
    page = TOP / "data/report/stereotypes.html"
    if not page.is_file():
        pytest.skip("nothing was run here yet: make repro")
    monkeypatch.chdir(TOP)
    made = list(export("tables", ["rsa"], tmp_path, formats=["svg", "pdf"], width=9))
    svgs = [path for path in made if path.suffix == ".svg"]
    assert {path.with_suffix(".pdf") for path in svgs} <= {*made}
    section = re.search(r'<section id="rsa".*?</section>', page.read_text("utf-8"), re.DOTALL)[0]
    shown = [ET.fromstring(svg) for svg in re.findall(r"<svg .*?</svg>", section, re.DOTALL)]
    texts = [[e.text for e in svg.iter("text")] for svg in shown]
    assert texts
    name = "{http://www.w3.org/2000/svg}text"
    written = [[e.text for e in ET.parse(path).iter(name)] for path in svgs]
    assert written[-len(texts) :] == texts


R_PAGE = [TOP / "docs/howto/other-tools.md"]
NEEDED = re.compile(r"(\w+)::|library\((\w+)\)")
ASKED = [
    'cat("levels", levels(words$gender), fill = TRUE)',
    'cat(paste("missing", sum(is.na(words$gender)), "of gender,", sum(is.na(words$value)),',
    '"of value"), fill = TRUE)',
    'cat("types", class(words$value), class(words$n), class(words$p_bh), fill = TRUE)',
    'stopifnot(sum(words$word == "NA", na.rm = TRUE) == 1)',
    'cat("found", found$value[order(found$p_bh)], fill = TRUE)',
]


@pytest.fixture
def paper(data, elsewhere):
    """Return a folder with the files that the page on R reads; one word is "NA"."""
    more = ("NA", 0, 1, -0.4, -0.6, -0.2, 1e-4, 0.003, 193, "bootstrap")
    keys = [
        Column("language", "string", "of the names"),
        Column("pos", "string", "part of speech"),
        Column("unit", "label", "what a word is", labels=("lemma", "form")),
    ]
    schema = Schema((*keys, *WORDS.columns), (*(key.name for key in keys), *WORDS.key))
    for model, rows in (("mine", (more, *ROWS)), ("other", ROWS[:2])):
        stored(data / "tables/pmi" / model, "pmi", schema, [("en", "ADJ", 0, *r) for r in rows])
    exported(data, elsewhere / "paper", "pmi")
    return elsewhere


@pytest.mark.slow
def test_r_recipe_counts_words_of_the_summary(elsewhere):
    result = plumbline.politicians("world-planted", language="en")
    exported(result.folder / "data", elsewhere / "paper", "pmi", formats=["csv"])
    recipe = blocks("r", pages=R_PAGE)[0].text
    where = dict(re.findall(r'(\w+) == "([^"]+)"', recipe))
    keys = re.findall(r'"(\w+)"', re.search(r"duplicated\(.*\)", recipe)[0])
    first = re.search(r"order\(each\$(\w+)", recipe)[1]
    level = float(re.search(r"p_bh <= ([.\d]+)", recipe)[1])
    words = pl.read_csv(elsewhere / "paper/pmi/pmi.csv", infer_schema_length=None).filter(**where)
    each = words.sort(first, nulls_last=True).unique(keys, keep="first", maintain_order=True)
    assert len(each.filter(pl.col("p_bh") <= level)) == len(result.found) > 50
    if shutil.which("Rscript"):
        (elsewhere / "recipe.R").write_text(f"{recipe}\ncat('words', nrow(found))", "utf-8")
        done = subprocess.run(
            ["Rscript", "recipe.R"], cwd=elsewhere, capture_output=True, text=True, check=True
        )
        assert done.stdout.split()[-2:] == ["words", str(len(result.found))]


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("Rscript"), reason="no R here")
def test_r_page_runs(paper):
    """Blocks run if their packages are installed; those that need the Hub are only parsed."""
    ask = ["Rscript", "-e", "cat(rownames(installed.packages()))"]
    here = set(subprocess.run(ask, capture_output=True, text=True, check=True).stdout.split())
    script = []
    for n, block in enumerate(blocks("r", pages=R_PAGE)):
        (paper / f"{n}.R").write_text(block.text, encoding="utf-8")
        needed = {a or b for a, b in NEEDED.findall(block.text)}
        runs = needed <= here and "your-name" not in block.text
        line = 'source("{}.R", print.eval = TRUE)' if runs else 'invisible(parse("{}.R"))'
        script += [line.format(n), *(ASKED if n == 0 else [])]
    (paper / "page.R").write_text("\n".join(script), encoding="utf-8")
    done = subprocess.run(
        ["Rscript", "page.R"], cwd=paper, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    told = done.stdout.splitlines()
    assert "levels male female non-binary" in told
    assert "missing 1 of gender, 1 of value" in told  # excludes the word "NA"
    assert "types numeric integer numeric" in told
    assert "found 0.7512 0.7512 0.3333333 -0.4 12.34" in told
    assert any("one of male, female, non-binary" in line for line in told)
    drawn = ["forest.pdf", *(["forest-ggplot.pdf"] if "ggplot2" in here else [])]
    assert all((paper / name).read_bytes().startswith(b"%PDF") for name in drawn)


def test_pandas_and_polars_lines_read_strings(paper):
    cells = re.findall(r"\| `(p[dl]\.[^`]+)` \|", R_PAGE[0].read_text("utf-8"))
    assert len(cells) == 4
    for cell in cells:
        table = pl.DataFrame(eval(cell, {"pd": pd, "pl": pl}))
        assert set(table["gender"].drop_nulls()) == {*GENDERS}, cell
        assert "NA" in table["word"].to_list(), cell
