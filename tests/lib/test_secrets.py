"""Secrets planted wherever a user may put one, then looked for in every byte that a run wrote."""

import base64
import json
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import pytest
import yaml
from lib.hub_server import command
from lib.serving import server
from lib.small_folders import make

from plumbline.builders.__main__ import main
from plumbline.builders.core import masking
from plumbline.builders.core.errors import UserError
from plumbline.builders.core.masking import holds_secret, mask
from plumbline.builders.core.params import parse
from plumbline.builders.core.snapshot import MANIFEST, write_manifest
from plumbline.builders.fetch import http
from plumbline.probes.__main__ import main as probes

PLANTED = {  # by the place
    "HF_TOKEN": "hf_aVeryOwnToken0123456789abcdefgh",
    "SERVER_KEY": "k3y/of+the~server:9876543210",
    "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI7MDENGbPxRfiCY",
    "DB_PASSWORD": "correct-horse9battery",
    "hf/token": "hf_theTokenOfAFile9876543210zyxwvu",
    ".dvc/config.local": "remotePassw0rd-of-dvc",
    "netrc": "netrcs-0wn-password",
}
DAY = "2026-11-21"


@pytest.fixture
def planted(tmp_path, monkeypatch):
    """A project with a secret in every place."""
    monkeypatch.chdir(tmp_path)
    for place, secret in PLANTED.items():
        path, text = tmp_path / place, secret
        if place.isupper():
            monkeypatch.setenv(place, secret)
            continue
        if place == "netrc":
            text = f"machine 127.0.0.1 login me password {secret}\n"
        if place.endswith(".local"):
            text = f"['remote \"mine\"']\n    url = s3://x\n    password = {secret}\n"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    monkeypatch.setenv("HF_TOKEN_PATH", str(tmp_path / "hf/token"))
    for name in ("PLUMBLINE_LOG", "PLUMBLINE_TRACEBACK"):
        monkeypatch.setenv(name, "")  # and back to what it was
    masking._in_file.cache_clear()
    yield tmp_path
    masking._in_file.cache_clear()
    masking.kept.clear()


def forms(secret):
    coded = base64.b64encode(secret.encode()).decode().rstrip("=")
    return {secret, json.dumps(secret)[1:-1], quote(secret, safe=""), coded, secret[4:14]}


def found_in(folder, *shown) -> list[str]:
    """Return where a secret is, whole or in part, but for the places where they were planted."""
    texts = {f"output {n}": text.encode() for n, text in enumerate(shown)}
    texts |= {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.relative_to(folder).as_posix() not in PLANTED
    }
    return [
        f"{place} in {where}"
        for where, body in texts.items()
        for place, secret in PLANTED.items()
        if any(form.encode() in body for form in forms(secret))
    ]


@contextmanager
def echoing(status):
    """Serve what says all that it was sent, and all that it can know, in every way."""
    told = [
        form for secret in PLANTED.values() if secret != PLANTED["netrc"] for form in forms(secret)
    ]
    got = []

    def answer(handler):
        handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
        got.append(str(handler.headers))
        said = " ".join([str(handler.headers).replace("\r\n", " "), handler.path, *told])
        body = json.dumps({"error": said, "message": said}).encode()
        handler.send_response(status)
        handler.send_header("X-Error-Message", said.replace("\n", " "))
        handler.send_header("Location", f"http://127.0.0.1:9/{told[0]}?token={told[0]}")
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    with server(answer) as found:
        yield found.at, got


STATUSES = [200, 302, 400, 401, 403, 404, 422, pytest.param(500, marks=pytest.mark.slow)]
WAYS = [(), ("--log-json", "--traceback")]


@pytest.mark.parametrize("options", WAYS)
@pytest.mark.parametrize("status", STATUSES)
def test_a_hub_that_says_what_it_was_sent_reveals_nothing(planted, status, options):
    make("data/datasets/toys")
    Path("params.yaml").write_text("publish: {contact: me@example.org}", "utf-8")
    with echoing(status) as (address, got):
        words = ("publish", "toys", "--repo", "example/toys", "--version", "1.0.0", *options)
        done = command(address, planted, *words, token=PLANTED["HF_TOKEN"])
    assert done.returncode != 0
    assert any(PLANTED["HF_TOKEN"] in headers for headers in got), "it was sent"
    assert found_in(planted, done.stdout, done.stderr) == []


@pytest.mark.parametrize("options", WAYS)
@pytest.mark.parametrize("status", [200, 302, 404, 503])
def test_a_source_that_says_what_it_was_sent_reveals_nothing(planted, capfd, status, options):
    with echoing(status) as (address, got):
        tree = {
            "politeness": {"contact": "me@example.org", "attempts": 1, "timeout_s": 5},
            "social_groups": {"files": {"en": f"{address}/en.csv"}, "licence": "CC0-1.0"},
        }
        Path("params.yaml").write_text(yaml.safe_dump({"sources": tree}), "utf-8")
        assert main(["fetch", "social_groups", "--date", DAY, *options]) != 0
    assert got
    assert not any("uthorization" in headers for headers in got), "it is nobody's to know"
    assert found_in(planted, *capfd.readouterr()) == []


@pytest.mark.parametrize("options", WAYS)
@pytest.mark.parametrize("status", STATUSES[:-1])
def test_a_model_server_that_says_what_it_was_sent_reveals_nothing(planted, capfd, status, options):
    with echoing(status) as (address, got):
        far = {"url": f"{address}/v1", "model": "far", "key": "SERVER_KEY", "tries": 1}
        Path("params.yaml").write_text(
            yaml.safe_dump({"models": {"far": {"kind": "remote", "endpoint": far}}})
        )
        # 404: a server without a list of models, which is all that is asked here
        assert (probes(["weights", "far", *options]) != 0) is (status != 404)
    assert any(PLANTED["SERVER_KEY"] in headers for headers in got), "it was sent"
    assert found_in(planted, *capfd.readouterr()) == []


ADDRESSES = [
    "https://me:hidden-word@example.org/data.csv",
    "https://hidden-word@example.org/data.csv",
    "https://example.org/data.csv?x=1&token=hidden-word",
    "https://example.org/data.csv?X-Amz-Signature=hidden-word",
    "https://example.org/data.csv?sig=hidden-word&x=1",
    "sftp://me:hidden-word@example.org/data.csv",
    "sk-hidden-word0123456789",
    "hf_hiddenword0123456789abcdef",
]


@pytest.mark.parametrize(
    ("key", "address"),
    [
        *(("address", address) for address in ADDRESSES),
        *((key, ADDRESSES[0]) for key in ("endpoint", "contact", "file")),
    ],
)
def test_params_with_a_secret_are_refused_by_their_key_alone(planted, capfd, address, key):
    tree = {"sources": {"politeness": {"contact": "me@example.org"}, "x": {"a": [{key: address}]}}}
    Path("params.yaml").write_text(yaml.safe_dump(tree), "utf-8")
    assert main(["fetch", "ud", "--date", DAY, "--traceback"]) == 1
    shown = "".join(capfd.readouterr())
    assert f"params.yaml: sources.x.a.0.{key} holds a password, a token or a signature" in shown
    assert "hidden" not in shown
    assert not Path("data").exists()


def test_params_with_a_secret_for_a_key_are_refused_too(planted):
    Path("params.yaml").write_text("a: {b: {'https://me:hidden-word@example.org': 1}}", "utf-8")
    with pytest.raises(UserError, match=r"a key of a\.b holds a password") as told:
        parse(Path("params.yaml"))
    assert "hidden" not in str(told.value)


def test_all_params_of_the_project_hold_no_secret():
    from samples import TOP

    from plumbline.builders.core.params import files

    for path in [*files(TOP / "params.yaml"), *(TOP / "params").glob("*.yaml")]:
        assert parse(path) is not None


@pytest.mark.parametrize(
    ("endpoint", "told"),
    [
        ("http://hub.example", "for anybody on the way to read; use https"),
        ("https://me:hidden-word@hub.example", "holds a password or a token"),
    ],
)
def test_a_token_goes_to_no_hub_in_the_open(planted, endpoint, told):
    make("data/datasets/toys")
    Path("params.yaml").write_text("publish: {contact: me@example.org}", "utf-8")
    for options in (("--dry-run",), ()):
        words = ("publish", "toys", "--repo", "example/toys", "--version", "1.0.0", *options)
        done = command(endpoint, planted, *words, token=PLANTED["HF_TOKEN"])
        assert (done.returncode, done.stdout) == (1, "")
        assert told in done.stderr
        assert "hidden-word" not in done.stderr


def test_neither_do_models_ask_such_a_hub(planted, monkeypatch):
    from plumbline.probes.models.preflight import admitted

    monkeypatch.setenv("HF_ENDPOINT", "http://hub.example")
    with pytest.raises(UserError, match="use https"), admitted("a/b"):
        raise AssertionError


def test_a_manifest_holds_no_secret(planted):
    folder = Path("snapshot")
    folder.mkdir()
    (folder / "x").write_text("x", "utf-8")
    address = f"https://me:{PLANTED['DB_PASSWORD']}@example.org/{PLANTED['HF_TOKEN']}"
    facts = dict.fromkeys(("source", "retrieved", "licence", "citation"), "x")
    write_manifest(folder, facts | {"address": address, "request": {"a": address}, "counts": {}})
    assert found_in(planted) == []
    kept = json.loads((folder / MANIFEST).read_text("utf-8"))
    assert kept["address"] == "https://[secret]@example.org/[secret]"


def test_the_password_of_a_netrc_is_for_nobody_here(planted):
    policy = http.Politeness(contact="me@example.org", attempts=1, timeout_s=5)
    with echoing(200) as (address, got):
        http.receive(f"{address}/x", policy)
    assert "uthorization" not in got[0]


@pytest.mark.parametrize(
    "text",
    [
        "en: 1,234 rows, 5 rejected (no label); https://example.org/a?x=1#b",
        "see the token in HF_TOKEN, a key of the row, the password is yours",
        "me@example.org and https://example.org/@name",
        "sha256 " + "3b1f5c0d9a7e2846" * 4,
        "basic understanding; the bearer of news",
    ],
)
def test_what_is_no_secret_stays(planted, text):
    assert mask(text) == text
    assert not holds_secret(text)


def test_paths_in_variables_named_for_secrets_are_none(monkeypatch):
    monkeypatch.setenv("SSH_AUTH_SOCK", "/tmp/ssh-1234567890/agent")
    monkeypatch.setenv("GIT_AUTHOR_NAME", "somebody-long-enough1")
    assert mask("/tmp/ssh-1234567890/agent somebody-long-enough1") == (
        "/tmp/ssh-1234567890/agent somebody-long-enough1"
    )
