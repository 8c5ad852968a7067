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


def test_there_is_a_reader_for_each_format_of_the_engines():
    assert set(engines.FORMATS) == set(PATHS)


@pytest.mark.parametrize("form", PATHS)
def test_each_format_gives_the_suggestions_in_order(form):
    said = suggesting.body(PATHS[form], "why are kids so", TEXTS).decode()
    found = engines.read(form, said)
    assert [(s.text, s.rank) for s in found] == list(zip(TEXTS, (1, 2, 3), strict=True))
    assert engines.read(form, "\ufeff " + said) == found
    assert engines.read(form, suggesting.body(PATHS[form], "x", []).decode()) == []


@pytest.mark.parametrize("form", PATHS)
@pytest.mark.parametrize(
    "said", [CAPTCHA, "", "null", "3", "{}", '{"error": 1}', "[1, 2]", '["q", [1]]', '[{"x": 1}]']
)
def test_anything_else_is_no_answer(form, said):
    with pytest.raises(ValueError, match=r"web page|whole JSON|no answer"):
        engines.read(form, said)


@pytest.mark.parametrize("form", PATHS)
def test_half_an_answer_is_no_answer(form):
    said = suggesting.body(PATHS[form], "why are kids so", TEXTS).decode()
    with pytest.raises(ValueError, match="not whole JSON"):
        engines.read(form, said[: len(said) // 2])


@pytest.mark.parametrize("guard", ["", ")]}'", ")]}'\n", "\n)]}'\n"])
@pytest.mark.parametrize("before", [[], [["", ""], []], [[], 7, None]])
def test_chromes_metadata_are_found_wherever_they_stand(guard, before):
    about = {"google:suggestrelevance": [601, 600], "google:suggesttype": ["QUERY", "NAVIGATION"]}
    said = guard + json.dumps(["q", ["q so", "q.example"], *before, about, "more"])
    assert engines.read("chrome", said) == [
        engines.Suggestion("q so", 1, "QUERY"),
        engines.Suggestion("q.example", 2, "NAVIGATION"),
    ]


def test_metadata_of_other_suggestions_are_no_answer():
    said = json.dumps(["q", ["q so", "q no"], {"google:suggesttype": ["QUERY"]}])
    with pytest.raises(ValueError, match="no answer of the format chrome"):
        engines.read("chrome", said)


@pytest.mark.parametrize(
    ("body", "kind", "code"),
    [
        ("é".encode(), "text/javascript; charset=UTF-8", "utf-8"),
        ("é".encode("latin-1"), "text/javascript; charset=ISO-8859-1", "iso-8859-1"),
        ("é".encode("latin-1"), "text/javascript", "latin-1"),
        ("é".encode("latin-1"), "text/javascript; charset=utf-8", "latin-1"),
        ("é".encode("latin-1"), "text/javascript; charset=klingon", "latin-1"),
        ("é".encode(), "text/javascript; charset=ISO-8859-1", "utf-8"),
        ("привет".encode("koi8-r"), 'text/plain; charset="koi8-r"', "koi8-r"),
    ],
)
def test_a_body_is_kept_in_an_encoding_that_gives_its_bytes_back(body, kind, code):
    assert engines.encoding(body, kind) == code
    assert body.decode(code).encode(code) == body


def test_the_places_of_an_address_are_quoted():
    address = "http://x/?q={query}&hl={hl}&gl={gl}&kl={kl}"
    assert (
        engines.url(address, "why & é?", "en", "us", "us-en")
        == "http://x/?q=why+%26+%C3%A9%3F&hl=en&gl=us&kl=us-en"
    )
