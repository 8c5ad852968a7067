"""The tests of sentiments at the scale of the full study, next to one that is known to be wrong.

Words go with a gender, sentiments do not: 50,000 names, small log-ratios, and sentiments of 20, 20
and 60% of the words. The fits have the default weights, in place of the 40 pairs of `make full`.
"""

import numpy as np
import polars as pl
import pytest
from scipy.sparse import csr_array
from scipy.stats import binom, false_discovery_control

from calibration.politicians import lists
from calibration.truth import Truth
from plumbline.builders.core.params import section
from plumbline.probes.politicians import latent, latent_model, sentiment
from plumbline.probes.politicians.words.sentiment_shares import by_pmi, difference_rows
from plumbline.probes.politicians.words.word_counts import FEMALE, MALE, Named
from plumbline.probes.stats.shares import largest
from plumbline.probes.stats.tests import fisher_p

SEED, TABLES, WORDS = 52, 12, 400
SHAPE = lists.ListsShape(men=40_000, women=10_000, words=WORDS)
FULL = {"top_share": 1.0, "n_permutations": 99, "n_bootstrap": 20}


def contrasts_p(matrix, women, kinds, q):
    """Return p of the words with the largest contrasts of genders in the latent-variable model."""
    params = section("analysis.latent", latent.Params)
    how = latent_model.Schedule(params.steps, params.learning_rate)
    counts = np.stack([matrix[~women].sum(axis=0), matrix[women].sum(axis=0)], axis=1)
    grid = latent_model.grid(params.l1, params.posterior)
    fits = latent_model.fit(counts[None] + 0.5, q, *grid, how)
    eta = latent_model.average(fits, len(fits.phi)).eta[0].mean(axis=0)
    chosen = kinds[largest(eta - eta[::-1], 100)]
    hits = np.stack([(chosen == kind).sum(axis=1) for kind in range(3)])
    return fisher_p(hits, np.array([100, 100]))[:, 0].tolist()


@pytest.mark.slow
def test_sentiment_size_at_the_scale_of_the_full_study():
    params = section("analysis.sentiment", sentiment.Params).model_copy(update=FULL)
    part, women = lists.population(SHAPE, Truth("null"), 0), np.arange(50_000) >= SHAPE.men
    false = dict.fromkeys(("words", "names", "contrasts"), 0)
    for number in range(TABLES):
        rng = np.random.default_rng([SEED, number])
        drawn = part._replace(effect=rng.normal(0, 0.05, WORDS))
        utility = lists.utilities(drawn, lists.origins(drawn, women, rng), women - 0.5)
        best = lists.best(utility, SHAPE.length, rng)
        rows = np.repeat(np.arange(len(women)), SHAPE.length)
        matrix = csr_array((np.ones(best.size), (rows, best.ravel())))
        kinds = rng.permutation(np.repeat(range(3), [80, 80, 240]))
        q = np.where(kinds[:, None] == np.arange(3), 0.7, 0.15)
        named = Named(matrix, women.astype(int), (MALE, FEMALE), pl.DataFrame(), pl.DataFrame())
        p = {"words": [], "names": [], "contrasts": contrasts_p(matrix, women, kinds, q)}
        for row in difference_rows(by_pmi(named, q, params, "en"), 0.95):
            p[row["test"]].append(row["p"])
        for test, values in p.items():
            false[test] += int(min(false_discovery_control(values)) <= 0.05)
    most = binom.ppf(0.999, TABLES, 0.05)  # families with a false finding
    assert max(false["words"], false["names"]) <= most < false["contrasts"], false
