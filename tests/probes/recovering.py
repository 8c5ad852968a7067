"""Planted truth of a world of names, written as a world has it."""

import json

import polars as pl


def plant(weights, words, **settings):
    """Write what was planted in a world of names: columns of words, and its settings."""
    weights.mkdir(parents=True, exist_ok=True)
    pl.DataFrame(words).write_parquet(weights / "planted.parquet")
    world = {"language": "en", "seed": 1, "name_noise": 0.5}
    world |= {"word_effect": 1, "sentiment_effect": 0, "supersense_effect": 0.6}
    (weights / "world.json").write_text(json.dumps(world | settings), encoding="utf-8")


def write_tables(inputs, analysis, tables, model=""):
    """Write the tables of an analysis where recovery reads them."""
    folder = inputs.tables(analysis, model)
    folder.mkdir(parents=True, exist_ok=True)
    for name, table in tables.items():
        table.write_parquet(folder / f"{name}.parquet")
