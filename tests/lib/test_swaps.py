from collections import Counter
from itertools import pairwise

import numpy as np
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

MEN = ("Michael", "James", "José", "Łukasz", "İbrahim", "Андрей", "Jean", "Luc", "Soren", "Bob")
WOMEN = ("Sophie", "Zoë", "Ngozi", "Małgorzata", "Özlem", "Anna", "Maria", "Siobhan")
LAST = ("Smith", "Okafor", "Yılmaz", "O'Brien", "García", "Jones", "van Dijk", "Silva", "D'Angelo")


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
        ("Michael Brexham spoke", ["Michael Brexham"]),
        ("I saw Gustav Smith", []),
        ("Will Michael come?", ["Michael"]),
        ("Port James, James Bay, James' bay", ["James"]),
        ("Sophie smith and Sophie", ["Sophie"]),
        ("Özlem Yılmaz, İbrahim", ["Özlem Yılmaz", "İbrahim"]),
        ("Андрей пришёл", ["Андрей"]),
        ("Jean-Luc Picard, Anna-Maria Huber", ["Jean-Luc Picard", "Anna-Maria Huber"]),
        ("Jean-Luc O’Brien’s show, O'Brien", ["Jean-Luc O’Brien", "O'Brien"]),
        ("But Sinead O'Brien spoke", []),
        ("D’Angelo sings", ["D’Angelo"]),
        ("Søren Kierkegaard, Bob Dylan", ["Søren Kierkegaard", "Bob Dylan"]),
        ("Siobhán and Zoé’s dress", ["Siobhán", "Zoé"]),
        ("Michael J. Brexham, J.K. Jones", ["Michael J. Brexham", "J.K. Jones"]),
        ("JEAN-LUC JONES, MARIA DA SILVA", ["JEAN-LUC JONES", "MARIA DA SILVA"]),
        ("MARIA DA QUEX WON", []),
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
        ("Maria da Silva won. Da Silva left", "Wei", "Li", "Wei Li won. Li left"),
        ("I love Anna so much, ANNA", "Wei", "", "I love Wei so much, WEI"),
        ("Anna Anna: Anna saw Anna", "Wei", "", "Wei Wei: Wei saw Wei"),
        ("J.K. Jones and JONES", "Wei", "Li", "Wei Li and LI"),
    ],
)
def test_names_keep_the_case_the_possessive_and_every_mention(text, first, last, wanted, find):
    assert swapped(text, find, first, last) == wanted


PIECES = (*MEN, *WOMEN, *LAST, "da", "DA", "MARIA", "SILVA", "J.", "Mr", "Lake", "saw", "'s", "@")


def test_named_mentions_never_overlap(find):
    rng = np.random.default_rng(1)
    for _ in range(3000):
        drawn = rng.choice(PIECES, rng.integers(12)), rng.choice([*"     -", ". ", ""], 12)
        text = "".join(str(piece) + str(end) for piece, end in zip(*drawn, strict=False))
        people = substitute.named(text, find(text), KNOWN)
        places = sorted(mention[:2] for person in people for mention in person.mentions)
        assert all(end <= start for (_, end), (start, _) in pairwise(places)), text


def test_people_are_told_apart_and_have_the_gender_of_their_first_name(find):
    text = "Sophie Smith met Jean-Luc, Dr Okafor, Sophie and Jean-Anna."
    found = substitute.named(text, find(text), KNOWN)
    assert [(p.entity, p.gender) for p in found] == [
        ("Sophie Smith", "female"),
        ("Jean-Luc", "male"),
        ("Okafor", "unknown"),
        ("Jean-Anna", "unknown"),
    ]
    assert [p.parts() for p in found[:3]] == [{"first", "last"}, {"first"}, {"last"}]


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
