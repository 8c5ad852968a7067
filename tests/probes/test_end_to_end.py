"""The controls of the whole pipeline: what is planted is found, and nothing else."""

import polars as pl
import pytest

from plumbline.probes.controls.compare import recover
from plumbline.probes.core.run_analysis import analyse
from plumbline.probes.core.run_probe import probe
from worlds.plant import entries, plant

STRONG = {"word_effect": 1.0, "sentiment_effect": 2.0, "supersense_effect": 0.0}


def tables(change, name, **effects):
    """Train a world smaller than the pipeline's own, ask it, and return its tables."""
    smaller = {"words_max": 40, "hidden": 64, "steps": 150, "learning_rate": 0.005}
    change(lambda tree: tree["analysis"]["pmi"].update(n_bootstrap=500))
    plant(name, entries()[name] | smaller | effects)
    probe("associations", name)
    folder = analyse("pmi", name)
    recovery = pl.read_parquet(recover(("politicians",)) / "recovery.parquet").filter(
        analysis="pmi"
    )
    return pl.read_parquet(folder / "pmi.parquet"), {
        row["measure"]: row for row in recovery.iter_rows(named=True)
    }


def gender_of_clusters(change, name):
    """Return the shares of genders in two clusters of the words' states, after :func:`tables`."""
    quick = {"clusters": [2], "n_simulations": 19, "n_bootstrap": 100}
    change(lambda tree: tree["analysis"]["clusters"].update(quick))
    probe("representations", name)
    shares = pl.read_parquet(analyse("clusters", name) / "shares.parquet")
    return shares.filter(reading="largest")


@pytest.mark.slow
def test_what_was_planted_is_found_with_its_sign_and_order(place, change):
    table, measures = tables(change, "world-planted", **STRONG)
    spearman, sign = measures["rank_correlation"], measures["sign_agreement"]
    assert spearman["n"] >= 40
    assert spearman["value"] > 0.8
    assert spearman["low"] > 0.7
    assert sign["value"] > 0.8
    assert sign["low"] > 0.5
    assert measures["discoveries_bh"]["value"] > 0.2
    assert set(table["model"]) == {"world-planted"}
    shares = gender_of_clusters(change, "world-planted")
    assert set(shares["pos"]) == {"ADJ", "VERB"}
    assert (shares["p_bh"] < 0.01).all()


@pytest.mark.slow
def test_where_nothing_was_planted_next_to_nothing_is_found(place, change):
    table, measures = tables(change, "world-null")
    tests = table.drop_nulls("p")
    assert len(tests) > 100
    assert (tests["p_bh"] <= 0.05).mean() <= 0.05
    # exact tests of discrete counts: no more than their level, with room for one draw of them
    assert (tests["p"] <= 0.05).mean() <= 0.10
    assert measures["coverage"]["value"] > 0.9
    assert "rank_correlation" not in measures
    assert gender_of_clusters(change, "world-null")["p_bh"].min() > 0.05
