"""A Hub of one's own on loopback: repositories with commits, tags, files and settings.

It speaks what huggingface_hub and datasets say to the real one, and can be told to fail: every
entry of ``failures`` is [method, part of the path, status or 0, how often, what happens first].
"""

import base64
import hashlib
import json
import re
import threading
import warnings
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import StringIO
from types import SimpleNamespace
from urllib.parse import unquote, urlsplit

import pytest
import yaml
from huggingface_hub import constants

from plumbline.builders.__main__ import main

TOKEN = "hf_" + "t" * 34


@dataclass
class Repo:
    private: bool
    gated: object = False
    commits: list = field(default_factory=list)  # (sha, message, files by path)
    tags: dict = field(default_factory=dict)

    def commit(self, message, files) -> str:
        told = json.dumps([len(self.commits), message, sorted(files.items())])
        sha = hashlib.sha1(told.encode()).hexdigest()
        self.commits.append((sha, message, dict(files)))
        return sha

    def at(self, revision):
        """Return sha and files of a branch, tag or commit."""
        wanted = self.tags.get(revision, revision)
        for sha, _, files in reversed(self.commits):
            if wanted in ("main", sha):
                return sha, files
        return None, None


@dataclass
class Hub:
    repos: dict = field(default_factory=dict)  # by "datasets/org/name"
    blobs: dict = field(default_factory=dict)  # by git's sha1
    asked: list = field(default_factory=list)  # (method, path, status)
    failures: list = field(default_factory=list)
    endpoint: str = ""

    def state(self) -> object:
        """Return all that a reader of the Hub could see."""
        return json.loads(
            json.dumps([[n, r.private, r.gated, r.commits, r.tags] for n, r in self.repos.items()])
        )


def sha1(body: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(body) + body).hexdigest()


@contextmanager
def serving():
    """Yield a :class:`Hub` that is reachable at its ``endpoint``."""
    hub = Hub()

    class Handler(Answers):
        served = hub

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        hub.endpoint = f"http://127.0.0.1:{server.server_port}"
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        try:
            yield hub
        finally:
            server.shutdown()


class Answers(BaseHTTPRequestHandler):
    served: Hub
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments) -> None:
        pass

    def reply(self, status, body=b"", **headers) -> None:
        if not isinstance(body, bytes):
            body = json.dumps(body).encode()
            headers.setdefault("Content_Type", "application/json")
        self.served.asked.append((self.command, self.path, status))
        self.send_response(status)
        for key, value in ({"Content_Length": str(len(body))} | headers).items():
            self.send_header(key.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def answer(self) -> None:
        size = int(self.headers.get("Content-Length") or 0)
        self.body = self.rfile.read(size)
        if self.headers.get("Transfer-Encoding") == "chunked":
            while size := int(self.rfile.readline(), 16):
                self.body += self.rfile.read(size + 2)[:size]
            self.rfile.readline()
        path = unquote(urlsplit(self.path).path)
        for failure in self.served.failures:
            method, part, status, times, before = failure
            if method == self.command and part in path and times:
                failure[3] -= 1
                before()
                if status:
                    return self.reply(status, {"error": "not now"})
        given = self.headers.get("Authorization")
        if given not in (None, f"Bearer {TOKEN}"):
            message = "Invalid credentials in Authorization header"
            return self.reply(401, {"error": message}, X_Error_Message=message)
        self.mine = given is not None
        for pattern, handler in ROUTES:
            match = re.fullmatch(pattern, f"{self.command} {path}")
            if match:
                return handler(self, *match.groups())
        return self.reply(404, {"error": f"no route {path}"})

    do_GET = do_HEAD = do_POST = do_PUT = answer  # noqa: N815

    def repo(self, kind, name):
        """Return a repository that the asker may see, or answer that there is none."""
        repo = self.served.repos.get(f"{kind}/{name}")
        if repo is None or (repo.private and not self.mine):
            self.reply(404 if self.mine else 401, {"error": "x"}, X_Error_Code="RepoNotFound")
            return None
        return repo

    def writable(self, kind, name):
        if not self.mine:
            self.reply(401, {"error": "x"})
            return None
        return self.repo(kind, name)

    def create(self) -> None:
        facts = json.loads(self.body)
        kind, name = f"{facts['type']}s", f"{facts['organization']}/{facts['name']}"
        if not self.mine:
            return self.reply(401, {"error": "x"})
        url = f"{self.served.endpoint}/{'' if kind == 'models' else kind + '/'}{name}"
        if f"{kind}/{name}" in self.served.repos:
            return self.reply(409, {"url": url, "error": "You already created this repo"})
        repo = Repo(private=facts.get("visibility") == "private")
        self.served.blobs[oid := sha1(b"*.parquet lfs")] = b"*.parquet lfs"
        repo.commit("initial commit", {".gitattributes": oid})
        self.served.repos[f"{kind}/{name}"] = repo
        return self.reply(200, {"url": url})

    def settings(self, kind, name) -> None:
        if (repo := self.writable(kind, name)) is None:
            return
        facts = json.loads(self.body)
        repo.gated = facts.get("gated", repo.gated)
        repo.private = {"private": True, "public": False}.get(facts.get("visibility"), repo.private)
        self.reply(200, {})

    def validate(self) -> None:
        pieces = json.loads(self.body)["content"].split("---\n")
        front = yaml.safe_load(pieces[1]) if len(pieces) > 2 else None
        if not isinstance(front, dict) or not isinstance(front.get("license"), str):
            return self.reply(400, {"errors": [{"message": '"license" is required'}]})
        return self.reply(200, {"errors": [], "warnings": []})

    def preupload(self, kind, name, revision) -> None:
        if (repo := self.writable(kind, name)) is None:
            return
        files, wanted = repo.at(revision)[1], json.loads(self.body)["files"]
        facts = {"uploadMode": "regular", "shouldIgnore": False}
        modes = [facts | {"path": f["path"], "oid": files.get(f["path"])} for f in wanted]
        self.reply(200, {"files": modes})

    def commit(self, kind, name, revision) -> None:
        if (repo := self.writable(kind, name)) is None:
            return None
        lines = [json.loads(line) for line in self.body.splitlines()]
        head, files = repo.at(revision)
        files = dict(files)
        if lines[0]["value"].get("parentCommit") not in (None, head):
            return self.reply(412, {"error": "A commit has happened since"})
        for line in lines[1:]:
            value = line["value"]
            if line["key"] == "deletedFile":
                del files[value["path"]]
            else:
                body = base64.b64decode(value["content"])
                files[value["path"]] = sha1(body)
                self.served.blobs[sha1(body)] = body
        sha = repo.commit(lines[0]["value"]["summary"], files)
        url = f"{self.served.endpoint}/{'' if kind == 'models' else kind + '/'}{name}/commit/{sha}"
        return self.reply(200, {"commitUrl": url, "commitOid": sha})

    def tag(self, kind, name, revision) -> None:
        if (repo := self.writable(kind, name)) is None:
            return None
        wanted = json.loads(self.body)["tag"]
        if wanted in repo.tags:
            return self.reply(409, {"error": "exists"})
        repo.tags[wanted] = repo.at(revision)[0]
        return self.reply(200, {})

    def refs(self, kind, name) -> None:
        if (repo := self.repo(kind, name)) is None:
            return
        tags = [
            {"name": tag, "ref": f"refs/tags/{tag}", "targetCommit": sha}
            for tag, sha in repo.tags.items()
        ]
        main = {"name": "main", "ref": "refs/heads/main", "targetCommit": repo.commits[-1][0]}
        self.reply(200, {"tags": tags, "branches": [main], "converts": []})

    def info(self, kind, name, revision=None) -> None:
        if (repo := self.repo(kind, name)) is None:
            return None
        sha, files = repo.at(revision or "main")
        if sha is None:
            return self.reply(404, {"error": "x"}, X_Error_Code="RevisionNotFound")
        facts = {"id": name, "sha": sha, "private": repo.private, "gated": repo.gated}
        facts |= {"siblings": [{"rfilename": path} for path in sorted(files)]}
        return self.reply(200, facts | {"tags": [], "downloads": 0, "likes": 0})

    def entry(self, path, oid) -> dict:
        return {"type": "file", "path": path, "size": len(self.served.blobs[oid]), "oid": oid}

    def tree(self, kind, name, revision, under="") -> None:
        if (repo := self.repo(kind, name)) is None:
            return None
        sha, files = repo.at(revision)
        if sha is None:
            return self.reply(404, {"error": "x"}, X_Error_Code="RevisionNotFound")
        under = (under or "").strip("/")
        found = [
            self.entry(path, oid)
            for path, oid in sorted(files.items())
            if not under or path.startswith(f"{under}/")
        ]
        if under and not found:
            return self.reply(404, {"error": "x"}, X_Error_Code="EntryNotFound")
        return self.reply(200, found)

    def resolve(self, name, revision, path) -> None:
        kind, name = name.split("/", 1) if name.count("/") == 2 else ("models", name)
        if (repo := self.repo(kind, name)) is None:
            return None
        sha, files = repo.at(revision)
        if sha is None or path not in files:
            code = "RevisionNotFound" if sha is None else "EntryNotFound"
            return self.reply(404, {"error": "x"}, X_Error_Code=code)
        body = self.served.blobs[files[path]]
        facts = {"ETag": f'"{files[path]}"', "X_Repo_Commit": sha, "Accept_Ranges": "bytes"}
        wanted = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range") or "")
        if wanted is None:
            return self.reply(200, body, **facts)
        start, end = int(wanted[1]), int(wanted[2] or len(body) - 1)
        facts["Content_Range"] = f"bytes {start}-{min(end, len(body) - 1)}/{len(body)}"
        return self.reply(206, body[start : end + 1], **facts)


API = r"/api/(datasets|models)/([\w.-]+/[\w.-]+)"
ROUTES = (
    ("POST /api/repos/create", Answers.create),
    ("POST /api/validate-yaml", Answers.validate),
    (f"PUT {API}/settings", Answers.settings),
    (rf"POST {API}/preupload/(.+)", Answers.preupload),
    (rf"POST {API}/commit/(.+)", Answers.commit),
    (rf"POST {API}/tag/(.+)", Answers.tag),
    (rf"GET {API}/refs", Answers.refs),
    (rf"GET {API}/tree/([^/]+)(/.*)?", Answers.tree),
    (rf"GET {API}/revision/(.+)", Answers.info),
    (rf"GET {API}", Answers.info),
    (r"(?:GET|HEAD) /(.+)/resolve/([^/]+)/(.+)", Answers.resolve),
)


def command(endpoint, folder, *words, token=TOKEN, offline=False):
    """Run a command here: what the client reads from the environment when it starts is set in it.

    Its cache is of this folder, and of one Hub alone.
    """
    out, err = StringIO(), StringIO()
    with (
        pytest.MonkeyPatch.context() as patch,
        warnings.catch_warnings(action="ignore", category=DeprecationWarning),  # of the client's
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        patch.chdir(folder)
        patch.setenv("HF_ENDPOINT", endpoint)
        files = "/{repo_id}/resolve/{revision}/{filename}"
        for name, value in {
            "ENDPOINT": endpoint,
            "HUGGINGFACE_CO_URL_TEMPLATE": endpoint + files,
            "HF_HUB_OFFLINE": offline,
            "HF_HUB_DISABLE_XET": True,
            "HF_TOKEN_PATH": str(folder / "hf/token"),
            "HF_HUB_CACHE": str(folder / "hf/hub"),
        }.items():
            patch.setattr(constants, name, value)
        patch.setenv("HF_TOKEN", token) if token else patch.delenv("HF_TOKEN", raising=False)
        status = main(list(words))
    return SimpleNamespace(returncode=status, stdout=out.getvalue(), stderr=err.getvalue())
