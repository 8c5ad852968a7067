"""Holding the tables of an analysis against what was planted, as the pipeline does."""

import json

import polars as pl

from plumbline.probes.politicians import recovery


def plant(weights, words, **settings):
    """Write what was planted in a world of names: columns of words, and its settings."""
    weights.mkdir(parents=True, exist_ok=True)
    pl.DataFrame(words).write_parquet(weights / "planted.parquet")
    world = {"language": "en", "seed": 1, "name_noise": 0.5}
    world |= {"word_effect": 1, "sentiment_effect": 0, "supersense_effect": 0.6}
    world |= {"words_max": 16, "sentences": 100, "steps": 1, "learning_rate": 0.1}
    (weights / "world.json").write_text(json.dumps(world | settings), encoding="utf-8")


def recovered(inputs, analysis, found, model="m"):
    """Write the tables of an analysis, and hold them against what was planted."""
    folder = inputs.tables(analysis, model)
    folder.mkdir(parents=True, exist_ok=True)
    for name, table in found.items():
        table.write_parquet(folder / f"{name}.parquet")
    return recovery.run(inputs, recovery.Params())[analysis]
