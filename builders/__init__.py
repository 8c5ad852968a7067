"""Builders that turn sources into snapshots and snapshots into datasets."""

from pathlib import Path

_FOLDER = Path(__file__).parent / "datasets"
DATASETS = sorted(p.parent.name for p in _FOLDER.glob("*/build.py"))
_CLIENTS = sorted(p.parent.name for p in _FOLDER.glob("*/fetch.py"))
_SOURCE = {  # name of a dataset's source, if it is not the dataset's own name
    "corpora": "reddit",
    "outlets": "news",
    "politicians": "wikidata",
    "stereotypes": "autocomplete",
    "words": "ud",
}
SOURCES = {_SOURCE.get(dataset, dataset): dataset for dataset in _CLIENTS}


def client_of(source: str) -> str:
    """Return the name of the module that fetches a source."""
    return f"plumbline.builders.datasets.{SOURCES[source]}.fetch"
