from __future__ import annotations

import pytest
from samples import DAY, POLITE, SAMPLES, files, social_groups_params

from plumbline.builders.core.errors import Problem
from plumbline.builders.core.snapshot import MANIFEST, Snapshot
from plumbline.builders.datasets.social_groups import fetch as social_groups
from sources.misbehaving import always, at_first, cut, half, misbehaving, web_page

LIST = SAMPLES / "social_groups" / DAY / "en.csv"


def test_a_file_of_the_checkout_and_one_from_afar_are_kept_as_they_are(tmp_path):
    with files(LIST.parent) as address:
        params = social_groups_params(en=str(LIST), xx=f"{address}/en.csv")
        social_groups.fetch(params, POLITE, tmp_path / DAY)
    for name in ("en.csv", "xx.csv"):
        assert (tmp_path / DAY / name).read_bytes() == LIST.read_bytes()
    found = Snapshot.open(tmp_path / DAY)
    assert found.manifest["counts"] == {"languages": 2, "groups": 2 * 374}


def test_a_web_page_and_a_missing_file_are_told(tmp_path):
    with files(LIST.parent) as address, misbehaving(address, always(web_page)) as server:
        params = social_groups_params(en=f"{server.address}/en.csv")
        with pytest.raises(Problem, match="a web page in place of the file"):
            social_groups.fetch(params, POLITE, tmp_path / DAY)
    assert not (tmp_path / DAY / MANIFEST).exists()
    with pytest.raises(Problem, match=r"nowhere\.csv: no such file of groups"):
        social_groups.fetch(social_groups_params(en="nowhere.csv"), POLITE, tmp_path / "b")


def test_a_cut_connection_is_asked_again_and_a_list_cut_in_a_line_is_refused(tmp_path):
    with files(LIST.parent) as address:
        with misbehaving(address, at_first(1, cut)) as server:
            params = social_groups_params(en=f"{server.address}/en.csv")
            social_groups.fetch(params, POLITE, tmp_path / DAY)
            assert len(server.asked) == 2
        with misbehaving(address, always(half)) as server:
            params = social_groups_params(en=f"{server.address}/en.csv")
            with pytest.raises(Problem, match="cut short"):
                social_groups.fetch(params, POLITE, tmp_path / "half")


def test_other_parameters_are_refused_when_a_fetch_is_continued(tmp_path):
    social_groups.fetch(social_groups_params(en=str(LIST)), POLITE, tmp_path / DAY)
    with pytest.raises(Problem, match="begun with other parameters"):
        social_groups.fetch(social_groups_params(fr=str(LIST)), POLITE, tmp_path / DAY)


def test_a_language_that_is_no_name_of_a_file_is_refused():
    with pytest.raises(ValueError, match="not language codes"):
        social_groups_params(**{"../en": "x.csv"})
