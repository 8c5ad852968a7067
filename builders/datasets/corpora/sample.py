"""Drawing corpora from a stream of texts, cleared of near-duplicates, leaks and hate.

The stream is read several times. What is held in memory is about what may be drawn, never a text
for longer than it is looked at, so that memory does not grow with the stream.
"""

from __future__ import annotations

from array import array
from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from itertools import accumulate, islice
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

    ``limit``: the item with which the sum of weights reaches it is the last one held.
    """

    def __init__(self, limit: float) -> None:
        self.limit = limit
        self._flat = array("Q")  # rank, digest and weight of one item after the other
        self._full = LEAST

    def add(self, rank: int, digest: int, weight: int) -> None:
        """Hold an item, if its rank is small enough."""
        self._flat.extend((rank, digest, weight))
        if len(self._flat) >= 3 * self._full:
            self._full = max(LEAST, 2 * len(self._cut()))

    def items(self) -> NDArray[np.uint64]:
        """Return ranks and digests of the items held, sorted; (2, items)."""
        return self._cut()[:, :2].T

    def _cut(self) -> NDArray[np.uint64]:
        rows = np.array(self._flat, dtype=np.uint64).reshape(-1, 3)
        rows = rows[np.lexsort((rows[:, 1], rows[:, 0]))]
        rows = rows[np.cumsum(rows[:, 2]) - rows[:, 2] < self.limit]
        self._flat = array("Q", rows.tobytes())
        return rows


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


Drawn = tuple[Found, str, int, float | None]  # with its clean text, words and score of hate


@dataclass(slots=True)
class _Candidate:
    """A text that may be drawn; all but its corpus is known when it is read again."""

    corpus: str
    id: str = ""
    outlet: str = ""
    words: int = 0
    length: int = 0
    score: float | None = None
    reject: Reject | None = None
    chosen: bool = False


def draw(texts: Texts, params: Params) -> Iterator[Drawn | Reject]:
    """Yield the texts drawn, sorted by corpus and id, and before them what is left out.

    Of each corpus the texts of smallest rank are drawn, a hash of seed and id: the draw does not
    depend on the order of the stream. Near-duplicates, leaks and hate are looked for among those
    that may be drawn.

    ``texts``: reads all texts, but need only yield those whose id passes a test.
    """
    drawing = _Drawing(texts, params)
    yield from drawing.first()
    drawing.compare(drawing.sign())
    if params.hate is not None:
        drawing.score(params.hate)
    drawing.choose()
    yield from drawing.rejects()
    yield from drawing.drawn()


class _Drawing:
    """The texts that may be drawn, in the order of their ranks."""

    def __init__(self, texts: Texts, params: Params) -> None:
        self.texts, self.params = texts, params
        self.sound: Counter[tuple[str, str]] = Counter()  # by corpus and outlet
        self.again: Counter[tuple[str, str]] = Counter()  # of those, an id and text once more
        self.place: dict[tuple[int, int, str], int] = {}  # by rank, digest of the text, and corpus
        self.held: list[_Candidate] = []

    def first(self) -> Iterator[Reject]:
        """Find what may be drawn; yield counts of what cannot be taken."""
        params = self.params
        pools = {config: Pool(params.sizes[config] * params.oversample) for config in CONFIGS}
        out: Counter[tuple[str, str, str]] = Counter()
        for found in self.texts(bool):
            text = "" if found.reason else found.clean()
            words = len(text.split())
            short = words < getattr(params.words_min, found.config.partition("-")[0], 0)
            if reason := found.reason or ("too short" if short else ""):
                out[found.config, found.outlet, reason] += 1
                continue
            self.sound[found.config, found.outlet] += 1
            weight = words if params.unit == "words" else 1
            pools[found.config].add(rank(params.seed, found.id), found.digest(text), weight)
        for (config, outlet, reason), number in sorted(out.items()):
            yield Reject(config, outlet, reason, number=number)
        keys = {
            (own, digest, config)
            for config, pool in pools.items()
            for own, digest in pool.items().T.tolist()
        }
        ordered = sorted(keys, key=lambda key: (*key[:2], CONFIGS.index(key[2])))
        self.place = {key: place for place, key in enumerate(ordered)}
        self.held = [_Candidate(config) for _, _, config in ordered]

    def sign(self) -> NDArray[np.uint32]:
        """Return signatures of the texts; set aside what has an id that was there before."""
        signer = near_duplicates.Signer(self.params.near)
        size = (len(self.held), self.params.near.permutations)
        signatures = np.zeros(size, dtype=np.uint32)
        for place, found, text in self._again():
            own = self.held[place]
            if own.id:
                self.again[found.config, found.outlet] += 1
                continue
            own.id, own.outlet = found.id, found.outlet
            own.words, own.length = len(text.split()), len(text)
            signatures[place] = signer.sign(text)
        seen: dict[str, _Candidate] = {}
        for own in self.held:
            first = seen.setdefault(own.id, own)
            if first.corpus != own.corpus:
                _reject(own, "leak", f"{first.corpus} {own.id}")
                _reject(first, "leak", f"{own.corpus} {own.id}")
            elif first is not own:
                _reject(own, "duplicate", f"{own.id} with another text, outlet or date")
        return signatures

    def compare(self, signatures: NDArray[np.uint32]) -> None:
        """Set aside near-duplicates and leaks."""
        params, held = self.params.near, self.held
        buckets = near_duplicates.buckets(signatures, params.threshold)
        del signatures  # as large as all that is held
        suspects = {place for place in buckets if held[place].reject is None}
        sets = {
            place: near_duplicates.shingles(text, params.words)
            for place, _, text in self._again(suspects)
        }
        corpus = [CONFIGS.index(own.corpus) for own in held]
        found = near_duplicates.compare(sorted(suspects), corpus, buckets, sets, params.threshold)
        for place, earlier in found.same.items():
            _reject(held[place], "duplicate", held[earlier].id)
        for place, others in found.leaks.items():
            told = sorted(f"{held[other].corpus} {held[other].id}" for other in others)
            _reject(held[place], "leak", "; ".join(told))

    def score(self, params: hate_filter.Params) -> None:
        """Set aside hate."""
        classifier = hate_filter.Classifier(params)
        texts = self._again({p for p, own in enumerate(self.held) if own.reject is None})
        while part := list(islice(texts, 64 * params.batch)):
            scores = classifier.scores([text for _, _, text in part])
            for (place, _, _), score in zip(part, scores, strict=True):
                self.held[place].score = score
                if score >= params.threshold:
                    told = f"{score:g} for {params.label}, threshold {params.threshold:g}"
                    _reject(self.held[place], "hate", told)

    def choose(self) -> None:
        """Choose of each corpus what is first in rank, as much as its size."""
        left: dict[str, list[_Candidate]] = {config: [] for config in CONFIGS}
        for own in self.held:
            if own.reject is None:
                left[own.corpus].append(own)
        if empty := [config for config, texts in left.items() if not texts]:
            raise UserError(
                f"no text left of {', '.join(empty)}; look at the snapshots, at words_min, and at "
                "the threshold of hate"
            )
        words = self.params.unit == "words"
        sizes = {config: self.params.sizes[config] for config in CONFIGS}
        if self.params.balance:  # all smaller alike where one has too little
            have = {
                c: sum(t.words for t in texts) if words else len(texts) for c, texts in left.items()
            }
            # whole numbers: the share that one corpus has of its size is taken of every size
            least = min(CONFIGS, key=lambda config: have[config] / sizes[config])
            if (part := have[least]) < (whole := sizes[least]):
                sizes = {config: size * part // whole for config, size in sizes.items()}
        for config, texts in left.items():
            sums = accumulate(one.words if words else 1 for one in texts)
            for one, total in zip(texts, sums, strict=True):
                if total > sizes[config]:
                    break
                one.chosen = True

    def rejects(self) -> Iterator[Reject]:
        """Yield what is not in the dataset."""
        yield from (own.reject for own in self.held if own.reject is not None)
        for key, number in sorted(self.again.items()):
            yield Reject(*key, "duplicate", "the same id and text", number)
        done = Counter((o.corpus, o.outlet) for o in self.held if o.chosen or o.reject is not None)
        for key, number in sorted((self.sound - done - self.again).items()):
            yield Reject(*key, "not sampled", number=number)

    def drawn(self) -> Iterator[Drawn]:
        """Yield what was chosen, sorted: a part of the texts is read and sorted at a time."""
        held = self.held
        chosen = (place for place, own in enumerate(held) if own.chosen)
        order = deque(sorted(chosen, key=lambda p: (CONFIGS.index(held[p].corpus), held[p].id)))
        while order:
            room = HELD
            part: list[int] = []
            while order and room > 0:
                part.append(order.popleft())
                room -= held[part[-1]].length
            found = {place: (one, text) for place, one, text in self._again(set(part))}
            for place in part:
                yield (*found[place], held[place].words, held[place].score)

    def _again(self, places: set[int] | None = None) -> Iterator[tuple[int, Found, str]]:
        """Read all texts again; yield those that may be drawn, or those at some places, once."""
        if places is not None and not places:
            return
        left, ranks, seed = places and set(places), {key[0] for key in self.place}, self.params.seed
        for found in self.texts(lambda own: rank(seed, own) in ranks):
            if found.reason:
                continue
            text = found.clean()
            place = self.place.get((rank(seed, found.id), found.digest(text), found.config))
            if place is not None and (left is None or place in left):
                if left is not None:
                    left.discard(place)
                yield place, found, text


def _reject(own: _Candidate, reason: str, detail: str) -> None:
    own.reject = own.reject or Reject(own.corpus, own.id, reason, detail)
