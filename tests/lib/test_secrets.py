"""Secrets that the program reads stand in no message and no file; params may hold none."""

import json
from pathlib import Path

import pytest
import yaml
from lib.hub_server import command
from lib.serving import server
from lib.small_folders import make

from plumbline.builders.__main__ import main
from plumbline.builders.core import errors
from plumbline.builders.core.errors import holds_secret
from plumbline.builders.core.snapshot import MANIFEST, write_manifest

TOKEN = "hf_aVeryOwnToken0123456789abcdefgh"
DAY = "2026-11-21"


@pytest.fixture
def project(tmp_path, monkeypatch):
    """An empty project, and passwords for this machine in ~/.netrc."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login me password netrcs-0wn-password\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    monkeypatch.setattr(errors, "kept", set())
    monkeypatch.setenv("PLUMBLINE_TRACEBACK", "")  # and back to what it was
    return tmp_path


@pytest.mark.parametrize(
    "status",
    [
        401,
    ],
)
def test_a_hub_that_echoes_the_token_reveals_nothing(project, status):
    def echo(handler):
        handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
        text = " ".join(str(handler.headers).split())
        body = json.dumps({"error": text, "message": text}).encode()
        handler.send_response(status)
        handler.send_header("X-Error-Message", text)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    make("data/datasets/toys")
    Path("params.yaml").write_text("publish: {contact: me@example.org}", "utf-8")
    with server(echo) as at:
        words = ("publish", "toys", "--repo", "example/toys", "--version", "1.0.0", "--traceback")
        done = command(at.at, project, *words, token=TOKEN)
    assert done.returncode != 0
    assert any(TOKEN in str(handler.headers) for handler in at.asked), "it was sent"
    files = [path.read_bytes() for path in project.rglob("*") if path.is_file()]
    assert TOKEN not in done.stdout + done.stderr
    assert not any(TOKEN.encode() in body for body in files)


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
def test_params_with_a_secret_are_refused_by_their_key_alone(project, capfd, address, key):
    tree = {"sources": {"politeness": {"contact": "me@example.org"}, "x": {"a": [{key: address}]}}}
    Path("params.yaml").write_text(yaml.safe_dump(tree), "utf-8")
    assert main(["fetch", "ud", "--date", DAY, "--traceback"]) == 1
    shown = "".join(capfd.readouterr())
    assert f"params.yaml: sources.x.a.0.{key} holds a password, a token or a signature" in shown
    assert "hidden" not in shown
    assert not Path("data").exists()


def test_a_manifest_holds_no_secret(project):
    folder = Path("snapshot")
    folder.mkdir()
    (folder / "x").write_text("x", "utf-8")
    errors.keep(TOKEN)
    address = f"https://example.org/{TOKEN}"
    facts = dict.fromkeys(("source", "retrieved", "licence", "citation"), "x")
    write_manifest(folder, facts | {"address": address, "request": {"a": address}, "counts": {}})
    kept = json.loads((folder / MANIFEST).read_text("utf-8"))
    assert kept["address"] == "https://example.org/[secret]"
    assert TOKEN not in str(kept)


@pytest.mark.parametrize(
    "text",
    [
        "en: 1,234 rows, 5 rejected (no label); https://example.org/a?x=1#b",
        "see the token in HF_TOKEN, a key of the row, the password is yours",
        "sha256 " + "3b1f5c0d9a7e2846" * 4,
    ],
)
def test_what_is_no_secret_may_stand_in_params(text):
    assert not holds_secret(text)
