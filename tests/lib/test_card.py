"""Cards: metadata that the Hub takes, a datasheet without gaps, and warnings at the top."""

import re
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from huggingface_hub import DatasetCard
from imports import TOP

from plumbline.builders.core import front_matter, parquet
from plumbline.builders.core.errors import UserError
from plumbline.builders.core.schema import Column, Schema
from plumbline.builders.release import card, facts

# Terms of the Hub that pages use (hub-docs, repositories-licenses.md; huggingface.js, pipelines.ts)
TASKS = """
text-classification: fact-checking hate-speech-detection multi-label-classification
  sentiment-classification sentiment-scoring
token-classification: lemmatization part-of-speech word-sense-disambiguation
text-generation: language-modeling
fill-mask: masked-language-modeling
tabular-classification: tabular-multi-class-classification
feature-extraction:
"""
CREATORS = {"found", "crowdsourced", "expert-generated", "machine-generated"}
TERMS = {
    "license": {"apache-2.0", "cc0-1.0", "other"},
    "language": {"ar", "cs", "en", "es", "fr", "hi", "mul", "ru", "zh"},
    "task_categories": set(re.findall(r"^(\S+):", TASKS, re.MULTILINE)),
    "task_ids": set(re.findall(r" (\S+)", TASKS)),
    "annotations_creators": CREATORS,
    "language_creators": CREATORS,
    "source_datasets": {"original", "extended"},
}
SIZES = [
    *("n<1K", "1K<n<10K", "10K<n<100K", "100K<n<1M", "1M<n<10M", "10M<n<100M", "100M<n<1B"),
    *("1B<n<10B", "10B<n<100B", "100B<n<1T", "n>1T"),
]
PAGES = sorted((TOP / "docs/datasets").glob("*.md"))
STUDIES = [*sorted((TOP / "docs/studies").glob("*.md")), TOP / "docs/methods/reliability.md"]
DESCRIBED = [
    (page, Path("data", kind, name))
    for page in STUDIES
    for kind, cards in facts.read_page(page)[0]["cards"].items()
    for name in cards
]
SCHEMA = Schema(
    columns=(
        Column("word", "string", "a word"),
        Column("kind", "label", "its kind", labels=("noun", "verb")),
        Column("age", "int32", "how old it is", nullable=True),
        Column("forms", "strings", "its forms"),
    ),
    key=("word",),
)
PAGE = """---
pretty_name: Toys
license: other
license_name: toys-own
language: [en, fr]
tags: [toy]
content_warning: >-
  Some toys
  swear.
---

# Toys

## What

Words.

## Datasheet

**What is one row?** A word,
and all about it.

**What is it for?** Playing.

## Citation

Nobody.
"""
BROKEN = {"config": "en", "key": "c", "reason": "broken", "detail": "", "number": 3}
SOURCE = {
    "source": "shop",
    "address": "https://example.org/toys",
    "retrieved": "2026-11-21",
    "licence": "CC0-1.0",
    "citation": "the shop",
}


def write(folder, page=PAGE, configs=("en",), rejects=()):
    """Write a card beside two rows, and return its metadata and text."""
    folder.mkdir(exist_ok=True)
    frame = pl.DataFrame(
        {"word": ["a", "b"], "kind": [0, 1], "age": [1, None], "forms": [[], ["b"]]}
    )
    for config in configs:
        parquet.write_table(frame, SCHEMA.arrow(), folder / f"{config}.parquet")
    where = folder.with_name("toys.md")
    where.write_text(page, "utf-8")
    if rejects:
        table = pa.Table.from_pylist(list(rejects), schema=parquet.REJECTED.arrow())
        pq.write_table(table, folder / parquet.REJECTS)
    origin = front_matter.Origin([SOURCE], "make repro STAGE=validate@toys", "1.2.0")
    front_matter.write(folder, dict.fromkeys(configs, SCHEMA), origin)
    for name, body in card.render(folder, where).items():
        (folder / name).write_bytes(body)
    return facts.read_page(folder / "README.md")


def faults(front) -> list[str]:
    """Return the metadata of a card that are no terms of the Hub, or are missing."""
    listed = {key: v if isinstance(v, list) else [v] for key, v in front.items()}
    unknown = [v for key, terms in TERMS.items() for v in listed.get(key, ()) if v not in terms]
    missing = [key for key in ("license", "pretty_name") if key not in front]
    if front.get("license") == "other" and not front.get("license_name"):
        missing.append("license_name")
    return unknown + missing


def size(rows):
    """Return the category of a dataset of so many rows."""
    built = front_matter.Built({"en": SCHEMA}, front_matter.Origin([SOURCE], "", ""))
    known = facts.Facts(Path("toys"), Path("toys.md"), {}, "", built, {"en": rows})
    return card._front(known, adult=False)["size_categories"]


SECTIONS = ("Why", "Known limits", "Sensitive content", "Citation")  # that answer questions too


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_page_answers_every_question_in_terms_of_the_hub(page):
    front, prose = facts.read_page(page)
    answers, there = facts.answers(prose), facts.sections(prose)
    assert {question for question in answers if answers[question]} == set(facts.BY_HAND)
    assert [name for name in SECTIONS if not there.get(name)] == []
    front.pop(card.WARNING, None)
    assert faults(front) == []
    assert {"language", "task_categories", "task_ids", "annotations_creators"} <= set(front)


@pytest.mark.parametrize(("page", "folder"), DESCRIBED, ids=lambda path: path.name)
def test_read_page_outputs_and_tables_have_a_section(page, folder, monkeypatch):
    monkeypatch.chdir(TOP)
    assert facts.page_of(folder) == page.relative_to(TOP)
    front, prose = facts.read_page(page, folder / "some-model")
    front.pop(card.WARNING, None)
    assert faults(front) == []
    assert prose.startswith(f"# {folder.parent.name.capitalize()} of `{folder.name}`\n")
    assert {"Known limits", "Sensitive content", "Citation"} <= set(facts.sections(prose))
    assert "](../" not in prose
    assert "](#" not in prose
    assert "begin generated" not in prose


STUDY = """---
tables: {license: mit}
cards:
  tables:
    one: {pretty_name: One}
    two: {license: apache-2.0}
---

# A study

## one

### What

Of [two](#two) and [the Hub](https://hf.co).

### Sensitive content

None.

## two

### What

More.

## Sensitive content

Words.

## Citation

Nobody.
"""


def test_read_page_section_of_a_study(tmp_path):
    page = tmp_path / "study.md"
    page.write_text(STUDY, "utf-8")
    front, prose = facts.read_page(page, Path("data/tables/one/model"))
    assert front == {"license": "mit", "pretty_name": "One"}
    assert facts.sections(prose) == {
        "What": "Of two and [the Hub](https://hf.co).",
        "Sensitive content": "None.",
        "Citation": "Nobody.",
    }
    front, prose = facts.read_page(page, Path("data/tables/two"))
    assert front == {"license": "apache-2.0"}
    assert facts.sections(prose)["Sensitive content"] == "Words."
    with pytest.raises(UserError, match="data/tables/three"):
        facts.read_page(page, Path("data/tables/three"))
    page.write_text(STUDY.replace("## two", "## deux"), "utf-8")
    with pytest.raises(UserError, match="## two"):
        facts.read_page(page, Path("data/tables/two"))


def test_size_category_begins_at_power_of_ten():
    assert [size(0), size(999)] == [[SIZES[0]]] * 2
    assert [size(10**power)[0] for power in range(3, 13)] == SIZES[1:]
    assert size(10**13) == [SIZES[-1]]


def test_render_content_warning_and_tag(tmp_path):
    front, prose = write(tmp_path / "toys")
    lines = [line for line in prose.splitlines() if line]
    assert lines[:2] == ["# Toys", "> **Content warning.** Some toys swear."]
    assert lines[2] == "- **A row**: A word, and all about it."
    assert [line.split(":")[0] for line in lines[3:5]] == ["- **Use**", "## What"]
    assert front["tags"] == ["toy", "not-for-all-audiences"]
    assert "content_warning" not in front


@pytest.mark.parametrize(
    ("configs", "languages", "many"),
    [
        (("en",), ["en"], "monolingual"),
        (("hate-fr", "hate-en"), ["en", "fr"], "multilingual"),
        (("whole",), ["en", "fr"], "multilingual"),  # no config is named for a language
    ],
)
def test_render_languages_are_those_built(configs, languages, many, tmp_path):
    front = write(tmp_path / "toys", configs=configs)[0]
    assert (front["language"], front["multilinguality"]) == (languages, [many])


def test_render_datasheet(tmp_path):
    prose = write(tmp_path / "toys", rejects=[BROKEN])[1]
    assert prose.count("## Datasheet") == 1
    sheet = facts.sections(prose)["Datasheet"]
    assert [line[4:] for line in sheet.splitlines() if line.startswith("### ")] == [
        *("Motivation", "Composition", "Collection", "Preprocessing"),
        *("Uses", "Distribution", "Maintenance"),
    ]
    assert "- **What is one row?** A word, and all about it." in sheet
    assert "2 (en 2); 3 input rows were left out" in sheet
    assert "May be null, for the reasons given under Columns: `age`." in sheet
    assert "Retrieved 2026-11-21, see" in sheet
    assert "toys-own; each source keeps its own terms" in sheet


def test_render_other_licence_has_a_file(tmp_path):
    front = write(tmp_path / "toys")[0]
    assert front["license_link"] == "LICENSE.md"
    terms = (tmp_path / "toys/LICENSE.md").read_text("utf-8")
    assert terms.startswith("# toys-own\n")
    assert "https://example.org/toys" in terms
    free = PAGE.replace("license: other\nlicense_name: toys-own", "license: mit")
    assert "license_link" not in write(tmp_path / "free", free)[0]
    assert not (tmp_path / "free/LICENSE.md").exists()


def test_render_is_reproducible_without_clock_or_path(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        write(tmp_path / name / "toys")
    for path in (tmp_path / "one/toys").iterdir():
        body = path.read_bytes()
        assert body == (tmp_path / "two/toys" / path.name).read_bytes()
        assert str(tmp_path).encode() not in body


@pytest.mark.slow
def test_built_cards_are_read_by_huggingface_hub(built, monkeypatch):
    monkeypatch.chdir(built)
    for folder in sorted(parquet.DATASETS.iterdir()):
        front = DatasetCard(card.render(folder)["README.md"].decode()).data.to_dict()
        assert faults(front) == []
        configs = [c["config_name"] for c in front["configs"]]
        assert configs == [info["config_name"] for info in front["dataset_info"]]
        assert configs == sorted(p.stem for p in folder.glob("*.parquet") if p.stem != "rejects")
        assert sum(c.get("default", False) for c in front["configs"]) == 1
        for config in front["configs"]:
            assert all((folder / part["path"]).is_file() for part in config["data_files"])
