"""Suggestions from search engines: completions of queries about social groups.

One fetch gives one snapshot: every query (each group in each template) is sent to every engine in
every locale, one request at a time. A snapshot contains

- ``answers/ENGINE/LOCALE.jsonl.gz``: a line for each query with the body as sent, its time,
  its media type, and the encoding that restores its bytes;
- ``groups/LANGUAGE.csv``: the groups;
- ``published/NAME.csv`` and ``NAME.single_words.csv``: published suggestions.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable
from datetime import UTC, date, datetime
from functools import partial
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import quote_plus

from pydantic import AfterValidator, Field, model_validator

from plumbline.builders.core.errors import Bar, UserError, reading
from plumbline.builders.core.params import Params as Section
from plumbline.builders.core.snapshot import whole as whole_of
from plumbline.builders.core.snapshot import write_bytes, write_gzip
from plumbline.builders.datasets.social_groups.fetch import MISSING
from plumbline.builders.datasets.social_groups.read import groups, queries
from plumbline.builders.datasets.stereotypes import engines
from plumbline.builders.datasets.stereotypes.build import published
from plumbline.builders.fetch.files import Fetch, fillable
from plumbline.builders.fetch.http import ADDRESS, Busy, Politeness, mirror_of, patiently, receive
from plumbline.builders.readers.table import parsed

CITATION = (
    "the engines' suggestions of that day; method: Choenni, Shutova and van Rooij (2021), "
    "Stepmothers are mean and academics are pretentious: What do pretrained language models learn "
    "about you?, EMNLP, https://doi.org/10.18653/v1/2021.emnlp-main.111"
)
LICENCE = "suggestions: facts about each engine, under its terms of use"
THROTTLING = (403,)  # HTTP statuses with which engines temporarily block suspected robots
UNFINISHED = ".answers"  # folder with one file per answer, until all have arrived
NAME = r"^[A-Za-z0-9_-]+$"
Key = Annotated[str, Field(pattern=NAME)]


class Engine(Section):
    """Address and answer format of an engine."""

    address: Annotated[str, AfterValidator(fillable("query", "hl", "gl", "kl"))] = Field(
        pattern=rf"{ADDRESS}.*\{{query\}}",
        description="address with {query}, and {hl}, {gl} or {kl} for the locale",
    )
    format: Literal["firefox", "chrome", "gossip", "phrases", "list"] = Field(
        description="format of the answers: Google's firefox or chrome, Yahoo's gossip, "
        "DuckDuckGo's phrases or list"
    )


class Locale(Section):
    """A language and a country, in the notation of each engine."""

    language: str = Field(pattern=NAME, description="language of templates and groups")
    hl: str = Field("", description="Google's language of the interface, e.g. en")
    gl: str = Field("", description="Google's country, e.g. us")
    kl: str = Field("", description="DuckDuckGo's region, e.g. us-en")


class Others(Section):
    """Published suggestions collected by others."""

    address: str = Field(pattern=ADDRESS, description="file in the authors' format")
    single_words: str = Field(
        "",
        pattern=rf"^$|{ADDRESS}",
        description="address of the file of rows that the authors retained as single words, or "
        "empty",
    )
    language: str = Field(pattern=NAME, description="language of the suggestions")
    wave: str = Field(description="time of collection, e.g. the year")
    licence: str = Field(description="licence of the files")
    citation: str = Field(description="reference to cite for the files")


class Params(Section):
    """Engines, locales, groups and templates of a snapshot."""

    groups: dict[Key, str] = Field(
        min_length=1, description="for each language, a file in the checkout or an http address"
    )
    templates: dict[str, dict[Literal["people", "country"], list[str]]] = Field(
        min_length=1, description="for each language and kind of group, templates with {group}"
    )
    spelling: Literal["paper", "usual"] = Field(
        "paper", description="spelling of groups in queries: the paper's, or the usual one"
    )
    engines: dict[Key, Engine] = Field(min_length=1, description="by name")
    locales: dict[Key, Locale] = Field(
        min_length=1, description="by name; each name is also that of a config"
    )
    published: dict[Key, Others] = Field(
        default_factory=dict, description="by name; each name is also that of a config"
    )
    pause_s: float = Field(1, ge=0, description="pause between two requests, in seconds")
    absent: list[str] = Field(
        default_factory=list,
        description="unavailable engines; the snapshot is completed without them, as its manifest "
        "states",
    )
    empty_in_a_row: int = Field(
        50, ge=2, description="number of consecutive empty answers that counts as a refusal"
    )

    @model_validator(mode="after")
    def _fit(self) -> Params:
        if not set(self.absent) < set(self.engines):
            raise ValueError("absent: must list some of the engines, not all")
        if shared := set(self.locales) & set(self.published):
            raise ValueError(f"{', '.join(sorted(shared))}: under both locales and published")
        for name, locale in self.locales.items():
            if locale.language not in self.groups or locale.language not in self.templates:
                raise ValueError(f"{name}: no groups or no templates for {locale.language!r}")
        for language, kinds in self.templates.items():
            for template in (t for texts in kinds.values() for t in texts):
                if template.count("{group}") != 1:
                    raise ValueError(f"{language}: {template!r} must contain {{group}} once")
        return self


def fetch(
    params: Params,
    politeness: Politeness,
    into: Path,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> None:
    """Fetch a snapshot into a folder named after its date.

    A fetch is resumable: saved responses are not requested again, and the manifest is written last.
    An engine that throttles is skipped; the next call continues with it.

    ``now``: function that returns the time, which is stored with each response.
    """
    try:
        date.fromisoformat(into.name)
    except ValueError as error:
        raise UserError(f"{into}: a snapshot must be named after its date, YYYY-MM-DD") from error
    pace = frozenset({"pause_s", "absent", "empty_in_a_row"})  # may change during a fetch
    fetch = Fetch("autocomplete", params, politeness, into, exclude=pace)
    _read_files(fetch, params)
    wave = {name: _queries(params, locale, into) for name, locale in params.locales.items()}
    stopped = []
    absent = {f"{e}/{locale}": "given up" for e in sorted(params.absent) for locale in wave}
    for engine in params.absent:
        shutil.rmtree(into / "answers" / engine, ignore_errors=True)
    present = sorted(set(params.engines) - set(params.absent))
    for engine, locale in product(present, sorted(params.locales)):
        folder = into / UNFINISHED / engine / locale
        answers = into / "answers" / engine / f"{locale}.jsonl.gz"
        ask = partial(_ask, params.engines[engine], params.locales[locale], fetch.politeness)
        try:
            if not answers.exists():
                pause = 0 if mirror_of(politeness) else params.pause_s
                _finish(folder, answers, wave[locale], ask, now, params, pause)
        except UserError as problem:
            done = f"{len(list(folder.glob('*.json')))} of {len(wave[locale])}"
            stopped.append(f"{engine}/{locale}, {done}: {problem}")
    if stopped:
        raise UserError(
            f"{into}: incomplete ({'; '.join(stopped)}); run the command again, or skip an engine "
            "by listing it under sources.autocomplete.absent"
        )
    files = [into / "answers" / e / f"{locale}.jsonl.gz" for e, locale in product(present, wave)]
    lines = (line for file in files for line in whole_of(file).splitlines())
    with reading(into / "answers", "remove the folder and fetch again"):
        times = sorted(parsed(line)["retrieved"] for line in lines)
    number = sum(map(len, wave.values()))
    named = sorted(params.published.items())
    shutil.rmtree(into / UNFINISHED, ignore_errors=True)
    fetch.close(
        "each engine's own, under request",
        "; ".join([LICENCE, *(f"{name}: {o.licence}" for name, o in named)]),
        "; ".join([CITATION, *(f"{name}: {o.citation}" for name, o in named)]),
        {"queries": number, "answers": len(times)},
        answered={"first": times[0], "last": times[-1]},
        absent=absent,
    )


def _read_files(fetch: Fetch, params: Params) -> None:
    """Fetch the groups and the published suggestions."""
    for language, source in sorted(params.groups.items()):
        fetch.read({f"groups/{language}.csv": source}, groups, MISSING)
    for name, others in sorted(params.published.items()):
        for end, address in (("", others.address), (".single_words", others.single_words)):
            if address:
                fetch.read({f"published/{name}{end}.csv": address}, published)


def _queries(params: Params, locale: Locale, into: Path) -> list[str]:
    entries = groups((into / "groups" / f"{locale.language}.csv").read_bytes())
    templates = {str(kind): texts for kind, texts in params.templates[locale.language].items()}
    return list(queries(entries, templates, params.spelling, locale.language))


def _ask(
    engine: Engine, locale: Locale, politeness: Politeness, query: str
) -> tuple[dict[str, Any], bool]:
    """Return the answer to a query, and True if it contains a suggestion."""
    filled = {"query": query, "hl": locale.hl, "gl": locale.gl, "kl": locale.kl}
    address = engine.address.format(**{name: quote_plus(text) for name, text in filled.items()})

    def ask() -> tuple[dict[str, Any], bool]:
        body, kind = receive(address, politeness, THROTTLING)
        code = engines.encoding(body, kind)
        text = body.decode(code)
        try:
            listed = engines.read(engine.format, text, query)
        except ValueError as error:
            raise Busy(f"answered {error}") from error
        return {"query": query, "body": text, "encoding": code, "type": kind}, bool(listed)

    return patiently(ask, address, politeness)


def _finish(
    folder: Path,
    answers_file: Path,
    queries: list[str],
    ask: Callable[[str], tuple[dict[str, Any], bool]],
    now: Callable[[], datetime],
    params: Params,
    pause_s: float,
) -> None:
    """Send the unanswered queries, then write all answers into one file, in order.

    Many consecutive answers without a suggestion indicate a refusal: they are removed, and the next
    call requests them again.
    """
    files = [folder / f"{number:05d}.json" for number in range(len(queries))]
    todo = [pair for pair in zip(queries, files, strict=True) if not pair[1].exists()]
    empty: list[Path] = []
    for query, file in Bar(todo, desc="/".join(folder.parts[-2:]), unit="query"):
        answer, has_suggestion = ask(query)
        answer["retrieved"] = now().strftime("%Y-%m-%dT%H:%M:%SZ")
        write_bytes(file, f"{json.dumps(answer, ensure_ascii=False, sort_keys=True)}\n".encode())
        empty = [] if has_suggestion else [*empty, file]
        if len(empty) >= params.empty_in_a_row:
            for refused in empty:
                refused.unlink()
            raise UserError(
                f"{len(empty)} consecutive answers have no suggestion, as if refused; if there "
                "really are none, raise sources.autocomplete.empty_in_a_row"
            )
        time.sleep(pause_s)
    write_gzip(answers_file, b"".join(file.read_bytes() for file in files))
