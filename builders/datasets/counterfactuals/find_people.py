"""Detection of people in texts with spaCy, using the gazetteer or a model that the user chooses."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import Field, model_validator

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.params import Params as Section
from plumbline.builders.core.params import yaml_of
from plumbline.builders.readers.gazetteer import Gazetteer, fold, plain

LISTS: dict[str, Any] = yaml_of(Path(__file__).with_name("beside_names.yaml").read_bytes())
PARTICLES = frozenset(map(fold, LISTS["particles"].split()))
WORD_BEFORE = re.compile(r"([^\W\d_][\w'’-]*)\.? $")
AFTER = re.compile(r" ([^\W\d_][\w-]*)")
INITIALS = re.compile(r"(?:[^\W\d_]\. ?)+")
STOPS = re.compile(r"[.!?:…]+\s+")
BEGINS = re.compile(r"(?:^|[.!?:…]\s+)\W*$")
ANYWHERE = "en"  # English titles and places may stand next to names in any language
NOUNS = ("de",)  # languages that capitalise nouns


LABELS = ("PER", "PERSON")
APART = re.compile(r"[#@]|://|www\.|\w_|_\w")  # matches in tags and addresses, which are not names
POSSESSIVE = re.compile(r"['’][sS]?$")
INSIDE = re.compile(r"[\w-]$")  # matches inside a longer word, such as Mary-Ann
GLUED = re.compile(r"[^\W\d_A-Z]{4}[A-Z]")  # matches two words without a space between them
GOES_ON = re.compile(r"\w|-\w")
WORD = re.compile(r"[^\W\d_](?:[\w'’-]*\w)?")
NEXT = re.compile(rf"(?: (?i:{'|'.join(PARTICLES)}))* ([^\W\d_][\w'’-]*\w)")
BEFORE = re.compile(r"([^\W\d_]\w*)\.? $")
BETWEEN = re.compile(rf"-| (?:(?i:{'|'.join(PARTICLES)}) )*((?:[^\W\d_]\. ?)*)")  # between names
LEADING = re.compile(r"(?<![\w.])(?:[^\W\d_]\. ?)+$")
TRAILING = re.compile(r"(?: [^\W\d_]\.(?!\w))+")


class Finder(Section):
    """The recogniser of people."""

    model: str = Field(
        "",
        description="spaCy model, e.g. xx_ent_wiki_sm (the paper's); if empty, spaCy's entity "
        "ruler is used with the names in the dataset `names`",
    )
    version: str = Field("", description="version of the model")
    address: str = Field(
        "",
        description="address from which pip installs the model; shown in the error if the model "
        "is missing",
    )

    @model_validator(mode="after")
    def _told(self) -> Finder:
        if self.model and not (self.version and self.address):
            raise ValueError(
                f"{self.model}: needs its version and the address pip installs it from"
            )
        return self


class Span(NamedTuple):
    """Position of a name in a text; the end is exclusive."""

    start: int
    end: int


def small_words(texts: Iterable[str]) -> frozenset[str]:
    """Return the folded words that are capitalised in fewer than half of their occurrences.

    Occurrences in all capitals are not counted.
    """
    capitals: Counter[str] = Counter()
    totals: Counter[str] = Counter()
    for text in texts:
        for word in WORD.findall(text):
            if not word.isupper() or len(word) == 1:
                totals[fold(word)] += 1
                capitals[fold(word)] += word[0].isupper()
    return frozenset(word for word, number in totals.items() if 2 * capitals[word] < number)


def finder(
    params: Finder, gazetteer: Gazetteer, language: str, small: frozenset[str] = frozenset()
) -> Callable[[Iterable[str]], Iterator[list[Span]]]:
    """Return a function that yields the people in each text, in order.

    Without a model, the words next to a candidate decide whether it is a name; see
    :class:`Context`.

    Hashtags, user handles and addresses are excluded; a possessive 's is not part of a name.

    ``small``: folded words that are not names in these texts; see :func:`small_words`.
    """
    nlp = _model(params) if params.model else _ruler(gazetteer)
    ordinary = frozenset() if params.model else _stops(language) | small
    context = Context.of(language, ordinary, gazetteer)

    def find(texts: Iterable[str]) -> Iterator[list[Span]]:
        for doc in nlp.pipe(texts):
            named = [Span(e.start_char, e.end_char) for e in doc.ents if e.label_ in LABELS]
            if not params.model:
                listed = [span for span in named if fold(doc.text[slice(*span)]) not in small]
                joined = _joined(doc.text, listed, context)
                words = [doc.text[slice(*span)].split() for span in joined]
                lasts = {fold(parts[-1]) for parts in words if len(parts) > 1}
                named = [span for span in joined if context.person(doc.text, span, lasts)]
            yield list(_clean(doc.text, named))

    return find


def _model(params: Finder) -> Any:
    import spacy

    command = f"python -m pip install {params.address}"
    try:
        nlp = spacy.load(params.model)
    except OSError as error:
        raise UserError(
            f"spaCy model {params.model} is not installed; install it with `{command}`"
        ) from error
    if nlp.meta["version"] != params.version:
        raise UserError(
            f"version {nlp.meta['version']} of the spaCy model {params.model} is installed, not "
            f"{params.version}; run `{command}`, or set the installed version in params.yaml"
        )
    return nlp


def _ruler(gazetteer: Gazetteer) -> Any:
    """Return spaCy's entity ruler for all usable names; diacritics are ignored on both sides."""
    import spacy

    nlp = spacy.blank("xx")
    ruler: Any = nlp.add_pipe("entity_ruler")
    names = gazetteer.men | gazetteer.women | gazetteer.last
    spelled = {plain(name) for name in names}
    forms = spelled | {form.upper() for form in spelled}
    words = sorted({tuple(token.text for token in nlp.make_doc(form)) for form in forms})
    single = [word for word, *more in words if not more]
    patterns: list[Any] = [[{"NORM": {"IN": single}}]] if single else []
    patterns += [[{"NORM": word} for word in tokens] for tokens in words if len(tokens) > 1]
    ruler.add_patterns([{"label": LABELS[0], "pattern": pattern} for pattern in patterns])
    tokenizer: Any = nlp.tokenizer

    def tokens_without_diacritics(text: str) -> Any:
        doc = tokenizer(text)
        for token in doc:
            token.norm_ = plain(token.text)
        return doc

    nlp.tokenizer = tokens_without_diacritics
    return nlp


def _stops(language: str) -> frozenset[str]:
    """Return spaCy's stop words for a language, or an empty set if it has none."""
    from spacy.util import get_lang_class

    try:
        return frozenset(get_lang_class(language).Defaults.stop_words)
    except ImportError:
        return frozenset()


def _joined(text: str, spans: Iterable[Span], context: Context) -> list[Span]:
    """Join adjacent names, and add parts of names that are in no list."""
    merged: list[Span] = []
    for span in spans:
        name, start = text[slice(*span)], span.start
        if merged and _initials(BETWEEN.fullmatch(text[merged[-1].end : start])):
            last = text[slice(*merged[-1])]
            if " " not in last or last.isupper() == name.isupper():
                start = merged.pop().start
        elif (letters := LEADING.search(text[:start])) and _initials(letters):
            start = letters.start()
        elif (
            (before := BEFORE.search(text[:start]))
            and _named(before[1])
            and fold(before[1]) in context.gazetteer.words
            and fold(name) in context.gazetteer.surnames
        ):
            start = before.start(1)
        merged.append(Span(start, span.end))
    joined: list[Span] = []
    for span in sorted(_longer(text, span, context) for span in merged):
        # merges "Silva" into "Maria da Silva"
        around = joined.pop() if joined and span.start < joined[-1].end else span
        joined.append(Span(around.start, max(around.end, span.end)))
    return joined


def _longer(text: str, span: Span, context: Context) -> Span:
    """Extend a common first name by initials and the capitalised word after it.

    Ordinary words are not part of a name.
    """
    *firsts, last = map(fold, text[span.start : span.end].split())
    if not context.usual((firsts or [last])[0]) or not context.gazetteer.gender(last):
        return span
    if firsts and last in context.gazetteer.surnames:
        return span
    if (letters := TRAILING.match(text, span.end)) and _initials(letters):
        span = Span(span.start, letters.end())
    following = NEXT.match(text, span.end)
    if following and not _named(following[1]):  # what looks like a particle may be the name
        following = NEXT.match(text, span.end, following.start(1) - 1)
    if not following:
        return span
    word, start = POSSESSIVE.sub("", following[1]), following.start(1)
    other = fold(word) in context.ordinary or fold(word) in context.titles or GLUED.search(word)
    if not _named(word) or other or APART.search(_run(text, start)):
        return span
    return Span(span.start, start + len(word))


def _initials(match: re.Match[str] | None) -> bool:
    """Return True if all letters of a match, or of its group, are capitals."""
    return match is not None and (letters := match[match.lastindex or 0]) == letters.upper()


def _named(word: str) -> bool:
    """Return True for a capitalised word that is not entirely in capitals."""
    return word[:1].isupper() and not word.isupper()


def _clean(text: str, spans: Iterable[Span]) -> Iterator[Span]:
    """Remove words that are not names, and strip final possessives."""
    for start, end in spans:
        name = POSSESSIVE.sub("", text[start:end].strip())
        begin = end - len(text[start:end].lstrip())
        inside = INSIDE.search(text[:begin]) or GOES_ON.match(text, begin + len(name))
        if name and not inside and not APART.search(_run(text, begin)):
            yield Span(begin, begin + len(name))


def _run(text: str, index: int) -> str:
    """Return the space-delimited word at an index."""
    return text[text.rfind(" ", 0, index) + 1 :].split(" ", 1)[0]


class Context(NamedTuple):
    """The gazetteer, and sets of folded words that help to recognise names in a language."""

    gazetteer: Gazetteer
    common: frozenset[str]  # folded first names in at least one country's list
    titles: frozenset[str]
    places: frozenset[str]
    suffixes: frozenset[str]
    ordinary: frozenset[str]  # function words, and words that are mostly in lower case in the texts
    nouns: bool  # whether the language capitalises nouns

    @classmethod
    def of(cls, language: str, ordinary: frozenset[str], gazetteer: Gazetteer) -> Context:
        """Return the context for a language, including the words that apply to every language."""
        by_kind = [LISTS.get(key, {}) for key in {ANYWHERE, language}]
        titles, places = (
            frozenset(fold(word) for lists in by_kind for word in lists.get(kind, "").split())
            for kind in ("titles", "places")
        )
        suffixes = frozenset(LISTS["suffixes"].split())
        names = gazetteer, gazetteer.common()
        return cls(*names, titles, places, suffixes, ordinary, language in NOUNS)

    def usual(self, first: str) -> bool:
        """Return True if all parts of a folded first name are in the lists of countries."""
        return first in self.common or self.common.issuperset(first.split("-"))

    def person(self, text: str, span: Span, lasts: set[str]) -> bool:
        """Return True if a span is a person's complete name, judged by its context.

        A part of a longer name (of a person, place or firm) has a capitalised word next to it. A
        single last name denotes a word or a firm as often as a person, so a title must precede it,
        or the text must contain a full name that ends with it. The same applies to first names in
        no country's list, since long lists also contain words; a name with an apostrophe, such as
        O'Connor, is no word. A word in capitals counts as an abbreviation, unless most of its
        sentence is in capitals.

        ``lasts``: folded last names of the full names in the text.
        """
        start, end = span
        names = [fold(name) for name in text[start:end].split()]
        preceding, following = WORD_BEFORE.search(text[:start]), AFTER.match(text, end)
        before, after = (fold(match[1]) if match else "" for match in (preceding, following))
        shouted = _shouted(text, start)
        if self.places & {before, after, *names} or names[0] in self.suffixes | self.titles:
            return False
        if following and after not in self.suffixes and not (shouted and len(names) > 1):
            large = following[1][0].isupper() and len(following[1]) > 1
            goes_on = (large or after in self.gazetteer.surnames) and after not in self.ordinary
            goes_on |= shouted and after in PARTICLES  # the rest of the name is in no list
            if goes_on or (large and len(names) == 1 and not shouted):
                return False
        large = preceding is not None and preceding[1][0].isupper() and not (shouted or self.nouns)
        if len(names) > 1:
            first = self.gazetteer.gender(names[0]) or names[0] in self.gazetteer.words
            return bool(first) or (not large and INITIALS.match(text, start) is not None)
        if before in self.titles or not self.usual(names[0]):
            return before in self.titles or names[0] in lasts or ("'" in names[0] and not large)
        begins = preceding is not None and BEGINS.search(text[: preceding.start()]) is not None
        free = not large or (begins and before in self.ordinary)
        return free and (shouted or not text[start:end].isupper())


def _shouted(text: str, index: int) -> bool:
    """Return True if the sentence around an index is mostly in capitals (uninformative case)."""
    begins = max((stop.end() for stop in STOPS.finditer(text, 0, index)), default=0)
    ends = STOPS.search(text, index)
    sentence = text[begins : ends.start() if ends else None]
    return sum(map(str.isupper, sentence)) > sum(map(str.islower, sentence))
