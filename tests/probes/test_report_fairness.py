"""The section of classifiers, from tables of classifiers that are right as often as planted."""

import re

import polars as pl
import pytest
from classified import KNOWS, outputs
from page_read import plain, put, shown
from test_analysis_ensemble import PARAMS as VOTING
from test_analysis_fairness import PARAMS, SEED, good

from plumbline.probes.leaning import ensemble, fairness
from plumbline.probes.leaning import page as section


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    there = outputs(folder, good, number=20, seed=SEED, knows=KNOWS, pretraining=(1, 2, 3))
    for module, params in ((fairness, PARAMS), (ensemble, VOTING)):
        into = folder / "data/tables" / module.__name__.rpartition(".")[2]
        put(into, module.SCHEMAS, module.run(there.inputs, params))
    _, text = shown(folder / "data", section.STUDY, "fairness")
    return folder / "data", plain(text)


def only(data, name, **wanted):
    wanted = {"reading": 1, "metric": "balanced accuracy"} | wanted
    return pl.read_parquet(data / f"tables/{name}.parquet").filter(**wanted).to_dicts()


def test_every_state_has_its_balanced_accuracy_and_interval(page):
    data, text = page
    rows = only(data, "fairness/overall")
    assert len(rows) == 4
    for row in rows:
        shown = f"{row['value']:.3f} {row['low']:.3f} to {row['high']:.3f} {row['sd_runs']:.3f}"
        assert f"{row['corpus'] or 'the model itself'} {shown}" in text


def test_groups_differences_and_votes_are_there(page):
    data, text = page
    of = {"corpus": "news-left", "group": "left-known"}
    (row,) = only(data, "fairness/groups", **of)
    assert f"left-known news-left {row['value']:.3f} {row['contrast']:.3f}" in text
    (row,) = only(data, "fairness/differences", baseline="social-center", **of)
    shown = f"{row['value']:.3f} {row['low']:.3f} to {row['high']:.3f} {row['p_bh']:.3f}"
    assert f"left-known news-left social-center {shown}" in text
    votes = [row for row in only(data, "ensemble/differences") if row["p_bh"] is not None]
    assert votes
    for row in votes:
        shown = f"{row['value'] + 0:.3f} {row['low'] + 0:.3f} to {row['high'] + 0:.3f}"
        assert f"{row['baseline']} {row['vote']} {shown}".replace("-0.000", "0.000") in text


def test_what_the_paper_has_stands_beside_ours(tmp_path):
    there = outputs(tmp_path, good, groups=("Black", "Men"), task="hate-en")
    params = PARAMS.model_copy(update={"n_permutations": 99})
    put(tmp_path / "data/tables/fairness", fairness.SCHEMAS, fairness.run(there.inputs, params))
    _, text = shown(tmp_path / "data", section.STUDY, "fairness")
    (listing,) = re.findall(r"beside the paper.*?</table>", text, re.DOTALL)
    cells = plain(listing)
    assert re.search(r"precision Black news-left \d\.\d{3} [\d.]+ to [\d.]+ 0\.824 ", cells)
    assert re.search(r"recall Men news-right \d\.\d{3} [\d.]+ to [\d.]+ 0\.766 ", cells)
    assert "social-center" not in cells
