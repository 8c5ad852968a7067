import io
import zipfile

from samples import DAY, POLITE, SAMPLES, archived, downstream_params

from plumbline.builders.core.snapshot import Snapshot
from plumbline.builders.datasets.downstream import fetch as downstream

FILE = SAMPLES / "downstream" / DAY / "hate-en/all.csv"
OWN = downstream_params("x").corpora["hate-en"].model_dump()


def params(place: object, name: str = "hate-en", **changes) -> downstream.Params:
    return downstream.Params(corpora={name: OWN | {"parts": {"all": str(place)}} | changes})


def test_fetch_downstream_keeps_archives(tmp_path):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("in/hate.csv", FILE.read_bytes())
    with archived(packed.getvalue()) as address:
        downstream.fetch(params(f"{address}/lexicon.zip#in/hate.csv"), POLITE, tmp_path / DAY)
    found = Snapshot.open(tmp_path / DAY)
    assert found.read("hate-en/lexicon.zip") == packed.getvalue()
    assert found.manifest["counts"] == {"hate-en/all": 417}
