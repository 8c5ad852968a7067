"""Dataset ``stereotypes``: search engines' completions of queries about social groups.

As in Choenni, Shutova and van Rooij (2021, section 3), three engines complete templates such as
"why are {group} so", and their suggestions are cleaned; here, each cleaning rule is implemented in
code and sets a flag. The suggestions that the authors published are a separate config.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from pydantic import Field

from plumbline.builders.core.errors import UserError, reading
from plumbline.builders.core.params import SnapshotParams
from plumbline.builders.core.parquet import Reject, Row
from plumbline.builders.core.schema import Column, Schema
from plumbline.builders.core.snapshot import Snapshot
from plumbline.builders.datasets.social_groups.read import Query, groups, queries
from plumbline.builders.datasets.stereotypes import engines
from plumbline.builders.datasets.stereotypes.clean import Cleaning, flags, key_term
from plumbline.builders.readers.declared import read
from plumbline.builders.readers.spelling import lowered
from plumbline.builders.readers.table import decoded, parsed, records

SEARCHES = ("QUERY", "ENTITY")  # Chrome's types for suggestions that are searches
AGAIN = "fetch another snapshot"
INSIDE = str.maketrans("’‐‑'-\u200c\u200d", "'--'-\u200c\u200d")  # marks inside words
PUBLISHED_COLUMNS = ["input", "target_category", "target_group", "completion", "search_engine"]
PUBLISHED_ENGINES = ("duckduckgo", "google", "multiple", "yahoo")
PLACE = "{group}"
SOURCE = "autocomplete"
COLUMNS = (
    Column("category", "string", "kind of group: age, country, gender and so on"),
    Column(
        "group", "string", "social group, as spelled in `group` of `social_groups`", prose="name"
    ),
    Column("language", "string", "language of the query"),
    Column("template", "string", "the query with `{group}` in place of the group"),
    Column("query", "string", "query in lower case; key for joining probe outputs", prose="text"),
    Column("attribute", "string", "attribute: the engine's completion", prose="word"),
    Column(
        "single_word",
        "bool",
        "whether the attribute is one word; in `choenni2021`, whether it is in the authors' file "
        "of single words",
    ),
    Column("engines", "strings", "engines suggesting the attribute; `multiple` means at least two"),
    Column("ranks", "integers", "rank in each engine's answer, counted from 1; empty if unknown"),
    Column("wave", "string", "date of the snapshot; for published suggestions, the year"),
    Column("flags", "strings", "reasons why it is not a one-adjective stereotype; empty if none"),
    Column("source_row", "int32", "row in the published file, from 1; 0 if fetched", minimum=0),
)
SCHEMA = Schema(COLUMNS, key=("group", "query", "attribute", "source_row"))
COUNTS = ("category", "engines", "flags")  # columns tabulated in the card


class Params(SnapshotParams):
    """The snapshot, its configs, and the cleaning rules."""

    languages: list[str] = Field(
        min_length=1, description="names of the snapshot's locales, one config for each"
    )
    published: list[str] = Field(
        default_factory=list, description="names of published files, one config for each"
    )
    cleaning: dict[str, Cleaning] = Field(description="cleaning rules, for each language")

    def rules(self, language: str) -> Cleaning:
        """Return the cleaning rules for a language."""
        if language not in self.cleaning:
            raise UserError(
                f"params.yaml, datasets.stereotypes.cleaning: no rules for {language!r}; add them "
                "(lists may be empty)"
            )
        return self.cleaning[language]


def build(snapshot: Snapshot, params: Params) -> Iterator[Row | Reject]:
    """Yield one row per completed query and attribute, sorted, listing the engines that suggest it.

    Rejects are suggestions that rewrite the query, add nothing to it, are not searches, or repeat
    another suggestion of the same engine.
    """
    for name in params.languages:
        yield from _wave(snapshot, params, name)
    for name in params.published:
        yield from _published(snapshot, params, name)


def queries_of(snapshot: Snapshot, name: str) -> dict[str, Query]:
    """Return a snapshot's queries for a locale, keyed by their text."""
    request = snapshot.manifest["request"]
    if name not in request["locales"]:
        raise UserError(
            f"{snapshot.folder}: no locale {name!r}; name another under "
            "datasets.stereotypes.languages, or fetch this locale"
        )
    language = request["locales"][name]["language"]
    file = f"groups/{language}.csv"
    with reading(snapshot.folder / file, "fetch another snapshot"):
        entries = groups(snapshot.read(file))
    return queries(entries, request["templates"][language], request["spelling"], language)


def _row(config: str, *values: Any) -> Row:
    """Return a row from the values of all columns, in order."""
    return Row(config, dict(zip((c.name for c in SCHEMA.columns), values, strict=True)))


def _wave(snapshot: Snapshot, params: Params, name: str) -> Iterator[Row | Reject]:
    queries_by_text = queries_of(snapshot, name)
    request, wave = snapshot.manifest["request"], snapshot.manifest["retrieved"]
    language = request["locales"][name]["language"]
    rules = params.rules(language)
    completions: dict[tuple[str, ...], dict[str, int]] = defaultdict(dict)
    for engine, about in sorted(request["engines"].items()):
        if f"{engine}/{name}" in request.get("absent", {}):
            continue
        for line in _answers(snapshot, f"answers/{engine}/{name}.jsonl.gz", queries_by_text):
            query = queries_by_text[line["query"]]
            with reading(f"{snapshot.folder}: the answer to {line['query']!r}", AGAIN):
                suggestions = engines.read(about["format"], line["body"], line["query"])
            for suggestion in suggestions:
                reason, attribute = _completion(suggestion, query, language)
                term, attribute = key_term(attribute, rules)
                template, text = (f"{t} {term}".rstrip() for t in (query.template, query.text))
                key = (query.category, query.group, text, attribute, template, term)
                if reason or engine in completions.get(key, ()):
                    key_of_reject = f"{engine}: {query.text}"
                    yield Reject(name, key_of_reject, reason or "a second time", suggestion.text)
                else:
                    completions[key][engine] = suggestion.rank
    for (category, group, text, attribute, template, term), ranks in sorted(completions.items()):
        reasons, by = flags(attribute, rules, term), sorted(ranks)
        places = [ranks[engine] for engine in by]
        query_of = (category, group, language, template, text, attribute)
        yield _row(name, *query_of, "multi_word" not in reasons, by, places, wave, reasons, 0)


def _completion(
    suggestion: engines.Suggestion, query: Query, language: str = ""
) -> tuple[str, str]:
    """Return the reason why a suggestion does not complete the query, or the completion.

    A suggestion completes the query if it contains the group and the template as complete words;
    as in the paper, these may be anywhere.
    """
    text = lowered(unicodedata.normalize("NFC", suggestion.text), language)
    text = " ".join(text.split()).rstrip("?").rstrip()
    if suggestion.kind not in SEARCHES:
        return "not a search", ""
    if text == query.text:
        return "nothing added", ""
    if text.startswith(f"{query.text} "):
        return "", text.removeprefix(f"{query.text} ")
    before, _, behind = query.template.lower().partition("{group}")
    group = query.text.removeprefix(before).removesuffix(behind)
    parts = query.template.lower().split()
    last = next((part for part in reversed(parts) if "{group}" not in part), "")
    _, matched, ending = f" {text}".partition(f" {last} ")
    words = (_words(part.replace("{group}", group)) for part in parts)
    if not (matched and all(word in _words(text) for word in words)):
        return "prompt rewritten", ""
    return "", ending


def _words(text: str) -> str:
    """Return a text's words, separated by spaces; hyphens and possessives are part of a word."""
    text = text.translate(INSIDE)
    letters = (c if unicodedata.category(c)[0] in "LMN" or ord(c) in INSIDE else " " for c in text)
    return " ".join(["", *"".join(letters).split(), ""])


def _answers(
    snapshot: Snapshot, file: str, queries_by_text: Mapping[str, Query]
) -> Iterator[dict[str, Any]]:
    with reading(snapshot.folder / file, AGAIN):
        lines = [parsed(line) for line in snapshot.read(file).split(b"\n")[:-1]]
        if not all(isinstance(line, dict) and isinstance(line.get("body"), str) for line in lines):
            raise ValueError("has a line without the body of an answer")
        if [line.get("query") for line in lines] != list(queries_by_text):
            raise ValueError("does not have one answer for each query")
        yield from lines


def _published(snapshot: Snapshot, params: Params, name: str) -> Iterator[Row]:
    about = snapshot.manifest["request"]["published"].get(name)
    if about is None:
        raise UserError(
            f"{snapshot.folder}: no published suggestions named {name!r}; remove the name from "
            "datasets.stereotypes.published, or fetch a snapshot that contains them"
        )
    rows = list(read(snapshot, f"published/{name}.csv", published, AGAIN))
    selected = single = {row.number for row in rows if " " not in row.attribute}
    if about["single_words"]:
        file = f"published/{name}.single_words.csv"
        selected = chosen(rows, list(read(snapshot, file, published, AGAIN)))
    language, rules = about["language"], params.rules(about["language"])
    seen: set[tuple[str, str, str]] = set()
    for row in sorted(rows, key=lambda r: (r.category, r.group, r.query, r.attribute, r.number)):
        completion = (row.query, row.group, row.attribute)
        reasons = flags(row.attribute, rules, "" if row.template.endswith(" so") else "so")
        reasons += ["left_out"] if row.number in single - selected else []
        reasons += ["repeated"] if completion in seen else []
        seen.add(completion)
        query = (row.category, row.group, language, row.template, row.query.lower(), row.attribute)
        by: list[Any] = [[row.engine], [], about["wave"], sorted(reasons), row.number]
        yield _row(name, *query, row.number in selected, *by)


class Published(NamedTuple):
    """One row of the file, with its fields stripped."""

    number: int  # row in the file, from 1
    query: str
    category: str
    group: str
    attribute: str
    engine: str

    @property
    def template(self) -> str:
        """Return the query with a placeholder for the group."""
        return re.sub(rf"(?<!\w){re.escape(self.group)}(?!\w)", PLACE, self.query, count=1)


def published(body: bytes) -> list[Published]:
    """Return the rows of a file in the authors' format."""
    rows = []
    columns = {name: name for name in PUBLISHED_COLUMNS}
    lines = records(decoded(body, complete=True), columns, "\t")
    for number, (_, fields) in enumerate(lines, start=1):
        row = Published(number, *(" ".join(field.split()) for field in fields.values()))
        if not all(row):
            raise ValueError(f"row {number} has an empty field")
        if row.engine not in PUBLISHED_ENGINES:
            raise ValueError(f"row {number}: unknown engine {row.engine!r}")
        if PLACE not in row.template:
            raise ValueError(f"row {number}: {row.group!r} is not in its query")
        rows.append(row)
    if not rows:
        raise ValueError("the file has no rows")
    return rows


def chosen(rows: list[Published], single: list[Published]) -> set[int]:
    """Return the numbers of the rows that are also in a second file, which lists single words.

    Each row of the second file matches one row of the first: from the same engine if possible, else
    the first unmatched one.
    """
    numbers: set[int] = set()
    for end in (None, 5):  # rows are compared first with the engine, then without
        # rows of the second file that were already matched are excluded
        unmatched = Counter(row[1:end] for row in single)
        unmatched.subtract(row[1:end] for row in rows if row.number in numbers)
        for row in rows:
            if row.number not in numbers and unmatched[row[1:end]] > 0:
                unmatched[row[1:end]] -= 1
                numbers.add(row.number)
    return numbers
