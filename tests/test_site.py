"""The site of the docs: staged pages, equations, and the check that finds problems."""

from __future__ import annotations

import sys

import pytest
from documented import TOP

sys.path.insert(0, str(TOP / "docs"))

import build
from site_check import problems


@pytest.fixture
def checkout(tmp_path):
    """Return a checkout with a page of each kind."""
    pages = {
        "README.md": "# Home\n\n[one](docs/guide.md#part) [licence](LICENSE)\n",
        "CONTRIBUTING.md": "# Help\n\n[home](README.md)\n",
        "CHANGELOG.md": "# Changes\n",
        "LICENSE": "free",
        "CITATION.cff": "cite",
        "docs/guide.md": "---\nlicense: x\n---\n\n# Guide\n\n## Part\n\n[home](../README.md)\n",
        "docs/studies/one.md": "# One\n\nwith\n$`a_b`$ so\n- x\n\n```math\n\\frac{1}{2}\n```\n",
        "docs/brandnew/page.md": "# New\n\n```sh\n[not](a-link)\n- $`x`$\n```\n",
    }
    for name, text in pages.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def test_stage_rewrites_links_of_top_pages(checkout, tmp_path):
    build.stage(checkout, tmp_path / "staged")
    read = {p.name: p.read_text() for p in (tmp_path / "staged").iterdir() if p.is_file()}
    assert "[one](guide.md#part) [licence](LICENSE.txt)" in read["index.md"]
    assert read["guide.md"] == "# Guide\n\n## Part\n\n[home](index.md)\n"
    assert "[home](index.md)" in read["contributing.md"]


def test_stage_equations_become_mathml(checkout, tmp_path):
    build.stage(checkout, tmp_path / "staged")
    one = (tmp_path / "staged/studies/one.md").read_text()
    assert "<mfrac><mrow><mn>1</mn></mrow><mrow><mn>2</mn></mrow></mfrac>" in one
    assert 'alttext="a_b"' in one
    assert "$" not in one
    assert " so\n\n- x" in one  # a list needs an empty line before it
    new = (tmp_path / "staged/brandnew/page.md").read_text()
    assert "[not](a-link)\n- $`x`$\n" in new


def test_page_unreadable_formula_is_an_error(checkout):
    page = checkout / "docs/studies/one.md"
    page.write_text("# One\n\n```math\na^b^c\n```\n", encoding="utf-8")
    with pytest.raises(SystemExit, match=r"one\.md"):
        build.page(page, checkout)


SOUND = {
    "index.html": '<a href="a/b.html#here">b</a><link rel="canonical" href="https://x.org">',
    "a/b.html": '<p id="here"><a href="../index.html">back</a><img src="../p.png"></p>',
    "p.png": "",
}
WRONG = [
    ("index.html", '<a href="a/b.html">b</a><a href="gone.html">', "gone.html leads nowhere"),
    ("index.html", '<a href="a/b.html#there">b</a>', "a/b.html#there has no such anchor"),
    ("a/b.html", '<script src="https://x.org/s.js">', "fetches https://x.org/s.js"),
    ("index.html", "<p>home</p>", "a/b.html: no page leads there"),
    ("a/b.html", "<p>one\n- two</p>", "Markdown was not understood"),
]


def site(folder, files):
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return problems(folder, {"index.html", "a/b.html"})


def test_problems_sound_site(tmp_path):
    assert site(tmp_path, SOUND) == []


@pytest.mark.parametrize(
    ("name", "text", "message"), WRONG, ids=[message for _, _, message in WRONG]
)
def test_problems_faults(tmp_path, name, text, message):
    found = site(tmp_path, SOUND | {name: text})
    assert any(message in problem for problem in found), found


def test_stage_and_navigation_have_every_page(tmp_path):
    pages = build.stage(TOP, tmp_path)
    docs = TOP / "docs"
    assert {path.relative_to(docs).as_posix() for path in docs.rglob("*.md")} <= {*pages}
    placed = [
        page
        for entry in build.navigation(pages)
        for page in ([entry] if isinstance(entry, str) else next(iter(entry.values())))
    ]
    assert sorted(placed) == pages
