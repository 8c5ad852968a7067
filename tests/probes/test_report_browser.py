"""The report in Chromium, in the widths of a phone and of a desktop, used by keyboard."""

import os
from pathlib import Path

import pytest
from browser import Browser, chromium

TOP = Path(__file__).parents[2]
PAGES = ("index", "politicians", "stereotypes", "values", "nationality", "leaning", "reliability")
PAGES += ("datasets",)
WIDTHS = (360, 1440)
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def browser():
    program = chromium()
    if program is None:
        said = "no Chromium here: apt-get install chromium, or put one on the PATH"
        assert os.environ.get("CI") != "true", said
        pytest.skip(said)
    opened = Browser(program)
    yield opened
    opened.close()


@pytest.fixture(scope="module", params=["a small run", "the checkout's"])
def site(request):
    """Return the folders of the site of a small run and of the site that `make repro` wrote."""
    if request.param == "a small run":
        return request.getfixturevalue("finished") / "data/report"
    folder = TOP / "data/report"
    if not (folder / "politicians.html").is_file():
        said = f"{folder}: no report; run `make repro STAGE=report`"
        assert os.environ.get("CI") != "true", said
        pytest.skip(said)
    return folder


OFTEN = """
const see = (e) => e.checkVisibility({contentVisibilityAuto: true, visibilityProperty: true});
const said = (e) => `${e.tagName}.${e.getAttribute("class")} ${e.textContent.trim().slice(0, 40)}`;
const all = (css) => [...document.querySelectorAll(css)];
"""
OUTSIDE = """(() => { %s
  const out = all("body *").filter((e) => see(e) && !e.closest(".wide") && !e.closest(".skip"));
  return [document.documentElement.scrollWidth,
    out.filter((e) => e.getBoundingClientRect().right > innerWidth + 0.5).map(said)];
})()"""
SENSE = """(() => { %s
  const wrong = [], levels = all("h1,h2,h3,h4,h5,h6").map((e) => Number(e.tagName[1]));
  if (levels[0] !== 1 || levels.filter((n) => n === 1).length !== 1) wrong.push("one h1, first");
  levels.forEach((n, i) => {
    if (i && n > levels[i - 1] + 1) wrong.push(`h${levels[i - 1]}, h${n}`);
  });
  for (const e of all("h1,h2,h3,h4,summary,a,button,th[scope=col],caption,title"))
    if (!e.textContent.trim()) wrong.push(`no words: ${e.outerHTML.slice(0, 80)}`);
  for (const e of all("svg"))
    if (e.getAttribute("role") !== "img" || (e.getAttribute("aria-label") || "").length < 20)
      wrong.push("a figure that does not say what it shows");
  for (const e of all("img")) if (!e.alt) wrong.push("an image without alt");
  for (const e of all("table")) {
    if (!e.caption) wrong.push("a table without caption");
    for (const th of e.querySelectorAll("th"))
      if (!["col", "row"].includes(th.scope)) wrong.push("scope");
    const width = e.tHead.rows[0].cells.length;
    for (const row of e.rows) if (row.cells.length !== width) wrong.push(`ragged: ${said(row)}`);
  }
  const ids = all("[id]").map((e) => e.id);
  if (new Set(ids).size !== ids.length) wrong.push("ids that are there twice");
  for (const name of ["aria-labelledby", "aria-describedby", "aria-controls"])
    for (const e of all(`[${name}]`))
      if (!document.getElementById(e.getAttribute(name))) wrong.push(`${name} leads nowhere`);
  for (const css of ["main", "body > header", "html[lang]"])
    if (all(css).length !== 1) wrong.push(`${css}: not one`);
  const navs = all("nav").map((e) => e.getAttribute("aria-label"));
  if (navs.includes(null) || new Set(navs).size !== navs.length) wrong.push("names of navigations");
  for (const e of all("body > *"))
    if (!["HEADER", "MAIN", "FOOTER", "SCRIPT"].includes(e.tagName) && !e.matches("a.skip"))
      wrong.push(`outside of all landmarks: ${said(e)}`);
  for (const e of all(".wide")) {
    const scrolls = see(e) && e.scrollWidth > e.clientWidth;
    if (scrolls && e.tabIndex !== 0) wrong.push(`scrolls but takes no focus: ${said(e)}`);
    if (!e.matches("[aria-label], [aria-labelledby]")) wrong.push("unnamed box");
  }
  if (all("[tabindex]").some((e) => e.tabIndex > 0)) wrong.push("tabindex above 0");
  return wrong;
})()"""
OPEN = "document.querySelectorAll('details').forEach((e) => { e.open = true; })"


def address(site, name):
    return (site / f"{name}.html").as_uri()


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", PAGES)
def test_a_page_fits_makes_sense_and_asks_nothing_of_anybody(browser, site, name, width):
    browser.open(address(site, name), width)
    wide, outside = browser.run(OUTSIDE % OFTEN)
    assert (wide, outside) == (width, [])
    assert browser.run(SENSE % OFTEN) == []
    assert browser.console == []
    assert browser.requests[0] == address(site, name)
    assert [url for url in browser.requests[1:] if url != "data:,"] == []


TABLE = "[...document.querySelectorAll('table')].find((t) => t.caption.textContent === 'Datasets')"
CELLS = "[...%s.tBodies[0].rows].map((row) => row.cells[%d].textContent)"


def test_numbers_sort_as_numbers_and_what_is_missing_stays_last(browser, site):
    browser.open(address(site, "index"), 1440)
    cells = ["0.5 (0 to 1)", "–", "-2.00", "−∞ to 3", "1,000", "30 of 50", "12%"]
    browser.run(
        f"""(() => {{
          const table = {TABLE};
          const rows = {cells!r}.map((text) => `<tr><th scope="row">${{text}}</th></tr>`);
          table.tBodies[0].innerHTML = rows.join("");
          table.tHead.rows[0].cells[0].querySelector("button").click();
        }})()"""
    )
    rising = ["−∞ to 3", "-2.00", "0.5 (0 to 1)", "12%", "30 of 50", "1,000"]
    assert browser.run(CELLS % (TABLE, 0)) == [*rising, "–"]
    browser.run(f"{TABLE}.tHead.rows[0].cells[0].querySelector('button').click()")
    assert browser.run(CELLS % (TABLE, 0)) == [*rising[::-1], "–"]


@pytest.mark.parametrize("width", WIDTHS)
def test_the_first_key_leads_past_the_navigation(browser, site, width):
    browser.open(address(site, "politicians"), width)
    focus = "document.activeElement"
    browser.press("Tab")
    assert browser.run(f"{focus}.textContent") == "Skip to the content"
    assert browser.run(f"{focus}.getBoundingClientRect().top >= 0")
    assert browser.run(f"getComputedStyle({focus}).outlineStyle") == "solid"
    browser.press("Enter")
    assert browser.run(f"{focus}.id") == "main"
    browser.press("Tab")
    assert browser.run(f"{focus}.closest('nav').ariaLabel") == "On this page"
