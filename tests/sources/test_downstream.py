from __future__ import annotations

import io
import zipfile

import pytest
from samples import DAY, POLITE, SAMPLES, archived, downstream_params, files, make_downstream

from plumbline.builders.core.errors import Problem
from plumbline.builders.core.snapshot import MANIFEST, Snapshot
from plumbline.builders.datasets.downstream import fetch as downstream
from sources.misbehaving import always, half, misbehaving, status, web_page

FILE = SAMPLES / "downstream" / DAY / "hate-en/all.csv"
OWN = downstream_params("x").corpora["hate-en"].model_dump()


def params(place: object, name: str = "hate-en", **changes) -> downstream.Params:
    return downstream.Params(corpora={name: OWN | {"parts": {"all": str(place)}} | changes})


def test_the_sample_in_git_is_what_the_client_makes(tmp_path):
    make_downstream(tmp_path)
    made, kept = tmp_path / "downstream" / DAY, SAMPLES / "downstream" / DAY
    names = sorted(path.relative_to(kept) for path in kept.rglob("*") if path.is_file())
    assert [path.relative_to(made) for path in sorted(made.rglob("*")) if path.is_file()] == names
    assert all((made / name).read_bytes() == (kept / name).read_bytes() for name in names)


def test_files_of_the_checkout_and_from_afar_are_kept_as_they_are(tmp_path):
    downstream.fetch(params(FILE), POLITE, tmp_path / "a" / DAY)
    with files(FILE.parent) as address:
        downstream.fetch(params(f"{address}/all.csv"), POLITE, tmp_path / "b" / DAY)
    for folder in ("a", "b"):
        found = Snapshot.open(tmp_path / folder / DAY)
        assert found.read("hate-en/all.csv") == FILE.read_bytes()
        assert found.manifest["counts"] == {"hate-en/all": 417}


def test_an_archive_is_kept_as_it_is(tmp_path):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("in/hate.csv", FILE.read_bytes())
    with archived(packed.getvalue()) as address:
        downstream.fetch(params(f"{address}/lexicon.zip#in/hate.csv"), POLITE, tmp_path / DAY)
    found = Snapshot.open(tmp_path / DAY)
    assert found.read("hate-en/lexicon.zip") == packed.getvalue()
    assert found.manifest["counts"] == {"hate-en/all": 417}


def test_terms_that_forbid_publishing_stand_in_the_manifest(tmp_path):
    downstream.fetch(
        params(FILE, licence="research only", redistribute=False), POLITE, tmp_path / DAY
    )
    said = Snapshot.open(tmp_path / DAY).manifest["licence"]
    assert said == "hate-en: research only (rows not to be published)"


def test_a_web_page_a_half_and_a_missing_file_are_told(tmp_path):
    with (
        files(FILE.parent) as address,
        misbehaving(address, always(web_page)) as server,
        pytest.raises(Problem, match="a web page in place of the file"),
    ):
        downstream.fetch(params(f"{server.address}/all.csv"), POLITE, tmp_path / "a")
    assert not (tmp_path / "a" / MANIFEST).exists()
    with (
        files(FILE.parent) as address,
        misbehaving(address, always(half)) as server,
        pytest.raises(Problem, match=r"line \d+: (unexpected end of data|\d fields, not 4)"),
    ):
        downstream.fetch(params(f"{server.address}/all.csv"), POLITE, tmp_path / "half")
    with pytest.raises(Problem, match=r"nowhere\.csv: no such file for hate-en; name yours"):
        downstream.fetch(params("nowhere.csv"), POLITE, tmp_path / "b")
    with pytest.raises(Problem, match=r"its authors give it out, at https://osf\.io/53tfs"):
        downstream.fetch(params("nowhere.csv", "hate-identity"), POLITE, tmp_path / "c")


def test_an_interrupted_fetch_continues_with_the_file_that_is_missing(tmp_path):
    folder = SAMPLES / "downstream" / DAY / "misinformation-en"
    own = downstream_params("{at}").corpora["misinformation-en"].model_dump()

    def claims(address):
        parts = {part: f"{address}/{part}.tsv" for part in own["parts"]}
        return downstream.Params(corpora={"misinformation-en": own | {"parts": parts}})

    into, tired = tmp_path / DAY, True
    with (
        files(folder) as address,
        misbehaving(address, lambda n, body: status(403) if tired and n >= 2 else None) as server,
    ):
        with pytest.raises(Problem, match=server.address):
            downstream.fetch(claims(server.address), POLITE, into)
        assert not (into / MANIFEST).exists()
        kept = [path.name for path in into.rglob("*.tsv")]
        assert len(kept) in (1, 2)
        tired, before = False, len(server.asked)
        downstream.fetch(claims(server.address), POLITE, into)
        assert len(server.asked) - before == 3 - len(kept)
    for part in own["parts"]:
        name = f"{part}.tsv"
        assert (into / "misinformation-en" / name).read_bytes() == (folder / name).read_bytes()


def test_a_file_of_another_layout_leaves_nothing_behind(tmp_path):
    with pytest.raises(Problem, match=r"not JSON.*downstream\.md has the layouts"):
        downstream.fetch(params(FILE, layout="jsonl"), POLITE, tmp_path / DAY)
    assert not list((tmp_path / DAY).rglob("*.jsonl"))


def test_other_parameters_are_refused_when_a_fetch_is_continued(tmp_path):
    downstream.fetch(params(FILE), POLITE, tmp_path / DAY)
    with pytest.raises(Problem, match="begun with other parameters"):
        downstream.fetch(params(FILE, licence="another"), POLITE, tmp_path / DAY)


@pytest.mark.parametrize("name", ["toxicity-en", "hate", "hate-EN", "../x"])
def test_a_config_of_no_task_is_refused(name):
    with pytest.raises(ValueError, match="String should match pattern"):
        params(FILE, name)
