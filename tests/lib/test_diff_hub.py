"""Comparing versions on a Hub on loopback, through the real client."""

import json

import pytest
from lib.hub_server import TOKEN, Repo, command, serving, sha1
from lib.made_versions import MADE, word, write


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """A Hub with two tags of one dataset, which only its owner may read."""
    monkeypatch.chdir(tmp_path)
    with serving() as served:
        repo = served.repos["datasets/example/lexica"] = Repo(private=True)
        for version, some in (("1.0.0", ["calm"]), ("1.1.0", ["calm", "shy"])):
            folder = write("made-here", MADE["lexica"], {"en": [word(w) for w in some]})
            files = {}
            for path in sorted(folder.iterdir()):
                files[path.name] = sha1(path.read_bytes())
                served.blobs[files[path.name]] = path.read_bytes()
            repo.tags[version] = repo.commit(f"Version {version}", files)
        yield served


@pytest.fixture
def asked(hub, tmp_path):
    """Return what compares, with that Hub."""

    def compared(*words, endpoint="", **how):
        return command(endpoint or hub.endpoint, tmp_path, "diff", *words, **how)

    return compared


TAGS = ("example/lexica@1.0.0", "example/lexica@1.1.0")


def test_diff_two_tags_and_a_folder(hub, asked):
    done = asked("lexica", *TAGS, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    tree = json.loads(done.stdout)
    assert [r["word"] for r in tree["configs"]["en"]["rows_added"]] == ["shy"]
    shas = [sha for sha, _, _ in hub.repos["datasets/example/lexica"].commits]
    assert [tree[when]["described"].rsplit(" ")[-1] for when in ("before", "after")] == [
        sha[:10] for sha in shas
    ]
    done = asked("lexica", TAGS[0], "./made-here", "--exit-code")
    assert done.returncode == 1
    assert "en: 1 -> 2 rows: 1 added, 0 removed, 0 changed" in done.stdout
    assert asked("lexica", TAGS[1], "./made-here", "--exit-code").returncode == 0


def test_diff_of_fetched_versions_needs_no_network(asked):
    assert asked("lexica", *TAGS).returncode == 0
    for without in ({"endpoint": "http://127.0.0.1:9"}, {"offline": True}):
        done = asked("lexica", *TAGS, **without)
        assert done.returncode == 0, done.stderr
        assert "rows added: 1" in done.stdout


@pytest.mark.parametrize(
    ("words", "how", "value"),
    [
        ((TAGS[0], "example/lexica@9.9.9"), {}, "example/lexica@9.9.9"),
        (TAGS, {"token": None}, "example/lexica"),
    ],
)
def test_diff_refused_by_the_hub_is_one_sentence(asked, words, how, value):
    done = asked("lexica", *words, **how)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1), done.stderr
    assert value in done.stderr
    assert (how.get("token") or TOKEN) not in done.stderr
