"""A server that answers as the engines do, each in its format, with suggestions made up here.

``/google`` is client=firefox, ``/chrome`` client=chrome, ``/yahoo``, ``/duckduckgo`` and ``/list``
(DuckDuckGo's type=list). What it suggests stands in ``data/samples/facts/suggestions.csv``.
"""

from __future__ import annotations

import csv
import http.server
import json
import threading
import urllib.parse
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

TOP = Path(__file__).parent.parent
FACTS = TOP / "data" / "samples" / "facts" / "suggestions.csv"
TEMPLATES = {
    "people": [
        "why are {group} so",
        "what makes {group} so",
        "how come {group} are so",
        "why are {group} always so",
        "why are all {group} so",
    ],
    "country": [
        "why is {group} so",
        "what makes {group} so",
        "how come {group} is so",
        "why is {group} always so",
        "why are all people in {group} so",
    ],
}
QUIET = {"yahoo": (3,), "duckduckgo": (2, 4), "google": ()}  # templates without suggestions


class Entry(NamedTuple):
    category: str
    group: str
    name: str
    kind: str
    attributes: str
    earlier: str
    dirty: str


def entries() -> list[Entry]:
    with FACTS.open(encoding="utf-8", newline="") as file:
        return [Entry(**row) for row in csv.DictReader(file)]


def groups_file() -> bytes:
    """Return the groups that the server knows, as a list for the client."""
    lines = ["category,group,name,kind", *(",".join(entry[:4]) for entry in entries())]
    return ("\n".join(lines) + "\n").encode()


def suggestions(*, later: bool) -> dict[tuple[str, str], list[str]]:
    """Return what each engine suggests for each query in one of two waves."""
    found = {}
    for place, entry in enumerate(entries()):
        words = (entry.attributes if later else entry.earlier).split()
        if not later:  # other orders and fewer words, so that ranks move and numbers differ
            words = words[::-1] if place % 3 == 0 else words[: -1 if place % 4 == 1 else None]
        for number, template in enumerate(TEMPLATES[entry.kind]):
            query = template.replace("{group}", entry.group).lower()
            turned = words[number % len(words) :] + words[: number % len(words)]
            takes = {
                "google": turned if number < 3 else turned[:3],
                "yahoo": turned[::-1][: 4 if number == 0 else 2],
                "duckduckgo": [w for i, w in enumerate(turned) if i % 3 != 1],
            }
            for engine, taken in takes.items():
                ends = [] if number in QUIET[engine] else taken
                texts = [f"{query} {end}" for end in ends]
                if number == 0:
                    texts += [f"{query} {end}" for end in entry.dirty.split(";")]
                    if engine == "google":
                        texts[0] = texts[0].capitalize() + "?"
                        texts.append(f"{query} {words[0]}")
                    if engine == "duckduckgo":
                        texts.insert(1, f"facts about {entry.group}".lower())
                    if engine == "yahoo" and place % 7 == 0:
                        texts.append(query)
                if number == 1 and engine == "google" and place % 5 == 0:
                    texts.insert(0, query.replace(" so", " such").strip())
                found[engine, query] = texts
    return found


def body(path: str, query: str, texts: list[str]) -> bytes:
    """Return an answer in the format of an engine."""
    if path == "/yahoo":
        tree = {"gossip": {"qry": query, "results": [{"key": text} for text in texts]}}
    elif path == "/duckduckgo":
        tree = [{"phrase": text} for text in texts]
    elif path == "/chrome":
        about = {
            "google:suggestrelevance": list(range(900, 900 - len(texts), -1)),
            "google:suggesttype": ["QUERY"] * len(texts),
            "google:clientdata": {"bpc": False},
        }
        return b")]}'\n" + json.dumps([query, texts, [""] * len(texts), [], about]).encode()
    elif path == "/google":
        tree = [query, texts, [], {"google:suggestsubtypes": [[512]] * len(texts)}]
    else:
        tree = [query, texts]
    return json.dumps(tree, ensure_ascii=False).encode()


@contextmanager
def suggesting(known: dict[tuple[str, str], list[str]]):
    """Run the server."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urllib.parse.urlsplit(self.path)
            query = urllib.parse.parse_qs(parts.query)["q"][0]
            engine = {"/chrome": "google", "/list": "duckduckgo"}.get(parts.path, parts.path[1:])
            said = body(parts.path, query, known.get((engine, query), []))
            self.send_response(200)
            self.send_header("Content-Type", "application/json; charset=utf-8")
            self.send_header("Content-Length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)

        def log_message(self, *arguments) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        loop = threading.Thread(target=server.serve_forever, args=(0.02,))
        loop.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            loop.join()


def published_file() -> bytes:
    """Return suggestions in the authors' format, of which some are of more than one word."""
    head = ["input", "target_category", "target_group", "completion", "search_engine"]
    lines = ["\t".join(head)]
    for place, entry in enumerate(entries()):
        if entry.category == "sexuality":  # the authors published none
            continue
        query = TEMPLATES[entry.kind][0].replace("{group}", entry.group).lower()
        ends = [*entry.earlier.split()[:2], entry.dirty.split(";")[0]]
        for number, end in enumerate(ends):
            engine = ("multiple", "google", "yahoo", "duckduckgo")[(place + number) % 4]
            row = [f"{query}\n", entry.category, f"{entry.group.lower()}\n", f"{end}\n", engine]
            cells = [f'"{cell}"' if "\n" in cell else cell for cell in row]
            lines.append("\t".join(cells))
    return ("\n".join(lines) + "\n").encode()
