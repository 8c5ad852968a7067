"""The full study as a file: it makes sense, can be used and pinned, and is planned as asked."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import whole
import yaml
from imports import TOP
from lib.hub_server import Repo, serving

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.params import files, read
from plumbline.probes.__main__ import main
from plumbline.probes.commands import cost
from plumbline.probes.commands.check_params import check, named_snapshots
from plumbline.probes.commands.cost import (
    MODULES,
    Study,
    assumed_plans,
    sizes_in,
    summary,
    trainings,
)
from plumbline.probes.commands.params_overlay import check_with, composed, lay, use
from plumbline.probes.commands.pin_revisions import written
from plumbline.probes.politicians.latent import L1, POSTERIOR
from plumbline.reference import published

FULL = TOP / "params" / "full.yaml"
SIZES = TOP / "params" / "full-sizes.yaml"
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


def test_the_models_of_all_five_papers_are_there_and_asked_as_the_studies_say():
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


def test_the_plan_of_the_study_is_printed_with_what_its_tests_would_find(capsys, monkeypatch):
    monkeypatch.chdir(TOP)
    assert main(["plan", "--study", str(FULL), "--sizes", str(SIZES)]) == 0
    told = capsys.readouterr().out
    assert "| pretrain | " in told
    for analysis in ("pmi", "recall", "values", "nationality", "compass"):
        assert f"\n| {analysis} | " in told
    assert told.splitlines()[-1].startswith("In all ")


@pytest.mark.parametrize("alone", [["--fits"], ["--sizes", str(SIZES)]])
def test_what_is_of_a_study_is_refused_without_one(alone, capsys):
    assert main(["plan", *alone]) != 0
    assert "--study" in capsys.readouterr().err


def test_the_file_of_a_study_has_to_be_there(capsys):
    assert main(["plan", "--study", "nofile.yaml"]) != 0
    assert capsys.readouterr().err.startswith("error: nofile.yaml: no such file")


@pytest.mark.parametrize("seconds", ["0", "-1"])
def test_a_trial_of_no_time_is_refused(seconds, capsys):
    assert main(["plan", "world-es", "--seconds", seconds]) != 0
    assert capsys.readouterr().err == (
        f"error: --seconds: {seconds}; a trial has to last more than 0 seconds\n"
    )


def test_the_latent_model_is_fitted_with_all_40_pairs_of_weights_of_the_paper():
    whole_grid = TREE["analysis"]["latent"]
    assert (tuple(whole_grid["l1"]), tuple(whole_grid["posterior"])) == (L1, POSTERIOR)
    assert len(L1) * len(POSTERIOR) == 40


def test_all_that_is_wrong_with_it_is_what_only_its_user_can_give(project, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(UserError) as caught:
        check_with(FULL, DAY, fetched=False)
    _, *problems = str(caught.value).splitlines()
    pinned = [p for p in problems if "needs a pinned revision" in p]
    assert {re.search(r"error, (\S+) needs", p)[1] for p in pinned} == UNPINNED
    (hate,) = [p for p in pinned if p.startswith("  derived.corpora.hate:")]
    assert TREE["derived"]["corpora"]["hate"]["model"] in hate
    (command,) = [p for p in problems if "python -m plumbline.probes pin" in p]
    assert f"`python -m plumbline.probes pin {FULL}`" in command
    files = {re.search(r"no file (\S+);", p)[1] for p in problems if "no file" in p}
    assert files == {
        "private/hate_demographic.jsonl",
        "private/hate_identity.jsonl",
        "private/kopecky2022.csv",
        "private/misinformation_outlets.jsonl",
        "private/pi34.csv",
        "private/political_compass.json",
        "private/reddit_comments.zst",
        "private/reddit_submissions.zst",
    }
    for page in {re.search(r"(docs/\S+\.md)", p)[1] for p in problems if "no file" in p}:
        assert (TOP / page).is_file()
    keys = [p for p in problems if "OPENAI_API_KEY is not set" in p]
    assert len(keys) == 2
    (contact,) = [p for p in problems if "sources.politeness.contact: empty" in p]
    assert len(problems) == len([*pinned, command, *files, *keys, contact])


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
def test_it_becomes_params_yaml_and_names_what_to_fetch(mine, project):
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


def test_a_field_is_changed_in_the_file_that_has_it(project):
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


def test_what_is_wrong_in_it_leaves_params_yaml_alone(mine, project):
    before = (project / "params.yaml").read_bytes()
    mine.write_text("analysis: {pmi: {sede: 1}}\nmodels: {a: {id: x/y}}\n", encoding="utf-8")
    with pytest.raises(UserError) as caught:
        use(mine, DAY)
    assert "analysis.pmi.sede: unknown key" in str(caught.value)
    assert "x/y needs a pinned revision" in str(caught.value)
    assert (project / "params.yaml").read_bytes() == before


def test_what_dvc_cannot_read_is_not_written(mine, project):
    before = (project / "params.yaml").read_bytes()
    text = mine.read_text(encoding="utf-8")
    mine.write_text(text.replace('"https://api.openai.com/v1"', "https://api.openai.com/v1"))
    with pytest.raises(UserError, match=r"DVC cannot read this: endpoint: \{url: https"):
        use(mine, DAY)
    assert (project / "params.yaml").read_bytes() == before


def test_names_in_it_lead_somewhere():
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


def test_the_study_of_leaning_is_the_papers():
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
    sizes = sizes_in(SIZES).downstream
    assert {name: (own.train, own.test) for name, own in sizes.items() if "liar" not in name} == {
        "hate-identity": (76736, 63952),
        "hate-demographic": (132909, 110736),
        "misinformation-outlets": (20690, 5911),
    }


def test_what_the_paper_tells_of_groups_and_of_sides_can_be_laid_beside_it():
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


def test_trainings_are_as_long_on_all_corpora_and_periods_and_compared_within_their_domain():
    own, analysis = TREE["training"]["pretrain"], TREE["analysis"]
    assert own["periods"] == ["all", "before", "from"]
    assert (own["max_texts"], own.get("patience", 0)) == (None, 0)  # neither ends some earlier
    assert trainings(TREE) == (
        "Each training on a corpus reads 700,000 tokens 20 times in about 860 steps, of every "
        "corpus and period alike. Trainings whose steps differ by more than 5% are not tested "
        "against each other."
    )
    fewest = 3_900_000  # tokens of the center's articles before 2017 (AllSides)
    assert own["max_tokens"] * len(own["seeds"]) < fewest  # so that no two seeds share a text
    without = TREE | {"training": {"pretrain": own | {"max_tokens": None}}}
    assert "by the length of the texts" in trainings(without)
    control = analysis["compass"]["control"]
    assert control == analysis["fairness"]["control"]
    assert all(one.split("-")[0] == two.split("-")[0] for one, two in control.items())
    assert {*control, *control.values()} == set(own["corpora"]["roberta-base"])


def test_the_plan_counts_what_can_be_counted_by_hand():
    study = Study(TREE, sizes_in(SIZES))
    assert study.prompts("associations", "m-bert-cased") == 7 * 2 * 250_000
    assert study.prompts("completions", "roberta-base") == 374 * 5
    assert study.prompts("after_training", "bart-base") == (5 * 4 * 3 + 3) * 374 * 5
    in_czech = 100 + 34 + 48  # statements, in three frames, by two genders, also denied
    assert study.prompts("agreement", "czert-b") == in_czech * 3 * 2 * 2
    said = 62 + 70 + 40  # also denied; reworded by three in one prompt; texts without content
    itself = 7 * (2 * said + 3) + 3 * said
    assert study.prompts("stances", "bert-large-uncased") == itself
    assert study.prompts("stances", "roberta-base") == (1 + 6 * 3 * 5) * itself
    assert study.prompts("stances", "gpt-4") == 10 * (7 * 2 + 3) * said
    offered = {"templates": {"open": "{statement}", "closed": "{statement} {options}"}}
    choice = study.probes["stances"].multiple_choice.model_copy(update=offered)
    asking = study.probes["stances"].model_copy(update={"multiple_choice": choice})
    offering = Study(TREE, sizes_in(SIZES))
    offering.probes["stances"] = asking  # two orders, where there are options
    assert offering.prompts("stances", "gpt-4") == (10 * (7 * 2 + 3) + 1 + 2) * said
    tested = 63952 + 110736 + 5911 + 1280
    assert study.prompts("finetuned_classifiers", "roberta-base") == (6 * 5 + 5) * tested
    each = 17 * (2 * 50 * 0.43 + 50)  # countries; both genders where they are in a list, one's own
    asked = round(1630 * (1 + each)) + 12284 - 1630
    assert study.prompts("perplexity", "xlm-t") == asked
    found = list(assumed_plans(TREE, sizes_in(SIZES)))
    rate = sizes_in(SIZES).device.tflops * 3600e12
    work = {(p.probe, p.model): p.hours * rate for p in found}
    passes = 40 * (2 - 1 / 1.3)  # of a text: each token, and again those with more of their word
    assert work["perplexity", "xlm-t"] == pytest.approx(asked * 40 * passes * 2 * 86e6)
    once = in_czech * 12 * (30 * 86e6 + 24e6) * 2
    assert work["agreement", "czert-b"] == pytest.approx(9 * once)
    assert len(found) == sum(len(TREE["assignments"][probe]) for probe in MODULES) + 2
    trained = {p.model: p for p in found if p.probe == "pretrain"}
    assert set(trained) == {"gpt2", "roberta-base"}
    # Six corpora in three periods, five seeds, as many tokens of each, 20 times.
    read_in = 6 * 3 * 5 * 700_000 * 20
    assert trained["gpt2"].hours * rate == pytest.approx(6 * 125e6 * read_in)
    hours = sum(p.hours for p in found)
    assert f"{hours:,.0f} hours" in summary(found, sizes_in(SIZES))
    assert "In all 0 prompts" in summary([], sizes_in(SIZES))


def test_a_model_without_a_size_is_told(project):
    sizes = sizes_in(SIZES)
    fewer = sizes.model_copy(update={"weights": {"gpt2": (86, 39)}})
    with pytest.raises(UserError, match=r"weights\.albert-base: not there"):
        list(assumed_plans(TREE, fewer))
    Path("sizes.yaml").write_text("device: {name: x, tflops: -1}\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"sizes\.yaml: device\.tflops"):
        sizes_in(Path("sizes.yaml"))


@pytest.mark.slow
def test_the_plan_counts_as_the_probes_do(built, tmp_path, monkeypatch):
    """Of the samples, whose sizes are read off the datasets, counts agree to the prompt."""
    import polars as pl

    from plumbline.builders.core.build import build
    from plumbline.builders.datasets.social_groups import build as social_groups
    from plumbline.builders.datasets.statements import build as statements

    mine = Path(shutil.copytree(built, tmp_path / "mine"))
    monkeypatch.chdir(mine)
    build("social_groups", social_groups)
    build("statements", statements)
    tree = read()
    tree["probes"]["completions"]["groups"] = "all"  # as in the full study
    folders = {name: mine / "data" / "datasets" / name for name in INPUTS}

    def count(dataset, config, column):
        frame = pl.read_parquet(folders[dataset] / f"{config}.parquet", columns=[column])
        return frame[column].n_unique()

    languages = tree["datasets"]["words"]["languages"]
    sizes = sizes_in(SIZES).model_copy(
        update={
            "names": {code: count("politicians", code, "name") for code in languages},
            "words": {code: count("words", code, "form") for code in languages},
            "groups": len(pl.read_parquet(folders["social_groups"] / "en.parquet")),
            "statements": {
                config: count("statements", config, "id")
                for config in tree["datasets"]["statements"]["configs"]
            },
        }
    )
    study = Study(tree, sizes)
    compared = 0
    for probe in ("associations", "representations", "completions", "agreement"):
        for name in tree["assignments"][probe]:
            amounts = MODULES[probe].amount(study.probes[probe], study.models[name], folders)
            assert study.prompts(probe, name) == sum(amounts.values()), (probe, name)
            compared += 1
    assert compared == 13


INPUTS = ("politicians", "words", "social_groups", "statements", "stereotypes")


@pytest.mark.slow
def test_dvc_makes_stages_of_it(mine, project):
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
    for probe in MODULES:
        assert {f"{probe}@{name}" for name in TREE["assignments"][probe]} <= stages
    assert {f"weights@{name}" for name in TREE["models"]} <= stages
    assert {f"pretrain@{name}" for name in TREE["assignments"]["stances"]} <= stages
    assert not any("world" in stage for stage in stages)


@pytest.mark.parametrize("commit", ["1" * 40, "12e" + "4" * 37, "0" * 39 + "e", "ab" * 20])
def test_a_commit_is_a_text_to_both_readers(commit, tmp_path):
    from dvc.utils.serialize import load_yaml

    path = tmp_path / "models.yaml"
    path.write_text(f"revision: {written(commit)}\n", encoding="utf-8")
    assert read(path) == load_yaml(str(path)) == {"revision": commit}


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
def test_commits_come_from_the_hub_and_wrong_ones_are_told(tmp_path):
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

        more = MODELS.format(old="f" * 40) + "  lost:\n    id: example/lost\n"
        file.write_text(more, encoding="utf-8")
        done = pin(tmp_path, hub.endpoint, "models.yaml")
        assert done.returncode == 1
        assert f"models.old: example/old@{'f' * 40}" in done.stderr
        assert "models.lost: example/lost" in done.stderr
        assert newest in file.read_text(encoding="utf-8")  # what there is was written
    done = pin(tmp_path, "http://127.0.0.1:9", "models.yaml")
    assert done.returncode == 1
    assert "the Hub was not reached" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_room_that_the_study_needs_is_told_and_looked_for_before_it_begins(monkeypatch):
    sizes = sizes_in(SIZES)
    plans = [
        cost.Plan("pretrain", "roberta-base", 1, 50.0, 1.0),
        cost.Plan("associations", "roberta-large", 1, 10.0, 1.0),
    ]
    need = cost.needed(plans, sizes)
    # 60 GB twice, the weights of 125 and 355 millions in four bytes; 125 millions in 16
    assert need == pytest.approx((2 * 60 + 0.5 + 1.42, 2.0))
    assert cost.lacking(need, cost.Room(122, 2.1)).endswith("2 GB of memory.")
    assert cost.lacking(need, cost.Room(121, 1.9)).endswith(": too little disk and memory.")
    monkeypatch.setattr(cost, "here", lambda: cost.Room(121, 64))
    with pytest.raises(UserError, match=r"too little disk\. Take models out"):
        cost.fits(plans, sizes)
    monkeypatch.setattr(cost, "here", lambda: cost.Room(130, 64))
    assert cost.fits(plans, sizes) is None


def test_the_full_study_looks_for_room_before_it_changes_or_fetches_anything():
    recipe = (TOP / "Makefile").read_text("utf-8").partition("\nfull: ")[2].partition("\n\n")[0]
    assert 0 < recipe.index("--fits") < recipe.index("probes use") < recipe.index("fetch $$source")
