"""Every command, block of Python, piece of params.yaml and link of the docs is tried or checked."""

from __future__ import annotations

import argparse
import importlib
import os
import re
import shutil
import subprocess
import sys
from fnmatch import fnmatch
from xml.etree import ElementTree as ET

import pytest
import whole
import yaml
from documented import LINK, PAGES, TOP, anchors, blocks, commands, prose
from imports import pipelines

from plumbline.probes import ALL, EACH, PROBES
from plumbline.probes.commands.check_params import check

# Commands that tests here run. A command of the docs must stand in one of the two tables.
RUN = {
    "python -m plumbline.probes check",
    "python -m plumbline.probes waves",
    "python -m plumbline.builders publish words --repo your-name/words --version 1.2.0 --dry-run",
    "python tiny.py",
    "python look.py",
}
# Commands that are not run here, as patterns, and why. Their words are held to the real parsers.
ELSEWHERE = {
    "make setup": "makes a whole environment; CI begins with it",
    "make repro": "takes minutes; CI runs it",
    "make repro STAGE=*": "stages of make repro; that the stage exists is tested",
    "make test": "runs this",
    "make site": "CI runs it",
    "make demo": "tests/api/test_demo.py runs what it calls",
    "make docs": "make lint, which CI runs, tells whether it has anything to write",
    "make full": "needs the network",
    "make full-check": "looks at params/full.yaml, as tests/test_full.py does",
    "python -m plumbline.probes check params/full.yaml": "tests/test_full.py",
    "python -m plumbline.probes use *": "tests/test_full.py",
    "python -m plumbline.probes pin *": "needs the Hub; tests/test_full.py has a local one",
    "python -m plumbline.builders diff *": "two versions of the reader's; tests/lib/test_diff*.py",
    "python -m plumbline.probes annotate MODEL *": "labels of people; tests/samples.py runs it",
    "python -m plumbline.builders trace *": "tests/lib/test_trace.py",
    "python benchmarks/people.py data/samples/facts/persons*": (
        "tests/builders/test_counterfactuals.py runs it"
    ),
    "python -m plumbline.builders politicians": "a stage of make repro, which CI runs",
    "python -m plumbline.builders fetch *": "needs the network, or a mirror of one's own; tested",
    "wget *": "needs the network; tests/sources/test_mirror.py",
    "python -m plumbline.probes import *": "files of the user's; test_import_outputs.py",
    "python -m plumbline.probes waves *": "waves of the user's; waves itself is run here",
    "python -m plumbline.builders publish *": (
        "writes to the Hub; tested against a Hub of the tests' own"
    ),
    "python -m plumbline.probes plan*": (
        "takes ten seconds for each model and probe; has tests of its own"
    ),
    "make calibrate": "takes hours; tests/calibration",
    "python -m calibration *": "takes minutes; tests/calibration",
    "python -m plumbline.probes associations NAME*": (
        "NAME stands for a model; has tests of its own"
    ),
    "python -m plumbline.probes weights *": "needs the Hub; has tests of its own",
    "python -m plumbline.builders statements": "a stage of make repro",
    "python -m plumbline.validation statements": "a stage of make repro",
    "vllm *": "starts a server of others; tests/models/test_remote_protocols.py has its protocol",
    "ollama *": "starts a server of others; tests/models/test_remote_protocols.py has its protocol",
    "accelerate config": "asks questions at a terminal",
    "accelerate launch *": "starts processes; tested with two in tests/probes/test_pretrain.py",
    "plumbline *": "tests/api/test_console.py; the words are held to its parser",
    "python -m plumbline.lm_eval *": "needs lm-eval and the Hub; tests/api/test_lm_eval.py",
    "pip install *": "installs",
    "python -m pip install *": "installs",
    "export *": "sets a variable of the user's shell",
    "git *": "the user's own clone",
    "cd *": "the user's own folders",
    "hf *": "fetches from the Hub",
    "dvc *": "DVC's own commands: what they take is tested, not what they do",
}
PROGRAMS = ("plumbline.builders", "plumbline.probes", "plumbline.validation")
PARSERS = {p: f"{p}.__main__" for p in (*PROGRAMS, "calibration", "worlds")}
COMMANDS = commands()
IN_CI = bool(os.environ.get("CI"))


def ids(command):
    return f"{command.page}:{command.line}"


def listed(text):
    return text in RUN or any(fnmatch(text, pattern) for pattern in ELSEWHERE)


def test_the_docs_have_commands_and_both_tables_name_nothing_that_is_gone():
    texts = {command.text for command in COMMANDS}
    assert len(texts) > 20
    assert texts >= RUN, "no page has these any more"


def test_every_command_is_run_or_has_a_reason_not_to_be():
    missing = [f"{c.page}:{c.line}: {c.text!r}" for c in COMMANDS if not listed(c.text)]
    assert missing == [], "neither in RUN nor in ELSEWHERE of this file: run it, or say why not"


class Parsed(Exception):  # noqa: N818 - no error: it stops a command once its words are read
    pass


@pytest.fixture
def parse(monkeypatch):
    """Return what gives words to a command's own parser, and stops there."""
    whole = argparse.ArgumentParser.parse_args

    def parse_only(self, *args, **kwargs):
        raise Parsed(whole(self, *args, **kwargs))

    def given(module, words):
        with monkeypatch.context() as patched:
            patched.setattr(argparse.ArgumentParser, "parse_args", parse_only)
            try:
                importlib.import_module(module).main(list(words))
            except Parsed as done:
                return done.args[0]
            except SystemExit:
                pytest.fail(f"{module} does not understand {' '.join(words)!r}")
        return pytest.fail(f"{module} has read no words")

    return given


@pytest.mark.parametrize("command", COMMANDS, ids=ids)
def test_every_command_is_one_that_its_program_understands(command, parse):
    words = command.words
    if words[:2] == ("python", "-m") and words[2] in PARSERS:
        parse(PARSERS[words[2]], words[3:])
    elif words[1:3] == ("-m", "plumbline.lm_eval"):
        from plumbline.lm_eval import MODELS

        assert words[3] == "run"
        assert words[words.index("--model") + 1] in MODELS
    elif words[0] == "plumbline":
        parse("plumbline.console", words[1:])
    elif words[:2] == ("accelerate", "launch"):
        own = words[words.index("-m") + 1 :]
        parse(PARSERS[own[0]], own[1:])
    elif words[0] == "make":
        made(words[1:])
    elif words[0] == "dvc":
        from dvc.cli.parser import get_main_parser

        try:
            get_main_parser().parse_args(words[1:])
        except BaseException as error:  # noqa: BLE001 - DVC has errors of its own for it
            pytest.fail(f"dvc does not understand {command.text!r}: {error!r}")
    elif words[0] == "pip" or words[1:3] == ("-m", "pip"):
        extras = re.findall(r"\.\[([\w,-]+)\]", command.text)
        known = (TOP / "pyproject.toml").read_text(encoding="utf-8")
        assert all(f"\n{name} = [" in known for part in extras for name in part.split(","))
    else:
        titled = {block.about for block in blocks("python")}
        others = {"export", "git", "cd", "accelerate", "wget", "vllm", "ollama", "hf"}
        understood = words[0] in others
        understood |= words[0] == "python" and (TOP / words[1]).is_file()
        assert understood or f'title="{words[-1]}"' in titled, f"what is {command.text!r}?"


def made(words):
    """Hold the words behind make to the targets and variables of the Makefile."""
    makefile = (TOP / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z][a-z-]*):.*##", makefile, re.MULTILINE))
    for word in words:
        name, equals, value = word.partition("=")
        if not equals:
            assert word in targets
            continue
        assert re.search(rf"\$\({name}\)|\$\(word\),\$\({name}|^{name} ", makefile, re.MULTILINE)
        for stage in value.split() if name == "STAGE" else ():
            known = {name for own in pipelines().values() for name in own}
            assert stage.partition("@")[0] in known, f"no stage {stage}"


def run(folder, *words, **environment):
    done = subprocess.run(
        [sys.executable, *words], cwd=folder, capture_output=True, text=True, check=False,
        env=os.environ | {"PYTHONPATH": str(TOP)} | environment,
    )  # fmt: skip
    assert not done.returncode, done.stdout + done.stderr
    return done.stdout


def needs(*paths):
    """Skip where the pipeline has not run; CI has run it, so there it is an error."""
    lacking = [path for path in paths if not (TOP / path).exists()]
    if lacking and not IN_CI:
        pytest.skip(f"{lacking[0]} is not there: make repro")
    assert not lacking, "the pipeline has not made it"


@pytest.mark.slow
def test_params_as_they_are_have_no_problem(project):
    assert run(project, "-m", "plumbline.probes", "check") == "params.yaml: no problem found\n"


@pytest.mark.slow
def test_waves_compares_the_waves_of_the_samples(project):
    run(project, "-m", "plumbline.probes", "waves")
    assert (project / "data/tables/waves/waves.parquet").exists()


def test_a_dry_run_of_publishing_prints_a_plan_without_a_hub():
    needs("data/datasets/words/README.md", "data/validation/words.json")
    words = ("publish", "words", "--repo", "your-name/words", "--version", "1.2.0", "--dry-run")
    printed = run(TOP, "-m", "plumbline.builders", *words, HF_ENDPOINT="http://127.0.0.1:9")
    assert "your-name/words" in printed
    assert "README.md" in printed


PYTHON = blocks("python")


def test_every_block_of_python_compiles():
    for block in PYTHON:
        compile(block.text, f"{block.page}:{block.line}", "exec")


OWN = ("your-name/", "anova-90")  # stand for the reader's own repository, and experiment
STUDIED = r"plumbline\.(politicians|compare)\("  # runs a whole study
TITLED = 'title="'  # files of the tutorial, which its own test runs


@pytest.mark.filterwarnings("ignore:ConjunctiveGraph is deprecated:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:The inplace keyword in DataFrame.reset_index")  # of mlcroissant
@pytest.mark.parametrize(
    "block",
    [
        pytest.param(b, marks=pytest.mark.slow if re.search(STUDIED, b.text) else ())
        for b in PYTHON
        if not any(own in b.text for own in OWN) and TITLED not in b.about
    ],
    ids=ids,
)
def test_every_block_of_python_runs_on_what_the_pipeline_made(block, tmp_path, monkeypatch):
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


def laid(base, over, above=""):
    """Return params with others laid over them, key by key; the controls stay assigned."""
    if above == "assignments" and isinstance(over, list):
        return [*base, *over]
    if not (isinstance(base, dict) and isinstance(over, dict)):
        return over
    return base | {key: laid(base.get(key), value, above or key) for key, value in over.items()}


YAML = blocks("yaml")
FETCHED = re.compile(r"data/raw/(\w+)/[\d-]+")


def test_every_block_of_yaml_is_yaml():
    for block in YAML:
        assert yaml.safe_load(block.text) is not None, f"{block.page}:{block.line}"


GUIDES = [p for p in PAGES if p.name == "tutorial.md" or p.parent.name == "howto"]
LIKE = {"masked": "world-planted", "causal": "world-writing", "classifier": "world-names"}
WITH_PARAMS = [page for page in GUIDES if blocks("yaml", pages=[page])]


@pytest.mark.parametrize("page", WITH_PARAMS, ids=lambda page: page.name)
def test_what_a_guide_puts_into_params_leaves_no_problem(page, project):
    params = whole.tree()
    for block in blocks("yaml", pages=[page]):  # a snapshot to be fetched is the sample here
        text = FETCHED.sub(lambda m: str(max((TOP / "data/samples" / m[1]).iterdir())), block.text)
        params = laid(params, yaml.safe_load(text))
    for entry in params["models"].values():  # the reader's own folder is one of a world here
        if entry.get("id", "").startswith("."):
            world = TOP / "data/samples/worlds" / LIKE[entry.get("kind", "masked")]
            (project / entry["id"]).symlink_to(world, target_is_directory=True)
    (project / "params.yaml").write_text(yaml.safe_dump(params, allow_unicode=True))
    check()


@pytest.mark.parametrize("page", [*PAGES, TOP / "CHANGELOG.md"], ids=lambda p: p.name)
def test_links_lead_somewhere(page):
    for link in LINK.findall(prose(page)):
        target, _, anchor = link.partition("#")
        if "://" in link or link.startswith("mailto:"):
            continue
        path = (page.parent / target).resolve() if target else page
        assert path.exists(), f"{link} leads nowhere"
        if path.suffix == ".md":
            assert anchor in anchors(path), f"{link}: no such heading"


STUDY_PAGES = sorted((TOP / "docs/studies").glob("*.md"))


@pytest.mark.parametrize("page", STUDY_PAGES, ids=lambda p: p.stem)
def test_the_code_and_tables_that_a_study_names_are_there(page):
    text = page.read_text(encoding="utf-8")
    for path in re.findall(r"`((?:builders|probes)/[\w/]+\.py)`", text):
        assert (TOP / path).is_file(), path
    for name in re.findall(r"data/tables/(\w+)", text):
        assert name in {*EACH, *ALL, "recovery", "waves"}, name
    for name in re.findall(r"data/outputs/(\w+)", text):
        assert name in PROBES, name


def stands_in(printed, shown):
    """Return whether words stand in a page, in a row; decimals but for a last digit of six.

    Another kind of processor may round that digit the other way.
    """

    def alike(word, other):
        decimals = re.compile(r"-?\d+\.\d{6}")
        if decimals.fullmatch(word) and decimals.fullmatch(other):
            return float(word) == pytest.approx(float(other), rel=0, abs=2.5e-6)
        return word == other

    rows = (shown[i : i + len(printed)] for i in range(len(shown) - len(printed) + 1))
    return any(all(map(alike, printed, row)) for row in rows)


@pytest.mark.slow
def test_the_tutorial_makes_a_model_and_finds_nothing_in_it(built, project):
    """The steps of the tutorial, stage by stage as DVC runs them."""
    for part in ("datasets", "validation"):
        shutil.copytree(built / "data" / part, project / "data" / part)
    pages = [TOP / "docs/tutorial.md"]
    written = {b.about: b.text for b in blocks("python", pages=pages)}
    for name in ("tiny.py", "look.py"):
        (project / name).write_text(written[f'title="{name}"'], encoding="utf-8")
    params = whole.tree()
    own = yaml.safe_load(blocks("yaml", pages=pages)[0].text)
    (project / "params.yaml").write_text(yaml.safe_dump(laid(params, own), allow_unicode=True))
    cache = {"HF_DATASETS_CACHE": str(project / "cache")}
    shown = (TOP / "docs/tutorial.md").read_text(encoding="utf-8").split()
    assert stands_in(run(project, "tiny.py", **cache).split(), shown)
    run(project, "-m", "plumbline.probes", "check")
    for words in (("weights", "tiny"), ("associations", "tiny"), ("pmi", "tiny")):
        run(project, "-m", "plumbline.probes", *words)
    printed = run(project, "look.py", **cache).split()
    assert stands_in(printed, shown)
    assert not stands_in([*printed[:-1], "lost"], shown)
    assert not stands_in([w.replace(".", "1.") for w in printed], shown)


@pytest.fixture
def pages(monkeypatch):
    """The module that writes into pages what commands print."""
    monkeypatch.syspath_prepend(TOP / "docs")
    return importlib.import_module("printed")


@pytest.mark.slow
def test_the_first_screen_is_what_its_commands_print(pages, tmp_path):
    assert pages.SCREEN.search(pages.README.read_text("utf-8"))[3] == pages.printed(tmp_path)
    made, shown = (
        ET.fromstring(text) for text in (pages.figure(tmp_path), pages.FIGURE.read_text("utf-8"))
    )
    assert made.get("aria-label") == shown.get("aria-label")
    assert [text.text for text in made.iter()] == [text.text for text in shown.iter()]


@pytest.mark.slow
def test_the_second_step_of_the_tutorial_prints_its_numbers(pages, project):
    block = blocks("text", pages=[TOP / "docs/tutorial.md"])[0].text
    commands = re.findall(r"^> python (.*)$", block, re.MULTILINE)
    printed = "".join(run(project, *command.split()) for command in commands)
    shown = "".join(re.findall(r"^[^>…].*\n", block, re.MULTILINE))
    assert len(commands) == 3
    assert pages.refreshed(shown, printed) == shown


def test_a_traced_row_is_as_the_page_has_it(pages):
    needs(pages.TABLE)
    printed = run(TOP, "-m", "plumbline.builders", "trace", f"{pages.TABLE}#13")
    if "(as locked)" not in next(line for line in printed.splitlines() if "  locked: " in line):
        pytest.skip("the tables are not those of the locks: make repro")
    shown = pages.TRACE.search(pages.TRACING.read_text("utf-8"))[0]
    assert stands_in(pages.refreshed(shown, printed).split(), shown.split())
