"""Publishing a dataset to a Hub on loopback through the real client, and loading it again."""

import os
import shutil
import subprocess
import sys

import pytest
from imports import TOP
from lib.hub_server import TOKEN, command, serving
from lib.small_folders import checkpoint, make

REPO = "example/words"
OURS = "publish: {contact: me@example.org}"


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """A project of two small datasets: only the first keeps its repository private."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "params.yaml").write_text(OURS, "utf-8")
    make("data/datasets/toys", front={"license": "other"})
    make("data/datasets/free")
    return tmp_path


@pytest.fixture
def hub():
    with serving() as served:
        yield served


def run(folder, hub, *words, token=TOKEN):
    environment = {k: v for k, v in os.environ.items() if k != "HF_TOKEN"} | {
        "PYTHONPATH": str(TOP),
        "HF_HOME": str(folder / "hf"),
        "HF_ENDPOINT": hub.endpoint,
        "HF_HUB_OFFLINE": "0",
        "HF_HUB_DISABLE_XET": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
    }
    return subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env=environment | ({"HF_TOKEN": token} if token else {}),
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def publish(folder, hub, *words, what="toys", version="1.2.0", token=TOKEN):
    at = ("--repo", REPO, "--version", version)
    return command(hub.endpoint, folder, "publish", what, *at, *words, token=token)


LOAD = """
import sys
from datasets import load_dataset
stream = list(load_dataset("example/words", "en", revision="1.2.0", split="train", streaming=True))
whole = load_dataset("example/words", "en", revision="1.2.0", split="train")
here = load_dataset("data/datasets/words", "en", split="train", cache_dir="other-cache")
assert list(whole) == stream == list(here) and whole.features == here.features
print(len(whole))
"""


@pytest.mark.slow
def test_publish_dataset_loads_by_name_and_version(built, tmp_path, hub):
    mine = tmp_path / "project"
    shutil.copytree(built, mine)
    done = publish(mine, hub, what="words")
    assert done.returncode == 0, done.stderr
    repo = hub.repos[f"datasets/{REPO}"]
    assert [message for _, message, _ in repo.commits] == ["initial commit", "Version 1.2.0"]
    sha, _, files = repo.commits[-1]
    assert repo.tags == {"1.2.0": sha}
    folder = mine / "data/datasets/words"
    cards = mine / "data/cards/words"
    assert run(mine, hub, "-m", "plumbline.builders", "cards", "words").returncode == 0
    made = {path.name: path for path in [*folder.iterdir(), *cards.iterdir()]}
    assert sorted(files) == [".gitattributes", *sorted(made)]
    for name, path in made.items():
        if name not in {"README.md", "croissant.json"}:  # these name the repository
            assert hub.blobs[files[name]] == path.read_bytes()
    shown = hub.blobs[files["README.md"]].decode()
    here = (cards / "README.md").read_text("utf-8")
    assert shown == here.replace('load_dataset("data/datasets/words"', f'load_dataset("{REPO}"')
    assert repo.private  # the card's licence is `other`
    assert repo.gated is False
    assert TOKEN not in done.stdout + done.stderr
    done = run(mine, hub, "-c", LOAD)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 10


def test_publish_dry_run_prints_plan_and_sends_nothing(mine, hub):
    assert publish(mine, hub, version="1.1.0").returncode == 0
    page = mine / "docs/datasets/toys.md"
    page.write_text(page.read_text("utf-8").replace("Told by hand", "Written anew"), "utf-8")
    hub.repos[f"datasets/{REPO}"].commits[-1][2]["old.parquet"] = min(hub.blobs)
    before = hub.state()
    asked = len(hub.asked)
    (mine / "private").mkdir()
    (mine / "private/removed.txt").write_text("Q760", "utf-8")  # no dataset has it
    done = publish(mine, hub, "--dry-run")
    assert done.returncode == 0, done.stderr
    assert "Q760" in done.stderr
    assert hub.state() == before
    posted = {path for method, path, _ in hub.asked[asked:] if method not in {"GET", "HEAD"}}
    assert posted == {"/api/validate-yaml"}  # which stores nothing
    lines = [line.split() for line in done.stdout.splitlines()]
    for name in ("build.json", "en.parquet"):
        size = (mine / "data/datasets/toys" / name).stat().st_size
        assert [f"{size:,}", name] in lines
    assert ["removed", "old.parquet"] in lines
    assert ["-Told", "by", "hand."] in lines
    assert ["+Written", "anew."] in lines
    assert "private: yes; gated: no" in done.stdout


def test_publish_next_version_removes_files_and_keeps_tags(mine, hub):
    assert publish(mine, hub, version="1.1.0").returncode == 0
    repo = hub.repos[f"datasets/{REPO}"]
    first = dict(repo.commits[-1][2])
    repo.commits[-1][2]["old.parquet"] = min(hub.blobs)
    assert publish(mine, hub).returncode == 0
    assert set(repo.commits[-1][2]) == set(first)
    assert "old.parquet" in repo.at("1.1.0")[1]
    assert repo.at("1.2.0")[0] == repo.commits[-1][0]
    before = hub.state()
    done = publish(mine, hub)
    assert (done.returncode, "1.2.0" in done.stderr) == (1, True), "it is published"
    assert hub.state() == before


def test_publish_sets_access_first_and_never_widens_it(mine, hub):
    assert publish(mine, hub, what="free", version="1.0.0").returncode == 0
    repo = hub.repos[f"datasets/{REPO}"]
    assert (repo.private, repo.gated) == (False, False)  # CC0
    called = [path.rsplit("/")[-2 if "/commit/" in path else -1] for _, path, _ in hub.asked]
    assert called.index("settings") < called.index("commit")
    page = mine / "docs/datasets/free.md"
    text = page.read_text("utf-8").replace("license:", "extra_gated_prompt: Why?\nlicense:", 1)
    page.write_text(text, "utf-8")
    assert publish(mine, hub, what="free", version="1.0.1").returncode == 0
    assert (repo.private, repo.gated) == (False, "auto")
    repo.private, repo.gated = True, "manual"  # as its owner may wish
    publish(mine, hub, what="free", version="1.0.2")
    assert (repo.private, repo.gated) == (True, "manual")


def test_publish_wrong_token_changes_nothing_and_is_not_printed(mine, hub):
    wrong = "hf_" + "w" * 34
    done = publish(mine, hub, token=wrong)
    assert (done.returncode, "401" in done.stderr) == (1, True)
    assert wrong not in done.stdout + done.stderr
    assert not hub.repos


def test_publish_without_token_sends_no_request(mine, hub):
    (mine / "hf").mkdir()
    (mine / "hf/token").write_text(TOKEN, "utf-8")  # as `hf auth login` leaves one
    done = publish(mine, hub, token=None)
    assert (done.returncode, "HF_TOKEN" in done.stderr) == (1, True)
    assert not hub.asked


def test_publish_does_not_overwrite_a_concurrent_commit(mine, hub):
    assert publish(mine, hub, version="1.1.0").returncode == 0
    repo = hub.repos[f"datasets/{REPO}"]

    def other():
        repo.commit("theirs", repo.commits[-1][2] | {"theirs.parquet": min(hub.blobs)})

    hub.failures.append(["POST", "/commit/", 0, 1, other])
    page = mine / "docs/datasets/toys.md"
    page.write_text(page.read_text("utf-8") + "\nMore.\n", "utf-8")
    done = publish(mine, hub)
    assert (done.returncode, "412" in done.stderr) == (1, True)
    assert repo.commits[-1][1] == "theirs"
    assert set(repo.tags) == {"1.1.0"}
    assert publish(mine, hub).returncode == 0
    assert "theirs.parquet" not in repo.at("1.2.0")[1]


def test_publish_when_the_tag_is_made_by_another(mine, hub):
    """The commit is there, so the error names it; only the tag belongs to somebody else."""

    def other():
        repo = hub.repos[f"datasets/{REPO}"]
        repo.tags["1.2.0"] = repo.commits[0][0]

    hub.failures.append(["POST", "/tag/", 0, 1, other])
    done = publish(mine, hub)
    repo = hub.repos[f"datasets/{REPO}"]
    sha, message, _ = repo.commits[-1]
    assert (message, repo.tags["1.2.0"]) == ("Version 1.2.0", repo.commits[0][0])
    assert done.returncode == 1
    assert -1 < done.stderr.find(sha) < done.stderr.find("409")  # not only in the address


@pytest.mark.parametrize("part", ["/commit/", "/tag/"])
def test_publish_again_completes_an_interrupted_upload(mine, hub, part):
    hub.failures.append(["POST", part, 501, 1, lambda: None])  # the client itself tries 500 again
    done = publish(mine, hub)
    assert (done.returncode, "501" in done.stderr) == (1, True)
    repo = hub.repos[f"datasets/{REPO}"]
    assert not repo.tags
    assert repo.private
    done = publish(mine, hub)
    assert done.returncode == 0, done.stderr
    assert [message for _, message, _ in repo.commits] == ["initial commit", "Version 1.2.0"]
    assert repo.tags == {"1.2.0": repo.commits[-1][0]}


def test_publish_checkpoint_is_a_private_gated_model(hub, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "params.yaml").write_text(
        OURS.replace("}", ", acknowledged: [pretrained/tiny]}"), "utf-8"
    )
    done = publish(tmp_path, hub, what=str(checkpoint()))
    assert done.returncode == 0, done.stderr
    repo = hub.repos[f"models/{REPO}"]
    assert (repo.private, repo.gated) == (True, "manual")
    files = repo.at("1.2.0")[1]
    assert sorted(files) == [".gitattributes", "README.md", "model.safetensors"]
    assert hub.blobs[files["model.safetensors"]] == b"weights"


def test_publish_dry_run_works_without_a_hub(mine, hub):
    hub.endpoint = "http://127.0.0.1:9"
    done = publish(mine, hub, "--dry-run", token=None)
    assert done.returncode == 0, done.stderr
    assert any(line.split()[1:] == ["en.parquet"] for line in done.stdout.splitlines())
    assert publish(mine, hub).returncode == 1
