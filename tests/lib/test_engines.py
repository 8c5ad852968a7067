import json

import pytest
import suggesting

from plumbline.builders.datasets.stereotypes import engines

TEXTS = ["why are kids so noisy", "why are kids so élégants", 'why are kids so "up"']
PATHS = {
    "firefox": "/google",
    "chrome": "/chrome",
    "gossip": "/yahoo",
    "phrases": "/duckduckgo",
    "list": "/list",
}
CAPTCHA = "<!doctype html><title>Sorry</title><p>unusual traffic"


@pytest.mark.parametrize("form", PATHS)
def test_each_format_gives_the_suggestions_in_order(form):
    said = suggesting.body(PATHS[form], "why are kids so", TEXTS).decode()
    found = engines.read(form, said)
    assert [(s.text, s.rank) for s in found] == list(zip(TEXTS, (1, 2, 3), strict=True))
    assert engines.read(form, "\ufeff " + said) == found
    assert engines.read(form, suggesting.body(PATHS[form], "x", []).decode()) == []


@pytest.mark.parametrize("form", PATHS)
@pytest.mark.parametrize("said", [CAPTCHA, "3", '{"error": 1}', '["q", [1]]'])
def test_read_anything_else_is_no_answer(form, said):
    with pytest.raises(ValueError):
        engines.read(form, said)


@pytest.mark.parametrize(("guard", "before"), [("", []), (")]}'\n", [[], 7, None])])
def test_read_metadata_of_chrome_wherever_they_are(guard, before):
    about = {"google:suggestrelevance": [601, 600], "google:suggesttype": ["QUERY", "NAVIGATION"]}
    said = guard + json.dumps(["q", ["q so", "q.example"], *before, about, "more"])
    assert engines.read("chrome", said) == [
        engines.Suggestion("q so", 1, "QUERY"),
        engines.Suggestion("q.example", 2, "NAVIGATION"),
    ]
