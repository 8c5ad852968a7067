from __future__ import annotations

import json
from pathlib import Path

import building
import polars as pl
import pytest

from plumbline.builders.core.parquet import Row
from plumbline.builders.core.snapshot import Snapshot
from plumbline.builders.datasets.supersenses import build as supersenses
from plumbline.builders.datasets.supersenses.build import ADJECTIVES, CLASSES, VERBS

REAL = building.REAL / "supersenses"
PARAMS = supersenses.Params(version="0.1.0", snapshot="x")


def line(lemma: str, **weights: float) -> str:
    rest = (1 - sum(weights.values())) / (13 - len(weights))
    given = {name.upper(): weights.get(name, rest) for name in ADJECTIVES}
    return f"{lemma}\t{max(given, key=given.__getitem__)}\t{json.dumps(given)}\n"


def synset(number: int, *members: str) -> str:
    lines = [f"{number:08d}-v:", "  definition:", "  - to do so", "  members:"]
    return "\n".join([*lines, *(f"  - {member}" for member in members), "  partOfSpeech: v", ""])


def snapshot(folder: Path, adjectives: str, **verbs: str) -> Snapshot:
    texts = {"adjectives/adjective_words.predicted": adjectives}
    for code, name in enumerate(VERBS):
        texts[f"verbs/verb.{name}.yaml"] = verbs.get(name, synset(900 + code, f"do {name}"))
    return building.snapshot(folder, "supersenses", texts)


def rows(found, lemma: str) -> dict[str, dict]:
    kept = [i.values for i in found if isinstance(i, Row) and i.values["lemma"] == lemma]
    return {CLASSES[values["supersense"]]: values for values in kept}


def test_build_adjective_has_thirteen_classes(tmp_path):
    given = snapshot(tmp_path, line("calm", feeling=0.6, weather=0.29))
    found = rows(supersenses.build(given, PARAMS), "calm")
    assert sorted(found) == sorted(f"adj.{name}" for name in ADJECTIVES)
    assert found["adj.feeling"]["weight"] == 0.6
    assert found["adj.weather"]["weight"] == 0.29
    assert found["adj.body"]["weight"] == 0.01
    assert [name for name, values in found.items() if values["best"]] == ["adj.feeling"]
    assert {values["senses"] for values in found.values()} == {None}


def test_build_verb_has_a_row_for_each_class(tmp_path):
    given = snapshot(
        tmp_path,
        line("calm", feeling=0.6),
        motion=synset(1, "run", "race") + synset(2, "run"),
        competition=synset(3, "run", "race"),
        social=synset(4, "run"),
    )
    found = list(supersenses.build(given, PARAMS))
    run, race = rows(found, "run"), rows(found, "race")
    assert {name: (values["senses"], values["weight"]) for name, values in run.items()} == {
        "verb.competition": (1, 0.25),
        "verb.motion": (2, 0.5),
        "verb.social": (1, 0.25),
    }
    assert [name for name, values in run.items() if values["best"]] == ["verb.motion"]
    # one sense in either class: nothing says which is better
    assert {name for name, values in race.items() if values["best"]} == set(race)
    assert len(race) == 2


def test_sample_words_have_a_class(sample):
    words = pl.read_parquet(sample("words") / "en.parquet", columns=["lemma", "pos"])
    classes = pl.read_parquet(sample("supersenses") / "en.parquet")
    assert words.join(classes, on=["lemma", "pos"], how="anti").is_empty()
    assert classes.filter(pl.col("weight") > 0)["supersense"].n_unique() == len(CLASSES)


@pytest.mark.slow
@building.reads("supersenses")
def test_build_real_supersenses(tmp_path):
    verbs = {f"verbs/{p.name}": p.read_bytes() for p in (REAL / "wordnet_verbs").iterdir()}
    words = {"adjectives/a.predicted": (REAL / "adjective_words.predicted").read_bytes()}
    given = building.snapshot(tmp_path, "supersenses", verbs | words)
    found, rejects = building.parted(supersenses.build(given, PARAMS))
    assert not rejects
    frame = pl.DataFrame([row.values for row in found], infer_schema_length=None)
    adjectives = frame.filter(pl.col("pos") == 0)
    assert adjectives["lemma"].n_unique() == 7511
    # lines of the file that name FEELING, and synsets of the verb files, counted with grep
    feeling = supersenses.CODES["adj.feeling"]
    assert adjectives.filter((pl.col("supersense") == feeling) & pl.col("best")).height == 920
    abashed = adjectives.filter((pl.col("lemma") == "abashed") & pl.col("best"))
    assert abashed.select("supersense", "weight").row(0) == (feeling, 0.768)
    rain = frame.filter((pl.col("lemma") == "rain") & (pl.col("pos") == 1))
    assert [CLASSES[code] for code in rain["supersense"]] == ["verb.weather"]
