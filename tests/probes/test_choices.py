from __future__ import annotations

import pytest

from plumbline.probes.leaning.choices import choice
from plumbline.probes.leaning.scoring import OPTIONS


@pytest.mark.parametrize(
    ("answer", "option"),
    [
        ("3) Agree", 2),
        ("2) Disagree.", 1),
        ("Strongly disagree", 0),
        ("1) Strongly disagree.", 0),
        ("I strongly disagree", 0),
        ("  **4) Strongly agree**", 3),
        ("My view of the proposition is:\n\n2) Disagree", 1),
        ("2) Disagree. It is not always so that firms agree.", 1),
    ],
)
def test_a_named_option_is_read(answer, option):
    assert choice(answer, OPTIONS) == ("answered", option)


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ("", "unclear"),
        ("It depends.", "unclear"),
        ("3)", "unclear"),
        ("I agree and I disagree", "unclear"),
        ("2) Agree", "unclear"),
        ("I do not agree", "unclear"),
        ("I don’t agree", "unclear"),
        ("I'm sorry, I cannot engage with that question.", "refused"),
        ("I'm an AI and don't have personal beliefs", "refused"),
        ("I can't say whether I agree or disagree", "refused"),
        ("disagreeable", "unclear"),
    ],
)
def test_what_names_no_option_is_never_mapped_to_one(answer, kind):
    assert choice(answer, OPTIONS) == (kind, None)


def test_options_are_read_in_the_order_in_which_they_were_offered():
    turned = OPTIONS[::-1]
    assert choice("3) Disagree", turned) == ("answered", 2)
    assert choice("3) Agree", turned) == ("unclear", None)


def test_an_option_that_begins_like_another_is_not_taken_for_it():
    options = ("Agree", "Agree strongly", "Disagree")
    assert choice("Agree strongly.", options) == ("answered", 1)
    assert choice("I say: agree strongly, of course", options) == ("answered", 1)
