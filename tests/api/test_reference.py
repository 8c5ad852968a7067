"""Published estimates for public models, and the ten models of ``make reference``."""

from pathlib import Path

import polars as pl
import pytest
import yaml
from imports import TOP

import plumbline
from plumbline.builders.core.errors import UserError
from plumbline.console import main
from plumbline.probes.commands.params_overlay import check_with

KNOWN = {
    entry["id"]
    for page in [TOP / "params/full.yaml", *(TOP / "docs/studies").glob("*-models.yaml")]
    for entry in yaml.safe_load(page.read_text("utf-8"))["models"].values()
    if "id" in entry
}


@pytest.mark.parametrize(
    ("study", "model", "what", "value"),
    [  # copied from the papers
        ("nationality", "cardiffnlp/twitter-xlm-roberta-base-sentiment", "United Kingdom", -1.43),
        ("nationality", "cardiffnlp/twitter-roberta-base-emotion", "Morocco, anger", 60.3),
        ("nationality", "cardiffnlp/twitter-roberta-base-hate", "hate", 22.31),  # of Maori
        ("nationality", "cardiffnlp/twitter-xlm-roberta-base-sentiment", "neutral", 25.54),  # Hindi
        ("nationality", "cardiffnlp/twitter-roberta-base-emotion", "Ireland, joy", 8.77),
        ("nationality", "cardiffnlp/twitter-roberta-base-offensive", "Overall, offensive", 2.38),
        ("stereotypes", "google-bert/bert-base-uncased", "political, NewYorker", -0.72),
        ("stereotypes", "FacebookAI/xlm-roberta-base", "political, BreitBart", -0.51),
        ("politicians", "BERT (monolingual, base)", "male, negative", 0.374),  # .390 - .016
        ("politicians", "XLM-RoBERTa (multilingual, base)", "female, positive", 0.376),
        ("leaning", "FacebookAI/roberta-base", "social-right, White", 82.12),
        ("leaning", "FacebookAI/roberta-base", "social-left, Breitbart", 69.57),
        ("values", "ufal/robeczech-base", "masculine", 0.63),
    ],
)
def test_published_numbers_of_the_papers(study, model, what, value):
    rows = plumbline.published(study).filter(model=model, what=what)
    assert value in rows["value"].to_list()


def test_published_tables_are_complete():
    rows = plumbline.published()
    number = dict(rows.group_by("source").len().iter_rows())
    assert number == {
        "Al Ali and Libovický 2024, section 3.1": 2,
        "Barriere and Cifuentes 2024, Table 1": 15 * 12,
        "Barriere and Cifuentes 2024, Table 2": 4 * 3,
        "Barriere and Cifuentes 2024, Table 3": 16 * 3,
        "Barriere and Cifuentes 2024, Table 4": 8 * 3,
        "Barriere and Cifuentes 2024, Table 5": 18 * 9,
        "Choenni et al. 2021, Table 4": 5 * 5 * 9,
        "Feng et al. 2023, Table 12": 2 * 2 * 4 * 10,
        "Stańczak et al. 2023, Tab 5": 5 * 6,
        "Stańczak et al. 2023, Tab 8": 3 * 6,
    }
    assert rows.null_count().sum_horizontal().item() == 0
    assert {m for m in rows["model"] if "/" in m} <= KNOWN


def test_published_nationality_cells_printed_twice_are_equal():
    rows = plumbline.published("nationality")
    cells = rows.group_by("model", "language", "measure", "what").agg("value", "source")
    repeated = cells.filter(pl.col("source").list.n_unique() > 1)
    assert len(rows) - len(cells) == len(repeated) == 9 + 48  # of Table 2, and all of Table 3
    assert set(repeated["value"].list.n_unique()) == {1}


def test_published_study_without_numbers(capsys):
    with pytest.raises(UserError, match="reliability"):
        plumbline.published("reliability")
    assert main(["ls", "published"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == len(plumbline.published())


def test_reference_models_are_pinned(monkeypatch):
    monkeypatch.chdir(TOP)
    path = Path("params/reference.yaml")
    check_with(path, "2026-11-22", fetched=False)
    models = yaml.safe_load(path.read_text("utf-8"))["models"]
    assert len(models) == 10
    assert {entry["id"] for entry in models.values()} <= KNOWN
    assert all(len(entry["revision"]) == 40 for entry in models.values())
