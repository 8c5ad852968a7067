"""Tracing rows back: on a small project that DVC made, on git alone, and on our own locks."""

import json
import re
import shutil
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree as ET

import polars as pl
import pytest
import yaml
from lib import traced
from lib.traced import DATASET, OUTPUTS, SNAPSHOT, TABLE, commit, run

from plumbline.builders.__main__ import main
from plumbline.builders.core.errors import UserError
from plumbline.builders.core.params import LOADER
from plumbline.builders.dvc import cache, git
from plumbline.builders.dvc import lock as locks
from plumbline.builders.versions import cards, lineage, render
from plumbline.builders.versions.trace import trace

TOP = Path(__file__).parent.parent.parent
FILE = f"{TABLE}/en.parquet"


@pytest.fixture(autouse=True)
def _forget():
    """What was compared in another folder says nothing here."""
    cache.compare.cache_clear()


@pytest.fixture(scope="module")
def made(once):
    """Return a project of three commits: the table changes in the second, and back in the third."""

    def make(_):
        traced.start()
        ids = []
        for factor in (1, 2, 1):
            traced.params(factor)
            traced.repro()
            ids.append(commit(f"factor {factor}"))
        Path("commits.json").write_text(json.dumps(ids), encoding="utf-8")

    return once("traced", make)


@pytest.fixture
def project(made, tmp_path, monkeypatch):
    """A copy of that project, as the working folder."""
    shutil.copytree(made, tmp_path / "project", symlinks=True)
    monkeypatch.chdir(tmp_path / "project")
    ids = json.loads(Path("commits.json").read_text())
    Path("commits.json").unlink()
    return ids


def nodes(found) -> dict:
    return {node.path: node for node in found.nodes.values()}


def command(*arguments: str):
    """Run the command in this process, and return its status and what it wrote."""
    cache.compare.cache_clear()
    out, err = StringIO(), StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        status = main(["trace", *arguments])
    return SimpleNamespace(returncode=status, stdout=out.getvalue(), stderr=err.getvalue())


def refused(*arguments) -> str:
    with pytest.raises(UserError) as told_:
        trace(*arguments)
    return str(told_.value)


@pytest.mark.slow
def test_every_link_from_a_row_to_its_snapshot_is_found(project):
    found = trace(f"{FILE}#1")
    assert found.headline.startswith(f"as locked: {FILE} is what probes/analysis/dvc.lock")
    assert found.differs == []
    assert (found.row.number, found.row.of, found.row.config) == (1, 3, "en")
    assert found.row.names == {"model": "model", "language": "en", "kind": "verb", "word": "b"}
    assert found.row.values == {"len": 2, "value": 2.0}
    chain = nodes(found)
    edges = {path: [found.nodes[k].path for k in node.inputs] for path, node in chain.items()}
    assert edges == {TABLE: [OUTPUTS], OUTPUTS: [DATASET], DATASET: [SNAPSHOT], SNAPSHOT: []}
    assert [chain[p].kind for p in edges] == ["tables", "outputs", "dataset", "snapshot"]
    assert chain[DATASET].facts == {"version": "1.2.0"}
    assert chain[TABLE].stage.params == {"analysis.counts": {"version": "0.3.0", "factor": 1}}
    assert chain[TABLE].stage.command.endswith("builders/make.py table")
    assert chain[DATASET].stage.name == "build@toy"
    facts = chain[SNAPSHOT].facts
    assert facts.items() >= traced.MANIFEST.items()
    assert facts["files"].keys() == {"words.csv"}


@pytest.mark.slow
def test_rows_behind_a_row_are_those_that_share_its_name_and_the_columns_are_told(project):
    found = trace(f"{FILE}#word=b")
    shared = {found.nodes[k].path: parts for k, parts in found.matches.items()}
    assert shared == {
        OUTPUTS: [cards.Matches("en", 2, 6, ("kind", "word"), "language")],
        DATASET: [cards.Matches("en", 1, 3, ("kind", "word"), "language")],
    }
    text = render.text(found)
    assert "rows     en (the language): 2 of 6 have the same kind, word" in text


@pytest.mark.slow
def test_a_hash_that_came_back_is_of_the_first_and_of_the_last_commit(project):
    first, second, third = project
    now, then = nodes(trace(FILE))[TABLE], nodes(trace(FILE, second))[TABLE]
    assert (now.first.id, now.newest.id, now.code.id) == (first, third, third)
    assert (then.first.id, then.newest.id) == (second, second)
    assert nodes(trace(FILE, "HEAD~2"))[TABLE].newest.id == first  # nothing later is looked at
    assert nodes(trace(FILE, second))[DATASET].first.id == first


@pytest.mark.slow
def test_a_row_of_an_older_commit_is_read_from_the_cache_of_dvc(project):
    found = trace(f"{FILE}#0", project[1])
    assert found.row.values["value"] == 6.0  # three rows, times the factor of then
    assert found.headline.startswith(f"DIFFERS: {TABLE} is not what probes/analysis/dvc.lock of")
    shutil.rmtree(".dvc/cache")
    cache.compare.cache_clear()
    assert "its bytes are not here" in refused(f"{FILE}#0", project[1])
    assert nodes(trace(FILE, project[1]))[TABLE].stage.params["analysis.counts"]["factor"] == 2


@pytest.mark.slow
def test_a_file_that_was_changed_is_told_in_the_first_line(project):
    frame = pl.read_parquet(FILE).with_columns(value=pl.lit(9.0))
    Path(FILE).unlink()
    frame.write_parquet(FILE)
    done = command(f"{FILE}#0")
    assert done.returncode == 0
    first = done.stdout.splitlines()[0]
    assert first.startswith(f"DIFFERS: {TABLE} is not what probes/analysis/dvc.lock")
    assert "(changed: en.parquet)" in first
    assert "the row is of the file as it is here" in first
    assert "value 9.0" in done.stdout


@pytest.mark.slow
def test_a_card_that_was_changed_does_not_make_the_table_another(project):
    with Path(TABLE, "README.md").open("a") as file:
        file.write("a note\n")
    assert trace(FILE).headline.startswith(f"as locked: {FILE}; but DIFFERS beside it: README.md")


@pytest.mark.slow
def test_what_is_changed_further_back_is_told_too(project):
    with Path("builders/make.py").open("a") as file:
        file.write("# a comment\n")
    Path(SNAPSHOT, "words.csv").write_text("z\n")
    shutil.rmtree(OUTPUTS)
    said = trace(f"{FILE}#0").differs
    assert "the code of build@toy is not as it was then: builders/make.py" in said
    assert f"{SNAPSHOT} is here in another version than was read" in said
    assert f"{OUTPUTS} is not here" in said
    commit("code")
    cache.compare.cache_clear()
    node = nodes(trace(FILE))[TABLE]
    head = run("git", "rev-parse", "HEAD").stdout.strip()
    assert (node.newest.id, node.code.id) == (head, project[2])  # the code of then is a commit back


@pytest.mark.slow
def test_a_row_is_traced_to_the_version_that_was_read_and_not_to_the_newest(project):
    traced.params(1, words=2)
    traced.repro("builders/dvc.yaml")
    commit("a smaller dataset, from which nothing is made yet")
    chain = [node for node in trace(f"{FILE}#0").nodes.values() if node.path == DATASET]
    assert [node.stage.params["datasets.toy"]["words"] for node in chain] == [3]
    assert chain[0].note.startswith("made anew since")
    assert chain[0].newest.id == project[2]


@pytest.mark.slow
def test_a_lock_that_is_not_committed_is_told(project):
    traced.params(5)
    traced.repro()
    found = trace(FILE)
    assert nodes(found)[TABLE].newest is None
    assert any("is in no commit" in sentence for sentence in found.differs)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("named", "said"),
    [
        ("nowhere.parquet", "no such file, and none in the locks here"),
        ("params.yaml", "no stage in the locks here makes it"),
        (f"{FILE}#3", "no row 3 in en.parquet: it has 3, counted from 0"),
        (f"{FILE}#-1", "no row -1"),
        (f"{FILE}#word=z", "no row with word=z"),
        (f"{FILE}#kind=verb", "3 rows with kind=verb in en.parquet (0, 1, 2)"),
        (f"{FILE}#colour=red", "its columns: word, len, value, kind, language, model"),
        (f"{TABLE}/README.md#0", "has no rows"),
        (f"{TABLE}/other.parquet#0", "has README.md, build.json, en.parquet"),
        ("data/tables", "holds the outputs of several stages"),
        ("../elsewhere", "not a file of this project"),
    ],
)
def test_what_cannot_be_traced_is_one_sentence(project, named, said):
    done = command(named)
    assert (done.returncode, done.stdout) == (1, "")
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("error: ")
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_without_git_without_a_commit_and_without_a_lock_there_is_one_sentence(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert "no git repository here" in refused("data/x.parquet")
    run("git", "init", "--quiet")
    assert "commit the dvc.lock files first" in refused("data/x.parquet")
    Path("a").touch()
    commit("a")
    assert "no dvc.lock here" in refused("data/x.parquet")
    assert "nonsense: no such commit here" in refused("data/x.parquet", "nonsense")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "git: not found" in refused("data/x.parquet")


@pytest.fixture
def _repository(tmp_path, monkeypatch):
    """An empty repository, as the working folder."""
    monkeypatch.chdir(tmp_path)
    run("git", "init", "--quiet", "--initial-branch", "main")


def item(path: str, md5: str) -> dict:
    return {"path": path, "hash": "md5", "md5": md5}


def lock(md5: str, name: str = "one@x", out: str = "data/one", **more) -> None:
    stage = {"cmd": "make"} | more | {"outs": [item(out, md5)]}
    text = yaml.safe_dump({"schema": "2.0", "stages": {name: stage}}, sort_keys=False)
    Path("dvc.lock").write_text(text, encoding="utf-8")


@pytest.mark.usefixtures("_repository")
def test_the_newest_commit_with_a_hash_may_be_one_that_changed_no_lock():
    ids = []
    for md5 in ("a" * 32, "a" * 32, "b" * 32, "a" * 32):
        lock(md5)
        Path("code.py").write_text(f"{len(ids)}\n")
        ids.append(commit(str(len(ids))))
    past = git.read(git.resolve("HEAD"))
    found = git.locked(past, "data/one", "a" * 32)
    assert [c.id for c in found] == [ids[0], ids[3]]
    before = git.read(git.resolve(ids[2]))
    assert [c.id for c in git.locked(before, "data/one", "a" * 32)] == [ids[0], ids[1]]
    assert [c.id for c in git.locked(past, "data/one", "b" * 32)] == [ids[2], ids[2]]
    assert git.locked(past, "data/one", "c" * 32) == (None, None)
    assert git.locked(past, "data/two", "a" * 32) == (None, None)


@pytest.mark.usefixtures("_repository")
def test_hashes_on_a_branch_that_was_merged_are_found():
    lock("a" * 32)
    commit("a")
    run("git", "checkout", "--quiet", "-b", "side")
    lock("b" * 32)
    side = commit("b")
    run("git", "checkout", "--quiet", "main")
    Path("other").touch()
    commit("other")
    run("git", "merge", "--quiet", "--strategy", "ours", "--message", "merge", "side")
    past = git.read(git.resolve("HEAD"))
    assert [c.id for c in git.locked(past, "data/one", "b" * 32)] == [side, side]
    assert git.locked(past, "data/one", "a" * 32)[1].subject == "merge"


@pytest.mark.usefixtures("_repository")
def test_a_lock_with_the_marks_of_a_merge_conflict_is_one_sentence():
    lock("a" * 32)
    commit("a")
    text = Path("dvc.lock").read_text()
    Path("dvc.lock").write_text(text.replace("    - path", "<<<<<<< HEAD\n    - path"))
    assert "dvc.lock: has the marks of a merge conflict" in refused("data/one")


@pytest.mark.usefixtures("_repository")
def test_code_may_be_a_folder_without_what_dvc_ignores():
    Path(".dvcignore").write_text("*.pyc\n/core/notes.py\n")
    (Path("core") / "deep").mkdir(parents=True)
    for name in ("b.py", "deep/a.py", "a.pyc", "notes.py"):
        (Path("core") / name).write_text(name)
    md5 = cache.digest({n: cache.md5_of(Path("core", n)) for n in ("b.py", "deep/a.py")})
    stage = locks.Stage("x", "dvc.lock", "", (locks.Item("core", md5),), {}, ())
    first = commit("a")
    Path("core/notes.py").write_text("ignored")
    second = commit("b")
    past = git.read(git.resolve("HEAD"))
    assert git.code(past, [stage])[0].id == second
    assert cache.of_code(Path("core")) == md5
    Path("core/b.py").write_text("changed")
    commit("c")
    past = git.read(git.resolve("HEAD"))
    assert git.code(past, [stage])[0].id == second != first
    assert cache.of_code(Path("core")) != md5


def test_of_a_stage_of_several_each_is_made_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    world = Path("data/samples/worlds/one")
    world.mkdir(parents=True)
    facts = {"id": "one", "revision": "r", "world": "toys", "parameters": {"seed": 3}}
    (world / "manifest.json").write_text(json.dumps(facts))
    paths = ("data/samples/worlds", "data/datasets/one", "data/datasets/two", "data/datasets/x")
    deps = [locks.Item(path, cache.digest(cache.listed(Path(path)))) for path in paths]
    outs = [locks.Item(f"data/outputs/probe/{name}", "0") for name in ("one", "two")]
    node = lineage.Node(outs[0].path, "outputs", outs[0], cache.Here("not here"))
    node.stage = locks.Stage("probe", "dvc.lock", "", tuple(deps), {}, tuple(outs))
    assert [i.path for i in lineage.read(node, node.stage)] == [str(world), paths[1], paths[3]]


@pytest.mark.usefixtures("_repository")
def test_a_model_of_the_hub_is_its_id_and_commit_and_no_dataset():
    lock(
        f"{'e' * 32}.dir",
        "weights@bert",
        "data/models/bert",
        deps=[item("data/datasets/toy", f"{'d' * 32}.dir")],
        params={"params.yaml": {"models.bert": {"id": "org/bert", "revision": "c" * 40}}},
    )
    commit("a")
    found = trace("data/models/bert")
    (node,) = found.nodes.values()
    assert (node.inputs, node.here.state) == ([], "not here")
    text = render.text(found)
    assert text.startswith("NOT HERE: data/models/bert is missing")
    assert f"org/bert of the Hub, commit {'c' * 40}" in text
    found.row = cards.Row(0, 1, None, {"word": '<b>&"'}, {})  # markup is written as text
    texts = ET.fromstring(render.picture(found)).iterfind("{*}svg/{*}text")
    assert 'word: <b>&"' in {t.text for t in texts}


@pytest.mark.usefixtures("_repository")
def test_a_fetched_snapshot_that_is_not_here_is_known_by_its_dvc_file():
    md5 = "f" * 32 + ".dir"
    Path("data/raw/toy").mkdir(parents=True)
    meta = {key: value for key, value in traced.MANIFEST.items() if key != "request"}
    pointer = {"outs": [{"md5": md5, "path": "2026-01-02"}], "meta": meta}
    Path("data/raw/toy/2026-01-02.dvc").write_text(yaml.safe_dump(pointer), encoding="utf-8")
    deps = [item("data/raw/toy/2026-01-02", md5)]
    lock(f"{'e' * 32}.dir", "build@toy", "data/datasets/toy", deps=deps)
    commit("a")
    end = nodes(trace("data/datasets/toy"))["data/raw/toy/2026-01-02"]
    assert end.kind == "snapshot"
    assert end.facts.items() >= meta.items()
    assert end.facts["manifest"].endswith("data/raw/toy/2026-01-02.dvc")
    assert "request" not in end.facts  # it is not in that file, and nothing is made up
    pointer["outs"][0]["md5"] = "0" * 32 + ".dir"  # of another snapshot: says nothing of this one
    Path("data/raw/toy/2026-01-02.dvc").write_text(yaml.safe_dump(pointer), encoding="utf-8")
    commit("b")
    end = nodes(trace("data/datasets/toy"))["data/raw/toy/2026-01-02"]
    assert (end.facts, end.note) == ({}, "no stage makes it, and it has no manifest")


@pytest.mark.slow
def test_json_is_complete_and_plain(project):
    done = command(f"{FILE}#1", "--json")
    found = json.loads(done.stdout)
    assert found["row"]["names"]["word"] == "b"
    chain = {node["path"]: node for node in found["nodes"]}
    assert chain[TABLE]["newest"]["id"] == project[2]
    assert chain[TABLE]["here"] == {"state": "as locked", "changed": []}
    deps = {dep["path"]: dep["md5"] for dep in chain[TABLE]["stage"]["deps"]}
    assert deps["builders/make.py"] == cache.md5_of(Path("builders/make.py"))
    assert deps[OUTPUTS] == chain[OUTPUTS]["item"]["md5"]
    assert chain[SNAPSHOT]["facts"]["request"] == {"query": "SELECT ?word"}


@pytest.mark.slow
def test_the_picture_holds_every_step_in_layers_and_in_greys(project):
    done = command(f"{FILE}#1", "--svg", "pictures/row.svg")
    assert done.returncode == 0, done.stderr
    text = Path("pictures/row.svg").read_text(encoding="utf-8")
    top = ET.fromstring(text)
    space = {"svg": "http://www.w3.org/2000/svg"}
    assert top.get("role") == "img"
    for part, tag in zip(top.get("aria-labelledby").split(), ("title", "desc"), strict=True):
        assert top.find(f"svg:{tag}[@id='{part}']", space).text
    written = [t.text for t in top.iterfind("svg:svg/svg:text", space)]
    names = ["toy/2026-01-02", "toy", "probe/model", "counts/model", "row 1 of 3"]
    places = {box.findall("svg:text", space)[1].text: box for box in top.iterfind("svg:svg", space)}
    assert sorted(places) == sorted(names)
    across = [float(places[name].get("x")) for name in names]
    assert across == sorted(set(across))  # each step right of the one it was made of
    assert {"retrieved 2026-01-02", "en: 2 of 6 rows", "word: b", "value 2"} <= set(written)
    assert len(top.findall("svg:path", space)) == 4
    colours = re.findall(r"#([0-9a-f]{3,6})\b", text)
    assert colours
    assert all(colour == colour[: len(colour) // 3] * 3 for colour in colours)
    width, height = map(float, top.get("viewBox").split()[2:])
    for box in places.values():
        x, y, w, h = (float(box.get(key)) for key in ("x", "y", "width", "height"))
        assert 0 <= x < x + w <= width
        assert 0 <= y < y + h <= height


def test_a_label_that_the_other_does_not_have_is_no_shared_column(tmp_path):
    card = tmp_path / "README.md"
    card.write_text(
        "---\nconfigs:\n- config_name: x\n  data_files: x.parquet\ndataset_info:\n"
        "- config_name: x\n  features:\n  - name: reading\n    dtype:\n      class_label:\n"
        "        names: {'0': plug-in}\n---\n"
    )
    pl.DataFrame({"reading": [0, 0], "n": [1.0, 2.0]}).write_parquet(tmp_path / "x.parquet")
    files = {"README.md": card, "x.parquet": tmp_path / "x.parquet"}
    assert cards.matches(files, {"reading": "smoothed"}) == [cards.Matches("x", 2, 2, (), None)]
    assert cards.matches(files, {"reading": "plug-in", "n": 2.0}) == [
        cards.Matches("x", 1, 2, ("reading", "n"), None)
    ]
    assert cards.matches(files, {"n": "2.0"}) == [cards.Matches("x", 2, 2, (), None)]


needs_git = pytest.mark.skipif(not (TOP / ".git").exists(), reason="not a clone: no commits")


@pytest.mark.slow
@needs_git
def test_every_stage_here_ends_at_snapshots_with_manifests(monkeypatch):
    monkeypatch.chdir(TOP)
    entries = locks.here()
    assert entries
    graph = lineage.Graph(git.read(git.resolve("HEAD")), entries)
    for entry in entries:
        todo = [graph.add(entry.outs[0])]
        seen = set()
        while todo:
            key = todo.pop()
            if key not in seen:
                seen.add(key)
                todo += graph.nodes[key].inputs
        ends = [graph.nodes[key] for key in seen if not graph.nodes[key].inputs]
        assert ends, entry.name
        for node in ends:
            if node.path == "data/tables/calibration":  # in git; a command makes it, no stage
                continue
            assert node.kind in ("snapshot", "model"), (entry.name, node.path, node.note)
            fetched = ("source", "address", "retrieved", "licence", "request", "files")
            for fact in fetched if node.kind == "snapshot" else ("id", "revision"):
                assert node.facts[fact], (entry.name, node.path, fact)


@needs_git
def test_the_locks_here_are_read_as_yaml_has_them(monkeypatch):
    monkeypatch.chdir(TOP)
    entries = locks.here()
    trees = {
        path: yaml.load(Path(path).read_text("utf-8"), Loader=LOADER)["stages"]
        for path in {entry.lock for entry in entries}
    }
    assert sum(map(len, trees.values())) == len(entries)
    for entry in entries:
        tree, stage = trees[entry.lock][entry.name], entry
        assert [(d.path, d.md5) for d in stage.deps] == [
            (d["path"], d["md5"]) for d in tree["deps"]
        ]
        assert [(o.path, o.md5) for o in stage.outs] == [
            (o["path"], o["md5"]) for o in tree["outs"]
        ]
        parts = tree.get("params", {}).values()  # by the file that has them
        assert stage.params == {key: value for part in parts for key, value in part.items()}
        assert stage.command == tree["cmd"]


@pytest.mark.slow
@needs_git
@pytest.mark.skipif(
    not (TOP / "data/tables/pmi/world-planted").is_dir(), reason="the pipeline was not run here"
)
def test_the_rows_behind_a_pmi_are_as_many_as_it_counted(monkeypatch):
    # The table says itself in how many lists a word is, and how many people there are.
    monkeypatch.chdir(TOP)
    found = trace("data/tables/pmi/world-planted/pmi.parquet#12")
    shared = {found.nodes[key].path: parts[0] for key, parts in found.matches.items()}
    lists = shared["data/outputs/associations/world-planted"]
    assert lists.rows == found.row.values["count_all"]
    assert lists.matched == ("model", "pos", "word")
    people = shared["data/datasets/politicians"]
    assert (people.rows, people.matched) == (found.row.values["people"], ("gender",))
    assert people.of == found.row.values["n"]
