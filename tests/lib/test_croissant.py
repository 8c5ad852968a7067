"""Croissant: descriptions that its own library accepts, and reads the very rows with."""

import itertools
import json
from hashlib import sha256
from pathlib import Path

import building
import mlcroissant
import polars as pl
import pytest
import yaml
from etils import epath
from imports import TOP
from lib.hub_server import serving
from lib.small_folders import make
from lib.test_card import SCHEMA, SOURCE, write
from lib.test_publish import REPO, publish
from mlcroissant._src.core import constants

from plumbline.builders.core import front_matter, parquet
from plumbline.builders.core.build import build
from plumbline.builders.release import card, croissant

pytestmark = [  # of mlcroissant's use of newer versions of its dependencies
    pytest.mark.filterwarnings("ignore:ConjunctiveGraph is deprecated:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:The inplace keyword in DataFrame.reset_index"),
]
QUICK = ("politicians", "words", "stereotypes", "downstream")
DATASETS = sorted(p.stem for p in (TOP / "docs/datasets").glob("*.md"))
RESPONSIBLE = (
    *("dataCollection", "dataCollectionRawData", "dataCollectionMissingData", "dataLimitations"),
    *("dataPreprocessingProtocol", "dataAnnotationProtocol", "dataUseCases", "dataBiases"),
    *("personalSensitiveInformation", "dataSocialImpact", "dataReleaseMaintenancePlan"),
)


def plain(value):
    """Return a value of a record as Polars has it."""
    if isinstance(value, list):
        return [plain(one) for one in value]
    if isinstance(value, bytes):
        return value.decode()
    if hasattr(value, "to_pydatetime"):
        return value.date()
    return value.item() if hasattr(value, "item") else value


def loaded(path):
    """Open a description with the library of its makers, which must not complain of anything."""
    found = mlcroissant.Dataset(str(path))
    assert not found.metadata.ctx.issues.errors
    assert not found.metadata.ctx.issues.warnings
    return found


def records(found, name, number=50):
    got = itertools.islice(found.records(name), number)
    return [{key.rpartition("/")[2]: plain(v) for key, v in row.items()} for row in got]


def rows(path, number=50):
    return pl.read_parquet(path).head(number).to_dicts()


def check(folder):
    """Hold what a description says and yields against the files themselves."""
    card.write_all([folder.name])
    path = card.CARDS / folder.name / croissant.FILE
    found = loaded(path)
    described = json.loads(path.read_text("utf-8"))
    files = {entry["@id"]: entry["sha256"] for entry in described["distribution"]}
    assert sorted(files) == sorted(p.name for p in folder.glob("*.parquet"))
    wanted = {path.removesuffix(".parquet") for path in files}
    assert wanted <= {record.uuid for record in found.metadata.record_sets}
    for name in wanted:
        assert records(found, name) == rows(folder / f"{name}.parquet"), name
    return described


def validated(name):
    """Build a dataset as if it had been validated, and return its folder."""
    build(name, building.builder(name))
    folder = parquet.DATASETS / name
    facts = {"success": True, "fingerprint": parquet.fingerprint(folder)}
    parquet.VALIDATION.mkdir(exist_ok=True)
    (parquet.VALIDATION / f"{name}.json").write_text(json.dumps(facts), "utf-8")
    return folder


@pytest.fixture
def small(project):
    """A project in which the one slow dataset is built of one language and one seed."""
    tree = yaml.safe_load((project / "params.yaml").read_text("utf-8"))
    tree["datasets"]["lexica"] |= {"languages": ["en"], "seeds": [1]}
    (project / "params.yaml").write_text(yaml.safe_dump(tree, allow_unicode=True), "utf-8")
    return project


@pytest.mark.parametrize(
    "name", [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in DATASETS]
)
def test_croissant_reads_rows_as_polars_does(name, small):
    for needed in ("targets", "names", name) if name == "counterfactuals" else (name,):
        folder = validated(needed)
    described = check(folder)
    assert [key for key in RESPONSIBLE if f"rai:{key}" not in described] == []
    assert described["rai:dataCollectionTimeFrame"][0].startswith("2026-11-2")


def test_describe_fields(tmp_path):
    write(tmp_path / "toys", configs=("en", "fr"))
    path = tmp_path / "toys" / croissant.FILE
    described = json.loads(path.read_text("utf-8"))
    assert {key: described[key] for key in ("name", "version", "datePublished", "license")} == {
        "name": "toys",
        "version": "1.2.0",
        "datePublished": "2026-11-21",
        "license": {"@type": "sc:CreativeWork", "name": "toys-own", "url": "LICENSE.md"},
    }
    [origin] = described["prov:wasDerivedFrom"]
    assert origin["prov:atLocation"] == SOURCE["address"]
    assert origin["prov:generatedAtTime"] == SOURCE["retrieved"]
    assert origin["sc:license"] == SOURCE["licence"]
    metadata = loaded(path).metadata
    assert metadata.ctx.is_v1_1()
    assert metadata.in_language == ["en", "fr"]
    kept = ("data_use_cases", "data_collection_missing_data", "data_release_maintenance_plan")
    assert all(getattr(metadata, name) for name in kept)
    record = next(r for r in metadata.record_sets if r.uuid == "fr")
    assert record.key == ["fr/word"]
    assert {f.name: f.description for f in record.fields}["kind"] == "its kind (0: noun; 1: verb)"
    labels = [{"code": 0, "name": "noun"}, {"code": 1, "name": "verb"}]
    assert records(loaded(path), "fr/kind/labels") == labels


def test_describe_shards_are_one_record_set(project):
    """Outputs have a folder of shards for each config."""
    folder = Path("data/outputs/associations/toy")
    for number, word in enumerate("cab"):
        frame = pl.DataFrame({"word": [word], "kind": [1], "age": [number], "forms": [["x"]]})
        path = folder / "en" / f"{number:05}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        parquet.write_table(frame, SCHEMA.arrow(), path)
    origin = front_matter.Origin([SOURCE], "make repro STAGE=associations@toy", "1.0.0")
    front_matter.write(folder, {"en": SCHEMA}, origin, "{config}/*.parquet")
    (folder / croissant.FILE).write_bytes(card.render(folder)[croissant.FILE])
    found = loaded(folder / croissant.FILE)
    assert found.metadata.name == "associations-toy"
    assert [row["word"] for row in records(found, "en")] == ["c", "a", "b"]


def test_published_names_files_at_the_tag(project, monkeypatch):
    folder = validated("words")
    with serving() as hub:
        dry = publish(project, hub, "--dry-run", what="words")
        assert dry.returncode == 0, dry.stderr
        assert ("POST", "/api/validate-yaml", 200) in hub.asked
        assert not hub.repos
        done = publish(project, hub, what="words")
        assert done.returncode == 0, done.stderr
        files = hub.repos[f"datasets/{REPO}"].commits[-1][2]
        described = json.loads(hub.blobs[files[croissant.FILE]])
        text = hub.blobs[files["README.md"]].decode()
        assert f'load_dataset("{REPO}", "en", split="train")' in text
        assert "data/datasets/words" not in text
        assert described["url"] == f"{hub.endpoint}/datasets/{REPO}"
        assert described["version"] == "1.2.0"
        for entry in described["distribution"]:
            where = f"{hub.endpoint}/datasets/{REPO}/resolve/1.2.0/{entry['@id']}"
            assert entry["contentUrl"] == where
            assert entry["sha256"] == sha256(hub.blobs[files[entry["@id"]]]).hexdigest()
        repo = hub.repos[f"datasets/{REPO}"]
        repo.private = False  # mlcroissant sends no token
        Path("published.json").write_text(json.dumps(described), "utf-8")
        monkeypatch.setattr(constants, "DOWNLOAD_PATH", epath.Path("downloads"))
        read = records(loaded("published.json"), "en", 5)
        assert [row["form"] for row in read] == [r["form"] for r in rows(folder / "en.parquet", 5)]


def test_publish_dry_run_reports_refused_card(project):
    make("data/datasets/toys", front={"license": ["cc0-1.0"]})  # this Hub wants a name
    with serving() as hub:
        done = publish(project, hub, "--dry-run")
        assert done.returncode == 1
        assert "license" in done.stderr
