"""The command ``plumbline``, started by a user in an empty folder."""

import re
from concurrent.futures import ThreadPoolExecutor
from html import unescape

import pytest
import yaml
from models.hub import REVISION, hub

from plumbline.console import _parser
from plumbline.runs import plan

from .conftest import command as plumbline
from .conftest import copied, imported

ID = "example/my-model"


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["rum"], "run"),  # suggests the nearest choice
        (["run", "politicians"], "--model"),
        (["run", "politicians", "--model", "./nowhere"], "./nowhere"),
        (["run", "values", "-m", "a", "--set", "x"], "--set x"),
        (["report"], "plumbline run"),
    ],
)
def test_mistake_is_one_sentence_and_writes_nothing(words, named, elsewhere):
    done = plumbline(*words)
    assert done.returncode in (1, 2)
    assert named in done.stderr.splitlines()[-1]
    assert list(elsewhere.iterdir()) == []


def test_help_imports_nothing_heavy():
    code = "from plumbline.console import main\ntry: main(['--help'])\nexcept SystemExit: pass"
    found, lines = imported(code, "torch", "polars", "numpy", "yaml", "pydantic")
    assert "plumbline run politicians --model ./my-bert" in "\n".join(lines)
    assert found == []


def test_ls():
    assert plumbline("ls").stdout.split()[0] == "politicians"
    assert "world-planted  (control)" in plumbline("ls", "models").stdout
    assert "stereotypes" in plumbline("ls", "datasets").stdout.split()


@pytest.mark.slow
def test_run_ls_export_and_report(mine, elsewhere):
    done = plumbline("run", "politicians", "--model", str(mine), "--language", "en")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("my-bert: ")
    overlay = yaml.safe_load((elsewhere / "plumbline.yaml").read_text("utf-8"))
    assert overlay["models"] == {"my-bert": {"id": mine.as_posix(), "kind": "masked"}}
    assert plumbline("ls", "results").stdout == "politicians my-bert --language en\n"
    done = plumbline("export", "politicians", "-m", "my-bert", "--to", "paper", "--width", "8")
    assert done.returncode == 0, done.stderr
    assert (elsewhere / "paper/politicians/my-bert/headline.pdf").is_file()
    assert plumbline("report").stdout == "plumbline-results/index.html\n"
    page = (elsewhere / "plumbline-results/index.html").read_text("utf-8")
    assert page.count("<tr>") == 2
    assert "<svg" in page
    assert sorted(p.name for p in elsewhere.iterdir()) == [
        *("paper", "plumbline-results", "plumbline.yaml")
    ]


@pytest.mark.slow
def test_report_has_every_run_with_its_options(mine, elsewhere, tmp_path):
    run = ("run", "politicians", "-m", str(mine), "--language", "en")
    options = (), ("--set", "analysis.pmi.min_count=60", "--dtype", "bfloat16")
    with ThreadPoolExecutor() as pool:  # both at once, and neither record is lost
        done = list(pool.map(lambda words: plumbline(*run, *words), options))
    assert [one.returncode for one in done] == [0, 0], [one.stderr for one in done]
    sentences = [one.stdout.split(":", 1)[1].splitlines()[0] for one in done]
    assert sentences[0] != sentences[1]
    results = elsewhere / "plumbline-results"
    tables = {p: p.read_bytes() for p in results.glob("*/data/tables/pmi/my-bert/pmi.parquet")}
    assert len(tables) == 2
    overlay = yaml.safe_load((elsewhere / "plumbline.yaml").read_text("utf-8"))
    judge = {"id": str(tmp_path / "gone"), "kind": "classifier"}
    settings = {"models.judge": judge, "probes.stances.generation.nli_model": "judge"}
    writer = {"id": str(copied("world-writing", tmp_path / "writer")), "kind": "causal"}
    overlay["models"]["writer"] = writer
    lost = {"study": "leaning", "model": "writer", "language": None, "settings": settings}
    overlay["runs"].insert(1, lost)
    (elsewhere / "plumbline.yaml").write_text(yaml.safe_dump(overlay), "utf-8")
    reported = plumbline("report")
    assert reported.returncode == 0, reported.stderr
    text = unescape(re.sub("<[^>]+>", "", (results / "index.html").read_text("utf-8")))
    assert all(sentence in text for sentence in sentences)
    for shown in (text, reported.stdout):
        assert "left out: leaning writer" in shown
    assert {path: path.read_bytes() for path in tables} == tables


def test_plan_repeats_options_of_the_last_run(mine, elsewhere):
    run = {"study": "politicians", "model": "mine", "language": "en"}
    runs = [run | {"settings": {"analysis.pmi.min_count": 60}}, run | {"dtype": "float64"}]
    overlay = {"models": {"mine": {"id": str(mine), "kind": "masked"}}, "runs": runs}
    (elsewhere / "plumbline.yaml").write_text(yaml.safe_dump(overlay), "utf-8")

    def chosen(*words, again=True):
        return plan(_parser().parse_args([*words, "-m", "mine"]), again=again)[1]

    assert chosen("export", "politicians", "--to", "paper") == runs[1:]
    assert chosen("export", "politicians", "--to", "paper", "--dtype", "float32") == [run]
    assert chosen("run", "politicians", again=False) == [run]


@pytest.mark.slow
def test_run_pins_model_of_the_hub(mine, elsewhere, tmp_path):
    with hub({ID: mine}) as (endpoint, asked):
        there = {"HF_ENDPOINT": endpoint, "HF_HUB_OFFLINE": "0", "HF_HUB_DISABLE_XET": "1"}
        there |= {"HF_HOME": str(tmp_path / "hf"), "HF_HUB_DISABLE_TELEMETRY": "1"}
        done = plumbline("check", ID, **there)
        assert (
            done.stdout == f"{ID}: masked; studies that fit: politicians, stereotypes, values, "
            "leaning\n"
        )
        assert not any("safetensors" in path for path in asked)
        done = plumbline("run", "politicians", "-m", ID, "--language", "en", **there)
        assert done.returncode == 0, done.stderr
        done = plumbline("check", "example/nothing", **there)
        assert done.returncode == 1
        assert done.stderr.startswith("error: example/nothing@main: ")
        assert len(done.stderr.splitlines()) == 1
    done = plumbline("run", "politicians", HF_HUB_OFFLINE="1", HF_HOME=there["HF_HOME"])
    assert done.returncode == 0, done.stderr  # a fetched model needs no network
    overlay = yaml.safe_load((elsewhere / "plumbline.yaml").read_text("utf-8"))
    wanted = {"id": ID, "revision": REVISION, "kind": "masked"}
    assert overlay["models"] == {"my-model": wanted}
