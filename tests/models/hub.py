"""A model hub on loopback: the little of the Hub's HTTP interface that downloading a pin needs."""

from __future__ import annotations

import hashlib
import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

REVISION = "0123456789abcdef0123456789abcdef01234567"


def refusal(path: str, closed: dict[str, str]):
    """Return status and headers by which the Hub refuses a request, or None where it answers."""
    for name, how in closed.items():
        if not path.startswith((f"/api/models/{name}/", f"/{name}/")):
            continue
        if how == "private":
            return 401, {"X_Error_Code": "RepoNotFound"}
        if "/resolve/" in path:  # of a gated model its page and the list of its files show
            return (403, {}) if how == "forbidden" else (401, {"X_Error_Code": "GatedRepo"})
    return None


@contextmanager
def hub(models: dict[str, Path], closed: dict[str, str] | None = None):  # noqa: C901
    """Serve folders as models at one revision; yield the endpoint and the requests so far.

    Those that are ``closed`` are gated, private or forbidden to the token of the requests.
    """
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *arguments) -> None:
            pass

        def reply(self, status: int, body: bytes, **headers: str) -> None:
            self.send_response(status)
            for key, value in headers.items():
                self.send_header(key.replace("_", "-"), value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def do_GET(self) -> None:
            asked.append(self.path)
            path = self.path.split("?")[0]
            if refused := refusal(path, closed or {}):
                status, headers = refused
                return self.reply(status, b"{}", **headers)
            for name, folder in models.items():
                files = sorted(p for p in folder.iterdir() if p.is_file())
                if path in (f"/api/models/{name}/revision/{at}" for at in (REVISION, "main")):
                    names = [{"rfilename": p.name} for p in files]
                    facts = {"id": name, "sha": REVISION, "siblings": names, "private": False}
                    facts |= {"tags": [], "downloads": 0, "likes": 0}
                    return self.reply(200, json.dumps(facts).encode())
                if path.startswith(f"/api/models/{name}/tree/{REVISION}"):
                    tree = [
                        {"type": "file", "path": p.name, "size": p.stat().st_size} for p in files
                    ]
                    for entry, file in zip(tree, files, strict=True):
                        entry["oid"] = hashlib.sha1(file.read_bytes()).hexdigest()
                    return self.reply(200, json.dumps(tree).encode())
                for file in files:
                    if path == f"/{name}/resolve/{REVISION}/{file.name}":
                        body = file.read_bytes()
                        tag = f'"{hashlib.sha256(body).hexdigest()}"'
                        return self.reply(200, body, ETag=tag, X_Repo_Commit=REVISION)
            return self.reply(404, b"{}", X_Error_Code="RevisionNotFound")

        do_HEAD = do_GET  # noqa: N815

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", asked
        finally:
            server.shutdown()
