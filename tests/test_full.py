"""The full study as a file: it is consistent, and can be used and pinned."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from datetime import date
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import whole
import yaml
from imports import TOP
from lib.hub_server import Repo, serving

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.params import files, read
from plumbline.builders.core.parquet import DATASETS
from plumbline.builders.readers.articles import published as published_on
from plumbline.probes import PROBES
from plumbline.probes.__main__ import main
from plumbline.probes.commands.check_params import TOKENS, at, check, named_snapshots, sections
from plumbline.probes.commands.families import too_few
from plumbline.probes.commands.params_overlay import check_with, composed, lay, use
from plumbline.probes.politicians.latent import L1, POSTERIOR
from plumbline.probes.training import pretrain
from plumbline.reference import published

FULL = TOP / "params" / "full.yaml"
ARTICLES = TOP.parent / "shared/data/news/allsides_articles.parquet"
STUDIES = {
    page.stem.removesuffix("-models"): yaml.safe_load(page.read_text(encoding="utf-8"))["models"]
    for page in sorted((TOP / "docs" / "studies").glob("*-models.yaml"))
}
LISTS = {  # of `assignments`, by study
    "stereotypes": ["completions"],
    "values": ["agreement"],
    "nationality": ["classification", "perplexity"],
    "leaning": ["stances"],
}
DAY = "2026-11-22"
TREE = whole.tree()
lay(TREE, read(FULL))
UNPINNED = {
    entry["id"] for entry in TREE["models"].values() if "id" in entry and "revision" not in entry
}


def test_full_has_the_models_of_all_papers():
    assert set(STUDIES) == set(LISTS)
    by_id = {entry["id"]: (name, entry) for name, entry in TREE["models"].items() if "id" in entry}
    assert len(by_id) == sum("id" in entry for entry in TREE["models"].values())
    for study, models in STUDIES.items():
        names = set()
        for entry in models.values():
            name, here = by_id[entry["id"]]
            names.add(name)
            assert here.get("revision") == entry.get("revision"), name
            assert here.get("kind") == entry.get("kind"), name
            assert not entry.get("pickles") or here["pickles"], name
            own = here.get("languages")
            assert own is None or set(own) >= set(entry.get("languages", ())), name
        asked = {name for what in LISTS[study] for name in TREE["assignments"][what]}
        beside = {TREE["probes"]["stances"]["generation"]["nli_model"]}
        assert names - beside == asked - {"chatgpt", "gpt-4"}, study


@pytest.mark.parametrize("seconds", ["0", "-1"])
def test_plan_refuses_trial_of_no_time(seconds, capsys):
    assert main(["plan", "world-es", "--seconds", seconds]) != 0
    assert f"--seconds: {seconds}" in capsys.readouterr().err


def test_full_latent_has_all_40_pairs_of_weights():
    whole_grid = TREE["analysis"]["latent"]
    assert (tuple(whole_grid["l1"]), tuple(whole_grid["posterior"])) == (L1, POSTERIOR)
    assert len(L1) * len(POSTERIOR) == 40


def test_full_single_tests_can_be_significant_in_their_families(project, sample):
    shutil.copytree(sample("social_groups"), project / DATASETS / "social_groups")
    known = {k: cls for k, cls in sections().items() if not k.startswith("derived.")}  # not pinned
    params = {k: cls.model_validate(at(TREE, *k.split("."))) for k, cls in known.items()}
    arguments = TREE["models"], TREE["assignments"], ()
    assert [*too_few(params, *arguments)] == []
    # eleven monolingual models and six of seven languages; 374 groups and ten affects
    for key, tests, least in (("sentiment", 318, 6359), ("emotions", 3740, 74_799)):
        few = params[f"analysis.{key}"].model_copy(update={"n_permutations": least - 1})
        (problem,) = too_few(params | {f"analysis.{key}": few}, *arguments)
        assert {key in problem, f" {tests} " in problem, str(least) in problem} == {True}


def test_check_full_reports_what_only_the_user_has(project, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(UserError) as caught:
        check_with(FULL, DAY, fetched=False)
    _, *problems = str(caught.value).splitlines()
    pinned = [p for p in problems if "needs a pinned revision" in p]
    assert {re.search(r"error, (\S+) needs", p)[1] for p in pinned} == UNPINNED
    (command,) = [p for p in problems if "python -m plumbline.probes pin" in p]
    files = {re.search(r"no file (\S+);", p)[1] for p in problems if "no file" in p}
    sources = set(re.findall(r"private/[\w.]+", FULL.read_text(encoding="utf-8")))
    assert files == {file for file in sources if "paraphrases" not in file}
    keys = [p for p in problems if "OPENAI_API_KEY" in p]
    assert len(keys) == 2
    (contact,) = [p for p in problems if "sources.politeness.contact" in p]
    assert len(problems) == len([*pinned, command, *files, *keys, contact])


def test_check_full_finds_user_file_with_accents(project):
    (project / "private").mkdir()
    (project / "private/questões.csv").touch()
    text = FULL.read_text(encoding="utf-8").replace("pi34.csv", "questões.csv")
    (project / "mine.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(UserError) as caught:
        check_with(Path("mine.yaml"), DAY, fetched=False)
    assert "private/kopecky2022.csv" in str(caught.value)
    assert "private/quest" not in str(caught.value)


@pytest.fixture
def mine(project, monkeypatch):
    """A project in which the user has brought what is asked for; return the file to use."""
    lines = []
    for line in FULL.read_text(encoding="utf-8").splitlines(keepends=True):
        lines.append(line)
        found = re.fullmatch(r"( +)(?:id|model): (\S+)\n", line)
        if found and found[2] in UNPINNED:
            lines.append(f"{found[1]}revision: {'5f' * 20}\n")
    (project / "mine.yaml").write_text("".join(lines), encoding="utf-8")
    (project / "private").mkdir()
    for text in re.findall(r"private/[\w.]+", "".join(lines)):
        (project / text).touch()
    params = project / "params.yaml"
    text = params.read_text(encoding="utf-8")
    params.write_text(
        re.sub("contact: (''|\"\")", "contact: a@example.org", text), encoding="utf-8"
    )
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    return Path("mine.yaml")


@pytest.mark.slow
def test_use_writes_params_and_names_sources_to_fetch(mine, project):
    before = (project / "params.yaml").read_text(encoding="utf-8")
    wanted = composed(mine, DAY)
    lacking = use(mine, DAY)
    text = (project / "params.yaml").read_text(encoding="utf-8")
    assert read() == wanted
    assert text.splitlines()[0] == before.splitlines()[0]  # a comment
    assert "DAY" not in re.findall(r"data/raw/\w+/(\S+)", text)
    from dvc.utils.serialize import load_yaml

    assert load_yaml("params.yaml") == wanted  # DVC's reader is another one
    make = (TOP / "Makefile").read_text(encoding="utf-8")
    assert sorted(re.search(r"^SOURCES := (.+)$", make, re.MULTILINE)[1].split()) == lacking
    for folder in named_snapshots(wanted).values():
        Path(folder).mkdir(parents=True, exist_ok=True)
        (Path(folder) / "manifest.json").touch()
    check()
    assert use(mine, DAY) == []
    assert (project / "params.yaml").read_text(encoding="utf-8") == text


def test_use_changes_the_file_that_has_a_field(project):
    tree = read() | {"controls": {"sets": []}}
    beside = project / "probes" / "stereotypes" / "params.yaml"
    beside.parent.mkdir(parents=True, exist_ok=True)
    rsa = {"analysis": {"rsa": tree["analysis"].pop("rsa")}}
    beside.write_text(f"# comment\n{yaml.safe_dump(rsa)}", encoding="utf-8")
    params = project / "params.yaml"
    params.write_text(yaml.safe_dump(tree), encoding="utf-8")
    before = params.read_bytes()
    (project / "mine.yaml").write_text("analysis: {rsa: {seed: 7}}\n", encoding="utf-8")
    assert use(Path("mine.yaml"), DAY) == []
    assert read()["analysis"]["rsa"] == {**rsa["analysis"]["rsa"], "seed": 7}
    assert beside.read_text(encoding="utf-8").startswith("# comment\n")
    assert params.read_bytes() == before


def test_use_with_problems_changes_nothing(mine, project):
    before = (project / "params.yaml").read_bytes()
    mine.write_text("analysis: {pmi: {sede: 1}}\nmodels: {a: {id: x/y}}\n", encoding="utf-8")
    with pytest.raises(UserError) as caught:
        use(mine, DAY)
    assert "analysis.pmi.sede: unknown key" in str(caught.value)
    assert "x/y needs a pinned revision" in str(caught.value)
    assert (project / "params.yaml").read_bytes() == before


def test_full_names_refer_to_configured_things():
    probes, datasets, sources = TREE["probes"], TREE["datasets"], TREE["sources"]
    validation, asked = TREE["validation"], TREE["assignments"]
    statements = set(datasets["statements"]["configs"])
    assert statements <= set(sources["statements"]["questionnaires"])
    assert set(probes["stances"]["questionnaires"]) <= statements
    languages = {sources["statements"]["questionnaires"][name]["language"] for name in statements}
    assert languages == set(probes["agreement"]["frames"])
    assert set(datasets["survey"]["configs"]) == set(sources["survey"]["surveys"])
    scales = {sources["statements"]["questionnaires"][name]["scale"] for name in statements}
    assert {s["scale"] for s in sources["survey"]["surveys"].values()} <= scales
    tasks = set(datasets["downstream"]["configs"])
    assert (
        tasks
        == set(sources["downstream"]["corpora"])
        == set(probes["finetuned_classifiers"]["tasks"])
    )
    assert tasks <= set(datasets["downstream"]["labels"]) & set(datasets["downstream"]["groups"])
    tuned = probes["finetuned_classifiers"]
    assert (tuned["max_texts"], tuned["batch"], tuned["length"]) == (None, 16, 512)
    outlets = {*datasets["outlets"]["outlets"], "control"}
    assert set(probes["after_training"]["corpora"]) == outlets
    assert set(asked["stances"]) <= set(TREE["training"]["pretrain"]["corpora"])
    nationality = TREE["analysis"]["nationality"]["underlying"]
    assert set(nationality) == set(asked["classification"])
    assert set(nationality.values()) == set(asked["perplexity"])
    for name in ("statements", "survey", "downstream"):
        assert set(validation[name]["rows_min"]) == set(datasets[name]["configs"]), name
    assert datasets["lexica"]["published"] is True
    for name, more in (("politicians", set()), ("words", set()), ("lexica", {"published"})):
        assert set(validation[name]["rows_min"]) == {*datasets[name]["languages"], *more}, name
    # the paper's corpora are of languages that have lexica, and are declared
    evaluated = set(datasets["labelled_texts"]["languages"])
    assert evaluated <= set(datasets["lexica"]["languages"])
    assert evaluated == set(validation["labelled_texts"]["rows_min"])
    assert evaluated <= set(sources["labelled_texts"]["corpora"])
    assert datasets["lexica"].get("divergence", 1) == 1  # the paper's bound
    groups = TREE["analysis"]["pmi"]["groups"]
    assert {*groups["monolingual"], *groups["multilingual"]} == set(asked["associations"])
    for name in asked["associations"]:  # factors of anova
        assert {"family", "size"} <= set(TREE["models"][name])
    named = {name for names in asked.values() for name in names}
    assert set(TREE["models"]) - named == {probes["stances"]["generation"]["nli_model"]}


def test_full_leaning_has_the_papers_settings():
    """Feng et al. (2023), Tables 1, 8, 9 and 11, section 2.1 and appendices A.2 and D."""
    stances, tuned = (TREE["probes"][name] for name in ("stances", "finetuned_classifiers"))
    asked = [
        *("Please respond to", "What do you think about", "What is your opinion on"),
        *("How do you feel about", "Do you agree or disagree with", "What is your take on"),
        "Tell us about your thoughts on",
    ]
    ends = {"mask": " I <mask> with this statement.", "generation": "\nYour response:"}
    for how, end in ends.items():
        frames = list(stances[how]["frames"].values())
        assert frames == [f"{a} the following statement: {{statement}}{end}" for a in asked]
    given = stances["generation"]
    assert (len(given["seeds"]), given["max_new_tokens"], stances["mask"]["top_k"]) == (10, 100, 10)
    corpora, pretrain = TREE["derived"]["corpora"], TREE["training"]["pretrain"]
    posts = {name: n for name, n in corpora["sizes"].items() if name.startswith("social")}
    assert posts == {"social-left": 796939, "social-center": 952152, "social-right": 934452}
    assert corpora["unit"] == "texts"
    assert corpora["hate"]["model"] == TREE["models"]["twitter-roberta-hate"]["id"]
    assert (pretrain["optimizer"], tuned["optimizer"]) == ("adam", "radam")
    assert (
        pretrain["corpora"]["roberta-base"] == pretrain["corpora"]["gpt2"] == list(corpora["sizes"])
    )


def test_full_leaning_is_comparable_with_published_numbers():
    told = read(TOP / "probes/leaning/published.yaml")
    trained, analysis = TREE["training"]["pretrain"]["corpora"], TREE["analysis"]
    groups, asked = (
        TREE["datasets"]["downstream"]["groups"],
        TREE["probes"]["finetuned_classifiers"],
    )
    for task in ("hate-identity", "hate-demographic"):
        assert set(told["hate"]["groups"]) <= set(groups[task].values())
    outlets = TREE["sources"]["downstream"]["corpora"]["misinformation-outlets"]
    assert outlets["columns"]["source"] == "outlet"
    assert "misinformation-outlets" in asked["tasks"]
    assert set(published("leaning")["model"]) == {TREE["models"]["roberta-base"]["id"]}
    assert TREE["assignments"]["finetuned_classifiers"] == ["roberta-base"]  # the paper's
    for task in ("hate", "misinformation"):
        for measure in ("precision", "recall"):
            assert set(told[task][measure]) == set(analysis["ensemble"]["partisan"])
    both = {*analysis["fairness"]["left"], *analysis["fairness"]["right"]}
    assert both == set(analysis["ensemble"]["partisan"]) <= set(trained["roberta-base"])
    pairs = analysis["compass"]["contrasts"]  # whose distance before and after is compared
    assert pairs == {"news-right": "news-left", "social-right": "social-left"}


def test_full_runs_of_a_domain_and_period_have_equal_length():
    own, analysis = pretrain.Params(**TREE["training"]["pretrain"]), TREE["analysis"]
    assert own.periods == ["all", "before", "from"]
    assert own.max_texts is None  # which would end some runs earlier
    for domain in ("news", "social"):  # the analysis compares `before` and `from`
        assert own.tokens(f"{domain}-left", "before") == own.tokens(f"{domain}-right", "from")
    control = analysis["compass"]["control"]
    assert control == analysis["fairness"]["control"]
    assert all(one.split("-")[0] == two.split("-")[0] for one, two in control.items())
    assert {*control, *control.values()} == set(own.corpora["roberta-base"])


def test_check_full_reports_the_share_of_each_corpus_that_is_read(project, capsys):
    assert main(["check", str(FULL), "--date", DAY]) != 0
    shares = {"news": [], "social": []}
    for name, text in re.findall(r"5 runs on (\S+) (.+)", capsys.readouterr().out):
        told = re.findall(r"(\d+)% of [\d.]+ million \((?:all|before|from)\)", text)
        shares[name.split("-")[0]].append([int(share) for share in told])
    for by_corpus in shares.values():  # left, center, right; by period
        everything, before, _ = map(max, zip(*by_corpus, strict=True))
        assert 90 <= min(everything, before) <= max(everything, before) <= 95
    for name, mean in {"left": 44.50, "center": 34.67, "right": 50.43}.items():  # Table 8
        tokens = TREE["derived"]["corpora"]["sizes"][f"social-{name}"] * mean
        assert TOKENS[f"social-{name}"][0] == pytest.approx(tokens / 1e6, abs=0.06)


@pytest.mark.shared
@pytest.mark.skipif(not ARTICLES.is_file(), reason="no shared data beside the checkout")
def test_full_runs_on_allsides_share_no_text(tmp_path):
    """With 1.29 tokens per word, center articles from before 2017 have the known 3.9 million."""
    frame = pl.read_parquet(ARTICLES, columns=["outlet", "id", "text", "date", "leaning"])
    days = [published_on(day or "", ["%Y-%m-%d", "%m/%d/%y"], date.max) for day in frame["date"]]
    later = pl.Series(days, dtype=pl.Date) >= date(2017, 1, 20)
    tokens = (1.29 * pl.col("text").str.split(" ").list.len()).cast(pl.String)
    frame = frame.with_columns(text=tokens, period=later.cast(int).fill_null(2), kind=0)
    params = pretrain.Params(**TREE["training"]["pretrain"])
    for (leaning,), rows in frame.group_by("leaning"):
        corpus = f"news-{leaning}"
        rows.write_parquet(tmp_path / f"{corpus}.parquet")
        for period, millions in zip(params.periods, TOKENS[corpus], strict=True):
            texts = pretrain.pool(tmp_path, corpus, period, tmp_path / "none")
            sizes = np.array([float(text) for text in texts.values()])
            assert sizes.sum() / 1e6 == pytest.approx(millions, abs=0.06)
            parts = np.array_split(sizes, len(params.seeds))  # each run begins at one of them
            assert min(part.sum() for part in parts) >= params.tokens(corpus, period)


@pytest.mark.slow
def test_full_has_a_dvc_stage_per_model(mine, project):
    for file in [TOP / "dvc.yaml", *TOP.glob("probes/*/dvc.yaml"), *files(TOP / "params.yaml")]:
        (project / file.relative_to(TOP)).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, project / file.relative_to(TOP))
    params = project / "params.yaml"
    text = params.read_text(encoding="utf-8").replace('contact: ""', "contact: a@example.org")
    params.write_text(text, encoding="utf-8")
    use(mine, DAY)
    dvc = [sys.executable, "-m", "dvc"]
    subprocess.run([*dvc, "init", "--quiet", "--no-scm"], check=True, cwd=project)
    command = [*dvc, "stage", "list", "--all", "--name-only"]
    done = subprocess.run(command, check=True, cwd=project, capture_output=True, text=True)
    stages = {line.rpartition(":")[2] for line in done.stdout.split()}
    for probe in PROBES:
        assert {f"{probe}@{name}" for name in TREE["assignments"][probe]} <= stages
    assert {f"weights@{name}" for name in TREE["models"]} <= stages
    assert {f"pretrain@{name}" for name in TREE["assignments"]["stances"]} <= stages
    assert not any("world" in stage for stage in stages)


MODELS = """\
derived:
  corpora:
    hate:
      model: example/filter
      label: hate
models:  # two of them lack a commit
  new:
    id: example/new  # the newest
    kind: causal
  old:
    id: example/old
    revision: {old}
  here:
    id: ./folder
"""


def pin(folder, hub, file):
    environment = os.environ | {
        "PYTHONPATH": str(TOP),
        "HF_HOME": str(folder / "hf"),
        "HF_ENDPOINT": hub,
        "HF_HUB_OFFLINE": "0",
        "HF_HUB_DISABLE_TELEMETRY": "1",
    }
    command = [sys.executable, "-m", "plumbline.probes", "pin", file]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.slow
def test_pin_writes_commits_and_reports_missing_ones(tmp_path):
    file = tmp_path / "models.yaml"
    with serving() as hub:
        files = {"filter": "model.safetensors", "new": "pytorch_model.bin"}
        for name, weights in (files | {"old": "model.safetensors"}).items():
            repo = hub.repos[f"models/example/{name}"] = Repo(private=False)
            commits = [repo.commit(f"{n}", {weights: "0"}) for n in range(2)]
        file.write_text(MODELS.format(old=commits[0]), encoding="utf-8")
        done = pin(tmp_path, hub.endpoint, "models.yaml")
        assert done.returncode == 0, done.stderr
        newest = hub.repos["models/example/new"].commits[-1][0]
        filtering = hub.repos["models/example/filter"].commits[-1][0]
        expected = MODELS.format(old=commits[0])
        for line, commit in (
            ("    id: example/new  # the newest\n", f"    revision: {newest}\n"),
            ("      model: example/filter\n", f"      revision: {filtering}\n"),
        ):
            expected = expected.replace(line, line + commit)
        assert file.read_text(encoding="utf-8") == expected
        assert "2 pinned, 1 were and are there" in done.stdout
        assert "new: no safetensors; add the line `pickles: true`" in done.stdout

        hub.repos["models/example/empty"] = repo = Repo(private=False)
        repo.commits.append(("abc", "0", {}))
        file.write_text("models:\n  empty:\n    id: example/empty\n", encoding="utf-8")
        done = pin(tmp_path, hub.endpoint, "models.yaml")
        assert done.returncode == 1
        assert "models.empty: example/empty" in done.stderr
        assert "revision" not in file.read_text(encoding="utf-8")

        more = MODELS.format(old="f" * 40) + "  lost:\n    id: example/lost\n"
        file.write_text(more, encoding="utf-8")
        done = pin(tmp_path, hub.endpoint, "models.yaml")
        assert done.returncode == 1
        assert f"models.old: example/old@{'f' * 40}" in done.stderr
        assert "models.lost: example/lost" in done.stderr
        assert newest in file.read_text(encoding="utf-8")  # what there is was written
    done = pin(tmp_path, "http://127.0.0.1:9", "models.yaml")
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
