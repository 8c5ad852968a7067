"""Drawing corpora from a stream of texts, cleared of near-duplicates, leaks and hate.

The stream is read several times. What is held in memory is about what may be drawn, never a text
for longer than it is looked at, so that memory does not grow with the stream.
"""

from __future__ import annotations

from array import array
from collections import Counter
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
from pydantic import Field, field_validator

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.params import DatasetParams
from plumbline.builders.core.params import Params as Section
from plumbline.builders.core.parquet import Reject
from plumbline.builders.core.snapshot import hash64
from plumbline.builders.datasets.corpora import hate_filter, near_duplicates
from plumbline.builders.readers.articles import paragraphs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import date

    from numpy.typing import NDArray

    Texts = Callable[[Callable[[str], bool]], Iterator["Found"]]

KINDS, LEANINGS = ("news", "social"), ("left", "center", "right")
CONFIGS = tuple(f"{kind}-{leaning}" for kind in KINDS for leaning in LEANINGS)
HELD = 1 << 27  # characters of texts in memory at once
LEAST = 4096  # items that a pool holds at any rate


def rank(seed: int, name: str) -> int:
    """Return the place of an item in the order of the draw."""
    return hash64(f"{seed}/{name}")


class Pool:
    """The items of smallest rank whose weights come to a limit: memory does not grow with others.

    Parameters
    ----------
    limit
        The item with which the sum of weights reaches it is the last one held.
    """

    def __init__(self, limit: float) -> None:
        self.limit = limit
        self._ranks, self._digests, self._weights = array("Q"), array("Q"), array("Q")
        self._full = LEAST

    def add(self, rank: int, digest: int, weight: int) -> None:
        """Hold an item, if its rank is small enough."""
        self._ranks.append(rank)
        self._digests.append(digest)
        self._weights.append(weight)
        if len(self._ranks) >= self._full:
            self._cut()
            self._full = max(LEAST, 2 * len(self._ranks))

    def items(self) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """Return ranks and digests of the items held, sorted."""
        self._cut()
        return tuple(np.array(a, dtype=np.uint64) for a in (self._ranks, self._digests))  # type: ignore[return-value]

    def _cut(self) -> None:
        columns = [
            np.frombuffer(a, dtype=np.uint64) if a else np.empty(0, dtype=np.uint64)
            for a in (self._ranks, self._digests, self._weights)
        ]
        order = np.lexsort((columns[1], columns[0]))
        before = np.cumsum(columns[2][order]) - columns[2][order]
        chosen = order[before < self.limit]
        self._ranks, self._digests, self._weights = (
            array("Q", column[chosen].tobytes()) for column in columns
        )


class Found(NamedTuple):
    """A text as its source has it."""

    config: str
    id: str
    outlet: str
    text: str
    when: date | None
    reason: str  # why it cannot be taken, or nothing

    def clean(self) -> str:
        """Return the text NFC, a paragraph a line, with single spaces."""
        return "\n".join(paragraphs(self.text.encode("utf-8", "replace").decode()))

    def digest(self, text: str) -> int:
        """Return a number of 64 bits for all that a row will say of it, its clean text given."""
        return hash64(f"{self.outlet}\n{self.when}\n{text}")


class Snapshots(Section):
    """The snapshots to build from."""

    news: str = Field(description="folder of the snapshot of articles")
    reddit: str = Field(description="folder of the snapshot of posts")


class MinWords(Section):
    """Fewest words of a text."""

    news: int = Field(20, ge=1, description="of an article")
    social: int = Field(10, ge=1, description="of a post")


class Params(DatasetParams):
    """The snapshots to build from, and what is taken of them."""

    snapshots: Snapshots = Field(description="one of each source")
    language: str = Field("en", description="of the articles, as the snapshot of news has it")
    sizes: dict[str, int] = Field(description="size of each of the six corpora, in `unit`")
    unit: Literal["words", "texts"] = Field("words", description="what sizes are counted in")
    balance: bool = Field(
        True, description="make all corpora smaller alike where one has too little, or only that"
    )
    oversample: float = Field(
        1.5, ge=1, description="texts looked at for duplicates and hate, as a multiple of the size"
    )
    words_min: MinWords = Field(MinWords(), description="fewest words")
    gone: list[str] = Field(
        ["[deleted]", "[removed]", "[deleted by user]", "[removed by reddit]"],
        description="texts that stand in place of a post that was taken away, in small letters",
    )
    bots: list[str] = Field(
        ["i am a bot", "i'm a bot", "beep boop", "this action was performed automatically"],
        description="words by which a post says that a program wrote it, in small letters",
    )
    near: near_duplicates.Params = Field(near_duplicates.Params(), description="near-duplicates")
    hate: hate_filter.Params | None = Field(
        None, description="the classifier of hate; null: no filter"
    )
    seed: int = Field(1, description="of the draw")

    @field_validator("sizes")
    @classmethod
    def _six(cls, sizes: dict[str, int]) -> dict[str, int]:
        if set(sizes) != set(CONFIGS) or min(sizes.values()) < 1:
            raise ValueError(f"give a size of 1 or more for each of {', '.join(CONFIGS)}")
        return sizes

    def required_configs(self) -> list[str]:
        """Return all six."""
        return list(self.sizes)


class Drawn(NamedTuple):
    """A text of a corpus."""

    found: Found
    text: str
    words: int
    score: float | None


def draw(texts: Texts, params: Params) -> Iterator[Drawn | Reject]:
    """Yield the texts drawn, sorted by corpus and id, and before them what is left out.

    Of each corpus the texts of smallest rank are drawn, a hash of seed and id: the draw does not
    depend on the order of the stream. Near-duplicates, leaks and hate are looked for among those
    that may be drawn.

    Parameters
    ----------
    texts
        Reads all texts, but need only yield those whose id passes a test.
    """
    state = _Drawing(texts, params)
    yield from state.first()
    state.sign()
    state.compare()
    state.score()
    yield from state.choose()
    yield from state.drawn()


class _Drawing:
    """What is known of the texts that may be drawn, one place each in every column."""

    def __init__(self, texts: Texts, params: Params) -> None:
        self.texts, self.params = texts, params
        self.names = list(CONFIGS)
        self.sizes = [params.sizes[config] for config in CONFIGS]
        self.sound: Counter[tuple[str, str]] = Counter()  # by corpus and outlet
        self.taken: Counter[tuple[str, str]] = Counter()  # of those, drawn or rejected
        self.again: Counter[tuple[str, str]] = Counter()  # of those, an id and text once more
        self.place: dict[tuple[int, int, int], int] = {}  # by rank, digest of the text, and corpus
        self.ranks: set[int] = set()
        self.corpus: NDArray[np.uint8]
        self.ids: list[str] = []
        self.outlets: list[str] = []
        self.words: list[int] = []
        self.lengths: list[int] = []
        self.signatures: NDArray[np.uint32]
        self.out: dict[int, Reject] = {}  # by place
        self.scores: dict[int, float] = {}
        self.chosen: list[int] = []

    def first(self) -> Iterator[Reject]:
        """Find what may be drawn; yield counts of what cannot be taken."""
        params = self.params
        limits = [size * params.oversample for size in self.sizes]
        pools = {name: Pool(limit) for name, limit in zip(self.names, limits, strict=True)}
        out: Counter[tuple[str, str, str]] = Counter()
        for found in self.texts(bool):
            if found.reason:
                out[found.config, found.outlet, found.reason] += 1
                continue
            text = found.clean()
            words = len(text.split())
            if words < getattr(params.words_min, found.config.partition("-")[0]):
                out[found.config, found.outlet, "too short"] += 1
                continue
            self.sound[found.config, found.outlet] += 1
            weight = words if params.unit == "words" else 1
            pools[found.config].add(rank(params.seed, found.id), found.digest(text), weight)
        for (config, outlet, reason), number in sorted(out.items()):
            yield Reject(config, outlet, reason, number=number)
        keys = []
        for number, config in enumerate(self.names):
            ranks, digests = pools[config].items()
            keys += [(int(r), int(d), number) for r, d in zip(ranks, digests, strict=True)]
        for key in sorted(keys):
            self.place.setdefault(key, len(self.place))
        self.ranks = {r for r, _, _ in self.place}
        size = len(self.place)
        self.corpus = np.array([number for _, _, number in self.place], dtype=np.uint8)
        self.ids, self.outlets = [""] * size, [""] * size
        self.words, self.lengths = [0] * size, [0] * size

    def sign(self) -> None:
        """Sign the texts that may be drawn, and set aside what has an id that was there before."""
        signer = near_duplicates.Signer(self.params.near)
        size = (len(self.place), self.params.near.permutations)
        self.signatures = np.zeros(size, dtype=np.uint32)
        for place, found, text in self._drawable():
            if self.ids[place]:
                self.again[found.config, found.outlet] += 1
                continue
            self.ids[place], self.outlets[place] = found.id, found.outlet
            self.words[place], self.lengths[place] = len(text.split()), len(text)
            self.signatures[place] = signer.sign(text)
        seen: dict[str, int] = {}
        for place, own in enumerate(self.ids):
            first = seen.setdefault(own, place)
            if first == place:
                continue
            if self.corpus[first] == self.corpus[place]:
                self._reject(place, "duplicate", f"{own} with another text, outlet or date")
            else:
                self._reject(place, "leak", f"{self.names[self.corpus[first]]} {own}")
                self._reject(first, "leak", f"{self.names[self.corpus[place]]} {own}")

    def compare(self) -> None:
        """Set aside near-duplicates and leaks."""
        params = self.params.near
        buckets = near_duplicates.buckets(self.signatures, params.threshold)
        del self.signatures
        suspects = {place for place in buckets if place not in self.out}
        sets = {
            place: near_duplicates.shingles(text, params.words)
            for place, _, text in self._drawable(suspects)
        }
        found = near_duplicates.compare(
            sorted(suspects), self.corpus, buckets, sets, params.threshold
        )
        for place, earlier in found.same.items():
            self._reject(place, "duplicate", self.ids[earlier])
        for place, others in found.leaks.items():
            told = sorted(f"{self.names[self.corpus[o]]} {self.ids[o]}" for o in others)
            self._reject(place, "leak", "; ".join(told))

    def score(self) -> None:
        """Set aside hate, if there is a classifier."""
        params = self.params.hate
        if params is None:
            return
        classifier = hate_filter.Classifier(params)
        left = {place for place in range(len(self.ids)) if place not in self.out}
        held: list[tuple[int, str]] = []
        for place, _, text in self._drawable(left):
            held.append((place, text))
            if len(held) == 64 * params.batch:
                self._classify(classifier, held)
        self._classify(classifier, held)
        for place, score in self.scores.items():
            if score >= params.threshold:
                told = f"{score:g} for {params.label}, threshold {params.threshold:g}"
                self._reject(place, "hate", told)

    def choose(self) -> Iterator[Reject]:
        """Choose what is in the dataset; yield what is not."""
        left: list[list[int]] = [[] for _ in self.names]
        for place, number in enumerate(self.corpus):  # places are in the order of ranks
            if place not in self.out:
                left[number].append(place)
        if empty := [name for name, places in zip(self.names, left, strict=True) if not places]:
            raise UserError(
                f"no text left of {', '.join(empty)}; look at the snapshots, at words_min, and at "
                "the threshold of hate"
            )
        for size, places in zip(self._fitted(left), left, strict=True):
            total = 0
            for place in places:
                total += self._weight(place)
                if total > size:
                    break
                self.chosen.append(place)
                self._take(place)
        yield from (self.out[place] for place in sorted(self.out))
        for key, number in sorted(self.again.items()):
            yield Reject(*key, "duplicate", "the same id and text", number)
        for key, number in sorted(self.sound.items()):
            if rest := number - self.taken[key] - self.again[key]:
                yield Reject(*key, "not sampled", number=rest)

    def drawn(self) -> Iterator[Drawn]:
        """Yield what was chosen, sorted: a part of the texts is read and sorted at a time."""
        order = sorted(self.chosen, key=lambda place: (self.corpus[place], self.ids[place]))
        start = 0
        while start < len(order):
            end, held = start, 0
            while end < len(order) and (end == start or held < HELD):
                held += self.lengths[order[end]]
                end += 1
            part = {place: i for i, place in enumerate(order[start:end])}
            rows: list[Drawn | None] = [None] * len(part)
            for place, found, text in self._drawable(set(part)):
                score = self.scores.get(place)
                rows[part[place]] = Drawn(found, text, self.words[place], score)
            yield from (row for row in rows if row is not None)
            start = end

    def _weight(self, place: int) -> int:
        return self.words[place] if self.params.unit == "words" else 1

    def _fitted(self, left: list[list[int]]) -> list[int]:
        """Return the sizes: those of the params, all smaller alike where one has too little."""
        sizes = self.sizes
        if not self.params.balance:
            return sizes
        have = [sum(map(self._weight, places)) for places in left]
        # whole numbers: the share that one corpus has of its size is taken of every size
        least, of = min(zip(have, sizes, strict=True), key=lambda pair: pair[0] / pair[1])
        return sizes if least >= of else [size * least // of for size in sizes]

    def _classify(self, classifier: hate_filter.Classifier, held: list[tuple[int, str]]) -> None:
        scores = classifier.scores([text for _, text in held])
        self.scores |= {place: score for (place, _), score in zip(held, scores, strict=True)}
        held.clear()

    def _take(self, place: int) -> None:
        self.taken[self.names[self.corpus[place]], self.outlets[place]] += 1

    def _reject(self, place: int, reason: str, detail: str) -> None:
        if place in self.out:
            return
        self._take(place)
        config = self.names[self.corpus[place]]
        self.out[place] = Reject(config, self.ids[place], reason, detail)

    def _drawable(self, places: set[int] | None = None) -> Iterator[tuple[int, Found, str]]:
        """Read all texts again; yield those that may be drawn, or those at some places, once."""
        left = None if places is None else set(places)
        if left is not None and not left:
            return
        seed = self.params.seed
        for found in self.texts(lambda own: rank(seed, own) in self.ranks):
            if found.reason:
                continue
            text = found.clean()
            key = rank(seed, found.id), found.digest(text), self.names.index(found.config)
            place = self.place.get(key)
            if place is None or (left is not None and place not in left):
                continue
            if left is not None:
                left.discard(place)
            yield place, found, text
