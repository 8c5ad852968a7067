"""Secrets that the program reads are in no message and no file; params may hold none."""

import json
from pathlib import Path

import pytest
import yaml
from lib.hub_server import command
from lib.serving import server
from lib.small_folders import make

from plumbline.builders.__main__ import main
from plumbline.builders.core import errors
from plumbline.builders.core.snapshot import MANIFEST, write_manifest

TOKEN = "hf_aVeryOwnToken0123456789abcdefgh"
DAY = "2026-11-21"


@pytest.fixture(autouse=True)
def project(tmp_path, monkeypatch):
    """An empty project, and passwords for this machine in ~/.netrc."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login me password netrcs-0wn-password\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    monkeypatch.setattr(errors, "secrets", set())
    monkeypatch.setenv("PLUMBLINE_TRACEBACK", "")  # and back to what it was
    return tmp_path


def test_publish_to_a_hub_that_echoes_the_token(project):
    def echo(handler):
        handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
        text = " ".join(str(handler.headers).split())
        body = json.dumps({"error": text, "message": text}).encode()
        handler.send_response(401)
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


@pytest.mark.parametrize(
    "address",
    [
        "https://me:hidden-word@example.org/data.csv",
        "https://example.org/data.csv?x=1&token=hidden-word",
        "https://example.org/data.csv?X-Amz-Signature=hidden-word",
        "sk-hidden-word0123456789",
    ],
)
def test_params_with_a_secret_are_refused_without_showing_it(capfd, address):
    sources = {"politeness": {"contact": "me@example.org"}, "x": {"a": [{"key": address}]}}
    Path("params.yaml").write_text(yaml.safe_dump({"sources": sources}), "utf-8")
    assert main(["fetch", "ud", "--date", DAY, "--traceback"]) == 1
    shown = "".join(capfd.readouterr())
    assert "params.yaml, line 6" in shown
    assert "hidden" not in shown
    assert not Path("data").exists()


@pytest.mark.parametrize(
    "text",
    [
        "en: 1,234 rows, 5 rejected (no label); https://example.org/a?x=1#b",
        "see the token in HF_TOKEN, a key of the row, the password is yours",
        "sha256 " + "3b1f5c0d9a7e2846" * 4,
    ],
)
def test_secret_is_not_in_other_text(text):
    assert not errors.SECRET.search(text)


def test_write_manifest_masks_secrets():
    folder = Path("snapshot")
    folder.mkdir()
    (folder / "x").write_text("x", "utf-8")
    errors.keep(TOKEN)
    address = f"https://example.org/{TOKEN}"
    facts = dict.fromkeys(("source", "retrieved", "licence", "citation"), "x")
    write_manifest(folder, facts | {"address": address, "request": {"a": address}, "counts": {}})
    manifest = json.loads((folder / MANIFEST).read_text("utf-8"))
    assert manifest["address"] == "https://example.org/[secret]"
    assert TOKEN not in str(manifest)
