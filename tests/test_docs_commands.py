"""Check the docs: commands parse, code runs, and links and printed numbers are correct."""

import argparse
import importlib
import os
import re
import shutil
import subprocess
import sys
from xml.etree import ElementTree as ET

import pytest
import whole
import yaml
from documented import LINK, PAGES, TOP, anchors, blocks, commands, prose
from imports import pipelines

from plumbline.probes.commands.check_params import check

PROGRAMS = ("plumbline.builders", "plumbline.probes", "plumbline.validation")
PARSERS = {p: f"{p}.__main__" for p in (*PROGRAMS, "calibration", "worlds")}
IN_CI = bool(os.environ.get("CI"))
OTHERS = {"export", "git", "cd", "accelerate", "wget", "vllm", "ollama", "hf", "pip"}


def ids(item):
    return f"{item.page}:{item.line}"


class Parsed(Exception):  # noqa: N818 - no error: it stops a command once its words are read
    pass


@pytest.fixture
def parse(monkeypatch):
    """Return a function that passes words to the parser of a command and stops there."""
    parse_args = argparse.ArgumentParser.parse_args

    def parse_only(self, *args, **kwargs):
        raise Parsed(parse_args(self, *args, **kwargs))

    def parsed(module, words):
        with monkeypatch.context() as patched:
            patched.setattr(argparse.ArgumentParser, "parse_args", parse_only)
            try:
                importlib.import_module(module).main(list(words))
            except Parsed:
                return
            except SystemExit:
                pass
        pytest.fail(f"{module} does not understand {' '.join(words)!r}")

    return parsed


@pytest.mark.parametrize("command", commands(), ids=ids)
def test_command_of_the_docs_parses(command, parse):
    words = tuple(word.replace("$SLURM_ARRAY_TASK_ID", "1") for word in command.words)
    if words[:2] == ("python", "-m") and words[2] in PARSERS:
        parse(PARSERS[words[2]], words[3:])
    elif words[0] == "plumbline":
        parse("plumbline.console", words[1:])
    elif words[:2] == ("accelerate", "launch"):
        module = words[words.index("-m") + 1 :]
        parse(PARSERS[module[0]], module[1:])
    elif words[0] == "make":
        check_make(words[1:])
    elif words[0] == "dvc":
        from dvc.cli.parser import get_main_parser

        try:
            get_main_parser().parse_args(words[1:])
        except BaseException as error:  # noqa: BLE001 - DVC has errors of its own for it
            pytest.fail(f"dvc does not understand {command.text!r}: {error!r}")
    elif words[0] == "python" and (TOP / words[1]).is_file():
        pass
    elif words[0] == "python" and words[1] != "-m":
        titled = {block.about for block in blocks("python")}
        assert f'title="{words[-1]}"' in titled, command.text
    else:
        assert words[0] in OTHERS or words[2] in ("pip", "plumbline.lm_eval"), command.text


def check_make(words):
    """Check that the words after make are known targets, variables and stages."""
    makefile = (TOP / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z][a-z-]*):.*##", makefile, re.MULTILINE))
    for word in words:
        name, equals, value = word.partition("=")
        if not equals:
            assert word in targets
            continue
        assert re.search(rf"\$\({name}\)|\$\(word\),\$\({name}|^{name} ", makefile, re.MULTILINE)
        stages = {name for own in pipelines().values() for name in own}
        for stage in value.split() if name == "STAGE" else ():
            assert stage.partition("@")[0] in stages


def run(folder, *words, **environment):
    done = subprocess.run(
        [sys.executable, *words], cwd=folder, capture_output=True, text=True, check=False,
        env=os.environ | {"PYTHONPATH": str(TOP)} | environment,
    )  # fmt: skip
    assert not done.returncode, done.stdout + done.stderr
    return done.stdout


def needs(*paths):
    """Skip if the pipeline has not run; this is an error in CI, where it has."""
    missing = [path for path in paths if not (TOP / path).exists()]
    if missing and not IN_CI:
        pytest.skip(f"{missing[0]} is not there: make repro")
    assert not missing, "the pipeline has not made it"


def test_publish_dry_run_of_the_docs_works_without_a_hub():
    needs("data/datasets/words/README.md", "data/validation/words.json")
    words = ("publish", "words", "--repo", "your-name/words", "--version", "1.2.0", "--dry-run")
    printed = run(TOP, "-m", "plumbline.builders", *words, HF_ENDPOINT="http://127.0.0.1:9")
    assert "your-name/words" in printed
    assert "README.md" in printed


PYTHON = blocks("python")
OWN = ("your-name/", "anova-90")  # placeholders for the reader's repository and experiment
STUDY = r"plumbline\.(politicians|compare)\("  # would run a complete study
TITLED = 'title="'  # files of the tutorial, which another test runs


@pytest.mark.filterwarnings("ignore:ConjunctiveGraph is deprecated:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:The inplace keyword in DataFrame.reset_index")  # of mlcroissant
@pytest.mark.parametrize(
    "block",
    [
        pytest.param(b, marks=pytest.mark.slow if re.search(STUDY, b.text) else ())
        for b in PYTHON
        if not any(own in b.text for own in OWN) and TITLED not in b.about
    ],
    ids=ids,
)
def test_python_of_the_docs_runs_on_the_pipelines_data(block, tmp_path, monkeypatch):
    import datasets

    text = block.text.replace("MODEL", "world-leaning")  # stands for any
    needs(*re.findall(r'"(data/[^"]+)"', text))
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path)
    monkeypatch.setenv("PLUMBLINE_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(TOP)
    names = {}
    exec(compile(text, block.page, "exec"), names)
    loaded = [value for value in names.values() if isinstance(value, datasets.Dataset)]
    assert loaded or "load_dataset" not in text
    assert all(len(rows) for rows in loaded)


def overlaid(base, over, above=""):
    """Return params with an overlay applied key by key; the controls stay assigned."""
    if above == "assignments" and isinstance(over, list):
        return [*base, *over]
    if not (isinstance(base, dict) and isinstance(over, dict)):
        return over
    keys = {key: overlaid(base.get(key), value, above or key) for key, value in over.items()}
    return base | keys


FETCHED = re.compile(r"data/raw/(\w+)/[\d-]+")
GUIDES = [p for p in PAGES if p.name == "tutorial.md" or p.parent.name == "howto"]
WITH_PARAMS = [page for page in GUIDES if blocks("yaml", pages=[page])]
LIKE = {"masked": "world-planted", "causal": "world-writing", "classifier": "world-names"}


@pytest.mark.parametrize("page", WITH_PARAMS, ids=lambda page: page.name)
def test_params_of_a_guide_have_no_problem(page, project):
    params = whole.tree()
    for block in blocks("yaml", pages=[page]):  # the sample replaces a fetched snapshot
        text = FETCHED.sub(lambda m: str(max((TOP / "data/samples" / m[1]).iterdir())), block.text)
        params = overlaid(params, yaml.safe_load(text))
    for entry in params["models"].values():  # a control model replaces the reader's folder
        if entry.get("id", "").startswith("."):
            world = TOP / "data/samples/worlds" / LIKE[entry.get("kind", "masked")]
            (project / entry["id"]).symlink_to(world, target_is_directory=True)
    (project / "params.yaml").write_text(yaml.safe_dump(params, allow_unicode=True))
    check()


@pytest.mark.parametrize("page", [*PAGES, TOP / "CHANGELOG.md"], ids=lambda p: p.name)
def test_links_have_targets(page):
    for link in LINK.findall(prose(page)):
        target, _, anchor = link.partition("#")
        if "://" in link or link.startswith("mailto:"):
            continue
        path = (page.parent / target).resolve() if target else page
        assert path.exists(), link
        if path.suffix == ".md":
            assert anchor in anchors(path), link


@pytest.mark.parametrize("page", sorted((TOP / "docs/studies").glob("*.md")), ids=lambda p: p.stem)
def test_code_and_tests_named_on_a_study_page_exist(page):
    folder = TOP
    for name in re.findall(r"`([\w/.-]+\.py)`", page.read_text("utf-8")):
        path = TOP / name if "/" in name else folder / name
        assert path.is_file(), name
        folder = path.parent


def test_tables_of_published_numbers_have_one_form_and_name_tests_that_exist():
    text = (TOP / "docs/methods/published-numbers.md").read_text("utf-8")
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    heads = [row for row in rows if row[0] == "in the paper"]
    assert heads == [["in the paper", "here", "verdict", "reason"]] * 5
    verdicts = {row[2] for row in rows if len(row) == 4} - {"verdict"}
    assert verdicts == {"reproduced", "differs", "method only", "not computed"}
    source = "".join(path.read_text("utf-8") for path in (TOP / "tests").rglob("test_*.py"))
    assert [x for x in re.findall(r"(test_\w+)`", text) if f"def {x}(" not in source] == []


def contains(shown, printed):
    """Return whether a page contains some words in a row; the sixth decimal may differ."""

    def equal(word, other):
        decimals = re.compile(r"-?\d+\.\d{6}")
        if decimals.fullmatch(word) and decimals.fullmatch(other):
            return float(word) == pytest.approx(float(other), rel=0, abs=2.5e-6)
        return word == other

    rows = (shown[i : i + len(printed)] for i in range(len(shown) - len(printed) + 1))
    return any(all(map(equal, printed, row)) for row in rows)


@pytest.mark.slow
def test_tutorial_prints_what_it_shows(built, project):
    """Run the steps of the tutorial, stage by stage as DVC does."""
    for part in ("datasets", "validation"):
        shutil.copytree(built / "data" / part, project / "data" / part)
    pages = [TOP / "docs/tutorial.md"]
    written = {b.about: b.text for b in blocks("python", pages=pages)}
    for name in ("tiny.py", "look.py"):
        (project / name).write_text(written[f'title="{name}"'], encoding="utf-8")
    own = yaml.safe_load(blocks("yaml", pages=pages)[0].text)
    params = overlaid(whole.tree(), own)
    (project / "params.yaml").write_text(yaml.safe_dump(params, allow_unicode=True))
    cache = {"HF_DATASETS_CACHE": str(project / "cache")}
    shown = pages[0].read_text(encoding="utf-8").split()
    assert contains(shown, run(project, "tiny.py", **cache).split())
    assert run(project, "-m", "plumbline.probes", "check") == "params.yaml: no problem found\n"
    for words in (("weights", "tiny"), ("associations", "tiny"), ("pmi", "tiny")):
        run(project, "-m", "plumbline.probes", *words)
    printed = run(project, "look.py", **cache).split()
    assert contains(shown, printed)
    assert not contains(shown, [w.replace(".", "1.") for w in printed])


@pytest.fixture
def pages(monkeypatch):
    """Return the module that writes the output of commands into pages."""
    monkeypatch.syspath_prepend(TOP / "docs")
    return importlib.import_module("printed")


@pytest.mark.slow
def test_first_screen_of_the_readme_is_what_its_commands_print(pages, tmp_path):
    assert pages.SCREEN.search(pages.README.read_text("utf-8"))[3] == pages.printed(tmp_path)
    made, shown = (
        ET.fromstring(text) for text in (pages.figure(tmp_path), pages.FIGURE.read_text("utf-8"))
    )
    assert made.get("aria-label") == shown.get("aria-label")
    assert [text.text for text in made.iter()] == [text.text for text in shown.iter()]


@pytest.mark.slow
def test_second_step_of_the_tutorial_prints_its_numbers(pages, project):
    block = blocks("text", pages=[TOP / "docs/tutorial.md"])[0].text
    steps = re.findall(r"^> python (.*)$", block, re.MULTILINE)
    printed = "".join(run(project, *step.split()) for step in steps)
    shown = "".join(re.findall(r"^[^>…].*\n", block, re.MULTILINE))
    assert len(steps) == 3
    assert pages.refreshed(shown, printed) == shown


def test_trace_prints_what_its_page_shows(pages):
    needs(pages.TABLE)
    printed = run(TOP, "-m", "plumbline.builders", "trace", f"{pages.TABLE}#13")
    shown = pages.TRACE.search(pages.TRACING.read_text("utf-8"))[0]
    assert contains(shown.split(), pages.refreshed(shown, printed).split())
