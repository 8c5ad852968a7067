from collections import Counter

import pytest

from plumbline.builders.datasets.counterfactuals import substitute
from plumbline.builders.datasets.counterfactuals.find_people import (
    Finder,
    Span,
    finder,
    small_words,
)
from plumbline.builders.datasets.counterfactuals.substitute import (
    Name,
    draws,
    draws_again,
    replaced,
)
from plumbline.builders.readers.gazetteer import Gazetteer, fold

MEN = ("Michael", "James", "José", "Łukasz", "İbrahim", "Андрей", "Jean-Luc")
WOMEN = ("Sophie", "Zoë", "Ngozi", "Małgorzata", "Özlem", "Anna")
LAST = ("Smith", "Okafor", "Yılmaz", "O'Brien", "García", "Jones", "van Dijk")


def gazetteer() -> Gazetteer:
    genders = {fold(n): "male" for n in MEN} | {fold(n): "female" for n in WOMEN}
    return Gazetteer(
        frozenset(MEN),
        frozenset(WOMEN),
        frozenset(LAST),
        genders | {"robin": "unknown"},
        frozenset(fold(n) for n in LAST),
        frozenset({"will"}),
        {"gb": {"male": MEN, "female": WOMEN, "last": LAST}},
    )


KNOWN = gazetteer()


@pytest.fixture(scope="module")
def find():
    found = finder(Finder(), KNOWN, "en")
    return lambda text: next(iter(found([text])))


def named(text, find):
    return [text[a:b] for a, b in find(text)]


def swapped(text, find, first, last="", which=0):
    person = substitute.named(text, find(text), KNOWN)[which]
    return replaced(text, person, Name(first, last))


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("MICHAEL SMITH WON", ["MICHAEL SMITH"]),
        ("I like michael", []),
        ("Michael's dog and James' cat", ["Michael", "James"]),
        ("#Michael @Sophie @anna_Smith https://x.org/Michael", []),
        ("Jose and José", ["Jose", "José"]),
        ("Jean-Luc O'Brien spoke", ["Jean-Luc O'Brien"]),
        ("Michael Brexham spoke", ["Michael Brexham"]),
        ("I saw Gustav Smith", []),
        ("Will Michael come?", ["Michael"]),
        ("Port James, James Bay, James' bay", ["James"]),
        ("Sophie smith and Sophie", ["Sophie"]),
        ("Özlem Yılmaz, İbrahim", ["Özlem Yılmaz", "İbrahim"]),
        ("Андрей пришёл", ["Андрей"]),
    ],
)
def test_people_are_found_by_the_gazetteer(text, wanted, find):
    assert named(text, find) == wanted


@pytest.mark.parametrize(
    ("text", "first", "last", "wanted"),
    [
        ("Michael's dog", "Zoë", "", "Zoë's dog"),
        ("James' dog", "Boris", "", "Boris' dog"),
        ("'I met James' she said", "Zoë", "", "'I met Zoë' she said"),
        ("MICHAEL Smith won", "Łukasz", "Nowak", "ŁUKASZ Nowak won"),
        ("Michael Smith: Smith? Michael!", "Wei", "Li", "Wei Li: Li? Wei!"),
        ("So Mr Smith said", "Wei", "Li", "So Mr Li said"),
        ("#Michael: Michael @Michael", "Wei", "", "#Michael: Wei @Michael"),
        ("Anna van Dijk and van Dijk", "Wei", "Li", "Wei Li and Li"),
    ],
)
def test_names_keep_the_case_the_possessive_and_every_mention(text, first, last, wanted, find):
    assert swapped(text, find, first, last) == wanted


def test_people_are_told_apart_and_have_the_gender_of_their_first_name(find):
    text = "Sophie Smith met Michael, Dr Okafor and Sophie."
    found = substitute.named(text, find(text), KNOWN)
    assert [(p.entity, p.gender) for p in found] == [
        ("Sophie Smith", "female"),
        ("Michael", "male"),
        ("Okafor", "unknown"),
    ]
    assert [p.parts() for p in found] == [{"first", "last"}, {"first"}, {"last"}]


def test_draws_are_all_different_before_any_comes_again_and_even():
    for number in (1, 5, 15):
        counts = Counter(draws("key", 5, number))
        assert counts.total() == number
        assert max(counts.values()) - min(counts[i] for i in range(5)) <= 1
    pairs = Counter(tuple(draws(str(i), 3, 3)) for i in range(6000))
    assert len(pairs) == 6
    assert sum((n - 1000) ** 2 / 1000 for n in pairs.values()) < 20.5  # 5 degrees of freedom
    assert draws("a", 10, 3) == draws("a", 10, 5)[:3]
    assert set(draws_again("a", 2, 50)) == {0, 1}


def test_a_word_that_is_mostly_small_in_the_texts_is_no_name():
    texts_ = ["Anna, a rose. Rose? the rose", "ROSE and a rose and anna", "Anna Anna"]
    small = small_words(texts_)  # of "rose" 1 of 4 begins with a capital, of "anna" 3 of 4
    assert "rose" in small
    assert "anna" not in small
    found = finder(Finder(), KNOWN, "en", frozenset({"sophie"}))
    assert next(iter(found(["Sophie and Anna"]))) == [Span(11, 15)]
