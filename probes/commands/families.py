"""Number of random permutations that a single test needs to be significant in its family.

The smallest p of n permutations is 1 / (n + 1); its adjusted p is p times the number of tests.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from math import ceil, comb
from typing import Any

import polars as pl

from plumbline.builders.core.parquet import DATASETS, REJECTS
from plumbline.builders.datasets.downstream.read import SPLITS
from plumbline.builders.datasets.emotions.build import AFFECTS
from plumbline.builders.datasets.lexica.build import SENTIMENTS
from plumbline.builders.datasets.supersenses.build import CLASSES
from plumbline.builders.datasets.words.build import POS
from plumbline.probes.leaning.predictions import TESTED
from plumbline.probes.leaning.schemas import COMPARISONS
from plumbline.probes.politicians.clusters import FAITHFUL_CLUSTERS
from plumbline.probes.politicians.lexicon_evaluation import MEASURES
from plumbline.probes.politicians.subgroups import CONTRASTS
from plumbline.probes.politicians.supersenses import PAIRS
from plumbline.probes.stats.estimate import LEVEL
from plumbline.probes.stereotypes.typicality import READINGS


def too_few(
    params: dict[str, Any], models: dict[str, Any], lists: dict[str, Any], worlds: Collection[str]
) -> Iterator[str]:
    """Yield the numbers of permutations with which no single test can be significant.

    Social groups and sources of texts are counted in the datasets that have been built.

    ``params``: sections by dotted key. ``models``: params of all models. ``lists``: models of each
    probe. ``worlds``: names of control models, each of which forms a family of its own.
    """
    asked, training = set(params["probes.associations"].languages), params["training.pretrain"]
    clusters, fairness = params["analysis.clusters"], params["analysis.fairness"]
    views, texts = params["sources.lexica"].views, params["sources.labelled_texts"].corpora

    def cells(probe: str, left_out: Collection[str] = ()) -> list[int]:
        names = [name for name in lists.get(probe, ()) if name in models and name not in left_out]
        own = (set(models[name].get("languages") or asked) & asked for name in names)
        return [0, *(len(POS) * len(languages) for languages in own)]

    words, genders = max(cells("representations")), len(clusters.genders)
    source = "social_groups" if params["probes.completions"].groups == "all" else "stereotypes"
    social = [table.select("category", "group").unique() for table in _built(source)]
    categories = 1 + max((table["category"].n_unique() for table in social), default=0)
    corpora = max(map(len, training.corpora.values()), default=0)
    states = 1 + corpora * len(training.periods) * len(training.shares)
    states *= training.epochs if training.save == "each" else 1
    parts = [0]
    for table in _built("downstream"):
        test = table.filter(split=SPLITS.index("test"))
        names = pl.concat([test["mapped"].explode().drop_nulls(), test["source"]])
        parts.append((names.value_counts()["count"] >= fairness.texts_min).sum())
    families = {  # the largest family of each analysis, doubled if p is twice a tail
        "sentiment": len(SENTIMENTS) * sum(cells("associations", worlds)),
        "subgroups": len(SENTIMENTS) * len(CONTRASTS) * max(cells("subgroups")),
        "supersenses": len(CLASSES) * len(PAIRS),
        "clusters": words // len(POS) * FAITHFUL_CLUSTERS * genders,
        "clusters.n_simulations": 2 * words * (genders + 1) * len(set(clusters.clusters)),
        "lexicon_evaluation": len(MEASURES)
        * sum((len(views.get(k, ())) + 3) * len(v) for k, v in texts.items()),
        "recall": len(READINGS) * categories * len(params["analysis.recall"].tested),
        "emotions": len(AFFECTS) * max(map(len, social), default=0),
        "rsa": comb(len(lists.get("completions", ())), 2) * categories,
        "compass.n_permutations_stability": states * len(COMPARISONS),
        "fairness": 2 * states * max(parts) * len(TESTED),
        "values": 9,  # correlations for one scale in the table `consistency`
    }
    for name, tests in families.items():
        analysis, _, field = name.partition(".")
        number = getattr(params[f"analysis.{analysis}"], field := field or "n_permutations")
        if tests > LEVEL * (number + 1):
            key, least = f"analysis.{analysis}.{field}", ceil(tests / LEVEL) - 1
            yield f"{key}: {number} is too few for {tests} tests; set at least {least}"


def _built(dataset: str) -> list[pl.DataFrame]:
    paths = sorted((DATASETS / dataset).glob("*.parquet"))
    return [pl.read_parquet(path) for path in paths if path.name != REJECTS]
