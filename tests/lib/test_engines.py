import json

import pytest
import suggesting

from plumbline.builders.datasets.stereotypes import engines

TEXTS = ["why are kids so noisy", "why are kids so élégants", 'why are kids so "up"']
PATHS = {"firefox": "/google", "chrome": "/chrome", "gossip": "/yahoo"}
PATHS |= {"phrases": "/duckduckgo", "list": "/list"}
CAPTCHA = "<!doctype html><title>Sorry</title><p>unusual traffic"


@pytest.mark.parametrize("form", PATHS)
def test_read_suggestions_in_order(form):
    said = suggesting.body(PATHS[form], "why are kids so", TEXTS).decode()
    found = engines.read(form, said)
    assert [(s.text, s.rank) for s in found] == list(zip(TEXTS, (1, 2, 3), strict=True))
    assert engines.read(form, "\ufeff " + said) == found
    assert engines.read(form, suggesting.body(PATHS[form], "x", []).decode()) == []


@pytest.mark.parametrize("form", PATHS)
@pytest.mark.parametrize("said", [CAPTCHA, "3", '{"error": 1}', '["q", [1]]'])
def test_read_refuses_anything_else(form, said):
    with pytest.raises(ValueError):
        engines.read(form, said)


def test_read_chrome_metadata_wherever_they_stand():
    about = {"google:suggestrelevance": [601, 600], "google:suggesttype": ["QUERY", "NAVIGATION"]}
    for guard, before in (("", []), (")]}'\n", [[], 7, None])):
        said = guard + json.dumps(["q", ["q so", "q.example"], *before, about, "more"])
        assert engines.read("chrome", said) == [
            engines.Suggestion("q so", 1, "QUERY"),
            engines.Suggestion("q.example", 2, "NAVIGATION"),
        ]
