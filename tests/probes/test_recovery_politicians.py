"""The recovery of clusters and of parts of the names, held against what was planted."""

import numpy as np
import polars as pl
import pytest
from recovering import plant, recovered

from plumbline.probes.core.run_analysis import Inputs
from plumbline.probes.politicians import clusters, robustness, subgroups, supersenses
from plumbline.probes.politicians.recovery import clusters as of_clusters
from plumbline.probes.politicians.recovery import control, shares
from plumbline.probes.politicians.words.sentiment_shares import DEVIATIONS, READINGS

WORDS = [f"w{i:02}" for i in range(24)]
RATIO = np.repeat([2.0, -2.0], 12)


def test_codes_of_tables_are_those_of_the_analyses():
    assert robustness.KINDS[shares.LISTS_CUT] == "list length"
    assert clusters.READINGS == of_clusters.READINGS
    named = {key: f"{DEVIATIONS[key[0]]}, {READINGS[key[1]]}: " for key in shares.RANKED}
    assert named == shares.RANKED | {(0, 1): "pmi, argmax: "}
    assert supersenses.DEVIATIONS == ("pmi", "latent", "latent contrast")
    pairs = [pair for pair in subgroups.CONTRASTS if subgroups.AGAINST in pair]
    names = [subgroups.AGAINST.join(subgroups.SUBGROUPS[i : i + 2]) for i in (0, 2, 4)]
    assert [*subgroups.SUBGROUPS, *names] == list(subgroups.CONTRASTS)
    assert pairs == names


def clustered(folder, women, parts, **world):
    """Write the tables of a world in which words are of women or not, and in parts."""
    inputs = Inputs(("m",), {}, folder)
    planted = {"word": WORDS, "pos": "ADJ", "frequency_nats": 0.0, "log_ratio_nats": RATIO}
    plant(inputs.weights("m"), planted | {"sentiment": "neutral"}, **world)
    at = {"model": "m", "language": "en", "pos": 0, "reading": 1}
    words = pl.DataFrame({"word": WORDS, "gender": women, "cluster_id": parts}).with_columns(
        group=3, **{name: pl.lit(value) for name, value in at.items()}
    )
    found = []
    for part in sorted(set(parts)):
        own = [w for w, p in zip(women, parts, strict=True) if p == part]
        for gender in (0, 1):
            share = own.count(gender) / len(own)
            found.append(
                at | {"cluster_id": part, "gender": gender, "value": share, "p": 0.5, "p_bh": 1.0}
            )
    rows = recovered(inputs, "clusters", {"words": words, "shares": pl.DataFrame(found)})
    return {row["measure"].removeprefix("largest: "): row for row in rows.iter_rows(named=True)}


SIDE = "share of words of one gender whose planted sign it is"
ORDER = "Spearman correlation of planted log-ratio of a word and women's share of its cluster"


@pytest.mark.parametrize("turned", [False, True])
def test_words_and_clusters_of_the_wrong_gender_are_told(tmp_path, turned):
    women, parts = [1 - turned] * 12 + [int(turned)] * 12, [0] * 12 + [1] * 12
    found = clustered(tmp_path, women, parts)
    assert found[SIDE]["value"] == 1 - turned
    assert found[ORDER]["value"] == pytest.approx(-1 if turned else 1)
    assert found[SIDE]["n"] == found[ORDER]["n"] == 24


def test_where_nothing_is_planted_discoveries_of_clusters_are_counted(tmp_path):
    none = {"word_effect": 0, "supersense_effect": 0}
    found = clustered(tmp_path, [0, 1] * 12, [0] * 12 + [1] * 12, **none)
    of = "share of largest clusters with {} at or below 0.05"
    assert list(found) == [of.format("p"), of.format("p_bh")]
    assert {(row["value"], row["n"], row["null"]) for row in found.values()} == {
        (0, 2, "at most 0.05: nominal")
    }


@pytest.mark.parametrize(("nats", "people", "true"), [(12.0, 50, -1.0), (0.0, 400, 0.0)])
def test_what_few_names_would_give_follows_from_what_was_planted(tmp_path, nats, people, true):
    """Positive words go with women by so many nats: all of women's are positive, or a third."""
    kinds = np.repeat(["positive", "negative", "neutral"], 8)
    ratio = nats * np.repeat([1.0, -1.0, 0.0], 8)
    planted = {"word": WORDS, "pos": "ADJ", "frequency_nats": 0.0, "log_ratio_nats": ratio}
    plant(tmp_path, planted | {"sentiment": kinds}, name_noise=1.0)
    world = control.Control(None, "m", control.planted(tmp_path), None, control.Params())
    apart = shares.sampled_shares(world, 0, {0: people, 1: people}, 8, 24, 8)
    # negative words are men's: none of women's largest are, all of men's
    assert apart == pytest.approx([true, -true, 0], abs=1e-9 if nats else 0.1)
    assert apart.sum() == pytest.approx(0, abs=1e-9)
