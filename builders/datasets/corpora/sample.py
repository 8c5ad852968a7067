"""Sample corpora from a stream of texts, excluding near-duplicates, leaks and hate.

Only candidates for the sample are held in memory, so memory use does not grow with the stream.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import date
from itertools import accumulate
from operator import itemgetter
from typing import Literal

from pydantic import Field, field_validator

from plumbline.builders.core.params import DatasetParams
from plumbline.builders.core.params import Params as Section
from plumbline.builders.core.parquet import Reject
from plumbline.builders.core.snapshot import hash64
from plumbline.builders.datasets.corpora import hate_filter, near_duplicates
from plumbline.builders.readers.articles import paragraphs

KINDS, LEANINGS = ("news", "social"), ("left", "center", "right")
CONFIGS = tuple(f"{kind}-{leaning}" for kind in KINDS for leaning in LEANINGS)
LEAST = 4096  # number of items in a pool before it is reduced for the first time


def rank(seed: int, name: str) -> int:
    """Return the rank of an item in the random order."""
    return hash64(f"{seed}/{name}")


@dataclass
class Candidate:
    """A cleaned text from a source."""

    config: str
    id: str
    outlet: str
    when: date | None
    text: str
    reason: str = ""  # reason for exclusion from the sample
    score: float | None = None  # probability of hate
    reject: Reject | None = None
    words: int = field(init=False)

    def __post_init__(self) -> None:
        self.words = len(self.text.split())

    def leave_out(self, reason: str, detail: str) -> None:
        """Reject the text unless it is already rejected."""
        self.reject = self.reject or Reject(self.config, self.id, reason, detail)


class Pool:
    """The candidates with the smallest keys, up to a maximum total weight, in bounded memory.

    ``limit``: maximum total weight; the candidate that reaches it is the last one retained.
    """

    def __init__(self, limit: float) -> None:
        self.limit, self._full = limit, LEAST
        self._rows: list[tuple[tuple[int, int], int, Candidate]] = []  # key, weight, candidate

    def add(self, key: tuple[int, int], weight: int, candidate: Candidate) -> None:
        """Retain a candidate if its key (rank and digest) is small enough."""
        self._rows.append((key, weight, candidate))
        if len(self._rows) >= self._full:
            self._full = max(LEAST, 5 * len(self.items()) // 4)

    def items(self) -> list[tuple[tuple[int, int], Candidate]]:
        """Return the keys and candidates of the retained items, sorted by key."""
        self._rows.sort(key=itemgetter(0))
        sums = accumulate(weight for _, weight, _ in self._rows)
        rows = zip(self._rows, sums, strict=True)
        self._rows = [row for row, total in rows if total - row[1] < self.limit]
        return [(key, candidate) for key, _, candidate in self._rows]


class Snapshots(Section):
    """The snapshots to build from."""

    news: str = Field(description="folder of the snapshot of articles")
    reddit: str = Field(description="folder of the snapshot of posts")


class Params(DatasetParams):
    """Snapshots and sampling parameters."""

    snapshots: Snapshots = Field(description="one snapshot of each source")
    language: str = Field("en", description="language of the articles in the snapshot")
    sizes: dict[str, int] = Field(description="size of each corpus, in words or texts (see `unit`)")
    unit: Literal["words", "texts"] = Field("words", description="unit of the sizes")
    balance: bool = Field(
        True,
        description="whether all corpora are reduced in proportion if one has too few texts; "
        "otherwise only that one is smaller",
    )
    oversample: float = Field(
        1.5, ge=1, description="number of candidates to check, as a multiple of the corpus size"
    )
    words_min: dict[Literal["news", "social"], int] = Field(
        {"news": 20, "social": 10}, description="minimum word count of an article and of a post"
    )
    hate: hate_filter.Params | None = Field(
        None, description="the hate classifier; if null, texts are not filtered"
    )
    seed: int = Field(1, description="random seed")

    @field_validator("sizes")
    @classmethod
    def _six(cls, sizes: dict[str, int]) -> dict[str, int]:
        if set(sizes) != set(CONFIGS) or min(sizes.values()) < 1:
            raise ValueError(f"give a size of 1 or more for each of {', '.join(CONFIGS)}")
        return sizes

    def required_configs(self) -> list[str]:
        """Return the names of all six corpora."""
        return list(self.sizes)

    def weight(self, candidate: Candidate) -> int:
        """Return the size of a text in the unit of the corpus sizes."""
        return candidate.words if self.unit == "words" else 1


def clean(text: str) -> str:
    """Return a text in NFC, with one paragraph per line and single spaces."""
    return "\n".join(paragraphs(text.encode("utf-8", "replace").decode()))


def draw(texts: Iterable[Candidate], params: Params) -> Iterator[Candidate | Reject]:
    """Yield the rejects, then the sampled texts, sorted by corpus and id.

    For each corpus, the texts with the smallest ranks are sampled. A rank is a hash of the seed and
    the id, so that the sample does not depend on the order of the stream. Near-duplicates, leaks
    and hate are detected among the candidates.
    """
    pools = {config: Pool(params.sizes[config] * params.oversample) for config in CONFIGS}
    sound: Counter[tuple[str, str]] = Counter()  # keyed by corpus and outlet
    left_out: Counter[tuple[str, str, str]] = Counter()
    least = {str(kind): number for kind, number in params.words_min.items()}
    for text in texts:
        short = text.words < least.get(text.config.partition("-")[0], 0)
        if reason := text.reason or ("too short" if short else ""):
            left_out[text.config, text.outlet, reason] += 1
            continue
        sound[text.config, text.outlet] += 1
        digest = hash64(f"{text.outlet}\n{text.when}\n{text.text}")
        pools[text.config].add((rank(params.seed, text.id), digest), params.weight(text), text)
    for (config, outlet, reason), number in sorted(left_out.items()):
        yield Reject(config, outlet, reason, number=number)
    unique: dict[tuple[int, int, int], Candidate] = {}
    again: Counter[tuple[str, str]] = Counter()
    for index, config in enumerate(CONFIGS):
        for key, text in pools[config].items():
            again[config, text.outlet] += unique.setdefault((*key, index), text) is not text
    candidates = [unique[key] for key in sorted(unique)]
    _reject_repeated_ids(candidates)
    _reject_near_duplicates(candidates)
    if params.hate is not None:
        _reject_hate(candidates, params.hate)
    chosen = _choose(candidates, params)
    rejected = [candidate for candidate in candidates if candidate.reject]
    yield from (candidate.reject for candidate in rejected if candidate.reject)
    for pair, number in sorted((+again).items()):
        yield Reject(*pair, "duplicate", "the same id and text", number)
    done = Counter((candidate.config, candidate.outlet) for candidate in [*rejected, *chosen])
    for pair, number in sorted((sound - done - again).items()):
        yield Reject(*pair, "not sampled", number=number)
    yield from sorted(chosen, key=lambda candidate: (CONFIGS.index(candidate.config), candidate.id))


def _reject_repeated_ids(candidates: list[Candidate]) -> None:
    """Reject texts whose id is repeated; if two corpora share an id, reject both texts."""
    seen: dict[str, Candidate] = {}
    for candidate in candidates:
        first = seen.setdefault(candidate.id, candidate)
        if first.config != candidate.config:
            candidate.leave_out("leak", f"{first.config} {candidate.id}")
            first.leave_out("leak", f"{candidate.config} {candidate.id}")
        elif first is not candidate:
            candidate.leave_out("duplicate", f"{candidate.id} with another text, outlet or date")


def _reject_near_duplicates(candidates: list[Candidate]) -> None:
    """Reject near-duplicates: within a corpus the later text, across corpora both texts."""
    sound = [candidate for candidate in candidates if candidate.reject is None]
    near = near_duplicates.compare(
        [candidate.text for candidate in sound], [candidate.config for candidate in sound]
    )
    for index, earlier in near.duplicates.items():
        sound[index].leave_out("duplicate", sound[earlier].id)
    for index, matches in near.leaks.items():
        detail = "; ".join(sorted(f"{sound[match].config} {sound[match].id}" for match in matches))
        sound[index].leave_out("leak", detail)


def _reject_hate(candidates: list[Candidate], params: hate_filter.Params) -> None:
    """Score the remaining texts, and reject those that are classified as hate."""
    sound = [candidate for candidate in candidates if candidate.reject is None]
    scores = hate_filter.scores(params, [candidate.text for candidate in sound])
    for candidate, score in zip(sound, scores, strict=True):
        candidate.score = score
        if score >= params.threshold:
            candidate.leave_out(
                "hate", f"{score:g} for {params.label}, threshold {params.threshold:g}"
            )


def _choose(candidates: list[Candidate], params: Params) -> list[Candidate]:
    """Return the texts with the smallest ranks, up to the size of each corpus."""
    sound = [candidate for candidate in candidates if candidate.reject is None]
    have: Counter[str] = Counter()
    for candidate in sound:
        have[candidate.config] += params.weight(candidate)
    sizes = params.sizes
    if params.balance:  # all corpora shrink in proportion if one has too few texts
        least = min(CONFIGS, key=lambda config: have[config] / sizes[config])
        part, full = have[least], sizes[least]
        if part < full:  # sizes remain integers
            sizes = {config: size * part // full for config, size in sizes.items()}
    total: Counter[str] = Counter()
    chosen = []
    for candidate in sound:
        total[candidate.config] += params.weight(candidate)
        if total[candidate.config] <= sizes[candidate.config]:
            chosen.append(candidate)
    return chosen
