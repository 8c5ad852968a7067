"""The demonstration, as `make demo` runs it, with an additional model."""

from __future__ import annotations

import re
import time
from html.parser import HTMLParser
from pathlib import Path

import pytest
from imports import TOP

from plumbline import page as pages

from .conftest import command

MINUTES = 3


class Page(HTMLParser):
    """The text and pictures of a page, and the resources it would load."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.text, self.loads, self.pictures = "", [], 0
        self.feed(path.read_text("utf-8"))
        self.text = " ".join(self.text.split())

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_starttag(self, tag: str, attrs) -> None:
        self.pictures += tag == "svg"
        self.loads += [v for k, v in attrs if k in ("src", "href") and (v or "").startswith("http")]


def shares(text: str) -> list[tuple[int, int]]:
    """Return the numbers of significant and of tested words for both models."""
    said = re.search(r"In the first model (\d+) of (\d+) .* in the second (\d+) of (\d+)\.", text)
    numbers = [int(n) for n in said.groups()]
    return [(numbers[0], numbers[1]), (numbers[2], numbers[3])]


@pytest.mark.slow
def test_demo_writes_a_page_without_a_network(mine, elsewhere):
    begun = time.monotonic()
    done = command("demo", HF_ENDPOINT="http://127.0.0.1:9", HF_HUB_OFFLINE="0")
    assert done.returncode == 0, done.stderr
    assert time.monotonic() - begun < MINUTES * 60
    assert done.stdout.splitlines()[-1] == "open in a browser: plumbline-demo/index.html"
    assert [path.name for path in elsewhere.iterdir()] == ["plumbline-demo"]
    page = Page(elsewhere / "plumbline-demo" / "index.html")
    (found, tested), (false, among) = shares(page.text)
    assert found > tested / 2
    assert false <= 0.05 * among
    assert "Not run: albert/albert-base-v2" in page.text
    assert "193 politicians: 88 women, 99 men and 6 non-binary" in page.text
    facts = (TOP / "data/samples/facts/people.ttl").read_text("utf-8")
    assert [facts.count(f"wdt:P21 wd:{gender}") for gender in ("Q6581072", "Q6581097")] == [88, 99]
    assert page.pictures == 1 + 6  # one of all results, and one for each study and control
    assert page.loads == []

    path, public = pages.write_demo(Path("plumbline-demo"), str(mine), ("politicians",))
    page = Page(path)
    assert public.startswith("my-bert: ")
    assert public in page.text
    assert shares(page.text) == [(found, tested), (false, among)]
