"""A place to work in: datasets built from the samples, validated, and models put to them."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
import torch
import whole
import yaml
from models.tiny import bert, save, wordpiece
from passports import CONFIG, datasets
from placed import validated

from plumbline.builders.core.build import build
from plumbline.builders.core.parquet import VALIDATION
from plumbline.builders.datasets.labelled_texts import build as labelled_texts
from plumbline.builders.datasets.lexica import build as lexica
from plumbline.builders.datasets.politicians import build as politicians
from plumbline.builders.datasets.supersenses import build as supersenses
from plumbline.builders.datasets.words import build as words

TOP = Path(__file__).parents[2]
SAMPLES = TOP / "data/samples/worlds"
WORLDS = ("world-planted", "world-null")
OF_ONE = {"clusters": ("tiny",), "subgroups": ("tiny", WORLDS[0])}  # long


@pytest.fixture
def launched():
    """Return what runs a command in so many processes; `accelerate launch --cpu` starts but one."""

    def run(number, *command):
        script = "from runpy import run_module\n"
        script += "run_module('plumbline.probes', run_name='__main__')\n"
        Path("launched.py").write_text(script, encoding="utf-8")
        several = ["torch.distributed.run", "--standalone", "--nproc_per_node", str(number)]
        alone = ["accelerate.commands.launch", "--cpu", "--num_processes", "1"]
        alone += ["--num_machines", "1", "--mixed_precision", "no"]
        of_cpu = {"ACCELERATE_USE_CPU": "true", "ACCELERATE_MIXED_PRECISION": "no"}
        done = subprocess.run(
            [
                *(sys.executable, "-m", *(several if number > 1 else alone)),
                *("launched.py", *command),
            ],
            env=os.environ | {"PYTHONPATH": str(TOP), "OMP_NUM_THREADS": "1"} | of_cpu,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        return done

    return run


def little(tree):
    """Make the project's params quick: short lists, few replicates, a tiny model."""
    tree["probes"]["associations"]["top_share"] = 1.0
    asked = [*WORLDS, "tiny"]
    tree["assignments"] = {name: list(asked) for name in tree["assignments"]}
    elsewhere = ("completions", "after_training", "agreement", "classification", "perplexity")
    elsewhere += ("finetuned_classifiers", "stances")
    tree["assignments"] |= {name: [] for name in elsewhere}  # in tests of their own
    tree["assignments"]["subgroups"] = [WORLDS[0], "tiny"]
    tree["analysis"]["pmi"]["groups"] = {"all": "all", "worlds": asked[:2]}
    tree["models"]["tiny"] = {"id": "./tiny", "dtype": "float64", "languages": ["en", "fr"]}
    lengths = {"en": {"ADJ": 10, "VERB": 9}, "other": {"ADJ": 6, "VERB": 5}}
    tree["probes"]["associations"]["top_k"] = lengths
    tree["analysis"]["pmi"] |= {"n_bootstrap": 200, "n_permutations": 999}
    tree["analysis"]["sentiment"] |= {"n_bootstrap": 100, "n_permutations": 100}
    tree["analysis"]["subgroups"] |= {"n_bootstrap": 100, "n_permutations": 99, "min_people": 5}
    tree["analysis"]["clusters"] |= {"n_bootstrap": 100, "n_simulations": 19, "clusters": [2, 3]}
    tree["analysis"]["clusters"] |= {"top_k": 12, "seeds": [1, 2]}
    tree["analysis"]["supersenses"] |= {"n_permutations": 199}
    tree["analysis"]["lexicon_evaluation"] |= {"n_bootstrap": 100, "n_permutations": 99}
    tree["probes"]["representations"]["languages"] = ["en", "fr"]
    grid = {"l1": [0.0, 1e-3], "posterior": [0.1, 10.0], "seeds": [1]}
    tree["analysis"]["latent"] |= grid | {"steps": 20, "n_bootstrap": 20}
    tree["datasets"]["lexica"] |= {"languages": ["en", "fr"], "seeds": [1], "steps": 60}
    least = tree["validation"]["lexica"]["rows_min"]
    tree["validation"]["lexica"]["rows_min"] = {"en": least["en"], "fr": least["fr"]}


def change(edit, file=Path("params.yaml")):
    """Edit the params of the folder one is in."""
    tree = yaml.load(file.read_text(encoding="utf-8"), yaml.CSafeLoader)
    edit(tree)
    text = yaml.dump(tree, Dumper=yaml.CSafeDumper, allow_unicode=True)
    file.write_text(text, encoding="utf-8")


@pytest.fixture(autouse=True, scope="session")
def one_thread():
    """Use one thread: models as small as these lose more by waiting than they gain."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session", name="change")
def changing():
    """Return the function that edits the params."""
    return change


@pytest.fixture(scope="session")
def built(once, linking):
    """Return a folder with the datasets, two worlds and a BERT of random weights.

    The datasets are taken as validated: whether they pass is for their own tests.
    """

    def make(folder):
        linking(folder)
        (folder / "docs").symlink_to(TOP / "docs")
        whole.write(folder)
        change(little)
        needed = {"politicians": politicians, "words": words, "lexica": lexica}
        needed |= {"supersenses": supersenses, "labelled_texts": labelled_texts}
        for name, module in needed.items():
            build(name, module)
            validated(name)
        sentences = []
        for language in ("en", "fr"):
            people = pl.read_parquet(f"data/datasets/politicians/{language}.parquet")
            sentences += people["name"].to_list()
            forms = pl.read_parquet(f"data/datasets/words/{language}.parquet")["form"]
            sentences += [f"a {form}" for form in forms if form[0] not in "cs"]
        tokenizer = wordpiece(sentences)
        save(folder / "tiny", bert(tokenizer), tokenizer)
        for world in WORLDS:  # copies: some tests plant over them
            shutil.copytree(SAMPLES / world, folder / "data/samples/worlds" / world)

    return once("asked", make)


@pytest.fixture
def place(built, tmp_path, monkeypatch):
    """Change to a copy of the built folder that one may spoil, and return it."""
    folder = tmp_path / "place"
    shutil.copytree(built, folder, symlinks=True)
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture(scope="session")
def finished(built, once):
    """Return a folder in which the whole pipeline ran over three models; only to be read."""
    from plumbline.probes import EACH
    from plumbline.probes.controls.compare import recover
    from plumbline.probes.core.run_analysis import analyse
    from plumbline.probes.core.run_probe import probe
    from plumbline.probes.models.load import pin
    from plumbline.probes.site.build import write

    def make(folder):
        shutil.copytree(built, folder, symlinks=True, dirs_exist_ok=True)
        path = Path(VALIDATION / "supersenses.json")
        found = {"expectation_type": "expect_rows", "kwargs": {"column": "word"}, "success": False}
        report = json.loads(path.read_text()) | {"tables": {"en": {"expectations": [found]}}}
        path.write_text(json.dumps(report))
        pin("tiny")
        for model in ("tiny", "world-planted", "world-null"):
            probe("associations", model)
            probe("representations", model)
            for analysis in EACH:
                if model in OF_ONE.get(analysis, (model,)):
                    analyse(analysis, model)
        for analysis in ("pmi", "sentiment", "averages", "anova", "lexicon_evaluation"):
            analyse(analysis)
        recover(("politicians",))
        write()

    return once("finished", make)


@pytest.fixture
def copied(finished, tmp_path, monkeypatch):
    """Change to a copy of the finished folder that one may spoil, and return it."""
    folder = tmp_path / "copied"
    shutil.copytree(finished, folder, symlinks=True)
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture(scope="session")
def asked_nations(once):
    """Return a folder in which two worlds of countries were trained and asked; only to be read."""
    from plumbline.probes.core.run_probe import probe
    from worlds.plant import plant

    given = {"world": "nations", "targets": [CONFIG], "noise": 0.02, "batch": 96, "steps": 120}
    given |= {"seed": 1, "learning_rate": 0.008}

    def make(folder):
        (folder / "docs").symlink_to(TOP / "docs")
        (folder / "data").mkdir()
        sizes = {"countries": ("aa", "bb", "cc"), "sentences": 12, "draws": 3, "placebos": 2}
        datasets(folder / "data", **sizes)
        whole.write(folder)
        change(lambda tree: tree["probes"]["perplexity"].update(readings=["corrected"]))
        plant("planted", given | {"kind": "classifier", "offset": 0.2})
        plant("masked", given | {"offset": 1.5})
        probe("classification", "planted")
        probe("perplexity", "masked")

    return once("nations", make)


@pytest.fixture
def nations(asked_nations, monkeypatch):
    """Change to the folder in which the worlds of countries were asked, and return it."""
    monkeypatch.chdir(asked_nations)
    return asked_nations
