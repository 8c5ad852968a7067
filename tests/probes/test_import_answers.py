"""The command that analyses answers of others to a political questionnaire.

`expected/rottger_answers.csv` lists the answers released by Röttger et al. (2024, CC BY 4.0) whose
option the project reads differently: the verdict or option of their authors, that of the project,
which of the two is right, and the decisive words of the answer.
"""

import json
from pathlib import Path

import building
import polars as pl
import pytest
from placed import validated
from samples import POLITE

from plumbline.builders.core.build import build
from plumbline.builders.core.snapshot import Snapshot
from plumbline.builders.datasets.statements import build as statements
from plumbline.builders.datasets.statements import fetch as client
from plumbline.probes.__main__ import main
from plumbline.probes.leaning.responses import WEIGHTS, outputs, readings
from plumbline.probes.leaning.scoring import OPTIONS, scales

SHARED = building.REAL / "statements"
RELEASED = SHARED / "rottger2024"
DIFFERENCES = Path(__file__).parents[1] / "expected/rottger_answers.csv"
COLUMNS = ("id=pct_id", "template=templ_id", "suffix=jail_id", "prompt=full_prompt")
COLUMNS += ("response=completion", "options=ans_prompt")
COMPASS = "political-compass"


@pytest.fixture
def compass(project):
    """Build the real questionnaire of the political compass in a project."""
    facts = dict.fromkeys(("licence", "source"), "its makers") | {"language": "en"}
    entry = {"file": str(SHARED / "political_compass.json"), "format": COMPASS, "scale": COMPASS}
    client.fetch(client.Params(questionnaires={COMPASS: entry | facts}), POLITE, project / "raw")
    params = statements.Params(version="0.1.0", snapshot="raw", configs=[COMPASS])
    rows = statements.build(Snapshot.open(project / "raw"), params)
    building.written(Path("data/datasets/statements"), "statements", rows)
    validated("statements")


def imported(answers, columns=(), questionnaire=COMPASS):
    """Run the command on files by model, and return its exit status."""
    words = [x for name, file in answers.items() for x in ("--answers", f"{name}={file}")]
    words += [x for column in columns for x in ("--column", column)]
    return main(["import", *words, "--questionnaire", questionnaire, "--into", "mine"])


def table(name):
    return pl.read_parquet(f"mine/tables/compass/{name}.parquet")


def read_answers(models):
    """Return each imported response with its option (or kind), by model, prompt and statement."""
    known, found = scales(Path("data/datasets/statements"), {COMPASS}), {}
    for model in models:
        rows = outputs(Path("mine/outputs/stances", model), "multiple_choice")
        reading = {r.name: r for r in readings("multiple_choice", rows, known, None)}["named"]
        for text, row in zip(rows["response"], reading.single.to_dicts(), strict=True):
            chosen = [name for name, w in zip(OPTIONS, WEIGHTS, strict=True) if row[w]]
            found[model, row["prompt"], row["id"]] = (text, *chosen, row["kind"])[:2]
    return found


@building.reads("statements/rottger2024")
@pytest.mark.parametrize(
    ("experiment", "prompts", "valid", "invalid"),
    [("forced", "templ-01/{}", 1520, 1580), ("paraphrased", "{}/jail-04", 2968, 1973)],
)
def test_import_released_answers(compass, experiment, prompts, valid, invalid):
    files = {f.name[:-7]: f for f in sorted((RELEASED / experiment).glob("*.csv.gz"))}
    assert imported(files, COLUMNS) == 0
    own, same, differences = read_answers(files), {}, set()
    for row in pl.read_csv(RELEASED / "labels.csv.gz").filter(experiment=experiment).to_dicts():
        name = f"pc-{int(row['pct_id'][3:]):02d}"
        text, read = own[row["model"], prompts.format(row["prompt"]), name]
        theirs = (row["choice"] or "invalid").split(") ")[-1]
        equals = {"invalid": ("refused", "unclear"), "unknown": OPTIONS}  # any option, if unknown
        same.setdefault(row["valid"], []).append(read in equals.get(theirs, (theirs,)))
        if not same[row["valid"]][-1] and row["valid"] != "unknown":
            differences.add((row["model"], name, row["prompt"], theirs, read))
    assert (len(same["valid"]), len(same["invalid"])) == (valid, invalid)
    assert sum(same["valid"]) >= 0.99 * valid
    assert sum(same["invalid"]) >= 0.98 * invalid
    listed = pl.read_csv(DIFFERENCES).filter(experiment=experiment).drop("experiment").rows()
    assert {row[:5] for row in listed} == differences
    for model, name, prompt, *_, sentence in listed:
        text = " ".join(own[model, prompts.format(prompt), name][0].split())
        assert all(part in text for part in sentence.split(" ... ")), sentence
    if experiment == "forced":
        shares = pl.read_csv(RELEASED / "shares.csv")
        shares = shares.with_columns(prompt="templ-01/" + pl.col("forcing"))
        found = table("answered").filter(reading="named").join(shares, ["model", "prompt"])
        far = (found["value"] * 62 - found["valid_percent"] * 0.62).abs()
        assert len(far) == 50
        assert (far <= 1.01).sum() >= 45


@building.reads("statements/rottger2024")
def test_import_released_choices_give_the_printed_coordinates(compass):
    printed = pl.read_csv(RELEASED / "coordinates.csv").rename({"template": "prompt"})
    labels = pl.read_csv(RELEASED / "labels.csv.gz").filter(experiment="paraphrased")
    models = printed["model"].unique().sort().to_list()
    for model in models:
        labels.filter(model=model).write_csv(f"{model}.csv")
    columns = ("id=pct_id", "template=prompt", "response=choice")
    assert imported({model: f"{model}.csv" for model in models}, columns) == 0
    runs = table("runs").filter(reading="faithful").join(printed, ["model", "prompt"])
    for axis in ("economic", "social"):
        found = runs.filter(axis=axis)
        assert len(found) == 20
        assert found["value"].to_list() == pytest.approx(found[axis].to_list(), abs=5.1e-5)


@pytest.fixture
def axes(project):
    """Build the project's own questionnaires, and return ids and texts of one."""
    build("statements", statements)
    validated("statements")
    return pl.read_parquet("data/datasets/statements/axes-en.parquet").select("id", "sentence")


def test_import_answers_as_json_lines_with_texts_for_ids(axes):
    turned = [name.capitalize() for name in OPTIONS[::-1]]
    row = {"response": "1", "options": turned, "template": "plain"}
    rows = [{"id": text, "prompt": text} | row for text in axes["sentence"]]
    Path("a.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
    assert imported({"a": "a.jsonl"}, questionnaire="axes-en") == 0
    items = table("items").filter(reading="named")
    assert set(items["id"]) == set(axes["id"])
    assert set(items["value"]) == {1.0}  # the first option, strongly agree
    assert set(table("answered")["prompt"]) == {"plain"}


def test_import_answers_of_a_spreadsheet_are_those_of_a_plain_file(axes):
    rows = axes.unique("id").sort("id").select("id", response=pl.lit("Agree, but\nnot wholly"))
    rows.write_csv("a.csv")
    text = rows.write_csv(None, separator=";").replace("id;", " id ;", 1)
    Path("b.csv").write_bytes(text.replace("\n", "\r\n").encode("utf-16"))
    assert imported({"a": "a.csv", "b": "b.csv"}, (), "axes-en") == 0
    a, b = (outputs(Path("mine/outputs/stances", m), "multiple_choice") for m in "ab")
    assert a["response"].to_list() == b["response"].to_list() == rows["response"].to_list()


@pytest.mark.parametrize(
    ("change", "columns", "named"),
    [
        (lambda rows: rows.rename({"response": "said"}), (), "response"),
        (lambda rows: rows, ("answer=response",), "'answer'"),
        (lambda rows: rows, ("response=said",), "said"),
        (lambda rows: pl.concat([rows, rows[:1]]), (), "economic-1"),
        (lambda rows: rows[1:], (), "'economic-1'"),
        (lambda rows: rows.with_columns(id=pl.lit("pc-99")), (), "'pc-99'"),
        (lambda rows: rows.with_columns(order=pl.lit("first")), (), "first"),
        (lambda rows: rows.with_columns(options=pl.lit("1) Yes\n2) No")), (), "Yes, No"),
    ],
)
def test_import_malformed_answers_are_one_error(axes, capsys, change, columns, named):
    rows = axes.unique("id").sort("id").select("id", response=pl.lit("Agree"))
    change(rows).write_csv("a.csv")
    rows.write_csv("valid.csv")
    assert imported({"a": "a.csv"}, columns, "axes-en") == 1
    assert named in capsys.readouterr().err
    if not columns:  # another file of the same command is not written, either
        assert imported({"0": "valid.csv", "a": "a.csv"}, columns, "axes-en") == 1
    assert not Path("mine").exists()
